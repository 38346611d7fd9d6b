package gradient

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/passes/pipeline"
)

// Programs mapped over instances compute for each
// what they compute of its arguments, whichever parameters are mapped.
func TestVmap(t *testing.T) {
	const n = 3
	for _, c := range slices.Concat(windowGradients, elementwiseGradients, moveGradients, indexGradients, reduceGradients) {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(8) {
				p := newLossProgram(seed)
				p.b.Return(c.build(p)...)
				f := p.b.Func
				if err := ir.Verify(p.m); err != nil {
					t.Fatal(err)
				}
				batched := make([]bool, len(f.Params()))
				for i, v := range f.Params() {
					batched[i] = v.Type.Rank() > 0 && rand.New(rand.NewPCG(seed, uint64(i))).IntN(3) > 0
				}
				g, err := pipeline.Vmap(f, "mapped", batched, n, nil)
				if err != nil && strings.HasSuffix(err.Error(), "with an initial value that differs between stages") {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := vmapped(p, g, batched, n); err != nil {
					t.Fatalf("seed %d, mapped %v: %v", seed, batched, err)
				}
			}
		})
	}
}

// vmapped runs g, which is p's function mapped over n instances, and that
// function on the arguments of each.
func vmapped(p *lossProgram, g *ir.Func, batched []bool, n int) error {
	one := p.m.Main()
	m := &ir.Module{Funcs: []*ir.Func{g}}
	if err := ir.Verify(m); err != nil {
		return err
	}
	args, each := make([]*ir.Literal, len(batched)), make([][]*ir.Literal, n)
	for i, v := range one.Params() {
		args[i] = p.args[i]
		var all []float64
		for k := range n {
			l := p.args[i]
			if batched[i] {
				l = p.numbers(-2, 2, v.Type)
			}
			all = append(all, floats(l)...)
			each[k] = append(each[k], l)
		}
		if batched[i] {
			args[i] = ir.Floats64(g.Params()[i].Type, all...)
		}
	}
	got, err := eval.Run(m, g, args, eval.Options{Float64: true})
	if err != nil {
		return err
	}
	for k := range n {
		want, err := eval.Run(p.m, one, each[k], eval.Options{Float64: true})
		if err != nil {
			return err
		}
		for i, w := range want {
			have, size := floats(got[i]), w.Type.NumElements()
			if !slices.EqualFunc(have[k*size:(k+1)*size], floats(w), nearlyEqual) {
				return fmt.Errorf("instance %d, result %d: got %v, want %v", k, i, have[k*size:(k+1)*size], floats(w))
			}
		}
	}
	return nil
}

// nearlyEqual allows for sums in another order.
func nearlyEqual(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b), 1)
}
