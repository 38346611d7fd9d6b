package mlir

import (
	"slices"
	"strings"
	"sync"

	"ppc/ir"
)

// A syntax is how one op is written: what follows its name.
type syntax struct {
	name    string
	parts   []part   // nil: generic only
	props   []string // inherent attributes, beyond those that ir's table lists
	results []string // the names of results that have none

	defaults map[string]string // attributes that are left out where they have these values
	stands   map[string]bool   // the attributes that parts stand for

	kind  ir.Kind // of ops of this name
	fills bool    // ops may lack attributes that they get when they are read
}

// A part is a piece of an op's syntax. It prints what it stands for and reads
// it back.
type part interface {
	attrs() []string     // the attributes it stands for
	fits(op *ir.Op) bool // whether it can write op
	print(p *printer, op *ir.Op, f *syntax)
	read(s *parser, st *state)
}

// fits reports whether op can be written as f says.
func (f *syntax) fits(op *ir.Op) bool {
	n := arityOf(f.parts)
	if n.fixed > len(op.Operands) || n.fixed < len(op.Operands) && !n.variadic {
		return false
	}
	if len(op.Regions) > 0 && !n.regions || slices.Contains(op.Results, nil) || slices.Contains(op.Operands, nil) || slices.Contains(op.Regions, nil) {
		return false
	}
	for _, part := range f.parts {
		if !part.fits(op) {
			return false
		}
	}
	return true
}

// A count is what parts say of the operands and regions of their op.
type count struct {
	fixed    int
	variadic bool
	regions  bool
}

// A counter is a part that writes operands or regions.
type counter interface{ count(*count) }

func arityOf(parts []part) count {
	var n count
	for _, part := range parts {
		if c, ok := part.(counter); ok {
			c.count(&n)
		}
	}
	return n
}

// syntaxOf returns how ops called name are written, nil where nothing is known of
// them. Elementwise ops that syntaxTable does not have are written alike.
func syntaxOf(name string) *syntax { return syntaxByName()[name] }

var syntaxByName = sync.OnceValue(func() map[string]*syntax {
	m := make(map[string]*syntax, len(syntaxTable)+int(ir.NumKinds))
	for k := ir.Unknown + 1; k < ir.NumKinds; k++ {
		if f := elementwiseOp(k); f != nil {
			m[f.name] = f
		}
	}
	for i := range syntaxTable {
		m[syntaxTable[i].name] = &syntaxTable[i]
	}
	for _, f := range m {
		f.kind = ir.KindByName(f.name)
		f.fills = slices.ContainsFunc(defaults, func(d filled) bool { return d.op == f.name })
		f.stands = make(map[string]bool)
		for _, part := range f.parts {
			for _, a := range part.attrs() {
				f.stands[a] = true
			}
		}
	}
	return m
})

// elementwiseOp is how StableHLO and chlo write elementwise ops that have no
// attributes but how accurate they are; nil for all others.
func elementwiseOp(k ir.Kind) *syntax {
	accuracy := k.Spec("result_accuracy") != nil
	if !k.Has(ir.Elementwise) || k.Has(ir.Collective) || k.Has(ir.Pipeline) || len(k.Specs()) > 1 || len(k.Specs()) == 1 && !accuracy {
		return nil
	}
	f := &syntax{name: k.String(), parts: []part{sp, arg(0)}}
	for i := 1; i < k.NumOperands().Max; i++ {
		f.parts = append(f.parts, comma, arg(i))
	}
	f.parts = append(f.parts, dict{})
	if strings.HasPrefix(f.name, "chlo.") {
		f.parts = append(f.parts, arrowTypes)
	} else {
		f.parts = append(f.parts, sameTypes)
	}
	if accuracy {
		f.defaults = map[string]string{"result_accuracy": "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"}
	}
	return f
}

