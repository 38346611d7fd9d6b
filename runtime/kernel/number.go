package kernel

import "ppc/ir"

type (
	float  interface{ ~float32 | ~float64 }
	signed interface {
		~int8 | ~int16 | ~int32 | ~int64
	}
	unsigned interface {
		~uint8 | ~uint16 | ~uint32 | ~uint64
	}
	integer   interface{ signed | unsigned }
	ordered   interface{ float | integer }
	complexes interface{ ~complex64 | ~complex128 }
	number    interface{ ordered | complexes }
)

// ints is a row of the given functions for signed and unsigned integers alike.
func ints(f8, f16, f32, f64 Func) byType {
	return byType{ir.I8: f8, ir.I16: f16, ir.I32: f32, ir.I64: f64, ir.UI8: f8, ir.UI16: f16, ir.UI32: f32, ir.UI64: f64}
}

// with returns a with the entries of b added.
func (a byType) with(b byType) byType {
	for t, f := range b {
		if f != nil {
			a[t] = f
		}
	}
	return a
}

func views1[D, T any](dst, src []Mem) (d []D, x []T) {
	d, x = View[D](dst[0]), View[T](src[0])
	return d, x[:len(d)]
}

func views2[D, T any](dst, src []Mem) (d []D, x, y []T) {
	d, x, y = View[D](dst[0]), View[T](src[0]), View[T](src[1])
	return d, x[:len(d)], y[:len(d)]
}
