package mlir

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
)

// enums are the sets of words of StableHLO and chlo: #stablehlo<precision HIGH>.
var enums = []string{"comparison_direction", "comparison_type", "custom_call_api_version", "fft_type", "precision", "result_accuracy_mode",
	"rng_algorithm", "rng_distribution", "transpose"}

// mnemonics are the attributes of dialects, beside those sets.
var mnemonics = map[string][]string{
	"#stablehlo": {"axis_ref", "bounds", "channel_handle", "conv", "dot", "dot_algorithm", "gather", "mesh", "mesh_axis", "output_operand_alias",
		"replica_group_mesh_axes", "result_accuracy", "result_accuracy_mode", "scatter", "sub_axis_info", "type_extensions"},
	"#chlo": {"ragged_dot"},
	"#sdy": {"all_to_all_param", "all_to_all_param_list", "axis_ref", "axis_ref_list", "axis_to_propagation_details", "dim_mapping", "dimension_sharding",
		"edge_value_ref", "list_of_axis_ref_lists", "manual_axes", "mesh", "mesh_axis", "op_sharding_rule", "propagation_edges", "propagation_one_step",
		"sharding", "sharding_per_value", "sub_axis_info", "tensor_mapping"},
}

// checkMnemonic reports name, which begins at offset at, where it is of a dialect that
// has no such attribute: #stablehlo.foo.
func (s *parser) checkMnemonic(at int, name string) {
	dialect, word, _ := strings.Cut(name, ".")
	if known := mnemonics[dialect]; known != nil && !slices.Contains(known, word) {
		s.fail(at, "the dialect %s has no attribute %s", dialect[1:], name)
	}
}

// checkEnum reports a set of words, named at offset at, that does not exist.
func (s *parser) checkEnum(at int, set string) {
	if !slices.Contains(enums, set) {
		s.fail(at, "there is no set of words %s, want one of %s", set, strings.Join(enums, ", "))
	}
}

// dotAlgorithm reads what begins at offset start, #stablehlo.dot_algorithm<…>, and
// reports one that does not exist.
func (s *parser) dotAlgorithm(start int) ir.Attr {
	a := ir.Verbatim(s.raw(start))
	if r := ir.AlgorithmFits(a); r != nil {
		s.report(start, "%s [dot_general-%s]", r.Msg, r.Label)
	}
	return a
}

// accuracy reads #stablehlo.result_accuracy<atol = 1.0, rtol = 0.5, ulps = 2, mode = …>.
// A tolerance of zero is what one without it has.
func (s *parser) accuracy() ir.Attr {
	s.next()
	s.expect("<")
	var text strings.Builder
	text.WriteString("#stablehlo.result_accuracy<")
	for _, name := range []string{"atol", "rtol", "ulps"} {
		if !s.accept(name) {
			continue
		}
		s.expect("=")
		switch a := s.tolerance(name == "ulps").(type) {
		case ir.Float:
			if value, _, _ := strings.Cut(a.String(), " :"); a.Value != 0 {
				fmt.Fprintf(&text, "%s = %s, ", name, value)
			}
		case ir.Int:
			if a.Value != 0 {
				fmt.Fprintf(&text, "%s = %d, ", name, a.Value)
			}
		}
		s.expect(",")
	}
	s.expect("mode")
	s.expect("=")
	if s.text() != accuracyMode {
		s.wanted(accuracyMode)
	}
	text.WriteString("mode = " + s.raw(s.tok.start))
	s.expect(">")
	return ir.Verbatim(text.String() + ">")
}

const accuracyMode = "#stablehlo.result_accuracy_mode"

// tolerance reads a number, which is an integer or not.
func (s *parser) tolerance(integer bool) ir.Attr {
	kind, t := floatToken, ir.F64
	if integer {
		kind, t = intToken, ir.I64
	}
	if !s.at("-") && s.tok.kind != kind {
		s.wanted(map[bool]string{true: "an integer", false: "a number with a point"}[integer])
	}
	return s.number(t)
}
