package driver

import (
	"fmt"
	"slices"

	"ppc/internal/optest"
	"ppc/ir"
)

// A maker makes an op, or nil; results are those whose types do not follow.
type maker func(g *verifiedMaker, k ir.Kind) *ir.Op

// nesting are the ops with regions that hold others.
var nesting = []ir.Kind{ir.While, ir.Case, ir.If, ir.Call, ir.CompositeCall, ir.NamedComputation}

// elsewhere are ops that other random programs have: their operands have
// shardings, or they move between them.
var elsewhere = []ir.Kind{ir.Unknown, ir.ShardingConstraint, ir.Reshard, ir.ManualComputation, ir.SdyReturn, ir.SdyConstant, ir.DataFlowEdge, ir.PropagationBarrier, ir.ShardingGroup,
	ir.SdyAllGather, ir.SdyAllSlice, ir.SdyAllToAll, ir.SdyCollectivePermute, ir.SdyAllReduce, ir.SdyReduceScatter, ir.ReplicatedToUnreduced, ir.ShardedToUnreduced, ir.PPYield, ir.NamedComputation}

func makersOf(k ir.Kind) maker {
	if m, ok := verifiedMakers[k]; ok {
		return m
	}
	if k.Has(ir.Elementwise) && !k.Has(ir.Pipeline) && !k.Has(ir.Collective) && !slices.Contains(elsewhere, k) {
		return makeElementwise
	}
	return nil
}

// verifiedMakers is filled once: its makers come back to it for regions.
var verifiedMakers = make(map[ir.Kind]maker)

var _ = fillMakers()

func fillMakers() bool {
	for k, m := range map[ir.Kind]maker{
		ir.Convert: retyped, ir.BitcastConvert: makeBitcast, ir.ReducePrecision: makePrecision, ir.Compare: makeCompare, ir.Select: makeSelect, ir.Clamp: makeClamp,
		ir.TopK: makeTopK, ir.Constant: makeConstant, ir.Iota: makeIota, ir.PartitionID: makeSource, ir.ReplicaID: makeSource, ir.RngBitGenerator: makeRng,
		ir.BroadcastInDim: makeBroadcast, ir.Concatenate: makeConcatenate, ir.DynamicSlice: makeDynamicSlice, ir.DynamicUpdateSlice: makeUpdate, ir.Gather: makeGather,
		ir.Pad: makePad, ir.Reshape: makeReshape, ir.Reverse: makeReverse, ir.Scatter: makeScatter, ir.Slice: makeSlice, ir.Transpose: makeTranspose,
		ir.DotGeneral: makeDot, ir.RaggedDot: makeRagged, ir.Convolution: makeConvolution, ir.Reduce: makeReduce, ir.ReduceWindow: makeReduceWindow, ir.SelectAndScatter: makeSelectAndScatter, ir.Sort: makeSort,
		ir.Cholesky: makeCholesky, ir.TriangularSolve: makeTriangular, ir.FFT: makeFFT,
		ir.While: makeWhile, ir.Case: makeBranches, ir.If: makeBranches, ir.Call: makeCall, ir.CompositeCall: makeCall, ir.OptimizationBarrier: makeBarrier, ir.CustomCall: makeCustom,
		ir.TupleOp: makeTuple, ir.GetTupleElement: makeElement,
		ir.AllGather: makeAllGather, ir.AllReduce: makeAllReduce, ir.AllToAll: makeAllToAll, ir.CollectiveBroadcast: makeCollectiveBroadcast, ir.CollectivePermute: makePermute, ir.ReduceScatter: makeReduceScatter,
	} {
		verifiedMakers[k] = m
	}
	return true
}

func opOf(k ir.Kind, operands []*ir.Value, attrs ...ir.NamedAttr) *ir.Op {
	return &ir.Op{Kind: k, Operands: operands, Attrs: ir.AttrsOf(attrs...)}
}

// to is op with a result of type t.
func (g *verifiedMaker) to(op *ir.Op, t *ir.Type) *ir.Op {
	if t.NumElements() > maxVerified {
		return nil
	}
	op.Results = append(op.Results, g.b.Func.NewValue(t, ""))
	return op
}

