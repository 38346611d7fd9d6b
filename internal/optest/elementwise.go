package optest

import (
	"ppc/ir"
	"ppc/ir/facts"
)

func unaryCase(name string, k ir.Kind, low, high float64) Case {
	return Case{Name: name, Build: func(p *Program) []*ir.Value {
		return []*ir.Value{p.B.Unary(k, p.Within(low, high, p.shape()...))}
	}}
}

func binaryCase(name string, k ir.Kind, low, high float64) Case {
	return Case{Name: name, Build: func(p *Program) []*ir.Value {
		s := p.shape()
		x, y := p.Within(low, high, s...), p.Within(low, high, s...)
		return []*ir.Value{p.B.Binary(k, x, y), p.B.Binary(k, x, x)}
	}}
}

// apartCase: of two operands that are nowhere close.
func apartCase(name string, k ir.Kind) Case {
	return Case{Name: name, Build: func(p *Program) []*ir.Value {
		s := p.shape()
		xy := p.apart(append([]int{2}, s...)...)
		half := func(i int) *ir.Value { return p.B.Reshape(p.B.SliceDim(xy, 0, i, i+1), s...) }
		return []*ir.Value{p.B.Binary(k, half(0), half(1))}
	}}
}

var elementwiseCases = []Case{
	{Name: "abs", Build: func(p *Program) []*ir.Value { return []*ir.Value{p.B.Unary(ir.Abs, p.apart(p.shape()...))} }},
	unaryCase("cbrt", ir.Cbrt, 0.5, 2),
	unaryCase("cbrt of negative", ir.Cbrt, -2, -0.5),
	unaryCase("cosine", ir.Cosine, -3, 3),
	unaryCase("exponential", ir.Exponential, -2, 2),
	unaryCase("exponential_minus_one", ir.ExponentialMinusOne, -2, 2),
	unaryCase("log", ir.Log, 0.5, 2),
	unaryCase("log_plus_one", ir.LogPlusOne, -0.5, 2),
	unaryCase("logistic", ir.Logistic, -3, 3),
	{Name: "negate", Linear: true, Build: func(p *Program) []*ir.Value { return []*ir.Value{p.B.Unary(ir.Negate, p.Float(p.shape()...))} }},
	unaryCase("rsqrt", ir.Rsqrt, 0.5, 2),
	unaryCase("sine", ir.Sine, -3, 3),
	unaryCase("sqrt", ir.Sqrt, 0.5, 2),
	unaryCase("tan", ir.Tan, -1, 1),
	unaryCase("tanh", ir.Tanh, -3, 3),
	{Name: "convert", Linear: true, Build: func(p *Program) []*ir.Value {
		x := p.Float(p.shape()...)
		n := p.B.Convert(p.Integers(-3, 3, x.Type.Shape...), ir.F64)
		return []*ir.Value{p.B.Mul(n, p.B.Convert(x, ir.F64)), p.B.Convert(x, ir.I32)}
	}},
	{Name: "reduce_precision", Linear: true, Build: func(p *Program) []*ir.Value {
		return p.Attr(ir.ReducePrecision, []*ir.Value{p.Float(p.shape()...)}, facts.Named("exponent_bits", ir.Int{Value: 11, Type: ir.I32}), facts.Named("mantissa_bits", ir.Int{Value: 52, Type: ir.I32}))
	}},

	unaryCase("chlo.acos", ir.Acos, -0.9, 0.9),
	unaryCase("chlo.acosh", ir.Acosh, 1.2, 3),
	unaryCase("chlo.asin", ir.Asin, -0.9, 0.9),
	unaryCase("chlo.asinh", ir.Asinh, -3, 3),
	unaryCase("chlo.atan", ir.Atan, -3, 3),
	unaryCase("chlo.atanh", ir.Atanh, -0.9, 0.9),
	unaryCase("chlo.tan", ir.ChloTan, -1, 1),
	unaryCase("chlo.cosh", ir.Cosh, -2, 2),
	unaryCase("chlo.erf", ir.Erf, -2, 2),
	unaryCase("chlo.erf_inv", ir.ErfInv, -0.9, 0.9),
	unaryCase("chlo.erfc", ir.Erfc, -2, 2),
	unaryCase("chlo.lgamma", ir.Lgamma, 0.5, 4),
	unaryCase("chlo.digamma", ir.Digamma, 0.5, 4),
	unaryCase("chlo.sinh", ir.Sinh, -2, 2),
	unaryCase("chlo.square", ir.Square, -2, 2),
	{Name: "chlo.top_k", Build: func(p *Program) []*ir.Value {
		s := append(p.Sizes(p.IntN(2)), 2+p.IntN(4))
		return p.Attr(ir.TopK, []*ir.Value{p.apart(s...)}, facts.Named("k", ir.I64Attr(p.IntN(3))))
	}},

	{Name: "add", Linear: true, Build: func(p *Program) []*ir.Value {
		s := p.shape()
		x := p.Float(s...)
		return []*ir.Value{p.B.Add(p.B.Add(x, p.Float(s...)), x)}
	}},
	binaryCase("atan2", ir.Atan2, 0.5, 2),
	binaryCase("atan2 of negative", ir.Atan2, -2, -0.5),
	binaryCase("divide", ir.Divide, 0.5, 2),
	apartCase("maximum", ir.Maximum),
	apartCase("minimum", ir.Minimum),
	binaryCase("multiply", ir.Multiply, -2, 2),
	binaryCase("power", ir.Power, 0.5, 2),
	{Name: "power of constants", Build: func(p *Program) []*ir.Value {
		x := p.Within(-2, -0.5, p.shape()...)
		var vs []*ir.Value
		for _, n := range []float64{-1, 0, 1, 2, 3} {
			vs = append(vs, p.B.Binary(ir.Power, x, p.B.Splat(x.Type, n)))
		}
		return vs
	}},
	{Name: "remainder", Build: func(p *Program) []*ir.Value {
		s := p.shape()
		q := p.B.Convert(p.Integers(-4, 4, s...), ir.F64)
		x, y := p.Within(0.2, 0.8, s...), p.Within(1, 2, s...)
		x = p.B.Add(x, p.B.Mul(q, y)) // between two multiples of y
		return []*ir.Value{p.B.Binary(ir.Remainder, x, y), p.B.Binary(ir.Remainder, x, p.B.Unary(ir.Negate, y))}
	}},
	{Name: "subtract", Linear: true, Build: func(p *Program) []*ir.Value {
		s := p.shape()
		return []*ir.Value{p.B.Sub(p.Float(s...), p.Float(s...))}
	}},
	{Name: "select", Linear: true, Build: func(p *Program) []*ir.Value {
		s := p.shape()
		x, y := p.Float(s...), p.Float(s...)
		return []*ir.Value{p.B.Select(p.booleans(s...), x, y), p.B.Select(p.booleans(), x, y)}
	}},
	{Name: "clamp", Build: func(p *Program) []*ir.Value {
		s := p.shape()
		x := p.apart(s...)
		low, high := p.Within(-0.36, -0.34), p.Within(0.34, 0.36)
		full := p.B.Emit(ir.Clamp, []*ir.Value{p.Within(-0.56, -0.54, s...), x, p.Within(-0.16, -0.14, s...)}, nil, nil, nil).Result()
		return []*ir.Value{p.B.Emit(ir.Clamp, []*ir.Value{low, x, high}, nil, nil, nil).Result(), full,
			p.B.Emit(ir.Clamp, []*ir.Value{high, x, low}, nil, nil, nil).Result()}
	}},
}
