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
		"custom-call(p), custom_call_target=\"x\", operand_layout_constraints={}": "0 constraints for 1 operand",
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

// What follows from the operands may be left out, and is checked.
func TestShapeLeftOut(t *testing.T) {
	const head = "HloModule m\n\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n\nENTRY e {\n  p = f32[2,8] parameter(0)\n  i = s32[] parameter(1)\n  z = f32[] parameter(2)\n  b = pred[] parameter(3)\n  s = f32[8] parameter(4)\n  ROOT r = "
	for instruction, want := range map[string]string{
		"after-all()": "token[]", "copy(p)": "f32[2,8]", "topk(p), k=3": "(f32[2,3], s32[2,3])", "call(z, z), to_apply=add": "f32[]", "broadcast(z), dimensions={}": "f32[]",
		"map(p, p), dimensions={0,1}, to_apply=add": "f32[2,8]", "get-dimension-size(p), dimensions={1}": "s32[]", "set-dimension-size(p, i), dimensions={1}": "f32[2,<=8]",
		"batch-norm-training(p, s, s), epsilon=0.1, feature_index=1": "(f32[2,8], f32[8], f32[8])", "transpose(p), dimensions={1,0}": "f32[8,2]",
	} {
		m, err := Parse("in.hlo", []byte(head+instruction+"\n}\n"))
		if err != nil {
			t.Errorf("%s: %v", instruction, err)
			continue
		}
		types := make([]string, 0, 3)
		for _, r := range m.Main().Results {
			types = append(types, BareShape(r.Type))
		}
		got := strings.Join(types, ", ")
		if len(types) > 1 {
			got = "(" + got + ")"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", instruction, got, want)
		}
	}
	for instruction, want := range map[string]string{
		"slice(p), slice={[0:1], [0:8]}":                                                 "slice needs its shape written",
		"bitcast(p)":                                                                     "bitcast needs its shape written",
		"topk(p), k=9":                                                                   "topk needs its shape written",
		"call(z), to_apply=add":                                                          "the operands are not what add takes",
		"map(p), dimensions={0,1}, to_apply=add":                                         "map needs its shape written",
		"map(p, p), dimensions={1,0}, to_apply=add":                                      "map needs its shape written",
		"set-dimension-size(p, z), dimensions={1}":                                       "set-dimension-size needs its shape written",
		"batch-norm-training(p, p, p), epsilon=0.1, feature_index=1":                     "batch-norm-training needs its shape written",
		"get-dimension-size(p), dimensions={2}":                                          "get-dimension-size needs its shape written",
		"reduce-window(p, p, z, z), window={size=1x1}, to_apply=add":                     "several operands needs its shape written",
		"f32[2] reduce(p, z, z), dimensions={1}, to_apply=add":                           "reduce has 3 operands, want an even number",
		"f32[2,8] all-reduce(p), to_apply=add, use_global_device_ids=true":               "all-reduce has no channel_id",
		"f32[2,8] all-reduce(p), to_apply=sum":                                           "there is no computation sum before this one",
		"f32[2,8] collective-permute(p), source_target_pairs={{0,1}}, slice_sizes={{1}}": "has 1 operand, want 4",
		"f32[1,8] dynamic-slice(p, i), dynamic_slice_sizes={1,8}":                        "1 index for an operand of rank 2",
		"f32[2,8] infeed(p)":                                                             "infeed is f32[2,8], want a tuple that is not empty",
		`f32[2,8] custom-call(p), custom_call_target="t", to_apply=sum`:                  "there is no computation sum before this one",
		"f32[2,8] all-gather-start(p), dimensions={0,1}":                                 "want one dimension, found {0,1}",
		"f32[] conditional(b, z, z), true_computation={ROOT q = f32[] constant(1)}, false_computation={ROOT q = f32[] parameter(0)}": "has 0 parameters, it takes 1 value here",
		"f32[2,8] negate(p), control-predecessors={q}":           "there is no instruction q before this one",
		"f32[2,8] negate(p), parameter_replication={true,false}": "has 2 elements, the value has 1 part",
		"(f32[], s32[]) constant(1, 2)":                          `want "("`,
		"f32[2,8] constant({{...}})":                             "in its outer braces",
		"c64[] constant(1)":                                      `want "("`,
		"f32[] constant(Infinity)":                               "Infinity is no number of type f32",
		"f32[2,8] custom-call(p), custom_call_target=\"x\", operand_layout_constraints={f32[2,9]}":           "operand 0 is f32[2,8], the constraint f32[2,9]",
		"f32[] conditional(b, z, z), true_computation={ROOT q = f32[] parameter(0)}, false_computation=none": "there is no computation none",
	} {
		if _, err := Parse("in.hlo", []byte(head+instruction+"\n}\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", instruction, err, want)
		}
	}
}

// The end of a transfer has the channel of its beginning; a module's aliases are parts of its
// result.
func TestWholeModules(t *testing.T) {
	for text, want := range map[string]string{
		"HloModule m\n\nENTRY e {\n  t = token[] after-all()\n  p = f32[] parameter(0)\n  s = (f32[], u32[], token[]) send(p, t), channel_id=1\n  ROOT d = token[] send-done(s), channel_id=2\n}\n": "send-done has 2, its operand has 1",
		"HloModule m, input_output_alias={ {1}: (0, {}) }\n\nENTRY e {\n  ROOT p = (f32[]) parameter(0)\n}\n":                                                                                       "which has no part {1}",
		"HloModule m, input_output_alias={ {}: (-1, {}) }\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n":                                                                                         "-1 is no number of a parameter",
		"HloModule m, buffer_donor={ (-1, {}) }\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n":                                                                                                   "-1 is no number of a parameter",
		"HloModule m\n\nENTRY e (p: f32[<=4]) -> f32[<=5] {\n  ROOT p = f32[<=4] parameter(0)\n}\n":                                                                                                 "its signature says",
		"HloModule m\n\nENTRY e {\n  ROOT r = f32[] add(f32[] parameter(0), f32[] parameter(0))\n}\n":                                                                                               "each once",
	} {
		if _, err := Parse("in.hlo", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