// makeElementwise tries the types that an op may take until one fits.
func makeElementwise(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	if g.coin() {
		x = g.of(x.Type.WithElem(of(g, ir.F32, ir.I32, ir.I1, ir.F64, ir.C128)))
	}
	operands := []*ir.Value{x}
	for len(operands) < k.NumOperands().Min {
		operands = append(operands, g.of(x.Type))
	}
	return opOf(k, operands)
}

func retyped(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	return g.to(opOf(k, []*ir.Value{x}), x.Type.WithElem(g.elem()))
}

func makeBitcast(g *verifiedMaker, k ir.Kind) *ir.Op {
	x, elem := g.any(), g.elem()
	shape := slices.Clone(x.Type.Shape)
	switch from, to := x.Type.Elem.Bits(), elem.Bits(); {
	case from > to:
		shape = append(shape, from/to)
	case from < to && len(shape) > 0:
		shape = shape[:len(shape)-1]
	}
	return g.to(opOf(k, []*ir.Value{x}), ir.Tensor(elem, shape...))
}

func makePrecision(g *verifiedMaker, k ir.Kind) *ir.Op {
	return opOf(k, []*ir.Value{g.any()}, attrOf("exponent_bits", ir.Int{Value: 1 + g.n(12), Type: ir.I32}), attrOf("mantissa_bits", ir.Int{Value: g.n(60), Type: ir.I32}))
}

func makeCompare(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	op := opOf(k, []*ir.Value{x, g.of(x.Type)}, attrOf("comparison_direction", ir.HLOEnum("comparison_direction", of(g, "EQ", "NE", "GE", "GT", "LE", "LT"))))
	if g.coin() {
		op.Attrs.Set("compare_type", ir.HLOEnum("comparison_type", of(g, "NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")))
	}
	return op
}

func makeSelect(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	p := g.of(x.Type.WithElem(ir.I1))
	if g.n(3) == 0 {
		p = g.of(ir.Tensor(ir.I1))
	}
	return opOf(k, []*ir.Value{p, x, g.of(x.Type)})
}

func makeClamp(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	bound := func() *ir.Value {
		if g.coin() {
			return g.of(ir.Tensor(x.Type.Elem))
		}
		return g.of(x.Type)
	}
	return opOf(k, []*ir.Value{bound(), x, bound()})
}

func makeTopK(g *verifiedMaker, k ir.Kind) *ir.Op {
	return opOf(k, []*ir.Value{g.any()}, attrOf("k", ir.I64Attr(g.n(4))))
}

func makeConstant(g *verifiedMaker, k ir.Kind) *ir.Op {
	v := g.of(g.tensor())
	if v.Def == nil || v.Def.Kind != ir.Constant {
		return nil
	}
	return opOf(k, nil, attrOf("value", v.Def.Attrs.Get("value")))
}

func makeIota(g *verifiedMaker, k ir.Kind) *ir.Op {
	t := g.tensor()
	return g.to(opOf(k, nil, attrOf("iota_dimension", ir.I64Attr(g.n(t.Rank()+1)))), t)
}

func makeSource(g *verifiedMaker, k ir.Kind) *ir.Op { return opOf(k, nil) }

func makeRng(g *verifiedMaker, k ir.Kind) *ir.Op {
	state := g.of(ir.Tensor(ir.UI64, 2+g.n(2)))
	op := g.to(opOf(k, []*ir.Value{state}, attrOf("rng_algorithm", ir.HLOEnum("rng_algorithm", of(g, "DEFAULT", "THREE_FRY", "PHILOX")))), state.Type)
	return g.to(op, g.tensor())
}

func makeBroadcast(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	shape := g.shape()
	dims := make(ir.Ints, x.Type.Rank())
	var free []int
	for d := range shape {
		free = append(free, d)
	}
	for i, n := range x.Type.Shape {
		if len(free) == 0 {
			free, shape = append(free, len(shape)), append(shape, n)
		}
		at := g.n(len(free))
		dims[i] = free[at]
		free = slices.Delete(free, at, at+1)
		if n != 1 || g.coin() {
			shape[dims[i]] = n
		}
	}
	return g.to(opOf(k, []*ir.Value{x}, attrOf("broadcast_dimensions", dims)), x.Type.WithShape(shape...))
}

