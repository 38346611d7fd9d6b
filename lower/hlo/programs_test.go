package hlo

import (
	"ppc/ir"
)

// programs are per-device programs, made by hand, that together use every form
// and every kind of field.
var programs = []struct {
	name  string
	mesh  []ir.MeshAxis
	build func(b *ir.Builder)
}{
	{"elementwise", nil, elementwiseProgram},
	{"movement", nil, movementProgram},
	{"reductions", nil, reductionsProgram},
	{"convolutions", nil, convolutionsProgram},
	{"indexing", nil, indexingProgram},
	{"control", nil, controlProgram},
	{"constants", nil, constantsProgram},
	{"nested_loops", nil, nestedLoops},
	{"ragged", nil, raggedProgram},
	{"algebra", nil, algebraProgram},
	{"collectives", []ir.MeshAxis{{Name: "stage", Size: 2}, {Name: "data", Size: 4}}, collectivesProgram},
	{"broadcast", []ir.MeshAxis{{Name: "stage", Size: 2}, {Name: "data", Size: 4}}, broadcastProgram},
	{"ring", []ir.MeshAxis{{Name: "stage", Size: 4}, {Name: "fsdp", Size: 2}}, ringProgram},
	{"sub_axes", []ir.MeshAxis{{Name: "x", Size: 8}}, subAxesProgram},
}

// module builds one of the programs.
func module(name string, mesh []ir.MeshAxis, build func(*ir.Builder)) *ir.Module {
	m := &ir.Module{Name: name}
	if mesh != nil {
		g := &ir.Mesh{Name: "mesh", Axes: mesh}
		m.Meshes = []*ir.Mesh{g}
		m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: g.Size(), Type: ir.I32})
	}
	f := ir.NewFunc("main")
	build(ir.NewBuilder(f))
	m.Funcs = []*ir.Func{f}
	return m
}

func param(b *ir.Builder, name string, elem ir.DType, shape ...int) *ir.Value {
	return b.Func.NewArg(b.Func.Body, ir.Tensor(elem, shape...), name)
}

// whileLoop appends a loop over i < trips and one more carry.
func whileLoop(b *ir.Builder, trips int, init *ir.Value, step func(b *ir.Builder, i, x *ir.Value) *ir.Value) *ir.Value {
	i32 := ir.Tensor(ir.I32)
	cond, body := new(ir.Block), new(ir.Block)
	i := b.Func.NewArg(cond, i32, "i")
	b.Func.NewArg(cond, init.Type, init.Name)
	in := b.In(cond)
	in.Emit(ir.Return, []*ir.Value{in.Compare("LT", i, in.I32(trips))}, nil, nil, nil)
	i = b.Func.NewArg(body, i32, "i")
	x := b.Func.NewArg(body, init.Type, init.Name)
	in = b.In(body)
	y := step(in, i, x)
	next := in.Add(i, in.I32(1))
	in.Emit(ir.Return, []*ir.Value{next, y}, nil, nil, nil)
	op := b.Emit(ir.While, []*ir.Value{b.I32(0), init}, nil, []*ir.Block{cond, body}, nil)
	return op.Results[1]
}

