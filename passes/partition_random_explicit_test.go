package passes

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// stated is a value that has the sharding s, whatever the rest of the program says.
func (g *programMaker) stated(v *ir.Value, s *ir.Sharding) *ir.Value {
	for d := range s.Dims {
		s.Dims[d] = ir.DimSharding{Axes: s.Dims[d].Axes}
	}
	return g.b.Constrain(v, s)
}

// Move emits an explicit collective.
func (g *programMaker) move(k ir.Kind, x *ir.Value, out *ir.Sharding, attrs ...ir.NamedAttr) *ir.Value {
	return g.b.Emit(k, []*ir.Value{x}, ir.AttrsOf(append(attrs, facts.Named("out_sharding", out.Clone()))...), nil, nil).Result()
}

// perDim are the axes of each dimension, and onlyRefs are axes, as an explicit
// collective says them.
func perDim(name string, axes [][]ir.AxisRef) ir.NamedAttr {
	parts := make([]string, len(axes))
	for d := range axes {
		parts[d] = refList(axes[d])
	}
	return facts.Named(name, ir.Verbatim("#sdy<list_of_axis_ref_lists["+strings.Join(parts, ", ")+"]>"))
}

func onlyRefs(name string, axes []ir.AxisRef) ir.NamedAttr {
	return facts.Named(name, ir.Verbatim("#sdy<axis_ref_list"+refList(axes)+">"))
}