func makeConcatenate(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	if x.Type.Rank() == 0 {
		return nil
	}
	dim, operands := g.n(x.Type.Rank()), []*ir.Value{x}
	for range g.n(3) {
		shape := slices.Clone(x.Type.Shape)
		shape[dim] = g.n(3)
		operands = append(operands, g.of(x.Type.WithShape(shape...)))
	}
	return opOf(k, operands, attrOf("dimension", ir.I64Attr(dim)))
}

// starts are scalar indices of one type, in range or not.
func (g *verifiedMaker) starts(n int) []*ir.Value {
	t := ir.Tensor(of(g, ir.I32, ir.I64, ir.UI32, ir.I8, ir.UI64))
	out := make([]*ir.Value, n)
	for i := range out {
		out[i] = g.of(t)
	}
	return out
}

// within are sizes up to those of shape.
func (g *verifiedMaker) within(shape []int) []int {
	out := make([]int, len(shape))
	for d, n := range shape {
		out[d] = of(g, n, min(n, 1), g.n(n+1))
	}
	return out
}

func makeDynamicSlice(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	return opOf(k, append([]*ir.Value{x}, g.starts(x.Type.Rank())...), attrOf("slice_sizes", ir.Ints(g.within(x.Type.Shape))))
}

func makeUpdate(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	return opOf(k, append([]*ir.Value{x, g.of(x.Type.WithShape(g.within(x.Type.Shape)...))}, g.starts(x.Type.Rank())...))
}

// A taking is what gather and scatter say of an operand and its indices.
type taking struct {
	collapsed, batched, indexBatch, mapped, offset []int
	vector                                         int
	indices                                        *ir.Type
	window                                         []int // sizes of the slices
}

func (g *verifiedMaker) taking(t *ir.Type) *taking {
	w := &taking{window: g.within(t.Shape)}
	batch := g.shape()
	var mappable []int
	for d, n := range t.Shape {
		switch g.n(4) {
		case 0:
			w.collapsed = append(w.collapsed, d)
			w.window[d] = min(n, 1)
			mappable = append(mappable, d)
		case 1:
			w.batched = append(w.batched, d)
			w.window[d] = min(n, 1)
			w.indexBatch = append(w.indexBatch, len(batch))
			batch = append(batch, n)
		default:
			mappable = append(mappable, d)
		}
	}
	for _, d := range mappable {
		if g.coin() {
			w.mapped = slices.Insert(w.mapped, g.n(len(w.mapped)+1), d)
		}
	}
	shape := slices.Clone(batch)
	w.vector = len(shape)
	if len(w.mapped) != 1 || g.coin() {
		w.vector = g.n(len(shape) + 1)
		shape = slices.Insert(shape, w.vector, len(w.mapped))
		for i, d := range w.indexBatch {
			if d >= w.vector {
				w.indexBatch[i]++
			}
		}
	}
	w.indices = ir.Tensor(of(g, ir.I32, ir.I64, ir.UI8), shape...)
	free := t.Rank() - len(w.collapsed) - len(w.batched)
	all := len(batch) + free
	for d := range all {
		if len(w.offset) < free && (all-d == free-len(w.offset) || g.coin()) {
			w.offset = append(w.offset, d)
		}
	}
	return w
}

func makeGather(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	w := g.taking(x.Type)
	dims := ir.GatherDims{OffsetDims: w.offset, CollapsedSliceDims: w.collapsed, OperandBatchingDims: w.batched, StartIndicesBatchingDims: w.indexBatch, StartIndexMap: w.mapped, IndexVectorDim: w.vector}
	return opOf(k, []*ir.Value{x, g.of(w.indices)}, attrOf("dimension_numbers", dims), attrOf("slice_sizes", ir.Ints(w.window)), attrOf("indices_are_sorted", ir.Bool(g.coin())))
}

