package native

import (
	"runtime"
	"sync"
	"unsafe"
	"weak"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

//go:noescape
func call(text uintptr, arrays *unsafe.Pointer, row, rows, element int, scratch *byte)

// Available reports whether the processor has the instructions, and the system lets code be made.
var Available = sync.OnceValue(func() bool {
	return cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && memory.place(1) != nil
})

// A Code is a chain in machine code.
type Code struct {
	chain   *Chain
	scratch int      // bytes for rows
	texts   []placed // of several rows side by side, and of one
}

type placed struct {
	begin uintptr
	rows  int
}

// Scratch is how many bytes Run needs besides the arrays.
func (c *Code) Scratch() int { return c.scratch + c.chain.arrays*vectorBytes }

// MayTake reports whether array to may be the memory of array from.
func (c *Code) MayTake(to, from int) bool { return c.chain.mayTake(to, from) }

// Run computes n rows, one or more, or n elements where there are no rows. arrays are the chain's, each
// as long as that says; it returns them with what it has appended. It can't be preempted.
func (c *Code) Run(arrays []unsafe.Pointer, n int, scratch []byte) []unsafe.Pointer {
	if c.chain.cols > 0 {
		c.run(arrays, n, scratch)
		return arrays
	}
	full := n &^ (lanes - 1)
	if full > 0 {
		c.run(arrays, full, scratch)
	}
	if full < n {
		arrays = c.runEnd(arrays, full, n-full, scratch)
	}
	return arrays
}

func (c *Code) run(arrays []unsafe.Pointer, n int, scratch []byte) {
	_, _ = arrays[c.chain.arrays-1], scratch[:c.scratch]
	at := 0
	for _, t := range c.texts {
		if to := n - (n-at)%t.rows; at < to {
			call(t.begin, unsafe.SliceData(arrays), at, to, at*c.chain.cols, unsafe.SliceData(scratch))
			at = to
		}
	}
	runtime.KeepAlive(c)
}

// vectorBytes is the size of a vector.
const vectorBytes = 4 * lanes

// runEnd computes the last elements, n from at on, which are no full vector, in vectors of their own.
func (c *Code) runEnd(arrays []unsafe.Pointer, at, n int, scratch []byte) []unsafe.Pointer {
	part := func(i int) []byte {
		size := c.chain.sizes[i]
		return unsafe.Slice((*byte)(unsafe.Add(arrays[i], at*size)), n*size)
	}
	vectors := scratch[c.scratch:]
	for i := range c.chain.arrays {
		v := vectors[i*vectorBytes:][:vectorBytes]
		copy(v, part(i))
		arrays = append(arrays, unsafe.Pointer(&v[0]))
	}
	c.run(arrays[c.chain.arrays:], lanes, scratch)
	for i := range c.chain.arrays {
		if c.chain.written[i] {
			copy(part(i), vectors[i*vectorBytes:])
		}
	}
	return arrays
}

// codes are those that somebody has, by the keys of their chains: a program has many groups that are alike.
var codes sync.Map // of string to weak.Pointer[Code]

// Compile makes machine code of the chain; nil where that is not [Available], or registers do not suffice. The
// memory of the code is free again when nothing has it any more.
func (c *Chain) Compile() *Code {
	if !Available() || c.arrays == 0 {
		return nil
	}
	key := c.key()
	if p, ok := codes.Load(key); ok {
		if code := p.(weak.Pointer[Code]).Value(); code != nil {
			return code
		}
	}
	code := c.make()
	if code != nil {
		p := weak.Make(code)
		codes.Store(key, p)
		runtime.AddCleanup(code, func(key string) { codes.CompareAndDelete(key, p) }, key)
	}
	return code
}

func (c *Chain) make() *Code {
	code := &Code{chain: c}
	for rows := c.side(); rows > 0; rows /= 2 {
		t := c.compile(rows)
		if t == nil {
			continue
		}
		p := memory.place(len(t.machine))
		if p == nil {
			return nil
		}
		copy(p.write, t.machine)
		runtime.AddCleanup(code, memory.release, p)
		code.texts = append(code.texts, placed{p.begin, rows})
		code.scratch = max(code.scratch, t.scratch)
		if rows > 1 {
			rows = 2 // one row comes next
		}
	}
	if n := len(code.texts); n == 0 || code.texts[n-1].rows > 1 {
		return nil
	}
	return code
}

// A region is memory for code: the system shows it twice, to be written and to be run, never both.
type region struct {
	write []byte
	begin uintptr // where it is run
}

// A store is memory for code, by powers of two of its size.
type store struct {
	mu   sync.Mutex
	free map[int][]*region
}

var memory = &store{free: make(map[int][]*region)}

const (
	smallestRegion = 512
	chunk          = 1 << 20
)

// place is a region of at least n bytes; nil where the system has none.
func (s *store) place(n int) *region {
	size := smallestRegion
	for size < n {
		size *= 2
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free[size]) == 0 && !s.grow(size) {
		return nil
	}
	rs := s.free[size]
	r := rs[len(rs)-1]
	s.free[size] = rs[:len(rs)-1]
	return r
}

func (s *store) release(r *region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free[len(r.write)] = append(s.free[len(r.write)], r)
}

// grow maps regions of a size.
func (s *store) grow(size int) bool {
	bytes := max(chunk, size)
	fd, err := unix.MemfdCreate("ppc", unix.MFD_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if unix.Ftruncate(fd, int64(bytes)) != nil {
		return false
	}
	write, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return false
	}
	run, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Munmap(write)
		return false
	}
	for at := 0; at+size <= bytes; at += size {
		s.free[size] = append(s.free[size], &region{write[at : at+size : at+size], uintptr(unsafe.Pointer(unsafe.SliceData(run))) + uintptr(at)})
	}
	return true
}
