package lang

import (
	"path/filepath"
	"testing"

	"ppc/ir/lang/config"
)

// Every example loads, pipelined and in sequence, in its own types and in f64.
func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.pp")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples (%v)", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, opts := range []config.Options{{}, {Sequential: true}, {Float64: true}, {Train: true}} {
				if _, err := Load(path, opts); err != nil {
					t.Errorf("%+v:\n%s", opts, err)
				}
			}
		})
	}
}
