package kernel

import (
	"math"

	"ppc/ir"
)

// Conversions go through tiles of the widest type of the source's class: two
// short loops per type instead of one per pair of types. The pairs that
// programs convert most have loops of their own.

func load[W, T ordered](w, x []byte) {
	d, s := View[W](w), View[T](x)
	s = s[:len(d)]
	for i := range d {
		d[i] = W(s[i])
	}
}

func loadComplex[T complexes](w, x []byte) {
	d, s := View[complex128](w), View[T](x)
	for i := range d {
		d[i] = complex128(s[i])
	}
}

// A loader fills a tile of elements of type wide.
type loader struct {
	wide ir.DType // I64, UI64, F64 or C128
	fill func(w, x []byte)
}

var loaders = map[ir.DType]loader{
	ir.I1: {ir.I64, load[int64, uint8]},
	ir.I8: {ir.I64, load[int64, int8]}, ir.I16: {ir.I64, load[int64, int16]}, ir.I32: {ir.I64, load[int64, int32]}, ir.I64: {ir.I64, load[int64, int64]},
	ir.UI8: {ir.I64, load[int64, uint8]}, ir.UI16: {ir.I64, load[int64, uint16]}, ir.UI32: {ir.I64, load[int64, uint32]}, ir.UI64: {ir.UI64, load[uint64, uint64]},
	ir.F32: {ir.F64, load[float64, float32]}, ir.F64: {ir.F64, load[float64, float64]},
	ir.C64: {ir.C128, loadComplex[complex64]}, ir.C128: {ir.C128, loadComplex[complex128]},
}

func store[W, T ordered](x, w []byte) {
	d, s := View[T](x), View[W](w)
	s = s[:len(d)]
	for i := range d {
		d[i] = T(s[i])
	}
}

func storeBool[W ordered](x, w []byte) {
	d, s := View[bool](x), View[W](w)
	for i := range d {
		d[i] = s[i] != 0
	}
}

// storeInt saturates and takes NaN to zero. lo and hi are the type's limits;
// hi as a float64 may be one too large, which saturates as well.
func storeInt[T integer](lo, hi T) func(x, w []byte) {
	return func(x, w []byte) {
		d, s := View[T](x), View[float64](w)
		for i := range d {
			switch v := s[i]; {
			case v != v:
				d[i] = 0
			case v <= float64(lo):
				d[i] = lo
			case v >= float64(hi):
				d[i] = hi
			default:
				d[i] = T(v)
			}
		}
	}
}

func storeBF16[W ordered](x, w []byte) {
	d, s := View[uint16](x), View[W](w)
	for i := range d {
		d[i] = ir.BF16FromFloat64(float64(s[i]))
	}
}

func storeF16[W ordered](x, w []byte) {
	d, s := View[uint16](x), View[W](w)
	for i := range d {
		d[i] = ir.F16FromFloat64(float64(s[i]))
	}
}

// storeSmall writes elements of type t, which has one byte.
func storeSmall[W ordered](t ir.DType) func(x, w []byte) {
	return func(x, w []byte) {
		for i, v := range View[W](w)[:len(x)] {
			if t.IsFloat() {
				t.PutFloat(x[i:], float64(v))
			} else {
				t.PutInt(x[i:], int64(v))
			}
		}
	}
}

// storeSmallInt saturates and takes NaN to zero.
func storeSmallInt(t ir.DType) func(x, w []byte) {
	lo, hi := float64(0), math.Ldexp(1, t.Bits())-1
	if t.Class() == ir.Signed {
		lo, hi = -math.Ldexp(1, t.Bits()-1), math.Ldexp(1, t.Bits()-1)-1
	}
	return func(x, w []byte) {
		for i, v := range View[float64](w)[:len(x)] {
			if v != v {
				v = 0
			}
			t.PutInt(x[i:], int64(min(max(v, lo), hi)))
		}
	}
}

