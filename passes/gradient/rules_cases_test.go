package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// A gradientTest builds a program from p and returns what it computes.
type gradientTest struct {
	name   string
	linear bool // in all parameters at once
	build  func(p *lossProgram) []*ir.Value
}

// gradientTests has a test for every row of the table of rules, and more for
// what the rows distinguish.
var gradientTests = slices.Concat(elementwiseGradients, moveGradients, indexGradients, reduceGradients, windowGradients, controlGradients, deviceGradients)

func unaryGradient(name string, k ir.Kind, low, high float64) gradientTest {
	return gradientTest{name: name, build: func(p *lossProgram) []*ir.Value {
		return []*ir.Value{p.b.Unary(k, p.within(low, high, p.shape()...))}
	}}
}

func binaryGradient(name string, k ir.Kind, low, high float64) gradientTest {
	return gradientTest{name: name, build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		x, y := p.within(low, high, s...), p.within(low, high, s...)
		return []*ir.Value{p.b.Binary(k, x, y), p.b.Binary(k, x, x)}
	}}
}

// apartGradient: of two operands that are nowhere close.
func apartGradient(name string, k ir.Kind) gradientTest {
	return gradientTest{name: name, build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		xy := p.apart(append([]int{2}, s...)...)
		half := func(i int) *ir.Value { return p.b.Reshape(p.b.SliceDim(xy, 0, i, i+1), s...) }
		return []*ir.Value{p.b.Binary(k, half(0), half(1))}
	}}
}

var elementwiseGradients = []gradientTest{
	{name: "abs", build: func(p *lossProgram) []*ir.Value { return []*ir.Value{p.b.Unary(ir.Abs, p.apart(p.shape()...))} }},
	unaryGradient("cbrt", ir.Cbrt, 0.5, 2),
	unaryGradient("cbrt of negative", ir.Cbrt, -2, -0.5),
	unaryGradient("cosine", ir.Cosine, -3, 3),
	unaryGradient("exponential", ir.Exponential, -2, 2),
	unaryGradient("exponential_minus_one", ir.ExponentialMinusOne, -2, 2),
	unaryGradient("log", ir.Log, 0.5, 2),
	unaryGradient("log_plus_one", ir.LogPlusOne, -0.5, 2),
	unaryGradient("logistic", ir.Logistic, -3, 3),
	{name: "negate", linear: true, build: func(p *lossProgram) []*ir.Value { return []*ir.Value{p.b.Unary(ir.Negate, p.float(p.shape()...))} }},
	unaryGradient("rsqrt", ir.Rsqrt, 0.5, 2),
	unaryGradient("sine", ir.Sine, -3, 3),
	unaryGradient("sqrt", ir.Sqrt, 0.5, 2),
	unaryGradient("tan", ir.Tan, -1, 1),
	unaryGradient("tanh", ir.Tanh, -3, 3),
	{name: "convert", linear: true, build: func(p *lossProgram) []*ir.Value {
		x := p.float(p.shape()...)
		n := p.b.Convert(p.integers(-3, 3, x.Type.Shape...), ir.F64)
		return []*ir.Value{p.b.Mul(n, p.b.Convert(x, ir.F64)), p.b.Convert(x, ir.I32)}
	}},
	{name: "reduce_precision", linear: true, build: func(p *lossProgram) []*ir.Value {
		return p.attr(ir.ReducePrecision, []*ir.Value{p.float(p.shape()...)}, facts.Named("exponent_bits", ir.Int{Value: 11, Type: ir.I32}), facts.Named("mantissa_bits", ir.Int{Value: 52, Type: ir.I32}))
	}},

	unaryGradient("acos", ir.Acos, -0.9, 0.9),
	unaryGradient("acosh", ir.Acosh, 1.2, 3),
	unaryGradient("asin", ir.Asin, -0.9, 0.9),
	unaryGradient("asinh", ir.Asinh, -3, 3),
	unaryGradient("atan", ir.Atan, -3, 3),
	unaryGradient("atanh", ir.Atanh, -0.9, 0.9),
	unaryGradient("tan of chlo", ir.ChloTan, -1, 1),
	unaryGradient("cosh", ir.Cosh, -2, 2),
	unaryGradient("erf", ir.Erf, -2, 2),
	unaryGradient("erf_inv", ir.ErfInv, -0.9, 0.9),
	unaryGradient("erfc", ir.Erfc, -2, 2),
	unaryGradient("lgamma", ir.Lgamma, 0.5, 4),
	unaryGradient("sinh", ir.Sinh, -2, 2),
	unaryGradient("square", ir.Square, -2, 2),
	{name: "top_k", build: func(p *lossProgram) []*ir.Value {
		s := append(p.sizes(p.IntN(2)), 2+p.IntN(4))
		return p.attr(ir.TopK, []*ir.Value{p.apart(s...)}, facts.Named("k", ir.I64Attr(p.IntN(3))))
	}},

	{name: "add", linear: true, build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		x := p.float(s...)
		return []*ir.Value{p.b.Add(p.b.Add(x, p.float(s...)), x)}
	}},
	binaryGradient("atan2", ir.Atan2, 0.5, 2),
	binaryGradient("atan2 of negative", ir.Atan2, -2, -0.5),
	binaryGradient("divide", ir.Divide, 0.5, 2),
	apartGradient("maximum", ir.Maximum),
	apartGradient("minimum", ir.Minimum),
	binaryGradient("multiply", ir.Multiply, -2, 2),
	binaryGradient("power", ir.Power, 0.5, 2),
	{name: "power of constants", build: func(p *lossProgram) []*ir.Value {
		x := p.within(-2, -0.5, p.shape()...)
		var vs []*ir.Value
		for _, n := range []float64{-1, 0, 1, 2, 3} {
			vs = append(vs, p.b.Binary(ir.Power, x, p.b.Splat(x.Type, n)))
		}
		return vs
	}},
	{name: "remainder", build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		q := p.b.Convert(p.integers(-4, 4, s...), ir.F64)
		x, y := p.within(0.2, 0.8, s...), p.within(1, 2, s...)
		x = p.b.Add(x, p.b.Mul(q, y)) // between two multiples of y
		return []*ir.Value{p.b.Binary(ir.Remainder, x, y), p.b.Binary(ir.Remainder, x, p.b.Unary(ir.Negate, y))}
	}},
	{name: "subtract", linear: true, build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		return []*ir.Value{p.b.Sub(p.float(s...), p.float(s...))}
	}},
	{name: "select", linear: true, build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		x, y := p.float(s...), p.float(s...)
		return []*ir.Value{p.b.Select(p.booleans(s...), x, y), p.b.Select(p.booleans(), x, y)}
	}},
	{name: "clamp", build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		x := p.apart(s...)
		low, high := p.within(-0.36, -0.34), p.within(0.34, 0.36)
		full := p.b.Emit(ir.Clamp, []*ir.Value{p.within(-0.56, -0.54, s...), x, p.within(-0.16, -0.14, s...)}, nil, nil, nil).Result()
		return []*ir.Value{p.b.Emit(ir.Clamp, []*ir.Value{low, x, high}, nil, nil, nil).Result(), full,
			p.b.Emit(ir.Clamp, []*ir.Value{high, x, low}, nil, nil, nil).Result()}
	}},
}

