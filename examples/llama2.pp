// Llama 2 as it is trained, at a size that runs anywhere: attention and loss
// are computed in blocks of the sequence, so that neither the weights of all
// queries nor the logits of all tokens are ever there at once.

types { act = f32, weight = f32 }

axes {
  batch = 16, seq = 32, kv_seq = seq
  embed = 64, heads = 4, head = embed / heads, mlp = 176, vocab = 320
  layers = 8, queries = 16, tokens = 8  // in a block
}

// project multiplies by a weight in the type of the activations.
fn project(h, kernel, over) {
  return dot(h, cast(kernel, h), over: over)
}

layer decoder(x: act[batch, seq, embed], pos: i32[batch, seq]) {
  param norm1, norm2: weight[embed]              = ones
  param wq, wk, wv:   weight[embed, heads, head] = normal(0.02)
  param wo:           weight[heads, head, embed] = normal(0.02)
  param wi0, wi1:     weight[embed, mlp]         = normal(0.02)
  param wout:         weight[mlp, embed]         = normal(0.02)

  x = checkpoint(x, "decoder_layer_input")
  h = rmsnorm(x, norm1, over: embed)
  q = rope(checkpoint(project(h, wq, embed), "query_proj"), pos)
  k = rope(checkpoint(project(h, wk, embed), "key_proj"), pos)
  v = checkpoint(project(h, wv, embed), "value_proj")
  a = checkpoint(attention(q, k, v, causal: true, scale: 1 / sqrt(head), block: queries), "context")
  x = x + checkpoint(project(a, wo, [heads, head]), "out_proj")

  h = rmsnorm(x, norm2, over: embed)
  h = silu(checkpoint(project(h, wi0, embed), "mlpwi_0")) * checkpoint(project(h, wi1, embed), "mlpwi_1")
  return x + checkpoint(project(h, wout, mlp), "mlpwo")
}

fn token_loss(x, output, targets) {
  return cross_entropy(project(x, output, embed), targets, axis: vocab)
}

model llama2(inputs: i32[batch, seq], targets: i32[batch, seq]) {
  param table:  weight[vocab, embed] = normal(0.02)
  param norm:   weight[embed]        = ones
  param output: weight[embed, vocab] = normal(0.02)

  x = cast(take(table, inputs, axis: vocab), act)
  x = rmsnorm(pipeline(decoder, layers: layers)(x, iota(seq)), norm, over: embed)
  return mean(blocks(token_loss, along: seq, size: tokens)(x, output, targets))
}

mesh { stage = 2, fsdp = 2 }

// The stages hold the layers; they share the tables besides.
shard weights     { embed -> fsdp; vocab -> stage, tensor; heads, mlp -> tensor }
shard activations { batch -> data, fsdp; heads, mlp, vocab -> tensor }

pipeline {
  microbatches = 8
  repeats      = 4
  gather       = per_iteration
  remat        = full
}

train {
  optimizer = adamw(lr: 3e-5, b2: 0.95, weight_decay: 0.1)
  steps     = 3
}
