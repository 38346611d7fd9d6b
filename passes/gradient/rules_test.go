package gradient

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// A lossProgram is a program under construction whose loss is to be
// differentiated, with the arguments to do it at.
type lossProgram struct {
	*rand.Rand
	b    *ir.Builder
	m    *ir.Module
	args []*ir.Literal
}

func newLossProgram(seed uint64) *lossProgram {
	f := ir.NewFunc("main")
	m := &ir.Module{Funcs: []*ir.Func{f}}
	m.Attrs.Set("pp.gradient", ir.Str("all"))
	return &lossProgram{Rand: rand.New(rand.NewPCG(seed, 0)), b: ir.NewBuilder(f), m: m}
}

// param is a new parameter of the program with the argument l.
func (p *lossProgram) param(l *ir.Literal) *ir.Value {
	v := p.b.Func.NewArg(p.b.Func.Body, l.Type, "")
	v.Attrs = ir.AttrsOf(facts.Named("pp.kind", ir.Str("input")), facts.Named("pp.name", ir.Str(fmt.Sprint("x", len(p.args)))))
	p.args = append(p.args, l)
	return v
}

// within is a parameter with elements between low and high.
func (p *lossProgram) within(low, high float64, shape ...int) *ir.Value {
	return p.param(p.numbers(low, high, ir.Tensor(ir.F64, shape...)))
}

func (p *lossProgram) numbers(low, high float64, t *ir.Type) *ir.Literal {
	vs := make([]float64, t.NumElements())
	for i := range vs {
		vs[i] = low + (high-low)*p.Float64()
	}
	return ir.Floats64(t, vs...)
}

// float is a parameter with elements of both signs.
func (p *lossProgram) float(shape ...int) *ir.Value { return p.within(-2, 2, shape...) }

// typed is a parameter with elements of both signs of the given type.
func (p *lossProgram) typed(elem ir.DType, shape ...int) *ir.Value {
	v := p.float(shape...)
	v.Type = v.Type.WithElem(elem)
	return v
}

// apart is a parameter whose elements differ by 0.1 and more, from each other
// and from zero.
func (p *lossProgram) apart(shape ...int) *ir.Value {
	t := ir.Tensor(ir.F64, shape...)
	vs := make([]float64, t.NumElements())
	for i, k := range p.Perm(len(vs)) {
		vs[i] = (float64(k-len(vs)/2) + 0.5 + 0.2*p.Float64()) * 0.2
	}
	return p.param(ir.Floats64(t, vs...))
}

// integers is a constant of type i32 with elements from low to high.
func (p *lossProgram) integers(low, high int, shape ...int) *ir.Value {
	t := ir.Tensor(ir.I32, shape...)
	vs := make([]int, t.NumElements())
	for i := range vs {
		vs[i] = low + p.IntN(high-low+1)
	}
	return p.b.Const(ir.Ints64(t, vs...))
}

// booleans is a constant.
func (p *lossProgram) booleans(shape ...int) *ir.Value {
	return p.b.Convert(p.integers(0, 1, shape...), ir.I1)
}

// shape has up to three dimensions of sizes 1 to 3.
func (p *lossProgram) shape() []int { return p.sizes(p.IntN(4)) }

func (p *lossProgram) sizes(rank int) []int {
	s := make([]int, rank)
	for d := range s {
		s[d] = 1 + p.IntN(3)
	}
	return s
}

// some are the numbers below n, each with an even chance.
func (p *lossProgram) some(n int) []int {
	return slices.DeleteFunc(facts.UpTo(n), func(int) bool { return p.IntN(2) == 0 })
}

// attr emits an op of one result that follows from the rest.
func (p *lossProgram) attr(k ir.Kind, operands []*ir.Value, attrs ...ir.NamedAttr) []*ir.Value {
	return p.b.Emit(k, operands, ir.AttrsOf(attrs...), nil, nil).Results
}

// finish makes the sum of the floating-point vs, each weighted at random, the
// program's loss.
func (p *lossProgram) finish(vs []*ir.Value) {
	scalar := ir.Tensor(ir.F64)
	loss := p.b.Splat(scalar, 0)
	for _, v := range vs {
		if !v.Type.Elem.IsFloat() {
			continue
		}
		v = p.b.Convert(v, ir.F64)
		weighted := p.b.Mul(v, p.b.Const(p.numbers(0.5, 2, v.Type)))
		loss = p.b.Add(loss, p.b.Reduce(ir.Add, weighted, p.b.Splat(scalar, 0), facts.UpTo(v.Type.Rank())...))
	}
	p.b.Return(loss)
}

