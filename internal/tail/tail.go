// Package tail keeps the end of what a process writes, to say why it failed.
package tail

import (
	"bytes"
	"strings"
	"sync"
)

// A Tail keeps the last bytes that are written to it. Several goroutines may write.
type Tail struct {
	Lines int // how many String returns

	mu sync.Mutex
	b  []byte
}

const size = 8 << 10

// Write keeps the last bytes. It returns no error.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if n := len(t.b) - size; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(b), nil
}

// String is the last lines, as text.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(string(bytes.TrimSpace(bytes.ToValidUTF8(t.b, []byte("?")))), "\n")
	return strings.Join(lines[max(0, len(lines)-t.Lines):], "\n")
}
