package passes

import (
	"maps"
	"math"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
)

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
	"no layer input": {facts.Named("save_decoder_layer_input", ir.Bool(false))},
	"products":       {facts.Named("save", strs("mlpwi", "mlpwo"))},
	"offload":        {facts.Named("offload", strs("mlpwi")), facts.Named("save", strs("mlpwo"))},
	"input on host":  {facts.Named("save_iteration_input", ir.Bool(false)), facts.Named("offload", strs("decoder_layer_input"))},
	"no cut":         {facts.Named("save_iteration_input", ir.Bool(false)), facts.Named("save_decoder_layer_input", ir.Bool(false))},
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

// rematAt says what is recomputed as one, and what of it is kept.
func rematAt(boundary [2]string, policy string) []ir.NamedAttr {
	return append([]ir.NamedAttr{facts.Named("checkpoint", ir.Str(boundary[0])), facts.Named("checkpoint_place", ir.Str(boundary[1]))}, rematPolicies[policy]...)
}

// Whatever is kept for the backward pass, no weight is kept for each iteration.
func TestNoStackedWeights(t *testing.T) {
	for i, c := range rematModels {
		for k, boundary := range rematBoundaries {
			if boundary == [2]string{"repeat", "inside"} && c.R == 1 {
				continue
			}
			n := i + k
			c.gather, c.prefetch = []string{"per_iteration", "once", "per_repeat", "per_repeat"}[n%4], []string{"head", "ahead"}[n%2]
			if c.R == 1 || c.M < c.D*c.S {
				c.gather = "per_iteration"
			}
			c.rotate = []string{"ppermute", "slice_pad"}[n%2]
			c.remat = rematAt(boundary, keysOf(rematPolicies)[n%len(rematPolicies)])
			m := withLoss(c.module())
			if err := Run(m, Config{}); err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			noStackedWeights(t, m, c)
		}
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
