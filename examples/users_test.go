package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ppc/driver"
	"ppc/internal/tensorfile"
	"ppc/ir"
)

// counting is a program whose result has a digit for each layer that ran, in
// the order in which they did, and begins with the number of the row.
const counting = `
axes { batch = 24, embed = 2, layers = 12 }

layer digit(x: f64[batch, embed]) {
  param d: f64[embed] = zeros
  return 10 * x + d
}

model counting(x: f64[batch, embed]) {
  out = pipeline(digit, layers: layers)(x)
  return out
}

mesh { stage = 4, data = 1, fsdp = 1 }

shard weights     { embed -> fsdp }
shard activations { batch -> data, fsdp }

pipeline { microbatches = 4 }
`

// Every layer runs once, in order, on every row, and rows come back in the
// order in which they went in, however many layers there are for the stages.
func TestEveryLayerOnce(t *testing.T) {
	for _, c := range []struct {
		layers int
		set    string
	}{
		{12, "repeats=3"},
		{12, "repeats=1 layers_per_stage=3"},
		{8, "repeats=2 delay=2 microbatches=8"},
		{8, "rotate=slice_pad microbatches=12 mesh.data=2"},
		{10, "layers=9 repeats=3 mesh.stage=3 microbatches=3"}, // one after the pipeline
		{10, "layers=8 layers_per_stage=2 repeats=1 gather=once mesh.fsdp=2"},
		{11, "layers=10 repeats=5 mesh.stage=2 microbatches=2"}, // neighbours before and after are one device
		{10, "repeats=5 mesh.stage=dcn(2) microbatches=2"},      // stages over slices, as few microbatches as stages
		{7, "mesh.stage=1 microbatches=1"},                      // a single microbatch
		{6, "mesh.stage=6 microbatches=24"},
	} {
		t.Run(fmt.Sprintf("%d layers %s", c.layers, c.set), func(t *testing.T) {
			set := []string{fmt.Sprintf("axes.layers=%d", c.layers)}
			for _, s := range strings.Fields(c.set) {
				if !strings.HasPrefix(s, "mesh.") {
					s = "pipeline." + s
				}
				set = append(set, s)
			}
			var rows, digits []float64
			for row := range 24 {
				rows = append(rows, float64(row+1), float64(row+1))
			}
			for l := range c.layers {
				digits = append(digits, float64(l%9+1), float64(l%9+1))
			}
			out := runText(t, counting, set, tensorfile.Named{Name: "x", Array: doubles(rows, 24, 2)}, tensorfile.Named{Name: "digit.d", Array: doubles(digits, c.layers, 2)})
			for row := range 24 {
				want := float64(row + 1)
				for l := range c.layers {
					want = 10*want + float64(l%9+1)
				}
				if got := out.Float(2 * row); got != want {
					t.Errorf("row %d went through %.0f, want %.0f", row+1, got, want)
				}
			}
		})
	}
}

// Layers after the pipeline may be fewer than, and no multiple of, the stages:
// their weights are not sharded along the stages.
func TestLayersLeft(t *testing.T) {
	set := []string{"axes.layers=61", "mesh.stage=8", "pipeline.layers=56", "pipeline.microbatches=8"}
	m := lower(t, counting, set...)
	found := false
	for _, v := range m.Main().Params() {
		rows := v.Attrs.Ints("pp.rows")
		if v.Attrs.Str("pp.name") != "digit.d" || len(rows) != 2 || rows[0] != 56 {
			continue
		}
		found = true
		if s, ok := v.Attrs.Get("pp.sharding").(*ir.Sharding); ok && strings.Contains(fmt.Sprint(s), "stage") {
			t.Errorf("the weights of layers 56 to 60 are sharded along %s", s)
		}
		if v.Type.Shape[0] != 5 {
			t.Errorf("a device has %s of the weights of 5 layers", v.Type)
		}
	}
	if !found {
		t.Error("no parameter holds the weights of layers 56 to 60")
	}
	check(t, counting, set...)
}

// The stages need not be the first axis of the mesh, and tensors of different
// sizes that are sharded along one axis are concatenated.
func TestPlaces(t *testing.T) {
	check(t, strings.Replace(counting, "mesh { stage = 4, data = 1, fsdp = 1 }", "mesh { fsdp = 2, stage = 4, data = 3 }", 1))
	check(t, `
axes { batch = 12, embed = 4 }

model joined(x: f32[batch, embed]) {
  part = constrain(slice(x, batch, 0, 6), {batch -> data})
  out = concat([2 * x, part, x], axis: batch)
  return out
}

mesh { data = 3, fsdp = 2 }

shard activations { batch -> data; embed -> fsdp }
`)
}

// runText runs a program on the arguments and returns its result out.
func runText(t *testing.T, program string, set []string, args ...tensorfile.Named) *ir.Literal {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.npz"), filepath.Join(dir, "out.npz")
	write(t, in, args)
	if _, err := driver.Run(t.Context(), &driver.Source{File: text(t, program), Set: set}, driver.RunOptions{Args: in, Out: out}); err != nil {
		t.Fatal(err)
	}
	f, err := tensorfile.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := f.Read("out")
	if err != nil {
		t.Fatal(err)
	}
	return literal(*a)
}

// check runs a program and compares it with its layers in sequence.
func check(t *testing.T, program string, set ...string) {
	t.Helper()
	if _, err := driver.Run(t.Context(), &driver.Source{File: text(t, program), Set: set}, driver.RunOptions{Check: true}); err != nil {
		t.Errorf("%v: %v", set, err)
	}
}

func text(t *testing.T, program string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in.pp")
	if err := os.WriteFile(file, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

func doubles(vs []float64, shape ...int) tensorfile.Array {
	return tensorfile.Array{DType: "f64", Shape: shape, Data: ir.Floats64(ir.Tensor(ir.F64, shape...), vs...).Data}
}
