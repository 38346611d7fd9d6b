package kernel

import (
	"math"
	"unsafe"

	"ppc/ir"
)

// A half is how a 16-bit floating-point type goes to f32 and back.
type half struct {
	widen  func(dst []float32, src []uint16)
	narrow func(dst []uint16, src []float32)
}

var halves = map[ir.DType]half{
	ir.BF16: {widenBF16, narrowBF16},
	ir.F16:  {widenF16, narrowF16},
}

func widenBF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	if v := fastest.vector / 4; v > 0 {
		n := len(dst) / v
		if n > 0 {
			fastest.widenBF16((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[0])), n)
		}
		dst, src = dst[n*v:], src[n*v:]
	}
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(src[i]) << 16)
	}
}

// narrowBF16 rounds to nearest, ties to even.
func narrowBF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	if v := fastest.vector / 4; v > 0 {
		n := len(dst) / v
		if n > 0 {
			fastest.narrowBF16((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[0])), n)
		}
		dst, src = dst[n*v:], src[n*v:]
	}
	for i := range dst {
		b := math.Float32bits(src[i])
		if b&0x7fffffff > 0x7f800000 {
			dst[i] = uint16(b>>16)&0x8000 | 0x7fc0
			continue
		}
		dst[i] = uint16((b + 0x7fff + b>>16&1) >> 16)
	}
}

func widenF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = ir.F16ToFloat32(src[i])
	}
}

func narrowF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = f16FromFloat32(src[i])
	}
}

// f16FromFloat32 rounds to nearest, ties to even.
func f16FromFloat32(x float32) uint16 {
	b := math.Float32bits(x)
	sign, abs := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00
	case abs >= 0x47800000: // 65536 and more
		return sign | 0x7c00
	case abs < 0x38800000: // below the smallest normal number: count units of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(abs))*(1<<24)))
	}
	return sign | uint16((abs-0x38000000+0xfff+abs>>13&1)>>13)
}

// inF32 makes a Func on f32 elements one on 16-bit ones, tile by tile. Operands of
// one element are splats. The result is 16-bit too, unless it is boolean.
func inF32(t ir.DType, result ir.DType, f Func) Func {
	h := halves[t]
	return func(w *Work, dst, src []Mem) {
		size := result.Size()
		n := len(dst[0]) / size
		for lo := 0; lo < n; lo += tileLen {
			hi := min(lo+tileLen, n)
			for i, m := range src {
				if len(m) > 2 || n == 1 {
					m = m[2*lo : 2*hi]
				}
				x := View[uint16](m)
				w.ins[i] = w.tile(i)[:4*len(x)]
				h.widen(View[float32](w.ins[i]), x)
			}
			if result == ir.I1 {
				w.outs[0] = dst[0][lo:hi]
				f(w, w.outs[:], w.ins[:len(src)])
				continue
			}
			w.outs[0] = w.tile(3)[:4*(hi-lo)]
			f(w, w.outs[:], w.ins[:len(src)])
			h.narrow(View[uint16](dst[0][2*lo:2*hi]), View[float32](w.outs[0]))
		}
	}
}

// forType picks the Func for elements of type t from a row of Funcs whose
// result has elements of type result.
func (a byType) forType(t, result ir.DType) Func {
	if _, ok := halves[t]; ok && a[t] == nil && a[ir.F32] != nil {
		return inF32(t, result, a[ir.F32])
	}
	return a[t]
}
