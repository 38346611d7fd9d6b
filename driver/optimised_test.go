package driver

import (
	"os/exec"
	"path/filepath"
	"testing"

	"ppc/internal/shared"
)

// What XLA:CPU makes of the programs that JAX exported, fused and scheduled, runs and
// gives what XLA computed on each device.
func TestOptimised(t *testing.T) {
	python := jobPython(t)
	programs := allExported(t)
	dir := t.TempDir()
	index := filepath.Join(shared.Dir(t, "oracle/stablehlo"), "index.tsv")
	if out, err := exec.CommandContext(t.Context(), python, "../tools/optimised_hlo.py", dir, index).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, e := range programs {
		t.Run(name, func(t *testing.T) {
			file := func(ext string) string { return filepath.Join(dir, name+ext) }
			if _, err := Run(t.Context(), &Source{File: file(".hlo")}, RunOptions{Args: file(".args.npz"), Out: file(".npz")}); err != nil {
				t.Fatal(err)
			}
			e.compare(t, openArrays(t, file(".npz")), openArrays(t, file(".want.npz")), sizesOfSums(t, e, openArrays(t, e.arrays)))
		})
	}
}
