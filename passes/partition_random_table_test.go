package passes

import (
	"slices"
	"sync"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
)

// A tableOp is an op of the table that computes element by element, and the
// types of numbers that it takes.
type tableOp struct {
	kind  ir.Kind
	types []ir.DType
}

// numberTypes are those that random ops compute with.
var numberTypes = []ir.DType{ir.F64, ir.I32, ir.I1, ir.C128}

// tableOps are the ops of the table that compute element by element, with every
// type that they take; of ops of different types, choices by truth values.
var tableOps = sync.OnceValue(func() []tableOp {
	var out []tableOp
	for _, k := range ir.Kinds() {
		if !k.Has(ir.Elementwise) || k.Has(ir.Collective) || k.Has(ir.Pipeline) || k.Has(ir.Composite) || k >= ir.ShardingConstraint || k == ir.Convert {
			continue
		}
		for _, t := range numberTypes {
			types := slices.Repeat([]ir.DType{t}, k.NumOperands().Max)
			if takes(k, types) {
				out = append(out, tableOp{k, types})
			} else if types[0] = ir.I1; takes(k, types) {
				out = append(out, tableOp{k, types})
			}
		}
	}
	return out
})

// takes reports whether k computes with numbers of such types.
func takes(k ir.Kind, types []ir.DType) bool {
	f := ir.NewFunc("main")
	op := &ir.Op{Kind: k, Attrs: tableAttrs(k, func(int) int { return 0 })}
	var args []*ir.Literal
	for _, t := range types {
		op.Operands = append(op.Operands, f.NewArg(f.Body, ir.Tensor(t), ""))
		args = append(args, ir.SplatOf(ir.Tensor(t), 1))
	}
	if _, r := ir.Infer(op); r != nil {
		return false
	}
	b := ir.NewBuilder(f)
	b.Return(b.Emit(k, op.Operands, op.Attrs, nil, nil).Result())
	_, err := eval.Run(&ir.Module{Funcs: []*ir.Func{f}}, f, args, eval.Options{})
	return err == nil
}

// tableAttrs are attributes that an elementwise op must have, chosen by pick
// among so many.
func tableAttrs(k ir.Kind, pick func(n int) int) ir.Attrs {
	var attrs ir.Attrs
	for _, s := range k.Specs() {
		switch {
		case s.Optional:
		case s.Kind == ir.EnumAttr:
			attrs.Set(s.Name, ir.HLOEnum(s.Set, s.Words[pick(len(s.Words))]))
		case s.Kind == ir.IntAttr:
			attrs.Set(s.Name, ir.Int{Value: 3 + pick(4), Type: ir.I32})
		}
	}
	return attrs
}

// elementwise is any op of the table that computes element by element.
func (g *programMaker) elementwise() *ir.Value {
	ops := tableOps()
	op, x := ops[g.r.IntN(len(ops))], g.pick()
	operands := make([]*ir.Value, len(op.types))
	for i, t := range op.types {
		operands[i] = g.as(x, t)
		x = g.pickLike(x)
	}
	return g.tame(g.b.Emit(op.kind, operands, tableAttrs(op.kind, g.r.IntN), nil, nil).Result())
}

// as is x in numbers of another type.
func (g *programMaker) as(x *ir.Value, t ir.DType) *ir.Value {
	switch {
	case t == ir.I1:
		return g.b.Compare("GT", x, g.b.Splat(x.Type, 0))
	case t.IsComplex():
		return g.b.Binary(ir.ComplexOp, x, g.pickLike(x))
	}
	return g.b.Convert(x, t)
}

// tame is x in small integers, which are exact in sums of any order.
func (g *programMaker) tame(x *ir.Value) *ir.Value {
	b := g.b
	if x.Type.Elem.IsComplex() {
		x = b.Add(b.Unary(ir.Real, x), b.Unary(ir.Imag, x))
	}
	if !x.Type.Elem.IsFloat() {
		return g.small(b.Convert(x, ir.F64))
	}
	x = b.Select(b.Unary(ir.IsFinite, x), x, b.Splat(x.Type, 0))
	bound := func(v float64) *ir.Value { return b.Splat(ir.Tensor(ir.F64), v) }
	x = b.Emit(ir.Clamp, []*ir.Value{bound(-16), x, bound(16)}, nil, nil, nil).Result()
	return b.Unary(ir.RoundNearestEven, b.Mul(x, b.Splat(x.Type, 4)))
}

// bits takes numbers apart into halves and puts them together again.
func (g *programMaker) bits() *ir.Value {
	x := g.pick()
	if x.Type.Rank() > 3 {
		return nil
	}
	halves := x.Type.WithElem(ir.I32).WithShape(append(slices.Clone(x.Type.Shape), 2)...)
	v := g.b.Emit(ir.BitcastConvert, []*ir.Value{x}, nil, nil, []*ir.Type{halves}).Result()
	v = g.b.Constrain(v, g.sharding(halves.Shape, true))
	return g.b.Emit(ir.BitcastConvert, []*ir.Value{v}, nil, nil, []*ir.Type{x.Type}).Result()
}

