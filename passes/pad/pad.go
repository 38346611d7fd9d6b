// Package pad makes the axes of every sharding divide what they shard.
package pad

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// Pad makes the axes of every sharding divide the sizes of what they shard: a
// dimension whose size they do not divide gets elements at its end that nothing
// reads, as few as make it divide.
//
// An op each of whose dimensions is one factor is computed on padded values; what
// it sums over is padded with what changes no sum. Any other op, and one with
// regions, is computed on values as they are, sharded as far as the size divides.
// Parameters and results of @main are padded: the sizes that they have without
// that are in the attribute pp.size.
func Pad(_ *pass.Context, m *ir.Module) error {
	f := m.Main()
	if f == nil || f.Body == nil {
		return nil
	}
	mesh, err := layout.MeshOf(m, f)
	if err != nil || mesh == nil {
		return err
	}
	layout.SummedParams(mesh, f)
	pad(mesh, f)
	return nil
}

// pad is [Pad] for a function.
func pad(mesh *ir.Mesh, f *ir.Func) {
	d := &padder{mesh: mesh, f: f, padded: make(map[*ir.Value]*ir.Value), sub: f.NewSubst(), combined: layout.CombiningsOf(f)}
	if d.divides() {
		return
	}
	d.build = ir.Builder{Func: f, Block: new(ir.Block)}
	for _, v := range f.Params() {
		d.param(v)
	}
	d.block(f.Body)
	ret := f.Return()
	for i := range ret.Operands {
		r := &f.Results[i]
		if r.Sharding == nil || !ret.Operands[i].Type.IsTensor() {
			continue
		}
		t := d.dividing(ret.Operands[i].Type, r.Sharding)
		if !t.Equal(ret.Operands[i].Type) {
			r.Attrs.Set(ir.KeySize, ir.Ints(ret.Operands[i].Type.Shape))
		}
		d.build.Origin = ret.Origin
		ret.Operands[i] = d.paddedTo(ret.Operands[i], t, r.Sharding)
		r.Type = t
	}
	n := len(f.Body.Ops) - 1
	f.Body.Ops = slices.Concat(f.Body.Ops[:n], d.take(), f.Body.Ops[n:])
}

// A padder is the state of one run of [Pad].
type padder struct {
	mesh     *ir.Mesh
	f        *ir.Func
	build    ir.Builder
	padded   map[*ir.Value]*ir.Value      // values as they are, to their padded form
	trail    []*ir.Value                  // that have got one, to forget it at the end of a region
	sub      ir.Subst                     // replaced values, to values as they are
	combined map[ir.ID][]layout.Combining // by ID: see layout.CombiningsOf
}

// divides reports whether there is nothing to do.
func (d *padder) divides() bool {
	ok := true
	see := func(t *ir.Type, s *ir.Sharding) { ok = ok && (s == nil || !t.IsTensor() || d.dividing(t, s).Equal(t)) }
	for _, v := range d.f.Params() {
		see(v.Type, v.Sharding)
	}
	d.f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Results {
			see(v.Type, v.Sharding)
		}
		for _, r := range op.Regions {
			for _, a := range r.Args {
				see(a.Type, a.Sharding)
			}
		}
	})
	for i, v := range d.f.Return().Operands {
		see(v.Type, d.f.Results[i].Sharding)
	}
	return ok
}

// dividing is t with sizes that the axes of s divide.
func (d *padder) dividing(t *ir.Type, s *ir.Sharding) *ir.Type {
	shape := slices.Clone(t.Shape)
	for e, size := range shape {
		n := d.mesh.RefsSize(s.Axes(e))
		shape[e] = (size + n - 1) / n * n
	}
	return t.WithShape(shape...)
}

