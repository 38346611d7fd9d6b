// Llama 2 7B on four chips: 32 layers go through two stages sixteen times.
// Weights and optimizer state are f32, the rest is computed in bf16.

include "llama2.pp"

types { act = bf16 }

axes {
  batch = 48, seq = 2048
  embed = 4096, heads = 32, mlp = 11008, vocab = 32000
  layers = 32, queries = 512, tokens = 256
}

pipeline {
  repeats      = 16
  gather_dtype = bf16
  reduce_dtype = bf16
}
