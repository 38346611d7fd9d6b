// GPT-3: layer norms whose scale is stored around 0, one fused projection with biases, no positions in the layer.

include "common.pp"

axes { qkv_proj = 3 }

layer gpt3(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq]) {
  param attention_scale: weight[embed]                        = zeros       as "pre_self_attention_norm/scale"
  param attention_bias:  weight[embed]                        = zeros       as "pre_self_attention_norm/bias"
  param mlp_scale:       weight[embed]                        = zeros       as "mlp/mlp_layer_norm/scale"
  param mlp_bias:        weight[embed]                        = zeros       as "mlp/mlp_layer_norm/bias"
  param qkv:             weight[embed, qkv_proj, heads, head] = normal(0.1) as "self_attention/qkv_proj/kernel"
  param qkv_bias:        weight[qkv_proj, heads, head]        = zeros       as "self_attention/qkv_proj/bias"
  param out:             weight[heads, head, embed]           = normal(0.1) as "self_attention/out/kernel"
  param out_bias:        weight[embed]                        = zeros       as "self_attention/out/bias"
  param wi:              weight[embed, mlp]                   = normal(0.1) as "mlp/wi/kernel"
  param wi_bias:         weight[mlp]                          = zeros       as "mlp/wi/bias"
  param wo:              weight[mlp, embed]                   = normal(0.1) as "mlp/wo/kernel"
  param wo_bias:         weight[embed]                        = zeros       as "mlp/wo/bias"

  x = checkpoint(x, "decoder_layer_input")
  h = layernorm(x, attention_scale + 1, attention_bias, over: embed)
  p = checkpoint(dot(h, qkv, over: embed) + qkv_bias, "qkv_proj")
  q = index(p, qkv_proj, 0) / sqrt(size(p, head))
  a = x + attend(q, index(p, qkv_proj, 1), index(p, qkv_proj, 2), out, segments) + out_bias

  h = layernorm(a, mlp_scale + 1, mlp_bias, over: embed)
  h = gelu(checkpoint(dot(h, wi, over: embed) + wi_bias, "mlpwi"))
  return a + checkpoint(dot(h, wo, over: mlp), "mlpwo") + wo_bias
}

model gpt3_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(gpt3, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