// fitting is s without the axes that do not divide t.
func (d *padder) fitting(t *ir.Type, s *ir.Sharding) *ir.Sharding {
	if s == nil || !t.IsTensor() {
		return s
	}
	c := s.Clone()
	for e := range c.Dims {
		axes := c.Dims[e].Axes
		for len(axes) > 0 && t.Shape[e]%d.mesh.RefsSize(axes) != 0 {
			axes = axes[:len(axes)-1]
		}
		c.Dims[e].Axes = axes
	}
	return c
}

func (d *padder) take() []*ir.Op {
	ops := d.build.Block.Ops
	d.build.Block.Ops = nil
	return ops
}

// param gives the parameter v its padded type.
func (d *padder) param(v *ir.Value) {
	if v.Sharding == nil || !v.Type.IsTensor() {
		return
	}
	t := d.dividing(v.Type, v.Sharding)
	if t.Equal(v.Type) {
		return
	}
	given := v.Type
	v.Attrs.Set(ir.KeySize, ir.Ints(given.Shape))
	v.Type = t
	d.sub[v.ID] = d.unpadded(v, given)
}

// unpadded is the value of type t whose padded form is v.
func (d *padder) unpadded(v *ir.Value, t *ir.Type) *ir.Value {
	x := d.build.Slice(v, make([]int, t.Rank()), t.Shape)
	x.Name, x.Sharding = v.Name, d.fitting(t, v.Sharding)
	d.keep(x, v)
	return x
}

// paddedTo is v with the sizes of t and the sharding s.
func (d *padder) paddedTo(v *ir.Value, t *ir.Type, s *ir.Sharding) *ir.Value {
	if t.Equal(v.Type) {
		return v
	}
	if p := d.padded[v]; p != nil && p.Type.Equal(t) {
		return p
	}
	high := make([]int, t.Rank())
	for e := range high {
		high[e] = t.Shape[e] - v.Type.Shape[e]
	}
	none := make([]int, t.Rank())
	zero := d.build.Splat(ir.Tensor(t.Elem), 0)
	zero.Sharding = ir.Replicated(d.mesh.Name, 0)
	p := d.build.Pad(v, zero, none, high, none)
	p.Name, p.Sharding = v.Name, s.Clone()
	if d.padded[v] == nil {
		d.keep(v, p)
	}
	return p
}

// keep notes that the padded form of v is p.
func (d *padder) keep(v, p *ir.Value) {
	d.padded[v] = p
	d.trail = append(d.trail, v)
}

func (d *padder) block(b *ir.Block) {
	out, trail := d.take(), len(d.trail)
	for _, op := range b.Ops {
		d.build.Origin = op.Origin
		d.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			for _, a := range r.Args {
				a.Sharding = d.fitting(a.Type, a.Sharding)
			}
			d.block(r)
		}
		if op.Kind == ir.DataFlowEdge && op.Result().Sharding != nil { // its operand may get more uses
			op.Kind, op.Attrs = ir.ShardingConstraint, ir.AttrsOf(ir.NamedAttr{Name: "sharding", Attr: op.Result().Sharding})
		}
		if !d.onPadded(op) {
			out = append(out, d.onTrue(op))
		}
		out = append(out, d.take()...)
	}
	b.Ops = append(out, d.take()...)
	if b != d.f.Body { // results may still want it
		for _, v := range d.trail[trail:] {
			delete(d.padded, v)
		}
		d.trail = d.trail[:trail]
	}
}

// onTrue is op, computing on values as they are.
func (d *padder) onTrue(op *ir.Op) *ir.Op {
	for _, v := range op.Results {
		v.Sharding = d.fitting(v.Type, v.Sharding)
	}
	if s, ok := op.Attrs.Get("out_sharding").(*ir.Sharding); ok {
		d.explicit(op, d.fitting(op.Result().Type, s))
	}
	for name, vs := range map[string][]*ir.Value{"in_shardings": op.Operands, "out_shardings": op.Results} {
		per, ok := op.Attrs.Get(name).(ir.PerValue)
		if !ok {
			continue
		}
		fit := slices.Clone(per)
		for i, s := range per {
			fit[i] = d.fitting(vs[i].Type, s)
		}
		op.Attrs.Set(name, fit)
	}
	return op
}