// run evaluates m on the arguments, every float in 64 bits.
func (p *lossProgram) run(t *testing.T, m *ir.Module, args []*ir.Literal) []*ir.Literal {
	t.Helper()
	out, err := eval.Run(m, m.Main(), args, eval.Options{Float64: true})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// differentiated runs differentiate over m, and what stands before it in the table.
func differentiated(m *ir.Module) error {
	for _, run := range []func(*pass.Context, *ir.Module) error{Inline, CountLoops, Differentiate} {
		if err := run(nil, m); err != nil {
			return err
		}
	}
	return nil
}

// gradients differentiates a copy of the program and returns the loss and the
// gradient of every floating-point parameter.
func (p *lossProgram) gradients(t *testing.T) (float64, [][]float64) {
	t.Helper()
	if err := ir.Verify(p.m); err != nil {
		t.Fatal(err)
	}
	m := p.m.Clone()
	if err := differentiated(m); err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m); err != nil {
		t.Fatal(err)
	}
	out := p.run(t, m, p.args)
	var gs [][]float64
	for _, l := range out[1:] {
		gs = append(gs, floats(l))
	}
	return out[0].Float(0), gs
}

func floats(l *ir.Literal) []float64 {
	vs := make([]float64, l.Type.NumElements())
	for i := range vs {
		vs[i] = l.Float(i)
	}
	return vs
}

// central is the gradient of the loss by argument i, by central differences.
func (p *lossProgram) central(t *testing.T, i int) []float64 {
	t.Helper()
	const h = 1e-3
	l := p.args[i]
	g := make([]float64, l.Type.NumElements())
	for k := range g {
		at := func(s float64) float64 {
			vs := floats(l)
			vs[k] += s * h
			args := slices.Clone(p.args)
			args[i] = ir.Floats64(l.Type, vs...)
			return p.run(t, p.m, args)[0].Float(0)
		}
		g[k] = (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (12 * h)
	}
	return g
}

// The gradient of every op is what central differences say, and of a linear
// one, over all arguments, what makes the loss of it again.
func TestGradientRules(t *testing.T) {
	for _, c := range gradientTests {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(12) {
				p := newLossProgram(seed)
				p.finish(c.build(p))
				loss, gs := p.gradients(t)
				if want := p.run(t, p.m, p.args)[0].Float(0); want != loss {
					t.Fatalf("seed %d: loss is %g beside the gradient, %g alone", seed, loss, want)
				}
				if len(gs) != len(p.args) {
					t.Fatalf("seed %d: %d gradients of %d parameters", seed, len(gs), len(p.args))
				}
				again, size := 0.0, 1.0
				for i, g := range gs {
					for k, x := range floats(p.args[i]) {
						again += g[k] * x
						size += math.Abs(g[k] * x)
					}
					closeTo(t, fmt.Sprintf("seed %d: gradient of parameter %d", seed, i), g, p.central(t, i))
				}
				if d := math.Abs(again - loss); c.linear && !(d <= 1e-12*size) {
					t.Fatalf("seed %d: the gradient times the arguments is %g, the loss %g", seed, again, loss)
				}
			}
		})
	}
}

// closeTo compares with central differences.
func closeTo(t *testing.T, what string, got, want []float64) {
	t.Helper()
	size := 1.0
	for _, v := range want {
		size = max(size, math.Abs(v))
	}
	for k := range got {
		if d := math.Abs(got[k] - want[k]); !(d <= 1e-8*size) {
			t.Fatalf("%s: element %d is %g, want %g", what, k, got[k], want[k])
		}
	}
}

