// gpt-oss: a sink for each head, a sliding window in every other layer, biases everywhere, experts whose activation is clipped.

include "experts.pp"

fn clipped_swiglu(gate, value) {
  gate = minimum(gate, 7)
  return gate * sigmoid(1.702 * gate) * (clip(value, -7, 7) + 1)
}

layer gpt_oss(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq], window: number = 0, capacity: number = 0, groups: number = 0, room: number = 0) {
  param attention_norm: weight[embed]                 = ones        as "pre_self_attention_layer_norm/scale"
  param mlp_norm:       weight[embed]                 = ones        as "post_self_attention_layer_norm/scale"
  param query:          weight[embed, heads, head]    = normal(0.1) as "GptOssAttention/query/kernel"
  param key:            weight[embed, kv_heads, head] = normal(0.1) as "GptOssAttention/key/kernel"
  param value:          weight[embed, kv_heads, head] = normal(0.1) as "GptOssAttention/value/kernel"
  param out:            weight[heads, head, embed]    = normal(0.1) as "GptOssAttention/out/kernel"
  param query_bias:     weight[heads, head]           = zeros       as "GptOssAttention/query/bias"
  param key_bias:       weight[kv_heads, head]        = zeros       as "GptOssAttention/key/bias"
  param value_bias:     weight[kv_heads, head]        = zeros       as "GptOssAttention/value/bias"
  param out_bias:       weight[embed]                 = zeros       as "GptOssAttention/out/bias"
  param sinks:          weight[heads]                 = zeros       as "GptOssAttention/sinks"
  param gate:           weight[embed, routes]         = normal(0.1) as "GptOssMlp/gate/kernel"
  param gate_bias:      weight[routes]                = zeros       as "GptOssMlp/gate/bias"
  param wi_0:           weight[experts, embed, mlp]   = normal(0.1) as "GptOssMlp/wi_0"
  param wi_1:           weight[experts, embed, mlp]   = normal(0.1) as "GptOssMlp/wi_1"
  param wo:             weight[experts, mlp, embed]   = normal(0.1) as "GptOssMlp/wo"
  param wi_0_bias:      weight[experts, mlp]          = zeros       as "GptOssMlp/wi_0_bias"
  param wi_1_bias:      weight[experts, mlp]          = zeros       as "GptOssMlp/wi_1_bias"
  param wo_bias:        weight[experts, embed]        = zeros       as "GptOssMlp/wo_bias"

  x = checkpoint(x, "decoder_layer_input")
  h = rmsnorm(x, attention_norm, over: embed)
  q = rope(checkpoint(project(h, query) + query_bias, "query_proj"), pos) / sqrt(size(query, head))
  k = rope(checkpoint(project(h, key) + key_bias, "key_proj"), pos)
  v = checkpoint(project(h, value) + value_bias, "value_proj")
  a = x + attend(q, k, v, out, segments, window: window, sinks: sinks) + out_bias

  h = rmsnorm(a, mlp_norm, over: embed)
  weights, picked, balance = routed(dot(h, gate, over: embed) + gate_bias, k: 2)
  y = mixture(h, picked, weights, wi_0, wi_1, wo, k: 2, capacity: capacity, groups: groups, room: room, wi_0_bias: wi_0_bias, wi_1_bias: wi_1_bias, wo_bias: wo_bias, activation: clipped_swiglu)
  return a + y, balance
}
