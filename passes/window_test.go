package passes

import (
	"bytes"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/runtime"
)

// slidings are configurations of gather = per_repeat: around a repeat boundary
// as many stages are on the repeat before as the schedule allows, or fewer.
func slidings() []model {
	var out []model
	for _, S := range []int{2, 3, 4, 8} {
		for _, R := range []int{2, 3, 4} {
			for _, D := range []int{1, 2} {
				for _, k := range []int{1, 2, 4} {
					if k < D {
						continue
					}
					out = append(out, model{S: S, R: R, M: k * S, D: D, L: 1, b: 2, e: 2, h: 2, data: 1, fsdp: 2, tensor: 1})
				}
			}
		}
	}
	return out
}

// The gradients with a window are those of weights gathered in each iteration,
// whatever is kept for the backward pass and wherever loops are loops; and both
// times at which a repeat's weights are gathered give the same bits.
func TestWindowGradients(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	table := slidings()
	for i := 0; i < len(table); i += step {
		c := table[i]
		c.L, c.data = 1+i%5/4, 1+i%7/6
		c.b = 2 * c.data
		c.gather, c.rotate = "per_iteration", []string{"ppermute", "slice_pad"}[i%2]
		c.remat = []ir.NamedAttr{{Name: "checkpoint", Attr: ir.Str([]string{"iteration", "layer", "none", "repeat"}[i/2%4])}}
		_, want := c.trained(t)
		c.gather = "per_repeat"
		c.remat = append(c.remat, named("save_gathered", ir.Bool(i%4 == 3)), named("scan_repeats", ir.Bool(i%6 != 5)))
		var first []*ir.Literal
		for _, prefetch := range []string{"head", "ahead"} {
			c.prefetch = prefetch
			_, got := c.trained(t, modes[i%len(modes)]...)
			for k := range want {
				if _, rel := eval.MaxDiff(got[k], want[k]); !(rel <= 1e-11) {
					t.Errorf("%s %v: result %d differs by %g", c, ir.Attrs(c.remat), k, rel)
				}
				if first != nil && !bytes.Equal(got[k].Expand(), first[k].Expand()) {
					t.Errorf("%s %v: result %d has other bits than with head", c, ir.Attrs(c.remat), k)
				}
			}
			first = got
		}
	}
}

// trained compiles the loss of the model and its gradients, and runs them.
func (c model) trained(t *testing.T, opts ...runtime.Option) (*ir.Module, []*ir.Literal) {
	t.Helper()
	typed := withLoss(c.module())
	m := typed.Clone()
	if err := Run(m, Config{}); err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	return m, execute(t, m, typed, c.args(typed), opts...)
}