// isInherent reports whether the attribute called name belongs to ops of op's
// kind rather than having been put on this one.
func isInherent(op *ir.Op, name string) bool {
	if op.Spec(name) != nil {
		return true
	}
	f := syntaxOf(op.Name())
	return f != nil && (slices.Contains(f.props, name) || op.Kind == ir.Unknown && f.stands[name])
}

// hasInherent reports whether ops of op's kind have attributes of their own.
func hasInherent(op *ir.Op) bool {
	f := syntaxOf(op.Name())
	return len(op.Specs()) > 0 || f != nil && len(f.props)+len(f.stands) > 0
}

// Shapes that many ops share: operands, attributes, ": types".

func unaryOp(name string) syntax {
	return syntax{name: name, parts: []part{sp, arg(0), dict{}, sameTypes}}
}
func variadicOp(name string) syntax {
	return syntax{name: name, parts: []part{sp, args{}, dict{}, functionalTypes}}
}
func sourceOp(name string) syntax { return syntax{name: name, parts: []part{dict{}, resultType}} }
func genericOp(name string, props ...string) syntax {
	return syntax{name: name, props: props}
}
func constantOp(name string) syntax { return syntax{name: name, parts: []part{constant{}}} }
func returnOp(name string) syntax   { return syntax{name: name, parts: []part{returned{}}} }

// chlo is a unary op of the dialect chlo.
func chloOp(name string) syntax {
	return syntax{name: "chlo." + name, parts: []part{sp, arg(0), dict{}, arrowTypes}}
}

// chloOp2 is a binary op of the dialect chlo.
func chloOp2(name string) syntax {
	return syntax{name: "chlo." + name, parts: []part{sp, arg(0), comma, arg(1), dict{}, arrowTypes}}
}

// collective is one of Shardy's collectives: axes, operand, sharding.
func collective(name string, parts ...part) syntax {
	return syntax{name: name, parts: append(parts, sp, arg(0), glued(" out_sharding="), shardingText("out_sharding"), dict{}, resultType)}
}

// reducers are what an unreduced value is the result of, by MLIR's number.
var reducers = []string{"", "max", "min"}

