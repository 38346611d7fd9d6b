package layout

import (
	"os"
	"testing"

	"ppc/internal/heap"
)

// The tests plan many reshards: garbage is collected less often.
func TestMain(m *testing.M) {
	heap.CollectFrom(256 << 20)
	os.Exit(m.Run())
}