func makeScatter(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	w := g.taking(x.Type)
	var update []int
	batch := slices.Clone(w.indices.Shape)
	if w.vector < len(batch) {
		batch = slices.Delete(batch, w.vector, w.vector+1)
	}
	var window []int
	for d, n := range w.window {
		if !slices.Contains(w.collapsed, d) && !slices.Contains(w.batched, d) {
			window = append(window, n)
		}
	}
	for d := range len(batch) + len(window) {
		if slices.Contains(w.offset, d) {
			update, window = append(update, window[0]), window[1:]
		} else {
			update, batch = append(update, batch[0]), batch[1:]
		}
	}
	dims := ir.ScatterDims{UpdateWindowDims: w.offset, InsertedWindowDims: w.collapsed, InputBatchingDims: w.batched, ScatterIndicesBatchingDims: w.indexBatch, ScatterDimsToOperandDims: w.mapped, IndexVectorDim: w.vector}
	op := opOf(k, []*ir.Value{x, g.of(w.indices), g.of(x.Type.WithShape(update...))}, attrOf("scatter_dimension_numbers", dims), attrOf("indices_are_sorted", ir.Bool(false)), attrOf("unique_indices", ir.Bool(false)))
	op.Regions = []*ir.Block{g.combiner(x.Type.Elem)}
	return op
}

// combiner combines numbers of type t: by an op, or in ways that are none.
func (g *verifiedMaker) combiner(t ir.DType) *ir.Block {
	b := new(ir.Block)
	x, y := g.b.Func.NewArg(b, ir.Tensor(t), ""), g.b.Func.NewArg(b, ir.Tensor(t), "")
	in := g.b.In(b)
	v := of(g, x, y, nil, nil, nil, nil)
	if v == nil {
		v = in.Binary(of(g, ir.Add, ir.Multiply, ir.Maximum, ir.Minimum), x, y)
		if g.n(6) == 0 {
			v = in.Add(v, in.Splat(x.Type, 1))
		}
	}
	in.Emit(ir.Return, []*ir.Value{v}, nil, nil, nil)
	return b
}

// comparator compares the first two of pairs of the given types.
func (g *verifiedMaker) comparator(types ...ir.DType) *ir.Block {
	b := new(ir.Block)
	for _, t := range types {
		g.b.Func.NewArg(b, ir.Tensor(t), "")
		g.b.Func.NewArg(b, ir.Tensor(t), "")
	}
	in := g.b.In(b)
	v := in.Compare(of(g, "LT", "GT", "LT", "GT", "LT", "GT", "GE", "EQ"), b.Args[0], b.Args[1])
	if g.n(6) == 0 {
		v = in.Splat(ir.Tensor(ir.I1), float64(g.n(2)))
	}
	in.Emit(ir.Return, []*ir.Value{v}, nil, nil, nil)
	return b
}

func makePad(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	n := x.Type.Rank()
	return opOf(k, []*ir.Value{x, g.of(ir.Tensor(x.Type.Elem))}, attrOf("edge_padding_low", g.sizes(n, 0, 0, 1, -1, 2, -3)), attrOf("edge_padding_high", g.sizes(n, 0, 0, 1, -1, 2)),
		attrOf("interior_padding", g.sizes(n, 0, 0, 1, 3)))
}

func makeReshape(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	left, shape := x.Type.NumElements(), []int{}
	for range g.n(4) {
		n := of(g, 1, 1, 2, 3, 4, 0)
		if n != 0 && left%n == 0 || n == 0 && left == 0 {
			shape = append(shape, n)
			left /= max(n, 1)
		}
	}
	return g.to(opOf(k, []*ir.Value{x}), x.Type.WithShape(append(shape, left)...))
}

func makeReverse(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	return opOf(k, []*ir.Value{x}, attrOf("dimensions", ir.Ints(g.dims(x.Type.Rank()))))
}

func makeSlice(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	limit := g.within(x.Type.Shape)
	return opOf(k, []*ir.Value{x}, attrOf("start_indices", ir.Ints(g.within(limit))), attrOf("limit_indices", ir.Ints(limit)), attrOf("strides", g.sizes(x.Type.Rank(), 1, 1, 2, 5)))
}

func makeTranspose(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	perm := make(ir.Ints, 0, x.Type.Rank())
	for d := range x.Type.Rank() {
		perm = slices.Insert(perm, g.n(d+1), d)
	}
	return opOf(k, []*ir.Value{x}, attrOf("permutation", perm))
}

