// The Llama of llama.pp on two stages, each of which splits heads, mlp and
// vocabulary over two devices: tensor parallelism. Its devices exchange sums of
// activations, two for each layer and direction, and never a weight, a logit or
// the table.

include "llama.pp"

mesh { stage = 2, tensor = 2 }

pipeline { repeats = 4 }
