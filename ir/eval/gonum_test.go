package eval

import (
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"ppc/ir"
)

// What another library computes of random matrices, and says of random bits.
var gonumTests = []namedTest{
	{"dot_general like gonum", testDotLikeGonum},
	{"cholesky like gonum", testCholeskyLikeGonum},
	{"triangular_solve like gonum", testSolveLikeGonum},
	{"fft like gonum", testFFTLikeGonum},
	{"rng_bit_generator is uniform", testUniformBits},
}

// randomMatrix has numbers of both signs.
func randomMatrix(r *rand.Rand, rows, cols int) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range rows {
		for j := range cols {
			m.Set(i, j, r.NormFloat64())
		}
	}
	return m
}

// positiveMatrix is symmetric and positive definite.
func positiveMatrix(r *rand.Rand, n int) *mat.SymDense {
	x := randomMatrix(r, n, n)
	var square mat.SymDense
	square.SymOuterK(1, x)
	for i := range n {
		square.SetSym(i, i, square.At(i, i)+1)
	}
	return &square
}

func literalOf(m mat.Matrix) *ir.Literal {
	rows, cols := m.Dims()
	return ir.Floats64(ir.Tensor(ir.F64, rows, cols), mat.DenseCopyOf(m).RawMatrix().Data...)
}

// sameMatrix compares but for rounding, relative to the largest number.
func sameMatrix(t *testing.T, what string, got *ir.Literal, want mat.Matrix) {
	t.Helper()
	rows, cols := want.Dims()
	size := max(mat.Max(want), -mat.Min(want), 1)
	for i := range rows {
		for j := range cols {
			if d := got.Float(i*cols+j) - want.At(i, j); !(max(d, -d) <= 1e-12*size) {
				t.Fatalf("%s: element %d, %d is %v, want %v", what, i, j, got.Float(i*cols+j), want.At(i, j))
			}
		}
	}
}

// evaluatedOp evaluates a program of one op on matrices.
func evaluatedOp(t *testing.T, k ir.Kind, as ir.Attrs, args ...*ir.Literal) *ir.Literal {
	t.Helper()
	var params []*ir.Type
	for _, a := range args {
		params = append(params, a.Type)
	}
	m := program(func(b *ir.Builder, in values) values { return b.Emit(k, in, as, nil, nil).Results }, params...)
	return evaluate(t, m, Options{}, args...)[0]
}

// testDotLikeGonum contracts each side's rows or columns.
func testDotLikeGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 40 {
		m, k, n := 1+r.IntN(9), 1+r.IntN(9), 1+r.IntN(9)
		x, y := randomMatrix(r, m, k), randomMatrix(r, k, n)
		var want mat.Dense
		want.Mul(x, y)
		left, right, d := mat.Matrix(x), mat.Matrix(y), ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}
		if r.IntN(2) == 0 {
			left, d.LhsContract = x.T(), []int{0}
		}
		if r.IntN(2) == 0 {
			right, d.RhsContract = y.T(), []int{1}
		}
		sameMatrix(t, "product", evaluatedOp(t, ir.DotGeneral, attrs("dot_dimension_numbers", d), literalOf(left), literalOf(right)), &want)
	}
}

func testCholeskyLikeGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	for n := 1; n < 12; n++ {
		a := positiveMatrix(r, n)
		var factor mat.Cholesky
		if !factor.Factorize(a) {
			t.Fatal("gonum has no factor")
		}
		var lower, upper mat.TriDense
		factor.LTo(&lower)
		factor.UTo(&upper)
		sameMatrix(t, "lower factor", evaluatedOp(t, ir.Cholesky, attrs("lower", ir.Bool(true)), literalOf(a)), &lower)
		sameMatrix(t, "upper factor", evaluatedOp(t, ir.Cholesky, attrs("lower", ir.Bool(false)), literalOf(a)), &upper)
	}
}

