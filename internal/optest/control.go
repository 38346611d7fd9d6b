package optest

import (
	"ppc/ir"
	"ppc/ir/facts"
)

// branch is a region without arguments that returns what build makes.
func (p *Program) Branch(build func(b *ir.Builder) []*ir.Value) *ir.Block {
	r := new(ir.Block)
	in := p.B.In(r)
	in.Emit(ir.Return, build(in), nil, nil, nil)
	return r
}

var controlCases = []Case{
	{Name: "case", Build: func(p *Program) []*ir.Value {
		x, y := p.Float(2, 2), p.Float(2, 2)
		z := p.B.Mul(x, y)
		regions := []*ir.Block{
			p.Branch(func(b *ir.Builder) []*ir.Value { s := b.Unary(ir.Sine, x); return []*ir.Value{b.Mul(s, s), y} }),
			p.Branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Mul(z, y), b.Splat(x.Type, 3)} }),
			p.Branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{y, x} }),
		}
		return p.B.Emit(ir.Case, []*ir.Value{p.Integers(-1, 3)}, nil, regions, nil).Results
	}},
	{Name: "if in if", Build: func(p *Program) []*ir.Value {
		x, y := p.Float(3), p.Float(3)
		inner := func(b *ir.Builder) []*ir.Value {
			e := b.Unary(ir.Tanh, b.Mul(x, y))
			return b.Emit(ir.If, []*ir.Value{p.booleans()}, nil, []*ir.Block{
				p.Branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Mul(e, x)} }),
				p.Branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Unary(ir.Cosine, e)} }),
			}, nil).Results
		}
		return p.B.Emit(ir.If, []*ir.Value{p.booleans()}, nil, []*ir.Block{p.Branch(inner), p.Branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Mul(x, x)} })}, nil).Results
	}},
	{Name: "if around a loop around an if", Build: func(p *Program) []*ir.Value {
		x, w := p.Within(-1, 1, 3), p.Within(-1, 1, 3)
		odd := func(b *ir.Builder, i *ir.Value) *ir.Value {
			return b.Compare("EQ", b.Binary(ir.Remainder, i, b.I32(2)), b.I32(1))
		}
		loop := func(b *ir.Builder) []*ir.Value {
			body := new(ir.Block)
			i, c := b.Func.NewArg(body, ir.Tensor(ir.I32), ""), b.Func.NewArg(body, x.Type, "")
			in := b.In(body)
			h := in.Unary(ir.Sine, in.Mul(c, w))
			v := in.Emit(ir.If, []*ir.Value{odd(in, i)}, nil, []*ir.Block{
				p.Branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Mul(h, c)} }),
				p.Branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Add(h, w)} }),
			}, nil).Result()
			in.Emit(ir.PPYield, []*ir.Value{v, h}, nil, nil, nil)
			return b.Emit(ir.PPScan, []*ir.Value{x}, ir.AttrsOf(facts.Named("carries", ir.I64Attr(1)), facts.Named("trip_count", ir.I64Attr(3))), []*ir.Block{body}, nil).Results
		}
		p.B.Block = p.B.Func.Body
		return p.B.Emit(ir.If, []*ir.Value{p.B.Splat(ir.Tensor(ir.I1), 1)}, nil, []*ir.Block{
			p.Branch(loop),
			p.Branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{x, b.Broadcast(x, []int{3, 3}, 1)} }),
		}, nil).Results
	}},
	{Name: "while", Build: func(p *Program) []*ir.Value {
		start, step := p.IntN(7)-3, []int{-2, -1, 1, 3}[p.IntN(4)]
		return p.while(start, step, p.IntN(5), p.IntN(6))
	}},
	{Name: "pp.scan", Build: func(p *Program) []*ir.Value {
		x, w := p.Within(-1, 1, 3), p.Within(-1, 1, 4, 3)
		body := new(ir.Block)
		for _, t := range []*ir.Type{ir.Tensor(ir.I32), x.Type, x.Type} {
			p.B.Func.NewArg(body, t, "")
		}
		in := p.B.In(body)
		h := in.Unary(ir.Sine, in.Mul(body.Args[1], body.Args[2]))
		scaled := in.Mul(h, in.Broadcast(in.Convert(body.Args[0], ir.F64), x.Type.Shape))
		in.Emit(ir.PPYield, []*ir.Value{in.Add(h, body.Args[2]), scaled}, nil, nil, nil)
		attrs := ir.AttrsOf(facts.Named("carries", ir.I64Attr(1)), facts.Named("trip_count", ir.I64Attr(4)))
		if p.IntN(2) == 0 {
			attrs.Set("reverse", ir.Unit{})
		}
		return p.B.Emit(ir.PPScan, []*ir.Value{x, w}, attrs, []*ir.Block{body}, nil).Results
	}},
	{Name: "pp.checkpoint", Build: func(p *Program) []*ir.Value {
		x, y := p.Float(3), p.Float(3)
		body := new(ir.Block)
		a, b := p.B.Func.NewArg(body, x.Type, ""), p.B.Func.NewArg(body, y.Type, "")
		in := p.B.In(body)
		in.Emit(ir.PPYield, []*ir.Value{in.Unary(ir.Sine, in.Mul(a, b))}, nil, nil, nil)
		policy := facts.Named("policy", ir.Dict(ir.AttrsOf(facts.Named("remat", ir.Str("full")))))
		return p.B.Emit(ir.PPCheckpoint, []*ir.Value{x, y}, ir.AttrsOf(policy), []*ir.Block{body}, nil).Results
	}},
	{Name: "optimization_barrier", Linear: true, Build: func(p *Program) []*ir.Value {
		vs := []*ir.Value{p.Float(2), p.Integers(0, 3), p.Float()}
		return p.B.Emit(ir.OptimizationBarrier, vs, nil, nil, ir.Types(vs)).Results
	}},
}

