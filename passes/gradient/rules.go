package gradient

import (
	"maps"
	"math"

	"ppc/ir"
	"ppc/ir/facts"
)

// A gradRule adds the vector-Jacobian product of op with ct to the cotangents of
// op's floating-point operands. ct has the cotangents of the results, nil where a
// result has none; at least one has. A rule emits no ops for an operand whose
// cotangent is not needed, and reads forward values through need alone, since each
// of them may have to be saved or rematerialised.
//
// Where the forward op ignores an element of an operand, its cotangent is zero by a
// select, never by a multiplication with zero, which would make a NaN of an
// infinity.
type gradRule func(t *tape, op *ir.Op, ct []*ir.Value)

// An operandGrad is the gradient rule of one operand of an op with one result: it
// returns the operand's cotangent, given the result's, ct.
type operandGrad func(t *tape, op *ir.Op, ct *ir.Value) *ir.Value

// gradientRules holds the rule of every differentiable op. The conventions
// where a derivative does not exist are JAX's: half to each of two equal
// operands of a maximum, nothing to a clamped value at its bound.
func gradientRules() map[ir.Kind]gradRule {
	rules := elementRules()
	maps.Copy(rules, tensorRules())
	return rules
}

// elementRules are those of elementwise ops.
func elementRules() map[ir.Kind]gradRule {
	return map[ir.Kind]gradRule{
		ir.Abs:                 byOperand(gradAbs),
		ir.Cbrt:                byOperand(gradCbrt),
		ir.Cosine:              byOperand(gradCosine),
		ir.Exponential:         byOperand(gradExponential),
		ir.ExponentialMinusOne: byOperand(gradExponentialMinusOne),
		ir.Log:                 byOperand(gradLog),
		ir.LogPlusOne:          byOperand(gradLogPlusOne),
		ir.Logistic:            byOperand(gradLogistic),
		ir.Negate:              byOperand(negated),
		ir.Rsqrt:               byOperand(gradRsqrt),
		ir.Sine:                byOperand(gradSine),
		ir.Sqrt:                byOperand(gradSqrt),
		ir.Tan:                 byOperand(gradTan),
		ir.Tanh:                byOperand(gradTanh),
		ir.Convert:             byOperand(gradConvert),
		ir.Real:                byOperand(gradReal),
		ir.Imag:                byOperand(gradImag),
		ir.ComplexOp:           byOperand(gradRealPart, gradImagPart),
		ir.ReducePrecision:     byOperand(gradReducePrecision),

		ir.Add:       byOperand(same, same),
		ir.Atan2:     byOperand(gradAtan2Y, gradAtan2X),
		ir.Divide:    byOperand(gradDividend, gradDivisor),
		ir.Maximum:   byOperand(chosen("GT", 0), chosen("GT", 1)),
		ir.Minimum:   byOperand(chosen("LT", 0), chosen("LT", 1)),
		ir.Multiply:  byOperand(gradFactor(1), gradFactor(0)),
		ir.Power:     byOperand(gradBase, gradExponent),
		ir.Remainder: byOperand(same, gradModulus),
		ir.Subtract:  byOperand(same, negated),
		ir.Select:    byOperand(nil, gradOnTrue, gradOnFalse),
		ir.Clamp:     byOperand(clampedAt(0), gradClamp, clampedAt(2)),

		ir.Acos:    byOperand(overRoot(-1, -1, 1)),
		ir.Acosh:   byOperand(overRoot(1, 1, -1)),
		ir.Asin:    byOperand(overRoot(1, -1, 1)),
		ir.Asinh:   byOperand(overRoot(1, 1, 1)),
		ir.Atan:    byOperand(overSum(1)),
		ir.Atanh:   byOperand(overSum(-1)),
		ir.ChloTan: byOperand(gradTan),
		ir.Cosh:    byOperand(of(ir.Sinh)),
		ir.Digamma: byOperand(factor(trigamma)),
		ir.Erf:     byOperand(gaussian(2 / math.Sqrt(math.Pi))),
		ir.ErfInv:  byOperand(gradErfInv),
		ir.Erfc:    byOperand(gaussian(-2 / math.Sqrt(math.Pi))),
		ir.Lgamma:  byOperand(of(ir.Digamma)),
		ir.Sinh:    byOperand(of(ir.Cosh)),
		ir.Square:  byOperand(gradSquare),
	}
}

