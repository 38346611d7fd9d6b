package gradient

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/optest"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

// An exported is a program that JAX exported, with inputs and outputs.
type exported struct {
	m    *ir.Module
	file *tensorfile.File
	args []*ir.Literal
}

func openExported(t *testing.T, name string) *exported {
	t.Helper()
	path := filepath.Join(shared.Dir(t, "oracle/stablehlo"), name)
	src, err := os.ReadFile(path + ".mlir")
	if err != nil {
		t.Fatal(err)
	}
	m, err := mlir.Parse(path, src)
	if err != nil {
		t.Fatal(err)
	}
	file, err := tensorfile.Open(path + ".npz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	e := &exported{m: m, file: file}
	for i, p := range m.Main().Params() {
		l := e.array(t, fmt.Sprint("in", i))
		if l.Type.Elem != p.Type.Elem && p.Type.Elem.IsFloat() {
			l = ir.Floats64(l.Type.WithElem(ir.F64), optest.Floats(l)...)
		}
		e.args = append(e.args, l)
		p.Attrs.Set("pp.kind", ir.Str("input"))
		p.Attrs.Set("pp.name", ir.Str(fmt.Sprint("in", i)))
	}
	return e
}

func (e *exported) array(t *testing.T, key string) *ir.Literal {
	t.Helper()
	a, err := e.file.Read(key)
	if err != nil {
		t.Fatal(err)
	}
	return &ir.Literal{Type: ir.Tensor(ir.DTypeByName(a.DType), a.Shape...), Data: a.Data}
}

// gradients are the gradients by all inputs, by name, in float64.
func (e *exported) gradients(t *testing.T) map[string]*ir.Literal {
	t.Helper()
	m := e.m.Clone()
	m.Attrs.Set("pp.gradient", ir.Str("all"))
	if err := differentiated(m); err != nil {
		t.Fatal(err)
	}
	if err := verify.Verify(m); err != nil {
		t.Fatal(err)
	}
	out, err := eval.Run(m, m.Main(), e.args, eval.Options{Float64: true})
	if err != nil {
		t.Fatal(err)
	}
	gs := make(map[string]*ir.Literal)
	for i, r := range m.Main().Results {
		if r.Attrs.Str("pp.kind") == "gradient" {
			gs[strings.TrimPrefix(r.Attrs.Str("pp.name"), "grad.")] = out[i]
		}
	}
	return gs
}

// MaxText's pipelines as JAX exported them, forward alone: the loops, manual
// regions and calls have the gradients that JAX has found.
func TestGradientsOfJAX(t *testing.T) {
	for _, c := range []struct{ forward, backward string }{
		{"mt_mlp_s4_fwd", "mt_mlp_s4_grad"},
		{"mt_mlp_s4f2_fwd", "mt_mlp_s4_grad"},
	} {
		t.Run(c.forward, func(t *testing.T) {
			e, want := openExported(t, c.forward), openExported(t, c.backward)
			gs := e.gradients(t)
			for i := range 3 {
				if _, rel := optest.MaxDiff(gs[fmt.Sprint("in", i)], want.array(t, fmt.Sprint("ref", i+1))); !(rel <= 1e-12) {
					t.Errorf("gradient of input %d differs by %g", i, rel)
				}
			}
		})
	}
}

// sumOf is the program whose loss is the weighted sum of result i.
func (e *exported) sumOf(i int) *exported {
	m := e.m.Clone()
	f := m.Main()
	ret := f.Return()
	f.Body.Ops = f.Body.Ops[:len(f.Body.Ops)-1]
	f.Results = nil
	p := &optest.Program{Rand: optest.New(1).Rand, B: ir.NewBuilder(f), M: m}
	p.Finish(ret.Operands[i : i+1])
	return &exported{m: m, file: e.file, args: e.args}
}

// central is the derivative of the loss along the given direction.
func (e *exported) central(t *testing.T, along []*ir.Literal) float64 {
	t.Helper()
	const h = 1e-4
	at := func(s float64) float64 {
		args := slices.Clone(e.args)
		for i, l := range args {
			if l.Type.Elem.IsFloat() {
				vs := optest.Floats(l)
				for k := range vs {
					vs[k] += s * h * along[i].Float(k)
				}
				args[i] = ir.Floats64(l.Type.WithElem(ir.F64), vs...)
			}
		}
		out, err := eval.Run(e.m, e.m.Main(), args, eval.Options{Float64: true})
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Float(0)
	}
	return (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (12 * h)
}

// Whatever JAX exported has the gradients that central differences say, also
// what is a gradient already, but for what has none.
func TestGradientsOfExports(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Dir(t, "oracle/stablehlo"), "*.mlir"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	have := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".mlir")
		t.Run(name, func(t *testing.T) {
			e := openExported(t, name)
			if _, err := eval.Run(e.m, e.m.Main(), e.args, eval.Options{Float64: true}); err != nil {
				t.Skip(err)
			}
			for i, r := range e.m.Main().Results {
				if r.Type.Elem.IsFloat() && !jumps[fmt.Sprint(name, " ", i)] && e.sumOf(i).differentiable(t, fmt.Sprintf("result %d", i)) {
					have++
				}
			}
		})
	}
	if t.Logf("%d results have gradients", have); have < mustHave {
		t.Errorf("%d results have gradients, want at least %d", have, mustHave)
	}
}

// jumps are results that jump where the inputs are a little larger or smaller.
var jumps = map[string]bool{"sort_topk 6": true} // sorted by what an input rounds to

// mustHave is how many results have had gradients. It only grows.
const mustHave = 129

// differentiable compares the gradient of the loss, if it has one, with central
// differences along a direction in all inputs.
func (e *exported) differentiable(t *testing.T, what string) bool {
	m := e.m.Clone()
	m.Attrs.Set("pp.gradient", ir.Str("all"))
	if err := differentiated(m); err != nil {
		t.Logf("%s: %v", what, err)
		return false
	}
	var along []*ir.Literal
	p := optest.New(2)
	for _, l := range e.args {
		along = append(along, p.Numbers(-1, 1, l.Type.WithElem(ir.F64)))
	}
	gs := e.gradients(t)
	got := 0.0
	for i, l := range along {
		if g := gs[fmt.Sprint("in", i)]; g != nil {
			for k, v := range optest.Floats(l) {
				got += v * g.Float(k)
			}
		}
	}
	want := e.central(t, along)
	if math.IsNaN(want) {
		t.Logf("%s: is not a number where the inputs are a little larger or smaller", what)
		return false
	}
	if d := math.Abs(got-want) / max(math.Abs(want), 1e-3); !(d <= 1e-7) {
		t.Errorf("%s: derivative %g, central difference %g", what, got, want)
	}
	return true
}