func init() { // types with a carrier
	for t, c := range carriers {
		t := ir.DType(t)
		if c == nil {
			continue
		}
		fill := loaders[c.as]
		loaders[t] = loader{fill.wide, func(w, x []byte) {
			// The carrier's elements are at the end of the tile, where each is read before it is written over.
			narrow := w[len(w)-len(x)/t.Size()*c.as.Size():]
			c.widen(narrow, x)
			fill.fill(w, narrow)
		}}
		if t.Size() > 1 {
			continue
		}
		storers[ir.I64][t], storers[ir.UI64][t], storers[ir.F64][t] = storeSmall[int64](t), storeSmall[uint64](t), storeSmall[float64](t)
		if t.IsInt() {
			storers[ir.F64][t] = storeSmallInt(t)
		}
	}
}

func storeC64[W ordered](x, w []byte) {
	d, s := View[complex64](x), View[W](w)
	for i := range d {
		d[i] = complex(float32(s[i]), 0)
	}
}

func storeC128[W ordered](x, w []byte) {
	d, s := View[complex128](x), View[W](w)
	for i := range d {
		d[i] = complex(float64(s[i]), 0)
	}
}

// storers write a tile of the given wide type as elements of another.
var storers = map[ir.DType]map[ir.DType]func(x, w []byte){
	ir.I64: fromInt[int64](), ir.UI64: fromInt[uint64](),
	ir.F64: {
		ir.I1: storeBool[float64],
		ir.I8: storeInt[int8](math.MinInt8, math.MaxInt8), ir.I16: storeInt[int16](math.MinInt16, math.MaxInt16),
		ir.I32: storeInt[int32](math.MinInt32, math.MaxInt32), ir.I64: storeInt[int64](math.MinInt64, math.MaxInt64),
		ir.UI8: storeInt[uint8](0, math.MaxUint8), ir.UI16: storeInt[uint16](0, math.MaxUint16),
		ir.UI32: storeInt[uint32](0, math.MaxUint32), ir.UI64: storeInt[uint64](0, math.MaxUint64),
		ir.BF16: storeBF16[float64], ir.F16: storeF16[float64], ir.F32: store[float64, float32], ir.F64: store[float64, float64],
		ir.C64: storeC64[float64], ir.C128: storeC128[float64],
	},
}

func fromInt[W int64 | uint64]() map[ir.DType]func(x, w []byte) {
	return map[ir.DType]func(x, w []byte){
		ir.I1: storeBool[W],
		ir.I8: store[W, int8], ir.I16: store[W, int16], ir.I32: store[W, int32], ir.I64: store[W, int64],
		ir.UI8: store[W, uint8], ir.UI16: store[W, uint16], ir.UI32: store[W, uint32], ir.UI64: store[W, uint64],
		ir.BF16: storeBF16[W], ir.F16: storeF16[W], ir.F32: store[W, float32], ir.F64: store[W, float64],
		ir.C64: storeC64[W], ir.C128: storeC128[W],
	}
}

// direct are the pairs with loops of their own.
var direct = map[[2]ir.DType]Func{
	{ir.F32, ir.F64}: cast[float32, float64], {ir.F64, ir.F32}: cast[float64, float32],
	{ir.I32, ir.F32}: cast[int32, float32], {ir.I32, ir.F64}: cast[int32, float64], {ir.I32, ir.I64}: cast[int32, int64],
	{ir.I1, ir.F32}: cast[uint8, float32], {ir.I1, ir.F64}: cast[uint8, float64], {ir.I1, ir.I32}: cast[uint8, int32],
	{ir.UI32, ir.I32}: cast[uint32, int32], {ir.I32, ir.UI32}: cast[int32, uint32],
	{ir.BF16, ir.F32}: castWiden(carriers[ir.BF16]), {ir.F16, ir.F32}: castWiden(carriers[ir.F16]),
	{ir.F32, ir.BF16}: castNarrow(carriers[ir.BF16]), {ir.F32, ir.F16}: castNarrow(carriers[ir.F16]),
}

