package passes

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
	"ppc/ir/lang"
	"ppc/runtime"
)

// globalType is the global type of a parameter or result of a form of m.
func globalType(m *ir.Module, t *ir.Type, attrs ir.Attrs) *ir.Type {
	if s, ok := attrs.Get("pp.sharding").(*ir.Sharding); ok {
		return s.Global(t, m.Meshes[0])
	}
	return t
}

// trainOn returns m, a form of typed, ready for its first step: a global form
// on the reference evaluator, a local one on goroutine devices.
func trainOn(t *testing.T, m, typed *ir.Module, args []*ir.Literal) *trainee {
	t.Helper()
	r := &trainee{m: m}
	given := make(map[string]*ir.Literal)
	for i, p := range typed.Main().Params() {
		given[p.Attrs.Str("pp.name")] = args[i]
	}
	for _, p := range m.Main().Params() {
		l, pt := given[p.Attrs.Str("pp.name")], globalType(m, p.Type, p.Attrs)
		if l == nil {
			l = ir.SplatOf(pt, 0)
		}
		data := l.Data
		for n := 1; n < p.Attrs.Int("pp.batches") && l.Type.Rank() == pt.Rank()-1; n++ { // rows in another order
			row := len(l.Data) / l.Type.Shape[0]
			data = slices.Concat(data, l.Data[n*row:], l.Data[:n*row])
		}
		if rows := p.Attrs.Ints("pp.rows"); rows != nil && !l.IsSplat() {
			row := len(data) / l.Type.Shape[0]
			data = data[rows[0]*row : rows[1]*row]
		}
		r.args = append(r.args, &ir.Literal{Type: pt, Data: data})
	}
	if !m.Form.Has(ir.Local) {
		r.run = func(args []*ir.Literal) []*ir.Literal {
			out, err := eval.Run(m, m.Main(), args, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		return r
	}
	exe, err := runtime.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	r.run = func(args []*ir.Literal) []*ir.Literal { return runOnDevices(t, exe, m, args) }
	return r
}

// runOnDevices runs a local program on the shards of global arguments and returns
// the global results.
func runOnDevices(t *testing.T, exe *runtime.Executable, m *ir.Module, args []*ir.Literal) []*ir.Literal {
	t.Helper()
	out, err := onShards(m, args, func(per [][]*ir.Literal) ([][]*ir.Literal, error) { return exe.Run(t.Context(), per) })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// trained is what r has learned, by name, rows of one parameter together.
func (r *trainee) trained() map[string][]float64 {
	out := make(map[string][]float64)
	for i, p := range r.m.Main().Params() {
		if kind := p.Attrs.Str("pp.kind"); kind == "param" || kind == "state" {
			name := p.Attrs.Str("pp.name")
			out[name] = append(out[name], numbersOf(r.args[i])...)
		}
	}
	return out
}

// sameSteps runs both for n steps and holds metrics, parameters and state of
// got to those of want.
func sameSteps(t *testing.T, got, want *trainee, n int, tolerance float64) {
	t.Helper()
	for step := range n {
		g, w := got.step(), want.step()
		for _, name := range []string{"loss", "grad_norm", "param_norm", "learning_rate"} {
			near(t, fmt.Sprintf("step %d: %s", step, name), g[name].Float(0), w[name].Float(0), tolerance)
		}
	}
	a, b := got.trained(), want.trained()
	if len(a) != len(b) {
		t.Fatalf("%d parameters and states, want %d", len(a), len(b))
	}
	for name, w := range b {
		l := func(vs []float64) *ir.Literal { return ir.Floats64(ir.Tensor(ir.F64, len(vs)), vs...) }
		if _, rel := optest.MaxDiff(l(a[name]), l(w)); !(rel <= tolerance) {
			t.Errorf("after %d steps %s differs by %g", n, name, rel)
		}
	}
}

// collectives counts the ops of kind k over the named mesh axis, and maybe
// others, that work on more than one number: those outside of loops, and those
// inside.
func collectives(m *ir.Module, k ir.Kind, axis string) (outside, inside int) {
	over := func(op *ir.Op) bool {
		groups, _ := op.Attrs.Get("replica_groups").(ir.MeshAxes)
		return slices.ContainsFunc(groups.Axes, ir.Ax(axis).Overlaps)
	}
	var block func(b *ir.Block, loop bool)
	block = func(b *ir.Block, loop bool) {
		for _, op := range b.Ops {
			switch {
			case op.Kind != k || op.Operands[0].Type.Rank() == 0 || !over(op):
			case loop:
				inside++
			default:
				outside++
			}
			for _, r := range op.Regions {
				block(r, loop || op.Kind == ir.While)
			}
		}
	}
	block(m.Main().Body, false)
	return outside, inside
}

// perceptron is the typed form of a program without loops: the mean square of
// tanh(x·w1 + b)·w2, weights stored over fsdp and gathered where they are used,
// the batch over data and fsdp.
func perceptron(rows int) *ir.Module {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "data", Size: 2}, {Name: "fsdp", Size: 2}}}
	f := ir.NewFunc("main")
	arg := func(name, kind string, axes [][]ir.AxisRef, shape ...int) *ir.Value {
		v := f.NewArg(f.Body, ir.Tensor(ir.F64, shape...), name)
		v.Sharding = ir.NewSharding("mesh", axes...)
		v.Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str(name)), facts.Named("pp.kind", ir.Str(kind)))
		return v
	}
	batch, fsdp := ir.Axs("data", "fsdp"), ir.Axs("fsdp")
	x := arg("x", "input", [][]ir.AxisRef{batch, nil}, rows, 4)
	w1 := arg("w1", "param", [][]ir.AxisRef{fsdp, nil}, 4, 6)
	bias := arg("bias", "param", [][]ir.AxisRef{nil}, 6)
	w2 := arg("w2", "param", [][]ir.AxisRef{nil, fsdp}, 6, 10)
	b := ir.NewBuilder(f)
	gathered := func(v *ir.Value) *ir.Value { return b.Constrain(v, v.Sharding.Without("fsdp")) }
	dot := ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}
	y := b.Dot(x, gathered(w1), dot)
	y = b.Unary(ir.Tanh, b.Add(y, b.Broadcast(bias, y.Type.Shape, 1)))
	y = b.Constrain(b.Dot(y, gathered(w2), dot), x.Sharding)
	loss := b.Reduce(ir.Add, b.Mul(y, y), b.Splat(ir.Tensor(ir.F64), 0), 0, 1)
	b.Return(b.Div(loss, b.Splat(loss.Type, float64(y.Type.NumElements()))))
	f.Results[0].Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str("loss")))
	m := &ir.Module{Name: "perceptron", Meshes: []*ir.Mesh{mesh}, Funcs: []*ir.Func{f}}
	m.Attrs.Set("pp.gradient", ir.Str("params"))
	return m
}

