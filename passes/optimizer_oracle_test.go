package passes

import (
	"strings"
	"testing"

	"ppc/internal/optest"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
)

// The recorded training runs of MaxText: as the first step has the learning
// rate 0, the first two have one gradient, which is recorded. Two updates by it
// give the recorded norms and weights.
func TestOptimizersLikeMaxText(t *testing.T) {
	adamw := func(clip float64, lr ir.Dict) ir.Dict {
		return train("adamw", lr, append(adamArgs, num("weight_decay", 0.1), num("clip", clip))...)
	}
	for name, recipe := range map[string]func(lr ir.Dict) ir.Dict{
		"train_llama2_adamw_pipe": func(lr ir.Dict) ir.Dict { return adamw(1, lr) },
		"train_llama2_sgd_subset": func(lr ir.Dict) ir.Dict { return train("sgd", lr, num("clip", 0.5)) },
		"train_mixtral_lb":        func(lr ir.Dict) ir.Dict { return adamw(1, lr) },
	} {
		t.Run(name, func(t *testing.T) {
			file, err := tensorfile.Open(shared.Oracle(t, name))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			array := func(key string) *ir.Literal {
				a, err := file.Read(key)
				if err != nil {
					t.Fatal(err)
				}
				return &ir.Literal{Type: ir.Tensor(ir.DTypeByName(a.DType), a.Shape...), Data: a.Data}
			}
			var values ir.Array
			for _, v := range numbersOf(array("lr")) {
				values = append(values, ir.Float{Value: v, Type: ir.F64})
			}
			var leaves []string
			for _, key := range file.Names() {
				if leaf, ok := strings.CutPrefix(key, "w0/"); ok {
					leaves = append(leaves, leaf)
				}
			}
			m := givenGradients(leaves, array)
			m.Attrs.Set("pp.train", recipe(rate("table", facts.Named("values", values))))
			optimized(t, m)
			r := &trainee{m: m}
			for _, p := range m.Main().Params() {
				if name := p.Attrs.Str("pp.name"); file.Has(name) {
					r.args = append(r.args, array(name))
				} else {
					r.args = append(r.args, ir.SplatOf(p.Type, 0))
				}
			}
			r.run = func(args []*ir.Literal) []*ir.Literal {
				out, err := eval.Run(m, m.Main(), args, eval.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			for step := range 2 {
				out := r.step()
				near(t, "learning_rate", out["learning_rate"].Float(0), array("lr").Float(step), 0)
				near(t, "grad_norm", out["grad_norm"].Float(0), array("raw_grad_norm").Float(step), 1e-14)
				near(t, "param_norm", out["param_norm"].Float(0), array("param_norm").Float(step), 1e-14)
			}
			for i, p := range m.Main().Params() {
				leaf, ok := strings.CutPrefix(p.Attrs.Str("pp.name"), "w0/")
				if !ok {
					continue
				}
				if _, rel := optest.MaxDiff(r.args[i], array("w_2/"+leaf)); !(rel <= 1e-14) {
					t.Errorf("after two steps %s differs by %g", leaf, rel)
				}
			}
		})
	}
}

// givenGradients is a differentiated program that returns its inputs as the
// gradients of its parameters.
func givenGradients(leaves []string, array func(string) *ir.Literal) *ir.Module {
	f := ir.NewFunc("main")
	arg := func(key, kind string) *ir.Value {
		v := f.NewArg(f.Body, array(key).Type, "")
		v.Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str(key)), facts.Named("pp.kind", ir.Str(kind)))
		return v
	}
	var gs []*ir.Value
	for _, leaf := range leaves {
		w, g := arg("w0/"+leaf, "param"), arg("g0/"+leaf, "input")
		gs = append(gs, g)
		f.Results = append(f.Results, ir.Result{Type: w.Type, Attrs: ir.AttrsOf(facts.Named("pp.name", ir.Str("grad.w0/"+leaf)), facts.Named("pp.kind", ir.Str("gradient")))})
	}
	ir.NewBuilder(f).Return(gs...)
	return &ir.Module{Name: "given", Funcs: []*ir.Func{f}, Form: ir.Staged | ir.Gathered | ir.Checkpointed | ir.Differentiated}
}
