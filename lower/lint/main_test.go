package lint_test

import (
	"os"
	"testing"

	"ppc/internal/heap"
)

// The tests compile many programs: garbage is collected less often.
func TestMain(m *testing.M) {
	heap.CollectFrom(256 << 20)
	os.Exit(m.Run())
}
