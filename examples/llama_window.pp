// The Llama of llama.pp with a window of two repeats' weights: those of the next
// repeat are gathered while all stages are still on the current one.

include "llama.pp"

pipeline {
  gather   = per_repeat
  prefetch = ahead  // head | ahead
}