func cast[S, D ordered](_ *Work, dst, src []Mem) { store[S, D](dst[0], src[0]) }

func castWiden(c *carrier) Func {
	return func(_ *Work, dst, src []Mem) { c.widen(dst[0], src[0]) }
}

func castNarrow(c *carrier) Func {
	return func(_ *Work, dst, src []Mem) { c.narrow(dst[0], src[0]) }
}

func copyAll(_ *Work, dst, src []Mem) {
	if !Same(dst[0], src[0]) {
		copy(dst[0], src[0])
	}
}

func buildConvert(op *ir.Op) (Func, error) {
	return converter(op.Operands[0].Type.Elem, op.Results[0].Type.Elem), nil
}

// converter returns the Func that converts elements of one type to another.
func converter(from, to ir.DType) Func {
	if from == to {
		return copyAll
	}
	if f := direct[[2]ir.DType{from, to}]; f != nil {
		return f
	}
	if from.IsComplex() {
		return fromComplex(from, to)
	}
	ld := loaders[from]
	return tiled(from.Size(), to.Size(), ld.wide.Size(), ld.fill, storers[ld.wide][to])
}

// fromComplex keeps the real part, unless the result is complex.
func fromComplex(from, to ir.DType) Func {
	ld := loaders[from]
	if to == ir.C64 {
		return tiled(16, 8, 16, ld.fill, func(x, w []byte) {
			d, s := View[complex64](x), View[complex128](w)
			for i := range d {
				d[i] = complex64(s[i])
			}
		})
	}
	if to == ir.C128 {
		return func(_ *Work, dst, src []Mem) { ld.fill(dst[0], src[0]) }
	}
	put := storers[ir.F64][to]
	return tiled(from.Size(), to.Size(), 16, ld.fill, func(x, w []byte) {
		s := View[complex128](w)
		reals := View[float64](w)[:len(s)]
		for i := range s {
			reals[i] = real(s[i])
		}
		put(x, w[:8*len(s)])
	})
}

func tiled(from, to, wide int, fill, put func(_, _ []byte)) Func {
	return func(w *Work, dst, src []Mem) {
		n := len(dst[0]) / to
		for lo := 0; lo < n; lo += tileLen {
			hi := min(lo+tileLen, n)
			t := w.tile(0)[:wide*(hi-lo)]
			fill(t, src[0][from*lo:from*hi])
			put(dst[0][to*lo:to*hi], t)
		}
	}
}

// buildBitcast: elements of less than a byte are bits, the lowest first; all else is
// bytes as they are.
func buildBitcast(op *ir.Op) (Func, error) {
	from, to := op.Operands[0].Type.Elem.Bits(), op.Results[0].Type.Elem.Bits()
	if from == to || from >= 8 && to >= 8 {
		return copyAll, nil
	}
	return func(_ *Work, dst, src []Mem) { repack(dst[0], min(to, 8), src[0], min(from, 8)) }, nil
}

// repack takes the lowest from bits of each byte of src, one after the other, and
// puts to of them into each byte of dst.
func repack(dst Mem, to int, src Mem, from int) {
	held, n, at := uint(0), 0, 0
	for i := range dst {
		for n < to {
			held |= uint(src[at]) & (1<<from - 1) << n
			n, at = n+from, at+1
		}
		dst[i] = byte(held & (1<<to - 1))
		held, n = held>>to, n-to
	}
}

// clearAll is the imaginary part of real numbers.
func clearAll(_ *Work, dst, src []Mem) { clear(dst[0]) }

// partOf is the real or, of i = 1, the imaginary part of complex numbers.
func partOf[T float](i int) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x := View[T](dst[0]), View[T](src[0])
		for k := range d {
			d[k] = x[2*k+i]
		}
	}
}

func complexOf[T float](_ *Work, dst, src []Mem) {
	d, x, y := View[T](dst[0]), View[T](src[0]), View[T](src[1])
	for k, v := range x {
		d[2*k], d[2*k+1] = v, y[k]
	}
}