func elementwiseProgram(b *ir.Builder) {
	x, y := param(b, "x", ir.F32, 2, 3), param(b, "y", ir.F32, 2, 3)
	b = b.At(ir.Origin{Pos: ir.Pos{File: "model.pp", Line: 3, Col: 5}}.Saying(ir.Said{Name: "h", Layer: "decoder"}))
	h := x
	for _, k := range []ir.Kind{ir.Abs, ir.Sqrt, ir.Exponential, ir.Log, ir.Tanh, ir.Logistic, ir.Cosine, ir.Sine, ir.Tan, ir.Cbrt, ir.Ceil, ir.Negate, ir.Floor,
		ir.LogPlusOne, ir.ExponentialMinusOne, ir.Sign, ir.RoundNearestEven, ir.RoundNearestAfz} {
		h = b.Add(b.Unary(k, h), y)
	}
	h = b.Unary(ir.Rsqrt, b.Unary(ir.Abs, h)).Named("h")
	h = b.Emit(ir.ReducePrecision, []*ir.Value{h}, ir.AttrsOf(ir.NamedAttr{Name: "exponent_bits", Attr: ir.I64Attr(8)}, ir.NamedAttr{Name: "mantissa_bits", Attr: ir.I64Attr(7)}), nil, nil).Result()
	for _, k := range []ir.Kind{ir.Subtract, ir.Multiply, ir.Divide, ir.Maximum, ir.Minimum, ir.Remainder, ir.Atan2} {
		h = b.Binary(k, h, y)
	}
	h = b.Binary(ir.Power, b.Unary(ir.Abs, h), y)
	p := b.Compare("LT", x, y)
	h = b.Select(p, h, x)
	zero, one := b.Splat(ir.Tensor(ir.F32), -3), b.Splat(ir.Tensor(ir.F32), 4)
	h = b.Emit(ir.Clamp, []*ir.Value{zero, h, one}, nil, nil, nil).Result()
	q := b.Binary(ir.Xor, b.Binary(ir.And, p, b.Unary(ir.IsFinite, h)), b.Unary(ir.Not, p))
	scalar := b.Compare("GE", b.Reshape(b.SliceDim(b.SliceDim(x, 0, 0, 1), 1, 0, 1)), zero)
	h = b.Select(scalar, h, y)
	i := b.Convert(b.Binary(ir.Maximum, x, y), ir.I32)
	for _, k := range []ir.Kind{ir.ShiftLeft, ir.ShiftRightArithmetic, ir.ShiftRightLogical, ir.Or} {
		i = b.Binary(k, i, b.Splat(i.Type, 2))
	}
	i = b.Add(b.Unary(ir.PopulationCount, i), b.Unary(ir.CountLeadingZeros, i))
	bits := b.Emit(ir.BitcastConvert, []*ir.Value{x}, nil, nil, []*ir.Type{ir.Tensor(ir.UI16, 2, 3, 2)}).Result()
	total := b.Emit(ir.Compare, []*ir.Value{x, y}, ir.AttrsOf(ir.NamedAttr{Name: "compare_type", Attr: ir.HLOEnum("comparison_type", "TOTALORDER")},
		ir.NamedAttr{Name: "comparison_direction", Attr: ir.HLOEnum("comparison_direction", "GT")}), nil, nil).Result()
	b.Return(h, b.Convert(q, ir.F32), i, b.Convert(bits, ir.F32), b.Convert(h, ir.BF16), total)
}

func movementProgram(b *ir.Builder) {
	x, i := param(b, "x", ir.F32, 4, 6), param(b, "i", ir.I32)
	row := b.SliceDim(x, 0, 1, 2) // [1,6]
	wide := b.Broadcast(row, []int{3, 4, 6}, 1, 2).Named("wide")
	turned := b.Transpose(wide, 2, 0, 1)
	cat := b.Concat(1, x, b.Emit(ir.Reverse, []*ir.Value{x}, ir.AttrsOf(ir.NamedAttr{Name: "dimensions", Attr: ir.Ints{0, 1}}), nil, nil).Result())
	zero := b.Splat(ir.Tensor(ir.F32), 0)
	padded := b.Pad(cat, zero, []int{1, -1}, []int{0, 2}, []int{0, 1})
	strided := b.Emit(ir.Slice, []*ir.Value{padded}, ir.AttrsOf(ir.NamedAttr{Name: "start_indices", Attr: ir.Ints{0, 1}}, ir.NamedAttr{Name: "limit_indices", Attr: ir.Ints{5, 20}},
		ir.NamedAttr{Name: "strides", Attr: ir.Ints{2, 3}}), nil, nil).Result()
	column := b.Index(x, 1, i)
	updated := b.SetIndex(x, 0, i, b.Reshape(row, 6))
	b.Return(turned, strided, column, updated, b.Iota(ir.Tensor(ir.I32, 2, 3), 1), b.Reshape(x, 2, 12))
}

func reductionsProgram(b *ir.Builder) {
	x, y := param(b, "x", ir.F32, 4, 6), param(b, "y", ir.F32, 4, 6)
	zero := b.Splat(ir.Tensor(ir.F32), 0)
	sum := b.Reduce(ir.Add, x, zero, 1)
	both := b.Reduce(ir.Add, y, zero, 0, 1)
	top := b.Reduce(ir.Maximum, x, b.Splat(ir.Tensor(ir.F32), -1e30), 0)
	dot := b.Dot(x, y, ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}})
	batched := b.Emit(ir.DotGeneral, []*ir.Value{x, y}, ir.AttrsOf(ir.NamedAttr{Name: "dot_dimension_numbers", Attr: ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{1}, RhsContract: []int{1}}},
		ir.NamedAttr{Name: "precision_config", Attr: ir.Array{ir.HLOEnum("precision", "HIGHEST"), ir.HLOEnum("precision", "DEFAULT")}}), nil, nil).Result()
	b.Return(sum, both, top, dot, batched, argmax(b, x), sumWindow(b, x), sorted(b, x))
}

