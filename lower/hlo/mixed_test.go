package hlo

import (
	"strings"
	"testing"

	"ppc/ir/verify"
)

// TestUnsoundMix reads instructions that mix floating-point types and would not be sound with one
// type either: the rule that they break is that of their op.
func TestUnsoundMix(t *testing.T) {
	for body, want := range map[string]string{
		"p = f32[4] parameter(0)  ROOT r = bf16[2,2] reshape(p)": "stablehlo.reshape",
		"p = f32[4,4] parameter(0)  i = bf16[3,1] parameter(1)  ROOT r = f32[3,1,4] gather(p, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}": "stablehlo.gather",
		"p = f32[4] parameter(0)  q = bf16[5] parameter(1)  ROOT r = f32[4] add(p, q)":                                                                                                                    "stablehlo.add",
		"p = f32[4] parameter(0)  q = f64[4] parameter(1)  ROOT r = f32[4] add(p, q)":                                                                                                                     "stablehlo.add",
		"p = f32[4] parameter(0)  ROOT r = f8e5m2[4] negate(p)":                                                                                                                                           "stablehlo.negate",
		"p = f32[6,5] parameter(0)  i = bf16[4,1] parameter(1)  u = f32[4,5] parameter(2)  ROOT r = f32[6,5] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum": "stablehlo.scatter",
		"p = bf16[6,5] parameter(0)  i = s32[4,1] parameter(1)  u = f32[4,5] parameter(2)  ROOT r = f32[6,5] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum": "",
		"p = f32[4] parameter(0)  q = bf16[4] parameter(1)  ROOT r = f32[4] add(p, q)": "",
	} {
		m, err := Parse("in.hlo", []byte("HloModule m\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\nENTRY e {\n"+body+"\n}\n"))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if err := verify.Verify(m); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error of %q", body, err, want)
		}
	}
}
