package runtime_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/runtime"
)

type values = []*ir.Value

// A structureCase is a program of one device, to be run on every element type
// that only accepts (nil: all).
type structureCase struct {
	name  string
	kind  ir.Kind // that it is about
	only  func(ir.DType) bool
	types func(e ir.DType) []*ir.Type
	build func(b *ir.Builder, in values) values
}

func shapes(ss ...[]int) func(e ir.DType) []*ir.Type {
	return func(e ir.DType) []*ir.Type {
		ts := make([]*ir.Type, len(ss))
		for i, s := range ss {
			ts[i] = ir.Tensor(e, s...)
		}
		return ts
	}
}

// withIndices is a tensor of the element type and others of i32.
func withIndices(shape []int, indices ...[]int) func(e ir.DType) []*ir.Type {
	return func(e ir.DType) []*ir.Type {
		ts := []*ir.Type{ir.Tensor(e, shape...)}
		for _, s := range indices {
			ts = append(ts, ir.Tensor(ir.I32, s...))
		}
		return ts
	}
}

func attr(name string, a ir.Attr) ir.NamedAttr { return ir.NamedAttr{Name: name, Attr: a} }

func reverse(b *ir.Builder, x *ir.Value, dims ...int) *ir.Value {
	return b.Emit(ir.Reverse, values{x}, ir.AttrsOf(attr("dimensions", ir.Ints(dims))), nil, nil).Result()
}

func summable(e ir.DType) bool { return e.IsFloat() || e.IsInt() }
func plain(e ir.DType) bool    { return !e.IsComplex() }

// pairBody is the region of a reduction over two operands, the larger of the
// first with its companion: what argmax makes.
func pairBody(b *ir.Builder, e, f ir.DType) *ir.Block {
	r := new(ir.Block)
	for _, t := range []ir.DType{e, f, e, f} {
		b.Func.NewArg(r, ir.Tensor(t), "")
	}
	in := b.In(r)
	p := in.Compare("GE", r.Args[0], r.Args[2])
	in.Emit(ir.Return, values{in.Select(p, r.Args[0], r.Args[2]), in.Select(p, r.Args[1], r.Args[3])}, nil, nil, nil)
	return r
}

// secondBody is the region that returns its second argument.
func secondBody(b *ir.Builder, e ir.DType) *ir.Block {
	r := new(ir.Block)
	b.Func.NewArg(r, ir.Tensor(e), "")
	v := b.Func.NewArg(r, ir.Tensor(e), "")
	b.In(r).Emit(ir.Return, values{v}, nil, nil, nil)
	return r
}

// scaledBody is x + y*k with a k from outside.
func scaledBody(b *ir.Builder, k *ir.Value) *ir.Block {
	r := new(ir.Block)
	x, y := b.Func.NewArg(r, k.Type, ""), b.Func.NewArg(r, k.Type, "")
	in := b.In(r)
	in.Emit(ir.Return, values{in.Add(x, in.Mul(y, k))}, nil, nil, nil)
	return r
}

func lessBody(b *ir.Builder, direction string, es ...ir.DType) *ir.Block {
	r := new(ir.Block)
	for _, e := range es {
		b.Func.NewArg(r, ir.Tensor(e), "")
		b.Func.NewArg(r, ir.Tensor(e), "")
	}
	in := b.In(r)
	in.Emit(ir.Return, values{in.Compare(direction, r.Args[0], r.Args[1])}, nil, nil, nil)
	return r
}

func dotCase(name string, l, r []int, d ir.Dot) structureCase {
	return structureCase{name, ir.DotGeneral, nil, shapes(l, r), func(b *ir.Builder, in values) values { return values{b.Dot(in[0], in[1], d)} }}
}

// raggedCase is a dot by groups, of each sizes in turn.
func raggedCase(name string, l, r []int, d ir.RaggedDims, shape []int, all ...[]int) structureCase {
	return structureCase{name, ir.RaggedDot, nil, shapes(l, r), func(b *ir.Builder, in values) (out values) {
		for _, sizes := range all {
			n := b.Const(ir.Ints64(ir.Tensor(ir.I32, shape...), sizes...))
			out = append(out, b.Emit(ir.RaggedDot, values{in[0], in[1], n}, ir.AttrsOf(attr("ragged_dot_dimension_numbers", d)), nil, nil).Result())
		}
		return out
	}}
}

