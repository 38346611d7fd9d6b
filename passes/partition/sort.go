package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// A sort along the only dimension there is can be sharded: each device sorts its
// shard, and then, as in a bitonic network whose wires are devices, two by two
// exchange shards, sort both and keep the lower or the upper half. It takes
// log n (log n + 1) / 2 exchanges where an all-gather receives n - 1 shards, which
// is less from eight devices on; where neither is less, an all-gather is one step.

// sortDim is the dimension along which op sorts.
func sortDim(op *ir.Op) int {
	d := op.Int("dimension")
	if d < 0 {
		d += op.Results[0].Type.Rank()
	}
	return d
}

// sortedAlone lets the one dimension that is sorted be sharded, if all others have
// size 1; else those are.
func sortedAlone(op *ir.Op, rule *ir.Factors) {
	d, t := sortDim(op), op.Results[0].Type
	if t.NumElements() != t.Shape[d] {
		return
	}
	k := rule.Operands[0][d][0]
	for _, dims := range slices.Concat(rule.Operands, rule.Results) {
		rule.Sizes[dims[d][0]], dims[d] = 1, []int{k}
	}
	rule.Sizes[k], rule.Types[k] = t.Shape[d], ir.Permutation
}

func mayShardSort(p *program, op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) bool {
	if rule.Types[k] != ir.Permutation {
		return shardable(op, rule.Types[k])
	}
	n := p.mesh.RefsSize(axes)
	return n&(n-1) == 0
}

// placeSort counts what a sort exchanges.
func (p *chooser) placeSort(op *ir.Op, a *assignment) {
	d := sortDim(op)
	n := p.mesh.RefsSize(a.results[0][d])
	if n == 1 || a.rule.Types[a.rule.Results[0][d][0]] != ir.Permutation {
		return
	}
	bytes := 0
	for i, v := range op.Operands {
		bytes += layout.LayoutBytes(p.mesh, v.Type, a.operands[i])
	}
	if !tiesAlike(op) {
		bytes += 4 * op.Results[0].Type.Shape[d] / n
	}
	for size := 2; size <= n; size *= 2 {
		for far := size / 2; far > 0; far /= 2 {
			a.bytes += bytes + 1 // an all-gather is preferred to exchanges of as many bytes
		}
	}
}

// tiesAlike reports whether elements of which neither comes before the other
// are the same, so that their order is none.
func tiesAlike(op *ir.Op) bool {
	r := op.Regions[0]
	if len(op.Operands) != 1 || len(r.Ops) != 2 || r.Ops[0].Kind != ir.Compare || r.Ops[1].Operands[0].Def != r.Ops[0] {
		return false
	}
	x, y := r.Ops[0].Operands[0], r.Ops[0].Operands[1]
	direct := x == r.Args[0] && y == r.Args[1] || x == r.Args[1] && y == r.Args[0]
	return direct && (!x.Type.Elem.IsFloat() || r.Ops[0].Word("compare_type") == "TOTALORDER")
}

// emitSort: of ties, those come first that came first, so elements have their
// places beside them where ties differ.
func (p *localizer) emitSort(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	d := sortDim(op)
	axes := a.results[0][d]
	if len(axes) == 0 || a.rule.Types[a.rule.Results[0][d][0]] != ir.Permutation {
		return p.emitAs(op, a, in, op.Attrs)
	}
	b, in := &p.build, slices.Clone(in)
	s := sorter{p: p, op: op, d: d, shard: in[0].Type.Shape[d], places: !tiesAlike(op)}
	if s.places {
		t := in[0].Type.WithElem(ir.I32)
		in = append(in, b.Add(b.Iota(t, d), b.Broadcast(p.offset(axes, s.shard), t.Shape)))
	}
	vs := s.sorted(in)
	for size := 2; size <= p.mesh.RefsSize(axes); size *= 2 {
		for far := size / 2; far > 0; far /= 2 {
			vs = s.exchanged(vs, p.bit(axes, size), *p.bit(axes, far))
		}
	}
	out := slices.Clone(vs[:len(op.Results)])
	for i, v := range out {
		v.Named(op.Results[i].Name)
	}
	return out
}

// bit is the sub-axis along which devices differ whose coordinates do in
// the digit of weight far; nil where coordinates are less than that.
func (p *localizer) bit(axes []ir.AxisRef, far int) *ir.AxisRef {
	for _, r := range slices.Backward(axes) {
		pre, size := p.mesh.Span(r)
		if far < size {
			bit := p.mesh.SubAxis(r.Name, pre*(size/(2*far)), 2)
			return &bit
		}
		far /= size
	}
	return nil
}

// A sorter sorts dimension d, of which each device has shard elements, by the
// region of op, and by places, the last values, where they tie.
type sorter struct {
	p        *localizer
	op       *ir.Op
	d, shard int
	places   bool
}

// sorted is vs in order.
func (s *sorter) sorted(vs []*ir.Value) []*ir.Value {
	region := s.p.copyRegions(s.op)[0]
	if s.places {
		region = s.withPlaces()
	}
	return s.p.build.Emit(ir.Sort, vs, with(s.op.Attrs, "is_stable", ir.Bool(true)), []*ir.Block{region}, nil).Results
}

// withPlaces is the region of the sort with places as a last operand.
func (s *sorter) withPlaces() *ir.Block {
	f, r := s.p.f, s.op.Regions[0]
	c := new(ir.Block)
	for _, v := range r.Args {
		f.NewArg(c, v.Type, v.Name)
	}
	x, y := f.NewArg(c, ir.Tensor(ir.I32), ""), f.NewArg(c, ir.Tensor(ir.I32), "")
	before := func(by int) *ir.Value { // args i^by for args i
		sub := make(map[*ir.Value]*ir.Value)
		for _, v := range s.op.Captures() {
			sub[v] = s.p.value(v)
		}
		for i, v := range r.Args {
			sub[v] = c.Args[i^by]
		}
		for _, op := range r.Ops[:len(r.Ops)-1] {
			c.Ops = append(c.Ops, f.CopyOp(op, sub))
		}
		v := r.Terminator().Operands[0]
		if w := sub[v]; w != nil {
			return w
		}
		return v
	}
	first, second := before(0), before(1)
	b := s.p.build.In(c)
	tie := b.Binary(ir.And, b.Unary(ir.Not, second), b.Compare("LT", x, y))
	b.Emit(ir.Return, []*ir.Value{b.Binary(ir.Or, first, tie)}, nil, nil, nil)
	return c
}

// exchanged is vs once the devices that differ along far have sorted what both
// have: those whose digits along size and far are alike keep the lower half.
func (s *sorter) exchanged(vs []*ir.Value, size *ir.AxisRef, far ir.AxisRef) []*ir.Value {
	p, b := s.p, &s.p.build
	zero := b.I32(0)
	upper, down := p.coord([]ir.AxisRef{far}), zero
	if size != nil {
		down = p.coord([]ir.AxisRef{*size})
	}
	first := b.Compare("EQ", upper, zero)
	both := make([]*ir.Value, len(vs))
	for i, v := range vs {
		other := p.permute(v, ir.AxisShift{Mesh: p.mesh.Name, Axes: []ir.AxisRef{far}, Shift: 1, Wrap: true})
		mine := b.Broadcast(first, v.Type.Shape)
		both[i] = b.Concat(s.d, b.Select(mine, v, other), b.Select(mine, other, v))
	}
	start := b.Select(b.Compare("EQ", upper, down), zero, b.I32(s.shard))
	out := slices.Clone(s.sorted(both))
	for i, v := range out {
		out[i] = p.sliceAt(v, s.d, start, s.shard)
	}
	return out
}
