// Two matrix products without anything between.

include "common.pp"

layer simple_mlp(x: act[batch, seq, embed]) {
  param ff_1: weight[embed, mlp] = normal(0.25) as "ff_1"
  param ff_2: weight[mlp, embed] = normal(0.18) as "ff_2"

  return dot(dot(x, ff_1, over: embed), ff_2, over: mlp)
}

model simple_mlp_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed]) {
  out = pipeline(simple_mlp, layers: layers)(x)
  return loss: sum(out * dout), out
}
