package passes

import (
	"slices"

	"ppc/ir"
)

// A halo is the making of one tensor from pieces along a cut dimension: this
// device has elements c*part to (c+1)*part of them, c its coordinate.
type halo struct {
	p    *partitioner
	d    int
	axes []ir.AxisRef // along which d is cut
	n    int          // devices along them
	part int
	at   layout
}

// maxHops bounds the permutes for one piece; beyond, its source is better
// gathered whole.
const maxHops = 4

// halo makes v, cut along d, from its pieces. It returns nil where gathering
// their sources is no worse.
func (p *partitioner) halo(v *ir.Value, at layout, d int, pieces []piece) *ir.Value {
	for e := range at { // what else the chain moves along has to be whole
		if e != d && len(at[e]) > 0 && p.chainMoves(v, d, e) {
			return nil
		}
	}
	h := &halo{p: p, d: d, axes: at[d], n: p.mesh.RefsSize(at[d]), at: at}
	h.part = v.Type.Shape[d] / h.n
	groups := h.group(v, pieces)
	for _, g := range groups {
		if g.src != nil && h.hops(g) > maxHops {
			return nil
		}
	}
	if b := h.zeroFilled(v, groups); b != nil {
		return b
	}
	var out *ir.Value
	for _, g := range groups {
		block := h.block(v, g)
		if out != nil {
			block = p.build.Select(h.mask(g.pieces, v.Type.Shape[d], block.Type), block, out)
		}
		out = block
	}
	return out
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
}

// group sorts pieces into groups, numbers first.
func (h *halo) group(v *ir.Value, pieces []piece) []pieceGroup {
	size := v.Type.Shape[h.d]
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
			case c.src != nil && g.src == c.src && (g.off-c.off)%size == 0 && c.src.Type.Shape[h.d] == size:
				g.pieces = append(g.pieces, c)
				g.wrap = true
				continue next
			}
		}
		*groups = append(*groups, pieceGroup{pieces: []piece{c}, src: c.src, off: c.off})
	}
	return append(numbers, moved...)
}

// uniform reports whether parts of src are as large as those of the result, so
// that every device needs the same of its neighbours.
func (h *halo) uniform(src *ir.Value) bool { return src.Type.Shape[h.d] == h.part*h.n }

// hops is the number of permutes that the block of g takes.
func (h *halo) hops(g pieceGroup) int {
	size := g.src.Type.Shape[h.d]
	if h.uniform(g.src) || size%h.n != 0 {
		return 0 // at most two, or none
	}
	first, last := h.reach(g)
	return last - first
}

// reach is how many devices further on the first and the last device stands of
// which any device needs something for g. Along the devices, the distances
// grow or shrink steadily but for the ends of the pieces.
func (h *halo) reach(g pieceGroup) (first, last int) {
	size := g.src.Type.Shape[h.d] / h.n
	started := false
	for _, c := range g.pieces {
		from, to := c.lo/h.part, (c.hi-1)/h.part
		for _, device := range []int{from, min(from+1, to), max(to-1, from), to} {
			lo, hi := max(device*h.part, c.lo), min((device+1)*h.part, c.hi)
			a, b := (lo+c.off)/size-device, (hi-1+c.off)/size-device
			if !started {
				first, last, started = a, b, true
			}
			first, last = min(first, a), max(last, b)
		}
	}
	return first, last
}

// block makes this device's part of v as if every element were as the pieces
// of g say.
func (h *halo) block(v *ir.Value, g pieceGroup) *ir.Value {
	p, b := h.p, &h.p.build
	if g.src == nil {
		return b.Broadcast(p.get(g.pieces[0].pad, layout{}), p.local(v.Type, h.at).Shape)
	}
	size := g.src.Type.Shape[h.d]
	switch {
	case h.uniform(g.src):
		return h.shifted(p.get(g.src, h.at), g)
	case size%h.n == 0:
		return h.window(p.get(g.src, h.at), g)
	}
	at := h.at.clone()
	at[h.d] = nil
	x := p.get(g.src, at)
	low, high := max(0, -g.off), max(0, g.off+h.part*h.n-size)
	x = h.padded(x, low, high)
	return h.sliceAt(x, b.Add(p.offset(h.axes, h.part), b.I32(g.off+low)))
}

// padded is x with zeros around it.
func (h *halo) padded(x *ir.Value, low, high int) *ir.Value {
	if low == 0 && high == 0 {
		return x
	}
	none := make([]int, x.Type.Rank())
	before, after := slices.Clone(none), slices.Clone(none)
	before[h.d], after[h.d] = low, high
	return h.p.build.Pad(x, h.p.build.Splat(ir.Tensor(x.Type.Elem), 0), before, after, none)
}

// sliceAt is a part of x.
func (h *halo) sliceAt(x, start *ir.Value) *ir.Value {
	b := &h.p.build
	starts, sizes := make([]*ir.Value, x.Type.Rank()), slices.Clone(x.Type.Shape)
	for e := range starts {
		starts[e] = b.I32(0)
	}
	starts[h.d], sizes[h.d] = start, h.part
	return b.DynamicSlice(x, starts, sizes...)
}

// shifted is x moved by the distance of g: the back of one neighbour's part
// and the front of the next one's. What no piece needs is zeros, not sent.
func (h *halo) shifted(x *ir.Value, g pieceGroup) *ir.Value {
	far := floorDiv(g.off, h.part)
	rest := g.off - far*h.part
	if rest == 0 {
		return h.from(x, far, g.wrap)
	}
	back := h.stretch(x, rest, h.part, far, g, h.needed(g, 0, h.part-rest))
	front := h.stretch(x, 0, rest, far+1, g, h.needed(g, h.part-rest, h.part))
	return h.p.build.Concat(h.d, back, front)
}

