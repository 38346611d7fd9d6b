package hlo

import (
	"ppc/ir"
)

// A row says how one op is spelled. Rows are data: what prints and parses by
// them is elsewhere.
type row struct {
	opcode string
	form   form
	calls  []string // the attributes that name the computations which its regions are
	shaped bool     // its result type does not follow from the rest
	fields []field

	// fits, if not nil, completes attributes that have been read, and reports
	// whether the operands have what these say of them; if not, the instruction
	// is carried through unread.
	fits func(attrs *ir.Attrs, operands []*ir.Value) bool
}

// field is the field of r called name, or nil; r may be nil.
func (r *row) field(name string) *field {
	if r == nil {
		return nil
	}
	for i := range r.fields {
		if r.fields[i].name == name {
			return &r.fields[i]
		}
	}
	return nil
}

// complete gives as those attributes of an op that HLO leaves out.
func (r *row) complete(as *ir.Attrs) {
	for _, f := range r.fields {
		if f.absent != nil && !as.Has(f.absent.Name) {
			as.Set(f.absent.Name, f.absent.Attr)
		}
	}
}

// rowOf is the row of k, or nil.
func rowOf(k ir.Kind) *row {
	if r, ok := table[k]; ok {
		return &r
	}
	return nil
}

func simple(opcode string, fields ...field) row { return row{opcode: opcode, fields: fields} }

// given is a row whose shape must be written.
func given(r row) row {
	r.shaped = true
	return r
}

func fitting(fits func(attrs *ir.Attrs, operands []*ir.Value) bool, r row) row {
	r.fits = fits
	return r
}

func applied(opcode string, fields ...field) row {
	return row{opcode: opcode, calls: []string{"to_apply"}, fields: fields}
}

func formed(opcode string, f form, fields ...field) row {
	return row{opcode: opcode, form: f, fields: fields}
}

