package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What microbatches go through is the layers in order, whatever the schedule
// and the gathers; a defect that is asked for is found where it is.
func TestStrayLayers(t *testing.T) {
	const text = `
axes { batch = 16, embed = 4 }
layer scale(x: f32[batch, embed]) {
  param w: f32[embed] = ones
  return x * w
}
model scaled(x: f32[batch, embed]) { return mean(pipeline(scale, layers: %d)(x)) }
mesh { stage = %d, fsdp = %d }
shard weights { embed -> fsdp }
pipeline { %s }
`
	for _, c := range []struct {
		layers, stages int
		fsdp           int
		pipeline       string
		want           string // nothing is wrong where it is empty
	}{
		{4, 4, 2, "microbatches = 4", ""},
		{9, 4, 2, "microbatches = 8, layers = 8", ""},
		{8, 4, 2, "microbatches = 8, gather = once, rotate = slice_pad", ""},
		{16, 4, 2, "microbatches = 8, delay = 2, layers_per_stage = 2, gather = per_repeat", ""},
		{16, 4, 2, "microbatches = 4, gather = per_repeat, prefetch = ahead", ""},
		{8, 4, 2, "microbatches = 4, gather = per_repeat, compat = maxtext_prefetch",
			"wrong weights in 8 of 32 passes of a microbatch through a layer: stage 2 in repeat 1 has the weights of stage 2 in repeat 0; stage 3 in repeat 1 has the weights of stage 3 in repeat 0; that is what compat = maxtext_prefetch asks for"},
		{16, 8, 2, "microbatches = 8, gather = per_repeat, compat = maxtext_prefetch", "wrong weights in 48 of 128 passes"},
		{8, 2, 2, "microbatches = 4, gather = per_repeat, compat = maxtext_prefetch", ""},
		{3, 1, 2, "microbatches = 1, gather = per_repeat, compat = maxtext_prefetch", ""},
		{8, 4, 2, "microbatches = 4, gather = per_repeat, compat = maxtext_prefetch, gather_dtype = bf16", "wrong weights in 8 of 32 passes"},
		{8, 4, 1, "microbatches = 4, gather = per_repeat, compat = maxtext_prefetch, gather_dtype = bf16", ""},
	} {
		file := filepath.Join(t.TempDir(), "in.pp")
		if err := os.WriteFile(file, []byte(fmt.Sprintf(text, c.layers, c.stages, c.fsdp, c.pipeline)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Run(t.Context(), &Source{File: file}, RunOptions{Check: true})
		switch m, ok := err.(*Mismatch); {
		case c.want == "" && err != nil:
			t.Errorf("%d stages, %s: %v", c.stages, c.pipeline, err)
		case c.want != "" && (!ok || len(m.Layers) != 1 || !strings.Contains(m.Layers[0], c.want)):
			t.Errorf("%d stages, %s: %v, want %s", c.stages, c.pipeline, err, c.want)
		}
	}
}

// MaxText's prefetch is wrong of weights that are gathered; others are taken where they are.
func TestCompatOfWeightsThatStay(t *testing.T) {
	const text = `
axes { batch = 8, embed = 16 }
layer scale(x: f32[batch, embed]) {
  param w: f32[embed] = normal(1)
  return x * w + tanh(x)
}
model scaled(x: f32[batch, embed]) { return mean(pipeline(scale, layers: 12)(x)) }
mesh { stage = 4, fsdp = 2 }
shard weights { embed -> fsdp }
pipeline { microbatches = 4, gather = per_repeat, gather_dtype = f16, compat = maxtext_prefetch }
`
	for fsdp, right := range map[string]bool{"mesh.fsdp=1": true, "mesh.fsdp=2": false} {
		src := &Source{File: write(t, "in.pp", text), Set: []string{fsdp}}
		if _, err := Run(t.Context(), src, RunOptions{Check: true}); (err == nil) != right {
			t.Errorf("%s: %v", fsdp, err)
		}
	}
}