// argmax reduces values and their positions together.
func argmax(b *ir.Builder, x *ir.Value) *ir.Value {
	r := new(ir.Block)
	var args []*ir.Value
	for _, e := range []ir.DType{ir.F32, ir.I32, ir.F32, ir.I32} {
		args = append(args, b.Func.NewArg(r, ir.Tensor(e), ""))
	}
	in := b.In(r)
	p := in.Compare("GE", args[0], args[2])
	in.Emit(ir.Return, []*ir.Value{in.Select(p, args[0], args[2]), in.Select(p, args[1], args[3])}, nil, nil, nil)
	operands := []*ir.Value{x, b.Iota(x.Type.WithElem(ir.I32), 1), b.Splat(ir.Tensor(ir.F32), -1e30), b.I32(0)}
	return b.Emit(ir.Reduce, operands, ir.AttrsOf(ir.NamedAttr{Name: "dimensions", Attr: ir.Ints{1}}), []*ir.Block{r}, nil).Results[1].Named("argmax")
}

func sumWindow(b *ir.Builder, x *ir.Value) *ir.Value {
	pad := ir.Ints64(ir.Tensor(ir.I64, 2, 2), 0, 0, 1, 0)
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "window_dimensions", Attr: ir.Ints{1, 2}}, ir.NamedAttr{Name: "window_strides", Attr: ir.Ints{2, 1}}, ir.NamedAttr{Name: "padding", Attr: pad})
	return b.Emit(ir.ReduceWindow, []*ir.Value{x, b.Splat(ir.Tensor(ir.F32), 0)}, attrs, []*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil).Result()
}

// sorted sorts positions by value.
func sorted(b *ir.Builder, x *ir.Value) *ir.Value {
	r := new(ir.Block)
	l, m := b.Func.NewArg(r, ir.Tensor(ir.F32), ""), b.Func.NewArg(r, ir.Tensor(ir.F32), "")
	b.Func.NewArg(r, ir.Tensor(ir.I32), "")
	b.Func.NewArg(r, ir.Tensor(ir.I32), "")
	in := b.In(r)
	in.Emit(ir.Return, []*ir.Value{in.Compare("LT", l, m)}, nil, nil, nil)
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "dimension", Attr: ir.I64Attr(-1)}, ir.NamedAttr{Name: "is_stable", Attr: ir.Bool(true)})
	return b.Emit(ir.Sort, []*ir.Value{x, b.Iota(x.Type.WithElem(ir.I32), 1)}, attrs, []*ir.Block{r}, nil).Results[1]
}

func indexingProgram(b *ir.Builder) {
	table, ids, up := param(b, "table", ir.F32, 10, 4), param(b, "ids", ir.I32, 3, 2), param(b, "updates", ir.F32, 3, 2, 4)
	g := ir.GatherDims{OffsetDims: []int{2}, CollapsedSliceDims: []int{0}, StartIndexMap: []int{0}, IndexVectorDim: 2}
	rows := b.Emit(ir.Gather, []*ir.Value{table, ids}, ir.AttrsOf(ir.NamedAttr{Name: "dimension_numbers", Attr: g}, ir.NamedAttr{Name: "slice_sizes", Attr: ir.Ints{1, 4}}), nil, nil).Result().Named("rows")
	s := ir.ScatterDims{UpdateWindowDims: []int{2}, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 2}
	grad := b.Emit(ir.Scatter, []*ir.Value{table, ids, up}, ir.AttrsOf(ir.NamedAttr{Name: "scatter_dimension_numbers", Attr: s}), []*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil).Result().Named("grad")
	pick := param(b, "pick", ir.I32, 3, 2)
	g = ir.GatherDims{OffsetDims: []int{1}, OperandBatchingDims: []int{0}, StartIndicesBatchingDims: []int{0}, StartIndexMap: []int{1}, IndexVectorDim: 1}
	batched := b.Emit(ir.Gather, []*ir.Value{b.SliceDim(table, 0, 0, 3), b.SliceDim(pick, 1, 0, 1)}, ir.AttrsOf(ir.NamedAttr{Name: "dimension_numbers", Attr: g}, ir.NamedAttr{Name: "slice_sizes", Attr: ir.Ints{1, 2}},
		ir.NamedAttr{Name: "indices_are_sorted", Attr: ir.Bool(true)}), nil, nil).Result()
	b.Return(rows, grad, batched)
}

