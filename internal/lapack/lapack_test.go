package lapack

import (
	"math"
	"math/rand/v2"
	"testing"
)

func random(rng *rand.Rand, shape ...int) Array {
	a := zeros(shape...)
	for i := range a.Data {
		a.Data[i] = rng.NormFloat64()
	}
	return a
}

func zeros(shape ...int) Array {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return Array{Shape: shape, Data: make([]float64, n)}
}

func (a Array) clone() Array { return Array{Shape: a.Shape, Data: append([]float64{}, a.Data...)} }

func (a Array) at(i, j int) float64 { return a.Data[i*a.Shape[1]+j] }

// product is the product of a and b, whose elements are those that f gives.
func product(m, n, k int, f func(i, p, j int) float64) Array {
	c := zeros(m, n)
	for i := range m {
		for j := range n {
			for p := range k {
				c.Data[i*n+j] += f(i, p, j)
			}
		}
	}
	return c
}

func same(t *testing.T, what string, got, want Array) {
	t.Helper()
	for i := range want.Data {
		if !(math.Abs(got.Data[i]-want.Data[i]) < 1e-12) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got.Data[i], want.Data[i])
			return
		}
	}
}

func options(values map[string]int) func(string) int {
	return func(name string) int { return values[name] }
}

// Factors multiply to what they are factors of.
func TestFactors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range [][2]int{{1, 1}, {4, 4}, {5, 3}, {3, 5}, {0, 2}} {
		m, n := size[0], size[1]
		k := min(m, n)
		a := random(rng, m, n)

		lu, pivots := zeros(m, n), zeros(k)
		Find("lapack_dgetrf_ffi").Run(options(nil), []Array{a.clone()}, []Array{lu, pivots, zeros()})
		permuted := a.clone()
		for i, p := range pivots.Data {
			for j := range n {
				x, y := i*n+j, (int(p)-1)*n+j
				permuted.Data[x], permuted.Data[y] = permuted.Data[y], permuted.Data[x]
			}
		}
		same(t, "getrf", product(m, n, k, func(i, p, j int) float64 {
			l, u := lu.at(i, p), lu.at(p, j)
			if i == p {
				l = 1
			}
			if p > i || p > j {
				return 0
			}
			return l * u
		}), permuted)

		r, tau := zeros(m, n), zeros(k)
		Find("lapack_dgeqrf_ffi").Run(options(nil), []Array{a.clone()}, []Array{r, tau})
		q := zeros(m, k)
		for i := range m {
			copy(q.Data[i*k:(i+1)*k], r.Data[i*n:])
		}
		Find("lapack_dorgqr_ffi").Run(options(nil), []Array{q.clone(), tau}, []Array{q})
		same(t, "geqrf", product(m, n, k, func(i, p, j int) float64 {
			if p > j {
				return 0
			}
			return q.at(i, p) * r.at(p, j)
		}), a)

		s, u, vt := zeros(k), zeros(m, k), zeros(k, n)
		Find("lapack_dgesdd_ffi").Run(options(map[string]int{"mode": 'S'}), []Array{a.clone()}, []Array{zeros(m, n), s, u, vt, zeros()})
		same(t, "gesdd", product(m, n, k, func(i, p, j int) float64 { return u.at(i, p) * s.Data[p] * vt.at(p, j) }), a)
	}
}

func TestSymmetric(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 5
	x := random(rng, n, n)
	a := product(n, n, n, func(i, p, j int) float64 { return x.at(i, p) * x.at(j, p) })
	for _, uplo := range []int{'L', 'U'} {
		v, w := zeros(n, n), zeros(n)
		Find("lapack_ssyevd_ffi").Run(options(map[string]int{"mode": 'V', "uplo": uplo}), []Array{a.clone()}, []Array{v, w, zeros()})
		same(t, "syevd", product(n, n, n, func(i, p, j int) float64 { return v.at(i, p) * w.Data[p] * v.at(j, p) }), a)

		f := zeros(n, n)
		Find("lapack_spotrf_ffi").Run(options(map[string]int{"uplo": uplo}), []Array{a.clone()}, []Array{f, zeros()})
		same(t, "potrf", product(n, n, n, func(i, p, j int) float64 {
			switch {
			case uplo == 'L' && p <= min(i, j):
				return f.at(i, p) * f.at(j, p)
			case uplo == 'U' && p <= min(i, j):
				return f.at(p, i) * f.at(p, j)
			}
			return 0
		}), a)

		b, y := random(rng, n, 2), zeros(n, 2)
		Find("lapack_dtrsm_ffi").Run(options(map[string]int{"side": 'L', "uplo": uplo, "trans_x": 'N', "diag": 'N'}), []Array{f.clone(), b.clone()}, []Array{y})
		same(t, "trsm", product(n, 2, n, func(i, p, j int) float64 {
			if uplo == 'L' && p > i || uplo == 'U' && p < i {
				return 0
			}
			return f.at(i, p) * y.at(p, j)
		}), b)
	}
	info := zeros()
	Find("lapack_dpotrf_ffi").Run(options(nil), []Array{{Shape: []int{1, 1}, Data: []float64{-1}}}, []Array{zeros(1, 1), info})
	if info.Data[0] == 0 {
		t.Error("a negative number has a Cholesky factor")
	}
}

// Other targets have no routine, and sizes that do not fit are an error.
func TestRefused(t *testing.T) {
	for _, name := range []string{"lapack_zgeev_ffi", "lapack_dungqr_ffi", "lapack_dsyevx_ffi", "dgetrf", ""} {
		if Find(name) != nil {
			t.Errorf("%q has a routine", name)
		}
	}
	for name, shapes := range map[string][2][][]int{
		"potrf": {{{2, 3}}, {{2, 3}, {}}},
		"trsm":  {{{2, 2}, {3, 2}}, {{3, 2}}},
		"getrf": {{{2, 3}}, {{2, 3}, {3}, {}}},
		"geqrf": {{{2, 3}}, {{3, 2}, {2}}},
		"orgqr": {{{2, 3}, {2}}, {{2, 3}}},
		"syevd": {{{2, 2}}, {{2, 2}, {3}, {}}},
		"gesdd": {{{2, 3}}, {{2, 3}, {3}, {2, 2}, {3, 3}, {}}},
		"geev":  {{{2, 2}}, {{2}, {3}, {2, 2}, {2, 2}, {}}},
		"gees":  {{{2, 3}}, {{2, 3}, {2, 3}, {2}, {2}, {}, {}}},
		"gehrd": {{{2, 2}}, {{2, 2}, {1}, {}}}, // of no rows
		"gtsv":  {{{3}, {3}, {2}, {3, 1}}, {{3}, {3}, {2}, {3, 1}, {}}},
	} {
		if err := reals[name].Check(options(nil), shapes[0], shapes[1]); err == nil {
			t.Errorf("%s accepts %v and %v", name, shapes[0], shapes[1])
		}
	}
}

func TestOption(t *testing.T) {
	for _, text := range []string{"{uplo = 76 : ui8}", "{mode = 86 : ui8, uplo = 76 : ui8}", "uplo=76"} {
		if v, ok := Option(text, "uplo"); !ok || v != 76 {
			t.Errorf("%s: got %d %v", text, v, ok)
		}
	}
	if _, ok := Option("{mode = 86 : ui8}", "uplo"); ok {
		t.Error("an option that is not there")
	}
}
