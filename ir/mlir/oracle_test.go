package mlir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ppc/internal/shared"
)

// stable reports where printing what was parsed, or parsing and printing it
// once more, goes wrong.
func stable(src []byte) error {
	m, err := Parse("in.mlir", src)
	if err != nil {
		return err
	}
	for _, opts := range []Options{{}, {Locs: true}, {Generic: true}} {
		once := PrintWith(m, opts)
		again, err := Parse("printed.mlir", []byte(once))
		if err != nil {
			return fmt.Errorf("printed %+v: %w", opts, err)
		}
		if twice := PrintWith(again, opts); once != twice {
			return fmt.Errorf("printed %+v: %s", opts, firstDifference(once, twice))
		}
	}
	return nil
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d: %.300s\nthen:   %.300s", i+1, as[i], bs[i])
		}
	}
	return fmt.Sprintf("%d lines, then %d", len(as), len(bs))
}

// Programs that JAX printed print the same way.
func TestOracle(t *testing.T) {
	for _, dir := range []string{"oracle/stablehlo", "oracle/tpu"} {
		files, err := filepath.Glob(filepath.Join(shared.Dir(t, dir), "*.mlir"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s (%v)", dir, err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				src, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if err := stable(src); err != nil {
					t.Fatal(err)
				}
				m, err := Parse(file, src)
				if err != nil {
					t.Fatal(err)
				}
				if got := Print(m); got != string(src) {
					t.Error("not as it was: ", firstDifference(string(src), got))
				}
			})
		}
	}
}
