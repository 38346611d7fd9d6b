package partition

import (
	"slices"
	"sort"

	"ppc/ir"
)

// A section is what each device along axes needs of a dimension: size elements
// from floor((c*mul+add)/div) on, c its coordinate. Elements that stand outside
// of the dimension come from nowhere.
type section struct {
	axes          []ir.AxisRef
	mul, add, div int
	size          int
	need          []interval // the elements that anybody looks at; nil: all there are
	wrap          bool       // the dimension is a ring
}

// An interval is the numbers from lo to below hi.
type interval struct{ lo, hi int }

func (s *section) from(c int) int { return floorDiv(c*s.mul+s.add, s.div) }

// all is where the sections of n devices begin and end.
func (s *section) all(n int) interval {
	first, last := s.from(0), s.from(n-1)
	return interval{min(first, last), max(first, last) + s.size}
}

// A halo is how devices get at their sections of a dimension that is cut,
// along the axes of the sections, in n parts of part elements.
type halo struct {
	section
	n, part int
	sends   []send // by distance
}

// A send is elements lo to hi of a part, which go to the device that stands far
// before the one that has them.
type send struct{ far, lo, hi int }

// maxHops bounds the permutes of one halo; beyond, a gather is better.
const maxHops = 4

// halo plans how to get at s, of a dimension of size elements.
func (p *partitioner) halo(s section, size int) *halo {
	n := p.mesh.RefsSize(s.axes)
	h := &halo{section: s, n: n, part: size / n}
	if h.need == nil {
		h.need = []interval{{0, size}}
	}
	// Along the devices, distances grow or shrink steadily.
	first := min(floorDiv(h.from(0), h.part), floorDiv(h.from(n-1), h.part)-(n-1))
	last := max(floorDiv(h.from(0)+h.size-1, h.part), floorDiv(h.from(n-1)+h.size-1, h.part)-(n-1))
	if !s.wrap {
		first, last = max(first, 1-n), min(last, n-1)
	}
	for far := first; far <= last; far++ {
		if part := h.sent(far); part.lo < part.hi {
			h.sends = append(h.sends, send{far, part.lo, part.hi})
		}
	}
	return h
}

// sent is what of a part anybody needs that stands far before it. Whether a
// device does changes once or twice along the devices, and what it needs moves
// steadily.
func (h *halo) sent(far int) interval {
	var all interval
	for _, need := range h.need {
		c := interval{0, h.n}
		if !h.wrap {
			c = interval{max(0, -far), min(h.n, h.n-far)}
		}
		at := func(c int) int { return (c + far) * h.part }
		c.where(func(c int) bool { return h.from(c) < at(c)+h.part })
		c.where(func(c int) bool { return h.from(c)+h.size > at(c) })
		c.where(func(c int) bool { return h.from(c) < need.hi })
		c.where(func(c int) bool { return h.from(c)+h.size > need.lo })
		c.where(func(c int) bool { return at(c) < need.hi })
		c.where(func(c int) bool { return at(c)+h.part > need.lo })
		if c.lo >= c.hi {
			continue
		}
		a, b := c.lo, c.hi-1
		lo := max(0, min(h.from(a)-at(a), h.from(b)-at(b)), need.lo-at(b))
		hi := min(h.part, max(h.from(a)-at(a), h.from(b)-at(b))+h.size, need.hi-at(a))
		if all.lo == all.hi {
			all = interval{lo, hi}
		}
		all = interval{min(all.lo, lo), max(all.hi, hi)}
	}
	return all
}

// where leaves of v the numbers for which ok holds, which it does from one end
// on, or up to it.
func (v *interval) where(ok func(int) bool) {
	if v.lo >= v.hi {
		return
	}
	low, high := ok(v.lo), ok(v.hi-1)
	change := func(to bool) int {
		return v.lo + sort.Search(v.hi-v.lo, func(i int) bool { return ok(v.lo+i) == to })
	}
	switch {
	case !low && !high:
		v.hi = v.lo
	case !low:
		v.lo = change(true)
	case !high:
		v.hi = change(false)
	}
}

// hops is the number of permutes, moved the elements that a device receives.
func (h *halo) hops() (hops, moved int) {
	for _, s := range h.sends {
		if h.distance(s.far) != 0 {
			hops++
			moved += s.hi - s.lo
		}
	}
	return hops, moved
}

// distance is how far on a device stands; of a ring, on the shorter way.
func (h *halo) distance(far int) int {
	if h.wrap {
		far = (far%h.n + h.n) % h.n
		if far > h.n/2 {
			far -= h.n
		}
	}
	return far
}

// section is this device's section of dimension d of x, by a halo or, where there
// is none, of the whole.
func (p *partitioner) section(s section, h *halo, x *ir.Value, d int, fill *ir.Value) *ir.Value {
	if h == nil {
		return p.fetchWhole(&s, x, d, fill)
	}
	return p.fetch(h, x, d, fill)
}