// noGradients says of every op without a rule why it has none.
var noGradients = map[ir.Kind]string{
	ir.Ceil:             "is a step: its derivative is zero where it has one",
	ir.Floor:            "likewise",
	ir.RoundNearestAfz:  "likewise",
	ir.RoundNearestEven: "likewise",
	ir.Sign:             "likewise",
	ir.BitcastConvert:   "bits are not numbers",

	ir.CountLeadingZeros: "has no floating-point operand", ir.Not: "likewise", ir.PopulationCount: "likewise", ir.And: "likewise", ir.Or: "likewise", ir.Xor: "likewise",
	ir.ShiftLeft: "likewise", ir.ShiftRightArithmetic: "likewise", ir.ShiftRightLogical: "likewise",
	ir.Constant: "likewise", ir.Iota: "likewise", ir.PartitionID: "likewise", ir.ReplicaID: "likewise",
	ir.IsFinite: "has no floating-point result", ir.Compare: "likewise",

	ir.Imag: "complex numbers have no gradients", ir.Real: "likewise", ir.ComplexOp: "likewise",
	ir.Digamma:   "its derivative, polygamma, is no op here",
	ir.NextAfter: "is a matter of bits",
	ir.IsInf:     "has no floating-point result", ir.IsNegInf: "likewise", ir.IsPosInf: "likewise",

	ir.RngBitGenerator: "has no floating-point operand",

	ir.Cholesky: "no model is made of linear algebra", ir.TriangularSolve: "likewise", ir.FFT: "complex numbers have no gradients",

	ir.Return: "ends a region, whose op has the rule", ir.FuncReturn: "likewise", ir.SdyReturn: "likewise", ir.PPYield: "likewise",

	ir.Call: "is inlined before", ir.CompositeCall: "likewise",
	ir.PPCheckpoint: "is opened before",
	ir.PPPipeline:   "is a loop before",
	ir.PPStack:      "is a loop before",
	ir.PPScan:       "is reversed by the engine",
	ir.While:        "is a pp.scan where it counts; how often others run is not known",

	ir.CustomCall:          "its target alone knows",
	ir.TupleOp:             "no value of a program with gradients is a tuple",
	ir.GetTupleElement:     "likewise",
	ir.CollectiveBroadcast: "no collective sums to one device",

	ir.SdyConstant:        "has no floating-point operand",
	ir.NamedComputation:   "comes with programs that are not differentiated here",
	ir.DataFlowEdge:       "likewise",
	ir.PropagationBarrier: "likewise",
	ir.ShardingGroup:      "has no result",
	ir.SdyAllGather:       "comes with programs that are sharded already",
	ir.SdyAllSlice:        "likewise", ir.SdyAllToAll: "likewise", ir.SdyCollectivePermute: "likewise", ir.SdyAllReduce: "likewise", ir.SdyReduceScatter: "likewise",
	ir.ReplicatedToUnreduced: "likewise", ir.ShardedToUnreduced: "likewise",
}

// Every op has a rule and a test of it, or a reason to have none.
func TestGradientTable(t *testing.T) {
	tested := make(map[ir.Kind]bool)
	for _, c := range gradientTests {
		for seed := range uint64(3) {
			p := newLossProgram(seed)
			p.finish(c.build(p))
			p.b.Func.Body.Walk(func(op *ir.Op) { tested[op.Kind] = true })
		}
	}
	rules := gradientRules()
	for _, k := range ir.Kinds() {
		switch reason := noGradients[k]; {
		case rules[k] != nil && reason != "":
			t.Errorf("%s has a rule and a reason to have none", k)
		case rules[k] == nil && reason == "":
			t.Errorf("%s has no rule", k)
		case rules[k] != nil && !tested[k]:
			t.Errorf("the rule of %s is not tested", k)
		}
	}
}

// gradientAt is the gradient of the sum of what build makes of a vector x.
func gradientAt(t *testing.T, x []float64, build func(p *lossProgram, x *ir.Value) *ir.Value) []float64 {
	t.Helper()
	p := newLossProgram(0)
	v := build(p, p.param(ir.Floats64(ir.Tensor(ir.F64, len(x)), x...)))
	p.b.Return(p.b.Reduce(ir.Add, v, p.b.Splat(ir.Tensor(ir.F64), 0), facts.UpTo(v.Type.Rank())...))
	_, gs := p.gradients(t)
	return gs[0]
}

