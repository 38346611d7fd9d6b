package lapack

import (
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

func randomComplex(rng *rand.Rand, shape ...int) Array {
	a := complexZeros(shape...)
	for i := range a.Complex {
		a.Complex[i] = complex(rng.NormFloat64(), rng.NormFloat64())
	}
	return a
}

func complexZeros(shape ...int) Array {
	return Array{Shape: shape, Complex: make([]complex128, len(zeros(shape...).Data))}
}

func (a Array) cloneComplex() Array {
	return Array{Shape: a.Shape, Complex: append([]complex128{}, a.Complex...)}
}

func (a Array) z(i, j int) complex128 { return a.Complex[i*a.Shape[1]+j] }

// sameComplex compares want with the m by n sums over k of what f gives.
func sameComplex(t *testing.T, what string, want Array, k int, f func(i, p, j int) complex128) {
	t.Helper()
	for i := range want.Shape[0] {
		for j := range want.Shape[1] {
			var sum complex128
			for p := range k {
				sum += f(i, p, j)
			}
			if !(cmplx.Abs(sum-want.z(i, j)) < 1e-12) {
				t.Errorf("%s: element %d,%d is %v, want %v", what, i, j, sum, want.z(i, j))
				return
			}
		}
	}
}

// A Hermitian matrix is the product of its Cholesky factor and the adjoint, and equations with the
// factor, its transpose and its adjoint are solved from both sides.
func TestComplexCholesky(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const n = 4
	x, a := randomComplex(rng, n, n), complexZeros(n, n)
	for i := range n {
		for j := range n {
			for k := range n {
				a.Complex[i*n+j] += x.z(i, k) * cmplx.Conj(x.z(j, k))
			}
		}
	}
	for _, uplo := range []int{'L', 'U'} {
		f, info := complexZeros(n, n), zeros()
		Find("lapack_zpotrf_ffi").Run(options(map[string]int{"uplo": uplo}), []Array{a.cloneComplex()}, []Array{f, info})
		triangle := func(i, j int) complex128 {
			if i == j || (i > j) == (uplo == 'L') {
				return f.z(i, j)
			}
			return 0
		}
		sameComplex(t, "potrf", a, n, func(i, p, j int) complex128 {
			if uplo == 'L' {
				return triangle(i, p) * cmplx.Conj(triangle(j, p))
			}
			return cmplx.Conj(triangle(p, i)) * triangle(p, j)
		})
		if info.Data[0] != 0 {
			t.Errorf("potrf says %v of a matrix that has a factor", info.Data[0])
		}
		for trans, at := range map[int]func(i, j int) complex128{
			'N': triangle,
			'T': func(i, j int) complex128 { return triangle(j, i) },
			'C': func(i, j int) complex128 { return cmplx.Conj(triangle(j, i)) },
		} {
			option := func(side int) func(string) int {
				return options(map[string]int{"side": side, "uplo": uplo, "trans_x": trans, "diag": 'N'})
			}
			b, y := randomComplex(rng, n, 2), complexZeros(n, 2)
			Find("lapack_ztrsm_ffi").Run(option('L'), []Array{f.cloneComplex(), b.cloneComplex()}, []Array{y})
			sameComplex(t, "trsm", b, n, func(i, p, j int) complex128 { return at(i, p) * y.z(p, j) })
			b, y = randomComplex(rng, 2, n), complexZeros(2, n)
			Find("lapack_ctrsm_ffi").Run(option('R'), []Array{f.cloneComplex(), b.cloneComplex()}, []Array{y})
			sameComplex(t, "trsm", b, n, func(i, p, j int) complex128 { return y.z(i, p) * at(p, j) })
		}
	}
	a.Complex[n+1], a.Complex[n] = -1, 0
	info := zeros()
	if Find("lapack_cpotrf_ffi").Run(options(nil), []Array{a}, []Array{complexZeros(n, n), info}); info.Data[0] != 2 {
		t.Errorf("potrf says %v of a matrix whose second pivot is negative", info.Data[0])
	}
}

// Factors of complex matrices multiply to what they are factors of.
func TestComplexFactors(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, size := range [][2]int{{1, 1}, {4, 4}, {5, 3}, {3, 5}, {0, 2}} {
		m, n := size[0], size[1]
		k := min(m, n)
		a := randomComplex(rng, m, n)

		lu, pivots := complexZeros(m, n), zeros(k)
		Find("lapack_zgetrf_ffi").Run(options(nil), []Array{a.cloneComplex()}, []Array{lu, pivots, zeros()})
		permuted := a.cloneComplex()
		for i, p := range pivots.Data {
			for j := range n {
				x, y := i*n+j, (int(p)-1)*n+j
				permuted.Complex[x], permuted.Complex[y] = permuted.Complex[y], permuted.Complex[x]
			}
		}
		sameComplex(t, "getrf", permuted, k, func(i, p, j int) complex128 {
			switch {
			case p > i || p > j:
				return 0
			case p == i:
				return lu.z(p, j)
			}
			return lu.z(i, p) * lu.z(p, j)
		})

		r, tau := complexZeros(m, n), complexZeros(k)
		Find("lapack_zgeqrf_ffi").Run(options(nil), []Array{a.cloneComplex()}, []Array{r, tau})
		q := complexZeros(m, k)
		for i := range m {
			copy(q.Complex[i*k:(i+1)*k], r.Complex[i*n:])
		}
		out := complexZeros(m, k)
		Find("lapack_zungqr_ffi").Run(options(nil), []Array{q, tau}, []Array{out})
		sameComplex(t, "geqrf", a, k, func(i, p, j int) complex128 {
			if p > j {
				return 0
			}
			return out.z(i, p) * r.z(p, j)
		})
		for i := range k {
			if imag(r.z(i, i)) != 0 {
				t.Errorf("the diagonal of R has %v", r.z(i, i))
			}
		}

		for _, all := range []bool{false, true} {
			s, u, vt, mode := zeros(k), complexZeros(m, k), complexZeros(k, n), 'S'
			if all {
				u, vt, mode = complexZeros(m, m), complexZeros(n, n), 'A'
			}
			Find("lapack_zgesdd_ffi").Run(options(map[string]int{"mode": int(mode)}), []Array{a.cloneComplex()}, []Array{complexZeros(m, n), s, u, vt, zeros()})
			sameComplex(t, "gesdd", a, k, func(i, p, j int) complex128 { return u.z(i, p) * complex(s.Data[p], 0) * vt.z(p, j) })
			if m > 0 {
				one := complexZeros(u.Shape[1], u.Shape[1])
				for i := range u.Shape[1] {
					one.Complex[i*u.Shape[1]+i] = 1
				}
				sameComplex(t, "gesdd, left", one, m, func(i, p, j int) complex128 { return cmplx.Conj(u.z(p, i)) * u.z(p, j) })
			}
		}
	}
}

func TestHermitian(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const n = 5
	x, a := randomComplex(rng, n, n), complexZeros(n, n)
	for i := range n {
		for j := range n {
			a.Complex[i*n+j] = x.z(i, j) + cmplx.Conj(x.z(j, i))
		}
	}
	for _, uplo := range []int{'L', 'U'} {
		half := a.cloneComplex()
		for i := range n {
			for j := range n {
				if uplo == 'L' && j > i || uplo == 'U' && j < i {
					half.Complex[i*n+j] = cmplx.NaN()
				}
			}
		}
		v, w := complexZeros(n, n), zeros(n)
		Find("lapack_zheevd_ffi").Run(options(map[string]int{"mode": 'V', "uplo": uplo}), []Array{half}, []Array{v, w, zeros()})
		sameComplex(t, "heevd", a, n, func(i, p, j int) complex128 {
			return v.z(i, p) * complex(w.Data[p], 0) * cmplx.Conj(v.z(j, p))
		})
		for i := 1; i < n; i++ {
			if w.Data[i] < w.Data[i-1] {
				t.Errorf("eigenvalues %v do not ascend", w.Data)
			}
		}
	}
}

// Eigenvectors of a general matrix are multiplied by their eigenvalues, from both sides.
func TestGeneral(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{0, 1, 2, 6} {
		a := random(rng, n, n)
		re, im, left, right := zeros(n), zeros(n), complexZeros(n, n), complexZeros(n, n)
		Find("lapack_dgeev_ffi").Run(options(map[string]int{"compute_left": 'V', "compute_right": 'V'}), []Array{a.clone()}, []Array{re, im, left, right, zeros()})
		scaled, scaledLeft := complexZeros(n, n), complexZeros(n, n)
		for i := range n {
			for j := range n {
				scaled.Complex[i*n+j] = right.z(i, j) * complex(re.Data[j], im.Data[j])
				scaledLeft.Complex[i*n+j] = complex(re.Data[i], im.Data[i]) * cmplx.Conj(left.z(j, i))
			}
		}
		sameComplex(t, "geev", scaled, n, func(i, p, j int) complex128 { return complex(a.at(i, p), 0) * right.z(p, j) })
		sameComplex(t, "geev, left", scaledLeft, n, func(i, p, j int) complex128 { return cmplx.Conj(left.z(p, i)) * complex(a.at(p, j), 0) })

		form, q, info := zeros(n, n), zeros(n, n), zeros()
		Find("lapack_dgees_ffi").Run(options(map[string]int{"mode": 'V', "sort": 'N'}), []Array{a.clone()}, []Array{form, q, zeros(n), zeros(n), zeros(), info})
		half := product(n, n, n, func(i, p, j int) float64 { return q.at(i, p) * form.at(p, j) })
		same(t, "gees", product(n, n, n, func(i, p, j int) float64 { return half.at(i, p) * q.at(j, p) }), a)
		for i := range n {
			for j := range max(i-1, 0) {
				if form.at(i, j) != 0 {
					t.Errorf("gees: element %d,%d is %v", i, j, form.at(i, j))
				}
			}
		}
		if n < 2 {
			continue
		}

		h, tau := zeros(n, n), zeros(n-1)
		Find("lapack_dgehrd_ffi").Run(options(map[string]int{"low": 1, "high": n}), []Array{a.clone()}, []Array{h, tau, zeros()})
		below, inner := zeros(n-1, n-1), zeros(n-1, n-1)
		for i := range n - 1 {
			copy(below.Data[i*(n-1):(i+1)*(n-1)], h.Data[(i+1)*n:])
		}
		Find("lapack_dorgqr_ffi").Run(options(nil), []Array{below, tau}, []Array{inner})
		whole, upper := zeros(n, n), h.clone()
		whole.Data[0] = 1
		for i := range n {
			for j := range max(i-1, 0) {
				upper.Data[i*n+j] = 0
			}
			if i > 0 {
				copy(whole.Data[i*n+1:(i+1)*n], inner.Data[(i-1)*(n-1):i*(n-1)])
			}
		}
		half = product(n, n, n, func(i, p, j int) float64 { return whole.at(i, p) * upper.at(p, j) })
		same(t, "gehrd", product(n, n, n, func(i, p, j int) float64 { return half.at(i, p) * whole.at(j, p) }), a)
	}
}

// A matrix that is not finite has no eigenvalues.
func TestNotFinite(t *testing.T) {
	a := Array{Shape: []int{2, 2}, Data: []float64{1, 2, cmplx.Abs(cmplx.Inf()), 3}}
	info := zeros()
	Find("lapack_dgeev_ffi").Run(options(nil), []Array{a.clone()}, []Array{zeros(2), zeros(2), complexZeros(2, 2), complexZeros(2, 2), info})
	if info.Data[0] == 0 {
		t.Error("geev takes an infinity")
	}
	info.Data[0] = 0
	Find("lapack_dgees_ffi").Run(options(nil), []Array{a.clone()}, []Array{zeros(2, 2), zeros(2, 2), zeros(2), zeros(2), zeros(), info})
	if info.Data[0] == 0 {
		t.Error("gees takes an infinity")
	}
}

func TestTridiagonal(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	const n = 6
	lower, d, upper, b := random(rng, n), random(rng, n), random(rng, n), random(rng, n, 2)
	x, info := zeros(n, 2), zeros()
	Find("lapack_dgtsv_ffi").Run(options(nil), []Array{lower.clone(), d.clone(), upper.clone(), b.clone()}, []Array{zeros(n), zeros(n), zeros(n), x, info})
	same(t, "gtsv", product(n, 2, n, func(i, p, j int) float64 {
		switch p {
		case i - 1:
			return lower.Data[i] * x.at(p, j)
		case i:
			return d.Data[i] * x.at(p, j)
		case i + 1:
			return upper.Data[i] * x.at(p, j)
		}
		return 0
	}), b)
}