// fetch is this device's section of dimension d of x, its part of a tensor that
// is cut in d as h says. What comes from nowhere is fill, zero where that is
// nil; what nobody needs is anything.
func (p *partitioner) fetch(h *halo, x *ir.Value, d int, fill *ir.Value) *ir.Value {
	b := &p.build
	var parts []*ir.Value
	begin, end := 0, 0 // of what is at hand, counted from the beginning of this device's part
	for _, s := range h.sends {
		lo, hi := s.far*h.part+s.lo, s.far*h.part+s.hi
		if parts == nil {
			begin = lo
		} else if lo > end {
			parts = append(parts, p.zeros(x, d, lo-end))
		}
		parts = append(parts, p.from(b.SliceDim(x, d, s.lo, s.hi), h, s.far))
		end = hi
	}
	if parts == nil {
		parts, end = []*ir.Value{b.SliceDim(x, d, 0, min(1, h.part))}, min(1, h.part)
	}
	first, last := h.from(0), h.from(h.n-1)-(h.n-1)*h.part
	v := b.Concat(d, parts...)
	low, high := max(0, begin-min(first, last)), max(0, max(first, last)+h.size-end)
	v = p.padded(v, d, low, high, nil)
	begin -= low
	if first == last {
		v = b.SliceDim(v, d, first-begin, first-begin+h.size)
	} else {
		v = p.sliceAt(v, d, h.begin(p, h.part, begin), h.size)
	}
	if fill == nil || isZero(fill) || h.wrap {
		return v
	}
	return p.filled(h, v, d, fill)
}

// fetchWhole is this device's section of dimension d of x, which is whole there.
func (p *partitioner) fetchWhole(s *section, x *ir.Value, d int, fill *ir.Value) *ir.Value {
	all := s.all(p.mesh.RefsSize(s.axes))
	low, high := max(0, -all.lo), max(0, all.hi-x.Type.Shape[d])
	x = p.padded(x, d, low, high, fill)
	if s.mul == 0 {
		return p.build.SliceDim(x, d, s.from(0)+low, s.from(0)+low+s.size)
	}
	return p.sliceAt(x, d, s.begin(p, 0, -low), s.size)
}

// begin is where this device's section begins, counted from a place that is at
// for the first device and part more for each other, and never after it.
func (s *section) begin(p *partitioner, part, at int) *ir.Value {
	b := &p.build
	v := p.coord(s.axes)
	if mul := s.mul - part*s.div; mul != 1 {
		v = b.Mul(v, b.I32(mul))
	}
	add := s.add - at*s.div
	if s.div == 1 {
		return addInt(b, v, add)
	}
	// An integer is divided towards zero.
	below := max(0, -floorDiv(add, s.div), -floorDiv((p.mesh.RefsSize(s.axes)-1)*(s.mul-part*s.div)+add, s.div))
	return addInt(b, b.Div(addInt(b, v, add+below*s.div), b.I32(s.div)), -below)
}

func addInt(b *ir.Builder, v *ir.Value, n int) *ir.Value {
	if n == 0 {
		return v
	}
	return b.Add(v, b.I32(n))
}

// filled is v, this device's section of dimension d, with fill for what stands
// outside of the dimension.
func (p *partitioner) filled(h *halo, v *ir.Value, d int, fill *ir.Value) *ir.Value {
	b := &p.build
	index := ir.Tensor(ir.I32, h.size)
	all := h.all(h.n)
	below, above := all.lo < 0, all.hi > h.n*h.part
	if !below && !above {
		return v
	}
	place := b.Add(b.Iota(index, 0), b.Broadcast(h.begin(p, 0, 0), index.Shape))
	var inside *ir.Value
	if below {
		inside = b.Compare("GE", place, b.Splat(index, 0))
	}
	if above {
		under := b.Compare("LT", place, b.Splat(index, float64(h.n*h.part)))
		if inside != nil {
			under = b.Binary(ir.And, inside, under)
		}
		inside = under
	}
	return b.Select(b.Broadcast(inside, v.Type.Shape, d), v, b.Broadcast(fill, v.Type.Shape))
}

func (p *partitioner) zeros(x *ir.Value, d, n int) *ir.Value {
	shape := slices.Clone(x.Type.Shape)
	shape[d] = n
	return p.build.Splat(x.Type.WithShape(shape...), 0)
}

// padded is x with fill around it in dimension d; nil is zero.
func (p *partitioner) padded(x *ir.Value, d, low, high int, fill *ir.Value) *ir.Value {
	if low == 0 && high == 0 {
		return x
	}
	if fill == nil {
		fill = p.build.Splat(ir.Tensor(x.Type.Elem), 0)
	}
	none := make([]int, x.Type.Rank())
	before, after := slices.Clone(none), slices.Clone(none)
	before[d], after[d] = low, high
	return p.build.Pad(x, fill, before, after, none)
}

// sliceAt is size elements of dimension d of x from start on.
func (p *partitioner) sliceAt(x *ir.Value, d int, start *ir.Value, size int) *ir.Value {
	b := &p.build
	starts, sizes := make([]*ir.Value, x.Type.Rank()), slices.Clone(x.Type.Shape)
	for e := range starts {
		starts[e] = b.I32(0)
	}
	starts[d], sizes[d] = start, size
	return b.DynamicSlice(x, starts, sizes...)
}

// from is x of the device that stands far further on; zeros where there is
// none, unless it is a ring.
func (p *partitioner) from(x *ir.Value, h *halo, far int) *ir.Value {
	if far = h.distance(far); far == 0 {
		return x
	}
	return p.permute(x, ir.AxisShift{Mesh: p.mesh.Name, Axes: h.axes, Shift: -far, Wrap: h.wrap})
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
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
