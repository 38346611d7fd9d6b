// DeepSeek's first layers: latent attention and a dense MLP.

include "common.pp"
include "latent.pp"

// from_16 is the frequencies of a model that was made for 16 positions.
fn from_16(x, head: axis) {
  return yarn(x, original: 16, head: head)
}

layer deepseek_dense(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq], stretched: bool = false) {
  param attention_norm: weight[embed]                  = ones        as "pre_self_attention_layer_norm/scale"
  param mlp_norm:       weight[embed]                  = ones        as "post_self_attention_layer_norm/scale"
  param wq_a:           weight[embed, q_lora]          = normal(0.1) as "self_attention/wq_a/kernel"
  param q_norm:         weight[q_lora]                 = ones        as "self_attention/q_norm/scale"
  param wq_b:           weight[q_lora, heads, qk_head] = normal(0.1) as "self_attention/wq_b/kernel"
  param wkv_a:          weight[embed, kv_a]            = normal(0.1) as "self_attention/wkv_a/kernel"
  param kv_norm:        weight[kv_lora]                = ones        as "self_attention/kv_norm/scale"
  param wkv_b:          weight[kv_lora, heads, kv_b]   = normal(0.1) as "self_attention/wkv_b/kernel"
  param out:            weight[heads, v_head, embed]   = normal(0.1) as "self_attention/out/kernel"
  param wi_0:           weight[embed, mlp]             = normal(0.1) as "mlp/wi_0/kernel"
  param wi_1:           weight[embed, mlp]             = normal(0.1) as "mlp/wi_1/kernel"
  param wo:             weight[mlp, embed]             = normal(0.1) as "mlp/wo/kernel"

  x = checkpoint(x, "decoder_layer_input")
  h = rmsnorm(x, attention_norm, over: embed)
  if stretched {
    a = x + latent_attention(h, wq_a, q_norm, wq_b, wkv_a, kv_norm, wkv_b, out, pos, segments, scale: latent_scale(mscale: 0.707), frequencies: from_16, interleaved: true)
  } else {
    a = x + latent_attention(h, wq_a, q_norm, wq_b, wkv_a, kv_norm, wkv_b, out, pos, segments, scale: latent_scale())
  }
  return a + silu_mlp(rmsnorm(a, mlp_norm, over: embed), wi_0, wi_1, wo)
}