// Where a derivative does not exist, or what is looked away from has none, the
// gradient is what the conventions say, and finite.
func TestGradientConventions(t *testing.T) {
	constantOf := func(p *lossProgram, vs ...float64) *ir.Value {
		return p.b.Const(ir.Floats64(ir.Tensor(ir.F64, len(vs)), vs...))
	}
	scalar := func(p *lossProgram, v float64) *ir.Value { return p.b.Splat(ir.Tensor(ir.F64), v) }
	// root has an infinite derivative at zero.
	root := func(p *lossProgram, v *ir.Value) *ir.Value { return p.b.Unary(ir.Sqrt, v) }
	for _, c := range []struct {
		name    string
		x, want []float64
		build   func(p *lossProgram, x *ir.Value) *ir.Value
	}{
		{"equal operands of a maximum share", []float64{1, 2, 3}, []float64{0, 0.5, 1}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Binary(ir.Maximum, x, p.b.Splat(x.Type, 2))
		}},
		{"and of a minimum", []float64{1, 2, 3}, []float64{1, 0.5, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Binary(ir.Minimum, p.b.Splat(x.Type, 2), x)
		}},
		{"equal elements share their maximum", []float64{3, 1, 3, 3}, []float64{1. / 3, 0, 1. / 3, 1. / 3}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Reduce(ir.Maximum, x, scalar(p, math.Inf(-1)), 0)
		}},
		{"one of equal elements is chosen", []float64{1, 3, 3}, []float64{0, 0, 1}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.argmax(x, scalar(p, math.Inf(-1)), 0)[0]
		}},
		{"the first of equal elements of a window is its maximum", []float64{1, 3, 3, 2}, []float64{0, 2, 0, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			attrs := ir.AttrsOf(facts.Named("window_dimensions", ir.Ints{3}))
			return p.b.Emit(ir.ReduceWindow, []*ir.Value{x, scalar(p, math.Inf(-1))}, attrs, []*ir.Block{p.b.Combiner(ir.Maximum, ir.F64)}, nil).Result()
		}},
		{"a value at its bound is clamped", []float64{0, 0.5, 1}, []float64{0, 1, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Emit(ir.Clamp, []*ir.Value{scalar(p, 0), x, scalar(p, 1)}, nil, nil, nil).Result()
		}},
		{"the magnitude of zero", []float64{-2, 0, 2}, []float64{-1, 0, 1}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Unary(ir.Abs, x)
		}},
		{"a power of zero", []float64{0, 0, 0}, []float64{0, 1, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Binary(ir.Power, x, constantOf(p, 0, 1, 2))
		}},
		{"zero to a power", []float64{1, 2}, []float64{0, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Binary(ir.Power, p.b.Splat(x.Type, 0), x)
		}},
		{"a product with a zero", []float64{2, 0, 3}, []float64{0, 6, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Reduce(ir.Multiply, x, scalar(p, 1), 0)
		}},
		{"a product with zeros", []float64{2, 0, 0}, []float64{0, 0, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Reduce(ir.Multiply, x, scalar(p, 1), 0)
		}},
		{"what a select leaves out", []float64{-1, 4}, []float64{0, 0.25}, func(p *lossProgram, x *ir.Value) *ir.Value {
			zero := p.b.Splat(x.Type, 0)
			return root(p, p.b.Select(p.b.Compare("GT", x, zero), x, zero))
		}},
		{"what a maximum leaves out", []float64{-1, 4}, []float64{0, 0.25}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return root(p, p.b.Binary(ir.Maximum, x, p.b.Splat(x.Type, 0)))
		}},
		{"what a clamp leaves out", []float64{-1, 4}, []float64{0, 0.25}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return root(p, p.b.Emit(ir.Clamp, []*ir.Value{scalar(p, 0), x, scalar(p, 9)}, nil, nil, nil).Result())
		}},
		{"what a maximum over elements leaves out", []float64{-1, -2}, []float64{0, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return root(p, p.b.Reduce(ir.Maximum, x, scalar(p, 0), 0))
		}},
		{"what an update leaves out", []float64{4, 0}, []float64{0.25, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return root(p, p.b.DynamicUpdateSlice(x, constantOf(p, 0), []*ir.Value{p.b.I32(1)}))
		}},
		{"what a scatter leaves out", []float64{4, 0}, []float64{0.25, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			dims := ir.ScatterDims{InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1}
			index := p.b.Const(ir.Ints64(ir.Tensor(ir.I32, 1, 1), 1))
			attrs := ir.AttrsOf(facts.Named("scatter_dimension_numbers", dims))
			return root(p, p.b.Emit(ir.Scatter, []*ir.Value{x, index, constantOf(p, 0)}, attrs, []*ir.Block{secondOf(p.b, ir.F64)}, nil).Result())
		}},
		{"what padding cuts off", []float64{4, 0}, []float64{0.25, 0}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return root(p, p.b.Pad(x, scalar(p, 0), []int{1}, []int{-1}, []int{0}))
		}},
		{"a branch that is not taken", []float64{0, 4}, []float64{1, 1}, func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Emit(ir.If, []*ir.Value{p.b.Splat(ir.Tensor(ir.I1), 0)}, nil, []*ir.Block{
				p.branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Unary(ir.Sqrt, x)} }),
				p.branch(func(*ir.Builder) []*ir.Value { return []*ir.Value{x} }),
			}, nil).Result()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := gradientAt(t, c.x, c.build); !slices.Equal(got, c.want) {
				t.Errorf("gradient %v, want %v", got, c.want)
			}
		})
	}
}

