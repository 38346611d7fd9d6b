package passes

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// wildProgram is a random program whose shardings are whatever a program may
// say: along parts of axes, several to a dimension, with replicated and
// unreduced axes, of ops themselves, of one device alone.
func wildProgram(seed uint64, mesh *ir.Mesh, n int) (*ir.Module, []*ir.Literal) {
	g := &programMaker{r: rand.New(rand.NewPCG(seed, 1)), mesh: mesh, odd: seed%4 == 3, wild: true, makers: append(randomOps(), (*programMaker).chain, (*programMaker).call, (*programMaker).explicitSum,
		(*programMaker).bigPad, (*programMaker).anySlice, (*programMaker).reverses, (*programMaker).regroup, (*programMaker).concats)}
	return g.program(n)
}

// wildMeshes are those of randomMeshes, larger ones, and ones whose devices
// stand in any order. Their number has no divisor in common with what else a
// seed decides.
func wildMeshes() []*ir.Mesh {
	mesh := func(ids []int, sizes ...int) *ir.Mesh {
		m := &ir.Mesh{Name: "mesh", DeviceIDs: ids}
		for i, n := range sizes {
			m.Axes = append(m.Axes, ir.MeshAxis{Name: string(rune('x' + i)), Size: n})
		}
		return m
	}
	return append(randomMeshes(), mesh([]int{5, 0, 7, 2, 1, 4, 3, 6}, 4, 2), mesh([]int{7, 6, 5, 4, 3, 2, 1, 0}, 2, 2, 2), mesh(nil, 8), mesh(nil, 4, 4))
}

// cutUp is axes with some of them in parts.
func (g *programMaker) cutUp(axes []ir.AxisRef) []ir.AxisRef {
	var out []ir.AxisRef
	for _, r := range axes {
		pre, size := g.mesh.Span(r)
		for k := 2; k < size; k++ {
			if size%k == 0 && g.r.IntN(2) == 0 {
				out = append(out, g.mesh.SubAxis(r.Name, pre, k))
				pre, size = pre*k, size/k
			}
		}
		out = append(out, g.mesh.SubAxis(r.Name, pre, size))
	}
	return out
}

// unused are axes and parts of axes that s does not name, in any order; none
// along which the program is one device's already.
func (g *programMaker) unused(s *ir.Sharding) []ir.AxisRef {
	var axes []ir.AxisRef
	for _, a := range g.mesh.Axes {
		if !slices.Contains(g.manual, a.Name) {
			axes = append(axes, ir.Ax(a.Name))
		}
	}
	axes = slices.DeleteFunc(g.cutUp(axes), func(r ir.AxisRef) bool {
		return s.Uses(r) || layout.OverlapsAny(r, s.Replicated) || layout.OverlapsAny(r, s.Unreduced)
	})
	g.r.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
	return axes
}

// ordered is axes in the order of the mesh, with parts that are one as one.
func (g *programMaker) ordered(axes []ir.AxisRef) []ir.AxisRef {
	return g.mesh.JoinAxes(nil, layout.SortedAxes(g.mesh, axes))
}

// fits reports whether dimension d of shape can be sharded along one more axis.
func (g *programMaker) fits(s *ir.Sharding, shape []int, d int, r ir.AxisRef) bool {
	return g.odd || shape[d]%(g.mesh.RefsSize(s.Axes(d))*g.mesh.RefSize(r)) == 0
}

func (g *programMaker) wildSharding(shape []int, open bool) *ir.Sharding {
	s := ir.Replicated(g.mesh.Name, len(shape))
	var still []ir.AxisRef
	for _, r := range g.unused(s) {
		switch d := g.r.IntN(len(shape) + 1); {
		case d == len(shape) && g.r.IntN(6) == 0:
			still = append(still, r)
		case d < len(shape) && g.fits(s, shape, d, r):
			s.Dims[d].Axes = g.mesh.JoinAxes(s.Dims[d].Axes, []ir.AxisRef{r})
		}
	}
	s.Replicated = g.ordered(still)
	return g.opened(s, open)
}

// stating is a sharding of what is said of a value in passing: it may leave
// axes unreduced.
func (g *programMaker) stating(shape []int) *ir.Sharding {
	s := g.sharding(shape, true)
	if g.wild && g.r.IntN(4) == 0 {
		s.Unreduced = g.some(g.unused(s))
		if len(s.Unreduced) > 0 {
			s.ReducedBy = []string{"", "", "max", "min"}[g.r.IntN(4)]
		}
	}
	return s
}

// some are some of axes, in the order of the mesh.
func (g *programMaker) some(axes []ir.AxisRef) []ir.AxisRef {
	if len(axes) == 0 {
		return nil
	}
	return g.ordered(axes[:1+g.r.IntN(len(axes))])
}

// say says of the op that makes v how v is sharded, or that one device alone has it.
func (g *programMaker) say(v *ir.Value) {
	if v.Def == nil || v.Sharding != nil || ir.ShardingConstraint <= v.Def.Kind && v.Def.Kind <= ir.ShardedToUnreduced {
		return
	}
	if len(g.manual) > 0 || g.r.IntN(3) > 0 {
		v.Sharding = g.stating(v.Type.Shape)
		return
	}
	id := g.r.IntN(g.mesh.Size())
	name := fmt.Sprint("device", id)
	if !slices.ContainsFunc(g.devices, func(m *ir.Mesh) bool { return m.Name == name }) {
		g.devices = append(g.devices, &ir.Mesh{Name: name, DeviceIDs: []int{id}})
	}
	v.Sharding = &ir.Sharding{Mesh: name}
}

// chain is one value that has one sharding after the other, and of which several
// are wanted.
func (g *programMaker) chain() *ir.Value {
	x := g.pick()
	all := []*ir.Value{x}
	for range 2 + g.r.IntN(4) {
		v := all[g.r.IntN(len(all))]
		if g.r.IntN(2) == 0 {
			v = g.b.Constrain(v, g.stating(x.Type.Shape))
		} else {
			v = g.b.Emit(ir.Reshard, []*ir.Value{v}, ir.AttrsOf(facts.Named("sharding", g.sharding(x.Type.Shape, false))), nil, nil).Result()
		}
		all = append(all, v)
	}
	return g.b.Add(all[len(all)-1], all[g.r.IntN(len(all))])
}

// call calls a function of a few ops, once or twice.
func (g *programMaker) call() *ir.Value {
	x := g.pick()
	f := ir.NewFunc(fmt.Sprint("callee", len(g.callees)))
	f.Private = true
	g.callees = append(g.callees, f)
	v := f.NewArg(f.Body, x.Type, "x")
	if g.r.IntN(2) == 0 {
		v.Sharding = g.sharding(x.Type.Shape, true)
	}
	outer := g.b
	g.b = ir.NewBuilder(f)
	g.alone(f.Body, func() {
		g.ops(2)
		g.b.Return(g.pool[len(g.pool)-1])
	})
	g.b = outer
	if g.r.IntN(2) == 0 {
		f.Results[0].Sharding = g.sharding(f.Results[0].Type.Shape, true)
	}
	return g.b.Add(g.b.Call(f, x)[0], g.b.Call(f, g.pickLike(x))[0])
}
