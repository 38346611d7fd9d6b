package examples_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/lower/hlo"
	"ppc/passes"
)

// flat is llama.pp, larger, on stage=4 and so many devices that share weights.
func flat(t testing.TB, fsdp string) string {
	t.Helper()
	src, err := os.ReadFile("llama.pp")
	if err != nil {
		t.Fatal(err)
	}
	m := lower(t, string(src), "axes.batch=32768", "axes.embed=4096", "mesh.fsdp="+fsdp)
	if _, err := hlo.Print(m); err != nil {
		t.Fatal(err)
	}
	return mlir.Print(m)
}

// isFlat fails unless what lower makes for 16,384 devices has the length, but for digits,
// of what it makes for few, and takes, within noise, the time. Noise only adds: where the
// times differ, both are taken again, up to five times, and the shortest count.
func isFlat(t *testing.T, lower func(many bool) string) {
	t.Helper()
	digits := regexp.MustCompile(`\d+`)
	var size [2]int
	least := [2]time.Duration{time.Hour, time.Hour}
	for range 5 {
		for i := range size {
			start := time.Now()
			text := lower(i == 1)
			least[i] = min(least[i], time.Since(start))
			size[i] = len(digits.ReplaceAllString(text, "0"))
		}
		if least[1] <= 3*least[0] {
			break
		}
	}
	t.Logf("%v and %v, %d and %d characters but for digits", least[0], least[1], size[0], size[1])
	if size[1] > size[0]*11/10 {
		t.Errorf("%d characters but for digits for few devices, %d for 16,384", size[0], size[1])
	}
	if least[1] > 3*least[0] {
		t.Errorf("lowering takes %v for few devices, %v for 16,384", least[0], least[1])
	}
}

// pick is one of two by whether there are many devices.
func pick[T any](many bool, few, lots T) T {
	if many {
		return lots
	}
	return few
}

// Nothing in the compiler grows with the number of devices: 16,384 of them
// take the text and, within noise, the time of eight. What the text says may
// differ in a collective or two, since other bytes are the fewest, but not in
// length; HLO's lists of source-target pairs are made by its printer.
func TestFlat(t *testing.T) {
	isFlat(t, func(many bool) string { return flat(t, pick(many, "2", "4096")) })
}

// Nor does it grow with the number of slices, and of devices in each: along an
// axis that is partly over slices, groups are digits of the devices' numbers.
func TestFlatSlices(t *testing.T) {
	isFlat(t, func(many bool) string {
		data := pick(many, "dcn(2)*ici(2)", "dcn(64)*ici(64)")
		return mlir.Print(lower(t, `include "llama_hybrid.pp"`, "axes.batch=65536", "axes.embed=4096", "mesh.data="+data))
	})
}

// meshes are one of 16 devices and one of 16,384.
var meshes = [2][]int{{4, 2, 2}, {64, 16, 16}}

// A mesh of 64 x 16 x 16 takes the text and, within noise, the time of one of 4 x 2
// x 2: in training too, with windows of weights, a state sharded over data, and
// collectives combined. What moves is said by axes, also of a permute: it has all
// its cycles, whatever else the mesh has.
func TestFlatMesh(t *testing.T) {
	src, err := os.ReadFile("llama.pp")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		set  []string
		opts lang.Options
	}{
		{name: "forward"},
		{name: "train", opts: lang.Options{Train: true}},
		{name: "train, windows, sharded over data, combined", opts: lang.Options{Train: true}, set: []string{"pipeline.gather=per_repeat", "pipeline.prefetch=ahead", "train.shard_optimizer_over_data=true", "pipeline.combine=100000000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			isFlat(t, func(many bool) string {
				mesh, opts := pick(many, meshes[0], meshes[1]), c.opts
				opts.Set = slices.Concat(c.set, []string{"axes.batch=65536", "axes.embed=4096", fmt.Sprint("pipeline.microbatches=", 2*mesh[0]),
					fmt.Sprint("mesh.stage=", mesh[0]), fmt.Sprint("mesh.data=", mesh[1]), fmt.Sprint("mesh.fsdp=", mesh[2])})
				m := lowerAs(t, strings.Replace(string(src), "layers: 8", fmt.Sprint("layers: ", 2*mesh[0]), 1), opts)
				alongAxes(t, m)
				return mlir.Print(m)
			})
		})
	}
}

