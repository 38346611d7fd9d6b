// Gemma 3's layer that sees everything, with a longer rotary base.

include "gemma3_layer.pp"

model gemma3_global_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(gemma3, layers: layers, base: 1000000)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