var moveGradients = []gradientTest{
	{name: "broadcast_in_dim", linear: true, build: func(p *lossProgram) []*ir.Value {
		out := p.sizes(1 + p.IntN(4))
		dims := p.Perm(len(out))[:p.IntN(len(out)+1)]
		in := make([]int, len(dims))
		for i, d := range dims {
			if in[i] = out[d]; p.IntN(3) == 0 {
				in[i] = 1
			}
		}
		return []*ir.Value{p.b.Broadcast(p.float(in...), out, dims...)}
	}},
	{name: "concatenate", linear: true, build: func(p *lossProgram) []*ir.Value {
		s := p.sizes(1 + p.IntN(3))
		dim := p.IntN(len(s))
		var xs []*ir.Value
		for range 1 + p.IntN(3) {
			s[dim] = p.IntN(3)
			xs = append(xs, p.float(s...))
		}
		return []*ir.Value{p.b.Concat(dim, append(xs, xs[0])...)}
	}},
	{name: "dynamic_slice", linear: true, build: func(p *lossProgram) []*ir.Value {
		x := p.float(p.shape()...)
		start, sizes := p.window(x.Type.Shape)
		return []*ir.Value{p.b.DynamicSlice(x, start, sizes...)}
	}},
	{name: "dynamic_update_slice", linear: true, build: func(p *lossProgram) []*ir.Value {
		x := p.float(p.shape()...)
		start, sizes := p.window(x.Type.Shape)
		return []*ir.Value{p.b.DynamicUpdateSlice(x, p.float(sizes...), start)}
	}},
	{name: "pad", linear: true, build: func(p *lossProgram) []*ir.Value {
		x := p.float(p.shape()...)
		rank := x.Type.Rank()
		low, high, interior := make([]int, rank), make([]int, rank), make([]int, rank)
		for d, n := range x.Type.Shape {
			interior[d] = p.IntN(3)
			size := n + (n-1)*interior[d]
			low[d], high[d] = p.IntN(5)-2, p.IntN(5)-2
			if size+low[d]+high[d] < 0 {
				low[d] = -size - high[d]
			}
		}
		return []*ir.Value{p.b.Pad(x, p.float(), low, high, interior)}
	}},
	{name: "reshape", linear: true, build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		return []*ir.Value{p.b.Reshape(p.float(s...), ir.Tensor(ir.F64, s...).NumElements(), 1)}
	}},
	{name: "reverse", linear: true, build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		return p.attr(ir.Reverse, []*ir.Value{p.float(s...)}, facts.Named("dimensions", ir.Ints(p.some(len(s)))))
	}},
	{name: "slice", linear: true, build: func(p *lossProgram) []*ir.Value {
		x := p.float(p.shape()...)
		var start, limit, strides ir.Ints
		for _, n := range x.Type.Shape {
			a := p.IntN(n + 1)
			start, limit, strides = append(start, a), append(limit, a+p.IntN(n-a+1)), append(strides, 1+p.IntN(3))
		}
		return p.attr(ir.Slice, []*ir.Value{x}, facts.Named("start_indices", start), facts.Named("limit_indices", limit), facts.Named("strides", strides))
	}},
	{name: "transpose", linear: true, build: func(p *lossProgram) []*ir.Value {
		s := p.shape()
		return []*ir.Value{p.b.Transpose(p.float(s...), p.Perm(len(s))...)}
	}},
}

