// DeepSeek's dense layers with the frequencies of YaRN, for 40 times the context that the model was made for.

include "deepseek_dense_layer.pp"

model deepseek_yarn_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(deepseek_dense, layers: layers, stretched: true)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
