package main

import (
	"math"
	"math/big"
)

// A function is computed element by element.
type function struct {
	name string
	args int
	body func(m machine, x []val) val
}

// functions are all of them; each is a kernel for every element type and width
// of vectors, and a function in Go.
var functions = []function{
	{"add", 2, func(m machine, x []val) val { return m.add(x[0], x[1]) }},
	{"subtract", 2, func(m machine, x []val) val { return m.sub(x[0], x[1]) }},
	{"multiply", 2, func(m machine, x []val) val { return m.mul(x[0], x[1]) }},
	{"divide", 2, func(m machine, x []val) val { return m.div(x[0], x[1]) }},
	{"maximum", 2, func(m machine, x []val) val { return m.max(x[0], x[1]) }},
	{"minimum", 2, func(m machine, x []val) val { return m.min(x[0], x[1]) }},
	{"negate", 1, func(m machine, x []val) val { return m.xor(x[0], m.bits(m.elem().sign())) }},
	{"abs", 1, func(m machine, x []val) val { return abs(m, x[0]) }},
	{"sqrt", 1, func(m machine, x []val) val { return m.sqrt(x[0]) }},
	{"rsqrt", 1, func(m machine, x []val) val { return m.div(m.num(1), m.sqrt(x[0])) }},
	{"exp", 1, func(m machine, x []val) val { return exp(m, x[0]) }},
	{"expm1", 1, func(m machine, x []val) val {
		v := m.pick(m.lt(m.num(20), x[0]), m.sub(exp(m, x[0]), m.num(1)), expm1(m, x[0]))
		return m.or(v, m.and(x[0], m.bits(m.elem().sign()))) // of zeros
	}},
	{"log", 1, func(m machine, x []val) val { return logarithm(m, x[0]) }},
	{"tanh", 1, func(m machine, x []val) val { return tanh(m, x[0]) }},
	{"logistic", 1, func(m machine, x []val) val { return logistic(m, x[0]) }},
	{"sin", 1, func(m machine, x []val) val { return circular(m, x[0], 0) }},
	{"cos", 1, func(m machine, x []val) val { return circular(m, x[0], 1) }},
}

func abs(m machine, x val) val { return m.and(x, m.bits(m.elem().sign()-1)) }

// largest and smallest are max and min of a machine without instructions for them.
func largest(m machine, x, y val) val  { return extreme(m, x, y, m.lt(y, x), m.lt(x, y), m.and) }
func smallest(m machine, x, y val) val { return extreme(m, x, y, m.lt(x, y), m.lt(y, x), m.or) }

// extreme is x where first holds and y where second does; of equal numbers, such
// as zeros, what join makes of their bits; else NaN.
func extreme(m machine, x, y val, first, second mask, join func(x, y val) val) val {
	return m.pick(first, x, m.pick(second, y, m.pick(m.eq(x, y), join(x, y), m.add(x, y))))
}

// reduced is n and r of x = n*ln2 + r, with n an integer and |r| no more than ln2/2.
func reduced(m machine, x val) (n, r val) {
	magic := m.num(m.elem().magic())
	n = m.sub(m.fma(x, m.num(1/math.Ln2), magic), magic)
	parts := split(m, ln2, 2)
	r = m.fma(n, m.num(-parts[0]), x)
	return n, m.fma(n, m.num(-parts[1]), r)
}

const (
	ln2    = "0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863326996418687"
	halfPi = "1.57079632679489661923132169163975144209858469968755291048747229615390820314310449931401741267105853399107"
)