// table has a row for every op that may stand in a per-device program, and for erf,
// which may in one of XLA's.
var table = map[ir.Kind]row{
	ir.Abs:                 simple("abs"),
	ir.Cbrt:                simple("cbrt", accuracy()),
	ir.Ceil:                simple("ceil"),
	ir.CountLeadingZeros:   simple("count-leading-zeros"),
	ir.Cosine:              simple("cosine", accuracy()),
	ir.Exponential:         simple("exponential", accuracy()),
	ir.ExponentialMinusOne: simple("exponential-minus-one", accuracy()),
	ir.Floor:               simple("floor"),
	ir.IsFinite:            simple("is-finite"),
	ir.Log:                 simple("log", accuracy()),
	ir.LogPlusOne:          simple("log-plus-one", accuracy()),
	ir.Logistic:            simple("logistic", accuracy()),
	ir.Negate:              simple("negate"),
	ir.Not:                 simple("not"),
	ir.PopulationCount:     simple("popcnt"),
	ir.RoundNearestAfz:     simple("round-nearest-afz"),
	ir.RoundNearestEven:    simple("round-nearest-even"),
	ir.Rsqrt:               simple("rsqrt", accuracy()),
	ir.Sign:                simple("sign"),
	ir.Sine:                simple("sine", accuracy()),
	ir.Sqrt:                simple("sqrt", accuracy()),
	ir.Tan:                 simple("tan", accuracy()),
	ir.Tanh:                simple("tanh", accuracy()),
	ir.Convert:             given(simple("convert")),
	ir.BitcastConvert:      given(simple("bitcast-convert")),
	ir.Imag:                simple("imag"),
	ir.Real:                simple("real"),
	ir.ReducePrecision:     simple("reduce-precision", number("exponent_bits", "exponent_bits"), number("mantissa_bits", "mantissa_bits")),

	ir.Add:                  simple("add"),
	ir.And:                  simple("and"),
	ir.Atan2:                simple("atan2"),
	ir.ComplexOp:            simple("complex"),
	ir.Divide:               simple("divide"),
	ir.Maximum:              simple("maximum"),
	ir.Minimum:              simple("minimum"),
	ir.Multiply:             simple("multiply"),
	ir.Or:                   simple("or"),
	ir.Power:                simple("power"),
	ir.Remainder:            simple("remainder"),
	ir.ShiftLeft:            simple("shift-left"),
	ir.ShiftRightArithmetic: simple("shift-right-arithmetic"),
	ir.ShiftRightLogical:    simple("shift-right-logical"),
	ir.Subtract:             simple("subtract"),
	ir.Xor:                  simple("xor"),
	ir.Compare:              fitting(orderFits, simple("compare", word("direction", "comparison_direction", "comparison_direction", "EQ", "NE", "GE", "GT", "LE", "LT"), compareType(), compareOrder())),
	ir.Select:               formed("select", leveled),
	ir.Clamp:                formed("clamp", leveled),

	ir.Erf:   simple("erf", accuracy()),
	ir.Acos:  simple("acos", accuracy()),
	ir.Acosh: simple("acosh", accuracy()),
	ir.Asin:  simple("asin", accuracy()),
	ir.Asinh: simple("asinh", accuracy()),
	ir.Atanh: simple("atanh", accuracy()),
	ir.Cosh:  simple("cosh", accuracy()),
	ir.Sinh:  simple("sinh", accuracy()),

	ir.Constant:        formed("constant", constant),
	ir.Iota:            given(simple("iota", number("iota_dimension", "iota_dimension"))),
	ir.PartitionID:     simple("partition-id"),
	ir.ReplicaID:       simple("replica-id"),
	ir.RngBitGenerator: given(simple("rng-bit-generator", rngAlgorithm())),

	ir.BroadcastInDim:     given(formed("broadcast", stretched, absent(ints("dimensions", "broadcast_dimensions"), "broadcast_dimensions", ir.Ints{}))),
	ir.Concatenate:        simple("concatenate", single("dimensions", "dimension")),
	ir.DynamicSlice:       simple("dynamic-slice", ints("dynamic_slice_sizes", "slice_sizes")),
	ir.DynamicUpdateSlice: simple("dynamic-update-slice"),
	ir.Gather: simple("gather",
		part("offset_dims", "dimension_numbers", func(g *ir.GatherDims) *[]int { return &g.OffsetDims }),
		part("collapsed_slice_dims", "dimension_numbers", func(g *ir.GatherDims) *[]int { return &g.CollapsedSliceDims }),
		part("start_index_map", "dimension_numbers", func(g *ir.GatherDims) *[]int { return &g.StartIndexMap }),
		somePart("operand_batching_dims", "dimension_numbers", func(g *ir.GatherDims) *[]int { return &g.OperandBatchingDims }),
		somePart("start_indices_batching_dims", "dimension_numbers", func(g *ir.GatherDims) *[]int { return &g.StartIndicesBatchingDims }),
		partNumber("index_vector_dim", "dimension_numbers", func(g *ir.GatherDims) *int { return &g.IndexVectorDim }),
		ints("slice_sizes", "slice_sizes"), flag("indices_are_sorted", "indices_are_sorted")),
	ir.Pad:     simple("pad", padding()),
	ir.Reshape: given(simple("reshape")),
	ir.Reverse: simple("reverse", ints("dimensions", "dimensions")),
	ir.Scatter: applied("scatter",
		part("update_window_dims", "scatter_dimension_numbers", func(s *ir.ScatterDims) *[]int { return &s.UpdateWindowDims }),
		part("inserted_window_dims", "scatter_dimension_numbers", func(s *ir.ScatterDims) *[]int { return &s.InsertedWindowDims }),
		part("scatter_dims_to_operand_dims", "scatter_dimension_numbers", func(s *ir.ScatterDims) *[]int { return &s.ScatterDimsToOperandDims }),
		somePart("input_batching_dims", "scatter_dimension_numbers", func(s *ir.ScatterDims) *[]int { return &s.InputBatchingDims }),
		somePart("scatter_indices_batching_dims", "scatter_dimension_numbers", func(s *ir.ScatterDims) *[]int { return &s.ScatterIndicesBatchingDims }),
		partNumber("index_vector_dim", "scatter_dimension_numbers", func(s *ir.ScatterDims) *int { return &s.IndexVectorDim }),
		flag("indices_are_sorted", "indices_are_sorted"), flag("unique_indices", "unique_indices")),
	ir.Slice:     simple("slice", slice()),
	ir.Transpose: simple("transpose", ints("dimensions", "permutation")),

	ir.DotGeneral: simple("dot",
		somePart("lhs_batch_dims", "dot_dimension_numbers", func(d *ir.Dot) *[]int { return &d.LhsBatch }),
		somePart("lhs_contracting_dims", "dot_dimension_numbers", func(d *ir.Dot) *[]int { return &d.LhsContract }),
		somePart("rhs_batch_dims", "dot_dimension_numbers", func(d *ir.Dot) *[]int { return &d.RhsBatch }),
		somePart("rhs_contracting_dims", "dot_dimension_numbers", func(d *ir.Dot) *[]int { return &d.RhsContract }),
		algorithm(), absent(precision(), "dot_dimension_numbers", ir.Dot{})),
	ir.RaggedDot: simple("ragged-dot",
		somePart("lhs_batch_dims", "ragged_dot_dimension_numbers", func(d *ir.RaggedDims) *[]int { return &d.LhsBatch }),
		somePart("lhs_contracting_dims", "ragged_dot_dimension_numbers", func(d *ir.RaggedDims) *[]int { return &d.LhsContract }),
		somePart("rhs_batch_dims", "ragged_dot_dimension_numbers", func(d *ir.RaggedDims) *[]int { return &d.RhsBatch }),
		somePart("rhs_contracting_dims", "ragged_dot_dimension_numbers", func(d *ir.RaggedDims) *[]int { return &d.RhsContract }),
		part("lhs_ragged_dims", "ragged_dot_dimension_numbers", func(d *ir.RaggedDims) *[]int { return &d.LhsRagged }),
		somePart("rhs_group_dims", "ragged_dot_dimension_numbers", func(d *ir.RaggedDims) *[]int { return &d.RhsGroup }),
		precision()),
	ir.Convolution:      fitting(kernelFits, simple("convolution", convWindow(), dimLabels(), groupCount("feature_group_count"), groupCount("batch_group_count"), precision())),
	ir.Reduce:           applied("reduce", ints("dimensions", "dimensions")),
	ir.ReduceWindow:     applied("reduce-window", window()),
	ir.SelectAndScatter: row{opcode: "select-and-scatter", calls: []string{"select", "scatter"}, fields: []field{window()}},
	ir.Sort:             applied("sort", sortDimension(), flag("is_stable", "is_stable")),

	ir.Cholesky:        simple("cholesky", flag("lower", "lower")),
	ir.TriangularSolve: simple("triangular-solve", yesNo("left_side"), yesNo("lower"), yesNo("unit_diagonal"), word("transpose_a", "transpose_a", "transpose", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
	ir.FFT:             simple("fft", word("fft_type", "fft_type", "fft_type", "FFT", "IFFT", "RFFT", "IRFFT"), ints("fft_length", "fft_length")),

	ir.While:               formed("while", loop),
	ir.Case:                formed("conditional", branches),
	ir.If:                  formed("conditional", branches),
	ir.Call:                formed("call", call),
	ir.OptimizationBarrier: formed("opt-barrier", barrier),
	ir.CustomCall: given(simple("custom-call", must(str("custom_call_target", "call_target_name")), flag("custom_call_has_side_effect", "has_side_effect"),
		apiVersion(), backendConfig(), frontend())),
	ir.TupleOp:         simple("tuple"),
	ir.GetTupleElement: simple("get-tuple-element", number("index", "index")),

	ir.AllGather:           given(simple("all-gather", channelID(), groups(), single("dimensions", "all_gather_dim"), unit("use_global_device_ids"))),
	ir.AllReduce:           given(applied("all-reduce", channelID(), groups(), unit("use_global_device_ids"))),
	ir.AllToAll:            given(formed("all-to-all", exchange, channelID(), groups(), single("dimensions", "split_dimension"))),
	ir.CollectiveBroadcast: given(simple("collective-broadcast", channelID(), groups(), unit("has_dynamic_root"))),
	ir.CollectivePermute:   given(simple("collective-permute", channelID(), pairs())),
	ir.ReduceScatter:       given(applied("reduce-scatter", channelID(), groups(), single("dimensions", "scatter_dimension"), unit("use_global_device_ids"))),
}