// convCase is convolutions of the same operands, each with other attributes.
func convCase(name string, l, r []int, dims ir.ConvDims, all ...[]ir.NamedAttr) structureCase {
	return structureCase{name, ir.Convolution, nil, shapes(l, r), func(b *ir.Builder, in values) (out values) {
		for _, as := range all {
			attrs := ir.AttrsOf(attr("dimension_numbers", dims), attr("feature_group_count", ir.I64Attr(1)), attr("batch_group_count", ir.I64Attr(1)))
			for _, a := range as {
				attrs.Set(a.Name, a.Attr)
			}
			out = append(out, b.Emit(ir.Convolution, in, attrs, nil, nil).Result())
		}
		return out
	}}
}

var (
	plane  = ir.ConvDims{Input: ir.ConvSide{First: 0, Second: 3, Spatial: []int{1, 2}}, Kernel: ir.ConvSide{First: 2, Second: 3, Spatial: []int{0, 1}}, Output: ir.ConvSide{First: 3, Second: 0, Spatial: []int{2, 1}}}
	line   = ir.ConvDims{Input: ir.ConvSide{First: 1, Second: 0, Spatial: []int{2}}, Kernel: ir.ConvSide{First: 0, Second: 2, Spatial: []int{1}}, Output: ir.ConvSide{First: 0, Second: 1, Spatial: []int{2}}}
	places = ir.ConvDims{Input: ir.ConvSide{First: 0, Second: 1}, Kernel: ir.ConvSide{First: 0, Second: 1}, Output: ir.ConvSide{First: 1, Second: 0}}
)

func pads(ns ...int) ir.NamedAttr {
	return attr("padding", ir.Ints64(ir.Tensor(ir.I64, len(ns)/2, 2), ns...))
}

func reduceCase(name string, shape []int, dims ...int) structureCase {
	return structureCase{name, ir.Reduce, summable, shapes(shape, nil), func(b *ir.Builder, in values) (out values) {
		for _, k := range []ir.Kind{ir.Add, ir.Multiply, ir.Maximum, ir.Minimum} {
			out = append(out, b.Reduce(k, in[0], in[1], dims...))
		}
		return out
	}}
}

func padCase(name string, shape, low, high, interior []int) structureCase {
	return structureCase{name, ir.Pad, nil, shapes(shape, nil), func(b *ir.Builder, in values) values {
		return values{b.Pad(in[0], in[1], low, high, interior)}
	}}
}

func gatherCase(name string, shape, idx, sizes []int, g ir.GatherDims) structureCase {
	return structureCase{name, ir.Gather, nil, withIndices(shape, idx), func(b *ir.Builder, in values) values {
		return b.Emit(ir.Gather, in, ir.AttrsOf(attr("dimension_numbers", g), attr("slice_sizes", ir.Ints(sizes))), nil, nil).Results
	}}
}

func scatterCase(name string, shape, idx, upd []int, g ir.ScatterDims) structureCase {
	types := func(e ir.DType) []*ir.Type {
		return []*ir.Type{ir.Tensor(e, shape...), ir.Tensor(ir.I32, idx...), ir.Tensor(e, upd...)}
	}
	return structureCase{name, ir.Scatter, nil, types, func(b *ir.Builder, in values) values {
		e := in[0].Type.Elem
		var out values
		for _, r := range []*ir.Block{b.Combiner(ir.Add, e), secondBody(b, e)} {
			out = append(out, b.Emit(ir.Scatter, in, ir.AttrsOf(attr("scatter_dimension_numbers", g)), []*ir.Block{r}, nil).Results...)
		}
		return out
	}}
}

