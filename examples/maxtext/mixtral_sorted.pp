// A pipeline of Mixtral layers in which tokens are sorted by expert, and each
// expert sees those alone that chose it, however many these are. Its devices
// exchange tokens along the mesh axis expert.

include "mixtral_layer.pp"

model mixtral_sorted_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out, balance = pipeline(mixtral, layers: layers, groups: 2)(x, positions, segment_ids)
  return loss: sum(out * dout), out, balance: balance
}
