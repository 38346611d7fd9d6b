package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// A sink is standard output or standard error. It keeps the first error of
// writing, and a write that blocks, since nobody reads, ends with the context.
type sink struct {
	ctx    context.Context
	w      io.Writer
	name   string
	needed bool // what is written is not to be lost without a word

	status *status // the line that is written over, where there is one

	mu  sync.Mutex
	err error // of the first write that failed, or of the end
}

// patience is how long a write may take after the context has ended.
const patience = 200 * time.Millisecond

var errClosed = errors.New("standard output is closed, or is /dev/null opened for reading as well, which looks the same; > /dev/null discards what is written")

var errEnded = errors.New("the command has ended")

func (s *sink) Write(data []byte) (int, error) {
	if s.status != nil {
		s.status.mu.Lock()
		defer s.status.mu.Unlock()
		s.status.erase()
	}
	return s.write(data)
}

// write writes beside the line of the status.
func (s *sink) write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	var n int
	n, s.err = s.try(data)
	return n, s.err
}

func (s *sink) try(data []byte) (int, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	type outcome struct {
		n   int
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		n, err := s.w.Write(data)
		done <- outcome{n, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-s.ctx.Done():
		select {
		case o = <-done:
		case <-time.After(patience):
			return 0, fmt.Errorf("%s: nobody reads it: %w", s.name, context.Cause(s.ctx))
		}
	}
	if p := (*fs.PathError)(nil); errors.As(o.err, &p) {
		o.err = p.Err
	}
	if o.err != nil {
		o.err = fmt.Errorf("%s: %w", s.name, o.err)
	}
	return o.n, o.err
}

// check reports that nothing can be written. A command that takes long asks
// before it begins.
func (s *sink) check() error {
	if f, ok := s.w.(*os.File); ok && s.needed && closedAtStart(f) {
		return errClosed
	}
	return nil
}

// end refuses what is written from now on, by work that was left behind, and
// returns the first error of what was written before.
func (s *sink) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.err
	s.err = errEnded
	return err
}
