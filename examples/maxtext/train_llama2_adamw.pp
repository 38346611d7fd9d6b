// A training run of MaxText: a small Llama 2, all eight layers pipelined, AdamW.

include "llama2_layer.pp"

axes { heads = 2, kv_heads = 1, mlp = 24, vocab = 32, layers = 8 }

model llama2_adamw(
    inputs: i32[batch, seq], targets: i32[batch, seq], inputs_position: i32[batch, seq],
    inputs_segmentation: i32[batch, seq], targets_segmentation: i32[batch, seq]
) {
  param table:  weight[vocab, embed] = normal(1)   as "token_embedder/embedding"
  param norm:   weight[embed]        = ones        as "decoder/decoder_norm/scale"
  param kernel: weight[embed, vocab] = normal(0.1) as "decoder/logits_dense/kernel"

  x = take(table, inputs, axis: vocab)
  x = pipeline(llama2, layers: layers)(x, inputs_position, inputs_segmentation)
  logits = dot(rmsnorm(x, norm, over: embed), kernel, over: embed)
  loss = cross_entropy(logits, targets, axis: vocab)
  real = targets_segmentation != 0
  return loss: normalized(sum(where(real, loss, 0)), by: sum(cast(real, act)) + 1e-8), logits
}

mesh { stage = 4, fsdp = 2 }

pipeline { microbatches = 8, repeats = 2, gather = per_iteration }

train {
  optimizer           = adamw(b2: 0.95, weight_decay: 0.1, lr: [0.0, 0.004999999888241291, 0.009999999776482582, 0.00774999987334013, 0.003249999601393938, 0.0010000000474974513])
  clip_by_global_norm = 1
  steps               = 6
}
