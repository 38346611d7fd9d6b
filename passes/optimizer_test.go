package passes

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
	"ppc/ir/verify"
)

// train is the attribute pp.train of a test: name=value, numbers as they are.
func train(optimizer string, lr ir.Dict, entries ...ir.NamedAttr) ir.Dict {
	as := ir.AttrsOf(entries...)
	as.Set("optimizer", ir.Str(optimizer))
	as.Set("lr", lr)
	return ir.Dict(as)
}

func num(name string, v float64) ir.NamedAttr {
	return facts.Named(name, ir.Float{Value: v, Type: ir.F64})
}

func integer(name string, v int) ir.NamedAttr { return facts.Named(name, ir.I64Attr(v)) }

func flag(name string) ir.NamedAttr { return facts.Named(name, ir.Bool(true)) }

func rate(kind string, entries ...ir.NamedAttr) ir.Dict {
	as := ir.AttrsOf(entries...)
	as.Set("kind", ir.Str(kind))
	return ir.Dict(as)
}

// bowl is a differentiated program whose loss is c/2·|w - x|², summed over
// parameters of ranks 0 to 2, one of them a stack of three layers: the gradient
// of w is c·(w - x), with x an input that is broadcast to it.
func bowl(elem ir.DType) *ir.Module {
	f := ir.NewFunc("main")
	x := f.NewArg(f.Body, ir.Tensor(elem), "x")
	x.Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str("x")), facts.Named("pp.kind", ir.Str("input")))
	b := ir.NewBuilder(f)
	loss := b.Splat(ir.Tensor(elem), 0)
	var gs []*ir.Value
	results := []ir.Result{{Type: loss.Type, Attrs: ir.AttrsOf(facts.Named("pp.name", ir.Str("loss")))}}
	for i, shape := range [][]int{{}, {4}, {3, 4}, {2, 3}} {
		w := f.NewArg(f.Body, ir.Tensor(elem, shape...), fmt.Sprint("w", i))
		w.Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str(w.Name)), facts.Named("pp.kind", ir.Str("param")))
		if i == 2 {
			w.Attrs.Set("pp.layers", ir.I64Attr(3))
			w.Attrs.Set("pp.logical", ir.Array{ir.Str("embed")})
		}
		d := b.Sub(w, b.Broadcast(x, shape))
		loss = b.Add(loss, b.Reduce(ir.Add, b.Mul(d, d), b.Splat(ir.Tensor(elem), 0), facts.UpTo(len(shape))...))
		gs = append(gs, b.Mul(b.Splat(d.Type, float64(i+1)), d))
		attrs := w.Attrs
		attrs.Set("pp.name", ir.Str("grad."+w.Name))
		attrs.Set("pp.kind", ir.Str("gradient"))
		results = append(results, ir.Result{Type: w.Type, Attrs: attrs})
	}
	f.Results = results
	b.Return(append([]*ir.Value{loss}, gs...)...)
	return &ir.Module{Name: "bowl", Funcs: []*ir.Func{f}, Form: ir.Staged | ir.Gathered | ir.Checkpointed | ir.Differentiated}
}

// A trainee steps a program whose results replace its parameters.
type trainee struct {
	m    *ir.Module
	args []*ir.Literal // global values
	run  func(args []*ir.Literal) []*ir.Literal
}

// step runs one step and returns the results that replace nothing, by name.
func (r *trainee) step() map[string]*ir.Literal {
	out := r.run(r.args)
	rest := make(map[string]*ir.Literal)
	for i, res := range r.m.Main().Results {
		if res.Attrs.Has("pp.alias") {
			r.args[res.Attrs.Int("pp.alias")] = out[i]
		} else {
			rest[res.Attrs.Str("pp.name")] = out[i]
		}
	}
	return rest
}

// optimized runs the pass alone.
func optimized(t *testing.T, m *ir.Module) {
	t.Helper()
	if err := runOne(byName("optimizer"), m, nil, new(verify.Checker)); err != nil {
		t.Fatal(err)
	}
}

// A reference is optax's optimizers, written down once more.
type reference struct {
	config ir.Attrs
	m, v   [][]float64
	steps  int
}

// setByName gives, if the configuration says so, parameters of the bowl rules of
// their own: half the learning rate and another decay for w1; w3 is frozen.
func setByName(config ir.Attrs, m *ir.Module) {
	if !config.Bool("by name") {
		return
	}
	for _, p := range m.Main().Params() {
		switch own := ir.AttrsOf(num("lr_scale", 0.5)); p.Name {
		case "w1":
			if config.Has("weight_decay") {
				own.Set("weight_decay", ir.Float{Value: 0.3, Type: ir.F64})
			}
			p.Attrs.Set("pp.update", ir.Dict(own))
		case "w3":
			p.Attrs.Set("pp.frozen", ir.Unit{})
		}
	}
}

