// A pipeline of DeepSeek layers whose experts have places for as many tokens as
// there would be if all were used alike, and drop the others.

include "deepseek_moe_layer.pp"

model deepseek_moe_drop_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out, balance = pipeline(deepseek_moe, layers: layers, capacity: 1)(x, positions, segment_ids)
  return loss: sum(out * dout), out, balance: balance
}
