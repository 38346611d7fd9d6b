package kernel

import "unsafe"

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
func gemmDense[T any](mul func(w *Work, c, a, b []T, m, n, k int)) gemm {
	return func(w *Work, c Mem, a, b matrix, m, n, k int) { multiplyDense(mul, w, c, a, b, m, n, k) }
}

func multiplyDense[T any](mul func(w *Work, c, a, b []T, m, n, k int), w *Work, c Mem, a, b matrix, m, n, k int) {
	depth := w.depth
	clear(c)
	mul(w, View[T](c), dense[T](w, a, m, k), dense[T](w, b, k, n), m, n, k)
	w.depth = depth
}

// Sizes of the blocks of gemmRows: a block of b, rowsK rows of rowsN columns,
// stays in the second-level cache while all rows of a pass by.
const (
	rowsK = 128
	rowsN = 512
)

// gemmRows adds four rows of b at a time to a row of c: eight flops per five
// loads and one store, all of them in order of address. The products are
// rounded before they are added, on every machine.
func gemmRows[T float](w *Work, c, a, b []T, m, n, k int) {
	if n == 1 {
		gemv(c, a, b, m, k)
		return
	}
	for p0 := 0; p0 < k; p0 += rowsK {
		p1 := min(p0+rowsK, k)
		for j0 := 0; j0 < n; j0 += rowsN {
			j1 := min(j0+rowsN, n)
			if w.stopped() {
				return
			}
			for i := range m {
				addRows(c[i*n+j0:i*n+j1], a[i*k+p0:i*k+p1], b[p0*n+j0:], n)
			}
		}
	}
}

// addRows adds to c the rows of b, ld elements apart, each times its element of a.
func addRows[T float](c, a, b []T, ld int) {
	for len(a) >= 4 {
		b0, b1, b2, b3 := b[:len(c)], b[ld:][:len(c)], b[2*ld:][:len(c)], b[3*ld:][:len(c)]
		a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
		for j, v := range c {
			v += T(a0 * b0[j])
			v += T(a1 * b1[j])
			v += T(a2 * b2[j])
			v += T(a3 * b3[j])
			c[j] = v
		}
		a = a[4:]
		if len(a) == 0 {
			return
		}
		b = b[4*ld:]
	}
	for p, x := range a {
		for j, y := range b[p*ld:][:len(c)] {
			c[j] += T(x * y)
		}
	}
}

// gemv is gemmRows for one column: four rows at a time, so that four sums go
// on while each waits for its last addition.
func gemv[T float](c, a, b []T, m, k int) {
	i := 0
	for ; i+4 <= m; i += 4 {
		r0, r1, r2, r3 := a[i*k:][:k], a[(i+1)*k:][:k], a[(i+2)*k:][:k], a[(i+3)*k:][:k]
		s0, s1, s2, s3 := c[i], c[i+1], c[i+2], c[i+3]
		for p, y := range b[:k] {
			s0 += T(r0[p] * y)
			s1 += T(r1[p] * y)
			s2 += T(r2[p] * y)
			s3 += T(r3[p] * y)
		}
		c[i], c[i+1], c[i+2], c[i+3] = s0, s1, s2, s3
	}
	for ; i < m; i++ {
		for p, y := range b[:k] {
			c[i] += T(a[i*k+p] * y)
		}
	}
}