func refList(axes []ir.AxisRef) string {
	parts := make([]string, len(axes))
	for i, r := range axes {
		parts[i] = r.String()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// explicitMove moves a value as it says.
func (g *programMaker) explicitMove() *ir.Value {
	x := g.pick()
	s := g.sharding(x.Type.Shape, false)
	x = g.stated(x, s)
	moves := []func(*programMaker, *ir.Value, *ir.Sharding) *ir.Value{
		(*programMaker).moveGather, (*programMaker).moveSlice, (*programMaker).moveExchange, (*programMaker).movePlaces}
	return moves[g.r.IntN(len(moves))](g, x, s.Clone())
}

// given takes some axes from the end of dimension d of s.
func (g *programMaker) given(s *ir.Sharding, d int) []ir.AxisRef {
	axes := g.cutUp(s.Axes(d))
	k := g.r.IntN(len(axes) + 1)
	s.Dims[d].Axes = g.mesh.JoinAxes(nil, axes[:k])
	return g.mesh.JoinAxes(nil, axes[k:])
}

// gave takes some axes from dimensions of s; false where it takes none.
func (g *programMaker) gave(s *ir.Sharding) ([][]ir.AxisRef, bool) {
	gone, any := make([][]ir.AxisRef, len(s.Dims)), false
	for d := range gone {
		gone[d] = g.given(s, d)
		any = any || len(gone[d]) > 0
	}
	return gone, any
}

// got shards dimensions of s along some of axes too; false where it can for none.
func (g *programMaker) got(s *ir.Sharding, shape []int, axes []ir.AxisRef) ([][]ir.AxisRef, bool) {
	more, any := make([][]ir.AxisRef, len(shape)), false
	for _, r := range axes {
		if d := g.r.IntN(len(shape)); g.fits(s, shape, d, r) {
			more[d], any = g.mesh.JoinAxes(more[d], []ir.AxisRef{r}), true
			s.Dims[d].Axes = g.mesh.JoinAxes(s.Dims[d].Axes, []ir.AxisRef{r})
		}
	}
	return more, any
}

func (g *programMaker) moveGather(x *ir.Value, s *ir.Sharding) *ir.Value {
	gone, any := g.gave(s)
	if !any {
		return g.moveSlice(x, s)
	}
	return g.move(ir.SdyAllGather, x, s, perDim("gathering_axes", gone))
}

func (g *programMaker) moveSlice(x *ir.Value, s *ir.Sharding) *ir.Value {
	axes := g.unused(s)
	more, any := g.got(s, x.Type.Shape, axes[:min(len(axes), 1+g.r.IntN(2))])
	if !any {
		return nil
	}
	return g.move(ir.SdyAllSlice, x, s, perDim("slicing_axes", more))
}

// moveExchange has each dimension give to one other, or take from one.
func (g *programMaker) moveExchange(x *ir.Value, s *ir.Sharding) *ir.Value {
	dims := g.r.Perm(len(s.Dims))
	texts := make(map[int]string)
	for ; len(dims) > 1; dims = dims[2:] {
		from, to, was := dims[0], dims[1], s.Clone()
		gone := g.given(s, from)
		n := g.mesh.RefsSize(gone)
		if len(gone) == 0 || !g.odd && x.Type.Shape[to]%(g.mesh.RefsSize(s.Axes(to))*n) != 0 {
			s = was
			continue
		}
		s.Dims[to].Axes = g.mesh.JoinAxes(s.Dims[to].Axes, gone)
		texts[from] = fmt.Sprintf("%s: %d->%d", refList(gone), from, to)
	}
	var parts []string
	for d := range s.Dims {
		if texts[d] != "" {
			parts = append(parts, texts[d])
		}
	}
	if parts == nil {
		return g.moveGather(x, s)
	}
	return g.move(ir.SdyAllToAll, x, s, facts.Named("params", ir.Verbatim("#sdy<all_to_all_param_list["+strings.Join(parts, ", ")+"]>")))
}

// movePlaces shards each dimension in as many parts as before, along any axes.
func (g *programMaker) movePlaces(x *ir.Value, s *ir.Sharding) *ir.Value {
	var primes layout.Layout
	for _, a := range g.mesh.Axes {
		if !slices.Contains(g.manual, a.Name) {
			primes = append(primes, ir.Axs(a.Name))
		}
	}
	axes := slices.Concat(layout.Fine(g.mesh, primes)...)
	g.r.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
	out := ir.Replicated(s.Mesh, len(s.Dims))
	for d := range s.Dims {
		for n := g.mesh.RefsSize(s.Axes(d)); n > 1; {
			i := slices.IndexFunc(axes, func(r ir.AxisRef) bool { return n%g.mesh.RefSize(r) == 0 })
			n /= g.mesh.RefSize(axes[i])
			out.Dims[d].Axes = g.mesh.JoinAxes(out.Dims[d].Axes, axes[i:i+1])
			axes = slices.Delete(axes, i, i+1)
		}
	}
	return g.move(ir.SdyCollectivePermute, x, out)
}

// unreduced makes a sum of a value, along axes that it is sharded along or
// that it is not, and takes the sum, or some of it.
func (g *programMaker) unreduced() *ir.Value {
	x := g.pick()
	shape := x.Type.Shape
	s := g.sharding(shape, false)
	if g.wild && g.r.IntN(3) == 0 {
		s.Unreduced = g.some(g.unused(s))
		if s.Unreduced != nil {
			s.ReducedBy = []string{"", "", "max", "min"}[g.r.IntN(4)]
		}
	}
	v := g.stated(x, s)
	if g.wild && g.r.IntN(3) == 0 {
		v = g.b.Unary(ir.Negate, x)
		v.Sharding = s
	}
	if len(s.Unreduced) == 0 && g.r.IntN(4) == 0 {
		return g.combineSame(v, s.Clone())
	}
	s = s.Clone()
	steps := 1
	if g.wild {
		steps += g.r.IntN(2)
	}
	for range steps {
		next := s.Clone()
		if gone, any := g.gave(next); s.ReducedBy != "" {
			break
		} else if any && g.r.IntN(2) == 0 {
			next.Unreduced = g.ordered(slices.Concat(append(gone, s.Unreduced)...))
			v, s = g.move(ir.ShardedToUnreduced, v, next, perDim("axes", gone)), next
		} else if axes := g.some(g.unused(s)); axes != nil {
			s = s.Clone()
			s.Unreduced = g.ordered(slices.Concat(s.Unreduced, axes))
			v = g.move(ir.ReplicatedToUnreduced, v, s, onlyRefs("axes", axes))
		}
	}
	for len(s.Unreduced) > 0 && g.r.IntN(6) > 0 {
		v, s = g.combineSome(v, s.Clone(), shape)
	}
	return v
}

// explicitSum sums a dimension that is sharded along some axes, and combines what
// the devices along them have.
func (g *programMaker) explicitSum() *ir.Value {
	x := g.pick()
	d := g.r.IntN(x.Type.Rank())
	s := ir.Replicated(g.mesh.Name, x.Type.Rank())
	for _, r := range g.unused(s) {
		if x.Type.Shape[d]%(g.mesh.RefsSize(s.Axes(d))*g.mesh.RefSize(r)) == 0 && g.r.IntN(3) > 0 {
			s.Dims[d].Axes = g.mesh.JoinAxes(s.Dims[d].Axes, []ir.AxisRef{r})
		}
	}
	axes := s.Axes(d)
	if len(axes) == 0 {
		return nil
	}
	x = g.perhapsGathered(g.stated(x, s), s)
	var v *ir.Value
	switch g.r.IntN(3) {
	case 0:
		y := g.pick()
		e := slices.Index(y.Type.Shape, x.Type.Shape[d])
		if e < 0 {
			return nil
		}
		s = ir.Replicated(g.mesh.Name, y.Type.Rank())
		s.Dims[e].Axes = axes
		v = g.b.Dot(x, g.stated(y, s), ir.Dot{LhsContract: []int{d}, RhsContract: []int{e}})
	case 1:
		v = g.b.Reduce(ir.Add, x, g.b.Splat(ir.Tensor(ir.F64), float64(g.r.IntN(3))), d)
	default:
		v = g.rows(x, d)
	}
	if v.Type.Rank() == 0 || v.Type.NumElements() > 4096 {
		return nil
	}
	v, _ = g.combineAll(v, &ir.Sharding{Mesh: g.mesh.Name, Dims: make([]ir.DimSharding, v.Type.Rank()), Unreduced: g.ordered(axes)}, v.Type.Shape)
	return g.small(v)
}

// perhapsGathered is x, which has the sharding s, or sometimes x gathered: nothing is left
// to add up then.
func (g *programMaker) perhapsGathered(x *ir.Value, s *ir.Sharding) *ir.Value {
	replicated := ir.Replicated(s.Mesh, len(s.Dims))
	switch g.r.IntN(4) {
	case 0:
		axes := make([][]ir.AxisRef, len(s.Dims))
		for d := range axes {
			axes[d] = s.Axes(d)
		}
		return g.move(ir.SdyAllGather, x, replicated, perDim("gathering_axes", axes))
	case 1:
		return g.b.Emit(ir.Reshard, []*ir.Value{x}, ir.AttrsOf(facts.Named("sharding", replicated)), nil, nil).Result()
	}
	return x
}

// combineAll takes the sum along all of the unreduced axes of s.
func (g *programMaker) combineAll(v *ir.Value, s *ir.Sharding, shape []int) (*ir.Value, *ir.Sharding) {
	next := s.Clone()
	next.Unreduced = nil
	if more, any := g.got(next, shape, s.Unreduced); any && g.mesh.RefsSize(slices.Concat(more...)) == g.mesh.RefsSize(s.Unreduced) {
		return g.move(ir.SdyReduceScatter, v, next, perDim("reduce_scatter_axes", more)), next
	}
	s.Unreduced, next = nil, s.Clone()
	return g.move(ir.SdyAllReduce, v, s, onlyRefs("reduction_axes", next.Unreduced)), s
}

// combineSome takes the sum along some of the unreduced axes of s.
func (g *programMaker) combineSome(v *ir.Value, s *ir.Sharding, shape []int) (*ir.Value, *ir.Sharding) {
	axes := g.cutUp(s.Unreduced)
	g.r.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
	k := len(axes)
	if g.wild {
		k = 1 + g.r.IntN(k)
	}
	by := facts.Named("reduction_op", ir.Int{Value: map[string]int{"": 0, "max": 1, "min": 2}[s.ReducedBy], Type: ir.I32})
	s.Unreduced = g.ordered(axes[k:])
	if g.r.IntN(2) == 0 {
		next := s.Clone()
		more, any := g.got(next, shape, axes[:k])
		if any {
			gone := slices.Concat(more...)
			next.Unreduced = g.ordered(slices.DeleteFunc(axes, func(r ir.AxisRef) bool { return layout.OverlapsAny(r, gone) }))
			return g.move(ir.SdyReduceScatter, v, unreducedAlong(next, next.Unreduced), by, perDim("reduce_scatter_axes", more)), next
		}
	}
	return g.move(ir.SdyAllReduce, v, unreducedAlong(s, s.Unreduced), by, onlyRefs("reduction_axes", g.ordered(axes[:k]))), s
}

// unreducedAlong is s with such unreduced axes.
func unreducedAlong(s *ir.Sharding, axes []ir.AxisRef) *ir.Sharding {
	c := s.Clone()
	if c.Unreduced = axes; len(axes) == 0 {
		c.ReducedBy = ""
	}
	return c
}

// combineSame combines what all devices have alike, which changes nothing.
func (g *programMaker) combineSame(v *ir.Value, s *ir.Sharding) *ir.Value {
	axes := g.unused(s)
	if len(axes) == 0 {
		return nil
	}
	by := facts.Named("reduction_op", ir.Int{Value: g.r.IntN(3), Type: ir.I32})
	if next := s.Clone(); g.r.IntN(2) == 0 {
		if more, any := g.got(next, v.Type.Shape, axes); any {
			return g.move(ir.SdyReduceScatter, v, next, by, perDim("reduce_scatter_axes", more))
		}
	}
	return g.move(ir.SdyAllReduce, v, s, by, onlyRefs("reduction_axes", g.some(axes)))
}
