package driver

import (
	"os"
	"testing"

	"ppc/internal/heap"
)

const (
	xlaFlags    = "XLA_FLAGS"
	unoptimised = "--xla_backend_optimization_level=0"
)

// The tests compile many programs: garbage is collected less often, and XLA makes machine code without
// LLVM's optimisations, in half the time, but where a test says [optimised].
func TestMain(m *testing.M) {
	heap.CollectFrom(256 << 20)
	if os.Getenv(xlaFlags) == "" {
		os.Setenv(xlaFlags, unoptimised)
	}
	os.Exit(m.Run())
}

// optimised has XLA make what users run, until the test ends.
func optimised(t *testing.T) {
	if os.Getenv(xlaFlags) == unoptimised {
		t.Setenv(xlaFlags, "")
	}
}
