package passes

import (
	"fmt"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/passes/pass"
)

// sumOfWindows is a sum over windows of a, sharded like it.
func sumOfWindows(size, low, high int) string {
	return fmt.Sprintf(`"stablehlo.reduce_window"(%%a, %%zero) <{padding = dense<[[%d, %d]]> : tensor<1x2xi64>, window_dimensions = array<i64: %d>}> ({
    ^bb0(%%x: tensor<f32>, %%y: tensor<f32>):
      %%z = stablehlo.add %%x, %%y : tensor<f32>
      stablehlo.return %%z : tensor<f32>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>`, low, high, size)
}

// What is gathered though nobody asked for it is said, with the value, the op
// and both shardings; what was asked for is not.
func TestPartitionWarns(t *testing.T) {
	for _, c := range []struct{ name, op, want string }{
		{"a sort, for which exchanges move no less", `"stablehlo.sort"(%a) <{dimension = 0 : i64}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %p = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>`, ""},
		{"an op that nobody knows", `stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>`, "4:8: r: a: tensor of type tensor<8xf32> is gathered: stablehlo.custom_call needs dimension 0 unsharded, which is sharded along x=4; its sharding is <@mesh, [{\"x\"}]>, the result's <@mesh, [{\"x\"}]>"},
		{"windows that reach over all devices", sumOfWindows(15, 7, 7), "a: tensor of type tensor<8xf32> is gathered: stablehlo.reduce_window needs dimension 0 unsharded, which is sharded along x=4"},
		{"windows that reach to neighbours", sumOfWindows(3, 1, 1), ""},
		{"elementwise", `stablehlo.tanh %a : tensor<8xf32>`, ""},
		{"gathered on purpose", `sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := `module { sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = ` + c.op + `
  return %r : tensor<8xf32>
} }`
			m, err := mlir.Parse("a.mlir", []byte(src))
			if err != nil {
				t.Fatal(err)
			}
			m.Form = ir.Expanded
			var got []string
			if err := Run(m, Config{Warn: func(w *pass.Error) { got = append(got, w.Pass+": "+w.Error()) }}); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(got, "\n")
			if (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
				t.Errorf("warnings %q, want %q", text, c.want)
			}
		})
	}
}
