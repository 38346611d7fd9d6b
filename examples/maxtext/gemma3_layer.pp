// Gemma 3: four norms, normed queries and keys. A model has one layer that sees
// everything, with a longer rotary base, after every five with a window.

include "common.pp"

layer gemma3(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq], window: number = 0, base: number = 10000) {
  param pre_attention:  weight[embed]                 = ones        as "pre_self_attention_norm/scale"
  param post_attention: weight[embed]                 = ones        as "post_self_attention_norm/scale"
  param pre_mlp:        weight[embed]                 = ones        as "pre_ffw_norm/scale"
  param post_mlp:       weight[embed]                 = ones        as "post_ffw_norm/scale"
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
  h = normed_attention(rmsnorm(x, pre_attention, over: embed, eps: 1e-6), query, key, value, out, query_norm, key_norm, pos, segments, window: window, base: base)
  a = x + rmsnorm(h, post_attention, over: embed, eps: 1e-6)
  h = gelu_mlp(rmsnorm(a, pre_mlp, over: embed, eps: 1e-6), wi_0, wi_1, wo)
  return a + rmsnorm(h, post_mlp, over: embed, eps: 1e-6)
}