var structureCases = []structureCase{
	{"constant", ir.Constant, nil, shapes(), func(b *ir.Builder, _ values) values {
		return values{b.Splat(ir.Tensor(ir.F32, 3), 2), b.Const(ir.Ints64(ir.Tensor(ir.I1, 3), 1, 0, 1))}
	}},
	{"iota", ir.Iota, func(e ir.DType) bool { return e != ir.I1 }, shapes([]int{1}), func(b *ir.Builder, in values) values {
		e := in[0].Type.Elem
		return values{b.Iota(ir.Tensor(e, 5), 0), b.Iota(ir.Tensor(e, 2, 3, 4), 0), b.Iota(ir.Tensor(e, 2, 3, 4), 1), b.Iota(ir.Tensor(e, 2, 3, 4), 2), b.Iota(ir.Tensor(e, 0, 4), 1)}
	}},
	{"broadcast", ir.BroadcastInDim, nil, shapes([]int{}, []int{3}, []int{3, 1}, []int{2, 3}), func(b *ir.Builder, in values) values {
		return values{b.Broadcast(in[0], []int{2, 2}), b.Broadcast(in[1], []int{2, 3}, 1), b.Broadcast(in[1], []int{3, 2}, 0), b.Broadcast(in[2], []int{3, 4}, 0, 1),
			b.Broadcast(in[3], []int{3, 2}, 1, 0), b.Broadcast(in[3], []int{4, 2, 5, 3}, 1, 3), b.Broadcast(in[0], []int{0})}
	}},
	{"concatenate", ir.Concatenate, nil, shapes([]int{2, 3}, []int{2, 1}, []int{4, 3}), func(b *ir.Builder, in values) values {
		return values{b.Concat(1, in[0], in[1], in[0]), b.Concat(0, in[2], in[0])}
	}},
	{"dynamic_slice", ir.DynamicSlice, nil, withIndices([]int{5, 6}, nil, nil), func(b *ir.Builder, in values) values {
		return values{b.DynamicSlice(in[0], in[1:], 2, 3), b.DynamicSlice(in[0], in[1:], 1, 6), b.DynamicSlice(in[0], in[1:], 5, 1)}
	}},
	{"dynamic_update_slice", ir.DynamicUpdateSlice, nil, func(e ir.DType) []*ir.Type {
		return []*ir.Type{ir.Tensor(e, 5, 6), ir.Tensor(e, 2, 3), ir.Tensor(ir.UI64), ir.Tensor(ir.UI64)}
	}, func(b *ir.Builder, in values) values {
		y := b.DynamicUpdateSlice(in[0], in[1], in[2:])
		return values{y, b.DynamicUpdateSlice(reverse(b, y, 0), in[1], in[2:])}
	}},
	{"scalar slices", ir.DynamicSlice, nil, shapes([]int{}, []int{}), func(b *ir.Builder, in values) values {
		return values{b.DynamicSlice(in[0], nil), b.DynamicUpdateSlice(in[0], in[1], nil)}
	}},
	padCase("pad", []int{2, 3}, []int{1, 0}, []int{0, 2}, []int{0, 1}),
	padCase("pad negative", []int{4, 5}, []int{-1, 1}, []int{2, -2}, []int{1, 2}),
	padCase("pad cuts", []int{6}, []int{-3}, []int{-2}, []int{1}),
	padCase("pad nothing", []int{0, 2}, []int{1, 0}, []int{1, 0}, []int{3, 0}),
	padCase("pad away", []int{3}, []int{-3}, []int{2}, []int{0}),
	{"reshape", ir.Reshape, nil, shapes([]int{2, 3}), func(b *ir.Builder, in values) values {
		return values{b.Reshape(in[0], 6), b.Reshape(in[0], 3, 1, 2)}
	}},
	{"reverse", ir.Reverse, nil, shapes([]int{2, 3, 4}), func(b *ir.Builder, in values) values {
		return values{reverse(b, in[0], 0), reverse(b, in[0], 2, 1), reverse(b, in[0])}
	}},
	{"slice", ir.Slice, nil, shapes([]int{5, 7}), func(b *ir.Builder, in values) values {
		return values{b.SliceDim(in[0], 0, 1, 4), b.SliceDim(in[0], 1, 2, 3),
			b.Emit(ir.Slice, in, ir.AttrsOf(attr("start_indices", ir.Ints{1, 0}), attr("limit_indices", ir.Ints{5, 7}), attr("strides", ir.Ints{2, 3})), nil, nil).Result()}
	}},
	{"transpose", ir.Transpose, nil, shapes([]int{2, 3, 4}, []int{70, 90}), func(b *ir.Builder, in values) values {
		return values{b.Transpose(in[0], 2, 0, 1), b.Transpose(in[0], 1, 0, 2), b.Transpose(in[0], 2, 1, 0), b.Transpose(in[1], 1, 0)}
	}},
	gatherCase("gather rows", []int{6, 3}, []int{4}, []int{1, 3}, ir.GatherDims{OffsetDims: []int{1}, CollapsedSliceDims: []int{0}, StartIndexMap: []int{0}, IndexVectorDim: 1}),
	gatherCase("gather windows", []int{6, 5}, []int{2, 3}, []int{2, 3}, ir.GatherDims{OffsetDims: []int{0, 2}, StartIndexMap: []int{1, 0}, IndexVectorDim: 0}),
	gatherCase("gather batched", []int{2, 6, 3}, []int{2, 4, 1}, []int{1, 1, 3}, ir.GatherDims{OffsetDims: []int{2}, CollapsedSliceDims: []int{1}, OperandBatchingDims: []int{0}, StartIndicesBatchingDims: []int{0}, StartIndexMap: []int{1}, IndexVectorDim: 2}),
	scatterCase("scatter rows", []int{6, 3}, []int{4, 1}, []int{4, 3}, ir.ScatterDims{UpdateWindowDims: []int{1}, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1}),
	scatterCase("scatter windows", []int{9, 9}, []int{2, 3}, []int{2, 3, 2}, ir.ScatterDims{UpdateWindowDims: []int{0, 2}, ScatterDimsToOperandDims: []int{1, 0}, IndexVectorDim: 0}),
	scatterCase("scatter batched", []int{2, 6, 3}, []int{2, 4, 1}, []int{2, 4, 3}, ir.ScatterDims{UpdateWindowDims: []int{2}, InsertedWindowDims: []int{1}, InputBatchingDims: []int{0}, ScatterIndicesBatchingDims: []int{0}, ScatterDimsToOperandDims: []int{1}, IndexVectorDim: 2}),
	dotCase("dot", []int{5, 7}, []int{7, 6}, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}),
	dotCase("dot transposed", []int{7, 5}, []int{6, 7}, ir.Dot{LhsContract: []int{0}, RhsContract: []int{1}}),
	dotCase("dot batched", []int{3, 5, 4}, []int{4, 6, 3}, ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{2}, LhsContract: []int{2}, RhsContract: []int{0}}),
	dotCase("dot two", []int{2, 3, 4, 5}, []int{5, 3, 6, 2}, ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{3}, LhsContract: []int{3, 1}, RhsContract: []int{0, 1}}),
	dotCase("dot vector", []int{9}, []int{9}, ir.Dot{LhsContract: []int{0}, RhsContract: []int{0}}),
	dotCase("dot rows", []int{17, 9}, []int{9}, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}),
	dotCase("dot outer", []int{3}, []int{4}, ir.Dot{}),
	dotCase("dot of nothing", []int{3, 0}, []int{0, 4}, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}),
	{"dot widens", ir.DotGeneral, func(e ir.DType) bool { return e == ir.BF16 || e == ir.F16 || e == ir.I8 }, shapes([]int{5, 7}, []int{7, 6}), func(b *ir.Builder, in values) values {
		out := ir.Tensor(map[ir.DType]ir.DType{ir.BF16: ir.F32, ir.F16: ir.F32, ir.I8: ir.I32}[in[0].Type.Elem], 5, 6)
		return b.Emit(ir.DotGeneral, in, ir.AttrsOf(attr("dot_dimension_numbers", ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})), nil, []*ir.Type{out}).Results
	}},
	raggedCase("ragged rows", []int{11, 5}, []int{3, 5, 7}, ir.RaggedDims{Dot: ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}, LhsRagged: []int{0}, RhsGroup: []int{0}},
		[]int{3}, []int{4, 4, 3}, []int{0, 2, 5}, []int{0, 0, 0}, []int{-1, 20, 3}),
	raggedCase("ragged rows of batches", []int{2, 11, 5}, []int{3, 2, 5, 7}, ir.RaggedDims{Dot: ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{1}, LhsContract: []int{2}, RhsContract: []int{2}}, LhsRagged: []int{1}, RhsGroup: []int{0}},
		[]int{2, 3}, []int{4, 4, 3, 0, 9, 1}),
	raggedCase("ragged rows in any order", []int{5, 2, 6, 3, 2}, []int{7, 2, 5, 3}, ir.RaggedDims{Dot: ir.Dot{LhsBatch: []int{4}, RhsBatch: []int{1}, LhsContract: []int{0}, RhsContract: []int{2}}, LhsRagged: []int{2}, RhsGroup: []int{3}},
		[]int{2, 2, 3}, []int{1, 2, 3, 0, 2, 1, 6, 0, 0, 1, 1, 1}),
	raggedCase("ragged sums", []int{4, 11}, []int{11, 7}, ir.RaggedDims{Dot: ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}, LhsRagged: []int{1}},
		[]int{3}, []int{4, 4, 3}, []int{0, 2, 5}, []int{-1, 20, 3}),
	raggedCase("ragged sums of several dimensions", []int{3, 6, 4, 2, 2}, []int{2, 2, 3, 6, 7}, ir.RaggedDims{Dot: ir.Dot{LhsBatch: []int{4}, RhsBatch: []int{0}, LhsContract: []int{0, 1, 3}, RhsContract: []int{2, 3, 1}}, LhsRagged: []int{1}},
		[]int{2, 3, 2}, []int{1, 2, 3, 3, 0, 6, 4, 2, 0, 0, 1, 1}),
	raggedCase("ragged batches", []int{6, 4, 3}, []int{6, 3, 5}, ir.RaggedDims{Dot: ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{2}, RhsContract: []int{1}}, LhsRagged: []int{0}},
		[]int{2}, []int{4, 1}),
	raggedCase("ragged nothing", []int{0, 5}, []int{3, 5, 7}, ir.RaggedDims{Dot: ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}, LhsRagged: []int{0}, RhsGroup: []int{0}},
		[]int{3}, []int{0, 1, 0}),
	raggedCase("ragged rows to nothing, groups last", []int{4, 2}, []int{0, 2, 3}, ir.RaggedDims{Dot: ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}, LhsRagged: []int{0}, RhsGroup: []int{2}},
		[]int{3}, []int{1, 2, 1}, []int{0, 2, 0}),
	raggedCase("ragged rows of nothing", []int{4, 0}, []int{3, 0, 7}, ir.RaggedDims{Dot: ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}, LhsRagged: []int{0}, RhsGroup: []int{0}},
		[]int{3}, []int{1, 1, 1}),
	reduceCase("reduce rows", []int{5, 4}, 1),
	reduceCase("reduce columns", []int{4, 5}, 0),
	reduceCase("reduce middle", []int{3, 4, 5}, 1),
	reduceCase("reduce outer and inner", []int{2, 3, 4}, 0, 2),
	reduceCase("reduce alternately", []int{2, 3, 2, 3}, 1, 3),
	reduceCase("reduce all", []int{3, 3}, 0, 1),
	reduceCase("reduce none", []int{3, 3}),
	reduceCase("reduce nothing", []int{3, 0}, 1),
	{"reduce booleans", ir.Reduce, func(e ir.DType) bool { return e == ir.I1 || e.IsInt() }, shapes([]int{4, 5}, nil), func(b *ir.Builder, in values) (out values) {
		for _, k := range []ir.Kind{ir.And, ir.Or, ir.Xor, ir.Add, ir.Maximum} {
			out = append(out, b.Reduce(k, in[0], in[1], 1), b.Reduce(k, in[0], in[1], 0))
		}
		return out
	}},
	{"argmax", ir.Reduce, plain, func(e ir.DType) []*ir.Type {
		return []*ir.Type{ir.Tensor(e, 4, 6), ir.Tensor(ir.I32, 4, 6), ir.Tensor(e), ir.Tensor(ir.I32)}
	}, func(b *ir.Builder, in values) (out values) {
		for _, dims := range []ir.Ints{{0}, {1}, {0, 1}} {
			out = append(out, b.Emit(ir.Reduce, in, ir.AttrsOf(attr("dimensions", dims)), []*ir.Block{pairBody(b, in[0].Type.Elem, ir.I32)}, nil).Results...)
		}
		return out
	}},
	{"reduce with capture", ir.Reduce, func(e ir.DType) bool { return plain(e) && (!e.IsFloat() || e.Size() > 2) }, shapes([]int{4, 6}, nil, nil), func(b *ir.Builder, in values) values {
		return b.Emit(ir.Reduce, in[:2], ir.AttrsOf(attr("dimensions", ir.Ints{1})), []*ir.Block{scaledBody(b, b.Binary(ir.Maximum, in[2], in[2]))}, nil).Results
	}},
	{"reduce widens", ir.Reduce, func(e ir.DType) bool { return e == ir.F32 || e == ir.BF16 }, shapes([]int{4, 6}, nil), func(b *ir.Builder, in values) values {
		return b.Emit(ir.Reduce, in, ir.AttrsOf(attr("dimensions", ir.Ints{1})), []*ir.Block{b.Combiner(ir.Add, ir.F64)}, nil).Results
	}},
	{"reduce_window", ir.ReduceWindow, summable, shapes([]int{5, 6}, nil), func(b *ir.Builder, in values) values {
		as := ir.AttrsOf(attr("window_dimensions", ir.Ints{2, 3}), attr("window_strides", ir.Ints{1, 2}), attr("base_dilations", ir.Ints{2, 1}),
			attr("window_dilations", ir.Ints{1, 2}), attr("padding", ir.Ints64(ir.Tensor(ir.I64, 2, 2), 1, 0, 2, 1)))
		return values{b.Emit(ir.ReduceWindow, in, as, []*ir.Block{b.Combiner(ir.Add, in[0].Type.Elem)}, nil).Result(),
			b.Emit(ir.ReduceWindow, in, ir.AttrsOf(attr("window_dimensions", ir.Ints{5, 2})), []*ir.Block{b.Combiner(ir.Maximum, in[0].Type.Elem)}, nil).Result()}
	}},
	convCase("convolution", []int{2, 5, 6, 1}, []int{3, 2, 1, 4}, plane, nil,
		[]ir.NamedAttr{attr("window_strides", ir.Ints{2, 1}), pads(1, 0, 2, -1), attr("lhs_dilation", ir.Ints{1, 2}), attr("rhs_dilation", ir.Ints{2, 1}), attr("window_reversal", ir.Bools{false, true})},
		[]ir.NamedAttr{attr("batch_group_count", ir.I64Attr(2)), pads(1, 1, 0, 0)}, []ir.NamedAttr{pads(-2, -2, 0, 0)}),
	convCase("convolution by features", []int{4, 2, 7}, []int{2, 3, 6}, line, []ir.NamedAttr{attr("feature_group_count", ir.I64Attr(2)), pads(2, 1)}),
	convCase("convolution of channels", []int{4, 2, 7}, []int{1, 3, 8}, line, []ir.NamedAttr{attr("feature_group_count", ir.I64Attr(4)), attr("window_strides", ir.Ints{3})}),
	convCase("convolution of points", []int{4, 3}, []int{3, 8}, places, nil, []ir.NamedAttr{attr("batch_group_count", ir.I64Attr(4))}),
	convCase("convolution of nothing", []int{4, 0, 7}, []int{4, 3, 8}, line, nil),
	{"select_and_scatter", ir.SelectAndScatter, plain, shapes([]int{5, 6}, []int{5, 3}, []int{3, 5}, nil), func(b *ir.Builder, in values) values {
		e := in[0].Type.Elem
		return values{
			b.Emit(ir.SelectAndScatter, values{in[0], in[1], in[3]}, ir.AttrsOf(attr("window_dimensions", ir.Ints{1, 2}), attr("window_strides", ir.Ints{1, 2})), []*ir.Block{lessBody(b, "GE", e), b.Combiner(ir.Add, e)}, nil).Result(),
			b.Emit(ir.SelectAndScatter, values{in[0], in[2], in[3]}, ir.AttrsOf(attr("window_dimensions", ir.Ints{3, 3}), attr("window_strides", ir.Ints{2, 1}), pads(1, 1, 1, 0)), []*ir.Block{lessBody(b, "LT", e), b.Combiner(ir.Maximum, e)}, nil).Result(),
		}
	}},
	{"rng_bit_generator", ir.RngBitGenerator, ir.DType.IsInt, func(ir.DType) []*ir.Type { return []*ir.Type{ir.Tensor(ir.UI64, 2), ir.Tensor(ir.UI64, 3)} }, func(b *ir.Builder, in values) (out values) {
		for _, e := range []ir.DType{ir.I8, ir.UI16, ir.I32, ir.UI64} {
			for i, word := range []string{"THREE_FRY", "PHILOX", "DEFAULT"} {
				state := in[min(i, 1)]
				out = append(out, b.Emit(ir.RngBitGenerator, values{state}, ir.AttrsOf(attr("rng_algorithm", ir.HLOEnum("rng_algorithm", word))), nil, []*ir.Type{state.Type, ir.Tensor(e, 3, 5)}).Results...)
			}
		}
		return out
	}},
	{"sort", ir.Sort, plain, shapes([]int{3, 17}, []int{3, 17}), func(b *ir.Builder, in values) (out values) {
		e := in[0].Type.Elem
		for _, dim := range []int{0, 1, -1} {
			out = append(out, b.Emit(ir.Sort, in, ir.AttrsOf(attr("dimension", ir.I64Attr(dim)), attr("is_stable", ir.Bool(true))), []*ir.Block{lessBody(b, "LT", e, e)}, nil).Results...)
		}
		return append(out, b.Emit(ir.Sort, in[:1], ir.AttrsOf(attr("dimension", ir.I64Attr(1))), []*ir.Block{lessBody(b, "GT", e)}, nil).Result())
	}},
	{"cholesky", ir.Cholesky, fractional, shapes([]int{2, 5, 5}), func(b *ir.Builder, in values) (out values) {
		a := positive(b, in[0])
		for _, lower := range []bool{false, true} {
			out = append(out, b.Emit(ir.Cholesky, values{a}, ir.AttrsOf(attr("lower", ir.Bool(lower))), nil, nil).Result())
			out = append(out, b.Emit(ir.Cholesky, values{b.Unary(ir.Negate, a)}, ir.AttrsOf(attr("lower", ir.Bool(lower))), nil, nil).Result())
		}
		return out
	}},
	{"triangular solve", ir.TriangularSolve, fractional, shapes([]int{2, 3, 3}, []int{2, 3, 4}, []int{2, 4, 3}, []int{2, 3, 0}), func(b *ir.Builder, in values) (out values) {
		a := positive(b, in[0])
		for n := range 24 {
			transpose := []string{"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}[n/8]
			x := values{in[2]}
			if n&1 != 0 {
				x = values{in[1], in[3]}
			}
			for _, x := range x {
				out = append(out, b.Emit(ir.TriangularSolve, values{a, x}, ir.AttrsOf(attr("left_side", ir.Bool(n&1 != 0)), attr("lower", ir.Bool(n&2 != 0)),
					attr("unit_diagonal", ir.Bool(n&4 != 0)), attr("transpose_a", ir.HLOEnum("transpose", transpose))), nil, nil).Result())
			}
		}
		return out
	}},
	{"fft", ir.FFT, func(t ir.DType) bool { return t.IsComplex() }, shapes([]int{2, 12}, []int{3, 7, 1}, []int{3, 6, 10}, []int{2, 0}), func(b *ir.Builder, in values) (out values) {
		transform := func(kind string, x *ir.Value, length ...int) *ir.Value {
			v := b.Emit(ir.FFT, values{x}, ir.AttrsOf(attr("fft_type", ir.HLOEnum("fft_type", kind)), attr("fft_length", ir.Ints(slices.Clone(length)))), nil, nil).Result()
			out = append(out, v)
			return v
		}
		for _, x := range in {
			for n := 1; n <= x.Type.Rank(); n++ {
				length := slices.Clone(x.Type.Shape[x.Type.Rank()-n:])
				transform("FFT", x, length...)
				transform("IFFT", x, length...)
				transform("IRFFT", transform("RFFT", b.Unary(ir.Real, x), length...), length...)
				if last := len(length) - 1; length[last] > 1 {
					length[last] = 2*length[last] - 1
					transform("IRFFT", x, length...)
				}
			}
		}
		return out
	}},
	{"while", ir.While, summable, shapes([]int{3}), func(b *ir.Builder, in values) values {
		return loop(b, 5, values{in[0], b.Add(in[0], in[0])}, func(in *ir.Builder, _ *ir.Value, args []*ir.Value) []*ir.Value {
			return values{args[1], in.Binary(ir.Maximum, args[0], args[1])}
		})
	}},
	{"while never", ir.While, nil, shapes([]int{3}), func(b *ir.Builder, in values) values {
		return loop(b, 0, in, func(in *ir.Builder, _ *ir.Value, args []*ir.Value) []*ir.Value {
			return values{reverse(in, args[0], 0)}
		})
	}},
	{"branches", ir.Case, nil, withIndices([]int{3}, nil), func(b *ir.Builder, in values) values {
		var branches []*ir.Block
		for range 3 {
			branches = append(branches, new(ir.Block))
		}
		b.In(branches[0]).Emit(ir.Return, values{in[0], in[0]}, nil, nil, nil)
		r := b.In(branches[1])
		r.Emit(ir.Return, values{reverse(r, in[0], 0), in[0]}, nil, nil, nil)
		b.In(branches[2]).Emit(ir.Return, values{b.In(branches[2]).Splat(in[0].Type, 1), in[0]}, nil, nil, nil)
		c := b.Emit(ir.Case, in[1:], nil, branches, nil).Results
		return append(c, in[0])
	}},
	{"if", ir.If, nil, shapes([]int{3}), func(b *ir.Builder, in values) values {
		p := b.Compare("EQ", b.I32(1), b.I32(1))
		yes, no := new(ir.Block), new(ir.Block)
		b.In(yes).Emit(ir.Return, values{reverse(b.In(yes), in[0], 0)}, nil, nil, nil)
		b.In(no).Emit(ir.Return, values{in[0]}, nil, nil, nil)
		return b.Emit(ir.If, values{p}, nil, []*ir.Block{yes, no}, nil).Results
	}},
	{"tuple", ir.TupleOp, nil, shapes([]int{3}, []int{2}), func(b *ir.Builder, in values) values {
		t := b.Emit(ir.TupleOp, in, nil, nil, nil).Result()
		first := b.Emit(ir.GetTupleElement, values{t}, ir.AttrsOf(attr("index", ir.Int{Value: 0, Type: ir.I32})), nil, nil).Result()
		second := b.Emit(ir.GetTupleElement, values{t}, ir.AttrsOf(attr("index", ir.Int{Value: 1, Type: ir.I32})), nil, nil).Result()
		return values{second, first, reverse(b, first, 0)}
	}},
	{"get_tuple_element of a nested tuple", ir.GetTupleElement, nil, shapes([]int{3}, []int{2}), func(b *ir.Builder, in values) values {
		element := func(x *ir.Value, i int) *ir.Value {
			return b.Emit(ir.GetTupleElement, values{x}, ir.AttrsOf(attr("index", ir.Int{Value: i, Type: ir.I32})), nil, nil).Result()
		}
		inner := b.Emit(ir.TupleOp, in, nil, nil, nil).Result()
		outer := b.Emit(ir.TupleOp, values{in[0], inner}, nil, nil, nil).Result()
		return values{element(element(outer, 1), 1), element(outer, 0)}
	}},
	{"barrier", ir.OptimizationBarrier, nil, shapes([]int{3}, []int{2}), func(b *ir.Builder, in values) values {
		return b.Emit(ir.OptimizationBarrier, in, nil, nil, nil).Results
	}},
	{"ids", ir.PartitionID, nil, shapes(), func(b *ir.Builder, in values) values {
		return values{b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), b.Emit(ir.ReplicaID, nil, nil, nil, nil).Result()}
	}},
}