// tensorRules are those of ops that move or combine elements, and of the others.
func tensorRules() map[ir.Kind]gradRule {
	return map[ir.Kind]gradRule{
		ir.TopK:               gradTopK,
		ir.BroadcastInDim:     byOperand(gradBroadcast),
		ir.Concatenate:        gradConcatenate,
		ir.DynamicSlice:       gradDynamicSlice,
		ir.DynamicUpdateSlice: gradDynamicUpdateSlice,
		ir.Gather:             gradGather,
		ir.Pad:                byOperand(gradPad, gradPadding),
		ir.Reshape:            byOperand(gradReshape),
		ir.Reverse:            byOperand(gradReverse),
		ir.Scatter:            gradScatter,
		ir.Slice:              byOperand(gradSlice),
		ir.Transpose:          byOperand(gradTranspose),

		ir.Cholesky:        byOperand(gradCholesky),
		ir.TriangularSolve: byOperand(gradMatrix, gradSolved),
		ir.FFT:             byOperand(gradFFT),

		ir.DotGeneral:       byOperand(gradDotLeft, gradDotRight),
		ir.RaggedDot:        byOperand(gradRaggedLeft, gradRaggedRight),
		ir.Convolution:      byOperand(gradConvolutionInput, gradConvolutionKernel),
		ir.Reduce:           gradReduce,
		ir.ReduceWindow:     gradReduceWindow,
		ir.SelectAndScatter: gradSelectAndScatter,
		ir.Sort:             gradSort,

		ir.Case:                gradBranches,
		ir.If:                  gradBranches,
		ir.OptimizationBarrier: gradEach,

		ir.AllGather:         gradAllGather,
		ir.AllReduce:         gradAllReduce,
		ir.AllToAll:          gradAllToAll,
		ir.CollectivePermute: byOperand(gradPermute),
		ir.ReduceScatter:     gradReduceScatter,

		ir.ShardingConstraint: byOperand(gradConstraint),
		ir.Reshard:            byOperand(gradAsOperand),
		ir.ManualComputation:  gradManual,

		ir.PPName:   byOperand(same),
		ir.PPGather: byOperand(gradGathered),
		ir.PPRotate: byOperand(gradRotated, gradFill),
	}
}

// byOperand is the rule of an op with one result whose operand i gets the cotangent
// ps[i]; operands beyond those get none.
func byOperand(ps ...operandGrad) gradRule {
	return func(t *tape, op *ir.Op, ct []*ir.Value) {
		for i, x := range op.Operands {
			if i < len(ps) && t.wants(x) {
				t.add(x, ps[i](t, op, ct[0]))
			}
		}
	}
}

// gradEach is the rule of an op whose result i equals operand i.
func gradEach(t *tape, op *ir.Op, ct []*ir.Value) {
	for i, x := range op.Operands {
		t.add(x, ct[i])
	}
}

// fill is a value of type typ whose every element is v.
func (t *tape) fill(typ *ir.Type, v float64) *ir.Value {
	s := t.b.Splat(ir.Tensor(typ.Elem), v)
	if typ.Rank() == 0 {
		return s
	}
	return t.b.Broadcast(s, typ.Shape)
}

// fails records that op has no gradient.
func (t *tape) fails(op *ir.Op) {
	if t.d.err == nil {
		t.d.err = t.d.noGradient(op)
	}
}

func same(_ *tape, _ *ir.Op, ct *ir.Value) *ir.Value { return ct }

func negated(t *tape, _ *ir.Op, ct *ir.Value) *ir.Value { return t.b.Unary(ir.Negate, ct) }

// |x|' = sign(x)
func gradAbs(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	if isComplex(op) {
		return gradModulusOf(t, op, ct)
	}
	return t.b.Mul(ct, t.b.Unary(ir.Sign, t.need(op.Operands[0])))
}

// cbrt(x)' = 1 / (3 y²)
func gradCbrt(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	y := t.need(op.Result())
	return t.b.Div(ct, t.b.Mul(t.fill(y.Type, 3), t.b.Mul(y, y)))
}

