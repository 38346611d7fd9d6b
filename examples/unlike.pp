// Layers of three kinds: two dense ones, then experts after attention with a window
// and without in turn, and one more at the end. Beside the hidden state a layer hands
// on a second stream. The pipeline holds what repeats in all stages; the last of them
// lacks a layer's place.

axes {
  batch = 16, seq = 16, kv_seq = seq
  embed = 32, heads = 4, head = 8, mlp = 64, wide = 128, vocab = 128
  experts = 4, routes = experts
}

fn attend(x, norm, wq, wk, wv, wo, window: number = 0) {
  h = rmsnorm(x, norm, over: embed)
  q = rope(checkpoint(dot(h, wq, over: embed), "query_proj"), iota(seq))
  k = rope(checkpoint(dot(h, wk, over: embed), "key_proj"), iota(seq))
  v = checkpoint(dot(h, wv, over: embed), "value_proj")
  a = attention(q, k, v, causal: true, window: window, scale: 1 / sqrt(head))
  return dot(a, wo, over: [heads, head])
}

layer dense(x: f32[batch, seq, embed], stream: f32[batch, seq, embed]) {
  param norm1, norm2: f32[embed]              = ones
  param wq, wk, wv:   f32[embed, heads, head] = normal(0.1)
  param wo:           f32[heads, head, embed] = normal(0.1)
  param wi:           f32[embed, wide]        = normal(0.1)
  param wout:         f32[wide, embed]        = normal(0.1)

  x = checkpoint(x, "decoder_layer_input")
  x = x + attend(x, norm1, wq, wk, wv, wo)
  h = rmsnorm(x + stream, norm2, over: embed)
  y = dot(gelu(checkpoint(dot(h, wi, over: embed), "mlpwi")), wout, over: wide)
  return x + y, 0.5 * stream + y
}

layer sparse(x: f32[batch, seq, embed], stream: f32[batch, seq, embed], window: number = 0) {
  param norm1, norm2: f32[embed]               = ones
  param wq, wk, wv:   f32[embed, heads, head]  = normal(0.1)
  param wo:           f32[heads, head, embed]  = normal(0.1)
  param gate:         f32[embed, routes]       = normal(0.1)
  param wi_0, wi_1:   f32[experts, embed, mlp] = normal(0.1)
  param wout:         f32[experts, mlp, embed] = normal(0.1)

  x = checkpoint(x, "decoder_layer_input")
  x = x + attend(x, norm1, wq, wk, wv, wo, window: window)
  h = rmsnorm(x + stream, norm2, over: embed)
  y, balance = moe(h, gate, wi_0, wi_1, wout, k: 2, capacity: 1.25)
  return x + y, 0.5 * stream + y, balance
}

model unlike(tokens: i32[batch, seq], targets: i32[batch, seq]) {
  param table: f32[vocab, embed] = normal(0.1)
  param norm:  f32[embed]        = ones
  x = take(table, tokens, axis: vocab)
  x, stream, balance = pipeline(layers: [dense * 2, [sparse(window: 4) * 2, sparse] * 3, sparse])(x, full(0, f32))
  logits = dot(rmsnorm(x + stream, norm, over: embed), table, over: embed)
  return mean(cross_entropy(logits, targets, axis: vocab)) + 0.01 * balance / 10
}

mesh { stage = 2, fsdp = 2, expert = 2 }

shard weights {
  experts -> expert
  embed   -> fsdp, expert
  embed   -> fsdp
}
shard activations {
  experts -> expert
  batch   -> data, fsdp, expert
  batch   -> data, fsdp
}

pipeline {
  microbatches = 4
  repeats      = 2
  pad_layers   = true
  gather       = per_repeat
  prefetch     = ahead
}

train { optimizer = adamw(lr: 1e-3), steps = 2 }
