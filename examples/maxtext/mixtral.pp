// A pipeline of Mixtral layers in which every expert sees every token.

include "mixtral_layer.pp"

model mixtral_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out, balance = pipeline(mixtral, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out, balance: balance
}
