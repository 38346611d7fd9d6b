package ir

func elementwise1(name, doc string, infer func(*Op) ([]*Type, *Rule)) opInfo {
	return opInfo{name: "stablehlo." + name, doc: doc, traits: Pure | Elementwise, operands: exactly(1), results: exactly(1), infer: infer, factors: pointwise}.
		on("%a", "tensor<4x8xf32>")
}

func elementwise2(name, doc string, traits Trait, infer func(*Op) ([]*Type, *Rule)) opInfo {
	return opInfo{name: "stablehlo." + name, doc: doc, traits: Pure | Elementwise | traits, operands: exactly(2), results: exactly(1), infer: infer, factors: pointwise}.
		on("%a, %b", "tensor<4x8xf32>")
}

// composite1 is the row of a function of the dialect chlo.
func composite1(name, doc string, infer func(*Op) ([]*Type, *Rule)) opInfo {
	o := elementwise1(name, doc, infer)
	o.name = "chlo." + name
	o.traits |= Composite
	return o.on("%a", "tensor<4x8xf32> -> tensor<4x8xf32>")
}

// with returns the row with one more attribute.
func (o opInfo) with(a AttrSpec) opInfo {
	o.attrs = append(o.attrs, a)
	return o
}

// on returns the row with the example that prints operands and their type.
func (o opInfo) on(operands, t string) opInfo {
	o.example = "%r = " + o.name + " " + operands + " : " + t
	return o
}

// explicit is the row of a collective that says how its operand moves from one
// sharding to another.
func explicit(name, doc, example string, lies func(*Module, *Op) *Rule) opInfo {
	return opInfo{name: "sdy." + name, doc: doc, traits: Pure | Elementwise | Collective, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{req("out_sharding", ShardingAttr)}, infer: inferIdentity, inModule: lies,
		example: "%s = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>} : tensor<4x8xf32>\n%r = sdy." + name + " " + example + " : tensor<4x8xf32>"}
}

func req(name string, kind AttrKind) AttrSpec { return AttrSpec{Name: name, Kind: kind} }
func opt(name string, kind AttrKind) AttrSpec {
	return AttrSpec{Name: name, Kind: kind, Optional: true}
}
func enum(name, set string, words ...string) AttrSpec {
	return AttrSpec{Name: name, Kind: EnumAttr, Set: set, Words: words}
}

var (
	precision = AttrSpec{Name: "precision_config", Kind: ArrayAttr, Optional: true}
	accuracy  = AttrSpec{Name: "result_accuracy", Kind: AccuracyAttr, Optional: true}
	channel   = AttrSpec{Name: "channel_handle", Kind: ChannelAttr, Optional: true}
	groups    = AttrSpec{Name: "replica_groups", Kind: GroupsAttr}
	globalIDs = AttrSpec{Name: "use_global_device_ids", Kind: BoolAttr, Optional: true}
)

