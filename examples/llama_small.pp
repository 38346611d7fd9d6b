// A Llama for measuring: small enough that a step takes about a second on two cores.

axes {
  batch = 16, seq = 128, kv_seq = seq  // kv_seq: same size, different axis
  embed = 256, heads = 8, head = 32, mlp = 1024, vocab = 2048
}

layer decoder(x: f32[batch, seq, embed], pos: i32[batch, seq]) {
  param norm1, norm2: f32[embed]              = ones
  param wq, wk, wv:   f32[embed, heads, head] = normal(0.02)
  param wo:           f32[heads, head, embed] = normal(0.02)
  param wi0, wi1:     f32[embed, mlp]         = normal(0.02)
  param wout:         f32[mlp, embed]         = normal(0.02)

  x = checkpoint(x, "decoder_layer_input")
  h = rmsnorm(x, norm1, over: embed)
  q = rope(checkpoint(dot(h, wq, over: embed), "query_proj"), pos)
  k = rope(checkpoint(dot(h, wk, over: embed), "key_proj"), pos)
  v = checkpoint(dot(h, wv, over: embed), "value_proj")
  x = x + dot(attention(q, k, v, causal: true), wo, over: [heads, head])

  h = rmsnorm(x, norm2, over: embed)
  h = silu(checkpoint(dot(h, wi0, over: embed), "mlpwi_0")) * checkpoint(dot(h, wi1, over: embed), "mlpwi_1")
  return x + checkpoint(dot(h, wout, over: mlp), "mlpwo")
}

model llama(tokens: i32[batch, seq], targets: i32[batch, seq]) {
  param table: f32[vocab, embed] = normal(0.02)
  param norm:  f32[embed]        = ones
  x = take(table, tokens, axis: vocab)
  x = pipeline(decoder, layers: 8)(x, iota(seq))
  logits = dot(rmsnorm(x, norm, over: embed), table, over: embed)
  return mean(cross_entropy(logits, targets, axis: vocab))
}

mesh { stage = 4, fsdp = 2 }

shard weights     { embed -> fsdp; heads, mlp, vocab -> tensor }
shard activations { batch -> data, fsdp; heads, mlp, vocab -> tensor }

pipeline {
  microbatches = 8
  repeats      = 2
  gather       = per_iteration  // per_iteration | once
  rotate       = ppermute       // ppermute | slice_pad
  remat        = full
  skip_bubbles = true  // the devices share cores: who has nothing to do leaves them to the others
}

train { optimizer = adamw(lr: 1e-3), steps = 3 }
