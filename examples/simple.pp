// The smallest pipeline: one matrix per layer, four stages, no repeats.

axes { batch = 8, embed = 32, out = embed }

layer matrix(x: f32[batch, embed]) {
  param weights: f32[embed, out] = normal(0.2)
  return rename(dot(x, weights, over: embed), out -> embed)
}

model simple(x: f32[batch, embed], target: f32[batch, embed]) {
  x = pipeline(matrix, layers: 4)(x)
  error = x - target
  return loss: mean(error * error), out: x
}

mesh { stage = 4 }

shard activations { batch -> data }

pipeline { microbatches = 4 }
