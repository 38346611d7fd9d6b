package driver

import (
	"math"
	"strings"
	"testing"

	"ppc/driver/binding"
	"ppc/driver/rounding"
	"ppc/ir"
)

func TestCompare(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name           string
		got, want, own []float64
		ok             bool
		worst          string
	}{
		{"equal", []float64{1, 2}, []float64{1, 2}, []float64{1, 2}, true, ""},
		{"close", []float64{1e-7, -2}, []float64{0, -2}, []float64{-1e-7, -2}, true, "x[0]: 1e-07, the reference has 0"},
		{"far", []float64{1, 2.1}, []float64{1, 2}, []float64{1, 2.01}, false, "x[1]: 2.1, the reference has 2"},
		{"as far as rounding goes", []float64{1.1, 2.1}, []float64{1, 2}, []float64{1.1, 2.1}, true, "1, the reference has"},
		{"not finite", []float64{nan, inf, -inf}, []float64{nan, inf, -inf}, []float64{nan, inf, -inf}, true, ""},
		{"NaN", []float64{1, nan}, []float64{1, 2}, []float64{1, 2}, false, "x[1]: NaN"},
		{"no NaN", []float64{1, 2}, []float64{1, nan}, []float64{1, nan}, false, "x[1]: 2"},
		{"infinite", []float64{inf, 2}, []float64{1, 2}, []float64{1, 2}, false, "x[0]: +Inf"},
		{"infinite in these types", []float64{inf, 2}, []float64{1, 2}, []float64{inf, 2}, true, ""},
		{"zeros", []float64{0, 0}, []float64{0, 0}, []float64{0, 0}, true, ""},
		{"only zeros wanted", []float64{0, 1e-30}, []float64{0, 0}, []float64{0, 0}, false, "x[1]"},
		{"zeros but for rounding", []float64{0, 1e-30}, []float64{0, 0}, []float64{1e-30, 0}, true, "x[1]"},
		{"nothing", nil, nil, nil, true, ""},
	} {
		typ := ir.Tensor(ir.F32, len(c.got))
		got := &binding.Named{Name: "x", Literal: ir.Floats64(typ, c.got...)}
		want, own := ir.Floats64(typ.WithElem(ir.F64), c.want...), ir.Floats64(typ.WithElem(ir.F64), c.own...)
		y := &yardstick{scale: 1, unit: rounding.Unit(ir.F32), sums: rounding.Unit(ir.F32)}
		r := y.compareParts(got, theReference, want, own, y.measures(want, own, nil, 0))
		if r.OK != c.ok || !strings.Contains(r.Worst, c.worst) {
			t.Errorf("%s: ok %t, worst %q", c.name, r.OK, r.Worst)
		}
	}
	one, two := ir.Ints64(ir.Tensor(ir.I32, 1), 1<<30), ir.Ints64(ir.Tensor(ir.I32, 1), 1<<30+1)
	y := new(yardstick)
	if y.compareParts(&binding.Named{Name: "n", Literal: one}, theReference, two, two, y.measures(two, two, nil, 0)).OK {
		t.Error("unequal integers are taken for equal")
	}
}

func TestElementName(t *testing.T) {
	if got := elementName("x", []int{2, 3}, 4); got != "x[1, 1]" {
		t.Errorf("element 4 of 2x3 is %s", got)
	}
	if got := elementName("loss", nil, 0); got != "loss" {
		t.Errorf("the element of a scalar is %s", got)
	}
}

func TestRoundings(t *testing.T) {
	f := ir.NewFunc("main")
	m := &ir.Module{Funcs: []*ir.Func{f}}
	for _, step := range []ir.DType{ir.I32, ir.F64, ir.F32, ir.F16, ir.BF16} {
		f.NewArg(f.Body, ir.Tensor(step), "")
		if got := rounding.Types(m); step != ir.I32 && got[0] != step {
			t.Errorf("with %s the least precise type is %s", step, got[0])
		}
	}
	for dtype, want := range map[ir.DType]float64{ir.BF16: 0x1p-8, ir.F16: 0x1p-11, ir.F32: 0x1p-24, ir.F64: 0x1p-53} {
		if got := rounding.Unit(dtype); got != want {
			t.Errorf("the unit of %s is %g, want %g", dtype, got, want)
		}
	}
}

func TestOutput(t *testing.T) {
	o := newOutput("x", ir.Floats64(ir.Tensor(ir.F32, 4), 1, math.NaN(), 3, -1))
	if o.Min != -1 || o.Max != 3 || o.Mean != 1 || o.NaNs != 1 || o.Type() != "f32[4]" {
		t.Errorf("summary %+v", o)
	}
	for _, c := range []struct {
		l    *ir.Literal
		want string
	}{
		{ir.SplatOf(ir.Tensor(ir.F32), 0.1), "0.1"},
		{ir.SplatOf(ir.Tensor(ir.F64), 0.1), "0.1"},
		{ir.SplatOf(ir.Tensor(ir.I8), -3), "-3"},
		{ir.SplatOf(ir.Tensor(ir.I1), 1), "true"},
		{ir.SplatOf(ir.Tensor(ir.C64), 2), "(2, 0)"},
		{ir.Ints64(ir.Tensor(ir.UI64), -1), "18446744073709551615"},
	} {
		if got := newOutput("x", c.l).Value; got != c.want {
			t.Errorf("%s is printed as %s", c.l, got)
		}
	}
}

