package kernel

import (
	"unsafe"

	"ppc/runtime/kernel/scalar"
)

// dense returns x as rows one after the other, which it is or is copied to.
func dense[T any](w *Work, x matrix, rows, cols int) []T {
	all := View[T](x.mem)
	if x.col == 1 && x.row == cols {
		return all[:rows*cols]
	}
	var zero T
	out := View[T](w.temp(rows * cols * int(unsafe.Sizeof(zero))))
	for i := range rows {
		to, from := out[i*cols:(i+1)*cols], i*x.row
		for j := range to {
			to[j] = all[from+j*x.col]
		}
	}
	return out
}

// gemmDense is a gemm of matrices that it makes dense, and of a result that
// begins with zeros.
func gemmDense[T any](mul func(w scalar.Stopper, c, a, b []T, m, n, k int)) gemm {
	return func(w *Work, c Mem, a, b matrix, m, n, k int) { multiplyDense(mul, w, c, a, b, m, n, k) }
}

func multiplyDense[T any](mul func(w scalar.Stopper, c, a, b []T, m, n, k int), w *Work, c Mem, a, b matrix, m, n, k int) {
	depth := w.depth
	clear(c)
	mul(w, View[T](c), dense[T](w, a, m, k), dense[T](w, b, k, n), m, n, k)
	w.depth = depth
}
