package lapack

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/cblas128"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
)

// complexes are the routines for complex numbers, by name without precision.
var complexes = map[string]*Routine{
	"potrf": {0, ranks(2), append(ranks(2), info), factor, complexCholesky},
	"trsm":  {0, ranks(2, 2), ranks(2), solved, complexTrsm},
	"getrf": {0, ranks(2), []Part{{2, 0}, {1, 'i'}, info}, factors, complexLU},
	"geqrf": {0, ranks(2), ranks(2, 1), factors, complexQR},
	"ungqr": {0, ranks(2, 1), ranks(2), reflected, complexQ},
	"heevd": {0, ranks(2), []Part{{2, 0}, {1, 'r'}, info}, spectral, hermitian},
	"gesdd": {0, ranks(2), []Part{{2, 0}, {1, 'r'}, {2, 0}, {2, 0}, info}, singular, complexSVD},
}

// complexCholesky is potrf. It leaves the other triangle as it is.
func complexCholesky(option func(string) int, in, out []Array) {
	copy(out[0].Complex, in[0].Complex)
	a := whole(out[0])
	if option("uplo") == 'U' { // whose transpose is the conjugate of the other factor
		a = a.turned()
	}
	for j := range a.rows {
		for i := j; i < a.rows; i++ {
			for k := range j {
				*a.at(i, j) -= *a.at(i, k) * cmplx.Conj(*a.at(j, k))
			}
			switch pivot := real(*a.at(j, j)); {
			case i > j:
				*a.at(i, j) /= *a.at(j, j)
			case !(pivot > 0):
				out[1].Data[0] = float64(j + 1)
				return
			default:
				*a.at(j, j) = complex(math.Sqrt(pivot), 0)
			}
		}
	}
}

func complexTrsm(option func(string) int, in, out []Array) {
	copy(out[0].Complex, in[1].Complex)
	if len(out[0].Complex) == 0 {
		return
	}
	side, trans, diag := triangular(option)
	n, m, columns := in[0].Shape[0], out[0].Shape[0], out[0].Shape[1]
	cblas128.Trsm(side, trans, 1, cblas128.Triangular{N: n, Stride: n, Data: in[0].Complex, Uplo: uplo(option), Diag: diag},
		cblas128.General{Rows: m, Cols: columns, Stride: columns, Data: out[0].Complex})
}

// complexLU is getrf. A pivot is what is largest in the sum of its parts, as LAPACK has it.
func complexLU(_ func(string) int, in, out []Array) {
	a, m, n := out[0].Complex, in[0].Shape[0], in[0].Shape[1]
	copy(a, in[0].Complex)
	size := func(z complex128) float64 { return math.Abs(real(z)) + math.Abs(imag(z)) }
	for k := range min(m, n) {
		p := k
		for i := k + 1; i < m; i++ {
			if size(a[i*n+k]) > size(a[p*n+k]) {
				p = i
			}
		}
		out[1].Data[k] = float64(p + 1)
		if a[p*n+k] == 0 {
			if out[2].Data[0] == 0 {
				out[2].Data[0] = float64(k + 1)
			}
			continue
		}
		for j := range n {
			a[k*n+j], a[p*n+j] = a[p*n+j], a[k*n+j]
		}
		for i := k + 1; i < m; i++ {
			a[i*n+k] /= a[k*n+k]
			for j := k + 1; j < n; j++ {
				a[i*n+j] -= a[i*n+k] * a[k*n+j]
			}
		}
	}
}

// reflector makes of x the v of a reflection 1 - tau v v*, whose adjoint takes x to a multiple of
// the first unit vector, which is real: it returns that and tau. The first element of v is 1.
func reflector(x []complex128) (beta float64, tau complex128) {
	norm := 0.0
	for _, z := range x {
		norm = math.Hypot(norm, cmplx.Abs(z))
	}
	rest := 0.0
	for _, z := range x[1:] {
		rest = math.Hypot(rest, cmplx.Abs(z))
	}
	alpha := x[0]
	x[0] = 1
	if rest == 0 && imag(alpha) == 0 {
		return real(alpha), 0
	}
	beta = -math.Copysign(norm, real(alpha))
	for i := range x[1:] {
		x[1+i] /= alpha - complex(beta, 0)
	}
	return beta, (complex(beta, 0) - alpha) / complex(beta, 0)
}

// A grid is part of a matrix: rows and columns in steps.
type grid struct {
	data                    []complex128
	rows, columns, row, col int
}

func (g grid) at(i, j int) *complex128 { return &g.data[i*g.row+j*g.col] }

// from is g without its first i rows and j columns.
func (g grid) from(i, j int) grid {
	if i >= g.rows || j >= g.columns {
		return grid{}
	}
	return grid{g.data[i*g.row+j*g.col:], g.rows - i, g.columns - j, g.row, g.col}
}

// turned is g with rows and columns exchanged.
func (g grid) turned() grid { return grid{g.data, g.columns, g.rows, g.col, g.row} }

// reflect makes g (1 - tau v v*) g.
func (g grid) reflect(v []complex128, tau complex128) {
	for j := range g.columns {
		var sum complex128
		for i := range g.rows {
			sum += cmplx.Conj(v[i]) * *g.at(i, j)
		}
		for i := range g.rows {
			*g.at(i, j) -= tau * sum * v[i]
		}
	}
}

// column is a copy of the first column of g.
func (g grid) column() []complex128 {
	x := make([]complex128, g.rows)
	for i := range x {
		x[i] = *g.at(i, 0)
	}
	return x
}

// conjugate conjugates the elements of x.
func conjugate(x []complex128) []complex128 {
	for i, z := range x {
		x[i] = cmplx.Conj(z)
	}
	return x
}