// onPadded emits op on padded values, if it has to do with any and can be, and
// reports whether it has.
func (d *padder) onPadded(op *ir.Op) bool {
	if !d.touchesPadded(op) || !computesPadded(op) || d.isSummed(op) {
		return false
	}
	rule := ir.FactorsOf(op)
	factors := d.factors(op, rule)
	if factors == nil {
		return false
	}
	in := slices.Clone(op.Operands)
	for i, v := range op.Operands {
		if !v.Type.IsTensor() {
			continue
		}
		t, s := d.stretched(v, rule.Operands[i], factors)
		in[i] = d.paddedTo(v, t, s)
		in[i] = d.filled(op, in[i], v.Type, rule, rule.Operands[i])
	}
	types := make([]*ir.Type, len(op.Results))
	for i, v := range op.Results {
		types[i], _ = d.stretched(v, rule.Results[i], factors)
	}
	attrs := op.Attrs
	if op.Kind == ir.Constant {
		attrs.Set("value", &ir.Literal{Type: types[0], Data: op.Literal("value").Data})
	}
	n := d.build.Emit(op.Kind, in, attrs, op.Regions, types)
	for i, v := range op.Results {
		r := n.Results[i]
		r.Name = v.Name
		_, r.Sharding = d.stretched(v, rule.Results[i], factors)
		d.sub[v.ID] = r
		if !r.Type.Equal(v.Type) {
			d.sub[v.ID] = d.unpadded(r, v.Type)
		}
	}
	return true
}

// isSummed reports whether an explicit collective combines what the devices have
// of the result of op, which therefore stays its operand.
func (d *padder) isSummed(op *ir.Op) bool {
	return slices.ContainsFunc(op.Results, func(v *ir.Value) bool { return len(d.combined[v.ID]) > 0 })
}

// touchesPadded reports whether a result of op, or an operand that nothing but
// padding keeps sharded, has axes that do not divide.
func (d *padder) touchesPadded(op *ir.Op) bool {
	if op.Kind != ir.ShardingConstraint && // which says itself how its result is sharded
		slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return d.padded[v] != nil }) {
		return true
	}
	return slices.ContainsFunc(op.Results, func(v *ir.Value) bool {
		return v.Type.IsTensor() && v.Sharding != nil && !d.dividing(v.Type, v.Sharding).Equal(v.Type)
	})
}

// computesPadded reports whether op can compute on padded values. The list is this
// pass's own: what may be at the end of a dimension follows from what filled puts
// there for the op, and any other op is computed on values as they are, which is
// right for it and costs a slice.
func computesPadded(op *ir.Op) bool {
	switch {
	case op.Kind.Has(ir.Collective), op.Kind == ir.Constant && !op.Literal("value").IsSplat(), op.Kind == ir.SdyConstant:
		return false
	case op.Kind == ir.Reduce:
		return len(op.Results) == 1 && ir.CombinerOf(op.Regions[0]) != ir.Invalid
	}
	return op.Kind.Has(ir.Elementwise) || op.Kind == ir.Transpose || op.Kind == ir.BroadcastInDim || op.Kind == ir.DotGeneral || op.Kind == ir.Convolution ||
		op.Kind == ir.ReduceWindow || op.Kind == ir.SelectAndScatter || op.Kind == ir.Constant || op.Kind == ir.Iota
}

// A stretch is a factor's size once it is padded, and along which axes it is
// sharded then.
type stretch struct {
	size int
	axes []ir.AxisRef
}

