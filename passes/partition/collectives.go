package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// Collectives replaces every sdy.reshard by the explicit collectives that do it
// with the fewest bytes: a reduce-scatter or an all-reduce where it reduces, and
// then slices, all-to-alls, permutes and all-gathers.
func Collectives(_ *pass.Context, m *ir.Module) error {
	p, err := programOf(m)
	if err != nil || p.f == nil {
		return err
	}
	e := &explicit{program: p, sub: p.f.NewSubst()}
	e.resharder = layout.Resharder{Mesh: p.mesh, Plans: make(map[string]*layout.ReshardPlan)}
	e.build.Func = p.f
	e.block(p.f.Body)
	p.f.Renumber()
	return nil
}

// An explicit is the state of one run of [Collectives].
type explicit struct {
	*program
	build     ir.Builder
	sub       ir.Subst // the results of reshards
	resharder layout.Resharder
}

func (e *explicit) block(b *ir.Block) {
	out := new(ir.Block)
	for _, op := range b.Ops {
		e.sub.Apply(op.Operands)
		still := e.resharder.Still
		if op.Kind == ir.ManualComputation {
			e.resharder.Still = slices.Concat(still, ir.Axs(facts.ManualAxesOf(op)...))
		}
		for _, r := range op.Regions {
			e.block(r)
		}
		e.resharder.Still = still
		if op.Kind != ir.Reshard {
			out.Ops = append(out.Ops, op)
			continue
		}
		e.build.Block, e.build.Origin = out, op.Origin
		e.sub[op.Result().ID] = e.reshard(op)
	}
	b.Ops = out.Ops
}

// reshard emits the collectives for op, and returns what has its result.
func (e *explicit) reshard(op *ir.Op) *ir.Value {
	v, r := op.Operands[0], op.Result()
	from, to := e.layoutOf(v), e.layoutOf(r)
	left, k := layout.UnreducedOf(r.Sharding), layout.CombinerOf(v.Sharding)
	if axes := e.outside(layout.UnreducedOf(v.Sharding), left); len(axes) > 0 {
		v, from = e.reduceByCollectives(&e.build, v, from, to, axes, left, k)
	}
	moves := e.resharder.Plan(v.Type, from, to, left...).Moves
	if len(moves) > 0 && !v.Sharding.SameDims(e.sharding(from, nil, k)) { // it has axes of one device
		v = e.emit(ir.SdyCollectivePermute, v, from, left, k)
	}
	for len(moves) > 0 {
		n := 1
		for moves[0].Kind == layout.Slice && n < len(moves) && moves[n].Kind == layout.Slice {
			n++
		}
		v = e.move(v, moves[:n], left, k)
		moves = moves[n:]
	}
	if v != op.Operands[0] && v.Name == "" {
		v.Name = r.Name
	}
	return v
}

// move emits the collective for one move, or for slices that follow on another.
func (e *explicit) move(v *ir.Value, moves []layout.Move, left []ir.AxisRef, k ir.Kind) *ir.Value {
	m := moves[len(moves)-1]
	lists := make([][]ir.AxisRef, v.Type.Rank())
	for _, m := range moves {
		if m.Kind != layout.Permute {
			lists[m.Dim] = e.mesh.JoinAxes(lists[m.Dim], m.Axes)
		}
	}
	switch m.Kind {
	case layout.Slice:
		return e.emit(ir.SdyAllSlice, v, m.Next, left, k, ir.NamedAttr{Name: "slicing_axes", Attr: layout.ListsAttr(lists)})
	case layout.AllToAll:
		return e.emit(ir.SdyAllToAll, v, m.Next, left, k, ir.NamedAttr{Name: "params", Attr: layout.ExchangeAttr(lists[m.Dim], m.Dim, m.To)})
	case layout.AllGather:
		return e.emit(ir.SdyAllGather, v, m.Next, left, k, ir.NamedAttr{Name: "gathering_axes", Attr: layout.ListsAttr(lists)})
	}
	return e.emit(ir.SdyCollectivePermute, v, m.Next, left, k)
}

func (e *explicit) emit(kind ir.Kind, v *ir.Value, at layout.Layout, left []ir.AxisRef, k ir.Kind, attrs ...ir.NamedAttr) *ir.Value {
	return e.emitExplicit(&e.build, kind, v, at, left, k, attrs...)
}

// emitExplicit emits an explicit collective of the given kind, whose result has
// the layout at and is unreduced along the axes left, which k combines.
func (p *program) emitExplicit(b *ir.Builder, kind ir.Kind, v *ir.Value, at layout.Layout, left []ir.AxisRef, k ir.Kind, attrs ...ir.NamedAttr) *ir.Value {
	joined := make(layout.Layout, len(at))
	for d, axes := range at {
		joined[d] = p.mesh.JoinAxes(nil, axes)
	}
	s := p.sharding(joined, left, k)
	r := b.Emit(kind, []*ir.Value{v}, ir.AttrsOf(append(attrs, ir.NamedAttr{Name: "out_sharding", Attr: s})...), nil, []*ir.Type{v.Type}).Result()
	r.Name, r.Sharding = v.Name, s
	return r
}

// reduceByCollectives reduces v, of the layout at, along axes by k: by a
// reduce-scatter where the layout want has some of axes next in a dimension, by
// an all-reduce along the others. The result is unreduced along the axes left.
func (p *program) reduceByCollectives(b *ir.Builder, v *ir.Value, at, want layout.Layout, axes, left []ir.AxisRef, k ir.Kind) (*ir.Value, layout.Layout) {
	s := p.reduction(at, want, axes)
	at = at.Clone()
	reducer := ir.NamedAttr{Name: "reduction_op"}
	if i := slices.Index(layout.Reducers, k); i > 0 {
		reducer.Attr = ir.Int{Value: i, Type: ir.I32}
	}
	remaining := axes
	for _, d := range s.scattered {
		lists := make([][]ir.AxisRef, len(at))
		lists[d.dim] = d.axes
		at[d.dim] = p.mesh.JoinAxes(at[d.dim], d.axes)
		remaining = p.outside(remaining, d.axes)
		v = p.emitExplicit(b, ir.SdyReduceScatter, v, at, p.stillUnreduced(v, left, remaining), k, reducer, ir.NamedAttr{Name: "reduce_scatter_axes", Attr: layout.ListsAttr(lists)})
	}
	if len(s.rest) > 0 {
		rest := p.mesh.JoinAxes(nil, p.sortedAxes(s.rest))
		v = p.emitExplicit(b, ir.SdyAllReduce, v, at, left, k, reducer, ir.NamedAttr{Name: "reduction_axes", Attr: layout.AxesAttr(rest)})
	}
	return v, at
}

// stillUnreduced is the axes left, and those of remaining that v is unreduced
// along.
func (p *program) stillUnreduced(v *ir.Value, left, remaining []ir.AxisRef) []ir.AxisRef {
	has := layout.UnreducedOf(v.Sharding)
	return slices.Concat(left, p.outside(remaining, p.outside(remaining, has)))
}