func controlProgram(b *ir.Builder) {
	x, w, i := param(b, "x", ir.F32, 2, 3), param(b, "w", ir.F32, 2, 3), param(b, "i", ir.I32)
	two := b.Splat(x.Type, 2)
	y := whileLoop(b, 3, x, func(b *ir.Builder, i, x *ir.Value) *ir.Value {
		return b.Add(b.Mul(x, w), two).Named("x")
	}).Named("y")
	branch := func(vs ...*ir.Value) *ir.Block {
		r := new(ir.Block)
		b.In(r).Emit(ir.Return, vs, nil, nil, nil)
		return r
	}
	sum := new(ir.Block)
	in := b.In(sum)
	in.Emit(ir.Return, []*ir.Value{in.Add(y, w), two}, nil, nil, nil)
	pair := b.Emit(ir.Case, []*ir.Value{i}, nil, []*ir.Block{branch(y, w), sum, branch(w, w)}, nil)
	p := b.Compare("GT", i, b.I32(0))
	z := b.Emit(ir.If, []*ir.Value{p}, nil, []*ir.Block{branch(two), branch(pair.Results[1])}, nil).Result()
	bar := b.Emit(ir.OptimizationBarrier, []*ir.Value{pair.Results[0], z}, nil, nil, nil)
	one := b.Emit(ir.OptimizationBarrier, []*ir.Value{z}, nil, nil, nil)
	b.Return(bar.Results[0], bar.Results[1], one.Result())
}

func constantsProgram(b *ir.Builder) {
	long := make([]float64, 30)
	for i := range long {
		long[i] = float64(i) / 7
	}
	c := func(l *ir.Literal) *ir.Value { return b.Const(l) }
	nan := &ir.Literal{Type: ir.Tensor(ir.F32, 3), Data: []byte{1, 0, 0xc0, 0x7f, 0, 0, 0x80, 0xff, 0, 0, 0xc0, 0xff}}
	b.Return(c(ir.Floats64(ir.Tensor(ir.F32, 5, 6), long...)).Named("long"), c(ir.Floats64(ir.Tensor(ir.BF16, 2), 0.1, 3e38)), c(ir.Floats64(ir.Tensor(ir.F64), 0.1)),
		c(ir.Ints64(ir.Tensor(ir.I8, 2, 2), 1, -2, 3, -4)), c(ir.Ints64(ir.Tensor(ir.UI64), -1)), c(ir.Ints64(ir.Tensor(ir.I1, 2), 1, 0)), c(nan),
		c(ir.Floats64(ir.Tensor(ir.C64, 2), 1, 2)), c(&ir.Literal{Type: ir.Tensor(ir.F32, 0, 2)}), c(&ir.Literal{Type: ir.Tensor(ir.F32, 2, 0)}), b.Splat(ir.Tensor(ir.F16, 3, 4), 1.5),
		b.Convert(c(&ir.Literal{Type: ir.Tensor(ir.F8E4M3FN, 3), Data: []byte{0x38, 0x7f, 0x01}}), ir.F32), b.Splat(ir.Tensor(ir.F32, 1), 2))
}

// raggedProgram is on its own because XLA:CPU does not run it.
func raggedProgram(b *ir.Builder) {
	x, w, y, sizes := param(b, "x", ir.F32, 2, 6, 4), param(b, "w", ir.F32, 3, 4, 5), param(b, "y", ir.F32, 2, 6, 5), param(b, "sizes", ir.I32, 2, 3)
	dot := func(x, y *ir.Value, d ir.RaggedDims) *ir.Value {
		return b.Emit(ir.RaggedDot, []*ir.Value{x, y, sizes}, ir.AttrsOf(ir.NamedAttr{Name: "ragged_dot_dimension_numbers", Attr: d}), nil, nil).Result()
	}
	rows := dot(x, w, ir.RaggedDims{Dot: ir.Dot{LhsContract: []int{2}, RhsContract: []int{1}}, LhsRagged: []int{1}, RhsGroup: []int{0}}).Named("rows")
	sums := dot(x, y, ir.RaggedDims{Dot: ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{1}, RhsContract: []int{1}}, LhsRagged: []int{1}}).Named("sums")
	b.Return(rows, sums)
}

