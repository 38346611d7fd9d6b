package passes

import (
	"slices"

	"ppc/ir"
)

// A select_and_scatter may be cut along its windows, too: each device computes
// what comes of all windows that reach into its part, and keeps its part.

// A scatterCut is what each device needs of a dimension of the operand and of
// the source of a select_and_scatter.
type scatterCut struct {
	dim             int
	operand, source section
}

// cutScatter is what devices along axes need, where factor k of the rule is cut
// along them; false where that is not the same for all. A window must not reach
// into padding, since what stands there could be selected, and the elements
// that no window has must be those that change nothing when they are scattered.
//
// The windows that reach into device c's part, c*part to (c+1)*part of the
// operand, are those from (c*part - reach + 1) / stride to (c+1)*part / stride.
func (p *partitioner) cutScatter(op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) (scatterCut, bool) {
	d := slices.IndexFunc(rule.Results[0], func(ks []int) bool { return slices.Equal(ks, []int{k}) })
	if d < 0 || !slices.Equal(rule.Operands[1][d], []int{k}) || ir.CombinerOf(op.Regions[1]) == ir.Invalid {
		return scatterCut{}, false
	}
	w, n := op.Windows()[d], p.mesh.RefsSize(axes)
	in, source := op.Operands[0].Type.Shape[d], op.Operands[1].Type.Shape[d]
	part := in / n
	inside := w.Low == 0 && (source-1)*w.Stride+w.Size <= in
	if !inside || in%n != 0 || source == 0 || source%n != 0 || part%w.Stride != 0 {
		return scatterCut{}, false
	}
	first := -floorDiv(w.Size-1, w.Stride)
	count := part/w.Stride - first
	c := scatterCut{
		dim:     d,
		operand: section{axes: axes, mul: part, add: first * w.Stride, div: 1, size: max((count-1)*w.Stride+w.Size, part-first*w.Stride)},
		source:  section{axes: axes, mul: part / w.Stride, add: first, div: 1, size: count},
	}
	hops, _ := p.halo(c.operand, in).hops()
	more, _ := p.halo(c.source, source).hops()
	return c, max(hops, more) <= maxHops
}

// emitScatters emits a select_and_scatter over what its windows reach into.
// Windows that are not there scatter what changes nothing.
func (p *partitioner) emitScatters(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	b := &p.build
	in = slices.Clone(in)
	out := p.local(op.Result().Type, a.results[0])
	start, limit := make([]int, out.Rank()), slices.Clone(out.Shape)
	low, high := op.Padding(out.Rank())
	some := false
	for k, axes := range a.factors {
		if len(axes) == 0 || a.rule.Types[k] != ir.Permutation {
			continue
		}
		c, _ := p.cutScatter(op, a.rule, k, axes)
		in[0] = p.fetch(p.halo(c.operand, op.Operands[0].Type.Shape[c.dim]), in[0], c.dim, nil)
		in[1] = p.fetch(p.halo(c.source, op.Operands[1].Type.Shape[c.dim]), in[1], c.dim, b.Const(neutral(ir.CombinerOf(op.Regions[1]), in[1].Type.Elem)))
		start[c.dim] = -c.operand.add
		limit[c.dim] += start[c.dim]
		high[c.dim], some = 0, true
	}
	if !some {
		return p.emitAs(op, a, in, op.Attrs)
	}
	n := b.Emit(op.Kind, in, with(op.Attrs, "padding", paddingAttr(low, high)), p.copyRegions(op), []*ir.Type{out.WithShape(in[0].Type.Shape...)}).Result()
	r := n
	if !slices.Equal(n.Type.Shape, out.Shape) {
		r = b.Slice(n, start, limit)
	}
	r.Name = op.Result().Name
	return []*ir.Value{r}
}
