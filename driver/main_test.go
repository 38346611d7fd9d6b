package driver

import (
	"os"
	"testing"

	"ppc/internal/heap"
)

// The tests compile many programs: garbage is collected less often, and XLA makes machine code without
// LLVM's optimisations, in half the time, unless all is held to what users run.
func TestMain(m *testing.M) {
	heap.CollectFrom(256 << 20)
	if os.Getenv("PPC_ENGINES") != "all" && os.Getenv("XLA_FLAGS") == "" {
		os.Setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
	}
	os.Exit(m.Run())
}