// cos(x)' = -sin(x)
func gradCosine(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Mul(ct, t.b.Unary(ir.Negate, t.b.Unary(ir.Sine, t.need(op.Operands[0]))))
}

// sin(x)' = cos(x)
func gradSine(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Mul(ct, t.b.Unary(ir.Cosine, t.need(op.Operands[0])))
}

// tan(x)' = 1 + y²
func gradTan(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	y := t.need(op.Result())
	return t.b.Mul(ct, t.b.Add(t.b.Mul(y, y), t.fill(y.Type, 1)))
}

// exp(x)' = y
func gradExponential(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Mul(ct, t.need(op.Result()))
}

// (exp(x) - 1)' = y + 1
func gradExponentialMinusOne(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	y := t.need(op.Result())
	return t.b.Mul(ct, t.b.Add(y, t.fill(y.Type, 1)))
}

// log(x)' = 1 / x
func gradLog(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Div(ct, t.need(op.Operands[0]))
}

// log(x + 1)' = 1 / (x + 1)
func gradLogPlusOne(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	x := t.need(op.Operands[0])
	return t.b.Div(ct, t.b.Add(x, t.fill(x.Type, 1)))
}

// logistic(x)' = y (1 - y)
func gradLogistic(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	y := t.need(op.Result())
	return t.b.Mul(t.b.Mul(ct, y), t.b.Sub(t.fill(y.Type, 1), y))
}

// tanh(x)' = (1 + y) (1 - y), which unlike 1 - y² is exact where |y| is near 1
func gradTanh(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	y := t.need(op.Result())
	return t.b.Mul(t.b.Add(ct, t.b.Mul(ct, y)), t.b.Sub(t.fill(y.Type, 1), y))
}

// sqrt(x)' = 1 / (2 y)
func gradSqrt(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	y := t.need(op.Result())
	return t.b.Mul(ct, t.b.Div(t.fill(y.Type, 0.5), y))
}

// rsqrt(x)' = -y / (2 x)
func gradRsqrt(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	y := t.need(op.Result())
	return t.b.Mul(ct, t.b.Mul(t.fill(y.Type, -0.5), t.b.Div(y, t.need(op.Operands[0]))))
}

func gradConvert(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Convert(ct, t.cotangentType(op.Operands[0]).Elem)
}

// The rounding counts as the identity; the cotangent is rounded like the value.
func gradReducePrecision(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Emit(op.Kind, []*ir.Value{ct}, op.Attrs, nil, nil).Result()
}

// atan2(y, x)' = (x, -y) / (x² + y²)
func gradAtan2Y(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Mul(ct, t.b.Div(t.need(op.Operands[1]), t.normSquared(op)))
}

func gradAtan2X(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Mul(ct, t.b.Div(t.b.Unary(ir.Negate, t.need(op.Operands[0])), t.normSquared(op)))
}

func (t *tape) normSquared(op *ir.Op) *ir.Value {
	x, y := t.need(op.Operands[0]), t.need(op.Operands[1])
	return t.b.Add(t.b.Mul(x, x), t.b.Mul(y, y))
}

// (x / y)' by x = 1 / y
func gradDividend(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Div(ct, t.need(op.Operands[1]))
}

// (x / y)' by y = -(x / y) / y
func gradDivisor(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Unary(ir.Negate, t.b.Mul(t.b.Div(ct, t.need(op.Operands[1])), t.need(op.Result())))
}

// gradFactor is the rule of a factor of a product: the cotangent times the other
// factor.
func gradFactor(other int) operandGrad {
	return func(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
		return t.b.Mul(ct, t.need(op.Operands[other]))
	}
}

// (x rem y)' by y = -trunc(x / y), and x rem y is x - y trunc(x / y)
func gradModulus(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	q := t.b.Div(t.need(op.Operands[0]), t.need(op.Operands[1]))
	trunc := t.b.Mul(t.b.Unary(ir.Sign, q), t.b.Unary(ir.Floor, t.b.Unary(ir.Abs, q)))
	return t.b.Unary(ir.Negate, t.b.Mul(ct, trunc))
}