// What has no gradient is named, with what needs it.
func TestNoGradient(t *testing.T) {
	for _, c := range []struct {
		name, want string
		build      func(p *lossProgram, x *ir.Value) *ir.Value
	}{
		{"a step", "stablehlo.floor has no gradient", func(p *lossProgram, x *ir.Value) *ir.Value { return p.b.Unary(ir.Floor, x) }},
		{"an index", "numbers made of indices or counts", func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Mul(x, p.b.Convert(p.b.Convert(x, ir.I32), ir.F64))
		}},
		{"a product over windows", "stablehlo.reduce_window has no gradient", func(p *lossProgram, x *ir.Value) *ir.Value {
			attrs := ir.AttrsOf(facts.Named("window_dimensions", ir.Ints{2}))
			return p.b.Emit(ir.ReduceWindow, []*ir.Value{x, p.b.Splat(ir.Tensor(ir.F64), 0)}, attrs, []*ir.Block{p.b.Combiner(ir.Multiply, ir.F64)}, nil).Result()
		}},
		{"complex numbers", "stablehlo.convert of complex numbers has no gradient", func(p *lossProgram, x *ir.Value) *ir.Value {
			return p.b.Convert(p.b.Convert(x, ir.C128), ir.F64)
		}},
		{"a tuple", "stablehlo.get_tuple_element has no gradient", func(p *lossProgram, x *ir.Value) *ir.Value {
			tuple := p.b.Emit(ir.TupleOp, []*ir.Value{x}, nil, nil, nil).Results
			return p.attr(ir.GetTupleElement, tuple, facts.Named("index", ir.Int{Value: 0, Type: ir.I32}))[0]
		}},
		{"a loop that does not count", "stablehlo.while has no gradient", func(p *lossProgram, x *ir.Value) *ir.Value {
			cond, do := new(ir.Block), new(ir.Block)
			p.b.Func.NewArg(cond, x.Type, "")
			p.b.Func.NewArg(do, x.Type, "")
			test, in := p.b.In(cond), p.b.In(do)
			sum := test.Reduce(ir.Add, cond.Args[0], test.Splat(ir.Tensor(ir.F64), 0), 0)
			test.Emit(ir.Return, []*ir.Value{test.Compare("LT", sum, test.Splat(sum.Type, 9))}, nil, nil, nil)
			in.Emit(ir.Return, []*ir.Value{in.Add(do.Args[0], do.Args[0])}, nil, nil, nil)
			return p.b.Emit(ir.While, []*ir.Value{x}, nil, []*ir.Block{cond, do}, nil).Result()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newLossProgram(0)
			v := c.build(p, p.within(1, 2, 3))
			p.finish([]*ir.Value{v.Named("y")})
			err := differentiated(p.m)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "y: ") {
				t.Errorf("error %v, want one of y with %q", err, c.want)
			}
		})
	}
}

// TripCount counts as a loop does.
func TestTripCount(t *testing.T) {
	holds := map[string]func(a, b int) bool{
		"LT": func(a, b int) bool { return a < b }, "LE": func(a, b int) bool { return a <= b },
		"GT": func(a, b int) bool { return a > b }, "GE": func(a, b int) bool { return a >= b },
		"NE": func(a, b int) bool { return a != b }, "EQ": func(a, b int) bool { return a == b },
	}
	for direction, more := range holds {
		for start := -4; start <= 4; start++ {
			for limit := -4; limit <= 4; limit++ {
				for step := -3; step <= 3; step++ {
					want := 0
					for i := start; want <= 20 && more(i, limit); i += step {
						want++
					}
					ends := want <= 20
					if got, ok := facts.TripCount(direction, start, limit, step); ok && (!ends || got != want) || !ok && ends && direction != "EQ" {
						t.Errorf("from %d while %s %d by %d: %d trips (%v), want %d (%v)", start, direction, limit, step, got, ok, want, ends)
					}
				}
			}
		}
	}
}