// window is the start of a window, maybe outside of the shape, and its sizes.
func (p *lossProgram) window(shape []int) (start []*ir.Value, sizes []int) {
	for _, n := range shape {
		start, sizes = append(start, p.integers(-1, n)), append(sizes, 1+p.IntN(n))
	}
	return start, sizes
}

// gatherShape is the dimension numbers of a gather at random, the types of its
// operand, its indices and its result, and its slice sizes.
type gatherShape struct {
	dims                     ir.GatherDims
	operand, indices, result []int
	sizes                    []int
}

func (p *lossProgram) gather() *gatherShape {
	g := &gatherShape{operand: p.sizes(1 + p.IntN(3))}
	var window []int
	var free []int // dimensions that an index may have
	for d, n := range g.operand {
		size := 1
		switch p.IntN(4) {
		case 0:
			g.dims.OperandBatchingDims = append(g.dims.OperandBatchingDims, d)
		case 1:
			g.dims.CollapsedSliceDims = append(g.dims.CollapsedSliceDims, d)
			free = append(free, d)
		default:
			size = 1 + p.IntN(n)
			window, free = append(window, size), append(free, d)
		}
		g.sizes = append(g.sizes, size)
	}
	for _, i := range p.Perm(len(free))[:p.IntN(len(free)+1)] {
		g.dims.StartIndexMap = append(g.dims.StartIndexMap, free[i])
	}
	batch := p.sizes(p.IntN(2))
	at := p.IntN(len(batch) + 1)
	for i, d := range g.dims.OperandBatchingDims { // batching dimensions stand together
		batch = slices.Insert(batch, at+i, g.operand[d])
		g.dims.StartIndicesBatchingDims = append(g.dims.StartIndicesBatchingDims, at+i)
	}
	g.indices = slices.Clone(batch)
	g.dims.IndexVectorDim = len(batch)
	if len(g.dims.StartIndexMap) != 1 || p.IntN(2) == 0 {
		v := p.IntN(len(batch) + 1)
		g.dims.IndexVectorDim = v
		g.indices = slices.Insert(g.indices, v, len(g.dims.StartIndexMap))
		for i, d := range g.dims.StartIndicesBatchingDims {
			if d >= v {
				g.dims.StartIndicesBatchingDims[i]++
			}
		}
	}
	rank := len(window) + len(batch)
	g.dims.OffsetDims = slices.Sorted(slices.Values(p.Perm(rank)[:len(window)]))
	for d := range rank {
		from := &batch
		if slices.Contains(g.dims.OffsetDims, d) {
			from = &window
		}
		g.result, *from = append(g.result, (*from)[0]), (*from)[1:]
	}
	return g
}

func (g *gatherShape) scatterDims() ir.ScatterDims {
	return ir.ScatterDims{UpdateWindowDims: g.dims.OffsetDims, InsertedWindowDims: g.dims.CollapsedSliceDims, InputBatchingDims: g.dims.OperandBatchingDims,
		ScatterIndicesBatchingDims: g.dims.StartIndicesBatchingDims, ScatterDimsToOperandDims: g.dims.StartIndexMap, IndexVectorDim: g.dims.IndexVectorDim}
}

// secondOf returns a region that returns its second argument.
func secondOf(b *ir.Builder, elem ir.DType) *ir.Block {
	r := new(ir.Block)
	b.Func.NewArg(r, ir.Tensor(elem), "")
	y := b.Func.NewArg(r, ir.Tensor(elem), "")
	b.In(r).Emit(ir.Return, []*ir.Value{y}, nil, nil, nil)
	return r
}

