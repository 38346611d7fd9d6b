package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// The rules of linear algebra, of Fourier transforms and of complex numbers.
//
// The cotangent of a complex z is the complex c for which a change dz changes the loss by
// Re(c dz), without a conjugate, as in JAX. So the rule of a real function that is
// analytic, and that of an op which is linear in each operand, hold for complex numbers,
// too; [analytic] lists the ops for which that is so.

// analytic are the ops whose rules hold for complex operands and results.
var analytic = kindSet(
	ir.Add, ir.Subtract, ir.Multiply, ir.Divide, ir.Negate, ir.Select,
	ir.Exponential, ir.ExponentialMinusOne, ir.Log, ir.LogPlusOne, ir.Logistic, ir.Sine, ir.Cosine, ir.Tanh, ir.Sqrt, ir.Rsqrt,
	ir.Abs, ir.Real, ir.Imag, ir.ComplexOp, ir.Convert, ir.FFT,
	ir.BroadcastInDim, ir.Concatenate, ir.DynamicSlice, ir.DynamicUpdateSlice, ir.Gather, ir.Pad, ir.Reshape, ir.Reverse, ir.Slice, ir.Transpose,
	ir.DotGeneral, ir.OptimizationBarrier,
	ir.AllGather, ir.AllReduce, ir.AllToAll, ir.CollectivePermute, ir.ReduceScatter,
	ir.ShardingConstraint, ir.Reshard, ir.ManualComputation, ir.PPName, ir.PPGather, ir.PPRotate,
)

func kindSet(ks ...ir.Kind) map[ir.Kind]bool {
	set := make(map[ir.Kind]bool, len(ks))
	for _, k := range ks {
		set[k] = true
	}
	return set
}

// holdsForComplex reports whether the rule of op holds for complex numbers. A reduction
// adds them up; other reductions compare them.
func holdsForComplex(op *ir.Op) bool {
	if op.Kind == ir.Reduce {
		return facts.Combines(op.Regions[0], 0) == ir.Add
	}
	return analytic[op.Kind]
}

// real(z)': c is the real cotangent.
func gradReal(t *tape, _ *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Binary(ir.ComplexOp, ct, t.zeros(ct.Type))
}

// imag(z) = Re(-i z)
func gradImag(t *tape, _ *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Binary(ir.ComplexOp, t.zeros(ct.Type), t.b.Unary(ir.Negate, ct))
}

// Of complex(x, y), x gets Re(c).
func gradRealPart(t *tape, _ *ir.Op, ct *ir.Value) *ir.Value { return t.b.Unary(ir.Real, ct) }

// Of complex(x, y), y gets Re(i c).
func gradImagPart(t *tape, _ *ir.Op, ct *ir.Value) *ir.Value {
	return t.b.Unary(ir.Negate, t.b.Unary(ir.Imag, ct))
}

// conjugate is that of z.
func (t *tape) conjugate(z *ir.Value) *ir.Value {
	return t.b.Binary(ir.ComplexOp, t.b.Unary(ir.Real, z), t.b.Unary(ir.Negate, t.b.Unary(ir.Imag, z)))
}

// gradModulusOf is the rule of |z|, whose derivative is conj(z)/|z|, and nothing at 0.
func gradModulusOf(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	z, r := t.need(op.Operands[0]), t.need(op.Result())
	zero := t.zeros(r.Type)
	scale := t.b.Select(t.b.Compare("EQ", r, zero), zero, t.b.Div(ct, r))
	return t.b.Mul(t.b.Binary(ir.ComplexOp, scale, zero), t.conjugate(z))
}

// gradFFT is the rule of a transform of the last dimensions, which is linear. Its matrix is
// symmetric, and so it is its own transpose where the result has as many numbers. A
// transform of real numbers computes the first half of the frequencies, the inverse of it
// counts each of those for itself and for its conjugate, if that is another one.
func gradFFT(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	x, length := op.Operands[0].Type, op.Ints("fft_length")
	transform := func(kind string, v *ir.Value) *ir.Value {
		attrs := ir.AttrsOf(facts.Named("fft_type", ir.HLOEnum("fft_type", kind)), facts.Named("fft_length", ir.Ints(length)))
		return t.b.Emit(ir.FFT, []*ir.Value{v}, attrs, nil, nil).Result()
	}
	last, n := x.Rank()-1, length[len(length)-1]
	switch kind := op.Word("fft_type"); kind {
	case "RFFT":
		high := make([]int, x.Rank())
		high[last] = n - ct.Type.Shape[last]
		none := make([]int, x.Rank())
		full := t.b.Pad(ct, t.b.Splat(ir.Tensor(ct.Type.Elem), 0), none, high, none)
		return t.b.Unary(ir.Real, transform("FFT", full))
	case "IRFFT":
		y := transform("RFFT", ct)
		k := t.b.Iota(y.Type.WithElem(ir.I32), last)
		once := t.b.Compare("EQ", t.b.Binary(ir.Remainder, t.b.Add(k, k), t.fill(k.Type, float64(n))), t.fill(k.Type, 0))
		weight := t.b.Select(once, t.fill(ct.Type.WithShape(y.Type.Shape...), 1/float64(ir.Product(length))), t.fill(ct.Type.WithShape(y.Type.Shape...), 2/float64(ir.Product(length))))
		return t.b.Mul(t.b.Binary(ir.ComplexOp, weight, t.zeros(weight.Type)), t.conjugate(y))
	default:
		return transform(kind, ct)
	}
}