// moves is the communication along a dimension that is sharded over all three axes
// of the mesh: reversals, rotations, shifts by parts of one device and of several,
// and windows over the neighbours.
func moves(mesh []int) string {
	n := 16
	for _, size := range mesh {
		n *= size
	}
	text := `module { sdy.mesh @mesh = <["x"=X, "y"=Y, "z"=Z]>
func.func @main(%a: tensor<Nx32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y", "z"}, {}]>}) -> (tensor<Nx32xf32>, tensor<Nx32xf32>, tensor<Nx32xf32>, tensor<Nx32xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %reversed = stablehlo.reverse %a, dims = [0] : tensor<Nx32xf32>
  %last = stablehlo.slice %a [P:N, 0:32] : (tensor<Nx32xf32>) -> tensor<17x32xf32>
  %first = stablehlo.slice %a [0:P, 0:32] : (tensor<Nx32xf32>) -> tensor<Px32xf32>
  %rotated = stablehlo.concatenate %last, %first, dim = 0 : (tensor<17x32xf32>, tensor<Px32xf32>) -> tensor<Nx32xf32>
  %pad = stablehlo.pad %a, %zero, low = [16, 0], high = [-16, 0], interior = [0, 0] : (tensor<Nx32xf32>, tensor<f32>) -> tensor<Nx32xf32>
  %sum = "stablehlo.reduce_window"(%pad, %zero) <{padding = dense<[[2, 2], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 5, 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %r = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %r : tensor<f32>
  }) : (tensor<Nx32xf32>, tensor<f32>) -> tensor<Nx32xf32>
  return %reversed, %rotated, %pad, %sum : tensor<Nx32xf32>, tensor<Nx32xf32>, tensor<Nx32xf32>, tensor<Nx32xf32>
} }`
	return strings.NewReplacer("X", fmt.Sprint(mesh[0]), "Y", fmt.Sprint(mesh[1]), "Z", fmt.Sprint(mesh[2]), "N", fmt.Sprint(n), "P", fmt.Sprint(n-17)).Replace(text)
}

// So it is with what moves along several axes at once.
func TestFlatMoves(t *testing.T) {
	isFlat(t, func(many bool) string {
		m, err := mlir.Parse("moves.mlir", []byte(moves(pick(many, meshes[0], meshes[1]))))
		if err != nil {
			t.Fatal(err)
		}
		if err := passes.Run(m, passes.Config{}); err != nil {
			t.Fatal(err)
		}
		alongAxes(t, m)
		text := mlir.Print(m)
		if n := strings.Count(text, "collective_permute"); n < 5 || strings.Contains(text, "all_gather") {
			t.Errorf("want permutes for all moves and no gather, found %d:\n%s", n, text)
		}
		return text
	})
}

// alongAxes checks that no collective of m lists devices.
func alongAxes(t *testing.T, m *ir.Module) {
	t.Helper()
	m.Main().Body.Walk(func(op *ir.Op) {
		for _, name := range []string{"replica_groups", "source_target_pairs"} {
			if l := op.Literal(name); l != nil {
				t.Errorf("%s of %s is a list: %s", name, op.Name(), l.Type)
			}
		}
	})
}

func BenchmarkLower(b *testing.B) {
	for _, fsdp := range []string{"2", "4096"} {
		b.Run("fsdp="+fsdp, func(b *testing.B) {
			for b.Loop() {
				flat(b, fsdp)
			}
		})
	}
}
