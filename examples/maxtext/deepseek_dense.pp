// A pipeline of DeepSeek's dense layers.

include "deepseek_dense_layer.pp"

model deepseek_dense_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(deepseek_dense, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
