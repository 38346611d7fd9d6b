// MaxText's simplest layer: one matrix product. Its output axis is the embedding again.

include "common.pp"

axes { features = embed }

layer simple(x: act[batch, seq, embed]) {
  param weights: weight[embed, features] = normal(0.25) as "weights"

  return rename(dot(x, weights, over: embed), features -> embed)
}

model simple_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed]) {
  out = pipeline(simple, layers: layers)(x)
  return loss: sum(out * dout), out
}
