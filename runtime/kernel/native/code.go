package native

import (
	"encoding/binary"
	"slices"
)

// A value is a register to be, of vectors or of masks, by its number, or a constant: minus its number, less 1.
type value int

const none value = -1 << 30

func (v value) constant() bool { return v < 0 && v != none }

// A step is an instruction whose registers are not yet known.
type step struct {
	instruction
	length byte
	dst    value
	kept   value // what dst has before, where the instruction changes it
	first  value
	rm     value
	at     place // in place of rm, where it is memory
	array  int   // whose pointer is the base of at; -1 where it is none
	table  int   // whose entry is the offset of the base from the array's begin; -1 where it is none
	entry  int   // behind that of the row or of the elements at hand
	ofRow  bool  // the table has an entry for each row
	mask   value
	zero   bool
	imm    byte
}

// A code is a chain on the way to machine code: the machine of functions.go. Steps are collected and then
// given registers, a straight piece at a time.
type code struct {
	encoder
	steps  []step
	length byte // of vectors
	masks  map[value]bool
	pinned map[value]int // registers that are kept beyond a piece
	n      value         // registers to be, so far
	free   [32]bool
	pool   map[uint32]int
	consts []byte
	failed bool // there are not enough registers
}

func newCode() *code {
	c := &code{masks: make(map[value]bool), pinned: make(map[value]int), pool: make(map[uint32]int), length: 2}
	for i := range c.free {
		c.free[i] = true
	}
	return c
}

func (c *code) bits(x uint32) value {
	i, ok := c.pool[x]
	if !ok {
		i = len(c.consts)
		c.pool[x] = i
		c.consts = binary.LittleEndian.AppendUint32(c.consts, x)
	}
	return value(-i - 1)
}

// emit appends a step with a new destination.
func (c *code) emit(s step) value {
	s.dst = c.n
	c.n++
	c.append(s)
	return s.dst
}

func (c *code) append(s step) {
	s.length = c.length
	c.steps = append(c.steps, s)
}

// plain is a step without what most have not.
func plain(i instruction) step {
	return step{instruction: i, dst: none, kept: none, first: none, rm: none, array: -1, table: -1, mask: none}
}

// held is x in a register.
func (c *code) held(x value) value {
	if !x.constant() {
		return x
	}
	s := plain(vbroadcastss)
	s.at = place{memory: true, constant: true, disp: int32(-x - 1)}
	return c.emit(s)
}

func (c *code) two(i instruction, x, y value, imm byte) value {
	s := plain(i)
	s.first, s.rm, s.imm = c.held(x), y, imm
	return c.emit(s)
}

// either is two for an instruction that does not care for the order.
func (c *code) either(i instruction, x, y value) value {
	if x.constant() {
		x, y = y, x
	}
	return c.two(i, x, y, 0)
}

func (c *code) one(i instruction, x value, imm byte) value {
	s := plain(i)
	s.rm, s.imm = c.held(x), imm
	return c.emit(s)
}

func (c *code) add(x, y value) value   { return c.either(vaddps, x, y) }
func (c *code) sub(x, y value) value   { return c.two(vsubps, x, y, 0) }
func (c *code) mul(x, y value) value   { return c.either(vmulps, x, y) }
func (c *code) div(x, y value) value   { return c.two(vdivps, x, y, 0) }
func (c *code) sqrt(x value) value     { return c.one(vsqrtps, x, 0) }
func (c *code) and(x, y value) value   { return c.either(vpandd, x, y) }
func (c *code) or(x, y value) value    { return c.either(vpord, x, y) }
func (c *code) xor(x, y value) value   { return c.either(vpxord, x, y) }
func (c *code) iadd(x, y value) value  { return c.either(vpaddd, x, y) }
func (c *code) scale(x, n value) value { return c.two(vscalefps, x, n, 0) }

