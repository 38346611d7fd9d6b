package passes

import (
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/passes/pass"
	"ppc/runtime"
)

// bind slices the typed form's arguments for a later form: a parameter with pp.rows
// takes those rows of the one of its name.
func bind(m *ir.Module, typed *ir.Module, args []*ir.Literal) []*ir.Literal {
	byName := make(map[string]*ir.Literal)
	for i, p := range typed.Main().Params() {
		byName[p.Attrs.Str("pp.name")] = args[i]
	}
	var out []*ir.Literal
	for _, p := range m.Main().Params() {
		l := byName[p.Attrs.Str("pp.name")]
		t := p.Type
		if s, ok := p.Attrs.Get("pp.sharding").(*ir.Sharding); ok {
			t = s.Global(t, m.Meshes[0])
		}
		data := l.Data
		if rows := p.Attrs.Ints("pp.rows"); rows != nil {
			row := len(data) / l.Type.Shape[0]
			data = data[rows[0]*row : rows[1]*row]
		}
		out = append(out, &ir.Literal{Type: t, Data: data})
	}
	return out
}

// evaluate runs a form of the program on the reference evaluator, per device
// when it is local, and returns global results.
func evaluate(t *testing.T, m, typed *ir.Module, args []*ir.Literal, opts eval.Options) []*ir.Literal {
	t.Helper()
	global := bind(m, typed, args)
	main := m.Main()
	if !m.Form.Has(ir.Local) {
		out, err := eval.Run(m, main, global, opts)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out, err := onShards(m, global, func(per [][]*ir.Literal) ([][]*ir.Literal, error) { return eval.RunDevices(m, main, per, opts) })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// onShards gives each device its shards of args and returns the global results of
// the shards that run returns for each.
func onShards(m *ir.Module, args []*ir.Literal, run func(per [][]*ir.Literal) ([][]*ir.Literal, error)) ([]*ir.Literal, error) {
	mesh := m.Meshes[0]
	per := make([][]*ir.Literal, mesh.Size())
	for i, p := range m.Main().Params() {
		s, _ := p.Attrs.Get("pp.sharding").(*ir.Sharding)
		for d := range per {
			per[d] = append(per[d], ir.ShardOf(args[i], s, mesh, d))
		}
	}
	got, err := run(per)
	if err != nil {
		return nil, err
	}
	var out []*ir.Literal
	for i, r := range m.Main().Results {
		s, _ := r.Attrs.Get("pp.sharding").(*ir.Sharding)
		parts := make([]*ir.Literal, len(got))
		for d := range got {
			parts[d] = got[d][i]
		}
		out = append(out, ir.FromShards(mesh, s, globalType(m, r.Type, r.Attrs), parts))
	}
	return out, nil
}

// An evaluatedText is the text of the last program that was evaluated: where a pass has changed
// nothing but the form that the program claims, there is nothing new to evaluate.
type evaluatedText string

// changed reports whether m is another program, and takes its text.
func (last *evaluatedText) changed(m *ir.Module) bool {
	form := m.Form
	m.Form &= ir.Local // is evaluated per device
	text := evaluatedText(mlir.Print(m))
	m.Form = form
	if text == *last {
		return false
	}
	*last = text
	return true
}

// Every form of the program computes what the layers one after the other do.
func TestEveryForm(t *testing.T) {
	for _, c := range []model{
		{S: 1, M: 2, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "ppermute"},
		{S: 4, M: 4, R: 1, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "ppermute"},
		{S: 4, M: 8, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_iteration", rotate: "ppermute"},
		{S: 4, M: 8, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 2, gather: "once", rotate: "slice_pad"},
		{S: 2, M: 4, R: 3, L: 2, D: 2, rest: 2, b: 4, e: 4, h: 4, data: 2, fsdp: 2, tensor: 1, gather: "once", rotate: "ppermute"},
		{S: 3, M: 9, R: 2, L: 2, D: 2, rest: 1, b: 2, e: 4, h: 4, data: 2, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "slice_pad"},
		{S: 8, M: 16, R: 2, L: 1, D: 2, b: 1, e: 4, h: 4, data: 1, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "ppermute"},
		{S: 4, M: 8, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_repeat", prefetch: "head", rotate: "ppermute"},
		{S: 4, M: 8, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_repeat", prefetch: "ahead", rotate: "ppermute"},
		{S: 3, M: 6, R: 3, L: 2, D: 2, rest: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_repeat", prefetch: "head", rotate: "slice_pad"},
		{S: 3, M: 6, R: 3, L: 2, D: 2, rest: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_repeat", prefetch: "ahead", rotate: "slice_pad"},
		{S: 1, M: 2, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_repeat", prefetch: "ahead", rotate: "ppermute"},
		{S: 4, M: 8, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 2, gather: "once", rotate: "slice_pad", mode: "explicit"},
		{S: 2, M: 4, R: 3, L: 2, D: 2, rest: 2, b: 4, e: 4, h: 4, data: 2, fsdp: 2, tensor: 1, gather: "per_iteration", rotate: "ppermute", mode: "explicit"},
		{S: 3, M: 6, R: 3, L: 2, D: 2, rest: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_repeat", prefetch: "ahead", rotate: "slice_pad", mode: "explicit"},
	} {
		t.Run(c.String(), func(t *testing.T) {
			typed := c.module()
			args := c.args(typed)
			if err := verify.Verify(typed); err != nil {
				t.Fatal(err)
			}
			want := evaluate(t, typed, typed, args, eval.Options{})
			m := typed.Clone()
			var last evaluatedText
			err := Run(m, Config{Each: func(_ int, p *pass.Pass, m *ir.Module) error {
				if !last.changed(m) {
					return nil
				}
				for _, poison := range []bool{false, true} {
					got := evaluate(t, m, typed, args, eval.Options{Poison: poison})
					for i := range want {
						if _, rel := optest.MaxDiff(got[i], want[i]); !(rel <= 1e-12) {
							t.Fatalf("after %s (poison %v): result %d differs by %g", p.Name, poison, i, rel)
						}
					}
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			m.Attrs.Set("pp.combine", ir.I64Attr(1<<20))
			if err := runOne(byName("combine"), m, nil, new(verify.Checker)); err != nil {
				t.Fatal(err)
			}
			for i, got := range evaluate(t, m, typed, args, eval.Options{Poison: true}) {
				if _, rel := optest.MaxDiff(got, want[i]); !(rel <= 1e-12) {
					t.Errorf("with all collectives combined that can be: result %d differs by %g", i, rel)
				}
			}
		})
	}
}

// execute runs a local program on goroutine devices and returns global results.
func execute(t *testing.T, m, typed *ir.Module, args []*ir.Literal, opts ...runtime.Option) []*ir.Literal {
	t.Helper()
	exe, err := runtime.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	out, err := onShards(m, bind(m, typed, args), func(per [][]*ir.Literal) ([][]*ir.Literal, error) { return exe.Run(t.Context(), per, opts...) })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// modes are the ways in which the runtime may run a program without a change
// of its numbers: plainly, devices in another order, with NaN in every fresh
// buffer, with NaN in what bubbles work on.
var modes = [][]runtime.Option{
	nil,
	{runtime.Shuffle(1)},
	{runtime.PoisonBuffers()},
	{runtime.PoisonBubbles(), runtime.Shuffle(2)},
}