// waves are arguments of main.
func waves(m *ir.Module) []*ir.Literal {
	var args []*ir.Literal
	for i, p := range m.Main().Params() {
		vs := make([]float64, p.Type.NumElements())
		for k := range vs {
			vs[k] = math.Sin(float64(7*i + 3*k))
		}
		args = append(args, ir.Floats64(p.Type, vs...))
	}
	return args
}

// prepared runs all passes over a copy of typed that trains as d says.
func prepared(t *testing.T, typed *ir.Module, d ir.Dict) *ir.Module {
	t.Helper()
	m := typed.Clone()
	m.Attrs.Set("pp.train", d)
	if err := Run(m, Config{}); err != nil {
		t.Fatal(err)
	}
	return m
}

// An optimizer that is sharded over data computes the same, with one
// reduce_scatter and one all_gather for each parameter in addition to those of
// fsdp; the choice of a dimension is recorded.
func TestShardedOptimizer(t *testing.T) {
	typed := perceptron(8)
	args := waves(typed)
	plain := train("adamw", steady, append(adamArgs, num("weight_decay", 0.1), num("clip", 0.01))...)
	sharded := ir.Attrs(plain)
	sharded.Set("shard_optimizer_over_data", ir.Bool(true))
	m, ref := prepared(t, typed, ir.Dict(sharded)), prepared(t, typed, plain)
	sameSteps(t, trainOn(t, m, typed, args), trainOn(t, ref, typed, args), 4, 1e-12)

	want := map[string]string{"opt.m.w1": "data on dimension 0", "opt.m.bias": "data on dimension 0", "opt.m.w2": "data on dimension 0"}
	for _, p := range m.Main().Params() {
		if zero, ok := want[p.Attrs.Str("pp.name")]; ok && p.Attrs.Str("pp.zero") != zero {
			t.Errorf("%s is sharded by %q, want %q", p.Attrs.Str("pp.name"), p.Attrs.Str("pp.zero"), zero)
		}
	}
	for k, want := range map[ir.Kind]int{ir.ReduceScatter: 3, ir.AllGather: 3, ir.AllReduce: 0} {
		outside, inside := collectives(m, k, "data")
		if outside != want || inside != 0 {
			t.Errorf("%d of %s over data, and %d in loops, want %d and none", outside, k, inside, want)
		}
	}
}

