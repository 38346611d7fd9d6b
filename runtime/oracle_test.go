package runtime_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/conformance"
	"ppc/internal/optest"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/runtime"
)

// withoutChecks is a program without the ops that check: what they would look at
// is then used by nobody.
func withoutChecks(src string) string {
	var b strings.Builder
	for line := range strings.Lines(src) {
		if !strings.HasPrefix(strings.TrimSpace(line), `"check.`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// returnUnused drops the checks from f and makes what nobody uses its results.
func returnUnused(f *ir.Func) {
	f.Body.Ops = slices.DeleteFunc(f.Body.Ops, func(op *ir.Op) bool { return strings.HasPrefix(op.Str("call_target_name"), "check.") })
	uses, ret := f.Uses(), f.Return()
	if ret == nil {
		return
	}
	for _, op := range f.Body.Ops {
		for _, v := range op.Results {
			if uses[v.ID] == 0 && v.Type.IsTensor() {
				ret.Operands = append(ret.Operands, v)
				f.Results = append(f.Results, ir.Result{Type: v.Type})
			}
		}
	}
}

// The programs of StableHLO's own tests: what runs, runs like the evaluator, but
// for units that are known to fail.
func TestUnitsLikeEvaluator(t *testing.T) {
	known, err := conformance.ReadList(filepath.Join(shared.Root(t), "testdata", "conformance", "runtime.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, u := range conformance.Units(t, "interpret", "testdata") {
		if known.Reasons[u.Place()] != "" {
			continue
		}
		source, err := u.Source()
		if err != nil {
			t.Fatal(err)
		}
		m, err := mlir.Parse(u.Path, []byte(withoutChecks(source)))
		if err != nil || verify.Verify(m) != nil {
			continue
		}
		for _, f := range m.Funcs {
			if f.Body != nil && len(f.Params()) == 0 && runsLike(t, u.Name(), m, f) {
				ran++
			}
		}
	}
	t.Logf("%d programs run", ran)
	if ran == 0 {
		t.Error("no program runs")
	}
}

// runsLike reports whether f, of m, runs; it must then do what the evaluator does.
func runsLike(t *testing.T, name string, m *ir.Module, f *ir.Func) bool {
	m = m.Clone()
	f = m.Func(f.Name)
	returnUnused(f)
	if main := m.Main(); main != f {
		if main != nil {
			main.Name = "another.main"
		}
		f.Name = "main" // which is what is run
	}
	if m.Main() != f {
		return false
	}
	exe, err := runtime.Load(m)
	if err != nil || exe.Devices() != 1 {
		return false
	}
	want, err := eval.Run(m, f, nil, eval.Options{})
	if err != nil {
		return false
	}
	got, err := exe.Run(t.Context(), [][]*ir.Literal{{}}, runtime.PoisonBuffers())
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return true
	}
	for i, w := range want {
		sameNumbers(t, fmt.Sprintf("%s: result %d", name, i), got[0][i], w, sums[w.Type.Elem]*cancelled(f, w))
	}
	return true
}

// cancelled is how much larger the terms of convolutions are than their sums,
// whose errors are relative to them: as large as the largest of the sums. Other
// sums here have few terms.
func cancelled(f *ir.Func, w *ir.Literal) float64 {
	size := 1.0
	f.Body.Walk(func(op *ir.Op) {
		for i := range w.Type.NumElements() {
			if op.Kind == ir.Convolution && w.Type.Elem.IsFloat() {
				size = max(size, math.Abs(w.Float(i)))
			}
		}
	})
	return size
}

// Programs that JAX exported give what XLA computed.
func TestOracle(t *testing.T) {
	dir := shared.Dir(t, "oracle/stablehlo")
	index, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for i, line := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		if i == 0 {
			continue
		}
		c := strings.Split(line, "\t")
		var tolerance float64
		fmt.Sscan(c[7], &tolerance)
		if runOracle(t, dir, c[0], tolerance) {
			ran++
		}
	}
	t.Logf("%d programs run", ran)
}

func runOracle(t *testing.T, dir, name string, tolerance float64) bool {
	src, err := os.ReadFile(filepath.Join(dir, name+".mlir"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := mlir.Parse(name, src)
	if err != nil {
		return false
	}
	exe, err := runtime.Load(m)
	if err != nil || exe.Devices() != 1 {
		return false
	}
	npz, err := tensorfile.Open(filepath.Join(dir, name+".npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer npz.Close()
	args := make([]*ir.Literal, len(m.Main().Params()))
	for i := range args {
		args[i] = readLiteral(t, npz, fmt.Sprintf("in%d", i))
	}
	out, err := exe.Run(context.Background(), [][]*ir.Literal{args})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return true
	}
	for i, got := range out[0] {
		key := fmt.Sprintf("out%d", i)
		if !npz.Has(key) {
			continue
		}
		tol := tolerance
		if !got.Type.Elem.IsFloat() && !got.Type.Elem.IsComplex() {
			tol = 0
		}
		if abs, rel := optest.MaxDiff(got, readLiteral(t, npz, key)); !(rel <= tol) {
			t.Errorf("%s: %s is off by %g, relatively %g, want at most %g", name, key, abs, rel, tol)
		}
	}
	return true
}

func readLiteral(t *testing.T, npz *tensorfile.File, name string) *ir.Literal {
	a, err := npz.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return &ir.Literal{Type: ir.Tensor(ir.DTypeByName(a.DType), a.Shape...), Data: a.Data}
}
