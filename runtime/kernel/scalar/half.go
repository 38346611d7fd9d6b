package scalar

import (
	"math"

	"ppc/ir"
)

// WidenBF16 sets dst to the numbers of src.
func WidenBF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(src[i]) << 16)
	}
}

// NarrowBF16 rounds to nearest, ties to even.
func NarrowBF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		b := math.Float32bits(src[i])
		if b&0x7fffffff > 0x7f800000 {
			dst[i] = uint16(b>>16)&0x8000 | 0x7fc0
			continue
		}
		dst[i] = uint16((b + 0x7fff + b>>16&1) >> 16)
	}
}

// WidenF16 sets dst to the numbers of src.
func WidenF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = ir.F16ToFloat32(src[i])
	}
}

// NarrowF16 rounds to nearest, ties to even.
func NarrowF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = F16FromFloat32(src[i])
	}
}
