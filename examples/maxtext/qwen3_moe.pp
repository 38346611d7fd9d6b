// A pipeline of Qwen 3 layers in which every expert sees every token.

include "qwen3_moe_layer.pp"

model qwen3_moe_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out, balance = pipeline(qwen3_moe, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out, balance: balance
}
