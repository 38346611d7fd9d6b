package passes

import (
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// withLoss makes a typed form of the model return sum(y * y) + aux alone.
func withLoss(m *ir.Module) *ir.Module {
	f := m.Main()
	ret := f.Return()
	y, aux := ret.Operands[0], ret.Operands[1]
	f.Body.Ops = f.Body.Ops[:len(f.Body.Ops)-1]
	f.Results = nil
	b := ir.NewBuilder(f)
	zero := b.Splat(ir.Tensor(ir.F64), 0)
	loss := b.Add(b.Reduce(ir.Add, b.Mul(y, y), zero, 0, 1), aux)
	b.Return(loss)
	f.Results[0].Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str("loss")))
	m.Attrs.Set("pp.gradient", ir.Str("all"))
	return m
}

// central is the derivative of the loss along a direction in every argument
// that has one, by central differences on the typed form.
func central(t *testing.T, m *ir.Module, args, along []*ir.Literal) float64 {
	t.Helper()
	const h = 1e-5
	at := func(s float64) float64 {
		moved := make([]*ir.Literal, len(args))
		for i, a := range args {
			moved[i] = a
			if a.Type.Elem.IsFloat() {
				vs := make([]float64, a.Type.NumElements())
				for k := range vs {
					vs[k] = a.Float(k) + s*h*along[i].Float(k)
				}
				moved[i] = ir.Floats64(a.Type, vs...)
			}
		}
		out, err := eval.Run(m, m.Main(), moved, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Float(0)
	}
	return (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (12 * h)
}

// gradients are the results of m that are gradients, by name of what they are
// of, with the rows of one parameter together.
func gradients(m *ir.Module, out []*ir.Literal) map[string][]float64 {
	g := make(map[string][]float64)
	for i, r := range m.Main().Results {
		if r.Attrs.Str("pp.kind") != "gradient" {
			continue
		}
		for k := range out[i].Type.NumElements() {
			g[r.Attrs.Str("pp.name")] = append(g[r.Attrs.Str("pp.name")], out[i].Float(k))
		}
	}
	return g
}

// The gradient of a pipelined program, after every pass, is that of its
// definition, by central differences; also where bubbles hold NaN.
func TestGradients(t *testing.T) {
	for _, c := range []model{
		{S: 1, M: 2, R: 1, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "ppermute"},
		{S: 2, M: 2, R: 1, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "ppermute"},
		{S: 4, M: 8, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_iteration", rotate: "slice_pad"},
		{S: 3, M: 6, R: 2, L: 2, D: 2, rest: 1, b: 2, e: 2, h: 4, data: 2, fsdp: 1, tensor: 2, gather: "once", rotate: "ppermute"},
		{S: 2, M: 4, R: 2, L: 1, D: 1, rest: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 2, gather: "per_iteration", rotate: "ppermute", mode: "explicit"},
		{S: 2, M: 4, R: 2, L: 2, D: 2, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_repeat", prefetch: "head", rotate: "slice_pad", mode: "explicit"},
	} {
		t.Run(c.String(), func(t *testing.T) {
			typed := withLoss(c.module())
			args := c.args(typed)
			along := c.args(typed)
			want := central(t, typed, args, along)
			m := typed.Clone()
			var last evaluatedText
			err := Run(m, Config{Each: func(_ int, p *pass.Pass, m *ir.Module) error {
				if !m.Form.Has(ir.Differentiated) || !last.changed(m) {
					return nil
				}
				for _, poison := range []bool{false, true} {
					g := gradients(m, evaluate(t, m, typed, args, eval.Options{Poison: poison}))
					got := 0.0
					for i, p := range typed.Main().Params() {
						for k, v := range g["grad."+p.Attrs.Str("pp.name")] {
							got += v * along[i].Float(k)
						}
					}
					if d := (got - want) / want; !(d < 1e-8 && d > -1e-8) {
						t.Fatalf("after %s (poison %v): derivative %g, central difference %g", p.Name, poison, got, want)
					}
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