// A matrixSide says on which side of the unknown a matrix stands, and how it is taken.
type matrixSide struct {
	left, transposed, lower, unit bool
}

// solve is x of a x = b, or of x a = b, for a triangular.
func (t *tape) solve(a, b *ir.Value, s matrixSide) *ir.Value {
	transpose := "NO_TRANSPOSE"
	if s.transposed {
		transpose = "TRANSPOSE"
	}
	return t.b.Emit(ir.TriangularSolve, []*ir.Value{a, b}, ir.AttrsOf(
		facts.Named("left_side", ir.Bool(s.left)), facts.Named("lower", ir.Bool(s.lower)),
		facts.Named("unit_diagonal", ir.Bool(s.unit)), facts.Named("transpose_a", ir.HLOEnum("transpose", transpose))), nil, nil).Result()
}

// matmul is x y of the last two dimensions, with dimensions of x and y, -1 for the last and
// -2 for the one before, contracted.
func (t *tape) matmul(x, y *ir.Value, ofX, ofY int) *ir.Value {
	n := x.Type.Rank()
	batch := facts.UpTo(n - 2)
	return t.b.Dot(x, y, ir.Dot{LhsBatch: batch, RhsBatch: batch, LhsContract: []int{n + ofX}, RhsContract: []int{n + ofY}})
}

// transposed is x with its last two dimensions exchanged.
func (t *tape) transposed(x *ir.Value) *ir.Value {
	dims := facts.UpTo(x.Type.Rank())
	slices.Reverse(dims[len(dims)-2:])
	return t.b.Transpose(x, dims...)
}

// triangle is x where its row and column compare so, and zeros elsewhere.
func (t *tape) triangle(x *ir.Value, compare string) *ir.Value {
	n := x.Type.Rank()
	i := x.Type.WithElem(ir.I32)
	return t.b.Select(t.b.Compare(compare, t.b.Iota(i, n-2), t.b.Iota(i, n-1)), x, t.zeros(x.Type))
}

// gradCholesky is the rule of the lower L of A = L Lᵀ: of S = L⁻ᵀ P L⁻¹, where P is the lower
// triangle of Lᵀ c with half of its diagonal, the gradient is S + Sᵀ in the triangle that is
// read, and S on the diagonal. The upper triangle of a transposed A has the transposed L.
func gradCholesky(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	l := t.need(op.Result())
	upper := !op.Bool("lower")
	if upper {
		l, ct = t.transposed(l), t.transposed(ct)
	}
	l, ct = t.triangle(l, "GE"), t.triangle(ct, "GE")
	p := t.matmul(l, ct, -2, -2)
	p = t.b.Add(t.triangle(p, "GT"), t.b.Mul(t.triangle(p, "EQ"), t.fill(p.Type, 0.5)))
	s := t.solve(l, t.solve(l, p, matrixSide{left: true, transposed: true, lower: true}), matrixSide{lower: true})
	g := t.b.Add(t.triangle(t.b.Add(s, t.transposed(s)), "GT"), t.triangle(s, "EQ"))
	if upper {
		g = t.transposed(g)
	}
	return g
}

// gradSolved is the gradient of b in a x = b or x a = b: the solution for the transposed matrix.
func gradSolved(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	side := sideOf(op)
	side.transposed = !side.transposed
	return t.solve(t.need(op.Operands[0]), ct, side)
}

// gradMatrix is that of a: -c xᵀ, where c is the gradient of b and a is on the left, or -xᵀ c;
// transposed where a is. The elements that the op does not read have none.
func gradMatrix(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	side := sideOf(op)
	x, c := t.need(op.Result()), gradSolved(t, op, ct)
	var g *ir.Value
	switch {
	case side.left && side.transposed:
		g = t.matmul(x, c, -1, -1)
	case side.left:
		g = t.matmul(c, x, -1, -1)
	case side.transposed:
		g = t.matmul(c, x, -2, -2)
	default:
		g = t.matmul(x, c, -2, -2)
	}
	compare := "LE"
	if side.lower {
		compare = "GE"
	}
	if side.unit {
		compare = compare[:1] + "T"
	}
	return t.triangle(t.b.Unary(ir.Negate, g), compare)
}

func sideOf(op *ir.Op) matrixSide {
	return matrixSide{left: op.Bool("left_side"), transposed: op.Word("transpose_a") != "NO_TRANSPOSE", lower: op.Bool("lower"), unit: op.Bool("unit_diagonal")}
}
