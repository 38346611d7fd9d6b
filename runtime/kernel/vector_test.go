package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"ppc/internal/elementary"
	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

// elementaries are the functions that have kernels, in float64.
var elementaries = map[ir.Kind]func(float64) float64{
	ir.Negate: func(x float64) float64 { return -x }, ir.Abs: math.Abs, ir.Sqrt: math.Sqrt, ir.Rsqrt: rsqrt,
	ir.Exponential: elementary.ExpReal, ir.ExponentialMinusOne: expm1Reference, ir.Log: elementary.LogReal, ir.Tanh: math.Tanh, ir.Logistic: elementary.Logistic,
	ir.Sine: func(x float64) float64 { return turned(x, 0) }, ir.Cosine: func(x float64) float64 { return turned(x, 1) },
}

// expm1Reference is math.Expm1, which is infinite a little too early.
func expm1Reference(x float64) float64 {
	if x > 100 {
		return elementary.ExpReal(x)
	}
	return math.Expm1(x)
}

var halfPi, _, _ = big.ParseFloat("1.57079632679489661923132169163975144209858469968755291048747229615390820314310449931401741267105853399107", 10, 400, big.ToNearestEven)

// turned is the sine of x a quarter of a turn later for turn = 1: package math
// takes the multiple of pi away less exactly, and this less quickly.
func turned(x float64, turn int) float64 {
	if !(math.Abs(x) < 1<<20) {
		return []func(float64) float64{elementary.SinReal, elementary.CosReal}[turn](x)
	}
	n := math.Round(x / (math.Pi / 2))
	r, _ := new(big.Float).SetPrec(400).Sub(big.NewFloat(x), new(big.Float).SetPrec(400).Mul(halfPi, big.NewFloat(n))).Float64()
	switch (int(n) + turn) & 3 {
	case 0:
		if x == 0 {
			return x
		}
		return math.Sin(r)
	case 1:
		return math.Cos(r)
	case 2:
		return -math.Sin(r)
	}
	return -math.Cos(r)
}

// samples are the numbers on which functions change what they do, those beside
// them, and others of every magnitude, few with -short.
func samples[T float](bits func(uint64) T, of func(float64) T, exponents int) []T {
	r := rand.New(rand.NewPCG(1, 2))
	var xs []T
	for _, x := range []float64{0, 1, 0.5, math.Ln2, math.Ln2 / 2, math.Sqrt2, math.Sqrt2 / 2, math.Pi / 4, math.Pi / 2, math.Pi, 20, 40, 80, 88.02969, 88.72283, 88.72284, 103.2789, 103.97208, 104, 105, 1 << 14, 1 << 20, 709.782712893384, 709.7827128933841,
		745.1332191019411, 745.1332191019412, 746, 747, 1e30, 1e300, 0x1p-126, 0x1p-149, 0x1p-1022, 0x1p-1074, math.Inf(1), math.NaN()} {
		for _, y := range []float64{x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1))} {
			xs = append(xs, of(y), of(-y))
		}
		y := of(x)
		for range 3 {
			y = of(float64(y) * (1 + 0x1p-23))
			xs = append(xs, y, -y)
		}
	}
	drawn, scaled := 40000, 40
	if testing.Short() {
		drawn, scaled = 400, 1
	}
	for range drawn {
		xs = append(xs, of(r.NormFloat64()), of(20*r.NormFloat64()), of(300*r.NormFloat64()), bits(r.Uint64()))
	}
	for e := range exponents {
		for range scaled {
			xs = append(xs, of(math.Ldexp(1+r.Float64(), e-exponents/2)), of(-math.Ldexp(1+r.Float64(), e-exponents/2)))
		}
	}
	return xs
}

