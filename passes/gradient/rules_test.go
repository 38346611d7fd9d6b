package gradient

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
	"ppc/ir/verify"
	"ppc/passes/pass"
)

// run evaluates m on the arguments, every float in 64 bits.
func run(t *testing.T, m *ir.Module, args []*ir.Literal) []*ir.Literal {
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
func gradients(t *testing.T, p *optest.Program) (float64, [][]float64) {
	t.Helper()
	if err := verify.Verify(p.M); err != nil {
		t.Fatal(err)
	}
	m := p.M.Clone()
	if err := differentiated(m); err != nil {
		t.Fatal(err)
	}
	if err := verify.Verify(m); err != nil {
		t.Fatal(err)
	}
	out := run(t, m, p.Args)
	var gs [][]float64
	for _, l := range out[1:] {
		gs = append(gs, optest.Floats(l))
	}
	return out[0].Float(0), gs
}

// central is the gradient of the loss by argument i, by central differences.
func central(t *testing.T, p *optest.Program, i int) []float64 {
	t.Helper()
	const h = 1e-3
	l := p.Args[i]
	g := make([]float64, l.Type.NumElements())
	for k := range g {
		at := func(s float64) float64 {
			vs := optest.Floats(l)
			vs[k] += s * h
			args := slices.Clone(p.Args)
			args[i] = ir.Floats64(l.Type, vs...)
			return run(t, p.M, args)[0].Float(0)
		}
		g[k] = (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (12 * h)
	}
	return g
}

// Every op has a rule, whose gradient is what central differences say of every
// case, or a reason to have none.
func TestOp(t *testing.T) {
	rules := gradientRules()
	optest.Each(t, func(t *testing.T, k ir.Kind) {
		reason, cases := noGradients[k], optest.Of(k)
		switch {
		case rules[k] != nil && reason != "":
			t.Errorf("%s has a rule in gradientRules, passes/gradient/rules.go, and in noGradients, passes/gradient/rules_test.go, a reason to have none", k)
		case rules[k] == nil && reason == "":
			t.Fatalf("%s has no rule in gradientRules, passes/gradient/rules.go, and in noGradients, passes/gradient/rules_test.go, no reason to have none", k)
		case rules[k] != nil && len(cases) == 0:
			t.Errorf("the rule of %s is not tested: it has no case in internal/optest", k)
		}
		if reason != "" && !reversed[k] {
			return
		}
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) { testGradient(t, c) })
		}
	})
}

// reversed are the ops without a rule that differentiate reverses by itself.
var reversed = map[ir.Kind]bool{ir.While: true, ir.PPScan: true, ir.PPCheckpoint: true}

