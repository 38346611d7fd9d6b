package eval

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
)

// Every op has one row with one function; terminators have none.
func TestTableIsComplete(t *testing.T) {
	for _, k := range ir.Kinds() {
		r, ok := table[k]
		n := 0
		for _, set := range []bool{r.each != nil, r.one != nil, r.run != nil} {
			if set {
				n++
			}
		}
		if want := !k.Has(ir.Terminator); ok != want || want && n != 1 {
			t.Errorf("%s: row %v, %d functions", k, ok, n)
		}
	}
}

// program returns a module whose main is built by build from parameters of the given types.
func program(build func(b *ir.Builder, args []*ir.Value) []*ir.Value, params ...*ir.Type) *ir.Module {
	f := ir.NewFunc("main")
	for _, p := range params {
		f.NewArg(f.Body, p, "")
	}
	b := ir.NewBuilder(f)
	b.Return(build(b, f.Params())...)
	return &ir.Module{Name: "test", Funcs: []*ir.Func{f}}
}

func evaluate(t *testing.T, m *ir.Module, opts Options, args ...*ir.Literal) []*ir.Literal {
	t.Helper()
	out, err := Run(m, m.Main(), args, opts)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func floats(elem ir.DType, shape []int, vs ...float64) *ir.Literal {
	return ir.Floats64(ir.Tensor(elem, shape...), vs...)
}

// equal checks that got is want bit for bit, type included, NaNs aside.
func equal(t *testing.T, got, want *ir.Literal) {
	t.Helper()
	if abs, _ := optest.MaxDiff(got, want); !got.Type.Equal(want.Type) || abs != 0 {
		t.Errorf("got %s, want %s", got, want)
	}
}

var inf, nan = math.Inf(1), math.NaN()

type unaryCase struct {
	kind    ir.Kind
	elem    ir.DType
	x, want []float64
}

func (c unaryCase) run(t *testing.T) {
	x := floats(c.elem, []int{len(c.x)}, c.x...)
	m := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value { return []*ir.Value{b.Unary(c.kind, in[0])} }, x.Type)
	equal(t, evaluate(t, m, Options{}, x)[0], floats(c.elem, []int{len(c.x)}, c.want...))
}

var unaryCases = []unaryCase{
	{ir.Abs, ir.F32, []float64{-1.5, 2, math.Copysign(0, -1), -inf}, []float64{1.5, 2, 0, inf}},
	{ir.Abs, ir.I8, []float64{-128, -3, 5}, []float64{-128, 3, 5}},
	{ir.Cbrt, ir.F64, []float64{27, -8}, []float64{3, -2}},
	{ir.Ceil, ir.F32, []float64{1.2, -1.2}, []float64{2, -1}},
	{ir.CountLeadingZeros, ir.I16, []float64{0, 1, -1, 255}, []float64{16, 15, 0, 8}},
	{ir.Cosine, ir.F64, []float64{0, math.Pi}, []float64{1, -1}},
	{ir.Exponential, ir.F32, []float64{0, 1, -inf}, []float64{1, math.E, 0}},
	{ir.ExponentialMinusOne, ir.F64, []float64{1e-20, 0}, []float64{1e-20, 0}},
	{ir.Floor, ir.F32, []float64{1.2, -1.2}, []float64{1, -2}},
	{ir.Log, ir.F32, []float64{1, 0, -1}, []float64{0, -inf, nan}},
	{ir.LogPlusOne, ir.F64, []float64{1e-20, -1}, []float64{1e-20, -inf}},
	{ir.Logistic, ir.F64, []float64{0, -1000, 1000}, []float64{0.5, 0, 1}},
	{ir.Negate, ir.I8, []float64{-128, 7}, []float64{-128, -7}},
	{ir.Negate, ir.UI8, []float64{1, 0}, []float64{255, 0}},
	{ir.Not, ir.I1, []float64{0, 1}, []float64{1, 0}},
	{ir.Not, ir.UI8, []float64{0, 1}, []float64{255, 254}},
	{ir.PopulationCount, ir.I8, []float64{-1, 0, 6}, []float64{8, 0, 2}},
	{ir.RoundNearestAfz, ir.F32, []float64{2.5, -2.5, 0.4}, []float64{3, -3, 0}},
	{ir.RoundNearestEven, ir.F32, []float64{2.5, 3.5, -2.5}, []float64{2, 4, -2}},
	{ir.Rsqrt, ir.F32, []float64{4, 0}, []float64{0.5, inf}},
	{ir.Sign, ir.F32, []float64{-3, 0, 8, nan}, []float64{-1, 0, 1, nan}},
	{ir.Sign, ir.I32, []float64{-3, 0, 8}, []float64{-1, 0, 1}},
	{ir.Sine, ir.F64, []float64{0, math.Pi / 2}, []float64{0, 1}},
	{ir.Sqrt, ir.F32, []float64{2, -1}, []float64{math.Sqrt2, nan}},
	{ir.Tan, ir.F64, []float64{0}, []float64{0}},
	{ir.Tanh, ir.F32, []float64{0, inf}, []float64{0, 1}},
}

