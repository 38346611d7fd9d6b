// Package lapack computes the custom calls by which JAX asks for LAPACK on CPUs, such
// as lapack_sgetrf_ffi: on real numbers in float64, on complex ones in complex128.
package lapack

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// An Array is a vector or a matrix, in row-major order. Its elements are Complex where they are
// complex numbers, else Data.
type Array struct {
	Shape   []int
	Data    []float64
	Complex []complex128
}

func (a Array) matrix() blas64.General {
	return blas64.General{Rows: a.Shape[0], Cols: a.Shape[1], Stride: max(a.Shape[1], 1), Data: a.Data}
}

// A Routine computes results from operands. Options are the characters and numbers of
// the call's configuration, by name.
type Routine struct {
	Precision         byte // s, d, c or z
	Operands, Results []Part
	fits              func(option func(name string) int, in, out [][]int) bool
	run               func(option func(name string) int, in, out []Array)
}

// A Part is the rank of an operand or a result, without batch dimensions, and which numbers it has:
// those that the routine is for where Of is 0, else real ones of that precision, 'r', complex
// ones, 'c', or integers, 'i'.
type Part = struct {
	Rank int
	Of   byte
}

// Check reports shapes of operands and results that do not fit together.
func (r *Routine) Check(option func(name string) int, in, out [][]int) error {
	if !r.fits(option, in, out) {
		return fmt.Errorf("the sizes %v of its operands and %v of its results do not fit together", in, out)
	}
	return nil
}

// Run computes out, which is zeros, from in. in is overwritten.
func (r *Routine) Run(option func(name string) int, in, out []Array) { r.run(option, in, out) }

// ranks are parts of the given ranks with the numbers that a routine is for.
func ranks(of ...int) []Part {
	parts := make([]Part, len(of))
	for i, n := range of {
		parts[i].Rank = n
	}
	return parts
}

// info is what a routine says of how it went: a number.
var info = Part{0, 'i'}

// reals are the routines for real numbers, by name without precision.
var reals = map[string]*Routine{
	"potrf": {0, ranks(2), append(ranks(2), info), factor, potrf},
	"trsm":  {0, ranks(2, 2), ranks(2), solved, trsm},
	"getrf": {0, ranks(2), []Part{{2, 0}, {1, 'i'}, info}, factors, getrf},
	"geqrf": {0, ranks(2), ranks(2, 1), factors, geqrf},
	"orgqr": {0, ranks(2, 1), ranks(2), reflected, orgqr},
	"syevd": {0, ranks(2), []Part{{2, 0}, {1, 'r'}, info}, spectral, syevd},
	"gesdd": {0, ranks(2), []Part{{2, 0}, {1, 'r'}, {2, 0}, {2, 0}, info}, singular, gesdd},
	"geev": {0, ranks(2), []Part{{1, 0}, {1, 0}, {2, 'c'}, {2, 'c'}, info}, func(_ func(string) int, in, out [][]int) bool {
		return square(in[0]) && out[0][0] == in[0][0] && out[1][0] == in[0][0] && slices.Equal(out[2], in[0]) && slices.Equal(out[3], in[0])
	}, geev},
	"gees": {0, ranks(2), []Part{{2, 0}, {2, 0}, {1, 0}, {1, 0}, info, info}, func(option func(string) int, in, out [][]int) bool {
		return square(in[0]) && slices.Equal(out[0], in[0]) && slices.Equal(out[1], in[0]) && out[2][0] == in[0][0] && out[3][0] == in[0][0]
	}, gees},
	"gehrd": {0, ranks(2), []Part{{2, 0}, {1, 0}, info}, func(option func(string) int, in, out [][]int) bool {
		n := in[0][0]
		low, high := option("low"), option("high")
		return square(in[0]) && slices.Equal(out[0], in[0]) && out[1][0] == max(n-1, 0) && (n == 0 || 1 <= low && low <= high && high <= n)
	}, gehrd},
	"gtsv": {0, ranks(1, 1, 1, 2), append(ranks(1, 1, 1, 2), info), func(_ func(string) int, in, out [][]int) bool {
		for i, shape := range in {
			if shape[0] != in[0][0] || !slices.Equal(shape, out[i]) {
				return false
			}
		}
		return true
	}, gtsv},
}

// factor fits what factors a square matrix.
func factor(_ func(string) int, in, out [][]int) bool {
	return square(in[0]) && slices.Equal(out[0], in[0])
}

// solved fits what solves equations with a triangle.
func solved(option func(string) int, in, out [][]int) bool {
	n := in[1][0]
	if option("side") == 'R' {
		n = in[1][1]
	}
	return square(in[0]) && in[0][0] == n && slices.Equal(out[0], in[1])
}

// factors fits what gives as many factors of a matrix as its smaller size.
func factors(_ func(string) int, in, out [][]int) bool {
	return slices.Equal(out[0], in[0]) && out[1][0] == slices.Min(in[0])
}

// reflected fits what makes columns of reflections.
func reflected(_ func(string) int, in, out [][]int) bool {
	return slices.Equal(out[0], in[0]) && in[1][0] <= in[0][1] && in[0][1] <= in[0][0]
}

// spectral fits what gives eigenvectors and eigenvalues.
func spectral(_ func(string) int, in, out [][]int) bool {
	return square(in[0]) && slices.Equal(out[0], in[0]) && out[1][0] == in[0][0]
}

// singular fits what gives singular values, and vectors if its mode says so.
func singular(option func(string) int, in, out [][]int) bool {
	m, n := in[0][0], in[0][1]
	u, vt := []int{m, m}, []int{n, n}
	if option("mode") == 'S' {
		u[1], vt[0] = min(m, n), min(m, n)
	}
	return slices.Equal(out[0], in[0]) && out[1][0] == min(m, n) && (option("mode") != 'A' && option("mode") != 'S' || slices.Equal(out[2], u) && slices.Equal(out[3], vt))
}