var indexGradients = []gradientTest{
	{name: "gather by small numbers", linear: true, build: func(p *lossProgram) []*ir.Value {
		dims := ir.GatherDims{CollapsedSliceDims: []int{0, 1}, StartIndexMap: []int{1, 0}, IndexVectorDim: 0}
		index := p.b.Convert(p.integers(-128, 127, 2, 4), []ir.DType{ir.I8, ir.UI8}[p.IntN(2)])
		x := p.within(-1, 1, 2)
		wide := p.b.Broadcast(x, []int{300, 2}, 1)
		return p.attr(ir.Gather, []*ir.Value{wide, index}, facts.Named("dimension_numbers", dims), facts.Named("slice_sizes", ir.Ints{1, 1}))
	}},
	{name: "gather", linear: true, build: func(p *lossProgram) []*ir.Value {
		g := p.gather()
		index := p.b.Convert(p.integers(-1, 3, g.indices...), []ir.DType{ir.I32, ir.I64, ir.UI32, ir.I16}[p.IntN(4)])
		return p.attr(ir.Gather, []*ir.Value{p.float(g.operand...), index}, facts.Named("dimension_numbers", g.dims), facts.Named("slice_sizes", ir.Ints(g.sizes)))
	}},
	{name: "scatter that adds", linear: true, build: func(p *lossProgram) []*ir.Value {
		g := p.gather()
		operands := []*ir.Value{p.float(g.operand...), p.integers(-1, 3, g.indices...), p.float(g.result...)}
		return p.b.Emit(ir.Scatter, operands, ir.AttrsOf(facts.Named("scatter_dimension_numbers", g.scatterDims())), []*ir.Block{p.b.Combiner(ir.Add, ir.F64)}, nil).Results
	}},
	{name: "scatter that replaces", linear: true, build: func(p *lossProgram) []*ir.Value {
		g := p.gather()
		operands := []*ir.Value{p.float(g.operand...), p.integers(-1, 3, g.indices...), p.float(g.result...)}
		return p.b.Emit(ir.Scatter, operands, ir.AttrsOf(facts.Named("scatter_dimension_numbers", g.scatterDims())), []*ir.Block{secondOf(p.b, ir.F64)}, nil).Results
	}},
	{name: "scatter of two", linear: true, build: func(p *lossProgram) []*ir.Value {
		g := p.gather()
		r := new(ir.Block)
		var a []*ir.Value
		for range 4 {
			a = append(a, p.b.Func.NewArg(r, ir.Tensor(ir.F64), ""))
		}
		in := p.b.In(r)
		in.Emit(ir.Return, []*ir.Value{in.Add(a[2], a[0]), a[3]}, nil, nil, nil)
		operands := []*ir.Value{p.float(g.operand...), p.float(g.operand...), p.integers(-1, 3, g.indices...), p.float(g.result...), p.float(g.result...)}
		return p.b.Emit(ir.Scatter, operands, ir.AttrsOf(facts.Named("scatter_dimension_numbers", g.scatterDims())), []*ir.Block{r}, nil).Results
	}},
	{name: "scatter to unique indices", linear: true, build: func(p *lossProgram) []*ir.Value {
		x, u := p.float(4, 2), p.float(3, 2)
		vs := p.Perm(4)[:3]
		dims := ir.ScatterDims{UpdateWindowDims: []int{1}, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1}
		indices := p.b.Const(ir.Ints64(ir.Tensor(ir.I32, 3, 1), vs...))
		attrs := ir.AttrsOf(facts.Named("scatter_dimension_numbers", dims), facts.Named("unique_indices", ir.Bool(true)))
		return p.b.Emit(ir.Scatter, []*ir.Value{x, indices, u}, attrs, []*ir.Block{secondOf(p.b, ir.F64)}, nil).Results
	}},
}

