package passes

import (
	"strings"
	"testing"

	"ppc/ir"
	"ppc/runtime"
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

// A stage that is skipped executes nothing: it gathers its weights once for each
// microbatch and repeat, not in every iteration.
func TestSkippedWork(t *testing.T) {
	gathers := make(map[bool]int)
	for _, skip := range []bool{false, true} {
		c := model{S: 4, M: 8, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_iteration", rotate: "ppermute", remat: []ir.NamedAttr{named("skip_bubbles", ir.Bool(skip))}}
		typed := c.module()
		m := typed.Clone()
		if err := Run(m, Config{}); err != nil {
			t.Fatal(err)
		}
		trace := new(runtime.Trace)
		execute(t, m, typed, c.args(typed), runtime.WithTrace(trace))
		gathers[skip] = trace.Collectives[ir.AllGather]
	}
	const weights, devices, bubbles = 2, 8, 3
	if less := gathers[false] - gathers[true]; less != weights*devices*bubbles {
		t.Errorf("%d all-gathers less, of %d, want %d less", less, gathers[false], weights*devices*bubbles)
	}
}

// Where all stages are on one device, there is always work.
func TestSkipBubblesOnOneDevice(t *testing.T) {
	c := model{S: 4, M: 4, R: 1, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "ppermute", remat: []ir.NamedAttr{named("skip_bubbles", ir.Bool(true))}}
	m := c.module()
	m.Meshes[0].Axes[0].Size = 1
	err := Run(m, Config{})
	if want := "pipeline: skip_bubbles = true with all 4 stages on one device, which has work in every iteration; leave it out"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
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
