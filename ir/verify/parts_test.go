package verify_test

import (
	"runtime"
	"slices"
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
		zero, yes := b.Splat(ir.Tensor(ir.F32), 0), b.Splat(ir.Tensor(ir.I1), 1)
		for i := range n {
			v = b.Add(v, v)
			if i%100 == 0 {
				b.Reduce(ir.Add, v, zero, 0)
			}
			if i%5000 == 0 {
				one, other, named := new(ir.Block), new(ir.Block), new(ir.Block)
				b.In(one).Emit(ir.Return, []*ir.Value{v}, nil, nil, nil)
				b.In(other).Emit(ir.Return, []*ir.Value{v}, nil, nil, nil)
				b.Emit(ir.If, []*ir.Value{yes}, nil, []*ir.Block{one, other}, []*ir.Type{x})
				b.In(named).Emit(ir.SdyReturn, []*ir.Value{f.NewArg(named, x, "")}, nil, nil, nil)
				b.Emit(ir.NamedComputation, []*ir.Value{v}, ir.AttrsOf(ir.NamedAttr{Name: "name", Attr: ir.Str("f")}), []*ir.Block{named}, []*ir.Type{x})
			}
		}
		b.Return(v)
		return &ir.Module{Name: "test", Funcs: []*ir.Func{f}}, f.Body.Ops
	}
	of := func(ops []*ir.Op, k ir.Kind) []*ir.Op {
		return slices.DeleteFunc(slices.Clone(ops), func(op *ir.Op) bool { return op.Kind != k })
	}
	adds := func(ops []*ir.Op) []*ir.Op { return of(ops, ir.Add) }
	regions := func(ops []*ir.Op) (bs []*ir.Block) {
		for _, op := range of(ops, ir.Reduce) {
			bs = append(bs, op.Regions...)
		}
		return bs
	}
	for _, c := range []struct {
		name   string
		spoil  func(ops []*ir.Op)
		errors []string // in order
	}{
		{"nothing", func([]*ir.Op) {}, nil},
		{"a use before its definition", func(ops []*ir.Op) { ops = adds(ops); ops[30_000].Operands[1] = ops[50_000].Result() }, []string{"add"}},
		{"a use of its own result", func(ops []*ir.Op) { ops = adds(ops); ops[40_000].Operands[0] = ops[40_000].Result() }, []string{"add"}},
		{"types", func(ops []*ir.Op) {
			ops = adds(ops)
			ops[55_000].Result().Type = ir.Tensor(ir.F32, 5)
			ops[7].Result().Type = ir.Tensor(ir.F32, 6)
		}, []string{"6xf32", "5xf32"}},
		{"one ID twice", func(ops []*ir.Op) { ops = adds(ops); ops[50_000].Result().ID = ops[10].Result().ID }, []string{"ID"}},
		{"a use of what a region defines", func(ops []*ir.Op) { adds(ops)[30_000].Operands[0] = regions(ops)[2].Ops[0].Result() }, []string{"not where it can be seen"}},
		{"a use in a region of what comes later", func(ops []*ir.Op) { regions(ops)[2].Ops[0].Operands[0] = adds(ops)[50_000].Result() }, []string{"before its use"}},
		{"a use in a region of what comes before", func(ops []*ir.Op) {
			f := regions(ops)[500].Ops[0]
			f.Operands[0] = ops[0].Result()
		}, nil},
		{"a region in two places", func(ops []*ir.Op) {
			ifs := of(ops, ir.If)
			ifs[9].Regions[0] = ifs[1].Regions[0]
		}, []string{"two places"}},
		{"an isolated region that uses what is outside", func(ops []*ir.Op) {
			of(ops, ir.NamedComputation)[9].Regions[0].Ops[0].Operands[0] = of(ops, ir.Add)[0].Result()
		}, []string{"not where it can be seen"}},
		{"types in a region", func(ops []*ir.Op) { regions(ops)[300].Ops[0].Result().Type = x }, []string{"4xf32"}},
		{"no op", func(ops []*ir.Op) { ops[30_000] = nil }, []string{"nil"}},
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