var syntaxTable = []syntax{
	variadicOp("stablehlo.is_finite"), variadicOp("stablehlo.bitcast_convert"),
	unaryOp("stablehlo.uniform_quantize"), unaryOp("stablehlo.uniform_dequantize"),
	{name: "stablehlo.reduce_precision", parts: []part{sp, arg(0), text(", format = "), precisionFormat{}, dict{}, sameTypes}},
	{name: "stablehlo.complex", parts: []part{sp, arg(0), comma, arg(1), dict{}, complexType}},
	{name: "stablehlo.compare", parts: []part{sp, word{"comparison_direction", "comparison_direction", ""}, comma, arg(0), comma, arg(1),
		word{"compare_type", "comparison_type", ", "}, dict{}, functionalTypes}},
	{name: "stablehlo.select", parts: []part{sp, arg(0), comma, arg(1), comma, arg(2), dict{}, selectTypes}},
	{name: "stablehlo.clamp", parts: []part{sp, arg(0), comma, arg(1), comma, arg(2), dict{}, sameTypes}},

	constantOp("stablehlo.constant"), constantOp("sdy.constant"), constantOp("chlo.constant"), {name: "arith.constant", parts: []part{constant{}}, results: []string{"cst"}},
	{name: "stablehlo.iota", parts: []part{text(" dim = "), number("iota_dimension"), dict{}, resultType}},
	sourceOp("stablehlo.partition_id"), sourceOp("stablehlo.replica_id"), sourceOp("stablehlo.create_token"),
	{name: "stablehlo.after_all", parts: []part{sp, args{}, dict{}, tokenType}},

	{name: "stablehlo.broadcast_in_dim", parts: []part{sp, arg(0), text(", dims = "), list("broadcast_dimensions"), dict{}, functionalTypes}},
	{name: "stablehlo.broadcast", parts: []part{sp, arg(0), text(", sizes = "), list("broadcast_sizes"), dict{}, functionalTypes}},
	{name: "stablehlo.concatenate", parts: []part{sp, args{}, text(", dim = "), number("dimension"), dict{}, functionalTypes}},
	{name: "stablehlo.dynamic_slice", parts: []part{sp, args{}, text(", sizes = "), list("slice_sizes"), dict{}, functionalTypes}},
	variadicOp("stablehlo.dynamic_update_slice"), variadicOp("stablehlo.reshape"),
	genericOp("stablehlo.gather"), genericOp("stablehlo.scatter"),
	{name: "stablehlo.pad", parts: []part{sp, arg(0), comma, arg(1), text(", low = "), list("edge_padding_low"), text(", high = "), list("edge_padding_high"),
		text(", interior = "), list("interior_padding"), dict{}, functionalTypes}},
	{name: "stablehlo.reverse", parts: []part{sp, arg(0), text(", dims = "), list("dimensions"), dict{}, sameTypes}},
	{name: "stablehlo.slice", parts: []part{sp, arg(0), sp, sliceRanges{}, dict{}, functionalTypes}},
	{name: "stablehlo.transpose", parts: []part{sp, arg(0), text(", dims = "), list("permutation"), dict{}, functionalTypes}},

	{name: "stablehlo.dot_general", parts: []part{sp, arg(0), comma, arg(1), dotDims{}, precisionConfig{}, dotAlgorithm{}, dict{}, functionalTypes}},
	{name: "stablehlo.dot", parts: []part{sp, arg(0), comma, arg(1), precisionConfig{}, dict{}, functionalTypes}},
	{name: "stablehlo.convolution", parts: []part{text("("), arg(0), comma, arg(1), text(") dim_numbers = "), convDims{}, text(", window = "), convWindow{}, dict{}, functionalTypes}},
	{name: "stablehlo.reduce", parts: []part{reduction{}}},
	{name: "stablehlo.while", parts: []part{loop{}}},

	{name: "func.call", parts: []part{sp, symbol("callee"), text("("), args{}, text(")"), dict{}, functionalTypes}},
	returnOp("stablehlo.return"), returnOp("func.return"), returnOp("sdy.return"),
	{name: "stablehlo.optimization_barrier", parts: []part{barrier{}}},
	{name: "stablehlo.custom_call", parts: []part{sp, symbol("call_target_name"), text("("), args{}, text(")"), dict{}, functionalTypes},
		props:    []string{"has_side_effect", "backend_config", "api_version", "called_computations", "operand_layouts", "result_layouts", "output_operand_aliases"},
		defaults: map[string]string{"has_side_effect": "false", "api_version": "1 : i32", "called_computations": "[]", "output_operand_aliases": "[]"}},
	{name: "stablehlo.tuple", parts: []part{sp, args{}, dict{}, tupleType}},
	{name: "stablehlo.get_tuple_element", parts: []part{sp, arg(0), text("["), number("index"), text("]"), dict{}, functionalTypes}},
	{name: "stablehlo.composite", parts: []part{sp, quoted("name"), args{lead: " "}, dict{}, functionalTypes},
		defaults: map[string]string{"composite_attributes": "{}", "version": "0 : i32"}},

	{name: "stablehlo.rng", parts: []part{sp, arg(0), comma, arg(1), comma, arg(2), text(", distribution = "), word{"rng_distribution", "rng_distribution", ""}, dict{}, functionalTypes}},
	{name: "stablehlo.rng_bit_generator", parts: []part{sp, arg(0), text(", algorithm = "), word{"rng_algorithm", "rng_algorithm", ""}, dict{}, functionalTypes},
		results: []string{"output_state", "output"}},
	{name: "stablehlo.fft", parts: []part{sp, arg(0), text(", type = "), word{"fft_type", "fft_type", ""}, text(", length = "), list("fft_length"), dict{}, functionalTypes}},
	{name: "stablehlo.cholesky", parts: []part{sp, arg(0), flag{"lower", ", lower = "}, dict{}, sameTypes}},
	{name: "stablehlo.dynamic_iota", parts: []part{sp, arg(0), text(", dim = "), number("iota_dimension"), dict{}, functionalTypes}},
	{name: "stablehlo.dynamic_broadcast_in_dim", parts: []part{sp, arg(0), comma, arg(1), text(", dims = "), list("broadcast_dimensions"), dict{}, functionalTypes},
		props: []string{"known_expanding_dimensions", "known_nonexpanding_dimensions"}},
	{name: "stablehlo.get_dimension_size", parts: []part{sp, arg(0), text(", dim = "), number("dimension"), dict{}, functionalTypes}},
	{name: "stablehlo.set_dimension_size", parts: []part{sp, arg(0), comma, arg(1), text(", dim = "), number("dimension"), dict{}, functionalTypes}},
	variadicOp("stablehlo.dynamic_reshape"), variadicOp("stablehlo.real_dynamic_slice"), variadicOp("stablehlo.dynamic_pad"),

	genericOp("stablehlo.if"), genericOp("stablehlo.case"), genericOp("stablehlo.reduce_window"), genericOp("stablehlo.sort"),
	genericOp("stablehlo.select_and_scatter"),
	genericOp("stablehlo.map", "dimensions"),
	genericOp("stablehlo.dynamic_gather", "dimension_numbers", "indices_are_sorted"),
	genericOp("stablehlo.dynamic_conv", "window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal", "dimension_numbers", "feature_group_count", "batch_group_count", "precision_config"),
	genericOp("stablehlo.triangular_solve"),
	genericOp("stablehlo.batch_norm_inference", "epsilon", "feature_index"),
	{name: "stablehlo.batch_norm_training", props: []string{"epsilon", "feature_index"}, results: []string{"output", "batch_mean", "batch_var"}},
	{name: "stablehlo.batch_norm_grad", props: []string{"epsilon", "feature_index"}, results: []string{"grad_operand", "grad_scale", "grad_offset"}},
	genericOp("stablehlo.torch_index_select", "dim", "batch_dims"),
	{name: "stablehlo.einsum", parts: []part{sp, arg(0), comma, arg(1), text(", config = "), quoted("einsum_config"), dict{}, functionalTypes}},
	{name: "stablehlo.unary_einsum", parts: []part{sp, arg(0), text(", config = "), quoted("einsum_config"), dict{}, functionalTypes}},
	genericOp("stablehlo.cross-replica-sum", "replica_groups"),

	genericOp("stablehlo.all_gather"), genericOp("stablehlo.all_reduce"), genericOp("stablehlo.all_to_all"), genericOp("stablehlo.collective_permute"),
	genericOp("stablehlo.reduce_scatter"), genericOp("stablehlo.collective_broadcast", "has_dynamic_root"),
	genericOp("stablehlo.collective_reduce", "replica_groups", "channel_handle", "use_global_device_ids"),
	genericOp("stablehlo.async_start"), genericOp("stablehlo.async_done"),
	genericOp("stablehlo.send", "channel_handle", "is_host_transfer", "source_target_pairs"),
	genericOp("stablehlo.recv", "channel_handle", "is_host_transfer", "source_target_pairs"),
	genericOp("stablehlo.infeed", "infeed_config", "layout"), genericOp("stablehlo.outfeed", "outfeed_config"),

	{name: "sdy.sharding_constraint", parts: []part{sp, arg(0), sp, shardingText("sharding"), dict{}, resultType}},
	{name: "sdy.reshard", parts: []part{sp, arg(0), sp, shardingText("sharding"), dict{}, resultType}},
	{name: "sdy.manual_computation", parts: []part{manualComputation{}}},
	{name: "sdy.named_computation", parts: []part{named{}}},
	{name: "sdy.sharding_group", parts: []part{sp, arg(0), glued(" group_id="), number("group_id"), dict{}, oneType{}}},
	{name: "sdy.data_flow_edge", parts: []part{sp, arg(0), optionalSharding{"sharding", " sharding="}, dict{}, resultType}},
	{name: "sdy.func_data_flow_edge", parts: []part{sp, arg(0), dict{}, resultType}},
	{name: "sdy.propagation_barrier", parts: []part{sp, arg(0), ordinal{"allowed_direction", " allowed_direction=", []string{"NONE", "FORWARD", "BACKWARD", "BOTH"}}, dict{}, resultType}},
	collective("sdy.all_gather", sp, bracketed{"gathering_axes", "list_of_axis_ref_lists"}),
	collective("sdy.all_slice", sp, bracketed{"slicing_axes", "list_of_axis_ref_lists"}),
	collective("sdy.all_to_all", sp, bracketed{"params", "all_to_all_param_list"}),
	collective("sdy.all_reduce", ordinal{"reduction_op", " ", reducers}, sp, bracketed{"reduction_axes", "axis_ref_list"}),
	collective("sdy.reduce_scatter", ordinal{"reduction_op", " ", reducers}, sp, bracketed{"reduce_scatter_axes", "list_of_axis_ref_lists"}),
	collective("sdy.collective_permute"),
	collective("sdy.replicated_to_unreduced", sp, bracketed{"axes", "axis_ref_list"}),
	collective("sdy.sharded_to_unreduced", sp, bracketed{"axes", "list_of_axis_ref_lists"}),

	chloOp("bessel_i1e"),
	chloOp2("mulhi"), chloOp2("next_after"), chloOp2("polygamma"), chloOp2("zeta"),
	{name: "chlo.scan", parts: []part{scan{}}, props: []string{"dimension", "is_reverse", "is_associative", "operandSegmentSizes", "resultSegmentSizes"}},
	{name: "mhlo.scan", parts: []part{scan{}}, props: []string{"dimension", "is_reverse", "is_associative", "operandSegmentSizes", "resultSegmentSizes"}},
	{name: "mhlo.topk", parts: []part{text("("), arg(0), glued(", k="), number("k"), flag{"largest", ", largest="}, text(")"), dict{}, arrowTypes}, results: []string{"values", "indices"}},
	{name: "chlo.top_k", parts: []part{text("("), arg(0), text(", k = "), number("k"), text(")"), dict{}, arrowTypes}, results: []string{"values", "indices"}},

	{name: "tensor.cast", parts: []part{sp, arg(0), dict{}, castTypes}, results: []string{"cast"}},
	unaryOp("mhlo.copy"),

	// The dialects of StableHLO's own tests.
	{name: "check.expect_eq_const", parts: []part{sp, arg(0), comma, literal("value"), dict{}}},
	{name: "check.expect_almost_eq_const", parts: []part{sp, arg(0), comma, literal("value"), dict{}}},
	{name: "check.expect_eq", parts: []part{sp, arg(0), comma, arg(1), dict{}, oneType{}}},
	{name: "check.expect_almost_eq", parts: []part{sp, arg(0), comma, arg(1), optional{"tolerance", ", tolerance = ", ir.F64}, dict{}, oneType{}}},
	{name: "check.expect_close", parts: []part{sp, arg(0), comma, arg(1), optional{"max_ulp_difference", ", max_ulp_difference = ", ir.UI64},
		optional{"min_ulp_difference", ", min_ulp_difference = ", ir.UI64}, dict{}, listTypes}},
	{name: "check.expect_serialized_eq", parts: []part{sp, arg(0), text(", probe_id = "), quoted("probe_id"), optional{"iter", ", iter = ", ir.I32}, dict{}, oneType{}}},
	{name: "interpreter.probe", parts: []part{sp, arg(0), text(", probe_id = "), quoted("probe_id"), dict{}, resultType}},
	{name: "interpreter.print", parts: []part{sp, arg(0), dict{}, oneType{}}},
}

// syntaxResult is the name that StableHLO gives result i of op, or "".
func syntaxResult(op *ir.Op, i int) string {
	if f := syntaxOf(op.Name()); f != nil && i < len(f.results) {
		return f.results[i]
	}
	return ""
}
