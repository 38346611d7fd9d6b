package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// A patchwork is the making of one tensor from pieces along a cut dimension:
// this device has elements c*part to (c+1)*part of them, c its coordinate.
type patchwork struct {
	p    *partitioner
	d    int
	axes []ir.AxisRef // along which d is cut
	n    int          // devices along them
	part int
	at   layout.Layout
}

// patch makes v, cut along d, from its pieces. It returns nil where a source
// would be gathered for that: there may be another way to compute the whole.
func (p *partitioner) patch(v *ir.Value, at layout.Layout, d int, pieces []piece) *ir.Value {
	for e := range at { // what else the chain moves along has to be whole
		if e != d && len(at[e]) > 0 && p.chainMoves(v, d, e) {
			return nil
		}
	}
	w := &patchwork{p: p, d: d, axes: at[d], n: p.mesh.RefsSize(at[d]), at: at}
	w.part = v.Type.Shape[d] / w.n
	if w.part == 0 {
		return nil
	}
	groups := w.group(v, pieces)
	for i := range groups {
		g := &groups[i]
		if g.src == nil {
			continue
		}
		g.section = w.section(g)
		var bytes int
		if g.at, g.halo, bytes = p.source(g.src, at, d, g.section); g.halo == nil && bytes > 0 {
			return nil
		}
	}
	if b := w.zeroFilled(v, groups); b != nil {
		return b
	}
	var out *ir.Value
	for i := range groups {
		g := &groups[i]
		block := w.block(v, g)
		if out != nil {
			block = p.build.Select(w.mask(g.pieces, v.Type.Shape[d], block.Type), block, out)
		}
		out = block
	}
	return out
}

// section is what g needs of its source.
func (w *patchwork) section(g *pieceGroup) section {
	s := section{axes: w.axes, mul: w.part, add: g.off, div: 1, size: w.part, wrap: g.wrap}
	for _, c := range g.pieces {
		s.need = append(s.need, interval{c.lo + g.off, c.hi + g.off})
	}
	return s
}

// source is how the value v best lies, with or without the axes of s in
// dimension d, so that each device gets its section of that, where the others
// lie as at says; the halo is nil where d is whole. The bytes are what has to
// be moved for it.
func (p *partitioner) source(v *ir.Value, at layout.Layout, d int, s section) (layout.Layout, *halo, int) {
	whole := at.Clone()
	whole[d] = nil
	least := p.moved(v, whole)
	size := v.Type.Shape[d]
	if size == 0 || size%p.mesh.RefsSize(s.axes) != 0 {
		return whole, nil, least
	}
	cut := at.Clone()
	cut[d] = s.axes
	h := p.halo(s, size)
	hops, rows := h.hops()
	bytes := p.moved(v, cut) + rows*(layout.LayoutBytes(p.mesh, v.Type, cut)/h.part)
	if !s.wrap && (hops > maxHops || bytes > least) {
		return whole, nil, least
	}
	return cut, h, bytes
}

// chainMoves reports whether an op between v and its sources along d moves
// along e too.
func (p *partitioner) chainMoves(v *ir.Value, d, e int) bool {
	if p.waiting[v.ID] != d+1 {
		return false
	}
	if slices.Contains(movedDims(v.Def), e) {
		return true
	}
	return slices.ContainsFunc(v.Def.Operands, func(x *ir.Value) bool { return p.chainMoves(x, d, e) })
}

// A pieceGroup is pieces that one block of elements serves: they have the same
// source and distance, or the same number. Of a rotation, where one piece's
// distance is the other's less the whole length, the permute wraps around.
type pieceGroup struct {
	pieces []piece
	src    *ir.Value
	off    int
	wrap   bool

	section section       // what it needs of src
	at      layout.Layout // how src lies for that
	halo    *halo         // nil where it is whole
}

// group sorts pieces into groups, numbers first.
func (w *patchwork) group(v *ir.Value, pieces []piece) []pieceGroup {
	size := v.Type.Shape[w.d]
	var numbers, moved []pieceGroup
next:
	for _, c := range pieces {
		groups := &moved
		if c.src == nil {
			groups = &numbers
		}
		for i := range *groups {
			g := &(*groups)[i]
			switch {
			case c.src == nil && g.pieces[0].pad == c.pad, c.src != nil && g.src == c.src && g.off == c.off:
				g.pieces = append(g.pieces, c)
				continue next
			case c.src != nil && g.src == c.src && (g.off-c.off)%size == 0 && c.src.Type.Shape[w.d] == size:
				g.pieces = append(g.pieces, c)
				g.wrap = true
				continue next
			}
		}
		*groups = append(*groups, pieceGroup{pieces: []piece{c}, src: c.src, off: c.off})
	}
	return append(numbers, moved...)
}

// block makes this device's part of v as if every element were as the pieces
// of g say.
func (w *patchwork) block(v *ir.Value, g *pieceGroup) *ir.Value {
	p, b := w.p, &w.p.build
	if g.src == nil {
		return b.Broadcast(p.get(g.pieces[0].pad, layout.Layout{}), p.local(v.Type, w.at).Shape)
	}
	return p.section(g.section, g.halo, p.get(g.src, g.at), w.d, nil)
}

// zeroFilled is v where it is one source moved and zeros for all that has
// moved out: permutes leave zeros where nobody sends. Otherwise nil.
func (w *patchwork) zeroFilled(v *ir.Value, groups []pieceGroup) *ir.Value {
	if len(groups) != 2 || groups[0].src != nil || groups[1].wrap || !isZero(groups[0].pieces[0].pad) {
		return nil
	}
	g := &groups[1]
	if g.src == nil || len(g.pieces) != 1 {
		return nil
	}
	c, size := g.pieces[0], g.src.Type.Shape[w.d]
	if c.lo != max(0, -c.off) || c.hi != min(v.Type.Shape[w.d], size-c.off) {
		return nil
	}
	return w.block(v, g)
}

// mask tells the elements of pieces, of a dimension of the given size, from
// the others.
func (w *patchwork) mask(pieces []piece, size int, t *ir.Type) *ir.Value {
	b := &w.p.build
	index := ir.Tensor(ir.I32, w.part)
	place := b.Add(b.Iota(index, 0), b.Broadcast(w.p.offset(w.axes, w.part), []int{w.part}))
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
