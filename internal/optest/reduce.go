package optest

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// sides are the shapes of two operands with dot dimension numbers d.
func (p *Program) sides() (d ir.Dot, l, r []int) {
	l, r = p.Sizes(p.IntN(4)), p.Sizes(p.IntN(4))
	left, right := p.Perm(len(l)), p.Perm(len(r))
	for i := range p.IntN(min(len(l), len(r)) + 1) {
		r[right[i]] = l[left[i]]
		if p.IntN(2) == 0 {
			d.LhsBatch, d.RhsBatch = append(d.LhsBatch, left[i]), append(d.RhsBatch, right[i])
		} else {
			d.LhsContract, d.RhsContract = append(d.LhsContract, left[i]), append(d.RhsContract, right[i])
		}
	}
	return d, l, r
}

// reduce combines x by k along some dimensions, from init.
func (p *Program) reduce(k ir.Kind, x, init *ir.Value) []*ir.Value {
	return []*ir.Value{p.B.Reduce(k, x, init, p.some(x.Type.Rank())...)}
}

// argmax reduces x and its numbers along a dimension to the largest element
// and where it stands.
func (p *Program) Argmax(x, init *ir.Value, dims ...int) []*ir.Value {
	r := new(ir.Block)
	var a []*ir.Value
	for i := range 4 {
		a = append(a, p.B.Func.NewArg(r, ir.Tensor([]ir.DType{ir.F64, ir.I32}[i%2]), ""))
	}
	in := p.B.In(r)
	more := in.Compare("GT", a[0], a[2])
	first := in.Binary(ir.Or, more, in.Binary(ir.And, in.Compare("EQ", a[0], a[2]), in.Compare("LT", a[1], a[3])))
	in.Emit(ir.Return, []*ir.Value{in.Select(more, a[0], a[2]), in.Select(first, a[1], a[3])}, nil, nil, nil)
	number := p.B.Iota(x.Type.WithElem(ir.I32), dims[0])
	return p.B.Emit(ir.Reduce, []*ir.Value{x, number, init, p.B.I32(-1)}, ir.AttrsOf(facts.Named("dimensions", ir.Ints(dims))), []*ir.Block{r}, nil).Results
}

// byFirst is a comparator that orders by the first of operands.
func (p *Program) byFirst(direction string, operands ...*ir.Value) *ir.Block {
	r := new(ir.Block)
	for _, v := range operands {
		p.B.Func.NewArg(r, ir.Tensor(v.Type.Elem), "")
		p.B.Func.NewArg(r, ir.Tensor(v.Type.Elem), "")
	}
	in := p.B.In(r)
	in.Emit(ir.Return, []*ir.Value{in.Compare(direction, r.Args[0], r.Args[1])}, nil, nil, nil)
	return r
}