func makeRagged(g *verifiedMaker, k ir.Kind) *ir.Op {
	dot := makeDot(g, ir.DotGeneral)
	if dot == nil || dot.Operands[0].Type.Rank() == 0 {
		return nil
	}
	x, y := dot.Operands[0], dot.Operands[1]
	groups := g.n(4)
	d, right := optest.Ragged(dot.Attrs.Get("dot_dimension_numbers").(ir.Dot), g.n(x.Type.Rank()), groups, g.n(y.Type.Rank()+1), y.Type.Shape)
	var shape []int
	if g.coin() {
		for _, i := range d.Outer() {
			shape = append(shape, x.Type.Shape[i])
		}
	}
	sizes := g.of(ir.Tensor(of(g, ir.I32, ir.I64, ir.UI8), append(shape, groups)...))
	return opOf(k, []*ir.Value{x, g.of(y.Type.WithShape(right...)), sizes}, attrOf("ragged_dot_dimension_numbers", d))
}

func makeDot(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	var d ir.Dot
	var right []int
	for i, n := range x.Type.Shape {
		switch g.n(3) {
		case 0:
			d.LhsBatch, d.RhsBatch = append(d.LhsBatch, i), append(d.RhsBatch, len(right))
			right = append(right, n)
		case 1:
			d.LhsContract, d.RhsContract = append(d.LhsContract, i), append(d.RhsContract, len(right))
			right = append(right, n)
		}
	}
	right = append(right, g.shape()...)
	op := opOf(k, []*ir.Value{x, g.of(x.Type.WithShape(right...))}, attrOf("dot_dimension_numbers", d))
	if g.coin() {
		return op
	}
	var shape []int
	for _, i := range d.LhsBatch {
		shape = append(shape, x.Type.Shape[i])
	}
	for i, n := range x.Type.Shape {
		if !slices.Contains(d.LhsBatch, i) && !slices.Contains(d.LhsContract, i) {
			shape = append(shape, n)
		}
	}
	shape = append(shape, right[len(d.RhsBatch)+len(d.RhsContract):]...)
	return g.to(op, ir.Tensor(g.elem(), shape...))
}

func (g *verifiedMaker) padding(rank int) *ir.Literal {
	var pads []int
	for range 2 * rank {
		pads = append(pads, of(g, 0, 0, 1, 2, -1))
	}
	return ir.Ints64(ir.Tensor(ir.I64, rank, 2), pads...)
}

func makeConvolution(g *verifiedMaker, k ir.Kind) *ir.Op {
	spatial := g.n(3)
	rank := spatial + 2
	features, batches := of(g, 1, 1, 2), 1
	if features == 1 && g.n(3) == 0 {
		batches = 2
	}
	side := func() ir.ConvSide {
		var perm []int
		for d := range rank {
			perm = slices.Insert(perm, g.n(d+1), d)
		}
		return ir.ConvSide{First: perm[0], Second: perm[1], Spatial: perm[2:]}
	}
	dims := ir.ConvDims{Input: side(), Kernel: side(), Output: side()}
	in, kernel := make([]int, rank), make([]int, rank)
	in[dims.Input.First], in[dims.Input.Second] = batches*of(g, 0, 1, 2), features*of(g, 0, 1, 2)
	kernel[dims.Kernel.First], kernel[dims.Kernel.Second] = in[dims.Input.Second]/features, features*batches*of(g, 0, 1, 2)
	for i := range spatial {
		in[dims.Input.Spatial[i]], kernel[dims.Kernel.Spatial[i]] = g.n(5), g.n(4)
	}
	t := g.elem()
	op := opOf(k, []*ir.Value{g.of(ir.Tensor(t, in...)), g.of(ir.Tensor(t, kernel...))}, attrOf("dimension_numbers", dims), attrOf("feature_group_count", ir.I64Attr(features)),
		attrOf("batch_group_count", ir.I64Attr(batches)))
	if g.coin() {
		op.Attrs.Set("window_strides", g.sizes(spatial, 1, 2, 3))
		op.Attrs.Set("padding", g.padding(spatial))
		op.Attrs.Set("lhs_dilation", g.sizes(spatial, 1, 2))
		op.Attrs.Set("rhs_dilation", g.sizes(spatial, 1, 2))
	}
	if g.n(3) == 0 {
		rev := make(ir.Bools, spatial)
		for i := range rev {
			rev[i] = g.coin()
		}
		op.Attrs.Set("window_reversal", rev)
	}
	return op
}

