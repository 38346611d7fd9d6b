package driver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// A Stop is why a command ends before it is done: the cause of the end of its
// context.
type Stop struct {
	By   string // a signal or a limit, as the user knows it
	Exit int    // the exit status that goes with it
}

func (s *Stop) Error() string { return "stopped by " + s.By }

// A StopError is a command that was stopped, and what became of its work.
type StopError struct {
	Stop *Stop
	Left string // what is done and what was saved; "" where there is nothing to say
}

func (e *StopError) Error() string {
	if e.Left == "" {
		return e.Stop.Error()
	}
	return e.Stop.Error() + " " + e.Left
}

// stopped is the error of a command whose context has ended.
func stopped(ctx context.Context) *StopError {
	var stop *Stop
	cause := context.Cause(ctx)
	switch {
	case errors.As(cause, &stop):
	case errors.Is(cause, context.DeadlineExceeded):
		stop = &Stop{By: "its deadline", Exit: ExitTimeout}
	default:
		stop = &Stop{By: "its caller", Exit: ExitInterrupted}
	}
	return &StopError{Stop: stop}
}

// Stopped reports whether err says that the command was stopped: then what is
// left of it is not begun.
func Stopped(err error) bool {
	var stop *StopError
	return errors.As(err, &stop)
}

// orStopped makes the end of the context the cause of an error that it caused.
func orStopped(ctx context.Context, err error) error {
	var bug *Bug
	if err != nil && ctx.Err() != nil && !errors.As(err, &bug) {
		return stopped(ctx)
	}
	return err
}

// grace is how long work may take to end by itself after its context has.
const grace = 500 * time.Millisecond

// guard runs one stage, makes of its panic a Bug with a reproducer, and ends
// with the context. What does not look at the context is left behind soon after
// that: its result is dropped, so run must change nothing that is used later.
func guard[T any](ctx context.Context, stage string, r reproducer, run func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
		bug   *Bug
	}
	var none T
	if ctx.Err() != nil {
		return none, stopped(ctx)
	}
	advance(ctx, Progress{Doing: stage})
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			// A bug in ppc: it is reported with the stage and what it got.
			if p := recover(); p != nil {
				o.bug = &Bug{Stage: stage, Cause: fmt.Errorf("panic: %v", p), Stack: debug.Stack()}
			}
			done <- o
		}()
		o.value, o.err = run()
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		select {
		case o = <-done:
		case <-time.After(grace):
			return none, stopped(ctx)
		}
	}
	if o.bug != nil {
		o.bug.keep(r)
		return none, o.bug
	}
	return o.value, orStopped(ctx, o.err)
}
