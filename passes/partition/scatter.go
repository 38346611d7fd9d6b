package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// A select_and_scatter may be sharded along its windows, too: each device computes
// all windows that reach into its shard, and keeps its shard of what they
// scatter. Where windows reach into padding, copies of the first or last element
// stand for it, which a window selects where it would select that element, and
// what is scattered to copies is added to the element.

// A scatterSection is what each device needs of a dimension of the operand and of
// the source of a select_and_scatter; below and above say whether windows reach
// into padding on either side.
type scatterSection struct {
	dim             int
	operand, source section
	below, above    bool
}

// scatterSections is what devices along axes need, where factor k of the rule is
// sharded along them; false where that is not the same for all. Each window must have
// an element, and the op by which things are scattered must be one with a
// number that changes nothing, for elements that no window has.
//
// The windows that reach into device c's shard, c*shard to (c+1)*shard of the
// operand, are those from (c*shard + low - size + 1) / stride, rounded up, to
// ((c+1)*shard + low - 1) / stride, rounded down.
func (p *program) scatterSections(op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) (scatterSection, bool) {
	d := slices.IndexFunc(rule.Results[0], func(ks []int) bool { return slices.Equal(ks, []int{k}) })
	if d < 0 || ir.CombinerOf(op.Regions[1]) == ir.Invalid {
		return scatterSection{}, false
	}
	w, n := op.Windows()[d], p.mesh.RefsSize(axes)
	in, source := op.Operands[0].Type.Shape[d], op.Operands[1].Type.Shape[d]
	shard := in / n
	inside := 0 <= w.Low && w.Low < w.Size && (source-1)*w.Stride-w.Low < in
	if !inside || in%n != 0 || source == 0 || shard%w.Stride != 0 {
		return scatterSection{}, false
	}
	first, last := -floorDiv(w.Size-1-w.Low, w.Stride), (shard+w.Low-1)/w.Stride
	begin, count := first*w.Stride-w.Low, last-first+1
	return scatterSection{
		dim:     d,
		operand: section{axes: axes, mul: shard, add: begin, div: 1, size: max((count-1)*w.Stride+w.Size, shard-begin)},
		source:  section{axes: axes, mul: shard / w.Stride, add: first, div: 1, size: count},
		below:   w.Low > 0,
		above:   (source-1)*w.Stride-w.Low+w.Size > in,
	}, true
}

func mayShardScatter(p *program, op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) bool {
	if rule.Types[k] != ir.Permutation {
		return shardable(op, rule.Types[k])
	}
	_, ok := p.scatterSections(op, rule, k, axes)
	return ok
}

// allScatterSections are what op, computed as a says, needs along each sharded
// dimension.
func (p *program) allScatterSections(op *ir.Op, a *assignment) []scatterSection {
	var out []scatterSection
	for k, axes := range a.factors {
		if len(axes) == 0 || a.rule.Types[k] != ir.Permutation {
			continue
		}
		if c, ok := p.scatterSections(op, a.rule, k, axes); ok {
			out = append(out, c)
		}
	}
	return out
}

// placeScatter gives the operand and the source of op the layouts in which the
// fewest bytes move for what windows reach into.
func (p *chooser) placeScatter(op *ir.Op, a *assignment) {
	for _, c := range p.allScatterSections(op, a) {
		p.placeSection(op, a, 0, c.dim, c.operand)
		p.placeSection(op, a, 1, c.dim, c.source)
	}
}

// scatterHalos are the halos of op, whose layouts are as a says.
func scatterHalos(p *program, op *ir.Op, a *assignment) []windowHalo {
	var out []windowHalo
	for _, c := range p.allScatterSections(op, a) {
		out = append(out,
			windowHalo{operand: 0, dim: c.dim, halo: p.statedHalo(c.operand, op.Operands[0], c.dim)},
			windowHalo{operand: 1, dim: c.dim, halo: p.statedHalo(c.source, op.Operands[1], c.dim)})
	}
	return out
}

