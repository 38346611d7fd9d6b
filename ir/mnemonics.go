package ir

import "slices"

// EnumSets are the sets of words of StableHLO and chlo: #stablehlo<precision HIGH>.
var EnumSets = []string{"comparison_direction", "comparison_type", "custom_call_api_version", "fft_type", "precision", "result_accuracy_mode",
	"rng_algorithm", "rng_distribution", "transpose"}

// mnemonics are the attributes of dialects, besides those sets.
var mnemonics = map[string][]string{
	"stablehlo": {"axis_ref", "bounds", "channel_handle", "conv", "dot", "dot_algorithm", "gather", "mesh", "mesh_axis", "output_operand_alias",
		"replica_group_mesh_axes", "result_accuracy", "result_accuracy_mode", "scatter", "sub_axis_info", "type_extensions"},
	"chlo": {"ragged_dot"},
	"sdy": {"all_to_all_param", "all_to_all_param_list", "axis_ref", "axis_ref_list", "axis_to_propagation_details", "dim_mapping", "dimension_sharding",
		"edge_value_ref", "list_of_axis_ref_lists", "manual_axes", "mesh", "mesh_axis", "op_sharding_rule", "propagation_edges", "propagation_one_step",
		"sharding", "sharding_per_value", "sub_axis_info", "tensor_mapping"},
}

// HasAttr reports whether dialect has the attribute called name, or is none of those
// whose attributes are known.
func HasAttr(dialect, name string) bool {
	known := mnemonics[dialect]
	return known == nil || slices.Contains(known, name)
}