type binaryCase struct {
	kind       ir.Kind
	elem       ir.DType
	x, y, want []float64
}

func (c binaryCase) run(t *testing.T) {
	shape := []int{len(c.x)}
	x, y := floats(c.elem, shape, c.x...), floats(c.elem, shape, c.y...)
	m := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value { return []*ir.Value{b.Binary(c.kind, in[0], in[1])} }, x.Type, y.Type)
	equal(t, evaluate(t, m, Options{}, x, y)[0], floats(c.elem, shape, c.want...))
}

var binaryCases = []binaryCase{
	{ir.Add, ir.F32, []float64{1, 16777216}, []float64{2, 1}, []float64{3, 16777216}},
	{ir.Add, ir.BF16, []float64{256}, []float64{1}, []float64{256}},
	{ir.Add, ir.F16, []float64{65504}, []float64{32}, []float64{inf}},
	{ir.Add, ir.I8, []float64{127, -128}, []float64{1, -1}, []float64{-128, 127}},
	{ir.Add, ir.UI8, []float64{255}, []float64{1}, []float64{0}},
	{ir.Add, ir.I1, []float64{1, 1, 0}, []float64{1, 0, 0}, []float64{1, 1, 0}},
	{ir.And, ir.I8, []float64{-1, 6}, []float64{5, 3}, []float64{5, 2}},
	{ir.Atan2, ir.F64, []float64{0, 1}, []float64{-1, 0}, []float64{math.Pi, math.Pi / 2}},
	{ir.Divide, ir.F32, []float64{1, 1, 0}, []float64{3, 0, 0}, []float64{1.0 / 3, inf, nan}},
	{ir.Divide, ir.I32, []float64{7, -7, 5, math.MinInt32}, []float64{2, 2, 0, -1}, []float64{3, -3, -1, math.MinInt32}},
	{ir.Divide, ir.UI8, []float64{200, 5}, []float64{3, 0}, []float64{66, 255}},
	{ir.Maximum, ir.F32, []float64{1, nan, inf}, []float64{2, 1, nan}, []float64{2, nan, nan}},
	{ir.Maximum, ir.I8, []float64{-1}, []float64{-5}, []float64{-1}},
	{ir.Minimum, ir.F32, []float64{1, nan}, []float64{2, -inf}, []float64{1, nan}},
	{ir.Multiply, ir.F32, []float64{3}, []float64{-4}, []float64{-12}},
	{ir.Multiply, ir.I1, []float64{1, 1}, []float64{1, 0}, []float64{1, 0}},
	{ir.Multiply, ir.I16, []float64{300}, []float64{300}, []float64{24464}},
	{ir.Or, ir.UI8, []float64{5}, []float64{2}, []float64{7}},
	{ir.Power, ir.F64, []float64{2, 4}, []float64{10, 0.5}, []float64{1024, 2}},
	{ir.Power, ir.I32, []float64{2, 2, -1, 1, 0}, []float64{10, -1, -3, -5, 0}, []float64{1024, 0, -1, 1, 1}},
	{ir.Remainder, ir.F64, []float64{7.5, -7.5, 1}, []float64{2, 2, 0}, []float64{1.5, -1.5, nan}},
	{ir.Remainder, ir.I32, []float64{7, -7, 5, math.MinInt32}, []float64{3, 3, 0, -1}, []float64{1, -1, 5, 0}},
	{ir.ShiftLeft, ir.I8, []float64{1, 1, 1, 3}, []float64{7, 8, -1, 1}, []float64{-128, 0, 0, 6}},
	{ir.ShiftRightArithmetic, ir.I8, []float64{-128, -1, 64, -3}, []float64{3, 8, 9, 1}, []float64{-16, -1, 0, -2}},
	{ir.ShiftRightArithmetic, ir.UI8, []float64{128}, []float64{1}, []float64{192}},
	{ir.ShiftRightLogical, ir.I8, []float64{-128, -1}, []float64{3, 8}, []float64{16, 0}},
	{ir.Subtract, ir.UI32, []float64{0}, []float64{1}, []float64{math.MaxUint32}},
	{ir.Xor, ir.I1, []float64{1, 1}, []float64{1, 0}, []float64{0, 1}},
}