// while is a loop over a counter that takes the given number of steps from
// start; form says how the loop asks whether it has come to an end.
func (p *Program) while(start, step, trips, form int) []*ir.Value {
	b := p.B
	x, w := p.Within(-1, 1, 2), p.Within(-1, 1, 5, 2)
	init := []*ir.Value{x, b.I32(start), w, b.Broadcast(b.Splat(ir.Tensor(ir.F64), 0), []int{5, 2})}
	cond, do := new(ir.Block), new(ir.Block)
	for _, v := range init {
		b.Func.NewArg(cond, v.Type, "")
		b.Func.NewArg(do, v.Type, "")
	}
	test, i := b.In(cond), cond.Args[1]
	limit := start + step*trips
	up := step > 0
	direction := map[bool]string{true: "LT", false: "GT"}[up]
	switch form {
	case 0:
		direction = "NE"
	case 1:
		direction, limit = map[bool]string{true: "LE", false: "GE"}[up], limit-step
	case 2:
		limit -= max(step, -step) / step * (max(step, -step) - 1) // as many iterations
	}
	more := test.Compare(direction, i, test.I32(limit))
	if form == 3 {
		more = test.Compare(map[bool]string{true: "GT", false: "LT"}[up], test.I32(limit), i)
	}
	test.Emit(ir.Return, []*ir.Value{more}, nil, nil, nil)

	in := b.In(do)
	c, i, rows, acc := do.Args[0], do.Args[1], do.Args[2], do.Args[3]
	row := in.Index(rows, 0, in.Binary(ir.Remainder, in.Add(i, in.I32(30)), in.I32(5)))
	h := in.Unary(ir.Sine, in.Mul(c, row))
	scale := in.Add(in.Mul(in.Broadcast(in.Convert(i, ir.F64), []int{2}), in.Splat(x.Type, 0.1)), h)
	next := in.Add(i, in.I32(step))
	if form == 4 {
		next = in.Sub(i, in.I32(-step))
	}
	in.Emit(ir.Return, []*ir.Value{in.Mul(h, scale), next, rows, in.SetIndex(acc, 0, in.Binary(ir.Remainder, in.Add(i, in.I32(30)), in.I32(5)), h)}, nil, nil, nil)
	out := b.Emit(ir.While, init, nil, []*ir.Block{cond, do}, nil).Results
	return append(out, b.Convert(out[1], ir.F64))
}
