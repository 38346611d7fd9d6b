package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"ppc/internal/shared"
)

// newTerminal is a terminal that a test holds, and the end of it for a process.
func newTerminal(t *testing.T) (held, process *os.File) {
	t.Helper()
	held, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	t.Cleanup(func() { held.Close() })
	var unlocked, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, held.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Skipf("there are no terminals here: %v", errno)
		}
	}
	process, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	t.Cleanup(func() { process.Close() })
	return held, process
}

// seen is what has been written to a terminal so far.
type seen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *seen) read(r io.Reader) {
	buf := make([]byte, 1<<12)
	for {
		n, err := r.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// On a terminal training shows its steps and how long the rest takes, and Ctrl-C
// is answered within a second.
func TestTerminal(t *testing.T) {
	held, process := newTerminal(t)
	cmd := ppc(t, "", "run", filepath.Join(shared.Root(t), "examples", "llama.pp"), "--set", "axes.seq=16", "--steps", "1000000")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = process, process, process
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	var screen seen
	go screen.read(held)
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(screen.String(), " left, ") && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	for _, want := range []string{"\rstep 1  loss ", " left, "} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("the terminal does not show %q: %q", want, screen.String()[:min(len(screen.String()), 600)])
		}
	}
	pressed := time.Now()
	held.Write([]byte{3}) // Ctrl-C
	err := cmd.Wait()
	if took := time.Since(pressed); took > 2*time.Second {
		t.Errorf("Ctrl-C is answered after %s", took)
	}
	if cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("it ends with %v", err)
	}
	time.Sleep(100 * time.Millisecond)
	if text := screen.String(); !strings.Contains(text[strings.LastIndex(text, "\rstep")+1:], "stopped by Ctrl-C") {
		t.Errorf("the last words are %q", text[max(0, len(text)-300):])
	}
}