// algebraProgram has linear algebra, complex numbers and random bits.
func algebraProgram(b *ir.Builder) {
	x, y := param(b, "x", ir.F32, 2, 3, 3), param(b, "y", ir.F32, 2, 3, 2)
	attr := func(name string, a ir.Attr) ir.NamedAttr { return ir.NamedAttr{Name: name, Attr: a} }
	one := func(k ir.Kind, operands []*ir.Value, attrs ...ir.NamedAttr) *ir.Value {
		return b.Emit(k, operands, ir.AttrsOf(attrs...), nil, nil).Result()
	}
	eye := b.Convert(b.Compare("EQ", b.Iota(ir.Tensor(ir.I32, 2, 3, 3), 1), b.Iota(ir.Tensor(ir.I32, 2, 3, 3), 2)), ir.F32)
	square := b.Dot(x, x, ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{2}, RhsContract: []int{2}})
	factor := one(ir.Cholesky, []*ir.Value{b.Add(square, eye)}, attr("lower", ir.Bool(true)))
	solved := one(ir.TriangularSolve, []*ir.Value{factor, y}, attr("left_side", ir.Bool(true)), attr("lower", ir.Bool(true)), attr("unit_diagonal", ir.Bool(false)),
		attr("transpose_a", ir.HLOEnum("transpose", "TRANSPOSE")))
	z := one(ir.ComplexOp, []*ir.Value{x, square})
	spectrum := one(ir.FFT, []*ir.Value{z}, attr("fft_type", ir.HLOEnum("fft_type", "FFT")), attr("fft_length", ir.Ints{3}))
	bits := b.Emit(ir.RngBitGenerator, []*ir.Value{b.Const(ir.Ints64(ir.Tensor(ir.UI64, 2), 7, 9))}, ir.AttrsOf(attr("rng_algorithm", ir.HLOEnum("rng_algorithm", "THREE_FRY"))), nil,
		[]*ir.Type{ir.Tensor(ir.UI64, 2), ir.Tensor(ir.UI32, 4)}).Results
	for _, k := range []ir.Kind{ir.Acos, ir.Acosh, ir.Asin, ir.Asinh, ir.Atanh, ir.Cosh, ir.Sinh} {
		spectrum = b.Unary(k, spectrum)
	}
	b.Return(factor, solved, b.Unary(ir.Real, spectrum), b.Unary(ir.Imag, spectrum), bits[0], bits[1], one(ir.ReplicaID, nil))
}

// nestedLoops captures values over two levels, and one loop's value in another.
func nestedLoops(b *ir.Builder) {
	x, w := param(b, "x", ir.F32, 4), param(b, "w", ir.F32, 5, 4)
	y := whileLoop(b, 5, x, func(b *ir.Builder, i, x *ir.Value) *ir.Value {
		row := b.Index(w, 0, i).Named("row")
		return whileLoop(b, 2, x, func(b *ir.Builder, j, x *ir.Value) *ir.Value {
			k := b.Broadcast(b.Convert(b.Add(i, j), ir.F32), []int{4})
			return b.Add(b.Mul(x, row), k)
		})
	})
	b.Return(y)
}

// collective attaches what every collective has: a channel and groups.
func collective(channel int, groups ir.Attr, more ...ir.NamedAttr) ir.Attrs {
	as := ir.AttrsOf(append(more, ir.NamedAttr{Name: "channel_handle", Attr: ir.Channel{Handle: channel, Type: 1}})...)
	if groups != nil {
		as.Set("replica_groups", groups)
	}
	return as
}

func over(axes ...ir.AxisRef) ir.MeshAxes { return ir.MeshAxes{Mesh: "mesh", Axes: axes} }

