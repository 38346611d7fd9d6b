package syntax

import (
	"strings"
	"testing"
)

// valueTexts are texts of values that HLO's grammar has, and texts that it has not with what is
// said of them.
var valueTexts = map[string]struct {
	good []string
	bad  map[string]string
}{
	"frontend_attributes": {[]string{`{}`, `{a="b"}`, `{a.b-c="d", e={"f": {"g": "}"}}}`},
		map[string]string{`{a=b}`: "want a string", `{a="b",}`: "want an attribute", `{a="b" c="d"}`: `want "}"`, `{a ="b"}`: `want "=" right behind a`, `"a"`: `want "{"`}},
	"backend_config": {[]string{`"a"`, `{"a":{"b":[1]}}`, `{a}`}, map[string]string{`a`: "want a string", `{{}`: `"{" is not closed`}},
	"statistics": {[]string{`{}`, `{visualizing_index=0}`, `{visualizing_index=0,time=1.5,bytes=-2}`},
		map[string]string{`{visualizing_index=x}`: "want an integer", `{visualizing_index=0,time=x}`: "want a number"}},
	"metadata": {[]string{`{}`, `{op_name="a" source_line=-1}`, `{op_name="a", op_type="b"}`, `{profile_type={0,3}}`},
		map[string]string{`{op_name="a" op_name="b"}`: "op_name is given twice", `{op_name=a}`: "want a string", `{profile_type=1}`: `want "{"`, `{profile_type={9}}`: "9 is no type of profile",
			`{op_name="\q"}`: `\q is no escape`, `{source_line=1.5}`: "want an integer of 32 bits"}},
	"origin": {[]string{`{{"a"}}`, `{({"a" {0}}, ({"b"}, {}))}`, `{[synthetic_call]}`, `{}`},
		map[string]string{`{a}`: `want "{"`, `{[call]}`: "want synthetic_call", `{({"a"}}`: `want ")"`}},
	"origin_recovery_table": {[]string{`{}`, `{{"a"}:{"b" {1}}}`, `{{"a"}:{"b"},"ENTRY e { ROOT p = f32[] parameter(0) }"}`},
		map[string]string{`{{"a"}}`: `want ":"`, `{{"a"}:{"b"},"e"}`: "the module that recovers a value"}},
	"debug_attributes": {[]string{`{}`, `{{"a"}:({log_mode=default,callback_id=1}),{"b" {0}}:()}`},
		map[string]string{`{{"a"}:({log_mode=all})}`: "want one of default", `{{"a"}:({id=1})}`: "id is none of", `{"a":()}`: `want "{"`, `{{"a"} ()}`: `want ":"`}},
	"sharding": {[]string{`{}`, `{replicated}`, `{maximal device=3}`, `{devices=[2,1]0,1}`, `{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}`, `{devices=[1,2]<=[2] last_tile_dims={manual}}`,
		`{unknown shard_as 1}`, `{{replicated}, {manual metadata={{op_name="a"}, {op_name="b"}}}}`, `{mesh['x'=2,'y'=4], [{'x'}, {'y':(2)2, ?}], unreduced={'y':(1)2}}`, `{mesh['x'=2], device_ids=(1,0), replicated}`,
		`{maximal_mesh[device_id=0]}`, `{single_device[device_id=0]}`, `{{single_device[device_id=3]}, {replicated}}`, `{single_device[device_id=0], metadata={{op_name="a"}}}`},
		map[string]string{`{replicated, manual}`: `want a part of a sharding, found ","`, `{maximal}`: "maximal has 0 devices, want 1", `{replicated device=0}`: "replicated has no devices", `{devices=[2]0}`: "1 devices: want more than one",
			`{devices=[2]0,1,2}`: "3 devices are listed for 2 parts", `{devices=[2]<=[4]}`: "4 devices for 2 parts", `{devices=[4]<=[2,2]}`: `want "T"`, `{devices=[4]<=[2,2]T(0)}`: "is no order of the 2 dimensions",
			`{shard_as 1}`: "says nothing of a sharding", `{{replicated},}`: `want "{"`, `{mesh['x'=2], [{'y'}]}`: `"y" is no axis`, `{mesh['x'=2], [{0}]}`: "want a quoted name", `{mesh['x'=2], [{?, 'x'}]}`: "an axis comes after ?",
			`{mesh['x'=2], [{'x'}, {'x'}]}`: "the axis 'x' is used twice", `{mesh['x'=4], [{'x':(3)2}]}`: "is no part of an axis of 4", `{mesh['x'=2], device_ids=(0), [{}]}`: "device_ids are not the 2 devices",
			`{mesh['x'=2,'x'=2], [{}]}`: "two axes x", `{single_device[]}`: "want an attribute", `{single_device}`: `want "["`, `{single_device[device_id=0], [{}]}`: "want an attribute"}},
	"domain": {[]string{`{kind="sharding", entry={replicated}, exit={maximal device=0}}`},
		map[string]string{`{kind="sharding", entry={replicated}}`: "there is no exit", `{kind="place", entry={replicated}, exit={replicated}}`: `want the kind "sharding"`}},
	"literal": {[]string{`f32[] 1`, `pred[2] {-1, 42}`, `s32[2]{0} {1, 2}`, `(f32[] 1, pred[] true)`}, map[string]string{`1`: `want "["`, `s8[] 300`: "300 is no number", `s32[2] 0.5`: "0.5 is no number"}},
	"window": {[]string{`{}`, `{size=2}`, `{size=2x3 stride=1x2 pad=0_0x-1_2}`},
		map[string]string{`{size=2,stride=1}`: "want an attribute", `{size=2 stride=1x1}`: "stride has 2 dimensions, size has 1", `{size=2 size=2}`: "size is given twice", `{size=2 pad=0}`: "want low_high", `{size=2 step=1}`: "step is no part of a window"}},
	"result_accuracy":          {[]string{`{mode=highest}`, `{tolerance={rtol=0.5,ulps=2}}`, `{tolerance={rtol=-0}}`}, map[string]string{`{}`: "want an attribute", `{mode=best}`: "want one of default", `{tolerance={eps=1}}`: "eps is none of", `{tolerance={rtol=-1}}`: "-1 is negative"}},
	"input_output_alias":       {[]string{`{}`, `{ {0}: (1, {}, must-alias), {1,}: (0, {2}), }`}, map[string]string{`{ {}: (0) }`: `want ","`, `{ {}: 0 }`: `want "("`, `{ {}: (0, {}, same) }`: "want one of may-alias"}},
	"buffer_donor":             {[]string{`{ (0, {}), }`}, map[string]string{`{ (0) }`: `want ","`, `{ 0 }`: `want "("`}},
	"sparsity_config":          {[]string{`{lhs={sparsity=1x4 dimension=1 stride=1} rhs={sparsity=2x4}}`}, map[string]string{`{lhs={sparsity=x4}}`: "want numbers such as 2x3", `{out={}}`: "out is none of its names"}},
	"operand_precision":        {[]string{`{}`, `{HIGH,default}`}, map[string]string{`{best}`: "want one of default", `high`: `want "{"`}},
	"slice":                    {[]string{`{}`, `{[0:4], [1:5:2]}`}, map[string]string{`{[0]}`: `want ":"`, `{[0:1:2:3]}`: `want "]"`}},
	"epsilon":                  {[]string{`0.5`, `-1e-3`, `1`}, map[string]string{`.5`: "want a number", `1e39`: "no number of type f32"}},
	"entry_computation_layout": {[]string{`{()->f32[]}`, `{(f32[2]{0}, (s32[]))->(f32[])}`}, map[string]string{`{f32[]->f32[]}`: `want "("`, `{(f32[])}`: `want "->"`}},
}

