package native

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"ppc/ir"
	"ppc/lower/fuse"
	"ppc/runtime/kernel/scalar"
)

// numbers are n of all sizes, and those that are none.
func numbers(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	xs := make([]float32, n)
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-40, -1e-40, 88, -104, 3e38}
	for i := range xs {
		switch r.IntN(8) {
		case 0:
			xs[i] = special[r.IntN(len(special))]
		case 1:
			xs[i] = math.Float32frombits(r.Uint32())
		default:
			xs[i] = float32(r.NormFloat64() * 3)
		}
	}
	return xs
}

func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func run(t *testing.T, c *Chain, n int, arrays ...[]float32) {
	t.Helper()
	code := c.Compile()
	if code == nil {
		t.Fatal("not compiled")
	}
	ps := make([]unsafe.Pointer, len(arrays))
	for i, a := range arrays {
		ps[i] = unsafe.Pointer(&a[0])
	}
	code.Run(ps, n, make([]byte, code.Scratch()))
}

func needs(t *testing.T) {
	t.Helper()
	if !Available() {
		t.Skip("no code is made on this machine")
	}
}

// Each function gives the bits of the Go function.
func TestFunctions(t *testing.T) {
	needs(t)
	const n = 1 << 14
	x, y := numbers(n, 1), numbers(n, 2)
	check := func(k ir.Kind, got []float32, want func(i int) float32) {
		t.Helper()
		for i, v := range got {
			if !same(v, want(i)) {
				t.Errorf("%v of %v and %v is %v, want %v", k, x[i], y[i], v, want(i))
				return
			}
		}
	}
	for k, f := range map[ir.Kind]func(x float32) float32{ir.Negate: scalar.NegateF32, ir.Abs: scalar.AbsF32, ir.Sqrt: scalar.SqrtF32, ir.Rsqrt: scalar.RsqrtF32, ir.Exponential: scalar.ExpF32, ir.ExponentialMinusOne: scalar.Expm1F32, ir.Log: scalar.LogF32, ir.Tanh: scalar.TanhF32, ir.Logistic: scalar.LogisticF32} {
		c, out := NewChain(0), make([]float32, n)
		in, to := c.Array(), c.Array()
		c.Store(c.Unary(k, c.Load(in, fuse.Full, false)), to)
		run(t, c, n, x, out)
		check(k, out, func(i int) float32 { return f(x[i]) })
	}
	for k, f := range map[ir.Kind]func(x, y float32) float32{ir.Add: scalar.AddF32, ir.Subtract: scalar.SubtractF32, ir.Multiply: scalar.MultiplyF32, ir.Divide: scalar.DivideF32, ir.Maximum: scalar.MaximumF32, ir.Minimum: scalar.MinimumF32} {
		for _, constant := range []int{-1, 0, 1} {
			c, out := NewChain(0), make([]float32, n)
			a, b, to := c.Array(), c.Array(), c.Array()
			args := []Node{c.Load(a, fuse.Full, false), c.Load(b, fuse.Full, false)}
			at := func(xs []float32, k, i int) float32 {
				if k == constant {
					return 0.7
				}
				return xs[i]
			}
			if constant >= 0 {
				args[constant] = c.Const(0.7)
			}
			c.Store(c.Binary(k, args[0], args[1]), to)
			run(t, c, n, x, y, out)
			check(k, out, func(i int) float32 { return f(at(x, 0, i), at(y, 1, i)) })
		}
	}
}

