package main

import (
	"fmt"
	"math/bits"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func (v *vectors) begin(name, signature string) {
	TEXT(fmt.Sprintf("%s%sx%d", name, v.e.name, 8*v.bytes), NOSPLIT, signature)
	Pragma("noescape")
}

// counted writes a loop over so many blocks: body gets the block's place times
// the bytes of a vector, as an index.
func counted(blocks reg.GPVirtual, bytes int, body func(at reg.GPVirtual)) {
	at := GP64()
	XORQ(at, at)
	SHLQ(Imm(uint64(bits.TrailingZeros(uint(bytes)))), blocks)
	Label("loop")
	body(at)
	ADDQ(Imm(uint64(bytes)), at)
	CMPQ(at, blocks)
	JLT(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func index(base, at reg.GPVirtual, scale uint8) Mem { return Mem{Base: base, Index: at, Scale: scale} }

// loop writes the kernel of f: so many full vectors, one or more.
func (v *vectors) loop(f function) {
	names := []string{"x", "y", "z"}[:f.args]
	v.begin(f.name, fmt.Sprintf("func(dst, %s *byte, blocks int)", strings.Join(names, ", ")))
	dst := param("dst")
	var in []reg.GPVirtual
	for _, n := range names {
		in = append(in, param(n))
	}
	counted(param("blocks"), v.bytes, func(at reg.GPVirtual) {
		var x []val
		for _, p := range in {
			r := v.fresh()
			v.e.load(index(p, at, 1), r)
			x = append(x, r)
		}
		v.e.load(v.held(f.body(v, x)), index(dst, at, 1))
	})
}

var comparisons = []struct {
	name           string
	float, integer uint64 // predicates
}{{"equal", 0, isEqualInt}, {"unequal", 4, isUnequalInt}, {"less", 17, isLessInt}, {"lessEqual", 18, isLessEqualInt}}

// Predicates of VPCMPD.
const isEqualInt, isLessInt, isLessEqualInt, isUnequalInt = 0, 1, 2, 4

// comparison writes a kernel that gives a byte of 0 or 1 for each element.
func (v *vectors) comparison(name string, compare func(x val, y Mem) mask) {
	v.begin(name, "func(dst, x, y *byte, blocks int)")
	dst, x, y, blocks := param("dst"), param("x"), param("y"), param("blocks")
	ones := GP64()
	MOVQ(U64(0x0101010101010101), ones)
	counted(blocks, v.bytes, func(at reg.GPVirtual) {
		a := v.fresh()
		v.e.load(index(x, at, 1), a)
		m := compare(a, index(y, at, 1))
		lanes := v.bytes / v.e.size
		if v.wide() {
			bytes := XMM()
			VPMOVM2B(m.(Op), bytes)
			out := XMM()
			one := XMM()
			VMOVQ(ones, one)
			VPBROADCASTQ(one, one)
			VPAND(one, bytes, out)
			if lanes == 16 {
				VMOVDQU(out, Mem{Base: dst})
			} else {
				VMOVQ(out, Mem{Base: dst})
			}
		} else {
			lanesSet, bytes := GP32(), GP64()
			movmask := VMOVMSKPS
			if v.e.size == 8 {
				movmask = VMOVMSKPD
			}
			movmask(m.(Op), lanesSet)
			PDEPQ(ones, lanesSet.As64(), bytes)
			if lanes == 8 {
				MOVQ(bytes, Mem{Base: dst})
			} else {
				MOVL(bytes.As32(), Mem{Base: dst})
			}
		}
		ADDQ(Imm(uint64(lanes)), dst)
	})
}

// choice writes the kernel that takes elements of x where the byte of p is not
// 0, else of y.
func (v *vectors) choice() {
	v.begin("choose", "func(dst, p, x, y *byte, blocks int)")
	dst, p, x, y, blocks := param("dst"), param("p"), param("x"), param("y"), param("blocks")
	counted(blocks, v.bytes, func(at reg.GPVirtual) {
		m := v.bytesAsMask(Mem{Base: p})
		a := v.fresh()
		v.e.load(index(y, at, 1), a)
		v.e.load(v.pick(m, index(x, at, 1), a).(Op), index(dst, at, 1))
		ADDQ(Imm(uint64(v.bytes/v.e.size)), p)
	})
}

func (v *vectors) bytesAsMask(p Mem) mask {
	w := v.fresh()
	v.ps(VPMOVZXBD, VPMOVZXBQ)(p, w)
	if v.wide() {
		k := v.mask()
		v.ps(VPTESTMD, VPTESTMQ)(w, w, k)
		return k
	}
	zero, none, m := YMM(), YMM(), YMM()
	VPXOR(zero, zero, zero)
	v.ps(VPCMPEQD, VPCMPEQQ)(zero, w, none)
	v.ps(VPCMPEQD, VPCMPEQQ)(zero, none, m) // all ones where none is zero
	return m
}

// fromBits writes the conversion of booleans to f32.
func (v *vectors) fromBits() {
	v.begin("fromBool", "func(dst, x *byte, blocks int)")
	dst, x, blocks := param("dst"), param("x"), param("blocks")
	counted(blocks, v.bytes, func(at reg.GPVirtual) {
		w, f := v.fresh(), v.fresh()
		VPMOVZXBD(Mem{Base: x}, w)
		VCVTDQ2PS(w, f)
		VMOVUPS(f, index(dst, at, 1))
		ADDQ(Imm(uint64(v.bytes/4)), x)
	})
}

// widen writes the conversion of bf16 to f32.
func (v *vectors) widen() {
	v.begin("widenBF16", "func(dst, x *byte, blocks int)")
	dst, x, blocks := param("dst"), param("x"), param("blocks")
	counted(blocks, v.bytes, func(at reg.GPVirtual) {
		w := v.fresh()
		VPMOVZXWD(Mem{Base: x}, w)
		v.e.load(v.shl(w, 16).(Op), index(dst, at, 1))
		ADDQ(Imm(uint64(v.bytes/2)), x)
	})
}

// narrow writes the conversion of f32 to bf16, to nearest, ties to even.
func (v *vectors) narrow() {
	v.begin("narrowBF16", "func(dst, x *byte, blocks int)")
	dst, x, blocks := param("dst"), param("x"), param("blocks")
	counted(blocks, v.bytes, func(at reg.GPVirtual) {
		a := v.fresh()
		v.e.load(index(x, at, 1), a)
		odd := v.and(v.shr(a, 16), v.bits(1))
		rounded := v.iadd(v.iadd(a, v.bits(0x7fff)), odd)
		nan := v.or(v.and(a, v.bits(0x80000000)), v.bits(0x7fc00000))
		high := v.shr(v.pick(v.eq(a, a), rounded, nan), 16).(reg.VecVirtual)
		if v.wide() {
			VPMOVDW(high, Mem{Base: dst})
		} else {
			packed, ordered := YMM(), YMM()
			VPACKUSDW(high, high, packed)
			VPERMQ(Imm(0x08), packed, ordered)
			VMOVDQU(ordered.AsX(), Mem{Base: dst})
		}
		ADDQ(Imm(uint64(v.bytes/2)), dst)
	})
}

// A fold is how a row of numbers becomes one.
type fold struct {
	name string
	body func(m machine, x, y val) val
}

var folds = []fold{
	{"sumRows", func(m machine, x, y val) val { return m.add(x, y) }},
	{"maxRows", func(m machine, x, y val) val { return m.max(x, y) }},
}

// foldLanes is how many chains a row is folded in: element i goes to chain
// i mod foldLanes, and the upper half of the chains is folded into the lower
// until one is left.
const foldLanes = 32

// rows writes the kernel that folds rows of so many times foldLanes elements, one
// after the other, each to an element of dst.
func (v *vectors) rows(f fold) {
	v.begin(f.name, "func(dst, x *byte, rows, blocks int)")
	dst, x, rows, blocks := param("dst"), param("x"), param("rows"), param("blocks")
	n := GP64()
	Label("row")
	regs := foldLanes * v.e.size / v.bytes
	acc := make([]reg.VecVirtual, regs)
	for i := range acc {
		acc[i] = v.fresh()
		v.e.load(Mem{Base: x, Disp: i * v.bytes}, acc[i])
	}
	MOVQ(blocks, n)
	ADDQ(U32(foldLanes*v.e.size), x)
	DECQ(n)
	JZ(LabelRef("tree"))
	Label("loop")
	for i := range acc {
		in := v.fresh()
		v.e.load(Mem{Base: x, Disp: i * v.bytes}, in)
		v.e.load(v.held(f.body(v, acc[i], in)), acc[i])
	}
	ADDQ(U32(foldLanes*v.e.size), x)
	DECQ(n)
	JNZ(LabelRef("loop"))
	Label("tree")
	vals := make([]val, regs)
	for i := range acc {
		vals[i] = acc[i]
	}
	for len(vals) > 1 {
		h := len(vals) / 2
		for i := range h {
			vals[i] = f.body(v, vals[i], vals[i+h])
		}
		vals = vals[:h]
	}
	low := vals[0].(reg.VecVirtual)
	for width := v.bytes / 2; width >= v.e.size; width /= 2 {
		upper := v.fresh()
		v.upper(width, low, upper)
		low = v.held(f.body(v, low, upper))
	}
	if v.e.size == 4 {
		VMOVSS(low.AsX(), Mem{Base: dst})
	} else {
		VMOVSD(low.AsX(), Mem{Base: dst})
	}
	ADDQ(Imm(uint64(v.e.size)), dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// upper moves the second so many bytes of low to the beginning of to.
func (v *vectors) upper(width int, low, to reg.VecVirtual) {
	switch {
	case width == 32:
		VSHUFF64X2(Imm(0x0e), low, low, to)
	case width == 16 && v.wide():
		VSHUFF64X2(Imm(1), low, low, to)
	case width == 16:
		VPERM2F128(Imm(0x11), low, low, to)
	case width == 8:
		VPERMILPD(Imm(1), low, to)
	case width == 4:
		VPERMILPS(Imm(1), low, to)
	}
}

// copyRows writes the copy of so many rows of two vectors, from rows that are
// stride bytes apart to contiguous rows.
func (v *vectors) copyRows() {
	v.begin("copyRows", "func(dst, src *byte, stride, rows int)")
	dst, src, stride, rows := param("dst"), param("src"), param("stride"), param("rows")
	Label("loop")
	for i := range 2 {
		x := v.fresh()
		v.e.load(Mem{Base: src, Disp: i * v.bytes}, x)
		v.e.load(x, Mem{Base: dst, Disp: i * v.bytes})
	}
	ADDQ(stride, src)
	ADDQ(U32(2*v.bytes), dst)
	DECQ(rows)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// prefetchRows writes the bringing of the first line of so many rows, stride bytes apart, into the first-level cache.
func prefetchRows() {
	TEXT("prefetchRows", NOSPLIT, "func(x *byte, stride, rows int)")
	Pragma("noescape")
	x, stride, rows := param("x"), param("stride"), param("rows")
	Label("loop")
	PREFETCHT0(Mem{Base: x})
	ADDQ(stride, x)
	DECQ(rows)
	JNZ(LabelRef("loop"))
	RET()
}

// moveRows writes the copy of so many boxes of so many rows of so many bytes, 4 or more,
// between rows that are dstRow and srcRow bytes apart; dstSkip and srcSkip are from behind the
// last row of a box to the next box. The last bytes of a row are moved by
// a vector that ends with it, so that some are moved twice.
func moveRows() {
	TEXT("moveRows", NOSPLIT, "func(dst *byte, dstRow int, src *byte, srcRow int, bytes, rows, dstSkip, srcSkip, boxes int)")
	Pragma("noescape")
	dst, dstRow, src, srcRow, n, rows, boxes := param("dst"), param("dstRow"), param("src"), param("srcRow"), param("bytes"), param("rows"), param("boxes")
	next := func(loop string) {
		ADDQ(dstRow, dst)
		ADDQ(srcRow, src)
		DECQ(rows)
		JNZ(LabelRef(loop))
		ADDQ(param("dstSkip"), dst)
		ADDQ(param("srcSkip"), src)
		Load(Param("rows"), rows)
		DECQ(boxes)
		JNZ(LabelRef(loop))
		VZEROUPPER()
		RET()
	}
	last := GP64() // where the last vector begins
	CMPQ(n, Imm(64))
	JA(LabelRef("long"))
	for _, c := range []struct {
		bytes    int
		register func() reg.Register
		move     func(...Op)
	}{
		{32, func() reg.Register { return YMM() }, func(ops ...Op) { VMOVUPS(ops[0], ops[1]) }},
		{16, func() reg.Register { return XMM() }, func(ops ...Op) { VMOVUPS(ops[0], ops[1]) }},
		{8, func() reg.Register { return GP64() }, func(ops ...Op) { MOVQ(ops[0], ops[1]) }},
		{4, func() reg.Register { return GP32() }, func(ops ...Op) { MOVL(ops[0], ops[1]) }},
	} {
		loop, smaller := fmt.Sprint("loop", c.bytes), fmt.Sprint("below", c.bytes)
		if c.bytes > 4 {
			CMPQ(n, Imm(uint64(c.bytes)))
			JB(LabelRef(smaller))
		}
		LEAQ(Mem{Base: n, Disp: -c.bytes}, last)
		Label(loop)
		x, y := c.register(), c.register()
		c.move(Mem{Base: src}, x)
		c.move(Mem{Base: src, Index: last, Scale: 1}, y)
		c.move(x, Mem{Base: dst})
		c.move(y, Mem{Base: dst, Index: last, Scale: 1})
		next(loop)
		if c.bytes > 4 {
			Label(smaller)
		}
	}
	Label("long")
	LEAQ(Mem{Base: n, Disp: -32}, last)
	Label("row")
	at, x := GP64(), YMM()
	XORQ(at, at)
	Label("vector")
	VMOVUPS(Mem{Base: src, Index: at, Scale: 1}, x)
	VMOVUPS(x, Mem{Base: dst, Index: at, Scale: 1})
	ADDQ(Imm(32), at)
	CMPQ(at, last)
	JB(LabelRef("vector"))
	VMOVUPS(Mem{Base: src, Index: last, Scale: 1}, x)
	VMOVUPS(x, Mem{Base: dst, Index: last, Scale: 1})
	next("row")
}

// spreadRows writes the filling of so many rows of so many bytes, 32 or more and one
// after the other, each with an element; the elements are step bytes apart.
func spreadRows(e elem) {
	TEXT("spreadRows"+e.name, NOSPLIT, "func(dst, src *byte, step, bytes, rows int)")
	Pragma("noescape")
	dst, src, step, n, rows := param("dst"), param("src"), param("step"), param("bytes"), param("rows")
	last, at, x := GP64(), GP64(), YMM()
	LEAQ(Mem{Base: n, Disp: -32}, last)
	Label("row")
	e.broadcast(Mem{Base: src}, x)
	XORQ(at, at)
	JMP(LabelRef("check"))
	Label("vector")
	VMOVUPS(x, Mem{Base: dst, Index: at, Scale: 1})
	ADDQ(Imm(32), at)
	Label("check")
	CMPQ(at, last)
	JB(LabelRef("vector"))
	VMOVUPS(x, Mem{Base: dst, Index: last, Scale: 1})
	ADDQ(n, dst)
	ADDQ(step, src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// peak writes a loop of 12 independent fused multiplications and additions of
// vectors, which is the most that the machine does.
func (v *vectors) peak() {
	v.begin("peak", "func(blocks int)")
	n := param("blocks")
	acc := make([]reg.VecVirtual, 12)
	for i := range acc {
		acc[i] = v.fresh()
		zero(acc[i], v.wide())
	}
	x := v.fresh()
	zero(x, v.wide())
	Label("loop")
	for i := range acc {
		v.e.fma(x, x, acc[i])
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
