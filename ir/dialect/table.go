// Package dialect holds the op table: what is known of each op of StableHLO,
// chlo, Shardy and pp in general. A row has its name, arity, attributes, traits,
// the constraints that the specification numbers with the inferred result types,
// and its sharding rule. Importing the package gives package ir its table.
package dialect

import (
	"ppc/ir"
)

func elementwise1(name, doc string, infer func(*ir.Op) ([]*ir.Type, *ir.Rule)) ir.OpInfo {
	return ir.OpInfo{Name: "stablehlo." + name, Doc: doc, Traits: ir.Pure | ir.Elementwise, Operands: ir.Exactly(1), Results: ir.Exactly(1), Infer: infer, Factors: pointwise}.
		On("%a", "tensor<4x8xf32>")
}

func elementwise2(name, doc string, traits ir.Trait, infer func(*ir.Op) ([]*ir.Type, *ir.Rule)) ir.OpInfo {
	return ir.OpInfo{Name: "stablehlo." + name, Doc: doc, Traits: ir.Pure | ir.Elementwise | traits, Operands: ir.Exactly(2), Results: ir.Exactly(1), Infer: infer, Factors: pointwise}.
		On("%a, %b", "tensor<4x8xf32>")
}

// composite1 is the row of a function of the dialect chlo.
func composite1(name, doc string, infer func(*ir.Op) ([]*ir.Type, *ir.Rule)) ir.OpInfo {
	o := elementwise1(name, doc, infer)
	o.Name = "chlo." + name
	o.Traits |= ir.Composite
	return o.On("%a", "tensor<4x8xf32> -> tensor<4x8xf32>")
}

// explicit is the row of a Shardy collective that states the sharding of its
// result; fits checks that it follows from the operand's.
func explicit(name, doc, example string, fits func(*ir.Module, *ir.Op) *ir.Rule) ir.OpInfo {
	return ir.OpInfo{Name: "sdy." + name, Doc: doc, Traits: ir.Pure | ir.Elementwise | ir.Collective | ir.Relayout, Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("out_sharding", ir.ShardingAttr)}, Infer: inferIdentity, InModule: fits,
		Example: "%s = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>} : tensor<4x8xf32>\n%r = sdy." + name + " " + example + " : tensor<4x8xf32>"}
}

func req(name string, kind ir.AttrKind) ir.AttrSpec { return ir.AttrSpec{Name: name, Kind: kind} }

func opt(name string, kind ir.AttrKind) ir.AttrSpec {
	return ir.AttrSpec{Name: name, Kind: kind, Optional: true}
}

func enum(name, set string, words ...string) ir.AttrSpec {
	return ir.AttrSpec{Name: name, Kind: ir.EnumAttr, Set: set, Words: words}
}

var (
	precision = ir.AttrSpec{Name: "precision_config", Kind: ir.ArrayAttr, Optional: true}
	accuracy  = ir.AttrSpec{Name: "result_accuracy", Kind: ir.AccuracyAttr, Optional: true}
	channel   = ir.AttrSpec{Name: "channel_handle", Kind: ir.ChannelAttr, Optional: true}
	groups    = ir.AttrSpec{Name: "replica_groups", Kind: ir.GroupsAttr}
	globalIDs = ir.AttrSpec{Name: "use_global_device_ids", Kind: ir.UnitAttr, Optional: true}
)

