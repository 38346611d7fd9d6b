package passes

import (
	"slices"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/mlir"
)

// What the devices of a 2x2 mesh have after explicit collectives over parts of
// [1, 2, 3, 4], each device given what the parameter's sharding says.
func TestPartitionExplicit(t *testing.T) {
	for _, c := range []struct {
		name, param, body, result string
		want                      [4][]float64
	}{
		{"replicated to unreduced and back", `[{"x"}]`,
			`%0 = sdy.replicated_to_unreduced {"y"} %a out_sharding=<@mesh, [{"x"}], unreduced={"y"}> : tensor<4xf32>
			 %r = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>`, `[{"x"}]`,
			[4][]float64{{1, 2}, {1, 2}, {3, 4}, {3, 4}}},
		{"replicated to unreduced", `[{"x"}]`,
			`%r = sdy.replicated_to_unreduced {"y"} %a out_sharding=<@mesh, [{"x"}], unreduced={"y"}> : tensor<4xf32>`, `[{"x"}], unreduced={"y"}`,
			[4][]float64{{1, 2}, {0, 0}, {3, 4}, {0, 0}}},
		{"sharded to unreduced", `[{"x", "y"}]`,
			`%r = sdy.sharded_to_unreduced [{"y"}] %a out_sharding=<@mesh, [{"x"}], unreduced={"y"}> : tensor<4xf32>`, `[{"x"}], unreduced={"y"}`,
			[4][]float64{{1, 0}, {0, 2}, {3, 0}, {0, 4}}},
		{"sharded to unreduced and back", `[{"x", "y"}]`,
			`%0 = sdy.sharded_to_unreduced [{"y"}] %a out_sharding=<@mesh, [{"x"}], unreduced={"y"}> : tensor<4xf32>
			 %r = sdy.reduce_scatter [{"y"}] %0 out_sharding=<@mesh, [{"x", "y"}]> : tensor<4xf32>`, `[{"x", "y"}]`,
			[4][]float64{{1}, {2}, {3}, {4}}},
		{"an unreduced parameter that is used", `[{"x"}], unreduced={"y"}`,
			`%r = stablehlo.negate %a : tensor<4xf32>`, `[{"x"}]`,
			[4][]float64{{-1, -2}, {-1, -2}, {-3, -4}, {-3, -4}}},
		{"the largest of an unreduced parameter", `[{"x"}], unreduced=max{"y"}`,
			`%r = sdy.all_reduce max {"y"} %a out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>`, `[{"x"}]`,
			[4][]float64{{1, 2}, {1, 2}, {3, 4}, {3, 4}}},
		{"a sum left unreduced", `[{"x", "y"}]`,
			`%0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<4xf32>) -> tensor<2x2xf32>
			 %z = stablehlo.constant dense<10.0> : tensor<f32>
			 %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
			 %r = sdy.all_reduce {"y"} %1 out_sharding=<@mesh, [{}]> : tensor<2xf32>`, `[{}]`,
			[4][]float64{{13, 17}, {13, 17}, {13, 17}, {13, 17}}},
		{"a sum of copies", `[{"x"}]`,
			`%0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
			 %r = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>`, `[{"x"}]`,
			[4][]float64{{-1, -2}, {-1, -2}, {-3, -4}, {-3, -4}}},
		{"a sum over what has been gathered", `[{"x"}]`,
			`%0 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<4xf32>
			 %z = stablehlo.constant dense<0.0> : tensor<f32>
			 %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
			 %2 = sdy.all_reduce {"x"} %1 out_sharding=<@mesh, []> : tensor<f32>
			 %r = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4xf32>`, `[{"x", "y"}]`,
			[4][]float64{{10}, {10}, {10}, {10}}},
		{"a parameter that is summed is a sum", `[{"x"}]`,
			`%r = sdy.all_reduce {"y"} %a out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>`, `[{"x"}]`,
			[4][]float64{{2, 4}, {2, 4}, {6, 8}, {6, 8}}},
		{"parts in other places", `[{"x"}]`,
			`%r = sdy.collective_permute %a out_sharding=<@mesh, [{"y"}]> : tensor<4xf32>`, `[{"y"}]`,
			[4][]float64{{1, 2}, {3, 4}, {1, 2}, {3, 4}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := "tensor<4xf32>"
			if c.name == "a sum left unreduced" {
				result = "tensor<2xf32>"
			}
			src := `module { sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, ` + c.param + `>}) -> (` + result + ` {sdy.sharding = #sdy.sharding<@mesh, ` + c.result + `>}) {
  ` + c.body + `
  return %r : ` + result + `
} }`
			m, err := mlir.Parse("a.mlir", []byte(src))
			if err != nil {
				t.Fatal(err)
			}
			m.Form = ir.Expanded
			mesh := m.Meshes[0]
			s := m.Main().Params()[0].Sharding
			if err := Run(m, Config{}); err != nil {
				t.Fatal(err)
			}
			args := make([][]*ir.Literal, 4)
			for d := range args {
				args[d] = []*ir.Literal{ir.ShardOf(ir.Floats64(ir.Tensor(ir.F32, 4), 1, 2, 3, 4), s, mesh, d)}
			}
			got, err := eval.RunDevices(m, m.Main(), args, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for d, want := range c.want {
				var have []float64
				for k := range got[d][0].Type.NumElements() {
					have = append(have, got[d][0].Float(k))
				}
				if !slices.Equal(have, want) {
					t.Errorf("device %d has %v, want %v", d, have, want)
				}
			}
		})
	}
}
