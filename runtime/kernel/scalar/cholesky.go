package scalar

import (
	"math"
	"math/cmplx"
)

// Adjoint makes m, which is n by n, its adjoint.
func Adjoint(m []complex128, n int) {
	for i := range n {
		for j := range i + 1 {
			m[i*n+j], m[j*n+i] = cmplx.Conj(m[j*n+i]), cmplx.Conj(m[i*n+j])
		}
	}
}

// Cholesky puts the lower factor of m in its place, and reports whether it has one.
func Cholesky(m []complex128, n int) bool {
	for j := range n {
		d := real(m[j*n+j])
		if !(d > 0) {
			return false
		}
		root := math.Sqrt(d)
		m[j*n+j] = complex(root, 0)
		for i := j + 1; i < n; i++ {
			m[i*n+j] = complex(real(m[i*n+j])/root, imag(m[i*n+j])/root)
			m[j*n+i] = 0
		}
		for i := j + 1; i < n; i++ {
			for k := j + 1; k <= i; k++ {
				m[i*n+k] -= m[i*n+j] * cmplx.Conj(m[k*n+j])
			}
		}
	}
	return true
}