var rows = [ir.NumKinds]ir.OpInfo{
	ir.Invalid: {Name: "invalid"},
	ir.Unknown: {Name: "unknown", Traits: ir.TensorRegions, Operands: ir.AtLeast(0), Results: ir.AtLeast(0), Regions: ir.AtLeast(0), Infer: inferGiven,
		Example: `%r = "other.op"(%a) {level = 3 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},

	ir.Abs:                 elementwise1("abs", "magnitude", inferAbs),
	ir.Cbrt:                elementwise1("cbrt", "cube root", inferFloat).With(accuracy),
	ir.Ceil:                elementwise1("ceil", "smallest integral value not below", inferReal),
	ir.CountLeadingZeros:   elementwise1("count_leading_zeros", "number of zero bits before the first one", inferInteger).On("%i", "tensor<4x8xi32>"),
	ir.Cosine:              elementwise1("cosine", "cosine of radians", inferFloat).With(accuracy),
	ir.Exponential:         elementwise1("exponential", "e to the power of the operand", inferFloat).With(accuracy),
	ir.ExponentialMinusOne: elementwise1("exponential_minus_one", "exp(x) - 1, exact near 0", inferFloat).With(accuracy),
	ir.Floor:               elementwise1("floor", "largest integral value not above", inferReal),
	ir.IsFinite:            elementwise1("is_finite", "neither infinite nor NaN", inferIsFinite).On("%a", "(tensor<4x8xf32>) -> tensor<4x8xi1>"),
	ir.Log:                 elementwise1("log", "natural logarithm", inferFloat).With(accuracy),
	ir.LogPlusOne:          elementwise1("log_plus_one", "log(x + 1), exact near 0", inferFloat).With(accuracy),
	ir.Logistic:            elementwise1("logistic", "1 / (1 + exp(-x))", inferFloat).With(accuracy),
	ir.Negate:              elementwise1("negate", "minus", inferNumber).LinearIn(operands(0)),
	ir.Not:                 elementwise1("not", "logical or bitwise not", inferLogical).On("%p", "tensor<4x8xi1>"),
	ir.PopulationCount:     elementwise1("popcnt", "number of one bits", inferInteger).On("%i", "tensor<4x8xi32>"),
	ir.RoundNearestAfz:     elementwise1("round_nearest_afz", "nearest integral value, ties away from zero", inferReal),
	ir.RoundNearestEven:    elementwise1("round_nearest_even", "nearest integral value, ties to even", inferReal),
	ir.Rsqrt:               elementwise1("rsqrt", "1 / sqrt(x)", inferFloat).With(accuracy),
	ir.Sign:                elementwise1("sign", "-1, 0 or 1", inferSigned),
	ir.Sine:                elementwise1("sine", "sine of radians", inferFloat).With(accuracy),
	ir.Sqrt:                elementwise1("sqrt", "square root", inferFloat).With(accuracy),
	ir.Tan:                 elementwise1("tan", "tangent of radians", inferFloat).With(accuracy),
	ir.Tanh:                elementwise1("tanh", "hyperbolic tangent", inferFloat).With(accuracy),
	ir.Convert:             elementwise1("convert", "the same numbers in another element type", inferConvert).On("%i", "(tensor<4x8xi32>) -> tensor<4x8xf32>").Moving(operands(0)).LinearIn(ofFloats),
	ir.BitcastConvert: {Name: "stablehlo.bitcast_convert", Doc: "the same bits in another element type", Traits: ir.Pure, Moves: operands(0),
		Operands: ir.Exactly(1), Results: ir.Exactly(1), Infer: inferBitcast, Factors: bitcastFactors,
		Example: `%r = stablehlo.bitcast_convert %i : (tensor<4x8xi32>) -> tensor<4x8xf32>`},
	ir.Imag: elementwise1("imag", "imaginary part", inferPart),
	ir.Real: elementwise1("real", "real part", inferPart),
	ir.ReducePrecision: {Name: "stablehlo.reduce_precision", Doc: "rounds to fewer exponent and mantissa bits and back", Traits: ir.Pure | ir.Elementwise, Moves: operands(0),
		Operands: ir.Exactly(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("exponent_bits", ir.IntAttr), req("mantissa_bits", ir.IntAttr)}, Infer: inferReducePrecision, Factors: pointwise,
		Example: `%r = stablehlo.reduce_precision %a, format = e5m10 : tensor<4x8xf32>`},

	ir.Add:                  elementwise2("add", "sum; logical or of booleans", ir.Commutative|ir.Associative, inferAdd).LinearIn(operands(0, 1)).NeutralAt(neutral(0)),
	ir.And:                  elementwise2("and", "logical or bitwise and", ir.Commutative|ir.Associative|ir.Idempotent, inferLogical).On("%p, %q", "tensor<4x8xi1>").NeutralAt(allOnes),
	ir.Atan2:                elementwise2("atan2", "angle of the point (y, x)", 0, inferFloat),
	ir.ComplexOp:            elementwise2("complex", "complex number of a real and an imaginary part", 0, inferComplex).On("%a, %b", "tensor<4x8xcomplex<f32>>"),
	ir.Divide:               elementwise2("divide", "quotient, truncated for integers", 0, inferNumber).LinearIn(ofFloats),
	ir.Maximum:              elementwise2("maximum", "the larger; NaN if one is", ir.Commutative|ir.Associative|ir.Idempotent, inferSame).NeutralAt(extreme(-1)),
	ir.Minimum:              elementwise2("minimum", "the smaller; NaN if one is", ir.Commutative|ir.Associative|ir.Idempotent, inferSame).NeutralAt(extreme(1)),
	ir.Multiply:             elementwise2("multiply", "product; logical and of booleans", ir.Commutative|ir.Associative, inferSame).LinearIn(timesNumber).NeutralAt(neutral(1)),
	ir.Or:                   elementwise2("or", "logical or bitwise or", ir.Commutative|ir.Associative|ir.Idempotent, inferLogical).On("%p, %q", "tensor<4x8xi1>").NeutralAt(neutral(0)),
	ir.Power:                elementwise2("power", "first to the power of the second", 0, inferNumber),
	ir.Remainder:            elementwise2("remainder", "remainder with the dividend's sign", 0, inferNumber),
	ir.ShiftLeft:            elementwise2("shift_left", "bits moved up", 0, inferInteger).On("%i, %j", "tensor<4x8xi32>"),
	ir.ShiftRightArithmetic: elementwise2("shift_right_arithmetic", "bits moved down, sign kept", 0, inferInteger).On("%i, %j", "tensor<4x8xi32>"),
	ir.ShiftRightLogical:    elementwise2("shift_right_logical", "bits moved down, zeros come in", 0, inferInteger).On("%i, %j", "tensor<4x8xi32>"),
	ir.Subtract:             elementwise2("subtract", "difference", 0, inferNumber).LinearIn(operands(0, 1)),
	ir.Xor:                  elementwise2("xor", "logical or bitwise exclusive or", ir.Commutative|ir.Associative, inferLogical).On("%p, %q", "tensor<4x8xi1>").NeutralAt(neutral(0)),
	ir.Compare: {Name: "stablehlo.compare", Doc: "whether the comparison holds", Traits: ir.Pure | ir.Elementwise, Operands: ir.Exactly(2), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{enum("comparison_direction", "comparison_direction", "EQ", "NE", "GE", "GT", "LE", "LT"),
			{Name: "compare_type", Kind: ir.EnumAttr, Optional: true, Set: "comparison_type", Words: []string{"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}}},
		Infer: inferCompare, Factors: pointwise,
		Example: `%r = stablehlo.compare LT, %a, %b, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>`},
	ir.Select: {Name: "stablehlo.select", Doc: "second operand where the first is true, third elsewhere", Traits: ir.Pure | ir.Elementwise, Moves: operands(1, 2), Linear: operands(1, 2), Operands: ir.Exactly(3), Results: ir.Exactly(1),
		Infer: inferSelect, Factors: pointwise,
		Example: `%r = stablehlo.select %p, %a, %b : tensor<4x8xi1>, tensor<4x8xf32>`},
	ir.Clamp: {Name: "stablehlo.clamp", Doc: "second operand held between first and third", Traits: ir.Pure | ir.Elementwise, Operands: ir.Exactly(3), Results: ir.Exactly(1),
		Infer: inferClamp, Factors: pointwise,
		Example: `%r = stablehlo.clamp %f, %a, %f : (tensor<f32>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>`},

	ir.Acos:     composite1("acos", "angle whose cosine the operand is", inferFloat).Like(ir.InHLO),
	ir.Acosh:    composite1("acosh", "positive number whose hyperbolic cosine the operand is", inferFloat).Like(ir.InHLO),
	ir.Asin:     composite1("asin", "angle whose sine the operand is", inferFloat).Like(ir.InHLO),
	ir.Asinh:    composite1("asinh", "number whose hyperbolic sine the operand is", inferFloat).Like(ir.InHLO),
	ir.Atan:     composite1("atan", "angle whose tangent the operand is", inferFloat),
	ir.Atanh:    composite1("atanh", "number whose hyperbolic tangent the operand is", inferFloat).Like(ir.InHLO),
	ir.ChloTan:  composite1("tan", "tangent of radians", inferFloat),
	ir.Cosh:     composite1("cosh", "hyperbolic cosine", inferFloat).Like(ir.InHLO),
	ir.Digamma:  composite1("digamma", "derivative of lgamma", inferReal),
	ir.Erf:      composite1("erf", "integral of 2/sqrt(pi) exp(-t²) from 0 to the operand", inferReal).Like(ir.InHLO),
	ir.ErfInv:   composite1("erf_inv", "number whose erf the operand is", inferReal),
	ir.Erfc:     composite1("erfc", "1 - erf(x), exact where erf is near 1", inferReal),
	ir.IsInf:    composite1("is_inf", "infinite, of either sign", inferIsFinite).On("%a", "tensor<4x8xf32> -> tensor<4x8xi1>"),
	ir.IsNegInf: composite1("is_neg_inf", "minus infinity", inferIsFinite).On("%a", "tensor<4x8xf32> -> tensor<4x8xi1>"),
	ir.IsPosInf: composite1("is_pos_inf", "plus infinity", inferIsFinite).On("%a", "tensor<4x8xf32> -> tensor<4x8xi1>"),
	ir.Lgamma:   composite1("lgamma", "logarithm of the magnitude of the gamma function", inferReal),
	ir.NextAfter: {Name: "chlo.next_after", Doc: "the number next to the first operand towards the second", Traits: ir.Pure | ir.Elementwise | ir.Composite, Operands: ir.Exactly(2), Results: ir.Exactly(1),
		Infer: inferReal, Factors: pointwise, Example: "%r = chlo.next_after %a, %b : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>"},
	ir.Sinh:   composite1("sinh", "hyperbolic sine", inferFloat).Like(ir.InHLO),
	ir.Square: composite1("square", "product with itself", inferNumber),
	ir.TopK: {Name: "chlo.top_k", Doc: "the k largest elements along the last dimension, largest first, and where they stand", Traits: ir.Pure | ir.Composite, Operands: ir.Exactly(1), Results: ir.Exactly(2),
		Attrs: []ir.AttrSpec{req("k", ir.IntAttr)}, Infer: inferTopK, Factors: topKFactors,
		Example: "%r, %indices = chlo.top_k(%a, k = 3) : tensor<4x8xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)"},

	ir.Constant: {Name: "stablehlo.constant", Doc: "a literal", Traits: ir.Pure | ir.Source, Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("value", ir.DenseAttr)}, Infer: inferConstant, Factors: sourceFactors,
		Example: `%r = stablehlo.constant dense<[1, -2, 3]> : tensor<3xi32>`},
	ir.Iota: {Name: "stablehlo.iota", Doc: "0, 1, 2, … along one dimension", Traits: ir.Pure | ir.Source, Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("iota_dimension", ir.IntAttr)}, Infer: inferIota, Factors: sourceFactors,
		Example: `%r = stablehlo.iota dim = 1 : tensor<4x8xi32>`},
	ir.PartitionID: {Name: "stablehlo.partition_id", Doc: "the rank of this device", Traits: ir.Pure, Results: ir.Exactly(1), Infer: inferDeviceID,
		Example: `%r = stablehlo.partition_id : tensor<ui32>`},
	ir.ReplicaID: {Name: "stablehlo.replica_id", Doc: "the replica that this process is", Traits: ir.Pure, Results: ir.Exactly(1), Infer: inferDeviceID,
		Example: `%r = stablehlo.replica_id : tensor<ui32>`},

	ir.RngBitGenerator: {Name: "stablehlo.rng_bit_generator", Doc: "the state after, and random bits, which follow from the state", Traits: ir.Pure, Operands: ir.Exactly(1), Results: ir.Exactly(2),
		Attrs: []ir.AttrSpec{enum("rng_algorithm", "rng_algorithm", "DEFAULT", "THREE_FRY", "PHILOX")}, Infer: inferRngBits,
		Example: "%s = stablehlo.constant dense<[1, 2]> : tensor<2xui64>\n%r, %output = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>)"},

	ir.BroadcastInDim: {Name: "stablehlo.broadcast_in_dim", Doc: "operand dimension i becomes result dimension broadcast_dimensions[i]; the rest repeats", Traits: ir.Pure, Moves: sameNumber, Linear: operands(0),
		Operands: ir.Exactly(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("broadcast_dimensions", ir.IntsAttr)}, Infer: inferBroadcast, Factors: broadcastFactors,
		Example: `%r = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<4x8xf32>) -> tensor<4x3x8xf32>`},
	ir.Concatenate: {Name: "stablehlo.concatenate", Doc: "operands one after the other along a dimension", Traits: ir.Pure, Moves: everyOperand, Linear: everyOperand,
		Operands: ir.AtLeast(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("dimension", ir.IntAttr)}, Infer: inferConcatenate, Factors: concatenateFactors,
		Example: `%r = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>`},
	ir.DynamicSlice: {Name: "stablehlo.dynamic_slice", Doc: "a window of slice_sizes at start indices, clamped to fit", Traits: ir.Pure, Moves: operands(0), Linear: operands(0),
		Operands: ir.AtLeast(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("slice_sizes", ir.IntsAttr)}, Infer: inferDynamicSlice, Factors: dynamicSliceFactors,
		Example: `%r = stablehlo.dynamic_slice %a, %n, %n, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>`},
	ir.DynamicUpdateSlice: {Name: "stablehlo.dynamic_update_slice", Doc: "the first operand with a window replaced by the second, at start indices, clamped to fit", Traits: ir.Pure | ir.InPlace, Moves: operands(0, 1), Linear: operands(0, 1),
		Operands: ir.AtLeast(2), Results: ir.Exactly(1), Infer: inferDynamicUpdateSlice, Factors: dynamicUpdateSliceFactors,
		Example: `%r = stablehlo.dynamic_update_slice %a, %u, %n, %n : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>`},
	ir.Gather: {Name: "stablehlo.gather", Doc: "windows of the operand at given indices", Traits: ir.Pure, Operands: ir.Exactly(2), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dimension_numbers", ir.GatherAttr), req("slice_sizes", ir.IntsAttr), opt("indices_are_sorted", ir.BoolAttr)}, Infer: inferGather, Factors: gatherFactors,
		Example: `%r = "stablehlo.gather"(%a, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<2x1xi32>) -> tensor<2x8xf32>`},
	ir.Pad: {Name: "stablehlo.pad", Doc: "operand with padding around and between its elements; negative padding drops elements", Traits: ir.Pure, Linear: operands(0, 1), Operands: ir.Exactly(2), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("edge_padding_low", ir.IntsAttr), req("edge_padding_high", ir.IntsAttr), req("interior_padding", ir.IntsAttr)}, Infer: inferPad, Factors: padFactors,
		Example: `%r = stablehlo.pad %a, %f, low = [1, 0], high = [0, -1], interior = [0, 2] : (tensor<4x8xf32>, tensor<f32>) -> tensor<5x21xf32>`},
	ir.Reshape: {Name: "stablehlo.reshape", Doc: "the same elements in row-major order with other sizes", Traits: ir.Pure | ir.View, Moves: operands(0), Linear: operands(0), Operands: ir.Exactly(1), Results: ir.Exactly(1), Infer: inferReshape, Factors: reshapeFactors,
		Example: `%r = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<2x16xf32>`},
	ir.Reverse: {Name: "stablehlo.reverse", Doc: "elements in reverse order along dimensions", Traits: ir.Pure, Moves: operands(0), Linear: operands(0), Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dimensions", ir.IntsAttr)}, Infer: inferReverse, Factors: reverseFactors,
		Example: `%r = stablehlo.reverse %a, dims = [0] : tensor<4x8xf32>`},
	ir.Scatter: {Name: "stablehlo.scatter", Doc: "operand with windows at given indices combined with updates", Traits: ir.Pure | ir.InPlace, Linear: scatteredSums, Operands: ir.AtLeast(3), Results: ir.AtLeast(1), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("scatter_dimension_numbers", ir.ScatterAttr), opt("indices_are_sorted", ir.BoolAttr), opt("unique_indices", ir.BoolAttr)}, Infer: inferScatter, Factors: scatterFactors,
		Example: `%r = "stablehlo.scatter"(%a, %k, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>, tensor<2x1xi32>, tensor<2x8xf32>) -> tensor<4x8xf32>`},
	ir.Slice: {Name: "stablehlo.slice", Doc: "every strides-th element from start to limit", Traits: ir.Pure, Moves: operands(0), Linear: operands(0), Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("start_indices", ir.IntsAttr), req("limit_indices", ir.IntsAttr), req("strides", ir.IntsAttr)}, Infer: inferSlice, Factors: sliceFactors,
		Example: `%r = stablehlo.slice %a [0:4, 1:7:2] : (tensor<4x8xf32>) -> tensor<4x3xf32>`},
	ir.Transpose: {Name: "stablehlo.transpose", Doc: "result dimension i is operand dimension permutation[i]", Traits: ir.Pure, Moves: operands(0), Linear: operands(0), Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("permutation", ir.IntsAttr)}, Infer: inferTranspose, Factors: transposeFactors,
		Example: `%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>`},

	ir.DotGeneral: {Name: "stablehlo.dot_general", Doc: "sums of products over the contracting dimensions", Traits: ir.Pure | ir.Costly, Operands: ir.Exactly(2), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dot_dimension_numbers", ir.DotAttr), precision, opt("algorithm", ir.AnyAttr)}, Infer: inferDot, Factors: dotFactors,
		Example: `%r = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>`},
	ir.RaggedDot: {Name: "chlo.ragged_dot", Doc: "a dot whose left side has a dimension that falls into groups of given sizes, each with a matrix or a result of its own", Traits: ir.Pure | ir.Costly,
		Operands: ir.Exactly(3), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("ragged_dot_dimension_numbers", ir.RaggedAttr), precision}, Infer: inferRagged, Factors: raggedFactors,
		Example: `%groups = stablehlo.constant dense<[1, 0, 2]> : tensor<3xi32>
%experts = stablehlo.iota dim = 0 : tensor<3x8x5xf32>
%r = "chlo.ragged_dot"(%a, %experts, %groups) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<3x8x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>`},
	ir.Convolution: {Name: "stablehlo.convolution", Doc: "sums of products of the kernel with windows of the input", Traits: ir.Pure | ir.Costly, Operands: ir.Exactly(2), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dimension_numbers", ir.ConvAttr), req("feature_group_count", ir.IntAttr), req("batch_group_count", ir.IntAttr), opt("window_strides", ir.IntsAttr), opt("padding", ir.DenseAttr),
			opt("lhs_dilation", ir.IntsAttr), opt("rhs_dilation", ir.IntsAttr), opt("window_reversal", ir.BoolsAttr), precision},
		Infer: inferConvolution, Factors: convolutionFactors,
		Example: `%r = stablehlo.convolution(%stack, %kernel) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x8x8xf32>, tensor<3x4x6xf32>) -> tensor<2x4x6xf32>`},
	ir.Reduce: {Name: "stablehlo.reduce", Doc: "elements along dimensions combined by the region, from init values", Traits: ir.Pure, Linear: reducedSums, Operands: ir.AtLeast(2), Results: ir.AtLeast(1), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dimensions", ir.IntsAttr)}, Infer: inferReduce, Factors: reduceFactors,
		Example: `%r = stablehlo.reduce(%a init: %f) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>`},
	ir.ReduceWindow: {Name: "stablehlo.reduce_window", Doc: "windows combined by the region, from init values", Traits: ir.Pure | ir.Costly, Operands: ir.AtLeast(2), Results: ir.AtLeast(1), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("window_dimensions", ir.IntsAttr), opt("window_strides", ir.IntsAttr), opt("base_dilations", ir.IntsAttr), opt("window_dilations", ir.IntsAttr), opt("padding", ir.DenseAttr)},
		Infer: inferReduceWindow, Factors: reduceWindowFactors,
		Example: `%r = "stablehlo.reduce_window"(%a, %f) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x4xf32>`},
	ir.SelectAndScatter: {Name: "stablehlo.select_and_scatter", Doc: "init values, into which each source is scattered by the second region where the first selects in its window of the operand", Traits: ir.Pure | ir.Costly,
		Operands: ir.Exactly(3), Results: ir.Exactly(1), Regions: ir.Exactly(2),
		Attrs: []ir.AttrSpec{opt("window_dimensions", ir.IntsAttr), opt("window_strides", ir.IntsAttr), opt("padding", ir.DenseAttr)},
		Infer: inferSelectAndScatter, Factors: selectAndScatterFactors,
		Example: `%r = "stablehlo.select_and_scatter"(%a, %w, %f) <{padding = dense<[[2, 2], [-2, 2]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.compare GE, %arg0, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
}, {
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>, tensor<8x4xf32>, tensor<f32>) -> tensor<4x8xf32>`},
	ir.Sort: {Name: "stablehlo.sort", Doc: "operands sorted together along a dimension by the region", Traits: ir.Pure | ir.Costly, Operands: ir.AtLeast(1), Results: ir.AtLeast(1), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dimension", ir.IntAttr), opt("is_stable", ir.BoolAttr)}, Infer: inferSort, Factors: sortFactors,
		Example: `%r = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
}) : (tensor<4x8xf32>) -> tensor<4x8xf32>`},

	ir.Cholesky: {Name: "stablehlo.cholesky", Doc: "of each matrix the triangular one that, multiplied by its adjoint, makes it; zeros in the other triangle", Traits: ir.Pure, Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{opt("lower", ir.BoolAttr)}, Infer: inferCholesky, Factors: choleskyFactors,
		Example: `%r = stablehlo.cholesky %m, lower = true : tensor<8x8xf32>`},
	ir.TriangularSolve: {Name: "stablehlo.triangular_solve", Doc: "x of each equation a x = b, or x a = b, whose a is triangular", Traits: ir.Pure, Operands: ir.Exactly(2), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("left_side", ir.BoolAttr), req("lower", ir.BoolAttr), req("unit_diagonal", ir.BoolAttr), enum("transpose_a", "transpose", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")},
		Infer: inferTriangularSolve, Factors: triangularFactors,
		Example: `%r = "stablehlo.triangular_solve"(%m, %a) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.FFT: {Name: "stablehlo.fft", Doc: "discrete Fourier transform along the last dimensions", Traits: ir.Pure, Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{enum("fft_type", "fft_type", "FFT", "IFFT", "RFFT", "IRFFT"), req("fft_length", ir.IntsAttr)}, Infer: inferFFT, Factors: fftFactors,
		Example: `%r = stablehlo.fft %a, type = RFFT, length = [8] : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>`},

	ir.While: {Name: "stablehlo.while", Doc: "the second region repeated while the first is true", Traits: ir.Pure | ir.TensorRegions | ir.Loop, Operands: ir.AtLeast(0), Results: ir.AtLeast(0), Regions: ir.Exactly(2), Infer: inferWhile,
		Example: `%r:2 = stablehlo.while(%iterArg = %n, %iterArg_0 = %a) : tensor<i32>, tensor<4x8xf32>
cond {
  %0 = stablehlo.compare LT, %iterArg, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
} do {
  %0 = stablehlo.tanh %iterArg_0 : tensor<4x8xf32>
  stablehlo.return %iterArg, %0 : tensor<i32>, tensor<4x8xf32>
}`},
	ir.Case: {Name: "stablehlo.case", Doc: "the region chosen by the index; the last where it is out of range", Traits: ir.Pure | ir.TensorRegions | ir.Branches, Operands: ir.Exactly(1), Results: ir.AtLeast(0), Regions: ir.AtLeast(1), Infer: inferCase,
		Example: `%r = "stablehlo.case"(%n) ({
  stablehlo.return %a : tensor<4x8xf32>
}, {
  stablehlo.return %b : tensor<4x8xf32>
}) : (tensor<i32>) -> tensor<4x8xf32>`},
	ir.If: {Name: "stablehlo.if", Doc: "the first region if the operand is true, else the second", Traits: ir.Pure | ir.TensorRegions | ir.Branches, Operands: ir.Exactly(1), Results: ir.AtLeast(0), Regions: ir.Exactly(2), Infer: inferIf,
		Example: `%r = "stablehlo.if"(%t) ({
  stablehlo.return %a : tensor<4x8xf32>
}, {
  stablehlo.return %b : tensor<4x8xf32>
}) : (tensor<i1>) -> tensor<4x8xf32>`},
	ir.Call: {Name: "func.call", Doc: "the results of a function", Traits: ir.Pure, Operands: ir.AtLeast(0), Results: ir.AtLeast(0), Attrs: []ir.AttrSpec{req("callee", ir.SymAttr)}, Infer: inferGiven, InModule: callFits,
		Example: `%r = call @full_batch(%a, %m) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>`},
	ir.CompositeCall: {Name: "stablehlo.composite", Doc: "an op that others may know, and here the function that it is made of", Traits: ir.Pure | ir.Pipeline, Operands: ir.AtLeast(0), Results: ir.AtLeast(0),
		Attrs: []ir.AttrSpec{req("name", ir.StrAttr), opt("composite_attributes", ir.DictAttr), req("decomposition", ir.SymAttr), opt("version", ir.IntAttr)}, Infer: inferComposite, InModule: callFits,
		Example: `%r = stablehlo.composite "my.op" %a, %m {composite_attributes = {axis = 1 : i64}, decomposition = @full_batch} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>`},
	ir.Return: {Name: "stablehlo.return", Doc: "ends a region", Traits: ir.Terminator, Operands: ir.AtLeast(0), Infer: inferNothing,
		Example: `%r = "stablehlo.case"(%n) ({
  stablehlo.return %a : tensor<4x8xf32>
}) : (tensor<i32>) -> tensor<4x8xf32>`},
	ir.FuncReturn: {Name: "func.return", Doc: "ends a function", Traits: ir.Terminator, Operands: ir.AtLeast(0), Infer: inferNothing,
		Example: `return %a : tensor<4x8xf32>`},
	ir.OptimizationBarrier: {Name: "stablehlo.optimization_barrier", Doc: "its operands; nothing moves across", Traits: ir.View, Moves: everyOperand, Operands: ir.AtLeast(0), Results: ir.AtLeast(0), Infer: inferOptimizationBarrier, Factors: nil,
		Example: `%r:2 = stablehlo.optimization_barrier %a, %f : tensor<4x8xf32>, tensor<f32>`},
	ir.CustomCall: {Name: "stablehlo.custom_call", Doc: "whatever the target does", Traits: ir.TensorRegions, Operands: ir.AtLeast(0), Results: ir.AtLeast(0), Regions: ir.AtLeast(0),
		Attrs: []ir.AttrSpec{req("call_target_name", ir.StrAttr)}, Infer: inferCustomCall, Factors: customFactors,
		Example: `%r = stablehlo.custom_call @target(%a) {backend_config = "fast"} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.TupleOp: {Name: "stablehlo.tuple", Doc: "a tuple of the operands", Traits: ir.Pure | ir.View, Operands: ir.AtLeast(0), Results: ir.Exactly(1), Infer: inferTuple,
		Example: `%r = stablehlo.tuple %a, %f : tuple<tensor<4x8xf32>, tensor<f32>>`},
	ir.GetTupleElement: {Name: "stablehlo.get_tuple_element", Doc: "one element of a tuple", Traits: ir.Pure | ir.View, Operands: ir.Exactly(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("index", ir.IntAttr)}, Infer: inferGetTupleElement,
		Example: `%r = stablehlo.get_tuple_element %pair[0] : (tuple<tensor<4x8xf32>, tensor<f32>>) -> tensor<4x8xf32>`},

	ir.AllGather: {Name: "stablehlo.all_gather", Doc: "the group's operands one after the other along a dimension", Traits: ir.Pure | ir.Collective, Operands: ir.AtLeast(1), Results: ir.AtLeast(1),
		Attrs: []ir.AttrSpec{req("all_gather_dim", ir.IntAttr), channel, groups, globalIDs}, Infer: inferAllGather, InModule: allGatherFits, Factors: gatheredFactors("all_gather_dim"),
		Example: `%r = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<8x8xf32>`},
	ir.AllReduce: {Name: "stablehlo.all_reduce", Doc: "the group's operands combined by the region", Traits: ir.Pure | ir.Collective, Operands: ir.AtLeast(1), Results: ir.AtLeast(1), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{channel, groups, globalIDs}, Infer: inferAllReduce, InModule: groupsFit, Factors: pointwise,
		Example: `%r = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.AllToAll: {Name: "stablehlo.all_to_all", Doc: "the operand split along one dimension, the slices exchanged within the group and concatenated along another", Traits: ir.Pure | ir.Collective, Moves: operands(0), Operands: ir.AtLeast(1), Results: ir.AtLeast(1),
		Attrs: []ir.AttrSpec{req("split_dimension", ir.IntAttr), req("concat_dimension", ir.IntAttr), req("split_count", ir.IntAttr), channel, groups}, Infer: inferAllToAll, InModule: allToAllFits, Factors: gatheredFactors("split_dimension", "concat_dimension"),
		Example: `%r = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x8xf32>) -> tensor<8x4xf32>`},
	ir.CollectiveBroadcast: {Name: "stablehlo.collective_broadcast", Doc: "the operand of the group's first device", Traits: ir.Pure | ir.Collective, Operands: ir.AtLeast(1), Results: ir.AtLeast(1),
		Attrs: []ir.AttrSpec{channel, groups, opt("has_dynamic_root", ir.UnitAttr)}, Infer: inferCollectiveBroadcast, InModule: groupsFit, Factors: pointwise,
		Example: `%r = "stablehlo.collective_broadcast"(%a) <{replica_groups = dense<[[2, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.CollectivePermute: {Name: "stablehlo.collective_permute", Doc: "the operand of the device that sends here; zeros if none does", Traits: ir.Pure | ir.Collective, Moves: operands(0), Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("source_target_pairs", ir.PairsAttr), channel}, Infer: inferCollectivePermute, InModule: groupsFit, Factors: pointwise,
		Example: `%r = "stablehlo.collective_permute"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.ReduceScatter: {Name: "stablehlo.reduce_scatter", Doc: "the group's operands combined by the region, this device's shard of it", Traits: ir.Pure | ir.Collective, Operands: ir.Exactly(1), Results: ir.Exactly(1), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("scatter_dimension", ir.IntAttr), channel, groups, globalIDs}, Infer: inferReduceScatter, InModule: reduceScatterFits, Factors: gatheredFactors("scatter_dimension"),
		Example: `%r = "stablehlo.reduce_scatter"(%a) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 1 : i64}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>) -> tensor<4x4xf32>`},

	ir.ShardingConstraint: {Name: "sdy.sharding_constraint", Doc: "the operand, with the given sharding", Traits: ir.Pure | ir.Elementwise | ir.Relayout, Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("sharding", ir.ShardingAttr)}, Infer: inferIdentity, Factors: pointwise,
		Example: `%r = sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]> : tensor<4x8xf32>`},
	ir.Reshard: {Name: "sdy.reshard", Doc: "the operand, resharded to the given sharding", Traits: ir.Pure | ir.Elementwise | ir.Relayout | ir.LooksBack, Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("sharding", ir.ShardingAttr)}, Infer: inferReshard, Factors: pointwise,
		Example: `%r = sdy.reshard %a <@mesh, [{}, {"y":(1)2}]> : tensor<4x8xf32>`},
	ir.ManualComputation: {Name: "sdy.manual_computation", Doc: "the region, per device along the manual axes", Traits: ir.Pure | ir.Isolated | ir.TensorRegions, Operands: ir.AtLeast(0), Results: ir.AtLeast(0), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("in_shardings", ir.ShardingsAttr), req("out_shardings", ir.ShardingsAttr), req("manual_axes", ir.ArrayAttr)}, Infer: inferManual, InModule: manualFits,
		Example: `%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%arg0: tensor<2x8xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<2x8xf32>
  sdy.return %0 : tensor<2x8xf32>
} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.SdyReturn: {Name: "sdy.return", Doc: "ends a manual computation", Traits: ir.Terminator, Operands: ir.AtLeast(0), Infer: inferNothing,
		Example: `%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{"y"}, {}]>] manual_axes={"y"} (%arg0: tensor<1x8xf32>) {
  sdy.return %arg0 : tensor<1x8xf32>
} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},

	ir.NamedComputation: {Name: "sdy.named_computation", Doc: "the region, under a name", Traits: ir.Pure | ir.Isolated | ir.TensorRegions, Operands: ir.AtLeast(0), Results: ir.AtLeast(0), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("name", ir.StrAttr), opt("in_shardings", ir.ShardingsAttr), opt("out_shardings", ir.ShardingsAttr)}, Infer: inferNamed, InModule: namedFits,
		Example: `%r = sdy.named_computation<"head">(%a) (%arg0: tensor<4x8xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<4x8xf32>
  sdy.return %0 : tensor<4x8xf32>
} : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.SdyConstant: {Name: "sdy.constant", Doc: "a literal that has a sharding of its own for each use", Traits: ir.Pure | ir.Source, Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("value", ir.DenseAttr)}, Infer: inferConstant, Factors: sourceFactors,
		Example: `%r = sdy.constant dense<1.000000e+00> : tensor<4x8xf32>`},
	ir.DataFlowEdge: {Name: "sdy.data_flow_edge", Doc: "the operand, in one sharding for all values that flow together there", Traits: ir.Pure | ir.Elementwise | ir.Relayout, Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{opt("sharding", ir.ShardingAttr)}, Infer: inferIdentity, InModule: edgeFits, Factors: pointwise,
		Example: `%r = sdy.data_flow_edge %b sharding=<@mesh, [{"x"}, {?}]> : tensor<4x8xf32>`},
	ir.PropagationBarrier: {Name: "sdy.propagation_barrier", Doc: "the operand; shardings propagate across in the allowed direction only", Traits: ir.Pure | ir.Elementwise | ir.Relayout, Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("allowed_direction", ir.IntAttr)}, Infer: inferBarrier, Factors: pointwise,
		Example: `%r = sdy.propagation_barrier %a allowed_direction=FORWARD : tensor<4x8xf32>`},
	ir.ShardingGroup: {Name: "sdy.sharding_group", Doc: "the operand has the sharding of all other members of the group", Operands: ir.Exactly(1), Results: ir.Exactly(0),
		Attrs: []ir.AttrSpec{req("group_id", ir.IntAttr)}, Infer: inferNothing,
		Example: `sdy.sharding_group %a group_id=0 : tensor<4x8xf32>`},
	ir.SdyAllGather:          explicit("all_gather", "the operand, all-gathered along the named axes", `[{"x"}, {}] %s out_sharding=<@mesh, [{}, {}]>`, perDimension("gathering_axes", shardedSides, (*explicitSide).taken, nil)).With(req("gathering_axes", ir.AnyAttr)),
	ir.SdyAllSlice:           explicit("all_slice", "the operand, sliced to be sharded along more axes", `[{}, {"y"}] %s out_sharding=<@mesh, [{"x"}, {"y"}]>`, perDimension("slicing_axes", explicitSides, (*explicitSide).given, nil)).With(req("slicing_axes", ir.AnyAttr)),
	ir.SdyAllToAll:           explicit("all_to_all", "the operand, with axes moved to another dimension by an all-to-all", `[{"x"}: 0->1] %s out_sharding=<@mesh, [{}, {"x"}]>`, exchangeFits).With(req("params", ir.AnyAttr)),
	ir.SdyCollectivePermute:  explicit("collective_permute", "the operand, its shards permuted among the devices", `%s out_sharding=<@mesh, [{"y":(1)2}, {}]>`, permuteFits),
	ir.SdyAllReduce:          explicit("all_reduce", "the operand, reduced along unreduced axes", `{"y"} %s out_sharding=<@mesh, [{"x"}, {}]>`, allReduceAxesFit).With(opt("reduction_op", ir.IntAttr)).With(req("reduction_axes", ir.AnyAttr)).Like(ir.Unreduced),
	ir.SdyReduceScatter:      explicit("reduce_scatter", "the operand, reduced along unreduced axes and scattered along them", `[{}, {"y"}] %s out_sharding=<@mesh, [{"x"}, {"y"}]>`, perDimension("reduce_scatter_axes", explicitSides, (*explicitSide).given, reduceScatterReduces)).With(opt("reduction_op", ir.IntAttr)).With(req("reduce_scatter_axes", ir.AnyAttr)).Like(ir.Unreduced),
	ir.ReplicatedToUnreduced: explicit("replicated_to_unreduced", "the operand, unreduced along the axes: one device has it, the others zero", `{"y"} %s out_sharding=<@mesh, [{"x"}, {}], unreduced={"y"}>`, replicatedFits).With(req("axes", ir.AnyAttr)).Like(ir.Unreduced),
	ir.ShardedToUnreduced:    explicit("sharded_to_unreduced", "the operand, unreduced along the axes: each device has its shard, zero elsewhere", `[{"x"}, {}] %s out_sharding=<@mesh, [{}, {}], unreduced={"x"}>`, perDimension("axes", shardedSides, (*explicitSide).taken, (*explicitSide).unreduces)).With(req("axes", ir.AnyAttr)).Like(ir.Unreduced),

	ir.PPPipeline: {Name: "pp.pipeline", Doc: "a layer function applied layers times to each microbatch, by the schedule in its attributes", Traits: ir.Pure | ir.Pipeline, Operands: ir.AtLeast(1), Results: ir.AtLeast(1),
		Attrs: []ir.AttrSpec{req("layer", ir.SymAttr), req("layers", ir.IntAttr), req("sides", ir.IntAttr), opt("activations", ir.IntAttr), req("config", ir.DictAttr)}, Infer: inferStack, InModule: pipelineFits,
		Example: `%r = "pp.pipeline"(%a, %stack) <{config = {layers_per_stage = 1 : i64, microbatches = 2 : i64, repeats = 1 : i64, stages = 2 : i64}, layer = @layer, layers = 2 : i64, sides = 0 : i64}> : (tensor<4x8xf32>, tensor<2x8x8xf32>) -> tensor<4x8xf32>`},
	ir.PPStack: {Name: "pp.stack", Doc: "a layer function applied layers times", Traits: ir.Pure | ir.Pipeline, Operands: ir.AtLeast(1), Results: ir.AtLeast(1),
		Attrs: []ir.AttrSpec{req("layer", ir.SymAttr), req("layers", ir.IntAttr), req("sides", ir.IntAttr), opt("activations", ir.IntAttr), req("config", ir.DictAttr)}, Infer: inferStack, InModule: stackFits,
		Example: `%r = "pp.stack"(%a, %stack) <{config = {scan_layers = true}, layer = @full_batch, layers = 2 : i64, sides = 0 : i64}> : (tensor<4x8xf32>, tensor<2x8x8xf32>) -> tensor<4x8xf32>`},
	ir.PPScan: {Name: "pp.scan", Doc: "the region repeated trip_count times over carries, with per-iteration inputs and outputs; in reverse, from the last iteration to the first", Traits: ir.Pure | ir.Pipeline | ir.TensorRegions | ir.Loop, Operands: ir.AtLeast(0), Results: ir.AtLeast(0), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("trip_count", ir.IntAttr), req("carries", ir.IntAttr), opt("reverse", ir.UnitAttr)}, Infer: inferScan,
		Example: `%r:2 = "pp.scan"(%f, %stack) <{carries = 1 : i64, trip_count = 2 : i64}> ({
^bb0(%arg0: tensor<i32>, %arg1: tensor<f32>, %arg2: tensor<8x8xf32>):
  %0 = stablehlo.tanh %arg1 : tensor<f32>
  "pp.yield"(%0, %arg2) : (tensor<f32>, tensor<8x8xf32>) -> ()
}) : (tensor<f32>, tensor<2x8x8xf32>) -> (tensor<f32>, tensor<2x8x8xf32>)`},
	ir.PPRotate: {Name: "pp.rotate", Doc: "the stage dimension moved by one; stage 0 (or the last) gets the other end, zeros or the fill", Traits: ir.Pure | ir.Pipeline, Operands: ir.Arity{Min: 1, Max: 2}, Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("shift", ir.IntAttr), {Name: "edge", Kind: ir.StrAttr, Words: []string{"wrap", "zero", "fill"}}}, Infer: inferRotate, Factors: rotateFactors,
		Example: `%r = "pp.rotate"(%a, %b) <{edge = "fill", shift = 1 : i64}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.PPCheckpoint: {Name: "pp.checkpoint", Doc: "the region, recomputed in the backward pass but for the names that the policy saves", Traits: ir.Pure | ir.Pipeline | ir.TensorRegions, Operands: ir.AtLeast(0), Results: ir.AtLeast(0), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("policy", ir.DictAttr)}, Infer: inferCheckpoint,
		Example: `%r = "pp.checkpoint"(%a) <{policy = {remat = "full"}}> ({
^bb0(%arg0: tensor<4x8xf32>):
  %0 = stablehlo.tanh %arg0 : tensor<4x8xf32>
  "pp.yield"(%0) : (tensor<4x8xf32>) -> ()
}) : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.PPName: {Name: "pp.name", Doc: "the operand, under a checkpoint name", Traits: ir.Pure | ir.Elementwise | ir.Pipeline, Operands: ir.Exactly(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("name", ir.StrAttr)}, Infer: inferIdentity, Factors: pointwise,
		Example: `%r = "pp.name"(%a) <{name = "mlpwo"}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.PPGather: {Name: "pp.gather", Doc: "a weight, rounded to dtype, all-gathered along the mesh axes that its sharding no longer has", Traits: ir.Pure | ir.Elementwise | ir.Pipeline, Operands: ir.Exactly(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("sharding", ir.ShardingAttr), opt("dtype", ir.StrAttr)}, Infer: inferGathered, Factors: pointwise,
		Example: `%r = "pp.gather"(%a) <{sharding = #sdy.sharding<@mesh, [{}, {}]>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	ir.PPYield: {Name: "pp.yield", Doc: "ends the region of a pp op", Traits: ir.Terminator, Operands: ir.AtLeast(0), Infer: inferNothing,
		Example: `%r = "pp.checkpoint"(%a) <{policy = {remat = "full"}}> ({
^bb0(%arg0: tensor<4x8xf32>):
  "pp.yield"(%arg0) : (tensor<4x8xf32>) -> ()
}) : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
}

func init() { ir.Define(&rows, references) }
