package driver

import (
	"path/filepath"
	"strings"
	"testing"

	"ppc/driver/binding"
	"ppc/internal/tensorfile"
	"ppc/ir"
)

// everyInput takes an input of each element type; types of floats are named in
// the order of the inputs' names.
const everyInput = `
axes { batch = 4, embed = 2 }

model sums(a: f64[batch, embed], b: f32[batch, embed], c: bf16[batch, embed], d: f16[batch, embed], i: i32[batch], u: ui8[batch], t: i1[batch]) {
  param w: WEIGHT[embed] = normal(1)
  x = cast(a, WEIGHT) + cast(b, WEIGHT) + cast(c, WEIGHT) + cast(d, WEIGHT)
  x = x * cast(i, WEIGHT) + cast(u, WEIGHT) + where(t, x, 0)
  return mean(x * w * w)
}

train { optimizer = adamw(lr: 0.1), steps = 3, gradient_accumulation = 2 }
`

// everyBatch is n batches for everyInput, numbers that every float has.
func everyBatch(n int) []tensorfile.Named {
	arrays := []tensorfile.Named{{Name: "i", Array: iota(ir.I32, n, 4)}, {Name: "u", Array: iota(ir.UI8, n, 4)},
		{Name: "t", Array: binding.ArrayOf(&ir.Literal{Type: ir.Tensor(ir.I1, n, 4), Data: make([]byte, n*4)})}}
	for name, dtype := range map[string]ir.DType{"a": ir.F64, "b": ir.BF16, "c": ir.BF16, "d": ir.F16} {
		arrays = append(arrays, tensorfile.Named{Name: name, Array: iota(dtype, n, 4, 2)})
	}
	return arrays
}

// The reference gets the numbers that the program gets, wherever these come
// from, whatever type they have and however many batches a step takes.
func TestReferenceGetsTheSameNumbers(t *testing.T) {
	for _, weight := range []string{"f32", "f64", "bf16"} {
		dir := t.TempDir()
		data := filepath.Join(dir, "data.npz")
		if err := writeArrays(t.Context(), data, everyBatch(14)); err != nil {
			t.Fatal(err)
		}
		var one []tensorfile.Named
		for _, a := range everyBatch(1) {
			a.Array.Shape = a.Array.Shape[1:]
			one = append(one, a)
		}
		args := filepath.Join(dir, "args.npz")
		if err := writeArrays(t.Context(), args, one); err != nil {
			t.Fatal(err)
		}
		file := write(t, "sums.pp", strings.ReplaceAll(everyInput, "WEIGHT", weight))
		state := filepath.Join(dir, "state.npz")
		for _, c := range []struct {
			name string
			set  []string
			opts RunOptions
		}{
			{"made up", nil, RunOptions{Out: state}},
			{"made up, one batch", []string{"train.gradient_accumulation=1"}, RunOptions{}},
			{"data", []string{`train.data="` + data + `"`}, RunOptions{}},
			{"data, one batch", []string{`train.data="` + data + `"`, "train.gradient_accumulation=1"}, RunOptions{}},
			{"arguments", nil, RunOptions{Args: args}},
			{"resumed, made up", nil, RunOptions{Args: state}},
			{"resumed, data", []string{`train.data="` + data + `"`}, RunOptions{Args: state}},
			{"loss alone, data", []string{`train.data="` + data + `"`}, RunOptions{Steps: new(int)}},
			{"gradients, data", []string{`train.data="` + data + `"`}, RunOptions{Grad: true}},
		} {
			c.opts.Check = true
			if _, err := Run(t.Context(), &Source{File: file, Set: c.set}, c.opts); err != nil {
				t.Errorf("%s, %s: %v", weight, c.name, err)
			}
		}
	}
}
