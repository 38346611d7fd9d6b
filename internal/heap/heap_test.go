package heap

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// Up to its size a heap is not collected, and where much is in use, it grows by half of
// that.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		n, live uint64
		want    int
	}{
		{64 << 20, 0, 1500},
		{64 << 20, 4 << 20, 1500},
		{64 << 20, 16 << 20, 300},
		{64 << 20, 32 << 20, 100},
		{64 << 20, 1 << 40, 50},
	} {
		if got := percent(c.n, c.live, half); got != c.want {
			t.Errorf("percent(%d, %d, half) = %d, want %d", c.n, c.live, got, c.want)
		}
	}
	for live, want := range map[uint64]int{64 << 20: eighth, 96 << 20: eighth, 97 << 20: half} {
		if got := percent(64<<20, live, eighth); got != want {
			t.Errorf("percent of %d in use beyond 64 MiB is %d, want %d", live, got, want)
		}
	}
}

var kept []byte // what a test has in use

// A program that makes little use of much that it allocates collects garbage as
// often as that fills the heap.
func TestCollectFrom(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	CollectFrom(64 << 20)
	cycles := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	before := cycles()
	for range 512 << 20 / (64 << 10) {
		kept = make([]byte, 64<<10)
	}
	if n := cycles() - before; n == 0 || n > 16 {
		t.Errorf("512 MB of garbage was collected %d times, want 8 or so", n)
	}
}

// The limit follows from the largest input.
func TestRead(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	l := CollectFrom(64 << 20)
	for _, c := range []struct{ read, bytes, growth int }{
		{1 << 20, 64 << 20, half},
		{10 << 20, 90 << 20, eighth},
		{9 << 20, 90 << 20, eighth},
	} {
		if l.Read(c.read); l.bytes != c.bytes || l.growth != c.growth {
			t.Errorf("with %d bytes read the limit is %d, growth %d, want %d and %d", c.read, l.bytes, l.growth, c.bytes, c.growth)
		}
	}
	var none *Limit
	none.Read(1 << 30)
}