func whole(a Array) grid {
	return grid{a.Complex, a.Shape[0], a.Shape[1], a.Shape[1], 1}
}

func unit(n int) grid {
	g := grid{make([]complex128, n*n), n, n, n, 1}
	for i := range n {
		*g.at(i, i) = 1
	}
	return g
}

// complexQR is geqrf.
func complexQR(_ func(string) int, in, out []Array) {
	copy(out[0].Complex, in[0].Complex)
	a := whole(out[0])
	for k := range min(a.rows, a.columns) {
		x := a.from(k, k).column()
		beta, tau := reflector(x)
		a.from(k, k+1).reflect(x, cmplx.Conj(tau))
		out[1].Complex[k] = tau
		x[0] = complex(beta, 0)
		for i, z := range x {
			*a.at(k+i, k) = z
		}
	}
}

// complexQ is ungqr: the first columns of the product of reflections.
func complexQ(_ func(string) int, in, out []Array) {
	from, q := whole(in[0]), whole(out[0])
	for i := range q.columns {
		*q.at(i, i) = 1
	}
	for k := len(in[1].Complex) - 1; k >= 0; k-- {
		v := from.from(k, k).column()
		v[0] = 1
		q.from(k, k).reflect(v, in[1].Complex[k])
	}
}

// hermitian is heevd: eigenvectors are columns, in the order of the eigenvalues, which ascend.
// Their first elements are real.
func hermitian(option func(string) int, in, out []Array) {
	n := in[0].Shape[0]
	if n == 0 {
		return
	}
	copy(out[0].Complex, in[0].Complex)
	a := whole(out[0])
	for i := range n { // the other triangle is not read
		for j := range i {
			if option("uplo") == 'U' {
				*a.at(i, j) = cmplx.Conj(*a.at(j, i))
			} else {
				*a.at(j, i) = cmplx.Conj(*a.at(i, j))
			}
		}
	}
	q, d, e := unit(n), out[1].Data, make([]float64, n)
	for k := range n - 1 {
		v := a.from(k+1, k).column()
		beta, tau := reflector(v)
		e[k] = beta
		a.from(k+1, 0).reflect(v, cmplx.Conj(tau))
		a.from(0, k+1).turned().reflect(conjugate(append([]complex128{}, v...)), tau)
		q.from(0, k+1).turned().reflect(conjugate(v), tau)
	}
	for i := range n {
		d[i] = real(*a.at(i, i))
	}
	z := make([]float64, n*n)
	ok := new(gonum.Implementation).Dsteqr(lapack.EVTridiag, n, d, e, z, n, make([]float64, max(1, 2*n-2)))
	if !ok {
		out[2].Data[0] = 1
	}
	if option("mode") != 'N' {
		times(a, q, z)
	}
}

// times makes g the product of q and of a square matrix of real numbers, in rows.
func times(g, q grid, z []float64) {
	n := q.columns
	for i := range q.rows {
		for j := range n {
			var sum complex128
			for k := range n {
				sum += *q.at(i, k) * complex(z[k*n+j], 0)
			}
			*g.at(i, j) = sum
		}
	}
}

// complexSVD is gesdd. What is wider than it is high is done as its adjoint.
func complexSVD(option func(string) int, in, out []Array) {
	a, u, vt := whole(in[0]), whole(out[2]), whole(out[3])
	copy(out[0].Complex, in[0].Complex)
	if len(in[0].Complex) == 0 {
		return
	}
	wide := a.columns > a.rows
	if wide {
		conjugate(a.data)
		a = a.turned()
	}
	m, n := a.rows, a.columns
	left, right, d, e := unit(m), unit(n), out[1].Data, make([]float64, n)
	for k := range n { // to two real diagonals, by reflections from both sides
		v := a.from(k, k).column()
		beta, tau := reflector(v)
		d[k] = beta
		a.from(k, k+1).reflect(v, cmplx.Conj(tau))
		left.from(0, k).turned().reflect(conjugate(v), tau)
		if k+1 < n {
			v := conjugate(a.from(k, k+1).turned().column())
			beta, tau := reflector(v)
			e[k] = beta
			a.from(k+1, k+1).turned().reflect(conjugate(append([]complex128{}, v...)), tau)
			right.from(0, k+1).turned().reflect(conjugate(v), tau)
		}
	}
	zu, zv := make([]float64, n*n), make([]float64, n*n)
	for i := range n {
		zu[i*n+i], zv[i*n+i] = 1, 1
	}
	if !new(gonum.Implementation).Dbdsqr(blas.Upper, n, n, n, 0, d, e, zv, n, zu, n, nil, 1, make([]float64, 4*n)) {
		out[4].Data[0] = 1
	}
	if mode := option("mode"); mode != 'A' && mode != 'S' {
		return
	}
	first := grid{left.data, m, n, m, 1}
	times(first, copied(first), zu)
	for i := range n { // the rows of zv are right vectors, in terms of those of right
		for j := range i {
			zv[i*n+j], zv[j*n+i] = zv[j*n+i], zv[i*n+j]
		}
	}
	times(right, copied(right), zv)
	if wide { // of the adjoint, left and right are exchanged
		left, right = right, left
	}
	for i := range u.rows {
		for j := range u.columns {
			*u.at(i, j) = *left.at(i, j)
		}
	}
	for i := range vt.rows {
		for j := range vt.columns {
			*vt.at(i, j) = cmplx.Conj(*right.at(j, i))
		}
	}
}

// copied is a copy of g.
func copied(g grid) grid {
	c := grid{make([]complex128, g.rows*g.columns), g.rows, g.columns, g.columns, 1}
	for i := range g.rows {
		for j := range g.columns {
			*c.at(i, j) = *g.at(i, j)
		}
	}
	return c
}