// own is what multiplies the learning rate of parameter i, which has so many
// axes, and its weight decay.
func (r *reference) own(i, rank int) (scale, decay float64) {
	scale = 1
	if rank >= r.config.Int("decay_rank") {
		decay = r.config.Float("weight_decay")
	}
	if i == 1 && r.config.Bool("by name") {
		scale, decay = 0.5, 0.3
	}
	return scale, decay
}

// trained are those of the parameters, or of their gradients, that are trained.
func (r *reference) trained(w [][]float64) [][]float64 {
	if r.config.Bool("by name") {
		return w[:3]
	}
	return w
}

func (r *reference) rate() float64 {
	d, _ := r.config.Get("lr").(ir.Dict)
	lr, c := ir.Attrs(d), float64(r.steps)
	peak, end, warmup, decay := lr.Float("peak"), lr.Float("end"), lr.Float("warmup"), lr.Float("decay")
	switch lr.Str("kind") {
	case "table":
		values := lr.Get("values").(ir.Array)
		return values[min(r.steps, len(values)-1)].(ir.Float).Value
	case "linear":
		if c < warmup {
			return peak * c / warmup
		}
		return peak + (end-peak)*min((c-warmup)/decay, 1)
	case "cosine":
		if c < warmup {
			return peak * c / warmup
		}
		return end + (peak-end)*(1+math.Cos(math.Pi*min((c-warmup)/decay, 1)))/2
	}
	return lr.Float("value")
}

func norm(xs [][]float64) float64 {
	sum := 0.0
	for _, x := range xs {
		for _, v := range x {
			sum += v * v
		}
	}
	return math.Sqrt(sum)
}

// update changes w by the gradients g; ranks are those that weight decay
// counts. It returns the norm of g and the learning rate.
func (r *reference) update(w, g [][]float64, ranks []int) (gradNorm, lr float64) {
	c := r.config
	if r.m == nil {
		for _, x := range w {
			r.m, r.v = append(r.m, make([]float64, len(x))), append(r.v, make([]float64, len(x)))
		}
	}
	w, g = r.trained(w), r.trained(g)
	lr, gradNorm = r.rate(), norm(g)
	r.steps++
	factor := 1.0
	if c.Has("clip") && gradNorm > c.Float("clip") {
		factor = c.Float("clip") / gradNorm
	}
	b1, b2, mu := c.Float("b1"), c.Float("b2"), c.Float("momentum")
	for i := range w {
		scale, decay := r.own(i, ranks[i])
		for k := range w[i] {
			g := g[i][k] * factor
			m, v := &r.m[i][k], &r.v[i][k]
			var by float64
			if c.Str("optimizer") == "sgd" {
				*m = g + mu**m
				if by = *m; c.Bool("nesterov") {
					by = g + mu**m
				}
			} else {
				t := float64(r.steps)
				*m = b1**m + (1-b1)*g
				*v = b2**v + (1-b2)*g*g
				up := *m / (1 - math.Pow(b1, t))
				if c.Bool("nesterov") {
					up = b1**m/(1-math.Pow(b1, t+1)) + (1-b1)*g/(1-math.Pow(b1, t))
				}
				by = up / (math.Sqrt(*v/(1-math.Pow(b2, t))+c.Float("eps_root")) + c.Float("eps"))
				by += decay * w[i][k]
			}
			w[i][k] -= lr * scale * by
		}
	}
	return gradNorm, lr
}

func numbersOf(l *ir.Literal) []float64 {
	out := make([]float64, l.Type.NumElements())
	for i := range out {
		out[i] = l.Float(i)
	}
	return out
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(math.Abs(want), 1)) {
		t.Errorf("%s is %.17g, want %.17g", what, got, want)
	}
}