// sides are the shapes of two operands with dot dimension numbers d.
func (p *lossProgram) sides() (d ir.Dot, l, r []int) {
	l, r = p.sizes(p.IntN(4)), p.sizes(p.IntN(4))
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
func (p *lossProgram) reduce(k ir.Kind, x, init *ir.Value) []*ir.Value {
	return []*ir.Value{p.b.Reduce(k, x, init, p.some(x.Type.Rank())...)}
}

// argmax reduces x and its numbers along a dimension to the largest element
// and where it stands.
func (p *lossProgram) argmax(x, init *ir.Value, dims ...int) []*ir.Value {
	r := new(ir.Block)
	var a []*ir.Value
	for i := range 4 {
		a = append(a, p.b.Func.NewArg(r, ir.Tensor([]ir.DType{ir.F64, ir.I32}[i%2]), ""))
	}
	in := p.b.In(r)
	more := in.Compare("GT", a[0], a[2])
	first := in.Binary(ir.Or, more, in.Binary(ir.And, in.Compare("EQ", a[0], a[2]), in.Compare("LT", a[1], a[3])))
	in.Emit(ir.Return, []*ir.Value{in.Select(more, a[0], a[2]), in.Select(first, a[1], a[3])}, nil, nil, nil)
	number := p.b.Iota(x.Type.WithElem(ir.I32), dims[0])
	return p.b.Emit(ir.Reduce, []*ir.Value{x, number, init, p.b.I32(-1)}, ir.AttrsOf(facts.Named("dimensions", ir.Ints(dims))), []*ir.Block{r}, nil).Results
}

// byFirst is a comparator that orders by the first of operands.
func (p *lossProgram) byFirst(direction string, operands ...*ir.Value) *ir.Block {
	r := new(ir.Block)
	for _, v := range operands {
		p.b.Func.NewArg(r, ir.Tensor(v.Type.Elem), "")
		p.b.Func.NewArg(r, ir.Tensor(v.Type.Elem), "")
	}
	in := p.b.In(r)
	in.Emit(ir.Return, []*ir.Value{in.Compare(direction, r.Args[0], r.Args[1])}, nil, nil, nil)
	return r
}

var reduceGradients = []gradientTest{
	{name: "dot_general", build: func(p *lossProgram) []*ir.Value {
		d, l, r := p.sides()
		return []*ir.Value{p.b.Dot(p.float(l...), p.float(r...), d)}
	}},
	{name: "dot_general of one side", linear: true, build: func(p *lossProgram) []*ir.Value {
		d, l, r := p.sides()
		x, y := p.float(l...), p.b.Const(p.numbers(-1, 1, ir.Tensor(ir.F64, r...)))
		flipped := ir.Dot{LhsBatch: d.RhsBatch, RhsBatch: d.LhsBatch, LhsContract: d.RhsContract, RhsContract: d.LhsContract}
		return []*ir.Value{p.b.Dot(x, y, d), p.b.Dot(y, x, flipped)}
	}},
	{name: "dot_general of mixed types", build: func(p *lossProgram) []*ir.Value {
		d, l, r := p.sides()
		x, y := p.typed(ir.BF16, l...), p.typed(ir.F32, r...)
		narrow := p.b.Dot(x, y, d)
		attrs := ir.AttrsOf(facts.Named("dot_dimension_numbers", d))
		wide := p.b.Emit(ir.DotGeneral, []*ir.Value{x, y}, attrs, nil, []*ir.Type{narrow.Type.WithElem(ir.F64)}).Results
		return append(wide, narrow)
	}},
	{name: "reductions to wider types", linear: true, build: func(p *lossProgram) []*ir.Value {
		x, y := p.typed(ir.BF16, 3, 2), p.typed(ir.F32, 3, 2)
		zero := p.b.Splat(ir.Tensor(ir.BF16), 0)
		index := p.b.Const(ir.Ints64(ir.Tensor(ir.I32, 1), 1))
		dims := ir.ScatterDims{UpdateWindowDims: []int{0}, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}}
		return slices.Concat(
			p.b.Emit(ir.Reduce, []*ir.Value{x, zero}, ir.AttrsOf(facts.Named("dimensions", ir.Ints{0})), []*ir.Block{p.b.Combiner(ir.Add, ir.F32)}, nil).Results,
			p.b.Emit(ir.ReduceWindow, []*ir.Value{x, zero}, ir.AttrsOf(facts.Named("window_dimensions", ir.Ints{2, 1})), []*ir.Block{p.b.Combiner(ir.Add, ir.F32)}, nil).Results,
			p.b.Emit(ir.Scatter, []*ir.Value{y, index, p.typed(ir.F32, 2)}, ir.AttrsOf(facts.Named("scatter_dimension_numbers", dims)), []*ir.Block{p.b.Combiner(ir.Add, ir.F64)}, nil).Results,
		)
	}},
	{name: "reductions by others to wider types", build: func(p *lossProgram) []*ir.Value {
		x := p.apart(3, 2)
		x.Type = x.Type.WithElem(ir.BF16)
		one, dims := p.b.Splat(ir.Tensor(ir.BF16), 1), ir.AttrsOf(facts.Named("dimensions", ir.Ints{1}))
		return slices.Concat(
			p.b.Emit(ir.Reduce, []*ir.Value{x, one}, dims, []*ir.Block{p.b.Combiner(ir.Multiply, ir.F32)}, nil).Results,
			p.b.Emit(ir.Reduce, []*ir.Value{x, one}, dims, []*ir.Block{p.b.Combiner(ir.Maximum, ir.F32)}, nil).Results,
		)
	}},
	{name: "reduce by add", linear: true, build: func(p *lossProgram) []*ir.Value {
		return p.reduce(ir.Add, p.float(p.shape()...), p.float())
	}},
	{name: "reduce by multiply", build: func(p *lossProgram) []*ir.Value {
		return p.reduce(ir.Multiply, p.float(p.shape()...), p.float())
	}},
	{name: "reduce by multiply with zeros", build: func(p *lossProgram) []*ir.Value {
		x := p.float(2, 3)
		return p.reduce(ir.Multiply, p.b.Select(p.booleans(2, 3), x, p.b.Sub(x, x)), p.float())
	}},
	{name: "reduce by maximum", build: func(p *lossProgram) []*ir.Value {
		return p.reduce(ir.Maximum, p.apart(p.shape()...), p.within(-0.03, -0.01))
	}},
	{name: "reduce by minimum", build: func(p *lossProgram) []*ir.Value {
		return p.reduce(ir.Minimum, p.apart(p.shape()...), p.b.Splat(ir.Tensor(ir.F64), 100))
	}},
	{name: "reduce by choice", build: func(p *lossProgram) []*ir.Value {
		x := p.apart(p.sizes(3)...)
		init := p.within(-0.03, -0.01)
		return slices.Concat(p.argmax(x, init, 1), p.argmax(x, init, 2, 0))
	}},
	{name: "reduce of two", linear: true, build: func(p *lossProgram) []*ir.Value {
		s := p.sizes(2)
		r := new(ir.Block)
		var a []*ir.Value
		for range 4 {
			a = append(a, p.b.Func.NewArg(r, ir.Tensor(ir.F64), ""))
		}
		in := p.b.In(r)
		in.Emit(ir.Return, []*ir.Value{in.Add(a[0], a[2]), in.Add(a[3], a[1])}, nil, nil, nil)
		zero := p.b.Splat(ir.Tensor(ir.F64), 0)
		return p.b.Emit(ir.Reduce, []*ir.Value{p.float(s...), p.float(s...), zero, zero}, ir.AttrsOf(facts.Named("dimensions", ir.Ints{p.IntN(2)})), []*ir.Block{r}, nil).Results
	}},
	{name: "sort", build: func(p *lossProgram) []*ir.Value {
		x := p.apart(p.sizes(1 + p.IntN(3))...)
		dim := p.IntN(2*x.Type.Rank()) - x.Type.Rank()
		return p.b.Emit(ir.Sort, []*ir.Value{x}, ir.AttrsOf(facts.Named("dimension", ir.I64Attr(dim))), []*ir.Block{p.byFirst("LT", x)}, nil).Results
	}},
	{name: "sort of several", build: func(p *lossProgram) []*ir.Value {
		x := p.apart(p.sizes(2)...)
		s := x.Type.Shape
		operands := []*ir.Value{x, p.float(s...), p.integers(0, 9, s...), p.float(s...)}
		return p.b.Emit(ir.Sort, operands, ir.AttrsOf(facts.Named("dimension", ir.I64Attr(p.IntN(2)))), []*ir.Block{p.byFirst("GT", operands...)}, nil).Results
	}},
	{name: "sort by equal keys", linear: true, build: func(p *lossProgram) []*ir.Value {
		k := p.integers(0, 2, 7)
		operands := []*ir.Value{k, p.float(7)}
		return p.b.Emit(ir.Sort, operands, ir.AttrsOf(facts.Named("dimension", ir.I64Attr(0)), facts.Named("is_stable", ir.Bool(true))), []*ir.Block{p.byFirst("LT", operands...)}, nil).Results
	}},
}