// random is random bits, as numbers.
func (g *programMaker) random() *ir.Value {
	state := g.b.Const(ir.Ints64(ir.Tensor(ir.UI64, 2), g.r.IntN(100), g.r.IntN(100)))
	state.Sharding = nil
	t := g.pick().Type
	op := g.b.Emit(ir.RngBitGenerator, []*ir.Value{state}, ir.AttrsOf(facts.Named("rng_algorithm", ir.HLOEnum("rng_algorithm", "THREE_FRY"))), nil,
		[]*ir.Type{state.Type, t.WithElem(ir.UI32)})
	return g.small(g.b.Convert(op.Results[1], ir.F64))
}

// reduceOther reduces by any op that may combine numbers, and any type of these.
func (g *programMaker) reduceOther() *ir.Value {
	var ops []tableOp
	for _, op := range tableOps() {
		if op.kind.Has(ir.Associative) && (op.types[0] == ir.I32 || op.types[0] == ir.I1) {
			ops = append(ops, op)
		}
	}
	op, x := ops[g.r.IntN(len(ops))], g.pick()
	if x.Type.Rank() < 2 {
		return nil
	}
	v := g.as(x, op.types[0])
	init := g.b.Splat(ir.Tensor(op.types[0]), float64(g.r.IntN(2)))
	return g.tame(g.b.Reduce(op.kind, v, init, g.r.Perm(x.Type.Rank())[:1+g.r.IntN(x.Type.Rank()-1)]...))
}

// algebra factors, solves or transforms matrices with rows of numbers in them.
func (g *programMaker) algebra() *ir.Value {
	b, x := g.b, g.pick()
	if g.r.IntN(3) == 0 {
		length := x.Type.Shape[g.r.IntN(x.Type.Rank()):]
		length = length[:min(len(length), 3)]
		if len(length) < x.Type.Rank() && x.Type.Rank() > 3 {
			return nil
		}
		attrs := ir.AttrsOf(facts.Named("fft_type", ir.HLOEnum("fft_type", "FFT")), facts.Named("fft_length", ir.Ints(slices.Clone(length))))
		return g.tame(b.Emit(ir.FFT, []*ir.Value{b.Binary(ir.ComplexOp, x, g.pickLike(x))}, attrs, nil, nil).Result())
	}
	if x.Type.Rank() > 2 {
		return nil
	}
	n := x.Type.Shape[x.Type.Rank()-1]
	shape := append(slices.Clone(x.Type.Shape), n)
	same := b.Compare("EQ", b.Iota(ir.Tensor(ir.I32, shape...), len(shape)-1), b.Iota(ir.Tensor(ir.I32, shape...), len(shape)-2))
	stretched := b.Broadcast(x, shape, facts.UpTo(x.Type.Rank())...)
	a := b.Add(stretched, b.Mul(b.Convert(same, ir.F64), b.Splat(stretched.Type, 64)))
	lower := facts.Named("lower", ir.Bool(g.r.IntN(2) == 0))
	if g.r.IntN(2) == 0 {
		return g.tame(b.Emit(ir.Cholesky, []*ir.Value{a}, ir.AttrsOf(lower), nil, nil).Result())
	}
	attrs := ir.AttrsOf(lower, facts.Named("left_side", ir.Bool(g.r.IntN(2) == 0)), facts.Named("unit_diagonal", ir.Bool(false)), facts.Named("transpose_a", ir.HLOEnum("transpose", "TRANSPOSE")))
	return g.tame(b.Emit(ir.TriangularSolve, []*ir.Value{a, b.Constrain(stretched, g.sharding(shape, true))}, attrs, nil, nil).Result())
}

// sortPairs sorts numbers together with others.
func (g *programMaker) sortPairs() *ir.Value {
	x := g.pick()
	y := g.pickLike(x)
	r := new(ir.Block)
	var a [4]*ir.Value
	for i := range a {
		a[i] = g.b.Func.NewArg(r, ir.Tensor(ir.F64), "")
	}
	in := g.b.In(r)
	in.Emit(ir.Return, []*ir.Value{in.Compare("GT", a[0], a[1])}, nil, nil, nil)
	attrs := ir.AttrsOf(facts.Named("dimension", ir.I64Attr(g.r.IntN(x.Type.Rank()))), facts.Named("is_stable", ir.Bool(true)))
	return g.b.Emit(ir.Sort, []*ir.Value{x, y}, attrs, []*ir.Block{r}, nil).Results[1]
}
