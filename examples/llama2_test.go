package examples_test

import (
	"strings"
	"testing"

	"ppc/driver"
)

// Blocks of attention and loss, and weights that are rounded before they are
// gathered, compute what the layers in sequence compute, and have its gradients:
// with each policy, with heads or the sequence sharded, with more or less computed
// again. Rounded weights are held to the tolerance of what they are rounded to.
func TestLlama2(t *testing.T) {
	const (
		rounded = "pipeline.gather_dtype=bf16"
		sizes   = "axes.seq=16 axes.embed=16 axes.heads=2 axes.mlp=24 axes.vocab=64 axes.queries=8 axes.layers=4 pipeline.repeats=2 "
	)
	for _, set := range []string{
		"",
		"mesh.fsdp=1 mesh.tensor=2",
		"mesh.fsdp=1 mesh.context=2 pipeline.remat=none",
		"mesh.context=2 pipeline.gather=per_repeat axes.queries=4 pipeline.microbatches=4",
		"pipeline.remat=minimal_with_context pipeline.checkpoint=layer",
		"pipeline.gather=once pipeline.unroll=2",
		"pipeline.gather=per_repeat pipeline.checkpoint_place=outside",
		"types.act=bf16",
		"types.act=bf16 pipeline.gather=once mesh.data=2 axes.batch=32",
		"types.act=bf16 pipeline.gather=per_repeat",
		"types.act=bf16 pipeline.mode=explicit",
		rounded,
		rounded + " mesh.fsdp=1",
		rounded + " mesh.data=2 axes.batch=32 pipeline.gather=once",
		rounded + " pipeline.gather=per_repeat",
		rounded + " pipeline.gather=per_repeat pipeline.prefetch=ahead mesh.data=2 axes.batch=32",
		rounded + " pipeline.gather=per_repeat pipeline.save_gathered=true pipeline.rotate=slice_pad",
		rounded + " pipeline.mode=explicit",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			src := &driver.Source{File: "llama2.pp", Set: strings.Fields(sizes + set)}
			if strings.Contains(set, "context") {
				text := `include "llama2.pp"
shard activations { batch -> data, fsdp; seq -> context; heads, mlp, vocab -> tensor }`
				src = &driver.Source{File: "-", Stdin: strings.NewReader(text), Set: src.Set}
			}
			if _, err := driver.Run(t.Context(), src, driver.RunOptions{Check: true, Grad: true}); err != nil {
				t.Error(err)
			}
		})
	}
}