// A sum whose terms cancel is as far from the exact one as its additions round,
// which is much of what is left of it: no check fails for that.
func TestCheckCancelling(t *testing.T) {
	for _, elem := range []string{"f32", "f64"} {
		file := write(t, "sum.mlir", strings.ReplaceAll(`func.func @main(%a: tensor<8x4xELEM>) -> tensor<ELEM> {
  %c = stablehlo.constant dense<0.0> : tensor<ELEM>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xELEM>, tensor<ELEM>) -> tensor<ELEM>
  return %0 : tensor<ELEM>
}`, "ELEM", elem))
		for seed := range uint64(30) {
			if _, err := Run(t.Context(), &Source{File: file}, RunOptions{Check: true, Seed: &seed}); err != nil {
				t.Errorf("%s, seed %d: %v", elem, seed, err)
			}
		}
	}
}

// Gradients that are summed in fewer bits than their own are the layers' in sequence,
// within what that loses: signs of updates, and what follows from them in later steps.
func TestCheckReduceDType(t *testing.T) {
	file := write(t, "m.pp", `
types { t = f32 }
axes { batch = 16, embed = 16, mlp = 32 }
layer block(x: t[batch, embed]) {
  param wi: t[embed, mlp] = normal(0.1)
  param wo: t[mlp, embed] = normal(0.1)
  return x + dot(tanh(dot(x, wi, over: embed)), wo, over: mlp)
}
model m(x: t[batch, embed]) { return mean(pipeline(block, layers: 8)(x)) }
mesh { stage = 2, fsdp = 2 }
shard weights     { embed -> fsdp }
shard activations { batch -> fsdp }
pipeline { microbatches = 4, repeats = 2, layers_per_stage = 2, reduce_dtype = bf16 }
train { optimizer = adamw(lr: 1e-2), steps = 3 }`)
	for _, set := range [][]string{{"train.seed=0"}, {"train.seed=1"}, {"train.seed=2"}, {"types.t=f64"}, {"types.t=f64", "pipeline.reduce_dtype=f32"}} {
		res, err := Run(t.Context(), &Source{File: file, Set: set}, RunOptions{Check: true})
		if err != nil {
			t.Errorf("%s: %v", set, err)
			continue
		}
		for _, c := range res.Checks {
			if strings.HasPrefix(c.Name, "opt.m.") && c.Tolerance > 0.1 || c.Name == "learning_rate" && c.Tolerance > 1e-4 {
				t.Errorf("%s: %s is allowed %.3g: one of four microbatches more or less would pass", set, c.Name, c.Tolerance)
			}
		}
	}
}

// In float64 the reference rounds as much as the program does.
func TestCheckFloat64(t *testing.T) {
	file := write(t, "m.pp", `
axes { batch = 8, seq = 8, kv_seq = seq, embed = 8, heads = 2, kv_heads = 1, head = 4, mlp = 12, vocab = 12 }
layer block(x: f64[batch, seq, embed], pos: i32[seq]) {
  param norm:   f64[embed]                 = ones
  param wq:     f64[embed, heads, head]    = normal(0.3)
  param wk, wv: f64[embed, kv_heads, head] = normal(0.3)
  param wo:     f64[heads, head, embed]    = normal(0.3)
  param wi:     f64[embed, mlp]            = normal(0.3)
  param wd:     f64[mlp, embed]            = normal(0.3)
  h = rmsnorm(x, norm, over: embed)
  q = rope(dot(h, wq, over: embed), pos)
  k = rope(dot(h, wk, over: embed), pos)
  o = attention(q, k, dot(h, wv, over: embed), causal: true, scale: 0.5)
  x = x + dot(o, wo, over: [heads, head])
  return x + dot(gelu(dot(x, wi, over: embed)), wd, over: mlp)
}
model m(tokens: i32[batch, seq], targets: i32[batch, seq]) {
  param table: f64[vocab, embed] = normal(1)
  param head:  f64[embed, vocab] = normal(0.3)
  x = pipeline(block, layers: 8)(take(table, tokens, axis: vocab), iota(seq))
  return mean(cross_entropy(dot(x, head, over: embed), targets, axis: vocab))
}
mesh { stage = 2 }
pipeline { microbatches = 4 }
train { optimizer = sgd(lr: 0.1, momentum: 0.9), steps = 2, gradient_accumulation = 3 }`)
	for _, seed := range []uint64{0, 1, 125} { // the last is the one of 200 that is further away than the program alone rounds
		if _, err := Run(t.Context(), &Source{File: file}, RunOptions{Check: true, Seed: &seed}); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
