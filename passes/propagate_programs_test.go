package passes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/lower"
	"ppc/passes/propagate"
)

// Shardy gives every value of the examples, forward and as steps of training, of
// what JAX exported for several devices and of MaxText's full training steps of
// Llama 2 7B the same sharding, but for two of the differences that
// docs/rationale.md explains: sizes that axes do not divide, and concatenations
// that it reshards for.
func TestProgramsLikeShardy(t *testing.T) {
	python := shardyPython(t)
	dir := t.TempDir()
	programs := make(map[string]*ir.Module)
	add := func(name string, m *ir.Module) {
		if err := Run(m, Config{After: "dce"}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tag(m.Main())
		text, err := lower.StableHLO(m)
		if err != nil {
			t.Fatal(err)
		}
		if programs[name], err = mlir.Parse(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".mlir"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	examples, _ := filepath.Glob("../examples/*.pp")
	more, _ := filepath.Glob("../examples/maxtext/*.pp")
	for _, file := range append(examples, more...) {
		name := strings.TrimSuffix(strings.ReplaceAll(strings.TrimPrefix(file, "../examples/"), "/", "_"), ".pp")
		for suffix, train := range map[string]bool{"": false, "_step": true} {
			p, err := lang.Load(file, lang.Options{ReadFile: os.ReadFile, Train: train})
			if err != nil {
				continue // a library
			}
			if p.Module != nil && (!train || p.Training != nil) {
				add(name+suffix, p.Module)
			}
		}
	}
	exported, _ := filepath.Glob(filepath.Join(shared.Dir(t, "oracle/stablehlo"), "*.mlir"))
	steps, _ := filepath.Glob(filepath.Join(shared.Dir(t, "oracle/tpu"), "*.mlir"))
	if len(steps) == 0 {
		t.Log("MaxText's training steps are not there")
	}
	for _, file := range append(exported, steps...) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := mlir.Parse(file, src)
		if err != nil {
			t.Fatal(err)
		}
		if m.NumDevices() > 1 {
			add(strings.TrimSuffix(filepath.Base(file), ".mlir"), m)
		}
	}
	if out, err := exec.Command(python, "-c", propagateAll, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, m := range programs {
		file := filepath.Join(dir, name+".mlir.out")
		out, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := mlir.Parse(file, out)
		if err != nil {
			t.Fatal(err)
		}
		if err := propagate.Propagate(nil, m); err != nil {
			t.Fatal(err)
		}
		explained(m, theirs.Main())
		for _, d := range shardingDiffs(m.Main(), theirs.Main()) {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// explained takes out of the comparison of m with what Shardy made of it the values
// that Shardy shards along axes that do not divide their sizes, and the
// concatenations, where it put in reshards.
func explained(m *ir.Module, theirs *ir.Func) {
	own, others := hasOwnReshard(theirs), tagged(theirs)
	m.Main().Body.Walk(func(op *ir.Op) {
		o := others[op.Attrs.Int(tagName)]
		if o == nil || len(op.Results) != 1 || !op.Result().Type.IsTensor() {
			return
		}
		uneven := false
		for d, n := range op.Result().Type.Shape {
			uneven = uneven || n%m.Meshes[0].RefsSize(saidOf(o, 0).Axes(d)) != 0
		}
		if uneven || own && op.Kind == ir.Concatenate {
			op.Attrs.Delete(tagName)
		}
	})
}
