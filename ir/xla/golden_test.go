package xla_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ppc/internal/diag"
	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/ir/xla"
	"ppc/lower/hlo"

	"github.com/rogpeppe/go-internal/txtar"
)

func TestGolden(t *testing.T) {
	golden.Run(t, "../../testdata/golden/xla", map[string]golden.Stage{
		"out.mlir": imported(func(src string) (*ir.Module, error) { return mlir.Parse("in.mlir", []byte(src)) }, func(m *ir.Module) (diag.List, error) {
			return xla.Import(m, xla.Options{})
		}),
		"hlo.mlir": imported(func(src string) (*ir.Module, error) { return hlo.Parse("in.hlo", []byte(src)) }, func(m *ir.Module) (diag.List, error) {
			warnings, local, err := xla.ImportHLO(m, xla.Options{})
			if local && err == nil {
				m.Form |= ir.Expanded | ir.Local
			}
			return warnings, err
		}),
	})
}

// imported is the program that importing makes, after what is warned of, or the
// errors.
func imported(read func(src string) (*ir.Module, error), load func(*ir.Module) (diag.List, error)) golden.Stage {
	return func(t *testing.T, src string, _ []string) string {
		m, err := read(src)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify.Verify(m); err != nil {
			t.Fatal(err)
		}
		warnings, err := load(m)
		if err != nil {
			return err.Error() + "\n"
		}
		if err := verify.Verify(m); err != nil {
			t.Fatalf("what is made is not right: %v", err)
		}
		var b strings.Builder
		for _, w := range warnings {
			b.WriteString("// " + w.String())
		}
		return b.String() + mlir.Print(m)
	}
}

// What is imported from a program that the verifier takes is a program that it
// takes.
func FuzzImport(f *testing.F) {
	files, _ := filepath.Glob("../../testdata/golden/xla/*.txtar")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, in := range txtar.Parse(data).Files {
			if in.Name == "in.mlir" {
				f.Add(string(in.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		m, err := mlir.Parse("in.mlir", []byte(src))
		if err != nil || verify.Verify(m) != nil {
			return
		}
		if _, err := xla.Import(m, xla.Options{}); err != nil {
			return
		}
		if err := verify.Verify(m); err != nil {
			t.Error(err)
		}
	})
}