var (
	adamArgs  = []ir.NamedAttr{num("b1", 0.9), num("b2", 0.95), num("eps", 1e-8)}
	steady    = rate("constant", num("value", 0.1))
	optimizes = []struct {
		name string
		d    ir.Dict
	}{
		{"sgd", train("sgd", steady)},
		{"momentum", train("sgd", steady, num("momentum", 0.9))},
		{"nesterov", train("sgd", steady, num("momentum", 0.9), flag("nesterov"))},
		{"clipped", train("sgd", steady, num("clip", 1))},
		{"clipped not", train("sgd", steady, num("clip", 1000))},
		{"adam", train("adam", steady, adamArgs...)},
		{"adam under a root", train("adam", steady, append(adamArgs, num("eps_root", 1e-2))...)},
		{"nadam", train("adam", steady, append(adamArgs, flag("nesterov"))...)},
		{"adamw", train("adamw", steady, append(adamArgs, num("weight_decay", 0.1), num("clip", 0.5))...)},
		{"adamw by name", train("adamw", steady, append(adamArgs, num("weight_decay", 0.1), integer("decay_rank", 2), flag("by name"))...)},
		{"momentum by name", train("sgd", steady, num("momentum", 0.9), flag("by name"))},
		{"adamw by rank", train("adamw", steady, append(adamArgs, num("weight_decay", 0.1), integer("decay_rank", 2))...)},
		{"linear", train("sgd", rate("linear", num("peak", 0.2), num("end", 0.01), integer("warmup", 2), integer("decay", 4)))},
		{"linear down", train("sgd", rate("linear", num("peak", 0.2), integer("warmup", 0), integer("decay", 5)))},
		{"cosine", train("adam", rate("cosine", num("peak", 0.2), num("end", 0.02), integer("warmup", 3), integer("decay", 4)), adamArgs...)},
		{"table", train("sgd", rate("table", facts.Named("values", ir.Array{ir.Float{Value: 0.3, Type: ir.F64}, ir.Float{Value: 0.1, Type: ir.F64}, ir.Float{Value: 0.05, Type: ir.F64}})))},
	}
)

