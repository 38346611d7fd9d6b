// Gemma 2: two layers in one, the first with a sliding window; norms before and after each part, and a soft cap on the logits.

include "common.pp"

layer gemma2(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq]) {
  param pre_attention_local:  weight[embed]                 = ones        as "pre_self_attention_norm_local/scale"
  param post_attention_local: weight[embed]                 = ones        as "post_self_attention_norm_local/scale"
  param pre_mlp_local:        weight[embed]                 = ones        as "pre_ffw_norm_local/scale"
  param post_mlp_local:       weight[embed]                 = ones        as "post_ffw_norm_local/scale"
  param query_local:          weight[embed, heads, head]    = normal(0.1) as "self_attention_local/query/kernel"
  param key_local:            weight[embed, kv_heads, head] = normal(0.1) as "self_attention_local/key/kernel"
  param value_local:          weight[embed, kv_heads, head] = normal(0.1) as "self_attention_local/value/kernel"
  param out_local:            weight[heads, head, embed]    = normal(0.1) as "self_attention_local/out/kernel"
  param wi_0_local:           weight[embed, mlp]            = normal(0.1) as "mlp_local/wi_0/kernel"
  param wi_1_local:           weight[embed, mlp]            = normal(0.1) as "mlp_local/wi_1/kernel"
  param wo_local:             weight[mlp, embed]            = normal(0.1) as "mlp_local/wo/kernel"

  param pre_attention_global:  weight[embed]                 = ones        as "pre_self_attention_norm_global/scale"
  param post_attention_global: weight[embed]                 = ones        as "post_self_attention_norm_global/scale"
  param pre_mlp_global:        weight[embed]                 = ones        as "pre_ffw_norm_global/scale"
  param post_mlp_global:       weight[embed]                 = ones        as "post_ffw_norm_global/scale"
  param query_global:          weight[embed, heads, head]    = normal(0.1) as "self_attention_global/query/kernel"
  param key_global:            weight[embed, kv_heads, head] = normal(0.1) as "self_attention_global/key/kernel"
  param value_global:          weight[embed, kv_heads, head] = normal(0.1) as "self_attention_global/value/kernel"
  param out_global:            weight[heads, head, embed]    = normal(0.1) as "self_attention_global/out/kernel"
  param wi_0_global:           weight[embed, mlp]            = normal(0.1) as "mlp_global/wi_0/kernel"
  param wi_1_global:           weight[embed, mlp]            = normal(0.1) as "mlp_global/wi_1/kernel"
  param wo_global:             weight[mlp, embed]            = normal(0.1) as "mlp_global/wo/kernel"

  x = checkpoint(x, "decoder_layer_input")
  h = self_attention(rmsnorm(x, pre_attention_local, over: embed, eps: 1e-6), query_local, key_local, value_local, out_local, pos, segments, window: 3, cap: 50)
  x = x + rmsnorm(h, post_attention_local, over: embed, eps: 1e-6)
  h = gelu_mlp(rmsnorm(x, pre_mlp_local, over: embed, eps: 1e-6), wi_0_local, wi_1_local, wo_local)
  x = x + rmsnorm(h, post_mlp_local, over: embed, eps: 1e-6)

  h = self_attention(rmsnorm(x, pre_attention_global, over: embed, eps: 1e-6), query_global, key_global, value_global, out_global, pos, segments, cap: 50)
  x = x + rmsnorm(h, post_attention_global, over: embed, eps: 1e-6)
  h = gelu_mlp(rmsnorm(x, pre_mlp_global, over: embed, eps: 1e-6), wi_0_global, wi_1_global, wo_global)
  return x + rmsnorm(h, post_mlp_global, over: embed, eps: 1e-6)
}

model gemma2_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(gemma2, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
