// OLMo 3: norms after attention and MLP, and over all heads of query and key at once; a sliding window.

include "common.pp"

axes { q_features = heads * head, k_features = kv_heads * head }

layer olmo3(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq]) {
  param query_norm:     weight[q_features]            = ones        as "attention/query_norm/scale"
  param key_norm:       weight[k_features]            = ones        as "attention/key_norm/scale"
  param attention_norm: weight[embed]                 = ones        as "post_self_attention_layer_norm/scale"
  param mlp_norm:       weight[embed]                 = ones        as "post_mlp_layer_norm/scale"
  param query:          weight[embed, heads, head]    = normal(0.1) as "attention/query/kernel"
  param key:            weight[embed, kv_heads, head] = normal(0.1) as "attention/key/kernel"
  param value:          weight[embed, kv_heads, head] = normal(0.1) as "attention/value/kernel"
  param out:            weight[heads, head, embed]    = normal(0.1) as "attention/out/kernel"
  param wi_0:           weight[embed, mlp]            = normal(0.1) as "mlp/wi_0/kernel"
  param wi_1:           weight[embed, mlp]            = normal(0.1) as "mlp/wi_1/kernel"
  param wo:             weight[mlp, embed]            = normal(0.1) as "mlp/wo/kernel"

  x = checkpoint(x, "decoder_layer_input")
  q = rmsnorm(checkpoint(project(x, query), "query_proj"), split(query_norm, q_features -> [heads, head]), over: [heads, head])
  k = rmsnorm(checkpoint(project(x, key), "key_proj"), split(key_norm, k_features -> [kv_heads, head]), over: [kv_heads, head])
  v = checkpoint(project(x, value), "value_proj")
  h = attend(rope(q, pos) / sqrt(size(query, head)), rope(k, pos), v, out, segments, window: 3)
  a = x + rmsnorm(h, attention_norm, over: embed)
  return a + rmsnorm(silu_mlp(a, wi_0, wi_1, wo), mlp_norm, over: embed)
}

model olmo3_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(olmo3, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
