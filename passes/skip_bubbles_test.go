package passes

import (
	"testing"

	"ppc/ir"
)

// Where bubble work is skipped, every number is the same, on forward runs and
// in gradients, and the layers' products stand in branches.
func TestSkipBubbles(t *testing.T) {
	for i, c := range rematModels {
		if c.S == 1 {
			continue
		}
		c.rest = 0
		for k, boundary := range rematBoundaries {
			if boundary == [2]string{"repeat", "inside"} && c.R == 1 {
				continue
			}
			policy := keysOf(rematPolicies)[(i+k)%len(rematPolicies)]
			c.gather = []string{"per_iteration", "once"}[k%2]
			c.rotate = []string{"ppermute", "slice_pad"}[k%2]
			c.remat = append([]ir.NamedAttr{named("checkpoint", ir.Str(boundary[0])), named("checkpoint_place", ir.Str(boundary[1])), named("skip_bubbles", ir.Bool(true))}, rematPolicies[policy]...)
			t.Run(c.String()+" "+policy+" "+boundary[0]+" "+boundary[1], func(t *testing.T) {
				typed := withLoss(c.module())
				args := c.args(typed)
				want := c.reverseMode(t, args)
				m := typed.Clone()
				if err := Run(m, Config{}); err != nil {
					t.Fatal(err)
				}
				for _, mode := range modes {
					out := execute(t, m, typed, args, mode...)
					got := gradients(m, out)
					got["loss"] = []float64{out[0].Float(0)}
					for _, name := range keysOf(want) {
						if d := far(got[name], want[name]); !(d <= 1e-11) {
							t.Errorf("%s differs by %g", name, d)
						}
					}
				}
				in, out := products(m.Main().Body, false)
				rerun := boundary[1] == "outside" || boundary[0] == "repeat" // a loop that runs again for its residuals selects nothing
				if in == 0 || out > 0 && !rerun {
					t.Errorf("%d products in branches, %d outside", in, out)
				}
			})
		}
	}
}

// products counts the matrix products in branches and outside of them.
func products(b *ir.Block, branch bool) (in, out int) {
	for _, op := range b.Ops {
		if op.Kind == ir.DotGeneral {
			if branch {
				in++
			} else {
				out++
			}
		}
		for _, r := range op.Regions {
			i, o := products(r, branch || op.Kind == ir.If)
			in, out = in+i, out+o
		}
	}
	return in, out
}
