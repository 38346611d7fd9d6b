// Mistral, which at these sizes is Llama 2.

include "llama2_layer.pp"

model mistral_stack(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out = pipeline(llama2, layers: layers)(x, positions, segment_ids)
  return loss: sum(out * dout), out
}
