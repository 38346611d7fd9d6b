package schedule_test

import (
	"fmt"
	"strings"
	"testing"

	"ppc/internal/golden"
	"ppc/ir/mlir"
	"ppc/lower/schedule"
)

// The archives say what is computed in which order.
func TestGolden(t *testing.T) {
	golden.Run(t, "../../testdata/golden/schedule", map[string]golden.Stage{"order": func(t *testing.T, src string, _ []string) string {
		m, err := mlir.Parse("in.mlir", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, op := range schedule.Order(m.Main().Body) {
			b.WriteString(op.Name())
			for _, v := range op.Results {
				fmt.Fprintf(&b, " %%%s", v.Name)
			}
			b.WriteByte('\n')
		}
		return b.String()
	}})
}
