package expand

import (
	"math"

	"ppc/internal/elementary"
	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// references has the compositions of ops that have no Kind, by name. A composition
// returns nil where it leaves its op as it is: one whose sizes are not known.
var references map[string]composition

func init() { // some compute regions, which may have such ops
	references = map[string]composition{
		"chlo.mulhi":      (*composer).mulhi,
		"chlo.bessel_i1e": real1((*composer).besselI1e),
		"chlo.polygamma":  real2((*composer).polygamma),
		"chlo.scan":       (*composer).scan,
		"chlo.zeta":       real2((*composer).zeta),

		"stablehlo.map":                  (*composer).mapOp,
		"stablehlo.batch_norm_training":  (*composer).batchNormTraining,
		"stablehlo.batch_norm_inference": (*composer).batchNormInference,
		"stablehlo.batch_norm_grad":      (*composer).batchNormGrad,

		"stablehlo.broadcast": (*composer).oldBroadcast,
		"stablehlo.dot":       (*composer).oldDot,

		"stablehlo.get_dimension_size":       (*composer).dimensionSize,
		"stablehlo.dynamic_broadcast_in_dim": static((*composer).dynamicBroadcast),
		"stablehlo.dynamic_conv":             static((*composer).dynamicConv),
		"stablehlo.dynamic_gather":           static((*composer).dynamicGather),
		"stablehlo.dynamic_iota":             static((*composer).dynamicIota),
		"stablehlo.dynamic_pad":              static((*composer).dynamicPad),
		"stablehlo.dynamic_reshape":          static((*composer).dynamicReshape),
		"stablehlo.real_dynamic_slice":       static((*composer).realDynamicSlice),
	}
}

// mulhi is the upper half of a product: of the product in twice the width or, of 64
// bits, of those of the halves.
func (c *composer) mulhi(op *ir.Op) []*ir.Value {
	b, x, y := c.b, op.Operands[0], op.Operands[1]
	t := x.Type.Elem
	signed := t.Class() == ir.Signed
	if t.Bits() < 64 {
		wide, by := ir.UI64, ir.ShiftRightLogical
		if signed {
			wide, by = ir.I64, ir.ShiftRightArithmetic
		}
		product := b.Mul(b.Convert(x, wide), b.Convert(y, wide))
		return []*ir.Value{b.Convert(b.Binary(by, product, c.like(product, float64(t.Bits()))), t)}
	}
	half := func(v *ir.Value) (low, high *ir.Value) {
		return b.Binary(ir.And, v, c.like(v, 1<<32-1)), b.Binary(ir.ShiftRightLogical, v, c.like(v, 32))
	}
	u, v := b.Convert(x, ir.UI64), b.Convert(y, ir.UI64)
	ul, uh := half(u)
	vl, vh := half(v)
	_, carry := half(b.Mul(ul, vl))
	midLow, midHigh := half(b.Add(b.Mul(uh, vl), carry))
	_, rest := half(b.Add(b.Mul(ul, vh), midLow))
	high := b.Add(b.Add(b.Mul(uh, vh), midHigh), rest)
	if signed { // a negative factor stands for 2^64 more than it is
		for _, f := range [][2]*ir.Value{{x, v}, {y, u}} {
			high = b.Sub(high, b.Select(c.compare("LT", f[0], 0), f[1], c.like(high, 0)))
		}
	}
	return []*ir.Value{b.Convert(high, t)}
}

// The coefficients of the Chebyshev series of exp(-x) I1(x) / x where x is at most 8,
// in x/2 - 2, and of exp(-x) I1(x) sqrt(x) elsewhere, in 32/x - 2. Those of f32 are
// the last ones.
var (
	besselNear = []float64{2.7779140411210227e-18, -2.1114212133155827e-17, 1.5536319577354573e-16, -1.1055969477353778e-15, 7.600684294735406e-15, -5.042185504727912e-14, 3.223793365945575e-13, -1.9839743977649436e-12,
		1.1736186298890901e-11, -6.663489723502027e-11, 3.625590281552117e-10, -1.8872497517228294e-09, 9.381537386495773e-09, -4.445059128796328e-08, 2.0032947535521353e-07, -8.568720264695455e-07,
		3.4702513081376785e-06, -1.3273163656039436e-05, 4.781565107550054e-05, -0.00016176081582589674, 0.0005122859561685758, -0.0015135724506312532, 0.004156422944312888, -0.010564084894626197,
		0.024726449030626516, -0.05294598120809499, 0.1026436586898471, -0.17641651835783406, 0.25258718644363365}
	besselFar = []float64{-4.650305367239895e-17, -3.209525922280163e-17, 2.962628997625507e-16, 3.3082023109361146e-16, -1.8803547755108634e-15, -3.814403072437366e-15, 1.0420276984128972e-14, 4.2724400167119536e-14,
		-2.1015418427726697e-14, -4.083551111092197e-13, -7.198551776245908e-13, 2.0356285441470896e-12, 1.4125807436613782e-11, 3.2526035830154884e-11, -1.8974958123505413e-11, -5.589743462196584e-10,
		-3.835380385964237e-09, -2.6314688468895196e-08, -2.512236237870209e-07, -3.882564808877691e-06, -0.00011058893876262371, -0.009761097491361469, 0.7785762350182801}
)

// chebyshev sums up the series with the given coefficients, the highest first.
func (c *composer) chebyshev(y *ir.Value, coefficients []float64) *ir.Value {
	b0, b1, b2 := c.like(y, coefficients[0]), c.like(y, 0), c.like(y, 0)
	for _, k := range coefficients[1:] {
		b0, b1, b2 = c.plus(c.b.Sub(c.b.Mul(y, b0), b1), k), b0, b1
	}
	return c.times(c.b.Sub(b0, b2), 0.5)
}

func (c *composer) besselI1e(x *ir.Value) *ir.Value {
	b, near, far := c.b, besselNear, besselFar
	if !c.wide {
		near, far = near[len(near)-17:], far[len(far)-7:]
	}
	m := b.Unary(ir.Abs, x)
	small := b.Mul(m, c.chebyshev(c.plus(c.times(m, 0.5), -2), near))
	large := b.Div(c.chebyshev(c.plus(b.Div(c.like(m, 32), m), -2), far), b.Unary(ir.Sqrt, m))
	return b.Mul(b.Unary(ir.Sign, x), b.Select(c.compare("LE", m, 8), small, large))
}

// zeta(x, q) is the sum over k of 1/(q+k)^x: the first terms as they are and the rest by
// the formula of Euler and Maclaurin, where that counts. The values at poles and outside
// of the domain are those of [elementary.Zeta].
func (c *composer) zeta(x, q *ir.Value) *ir.Value {
	b := c.b
	minus, sum := c.neg(x), c.like(x, 0)
	var w, last *ir.Value
	for k := range elementary.ZetaTerms {
		w = c.plus(q, float64(k))
		last = b.Binary(ir.Power, w, minus)
		sum = b.Add(sum, last)
	}
	tail, sq := c.like(x, 0), b.Mul(w, w)
	for j := len(elementary.ZetaTail); j > 0; j-- {
		by := b.Div(b.Mul(c.plus(x, float64(2*j-1)), c.plus(x, float64(2*j))), sq)
		tail = c.plus(b.Mul(by, tail), elementary.ZetaTail[j-1])
	}
	rest := b.Mul(last, c.plus(b.Add(b.Div(w, c.plus(x, -1)), b.Mul(b.Div(x, w), tail)), -0.5))
	epsilon := 0x1p-26
	if c.wide {
		epsilon = 0x1p-60
	}
	m := b.Unary(ir.Abs, last)
	little := b.Binary(ir.Or, b.Compare("LT", m, c.times(b.Unary(ir.Abs, sum), epsilon)), c.equals(last, 0))
	v := b.Select(little, sum, b.Add(sum, rest))

	integral := func(v *ir.Value) *ir.Value { return b.Compare("EQ", v, b.Unary(ir.Floor, v)) }
	nan, infinite := c.like(x, math.NaN()), c.like(x, math.Inf(1))
	pole := b.Binary(ir.And, c.compare("LE", q, 0), integral(q))
	outside := b.Binary(ir.Or, c.compare("LT", x, 1), pole)
	outside = b.Binary(ir.Or, outside, b.Binary(ir.And, c.compare("LT", q, 0), b.Unary(ir.Not, integral(x))))
	outside = b.Binary(ir.Or, outside, b.Unary(ir.Not, b.Binary(ir.And, b.Unary(ir.IsFinite, x), b.Compare("LT", q, infinite))))
	v = b.Select(outside, nan, v)
	even := b.Binary(ir.And, b.Unary(ir.IsFinite, x), integral(c.times(x, 0.5)))
	return b.Select(b.Binary(ir.Or, c.equals(x, 1), b.Binary(ir.And, pole, even)), infinite, v)
}

// polygamma(n, x) is digamma(x) where n is 0, (-1)^(n+1) n! zeta(n+1, x) for the numbers
// above, and NaN elsewhere.
func (c *composer) polygamma(n, x *ir.Value) *ir.Value {
	b := c.b
	next := c.plus(n, 1)
	v := b.Mul(b.Unary(ir.Exponential, c.lgamma(next)), c.zeta(next, x))
	half := c.times(n, 0.5)
	v = b.Select(b.Compare("EQ", half, b.Unary(ir.Floor, half)), c.neg(v), v)
	order := b.Binary(ir.And, c.compare("GE", n, 0), b.Compare("EQ", n, b.Unary(ir.Floor, n)))
	v = b.Select(order, v, c.like(x, math.NaN()))
	return b.Select(c.equals(n, 0), c.digamma(x), v)
}

// scan is a loop over the slices along a dimension.
func (c *composer) scan(op *ir.Op) []*ir.Value {
	b, dim := c.b, op.Int("dimension")
	inputs, carries, _ := op.Segments()
	outputs := len(op.Results) - carries
	trips := op.Operands[0].Type.Shape[dim]
	init := append([]*ir.Value{b.I32(0)}, op.Operands[inputs:]...)
	for _, v := range op.Results[:outputs] {
		init = append(init, b.Broadcast(b.Splat(ir.Tensor(v.Type.Elem), 0), v.Type.Shape))
	}
	cond, do := new(ir.Block), new(ir.Block)
	for _, v := range init {
		b.Func.NewArg(do, v.Type, "")
		b.Func.NewArg(cond, v.Type, "")
	}
	in := b.In(do)
	at := do.Args[0]
	if op.Bool("is_reverse") {
		at = in.Sub(in.I32(trips-1), at)
	}
	body := op.Regions[0]
	sub := make(map[*ir.Value]*ir.Value)
	for i, a := range body.Args {
		if i < inputs {
			sub[a] = in.Index(op.Operands[i], dim, at)
		} else {
			sub[a] = do.Args[1+i-inputs]
		}
	}
	ys := rewrite.CopyBody(in, body, sub)
	next := append([]*ir.Value{in.Add(do.Args[0], in.I32(1))}, ys[outputs:]...)
	for i, y := range ys[:outputs] {
		next = append(next, in.SetIndex(do.Args[1+carries+i], dim, at, y))
	}
	in.Emit(ir.Return, next, nil, nil, nil)
	test := b.In(cond)
	test.Emit(ir.Return, []*ir.Value{test.Compare("LT", cond.Args[0], test.I32(trips))}, nil, nil, nil)
	vs := b.Emit(ir.While, init, nil, []*ir.Block{cond, do}, nil).Results
	return append(append([]*ir.Value{}, vs[1+carries:]...), vs[1:1+carries]...)
}

// mapOp computes the region with full tensors in place of their elements.
func (c *composer) mapOp(op *ir.Op) []*ir.Value {
	b, shape := c.b, op.Operands[0].Type.Shape
	full := make(map[*ir.Value]*ir.Value)
	for i, a := range op.Regions[0].Args {
		full[a] = op.Operands[i]
	}
	of := func(v *ir.Value) *ir.Value {
		if full[v] == nil {
			full[v] = b.Broadcast(v, shape)
		}
		return full[v]
	}
	for _, inner := range op.Regions[0].Ops {
		switch {
		case inner.Kind.Has(ir.Terminator):
			return []*ir.Value{of(inner.Operands[0])}
		case inner.Kind == ir.Constant:
			full[inner.Result()] = b.Broadcast(b.Const(inner.Literal("value")), shape)
			continue
		case inner.Kind == ir.Unknown || !inner.Kind.Has(ir.Elementwise) || len(inner.Regions) > 0:
			c.err = pass.Errorf(inner, "%s in the region of stablehlo.map is not elementwise: write what it computes outside of the map", inner.Name())
			return op.Results
		}
		operands := make([]*ir.Value, len(inner.Operands))
		for i, v := range inner.Operands {
			operands[i] = of(v)
		}
		results := make([]*ir.Type, len(inner.Results))
		for i, v := range inner.Results {
			results[i] = v.Type.WithShape(shape...)
		}
		for i, v := range b.Emit(inner.Kind, operands, inner.Attrs, nil, results).Results {
			full[inner.Results[i]] = v
		}
	}
	return op.Results
}

// A norm is a batch normalization at work, in f32 or wider.
type norm struct {
	*composer
	x    *ir.Value
	elem ir.DType // of the op
	dim  int      // of the features
	dims []int    // the others
	size float64  // elements of a feature
	eps  float64
}

func (c *composer) norm(op *ir.Op) *norm {
	t := op.Operands[0].Type
	n := &norm{composer: c, elem: t.Elem, dim: op.Int("feature_index"), size: 1}
	if eps, ok := op.Attrs.Get("epsilon").(ir.Float); ok {
		n.eps = eps.Value
	}
	for d, size := range t.Shape {
		if d != n.dim {
			n.dims, n.size = append(n.dims, d), n.size*float64(size)
		}
	}
	n.x = n.wider(op.Operands[0])
	return n
}

func (n *norm) wider(v *ir.Value) *ir.Value {
	if n.elem == ir.F64 {
		return v
	}
	return n.b.Convert(v, ir.F32)
}

// each is v, a number of each feature, for each element.
func (n *norm) each(v *ir.Value) *ir.Value {
	return n.b.Broadcast(n.wider(v), n.x.Type.Shape, n.dim)
}

func (n *norm) sum(v *ir.Value) *ir.Value {
	return n.b.Reduce(ir.Add, v, n.b.Splat(ir.Tensor(v.Type.Elem), 0), n.dims...)
}

func (n *norm) mean(v *ir.Value) *ir.Value {
	s := n.sum(v)
	return n.b.Div(s, n.like(s, n.size))
}

// deviation is the root of a variance.
func (n *norm) deviation(variance *ir.Value) *ir.Value {
	return n.b.Unary(ir.Sqrt, n.plus(n.wider(variance), n.eps))
}

// normal is scale (x - mean) / deviation + offset.
func (n *norm) normal(scale, offset, mean, variance *ir.Value) *ir.Value {
	b := n.b
	v := b.Div(b.Mul(n.each(scale), b.Sub(n.x, n.each(mean))), n.each(n.deviation(variance)))
	return b.Convert(b.Add(v, n.each(offset)), n.elem)
}

func (c *composer) batchNormInference(op *ir.Op) []*ir.Value {
	in := op.Operands
	return []*ir.Value{c.norm(op).normal(in[1], in[2], in[3], in[4])}
}

func (c *composer) batchNormTraining(op *ir.Op) []*ir.Value {
	n := c.norm(op)
	mean := n.mean(n.x)
	from := c.b.Sub(n.x, n.each(mean))
	variance := n.mean(c.b.Mul(from, from))
	return []*ir.Value{n.normal(op.Operands[1], op.Operands[2], mean, variance), c.b.Convert(mean, n.elem), c.b.Convert(variance, n.elem)}
}

func (c *composer) batchNormGrad(op *ir.Op) []*ir.Value {
	n, b, in := c.norm(op), c.b, op.Operands
	grad, from := n.wider(in[4]), b.Sub(n.x, n.each(in[2]))
	wide, both := n.plus(n.wider(in[3]), n.eps), n.sum(b.Mul(grad, from))
	deviation := b.Unary(ir.Sqrt, wide)
	slope := n.each(b.Div(b.Div(both, n.like(both, n.size)), wide))
	centred := b.Sub(b.Sub(grad, n.each(n.mean(grad))), b.Mul(slope, from))
	ofX := b.Mul(n.each(b.Div(n.wider(in[1]), deviation)), centred)
	return []*ir.Value{b.Convert(ofX, n.elem), b.Convert(b.Div(both, deviation), n.elem), b.Convert(n.sum(grad), n.elem)}
}

func (c *composer) oldBroadcast(op *ir.Op) []*ir.Value {
	t := op.Result().Type
	return []*ir.Value{c.b.Broadcast(op.Operands[0], t.Shape, facts.UpTo(t.Rank())[len(op.Ints("broadcast_sizes")):]...)}
}

func (c *composer) oldDot(op *ir.Op) []*ir.Value {
	d := ir.Dot{LhsContract: []int{op.Operands[0].Type.Rank() - 1}, RhsContract: []int{0}}
	attrs := ir.AttrsOf(facts.Named("dot_dimension_numbers", d))
	if p := op.Attrs.Get("precision_config"); p != nil {
		attrs.Set("precision_config", p)
	}
	return c.b.Emit(ir.DotGeneral, op.Operands, attrs, nil, []*ir.Type{op.Result().Type}).Results
}

// static is the composition of an op whose sizes are operands: of one that has them
// in its types too. What else it takes from its operands must be constants.
func static(f composition) composition {
	return func(c *composer, op *ir.Op) []*ir.Value {
		for _, v := range append(op.Results, op.Operands...) {
			if !v.Type.IsTensor() || !v.Type.IsStatic() {
				return nil
			}
		}
		return f(c, op)
	}
}

// ints are the elements of operand i of op, a constant.
func (c *composer) ints(op *ir.Op, i int) ir.Ints {
	v := op.Operands[i]
	if v.Def == nil || v.Def.Kind != ir.Constant {
		c.err = pass.Errorf(op, "operand %d of %s is not a constant, and sizes that depend on values are not compiled", i, op.Name())
		return nil
	}
	l := v.Def.Literal("value")
	out := make(ir.Ints, v.Type.NumElements())
	for k := range out {
		out[k] = int(l.Int(k))
	}
	return out
}

// as is op as one of kind k with the given operands and attributes.
func (c *composer) as(op *ir.Op, k ir.Kind, operands []*ir.Value, attrs ir.Attrs) []*ir.Value {
	if c.err != nil {
		return op.Results
	}
	return c.b.Emit(k, operands, attrs, nil, []*ir.Type{op.Result().Type}).Results
}

// keep are the attributes of op called names.
func keep(op *ir.Op, names ...string) (attrs ir.Attrs) {
	for _, name := range names {
		if a := op.Attrs.Get(name); a != nil {
			attrs.Set(name, a)
		}
	}
	return
}

func (c *composer) dimensionSize(op *ir.Op) []*ir.Value {
	n := op.Operands[0].Type.Shape[op.Int("dimension")]
	if n < 0 {
		return nil
	}
	return []*ir.Value{c.b.I32(n)}
}

func (c *composer) dynamicReshape(op *ir.Op) []*ir.Value {
	return c.as(op, ir.Reshape, op.Operands[:1], nil)
}

func (c *composer) dynamicBroadcast(op *ir.Op) []*ir.Value {
	return c.as(op, ir.BroadcastInDim, op.Operands[:1], keep(op, "broadcast_dimensions"))
}

func (c *composer) dynamicIota(op *ir.Op) []*ir.Value {
	return c.as(op, ir.Iota, nil, keep(op, "iota_dimension"))
}

func (c *composer) dynamicPad(op *ir.Op) []*ir.Value {
	return c.as(op, ir.Pad, op.Operands[:2], ir.AttrsOf(facts.Named("edge_padding_low", c.ints(op, 2)),
		facts.Named("edge_padding_high", c.ints(op, 3)), facts.Named("interior_padding", c.ints(op, 4))))
}

func (c *composer) realDynamicSlice(op *ir.Op) []*ir.Value {
	return c.as(op, ir.Slice, op.Operands[:1], ir.AttrsOf(facts.Named("start_indices", c.ints(op, 1)),
		facts.Named("limit_indices", c.ints(op, 2)), facts.Named("strides", c.ints(op, 3))))
}

func (c *composer) dynamicGather(op *ir.Op) []*ir.Value {
	attrs := keep(op, "dimension_numbers", "indices_are_sorted")
	attrs.Set("slice_sizes", c.ints(op, 2))
	return c.as(op, ir.Gather, op.Operands[:2], attrs)
}

func (c *composer) dynamicConv(op *ir.Op) []*ir.Value {
	attrs := append(ir.Attrs{}, op.Attrs...)
	attrs.Set("padding", ir.Ints64(ir.Tensor(ir.I64, op.Operands[2].Type.Shape...), c.ints(op, 2)...))
	return c.as(op, ir.Convolution, op.Operands[:2], attrs)
}
