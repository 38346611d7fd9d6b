package lang

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/lang/config"
)

// evalBody is what a model of the given body returns, as float64, for
// x = 1, 2, 3; 4, 5, 6 over [a, b], n = 2, 0, 1; 1, 1, 2 over [a, b] and
// m = 1, 0 over [a].
func evalBody(t *testing.T, decls, body string, opts config.Options) []float64 {
	t.Helper()
	src := "axes { a = 2, b = 3, c = 2, d = 6, e = 3 }\n" + decls + "\nmodel m(x: f32[a, b], n: i32[a, b], m: i32[a]) {\n" + body + "\n}\n"
	opts.ReadFile = inMemory(src)
	p, err := Load("in.pp", opts)
	if err != nil {
		t.Fatal(err)
	}
	f := p.Module.Main()
	values := map[string][]float64{"x": {1, 2, 3, 4, 5, 6}, "n": {2, 0, 1, 1, 1, 2}, "m": {1, 0}}
	var args []*ir.Literal
	for _, q := range f.Params() {
		vs, ok := values[q.Name]
		if !ok {
			vs = make([]float64, q.Type.NumElements())
			for i := range vs {
				vs[i] = 1
			}
		}
		args = append(args, ir.Floats64(q.Type, vs...))
	}
	out, err := eval.Run(p.Module, f, args, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for i := range out[0].Type.NumElements() {
		got = append(got, out[0].Float(i))
	}
	return got
}

// What built-in functions compute.
func TestValues(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{"return out: x + cast(m, x)", "2 3 4 4 5 6"},
		{"return out: cast(x, i32) / 2", "0 1 1 2 2 3"},
		{"return out: cast(x, i32) % 4", "1 2 3 0 1 2"},
		{"return out: where(x > 2 && !(x == 5), x, -1)", "-1 -1 3 4 -1 6"},
		{"return out: sum(x, over: a)", "5 7 9"},
		{"return out: sum(x)", "21"},
		{"return out: mean(x, over: [a, b])", "3.5"},
		{"return out: max(x, over: b)", "3 6"},
		{"return out: min(n, over: b)", "0 1"},
		{"return out: argmax(n, over: b)", "0 2"},
		{"return out: argmax(-x, over: b)", "0 0"},
		{"return out: cumsum(x, over: b)", "1 3 6 4 9 15"},
		{"return out: cumsum(x, over: a)", "1 2 3 5 7 9"},
		{"return out: softmax(x * 0, over: b)", "0.333 0.333 0.333 0.333 0.333 0.333"},
		{"return out: logsumexp(x * 1000, over: b)", "3000 6000"},
		{"return out: dot(x, x, over: b)", "14 77"},
		{"return out: dot(x, rename(x, a -> c), over: b)", "14 32 32 77"},
		{"return out: dot(x, rename(x, b -> e), over: a)", "17 22 27 22 29 36 27 36 45"},
		{"return out: take(x, n, axis: a)", "!"},
		{"return out: take(x, rename(n, b -> e), axis: b)", "3 1 2 5 5 6"},
		{"return out: take(x, rename(m, a -> c), axis: a)", "4 5 6 1 2 3"},
		{"return out: take(x, m, axis: b)", "2 4"},
		{"return out: one_hot(m, c, f32)", "0 1 1 0"},
		{"v, i = top_k(x * cast(n, f32), over: b, into: c)\nreturn out: v", "3 2 12 5"},
		{"v, i = top_k(n, over: b, into: c)\nreturn out: i", "0 2 2 0"},
		{"v, i = top_k(n, over: b, into: best, k: 1)\nreturn out: v", "2 2"},
		{"return out: sort(n, over: b)", "0 1 2 1 1 2"},
		{"return out: sort(n, over: b, descending: true)", "2 1 0 2 1 1"},
		{"return out: iota(b, to: f32) * x", "0 0 2 5 6 12"},
		{"return out: merge(x, [b, a] -> d)", "1 4 2 5 3 6"},
		{"return out: split(merge(x, [a, b] -> d), d -> [e, c])", "1 2 3 4 5 6"},
		{"return out: order(x, [a])", "1 4 2 5 3 6"},
		{"return out: expand(m, like: x)", "1 1 1 0 0 0"},
		{"return out: slice(x, b, 1, 3)", "2 3 5 6"},
		{"return out: index(x, b, 1)", "2 5"},
		{"return out: pad(x, b, low: 1, value: 9)", "9 1 2 3 9 4 5 6"},
		{"return out: concat([x, order(x, [a])], axis: a)", "1 2 3 4 5 6 1 2 3 4 5 6"},
		{"return out: roll(x, b, 1)", "3 1 2 6 4 5"},
		{"return out: roll(x, b, -1)", "2 3 1 5 6 4"},
		{"return out: clip(x, 2, 5)", "2 2 3 4 5 5"},
		{"return out: full(2, f32, [a]) * cast(m, f32)", "2 0"},
		{"return out: maximum(x, 3.5) - minimum(x, 3)", "2.5 1.5 0.5 1 2 3"},
		{"return out: pow(x, 2)", "1 4 9 16 25 36"},
		{"return out: stop_gradient(checkpoint(x, \"h\"))", "1 2 3 4 5 6"},
		{"return out: dropout(x, 0.9)", "1 2 3 4 5 6"},
		{"if size(x, b) == 3 { y = x } else if has(x, a) { y = -x } else { y = 2 * x }\nreturn out: y * (b - 2)", "1 2 3 4 5 6"},
		{"return out: relu(x - 3)", "0 0 0 1 2 3"},
		{"return out: rmsnorm(x, x * 0 + 1, over: b)", "0.463 0.926 1.389 0.79 0.987 1.184"},
		{"return out: layernorm(x, x * 0 + 1, x * 0, over: b)", "-1.225 0 1.225 -1.225 0 1.225"},
		{"return out: cross_entropy(x, m, axis: b)", "1.408 2.408"},
		{"gate = one_hot(iota(b), e, f32)\nw = full(1, f32, [e, b, c])\ny, balance = moe(x, gate, w, w, order(w, [e, c, b]) * cast(iota(e), f32), k: 2, seq: a, embed: b, mlp: c, experts: e)\nreturn out: y", "124.328 124.328 124.328 778.976 778.976 778.976"},
		{"gate = one_hot(iota(b), e, f32)\nw = full(1, f32, [e, b, c])\ny, balance = moe(x, gate, w, w, order(w, [e, c, b]) * cast(iota(e), f32), k: 2, seq: a, embed: b, mlp: c, experts: e, among: \"all\")\nreturn out: y", "113.135 113.135 113.135 708.844 708.844 708.844"},
		{"gate = one_hot(iota(b), e, f32)\nw = full(1, f32, [e, b, c])\ny, balance = moe(x, gate, w, w, order(w, [e, c, b]) * cast(iota(e), f32), k: 2, seq: a, embed: b, mlp: c, experts: e, capacity: 0.5)\nreturn out: y", "124.328 124.328 124.328 0 0 0"},
		{"gate = one_hot(iota(b), e, f32)\nw = full(1, f32, [e, b, c])\ny, balance = moe(x, gate, w, w, order(w, [e, c, b]) * cast(iota(e), f32), k: 2, seq: a, embed: b, mlp: c, experts: e)\nreturn out: balance", "2.73"},
		{"return out: gelu(x - 3)", "-0.045 -0.159 0 0.841 1.955 2.996"},
		{"return out: silu(x - 3)", "-0.238 -0.269 0 0.731 1.762 2.858"},
	} {
		got := ""
		if tt.want == "!" {
			if _, err := loadArgs("axes { a = 2, b = 3 }\nmodel m(x: f32[a, b], n: i32[a, b]) {\n"+tt.body+"\n}", nil); err == nil {
				t.Errorf("%s: no error", tt.body)
			}
			continue
		}
		for i, v := range evalBody(t, "", tt.body, config.Options{}) {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprint(math.Round(v*1000) / 1000)
		}
		if strings.ReplaceAll(got, "-0 ", "0 ") != tt.want {
			t.Errorf("%s: %s, want %s", tt.body, got, tt.want)
		}
	}
}