func TestCheckValue(t *testing.T) {
	for name, texts := range valueTexts {
		for _, text := range texts.good {
			if err := CheckValue(name, text); err != nil {
				t.Errorf("%s=%s: %v", name, text, err)
			}
		}
		for text, want := range texts.bad {
			if err := CheckValue(name, text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s=%s: got %v, want %q", name, text, err, want)
			}
		}
	}
}

// Names, shapes and the frame of a module.
func TestModule(t *testing.T) {
	const body = "{\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] negate(p)\n}\n"
	for _, text := range []string{"HloModule m\nENTRY e " + body, "e " + body, "ENTRY %e (p: f32[2]) -> f32[2] " + body, "HloModule m: \n%e (p f32[2]) -> f32[2] " + body + ", execution_thread=\"x\"",
		"HloModule m\n\nFileNames\n1 \"a\"\nFunctionNames\n1 \"f\"\nFileLocations\n1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=2 end_column=3}\nStackFrames\n1 {file_location_id=1 parent_frame_id=1}\n\nENTRY e " + body,
		"r = f32[2] negate(f32[2] p)", "ROOT r = f32[2] add(f32[2], f32[2] negate(f32[2] q))", "f32[2]{0} add(f32 [2] p, f32[2] {0} p)", "HloModule m\nENTRY e {\n  %true = f32[2]{0:T(8,128)(2,1)L(4)E(4)S(1)SC(0:1,2)M(4)} parameter(0)\n}"} {
		s := &Scanner{Src: text, End: len(text)}
		if s.Module(); s.Err != nil {
			t.Errorf("%s: %v", text, s.Err.Msg)
		}
	}
	for text, want := range map[string]string{
		"%f (p: f32[2]) -> f32[2] " + body:                     `want "=", found "("`,
		"HloModule m\nENTRY e (%p: f32[2]) -> f32[2] " + body:  "want a shape",
		"HloModule m\nENTRY e (p: f32[2]) " + body:             `want "->"`,
		"HloModule m\nENTRY e -> f32[2] " + body:               `want "{"`,
		"HloModule m\nENTRY e " + body + ", thread=\"x\"":      "thread is no attribute of a computation",
		"HloModule m\n\nFileNames\n1 \"a\"\n\nENTRY e " + body: "want FunctionNames",
		"b(0":                  `want "["`,
		"r = f32[2] negate(p)": "its shape is not written",
		"r = f32[2] negate(f32[2] p)\ns = f32[2] negate(r)":                       "want the end behind one instruction",
		"HloModule m\nENTRY e {\n  r= f32[] parameter(0)\n}":                      "put white space before =",
		"HloModule m\nENTRY e {\n  true = f32[] parameter(0)\n}":                  "true is no name: write %true",
		"HloModule m\nENTRY e {\n  %f32 = f32[] parameter(0)\n}":                  "f32 is no name of an instruction",
		"HloModule m\nENTRY e {\n  __p = f32[] parameter(0)\n}":                   "__p is no name of an instruction",
		"HloModule m\nENTRY e {\n  1p = f32[] parameter(0)\n}":                    "want a name",
		"HloModule m\nENTRY e {\n  p = f32[2]{:T(8)} parameter(0)\n}":             "has 0 dimensions, the tensor has 1",
		"HloModule m\nENTRY e {\n  p = f32[2]{0,} parameter(0)\n}":                "is no dimension",
		"HloModule m\nENTRY e {\n  p = f32[2]{0:T(8,)} parameter(0)\n}":           "want an integer",
		"HloModule m\nENTRY e {\n  p = f32[99999999999999999999] parameter(0)\n}": `"99999999999999999999" does not fit in 64 bits`,
		"HloModule m\nENTRY e {\n  p = f32[2]{0:D(X)} parameter(0)\n}":            "want one of D, C, S, H",
		"HloModule m\nENTRY e {\n  p = f32[<=-1] parameter(0)\n}":                 "want a bound from 0",
		"HloModule m\nENTRY e {\n  p = b((f32[])) parameter(0)\n}":                "want the buffer of a tensor",
		"HloModule m\nENTRY e {\n  p = f32[] parameter(0), metadata ={}":          `want "=" right behind metadata`,
	} {
		s := &Scanner{Src: text, End: len(text)}
		if s.Module(); s.Err == nil || !strings.Contains(s.Err.Msg, want) {
			t.Errorf("%s: got %v, want %q", text, s.Err, want)
		}
	}
}
