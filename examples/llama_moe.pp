// The Llama of llama.pp with four experts in place of the mlp, of which each
// token uses two: expert parallelism. Outside of the experts the axis expert
// shards the batch, and the storage of weights, as fsdp does. For the
// experts, each of which is on one device of it, tokens are exchanged: one
// all-to-all to the experts, and one back.

include "llama.pp"

// routes: the experts as a token sees them, all of them on every device
axes { experts = 4, routes = experts }

layer decoder(x: f32[batch, seq, embed], pos: i32[batch, seq]) {
  param norm1, norm2: f32[embed]               = ones
  param wq, wk, wv:   f32[embed, heads, head]  = normal(0.02)
  param wo:           f32[heads, head, embed]  = normal(0.02)
  param gate:         f32[embed, routes]       = normal(0.02)
  param wi0, wi1:     f32[experts, embed, mlp] = normal(0.02)
  param wout:         f32[experts, mlp, embed] = normal(0.02)

  x = checkpoint(x, "decoder_layer_input")
  h = rmsnorm(x, norm1, over: embed)
  q = rope(checkpoint(dot(h, wq, over: embed), "query_proj"), pos)
  k = rope(checkpoint(dot(h, wk, over: embed), "key_proj"), pos)
  v = checkpoint(dot(h, wv, over: embed), "value_proj")
  x = x + dot(attention(q, k, v, causal: true), wo, over: [heads, head])

  h = rmsnorm(x, norm2, over: embed)
  y, balance = moe(h, gate, wi0, wi1, wout, k: 2, capacity: 1.25)  // balance: lowest where all experts are used alike
  return x + y, balance
}

model llama(tokens: i32[batch, seq], targets: i32[batch, seq]) {
  param table: f32[vocab, embed] = normal(0.02)
  param norm:  f32[embed]        = ones
  x = take(table, tokens, axis: vocab)
  x, balance = pipeline(decoder, layers: 8)(x, iota(seq))
  logits = dot(rmsnorm(x, norm, over: embed), table, over: embed)
  return mean(cross_entropy(logits, targets, axis: vocab)) + 0.01 / 8 * balance
}

mesh { stage = 2, fsdp = 2, expert = 2 }

shard weights {
  experts           -> expert
  embed             -> fsdp, expert
  embed             -> fsdp  // of the experts
  heads, mlp, vocab -> tensor
}
shard activations {
  experts           -> expert
  batch             -> data, fsdp, expert
  batch             -> data, fsdp  // at the experts
  heads, mlp, vocab -> tensor
}

pipeline { repeats = 4, microbatches = 4 }