// testSolveLikeGonum solves on each side of each triangle, transposed or not; the
// other triangle is not read.
func testSolveLikeGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	for i := range 48 {
		left, lower, unit, transposed := i&1 > 0, i&2 > 0, i&4 > 0, i&8 > 0
		n, k := 1+r.IntN(6), 1+r.IntN(4)
		full := mat.DenseCopyOf(positiveMatrix(r, n))
		triangle := mat.NewDense(n, n, nil)
		for row := range n {
			for col := range n {
				switch {
				case row == col && unit:
					triangle.Set(row, col, 1)
				case row == col, row > col == lower:
					triangle.Set(row, col, full.At(row, col))
				}
			}
		}
		op, rows, cols := mat.Matrix(triangle), n, k
		transpose := "NO_TRANSPOSE"
		if transposed {
			op, transpose = triangle.T(), "TRANSPOSE"
		}
		if !left {
			rows, cols = k, n
		}
		x := randomMatrix(r, rows, cols)
		var b mat.Dense // of which x is the solution
		if left {
			b.Mul(op, x)
		} else {
			b.Mul(x, op)
		}
		as := attrs("left_side", ir.Bool(left), "lower", ir.Bool(lower), "unit_diagonal", ir.Bool(unit), "transpose_a", ir.HLOEnum("transpose", transpose))
		got := evaluatedOp(t, ir.TriangularSolve, as, literalOf(full), literalOf(&b))
		back := mat.NewDense(rows, cols, elementsOf(got))
		var residual mat.Dense
		if left {
			residual.Mul(op, back)
		} else {
			residual.Mul(back, op)
		}
		sameMatrix(t, "a times the solution", literalOf(&residual), &b)
	}
}

// elementsOf are the elements of l.
func elementsOf(l *ir.Literal) []float64 {
	vs := make([]float64, l.Type.NumElements())
	for i := range vs {
		vs[i] = l.Float(i)
	}
	return vs
}

// testFFTLikeGonum transforms real numbers, of lengths that are and are not powers of 2.
func testFFTLikeGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 0))
	for n := 1; n < 40; n++ {
		x := elementsOf(literalOf(randomMatrix(r, 1, n)))
		want := fourier.NewFFT(n).Coefficients(nil, x)
		got := evaluatedOp(t, ir.FFT, attrs("fft_type", ir.HLOEnum("fft_type", "RFFT"), "fft_length", ir.Ints{n}), ir.Floats64(ir.Tensor(ir.F64, n), x...))
		for k, w := range want {
			if d := cmplx.Abs(got.Complex(k) - w); !(d <= 1e-11) {
				t.Fatalf("length %d: coefficient %d is %v, want %v", n, k, got.Complex(k), w)
			}
		}
	}
}

// testUniformBits counts the bytes of random bits: by the chi-squared test of
// what uniform bytes would be, neither as uneven nor as even as one time in a
// million.
func testUniformBits(t *testing.T) {
	const words = 1 << 15
	for _, algorithm := range []string{"THREE_FRY", "PHILOX"} {
		as := attrs("rng_algorithm", ir.HLOEnum("rng_algorithm", algorithm))
		m := program(func(b *ir.Builder, in values) values {
			return b.Emit(ir.RngBitGenerator, in, as, nil, []*ir.Type{in[0].Type, ir.Tensor(ir.UI32, words)}).Results
		}, ir.Tensor(ir.UI64, 2))
		bits := evaluate(t, m, Options{}, ir.Ints64(ir.Tensor(ir.UI64, 2), 3, 5))[1]
		have, want := make([]float64, 256), make([]float64, 256)
		for _, b := range bits.Data {
			have[b]++
		}
		for i := range want {
			want[i] = words * 4 / 256
		}
		p := distuv.ChiSquared{K: 255}.Survival(stat.ChiSquare(have, want))
		if p < 1e-6 || p > 1-1e-6 {
			t.Errorf("%s: uniform bytes would be as uneven with probability %g", algorithm, p)
		}
	}
}