// chosen is the rule of operand i of a maximum or minimum: it gets the cotangent
// where its comparison with the other holds, half of it where both are equal.
func chosen(direction string, i int) operandGrad {
	return func(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
		b := t.b
		x, y := t.need(op.Operands[i]), t.need(op.Operands[1-i])
		tie := b.Select(b.Compare("EQ", x, y), b.Mul(ct, t.fill(ct.Type, 0.5)), t.zeros(ct.Type))
		return b.Select(b.Compare(direction, x, y), ct, tie)
	}
}

// (xʸ)' by x = y xʸ⁻¹, and 0 where y is 0
func gradBase(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	b := t.b
	if l := ir.ConstantOf(op.Operands[1]); l != nil && l.IsSplat() && l.Float(0) != 0 {
		n := l.Float(0)
		x := t.need(op.Operands[0])
		if n != 2 { // x² is common; its derivative takes no power
			x = b.Binary(ir.Power, x, t.fill(x.Type, n-1))
		}
		return b.Mul(ct, b.Mul(t.fill(x.Type, n), x))
	}
	x, y := t.need(op.Operands[0]), t.need(op.Operands[1])
	d := b.Mul(y, b.Binary(ir.Power, x, b.Sub(y, t.fill(y.Type, 1))))
	zero := t.zeros(y.Type)
	return b.Select(b.Compare("EQ", y, zero), zero, b.Mul(ct, d))
}

// (xʸ)' by y = log(x) xʸ, and 0 where x is 0
func gradExponent(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	b := t.b
	x := t.need(op.Operands[0])
	zero := t.zeros(x.Type)
	log := b.Unary(ir.Log, b.Select(b.Compare("EQ", x, zero), t.fill(x.Type, 1), x))
	return b.Mul(ct, b.Mul(log, t.need(op.Result())))
}

// The operands of a select have the cotangent where they are selected, zeros
// elsewhere.
func gradOnTrue(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	p, zero := t.need(op.Operands[0]), t.zeros(ct.Type)
	return t.b.Select(p, ct, zero)
}

func gradOnFalse(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	p, zero := t.need(op.Operands[0]), t.zeros(ct.Type)
	return t.b.Select(p, zero, ct)
}

// A clamped operand gets the cotangent strictly between its bounds.
func gradClamp(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	b := t.b
	low, x, high := t.clampOperand(op, 0), t.clampOperand(op, 1), t.clampOperand(op, 2)
	return b.Select(b.Binary(ir.And, b.Compare("GT", x, low), b.Compare("LT", x, high)), ct, t.zeros(ct.Type))
}

// clampedAt is the rule of a bound, operand i of a clamp: it gets the cotangent
// where the bound is the result. Where the bounds cross, that is the upper one.
func clampedAt(i int) operandGrad {
	return func(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
		b := t.b
		low, x, high := t.clampOperand(op, 0), t.clampOperand(op, 1), t.clampOperand(op, 2)
		var here *ir.Value
		if i == 0 {
			here = b.Binary(ir.And, b.Compare("GT", low, x), b.Compare("LT", low, high))
		} else {
			here = b.Compare("LT", high, b.Binary(ir.Maximum, x, low))
		}
		g := b.Select(here, ct, t.zeros(ct.Type))
		if op.Operands[i].Type.Rank() == g.Type.Rank() {
			return g
		}
		return t.sum(g, facts.UpTo(g.Type.Rank())...)
	}
}

// clampOperand is operand i of a clamp, a scalar bound broadcast to the result's
// shape.
func (t *tape) clampOperand(op *ir.Op, i int) *ir.Value {
	v, full := t.need(op.Operands[i]), op.Result().Type
	if v.Type.Rank() == full.Rank() {
		return v
	}
	return t.b.Broadcast(v, full.Shape)
}

// sum adds up the elements of x along dims; it is x where there are none.
func (t *tape) sum(x *ir.Value, dims ...int) *ir.Value {
	if len(dims) == 0 {
		return x
	}
	return t.b.Reduce(ir.Add, x, t.b.Splat(ir.Tensor(x.Type.Elem), 0), dims...)
}
