// A mesh along which experts are sharded, for the layers that have them: four
// experts over two devices.

include "common.pp"

axes { experts = 4, routes = experts, expert_group = 2 }

mesh { stage = 4, expert = 2 }

// Elsewhere than at the experts, their devices share the batch and the weights.
shard weights {
  experts              -> expert
  embed                -> fsdp, expert
  embed                -> fsdp
  heads, kv_heads, mlp -> tensor
}
shard activations {
  experts, expert_group -> expert
  batch                 -> data, fsdp, expert
  batch                 -> data, fsdp
  heads, kv_heads, mlp  -> tensor
}
