package dialect

import (
	"testing"

	"ppc/ir"
	"ppc/ir/verify"
)

// A matrix product is built, inferred and verified.
func TestBuild(t *testing.T) {
	f := ir.NewFunc("main")
	x, w := f.NewArg(f.Body, ir.Tensor(ir.F32, 4, 8), "x"), f.NewArg(f.Body, ir.Tensor(ir.F32, 8, 2), "w")
	b := ir.NewBuilder(f)
	y := b.Dot(x, w, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})
	zero := b.Splat(ir.Tensor(ir.F32), 0)
	s := b.Reduce(ir.Add, b.Unary(ir.Tanh, y), zero, 0, 1)
	b.Return(s)
	m := &ir.Module{Name: "m", Funcs: []*ir.Func{f}}
	if err := verify.Verify(m); err != nil {
		t.Fatal(err)
	}
	if want := ir.Tensor(ir.F32); !s.Type.Equal(want) {
		t.Errorf("type %s, want %s", s.Type, want)
	}
}

// A clone is the same program in other values, blocks and ops.
func TestClone(t *testing.T) {
	m := seedModule()
	c := m.Clone()
	if err := verify.Verify(c); err != nil {
		t.Fatal(err)
	}
	seen := make(map[any]bool)
	each(m, func(x any) { seen[x] = true })
	n := 0
	each(c, func(x any) {
		n++
		if seen[x] {
			t.Errorf("%T is shared with the original", x)
		}
	})
	if n != len(seen) {
		t.Errorf("the clone has %d parts, the original %d", n, len(seen))
	}
}

// each visits every value, block and op of m.
func each(m *ir.Module, visit func(any)) {
	var block func(b *ir.Block)
	values := func(vs []*ir.Value) {
		for _, v := range vs {
			visit(v)
		}
	}
	block = func(b *ir.Block) {
		visit(b)
		values(b.Args)
		for _, op := range b.Ops {
			visit(op)
			values(op.Results)
			for _, r := range op.Regions {
				block(r)
			}
		}
	}
	for _, f := range m.Funcs {
		visit(f)
		block(f.Body)
	}
}

// CopyBlock replaces what the substitution names, keeps what it does not, and
// learns the copies.
func TestCopyBlock(t *testing.T) {
	f := ir.NewFunc("main")
	x, y := f.NewArg(f.Body, ir.Tensor(ir.F32, 4), "x"), f.NewArg(f.Body, ir.Tensor(ir.F32, 4), "y")
	b := ir.NewBuilder(f)
	sum := b.Add(x, y)
	sum.Sharding = ir.NewSharding("mesh", nil)
	b.Return(sum)
	g := ir.NewFunc("other")
	z := g.NewArg(g.Body, ir.Tensor(ir.F32, 4), "z")
	sub := map[*ir.Value]*ir.Value{x: z}
	op := g.CopyOp(sum.Def, sub)
	if op.Operands[0] != z || op.Operands[1] != y || sub[sum] != op.Result() || op.Result().Def != op || op.Result().Sharding != sum.Sharding {
		t.Errorf("copied %v", op)
	}
	if len(sum.Def.Operands) != 2 || sum.Def.Operands[0] != x {
		t.Error("the original changed")
	}
}

// Renumber leaves dense IDs in order of definition, and a program that
// verifies.
func TestRenumber(t *testing.T) {
	m := seedModule()
	f := m.Func("main")
	for range 5 {
		f.NewValue(ir.Tensor(ir.F32), "lost")
	}
	f.Renumber()
	var last ir.ID
	each(&ir.Module{Funcs: []*ir.Func{f}}, func(x any) {
		if v, ok := x.(*ir.Value); ok {
			if v.ID != last+1 {
				t.Errorf("%d follows %d", v.ID, last)
			}
			last = v.ID
		}
	})
	if f.NumIDs() != int(last)+1 {
		t.Errorf("%d IDs, the last is %d", f.NumIDs(), last)
	}
	if err := verify.Verify(m); err != nil {
		t.Error(err)
	}
}

// Captures are the values from outside, once each, in order of use.
func TestCaptures(t *testing.T) {
	f := ir.NewFunc("main")
	x, p := f.NewArg(f.Body, ir.Tensor(ir.F32), "x"), f.NewArg(f.Body, ir.Tensor(ir.I1), "p")
	b := ir.NewBuilder(f)
	yes, no := new(ir.Block), new(ir.Block)
	in := b.In(yes)
	in.Emit(ir.Return, []*ir.Value{in.Add(in.Add(x, x), x)}, nil, nil, nil)
	inner := new(ir.Block)
	b.In(inner).Emit(ir.Return, []*ir.Value{x}, nil, nil, nil)
	in = b.In(no)
	in.Emit(ir.Return, []*ir.Value{in.Emit(ir.If, []*ir.Value{p}, nil, []*ir.Block{inner, inner}, nil).Result()}, nil, nil, nil)
	op := b.Emit(ir.If, []*ir.Value{p}, nil, []*ir.Block{yes, no}, nil)
	if got := op.Captures(); len(got) != 2 || got[0] != x || got[1] != p {
		t.Errorf("captures %v", got)
	}
}

// Attributes are found by name, and changing a copy leaves the original.
func TestAttrs(t *testing.T) {
	as := ir.AttrsOf(ir.NamedAttr{Name: "b", Attr: ir.I64Attr(2)}, ir.NamedAttr{Name: "a", Attr: ir.Unit{}}, ir.NamedAttr{Name: "none", Attr: nil}, ir.NamedAttr{Name: "c", Attr: ir.Str("x\"y")})
	if got, want := as.String(), `{a, b = 2 : i64, c = "x\22y"}`; got != want {
		t.Errorf("prints %s, want %s", got, want)
	}
	c := as
	c.Set("b", ir.I64Attr(3))
	c.Set("bb", ir.Sym("odd name"))
	c.Delete("a")
	if as.Int("b") != 2 || c.Int("b") != 3 || !as.Has("a") || c.Has("a") || c.Sym("bb") != "odd name" {
		t.Errorf("%s and %s", as, c)
	}
	if got, want := c.String(), `{b = 3 : i64, bb = @"odd name", c = "x\22y"}`; got != want {
		t.Errorf("prints %s, want %s", got, want)
	}
	if !as.Bool("a") || as.Int("c") != 0 || as.Ints("a") != nil || as.Str("b") != "" || as.Literal("b") != nil {
		t.Error("an attribute of another type is not the zero value")
	}
	dense := ir.AttrsOf(ir.NamedAttr{Name: "l", Attr: ir.Ints64(ir.Tensor(ir.I64, 3), 1, 2, 3)}, ir.NamedAttr{Name: "s", Attr: ir.SplatOf(ir.Tensor(ir.I64, 2), 7)})
	if l, s := dense.Ints("l"), dense.Ints("s"); len(l) != 3 || l[2] != 3 || len(s) != 2 || s[1] != 7 {
		t.Errorf("lists are %v and %v", l, s)
	}
}

// Every form prints and is read back.
func TestFormText(t *testing.T) {
	for f := range ir.Form(1 << len(ir.FormTable)) {
		if g, ok := ir.ParseForm(f.String()); !ok || g != f {
			t.Errorf("%q is read as %q", f, g)
		}
	}
	if _, ok := ir.ParseForm("staged finished"); ok {
		t.Error("an unknown property is accepted")
	}
}