func (c *code) shl(x value, n int) value { return c.one(vpslld, x, byte(n)) }
func (c *code) shr(x value, n int) value { return c.one(vpsrld, x, byte(n)) }

func (c *code) fma(x, y, z value) value {
	if x.constant() {
		x, y = y, x
	}
	s := plain(vfmadd213ps)
	s.kept, s.first, s.rm = c.held(x), y, z
	if y.constant() {
		s = plain(vfmadd231ps)
		s.kept, s.first, s.rm = c.held(z), c.held(x), y
	}
	return c.emit(s)
}

func (c *code) max(x, y value) value { return c.ranged(5, x, y) }
func (c *code) min(x, y value) value { return c.ranged(4, x, y) }

// ranged is one of x and y, which a number says. The instruction gives the other one of a NaN.
func (c *code) ranged(which byte, x, y value) value {
	x = c.held(x)
	s := plain(vaddps)
	s.kept, s.mask = c.two(vrangeps, x, y, which), c.compare(isUnordered, x, y)
	s.first, s.rm = x, y
	return c.emit(s)
}

// The predicates of comparisons: quiet, all but unequal and unordered false with a NaN.
const (
	isEqual     = 0
	isUnequal   = 4
	isLess      = 17
	isLessEqual = 18
	isUnordered = 3
)

func (c *code) compare(predicate byte, x, y value) value {
	m := c.two(vcmpps, x, y, predicate)
	c.masks[m] = true
	return m
}

func (c *code) lt(x, y value) value { return c.compare(isLess, x, y) }
func (c *code) eq(x, y value) value { return c.compare(isEqual, x, y) }

func (c *code) bit(x value, b uint32) value {
	m := c.two(vptestmd, x, c.bits(b), 0)
	c.masks[m] = true
	return m
}

func (c *code) pick(m, x, y value) value {
	s := plain(vblendmps)
	s.first, s.rm, s.mask = c.held(y), x, m
	return c.emit(s)
}

// load is a vector at a place relative to an array's begin.
func (c *code) load(i instruction, array int, at place) value {
	s := plain(i)
	s.array, s.at = array, at
	return c.emit(s)
}

// loadCondition is the mask of bytes that are 0 or not.
func (c *code) loadCondition(array int, at place) value {
	return c.isSet(c.load(vpmovzxbd, array, at))
}

// isSet is the mask of lanes that are not 0.
func (c *code) isSet(x value) value {
	m := c.two(vptestmd, x, x, 0)
	c.masks[m] = true
	return m
}

func (c *code) store(i instruction, x value, array int, at place) {
	s := plain(i)
	s.first, s.array, s.at = c.held(x), array, at
	c.append(s)
}

// storeCondition writes bytes of 0 or 1 for each lane of a mask.
func (c *code) storeCondition(m value, array int, at place) {
	length := c.length
	c.length = 0
	s := plain(vmovdqu8)
	s.rm, s.mask, s.zero = c.held(c.bits(0x01010101)), m, true
	c.store(vmovdqu8To, c.emit(s), array, at)
	c.length = length
}

// pin gives x a register that it keeps until it is released.
func (c *code) pin(x value) {
	if _, ok := c.pinned[x]; ok {
		return
	}
	for r := len(c.free) - 1; r >= 0; r-- {
		if c.free[r] {
			c.free[r] = false
			c.pinned[x] = r
			return
		}
	}
	c.failed = true
}

func (c *code) release(x value) {
	if r, ok := c.pinned[x]; ok {
		c.free[r] = true
		delete(c.pinned, x)
	}
}

// pointers are the registers of the first arrays; the pointers of others are loaded when they are needed.
var pointers = []int{rsi, rbx, r11, r12, r13, r14, r15}

// pointer is a register that points to an array.
func (c *code) pointer(array int) int {
	if array < len(pointers) {
		return pointers[array]
	}
	c.loadPointer(rax, rdi, int32(8*array))
	return rax
}

