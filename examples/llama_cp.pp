// The Llama of llama.pp with its sequence sharded over two devices: context
// parallelism. Each device has the queries of its rows and gathers keys and
// values; kv_seq, which no rule names, stays whole. Weights are stored along
// context as well as along fsdp, and all-gathered where they are used.

include "llama.pp"

mesh { stage = 2, fsdp = 2, context = 2 }

shard weights { embed -> fsdp, context; heads, mlp, vocab -> tensor }
shard activations {
  batch             -> data, fsdp
  seq               -> context
  heads, mlp, vocab -> tensor
}

pipeline { repeats = 4 }