// stretch is elements lo to hi of the part that stands far further on.
func (h *halo) stretch(x *ir.Value, lo, hi, far int, g pieceGroup, needed bool) *ir.Value {
	if !needed {
		shape := slices.Clone(x.Type.Shape)
		shape[h.d] = hi - lo
		return h.p.build.Splat(x.Type.WithShape(shape...), 0)
	}
	return h.from(h.p.build.SliceDim(x, h.d, lo, hi), far, g.wrap)
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// needed reports whether an element of g stands at lo to hi of a part.
func (h *halo) needed(g pieceGroup, lo, hi int) bool {
	return slices.ContainsFunc(g.pieces, func(c piece) bool {
		start := c.lo - c.lo%h.part
		return c.lo < start+hi && c.hi > start+lo || c.hi > start+h.part+lo
	})
}

// from is x of the device that stands far further on; zeros where there is
// none, unless it wraps.
func (h *halo) from(x *ir.Value, far int, wrap bool) *ir.Value {
	if wrap {
		far = (far%h.n + h.n) % h.n
		if far > h.n/2 {
			far -= h.n
		}
	}
	switch {
	case far == 0:
		return x
	case far >= h.n || far <= -h.n:
		return h.p.build.Splat(x.Type, 0)
	}
	return h.p.permute(x, h.p.shiftPairs(h.axes, -far, wrap))
}

// window is this device's part of what g moves, cut out of the parts of all
// the neighbours within reach.
func (h *halo) window(x *ir.Value, g pieceGroup) *ir.Value {
	b := &h.p.build
	first, last := h.reach(g)
	var parts []*ir.Value
	for far := first; far <= last; far++ {
		parts = append(parts, h.from(x, far, false))
	}
	size := x.Type.Shape[h.d]
	all := h.padded(b.Concat(h.d, parts...), h.part, h.part)
	// In all, element i of the result is at c*part + off - (c+first)*size + part.
	start := b.Mul(h.p.coord(h.axes), b.I32(h.part-size))
	return h.sliceAt(all, b.Add(start, b.I32(g.off-first*size+h.part)))
}

// zeroFilled is v where it is one source moved and zeros for all that has
// moved out: permutes leave zeros where nobody sends. Otherwise nil.
func (h *halo) zeroFilled(v *ir.Value, groups []pieceGroup) *ir.Value {
	if len(groups) != 2 || groups[0].src != nil || groups[1].wrap || !isZero(groups[0].pieces[0].pad) {
		return nil
	}
	g := groups[1]
	if g.src == nil || !h.uniform(g.src) || len(g.pieces) != 1 {
		return nil
	}
	c, size := g.pieces[0], v.Type.Shape[h.d]
	if c.lo != max(0, -c.off) || c.hi != min(size, size-c.off) {
		return nil
	}
	return h.block(v, g)
}

// isZero reports whether v is a constant all of whose bits are zero.
func isZero(v *ir.Value) bool {
	op := v.Def
	if op != nil && (op.Kind == ir.Convert || op.Kind == ir.BroadcastInDim || op.Kind == ir.Reshape) {
		return isZero(op.Operands[0])
	}
	if op == nil || op.Kind != ir.Constant {
		return false
	}
	l := op.Literal("value")
	return l != nil && !slices.ContainsFunc(l.Data, func(b byte) bool { return b != 0 })
}

// mask tells the elements of pieces, of a dimension of the given size, from
// the others.
func (h *halo) mask(pieces []piece, size int, t *ir.Type) *ir.Value {
	b := &h.p.build
	index := ir.Tensor(ir.I32, h.part)
	place := b.Add(b.Iota(index, 0), b.Broadcast(h.p.offset(h.axes, h.part), []int{h.part}))
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
	return b.Broadcast(mask, t.Shape, h.d)
}

// shiftPairs are the pairs by which each device sends to the one that stands
// by further on along axes, or, with wrap, around the end.
func (p *partitioner) shiftPairs(axes []ir.AxisRef, by int, wrap bool) ir.Attr {
	if len(axes) == 1 {
		return ir.AxisShift{Mesh: p.mesh.Name, Axis: axes[0], Shift: by, Wrap: wrap}
	}
	n := p.mesh.RefsSize(axes)
	return p.linePairs(axes, func(c int) (int, bool) {
		to := c + by
		if wrap {
			to = (to%n + n) % n
		}
		return to, 0 <= to && to < n
	})
}

// linePairs are the pairs by which each device sends along axes from its
// coordinate to another; false sends to nobody.
func (p *partitioner) linePairs(axes []ir.AxisRef, to func(c int) (int, bool)) *ir.Literal {
	var pairs []int
	for place := range p.mesh.Size() {
		c, rest := 0, place
		for _, r := range axes {
			at := place / p.mesh.Stride(r) % p.mesh.RefSize(r)
			c = c*p.mesh.RefSize(r) + at
			rest -= at * p.mesh.Stride(r)
		}
		target, ok := to(c)
		if !ok {
			continue
		}
		for _, r := range slices.Backward(axes) {
			rest += target % p.mesh.RefSize(r) * p.mesh.Stride(r)
			target /= p.mesh.RefSize(r)
		}
		pairs = append(pairs, p.mesh.Device(place), p.mesh.Device(rest))
	}
	return ir.Ints64(ir.Tensor(ir.I64, len(pairs)/2, 2), pairs...)
}
