package ir

import "testing"

// A matrix product is built, inferred and verified.
func TestBuild(t *testing.T) {
	f := NewFunc("main")
	x, w := f.NewArg(f.Body, Tensor(F32, 4, 8), "x"), f.NewArg(f.Body, Tensor(F32, 8, 2), "w")
	b := NewBuilder(f)
	y := b.Dot(x, w, Dot{LhsContract: []int{1}, RhsContract: []int{0}})
	zero := b.Splat(Tensor(F32), 0)
	s := b.Reduce(Add, b.Unary(Tanh, y), zero, 0, 1)
	b.Return(s)
	m := &Module{Name: "m", Funcs: []*Func{f}}
	if err := Verify(m); err != nil {
		t.Fatal(err)
	}
	if want := Tensor(F32); !s.Type.Equal(want) {
		t.Errorf("type %s, want %s", s.Type, want)
	}
	if err := Verify(m.Clone()); err != nil {
		t.Error(err)
	}
}
