package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A vectors is the machine of vectors of 32 or 64 bytes.
type vectors struct {
	e     *elem
	bytes int
	masks int // of 512 bits, taken so far
}

// masks are taken in turns: none is needed longer than for six others.
var masks = []reg.Register{reg.K1, reg.K2, reg.K3, reg.K4, reg.K5, reg.K6, reg.K7}

func (v *vectors) mask() reg.Register {
	v.masks++
	return masks[v.masks%len(masks)]
}

func (v *vectors) elem() *elem { return v.e }
func (v *vectors) wide() bool  { return v.bytes == 64 }

func (v *vectors) fresh() reg.VecVirtual {
	if v.wide() {
		return ZMM()
	}
	return YMM()
}

// ps is the one of two instructions for the element type.
func (v *vectors) ps(s, d func(...Op)) func(...Op) {
	if v.e.size == 4 {
		return s
	}
	return d
}

// pool holds the constants, each filling a vector of 64 bytes.
var pool = make(map[string]Mem)

func (v *vectors) bits(x uint64) val {
	name := fmt.Sprintf("c%d_%x", 8*v.e.size, x)
	if m, ok := pool[name]; ok {
		return m
	}
	m := GLOBL(name, NOPTR|RODATA)
	for at := 0; at < 64; at += v.e.size {
		if v.e.size == 4 {
			DATA(at, U32(x))
		} else {
			DATA(at, U64(x))
		}
	}
	pool[name] = m
	return m
}

func (v *vectors) num(x float64) val {
	if v.e.size == 4 {
		return v.bits(uint64(math.Float32bits(float32(x))))
	}
	return v.bits(math.Float64bits(x))
}

// held is x in a register.
func (v *vectors) held(x val) reg.VecVirtual {
	if r, ok := x.(reg.VecVirtual); ok {
		return r
	}
	r := v.fresh()
	v.e.load(x.(Op), r)
	return r
}

// two writes an instruction on x and y, of which y may be in memory.
func (v *vectors) two(f func(...Op), x, y val) val {
	r := v.fresh()
	f(y.(Op), v.held(x), r)
	return r
}

// either is two for an instruction that does not care for the order.
func (v *vectors) either(f func(...Op), x, y val) val {
	if _, ok := x.(Mem); ok {
		x, y = y, x
	}
	return v.two(f, x, y)
}

func (v *vectors) add(x, y val) val { return v.either(v.ps(VADDPS, VADDPD), x, y) }
func (v *vectors) sub(x, y val) val { return v.two(v.ps(VSUBPS, VSUBPD), x, y) }
func (v *vectors) mul(x, y val) val { return v.either(v.ps(VMULPS, VMULPD), x, y) }
func (v *vectors) div(x, y val) val { return v.two(v.ps(VDIVPS, VDIVPD), x, y) }

func (v *vectors) sqrt(x val) val {
	r := v.fresh()
	v.ps(VSQRTPS, VSQRTPD)(x.(Op), r)
	return r
}

func (v *vectors) max(x, y val) val {
	if !v.wide() {
		return largest(v, x, y)
	}
	return v.ranged(5, x, y)
}

func (v *vectors) min(x, y val) val {
	if !v.wide() {
		return smallest(v, x, y)
	}
	return v.ranged(4, x, y)
}

// ranged is one of x and y, which a number says. The instruction gives the other one of a NaN.
func (v *vectors) ranged(which uint64, x, y val) val {
	a, r := v.held(x), v.fresh()
	v.ps(VRANGEPS, VRANGEPD)(Imm(which), y.(Op), a, r)
	v.ps(VADDPS, VADDPD)(y.(Op), a, v.compare(isUnordered, a, y).(Op), r)
	return r
}

func (v *vectors) fma(x, y, z val) val {
	if _, ok := x.(Mem); ok {
		x, y = y, x
	}
	r := v.fresh()
	if _, ok := y.(Mem); ok { // r += x*y
		v.e.load(z.(Op), r)
		v.e.fma(y.(Op), v.held(x), r)
		return r
	}
	v.e.load(x.(Op), r)
	v.ps(VFMADD213PS, VFMADD213PD)(z.(Op), y.(Op), r) // r = r*y + z
	return r
}

