package passes

import (
	"fmt"
	"math"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/lang"
	"ppc/runtime"
)

// The layer is finite on what the model gives it, which is positive, and neither
// finite nor differentiable on the zeros that bubbles work on. It uses its weight
// twice, and every layer uses a parameter of the model.
const brittle = `axes { batch = 16, embed = 4, features = embed }

layer brittle(x: f64[batch, embed], gain: f64[batch, embed]) {
  param w: f64[embed, features] = normal(0.3)
  h = 1 / x + sqrt(x) + log(x)
  h = rename(dot(h * gain, w, over: embed), features -> embed)
  return exp(tanh(rename(dot(h, w, over: embed), features -> embed)))
}

model brittle_model(x: f64[batch, embed]) {
  param gain: f64[embed] = normal(1)
  y = pipeline(brittle, layers: 8)(exp(x), gain)
  return mean(y * y)
}

mesh { stage = 4, fsdp = 2 }
shard weights     { embed -> fsdp }
shard activations { batch -> fsdp }
pipeline { microbatches = 8 }
`

// Bubbles leave nothing in the gradients, also where what they compute is not
// finite, where they hold NaN, and where every fresh buffer does.
func TestNothingFromBubbles(t *testing.T) {
	load := func(sequential bool, set ...string) *ir.Module {
		p, err := lang.Load("in.pp", lang.Options{Set: set, Grad: true, Sequential: sequential, ReadFile: func(string) ([]byte, error) { return []byte(brittle), nil }})
		if err != nil {
			t.Fatal(err)
		}
		return p.Module
	}
	plain := load(true)
	var args []*ir.Literal
	for k, p := range plain.Main().Params() {
		vs := make([]float64, p.Type.NumElements())
		for i := range vs {
			vs[i] = math.Sin(float64(7*i + k))
		}
		args = append(args, ir.Floats64(p.Type, vs...))
	}
	m := plain.Clone()
	if err := Run(m, Config{After: "differentiate"}); err != nil {
		t.Fatal(err)
	}
	want := gradients(m, evaluate(t, m, plain, args, eval.Options{}))
	if len(want) < 3 {
		t.Fatalf("%d gradients, want those of w, gain and x", len(want))
	}
	for _, set := range [][]string{nil, {"pipeline.rotate=slice_pad", "pipeline.gather=once"}, {"pipeline.microbatches=4"}, {"pipeline.delay=2"}, {"pipeline.checkpoint=layer"}, {"pipeline.gather=per_repeat"}, {"mesh.stage=8"},
		{"pipeline.microbatches=1", "pipeline.delay=2", "pipeline.gather=per_repeat"}, {"pipeline.microbatches=2", "pipeline.rotate=slice_pad"}, {"pipeline.microbatches=2", "pipeline.layers_per_stage=2"},
		{"pipeline.microbatches=2", "pipeline.skip_bubbles=true"}, {"pipeline.microbatches=2", "mesh.stage=8", "pipeline.delay=2"}, {"pipeline.microbatches=8", "mesh.stage=3", "pipeline.layers=6"}} {
		typed := load(false, set...)
		m := typed.Clone()
		if err := Run(m, Config{}); err != nil {
			t.Fatalf("%v: %v", set, err)
		}
		for mode, opts := range [][]runtime.Option{nil, {runtime.PoisonBubbles()}, {runtime.PoisonBuffers()}} {
			got := gradients(m, execute(t, m, typed, args, opts...))
			for name, w := range want {
				if err := sameGradient(got[name], w); err != nil {
					t.Errorf("%v, mode %d: %s %v", set, mode, name, err)
				}
			}
		}
	}
}

// sameGradient holds got to want within 1e-11 of the largest.
func sameGradient(got, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("has %d elements, want %d", len(got), len(want))
	}
	scale, worst := 0.0, 0.0
	for i := range want {
		scale = max(scale, math.Abs(want[i]))
		worst = max(worst, math.Abs(got[i]-want[i]))
	}
	if !(worst <= 1e-11*scale) || scale == 0 {
		return fmt.Errorf("differs by %g of %g", worst, scale)
	}
	return nil
}
