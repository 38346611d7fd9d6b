package driver

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ppc/internal/optest"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/mlir"
)

// An exported program is one of those that JAX exported.
type exported struct {
	file, arrays string
	devices      int
	tolerance    float64 // of an array, relative to its largest number
}

// exportedPrograms are those for several devices.
func exportedPrograms(t *testing.T) map[string]exported {
	t.Helper()
	programs := allExported(t)
	for name, e := range programs {
		if e.devices == 1 {
			delete(programs, name)
		}
	}
	return programs
}

func allExported(t *testing.T) map[string]exported {
	t.Helper()
	dir := shared.Dir(t, "oracle/stablehlo")
	index, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	programs := make(map[string]exported)
	for i, line := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		c := strings.Split(line, "\t")
		if i == 0 {
			continue
		}
		e := exported{file: filepath.Join(dir, c[0]+".mlir"), arrays: filepath.Join(dir, c[0]+".npz")}
		fmt.Sscan(c[1], &e.devices)
		fmt.Sscan(c[7], &e.tolerance)
		programs[c[0]] = e
	}
	return programs
}

// sumTolerance is how far a sum may be off, relative to the sum of the sizes of
// its terms: every order of adding up in float32 stays within that, but not
// within as much of the sum itself, where terms cancel.
const sumTolerance = 1e-6

// What JAX exported for several devices, MaxText's pipelines and their
// gradients among it, is propagated, partitioned and run, and gives what XLA
// computed.
func TestExportedPrograms(t *testing.T) {
	for name, e := range exportedPrograms(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out.npz")
			if _, err := Run(t.Context(), &Source{File: e.file}, RunOptions{Args: e.arrays, Out: out}); err != nil {
				t.Fatal(err)
			}
			want := openArrays(t, e.arrays)
			e.compare(t, openArrays(t, out), want, sizesOfSums(t, e, want))
		})
	}
}

// compare holds results to those wanted; sizes are those of sums.
func (e exported) compare(t *testing.T, got, want *tensorfile.File, sizes []float64) {
	t.Helper()
	for i := 0; want.Has(fmt.Sprint("out", i)); i++ {
		key := fmt.Sprint("out", i)
		a, b := readLiteral(t, got, key), readLiteral(t, want, key)
		abs, rel := optest.MaxDiff(a, b)
		off, tolerance := rel, e.tolerance
		switch {
		case !a.Type.Elem.IsFloat():
			tolerance = 0
		case sizes[i] > 0:
			off, tolerance = abs/sizes[i], sumTolerance
		}
		if !(off <= tolerance) {
			t.Errorf("%s is off by %g, relatively %g, want at most %g", key, abs, off, tolerance)
		}
	}
}

// sizesOfSums is, for each result of a program that is one sum, the sum of the
// sizes of its terms, in float64; 0 for the others.
func sizesOfSums(t *testing.T, e exported, arrays *tensorfile.File) []float64 {
	src, err := os.ReadFile(e.file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mlir.Parse(e.file, src)
	if err != nil {
		t.Fatal(err)
	}
	f := m.Main()
	sizes := make([]float64, len(f.Results))
	var sums []int
	ret := f.Return()
	b := ir.NewBuilder(f)
	f.Body.Ops = f.Body.Ops[:len(f.Body.Ops)-1]
	for i, v := range ret.Operands {
		if op := v.Def; op != nil && op.Kind == ir.Reduce && len(op.Results) == 1 && v.Type.Rank() == 0 && ir.CombinerOf(op.Regions[0]) == ir.Add {
			sums = append(sums, i)
			terms := b.Unary(ir.Abs, op.Operands[0])
			ret.Operands[i] = b.Reduce(ir.Add, terms, op.Operands[1], op.Ints("dimensions")...)
		}
	}
	f.Body.Ops = append(f.Body.Ops, ret)
	if len(sums) == 0 {
		return sizes
	}
	var args []*ir.Literal
	for i := range f.Params() {
		args = append(args, readLiteral(t, arrays, fmt.Sprint("in", i)))
	}
	out, err := eval.Run(m, f, args, eval.Options{Float64: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range sums {
		sizes[i] = math.Abs(out[i].Float(0))
	}
	return sizes
}

func openArrays(t *testing.T, file string) *tensorfile.File {
	t.Helper()
	f, err := tensorfile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func readLiteral(t *testing.T, f *tensorfile.File, name string) *ir.Literal {
	t.Helper()
	a, err := f.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return &ir.Literal{Type: ir.Tensor(ir.DTypeByName(a.DType), a.Shape...), Data: a.Data}
}

// stepLimit is far more than it takes to lower a training step of a model of 32
// layers, a fraction of a second, and far less than work would take that is
// quadratic in the program.
const stepLimit = 20 * time.Second

// MaxText's training step of Llama-2-7B, as JAX hands it to XLA, is propagated and
// partitioned, and its custom calls are passed through.
func TestTrainingSteps(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Dir(t, "oracle/tpu"), "*.mlir"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			start := time.Now()
			text, err := Lower(t.Context(), &Source{File: file}, LowerOptions{Emit: "stablehlo"})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > stepLimit {
				t.Errorf("lowering took %v, want at most %v", took, stepLimit)
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			const call = "custom_call @tpu_custom_call"
			if got, want := strings.Count(text, call), strings.Count(string(src), call); got < want {
				t.Errorf("%d custom calls of %d", got, want)
			}
		})
	}
}