// Every optimizer and schedule computes, step by step, what a direct program
// of its definition does.
func TestOptimizers(t *testing.T) {
	for _, c := range optimizes {
		t.Run(c.name, func(t *testing.T) {
			m := bowl(ir.F64)
			m.Attrs.Set("pp.train", c.d)
			setByName(ir.Attrs(c.d), m)
			optimized(t, m)
			r := &trainee{m: m}
			r.run = func(args []*ir.Literal) []*ir.Literal {
				out, err := eval.Run(m, m.Main(), args, eval.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			var w, g [][]float64
			for _, p := range m.Main().Params() {
				vs := make([]float64, p.Type.NumElements())
				if p.Attrs.Str("pp.kind") == "param" {
					for k := range vs {
						vs[k] = math.Sin(float64(3*k + 7*len(w)))
					}
					w, g = append(w, vs), append(g, make([]float64, len(vs)))
				}
				r.args = append(r.args, ir.Floats64(p.Type, append([]float64(nil), vs...)...))
			}
			ref := &reference{config: ir.Attrs(c.d)}
			for step := range 8 {
				x := math.Cos(float64(step))
				r.args[0] = ir.Floats64(r.args[0].Type, x)
				for i := range w {
					for k := range w[i] {
						g[i][k] = float64(i+1) * (w[i][k] - x)
					}
				}
				gradNorm, lr := ref.update(w, g, []int{0, 1, 1, 2})
				out := r.step()
				near(t, "learning_rate", out["learning_rate"].Float(0), lr, 1e-14)
				near(t, "grad_norm", out["grad_norm"].Float(0), gradNorm, 1e-12)
				near(t, "param_norm", out["param_norm"].Float(0), norm(ref.trained(w)), 1e-12)
				for i := range w {
					for k, v := range numbersOf(r.args[1+i]) {
						near(t, fmt.Sprintf("step %d: w%d[%d]", step, i, k), v, w[i][k], 1e-12)
					}
				}
			}
		})
	}
}

// State has the type of the parameter, but at least f32; it is bound by the
// name, rows and layers of its parameter; results say what they replace.
func TestOptimizerState(t *testing.T) {
	for elem, want := range map[ir.DType]ir.DType{ir.BF16: ir.F32, ir.F16: ir.F32, ir.F32: ir.F32, ir.F64: ir.F64} {
		m := bowl(elem)
		m.Attrs.Set("pp.train", train("adamw", steady, adamArgs...))
		m.Attrs.Set("pp.keep_gradients", ir.Unit{})
		optimized(t, m)
		f := m.Main()
		byName := make(map[string]*ir.Value)
		for _, p := range f.Params() {
			byName[p.Attrs.Str("pp.name")] = p
		}
		for _, slot := range []string{"opt.m.w2", "opt.v.w2"} {
			p := byName[slot]
			if p == nil {
				t.Fatalf("there is no parameter %s", slot)
			}
			if p.Type.Elem != want || p.Attrs.Int("pp.layers") != 3 || p.Attrs.Str("pp.kind") != "state" || p.Attrs.Str("pp.init") != "zeros" {
				t.Errorf("%s: %s is %s with %s", elem, slot, p.Type, p.Attrs)
			}
		}
		gradients, replaced := 0, make(map[int]bool)
		for i, r := range f.Results {
			name := r.Attrs.Str("pp.name")
			if strings.HasPrefix(name, "grad.") {
				gradients++
			}
			if !r.Attrs.Has("pp.alias") {
				continue
			}
			p := f.Params()[r.Attrs.Int("pp.alias")]
			replaced[p.Index] = true
			if old := strings.TrimPrefix(name, "param."); p.Attrs.Str("pp.name") != old || p.Attrs.Int("tf.aliasing_output") != i {
				t.Errorf("%s: result %d, %s, replaces %s, which takes result %d", elem, i, name, p.Attrs.Str("pp.name"), p.Attrs.Int("tf.aliasing_output"))
			}
		}
		if len(replaced) != len(f.Params())-1 || gradients != 4 {
			t.Errorf("%s: %d of %d parameters are replaced, %d gradients kept", elem, len(replaced), len(f.Params()), gradients)
		}
	}
}

// Batches that one step works on have numbers of their own where the program
// draws at random: the step's is that of all batches so far.
func TestAccumulatedDraws(t *testing.T) {
	m := bowl(ir.F64)
	f := m.Main()
	number := f.NewArg(f.Body, ir.Tensor(ir.I32), "step")
	number.Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str("pp.step")), facts.Named("pp.kind", ir.Str("step")))
	ret := f.Return()
	f.Body.Ops = f.Body.Ops[:len(f.Body.Ops)-1]
	ret.Operands[0] = ir.NewBuilder(f).Convert(number, ir.F64)
	f.Body.Ops = append(f.Body.Ops, ret)
	m.Attrs.Set("pp.train", train("sgd", steady, integer("gradient_accumulation", 3)))
	optimized(t, m)
	var args []*ir.Literal
	for _, p := range f.Params() {
		args = append(args, ir.SplatOf(p.Type, 5))
	}
	out, err := eval.Run(m, f, args, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the mean of batches 15 to 17", out[0].Float(0), 16, 0)
}

// What cannot be done is an error that says so.
func TestOptimizerErrors(t *testing.T) {
	for _, c := range []struct {
		d      ir.Dict
		change func(m *ir.Module)
		want   string
	}{
		{d: train("adagrad", steady), want: `there is no optimizer "adagrad": want sgd, adam, adamw`},
		{d: train("sgd", rate("step")), want: `there is no learning rate "step": want constant, linear, cosine, table`},
		{d: train("sgd", rate("table")), want: "the table of learning rates is empty: want one for each step, of which the last one stays"},
		{d: train("sgd", rate("table", facts.Named("values", ir.Array{ir.Str("x")}))), want: `learning rate 0 of the table is "x", want a number`},
		{d: train("sgd", rate("linear", integer("decay", -1))), want: "the learning rate has decay = -1 steps: want at least 0"},
		{d: train("sgd", steady, num("clip", 0)), want: "gradients cannot be clipped to the norm 0: want a positive one, or no clipping"},
		{d: train("adam", steady, num("weight_decay", 0.1)), want: "adam has no weight decay (0.1): adamw has"},
		{d: train("sgd", steady), want: "parameter w1 has no gradient among the results: it cannot be trained",
			change: func(m *ir.Module) { m.Main().Results[2].Attrs.Delete("pp.kind") }},
		{d: train("sgd", steady), want: "parameter w1 is tensor<4xf64>, its gradient tensor<2x3xf64>: want the same type",
			change: func(m *ir.Module) {
				r := m.Main().Results
				r[2].Attrs, r[4].Attrs = r[4].Attrs, r[2].Attrs
			}},
		{d: train("sgd", steady), want: "there is nothing to train: the module has no main function",
			change: func(m *ir.Module) { m.Funcs = nil }},
		{d: train("sgd", steady), want: "there is nothing to train: main has no floating-point parameters that are not frozen",
			change: func(m *ir.Module) {
				for _, p := range m.Main().Params() {
					p.Attrs.Set("pp.kind", ir.Str("input"))
				}
			}},
	} {
		m := bowl(ir.F64)
		m.Attrs.Set("pp.train", c.d)
		if c.change != nil {
			c.change(m)
		}
		if err := runOne(byName("optimizer"), m, nil, new(verify.Checker)); err == nil || err.Error() != c.want {
			t.Errorf("got error %v, want %s", err, c.want)
		}
	}
}
