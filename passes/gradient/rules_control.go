package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/rewrite"
)

// The rules of ops with regions that run once, of collectives, and of ops that
// state shardings.

// region returns the tape of the backward half of r, a region of an op in the block
// of t. It rematerialises the values of r.
func (t *tape) region(r *ir.Block) *tape {
	return &tape{
		d: t.d, b: t.b.In(new(ir.Block)), outer: t,
		ct: make(map[*ir.Value]*ir.Value), memo: make(map[*ir.Value]*ir.Value), local: facts.DefinedIn(r),
	}
}

// gradBranches is the rule of case and if: an op that chooses between the backward
// halves of the branches. Each returns the cotangents of all captured values for
// which any branch has one.
func gradBranches(t *tape, op *ir.Op, ct []*ir.Value) {
	index := t.need(op.Operands[0])
	tapes := make([]*tape, len(op.Regions))
	var from []*ir.Value
	for i, r := range op.Regions {
		in := t.region(r)
		tapes[i] = in
		for k, v := range r.Terminator().Operands {
			if ct[k] != nil {
				in.add(v, ct[k])
			}
		}
		in.backward(r.Ops[:len(r.Ops)-1])
		for _, v := range in.sums {
			if !slices.Contains(from, v) {
				from = append(from, v)
			}
		}
	}
	if t.d.err != nil || len(from) == 0 {
		return
	}
	regions := make([]*ir.Block, len(tapes))
	for i, in := range tapes {
		gs := make([]*ir.Value, len(from))
		for k, v := range from {
			gs[k] = in.cotangent(v)
		}
		in.b.Emit(ir.Return, gs, nil, nil, nil)
		regions[i] = in.b.Block
	}
	back := t.b.At(op.Origin).Emit(op.Kind, []*ir.Value{index}, nil, regions, nil)
	for k, v := range from {
		t.add(v, back.Results[k])
	}
}

// gradManual is the rule of a manual computation: a manual computation whose
// operands are the forward values that it needs and the cotangents of the results.
//
// The cotangent of a result that is replicated over n devices is divided by n on
// each of them; that of an operand that is replicated over n devices is the sum
// over them.
func gradManual(t *tape, op *ir.Op, ct []*ir.Value) {
	m := &manualReverse{tape: t, op: op, in: t.region(op.Regions[0]), block: new(ir.Block)}
	m.in.b.Block = m.block
	r := op.Regions[0]
	shardings := op.Attrs.Get("in_shardings").(ir.PerValue)
	forward := make([]*ir.Value, len(r.Args))
	for i, a := range r.Args {
		forward[i] = t.d.f.NewValue(a.Type, a.Name)
		m.in.memo[a] = forward[i]
	}
	for i, v := range r.Terminator().Operands {
		if ct[i] != nil && m.in.wants(v) {
			s := op.Attrs.Get("out_shardings").(ir.PerValue)[i]
			m.in.add(v, m.share(m.operand(ct[i], v.Type, s), s))
		}
	}
	m.in.backward(r.Ops[:len(r.Ops)-1])
	var gs, xs []*ir.Value
	var out ir.PerValue
	for i, a := range r.Args {
		if g := m.in.ct[a]; g != nil && t.wants(op.Operands[i]) {
			gs, xs, out = append(gs, m.total(g, shardings[i])), append(xs, op.Operands[i]), append(out, shardings[i])
		}
	}
	if t.d.err != nil || len(gs) == 0 {
		return
	}
	m.in.b.Emit(ir.SdyReturn, gs, nil, nil, nil)
	used := make(map[*ir.Value]bool)
	m.block.Walk(func(o *ir.Op) {
		for _, v := range o.Operands {
			used[v] = true
		}
	})
	for i, a := range forward {
		if used[a] {
			m.bind(t.need(op.Operands[i]), a, shardings[i])
		}
	}
	attrs := ir.AttrsOf(facts.Named("in_shardings", m.shardings), facts.Named("out_shardings", out), facts.Named("manual_axes", op.Attrs.Get("manual_axes")))
	back := t.b.At(op.Origin).Emit(op.Kind, m.operands, attrs, []*ir.Block{m.block}, ir.Types(xs))
	for i, x := range xs {
		t.add(x, back.Results[i])
	}
}

// A manualReverse is the backward of a manual computation under construction.
type manualReverse struct {
	*tape
	op        *ir.Op
	in        *tape
	block     *ir.Block
	operands  []*ir.Value
	shardings ir.PerValue
}

