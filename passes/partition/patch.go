package partition

import (
	"ppc/ir"
	"ppc/passes/layout"
)

// A pieceGroup is pieces that a device takes from the same elements: they have the
// same source and distance, or the same scalar. Of a rotation, where one piece's
// distance is the other's less the length of the dimension, the permute wraps around.
type pieceGroup struct {
	pieces []piece
	src    *ir.Value
	off    int
	wrap   bool
	at     layout.Layout // in which src is read
}

// groupPieces sorts pieces of dimension d, of the given size, into groups,
// scalars first.
func groupPieces(pieces []piece, d, size int) []pieceGroup {
	var scalars, moved []pieceGroup
next:
	for _, c := range pieces {
		groups := &moved
		if c.src == nil {
			groups = &scalars
		}
		for i := range *groups {
			g := &(*groups)[i]
			switch {
			case c.src == nil && g.pieces[0].pad == c.pad, c.src != nil && g.src == c.src && g.off == c.off:
				g.pieces = append(g.pieces, c)
				continue next
			case c.src != nil && g.src == c.src && (g.off-c.off)%size == 0 && c.src.Type.Shape[d] == size:
				g.pieces = append(g.pieces, c)
				g.wrap = true
				continue next
			}
		}
		*groups = append(*groups, pieceGroup{pieces: []piece{c}, src: c.src, off: c.off})
	}
	return append(scalars, moved...)
}

// section is what each device along axes, with a shard of so many elements,
// needs of the source.
func (g *pieceGroup) section(axes []ir.AxisRef, shard int) section {
	s := section{axes: axes, mul: shard, add: g.off, div: 1, size: shard, wrap: g.wrap}
	for _, c := range g.pieces {
		s.need = append(s.need, interval{c.lo + g.off, c.hi + g.off})
	}
	return s
}

// A patchwork computes one shard of a concatenation along a sharded dimension: this
// device has elements c*shard to (c+1)*shard of it, c its
// coordinate along axes.
type patchwork struct {
	p     *localizer
	op    *ir.Op
	d     int
	axes  []ir.AxisRef
	shard int
	out   *ir.Type
}

// piecesOf are the ranges of the concatenation op: what its operands are slices
// or broadcast scalars of.
func piecesOf(op *ir.Op, d int) []piece {
	var out []piece
	at := 0
	for _, x := range op.Operands {
		n := x.Type.Shape[d]
		c := piece{lo: at, hi: at + n, src: x, off: -at}
		switch def := x.Def; {
		case isPiece(x, d) && def.Kind == ir.Slice:
			c.src, c.off = def.Operands[0], def.Ints("start_indices")[d]-at
		case isPiece(x, d):
			c.src, c.off, c.pad = nil, 0, def.Operands[0]
		}
		out = append(out, c)
		at += n
	}
	return out
}

// isPiece reports whether v is a slice along d alone, or a broadcast scalar.
func isPiece(v *ir.Value, d int) bool {
	op := v.Def
	switch {
	case op == nil:
		return false
	case op.Kind == ir.BroadcastInDim:
		return op.Operands[0].Type.Rank() == 0
	case op.Kind != ir.Slice || op.Ints("strides")[d] != 1:
		return false
	}
	for e, n := range op.Operands[0].Type.Shape {
		if e != d && n != v.Type.Shape[e] {
			return false
		}
	}
	return true
}

// emitConcatenate computes a concatenation along a sharded dimension from the
// sources of its pieces.
func (p *localizer) emitConcatenate(op *ir.Op, a *assignment) *ir.Value {
	d := op.Int("dimension")
	w := &patchwork{p: p, op: op, d: d, axes: a.results[0][d], out: p.local(op.Result().Type, a.results[0])}
	w.shard = w.out.Shape[d]
	groups := groupPieces(piecesOf(op, d), d, op.Result().Type.Shape[d])
	if v := w.zeroFilled(groups); v != nil {
		return v
	}
	var out *ir.Value
	for i := range groups {
		g := &groups[i]
		v := w.all(g)
		if out != nil {
			v = p.build.Select(w.mask(g.pieces, v.Type), v, out)
		}
		out = v
	}
	return out
}

// all makes this device's shard as if every element were of g.
func (w *patchwork) all(g *pieceGroup) *ir.Value {
	p := w.p
	if g.src == nil {
		return p.build.Broadcast(p.value(g.pieces[0].pad), w.out.Shape)
	}
	s := g.section(w.axes, w.shard)
	return p.section(s, p.statedHalo(s, g.src, w.d), p.value(g.src), w.d, nil)
}

// zeroFilled is the result where it is one source, shifted, and zeros at the end that
// it is shifted from: permutes leave zeros on devices that receive nothing. Otherwise
// nil.
func (w *patchwork) zeroFilled(groups []pieceGroup) *ir.Value {
	if len(groups) != 2 || groups[0].src != nil || groups[1].wrap || !isZero(groups[0].pieces[0].pad) {
		return nil
	}
	g := &groups[1]
	if g.src == nil || len(g.pieces) != 1 {
		return nil
	}
	c, size := g.pieces[0], g.src.Type.Shape[w.d]
	if c.lo != max(0, -c.off) || c.hi != min(w.op.Result().Type.Shape[w.d], size-c.off) {
		return nil
	}
	return w.all(g)
}

// mask tells the elements of pieces from the others.
func (w *patchwork) mask(pieces []piece, t *ir.Type) *ir.Value {
	b, size := &w.p.build, w.op.Result().Type.Shape[w.d]
	index := ir.Tensor(ir.I32, w.shard)
	place := b.Add(b.Iota(index, 0), b.Broadcast(w.p.offset(w.axes, w.shard), []int{w.shard}))
	var mask *ir.Value
	for _, c := range pieces {
		var m *ir.Value
		and := func(direction string, bound int) {
			n := b.Compare(direction, place, b.Splat(index, float64(bound)))
			if m != nil {
				n = b.Binary(ir.And, m, n)
			}
			m = n
		}
		if c.lo > 0 || c.hi == size {
			and("GE", c.lo)
		}
		if c.hi < size {
			and("LT", c.hi)
		}
		if mask != nil {
			m = b.Binary(ir.Or, mask, m)
		}
		mask = m
	}
	return b.Broadcast(mask, t.Shape, w.d)
}

// onlyPieces says, by ID, which values are pieces of concatenations along sharded
// dimensions and nothing else: those read their sources.
func (p *localizer) onlyPieces() []bool {
	pieces, others := make([]bool, p.f.NumIDs()), make([]bool, p.f.NumIDs())
	p.f.Body.Walk(func(op *ir.Op) {
		d := op.Int("dimension")
		joins := op.Kind == ir.Concatenate && len(p.layoutOf(op.Result())[d]) > 0
		for _, v := range op.Operands {
			if joins && isPiece(v, d) {
				pieces[v.ID] = true
			} else {
				others[v.ID] = true
			}
		}
	})
	for id, other := range others {
		pieces[id] = pieces[id] && !other
	}
	return pieces
}
