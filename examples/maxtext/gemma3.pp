// Gemma 3's layer with a sliding window.

include "gemma3_layer.pp"

model gemma3_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(gemma3, layers: layers, window: 3)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
