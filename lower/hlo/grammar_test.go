package hlo

import (
	"strings"
	"testing"
)

// What XLA's parser refuses of an instruction is refused, and says why.
func TestGrammar(t *testing.T) {
	for instruction, want := range map[string]string{
		"negate(p), dimensions={0}":                        "negate has no attribute dimensions",
		"negate(p), entry_computation_layout={()->f32[2]}": "entry_computation_layout is no attribute of an instruction",
		"negate(p, p)":     "negate has 2 operands, want 1",
		"negate(f32[3] p)": "the operand is f32[2], the text before it says f32[3]",
		"negate(p), sharding={replicated}, sharding={replicated}":  "attribute sharding is given twice",
		"negate(p), sharding={replicatd}":                          "replicatd says nothing of a sharding; did you mean replicated?",
		"negate(p), metadata={op_nam=\"x\"}":                       "op_nam is none of its names; did you mean op_name?",
		"negate(p), metadata={source_line=3000000000}":             "want an integer of 32 bits, found \"3000000000\"",
		"negate(p), parameter_replication={yes}":                   "want one of true, false, found yes",
		"fusion(p), calls=f":                                       "fusion has no kind",
		"fusion(p), kind=kSmall, calls=f":                          "want one of kLoop, kInput, kOutput, kCustom, found kSmall",
		"batch-norm-training(p, p, p), epsilon=x, feature_index=0": "want a number, found \"x\"",
		"all-reduce-start(p), replica_groups={{0,x}}, to_apply=f":  "replica_groups",
		"reshape(q)": "the result has 2 elements, the operand 3",
		"custom-call(p), custom_call_target=\"x\", operand_layout_constraints={}": "0 constraints for 1 operands",
		"convolution(p, p), dim_labels=b0f_0io->bf":                               "have 3, 3 and 2 dimensions, want as many",
		"call-update(p)": "want ((operands), results, …)",
	} {
		text := "HloModule m\n\nf {\n  ROOT a = f32[2] parameter(0)\n}\n\nENTRY e {\n  p = f32[2] parameter(0)\n  q = f32[3] parameter(1)\n  ROOT r = f32[2] " + instruction + "\n}\n"
		if _, err := Parse("in.hlo", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", instruction, err, want)
		}
	}
	for header, want := range map[string]string{
		"is_scheduled=maybe": "want one of true, false, found maybe",
		"allow_spmd_sharding_propagation_to_output={true,1}": "want one of true, false, found 1",
		"replica_count=2, replica_count=2":                   "attribute replica_count is given twice",
		"input_output_alias={ {}: (0, {}, can-alias) }":      "want one of may-alias, must-alias, found can-alias",
	} {
		text := "HloModule m, " + header + "\n\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n"
		if _, err := Parse("in.hlo", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", header, err, want)
		}
	}
	for _, layout := range []string{"{0:X(1)}", "{0:T(}", "{0:E()}", "{0:S(1)T(8)}", "{}"} {
		if _, err := Parse("in.hlo", []byte("HloModule m\n\nENTRY e {\n  ROOT p = f32[2]"+layout+" parameter(0)\n}\n")); err == nil {
			t.Errorf("the layout %s is accepted", layout)
		}
	}
}
