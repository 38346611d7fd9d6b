package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ppc/driver"
)

// A screen is a terminal of one line at a time: what stands on it when somebody
// looks.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(data)
}

// lines are the lines of the screen, as a terminal shows them.
func (s *screen) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for line := range strings.Lines(s.text.String()) {
		line = strings.TrimSuffix(line, "\n")
		shown := []rune{}
		at := 0
		for part := range strings.SplitSeq(strings.ReplaceAll(line, "\x1b[K", "\x00"), "\r") {
			at = 0
			for _, r := range part {
				if r == 0 {
					shown = shown[:at]
					continue
				}
				if at < len(shown) {
					shown[at] = r
				} else {
					shown = append(shown, r)
				}
				at++
			}
		}
		out = append(out, string(shown))
	}
	return out
}

func newStatus(t *testing.T, shown bool) (*streams, *screen) {
	t.Helper()
	w := new(screen)
	sink := func(name string) *sink { return &sink{ctx: t.Context(), w: w, name: name} }
	s := &streams{ctx: t.Context(), stderr: sink("standard error"), out: sink("standard output")}
	s.startStatus(shown)
	return s, w
}

func last(w *screen) string {
	lines := w.lines()
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// The line appears after a while, says how far the command has come and how long
// the rest takes, makes room for what else is written, and goes at the end.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newStatus(t, true)
		hear := s.stderr.status.hear
		see := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := last(w); got != want {
				t.Errorf("the line says %q, want %q", got, want)
			}
		}
		hear(driver.Progress{Doing: "compiling", What: "partition", Unit: "pass", Done: 15, Total: 22})
		time.Sleep(400 * time.Millisecond)
		see("")
		time.Sleep(2 * time.Second)
		see("compiling: partition, pass 16 of 22, 2 s")
		fmt.Fprintln(s.stderr, "note: something")
		synctest.Wait()
		if lines := w.lines(); lines[0] != "note: something" {
			t.Errorf("the note is in the line %q", lines[0])
		}
		for i := range 3 {
			hear(driver.Progress{Doing: "training", Unit: "step", Done: i, Total: 10, Even: true})
			time.Sleep(20 * time.Second)
		}
		see("training, step 3 of 10, 2 min 20 s left")
		s.stderr.status.keep("step 3  loss 1.5")
		see("step 3  loss 1.5  8 left, 2 min 20 s")
		hear(driver.Progress{Doing: strings.Repeat("long ", 40) + "\x1b[2J"})
		time.Sleep(time.Second)
		if line := last(w); len([]rune(line)) > columns || strings.Contains(line, "\x1b") {
			t.Errorf("the line %q is too long, or has control characters", line)
		}
		s.endStatus()
		if lines := w.lines(); strings.Join(lines, "|") != "note: something|step 3  loss 1.5" {
			t.Errorf("what is left is %q", lines)
		}
	})
}

// Who is no terminal gets no line.
func TestNoStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newStatus(t, false)
		time.Sleep(time.Minute)
		s.endStatus()
		if lines := w.lines(); len(lines) > 0 {
			t.Errorf("%q", lines)
		}
	})
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 s", 59 * time.Second: "59 s", 3*time.Minute + 20*time.Second: "3 min 20 s", 2*time.Hour + 5*time.Minute: "2 h 5 min"} {
		if got := durationText(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
