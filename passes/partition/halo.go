package partition

import (
	"slices"
	"sort"

	"ppc/ir"
)

// A section is what each device along axes needs of a dimension: size elements
// from floor((c*mul+add)/div) on, c its coordinate. Some may be outside of the
// dimension.
type section struct {
	axes          []ir.AxisRef
	mul, add, div int
	size          int
	need          []interval // the elements that some device reads; nil: all there are
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

// A halo is how devices get their sections of a dimension that is sharded along
// the axes of the sections, in n shards of size shard.
type halo struct {
	section
	n, shard int
	sends    []send // by distance
}

// A send is elements lo to hi of a shard, which go to the device whose coordinate
// is far less.
type send struct{ far, lo, hi int }

// maxHops bounds the permutes of one halo exchange; beyond, an all-gather is
// better.
const maxHops = 4

// halo plans the halo exchange for s, of a dimension of size elements.
func (p *program) halo(s section, size int) *halo {
	n := p.mesh.RefsSize(s.axes)
	h := &halo{section: s, n: n, shard: size / n}
	if h.need == nil {
		h.need = []interval{{0, size}}
	}
	// Along the devices, distances grow or shrink steadily.
	first := min(floorDiv(h.from(0), h.shard), floorDiv(h.from(n-1), h.shard)-(n-1))
	last := max(floorDiv(h.from(0)+h.size-1, h.shard), floorDiv(h.from(n-1)+h.size-1, h.shard)-(n-1))
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

// sent is the slice of a shard that the devices whose coordinate is far less
// read, of all of them together. Whether a device does changes once or twice
// along the devices, and what it needs moves steadily.
func (h *halo) sent(far int) interval {
	var all interval
	for _, need := range h.need {
		c := interval{0, h.n}
		if !h.wrap {
			c = interval{max(0, -far), min(h.n, h.n-far)}
		}
		at := func(c int) int { return (c + far) * h.shard }
		c.where(func(c int) bool { return h.from(c) < at(c)+h.shard })
		c.where(func(c int) bool { return h.from(c)+h.size > at(c) })
		c.where(func(c int) bool { return h.from(c) < need.hi })
		c.where(func(c int) bool { return h.from(c)+h.size > need.lo })
		c.where(func(c int) bool { return at(c) < need.hi })
		c.where(func(c int) bool { return at(c)+h.shard > need.lo })
		if c.lo >= c.hi {
			continue
		}
		a, b := c.lo, c.hi-1
		lo := max(0, min(h.from(a)-at(a), h.from(b)-at(b)), need.lo-at(b))
		hi := min(h.shard, max(h.from(a)-at(a), h.from(b)-at(b))+h.size, need.hi-at(a))
		if all.lo == all.hi {
			all = interval{lo, hi}
		}
		all = interval{min(all.lo, lo), max(all.hi, hi)}
	}
	return all
}

// where narrows v to the numbers for which ok holds: those from some number on,
// or those below one.
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

// hops is the number of permutes, and how many elements a device receives.
func (h *halo) hops() (hops, moved int) {
	for _, s := range h.sends {
		if h.distance(s.far) != 0 {
			hops++
			moved += s.hi - s.lo
		}
	}
	return hops, moved
}

// distance is how far away a device is; of a ring, the shorter way round.
func (h *halo) distance(far int) int {
	if h.wrap {
		far = (far%h.n + h.n) % h.n
		if far > h.n/2 {
			far -= h.n
		}
	}
	return far
}

// section is this device's section of dimension d of x, by a halo exchange or,
// where h is nil, from x itself, which is unsharded there.
func (p *localizer) section(s section, h *halo, x *ir.Value, d int, fill *ir.Value) *ir.Value {
	if h == nil {
		return p.fetchUnsharded(&s, x, d, fill)
	}
	return p.fetch(h, x, d, fill)
}

// fetch is this device's section of dimension d of x, its shard of a tensor that
// is sharded in d as h says. What is outside of the dimension is fill, zero where
// that is nil; what no device needs is anything.
func (p *localizer) fetch(h *halo, x *ir.Value, d int, fill *ir.Value) *ir.Value {
	b := &p.build
	var parts []*ir.Value
	begin, end := 0, 0 // of what is at hand, counted from the beginning of this device's shard
	for _, s := range h.sends {
		lo, hi := s.far*h.shard+s.lo, s.far*h.shard+s.hi
		if parts == nil {
			begin = lo
		} else if lo > end {
			parts = append(parts, p.zeros(x, d, lo-end))
		}
		parts = append(parts, p.from(b.SliceDim(x, d, s.lo, s.hi), h, s.far))
		end = hi
	}
	if parts == nil {
		parts, end = []*ir.Value{b.SliceDim(x, d, 0, min(1, h.shard))}, min(1, h.shard)
	}
	first, last := h.from(0), h.from(h.n-1)-(h.n-1)*h.shard
	v := b.Concat(d, parts...)
	low, high := max(0, begin-min(first, last)), max(0, max(first, last)+h.size-end)
	v = p.padded(v, d, low, high, nil)
	begin -= low
	if first == last {
		v = b.SliceDim(v, d, first-begin, first-begin+h.size)
	} else {
		v = p.sliceAt(v, d, h.begin(p, h.shard, begin), h.size)
	}
	if fill == nil || isZero(fill) || h.wrap {
		return v
	}
	return p.filled(h, v, d, fill)
}

// fetchUnsharded is this device's section of dimension d of x, which is unsharded
// there.
func (p *localizer) fetchUnsharded(s *section, x *ir.Value, d int, fill *ir.Value) *ir.Value {
	all := s.all(p.mesh.RefsSize(s.axes))
	low, high := max(0, -all.lo), max(0, all.hi-x.Type.Shape[d])
	x = p.padded(x, d, low, high, fill)
	if s.mul == 0 {
		return p.build.SliceDim(x, d, s.from(0)+low, s.from(0)+low+s.size)
	}
	return p.sliceAt(x, d, s.begin(p, 0, -low), s.size)
}

// begin is where this device's section begins, counted from a place that is at
// for the first device and shard more for each other, and never after it.
func (s *section) begin(p *localizer, shard, at int) *ir.Value {
	b := &p.build
	v := p.coord(s.axes)
	if mul := s.mul - shard*s.div; mul != 1 {
		v = b.Mul(v, b.I32(mul))
	}
	add := s.add - at*s.div
	if s.div == 1 {
		return addInt(b, v, add)
	}
	// An integer is divided towards zero.
	below := max(0, -floorDiv(add, s.div), -floorDiv((p.mesh.RefsSize(s.axes)-1)*(s.mul-shard*s.div)+add, s.div))
	return addInt(b, b.Div(addInt(b, v, add+below*s.div), b.I32(s.div)), -below)
}

func addInt(b *ir.Builder, v *ir.Value, n int) *ir.Value {
	if n == 0 {
		return v
	}
	return b.Add(v, b.I32(n))
}

// filled is v, this device's section of dimension d, with fill for what is
// outside of the dimension.
func (p *localizer) filled(h *halo, v *ir.Value, d int, fill *ir.Value) *ir.Value {
	b := &p.build
	index := ir.Tensor(ir.I32, h.size)
	all := h.all(h.n)
	below, above := all.lo < 0, all.hi > h.n*h.shard
	if !below && !above {
		return v
	}
	place := b.Add(b.Iota(index, 0), b.Broadcast(h.begin(p, 0, 0), index.Shape))
	var inside *ir.Value
	if below {
		inside = b.Compare("GE", place, b.Splat(index, 0))
	}
	if above {
		under := b.Compare("LT", place, b.Splat(index, float64(h.n*h.shard)))
		if inside != nil {
			under = b.Binary(ir.And, inside, under)
		}
		inside = under
	}
	return b.Select(b.Broadcast(inside, v.Type.Shape, d), v, b.Broadcast(fill, v.Type.Shape))
}

func (p *localizer) zeros(x *ir.Value, d, n int) *ir.Value {
	shape := slices.Clone(x.Type.Shape)
	shape[d] = n
	return p.build.Splat(x.Type.WithShape(shape...), 0)
}

// padded is x with fill around it in dimension d; nil is zero.
func (p *localizer) padded(x *ir.Value, d, low, high int, fill *ir.Value) *ir.Value {
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
func (p *localizer) sliceAt(x *ir.Value, d int, start *ir.Value, size int) *ir.Value {
	b := &p.build
	starts, sizes := make([]*ir.Value, x.Type.Rank()), slices.Clone(x.Type.Shape)
	for e := range starts {
		starts[e] = b.I32(0)
	}
	starts[d], sizes[d] = start, size
	return b.DynamicSlice(x, starts, sizes...)
}

// from is x of the device whose coordinate is far more; zeros where there is
// none, unless the dimension is a ring.
func (p *localizer) from(x *ir.Value, h *halo, far int) *ir.Value {
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
	if op == nil {
		return false
	}
	if moved := op.Moves(); len(moved) > 0 {
		return !slices.ContainsFunc(moved, func(i int) bool { return !isZero(op.Operands[i]) })
	}
	if op.Kind != ir.Constant {
		return false
	}
	l := op.Literal("value")
	return l != nil && !slices.ContainsFunc(l.Data, func(b byte) bool { return b != 0 })
}

// statedHalo is the halo exchange for s of dimension d of v; nil where v is
// unsharded there.
func (p *program) statedHalo(s section, v *ir.Value, d int) *halo {
	if len(p.layoutOf(v)[d]) == 0 {
		return nil
	}
	return p.halo(s, v.Type.Shape[d])
}