func makeReduce(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	op := opOf(k, []*ir.Value{x, g.of(ir.Tensor(x.Type.Elem))}, attrOf("dimensions", ir.Ints(g.dims(x.Type.Rank()))))
	op.Regions = []*ir.Block{g.combiner(x.Type.Elem)}
	return op
}

func makeReduceWindow(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	n := x.Type.Rank()
	op := opOf(k, []*ir.Value{x, g.of(ir.Tensor(x.Type.Elem))}, attrOf("window_dimensions", g.sizes(n, 1, 2, 3)))
	if g.coin() {
		op.Attrs.Set("window_strides", g.sizes(n, 1, 2))
		op.Attrs.Set("base_dilations", g.sizes(n, 1, 2))
		op.Attrs.Set("window_dilations", g.sizes(n, 1, 2))
		op.Attrs.Set("padding", g.padding(n))
	}
	op.Regions = []*ir.Block{g.combiner(x.Type.Elem)}
	return op
}

func makeSelectAndScatter(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	n := x.Type.Rank()
	window, strides := g.sizes(n, 1, 2), g.sizes(n, 1, 2)
	source := make([]int, n)
	for d, size := range x.Type.Shape {
		if size >= window[d] {
			source[d] = (size-window[d])/strides[d] + 1
		}
	}
	op := opOf(k, []*ir.Value{x, g.of(x.Type.WithShape(source...)), g.of(ir.Tensor(x.Type.Elem))}, attrOf("window_dimensions", window), attrOf("window_strides", strides))
	op.Regions = []*ir.Block{g.comparator(x.Type.Elem), g.combiner(x.Type.Elem)}
	return op
}

func makeSort(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	operands, types := []*ir.Value{x}, []ir.DType{x.Type.Elem}
	if g.coin() {
		types = append(types, g.elem())
		operands = append(operands, g.of(x.Type.WithElem(types[1])))
	}
	op := opOf(k, operands, attrOf("dimension", ir.I64Attr(g.n(2*x.Type.Rank()+1)-x.Type.Rank())), attrOf("is_stable", ir.Bool(g.coin())))
	op.Regions = []*ir.Block{g.comparator(types...)}
	return op
}

func makeCholesky(g *verifiedMaker, k ir.Kind) *ir.Op {
	n := of(g, 0, 1, 2, 3)
	return opOf(k, []*ir.Value{g.of(ir.Tensor(g.elem(), append(g.shape(), n, n)...))}, attrOf("lower", ir.Bool(g.coin())))
}

