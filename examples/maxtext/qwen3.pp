// Qwen 3: Llama with a norm on every head's query and key, a long rotary base and a small epsilon.

include "common.pp"

layer qwen3(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq]) {
  param attention_norm: weight[embed]                 = ones        as "pre_self_attention_layer_norm/scale"
  param mlp_norm:       weight[embed]                 = ones        as "post_self_attention_layer_norm/scale"
  param query:          weight[embed, heads, head]    = normal(0.1) as "self_attention/query/kernel"
  param key:            weight[embed, kv_heads, head] = normal(0.1) as "self_attention/key/kernel"
  param value:          weight[embed, kv_heads, head] = normal(0.1) as "self_attention/value/kernel"
  param out:            weight[heads, head, embed]    = normal(0.1) as "self_attention/out/kernel"
  param query_norm:     weight[head]                  = ones        as "self_attention/query_norm/scale"
  param key_norm:       weight[head]                  = ones        as "self_attention/key_norm/scale"
  param wi_0:           weight[embed, mlp]            = normal(0.1) as "mlp/wi_0/kernel"
  param wi_1:           weight[embed, mlp]            = normal(0.1) as "mlp/wi_1/kernel"
  param wo:             weight[mlp, embed]            = normal(0.1) as "mlp/wo/kernel"

  x = checkpoint(x, "decoder_layer_input")
  h = rmsnorm(x, attention_norm, over: embed, eps: 1e-6)
  a = x + normed_attention(h, query, key, value, out, query_norm, key_norm, pos, segments, base: 1000000, eps: 1e-6)
  return a + silu_mlp(rmsnorm(a, mlp_norm, over: embed, eps: 1e-6), wi_0, wi_1, wo)
}

model qwen3_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(qwen3, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