func square(shape []int) bool { return shape[0] == shape[1] }

var target = regexp.MustCompile(`^lapack_([sdcz])([a-z]+)_ffi$`)

// Find is the routine of a target; nil where there is none.
func Find(name string) *Routine {
	m := target.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	of := reals
	if m[1] == "c" || m[1] == "z" {
		of = complexes
	}
	if r := of[m[2]]; r != nil {
		found := *r
		found.Precision = m[1][0]
		return &found
	}
	return nil
}

// Option reads an option from the text of a configuration, {uplo = 76 : ui8}.
func Option(config, name string) (value int, ok bool) {
	for field := range strings.SplitSeq(strings.Trim(config, "{} "), ",") {
		k, v, found := strings.Cut(field, "=")
		if !found || strings.TrimSpace(k) != name {
			continue
		}
		for _, c := range strings.TrimSpace(v) {
			if c < '0' || c > '9' {
				break
			}
			value, ok = value*10+int(c-'0'), true
		}
	}
	return
}

func uplo(option func(string) int) blas.Uplo {
	if option("uplo") == 'U' {
		return blas.Upper
	}
	return blas.Lower
}

// potrf leaves the other triangle as it is.
func potrf(option func(string) int, in, out []Array) {
	copy(out[0].Data, in[0].Data)
	n := out[0].Shape[0]
	if n == 0 {
		return
	}
	a := blas64.Symmetric{N: n, Stride: n, Data: out[0].Data, Uplo: uplo(option)}
	if _, ok := lapack64.Potrf(a); !ok {
		out[1].Data[0] = float64(n)
	}
}

func trsm(option func(string) int, in, out []Array) {
	copy(out[0].Data, in[1].Data)
	if len(out[0].Data) == 0 {
		return
	}
	side, trans, diag := triangular(option)
	n := in[0].Shape[0]
	blas64.Trsm(side, trans, 1, blas64.Triangular{N: n, Stride: n, Data: in[0].Data, Uplo: uplo(option), Diag: diag}, out[0].matrix())
}

// triangular reads the options of trsm. The adjoint of real numbers is the transpose.
func triangular(option func(string) int) (side blas.Side, trans blas.Transpose, diag blas.Diag) {
	side, trans, diag = blas.Left, blas.NoTrans, blas.NonUnit
	if option("side") == 'R' {
		side = blas.Right
	}
	switch option("trans_x") {
	case 'T':
		trans = blas.Trans
	case 'C':
		trans = blas.ConjTrans
	}
	if option("diag") == 'U' {
		diag = blas.Unit
	}
	return
}

// getrf numbers rows from 1. Its last result is the first column without a pivot, or 0.
func getrf(_ func(string) int, in, out []Array) {
	copy(out[0].Data, in[0].Data)
	if len(out[0].Data) == 0 {
		return
	}
	pivots := make([]int, len(out[1].Data))
	lapack64.Getrf(out[0].matrix(), pivots)
	for i, p := range pivots {
		out[1].Data[i] = float64(p + 1)
		if out[2].Data[0] == 0 && out[0].Data[i*out[0].Shape[1]+i] == 0 {
			out[2].Data[0] = float64(i + 1)
		}
	}
}

// worked calls f with as much room to work as it asks for.
func worked(f func(work []float64, n int)) {
	var size [1]float64
	f(size[:], -1)
	n := int(size[0])
	f(make([]float64, n), n)
}

func geqrf(_ func(string) int, in, out []Array) {
	copy(out[0].Data, in[0].Data)
	if len(out[0].Data) > 0 {
		worked(func(work []float64, n int) { lapack64.Geqrf(out[0].matrix(), out[1].Data, work, n) })
	}
}

func orgqr(_ func(string) int, in, out []Array) {
	copy(out[0].Data, in[0].Data)
	if len(out[0].Data) > 0 {
		worked(func(work []float64, n int) { lapack64.Orgqr(out[0].matrix(), in[1].Data, work, n) })
	}
}

// syevd: eigenvectors are columns, in the order of the eigenvalues, which ascend.
func syevd(option func(string) int, in, out []Array) {
	copy(out[0].Data, in[0].Data)
	n := out[0].Shape[0]
	if n == 0 {
		return
	}
	job := lapack.EVCompute
	if option("mode") == 'N' {
		job = lapack.EVNone
	}
	a, ok := blas64.Symmetric{N: n, Stride: n, Data: out[0].Data, Uplo: uplo(option)}, true
	worked(func(work []float64, size int) { ok = lapack64.Syev(job, a, out[1].Data, work, size) })
	if !ok {
		out[2].Data[0] = 1
	}
}

func gesdd(option func(string) int, in, out []Array) {
	s, u, vt := out[1], out[2], out[3]
	copy(out[0].Data, in[0].Data)
	if len(in[0].Data) == 0 {
		return
	}
	job := lapack.SVDNone
	switch option("mode") {
	case 'A':
		job = lapack.SVDAll
	case 'S':
		job = lapack.SVDStore
	}
	var left, right blas64.General
	if job != lapack.SVDNone {
		left, right = u.matrix(), vt.matrix()
	} else {
		left, right = blas64.General{Stride: 1}, blas64.General{Stride: 1}
	}
	ok := true
	worked(func(work []float64, n int) {
		ok = lapack64.Gesvd(job, job, in[0].matrix(), left, right, s.Data, work, n)
	})
	if !ok {
		out[4].Data[0] = 1
	}
}
