// The Llama of llama.pp on two stages, each of which splits heads, mlp and
// vocabulary over two devices.

include "llama.pp"

mesh { stage = 2, tensor = 2 }

pipeline { repeats = 4 }
