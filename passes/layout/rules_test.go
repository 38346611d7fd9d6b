package layout_test

import (
	"reflect"
	"testing"

	"ppc/ir"
	"ppc/passes/layout"
)

// Ops that are alike have one rule, and one piece of memory for their attributes; those
// that differ in an attribute have not.
func TestAlike(t *testing.T) {
	f := ir.NewFunc("main")
	x := f.NewArg(f.Body, ir.Tensor(ir.F32, 4, 4), "x")
	b := &ir.Builder{Func: f, Block: f.Body}
	for _, contract := range []int{0, 0, 1} {
		b.Dot(x, x, ir.Dot{LhsContract: []int{1}, RhsContract: []int{contract}})
	}
	for _, v := range []*ir.Value{f.Body.Ops[1].Result(), f.Body.Ops[2].Result()} {
		v.Type = f.Body.Ops[0].Result().Type // as the types of a text are
	}
	(&ir.Module{Funcs: []*ir.Func{f}}).ShareAttrs()
	var rules layout.Rules
	var got [3]*ir.Factors
	for i, op := range f.Body.Ops {
		if got[i] = rules.Of(op); !reflect.DeepEqual(got[i], ir.FactorsOf(op)) {
			t.Errorf("the rule of op %d is %v, want %v", i, got[i], ir.FactorsOf(op))
		}
	}
	if got[0] != got[1] || got[1] == got[2] {
		t.Errorf("the rules are at %p, %p, %p, want two equal ones", got[0], got[1], got[2])
	}
}
