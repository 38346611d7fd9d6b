package dialect

import "ppc/ir"

// references are the ops of StableHLO and chlo that are verified and evaluated
// as the specification says, and that no pass compiles: they make shapes while
// they run, meet other devices in ways that programs per device do not, or are
// deprecated.
var references = []ir.OpInfo{
	{Name: "stablehlo.after_all", Doc: "a token that comes after the operands", Operands: ir.AtLeast(0), Results: ir.Exactly(1), Infer: inferAfterAll,
		Example: `%token = stablehlo.create_token : !stablehlo.token
%r = stablehlo.after_all %token, %token : !stablehlo.token`},
	{Name: "stablehlo.create_token", Doc: "a token", Operands: ir.Exactly(0), Results: ir.Exactly(1), Infer: inferAfterAll,
		Example: `%r = stablehlo.create_token : !stablehlo.token`},
	{Name: "stablehlo.async_start", Doc: "starts the op of the region, whose results a future holds", Operands: ir.AtLeast(0), Results: ir.Exactly(1), Regions: ir.Exactly(1), Infer: inferAsyncStart,
		Example: `%r = "stablehlo.async_start"(%a) ({
^bb0(%arg0: tensor<4x8xf32>):
  %0 = stablehlo.slice %arg0 [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  stablehlo.return %0 : tensor<2x8xf32>
}) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<2x8xf32>>`},
	{Name: "stablehlo.async_done", Doc: "what a future holds", Operands: ir.Exactly(1), Results: ir.AtLeast(0), Infer: inferAsyncDone,
		Example: `%future = "stablehlo.async_start"(%a) ({
^bb0(%arg0: tensor<4x8xf32>):
  %0 = stablehlo.slice %arg0 [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  stablehlo.return %0 : tensor<2x8xf32>
}) : (tensor<4x8xf32>) -> !stablehlo.future<tensor<2x8xf32>>
%r = "stablehlo.async_done"(%future) : (!stablehlo.future<tensor<2x8xf32>>) -> tensor<2x8xf32>`},
	{Name: "stablehlo.infeed", Doc: "the next values that the host hands in", Operands: ir.Exactly(1), Results: ir.AtLeast(0),
		Attrs: []ir.AttrSpec{opt("infeed_config", ir.StrAttr), opt("layout", ir.AnyAttr)}, Infer: inferInfeed,
		Example: `%token = stablehlo.create_token : !stablehlo.token
%r:2 = "stablehlo.infeed"(%token) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<4x8xf32>, !stablehlo.token)`},
	{Name: "stablehlo.outfeed", Doc: "hands values to the host", Operands: ir.AtLeast(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{opt("outfeed_config", ir.StrAttr)}, Infer: inferOutfeed,
		Example: `%token = stablehlo.create_token : !stablehlo.token
%r = "stablehlo.outfeed"(%a, %token) <{outfeed_config = ""}> : (tensor<4x8xf32>, !stablehlo.token) -> !stablehlo.token`},
	{Name: "stablehlo.send", Doc: "sends values over a channel", Operands: ir.AtLeast(1), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("channel_handle", ir.ChannelAttr), opt("is_host_transfer", ir.BoolAttr), opt("source_target_pairs", ir.PairsAttr)}, Infer: inferSend,
		Example: `%token = stablehlo.create_token : !stablehlo.token
%r = "stablehlo.send"(%a, %token) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<4x8xf32>, !stablehlo.token) -> !stablehlo.token`},
	{Name: "stablehlo.recv", Doc: "receives values over a channel", Operands: ir.Exactly(1), Results: ir.AtLeast(0),
		Attrs: []ir.AttrSpec{req("channel_handle", ir.ChannelAttr), opt("is_host_transfer", ir.BoolAttr), opt("source_target_pairs", ir.PairsAttr)}, Infer: inferRecv,
		Example: `%token = stablehlo.create_token : !stablehlo.token
%r:2 = "stablehlo.recv"(%token) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4x8xf32>, !stablehlo.token)`},
	{Name: "stablehlo.collective_reduce", Doc: "the group's operands combined by the region, on its first device", Operands: ir.AtLeast(1), Results: ir.AtLeast(1), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{groups, channel, globalIDs, opt("has_dynamic_root", ir.UnitAttr)}, Infer: inferCollectiveReduce,
		Example: `%r = "stablehlo.collective_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>) -> tensor<4x8xf32>`},
	{Name: "stablehlo.cross-replica-sum", Doc: "the sum over a group of replicas", Operands: ir.Exactly(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{groups}, Infer: inferCrossReplicaSum,
		Example: `%r = "stablehlo.cross-replica-sum"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`},

	{Name: "stablehlo.batch_norm_training", Doc: "the operand, normalised over all dimensions but the features, with the mean and variance of these", Operands: ir.Exactly(3), Results: ir.Exactly(3),
		Attrs: []ir.AttrSpec{req("epsilon", ir.FloatAttr), req("feature_index", ir.IntAttr)}, Infer: inferBatchNorm,
		Example: `%output, %batch_mean, %batch_var = "stablehlo.batch_norm_training"(%a, %e, %e) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)`},
	{Name: "stablehlo.batch_norm_inference", Doc: "the operand, normalised by a given mean and variance", Operands: ir.Exactly(5), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("epsilon", ir.FloatAttr), req("feature_index", ir.IntAttr)}, Infer: inferBatchNorm,
		Example: `%r = "stablehlo.batch_norm_inference"(%a, %e, %e, %e, %e) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>`},
	{Name: "stablehlo.batch_norm_grad", Doc: "the gradients of batch_norm_training", Operands: ir.Exactly(5), Results: ir.Exactly(3),
		Attrs: []ir.AttrSpec{req("epsilon", ir.FloatAttr), req("feature_index", ir.IntAttr)}, Infer: inferBatchNorm,
		Example: `%grad_operand, %grad_scale, %grad_offset = "stablehlo.batch_norm_grad"(%a, %e, %e, %e, %b) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)`},
	{Name: "stablehlo.map", Doc: "the region of each element of the operands", Operands: ir.AtLeast(0), Results: ir.Exactly(1), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dimensions", ir.IntsAttr)}, Infer: inferMap,
		Example: `%r = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 0, 1>}> ({
^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>`},
	{Name: "stablehlo.rng", Doc: "numbers of a distribution", Operands: ir.Exactly(3), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{enum("rng_distribution", "rng_distribution", "UNIFORM", "NORMAL")}, Infer: inferRng,
		Example: `%c = stablehlo.constant dense<4> : tensor<1xi64>
%r = stablehlo.rng %f, %f, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>`},
	{Name: "stablehlo.uniform_quantize", Doc: "numbers as the nearest of a quantized type", Operands: ir.Exactly(1), Results: ir.Exactly(1), Infer: inferQuantize,
		Example: `%r = stablehlo.uniform_quantize %a : (tensor<4x8xf32>) -> tensor<4x8x!quant.uniform<i8:f32, 5.000000e-01:3>>`},
	{Name: "stablehlo.uniform_dequantize", Doc: "the numbers that quantized ones stand for", Operands: ir.Exactly(1), Results: ir.Exactly(1), Infer: inferDequantize,
		Example: `%q8 = stablehlo.uniform_quantize %a : (tensor<4x8xf32>) -> tensor<4x8x!quant.uniform<i8:f32:1, {1.000000e+00,2.000000e+00:3,1.000000e+00,1.000000e+00,1.000000e+00,1.000000e+00,1.000000e+00,1.000000e+00}>>
%r = stablehlo.uniform_dequantize %q8 : (tensor<4x8x!quant.uniform<i8:f32:1, {1.000000e+00,2.000000e+00:3,1.000000e+00,1.000000e+00,1.000000e+00,1.000000e+00,1.000000e+00,1.000000e+00}>>) -> tensor<4x8xf32>`},

	{Name: "stablehlo.get_dimension_size", Doc: "the size of a dimension", Operands: ir.Exactly(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("dimension", ir.IntAttr)}, Infer: inferGetDimensionSize,
		Example: `%r = stablehlo.get_dimension_size %a, dim = 1 : (tensor<4x8xf32>) -> tensor<i32>`},
	{Name: "stablehlo.set_dimension_size", Doc: "the operand, of which a dimension has as many elements as are said", Operands: ir.Exactly(2), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("dimension", ir.IntAttr)}, Infer: inferSetDimensionSize,
		Example: `%r = stablehlo.set_dimension_size %a, %n, dim = 1 : (tensor<4x8xf32>, tensor<i32>) -> tensor<4x?xf32, #stablehlo.bounds<?, 8>>`},
	{Name: "stablehlo.dynamic_broadcast_in_dim", Doc: "broadcast_in_dim to sizes that are computed", Operands: ir.Exactly(2), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("broadcast_dimensions", ir.IntsAttr), opt("known_expanding_dimensions", ir.IntsAttr), opt("known_nonexpanding_dimensions", ir.IntsAttr)}, Infer: inferDynamicBroadcast,
		Example: `%c = stablehlo.constant dense<[2, 4, 8]> : tensor<3xi32>
%r = stablehlo.dynamic_broadcast_in_dim %a, %c, dims = [1, 2] : (tensor<4x8xf32>, tensor<3xi32>) -> tensor<?x4x8xf32>`},
	{Name: "stablehlo.dynamic_conv", Doc: "convolution with padding that is computed", Operands: ir.Exactly(3), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dimension_numbers", ir.ConvAttr), req("feature_group_count", ir.IntAttr), req("batch_group_count", ir.IntAttr), opt("window_strides", ir.IntsAttr), opt("padding", ir.DenseAttr),
			opt("lhs_dilation", ir.IntsAttr), opt("rhs_dilation", ir.IntsAttr), opt("window_reversal", ir.BoolsAttr), precision}, Infer: inferDynamicConv,
		Example: `%c = stablehlo.constant dense<1> : tensor<1x2xi32>
%r = "stablehlo.dynamic_conv"(%stack, %kernel, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 2 : i64}> : (tensor<2x8x8xf32>, tensor<3x4x6xf32>, tensor<1x2xi32>) -> tensor<2x?x6xf32>`},
	{Name: "stablehlo.dynamic_gather", Doc: "gather of slices whose sizes are computed", Operands: ir.Exactly(3), Results: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dimension_numbers", ir.GatherAttr), opt("indices_are_sorted", ir.BoolAttr)}, Infer: inferDynamicGather,
		Example: `%c = stablehlo.constant dense<[1, 8]> : tensor<2xi32>
%r = "stablehlo.dynamic_gather"(%a, %k, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x8xf32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x?xf32>`},
	{Name: "stablehlo.dynamic_iota", Doc: "iota of sizes that are computed", Operands: ir.Exactly(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("iota_dimension", ir.IntAttr)}, Infer: inferDynamicIota,
		Example: `%c = stablehlo.constant dense<[4, 8]> : tensor<2xi32>
%r = stablehlo.dynamic_iota %c, dim = 1 : (tensor<2xi32>) -> tensor<?x8xf32>`},
	{Name: "stablehlo.dynamic_pad", Doc: "pad by numbers that are computed", Operands: ir.Exactly(5), Results: ir.Exactly(1), Infer: inferDynamicPad,
		Example: `%c = stablehlo.constant dense<1> : tensor<2xi32>
%r = stablehlo.dynamic_pad %a, %f, %c, %c, %c : (tensor<4x8xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>`},
	{Name: "stablehlo.dynamic_reshape", Doc: "reshape to sizes that are computed", Operands: ir.Exactly(2), Results: ir.Exactly(1), Infer: inferDynamicReshape,
		Example: `%c = stablehlo.constant dense<[8, 4]> : tensor<2xi32>
%r = stablehlo.dynamic_reshape %a, %c : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<?x4xf32>`},
	{Name: "stablehlo.real_dynamic_slice", Doc: "slice with bounds that are computed", Operands: ir.Exactly(4), Results: ir.Exactly(1), Infer: inferRealDynamicSlice,
		Example: `%c = stablehlo.constant dense<1> : tensor<2xi32>
%r = stablehlo.real_dynamic_slice %a, %c, %c, %c : (tensor<4x8xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>`},

	{Name: "stablehlo.broadcast", Doc: "the operand, repeated along new leading dimensions", Operands: ir.Exactly(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("broadcast_sizes", ir.IntsAttr)}, Infer: inferOldBroadcast,
		Example: `%r = stablehlo.broadcast %a, sizes = [2] : (tensor<4x8xf32>) -> tensor<2x4x8xf32>`},
	{Name: "stablehlo.dot", Doc: "the product of vectors and matrices", Operands: ir.Exactly(2), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{precision}, Infer: inferOldDot,
		Example: `%r = stablehlo.dot %a, %w : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>`},
	{Name: "stablehlo.einsum", Doc: "sums of products as the string says", Operands: ir.Exactly(2), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("einsum_config", ir.StrAttr)}, Infer: inferEinsum,
		Example: `%r = stablehlo.einsum %a, %w, config = "ij,jk->ik" : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>`},
	{Name: "stablehlo.unary_einsum", Doc: "sums as the string says", Operands: ir.Exactly(1), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("einsum_config", ir.StrAttr)}, Infer: inferEinsum,
		Example: `%r = stablehlo.unary_einsum %a, config = "ij->i" : (tensor<4x8xf32>) -> tensor<4xf32>`},
	{Name: "stablehlo.torch_index_select", Doc: "the slices of a dimension at the indices", Operands: ir.Exactly(2), Results: ir.Exactly(1), Attrs: []ir.AttrSpec{req("dim", ir.IntAttr), req("batch_dims", ir.IntAttr)}, Infer: inferTorchIndexSelect,
		Example: `%c = stablehlo.constant dense<[0, 2]> : tensor<2xi32>
%r = "stablehlo.torch_index_select"(%a, %c) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>`},

	{Name: "chlo.bessel_i1e", Doc: "the modified Bessel function of order 1, scaled by the exponential of minus the magnitude", Operands: ir.Exactly(1), Results: ir.Exactly(1), Infer: inferReal,
		Example: `%r = chlo.bessel_i1e %a : tensor<4x8xf32> -> tensor<4x8xf32>`},
	{Name: "chlo.mulhi", Doc: "the upper half of the product", Operands: ir.Exactly(2), Results: ir.Exactly(1), Infer: inferInteger,
		Example: `%r = chlo.mulhi %i, %j : tensor<4x8xi32>, tensor<4x8xi32> -> tensor<4x8xi32>`},
	{Name: "chlo.polygamma", Doc: "the derivatives of the digamma function", Operands: ir.Exactly(2), Results: ir.Exactly(1), Infer: inferReal,
		Example: `%r = chlo.polygamma %a, %b : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>`},
	{Name: "chlo.scan", Doc: "the region of the slices along a dimension, one after the other, and of the carries that it returned before", Traits: ir.Isolated, Operands: ir.AtLeast(1), Results: ir.AtLeast(0), Regions: ir.Exactly(1),
		Attrs: []ir.AttrSpec{req("dimension", ir.IntAttr), opt("is_reverse", ir.BoolAttr), opt("is_associative", ir.BoolAttr), req("operandSegmentSizes", ir.AnyAttr)}, Infer: inferScanOp,
		Example: `%r:2 = chlo.scan(%a) inits (%e) dimension=0  {
^bb0(%input: tensor<8xf32>, %carry: tensor<8xf32>):
  %0 = stablehlo.add %input, %carry : tensor<8xf32>
  stablehlo.return %0, %0 : tensor<8xf32>, tensor<8xf32>
} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)`},
	{Name: "chlo.zeta", Doc: "Hurwitz's zeta function", Operands: ir.Exactly(2), Results: ir.Exactly(1), Infer: inferReal,
		Example: `%r = chlo.zeta %a, %b : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>`},
	{Name: "sdy.func_data_flow_edge", Doc: "a parameter or the result of a call, with one sharding on both sides of the call", Operands: ir.Exactly(1), Results: ir.Exactly(1), Infer: inferIdentity, InModule: funcEdgeFits,
		Example: `%0 = call @full_batch(%b, %m) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
%r = sdy.func_data_flow_edge %0 : tensor<4x8xf32>`},
	{Name: "interpreter.run_parallel", Doc: "runs functions as the processes of a grid, rows of replicas", Operands: ir.AtLeast(0), Results: ir.AtLeast(0),
		Attrs: []ir.AttrSpec{req("programs", ir.ArrayAttr), opt("infeed", ir.ArrayAttr)}, Infer: inferGiven, InModule: gridFits,
		Example: `%r = "interpreter.run_parallel"(%a, %m) <{programs = [[@full_batch]]}> : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>`},
}
