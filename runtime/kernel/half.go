package kernel

import (
	"unsafe"

	"ppc/runtime/kernel/scalar"
)

func widenBF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	n := 0
	if v := fastest.vector / 4; v > 0 && len(dst) >= v {
		n = len(dst) / v * v
		fastest.widenBF16((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[0])), n/v)
	}
	scalar.WidenBF16(dst[n:], src[n:])
}

func narrowBF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	n := 0
	if v := fastest.vector / 4; v > 0 && len(dst) >= v {
		n = len(dst) / v * v
		fastest.narrowBF16((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[0])), n/v)
	}
	scalar.NarrowBF16(dst[n:], src[n:])
}
