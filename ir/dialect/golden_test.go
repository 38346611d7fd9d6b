package dialect_test

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

const goldenDir = "../../testdata/golden/verify"

// The archives break the rules of each op, one after the other.
func TestGolden(t *testing.T) {
	golden.Run(t, goldenDir, map[string]golden.Stage{"errors": func(t *testing.T, src string, _ []string) string {
		m, errs := broken(t, src)
		return mlir.WithErrors(m, errs)
	}})
}

// broken is the program src, and what is wrong with it.
func broken(t *testing.T, src string) (*ir.Module, *verify.Errors) {
	t.Helper()
	m, err := mlir.Parse("in.mlir", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var errs *verify.Errors
	if !errors.As(verify.Verify(m), &errs) {
		t.Fatal("nothing is wrong")
	}
	return m, errs
}

// brokenOps are the ops of which some archive breaks a rule, by kind and by name.
func brokenOps(t *testing.T) (seen map[ir.Kind]bool, named map[string]bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	seen, named = make(map[ir.Kind]bool), make(map[string]bool)
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, errs := broken(t, string(ar.Files[0].Data))
		for _, e := range errs.List {
			if e.Op != nil {
				seen[e.Op.Kind] = true
				named[e.Op.Name()] = true
			}
		}
	}
	return seen, named
}