// branch is a region without arguments that returns what build makes.
func (p *lossProgram) branch(build func(b *ir.Builder) []*ir.Value) *ir.Block {
	r := new(ir.Block)
	in := p.b.In(r)
	in.Emit(ir.Return, build(in), nil, nil, nil)
	return r
}

var controlGradients = []gradientTest{
	{name: "case", build: func(p *lossProgram) []*ir.Value {
		x, y := p.float(2, 2), p.float(2, 2)
		z := p.b.Mul(x, y)
		regions := []*ir.Block{
			p.branch(func(b *ir.Builder) []*ir.Value { s := b.Unary(ir.Sine, x); return []*ir.Value{b.Mul(s, s), y} }),
			p.branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Mul(z, y), b.Splat(x.Type, 3)} }),
			p.branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{y, x} }),
		}
		return p.b.Emit(ir.Case, []*ir.Value{p.integers(-1, 3)}, nil, regions, nil).Results
	}},
	{name: "if in if", build: func(p *lossProgram) []*ir.Value {
		x, y := p.float(3), p.float(3)
		inner := func(b *ir.Builder) []*ir.Value {
			e := b.Unary(ir.Tanh, b.Mul(x, y))
			return b.Emit(ir.If, []*ir.Value{p.booleans()}, nil, []*ir.Block{
				p.branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Mul(e, x)} }),
				p.branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Unary(ir.Cosine, e)} }),
			}, nil).Results
		}
		return p.b.Emit(ir.If, []*ir.Value{p.booleans()}, nil, []*ir.Block{p.branch(inner), p.branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Mul(x, x)} })}, nil).Results
	}},
	{name: "if around a loop around an if", build: func(p *lossProgram) []*ir.Value {
		x, w := p.within(-1, 1, 3), p.within(-1, 1, 3)
		odd := func(b *ir.Builder, i *ir.Value) *ir.Value {
			return b.Compare("EQ", b.Binary(ir.Remainder, i, b.I32(2)), b.I32(1))
		}
		loop := func(b *ir.Builder) []*ir.Value {
			body := new(ir.Block)
			i, c := b.Func.NewArg(body, ir.Tensor(ir.I32), ""), b.Func.NewArg(body, x.Type, "")
			in := b.In(body)
			h := in.Unary(ir.Sine, in.Mul(c, w))
			v := in.Emit(ir.If, []*ir.Value{odd(in, i)}, nil, []*ir.Block{
				p.branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Mul(h, c)} }),
				p.branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{b.Add(h, w)} }),
			}, nil).Result()
			in.Emit(ir.PPYield, []*ir.Value{v, h}, nil, nil, nil)
			return b.Emit(ir.PPScan, []*ir.Value{x}, ir.AttrsOf(facts.Named("carries", ir.I64Attr(1)), facts.Named("trip_count", ir.I64Attr(3))), []*ir.Block{body}, nil).Results
		}
		p.b.Block = p.b.Func.Body
		return p.b.Emit(ir.If, []*ir.Value{p.b.Splat(ir.Tensor(ir.I1), 1)}, nil, []*ir.Block{
			p.branch(loop),
			p.branch(func(b *ir.Builder) []*ir.Value { return []*ir.Value{x, b.Broadcast(x, []int{3, 3}, 1)} }),
		}, nil).Results
	}},
	{name: "while", build: func(p *lossProgram) []*ir.Value {
		start, step := p.IntN(7)-3, []int{-2, -1, 1, 3}[p.IntN(4)]
		return p.while(start, step, p.IntN(5), p.IntN(6))
	}},
	{name: "optimization_barrier", linear: true, build: func(p *lossProgram) []*ir.Value {
		vs := []*ir.Value{p.float(2), p.integers(0, 3), p.float()}
		return p.b.Emit(ir.OptimizationBarrier, vs, nil, nil, ir.Types(vs)).Results
	}},
}