// off is how far got is from want, in units in the last place of a number of so
// many bits whose smallest exponent is least.
func off(got, want float64, mantissa, least int) float64 {
	switch {
	case got != got && want != want, got == want:
		return 0
	case math.IsInf(got, 0) || math.IsInf(want, 0) || got != got || want != want:
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	unit := math.Ldexp(1, max(e-mantissa, least))
	return math.Abs(got-want) / unit
}

// limitF32 is want as a float32 has it where that is infinite: a reference that
// float32 rounds to infinity is infinite.
func limitF32(want float64) float64 {
	if r := float64(float32(want)); math.IsInf(r, 0) {
		return r
	}
	return want
}

// A reference has what the functions are, and what the first tier made of them, by type and function.
type reference struct {
	exact map[string][]float64
	bits  map[string]Mem
}

func elementaryTier[T float](t *testing.T, tr *tier, e ir.DType, xs []T, mantissa, least int, ref reference) {
	for _, k := range ir.Kinds() {
		exact, ok := elementaries[k]
		if !ok {
			continue
		}
		f := unaryOn(tr, k, e)
		if f == nil { // the portable tier's are not of the table
			f = unaries[k][e]
		}
		d := make([]T, len(xs))
		f(new(Work), []Mem{bytesOf(d)}, []Mem{bytesOf(xs)})
		allowed, worst, at := scalar.Bound(k, e), 0.0, T(0)
		if k == ir.Sqrt && e == ir.F32 {
			allowed = 0.5 // which is rounding
		}
		what := fmt.Sprint(e, k)
		wants := ref.exact[what]
		if wants == nil {
			wants = make([]float64, len(xs))
			for i, x := range xs {
				if wants[i] = exact(float64(x)); e == ir.F32 {
					wants[i] = limitF32(wants[i])
				}
			}
			ref.exact[what] = wants
		}
		for i, x := range xs {
			want := wants[i]
			if u := off(float64(d[i]), want, mantissa, least); u > worst {
				worst, at = u, x
			}
			if d[i] == 0 && want == 0 && math.Signbit(float64(d[i])) != math.Signbit(want) {
				t.Errorf("%s %s %s of %v is %v, want %v", tr.name, e, k, x, d[i], want)
			}
		}
		if worst > allowed {
			t.Errorf("%s %s %s of %v is off by %.2f units in the last place, %.2f are allowed", tr.name, e, k, at, worst, allowed)
		}
		t.Logf("%s %s %s: %.3f units", tr.name, e, k, worst)
		for i := range d { // a NaN is a NaN
			if d[i] != d[i] {
				d[i] = T(math.NaN())
			}
		}
		if first := ref.bits[what]; first == nil {
			ref.bits[what] = bytesOf(d)
		} else if !bytes.Equal(first, bytesOf(d)) {
			for i, v := range View[T](first) {
				if v != d[i] && (v == v || d[i] == d[i]) {
					t.Errorf("%s %s %s of %v is %v, and %v on another tier", tr.name, e, k, xs[i], d[i], v)
					break
				}
			}
		}
	}
}

// The kernels of elementary functions are within the stated bounds on every
// tier, and all tiers give the same bits.
func TestElementary(t *testing.T) {
	ref := reference{make(map[string][]float64), make(map[string]Mem)}
	f32 := samples(func(b uint64) float32 { return math.Float32frombits(uint32(b)) }, func(x float64) float32 { return float32(x) }, 300)
	f64 := samples(math.Float64frombits, func(x float64) float64 { return x }, 2200)
	for i := range tiers {
		if tr := &tiers[i]; tr.has {
			elementaryTier(t, tr, ir.F32, f32, 24, -149, ref)
			elementaryTier(t, tr, ir.F64, f64, 53, -1074, ref)
		}
	}
}

// Every tier adds, compares, chooses and converts arrays of any length, in place
// or not, as Go does element by element.
func TestVectorOps(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 0x1p-140, -0x1p-140, 3, 1e38, -1e38}
	for i := range tiers {
		tr := &tiers[i]
		if !tr.has || tr.vector == 0 {
			continue
		}
		vectorOpsOf[float32](t, tr, ir.F32, special)
		vectorOpsOf[float64](t, tr, ir.F64, special)
		r, edges := rand.New(rand.NewPCG(7, 8)), []int32{0, 1, -1, math.MaxInt32, math.MinInt32, 1 << 16}
		for n := range 150 {
			x, y := make([]int32, n), make([]int32, n)
			for i := range n {
				x[i], y[i] = edges[r.IntN(len(edges))], edges[r.IntN(len(edges))]
			}
			vectorComparisons(t, tr, ir.I32, x, y)
		}
	}
}

// vectorComparisons compares x and y.
func vectorComparisons[T float | int32](t *testing.T, tr *tier, e ir.DType, x, y []T) {
	t.Helper()
	for dir, f := range map[string]func(a, b T) bool{"EQ": func(a, b T) bool { return a == b }, "NE": func(a, b T) bool { return a != b }, "LT": func(a, b T) bool { return a < b }, "LE": func(a, b T) bool { return a <= b }} {
		d := NewMem(len(x))
		tr.binary(tr.ops[e].compare[dir], tr.vector, tr.vector/e.Size())(new(Work), []Mem{d}, []Mem{bytesOf(x), bytesOf(y)})
		for i := range d {
			if (d[i] != 0) != f(x[i], y[i]) || d[i] > 1 {
				t.Fatalf("%s %s %s of %v and %v is %d", tr.name, e, dir, x[i], y[i], d[i])
			}
		}
	}
}

