// Qwen 2: Llama with biases on query, key and value, and queries divided by sqrt(head).

include "common.pp"

layer qwen2(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq]) {
  param attention_norm: weight[embed]                 = ones        as "pre_self_attention_layer_norm/scale"
  param mlp_norm:       weight[embed]                 = ones        as "post_self_attention_layer_norm/scale"
  param query:          weight[embed, heads, head]    = normal(0.1) as "self_attention/query/kernel"
  param key:            weight[embed, kv_heads, head] = normal(0.1) as "self_attention/key/kernel"
  param value:          weight[embed, kv_heads, head] = normal(0.1) as "self_attention/value/kernel"
  param out:            weight[heads, head, embed]    = normal(0.1) as "self_attention/out/kernel"
  param query_bias:     weight[heads, head]           = zeros       as "self_attention/query/bias"
  param key_bias:       weight[kv_heads, head]        = zeros       as "self_attention/key/bias"
  param value_bias:     weight[kv_heads, head]        = zeros       as "self_attention/value/bias"
  param wi_0:           weight[embed, mlp]            = normal(0.1) as "mlp/wi_0/kernel"
  param wi_1:           weight[embed, mlp]            = normal(0.1) as "mlp/wi_1/kernel"
  param wo:             weight[mlp, embed]            = normal(0.1) as "mlp/wo/kernel"

  x = checkpoint(x, "decoder_layer_input")
  h = rmsnorm(x, attention_norm, over: embed)
  q = rope(checkpoint(project(h, query) + query_bias, "query_proj"), pos) / sqrt(size(query, head))
  k = rope(checkpoint(project(h, key) + key_bias, "key_proj"), pos)
  v = checkpoint(project(h, value) + value_bias, "value_proj")
  a = x + attend(q, k, v, out, segments)
  return a + silu_mlp(rmsnorm(a, mlp_norm, over: embed), wi_0, wi_1, wo)
}

model qwen2_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(qwen2, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
