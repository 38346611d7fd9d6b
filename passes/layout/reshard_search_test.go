package layout

import (
	"container/heap"
	"testing"

	"ppc/ir"
)

// An allReshards is every layout of a tensor on a small mesh, in atoms, and the
// cheapest ways between them by any sequence of moves.
type allReshards struct {
	s       *planSearch
	atoms   []ir.AxisRef
	layouts []Layout
	index   map[string]int
}

func newAllReshards(mesh *ir.Mesh, t *ir.Type, atoms []ir.AxisRef) *allReshards {
	a := &allReshards{s: &planSearch{Mesh: mesh, t: t}, atoms: atoms, index: make(map[string]int)}
	a.add(make(Layout, t.Rank()))
	return a
}

// add adds at and all layouts with more axes.
func (a *allReshards) add(at Layout) {
	if _, ok := a.index[at.String()]; ok {
		return
	}
	a.index[at.String()] = len(a.layouts)
	a.layouts = append(a.layouts, at)
	for _, r := range a.atoms {
		for d := range at {
			if !at.Uses(r) && a.s.divides(at, d, r) {
				a.add(a.s.slice(at, d, []ir.AxisRef{r}).Next)
			}
		}
	}
}

// moves calls do with every move from at.
func (a *allReshards) moves(at Layout, do func(Move)) {
	for d := range at {
		for _, r := range a.atoms {
			if !at.Uses(r) && a.s.divides(at, d, r) {
				do(a.s.slice(at, d, []ir.AxisRef{r}))
			}
		}
		for k := 1; k <= len(at[d]); k++ {
			do(a.s.gather(at, d, k))
			for to := range at {
				if to != d && a.s.divides(at, to, at[d][len(at[d])-k:]...) {
					do(a.s.allToAll(at, d, to, k))
				}
			}
		}
	}
	for _, next := range a.layouts {
		same := !next.Equal(at)
		for d := range at {
			same = same && a.s.Mesh.RefsSize(next[d]) == a.s.Mesh.RefsSize(at[d])
		}
		if same {
			do(Move{Kind: Permute, Next: next})
		}
	}
}

// from is the fewest bytes that a device receives on the way from one layout to
// each.
func (a *allReshards) from(at Layout) []int {
	best := make([]int, len(a.layouts))
	for i := range best {
		best[i] = -1
	}
	queue := planHeap{{at: at}}
	for order := 1; len(queue) > 0; order++ {
		n := heap.Pop(&queue).(*planNode)
		i := a.index[n.at.String()]
		if best[i] >= 0 {
			continue
		}
		best[i] = n.bytes
		a.moves(n.at, func(m Move) {
			if best[a.index[m.Next.String()]] < 0 {
				next := a.s.node(n, m)
				next.order = order
				heap.Push(&queue, next)
			}
		})
	}
	return best
}

// needed is the most bytes that any device needs and has not.
func (a *allReshards) needed(from, to Layout) int {
	mesh, most := a.s.Mesh, 0
	part := LayoutBytes(mesh, a.s.t, to)
	for device := range mesh.Size() {
		have := part
		for d, size := range a.s.t.Shape {
			lo := func(at Layout) (int, int) {
				c := 0
				for _, r := range at[d] {
					c = c*mesh.RefSize(r) + device/mesh.Stride(r)%mesh.RefSize(r)
				}
				n := size / mesh.RefsSize(at[d])
				return c * n, (c + 1) * n
			}
			fromLo, fromHi := lo(from)
			toLo, toHi := lo(to)
			have = have / (toHi - toLo) * max(0, min(fromHi, toHi)-max(fromLo, toLo))
		}
		most = max(most, part-have)
	}
	return most
}

// joinedAxes is at, in atoms, as a program writes it.
func (a *allReshards) joinedAxes(at Layout) Layout {
	out := make(Layout, len(at))
	for d, axes := range at {
		out[d] = a.s.Mesh.JoinAxes(nil, axes)
	}
	return out
}

// Between any two layouts of small meshes, also with sub-axes and in any
// order, no sequence of moves brings fewer bytes than the plan; where axes have
// different primes, hardly any.
func TestReshardSearch(t *testing.T) {
	two := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 4}, {Name: "y", Size: 2}}}
	three := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}, {Name: "z", Size: 3}}}
	four := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 4}}}
	parts := []ir.AxisRef{{Name: "x", Pre: 1, Size: 2}, {Name: "x", Pre: 2, Size: 2}, ir.Ax("y")}
	for _, c := range []struct {
		mesh  *ir.Mesh
		t     *ir.Type
		atoms []ir.AxisRef
		worst float64
	}{
		{two, ir.Tensor(ir.F32, 8), parts, 1},
		{two, ir.Tensor(ir.F32, 8, 8), parts, 1},
		{two, ir.Tensor(ir.F32, 8, 4, 2), parts, 1},
		{four, ir.Tensor(ir.F32, 8, 8, 8), ir.Axs("x", "y"), 1},
		{three, ir.Tensor(ir.F32, 12, 12), ir.Axs("x", "y", "z"), 1.25},
		{three, ir.Tensor(ir.F32, 12, 2, 6), ir.Axs("x", "y", "z"), 1.5},
	} {
		a := newAllReshards(c.mesh, c.t, c.atoms)
		rs := Resharder{Mesh: c.mesh, Plans: make(map[string]*ReshardPlan)}
		pairs, worse, over := 0, 0, 0
		worst, bound := 1.0, 1.0
		var at, far string
		for _, from := range a.layouts {
			best := a.from(from)
			for i, to := range a.layouts {
				plan := rs.Plan(c.t, a.joinedAxes(from), a.joinedAxes(to))
				needed := a.needed(from, to)
				pairs++
				if plan.Bytes > best[i] {
					worse++
					if r := float64(plan.Bytes) / float64(max(best[i], 1)); r > worst {
						worst, at = r, from.String()+" to "+to.String()
					}
				}
				if plan.Bytes > needed {
					over++
					if r := float64(plan.Bytes) / float64(max(needed, 1)); r > bound {
						bound, far = r, from.String()+" to "+to.String()
					}
				}
			}
		}
		t.Logf("%v on %v: %d pairs; %d over the search, worst %.2f (%s); %d over the bound, worst %.2f (%s)", c.t, c.mesh.Axes, pairs, worse, worst, at, over, bound, far)
		if worst > c.worst {
			t.Errorf("%v on %v: %s takes %.2f times the bytes of the best sequence, want at most %.2f", c.t, c.mesh.Axes, at, worst, c.worst)
		}
	}
}