func vectorOpsOf[T float](t *testing.T, tr *tier, e ir.DType, special []float64) {
	binary := map[ir.Kind]func(a, b T) T{
		ir.Add: func(a, b T) T { return a + b }, ir.Subtract: func(a, b T) T { return a - b }, ir.Multiply: func(a, b T) T { return a * b },
		ir.Divide: func(a, b T) T { return a / b }, ir.Maximum: func(a, b T) T { return max(a, b) }, ir.Minimum: func(a, b T) T { return min(a, b) },
	}
	r := rand.New(rand.NewPCG(5, 6))
	w := new(Work)
	for n := range 150 {
		x, y, p := make([]T, n), make([]T, n), NewMem(n)
		for i := range n {
			x[i], y[i], p[i] = T(special[r.IntN(len(special))]), T(special[r.IntN(len(special))]), byte(r.IntN(2))
		}
		same := func(name string, got T, i int, want T) {
			if got != want && (got == got || want == want) || got == 0 && math.Signbit(float64(got)) != math.Signbit(float64(want)) {
				t.Fatalf("%s %s %s of %v and %v (%d of %d) is %v, want %v", tr.name, e, name, x[i], y[i], i, n, got, want)
			}
		}
		for k, f := range binary {
			for alias := range 3 {
				xs, ys, d := append([]T{}, x...), append([]T{}, y...), make([]T, n)
				switch alias {
				case 1:
					d = xs
				case 2:
					d = ys
				}
				tr.binary(tr.ops[e].binary[k], tr.vector, tr.vector)(w, []Mem{bytesOf(d)}, []Mem{bytesOf(xs), bytesOf(ys)})
				for i := range d {
					same(k.String(), d[i], i, f(x[i], y[i]))
				}
			}
		}
		vectorComparisons(t, tr, e, x, y)
		d := make([]T, n)
		tr.ternary(tr.ops[e].choose, tr.vector/e.Size())(w, []Mem{bytesOf(d)}, []Mem{p, bytesOf(x), bytesOf(y)})
		for i := range d {
			want := y[i]
			if p[i] != 0 {
				want = x[i]
			}
			same("select", d[i], i, want)
		}
		if e == ir.F32 {
			d := make([]float32, n)
			tr.unary(tr.fromBool, tr.vector/4, tr.vector)(w, []Mem{bytesOf(d)}, []Mem{p})
			for i := range d {
				if d[i] != float32(p[i]) {
					t.Fatalf("%s: boolean %d is %v", tr.name, p[i], d[i])
				}
			}
		}
	}
}

// Rows of every length are folded to the same bits on every tier, sums close to
// those of float64, and maxima exactly.
func TestRowFolds(t *testing.T) {
	bits := make(map[string]Mem)
	for i := range tiers {
		if tr := &tiers[i]; tr.has {
			rowFoldsOf[float32](t, tr, ir.F32, 0x1p-24, bits)
			rowFoldsOf[float64](t, tr, ir.F64, 0x1p-53, bits)
		}
	}
}

func rowFoldsOf[T float](t *testing.T, tr *tier, e ir.DType, eps float64, bits map[string]Mem) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, 2, 15, 16, 31, 32, 33, 63, 64, 65, 96, 100, 128, 1000, 4096, 4097, 8192, 9000} {
		const rows = 3
		x := make([]T, rows*n)
		for i := range x {
			x[i] = T(r.NormFloat64())
		}
		for _, k := range []ir.Kind{ir.Add, ir.Maximum} {
			d := []T{1, -2, T(math.Inf(-1))}
			if k == ir.Add {
				d[2] = 0
			}
			first := append([]T{}, d...)
			rowFolder(tr, k, e)(new(Work), []Mem{bytesOf(d)}, []Mem{bytesOf(x)})
			for i, got := range d {
				want, size := float64(first[i]), math.Abs(float64(first[i]))
				for _, v := range x[i*n : (i+1)*n] {
					if k == ir.Add {
						want, size = want+float64(v), size+math.Abs(float64(v))
					} else {
						want = max(want, float64(v))
					}
				}
				if math.Abs(float64(got)-want) > size*eps*float64(n/foldLanes+9) {
					t.Errorf("%s %s %s of %d elements is %v, want %v", tr.name, e, k, n, got, want)
				}
			}
			what := fmt.Sprint(e, k, n)
			if b := bits[what]; b == nil {
				bits[what] = bytesOf(d)
			} else if !bytes.Equal(b, bytesOf(d)) {
				t.Errorf("%s %s %s of %d elements has other bits than on another tier", tr.name, e, k, n)
			}
		}
		x[n-1] = T(math.NaN())
		d := []T{0, 0, 0}
		rowFolder(tr, ir.Maximum, e)(new(Work), []Mem{bytesOf(d)}, []Mem{bytesOf(x)})
		if d[0] == d[0] || d[1] != d[1] {
			t.Errorf("%s %s: the maximum of %d elements with a NaN is %v", tr.name, e, n, d)
		}
	}
}