var rows = [numKinds]opInfo{
	Invalid: {name: "invalid"},
	Unknown: {name: "unknown", operands: atLeast(0), results: atLeast(0), regions: atLeast(0), infer: inferGiven,
		example: `%r = "other.op"(%a) {level = 3 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},

	Abs:                 elementwise1("abs", "magnitude", inferAbs),
	Cbrt:                elementwise1("cbrt", "cube root", inferFloat).with(accuracy),
	Ceil:                elementwise1("ceil", "smallest integral value not below", inferReal),
	CountLeadingZeros:   elementwise1("count_leading_zeros", "number of zero bits before the first one", inferInteger).on("%i", "tensor<4x8xi32>"),
	Cosine:              elementwise1("cosine", "cosine of radians", inferFloat).with(accuracy),
	Exponential:         elementwise1("exponential", "e to the power of the operand", inferFloat).with(accuracy),
	ExponentialMinusOne: elementwise1("exponential_minus_one", "exp(x) - 1, exact near 0", inferFloat).with(accuracy),
	Floor:               elementwise1("floor", "largest integral value not above", inferReal),
	IsFinite:            elementwise1("is_finite", "neither infinite nor NaN", inferIsFinite).on("%a", "(tensor<4x8xf32>) -> tensor<4x8xi1>"),
	Log:                 elementwise1("log", "natural logarithm", inferFloat).with(accuracy),
	LogPlusOne:          elementwise1("log_plus_one", "log(x + 1), exact near 0", inferFloat).with(accuracy),
	Logistic:            elementwise1("logistic", "1 / (1 + exp(-x))", inferFloat).with(accuracy),
	Negate:              elementwise1("negate", "minus", inferNumber),
	Not:                 elementwise1("not", "logical or bitwise not", inferLogical).on("%p", "tensor<4x8xi1>"),
	PopulationCount:     elementwise1("popcnt", "number of one bits", inferInteger).on("%i", "tensor<4x8xi32>"),
	RoundNearestAfz:     elementwise1("round_nearest_afz", "nearest integral value, ties away from zero", inferReal),
	RoundNearestEven:    elementwise1("round_nearest_even", "nearest integral value, ties to even", inferReal),
	Rsqrt:               elementwise1("rsqrt", "1 / sqrt(x)", inferFloat).with(accuracy),
	Sign:                elementwise1("sign", "-1, 0 or 1", inferSigned),
	Sine:                elementwise1("sine", "sine of radians", inferFloat).with(accuracy),
	Sqrt:                elementwise1("sqrt", "square root", inferFloat).with(accuracy),
	Tan:                 elementwise1("tan", "tangent of radians", inferFloat).with(accuracy),
	Tanh:                elementwise1("tanh", "hyperbolic tangent", inferFloat).with(accuracy),
	Convert:             elementwise1("convert", "the same numbers in another element type", inferConvert).on("%i", "(tensor<4x8xi32>) -> tensor<4x8xf32>"),
	BitcastConvert: {name: "stablehlo.bitcast_convert", doc: "the same bits in another element type", traits: Pure,
		operands: exactly(1), results: exactly(1), infer: inferBitcast, factors: bitcastFactors,
		example: `%r = stablehlo.bitcast_convert %i : (tensor<4x8xi32>) -> tensor<4x8xf32>`},
	Imag: elementwise1("imag", "imaginary part", inferPart),
	Real: elementwise1("real", "real part", inferPart),
	ReducePrecision: {name: "stablehlo.reduce_precision", doc: "rounds to fewer exponent and mantissa bits and back", traits: Pure | Elementwise,
		operands: exactly(1), results: exactly(1), attrs: []AttrSpec{req("exponent_bits", IntAttr), req("mantissa_bits", IntAttr)}, infer: inferReducePrecision, factors: pointwise,
		example: `%r = stablehlo.reduce_precision %a, format = e5m10 : tensor<4x8xf32>`},

	Add:                  elementwise2("add", "sum; logical or of booleans", Commutative|Associative, inferSame),
	And:                  elementwise2("and", "logical or bitwise and", Commutative|Associative, inferLogical).on("%p, %q", "tensor<4x8xi1>"),
	Atan2:                elementwise2("atan2", "angle of the point (y, x)", 0, inferFloat),
	ComplexOp:            elementwise2("complex", "complex number of a real and an imaginary part", 0, inferComplex).on("%a, %b", "tensor<4x8xcomplex<f32>>"),
	Divide:               elementwise2("divide", "quotient, truncated for integers", 0, inferNumber),
	Maximum:              elementwise2("maximum", "the larger; NaN if one is", Commutative|Associative, inferSame),
	Minimum:              elementwise2("minimum", "the smaller; NaN if one is", Commutative|Associative, inferSame),
	Multiply:             elementwise2("multiply", "product; logical and of booleans", Commutative|Associative, inferSame),
	Or:                   elementwise2("or", "logical or bitwise or", Commutative|Associative, inferLogical).on("%p, %q", "tensor<4x8xi1>"),
	Power:                elementwise2("power", "first to the power of the second", 0, inferNumber),
	Remainder:            elementwise2("remainder", "remainder with the dividend's sign", 0, inferNumber),
	ShiftLeft:            elementwise2("shift_left", "bits moved up", 0, inferInteger).on("%i, %j", "tensor<4x8xi32>"),
	ShiftRightArithmetic: elementwise2("shift_right_arithmetic", "bits moved down, sign kept", 0, inferInteger).on("%i, %j", "tensor<4x8xi32>"),
	ShiftRightLogical:    elementwise2("shift_right_logical", "bits moved down, zeros come in", 0, inferInteger).on("%i, %j", "tensor<4x8xi32>"),
	Subtract:             elementwise2("subtract", "difference", 0, inferNumber),
	Xor:                  elementwise2("xor", "logical or bitwise exclusive or", Commutative|Associative, inferLogical).on("%p, %q", "tensor<4x8xi1>"),
	Compare: {name: "stablehlo.compare", doc: "whether the comparison holds", traits: Pure | Elementwise, operands: exactly(2), results: exactly(1),
		attrs: []AttrSpec{enum("comparison_direction", "comparison_direction", "EQ", "NE", "GE", "GT", "LE", "LT"),
			{Name: "compare_type", Kind: EnumAttr, Optional: true, Set: "comparison_type", Words: []string{"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}}},
		infer: inferCompare, factors: pointwise,
		example: `%r = stablehlo.compare LT, %a, %b, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>`},
	Select: {name: "stablehlo.select", doc: "second operand where the first is true, third elsewhere", traits: Pure | Elementwise, operands: exactly(3), results: exactly(1),
		infer: inferSelect, factors: pointwise,
		example: `%r = stablehlo.select %p, %a, %b : tensor<4x8xi1>, tensor<4x8xf32>`},
	Clamp: {name: "stablehlo.clamp", doc: "second operand held between first and third", traits: Pure | Elementwise, operands: exactly(3), results: exactly(1),
		infer: inferClamp, factors: pointwise,
		example: `%r = stablehlo.clamp %f, %a, %f : (tensor<f32>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>`},

	Acos:     composite1("acos", "angle whose cosine the operand is", inferFloat),
	Acosh:    composite1("acosh", "positive number whose hyperbolic cosine the operand is", inferFloat),
	Asin:     composite1("asin", "angle whose sine the operand is", inferFloat),
	Asinh:    composite1("asinh", "number whose hyperbolic sine the operand is", inferFloat),
	Atan:     composite1("atan", "angle whose tangent the operand is", inferFloat),
	Atanh:    composite1("atanh", "number whose hyperbolic tangent the operand is", inferFloat),
	ChloTan:  composite1("tan", "tangent of radians", inferFloat),
	Cosh:     composite1("cosh", "hyperbolic cosine", inferFloat),
	Digamma:  composite1("digamma", "derivative of lgamma", inferReal),
	Erf:      composite1("erf", "integral of 2/sqrt(pi) exp(-t²) from 0 to the operand", inferReal),
	ErfInv:   composite1("erf_inv", "number whose erf the operand is", inferReal),
	Erfc:     composite1("erfc", "1 - erf(x), exact where erf is near 1", inferReal),
	IsInf:    composite1("is_inf", "infinite, of either sign", inferIsFinite).on("%a", "tensor<4x8xf32> -> tensor<4x8xi1>"),
	IsNegInf: composite1("is_neg_inf", "minus infinity", inferIsFinite).on("%a", "tensor<4x8xf32> -> tensor<4x8xi1>"),
	IsPosInf: composite1("is_pos_inf", "plus infinity", inferIsFinite).on("%a", "tensor<4x8xf32> -> tensor<4x8xi1>"),
	Lgamma:   composite1("lgamma", "logarithm of the magnitude of the gamma function", inferReal),
	NextAfter: {name: "chlo.next_after", doc: "the number next to the first operand towards the second", traits: Pure | Elementwise | Composite, operands: exactly(2), results: exactly(1),
		infer: inferReal, factors: pointwise, example: "%r = chlo.next_after %a, %b : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>"},
	Sinh:   composite1("sinh", "hyperbolic sine", inferFloat),
	Square: composite1("square", "product with itself", inferNumber),
	TopK: {name: "chlo.top_k", doc: "the k largest elements along the last dimension, largest first, and where they stand", traits: Pure | Composite, operands: exactly(1), results: exactly(2),
		attrs: []AttrSpec{req("k", IntAttr)}, infer: inferTopK, factors: topKFactors,
		example: "%r, %indices = chlo.top_k(%a, k = 3) : tensor<4x8xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)"},

	Constant: {name: "stablehlo.constant", doc: "a literal", traits: Pure, results: exactly(1), attrs: []AttrSpec{req("value", DenseAttr)}, infer: inferConstant, factors: sourceFactors,
		example: `%r = stablehlo.constant dense<[1, -2, 3]> : tensor<3xi32>`},
	Iota: {name: "stablehlo.iota", doc: "0, 1, 2, … along one dimension", traits: Pure, results: exactly(1), attrs: []AttrSpec{req("iota_dimension", IntAttr)}, infer: inferIota, factors: sourceFactors,
		example: `%r = stablehlo.iota dim = 1 : tensor<4x8xi32>`},
	PartitionID: {name: "stablehlo.partition_id", doc: "the rank of this device", traits: Pure, results: exactly(1), infer: inferDeviceID,
		example: `%r = stablehlo.partition_id : tensor<ui32>`},
	ReplicaID: {name: "stablehlo.replica_id", doc: "the replica that this process is", traits: Pure, results: exactly(1), infer: inferDeviceID,
		example: `%r = stablehlo.replica_id : tensor<ui32>`},

	RngBitGenerator: {name: "stablehlo.rng_bit_generator", doc: "the state after, and random bits, which follow from the state", traits: Pure, operands: exactly(1), results: exactly(2),
		attrs: []AttrSpec{enum("rng_algorithm", "rng_algorithm", "DEFAULT", "THREE_FRY", "PHILOX")}, infer: inferRngBits,
		example: "%s = stablehlo.constant dense<[1, 2]> : tensor<2xui64>\n%r, %output = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>)"},

	BroadcastInDim: {name: "stablehlo.broadcast_in_dim", doc: "operand dimension i becomes result dimension broadcast_dimensions[i]; the rest repeats", traits: Pure,
		operands: exactly(1), results: exactly(1), attrs: []AttrSpec{req("broadcast_dimensions", IntsAttr)}, infer: inferBroadcast, factors: broadcastFactors,
		example: `%r = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<4x8xf32>) -> tensor<4x3x8xf32>`},
	Concatenate: {name: "stablehlo.concatenate", doc: "operands one after the other along a dimension", traits: Pure,
		operands: atLeast(1), results: exactly(1), attrs: []AttrSpec{req("dimension", IntAttr)}, infer: inferConcatenate, factors: concatenateFactors,
		example: `%r = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>`},
	DynamicSlice: {name: "stablehlo.dynamic_slice", doc: "a window of slice_sizes at start indices, clamped to fit", traits: Pure,
		operands: atLeast(1), results: exactly(1), attrs: []AttrSpec{req("slice_sizes", IntsAttr)}, infer: inferDynamicSlice, factors: dynamicSliceFactors,
		example: `%r = stablehlo.dynamic_slice %a, %n, %n, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>`},
	DynamicUpdateSlice: {name: "stablehlo.dynamic_update_slice", doc: "the first operand with a window replaced by the second, at start indices, clamped to fit", traits: Pure,
		operands: atLeast(2), results: exactly(1), infer: inferDynamicUpdateSlice, factors: dynamicUpdateSliceFactors,
		example: `%r = stablehlo.dynamic_update_slice %a, %u, %n, %n : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>`},
	Gather: {name: "stablehlo.gather", doc: "windows of the operand at given indices", traits: Pure, operands: exactly(2), results: exactly(1),
		attrs: []AttrSpec{req("dimension_numbers", GatherAttr), req("slice_sizes", IntsAttr), opt("indices_are_sorted", BoolAttr)}, infer: inferGather, factors: gatherFactors,
		example: `%r = "stablehlo.gather"(%a, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<2x1xi32>) -> tensor<2x8xf32>`},
	Pad: {name: "stablehlo.pad", doc: "operand with padding around and between its elements; negative padding cuts off", traits: Pure, operands: exactly(2), results: exactly(1),
		attrs: []AttrSpec{req("edge_padding_low", IntsAttr), req("edge_padding_high", IntsAttr), req("interior_padding", IntsAttr)}, infer: inferPad, factors: padFactors,
		example: `%r = stablehlo.pad %a, %f, low = [1, 0], high = [0, -1], interior = [0, 2] : (tensor<4x8xf32>, tensor<f32>) -> tensor<5x21xf32>`},
	Reshape: {name: "stablehlo.reshape", doc: "the same elements in row-major order with other sizes", traits: Pure, operands: exactly(1), results: exactly(1), infer: inferReshape, factors: reshapeFactors,
		example: `%r = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<2x16xf32>`},
	Reverse: {name: "stablehlo.reverse", doc: "elements in reverse order along dimensions", traits: Pure, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{req("dimensions", IntsAttr)}, infer: inferReverse, factors: reverseFactors,
		example: `%r = stablehlo.reverse %a, dims = [0] : tensor<4x8xf32>`},
	Scatter: {name: "stablehlo.scatter", doc: "operand with windows at given indices combined with updates", traits: Pure, operands: atLeast(3), results: atLeast(1), regions: exactly(1),
		attrs: []AttrSpec{req("scatter_dimension_numbers", ScatterAttr), opt("indices_are_sorted", BoolAttr), opt("unique_indices", BoolAttr)}, infer: inferScatter, factors: scatterFactors,
		example: `%r = "stablehlo.scatter"(%a, %k, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>, tensor<2x1xi32>, tensor<2x8xf32>) -> tensor<4x8xf32>`},
	Slice: {name: "stablehlo.slice", doc: "every strides-th element from start to limit", traits: Pure, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{req("start_indices", IntsAttr), req("limit_indices", IntsAttr), req("strides", IntsAttr)}, infer: inferSlice, factors: sliceFactors,
		example: `%r = stablehlo.slice %a [0:4, 1:7:2] : (tensor<4x8xf32>) -> tensor<4x3xf32>`},
	Transpose: {name: "stablehlo.transpose", doc: "result dimension i is operand dimension permutation[i]", traits: Pure, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{req("permutation", IntsAttr)}, infer: inferTranspose, factors: transposeFactors,
		example: `%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>`},

	DotGeneral: {name: "stablehlo.dot_general", doc: "sums of products over the contracting dimensions", traits: Pure, operands: exactly(2), results: exactly(1),
		attrs: []AttrSpec{req("dot_dimension_numbers", DotAttr), precision, opt("algorithm", AnyAttr)}, infer: inferDot, factors: dotFactors,
		example: `%r = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>`},
	Convolution: {name: "stablehlo.convolution", doc: "sums of products of the kernel with windows of the input", traits: Pure, operands: exactly(2), results: exactly(1),
		attrs: []AttrSpec{req("dimension_numbers", ConvAttr), req("feature_group_count", IntAttr), req("batch_group_count", IntAttr), opt("window_strides", IntsAttr), opt("padding", DenseAttr),
			opt("lhs_dilation", IntsAttr), opt("rhs_dilation", IntsAttr), opt("window_reversal", BoolsAttr), precision},
		infer: inferConvolution, factors: convolutionFactors,
		example: `%r = stablehlo.convolution(%stack, %kernel) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x8x8xf32>, tensor<3x4x6xf32>) -> tensor<2x4x6xf32>`},
	Reduce: {name: "stablehlo.reduce", doc: "elements along dimensions combined by the region, from init values", traits: Pure, operands: atLeast(2), results: atLeast(1), regions: exactly(1),
		attrs: []AttrSpec{req("dimensions", IntsAttr)}, infer: inferReduce, factors: reduceFactors,
		example: `%r = stablehlo.reduce(%a init: %f) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>`},
	ReduceWindow: {name: "stablehlo.reduce_window", doc: "windows combined by the region, from init values", traits: Pure, operands: atLeast(2), results: atLeast(1), regions: exactly(1),
		attrs: []AttrSpec{req("window_dimensions", IntsAttr), opt("window_strides", IntsAttr), opt("base_dilations", IntsAttr), opt("window_dilations", IntsAttr), opt("padding", DenseAttr)},
		infer: inferReduceWindow, factors: reduceWindowFactors,
		example: `%r = "stablehlo.reduce_window"(%a, %f) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x4xf32>`},
	SelectAndScatter: {name: "stablehlo.select_and_scatter", doc: "init values, into which each source is scattered by the second region where the first selects in its window of the operand", traits: Pure,
		operands: exactly(3), results: exactly(1), regions: exactly(2),
		attrs: []AttrSpec{opt("window_dimensions", IntsAttr), opt("window_strides", IntsAttr), opt("padding", DenseAttr)},
		infer: inferSelectAndScatter, factors: selectAndScatterFactors,
		example: `%r = "stablehlo.select_and_scatter"(%a, %w, %f) <{padding = dense<[[2, 2], [-2, 2]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.compare GE, %arg0, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
}, {
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>, tensor<8x4xf32>, tensor<f32>) -> tensor<4x8xf32>`},
	Sort: {name: "stablehlo.sort", doc: "operands sorted together along a dimension by the region", traits: Pure, operands: atLeast(1), results: atLeast(1), regions: exactly(1),
		attrs: []AttrSpec{req("dimension", IntAttr), opt("is_stable", BoolAttr)}, infer: inferSort, factors: sortFactors,
		example: `%r = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
}) : (tensor<4x8xf32>) -> tensor<4x8xf32>`},

	Cholesky: {name: "stablehlo.cholesky", doc: "of each matrix the triangular one that, multiplied by its adjoint, makes it; zeros in the other triangle", traits: Pure, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{opt("lower", BoolAttr)}, infer: inferCholesky, factors: choleskyFactors,
		example: `%r = stablehlo.cholesky %m, lower = true : tensor<8x8xf32>`},
	TriangularSolve: {name: "stablehlo.triangular_solve", doc: "x of each equation a x = b, or x a = b, whose a is triangular", traits: Pure, operands: exactly(2), results: exactly(1),
		attrs: []AttrSpec{req("left_side", BoolAttr), req("lower", BoolAttr), req("unit_diagonal", BoolAttr), enum("transpose_a", "transpose", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")},
		infer: inferTriangularSolve, factors: triangularFactors,
		example: `%r = "stablehlo.triangular_solve"(%m, %a) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>`},
	FFT: {name: "stablehlo.fft", doc: "discrete Fourier transform along the last dimensions", traits: Pure, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{enum("fft_type", "fft_type", "FFT", "IFFT", "RFFT", "IRFFT"), req("fft_length", IntsAttr)}, infer: inferFFT, factors: fftFactors,
		example: `%r = stablehlo.fft %a, type = RFFT, length = [8] : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>`},

	While: {name: "stablehlo.while", doc: "the second region repeated while the first is true", traits: Pure, operands: atLeast(0), results: atLeast(0), regions: exactly(2), infer: inferWhile,
		example: `%r:2 = stablehlo.while(%iterArg = %n, %iterArg_0 = %a) : tensor<i32>, tensor<4x8xf32>
