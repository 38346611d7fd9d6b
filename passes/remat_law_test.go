package passes

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
)

// sequential is the model without a pipeline: a stack of its layers over the
// whole batch, without recomputation.
func (c model) sequential() *ir.Module {
	m := c.module()
	for _, op := range m.Main().Body.Ops {
		if op.Kind != ir.PPPipeline {
			continue
		}
		config := ir.Dict(ir.AttrsOf(named("scan_layers", ir.Bool(true)), named("checkpoint", ir.Str("none"))))
		op.Kind = ir.PPStack
		op.Attrs = ir.AttrsOf(named("layer", ir.Sym("layer_outside")), named("layers", ir.I64Attr(c.layers())), named("sides", ir.I64Attr(1)), named("config", config))
	}
	return withLoss(m)
}

// reverseMode is the loss and its gradients by name, computed on the sequential
// layers after differentiate.
func (c model) reverseMode(t *testing.T, args []*ir.Literal) map[string][]float64 {
	t.Helper()
	typed := c.sequential()
	m := typed.Clone()
	if err := Run(m, Config{After: "differentiate"}); err != nil {
		t.Fatal(err)
	}
	out := evaluate(t, m, typed, args, eval.Options{})
	g := gradients(m, out)
	g["loss"] = []float64{out[0].Float(0)}
	return g
}

// far is the largest difference between two lists of numbers relative to the
// largest number.
func far(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	d, n := 0.0, 0.0
	for i := range want {
		d = max(d, math.Abs(got[i]-want[i]))
		n = max(n, math.Abs(want[i]))
		if math.IsNaN(got[i]) {
			return math.NaN()
		}
	}
	if d == 0 {
		return 0
	}
	return d / n
}

func strs(words ...string) ir.Array {
	out := make(ir.Array, len(words))
	for i, w := range words {
		out[i] = ir.Str(w)
	}
	return out
}

// rematPolicies are what a region may save.
var rematPolicies = map[string][]ir.NamedAttr{
	"full":           nil,
	"no layer input": {named("save_decoder_layer_input", ir.Bool(false))},
	"products":       {named("save", strs("mlpwi", "mlpwo"))},
	"offload":        {named("offload", strs("mlpwi")), named("save", strs("mlpwo"))},
	"input on host":  {named("save_iteration_input", ir.Bool(false)), named("offload", strs("decoder_layer_input"))},
	"no cut":         {named("save_iteration_input", ir.Bool(false)), named("save_decoder_layer_input", ir.Bool(false))},
}

// rematBoundaries are where a region may be.
var rematBoundaries = [][2]string{{"iteration", "inside"}, {"layer", "inside"}, {"repeat", "inside"}, {"none", "inside"}, {"iteration", "outside"}, {"layer", "outside"}, {"repeat", "outside"}}

// rematModels are the schedules and meshes on which they are tried.
var rematModels = []model{
	{S: 4, M: 8, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1},
	{S: 2, M: 4, R: 2, L: 2, D: 2, rest: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 1, tensor: 2},
	{S: 3, M: 3, R: 3, L: 1, D: 1, b: 2, e: 2, h: 4, data: 2, fsdp: 1, tensor: 1},
	{S: 2, M: 2, R: 1, L: 3, D: 1, rest: 2, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1},
	{S: 1, M: 2, R: 2, L: 2, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 1, tensor: 1},
}

// The law of gradients, whatever is recomputed: loss and gradients are those of
// reverse mode on the layers one after the other, which agree with central
// differences.
func TestRematLaw(t *testing.T) {
	n := 0
	for i, c := range rematModels {
		if testing.Short() && i > 1 {
			break
		}
		c.gather, c.rotate = "per_iteration", "ppermute"
		typed := withLoss(c.module())
		args := c.args(typed)
		want := c.reverseMode(t, args)
		c.centrally(t, typed, args, want)
		for _, policy := range keysOf(rematPolicies) {
			for k, boundary := range rematBoundaries {
				if boundary == [2]string{"repeat", "inside"} && c.R == 1 {
					continue
				}
				n++
				c.gather = []string{"per_iteration", "once", "per_repeat", "per_repeat"}[(n/2)%4]
				c.prefetch = []string{"head", "ahead"}[n/2%2]
				if c.R == 1 || c.M < c.D*c.S {
					c.gather = "per_iteration"
				}
				c.rotate = []string{"ppermute", "slice_pad"}[n%2]
				c.remat = append([]ir.NamedAttr{named("checkpoint", ir.Str(boundary[0])), named("checkpoint_place", ir.Str(boundary[1]))}, rematPolicies[policy]...)
				t.Run(fmt.Sprintf("%s %s %v", c, policy, boundary), func(t *testing.T) {
					typed := withLoss(c.module())
					m := typed.Clone()
					if err := Run(m, Config{}); err != nil {
						t.Fatal(err)
					}
					out := execute(t, m, typed, args, modes[k%len(modes)]...)
					got := gradients(m, out)
					got["loss"] = []float64{out[0].Float(0)}
					for _, name := range keysOf(want) {
						if d := far(got[name], want[name]); !(d <= 1e-11) {
							t.Errorf("%s differs by %g", name, d)
						}
					}
					noStackedWeights(t, m, c)
				})
			}
		}
	}
}

// centrally holds the gradients g to central differences of the loss.
func (c model) centrally(t *testing.T, typed *ir.Module, args []*ir.Literal, g map[string][]float64) {
	t.Helper()
	along := c.args(typed)
	want, got := central(t, typed, args, along), 0.0
	for i, p := range typed.Main().Params() {
		for k, v := range g["grad."+p.Attrs.Str("pp.name")] {
			got += v * along[i].Float(k)
		}
	}
	if d := math.Abs(got-want) / math.Abs(want); !(d < 1e-6) {
		t.Fatalf("%s: derivative %g by reverse mode, %g by central differences", c, got, want)
	}
}

// noStackedWeights fails if m has an array with a weight for each iteration.
func noStackedWeights(t *testing.T, m *ir.Module, c model) {
	t.Helper()
	T := c.M*c.R + c.D*(c.S-1)
	m.Main().Body.Walk(func(op *ir.Op) {
		for _, v := range op.Results {
			if s := v.Type; s.IsTensor() && s.Rank() >= 3 && s.NumElements() > 0 && (s.Shape[0] == T || s.Shape[0] == c.R && s.Shape[1] == c.M) {
				if a, b := s.Shape[s.Rank()-2], s.Shape[s.Rank()-1]; a*b >= c.e*c.h/c.tensor && a != c.b {
					t.Errorf("%s has a weight for each iteration: %s", op.Name(), s)
				}
			}
		}
	})
}

func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