// threefry agrees with the published answers.
func TestThreefry(t *testing.T) {
	for _, tt := range [][6]uint32{
		{0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
		{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
		{0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3, 0xc4923a9c, 0x483df7a0},
	} {
		f := ir.NewFunc("main")
		e := &elab{p: newBuilder(config.Options{}), b: ir.NewBuilder(f)}
		var in [4]*ir.Value
		for i := range in {
			in[i] = e.b.Splat(ir.Tensor(ir.UI32), float64(tt[i]))
		}
		a, b := e.threefry(in[0], in[1], in[2], in[3])
		e.b.Return(a, b)
		out, err := eval.Run(&ir.Module{Funcs: []*ir.Func{f}}, f, nil, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if x, y := uint32(out[0].Int(0)), uint32(out[1].Int(0)); x != tt[4] || y != tt[5] {
			t.Errorf("key %x %x of %x %x: %x %x, want %x %x", tt[0], tt[1], tt[2], tt[3], x, y, tt[4], tt[5])
		}
	}
}

// Random numbers have the moments they should, differ between layers, and do
// not depend on the schedule.
func TestRandom(t *testing.T) {
	const model = "axes { rows = 512, cols = 16 }\nlayer noise(x: f32[rows, cols]) { return x + random_normal([rows, cols]) }\nmesh { stage = 2 }\n"
	const decls = model + "pipeline { microbatches = 8 }\n"
	const body = "zero = full(0, f32, [rows, cols])\nreturn out: pipeline(noise, layers: 2)(zero)"
	v := evalBody(t, decls, body, config.Options{Sequential: true})
	var sum, squares float64
	for _, x := range v {
		sum += x
		squares += x * x
	}
	n := float64(len(v))
	if mean, variance := sum/n, squares/n; math.Abs(mean) > 0.05 || math.Abs(variance-2) > 0.1 { // two layers: variance 2
		t.Errorf("mean %g, variance %g, want 0 and 2", mean, variance)
	}
	w := evalBody(t, decls, body, config.Options{})
	for i := range v {
		if v[i] != w[i] {
			t.Fatalf("element %d is %g in sequence and %g in a pipeline", i, v[i], w[i])
		}
	}
	train := model + "train { optimizer = sgd(lr: 1) }\n"
	out := evalBody(t, train, "return sum(dropout(full(1, f32, [rows, cols]), 0.25))", config.Options{Grad: true})
	kept := out[0] * 0.75
	if share := kept / n; math.Abs(share-0.75) > 0.02 {
		t.Errorf("dropout of 0.25 keeps %g", share)
	}
}
