// Llama 2 with one weight for query, key and value and one for both halves of the gated MLP.

include "common.pp"

axes { qkv_heads = heads + 2 * kv_heads, halves = 2 }

layer llama2_fused(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq]) {
  param attention_norm: weight[embed]                  = ones        as "pre_self_attention_layer_norm/scale"
  param mlp_norm:       weight[embed]                  = ones        as "post_self_attention_layer_norm/scale"
  param qkv:            weight[embed, qkv_heads, head] = normal(0.1) as "self_attention/qkv_proj/kernel"
  param out:            weight[heads, head, embed]     = normal(0.1) as "self_attention/out/kernel"
  param wi:             weight[embed, halves, mlp]     = normal(0.1) as "mlp/wi/kernel"
  param wo:             weight[mlp, embed]             = normal(0.1) as "mlp/wo/kernel"

  x = checkpoint(x, "decoder_layer_input")
  p = checkpoint(project(rmsnorm(x, attention_norm, over: embed), qkv), "qkv_proj")
  q = rename(slice(p, qkv_heads, 0, heads), qkv_heads -> heads)
  k = rename(slice(p, qkv_heads, heads, heads + kv_heads), qkv_heads -> kv_heads)
  v = rename(slice(p, qkv_heads, heads + kv_heads, qkv_heads), qkv_heads -> kv_heads)
  a = x + attend(rope(q, pos), rope(k, pos), v, out, segments)

  h = checkpoint(dot(rmsnorm(a, mlp_norm, over: embed), wi, over: embed), "mlpwi")
  h = swiglu(index(h, halves, 0), index(h, halves, 1))
  return a + checkpoint(dot(h, wo, over: mlp), "mlpwo")
}

model llama2_fused_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(llama2_fused, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
