package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// A slice, pad or concatenation along a dimension that is cut, or an update at
// a known place, does not say by itself what must go from device to device: concat(x[7:8], x[0:7]) is one
// permute, but neither slice can be cut in eight. So such a value waits until
// one that depends on it is wanted as cut; then the whole chain is looked at
// as pieces of its sources, each moved by some distance, and each move becomes
// the permutes it needs.

// waits makes the result of op wait if op moves along a cut dimension, and
// reports whether it does. If the result itself is cut there, it is made now.
func (p *partitioner) waits(op *ir.Op) bool {
	dims := movedDims(op)
	cut := slices.DeleteFunc(slices.Clone(dims), func(d int) bool { return !p.movesCut(op, d) })
	if len(cut) == 0 {
		return false
	}
	if len(dims) > 1 {
		p.splitMove(op, dims)
		dims = dims[len(dims)-1:]
		if !p.movesCut(op, dims[0]) {
			return false
		}
	}
	v := op.Result()
	p.waiting[v.ID] = dims[0] + 1
	if at := p.layoutOf(v); len(at[dims[0]]) > 0 {
		p.get(v, at)
	}
	return true
}

// movedDims are the dimensions along which op moves elements by distances
// that are the same everywhere; none where it leaves some out, or puts numbers
// between them.
func movedDims(op *ir.Op) []int {
	var steps []int
	switch op.Kind {
	case ir.Concatenate:
		return []int{op.Int("dimension")}
	case ir.Slice:
		steps = op.Ints("strides")
	case ir.Pad:
		for _, n := range op.Ints("interior_padding") {
			steps = append(steps, n+1)
		}
	case ir.DynamicUpdateSlice:
		return updatedDims(op)
	default:
		return nil
	}
	var dims []int
	rule := ir.FactorsOf(op)
	for d, ks := range rule.Results[0] {
		if rule.Types[ks[0]] != ir.Permutation {
			continue
		}
		if steps[d] != 1 {
			return nil
		}
		dims = append(dims, d)
	}
	return dims
}

// updatedDims is the dimension in which the update of op, a
// dynamic_update_slice, is smaller than what it goes into, if that is one and
// the place is known.
func updatedDims(op *ir.Op) []int {
	var dims []int
	for d, n := range op.Operands[1].Type.Shape {
		if n < op.Result().Type.Shape[d] {
			dims = append(dims, d)
		}
	}
	if len(dims) != 1 || facts.Constant(op.Operands[2+dims[0]]) == nil {
		return nil
	}
	return dims
}

// updateStart is where the update of op begins in dimension d, which is known.
func updateStart(op *ir.Op, d int) int {
	last := op.Result().Type.Shape[d] - op.Operands[1].Type.Shape[d]
	return min(max(facts.Constant(op.Operands[2+d]).Index(0), 0), last)
}

// movesCut reports whether an operand or the result of op is cut along d, or
// waits to be. An update goes, whole, into any part that it falls into.
func (p *partitioner) movesCut(op *ir.Op, d int) bool {
	operands := op.Operands
	if op.Kind == ir.DynamicUpdateSlice {
		operands = operands[1:2]
	}
	for _, v := range operands {
		if v.Type.Rank() > d && (p.waiting[v.ID] == d+1 || !p.free[v.ID] && len(p.layoutOf(v)[d]) > 0) {
			return true
		}
	}
	return op.Kind != ir.DynamicUpdateSlice && len(p.layoutOf(op.Result())[d]) > 0
}

// splitMove makes op, a slice or a pad, move along the last of dims only, by
// new ops before it for the others.
func (p *partitioner) splitMove(op *ir.Op, dims []int) {
	x, attrs, last := op.Operands[0], op.Attrs, len(dims)-1
	for _, d := range dims[:last] {
		shape := slices.Clone(x.Type.Shape)
		shape[d] = op.Result().Type.Shape[d]
		step := &ir.Op{Kind: op.Kind, Operands: slices.Clone(op.Operands), Attrs: moveOnly(attrs, d, x.Type.Shape), Origin: op.Origin}
		step.Operands[0] = x
		v := p.f.NewValue(x.Type.WithShape(shape...), "")
		v.Def, v.Sharding = step, x.Sharding.Clone()
		if v.Sharding != nil && shape[d]%p.mesh.RefsSize(v.Sharding.Axes(d)) != 0 {
			v.Sharding.Dims[d].Axes = nil
		}
		step.Results = []*ir.Value{v}
		p.grow(int(v.ID) + 1)
		if !p.waits(step) {
			p.op(step)
		}
		x = v
	}
	whole, operands := op.Attrs, op.Operands
	p.undo = append(p.undo, func() { op.Attrs, op.Operands = whole, operands })
	op.Operands = slices.Clone(op.Operands)
	op.Operands[0] = x
	op.Attrs = moveOnly(attrs, dims[last], x.Type.Shape)
}

