package runtime

import (
	"context"
	"testing"
)

// A device that comes to wait after the run has failed goes on at once: nobody
// would wake it.
func TestParkAfterFailure(t *testing.T) {
	r := &run{live: 1}
	d := &device{run: r, wake: make(chan struct{}, 1)}
	r.devices = []*device{d}
	r.fail(context.Canceled)
	r.mu.Lock()
	if err := r.park(d, nil); err != errStopped {
		t.Errorf("got %v, want %v", err, errStopped)
	}
	if !r.mu.TryLock() {
		t.Error("the lock is held")
	}
}
