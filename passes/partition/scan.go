package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// A reduction over windows that all begin before the dimension, or all end after
// it, is cumulative: of another device's shard a device needs what it reduces to,
// and not the elements. Each device reduces its shard, the results are gathered,
// one of each row per device, and what those of the devices before it reduce to
// becomes one element in front of the shard.

// cumulates tells a dimension of size n of which window k holds all elements up
// to k, 1, from one of which it holds all elements from k on, -1; 0 for others.
func (w *windowDim) cumulates(n int) int {
	switch plain := w.Stride == 1 && w.Base == 1 && w.Dilation == 1 && w.Size >= n && n > 1; {
	case plain && w.Low == w.Size-1 && w.High == 0:
		return 1
	case plain && w.High == w.Size-1 && w.Low == 0:
		return -1
	}
	return 0
}

// scans reports whether op can be computed along w from what shards reduce to.
// Its initial values stand for what is not there, so they must change nothing.
func (p *program) scans(op *ir.Op, w *windowDim) bool {
	if op.Kind != ir.ReduceWindow || w.cumulates(op.Operands[0].Type.Shape[w.in]) == 0 {
		return false
	}
	for i, r := range op.Results {
		if op.Operands[i].Type.Elem != r.Type.Elem {
			return false
		}
	}
	k := ir.CombinerOf(op.Regions[0])
	return k == ir.Invalid || k.Has(ir.Idempotent) || facts.IsNeutral(k, op.Operands[1])
}

// placeScan gives the operands of op the axes of the result along w, if fewer
// bytes move for a scan than for sections; it reports whether that is so.
func (p *chooser) placeScan(op *ir.Op, a *assignment, w *windowDim, sections int) bool {
	axes := a.results[0][w.out]
	bytes, more := 0, 0
	at := make([]layout.Layout, len(op.Results))
	for i := range at {
		v := op.Operands[i]
		at[i] = a.operands[i].Clone()
		at[i][w.in] = axes
		bytes += p.bytesTo(v, at[i])
		more += p.scanBytes(v.Type, at[i], w)
	}
	if bytes+more >= sections {
		return false
	}
	a.bytes += more
	for i := range at {
		a.operands[i] = at[i]
		a.halos = append(a.halos, windowHalo{operand: i, dim: w.in, scan: true})
	}
	return true
}

// scanBytes is how many bytes a device receives for what the shards of a tensor
// of type t and layout at reduce to along w.
func (p *program) scanBytes(t *ir.Type, at layout.Layout, w *windowDim) int {
	n := p.mesh.RefsSize(at[w.in])
	return (n - 1) * (layout.LayoutBytes(p.mesh, t, at) * n / t.Shape[w.in])
}

// scansStated reports whether op, with operands of the layouts that a says, is
// computed by a scan along w: it is where fewer bytes move for that than for the
// sections s, as [chooser.placeScan] has decided when the operands got these
// layouts.
func (p *program) scansStated(op *ir.Op, a *assignment, w *windowDim, s section) bool {
	scan, exchange := 0, 0
	for i := range op.Results {
		v, at := op.Operands[i], a.operands[i]
		if len(at[w.in]) == 0 {
			return false
		}
		h := p.halo(s, v.Type.Shape[w.in])
		if hops, _ := h.hops(); hops > maxHops {
			return true
		}
		scan += p.scanBytes(v.Type, at, w)
		exchange += p.haloBytes(h, v.Type, at)
	}
	return scan < exchange
}

// emitScan emits op with windows ws, along some of which it is cumulative and its
// operands are sharded.
func (p *localizer) emitScan(op *ir.Op, a *assignment, ws []windowDim, in []*ir.Value) []*ir.Value {
	shards := p.shardTypes(op, a)
	shape := slices.Clone(shards[0].Shape)
	start, limit := make([]int, len(ws)), slices.Clone(shape)
	for k := range ws {
		w := &ws[k]
		if h := slices.IndexFunc(a.halos, func(h windowHalo) bool { return h.scan && h.dim == w.in }); h < 0 {
			continue
		}
		in = p.scanned(op, a, w, in)
		start[w.out] = min(w.Low, 1)
		limit[w.out] += start[w.out]
		shape[w.out]++
	}
	types := make([]*ir.Type, len(shards))
	for i, t := range shards {
		types[i] = t.WithShape(shape...)
	}
	out := slices.Clone(p.emitTyped(op, in, windowRowOf(op).attrs(op, in, types[0], ws), types))
	for i, v := range out {
		out[i] = p.build.Slice(v, start, limit).Named(v.Name)
	}
	return out
}

// scanned is the operands of op, a reduce_window that is cumulative along w, with
// what the shards of the devices before this one reduce to in front of the shard,
// or what those of the devices after it do behind. The windows of that are
// cumulative again.
func (p *localizer) scanned(op *ir.Op, a *assignment, w *windowDim, in []*ir.Value) []*ir.Value {
	n, d, axes := len(op.Results), w.in, a.results[0][w.out]
	in = slices.Clone(in)
	all := slices.Clone(in)
	for i, v := range p.folded(op, in, d) {
		t := v.Type.WithShape(v.Type.Shape...)
		t.Shape[d] = p.mesh.RefsSize(axes)
		v = p.collective(ir.AllGather, v, t, axes, nil, ir.AttrsOf(ir.NamedAttr{Name: "all_gather_dim", Attr: ir.I64Attr(d)}))
		all[i] = p.otherShards(v, d, axes, w.cumulates(op.Operands[i].Type.Shape[d]), in[n+i])
	}
	part := in[0].Type.Shape[d]
	before := w.cumulates(op.Operands[0].Type.Shape[d]) > 0
	for i, v := range p.folded(op, all, d) {
		if before {
			in[i] = p.build.Concat(d, v, in[i])
		} else {
			in[i] = p.build.Concat(d, in[i], v)
		}
	}
	w.Window = ir.Window{Size: part + 1, Stride: 1, Base: 1, Dilation: 1}
	if before {
		w.Low = part
	} else {
		w.High = part
	}
	return in
}

// folded reduces operands of op, with its initial values and its region, along
// d to one element.
func (p *localizer) folded(op *ir.Op, in []*ir.Value, d int) []*ir.Value {
	b := &p.build
	rs := b.Emit(ir.Reduce, in, ir.AttrsOf(ir.NamedAttr{Name: "dimensions", Attr: ir.Ints{d}}), p.copyRegions(op), nil).Results
	out := make([]*ir.Value, len(rs))
	for i, v := range rs {
		out[i] = b.Reshape(v, slices.Insert(slices.Clone(v.Type.Shape), d, 1)...)
	}
	return out
}

// otherShards is v, which has an element per device along d, with other for
// those that are not before this one, or, of sign -1, after it.
func (p *localizer) otherShards(v *ir.Value, d int, axes []ir.AxisRef, sign int, other *ir.Value) *ir.Value {
	b := &p.build
	index := ir.Tensor(ir.I32, v.Type.Shape[d])
	direction := "LT"
	if sign < 0 {
		direction = "GT"
	}
	there := b.Compare(direction, b.Iota(index, 0), b.Broadcast(p.coord(axes), index.Shape))
	return b.Select(b.Broadcast(there, v.Type.Shape, d), v, b.Broadcast(other, v.Type.Shape))
}