// emitSelectAndScatter emits a select_and_scatter over what its windows reach into.
// Windows that are not there scatter what changes nothing.
func (p *localizer) emitSelectAndScatter(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	all := p.allScatterSections(op, a)
	if len(all) == 0 {
		return p.emitAs(op, a, in, op.Attrs)
	}
	b := &p.build
	in = slices.Clone(in)
	out := p.local(op.Result().Type, a.results[0])
	k := ir.CombinerOf(op.Regions[1])
	nothing, init := b.Const(facts.Neutral(k, out.Elem)), in[2]
	low, high := op.Padding(out.Rank())
	for _, c := range all {
		in[0] = p.section(c.operand, a.haloOf(0, c.dim).halo, in[0], c.dim, nil)
		in[0] = p.edges(c, in[0], op.Operands[0].Type.Shape[c.dim])
		in[1] = p.section(c.source, a.haloOf(1, c.dim).halo, in[1], c.dim, nothing)
		low[c.dim], high[c.dim] = 0, 0
	}
	in[2] = nothing
	v := p.emitTyped(op, in, with(op.Attrs, "padding", facts.PaddingAttr(low, high)), []*ir.Type{out.WithShape(in[0].Type.Shape...)})[0]
	for _, c := range all {
		v = p.shardOf(c, v, out.Shape[c.dim], k)
	}
	if !facts.IsNeutral(k, op.Operands[2]) {
		v = b.Binary(k, b.Broadcast(init, v.Type.Shape), v)
	}
	return []*ir.Value{v.Named(op.Result().Name)}
}

// edges is v, this device's section of the operand, of a dimension of the given
// size, with copies of the first and last elements in place of padding.
func (p *localizer) edges(c scatterSection, v *ir.Value, size int) *ir.Value {
	b, s, d := &p.build, &c.operand, c.dim
	index := ir.Tensor(ir.I32, s.size)
	place := b.Add(b.Iota(index, 0), b.Broadcast(s.begin(p, 0, 0), index.Shape))
	edge := func(is bool, direction string, element int) {
		if !is {
			return
		}
		at := b.Sub(b.I32(element), s.begin(p, 0, 0))
		outside := b.Compare(direction, place, b.Splat(index, float64(element)))
		v = b.Select(b.Broadcast(outside, v.Type.Shape, d), p.repeated(p.sliceAt(v, d, at, 1), d, s.size), v)
	}
	edge(c.below, "LT", 0)
	edge(c.above, "GT", size-1)
	return v
}

// repeated is v, which has one element along d, size times.
func (p *localizer) repeated(v *ir.Value, d, size int) *ir.Value {
	shape := slices.Clone(v.Type.Shape)
	shape[d] = size
	dims := make([]int, len(shape))
	for e := range dims {
		dims[e] = e
	}
	return p.build.Broadcast(v, shape, dims...)
}

// shardOf is what of v, scattered to this device's section, is in its shard, of so
// many elements: the first element of all has what is in front of it, too, and
// the last what is behind.
func (p *localizer) shardOf(c scatterSection, v *ir.Value, size int, k ir.Kind) *ir.Value {
	d, n := c.dim, p.mesh.RefsSize(c.operand.axes)
	from, total := -c.operand.add, v.Type.Shape[d]
	out := p.build.SliceDim(v, d, from, from+size)
	if c.below && from > 0 {
		out = p.gain(out, p.build.SliceDim(v, d, 0, from), d, 0, 0, c.operand.axes, k)
	}
	if c.above && from+size < total {
		out = p.gain(out, p.build.SliceDim(v, d, from+size, total), d, size-1, n-1, c.operand.axes, k)
	}
	return out
}

// gain is v with all of more, reduced along d by k, combined into its element
// at, on the device of that coordinate.
func (p *localizer) gain(v, more *ir.Value, d, at, device int, axes []ir.AxisRef, k ir.Kind) *ir.Value {
	b := &p.build
	nothing := b.Const(facts.Neutral(k, v.Type.Elem))
	row := b.Reduce(k, more, nothing, d)
	row = b.Reshape(row, slices.Insert(slices.Clone(row.Type.Shape), d, 1)...)
	here := b.Compare("EQ", p.coord(axes), b.I32(device))
	row = b.Select(b.Broadcast(here, row.Type.Shape), row, b.Broadcast(nothing, row.Type.Shape))
	return b.Binary(k, v, p.padded(row, d, at, v.Type.Shape[d]-1-at, nothing))
}