func makeTriangular(g *verifiedMaker, k ir.Kind) *ir.Op {
	n, t, batch := of(g, 0, 1, 2, 3), g.elem(), g.shape()
	left, rows, columns := g.coin(), n, of(g, 0, 1, 2)
	if !left {
		rows, columns = columns, rows
	}
	a, b := append(slices.Clone(batch), n, n), append(slices.Clone(batch), rows, columns)
	return opOf(k, []*ir.Value{g.of(ir.Tensor(t, a...)), g.of(ir.Tensor(t, b...))}, attrOf("left_side", ir.Bool(left)), attrOf("lower", ir.Bool(g.coin())), attrOf("unit_diagonal", ir.Bool(g.coin())),
		attrOf("transpose_a", ir.HLOEnum("transpose", of(g, "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))))
}

func makeFFT(g *verifiedMaker, k ir.Kind) *ir.Op {
	kind := of(g, "FFT", "IFFT", "RFFT", "IRFFT")
	x := g.any()
	if elem := map[bool]ir.DType{true: ir.F32, false: ir.C64}[kind == "RFFT"]; g.n(4) > 0 {
		x = g.of(x.Type.WithElem(elem))
	}
	length := slices.Clone(x.Type.Shape[g.n(x.Type.Rank()+1):])
	if last := len(length) - 1; kind == "IRFFT" && last >= 0 {
		length[last] = max(0, 2*(length[last]-1)+g.n(2))
	}
	return opOf(k, []*ir.Value{x}, attrOf("fft_type", ir.HLOEnum("fft_type", kind)), attrOf("fft_length", ir.Ints(length)))
}

// inside makes a region of about n ops whose arguments are of types in, and
// returns what it ends with: values of types out.
func (g *verifiedMaker) inside(in []*ir.Type, n int, out []*ir.Type, end ir.Kind) *ir.Block {
	b, outer, pool := new(ir.Block), g.b, g.pool
	g.pool = slices.Clone(pool)
	for _, t := range in {
		g.pool = append(g.pool, g.b.Func.NewArg(b, t, ""))
	}
	g.b = outer.In(b)
	g.depth++
	for range n {
		g.op()
	}
	var results []*ir.Value
	for _, t := range out {
		results = append(results, g.of(t))
	}
	g.depth--
	g.b.Emit(end, results, nil, nil, nil)
	g.b, g.pool = outer, pool
	return b
}

func makeWhile(g *verifiedMaker, k ir.Kind) *ir.Op {
	counter := g.b.I32(0)
	operands := []*ir.Value{counter}
	for range g.n(3) {
		operands = append(operands, g.any())
	}
	types := ir.Types(operands)
	do := g.inside(types, g.n(3), types, ir.Return)
	end := do.Terminator()
	in := g.b.In(do)
	do.Ops = do.Ops[:len(do.Ops)-1]
	end.Operands[0] = in.Add(do.Args[0], in.I32(1))
	do.Ops = append(do.Ops, end)
	cond := new(ir.Block)
	for _, t := range types {
		g.b.Func.NewArg(cond, t, "")
	}
	test := g.b.In(cond)
	test.Emit(ir.Return, []*ir.Value{test.Compare("LT", cond.Args[0], test.I32(g.n(3)))}, nil, nil, nil)
	op := opOf(k, operands)
	op.Regions = []*ir.Block{cond, do}
	return op
}

func makeBranches(g *verifiedMaker, k ir.Kind) *ir.Op {
	var types []*ir.Type
	for range g.n(3) {
		types = append(types, g.any().Type)
	}
	op := opOf(k, []*ir.Value{g.of(ir.Tensor(map[bool]ir.DType{true: ir.I1, false: ir.I32}[k == ir.If]))})
	for range map[bool]int{true: 2, false: 1 + g.n(3)}[k == ir.If] {
		op.Regions = append(op.Regions, g.inside(nil, g.n(3), types, ir.Return))
	}
	return op
}

func makeCall(g *verifiedMaker, k ir.Kind) *ir.Op {
	operands := []*ir.Value{}
	for range g.n(3) {
		operands = append(operands, g.any())
	}
	f := ir.NewFunc(fmt.Sprint("f", len(g.funcs)))
	f.Private = true
	outer, pool, depth := g.b, g.pool, g.depth
	g.b, g.pool, g.depth = ir.NewBuilder(f), nil, 2
	for _, v := range operands {
		g.pool = append(g.pool, f.NewArg(f.Body, v.Type, ""))
	}
	for range 1 + g.n(3) {
		g.op()
	}
	var results []*ir.Value
	for range 1 + g.n(2) {
		results = append(results, g.any())
	}
	g.b.Return(results...)
	g.b, g.pool, g.depth = outer, pool, depth
	g.funcs = append(g.funcs, f)
	op := opOf(k, operands, attrOf("callee", ir.Sym(f.Name)))
	if k == ir.CompositeCall {
		op = opOf(k, operands, attrOf("name", ir.Str("my."+f.Name)), attrOf("decomposition", ir.Sym(f.Name)))
	}
	for _, v := range results {
		op.Results = append(op.Results, g.b.Func.NewValue(v.Type, ""))
	}
	return op
}

func makeBarrier(g *verifiedMaker, k ir.Kind) *ir.Op {
	return opOf(k, []*ir.Value{g.any(), g.any()}[:1+g.n(2)])
}

func makeCustom(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	return g.to(opOf(k, []*ir.Value{x}, attrOf("call_target_name", ir.Str(of(g, "Sharding", "annotate_device_placement", "MoveToHost", "unknown")))), x.Type)
}

func makeTuple(g *verifiedMaker, k ir.Kind) *ir.Op {
	return opOf(k, []*ir.Value{g.any(), g.any()}[:g.n(3)])
}

func makeElement(g *verifiedMaker, k ir.Kind) *ir.Op {
	for _, v := range g.pool {
		if v.Type.Kind == ir.TupleType && len(v.Type.Elems) > 0 {
			return opOf(k, []*ir.Value{v}, attrOf("index", ir.Int{Value: g.n(len(v.Type.Elems)), Type: ir.I32}))
		}
	}
	return nil
}

// groups are those of two devices: one of both, or one each.
func (g *verifiedMaker) groups() (*ir.Literal, int) {
	if g.coin() {
		return ir.Ints64(ir.Tensor(ir.I64, 1, 2), of(g, []int{0, 1}, []int{1, 0})...), 2
	}
	return ir.Ints64(ir.Tensor(ir.I64, 2, 1), 0, 1), 1
}

// collective is op k over groups of the devices.
func (g *verifiedMaker) collective(k ir.Kind, operands []*ir.Value, groups *ir.Literal, attrs ...ir.NamedAttr) *ir.Op {
	op := opOf(k, operands, append(attrs, attrOf("replica_groups", groups), attrOf("channel_handle", ir.Channel{Handle: 1 + g.n(100), Type: 1}))...)
	if k.Spec("use_global_device_ids") != nil {
		op.Attrs.Set("use_global_device_ids", ir.Unit{})
	}
	return op
}

func makeAllGather(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	if x.Type.Rank() == 0 {
		return nil
	}
	groups, n := g.groups()
	dim, shape := g.n(x.Type.Rank()), slices.Clone(x.Type.Shape)
	shape[dim] *= n
	return g.to(g.collective(k, []*ir.Value{x}, groups, attrOf("all_gather_dim", ir.I64Attr(dim))), x.Type.WithShape(shape...))
}

func makeAllReduce(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	groups, _ := g.groups()
	op := g.collective(k, []*ir.Value{x}, groups)
	op.Regions = []*ir.Block{g.combiner(x.Type.Elem)}
	return op
}

func makeReduceScatter(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	if x.Type.Rank() == 0 {
		return nil
	}
	groups, n := g.groups()
	dim, shape := g.n(x.Type.Rank()), slices.Clone(x.Type.Shape)
	shape[dim] *= n
	op := g.to(g.collective(k, []*ir.Value{g.of(x.Type.WithShape(shape...))}, groups, attrOf("scatter_dimension", ir.I64Attr(dim))), x.Type)
	op.Regions = []*ir.Block{g.combiner(x.Type.Elem)}
	return op
}

func makeAllToAll(g *verifiedMaker, k ir.Kind) *ir.Op {
	x := g.any()
	if x.Type.Rank() == 0 {
		return nil
	}
	groups, n := g.groups()
	split, concat := g.n(x.Type.Rank()), g.n(x.Type.Rank())
	return g.collective(k, []*ir.Value{x}, groups, attrOf("split_dimension", ir.I64Attr(split)), attrOf("concat_dimension", ir.I64Attr(concat)), attrOf("split_count", ir.I64Attr(n)))
}

func makeCollectiveBroadcast(g *verifiedMaker, k ir.Kind) *ir.Op {
	groups, _ := g.groups()
	return g.collective(k, []*ir.Value{g.any()}, groups)
}

func makePermute(g *verifiedMaker, k ir.Kind) *ir.Op {
	pairs := of(g, []int{}, []int{0, 1}, []int{0, 1, 1, 0}, []int{1, 1})
	return opOf(k, []*ir.Value{g.any()}, attrOf("source_target_pairs", ir.Ints64(ir.Tensor(ir.I64, len(pairs)/2, 2), pairs...)), attrOf("channel_handle", ir.Channel{Handle: 1, Type: 1}))
}

func attrOf(name string, a ir.Attr) ir.NamedAttr { return ir.NamedAttr{Name: name, Attr: a} }
