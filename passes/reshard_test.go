package passes

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
	words := [...]string{cutMove: "cut", exchangeMove: "exchange", placeMove: "place", joinMove: "join"}
	for _, c := range []struct {
		from, to layout
		want     string
	}{
		{layout{{x}, nil}, layout{{x}, nil}, ""},
		{layout{{x}, nil}, layout{{x, y}, nil}, "cut"},
		{layout{{x}, nil}, layout{nil, {x}}, "exchange"},
		{layout{{x, y}, nil}, layout{nil, {x, y}}, "exchange"},
		{layout{{x, y}, nil}, layout{{x}, {y}}, "exchange"},
		{layout{{x}, nil}, layout{{y}, nil}, "place"},
		{layout{{x}, {y}}, layout{{y}, {x}}, "place"},
		{layout{{x, y}, nil}, layout{{y, x}, nil}, "place"},
		{layout{{x, y}, nil}, layout{nil, nil}, "join"},
		{layout{{x}, nil}, layout{{z}, nil}, "cut place"},
		{layout{{x, y}, nil}, layout{{y}, nil}, "place join"},
		{layout{{x}, nil}, layout{nil, {y}}, "cut join"},
		{layout{{{Name: "z", Pre: 1, Size: 2}}, nil}, layout{{z}, nil}, "cut"},
		{layout{{z}, nil}, layout{{{Name: "z", Pre: 1, Size: 2}}, {{Name: "z", Pre: 2, Size: 2}}}, "exchange"},
	} {
		rs := resharder{mesh: mesh, plans: make(map[string]*reshardPlan)}
		var got []string
		for _, m := range rs.plan(ir.Tensor(ir.F32, 16, 16), c.from, c.to).moves {
			got = append(got, words[m.kind])
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v to %v: %s, want %s", c.from, c.to, s, c.want)
		}
	}
}

// Between any two layouts there is a way, and never one that costs more than
// to join everything and cut it again.
func TestReshardAny(t *testing.T) {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 4}, {Name: "z", Size: 3}}}
	r := rand.New(rand.NewPCG(1, 1))
	typ := ir.Tensor(ir.F32, 24, 24, 12)
	random := func() layout {
		at := make(layout, 3)
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
		rs := resharder{mesh: mesh, plans: make(map[string]*reshardPlan)}
		plan := rs.plan(typ, from, to)
		end := from.clone()
		if n := len(plan.moves); n > 0 {
			for d, axes := range plan.moves[n-1].next {
				end[d] = mesh.JoinAxes(nil, axes)
			}
		}
		s := planSearch{mesh: mesh, t: typ, goal: to}
		if whole := s.viaWhole(from); fmt.Sprint(end) != fmt.Sprint(to) || plan.bytes > whole.bytes {
			t.Fatalf("%v to %v ends at %v with %d bytes, by way of the whole it takes %d", from, to, end, plan.bytes, whole.bytes)
		}
	}
}