// softmax is a chain over rows: maximum, exponential, sum and quotient, and of a row the logarithm of the sum.
func softmax(cols int) *Chain {
	c := NewChain(cols)
	x, mask, w, out, logs, kept, rows := c.Array(), c.Array(), c.Array(), c.Array(), c.Array(), c.Array(), c.Array()
	v := c.Select(c.Load(mask, fuse.Full, true), c.Load(x, fuse.Full, false), c.Const(-1e30))
	big := c.Fold(v, true, float32(math.Inf(-1)))
	e := c.Unary(ir.Exponential, c.Binary(ir.Subtract, v, c.Spread(big)))
	sum := c.Fold(e, false, 0)
	c.Store(c.Unary(ir.Log, sum), logs)
	q := c.Binary(ir.Divide, e, c.Spread(sum))
	q = c.Binary(ir.Multiply, q, c.LoadBy(w, rows, Vectors, false))
	c.Store(c.Compare("GT", q, c.Const(0.5)), kept)
	c.Store(q, out)
	return c
}

// Chains that are alike have one code, and others their own.
func TestAlike(t *testing.T) {
	needs(t)
	one := func(k ir.Kind, x float32) *Chain {
		c := NewChain(0)
		in, to := c.Array(), c.Array()
		c.Store(c.Binary(k, c.Load(in, fuse.Full, false), c.Const(x)), to)
		return c
	}
	first := one(ir.Add, 1).Compile()
	if one(ir.Add, 1).Compile() != first {
		t.Error("two codes of the same chain")
	}
	for _, c := range []*Chain{one(ir.Subtract, 1), one(ir.Add, 2), softmax(64), softmax(32)} {
		if c.Compile() == first {
			t.Error("one code of two chains")
		}
	}
	if softmax(64).Compile() == softmax(32).Compile() {
		t.Error("one code of two lengths of rows")
	}
}

// A row is folded in chains, whose upper half is folded into the lower.
func TestRows(t *testing.T) {
	needs(t)
	const rows = 9
	for _, cols := range []int{32, 64, 96, 1024} {
		x, w := make([]float32, rows*cols), numbers(cols, 4)
		r := rand.New(rand.NewPCG(1, uint64(cols)))
		mask, kept := make([]byte, rows*cols), make([]byte, rows*cols)
		for i := range x {
			x[i], mask[i] = float32(r.NormFloat64()*5), byte(r.IntN(4)/3^1)
		}
		out, logs := make([]float32, rows*cols), make([]float32, rows)
		code := softmax(cols).Compile()
		if code == nil {
			t.Fatal("not compiled")
		}
		code.Run([]unsafe.Pointer{unsafe.Pointer(&x[0]), unsafe.Pointer(&mask[0]), unsafe.Pointer(&w[0]), unsafe.Pointer(&out[0]), unsafe.Pointer(&logs[0]), unsafe.Pointer(&kept[0]), unsafe.Pointer(&make([]int32, rows)[0])}, rows, make([]byte, code.Scratch()))
		sums, maxima := scalar.FoldRows(func(a, b float32) float32 { return a + b }), scalar.FoldRows(func(a, b float32) float32 { return max(a, b) })
		for i := range rows {
			v, e := make([]float32, cols), make([]float32, cols)
			for j := range v {
				if v[j] = -1e30; mask[i*cols+j] != 0 {
					v[j] = x[i*cols+j]
				}
			}
			var big, sum float32
			maxima((*byte)(unsafe.Pointer(&big)), (*byte)(unsafe.Pointer(&v[0])), 1, cols/Lanes)
			for j := range v {
				e[j] = scalar.ExpF32(v[j] - big)
			}
			sums((*byte)(unsafe.Pointer(&sum)), (*byte)(unsafe.Pointer(&e[0])), 1, cols/Lanes)
			if want := scalar.LogF32(sum); !same(logs[i], want) {
				t.Errorf("%d columns: the logarithm of row %d is %v, want %v", cols, i, logs[i], want)
			}
			for j := range v {
				want := e[j] / sum * w[j]
				if got := out[i*cols+j]; !same(got, want) || kept[i*cols+j] != 0 != (want > 0.5) {
					t.Fatalf("%d columns: element %d, %d is %v (%d), want %v", cols, i, j, got, kept[i*cols+j], want)
				}
			}
		}
	}
}
