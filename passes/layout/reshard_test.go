package layout

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ppc/ir"
)

// A reshard takes the moves that cost the fewest bytes.
func TestReshardMoves(t *testing.T) {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}, {Name: "z", Size: 4}}}
	x, y, z := ir.Ax("x"), ir.Ax("y"), ir.Ax("z")
	words := [...]string{Slice: "slice", AllToAll: "all-to-all", Permute: "permute", AllGather: "all-gather"}
	for _, c := range []struct {
		from, to Layout
		want     string
	}{
		{Layout{{x}, nil}, Layout{{x}, nil}, ""},
		{Layout{{x}, nil}, Layout{{x, y}, nil}, "slice"},
		{Layout{{x}, nil}, Layout{nil, {x}}, "all-to-all"},
		{Layout{{x, y}, nil}, Layout{nil, {x, y}}, "all-to-all"},
		{Layout{{x, y}, nil}, Layout{{x}, {y}}, "all-to-all"},
		{Layout{{x}, nil}, Layout{{y}, nil}, "permute"},
		{Layout{{x}, {y}}, Layout{{y}, {x}}, "permute"},
		{Layout{{x, y}, nil}, Layout{{y, x}, nil}, "permute"},
		{Layout{{x, y}, nil}, Layout{nil, nil}, "all-gather"},
		{Layout{{x}, nil}, Layout{{z}, nil}, "slice permute"},
		{Layout{{x, y}, nil}, Layout{{y}, nil}, "permute all-gather"},
		{Layout{{x}, nil}, Layout{nil, {y}}, "slice all-gather"},
		{Layout{{{Name: "z", Pre: 1, Size: 2}}, nil}, Layout{{z}, nil}, "slice"},
		{Layout{{z}, nil}, Layout{{{Name: "z", Pre: 1, Size: 2}}, {{Name: "z", Pre: 2, Size: 2}}}, "all-to-all"},
	} {
		rs := Resharder{Mesh: mesh, Plans: make(map[string]*ReshardPlan)}
		var got []string
		for _, m := range rs.Plan(ir.Tensor(ir.F32, 16, 16), c.from, c.to).Moves {
			got = append(got, words[m.Kind])
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v to %v: %s, want %s", c.from, c.to, s, c.want)
		}
	}
}

// Between any two layouts there is a way, and never one that costs more than
// to gather everything and slice it again.
func TestReshardAny(t *testing.T) {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 4}, {Name: "z", Size: 3}}}
	r := rand.New(rand.NewPCG(1, 1))
	typ := ir.Tensor(ir.F32, 24, 24, 12)
	random := func() Layout {
		at := make(Layout, 3)
		for _, i := range r.Perm(3) {
			a := mesh.Axes[i]
			if d := r.IntN(4); d < 3 && typ.Shape[d]%(mesh.RefsSize(at[d])*a.Size) == 0 {
				at[d] = append(at[d], ir.Ax(a.Name))
			}
		}
		return at
	}
	for range 500 {
		from, to := random(), random()
		rs := Resharder{Mesh: mesh, Plans: make(map[string]*ReshardPlan)}
		plan := rs.Plan(typ, from, to)
		end := from.Clone()
		if n := len(plan.Moves); n > 0 {
			for d, axes := range plan.Moves[n-1].Next {
				end[d] = mesh.JoinAxes(nil, axes)
			}
		}
		s := planSearch{Mesh: mesh, t: typ, goal: to}
		if replicated := s.viaReplicated(from); fmt.Sprint(end) != fmt.Sprint(to) || plan.Bytes > replicated.Bytes {
			t.Fatalf("%v to %v ends at %v with %d bytes, by way of the replicated tensor it takes %d", from, to, end, plan.Bytes, replicated.Bytes)
		}
	}
}
