// The Llama of llama.pp in a plain pipeline: each stage holds two layers and
// every microbatch goes through the stages once.

include "llama.pp"

pipeline {
  layers_per_stage = 2
  repeats          = 1
  gather           = once
  rotate           = slice_pad
}