// split is a decimal as a sum of n numbers of the element type, the largest first.
func split(m machine, decimal string, n int) []float64 {
	rest, _, err := big.ParseFloat(decimal, 10, 400, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	parts := make([]float64, n)
	for i := range parts {
		parts[i], _ = rest.Float64()
		if m.elem().size == 4 {
			p, _ := rest.Float32()
			parts[i] = float64(p)
		}
		rest.Sub(rest, big.NewFloat(parts[i]))
	}
	return parts
}

// horner is the polynomial with coefficients c, that of the highest power first.
func horner(m machine, x val, c ...float64) val {
	y := m.num(c[0])
	for _, k := range c[1:] {
		y = m.fma(y, x, m.num(k))
	}
	return y
}

// alternating are the inverse factorials of every other number, signs in turn.
func alternating(last, first int) []float64 {
	c := inverseFactorials(last, first, 2)
	for i := range c {
		if k := last - 2*i; (k/2)%2 == 1 {
			c[i] = -c[i]
		}
	}
	return c
}

// inverseFactorials are 1/last! down to 1/first!, every step-th.
func inverseFactorials(last, first, step int) []float64 {
	var c []float64
	for k := last; k >= first; k -= step {
		f := 1.0
		for i := 2; i <= k; i++ {
			f *= float64(i)
		}
		c = append(c, 1/f)
	}
	return c
}

// terms is the one of two numbers for the element type.
func terms(m machine, f32, f64 int) int {
	if m.elem().size == 4 {
		return f32
	}
	return f64
}

// expLess1 is exp(r) - 1 for |r| up to ln2/2.
func expLess1(m machine, r val) val {
	q := horner(m, r, inverseFactorials(terms(m, 7, 13), 2, 1)...)
	return m.fma(m.mul(r, r), q, r)
}

// exp is 0 where e^x is less than half of the least subnormal number, and is not computed there:
// on processors of Intel a result that underflows takes a hundred times as long as another, and
// masked logits do.
func exp(m machine, x val) val {
	underflows := m.lt(x, m.num(float64(terms(m, -104, -746))))
	most := m.num(float64(terms(m, 90, 711)))
	x = m.pick(m.lt(most, x), most, m.pick(underflows, m.num(0), x))
	n, r := reduced(m, x)
	return m.pick(underflows, m.num(0), m.scale(m.add(expLess1(m, r), m.num(1)), n))
}

// expm1 is exp(x) - 1 for x up to 80.
func expm1(m machine, x val) val {
	x = m.pick(m.lt(x, m.num(-40)), m.num(-40), x)
	n, r := reduced(m, x)
	p := power2(m, n)
	return m.fma(expLess1(m, r), p, m.sub(p, m.num(1)))
}

// tanh is expm1(2x) / (expm1(2x) + 2), with the sign of x.
func tanh(m machine, x val) val {
	a := abs(m, x)
	a = m.pick(m.lt(m.num(20), a), m.num(20), a)
	e := expm1(m, m.add(a, a))
	t := m.div(e, m.add(e, m.num(2)))
	return m.or(t, m.and(x, m.bits(m.elem().sign())))
}

// logistic is 1/(1+e) or e/(1+e), with e = exp(-|x|).
func logistic(m machine, x val) val {
	e := exp(m, m.or(x, m.bits(m.elem().sign())))
	return m.div(m.pick(m.lt(x, m.num(0)), e, m.num(1)), m.add(e, m.num(1)))
}

// logarithm follows FreeBSD's: x = 2^k (1+f) with 1+f around 1, s = f/(2+f), and a
// polynomial in s².
func logarithm(m machine, x val) val {
	e := m.elem()
	mantissa, size := e.mantissa(), e.size
	half, least, more := uint64(0x3f3504f3), 0x1p-126, 23.0
	c := []float64{0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693}
	high, low := 6.9313812256e-01, 9.0580006145e-06
	if size == 8 {
		half, least, more = 0x3fe6a09e667f3bcd, 0x1p-1022, 54
		c = []float64{1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01}
		high, low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	}
	one := uint64(e.bias()) << mantissa
	subnormal := m.lt(x, m.num(least))
	y := m.pick(subnormal, m.mul(x, m.num(math.Ldexp(1, int(more)))), x)
	u := m.iadd(y, m.bits(one-half))
	whole := math.Ldexp(1, mantissa) // whose low bits count
	k := m.sub(m.or(m.shr(u, mantissa), m.num(whole)), m.num(whole+float64(e.bias())))
	k = m.sub(k, m.pick(subnormal, m.num(more), m.num(0)))
	f := m.sub(m.iadd(m.and(u, m.bits(1<<mantissa-1)), m.bits(half)), m.num(1))
	s := m.div(f, m.add(f, m.num(2)))
	z := m.mul(s, s)
	r := m.mul(z, horner(m, z, c...))
	h := m.mul(m.mul(f, f), m.num(0.5))
	// k*high - ((h - (s*(h+r) + k*low)) - f)
	t := m.fma(s, m.add(h, r), m.mul(k, m.num(low)))
	v := m.fma(k, m.num(high), m.sub(f, m.sub(h, t)))
	v = m.pick(m.eq(x, m.num(math.Inf(1))), x, v)
	v = m.pick(m.eq(x, m.num(0)), m.num(math.Inf(-1)), v)
	v = m.pick(m.lt(x, m.num(0)), m.bits(m.elem().nan()), v)
	return m.pick(m.eq(x, x), v, m.add(x, x))
}

// nan is the bits of a quiet NaN.
func (e *elem) nan() uint64 {
	if e.size == 4 {
		return 0x7fc00000
	}
	return 0x7ff8000000000000
}

// circular is the sine of x a quarter of a turn later for turn = 1, where |x| is
// below 2^14 for f32 and 2^20 for f64.
func circular(m machine, x val, turn uint64) val {
	magic := m.num(m.elem().magic())
	t := m.fma(x, m.num(2/math.Pi), magic)
	n := m.sub(t, magic)
	r := x
	for _, p := range split(m, halfPi, 3) {
		r = m.fma(n, m.num(-p), r)
	}
	q := m.iadd(t, m.bits(turn))
	z := m.mul(r, r)
	sine := m.fma(m.mul(r, z), horner(m, z, alternating(terms(m, 9, 17), 3)...), r)
	cosine := m.fma(m.mul(z, z), horner(m, z, alternating(terms(m, 10, 16), 4)...), m.fma(z, m.num(-0.5), m.num(1)))
	v := m.pick(m.bit(q, 1), cosine, sine)
	v = m.xor(v, m.shl(m.and(q, m.bits(2)), 8*m.elem().size-2))
	if turn == 0 {
		v = m.pick(m.eq(x, m.num(0)), x, v) // keeps the sign of zero
	}
	return v
}
