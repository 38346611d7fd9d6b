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

// Nothing in the compiler grows with the number of devices: 16,384 of them
// take the text and, within noise, the time of eight. What the text says may
// differ in a collective or two, since other bytes are the fewest, but not in
// length; HLO's lists of source-target pairs are made by its printer.
func TestFlat(t *testing.T) {
	digits := regexp.MustCompile(`\d+`)
	size := func(fsdp string) int { return len(digits.ReplaceAllString(flat(t, fsdp), "0")) }
	few, many := size("2"), size("4096")
	if many > few*11/10 {
		t.Errorf("%d characters but for digits for 8 devices, %d for 16,384", few, many)
	}
	best := func(fsdp string) time.Duration {
		least := time.Hour
		for range 5 {
			start := time.Now()
			flat(t, fsdp)
			least = min(least, time.Since(start))
		}
		return least
	}
	a, b := best("2"), best("4096")
	t.Logf("8 devices %v, 16,384 devices %v", a, b)
	if b > 3*a {
		t.Errorf("lowering takes %v for 8 devices, %v for 16,384", a, b)
	}
}

// Nor does it grow with the number of slices, and of devices in each: along an
// axis that is partly over slices, groups are digits of the devices' numbers.
func TestFlatSlices(t *testing.T) {
	digits := regexp.MustCompile(`\d+`)
	size := func(data string) int {
		m := lower(t, `include "llama_hybrid.pp"`, "axes.batch=65536", "axes.embed=4096", "mesh.data="+data)
		return len(digits.ReplaceAllString(mlir.Print(m), "0"))
	}
	if few, many := size("dcn(2)*ici(2)"), size("dcn(64)*ici(64)"); many > few*11/10 {
		t.Errorf("%d characters but for digits for 16 devices, %d for 16,384", few, many)
	}
}

// A mesh of 64 x 16 x 16 takes the text and, within noise, the time of one of 4 x 2
// x 2: in training too, with windows of weights, a state sharded over data, and
// collectives combined. What moves is said by axes, also of a permute: it has all
// its cycles, whatever else the mesh has.
func TestFlatMesh(t *testing.T) {
	src, err := os.ReadFile("llama.pp")
	if err != nil {
		t.Fatal(err)
	}
	digits := regexp.MustCompile(`\d+`)
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
			size, least := [2]int{}, [2]time.Duration{time.Hour, time.Hour}
			for range 2 {
				for i, mesh := range [][]int{{4, 2, 2}, {64, 16, 16}} {
					opts := c.opts
					opts.Set = slices.Concat(c.set, []string{"axes.batch=65536", "axes.embed=4096", fmt.Sprint("pipeline.microbatches=", 2*mesh[0]),
						fmt.Sprint("mesh.stage=", mesh[0]), fmt.Sprint("mesh.data=", mesh[1]), fmt.Sprint("mesh.fsdp=", mesh[2])})
					start := time.Now()
					m := lowerAs(t, strings.Replace(string(src), "layers: 8", fmt.Sprint("layers: ", 2*mesh[0]), 1), opts)
					text := mlir.Print(m)
					least[i] = min(least[i], time.Since(start))
					size[i] = len(digits.ReplaceAllString(text, "0"))
					alongAxes(t, m)
				}
			}
			t.Logf("%v and %v, %d and %d characters but for digits", least[0], least[1], size[0], size[1])
			if size[1] > size[0]*11/10 {
				t.Errorf("%d characters but for digits for 16 devices, %d for 16,384", size[0], size[1])
			}
			if least[1] > 3*least[0] {
				t.Errorf("lowering takes %v for 16 devices, %v for 16,384", least[0], least[1])
			}
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
	digits := regexp.MustCompile(`\d+`)
	size, least := [2]int{}, [2]time.Duration{time.Hour, time.Hour}
	for range 3 {
		for i, mesh := range [][]int{{4, 2, 2}, {64, 16, 16}} {
			m, err := mlir.Parse("moves.mlir", []byte(moves(mesh)))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if err := passes.Run(m, passes.Config{}); err != nil {
				t.Fatal(err)
			}
			text := mlir.Print(m)
			least[i] = min(least[i], time.Since(start))
			size[i] = len(digits.ReplaceAllString(text, "0"))
			alongAxes(t, m)
			if n := strings.Count(text, "collective_permute"); n < 5 || strings.Contains(text, "all_gather") {
				t.Errorf("want permutes for all moves and no gather, found %d:\n%s", n, text)
			}
		}
	}
	t.Logf("%v and %v, %d and %d characters but for digits", least[0], least[1], size[0], size[1])
	if size[1] > size[0]*11/10 {
		t.Errorf("%d characters but for digits for 16 devices, %d for 16,384", size[0], size[1])
	}
	if least[1] > 3*least[0] {
		t.Errorf("lowering takes %v for 16 devices, %v for 16,384", least[0], least[1])
	}
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