func collectivesProgram(b *ir.Builder) {
	x := param(b, "x", ir.F32, 4, 8)
	ids := ir.NamedAttr{Name: "use_global_device_ids", Attr: ir.Unit{}}
	dim := func(name string, d int) ir.NamedAttr { return ir.NamedAttr{Name: name, Attr: ir.I64Attr(d)} }
	stage, data := ir.Ax("stage"), ir.Ax("data")
	gathered := b.Emit(ir.AllGather, []*ir.Value{x}, collective(1, over(data), dim("all_gather_dim", 1), ids), nil, []*ir.Type{ir.Tensor(ir.F32, 4, 32)}).Result()
	sum := b.Emit(ir.AllReduce, []*ir.Value{x}, collective(2, over(stage), ids), []*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil).Result()
	top := b.Emit(ir.AllReduce, []*ir.Value{x}, collective(3, over(data, stage), ids), []*ir.Block{b.Combiner(ir.Maximum, ir.F32)}, nil).Result()
	part := b.Emit(ir.ReduceScatter, []*ir.Value{x}, collective(4, over(data), dim("scatter_dimension", 1), ids), []*ir.Block{b.Combiner(ir.Add, ir.F32)}, []*ir.Type{ir.Tensor(ir.F32, 4, 2)}).Result()
	a2a := b.Emit(ir.AllToAll, []*ir.Value{x}, collective(5, over(data), dim("split_dimension", 0), dim("concat_dimension", 1), dim("split_count", 4)), nil, nil).Result()
	same := b.Emit(ir.AllToAll, []*ir.Value{x}, collective(6, over(stage), dim("split_dimension", 1), dim("concat_dimension", 1), dim("split_count", 2)), nil, nil).Result()
	back := b.Emit(ir.AllToAll, []*ir.Value{x}, collective(7, over(data), dim("split_dimension", 1), dim("concat_dimension", 0), dim("split_count", 4)), nil, nil).Result()
	id := b.Convert(b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), ir.F32)
	pair := b.Emit(ir.AllReduce, []*ir.Value{x, id}, collective(9, ir.Ints64(ir.Tensor(ir.I64, 2, 4), 0, 2, 4, 6, 1, 3, 5, 7), ids), []*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil)
	b.Return(gathered, sum, top, part, a2a, same, back, pair.Results[0], pair.Results[1])
}

// broadcastProgram is on its own because XLA:CPU does not run it.
func broadcastProgram(b *ir.Builder) {
	x := param(b, "x", ir.F32, 4, 8)
	b.Return(b.Emit(ir.CollectiveBroadcast, []*ir.Value{x}, collective(1, over(ir.Ax("data"))), nil, nil).Result())
}

// ringProgram passes a value round the stages in a loop, with a weight that is
// gathered before it.
func ringProgram(b *ir.Builder) {
	x, w := param(b, "x", ir.F32, 2, 4), param(b, "w", ir.F32, 2, 4)
	whole := b.Emit(ir.AllGather, []*ir.Value{w}, collective(1, over(ir.Ax("fsdp")), ir.NamedAttr{Name: "all_gather_dim", Attr: ir.I64Attr(0)}, ir.NamedAttr{Name: "use_global_device_ids", Attr: ir.Unit{}}), nil,
		[]*ir.Type{ir.Tensor(ir.F32, 4, 4)}).Result().Named("w_next")
	y := whileLoop(b, 4, x.Named("shift"), func(b *ir.Builder, i, shift *ir.Value) *ir.Value {
		out := b.Dot(shift, whole, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}).Named("out")
		return b.Emit(ir.CollectivePermute, []*ir.Value{out}, collective(2, nil, ir.NamedAttr{Name: "source_target_pairs", Attr: ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("stage"), Shift: 1, Wrap: true}}), nil, nil).Result().Named("shift")
	})
	edge := b.Emit(ir.CollectivePermute, []*ir.Value{y}, collective(3, nil, ir.NamedAttr{Name: "source_target_pairs", Attr: ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("stage"), Shift: -1}}), nil, nil).Result()
	b.Return(y, edge)
}

