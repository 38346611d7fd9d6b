// Gemma 2: two layers in one, the first with a sliding window; norms before and after each part, and a soft cap on the logits.

include "common.pp"

layer gemma2_half(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq], at: text, window: number = 0) {
  param pre_attention:  weight[embed]                 = ones        as "pre_self_attention_norm_{at}/scale"
  param post_attention: weight[embed]                 = ones        as "post_self_attention_norm_{at}/scale"
  param pre_mlp:        weight[embed]                 = ones        as "pre_ffw_norm_{at}/scale"
  param post_mlp:       weight[embed]                 = ones        as "post_ffw_norm_{at}/scale"
  param query:          weight[embed, heads, head]    = normal(0.1) as "self_attention_{at}/query/kernel"
  param key:            weight[embed, kv_heads, head] = normal(0.1) as "self_attention_{at}/key/kernel"
  param value:          weight[embed, kv_heads, head] = normal(0.1) as "self_attention_{at}/value/kernel"
  param out:            weight[heads, head, embed]    = normal(0.1) as "self_attention_{at}/out/kernel"
  param wi_0:           weight[embed, mlp]            = normal(0.1) as "mlp_{at}/wi_0/kernel"
  param wi_1:           weight[embed, mlp]            = normal(0.1) as "mlp_{at}/wi_1/kernel"
  param wo:             weight[mlp, embed]            = normal(0.1) as "mlp_{at}/wo/kernel"

  h = self_attention(rmsnorm(x, pre_attention, over: embed, eps: 1e-6), query, key, value, out, pos, segments, window: window, cap: 50)
  x = x + rmsnorm(h, post_attention, over: embed, eps: 1e-6)
  h = gelu_mlp(rmsnorm(x, pre_mlp, over: embed, eps: 1e-6), wi_0, wi_1, wo)
  return x + rmsnorm(h, post_mlp, over: embed, eps: 1e-6)
}

layer gemma2(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq]) {
  x = checkpoint(x, "decoder_layer_input")
  x = apply(gemma2_half, name: "local", at: "local", window: 3)(x, pos, segments)
  return apply(gemma2_half, name: "global", at: "global")(x, pos, segments)
}

model gemma2_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(gemma2, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