// factors are the sizes to compute op with; nil where it cannot be.
func (d *padder) factors(op *ir.Op, rule *ir.Factors) []stretch {
	if rule == nil {
		return nil
	}
	out := make([]stretch, len(rule.Sizes))
	for k, size := range rule.Sizes {
		out[k].size = size
	}
	ok := true
	see := func(t *ir.Type, s *ir.Sharding, dims [][]int) {
		for e, ks := range dims {
			if len(ks) > 1 {
				ok = false
				continue
			}
			n := d.mesh.RefsSize(s.Axes(e))
			if len(ks) == 0 || t.Shape[e] != rule.Sizes[ks[0]] {
				ok = ok && t.Shape[e]%n == 0
				continue
			}
			f := &out[ks[0]]
			if f.axes == nil && f.size%n != 0 {
				*f = stretch{(f.size + n - 1) / n * n, s.Axes(e)}
			}
			ok = ok && f.size%n == 0
		}
	}
	for range 2 { // what is seen last may stretch what was seen before
		for i, v := range op.Results {
			see(v.Type, v.Sharding, rule.Results[i])
		}
		for i, v := range op.Operands {
			if p := d.padded[v]; p != nil {
				see(v.Type, p.Sharding, rule.Operands[i])
			}
		}
	}
	for k, t := range rule.Types { // what is after the end must get into no window
		ok = ok && (out[k].axes == nil || t == ir.PassThrough || t == ir.Reduction)
	}
	for _, dims := range slices.Concat(rule.Operands, rule.Results) {
		for _, ks := range dims { // a factor inside a dimension has no end of its own
			ok = ok && (len(ks) < 2 || !slices.ContainsFunc(ks, func(k int) bool { return out[k].axes != nil }))
		}
	}
	if !ok {
		return nil
	}
	return out
}

// stretched is the type of v with padded factors, and its sharding then.
func (d *padder) stretched(v *ir.Value, dims [][]int, factors []stretch) (*ir.Type, *ir.Sharding) {
	s := v.Sharding.Clone()
	if p := d.padded[v]; p != nil {
		s = p.Sharding.Clone()
	}
	if s == nil || len(s.Dims) != len(dims) {
		s = ir.Replicated(d.mesh.Name, len(dims))
	}
	shape := slices.Clone(v.Type.Shape)
	for e, ks := range dims {
		if len(ks) != 1 || factors[ks[0]].axes == nil {
			continue
		}
		f := factors[ks[0]]
		shape[e] = f.size
		if f.size%d.mesh.RefsSize(s.Axes(e)) != 0 {
			s.Dims[e].Axes = nil
		}
		used := func(r ir.AxisRef) bool {
			return s.Uses(r) || layout.OverlapsAny(r, s.Replicated) || layout.OverlapsAny(r, s.Unreduced)
		}
		if len(s.Axes(e)) == 0 && !slices.ContainsFunc(f.axes, used) {
			s.Dims[e].Axes = f.axes
		}
	}
	return v.Type.WithShape(shape...), s
}

// filled is the operand v of op, which is padded from type t, with what changes
// no sum for the padding of dimensions that op sums over.
func (d *padder) filled(op *ir.Op, v *ir.Value, t *ir.Type, rule *ir.Factors, dims [][]int) *ir.Value {
	fill := ir.SplatOf(ir.Tensor(t.Elem), 0)
	if op.Kind == ir.Reduce {
		fill = facts.Neutral(ir.CombinerOf(op.Regions[0]), t.Elem)
	}
	b := &d.build
	for e, ks := range dims {
		if len(ks) != 1 || rule.Types[ks[0]] != ir.Reduction || v.Type.Shape[e] == t.Shape[e] {
			continue
		}
		index := b.Iota(v.Type.WithElem(ir.I32), e)
		size := b.Splat(index.Type, float64(t.Shape[e]))
		inside := b.Compare("LT", index, size)
		neutral := b.Const(fill)
		around := b.Broadcast(neutral, v.Type.Shape)
		x := b.Select(inside, v, around)
		neutral.Sharding = ir.Replicated(d.mesh.Name, 0)
		for _, r := range []*ir.Value{index, size, inside, around, x} {
			r.Sharding = v.Sharding
		}
		x.Name = v.Name
		v = x
	}
	return v
}
