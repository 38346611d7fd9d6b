package examples_test

import (
	"strings"
	"testing"

	"ppc/driver"
)

// However a model is cut, wherever its weights are gathered and however
// activations move, outputs and gradients are those of the layers in sequence.
func TestParallel(t *testing.T) {
	small := []string{"axes.seq=16", "axes.embed=16", "axes.head=4", "axes.mlp=32", "axes.vocab=32"}
	for _, file := range []string{"llama_tp.pp", "llama_sp.pp", "llama_cp.pp", "llama_moe.pp", "llama_hybrid.pp"} {
		for _, how := range []string{
			"gather=once rotate=slice_pad",
			"gather=per_repeat prefetch=head remat=minimal",
			"gather=per_repeat prefetch=ahead rotate=slice_pad remat=none",
		} {
			set := small
			for _, s := range strings.Fields(how) {
				set = append(set[:len(set):len(set)], "pipeline."+s)
			}
			if _, err := driver.Run(t.Context(), &driver.Source{File: file, Set: set}, driver.RunOptions{Check: true, Grad: true}); err != nil {
				t.Errorf("%s %s: %v", file, how, err)
			}
		}
	}
}
