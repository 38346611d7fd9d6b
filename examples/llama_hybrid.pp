// The Llama of llama.pp over two slices, which hold one half of the batch each:
// a hybrid mesh. Stages and stored weights stay inside of a slice; only the
// gradients' sums go over the network between slices, once per step.
//
// dcn(2) * ici(2) is an axis of four: the slice, and inside of it one of two.
// Devices are numbered slice by slice, in each in the order of the mesh.

include "llama.pp"

mesh { stage = 2, data = dcn(2) * ici(2), fsdp = 2 }

pipeline { repeats = 4, microbatches = 2 }
