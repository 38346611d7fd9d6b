// DeepSeek's multi-head latent attention, and the axes that it adds: queries go
// through q_lora numbers, keys and values through kv_lora. Of each head's query and
// key the last qk_rope numbers turn with the position; those of the key are the same
// for all heads.

axes {
  q_lora = 12, kv_lora = 10
  qk_nope = 8, qk_rope = 4, v_head = 6
  qk_head = qk_nope + qk_rope, kv_a = kv_lora + qk_rope, kv_b = qk_nope + v_head
}

// latent_scale is that of the logits. A model that was made for a longer context
// sharpens them.
fn latent_scale(longer = 40, mscale = 1) {
  m = 0.1 * mscale * log(longer) + 1
  return m * m / sqrt(qk_head)
}

// latent_attention has rope's frequencies and pairs, or those that are given.
fn latent_attention(h, wq_a, q_norm, wq_b, wkv_a, kv_norm, wkv_b, out, pos, segments, scale, frequencies: function = none, interleaved: bool = false) {
  q = rmsnorm(checkpoint(dot(h, wq_a, over: embed), "query_wa_proj"), q_norm, over: q_lora)
  q = checkpoint(dot(q, wq_b, over: q_lora), "mla_q")
  turned = rope(slice(q, qk_head, qk_nope, qk_head), pos, frequencies: frequencies, interleaved: interleaved, head: qk_head)
  q = concat([slice(q, qk_head, 0, qk_nope), turned], axis: qk_head) * scale

  c = checkpoint(dot(h, wkv_a, over: embed), "kv_wa_proj")
  turned = rope(slice(c, kv_a, kv_lora, kv_a), pos, frequencies: frequencies, interleaved: interleaved, head: kv_a)
  c = rmsnorm(rename(slice(c, kv_a, 0, kv_lora), kv_a -> kv_lora), kv_norm, over: kv_lora)
  kv = checkpoint(dot(c, wkv_b, over: kv_lora), "mla_kv")
  k = rename(slice(kv, kv_b, 0, qk_nope), kv_b -> part)
  k = concat([k, expand(rename(turned, kv_a -> part), index(k, part, 0))], axis: part)
  v = rename(slice(kv, kv_b, qk_nope, kv_b), kv_b -> v_head)

  context = attention(q, rename(k, part -> qk_head), v, causal: true, segments: segments, head: qk_head, value: v_head)
  return checkpoint(dot(checkpoint(context, "context"), out, over: [heads, v_head]), "out_proj")
}