// The two bytes of UI64 that no float64 holds stay exact.
func TestUnsigned64(t *testing.T) {
	u := ir.Tensor(ir.UI64, 1)
	big := ir.Ints64(u, -1) // 2^64 - 1
	m := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		two := b.Splat(u, 2)
		return []*ir.Value{b.Div(in[0], two), b.Binary(ir.Remainder, in[0], b.Splat(u, 10)), b.Compare("GT", in[0], two),
			b.Binary(ir.Maximum, in[0], two), b.Convert(in[0], ir.F32)}
	}, u)
	out := evaluate(t, m, Options{}, big)
	equal(t, out[0], ir.Ints64(u, math.MaxInt64))
	equal(t, out[1], ir.Ints64(u, 5))
	equal(t, out[2], ir.Ints64(ir.Tensor(ir.I1, 1), 1))
	equal(t, out[3], big)
	equal(t, out[4], floats(ir.F32, []int{1}, 1<<64))
}

// Float64 rounds nothing and types the results f64; Poison marks.
func TestOptions(t *testing.T) {
	x := ir.Tensor(ir.BF16, 2)
	m := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		y := b.Unary(ir.Exponential, in[0])
		z := b.Splat(x, 1)
		z.Def.Attrs.Set("pp.dont_care", ir.Unit{})
		return []*ir.Value{y, z}
	}, x)
	in := floats(ir.BF16, []int{2}, 1, 2)
	out := evaluate(t, m, Options{Float64: true}, in)
	equal(t, out[0], floats(ir.F64, []int{2}, math.E, math.Exp(2)))
	equal(t, out[1], floats(ir.F64, []int{2}, 1, 1))
	out = evaluate(t, m, Options{Poison: true}, in)
	equal(t, out[0], floats(ir.BF16, []int{2}, math.E, math.Exp(2)))
	equal(t, out[1], floats(ir.BF16, []int{2}, nan, nan))
	wide := evaluate(t, m, Options{Float64: true}, floats(ir.F64, []int{2}, 0.1, 0))
	equal(t, wide[0], floats(ir.F64, []int{2}, math.Exp(0.1), 1))
}

// A sum in float64 does not lose more the longer it is, also where terms repeat, so that the
// additions round alike.
func TestLongSums(t *testing.T) {
	const n = 10_000
	x := ir.Tensor(ir.F64, n)
	scalar := func(b *ir.Builder) *ir.Value { return b.Splat(ir.Tensor(ir.F64), 0) }
	m := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		return []*ir.Value{b.Reduce(ir.Add, in[0], scalar(b), 0), b.Dot(in[0], in[1], ir.Dot{LhsContract: []int{0}, RhsContract: []int{0}})}
	}, x, x)
	tenths, ones := make([]float64, n), make([]float64, n)
	for i := range tenths {
		tenths[i], ones[i] = 0.1, 1
	}
	want := 1000 * (1 + 0x1p-54) // of the number nearest to 0.1
	for i, out := range evaluate(t, m, Options{}, ir.Floats64(x, tenths...), ir.Floats64(x, ones...)) {
		if off := math.Abs(out.Float(0) - want); off > []float64{0, 2e-12}[i] {
			t.Errorf("result %d is %v, off by %g", i, out.Float(0), off)
		}
	}
	big, inf := make([]float64, n), make([]float64, n)
	for i := range big {
		big[i] = []float64{1, 1e100, 1, -1e100}[i%4]
		inf[i] = []float64{1, math.Inf(1)}[i%2]
	}
	equal(t, evaluate(t, m, Options{}, ir.Floats64(x, big...), ir.Floats64(x, ones...))[0], ir.Floats64(ir.Tensor(ir.F64), n/2))
	equal(t, evaluate(t, m, Options{}, ir.Floats64(x, inf...), ir.Floats64(x, ones...))[0], ir.Floats64(ir.Tensor(ir.F64), math.Inf(1)))
}

