// Gemma: Llama with GELU, and an epsilon of its own.

include "common.pp"

layer gemma(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq]) {
  param attention_norm: weight[embed]                 = ones        as "pre_self_attention_norm/scale"
  param mlp_norm:       weight[embed]                 = ones        as "pre_ffw_norm/scale"
  param query:          weight[embed, heads, head]    = normal(0.1) as "self_attention/query/kernel"
  param key:            weight[embed, kv_heads, head] = normal(0.1) as "self_attention/key/kernel"
  param value:          weight[embed, kv_heads, head] = normal(0.1) as "self_attention/value/kernel"
  param out:            weight[heads, head, embed]    = normal(0.1) as "self_attention/out/kernel"
  param wi_0:           weight[embed, mlp]            = normal(0.1) as "mlp/wi_0/kernel"
  param wi_1:           weight[embed, mlp]            = normal(0.1) as "mlp/wi_1/kernel"
  param wo:             weight[mlp, embed]            = normal(0.1) as "mlp/wo/kernel"

  x = checkpoint(x, "decoder_layer_input")
  a = x + self_attention(rmsnorm(x, attention_norm, over: embed, eps: 1e-6), query, key, value, out, pos, segments)
  return a + gelu_mlp(rmsnorm(a, mlp_norm, over: embed, eps: 1e-6), wi_0, wi_1, wo)
}

model gemma_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(gemma, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
