package gradient

import (
	"math"

	"ppc/ir"
	"ppc/ir/facts"
)

// The rules of functions of the dialect chlo.

// factor is the rule of an op whose derivative by its operand x is d(x, y), y its
// result.
func factor(d func(t *tape, x, y *ir.Value) *ir.Value) operandGrad {
	return func(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
		return t.b.Mul(ct, d(t, op.Operands[0], op.Result()))
	}
}

// overRoot is the rule of an op whose derivative is sign / sqrt(x² times square +
// one).
func overRoot(sign, square, one float64) operandGrad {
	return func(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
		x := t.need(op.Operands[0])
		s := t.b.Add(t.b.Mul(t.b.Mul(x, x), t.fill(x.Type, square)), t.fill(x.Type, one))
		return t.b.Mul(ct, t.b.Mul(t.fill(x.Type, sign), t.b.Unary(ir.Rsqrt, s)))
	}
}

// overSum is the rule of an op whose derivative is 1 / (1 + x² times square).
func overSum(square float64) operandGrad {
	return func(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
		x := t.need(op.Operands[0])
		return t.b.Div(ct, t.b.Add(t.b.Mul(t.b.Mul(x, x), t.fill(x.Type, square)), t.fill(x.Type, 1)))
	}
}

// gaussian is the rule of an op whose derivative is k exp(-x²).
func gaussian(k float64) operandGrad {
	return factor(func(t *tape, x, _ *ir.Value) *ir.Value {
		v := t.need(x)
		return t.b.Mul(t.fill(v.Type, k), t.b.Unary(ir.Exponential, t.b.Unary(ir.Negate, t.b.Mul(v, v))))
	})
}

// erf_inv(x)' = sqrt(pi)/2 exp(y²)
func gradErfInv(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	y := t.need(op.Result())
	return t.b.Mul(ct, t.b.Mul(t.fill(y.Type, math.Sqrt(math.Pi)/2), t.b.Unary(ir.Exponential, t.b.Mul(y, y))))
}

// of is the rule of an op whose derivative is the op k of its operand.
func of(k ir.Kind) operandGrad {
	return factor(func(t *tape, x, _ *ir.Value) *ir.Value { return t.b.Unary(k, t.need(x)) })
}

// namedRules are the rules of ops that have no Kind, by name.
var namedRules = map[string]gradRule{
	"chlo.polygamma": byOperand(noOperand(0, "order", "its derivative by the order has no closed form"), gradPolygamma),
	"chlo.zeta":      byOperand(noOperand(0, "exponent", "its derivative by the exponent has no closed form"), gradZeta),
}

// noOperand is the rule of operand i of an op that has a gradient by others.
func noOperand(i int, what, why string) operandGrad {
	return func(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
		if t.d.err == nil {
			t.d.err = t.d.noOperandGradient(op, i, what, why)
		}
		return t.zeros(ct.Type)
	}
}

// named is the result of the op without a Kind called name.
func (t *tape) named(name string, x, y *ir.Value) *ir.Value {
	op := t.b.Emit(ir.Unknown, []*ir.Value{x, y}, nil, nil, []*ir.Type{y.Type})
	op.Spelling = name
	return op.Result()
}

// trigamma is polygamma(1, x), the derivative of digamma.
func trigamma(t *tape, x, _ *ir.Value) *ir.Value {
	x = t.need(x)
	return t.named("chlo.polygamma", t.fill(x.Type, 1), x)
}

// polygamma(n, x)' by x = polygamma(n + 1, x)
func gradPolygamma(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	n, x := t.need(op.Operands[0]), t.need(op.Operands[1])
	return t.b.Mul(ct, t.named("chlo.polygamma", t.b.Add(n, t.fill(n.Type, 1)), x))
}

// zeta(s, q)' by q = -s zeta(s + 1, q)
func gradZeta(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	s, q := t.need(op.Operands[0]), t.need(op.Operands[1])
	return t.b.Mul(ct, t.b.Unary(ir.Negate, t.b.Mul(s, t.named("chlo.zeta", t.b.Add(s, t.fill(s.Type, 1)), q))))
}

// (x²)' = 2 x
func gradSquare(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	x := t.need(op.Operands[0])
	return t.b.Mul(ct, t.b.Mul(t.fill(x.Type, 2), x))
}

// gradTopK scatters the cotangents of the k largest elements to the indices that
// the op returns.
func gradTopK(t *tape, op *ir.Op, ct []*ir.Value) {
	x := op.Operands[0]
	if ct[0] == nil || !t.wants(x) {
		return
	}
	b, rank := t.b, x.Type.Rank()
	shape := append(append([]int{}, ct[0].Type.Shape...), x.Type.Shape[rank-1]) // [..., k, n]
	full := x.Type.WithShape(shape...)
	here := b.Compare("EQ", b.Iota(full.WithElem(ir.I32), rank), b.Broadcast(t.need(op.Results[1]), shape, facts.UpTo(rank)...))
	placed := b.Select(here, b.Broadcast(ct[0], shape, facts.UpTo(rank)...), t.zeros(full))
	t.add(x, t.sum(placed, rank-1))
}
