// Qwen 3 with experts in place of the MLP.

include "experts.pp"

layer qwen3_moe(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq], capacity: number = 0, groups: number = 0, room: number = 0) {
  param attention_norm: weight[embed]                 = ones        as "pre_self_attention_layer_norm/scale"
  param mlp_norm:       weight[embed]                 = ones        as "post_self_attention_layer_norm/scale"
  param query:          weight[embed, heads, head]    = normal(0.1) as "self_attention/query/kernel"
  param key:            weight[embed, kv_heads, head] = normal(0.1) as "self_attention/key/kernel"
  param value:          weight[embed, kv_heads, head] = normal(0.1) as "self_attention/value/kernel"
  param out:            weight[heads, head, embed]    = normal(0.1) as "self_attention/out/kernel"
  param query_norm:     weight[head]                  = ones        as "self_attention/query_norm/scale"
  param key_norm:       weight[head]                  = ones        as "self_attention/key_norm/scale"
  param gate:           weight[embed, routes]         = normal(0.1) as "moe_block/gate/kernel"
  param wi_0:           weight[experts, embed, mlp]   = normal(0.1) as "moe_block/wi_0"
  param wi_1:           weight[experts, embed, mlp]   = normal(0.1) as "moe_block/wi_1"
  param wo:             weight[experts, mlp, embed]   = normal(0.1) as "moe_block/wo"

  x = checkpoint(x, "decoder_layer_input")
  h = rmsnorm(x, attention_norm, over: embed, eps: 1e-6)
  a = x + normed_attention(h, query, key, value, out, query_norm, key_norm, pos, segments, eps: 1e-6)
  y, balance = moe(rmsnorm(a, mlp_norm, over: embed, eps: 1e-6), gate, wi_0, wi_1, wo, k: 2, capacity: capacity, groups: groups, room: room)
  return a + y, balance
}