// testGradient compares the gradient of c with central differences, and of a
// linear case, over all arguments, what makes the loss of it again.
func testGradient(t *testing.T, c optest.Case) {
	for seed := range uint64(12) {
		p := optest.New(seed)
		p.Finish(c.Build(p))
		loss, gs := gradients(t, p)
		if want := run(t, p.M, p.Args)[0].Float(0); want != loss {
			t.Fatalf("seed %d: loss is %g beside the gradient, %g alone", seed, loss, want)
		}
		if len(gs) != len(p.Args) {
			t.Fatalf("seed %d: %d gradients of %d parameters", seed, len(gs), len(p.Args))
		}
		again, size := 0.0, 1.0
		for i, g := range gs {
			for k, x := range optest.Floats(p.Args[i]) {
				again += g[k] * x
				size += math.Abs(g[k] * x)
			}
			closeTo(t, fmt.Sprintf("seed %d: gradient of parameter %d", seed, i), g, central(t, p, i))
		}
		if d := math.Abs(again - loss); c.Linear && !(d <= 1e-12*size) {
			t.Fatalf("seed %d: the gradient times the arguments is %g, the loss %g", seed, again, loss)
		}
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

	ir.NextAfter: "is a matter of bits",
	ir.IsInf:     "has no floating-point result", ir.IsNegInf: "likewise", ir.IsPosInf: "likewise",

	ir.RngBitGenerator: "has no floating-point operand",

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

// gradientAt is the gradient of the sum of what build makes of a vector x.
func gradientAt(t *testing.T, x []float64, build func(p *optest.Program, x *ir.Value) *ir.Value) []float64 {
	t.Helper()
	p := optest.New(0)
	v := build(p, p.Param(ir.Floats64(ir.Tensor(ir.F64, len(x)), x...)))
	p.B.Return(p.B.Reduce(ir.Add, v, p.B.Splat(ir.Tensor(ir.F64), 0), facts.UpTo(v.Type.Rank())...))
	_, gs := gradients(t, p)
	return gs[0]
}

// Where a derivative does not exist, or what is looked away from has none, the
// gradient is what the conventions say, and finite.
func TestGradientConventions(t *testing.T) {
	constantOf := func(p *optest.Program, vs ...float64) *ir.Value {
		return p.B.Const(ir.Floats64(ir.Tensor(ir.F64, len(vs)), vs...))
	}
	scalar := func(p *optest.Program, v float64) *ir.Value { return p.B.Splat(ir.Tensor(ir.F64), v) }
	// root has an infinite derivative at zero.
	root := func(p *optest.Program, v *ir.Value) *ir.Value { return p.B.Unary(ir.Sqrt, v) }
	for _, c := range []struct {
		name    string
		x, want []float64
		build   func(p *optest.Program, x *ir.Value) *ir.Value
	}{
		{"equal operands of a maximum share", []float64{1, 2, 3}, []float64{0, 0.5, 1}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Binary(ir.Maximum, x, p.B.Splat(x.Type, 2))
		}},
		{"and of a minimum", []float64{1, 2, 3}, []float64{1, 0.5, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Binary(ir.Minimum, p.B.Splat(x.Type, 2), x)
		}},
		{"equal elements share their maximum", []float64{3, 1, 3, 3}, []float64{1. / 3, 0, 1. / 3, 1. / 3}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Reduce(ir.Maximum, x, scalar(p, math.Inf(-1)), 0)
		}},
		{"one of equal elements is chosen", []float64{1, 3, 3}, []float64{0, 0, 1}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.Argmax(x, scalar(p, math.Inf(-1)), 0)[0]
		}},
		{"the first of equal elements of a window is its maximum", []float64{1, 3, 3, 2}, []float64{0, 2, 0, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			attrs := ir.AttrsOf(facts.Named("window_dimensions", ir.Ints{3}))
			return p.B.Emit(ir.ReduceWindow, []*ir.Value{x, scalar(p, math.Inf(-1))}, attrs, []*ir.Block{p.B.Combiner(ir.Maximum, ir.F64)}, nil).Result()
		}},
		{"a value at its bound is clamped", []float64{0, 0.5, 1}, []float64{0, 1, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Emit(ir.Clamp, []*ir.Value{scalar(p, 0), x, scalar(p, 1)}, nil, nil, nil).Result()
		}},
		{"the magnitude of zero", []float64{-2, 0, 2}, []float64{-1, 0, 1}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Unary(ir.Abs, x)
		}},
		{"a power of zero", []float64{0, 0, 0}, []float64{0, 1, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Binary(ir.Power, x, constantOf(p, 0, 1, 2))
		}},
		{"zero to a power", []float64{1, 2}, []float64{0, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Binary(ir.Power, p.B.Splat(x.Type, 0), x)
		}},
		{"a product with a zero", []float64{2, 0, 3}, []float64{0, 6, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Reduce(ir.Multiply, x, scalar(p, 1), 0)
		}},
		{"a product with zeros", []float64{2, 0, 0}, []float64{0, 0, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Reduce(ir.Multiply, x, scalar(p, 1), 0)
		}},
		{"what a select leaves out", []float64{-1, 4}, []float64{0, 0.25}, func(p *optest.Program, x *ir.Value) *ir.Value {
			zero := p.B.Splat(x.Type, 0)
			return root(p, p.B.Select(p.B.Compare("GT", x, zero), x, zero))
		}},
		{"what a maximum leaves out", []float64{-1, 4}, []float64{0, 0.25}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return root(p, p.B.Binary(ir.Maximum, x, p.B.Splat(x.Type, 0)))
		}},
		{"what a clamp leaves out", []float64{-1, 4}, []float64{0, 0.25}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return root(p, p.B.Emit(ir.Clamp, []*ir.Value{scalar(p, 0), x, scalar(p, 9)}, nil, nil, nil).Result())
		}},
		{"what a maximum over elements leaves out", []float64{-1, -2}, []float64{0, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return root(p, p.B.Reduce(ir.Maximum, x, scalar(p, 0), 0))
		}},
		{"what an update leaves out", []float64{4, 0}, []float64{0.25, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return root(p, p.B.DynamicUpdateSlice(x, constantOf(p, 0), []*ir.Value{p.B.I32(1)}))
		}},
		{"what a scatter leaves out", []float64{4, 0}, []float64{0.25, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			dims := ir.ScatterDims{InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1}
			index := p.B.Const(ir.Ints64(ir.Tensor(ir.I32, 1, 1), 1))
			attrs := ir.AttrsOf(facts.Named("scatter_dimension_numbers", dims))
			return root(p, p.B.Emit(ir.Scatter, []*ir.Value{x, index, constantOf(p, 0)}, attrs, []*ir.Block{optest.Second(p.B, ir.F64)}, nil).Result())
		}},
		{"what padding cuts off", []float64{4, 0}, []float64{0.25, 0}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return root(p, p.B.Pad(x, scalar(p, 0), []int{1}, []int{-1}, []int{0}))
		}},
		{"a branch that is not taken", []float64{0, 4}, []float64{1, 1}, func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Emit(ir.If, []*ir.Value{p.B.Splat(ir.Tensor(ir.I1), 0)}, nil, []*ir.Block{
				p.Branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Unary(ir.Sqrt, x)} }),
				p.Branch(func(*ir.Builder) []*ir.Value { return []*ir.Value{x} }),
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
		build      func(p *optest.Program, x *ir.Value) *ir.Value
	}{
		{"a step", "stablehlo.floor has no gradient", func(p *optest.Program, x *ir.Value) *ir.Value { return p.B.Unary(ir.Floor, x) }},
		{"an index", "numbers made of indices or counts", func(p *optest.Program, x *ir.Value) *ir.Value {
			return p.B.Mul(x, p.B.Convert(p.B.Convert(x, ir.I32), ir.F64))
		}},
		{"a product over windows", "stablehlo.reduce_window has no gradient", func(p *optest.Program, x *ir.Value) *ir.Value {
			attrs := ir.AttrsOf(facts.Named("window_dimensions", ir.Ints{2}))
			return p.B.Emit(ir.ReduceWindow, []*ir.Value{x, p.B.Splat(ir.Tensor(ir.F64), 0)}, attrs, []*ir.Block{p.B.Combiner(ir.Multiply, ir.F64)}, nil).Result()
		}},
		{"a power of complex numbers", "stablehlo.power of complex numbers has no gradient", func(p *optest.Program, x *ir.Value) *ir.Value {
			z := p.B.Convert(x, ir.C128)
			return p.B.Unary(ir.Real, p.B.Binary(ir.Power, z, z).Named("y"))
		}},
		{"a tuple", "stablehlo.get_tuple_element has no gradient", func(p *optest.Program, x *ir.Value) *ir.Value {
			tuple := p.B.Emit(ir.TupleOp, []*ir.Value{x}, nil, nil, nil).Results
			return p.Attr(ir.GetTupleElement, tuple, facts.Named("index", ir.Int{Value: 0, Type: ir.I32}))[0]
		}},
		{"a loop that does not count", "stablehlo.while has no gradient", func(p *optest.Program, x *ir.Value) *ir.Value {
			cond, do := new(ir.Block), new(ir.Block)
			p.B.Func.NewArg(cond, x.Type, "")
			p.B.Func.NewArg(do, x.Type, "")
			test, in := p.B.In(cond), p.B.In(do)
			sum := test.Reduce(ir.Add, cond.Args[0], test.Splat(ir.Tensor(ir.F64), 0), 0)
			test.Emit(ir.Return, []*ir.Value{test.Compare("LT", sum, test.Splat(sum.Type, 9))}, nil, nil, nil)
			in.Emit(ir.Return, []*ir.Value{in.Add(do.Args[0], do.Args[0])}, nil, nil, nil)
			return p.B.Emit(ir.While, []*ir.Value{x}, nil, []*ir.Block{cond, do}, nil).Result()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := optest.New(0)
			v := c.build(p, p.Within(1, 2, 3))
			p.Finish([]*ir.Value{v.Named("y")})
			err := differentiated(p.M)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "y: ") {
				t.Errorf("error %v, want one of y with %q", err, c.want)
			}
		})
	}
}