// The predicates of comparisons: quiet, all but the last false with a NaN.
const (
	isEqual     = 0
	isLess      = 17
	isLessEqual = 18
	isUnordered = 3
)

func (v *vectors) compare(predicate uint64, x, y val) mask {
	if v.wide() {
		k := v.mask()
		v.ps(VCMPPS, VCMPPD)(Imm(predicate), y.(Op), v.held(x), k)
		return k
	}
	r := YMM()
	v.ps(VCMPPS, VCMPPD)(Imm(predicate), y.(Op), v.held(x), r)
	return r
}

// compareInts compares signed integers of 4 bytes.
func (v *vectors) compareInts(predicate uint64, x val, y Mem) mask {
	if v.wide() {
		k := v.mask()
		VPCMPD(Imm(predicate), y, v.held(x), k)
		return k
	}
	r := YMM()
	switch predicate {
	case isEqualInt, isUnequalInt:
		VPCMPEQD(y, v.held(x), r)
	case isLessInt:
		VMOVDQU(y, r)
		VPCMPGTD(v.held(x), r, r)
	case isLessEqualInt:
		VPCMPGTD(y, v.held(x), r)
	}
	if predicate == isUnequalInt || predicate == isLessEqualInt { // the opposite has been asked for
		ones := YMM()
		VPCMPEQD(ones, ones, ones)
		VPXOR(ones, r, r)
	}
	return r
}

func (v *vectors) lt(x, y val) mask { return v.compare(isLess, x, y) }
func (v *vectors) le(x, y val) mask { return v.compare(isLessEqual, x, y) }
func (v *vectors) eq(x, y val) mask { return v.compare(isEqual, x, y) }

func (v *vectors) bit(x val, b uint64) mask {
	if v.wide() {
		k := v.mask()
		v.ps(VPTESTMD, VPTESTMQ)(v.bits(b).(Op), v.held(x), k)
		return k
	}
	r := v.and(x, v.bits(b))
	out := YMM()
	v.ps(VPCMPEQD, VPCMPEQQ)(v.bits(b).(Op), r.(Op), out)
	return out
}

func (v *vectors) pick(m mask, x, y val) val {
	r := v.fresh()
	if v.wide() {
		v.e.load(y.(Op), r)
		v.e.load(x.(Op), m.(Op), r)
	} else {
		blend := VBLENDVPS
		if v.e.size == 8 {
			blend = VBLENDVPD
		}
		blend(m.(Op), x.(Op), v.held(y), r)
	}
	return r
}

// of is the one of two instructions for the width.
func (v *vectors) of(narrow func(x, y, z Op), wide func(...Op)) func(...Op) {
	if v.wide() {
		return wide
	}
	return func(o ...Op) { narrow(o[0], o[1], o[2]) }
}

func (v *vectors) and(x, y val) val  { return v.either(v.of(VPAND, VPANDD), x, y) }
func (v *vectors) or(x, y val) val   { return v.either(v.of(VPOR, VPORD), x, y) }
func (v *vectors) xor(x, y val) val  { return v.either(v.of(VPXOR, VPXORD), x, y) }
func (v *vectors) iadd(x, y val) val { return v.either(v.ps(VPADDD, VPADDQ), x, y) }

func (v *vectors) shl(x val, n int) val { return v.shift(v.ps(VPSLLD, VPSLLQ), x, n) }
func (v *vectors) shr(x val, n int) val { return v.shift(v.ps(VPSRLD, VPSRLQ), x, n) }

func (v *vectors) shift(f func(...Op), x val, n int) val {
	r := v.fresh()
	f(Imm(uint64(n)), v.held(x), r)
	return r
}

func (v *vectors) scale(x, n val) val {
	if !v.wide() {
		return halves(v, x, n)
	}
	return v.two(v.ps(VSCALEFPS, VSCALEFPD), x, n)
}
