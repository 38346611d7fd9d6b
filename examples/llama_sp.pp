// The Llama of llama.pp with tensor parallelism in which activations stay sharded
// between the products: sequence parallelism.
//
// heads, mlp and vocab come first in the rules, so seq is sharded along tensor only
// where none of them is: in norms and residuals. There every device has its
// rows; the whole sequence is gathered for queries, keys, values and the mlp,
// and their results are scattered back as they are summed up.

include "llama.pp"

mesh { stage = 2, tensor = 2 }

shard activations {
  batch             -> data, fsdp
  heads, mlp, vocab -> tensor
  seq               -> tensor
}

pipeline { repeats = 4 }
