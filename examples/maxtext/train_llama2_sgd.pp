// A training run of MaxText: four of eight layers pipelined, a loss on the size of the logits, plain SGD.

include "llama2_layer.pp"

axes { heads = 2, kv_heads = 1, mlp = 24, vocab = 32, layers = 8 }

model llama2_sgd(
    inputs: i32[batch, seq], targets: i32[batch, seq], inputs_position: i32[batch, seq],
    inputs_segmentation: i32[batch, seq], targets_segmentation: i32[batch, seq]
) {
  param table:  weight[vocab, embed] = normal(1)   as "token_embedder/embedding"
  param norm:   weight[embed]        = ones        as "decoder/decoder_norm/scale"
  param kernel: weight[embed, vocab] = normal(0.1) as "decoder/logits_dense/kernel"

  x = take(table, inputs, axis: vocab)
  x = pipeline(llama2, layers: layers)(x, inputs_position, inputs_segmentation)
  logits = dot(rmsnorm(x, norm, over: embed), kernel, over: embed)
  loss = cross_entropy(logits, targets, axis: vocab) + 0.001 * pow(logsumexp(logits, over: vocab), 2)
  real = targets_segmentation != 0
  return loss: normalized(sum(where(real, loss, 0)), by: sum(cast(real, act)) + 1e-8), logits
}

mesh { stage = 2, fsdp = 4 }

pipeline { microbatches = 4, repeats = 2, gather = per_iteration, layers = 4 }

train {
  optimizer           = sgd(lr: [0.0, 0.25, 0.5, 0.38749998807907104, 0.16249999403953552, 0.05000000074505806])
  clip_by_global_norm = 0.5
  steps               = 6
}