func fractional(t ir.DType) bool { return t.IsFloat() || t.IsComplex() }

// positive makes of square matrices such that have a factor.
func positive(b *ir.Builder, x *ir.Value) *ir.Value {
	adjoint := x
	if x.Type.Elem.IsComplex() {
		adjoint = b.Binary(ir.ComplexOp, b.Unary(ir.Real, x), b.Unary(ir.Negate, b.Unary(ir.Imag, x)))
	}
	n := x.Type.Rank()
	d := ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{n - 1}, RhsContract: []int{n - 1}}
	a := b.Emit(ir.DotGeneral, values{x, adjoint}, ir.AttrsOf(attr("dot_dimension_numbers", d)), nil, nil).Result()
	square := x.Type.Shape[n-1]
	same := b.Compare("EQ", b.Iota(ir.Tensor(ir.I32, square, square), 0), b.Iota(ir.Tensor(ir.I32, square, square), 1))
	return b.Add(a, b.Convert(b.Broadcast(same, a.Type.Shape, 1, 2), x.Type.Elem))
}

// testStructure holds case i on every element type against the evaluator; none
// leaves a part of its result unwritten (buffers are poisoned).
func testStructure(t *testing.T, i int) {
	c := structureCases[i]
	tol := sums
	if c.kind == ir.FFT { // whose sums are of other numbers than what they make, and larger ones
		tol = map[ir.DType]float64{ir.F32: 4e-6, ir.C64: 4e-6, ir.F64: 1e-12, ir.C128: 1e-12}
	}
	for _, e := range computed() {
		if c.only == nil || c.only(e) {
			agree(t, e.String(), tol, rand.New(rand.NewPCG(uint64(e), uint64(i))), false, c.types(e), c.build)
		}
	}
}

