package passes

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// maxDepth bounds loops and branches in one another.
const maxDepth = 3

// inside makes ops in another block, which sees the values made so far, and
// returns one of the type of each of likes. More are values that the block has
// in addition.
func (g *programMaker) inside(b *ir.Block, likes []*ir.Value, more ...*ir.Value) []*ir.Value {
	outer, pool := g.b, len(g.pool)
	g.b = g.b.In(b)
	g.pool = append(g.pool, more...)
	g.depth++
	g.ops(3)
	g.depth--
	out := make([]*ir.Value, len(likes))
	for i, like := range likes {
		out[i] = g.b.Add(g.pickLike(like), g.small(like))
	}
	g.b, g.pool = outer, g.pool[:pool]
	return out
}

// alone is do where nothing is to be seen but the arguments of b.
func (g *programMaker) alone(b *ir.Block, do func()) {
	outer, pool, counts := g.b, g.pool, g.counts
	g.b, g.pool, g.counts = g.b.In(b), slices.Clone(b.Args), nil
	do()
	g.b, g.pool, g.counts = outer, pool, counts
}

// loop repeats a few ops, by a count or for as long as a number that it carries
// is small, and carries a tensor or several. In what devices compute by hand
// they might not agree on such a number.
func (g *programMaker) loop() *ir.Value {
	if g.depth == maxDepth {
		return nil
	}
	f := g.b.Func
	init := []*ir.Value{g.b.I32(g.r.IntN(2))}
	for range 1 + g.r.IntN(3) {
		init = append(init, g.pick())
	}
	cond, body := new(ir.Block), new(ir.Block)
	for _, v := range init {
		f.NewArg(cond, v.Type, "")
		f.NewArg(body, v.Type, "")
	}
	in := g.b.In(cond)
	going := in.Compare("LT", cond.Args[0], in.I32(2))
	if g.r.IntN(3) == 0 && len(g.manual) == 0 {
		x := cond.Args[1]
		dims := make([]int, x.Type.Rank())
		for d := range dims {
			dims[d] = d
		}
		most := in.Reduce(ir.Maximum, x, in.Splat(ir.Tensor(ir.F64), 0), dims...)
		going = in.Binary(ir.And, going, in.Compare("LT", most, in.Splat(most.Type, 12)))
	}
	in.Emit(ir.Return, []*ir.Value{going}, nil, nil, nil)
	g.counts = append(g.counts, body.Args[0])
	next := g.inside(body, body.Args[1:], body.Args[1:]...)
	g.counts = g.counts[:len(g.counts)-1]
	in = g.b.In(body)
	in.Emit(ir.Return, append([]*ir.Value{in.Add(body.Args[0], in.I32(1))}, next...), nil, nil, nil)
	op := g.b.Emit(ir.While, init, nil, []*ir.Block{cond, body}, nil)
	return op.Results[1+g.r.IntN(len(init)-1)]
}

// branch chooses one of a few regions by a number or of two by a truth value,
// which depends on a tensor or is known.
func (g *programMaker) branch() *ir.Value {
	if g.depth == maxDepth {
		return nil
	}
	likes := []*ir.Value{g.pick()}
	if g.r.IntN(2) == 0 {
		likes = append(likes, g.pick())
	}
	by := g.b.I32(g.r.IntN(3))
	if x := likes[0]; g.r.IntN(2) == 0 && len(g.manual) == 0 {
		one := make([]int, x.Type.Rank())
		limit := slices.Clone(one)
		for d := range limit {
			limit[d] = 1
		}
		by = g.b.Convert(g.b.Reshape(g.b.Slice(x, one, limit)), ir.I32)
	}
	kind, n := ir.Case, 1+g.r.IntN(3)
	if g.r.IntN(2) == 0 {
		kind, n, by = ir.If, 2, g.b.Compare("GT", by, g.b.I32(0))
	}
	var rs []*ir.Block
	for range n {
		b := new(ir.Block)
		g.b.In(b).Emit(ir.Return, g.inside(b, likes), nil, nil, nil)
		rs = append(rs, b)
	}
	op := g.b.Emit(kind, []*ir.Value{by}, nil, rs, nil)
	return op.Results[g.r.IntN(len(likes))]
}