// moveOnly is the attributes of a slice or a pad that take every dimension
// but d whole; shape is the operand's.
func moveOnly(attrs ir.Attrs, d int, shape []int) ir.Attrs {
	keep := func(name string, whole func(d int) int) {
		if !attrs.Has(name) {
			return
		}
		list := slices.Clone(attrs.Ints(name))
		for e := range list {
			if e != d {
				list[e] = whole(e)
			}
		}
		attrs.Set(name, ir.Ints(list))
	}
	zero := func(int) int { return 0 }
	keep("start_indices", zero)
	keep("limit_indices", func(e int) int { return shape[e] })
	keep("edge_padding_low", zero)
	keep("edge_padding_high", zero)
	return attrs
}

// grow makes room for values with IDs below n.
func (p *partitioner) grow(n int) {
	for len(p.copies) < n {
		p.copies, p.free, p.waiting = append(p.copies, nil), append(p.free, false), append(p.waiting, 0)
	}
}

// makeMoved makes a value that waits.
func (p *partitioner) makeMoved(v *ir.Value, at layout.Layout) *ir.Value {
	d := p.waiting[v.ID] - 1
	if len(at[d]) > 0 {
		pieces := p.pieces(v, d)
		if p.anyCut(pieces, d) {
			if r := p.patch(v, at, d, pieces); r != nil {
				return r
			}
		}
	}
	return p.makeWhole(v, at)
}

// anyCut reports whether a source of pieces is cut along d.
func (p *partitioner) anyCut(pieces []piece, d int) bool {
	return slices.ContainsFunc(pieces, func(c piece) bool {
		if c.src == nil || p.free[c.src.ID] {
			return false
		}
		if len(p.copies[c.src.ID]) == 0 {
			return len(p.layoutOf(c.src)[d]) > 0
		}
		return !slices.ContainsFunc(p.copies[c.src.ID], func(v valueCopy) bool { return len(v.at[d]) == 0 })
	})
}

// makeWhole makes v from operands that are whole along the moved dimension.
func (p *partitioner) makeWhole(v *ir.Value, at layout.Layout) *ir.Value {
	op := v.Def
	a := p.choose(op, []layout.Layout{at})
	in := make([]*ir.Value, len(op.Operands))
	for i, x := range op.Operands {
		p.warnWhole(op, a, i)
		in[i] = p.get(x, a.operands[i])
	}
	return p.reshard(p.emit(op, a, in)[0], v.Type, a.results[0], at)
}

// A piece is a stretch of a dimension: elements lo to hi are those of src that
// stand off further on, or, without src, all the number pad.
type piece struct {
	lo, hi int
	src    *ir.Value
	off    int
	pad    *ir.Value
}

// pieces are the stretches of dimension d of v, in order, without gaps.
func (p *partitioner) pieces(v *ir.Value, d int) []piece {
	if p.waiting[v.ID] != d+1 {
		return []piece{{hi: v.Type.Shape[d], src: v}}
	}
	op, n := v.Def, v.Type.Shape[d]
	switch op.Kind {
	case ir.Slice:
		return clip(p.pieces(op.Operands[0], d), -op.Ints("start_indices")[d], n)
	case ir.Pad:
		low, size := op.Ints("edge_padding_low")[d], op.Operands[0].Type.Shape[d]
		out := clip([]piece{{hi: low, pad: op.Operands[1]}}, 0, n)
		out = append(out, clip(p.pieces(op.Operands[0], d), low, n)...)
		return append(out, clip([]piece{{lo: low + size, hi: n, pad: op.Operands[1]}}, 0, n)...)
	case ir.DynamicUpdateSlice:
		start, size, old := updateStart(op, d), op.Operands[1].Type.Shape[d], p.pieces(op.Operands[0], d)
		out := clip(old, 0, start)
		out = append(out, clip(p.pieces(op.Operands[1], d), start, start+size)...)
		for _, c := range clip(old, 0, n) {
			if c.lo = max(c.lo, start+size); c.lo < c.hi {
				out = append(out, c)
			}
		}
		return out
	}
	var out []piece
	at := 0
	for _, x := range op.Operands {
		out = append(out, clip(p.pieces(x, d), at, n)...)
		at += x.Type.Shape[d]
	}
	return out
}

// clip moves pieces by some distance and keeps what is then in 0 to n.
func clip(pieces []piece, by, n int) []piece {
	var out []piece
	for _, c := range pieces {
		c.lo, c.hi, c.off = max(c.lo+by, 0), min(c.hi+by, n), c.off-by
		if c.lo < c.hi {
			out = append(out, c)
		}
	}
	return out
}
