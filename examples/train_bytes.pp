// A Llama of four layers on four stages, trained on the bytes of a text, data/opticks.u8.bin: in 150 steps from 5.55, the
// logarithm of 256, to a loss below 2.

axes {
  batch = 16, seq = 64, kv_seq = seq
  embed = 64, heads = 4, head = 16, mlp = 256, vocab = 256
}

layer decoder(x: f32[batch, seq, embed], pos: i32[batch, seq]) {
  param norm1, norm2: f32[embed]              = ones
  param wq, wk, wv:   f32[embed, heads, head] = normal(0.06)
  param wo:           f32[heads, head, embed] = normal(0.06)
  param wi0, wi1:     f32[embed, mlp]         = normal(0.06)
  param wout:         f32[mlp, embed]         = normal(0.06)

  h = rmsnorm(x, norm1, over: embed)
  q = rope(dot(h, wq, over: embed), pos)
  k = rope(dot(h, wk, over: embed), pos)
  v = dot(h, wv, over: embed)
  x = x + dot(attention(q, k, v, causal: true), wo, over: [heads, head])

  h = rmsnorm(x, norm2, over: embed)
  return x + dot(silu(dot(h, wi0, over: embed)) * dot(h, wi1, over: embed), wout, over: mlp)
}

model train_bytes(tokens: i32[batch, seq], targets: i32[batch, seq]) {
  param table: f32[vocab, embed] = normal(0.02)
  param head:  f32[vocab, embed] = normal(0.06)
  param norm:  f32[embed]        = ones
  x = take(table, tokens, axis: vocab)
  x = pipeline(decoder, layers: 4)(x, iota(seq))
  logits = dot(rmsnorm(x, norm, over: embed), head, over: embed)
  return mean(cross_entropy(logits, targets, axis: vocab))
}

mesh { stage = 4, fsdp = 2 }

shard weights     { embed -> fsdp }
shard activations { batch -> fsdp }

pipeline {
  microbatches = 8
  gather       = once
  rotate       = ppermute
}

train {
  optimizer = adamw(lr: cosine(peak: 5e-3, warmup: 10, end: 5e-4), b2: 0.95), steps = 150
  clip_by_global_norm = 1
  data                = "data/opticks.u8.bin"
}
