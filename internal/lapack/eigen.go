package lapack

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// notFinite is what the calls say of a matrix with an infinity or a NaN, and do nothing else.
const notFinite = -4

func finite(a Array) bool {
	for _, x := range a.Data {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return false
		}
	}
	return true
}

// geev: eigenvectors are columns of length 1, whose largest elements are real. Of real matrices
// they are complex in pairs, and so are the eigenvalues, in two parts.
func geev(option func(string) int, in, out []Array) {
	n := in[0].Shape[0]
	if n == 0 {
		return
	}
	if !finite(in[0]) {
		out[4].Data[0] = notFinite
		return
	}
	left, right := lapack.LeftEVNone, lapack.RightEVNone
	vectors := [2]blas64.General{{Stride: 1}, {Stride: 1}}
	for i, name := range []string{"compute_left", "compute_right"} {
		if option(name) == 'V' {
			vectors[i] = blas64.General{Rows: n, Cols: n, Stride: n, Data: make([]float64, n*n)}
		}
	}
	if vectors[0].Data != nil {
		left = lapack.LeftEVCompute
	}
	if vectors[1].Data != nil {
		right = lapack.RightEVCompute
	}
	re, im := out[0].Data, out[1].Data
	first := 0
	worked(func(work []float64, size int) {
		first = lapack64.Geev(left, right, in[0].matrix(), re, im, vectors[0], vectors[1], work, size)
	})
	out[4].Data[0] = float64(first)
	for i, v := range vectors {
		if v.Data == nil {
			continue
		}
		for j := 0; j < n; j++ {
			pair := im[j] > 0 && j+1 < n
			for row := range n {
				x := v.Data[row*n+j]
				if !pair {
					out[2+i].Complex[row*n+j] = complex(x, 0)
					continue
				}
				y := v.Data[row*n+j+1]
				out[2+i].Complex[row*n+j], out[2+i].Complex[row*n+j+1] = complex(x, y), complex(x, -y)
			}
			if pair {
				j++
			}
		}
	}
}

// gees: the matrix is Q T transpose(Q), T of blocks of one and two rows on its diagonal.
func gees(option func(string) int, in, out []Array) {
	copy(out[0].Data, in[0].Data)
	n := in[0].Shape[0]
	if n == 0 {
		return
	}
	if !finite(in[0]) {
		out[5].Data[0] = notFinite
		return
	}
	var impl gonum.Implementation
	a, q, scale, tau := out[0].Data, out[1].Data, make([]float64, n), make([]float64, n-1)
	low, high := impl.Dgebal(lapack.Permute, n, a, n, scale)
	worked(func(work []float64, size int) { impl.Dgehrd(n, low, high, a, n, tau, work, size) })
	job, comp := lapack.EigenvaluesAndSchur, lapack.SchurNone
	if option("mode") == 'V' {
		comp = lapack.SchurOrig
		copy(q, a)
		worked(func(work []float64, size int) { impl.Dorghr(n, low, high, q, n, tau, work, size) })
	}
	for i := range n { // below are the reflections
		for j := range max(i-1, 0) {
			a[i*n+j] = 0
		}
	}
	worked(func(work []float64, size int) {
		out[5].Data[0] = float64(impl.Dhseqr(job, comp, n, low, high, a, n, out[2].Data, out[3].Data, q, n, work, size))
	})
	if comp != lapack.SchurNone {
		impl.Dgebak(lapack.Permute, lapack.EVRight, n, low, high, scale, n, q, n)
	}
}

// gehrd: the reflections of a Hessenberg form are below it.
func gehrd(option func(string) int, in, out []Array) {
	copy(out[0].Data, in[0].Data)
	n := in[0].Shape[0]
	if n == 0 {
		return
	}
	var impl gonum.Implementation
	worked(func(work []float64, size int) {
		impl.Dgehrd(n, option("low")-1, option("high")-1, out[0].Data, n, out[1].Data, work, size)
	})
}

// gtsv: the first element of the lower diagonal and the last of the upper one are not read.
func gtsv(_ func(string) int, in, out []Array) {
	for i, a := range in {
		copy(out[i].Data, a.Data)
	}
	n, columns := in[3].Shape[0], in[3].Shape[1]
	if n == 0 || columns == 0 {
		return
	}
	var impl gonum.Implementation
	if !impl.Dgtsv(n, columns, out[0].Data[1:], out[1].Data, out[2].Data, out[3].Data, columns) {
		out[4].Data[0] = float64(n)
	}
}