// A step that works on several batches computes what one on all of them at
// once does, where the loss is a mean.
func TestAccumulatedGradients(t *testing.T) {
	typed := perceptron(16)
	args := waves(typed)
	for _, zero := range []bool{false, true} {
		d := ir.Attrs(train("adamw", steady, append(adamArgs, num("weight_decay", 0.1), num("clip", 0.01), facts.Named("shard_optimizer_over_data", ir.Bool(zero)))...))
		at := trainOn(t, prepared(t, typed, ir.Dict(d)), typed, args)
		d.Set("gradient_accumulation", ir.I64Attr(4))
		parts := perceptron(4)
		global := slices.Clone(args)
		global[0] = &ir.Literal{Type: ir.Tensor(ir.F64, 4, 4, 4), Data: args[0].Data}
		m := prepared(t, parts, ir.Dict(d))
		if x := m.Main().Params()[0]; x.Attrs.Int("pp.batches") != 4 || x.Type.Rank() != 3 {
			t.Errorf("the input is %s with %s, want 4 batches", x.Type, x.Attrs)
		}
		sameSteps(t, trainOn(t, m, parts, global), at, 3, 1e-12)
	}
}

// countedLoss is the typed form of a program whose loss is a masked mean of
// batches of so many rows, n of which make a step, plus beside times a mean.
func countedLoss(t *testing.T, rows, n int, beside float64, lowering string) *ir.Module {
	t.Helper()
	text := fmt.Sprintf(`axes { batch = %d, embed = 4 }

layer l(x: f64[batch, embed]) {
  param w: f64[embed] = ones
  return x + tanh(x * w)
}

model counted(x: f64[batch, embed], mask: f64[batch]) {
  param scale: f64[embed] = ones
  param fixed: f64[embed] = ones frozen
  y = pipeline(l, layers: 4)(x * scale + fixed)
  return normalized(sum(mean(y * y, over: embed) * mask), by: sum(mask)) + %g * mean(y)
}

shard weights     { embed -> fsdp }
shard activations { batch -> data, fsdp }

%s

train {
  optimizer = adamw(lr: 0.1, eps: 1e-3, weight_decay: 0.1), clip_by_global_norm = 0.5, dtype = f64, gradient_accumulation = %d
  params    = custom { "scale" = update(lr_scale: 0.5, weight_decay: 0) }
}
`, rows, beside, lowering, n)
	p, err := lang.Load("counted.pp", lang.Options{Train: true, ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
	if err != nil {
		t.Fatal(err)
	}
	return p.Module
}

// A loss that is normalized over the batches of a step is that of all their rows
// at once, also where a batch counts none, and so is what a step makes of it. A
// frozen parameter stays, and has no state.
func TestNormalizedLoss(t *testing.T) {
	for _, lowering := range []string{
		"mesh { stage = 2 }; pipeline { microbatches = 2 }",
		"mesh { stage = 2, data = 2, fsdp = 2 }; pipeline { microbatches = 2 }",
		"mesh { stage = 2, data = 2 }; pipeline { microbatches = 4, repeats = 2, mode = explicit }; train { shard_optimizer_over_data = true }",
	} {
		single, parts := countedLoss(t, 24, 1, 0.1, lowering), countedLoss(t, 8, 3, 0.1, lowering)
		args := waves(single)
		mask := make([]float64, 24)
		copy(mask, []float64{1, 1, 1, 0, 1, 1, 1, 1})
		mask[20] = 1 // the second batch has none
		args[1] = ir.Floats64(args[1].Type, mask...)
		batches := slices.Clone(args)
		batches[0] = &ir.Literal{Type: ir.Tensor(ir.F64, 3, 8, 4), Data: args[0].Data}
		batches[1] = &ir.Literal{Type: ir.Tensor(ir.F64, 3, 8), Data: args[1].Data}
		got, want := compiled(t, parts), compiled(t, single)
		sameSteps(t, trainOn(t, got, parts, batches), trainOn(t, want, single, args), 3, 1e-12)
		for _, p := range got.Main().Params() {
			if name := p.Attrs.Str("pp.name"); strings.HasPrefix(name, "opt.") && strings.HasSuffix(name, ".fixed") {
				t.Errorf("there is %s", name)
			}
		}
		if outside, inside := collectives(got, ir.AllReduce, "data"); inside > 0 {
			t.Errorf("%d all-reduces over data in loops, %d outside", inside, outside)
		}
	}
}

// Where no row of any batch counts, a normalized loss is 0 and has no gradient.
func TestNothingCounts(t *testing.T) {
	typed := countedLoss(t, 8, 2, 0, "mesh { data = 2 }")
	args := waves(typed)
	args[1] = ir.Floats64(args[1].Type, make([]float64, 8)...)
	r := trainOn(t, compiled(t, typed), typed, args)
	before := r.trained()
	out := r.step()
	near(t, "loss", out["loss"].Float(0), 0, 0)
	near(t, "grad_norm", out["grad_norm"].Float(0), 0, 0)
	if !slices.Equal(before["fixed"], r.trained()["fixed"]) {
		t.Error("a frozen parameter has changed")
	}
}

// compiled runs all passes over a copy of typed.
func compiled(t *testing.T, typed *ir.Module) *ir.Module {
	t.Helper()
	m := typed.Clone()
	if err := Run(m, Config{}); err != nil {
		t.Fatal(err)
	}
	return m
}

// With reduce_gradients = per_batch the sums of gradients are as large as the
// state, and scattered in every batch; without it once per step.
func TestReduceGradients(t *testing.T) {
	typed := perceptron(8)
	for how, want := range map[string][2]int{"per_step": {3, 0}, "per_batch": {0, 3}} {
		d := ir.Attrs(train("adamw", steady, append(adamArgs, num("weight_decay", 0.1), facts.Named("shard_optimizer_over_data", ir.Bool(true)), facts.Named("reduce_gradients", ir.Str(how)))...))
		d.Set("gradient_accumulation", ir.I64Attr(4))
		outside, inside := collectives(prepared(t, typed, ir.Dict(d)), ir.ReduceScatter, "data")
		if outside != want[0] || inside != want[1] {
			t.Errorf("%s: %d reduce-scatters over data outside of loops and %d inside, want %v", how, outside, inside, want)
		}
	}
}