// manually computes by hand along one axis or several: collectives, and ops
// that know nothing of these axes. Results have each device's in its place, or
// are what these combine to. No operand is unreduced: a device would have one
// term of it, whichever that is, and the result would be no number to compare.
func (g *programMaker) manually() *ir.Value {
	var names []string
	s := ir.Replicated(g.mesh.Name, 0)
	x := g.pick()
	shape := slices.Clone(x.Type.Shape)
	s.Dims = make([]ir.DimSharding, len(shape))
	for d := range s.Dims {
		s.Dims[d].Open = true
	}
	for _, i := range g.r.Perm(len(g.mesh.Axes))[:1+g.r.IntN(len(g.mesh.Axes))] {
		a := g.mesh.Axes[i]
		if slices.Contains(g.manual, a.Name) {
			continue
		}
		d := g.r.IntN(len(shape))
		if shape[d]%a.Size == 0 {
			shape[d] /= a.Size
			s.Dims[d].Axes = append(s.Dims[d].Axes, ir.Ax(a.Name))
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	attr := make(ir.Array, len(names))
	for i, name := range names {
		attr[i] = ir.Str(name)
	}
	body := new(ir.Block)
	g.b.Func.NewArg(body, x.Type.WithShape(shape...), "part")
	outside := g.manual
	g.manual = slices.Concat(outside, names)
	var out *ir.Value
	g.alone(body, func() {
		for range 1 + g.r.IntN(3) {
			if v := g.collective(names, len(outside) == 0); v.Type.NumElements() <= 4096 {
				g.pool = append(g.pool, v)
			}
			g.ops(1)
		}
		out = g.pool[len(g.pool)-1]
		if len(g.manual) == len(g.mesh.Axes) {
			id := g.b.Add(g.b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), g.b.Emit(ir.ReplicaID, nil, nil, nil, nil).Result())
			out = g.b.Add(out, g.b.Broadcast(g.b.Convert(id, ir.F64), out.Type.Shape))
		}
		g.b.Emit(ir.SdyReturn, []*ir.Value{out}, nil, nil, nil)
	})
	g.manual = outside
	toGlobal, t := ir.Replicated(g.mesh.Name, out.Type.Rank()), slices.Clone(out.Type.Shape)
	for _, name := range names {
		if g.wild && g.r.IntN(5) == 0 {
			toGlobal.Unreduced = g.ordered(append(toGlobal.Unreduced, ir.Ax(name)))
			continue
		}
		d := g.r.IntN(len(t))
		t[d] *= g.mesh.AxisSize(name)
		toGlobal.Dims[d].Axes = append(toGlobal.Dims[d].Axes, ir.Ax(name))
	}
	if len(toGlobal.Unreduced) > 0 {
		toGlobal.ReducedBy = []string{"", "max", "min"}[g.r.IntN(3)]
	}
	return g.b.Emit(ir.ManualComputation, []*ir.Value{x}, ir.AttrsOf(facts.Named("in_shardings", ir.PerValue{s}), facts.Named("out_shardings", ir.PerValue{toGlobal}), facts.Named("manual_axes", attr)),
		[]*ir.Block{body}, []*ir.Type{out.Type.WithShape(t...)}).Result()
}

// underName is a few ops under a name, which may say how they begin and end.
func (g *programMaker) underName() *ir.Value {
	x, body := g.pick(), new(ir.Block)
	g.b.Func.NewArg(body, x.Type, "")
	var out *ir.Value
	g.alone(body, func() {
		g.ops(2)
		out = g.pool[len(g.pool)-1]
		g.b.Emit(ir.SdyReturn, []*ir.Value{out}, nil, nil, nil)
	})
	attrs := ir.AttrsOf(facts.Named("name", ir.Str("block")))
	if g.r.IntN(2) == 0 {
		attrs.Set("in_shardings", ir.PerValue{g.sharding(x.Type.Shape, true)})
		attrs.Set("out_shardings", ir.PerValue{g.sharding(out.Type.Shape, true)})
	}
	return g.b.Emit(ir.NamedComputation, []*ir.Value{x}, attrs, []*ir.Block{body}, []*ir.Type{out.Type}).Result()
}

// barrier lets shardings through in one direction, or none.
func (g *programMaker) barrier() *ir.Value {
	attrs := ir.AttrsOf(facts.Named("allowed_direction", ir.Int{Value: g.r.IntN(3), Type: ir.I32}))
	return g.b.Emit(ir.PropagationBarrier, []*ir.Value{g.pick()}, attrs, nil, nil).Result()
}

// group says that two values are sharded alike.
func (g *programMaker) group() *ir.Value {
	x := g.pick()
	if y := g.pickLike(x); y != x && (g.wild || x.Sharding == nil && y.Sharding == nil) {
		g.groups++
		for _, v := range []*ir.Value{x, y} {
			g.b.Emit(ir.ShardingGroup, []*ir.Value{v}, ir.AttrsOf(facts.Named("group_id", ir.I64Attr(g.groups))), nil, nil)
		}
	}
	return nil
}

func (g *programMaker) optimizationBarrier() *ir.Value {
	return g.b.Emit(ir.OptimizationBarrier, []*ir.Value{g.pick(), g.pick()}, nil, nil, nil).Results[g.r.IntN(2)]
}

// annotated goes through a call that says something of its operand.
func (g *programMaker) annotated() *ir.Value {
	x := g.pick()
	return g.b.Emit(ir.CustomCall, []*ir.Value{x}, ir.AttrsOf(facts.Named("call_target_name", ir.Str("Sharding"))), nil, []*ir.Type{x.Type}).Result()
}

func (g *programMaker) tuple() *ir.Value {
	both := g.b.Emit(ir.TupleOp, []*ir.Value{g.pick(), g.pick()}, nil, nil, nil).Result()
	return g.b.Emit(ir.GetTupleElement, []*ir.Value{both}, ir.AttrsOf(facts.Named("index", ir.Int{Value: g.r.IntN(2), Type: ir.I32})), nil, nil).Result()
}

func (g *programMaker) constrain() *ir.Value {
	x := g.pick()
	return g.b.Constrain(x, g.stating(x.Type.Shape))
}

func (g *programMaker) reshard() *ir.Value {
	x := g.pick()
	return g.b.Emit(ir.Reshard, []*ir.Value{x}, ir.AttrsOf(facts.Named("sharding", g.sharding(x.Type.Shape, false))), nil, nil).Result()
}

// edge is a value where it flows to, which is its one use.
func (g *programMaker) edge() *ir.Value {
	v := g.b.Unary(ir.Negate, g.pick())
	return g.b.Emit(ir.DataFlowEdge, []*ir.Value{v}, ir.AttrsOf(facts.Named("sharding", g.sharding(v.Type.Shape, true))), nil, nil).Result()
}

// literals is a constant that has a sharding for each use.
func (g *programMaker) literals() *ir.Value {
	return g.b.Emit(ir.SdyConstant, nil, ir.AttrsOf(facts.Named("value", g.literal(g.pick().Type))), nil, nil).Result()
}