var reduceCases = []Case{
	{Name: "dot_general", Build: func(p *Program) []*ir.Value {
		d, l, r := p.sides()
		return []*ir.Value{p.B.Dot(p.Float(l...), p.Float(r...), d)}
	}},
	{Name: "dot_general of one side", Linear: true, Build: func(p *Program) []*ir.Value {
		d, l, r := p.sides()
		x, y := p.Float(l...), p.B.Const(p.Numbers(-1, 1, ir.Tensor(ir.F64, r...)))
		flipped := ir.Dot{LhsBatch: d.RhsBatch, RhsBatch: d.LhsBatch, LhsContract: d.RhsContract, RhsContract: d.LhsContract}
		return []*ir.Value{p.B.Dot(x, y, d), p.B.Dot(y, x, flipped)}
	}},
	{Name: "dot_general of mixed types", Build: func(p *Program) []*ir.Value {
		d, l, r := p.sides()
		x, y := p.typed(ir.BF16, l...), p.typed(ir.F32, r...)
		narrow := p.B.Dot(x, y, d)
		attrs := ir.AttrsOf(facts.Named("dot_dimension_numbers", d))
		wide := p.B.Emit(ir.DotGeneral, []*ir.Value{x, y}, attrs, nil, []*ir.Type{narrow.Type.WithElem(ir.F64)}).Results
		return append(wide, narrow)
	}},
	{Name: "reduce to wider types", Linear: true, Build: func(p *Program) []*ir.Value {
		x, y := p.typed(ir.BF16, 3, 2), p.typed(ir.F32, 3, 2)
		zero := p.B.Splat(ir.Tensor(ir.BF16), 0)
		index := p.B.Const(ir.Ints64(ir.Tensor(ir.I32, 1), 1))
		dims := ir.ScatterDims{UpdateWindowDims: []int{0}, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}}
		return slices.Concat(
			p.B.Emit(ir.Reduce, []*ir.Value{x, zero}, ir.AttrsOf(facts.Named("dimensions", ir.Ints{0})), []*ir.Block{p.B.Combiner(ir.Add, ir.F32)}, nil).Results,
			p.B.Emit(ir.ReduceWindow, []*ir.Value{x, zero}, ir.AttrsOf(facts.Named("window_dimensions", ir.Ints{2, 1})), []*ir.Block{p.B.Combiner(ir.Add, ir.F32)}, nil).Results,
			p.B.Emit(ir.Scatter, []*ir.Value{y, index, p.typed(ir.F32, 2)}, ir.AttrsOf(facts.Named("scatter_dimension_numbers", dims)), []*ir.Block{p.B.Combiner(ir.Add, ir.F64)}, nil).Results,
		)
	}},
	{Name: "reduce by others to wider types", Build: func(p *Program) []*ir.Value {
		x := p.apart(3, 2)
		x.Type = x.Type.WithElem(ir.BF16)
		one, dims := p.B.Splat(ir.Tensor(ir.BF16), 1), ir.AttrsOf(facts.Named("dimensions", ir.Ints{1}))
		return slices.Concat(
			p.B.Emit(ir.Reduce, []*ir.Value{x, one}, dims, []*ir.Block{p.B.Combiner(ir.Multiply, ir.F32)}, nil).Results,
			p.B.Emit(ir.Reduce, []*ir.Value{x, one}, dims, []*ir.Block{p.B.Combiner(ir.Maximum, ir.F32)}, nil).Results,
		)
	}},
	{Name: "reduce by add", Linear: true, Build: func(p *Program) []*ir.Value {
		return p.reduce(ir.Add, p.Float(p.shape()...), p.Float())
	}},
	{Name: "reduce by multiply", Build: func(p *Program) []*ir.Value {
		return p.reduce(ir.Multiply, p.Float(p.shape()...), p.Float())
	}},
	{Name: "reduce by multiply with zeros", Build: func(p *Program) []*ir.Value {
		x := p.Float(2, 3)
		return p.reduce(ir.Multiply, p.B.Select(p.booleans(2, 3), x, p.B.Sub(x, x)), p.Float())
	}},
	{Name: "reduce by maximum", Build: func(p *Program) []*ir.Value {
		return p.reduce(ir.Maximum, p.apart(p.shape()...), p.Within(-0.03, -0.01))
	}},
	{Name: "reduce by minimum", Build: func(p *Program) []*ir.Value {
		return p.reduce(ir.Minimum, p.apart(p.shape()...), p.B.Splat(ir.Tensor(ir.F64), 100))
	}},
	{Name: "reduce by choice", Build: func(p *Program) []*ir.Value {
		x := p.apart(p.Sizes(3)...)
		init := p.Within(-0.03, -0.01)
		return slices.Concat(p.Argmax(x, init, 1), p.Argmax(x, init, 2, 0))
	}},
	{Name: "reduce of two", Linear: true, Build: func(p *Program) []*ir.Value {
		s := p.Sizes(2)
		r := new(ir.Block)
		var a []*ir.Value
		for range 4 {
			a = append(a, p.B.Func.NewArg(r, ir.Tensor(ir.F64), ""))
		}
		in := p.B.In(r)
		in.Emit(ir.Return, []*ir.Value{in.Add(a[0], a[2]), in.Add(a[3], a[1])}, nil, nil, nil)
		zero := p.B.Splat(ir.Tensor(ir.F64), 0)
		return p.B.Emit(ir.Reduce, []*ir.Value{p.Float(s...), p.Float(s...), zero, zero}, ir.AttrsOf(facts.Named("dimensions", ir.Ints{p.IntN(2)})), []*ir.Block{r}, nil).Results
	}},
	{Name: "sort", Build: func(p *Program) []*ir.Value {
		x := p.apart(p.Sizes(1 + p.IntN(3))...)
		dim := p.IntN(2*x.Type.Rank()) - x.Type.Rank()
		return p.B.Emit(ir.Sort, []*ir.Value{x}, ir.AttrsOf(facts.Named("dimension", ir.I64Attr(dim))), []*ir.Block{p.byFirst("LT", x)}, nil).Results
	}},
	{Name: "sort of several", Build: func(p *Program) []*ir.Value {
		x := p.apart(p.Sizes(2)...)
		s := x.Type.Shape
		operands := []*ir.Value{x, p.Float(s...), p.Integers(0, 9, s...), p.Float(s...)}
		return p.B.Emit(ir.Sort, operands, ir.AttrsOf(facts.Named("dimension", ir.I64Attr(p.IntN(2)))), []*ir.Block{p.byFirst("GT", operands...)}, nil).Results
	}},
	{Name: "sort by equal keys", Linear: true, Build: func(p *Program) []*ir.Value {
		k := p.Integers(0, 2, 7)
		operands := []*ir.Value{k, p.Float(7)}
		return p.B.Emit(ir.Sort, operands, ir.AttrsOf(facts.Named("dimension", ir.I64Attr(0)), facts.Named("is_stable", ir.Bool(true))), []*ir.Block{p.byFirst("LT", operands...)}, nil).Results
	}},
}