func subAxesProgram(b *ir.Builder) {
	x := param(b, "x", ir.F32, 3)
	var out []*ir.Value
	for i, axes := range [][]ir.AxisRef{{{Name: "x", Pre: 1, Size: 2}}, {{Name: "x", Pre: 2, Size: 2}}, {{Name: "x", Pre: 4, Size: 2}}, {{Name: "x", Pre: 4, Size: 2}, {Name: "x", Pre: 1, Size: 2}}, {ir.Ax("x")}} {
		attrs := collective(i+1, over(axes...), ir.NamedAttr{Name: "use_global_device_ids", Attr: ir.Unit{}}, ir.NamedAttr{Name: "all_gather_dim", Attr: ir.I64Attr(0)})
		n := 1
		for range axes {
			n *= 2
		}
		if len(axes) == 1 && axes[0].Size == 0 {
			n = 8
		}
		out = append(out, b.Emit(ir.AllGather, []*ir.Value{x}, attrs, nil, []*ir.Type{ir.Tensor(ir.F32, 3*n)}).Result())
	}
	b.Return(out...)
}

// convolutionsProgram is an image layer with all that a convolution may say, a
// max pooling, and what its gradient scatters back.
func convolutionsProgram(b *ir.Builder) {
	x, w, u := param(b, "x", ir.F32, 2, 8, 6, 4), param(b, "w", ir.F32, 3, 2, 2, 6), param(b, "u", ir.F32, 4, 3, 6)
	dims := ir.ConvDims{Input: ir.ConvSide{First: 0, Second: 3, Spatial: []int{1, 2}}, Kernel: ir.ConvSide{First: 2, Second: 3, Spatial: []int{0, 1}}, Output: ir.ConvSide{First: 0, Second: 3, Spatial: []int{1, 2}}}
	line := ir.ConvDims{Input: ir.ConvSide{First: 0, Second: 2, Spatial: []int{1}}, Kernel: ir.ConvSide{First: 2, Second: 0, Spatial: []int{1}}, Output: ir.ConvSide{First: 0, Second: 2, Spatial: []int{1}}}
	one := ir.I64Attr(1)
	named := func(name string, a ir.Attr) ir.NamedAttr { return ir.NamedAttr{Name: name, Attr: a} }
	pads := func(ns ...int) ir.NamedAttr {
		return named("padding", ir.Ints64(ir.Tensor(ir.I64, len(ns)/2, 2), ns...))
	}
	y := b.Emit(ir.Convolution, []*ir.Value{x, w}, ir.AttrsOf(named("dimension_numbers", dims), named("feature_group_count", ir.I64Attr(2)), named("batch_group_count", one),
		named("window_strides", ir.Ints{2, 1}), pads(1, 1, 0, 2), named("lhs_dilation", ir.Ints{1, 2}), named("rhs_dilation", ir.Ints{2, 1}), named("window_reversal", ir.Bools{true, false})), nil, nil).Result().Named("layer")
	rows := b.Reshape(b.SliceDim(y, 2, 0, 4), 4, 6, 6)
	z := b.Emit(ir.Convolution, []*ir.Value{rows, u}, ir.AttrsOf(named("dimension_numbers", line), named("feature_group_count", one), named("batch_group_count", ir.I64Attr(2)),
		named("precision_config", ir.Array{ir.HLOEnum("precision", "HIGHEST"), ir.HLOEnum("precision", "DEFAULT")})), nil, nil).Result()
	windows := []ir.NamedAttr{named("window_dimensions", ir.Ints{1, 2, 2, 1}), named("window_strides", ir.Ints{1, 2, 2, 1}), pads(0, 0, 0, 0, 0, 0, 0, 0)}
	pooled := b.Emit(ir.ReduceWindow, []*ir.Value{x, b.Splat(ir.Tensor(ir.F32), -100)}, ir.AttrsOf(windows...), []*ir.Block{b.Combiner(ir.Maximum, ir.F32)}, nil).Result()
	ge := new(ir.Block)
	in := b.In(ge)
	in.Emit(ir.Return, []*ir.Value{in.Compare("GE", b.Func.NewArg(ge, ir.Tensor(ir.F32), ""), b.Func.NewArg(ge, ir.Tensor(ir.F32), ""))}, nil, nil, nil)
	back := b.Emit(ir.SelectAndScatter, []*ir.Value{x, pooled, b.Splat(ir.Tensor(ir.F32), 0)}, ir.AttrsOf(windows...), []*ir.Block{ge, b.Combiner(ir.Add, ir.F32)}, nil).Result()
	b.Return(y, z, pooled, back)
}