cond {
  %0 = stablehlo.compare LT, %iterArg, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
} do {
  %0 = stablehlo.tanh %iterArg_0 : tensor<4x8xf32>
  stablehlo.return %iterArg, %0 : tensor<i32>, tensor<4x8xf32>
}`},
	Case: {name: "stablehlo.case", doc: "the region chosen by the index; the last where it is out of range", traits: Pure, operands: exactly(1), results: atLeast(0), regions: atLeast(1), infer: inferCase,
		example: `%r = "stablehlo.case"(%n) ({
  stablehlo.return %a : tensor<4x8xf32>
}, {
  stablehlo.return %b : tensor<4x8xf32>
}) : (tensor<i32>) -> tensor<4x8xf32>`},
	If: {name: "stablehlo.if", doc: "the first region if the operand is true, else the second", traits: Pure, operands: exactly(1), results: atLeast(0), regions: exactly(2), infer: inferIf,
		example: `%r = "stablehlo.if"(%t) ({
  stablehlo.return %a : tensor<4x8xf32>
}, {
  stablehlo.return %b : tensor<4x8xf32>
}) : (tensor<i1>) -> tensor<4x8xf32>`},
	Call: {name: "func.call", doc: "the results of a function", traits: Pure, operands: atLeast(0), results: atLeast(0), attrs: []AttrSpec{req("callee", SymAttr)}, infer: inferGiven, inModule: callFits,
		example: `%r = call @whole(%a, %m) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>`},
	CompositeCall: {name: "stablehlo.composite", doc: "an op that others may know, and here the function that it is made of", traits: Pure | Pipeline, operands: atLeast(0), results: atLeast(0),
		attrs: []AttrSpec{req("name", StrAttr), opt("composite_attributes", DictAttr), req("decomposition", SymAttr), opt("version", IntAttr)}, infer: inferComposite, inModule: callFits,
		example: `%r = stablehlo.composite "my.op" %a, %m {composite_attributes = {axis = 1 : i64}, decomposition = @whole} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>`},
	Return: {name: "stablehlo.return", doc: "ends a region", traits: Terminator, operands: atLeast(0), infer: inferNothing,
		example: `%r = "stablehlo.case"(%n) ({
  stablehlo.return %a : tensor<4x8xf32>
}) : (tensor<i32>) -> tensor<4x8xf32>`},
	FuncReturn: {name: "func.return", doc: "ends a function", traits: Terminator, operands: atLeast(0), infer: inferNothing,
		example: `return %a : tensor<4x8xf32>`},
	OptimizationBarrier: {name: "stablehlo.optimization_barrier", doc: "its operands; nothing moves across", operands: atLeast(0), results: atLeast(0), infer: inferIdentity, factors: nil,
		example: `%r:2 = stablehlo.optimization_barrier %a, %f : tensor<4x8xf32>, tensor<f32>`},
	CustomCall: {name: "stablehlo.custom_call", doc: "whatever the target does", operands: atLeast(0), results: atLeast(0), regions: atLeast(0),
		attrs: []AttrSpec{req("call_target_name", StrAttr)}, infer: inferCustomCall, factors: customFactors,
		example: `%r = stablehlo.custom_call @target(%a) {backend_config = "fast"} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	TupleOp: {name: "stablehlo.tuple", doc: "a tuple of the operands", traits: Pure, operands: atLeast(0), results: exactly(1), infer: inferTuple,
		example: `%r = stablehlo.tuple %a, %f : tuple<tensor<4x8xf32>, tensor<f32>>`},
	GetTupleElement: {name: "stablehlo.get_tuple_element", doc: "one element of a tuple", traits: Pure, operands: exactly(1), results: exactly(1), attrs: []AttrSpec{req("index", IntAttr)}, infer: inferGetTupleElement,
		example: `%r = stablehlo.get_tuple_element %pair[0] : (tuple<tensor<4x8xf32>, tensor<f32>>) -> tensor<4x8xf32>`},

	AllGather: {name: "stablehlo.all_gather", doc: "the group's operands one after the other along a dimension", traits: Pure | Collective, operands: atLeast(1), results: atLeast(1),
		attrs: []AttrSpec{req("all_gather_dim", IntAttr), channel, groups, globalIDs}, infer: inferAllGather, inModule: allGatherFits, factors: gatheredFactors("all_gather_dim"),
		example: `%r = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<8x8xf32>`},
	AllReduce: {name: "stablehlo.all_reduce", doc: "the group's operands combined by the region", traits: Pure | Collective, operands: atLeast(1), results: atLeast(1), regions: exactly(1),
		attrs: []AttrSpec{channel, groups, globalIDs}, infer: inferAllReduce, inModule: groupsFit, factors: pointwise,
		example: `%r = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	AllToAll: {name: "stablehlo.all_to_all", doc: "operand cut along one dimension, parts exchanged, joined along another", traits: Pure | Collective, operands: atLeast(1), results: atLeast(1),
		attrs: []AttrSpec{req("split_dimension", IntAttr), req("concat_dimension", IntAttr), req("split_count", IntAttr), channel, groups}, infer: inferAllToAll, inModule: allToAllFits, factors: gatheredFactors("split_dimension", "concat_dimension"),
		example: `%r = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x8xf32>) -> tensor<8x4xf32>`},
	CollectiveBroadcast: {name: "stablehlo.collective_broadcast", doc: "the operand of the group's first device", traits: Pure | Collective, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{channel, groups}, infer: inferCollectiveBroadcast, inModule: groupsFit, factors: pointwise,
		example: `%r = "stablehlo.collective_broadcast"(%a) <{replica_groups = dense<[[2, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	CollectivePermute: {name: "stablehlo.collective_permute", doc: "the operand of the device that sends here; zeros if none does", traits: Pure | Collective, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{req("source_target_pairs", PairsAttr), channel}, infer: inferCollectivePermute, inModule: groupsFit, factors: pointwise,
		example: `%r = "stablehlo.collective_permute"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ReduceScatter: {name: "stablehlo.reduce_scatter", doc: "the group's operands combined by the region, this device's part of it", traits: Pure | Collective, operands: exactly(1), results: exactly(1), regions: exactly(1),
		attrs: []AttrSpec{req("scatter_dimension", IntAttr), channel, groups, globalIDs}, infer: inferReduceScatter, inModule: reduceScatterFits, factors: gatheredFactors("scatter_dimension"),
		example: `%r = "stablehlo.reduce_scatter"(%a) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 1 : i64}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>) -> tensor<4x4xf32>`},

	ShardingConstraint: {name: "sdy.sharding_constraint", doc: "the operand, lying as the sharding says", traits: Pure | Elementwise, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{req("sharding", ShardingAttr)}, infer: inferIdentity, factors: pointwise,
		example: `%r = sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]> : tensor<4x8xf32>`},
	Reshard: {name: "sdy.reshard", doc: "the operand, moved to lie as the sharding says", traits: Pure | Elementwise, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{req("sharding", ShardingAttr)}, infer: inferReshard, factors: pointwise,
		example: `%r = sdy.reshard %a <@mesh, [{}, {"y":(1)2}]> : tensor<4x8xf32>`},
	ManualComputation: {name: "sdy.manual_computation", doc: "the region, per device along the manual axes", traits: Pure | Isolated, operands: atLeast(0), results: atLeast(0), regions: exactly(1),
		attrs: []AttrSpec{req("in_shardings", ShardingsAttr), req("out_shardings", ShardingsAttr), req("manual_axes", ArrayAttr)}, infer: inferManual, inModule: manualFits,
		example: `%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%arg0: tensor<2x8xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<2x8xf32>
  sdy.return %0 : tensor<2x8xf32>
} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	SdyReturn: {name: "sdy.return", doc: "ends a manual computation", traits: Terminator, operands: atLeast(0), infer: inferNothing,
		example: `%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{"y"}, {}]>] manual_axes={"y"} (%arg0: tensor<1x8xf32>) {
  sdy.return %arg0 : tensor<1x8xf32>
} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},

	NamedComputation: {name: "sdy.named_computation", doc: "the region, under a name", traits: Pure, operands: atLeast(0), results: atLeast(0), regions: exactly(1),
		attrs: []AttrSpec{req("name", StrAttr), opt("in_shardings", ShardingsAttr), opt("out_shardings", ShardingsAttr)}, infer: inferNamed,
		example: `%r = sdy.named_computation<"head">(%a) (%arg0: tensor<4x8xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<4x8xf32>
  sdy.return %0 : tensor<4x8xf32>
} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	SdyConstant: {name: "sdy.constant", doc: "a literal that has a sharding of its own for each use", traits: Pure, results: exactly(1), attrs: []AttrSpec{req("value", DenseAttr)}, infer: inferConstant, factors: sourceFactors,
		example: `%r = sdy.constant dense<1.000000e+00> : tensor<4x8xf32>`},
	DataFlowEdge: {name: "sdy.data_flow_edge", doc: "the operand, which lies alike wherever it flows to", traits: Pure | Elementwise, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{opt("sharding", ShardingAttr)}, infer: inferIdentity, inModule: edgeFits, factors: pointwise,
		example: `%r = sdy.data_flow_edge %b sharding=<@mesh, [{"x"}, {?}]> : tensor<4x8xf32>`},
	PropagationBarrier: {name: "sdy.propagation_barrier", doc: "the operand; shardings spread across in the allowed direction only", traits: Pure | Elementwise, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{req("allowed_direction", IntAttr)}, infer: inferBarrier, factors: pointwise,
		example: `%r = sdy.propagation_barrier %a allowed_direction=FORWARD : tensor<4x8xf32>`},
	ShardingGroup: {name: "sdy.sharding_group", doc: "the operand lies as all other members of the group do", operands: exactly(1), results: exactly(0),
		attrs: []AttrSpec{req("group_id", IntAttr)}, infer: inferNothing,
		example: `sdy.sharding_group %a group_id=0 : tensor<4x8xf32>`},
	SdyAllGather:          explicit("all_gather", "the operand, whole along the named axes", `[{"x"}, {}] %s out_sharding=<@mesh, [{}, {}]>`, perDimension("gathering_axes", true, (*explicitSide).taken, nil)).with(req("gathering_axes", AnyAttr)),
	SdyAllSlice:           explicit("all_slice", "the operand, cut along more axes", `[{}, {"y"}] %s out_sharding=<@mesh, [{"x"}, {"y"}]>`, perDimension("slicing_axes", false, (*explicitSide).given, nil)).with(req("slicing_axes", AnyAttr)),
	SdyAllToAll:           explicit("all_to_all", "the operand, cut along axes in another dimension", `[{"x"}: 0->1] %s out_sharding=<@mesh, [{}, {"x"}]>`, exchangeLies).with(req("params", AnyAttr)),
	SdyCollectivePermute:  explicit("collective_permute", "the operand, its parts in other places", `%s out_sharding=<@mesh, [{"y":(1)2}, {}]>`, permuteLies),
	SdyAllReduce:          explicit("all_reduce", "what the devices along the axes have, combined", `{"y"} %s out_sharding=<@mesh, [{"x"}, {}]>`, allReduceLies).with(opt("reduction_op", IntAttr)).with(req("reduction_axes", AnyAttr)),
	SdyReduceScatter:      explicit("reduce_scatter", "what the devices along the axes have, combined, and cut along them", `[{}, {"y"}] %s out_sharding=<@mesh, [{"x"}, {"y"}]>`, perDimension("reduce_scatter_axes", false, (*explicitSide).given, reduceScatterReduces)).with(opt("reduction_op", IntAttr)).with(req("reduce_scatter_axes", AnyAttr)),
	ReplicatedToUnreduced: explicit("replicated_to_unreduced", "the operand, as a sum along the axes: one device has it, the others zero", `{"y"} %s out_sharding=<@mesh, [{"x"}, {}], unreduced={"y"}>`, replicatedLies).with(req("axes", AnyAttr)),
	ShardedToUnreduced:    explicit("sharded_to_unreduced", "the operand, as a sum along the axes: each device has its part, zero elsewhere", `[{"x"}, {}] %s out_sharding=<@mesh, [{}, {}], unreduced={"x"}>`, perDimension("axes", true, (*explicitSide).taken, (*explicitSide).unreduces)).with(req("axes", AnyAttr)),

	PPPipeline: {name: "pp.pipeline", doc: "a layer function applied layers times to each microbatch, by the schedule in its attributes", traits: Pure | Pipeline, operands: atLeast(1), results: atLeast(1),
		attrs: []AttrSpec{req("layer", SymAttr), req("layers", IntAttr), req("sides", IntAttr), req("config", DictAttr)}, infer: inferStack, inModule: pipelineFits,
		example: `%r = "pp.pipeline"(%a, %stack) <{config = {layers_per_stage = 1 : i64, microbatches = 2 : i64, repeats = 1 : i64, stages = 2 : i64}, layer = @layer, layers = 2 : i64, sides = 0 : i64}> : (tensor<4x8xf32>, tensor<2x8x8xf32>) -> tensor<4x8xf32>`},
	PPStack: {name: "pp.stack", doc: "a layer function applied layers times", traits: Pure | Pipeline, operands: atLeast(1), results: atLeast(1),
		attrs: []AttrSpec{req("layer", SymAttr), req("layers", IntAttr), req("sides", IntAttr), req("config", DictAttr)}, infer: inferStack, inModule: stackFits,
		example: `%r = "pp.stack"(%a, %stack) <{config = {scan_layers = true}, layer = @whole, layers = 2 : i64, sides = 0 : i64}> : (tensor<4x8xf32>, tensor<2x8x8xf32>) -> tensor<4x8xf32>`},
	PPScan: {name: "pp.scan", doc: "the region repeated trip_count times over carries, with per-iteration inputs and outputs; in reverse, from the last iteration to the first", traits: Pure | Pipeline, operands: atLeast(0), results: atLeast(0), regions: exactly(1),
		attrs: []AttrSpec{req("trip_count", IntAttr), req("carries", IntAttr), opt("reverse", BoolAttr)}, infer: inferScan,
		example: `%r:2 = "pp.scan"(%f, %stack) <{carries = 1 : i64, trip_count = 2 : i64}> ({
^bb0(%arg0: tensor<i32>, %arg1: tensor<f32>, %arg2: tensor<8x8xf32>):
  %0 = stablehlo.tanh %arg1 : tensor<f32>
  "pp.yield"(%0, %arg2) : (tensor<f32>, tensor<8x8xf32>) -> ()
}) : (tensor<f32>, tensor<2x8x8xf32>) -> (tensor<f32>, tensor<2x8x8xf32>)`},
	PPRotate: {name: "pp.rotate", doc: "the stage dimension moved by one; stage 0 (or the last) gets the other end, zeros or the fill", traits: Pure | Pipeline, operands: Arity{1, 2}, results: exactly(1),
		attrs: []AttrSpec{req("shift", IntAttr), {Name: "edge", Kind: StrAttr, Words: []string{"wrap", "zero", "fill"}}}, infer: inferRotate, factors: rotateFactors,
		example: `%r = "pp.rotate"(%a, %b) <{edge = "fill", shift = 1 : i64}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>`},
	PPCheckpoint: {name: "pp.checkpoint", doc: "the region, recomputed in the backward pass but for the names that the policy saves", traits: Pure | Pipeline, operands: atLeast(0), results: atLeast(0), regions: exactly(1),
		attrs: []AttrSpec{req("policy", DictAttr)}, infer: inferCheckpoint,
		example: `%r = "pp.checkpoint"(%a) <{policy = {remat = "full"}}> ({
^bb0(%arg0: tensor<4x8xf32>):
  %0 = stablehlo.tanh %arg0 : tensor<4x8xf32>
  "pp.yield"(%0) : (tensor<4x8xf32>) -> ()
}) : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	PPName: {name: "pp.name", doc: "the operand, under a checkpoint name", traits: Pure | Elementwise | Pipeline, operands: exactly(1), results: exactly(1), attrs: []AttrSpec{req("name", StrAttr)}, infer: inferIdentity, factors: pointwise,
		example: `%r = "pp.name"(%a) <{name = "mlpwo"}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	PPGather: {name: "pp.gather", doc: "a weight, rounded to dtype, made whole over the mesh axes that its sharding no longer has", traits: Pure | Elementwise | Pipeline, operands: exactly(1), results: exactly(1),
		attrs: []AttrSpec{req("sharding", ShardingAttr), opt("dtype", StrAttr)}, infer: inferGathered, factors: pointwise,
		example: `%r = "pp.gather"(%a) <{sharding = #sdy.sharding<@mesh, [{}, {}]>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	PPYield: {name: "pp.yield", doc: "ends the region of a pp op", traits: Terminator, operands: atLeast(0), infer: inferNothing,
		example: `%r = "pp.checkpoint"(%a) <{policy = {remat = "full"}}> ({
^bb0(%arg0: tensor<4x8xf32>):
  "pp.yield"(%arg0) : (tensor<4x8xf32>) -> ()
}) : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
}


func init() { Define(&rows) }
