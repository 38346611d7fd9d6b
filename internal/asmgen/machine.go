package main

// A val is a vector of elements while an elementary function is written down: a
// register or a constant in memory of the assembly, a variable or a constant of
// the Go text. A mask is a val that is true or false in each element.
type (
	val  any
	mask any
)

// A machine writes one operation after the other, each rounded by itself but for
// fma. What is written for one machine gives the bits of what is written for
// another, NaN aside, whose sign and payload are a machine's own.
type machine interface {
	elem() *elem

	num(x float64) val   // a constant
	bits(x uint64) val   // a constant by its bits
	add(x, y val) val    // x + y
	sub(x, y val) val    // x - y
	mul(x, y val) val    // x * y
	div(x, y val) val    // x / y
	fma(x, y, z val) val // x*y + z, rounded once
	sqrt(x val) val
	max(x, y val) val // NaN where either is; -0 is less than 0
	min(x, y val) val

	lt(x, y val) mask          // x < y; false with a NaN
	le(x, y val) mask          // x <= y
	eq(x, y val) mask          // x == y
	bit(x val, b uint64) mask  // a bit of x that is in b is set
	pick(m mask, x, y val) val // x where m holds, else y

	and(x, y val) val // on the bits
	or(x, y val) val
	xor(x, y val) val
	iadd(x, y val) val // of the bits as integers, wrapping
	shl(x val, n int) val
	shr(x val, n int) val // logical

	// scale is x * 2^n for an integer n and |x| between 1/4 and 4, rounded once where
	// the result is subnormal. |n| is below 250 for f32, 2000 for f64.
	scale(x, n val) val
}

// power2 is 2^n for an integer n that is small enough for a normal result.
func power2(m machine, n val) val {
	e := m.elem()
	return m.shl(m.iadd(m.add(n, m.num(e.magic())), m.bits(uint64(e.bias()))), e.mantissa())
}

// halves is scale by two powers of two, of which the first is exact.
func halves(m machine, x, n val) val {
	half := m.sub(m.fma(n, m.num(0.5), m.num(m.elem().magic())), m.num(m.elem().magic()))
	return m.mul(m.mul(x, power2(m, half)), power2(m, m.sub(n, half)))
}

// magic is a number whose units are 1, so that what is added to it is rounded to
// an integer in the low bits.
func (e *elem) magic() float64 {
	if e.size == 4 {
		return 0x1.8p23
	}
	return 0x1.8p52
}

func (e *elem) bias() int {
	if e.size == 4 {
		return 127
	}
	return 1023
}

// mantissa is how many bits of a number are below its exponent.
func (e *elem) mantissa() int {
	if e.size == 4 {
		return 23
	}
	return 52
}

func (e *elem) sign() uint64 { return 1 << (8*e.size - 1) }
