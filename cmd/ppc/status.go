package main

import (
	"fmt"
	"sync"
	"time"

	"ppc/driver"
	"ppc/internal/diag"
)

// A status is the last line of a terminal, which says how far the command has come
// and is written over. It appears when the command has taken a while, and goes
// when something else is written.
type status struct {
	err   *sink
	began time.Time
	stop  chan struct{} // closed by end
	done  chan struct{} // closed when nothing is drawn any more

	mu    sync.Mutex
	drawn bool
	kept  string // a line of results, which stays at the end
	now   driver.Progress
	since time.Time // when the first of the steps that now is one of began
	heard time.Time // when now was
}

const (
	quiet   = 500 * time.Millisecond // before anything is shown
	refresh = 250 * time.Millisecond
	columns = 79
)

// startStatus shows a status line, if standard error is a terminal.
func (s *streams) startStatus(shown bool) {
	if !shown {
		return
	}
	t := &status{err: s.stderr, began: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	s.stderr.status, s.out.status = t, t
	s.ctx = driver.WithProgress(s.ctx, t.hear)
	go t.draw()
}

// endStatus takes the line away, and leaves the last one of results.
func (s *streams) endStatus() {
	t := s.stderr.status
	if t == nil {
		return
	}
	close(t.stop)
	<-t.done
	t.mu.Lock()
	t.erase()
	t.mu.Unlock()
	s.stderr.status, s.out.status = nil, nil
	if t.kept != "" {
		fmt.Fprintln(s.stderr, t.kept)
	}
}

func (t *status) hear(p driver.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = time.Now()
	if p.Doing != t.now.Doing || p.Done <= t.now.Done {
		t.since = t.heard
	}
	t.now = p
}

// keep shows a line of results.
func (t *status) keep(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = line
	t.show()
}

// draw writes the line again and again, until the end.
func (t *status) draw() {
	defer close(t.done)
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-tick.C:
			t.mu.Lock()
			if time.Since(t.began) >= quiet {
				t.show()
			}
			t.mu.Unlock()
		}
	}
}

// show writes the line over the one before. mu is held.
func (t *status) show() {
	line := t.line(time.Now())
	if line == "" {
		return
	}
	t.err.write([]byte("\r" + line + "\x1b[K"))
	t.drawn = true
}

// erase takes the line away. mu is held.
func (t *status) erase() {
	if t.drawn {
		t.err.write([]byte("\r\x1b[K"))
		t.drawn = false
	}
}

// line is the results so far and how far the command has come, cut to one line.
func (t *status) line(now time.Time) string {
	took, ago := t.heard.Sub(t.since), now.Sub(t.heard)
	line := progressText(t.now, took, ago)
	if t.kept != "" {
		line = t.kept
		if t.now.Even && t.now.Done > 0 {
			line += fmt.Sprintf("  %d left, %s", t.now.Total-t.now.Done, durationText(rest(t.now, took, ago)))
		}
	}
	if rs := []rune(line); len(rs) > columns {
		line = string(rs[:columns-1]) + "…"
	}
	return line
}

// progressText is p for people: steps, and the time that is left or has been taken.
// The steps that are done took so long, and the one at hand has taken ago.
func progressText(p driver.Progress, took, ago time.Duration) string {
	if p.Doing == "" {
		return ""
	}
	text := diag.Line(p.Doing)
	if p.What != "" {
		text += ": " + diag.Line(p.What)
	}
	if p.Total > 0 {
		text += fmt.Sprintf(", %s %d of %d", p.Unit, p.Done+1, p.Total)
	}
	if p.Even && p.Done > 0 {
		return text + ", " + durationText(rest(p, took, ago)) + " left"
	}
	return text + ", " + durationText(took+ago)
}

// rest is how long the steps that are left take, if they take as long as those so
// far.
func rest(p driver.Progress, took, ago time.Duration) time.Duration {
	return max(time.Duration(float64(took)/float64(p.Done)*float64(p.Total-p.Done))-ago, 0)
}

// durationText is d for people: 12 s, 3 min 20 s, 2 h 5 min.
func durationText(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}
