package examples_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/driver"
)

// However a model is cut, wherever its weights are gathered and however
// activations move, outputs and gradients are those of the layers in sequence.
func TestParallel(t *testing.T) {
	small := []string{"axes.seq=16", "axes.embed=16", "axes.head=4", "axes.mlp=32", "axes.vocab=32"}
	run := func(file, how string) {
		set := slices.Clone(small)
		for _, s := range strings.Fields(how) {
			set = append(set, "pipeline."+s)
		}
		if _, err := driver.Run(t.Context(), &driver.Source{File: file, Set: set}, driver.RunOptions{Check: true, Grad: true}); err != nil {
			t.Errorf("%s %s: %v", file, how, err)
		}
	}
	const once, head, ahead = "gather=once rotate=slice_pad", "gather=per_repeat prefetch=head remat=minimal", "gather=per_repeat prefetch=ahead rotate=slice_pad remat=none"
	for _, file := range []string{"llama_tp.pp", "llama_sp.pp", "llama_cp.pp", "llama_moe.pp", "llama_hybrid.pp"} {
		run(file, once)
		run(file, head)
		run(file, ahead)
	}
	run(all(t), head)
}

// all is a program that is cut in every way at once.
func all(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("llama_moe.pp")
	if err != nil {
		t.Fatal(err)
	}
	return text(t, `include "`+filepath.ToSlash(path)+`"

mesh { stage = 2, fsdp = dcn(2), expert = 2, context = 2, tensor = 2 }

shard weights {
  experts           -> expert
  embed             -> fsdp, context, expert
  embed             -> fsdp, context
  heads, mlp, vocab -> tensor
}
shard activations {
  experts           -> expert
  batch             -> fsdp, expert
  batch             -> fsdp
  heads, mlp, vocab -> tensor
  seq               -> context, tensor
  seq               -> context
}
`)
}
