package examples_test

import (
	"path/filepath"
	"testing"

	"ppc/driver"
)

// A model that is sharded in every way at once has the outputs and gradients of its
// layers in sequence.
func TestParallel(t *testing.T) {
	set := []string{"axes.seq=16", "axes.embed=16", "axes.head=4", "axes.mlp=32", "axes.vocab=32", "pipeline.gather=per_repeat", "pipeline.remat=minimal"}
	if _, err := driver.Run(t.Context(), &driver.Source{File: all(t), Set: set, IncludeDirs: []string{"."}}, driver.RunOptions{Check: true, Grad: true}); err != nil {
		t.Error(err)
	}
}

// all is a program that is sharded in every way at once.
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