// while is a loop over a counter that takes the given number of steps from
// start; form says how the loop asks whether it has come to an end.
func (p *lossProgram) while(start, step, trips, form int) []*ir.Value {
	b := p.b
	x, w := p.within(-1, 1, 2), p.within(-1, 1, 5, 2)
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

// manual computes build for each device of a mesh of 2 x 2.
func (p *lossProgram) manual(in, out []*ir.Sharding, results []*ir.Type, operands []*ir.Value, build func(b *ir.Builder, args []*ir.Value) []*ir.Value) []*ir.Value {
	p.m.Meshes = []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}}}
	mesh := p.m.Meshes[0]
	body := new(ir.Block)
	for i, v := range operands {
		p.b.Func.NewArg(body, in[i].Local(v.Type, mesh), "")
	}
	inside := p.b.In(body)
	inside.Emit(ir.SdyReturn, build(inside, body.Args), nil, nil, nil)
	attrs := ir.AttrsOf(facts.Named("in_shardings", ir.PerValue(in)), facts.Named("out_shardings", ir.PerValue(out)), facts.Named("manual_axes", ir.Array{ir.Str("x"), ir.Str("y")}))
	return p.b.Emit(ir.ManualComputation, operands, attrs, []*ir.Block{body}, results).Results
}

// along is the sharding with dimension i along the axes dims[i].
func along(dims ...[]ir.AxisRef) *ir.Sharding { return ir.NewSharding("mesh", dims...) }

// groups are attributes of a collective along axis.
func groups(axis string, more ...ir.NamedAttr) ir.Attrs {
	return ir.AttrsOf(append(more, facts.Named("replica_groups", ir.MeshAxes{Mesh: "mesh", Axes: ir.Axs(axis)}), facts.Named("channel_handle", ir.Channel{Handle: 1, Type: 1}))...)
}

// each is a test of a collective on values of 4x4, of which each device has a
// part of 2x2, that makes local parts of the given sizes.
func each(name string, rows, cols int, build func(b *ir.Builder, x *ir.Value) []*ir.Value) gradientTest {
	return gradientTest{name: name, linear: true, build: func(p *lossProgram) []*ir.Value {
		s := along(ir.Axs("x"), ir.Axs("y"))
		return p.manual([]*ir.Sharding{s}, []*ir.Sharding{s}, []*ir.Type{ir.Tensor(ir.F64, 2*rows, 2*cols)}, []*ir.Value{p.float(4, 4)},
			func(b *ir.Builder, args []*ir.Value) []*ir.Value { return build(b, args[0]) })
	}}
}

func rotation(edge string, shift int) gradientTest {
	return gradientTest{name: "pp.rotate " + edge, linear: true, build: func(p *lossProgram) []*ir.Value {
		s := p.sizes(1 + p.IntN(3))
		operands := []*ir.Value{p.float(s...)}
		if edge == "fill" {
			operands = append(operands, p.float(s...))
		}
		return p.attr(ir.PPRotate, operands, facts.Named("edge", ir.Str(edge)), facts.Named("shift", ir.I64Attr(shift)), facts.Named("lowering", ir.Str("slice_pad")))
	}}
}

