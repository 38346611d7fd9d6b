package runtime

import (
	"slices"
	"sync"
	"sync/atomic"

	"ppc/ir"
	"ppc/runtime/kernel"
)

// A buffer is the memory of one value, or the elements of a tuple. Every slot and
// every collective that has it holds a reference; the holder of the only one may
// write it. Pinned buffers (constants, arguments) have no owner, count no
// references, and are never written.
type buffer struct {
	mem    kernel.Mem
	elems  []*buffer // of a tuple
	refs   atomic.Int32
	class  int
	pinned bool
	base   *buffer // of a piece: the tensor of which it is one
	lent   bool    // see piece
}

func pinned(m kernel.Mem) *buffer { return &buffer{mem: m, pinned: true} }

func (b *buffer) retain() *buffer {
	if !b.pinned {
		b.refs.Add(1)
	}
	return b
}

// mine reports whether the caller, who holds a reference, holds the only one.
func (b *buffer) mine() bool {
	return !b.pinned && b.refs.Load() == 1 && b.elems == nil && b.base == nil
}

// The classes of an Executable are the sizes that its buffers have; buffers
// of one class take each other's place.
type classes struct {
	sizes []int
	index map[int]int // by size
}

func (c *classes) of(size int) int {
	i, ok := c.index[size]
	if !ok {
		i = len(c.sizes)
		c.sizes, c.index[size] = append(c.sizes, size), i
	}
	return i
}

// keep is how many free buffers of a class a seat holds. More go to the run's common pool,
// since a device may take a buffer in one seat and release it in another.
const keep = 64

// A pool is the free buffers that any device of a run may take, by class.
type pool struct {
	mu   sync.Mutex
	free [][]*buffer
}

// takeAll moves the buffers of q, which may be in use elsewhere, to p, which is not.
func (p *pool) takeAll(q *pool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for class, bs := range q.free {
		p.free[class] = append(p.free[class], bs...)
		clear(bs)
		q.free[class] = bs[:0]
	}
}

// giveAll is give for buffers by class.
func (p *pool) giveAll(free [][]*buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class, bs := range free {
		p.free[class] = append(p.free[class], bs...)
	}
}

// Recycle lets later runs of exe write to the memory of literals that earlier runs
// of it returned and that nobody reads any more, nor anything that shares their
// memory. What has no size that the program uses is left to the collector.
func (exe *Executable) Recycle(ls []*ir.Literal) {
	for _, l := range ls {
		if class, ok := exe.classes.index[len(l.Data)]; ok && len(l.Data) > 0 && kernel.Aligned(l.Data) {
			exe.spare.give(&buffer{mem: l.Data, class: class})
		}
	}
}

// alloc returns a buffer with one reference; what it contains is undefined.
func (d *device) alloc(class int) *buffer {
	if d.run.trace != nil {
		d.run.memory.add(d.run.exe.classes.sizes[class])
	}
	if free := d.free[class]; len(free) > 0 {
		b := free[len(free)-1]
		d.free[class] = free[:len(free)-1]
		b.refs.Store(1)
		return b
	}
	b := d.run.pool.take(class)
	if b == nil {
		b = &buffer{mem: d.run.exe.slab.mem(d.run.exe.classes.sizes[class]), class: class}
	}
	b.refs.Store(1)
	return b
}

func (p *pool) take(class int) *buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.free[class]
	if len(free) == 0 {
		return nil
	}
	b := free[len(free)-1]
	p.free[class] = free[:len(free)-1]
	return b
}

func (p *pool) give(b *buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[b.class] = append(p.free[b.class], b)
}

// release gives up one reference to b; nil is nothing.
func (d *device) release(b *buffer) {
	if b == nil || b.pinned || b.refs.Add(-1) > 0 {
		return
	}
	if b.base != nil {
		base := b.base
		b.mem, b.base, d.pieces = nil, d.pieces, b
		d.release(base)
		return
	}
	if b.elems != nil {
		for _, e := range b.elems {
			d.release(e)
		}
		return
	}
	if d.run.trace != nil {
		d.run.memory.add(-d.run.exe.classes.sizes[b.class])
	}
	if len(d.free[b.class]) < keep {
		d.free[b.class] = append(d.free[b.class], b)
	} else {
		d.run.pool.give(b)
	}
}

// A slab is memory of which buffers are pieces: many share a huge page where the system
// has such, and they do not all begin at the same place of a page, where lines would be
// in each other's way in the caches.
type slab struct {
	mu   sync.Mutex
	rest kernel.Mem
	made int // bytes, rest included
}

const (
	slabSize  = 8 << 20 // at most; the first ones are as large as what there is already
	slabFirst = 1 << 16
	slabLine  = 64
	slabShift = 5 * slabLine // between buffers
)

// mem returns n bytes.
func (s *slab) mem(n int) kernel.Mem {
	if n > slabSize/4 {
		return kernel.NewMem(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	size := (n+slabLine-1)&^(slabLine-1) + slabShift
	if len(s.rest) < size {
		n := min(max(s.made, size, slabFirst), slabSize)
		s.rest, s.made = kernel.NewMem(n), s.made+n
	}
	m := s.rest[:n:n]
	s.rest = s.rest[size:]
	return m
}

// works are the memory that kernels compute in, between runs.
type works struct {
	mu   sync.Mutex
	free []*kernel.Work
}

// take returns at most n, for a run that stop ends.
func (w *works) take(n int, stop *atomic.Bool) []*kernel.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := max(0, len(w.free)-n)
	out := slices.Clone(w.free[rest:])
	clear(w.free[rest:])
	w.free = w.free[:rest]
	for _, x := range out {
		x.Stop = stop
	}
	return out
}

func (w *works) give(x *kernel.Work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = append(w.free, x)
}

// A gauge is a number that many change, and the largest it has been.
type gauge struct{ now, peak atomic.Int64 }

func (g *gauge) add(n int) {
	now := g.now.Add(int64(n))
	for peak := g.peak.Load(); now > peak && !g.peak.CompareAndSwap(peak, now); {
		peak = g.peak.Load()
	}
}