// flush gives the steps registers and writes them.
func (c *code) flush() {
	a := &allocation{code: c, last: make(map[value]int), registers: make(map[value]int), free: c.free}
	for k := 1; k < len(a.freeMasks); k++ { // the first stands for none
		a.freeMasks[k] = true
	}
	for i, s := range c.steps {
		for _, v := range []value{s.kept, s.first, s.rm, s.mask} {
			a.last[v] = i
		}
	}
	for i := range c.steps {
		a.write(i, &c.steps[i])
	}
	c.steps = c.steps[:0]
}

// An allocation is which registers the steps of a straight piece have.
type allocation struct {
	*code
	last      map[value]int // the step that reads it last
	registers map[value]int
	free      [32]bool
	freeMasks [8]bool
}

// bank is which of the registers that v may have are free.
func (a *allocation) bank(v value) []bool {
	if a.masks[v] {
		return a.freeMasks[:]
	}
	return a.free[:]
}

// at is the register of v; 0 where there is none.
func (a *allocation) at(v value) int {
	if r, ok := a.pinned[v]; ok {
		return r
	}
	return a.registers[v]
}

// dies reports whether step i is the last that needs v's register.
func (a *allocation) dies(i int, v value) bool {
	_, pinned := a.pinned[v]
	return v >= 0 && !pinned && a.last[v] == i
}

// done frees registers behind step i.
func (a *allocation) done(i int, vs ...value) {
	for _, v := range vs {
		if a.dies(i, v) {
			a.bank(v)[a.registers[v]] = true
		}
	}
}

// take gives v a register.
func (a *allocation) take(v value) int {
	if r, ok := a.pinned[v]; ok {
		return r
	}
	b := a.bank(v)
	r := slices.Index(b, true)
	if r < 0 {
		a.failed = true
		return 0
	}
	b[r], a.registers[v] = false, r
	return r
}

// write writes step i. What it reads may have the register of what it makes, but for an instruction that changes its destination, whose
// other operands are read after that was moved there.
func (a *allocation) write(i int, s *step) {
	rm, first, mask := a.operand(s), a.at(s.first), a.at(s.mask)
	if s.dst == none { // a store
		a.vector(s.instruction, s.length, first, 0, rm, mask, s.zero, s.imm)
		a.done(i, s.first, s.mask)
		return
	}
	var dst int
	_, pinned := a.pinned[s.dst]
	switch {
	case s.kept == none:
		a.done(i, s.first, s.rm, s.mask)
		dst = a.take(s.dst)
	case a.dies(i, s.kept) && !pinned:
		dst = a.registers[s.kept]
		a.done(i, s.first, s.rm, s.mask)
		a.free[dst], a.registers[s.dst] = false, dst
	default:
		dst = a.take(s.dst)
		a.vector(vmovups, s.length, dst, 0, place{register: a.at(s.kept)}, 0, false, 0)
		a.done(i, s.kept, s.first, s.rm, s.mask)
	}
	a.vector(s.instruction, s.length, dst, first, rm, mask, s.zero, s.imm)
	if _, read := a.last[s.dst]; !read && !pinned {
		a.bank(s.dst)[dst] = true
	}
}

// operand is the last operand of a step, whose address it makes.
func (a *allocation) operand(s *step) place {
	switch at := s.at; {
	case at.memory && s.array >= 0 && s.table >= 0:
		entry := place{memory: true, base: a.pointer(s.table), index: r8, scale: 4, disp: int32(4 * s.entry)}
		if s.ofRow {
			entry.index = rdx
		}
		a.loadIndex(rax, entry)
		a.addPointer(rax, rdi, int32(8*s.array))
		at.base = rax
		return at
	case at.memory && s.array >= 0:
		at.base = a.pointer(s.array)
		return at
	case at.memory:
		return at
	case s.rm.constant():
		return place{memory: true, constant: true, one: true, disp: int32(-s.rm - 1)}
	}
	return place{register: a.at(s.rm)}
}
