// DeepSeek V3's layers with experts: those of one of two groups are chosen by their
// sigmoid and a bias that no gradient changes, and weighted by the sigmoid alone.

include "experts.pp"
include "latent.pp"

axes { experts = 8 }

layer deepseek_v3_moe(x: act[batch, seq, embed], pos: i32[batch, seq], segments: i32[batch, seq], capacity: number = 0, groups: number = 0, room: number = 0) {
  param attention_norm: weight[embed]                  = ones        as "pre_self_attention_layer_norm/scale"
  param mlp_norm:       weight[embed]                  = ones        as "post_self_attention_layer_norm/scale"
  param wq_a:           weight[embed, q_lora]          = normal(0.1) as "self_attention/wq_a/kernel"
  param q_norm:         weight[q_lora]                 = ones        as "self_attention/q_norm/scale"
  param wq_b:           weight[q_lora, heads, qk_head] = normal(0.1) as "self_attention/wq_b/kernel"
  param wkv_a:          weight[embed, kv_a]            = normal(0.1) as "self_attention/wkv_a/kernel"
  param kv_norm:        weight[kv_lora]                = ones        as "self_attention/kv_norm/scale"
  param wkv_b:          weight[kv_lora, heads, kv_b]   = normal(0.1) as "self_attention/wkv_b/kernel"
  param out:            weight[heads, v_head, embed]   = normal(0.1) as "self_attention/out/kernel"
  param gate:           weight[embed, routes]          = normal(0.1) as "DeepSeekMoeBlock_0/MoeBlock_0/gate/kernel"
  param gate_bias:      weight[routes]                 = zeros       as "DeepSeekMoeBlock_0/MoeBlock_0/gate/bias"
  param wi_0:           weight[experts, embed, mlp]    = normal(0.1) as "DeepSeekMoeBlock_0/MoeBlock_0/wi_0"
  param wi_1:           weight[experts, embed, mlp]    = normal(0.1) as "DeepSeekMoeBlock_0/MoeBlock_0/wi_1"
  param wo:             weight[experts, mlp, embed]    = normal(0.1) as "DeepSeekMoeBlock_0/MoeBlock_0/wo"
  param shared_wi_0:    weight[embed, mlp]             = normal(0.1) as "DeepSeekMoeBlock_0/shared_experts/wi_0/kernel"
  param shared_wi_1:    weight[embed, mlp]             = normal(0.1) as "DeepSeekMoeBlock_0/shared_experts/wi_1/kernel"
  param shared_wo:      weight[mlp, embed]             = normal(0.1) as "DeepSeekMoeBlock_0/shared_experts/wo/kernel"

  x = checkpoint(x, "decoder_layer_input")
  a = x + latent_attention(rmsnorm(x, attention_norm, over: embed), wq_a, q_norm, wq_b, wkv_a, kv_norm, wkv_b, out, pos, segments, scale: latent_scale())
  h = rmsnorm(a, mlp_norm, over: embed)
  scores = sigmoid(dot(h, gate, over: embed))
  picked = chosen(limited(scores + gate_bias, groups: 2, keep: 1), k: 2, over: routes)
  weights = where(picked > 0, scores, 0)
  weights = 2.5 * weights / (sum(weights, over: routes) + 1e-20)
  y = mixture(h, picked, weights, wi_0, wi_1, wo, k: 2, capacity: capacity, groups: groups, room: room)
  return a + y + silu_mlp(h, shared_wi_0, shared_wi_1, shared_wo), load_balance(picked, softmax(scores + gate_bias, over: routes))
}