var deviceGradients = []gradientTest{
	each("all_gather", 4, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		return b.Emit(ir.AllGather, []*ir.Value{x}, groups("y", facts.Named("all_gather_dim", ir.I64Attr(0)), facts.Named("use_global_device_ids", ir.Unit{})), nil, []*ir.Type{ir.Tensor(ir.F64, 4, 2)}).Results
	}),
	each("reduce_scatter", 2, 1, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		attrs := groups("x", facts.Named("scatter_dimension", ir.I64Attr(1)), facts.Named("use_global_device_ids", ir.Unit{}))
		return b.Emit(ir.ReduceScatter, []*ir.Value{x}, attrs, []*ir.Block{b.Combiner(ir.Add, ir.F64)}, []*ir.Type{ir.Tensor(ir.F64, 2, 1)}).Results
	}),
	each("all_reduce", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		return b.Emit(ir.AllReduce, []*ir.Value{x}, groups("x", facts.Named("use_global_device_ids", ir.Unit{})), []*ir.Block{b.Combiner(ir.Add, ir.F64)}, nil).Results
	}),
	each("all_to_all", 4, 1, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		attrs := groups("y", facts.Named("split_dimension", ir.I64Attr(1)), facts.Named("concat_dimension", ir.I64Attr(0)), facts.Named("split_count", ir.I64Attr(2)))
		return b.Emit(ir.AllToAll, []*ir.Value{x}, attrs, nil, nil).Results
	}),
	each("collective_permute along an axis", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		pairs := ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("x"), Shift: 1}
		return b.Emit(ir.CollectivePermute, []*ir.Value{x}, ir.AttrsOf(facts.Named("source_target_pairs", pairs)), nil, nil).Results
	}),
	each("collective_permute along two axes, reversed", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		pairs := ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("y", "x"), Shift: 1, Reverse: true}
		return b.Emit(ir.CollectivePermute, []*ir.Value{x}, ir.AttrsOf(facts.Named("source_target_pairs", pairs)), nil, nil).Results
	}),
	each("collective_permute between axes", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		pairs := ir.AxisMove{Mesh: "mesh", From: ir.Axs("x", "y"), To: ir.Axs("y", "x")}
		return b.Emit(ir.CollectivePermute, []*ir.Value{x}, ir.AttrsOf(facts.Named("source_target_pairs", pairs)), nil, nil).Results
	}),
	each("collective_permute of pairs", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		pairs := ir.Ints64(ir.Tensor(ir.I64, 3, 2), 0, 3, 3, 1, 2, 2)
		return b.Emit(ir.CollectivePermute, []*ir.Value{x}, ir.AttrsOf(facts.Named("source_target_pairs", pairs), facts.Named("channel_handle", ir.Channel{Handle: 1, Type: 1})), nil, nil).Results
	}),
	{name: "manual_computation", build: func(p *lossProgram) []*ir.Value {
		rows, whole := along(ir.Axs("x"), nil), along(nil, nil)
		t := ir.Tensor(ir.F64, 4, 2)
		return p.manual([]*ir.Sharding{rows, whole}, []*ir.Sharding{rows, whole}, []*ir.Type{t, t.WithShape(2, 2)}, []*ir.Value{p.float(4, 2), p.float(2, 2)},
			func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				h := b.Unary(ir.Tanh, b.Mul(args[0], args[1]))
				all := b.Emit(ir.AllReduce, []*ir.Value{h}, groups("x", facts.Named("use_global_device_ids", ir.Unit{})), []*ir.Block{b.Combiner(ir.Add, ir.F64)}, nil).Result()
				return []*ir.Value{b.Mul(h, all), b.Mul(all, args[1])}
			})
	}},
	{name: "sharding_constraint", linear: true, build: func(p *lossProgram) []*ir.Value {
		p.m.Meshes = []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}}}}
		s := along(ir.Axs("x"), nil)
		x := p.float(4, 3)
		x.Sharding = s
		vs := []*ir.Value{p.b.Constrain(x, s)}
		vs = append(vs, p.attr(ir.Reshard, []*ir.Value{x}, facts.Named("sharding", along(nil, ir.Axs("x"))))...)
		return append(vs, p.attr(ir.PPGather, []*ir.Value{x}, facts.Named("sharding", along(nil, nil)))...)
	}},
	{name: "pp.name", linear: true, build: func(p *lossProgram) []*ir.Value {
		return p.attr(ir.PPName, []*ir.Value{p.float(p.shape()...)}, facts.Named("name", ir.Str("x")))
	}},
	rotation("wrap", 1), rotation("wrap", -1), rotation("zero", 1), rotation("zero", -1), rotation("fill", 1), rotation("fill", -1),
}