// namedOp appends an op that has no Kind.
func namedOp(p *optest.Program, name string, x, y *ir.Value) []*ir.Value {
	op := p.B.Emit(ir.Unknown, []*ir.Value{x, y}, nil, nil, []*ir.Type{y.Type})
	op.Spelling = name
	return []*ir.Value{op.Result()}
}

// Ops without a Kind have a gradient by their second operand, and of the first a reason to have
// none.
func TestNamed(t *testing.T) {
	for name, first := range map[string]float64{"chlo.polygamma": 2, "chlo.zeta": 2.5} {
		if namedRules[name] == nil {
			t.Fatalf("%s has no rule", name)
		}
		t.Run(strings.TrimPrefix(name, "chlo."), func(t *testing.T) {
			testGradient(t, optest.Case{Name: name, Build: func(p *optest.Program) []*ir.Value {
				y := p.Within(0.8, 3, p.Sizes(2)...)
				return namedOp(p, name, p.B.Broadcast(p.B.Splat(ir.Tensor(ir.F64), first), y.Type.Shape), y)
			}})
			p := optest.New(1)
			p.Finish(namedOp(p, name, p.Within(2, 3, 4), p.Within(1, 2, 4)))
			err := differentiated(p.M.Clone())
			if want := name + " has no gradient by its "; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "operand 0") {
				t.Errorf("by the first operand: got %v, want %q", err, want)
			}
		})
	}
	if len(namedRules) != 2 {
		t.Errorf("%d named ops have rules, 2 are tested", len(namedRules))
	}
}
