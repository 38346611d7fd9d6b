package mlir

import (
	"slices"

	"ppc/ir"
)

// A syntax is how one op is written: what follows its name.
type syntax struct {
	name    string
	parts   []part   // nil: generic only
	props   []string // inherent attributes, beyond those that ir's table lists
	results []string // the names of results that have none

	stands map[string]bool // the attributes that parts stand for
}

// A part is a piece of an op's syntax. It prints what it stands for and reads
// it back.
type part interface {
	attrs() []string     // the attributes it stands for
	fits(op *ir.Op) bool // whether it can write op
	print(p *printer, op *ir.Op, f *syntax)
}

// fits reports whether op can be written as f says.
func (f *syntax) fits(op *ir.Op) bool {
	n := arityOf(f.parts)
	if n.fixed > len(op.Operands) || n.fixed < len(op.Operands) && !n.variadic {
		return false
	}
	if len(op.Regions) > 0 && !n.regions {
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

func syntaxOf(name string) *syntax { return syntaxByName[name] }

var syntaxByName = func() map[string]*syntax {
	m := make(map[string]*syntax, len(syntaxTable))
	for i := range syntaxTable {
		f := &syntaxTable[i]
		f.stands = make(map[string]bool)
		for _, part := range f.parts {
			for _, a := range part.attrs() {
				f.stands[a] = true
			}
		}
		m[f.name] = f
	}
	return m
}()

// isInherent reports whether the attribute called name belongs to ops of op's
// kind rather than having been put on this one.
func isInherent(op *ir.Op, name string) bool {
	if op.Kind != ir.Unknown && op.Kind.Spec(name) != nil {
		return true
	}
	f := syntaxOf(op.Name())
	return f != nil && (slices.Contains(f.props, name) || op.Kind == ir.Unknown && f.stands[name])
}

// Shapes that many ops share: operands, attributes, ": types".

func unary(name string) syntax {
	return syntax{name: name, parts: []part{sp, arg(0), dict{}, sameTypes}}
}
func binary(name string) syntax {
	return syntax{name: name, parts: []part{sp, arg(0), comma, arg(1), dict{}, sameTypes}}
}
func variadic(name string) syntax {
	return syntax{name: name, parts: []part{sp, args{}, dict{}, functionalTypes}}
}
func source(name string) syntax { return syntax{name: name, parts: []part{dict{}, resultType}} }
func generic(name string, props ...string) syntax {
	return syntax{name: name, props: props}
}
func ret(name string) syntax { return syntax{name: name, parts: []part{returned{}}} }

// accurate is a unary op that takes a result accuracy.
func accurate(name string) syntax {
	f := unary(name)
	f.props = []string{"result_accuracy"}
	return f
}

// chlo is a unary op of the dialect chlo.
func chlo(name string) syntax {
	return syntax{name: "chlo." + name, parts: []part{sp, arg(0), dict{}, arrowTypes}}
}

var syntaxTable = []syntax{
	unary("stablehlo.abs"), accurate("stablehlo.cbrt"), unary("stablehlo.ceil"), unary("stablehlo.count_leading_zeros"), accurate("stablehlo.cosine"),
	accurate("stablehlo.exponential"), accurate("stablehlo.exponential_minus_one"), unary("stablehlo.floor"), variadic("stablehlo.is_finite"),
	accurate("stablehlo.log"), accurate("stablehlo.log_plus_one"), accurate("stablehlo.logistic"), unary("stablehlo.negate"), unary("stablehlo.not"),
	unary("stablehlo.popcnt"), unary("stablehlo.round_nearest_afz"), unary("stablehlo.round_nearest_even"), accurate("stablehlo.rsqrt"), unary("stablehlo.sign"),
	accurate("stablehlo.sine"), accurate("stablehlo.sqrt"), accurate("stablehlo.tan"), accurate("stablehlo.tanh"), unary("stablehlo.convert"), variadic("stablehlo.bitcast_convert"),
	unary("stablehlo.real"), unary("stablehlo.imag"), unary("stablehlo.uniform_quantize"), unary("stablehlo.uniform_dequantize"),

	{name: "stablehlo.reduce_precision", parts: []part{sp, arg(0), text(", format = "), precisionFormat{}, dict{}, sameTypes}},
	{name: "stablehlo.complex", parts: []part{sp, arg(0), comma, arg(1), dict{}, complexType}},

	binary("stablehlo.add"), binary("stablehlo.and"), binary("stablehlo.atan2"), binary("stablehlo.divide"), binary("stablehlo.maximum"), binary("stablehlo.minimum"),
	binary("stablehlo.multiply"), binary("stablehlo.or"), binary("stablehlo.power"), binary("stablehlo.remainder"), binary("stablehlo.shift_left"),
	binary("stablehlo.shift_right_arithmetic"), binary("stablehlo.shift_right_logical"), binary("stablehlo.subtract"), binary("stablehlo.xor"),
	{name: "stablehlo.compare", parts: []part{sp, word{"comparison_direction", "comparison_direction", ""}, comma, arg(0), comma, arg(1),
		word{"compare_type", "comparison_type", ", "}, dict{}, functionalTypes}},
	{name: "stablehlo.select", parts: []part{sp, arg(0), comma, arg(1), comma, arg(2), dict{}, selectTypes}},
	{name: "stablehlo.clamp", parts: []part{sp, arg(0), comma, arg(1), comma, arg(2), dict{}, sameTypes}},

	{name: "stablehlo.constant", parts: []part{dict{}, constantValue{}}},
	{name: "stablehlo.iota", parts: []part{text(" dim = "), number("iota_dimension"), dict{}, resultType}},
	source("stablehlo.partition_id"), source("stablehlo.replica_id"), source("stablehlo.create_token"),
	{name: "stablehlo.after_all", parts: []part{args{lead: " "}, dict{}, tokenType}},

	{name: "stablehlo.broadcast_in_dim", parts: []part{sp, arg(0), text(", dims = "), list("broadcast_dimensions"), dict{}, functionalTypes}},
	{name: "stablehlo.broadcast", parts: []part{sp, arg(0), text(", sizes = "), list("broadcast_sizes"), dict{}, functionalTypes}},
	{name: "stablehlo.concatenate", parts: []part{sp, args{}, text(", dim = "), number("dimension"), dict{}, functionalTypes}},
	{name: "stablehlo.dynamic_slice", parts: []part{sp, args{}, text(", sizes = "), list("slice_sizes"), dict{}, functionalTypes}},
	variadic("stablehlo.dynamic_update_slice"), variadic("stablehlo.reshape"),
	generic("stablehlo.gather"), generic("stablehlo.scatter"),
	{name: "stablehlo.pad", parts: []part{sp, arg(0), comma, arg(1), text(", low = "), list("edge_padding_low"), text(", high = "), list("edge_padding_high"),
		text(", interior = "), list("interior_padding"), dict{}, functionalTypes}},
	{name: "stablehlo.reverse", parts: []part{sp, arg(0), text(", dims = "), list("dimensions"), dict{}, sameTypes}},
	{name: "stablehlo.slice", parts: []part{sp, arg(0), sp, sliceRanges{}, dict{}, functionalTypes}},
	{name: "stablehlo.transpose", parts: []part{sp, arg(0), text(", dims = "), list("permutation"), dict{}, functionalTypes}},

	{name: "stablehlo.dot_general", parts: []part{sp, arg(0), comma, arg(1), comma, dotDims{}, precisionConfig{}, dotAlgorithm{}, dict{}, functionalTypes}},
	{name: "stablehlo.dot", parts: []part{sp, arg(0), comma, arg(1), precisionConfig{}, dict{}, functionalTypes}},
	{name: "stablehlo.convolution", parts: []part{text("("), arg(0), comma, arg(1), text(") dim_numbers = "), convDims{}, text(", window = "), convWindow{}, dict{}, functionalTypes},
		props: []string{"batch_group_count", "feature_group_count", "precision_config"}},
	{name: "stablehlo.reduce", parts: []part{reduction{}}},
	{name: "stablehlo.while", parts: []part{loop{}}},

	{name: "func.call", parts: []part{sp, symbol("callee"), text("("), args{}, text(")"), dict{}, functionalTypes}},
	ret("stablehlo.return"), ret("func.return"), ret("sdy.return"),
	{name: "stablehlo.optimization_barrier", parts: []part{barrier{}}},
	{name: "stablehlo.custom_call", parts: []part{sp, symbol("call_target_name"), text("("), args{}, text(")"), dict{}, functionalTypes},
		props: []string{"has_side_effect", "backend_config", "api_version", "called_computations", "operand_layouts", "result_layouts", "output_operand_aliases"}},
	{name: "stablehlo.tuple", parts: []part{sp, args{}, dict{}, tupleType}},
	{name: "stablehlo.get_tuple_element", parts: []part{sp, arg(0), text("["), number("index"), text("]"), dict{}, functionalTypes}},
	{name: "stablehlo.composite", parts: []part{sp, quoted("name"), args{lead: " "}, dict{}, functionalTypes},
		props: []string{"composite_attributes", "decomposition", "version"}},

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
	variadic("stablehlo.dynamic_reshape"), variadic("stablehlo.real_dynamic_slice"), variadic("stablehlo.dynamic_pad"),

	generic("stablehlo.if"), generic("stablehlo.case"), generic("stablehlo.reduce_window"), generic("stablehlo.sort"),
	generic("stablehlo.select_and_scatter", "window_dimensions", "window_strides", "padding"),
	generic("stablehlo.map", "dimensions"),
	generic("stablehlo.dynamic_gather", "dimension_numbers", "indices_are_sorted"),
	generic("stablehlo.dynamic_conv", "window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal", "dimension_numbers", "feature_group_count", "batch_group_count", "precision_config"),
	generic("stablehlo.triangular_solve", "left_side", "lower", "unit_diagonal", "transpose_a"),
	generic("stablehlo.batch_norm_inference", "epsilon", "feature_index"),
	{name: "stablehlo.batch_norm_training", props: []string{"epsilon", "feature_index"}, results: []string{"output", "batch_mean", "batch_var"}},
	{name: "stablehlo.batch_norm_grad", props: []string{"epsilon", "feature_index"}, results: []string{"grad_operand", "grad_scale", "grad_offset"}},
	generic("stablehlo.torch_index_select", "dim", "batch_dims"),
	generic("stablehlo.einsum", "einsum_config"), generic("stablehlo.unary_einsum", "einsum_config"),
	generic("stablehlo.cross-replica-sum", "replica_groups"),

	generic("stablehlo.all_gather"), generic("stablehlo.all_reduce"), generic("stablehlo.all_to_all"), generic("stablehlo.collective_permute"),
	generic("stablehlo.reduce_scatter"), generic("stablehlo.collective_broadcast", "has_dynamic_root"),
	generic("stablehlo.collective_reduce", "replica_groups", "channel_handle", "use_global_device_ids"),
	generic("stablehlo.async_start"), generic("stablehlo.async_done"),
	generic("stablehlo.send", "channel_handle", "is_host_transfer", "source_target_pairs"),
	generic("stablehlo.recv", "channel_handle", "is_host_transfer", "source_target_pairs"),
	generic("stablehlo.infeed", "infeed_config", "layout"), generic("stablehlo.outfeed", "outfeed_config"),

	{name: "sdy.sharding_constraint", parts: []part{sp, arg(0), sp, shardingText("sharding"), dict{}, resultType}},
	{name: "sdy.reshard", parts: []part{sp, arg(0), sp, shardingText("sharding"), dict{}, resultType}},
	{name: "sdy.manual_computation", parts: []part{manualComputation{}}},

	chlo("acos"), chlo("acosh"), chlo("asin"), chlo("asinh"), chlo("atan"), chlo("atanh"), chlo("bessel_i1e"), chlo("cosh"), chlo("digamma"), chlo("erf"),
	chlo("erf_inv"), chlo("erfc"), chlo("is_inf"), chlo("is_neg_inf"), chlo("is_pos_inf"), chlo("lgamma"), chlo("sinh"), chlo("square"), chlo("tan"),
	{name: "chlo.top_k", parts: []part{text("("), arg(0), text(", k = "), number("k"), text(")"), dict{}, arrowTypes}, results: []string{"values", "indices"}},
}