// operand makes v one more operand of the manual computation, of type local inside,
// and returns the region's argument.
func (m *manualReverse) operand(v *ir.Value, local *ir.Type, s *ir.Sharding) *ir.Value {
	return m.bind(v, m.d.f.NewValue(local, ""), s)
}

func (m *manualReverse) bind(v, arg *ir.Value, s *ir.Sharding) *ir.Value {
	arg.Block, arg.Index = m.block, len(m.block.Args)
	m.block.Args = append(m.block.Args, arg)
	m.operands, m.shardings = append(m.operands, v), append(m.shardings, s)
	return arg
}

// replicatedAxes is the manual axes along which a value of sharding s is
// replicated. An axis of which s uses a sub-axis is not among them, since the
// collectives that follow take full axes.
func (m *manualReverse) replicatedAxes(s *ir.Sharding) []ir.AxisRef {
	var out []ir.AxisRef
	for _, a := range m.op.Attrs.Get("manual_axes").(ir.Array) {
		if axis := ir.Ax(string(a.(ir.Str))); !s.Uses(axis) {
			out = append(out, axis)
		}
	}
	for _, d := range s.Dims {
		for _, r := range d.Axes {
			if r.Size != 0 {
				m.fails(m.op)
			}
		}
	}
	if len(s.Unreduced) > 0 {
		m.fails(m.op)
	}
	return out
}

func (m *manualReverse) share(g *ir.Value, s *ir.Sharding) *ir.Value {
	n := m.d.m.Mesh(s.Mesh).RefsSize(m.replicatedAxes(s))
	if n == 1 {
		return g
	}
	return m.in.b.Mul(g, m.in.fill(g.Type, 1/float64(n)))
}

func (m *manualReverse) total(g *ir.Value, s *ir.Sharding) *ir.Value {
	axes := m.replicatedAxes(s)
	if m.d.m.Mesh(s.Mesh).RefsSize(axes) == 1 {
		return g
	}
	attrs := ir.AttrsOf(facts.Named("replica_groups", ir.MeshAxes{Mesh: s.Mesh, Axes: axes}), facts.Named("channel_handle", m.channel()), facts.Named("use_global_device_ids", ir.Unit{}))
	return m.in.sumOver(ir.AllReduce, g, attrs, g.Type)
}

// The rule of a collective is the transpose of the linear map that all devices
// together compute: the gradient is that of the sum of the devices' losses.

// channel returns a channel handle that no other collective of the module has.
func (t *tape) channel() ir.Channel {
	if t.d.channels == 0 {
		for _, f := range t.d.m.Funcs {
			if f.Body == nil {
				continue
			}
			f.Body.Walk(func(op *ir.Op) {
				if c, ok := op.Attrs.Get("channel_handle").(ir.Channel); ok {
					t.d.channels = max(t.d.channels, c.Handle)
				}
			})
		}
	}
	t.d.channels++
	return ir.Channel{Handle: t.d.channels, Type: 1}
}

// collective is the attributes of op that state its device groups, with a new
// channel, and more.
func (t *tape) collective(op *ir.Op, more ...ir.NamedAttr) ir.Attrs {
	attrs := ir.AttrsOf(more...)
	for _, name := range []string{"replica_groups", "use_global_device_ids"} {
		if a := op.Attrs.Get(name); a != nil {
			attrs.Set(name, a)
		}
	}
	if op.Attrs.Has("channel_handle") {
		attrs.Set("channel_handle", t.channel())
	}
	return attrs
}

// sumOver appends a collective of kind k that sums.
func (t *tape) sumOver(k ir.Kind, g *ir.Value, attrs ir.Attrs, typ *ir.Type) *ir.Value {
	return t.b.Emit(k, []*ir.Value{g}, attrs, []*ir.Block{t.b.Combiner(ir.Add, g.Type.Elem)}, []*ir.Type{typ}).Result()
}

// gradAllGather reduce-scatters the cotangent: each device has its shard of the sum
// over the devices that received it.
func gradAllGather(t *tape, op *ir.Op, ct []*ir.Value) {
	for i, x := range op.Operands {
		if ct[i] != nil && t.wants(x) {
			attrs := t.collective(op, facts.Named("scatter_dimension", ir.I64Attr(op.Int("all_gather_dim"))))
			t.add(x, t.sumOver(ir.ReduceScatter, ct[i], attrs, x.Type))
		}
	}
}

