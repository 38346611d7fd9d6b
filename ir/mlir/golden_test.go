package mlir

import (
	"errors"
	"path/filepath"
	"testing"

	"ppc/internal/golden"
	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/verify"
)

// The archives in testdata/golden/mlir: what a module prints as. What it prints
// as prints the same way.
func TestGolden(t *testing.T) {
	printed := func(opts Options) golden.Stage {
		return func(t *testing.T, src string, _ []string) string {
			m := parse(t, src)
			if err := stable([]byte(src)); err != nil {
				t.Error(err)
			}
			return PrintWith(m, opts)
		}
	}
	golden.Run(t, filepath.Join(shared.Root(t), "testdata", "golden", "mlir"), map[string]golden.Stage{
		"mlir":    printed(Options{}),
		"generic": printed(Options{Generic: true}),
		"locs":    printed(Options{Locs: true}),
		"errors": func(t *testing.T, src string, _ []string) string {
			m := parse(t, src)
			var errs *verify.Errors
			if !errors.As(verify.Verify(m), &errs) {
				t.Error("nothing is wrong")
			}
			return WithErrors(m, errs)
		},
		"syntax": func(t *testing.T, src string, _ []string) string {
			_, err := Parse("in.mlir", []byte(src))
			if err == nil {
				t.Fatal("nothing is wrong")
			}
			return err.Error()
		},
	})
}

func parse(t *testing.T, src string) *ir.Module {
	t.Helper()
	m, err := Parse("in.mlir", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
