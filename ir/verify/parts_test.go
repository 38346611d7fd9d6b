package verify_test

import (
	"runtime"
	"strings"
	"testing"

	"ppc/ir"
	_ "ppc/ir/dialect"
	"ppc/ir/verify"
)

// A long function is verified in parts to what it is in order: the same errors, one after
// the other as their ops are.
func TestLongFunction(t *testing.T) {
	const n = 60_000
	x := ir.Tensor(ir.F32, 4)
	build := func() (*ir.Module, []*ir.Op) {
		f := ir.NewFunc("main")
		b := ir.NewBuilder(f)
		v := f.NewArg(f.Body, x, "")
		for range n {
			v = b.Add(v, v)
		}
		b.Return(v)
		return &ir.Module{Name: "test", Funcs: []*ir.Func{f}}, f.Body.Ops
	}
	for _, c := range []struct {
		name   string
		spoil  func(ops []*ir.Op)
		errors []string // in order
	}{
		{"nothing", func([]*ir.Op) {}, nil},
		{"a use before its definition", func(ops []*ir.Op) { ops[30_000].Operands[1] = ops[50_000].Result() }, []string{"add"}},
		{"a use of its own result", func(ops []*ir.Op) { ops[40_000].Operands[0] = ops[40_000].Result() }, []string{"add"}},
		{"types", func(ops []*ir.Op) {
			ops[55_000].Result().Type = ir.Tensor(ir.F32, 5)
			ops[7].Result().Type = ir.Tensor(ir.F32, 6)
		}, []string{"6xf32", "5xf32"}},
		{"one ID twice", func(ops []*ir.Op) { ops[50_000].Result().ID = ops[10].Result().ID }, []string{"ID"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var texts []string
			for _, procs := range []int{1, 4} {
				m, ops := build()
				c.spoil(ops)
				old := runtime.GOMAXPROCS(procs)
				err := verify.Verify(m)
				runtime.GOMAXPROCS(old)
				text := ""
				if err != nil {
					text = err.Error()
				}
				texts = append(texts, text)
			}
			if texts[0] != texts[1] {
				t.Errorf("in order:\n%s\nin parts:\n%s", texts[0], texts[1])
			}
			at := 0
			for _, want := range c.errors {
				i := strings.Index(texts[1][at:], want)
				if i < 0 {
					t.Fatalf("no %q behind what comes before it in:\n%s", want, texts[1])
				}
				at += i
			}
			if c.errors == nil && texts[1] != "" {
				t.Error(texts[1])
			}
		})
	}
}