// gradAllReduce all-reduces the cotangent: the term of each device reaches the
// results of all.
func gradAllReduce(t *tape, op *ir.Op, ct []*ir.Value) {
	for i, x := range op.Operands {
		switch {
		case ct[i] == nil || !t.wants(x):
		case facts.Combines(op.Regions[0], 0) != ir.Add:
			t.fails(op)
		default:
			g := t.b.Convert(ct[i], x.Type.Elem)
			t.add(x, t.sumOver(ir.AllReduce, g, t.collective(op), x.Type))
		}
	}
}

// gradReduceScatter all-gathers the cotangent: each shard of the sum goes back to
// all devices that have a term of it.
func gradReduceScatter(t *tape, op *ir.Op, ct []*ir.Value) {
	x := op.Operands[0]
	switch {
	case !t.wants(x):
	case facts.Combines(op.Regions[0], 0) != ir.Add:
		t.fails(op)
	default:
		attrs := t.collective(op, facts.Named("all_gather_dim", ir.I64Attr(op.Int("scatter_dimension"))))
		g := t.b.Convert(ct[0], x.Type.Elem)
		t.add(x, t.b.Emit(ir.AllGather, []*ir.Value{g}, attrs, nil, []*ir.Type{x.Type}).Result())
	}
}

// gradAllToAll is the all-to-all with split and concatenation dimension exchanged.
func gradAllToAll(t *tape, op *ir.Op, ct []*ir.Value) {
	for i, x := range op.Operands {
		if ct[i] != nil && t.wants(x) {
			attrs := t.collective(op, facts.Named("split_dimension", op.Attrs.Get("concat_dimension")),
				facts.Named("concat_dimension", op.Attrs.Get("split_dimension")), facts.Named("split_count", op.Attrs.Get("split_count")))
			t.add(x, t.b.Emit(op.Kind, []*ir.Value{ct[i]}, attrs, nil, nil).Result())
		}
	}
}

// gradPermute is the collective permute with sources and targets exchanged. A
// device that sent to none gets zeros.
func gradPermute(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	attrs := t.collective(op, facts.Named("source_target_pairs", inversePairs(op.Attrs.Get("source_target_pairs"))))
	return t.b.Emit(op.Kind, []*ir.Value{ct}, attrs, nil, nil).Result()
}

func inversePairs(a ir.Attr) ir.Attr {
	switch pairs := a.(type) {
	case ir.AxisShift:
		return pairs.Inverse()
	case ir.AxisMove:
		return pairs.Inverse()
	case *ir.Literal:
		n := pairs.Type.NumElements()
		swapped := make([]int, n)
		for i := range n {
			swapped[i] = int(pairs.Int(i ^ 1))
		}
		return ir.Ints64(pairs.Type, swapped...)
	}
	return a
}

// gradConstraint constrains the cotangent to the sharding of the value, with open
// dimensions: the cotangent of a value that is replicated along an axis may be a
// sum over the devices of the axis, which a reduce-scatter then leaves sharded
// along it.
func gradConstraint(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	if t.d.explicit {
		return ct // add constrains it to the operand's sharding
	}
	s := op.Attrs.Get("sharding").(*ir.Sharding).Clone()
	for i := range s.Dims {
		s.Dims[i].Open = true
	}
	return t.b.Constrain(ct, s)
}

// gradGathered is the rule of pp.gather: the cotangent of a gathered weight is
// reduce-scattered where it is accumulated.
func gradGathered(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.summed(ct, op.Operands[0])
}

// gradAsOperand constrains the cotangent to the sharding of the operand, where that
// is stated.
func gradAsOperand(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Constrain(ct, op.Operands[0].Sharding)
}

// gradRotated is the rule of the rotated operand of pp.rotate: the rotation by
// -shift, with zeros for the stage whose value left at the edge.
func gradRotated(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	edge := op.Attrs.Get("edge")
	if op.Word("edge") == "fill" {
		edge = ir.Str("zero")
	}
	attrs := rewrite.AttrsWith(op, facts.Named("shift", ir.I64Attr(-op.Int("shift"))), facts.Named("edge", edge))
	v := t.b.Emit(op.Kind, []*ir.Value{ct}, attrs, nil, nil).Result()
	v.Sharding = op.Result().Sharding
	return v
}

// gradFill is the rule of the fill of pp.rotate: the cotangent of the stage that
// received it.
func gradFill(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	b := t.b
	stages := ct.Type.Shape[0]
	edge := 0
	if op.Int("shift") < 0 {
		edge = stages - 1
	}
	stage := b.Iota(ir.Tensor(ir.I32, stages), 0)
	at := b.Compare("EQ", stage, t.fill(stage.Type, float64(edge)))
	return b.Select(b.Broadcast(at, ct.Type.Shape, 0), ct, t.zeros(ct.Type))
}