// Functions call each other, some more than once; none may call itself.
func TestCall(t *testing.T) {
	x := ir.Tensor(ir.F32, 3)
	m := program(1, []*ir.Type{x}, func(b *ir.Builder, in values) values { return in })
	inner := ir.NewFunc("inner")
	b := ir.NewBuilder(inner)
	v := inner.NewArg(inner.Body, x, "")
	b.Return(b.Add(v, v), v, b.Splat(x, 1))
	outer := ir.NewFunc("outer")
	b = ir.NewBuilder(outer)
	v = outer.NewArg(outer.Body, x, "")
	vs := b.Call(inner, v)
	b.Return(append(b.Call(inner, vs[0]), vs[1])...)
	main := ir.NewFunc("main")
	b = ir.NewBuilder(main)
	v = main.NewArg(main.Body, x, "")
	b.Return(b.Call(outer, v)...)
	m.Funcs = []*ir.Func{main, outer, inner}
	args := [][]*ir.Literal{{ir.Floats64(x, 1, 2, 3)}}
	agreeOn(t, "call", nil, m, args)

	b = ir.NewBuilder(inner)
	inner.Body.Ops = nil
	b.Return(b.Call(outer, inner.Body.Args[0])[:3]...)
	if _, err := runtime.Load(m); err == nil || !strings.Contains(err.Error(), "calls itself") {
		t.Errorf("got %v, want that a function calls itself", err)
	}
}
