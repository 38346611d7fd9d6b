package kernel

import (
	"math"
	"unsafe"

	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

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
		dst[i] = scalar.F16FromFloat32(src[i])
	}
}