func TestErrors(t *testing.T) {
	x := ir.Tensor(ir.F32, 2)
	id := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value { return in }, x)
	strange := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		op := b.Emit(ir.Unknown, in, nil, nil, []*ir.Type{x})
		op.Spelling = "other.sinh"
		return op.Results
	}, x)
	huge := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		return []*ir.Value{b.Splat(ir.Tensor(ir.F32, 1<<30, 2), 0)}
	}, x)
	many := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		for range 10 {
			in = append(in, b.Splat(ir.Tensor(ir.F32, 100), 0))
		}
		return in
	}, x)
	chain := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		y := b.Splat(ir.Tensor(ir.F32, 100), 0)
		for range 10 {
			y = b.Add(y, y)
		}
		return in
	}, x)
	forever := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		cond, do := new(ir.Block), new(ir.Block)
		b.Func.NewArg(cond, x, "")
		c := b.In(cond)
		c.Emit(ir.Return, []*ir.Value{c.Splat(ir.Tensor(ir.I1), 1)}, nil, nil, nil)
		b.In(do).Emit(ir.Return, []*ir.Value{b.Func.NewArg(do, x, "")}, nil, nil, nil)
		return b.Emit(ir.While, in, nil, []*ir.Block{cond, do}, nil).Results
	}, x)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	two := floats(ir.F32, []int{2}, 1, 2)
	for _, c := range []struct {
		name string
		m    *ir.Module
		args []*ir.Literal
		opts Options
		want string
	}{
		{"few", id, nil, Options{}, "@main takes 1 arguments, not 0"},
		{"shape", id, []*ir.Literal{floats(ir.F32, nil, 1)}, Options{}, "argument 0 of @main is tensor<f32>, want tensor<2xf32>"},
		{"element", id, []*ir.Literal{floats(ir.F64, []int{2}, 1, 1)}, Options{}, "argument 0 of @main is tensor<2xf64>, want tensor<2xf32>"},
		{"bytes", id, []*ir.Literal{{Type: x, Data: make([]byte, 7)}}, Options{}, "7 bytes of data, want 8"},
		{"unknown", strange, []*ir.Literal{two}, Options{}, "in @main: other.sinh: an op that the evaluator does not know"},
		{"huge", huge, []*ir.Literal{two}, Options{}, "takes more than 4 GiB"},
		{"many", many, []*ir.Literal{two}, Options{Memory: 4000}, "held at one time take more than 4000 bytes"},
		{"dead values do not count", chain, []*ir.Literal{two}, Options{Memory: 4000}, ""},
		{"forever", forever, []*ir.Literal{two}, Options{Context: done}, "context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Run(c.m, c.m.Main(), c.args, c.opts)
			if c.want == "" && err == nil {
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			var e *Error
			if c.name == "unknown" && (!errors.As(err, &e) || e.Op.Kind != ir.Unknown) {
				t.Errorf("error %v has no op", err)
			}
		})
	}
}

// A dither rounds what is as near to a tie as its size says either way, with a chance by which
// the sum stays, and the rest to nearest.
func TestDither(t *testing.T) {
	const n = 1000
	x := ir.Tensor(ir.F64, n)
	m := program(func(b *ir.Builder, in []*ir.Value) []*ir.Value { return []*ir.Value{b.Convert(in[0], ir.F16)} }, x)
	for _, c := range []struct{ at, next, size float64 }{{1, 1 + 0x1p-10, 0}, {1, 1 + 0x1p-10, 0.25}, {-1, -1 - 0x1p-10, 1}, {0, 0x1p-24, 1}} {
		in := make([]float64, n)
		for i := range in {
			in[i] = c.at + (c.next-c.at)*float64(i)/n
		}
		run := func(seed uint64) *ir.Literal {
			return evaluate(t, m, Options{Dither: Dither{Seed: seed, Size: c.size}}, ir.Floats64(x, in...))[0]
		}
		out, ups, other := run(1), 0, 0
		for i := range n {
			up, off := out.Float(i) == c.next, float64(i)/n
			if !up && out.Float(i) != c.at || up && off < (1-c.size)/2 || !up && off > (1+c.size)/2 {
				t.Errorf("size %v: %v becomes %v", c.size, in[i], out.Float(i))
			}
			if up {
				ups++
			}
			if up != (off > 0.5) {
				other++
			}
		}
		if share := float64(other) / n; ups < n*45/100 || ups > n*55/100 || math.Abs(share-c.size/4) > 0.03 {
			t.Errorf("%v, size %v: %d of %d numbers become the next one, %d not to nearest", c.at, c.size, ups, n, other)
		}
		if equals := string(out.Data) == string(run(2).Data); equals != (c.size == 0) || string(out.Data) != string(run(1).Data) {
			t.Errorf("size %v: the seed does not decide", c.size)
		}
	}
}
