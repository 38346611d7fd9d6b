package passes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ppc/internal/conformance"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/passes/expand"
)

// Every unit for one device that has a dimension of 4 or more, with random
// shardings on random values, computes what it computes unpartitioned.
func TestShardedUnits(t *testing.T) {
	meshes := []*ir.Mesh{
		{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}},
		{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 4}, {Name: "y", Size: 2}}},
	}
	ran := 0
	for i, u := range conformance.Units(t, "interpret") {
		source, err := u.Source()
		if err != nil {
			t.Fatal(err)
		}
		m, err := mlir.Parse(u.Path, []byte(source))
		if err != nil || verify.Verify(m) != nil || strings.Contains(source, "run_parallel") {
			continue
		}
		f := m.Main()
		if f == nil && len(m.Funcs) == 1 {
			f = m.Funcs[0]
		}
		if f == nil || f.Body == nil || len(f.Params()) > 0 || !large(f) || !onlyKinds(f) {
			continue
		}
		f.Name = "main"
		if _, err := eval.Run(m, f, nil, eval.Options{}.WithChecks()); err != nil {
			continue // what does not compute unpartitioned does not partitioned either
		}
		if err := Run(m.Clone(), Config{After: "expand"}); err != nil {
			continue // functions of complex numbers that are not made of other ops
		}
		for k, mesh := range meshes {
			for seed := range uint64(3) {
				g := &programMaker{r: rand.New(rand.NewPCG(uint64(i), seed)), mesh: mesh, odd: seed == 2}
				if err := shardedUnit(m.Clone(), mesh, g); err != nil {
					t.Errorf("%s, mesh %d, seed %d: %v", u.Name(), k, seed, err)
				}
			}
		}
		ran++
	}
	t.Logf("%d units", ran)
	if ran == 0 {
		t.Error("no unit is partitioned")
	}
}

// onlyKinds reports whether passes know every op of f but for the checks.
func onlyKinds(f *ir.Func) bool {
	known := true
	f.Body.Walk(func(op *ir.Op) {
		known = known && (op.Kind != ir.Unknown || strings.HasPrefix(op.Name(), "check."))
	})
	return known
}

// large reports whether some value of f has a dimension of 4 or more.
func large(f *ir.Func) bool {
	found := false
	f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Results {
			if v.Type.IsTensor() {
				for _, n := range v.Type.Shape {
					found = found || n >= 4
				}
			}
		}
	})
	return found
}

// shardedUnit makes the constants of m's main function its parameters and what
// it checks its results, gives values random shardings, and compares.
func shardedUnit(m *ir.Module, mesh *ir.Mesh, g *programMaker) error {
	f := m.Main()
	m.Meshes = []*ir.Mesh{mesh}
	m.Form = ir.Rotated | ir.Gathered | ir.Staged | ir.Checkpointed | ir.Differentiated | ir.Optimized
	sub := f.NewSubst()
	var args []*ir.Literal
	var results []*ir.Value
	var kept []*ir.Op
	for _, op := range f.Body.Ops {
		switch {
		case op.Kind == ir.Constant && op.Result().Type.IsTensor() && op.Result().Type.Rank() > 0:
			v := f.NewArg(f.Body, op.Result().Type, op.Result().Name)
			sub[op.Result().ID] = v
			if g.r.IntN(3) > 0 {
				v.Sharding = g.sharding(v.Type.Shape, true)
			}
			args = append(args, op.Literal("value"))
		case strings.HasPrefix(op.Name(), "check."), strings.HasPrefix(op.Str("call_target_name"), "check."):
			results = append(results, op.Operands[0])
		default:
			for _, v := range op.Results {
				if v.Type.IsTensor() && v.Type.Rank() > 0 && g.r.IntN(3) == 0 {
					v.Sharding = g.sharding(v.Type.Shape, true)
				}
			}
			kept = append(kept, op)
		}
	}
	f.Body.Ops = kept
	sub.ApplyBlock(f.Body)
	sub.Apply(results)
	ret := f.Return()
	ret.Operands, f.Results = results, nil
	for _, v := range results {
		f.Results = append(f.Results, ir.Result{Type: v.Type})
	}
	global := &ir.Module{Name: m.Name, Funcs: m.Clone().Funcs}
	for _, h := range global.Funcs {
		if h.Body != nil {
			dropShardings(h)
		}
	}
	if err := expand.Expand(nil, global); err != nil { // into functions as exact as the type of their elements
		return err
	}
	want, err := eval.Run(global, global.Main(), args, eval.Options{Float64: true})
	if err != nil {
		return fmt.Errorf("global: %w", err)
	}
	if err := Run(m, Config{}); err != nil {
		return err
	}
	return onDevices(m, args, want)
}

// onDevices runs the local program m on the shards of args and compares its results
// with the shards of want.
func onDevices(m *ir.Module, args, want []*ir.Literal) error {
	f, mesh := m.Main(), m.Meshes[0]
	shards := make([][]*ir.Literal, mesh.Size())
	for device := range shards {
		for i, a := range args {
			p := f.Params()[i]
			s, _ := p.Attrs.Get("pp.sharding").(*ir.Sharding)
			shards[device] = append(shards[device], ir.ShardOf(padded(a, s.Global(p.Type, mesh)), s, mesh, device))
		}
	}
	got, err := eval.RunDevices(m, f, shards, eval.Options{Float64: true})
	if err != nil {
		return fmt.Errorf("on devices: %w", err)
	}
	for i, r := range f.Results {
		s, _ := r.Attrs.Get("pp.sharding").(*ir.Sharding)
		parts := make([]*ir.Literal, len(got))
		for d := range got {
			parts[d] = got[d][i]
		}
		global := ir.FromShards(mesh, s, s.Global(parts[0].Type, mesh), parts)
		ones := padded(ir.SplatOf(ir.Tensor(ir.I32, want[i].Type.Shape...), 1), global.Type)
		w := padded(want[i], global.Type)
		for k := range global.Type.NumElements() {
			a, b := w.Float(k), global.Float(k)
			if ones.Float(k) != 0 && !sameSum(a, b) {
				return fmt.Errorf("result %d, element %d: %v, want %v", i, k, b, a)
			}
		}
	}
	return nil
}

// sameSum allows for sums in another order.
func sameSum(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b), 1)
}

func dropShardings(f *ir.Func) {
	drop := func(vs []*ir.Value) {
		for _, v := range vs {
			v.Sharding = nil
		}
	}
	drop(f.Params())
	f.Body.Walk(func(op *ir.Op) { drop(op.Results) })
	for i := range f.Results {
		f.Results[i].Sharding = nil
	}
}
