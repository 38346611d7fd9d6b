// A pipeline of Mixtral layers whose experts have places for as many tokens as
// there would be if all were used alike, and drop the others.

include "mixtral_layer.pp"

model mixtral_drop_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out, balance = pipeline(mixtral, layers: layers, capacity: 1)(x, positions, segment_ids)
  return loss: sum(out * dout), out, balance: balance
}
