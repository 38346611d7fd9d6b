// A pipeline of gpt-oss layers with a sliding window.

include "gpt_oss_layer.pp"

model gpt_oss_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out, balance = pipeline(gpt_oss, layers: layers, window: 3)(x, positions, segment_ids)
  return loss: sum(out * dout), out, balance: balance
}
