package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ppc/driver"
)

// stops are the signals that stop a command, and how people know them. The exit
// status is 128 and the signal's number, as it is of a process that the signal
// ends.
var stops = []struct {
	signal syscall.Signal
	name   string
}{
	{syscall.SIGHUP, "SIGHUP"},
	{syscall.SIGINT, "Ctrl-C"},
	{syscall.SIGTERM, "SIGTERM"},
}

// together is how long after a signal another one counts as the same: some
// programs pass a signal to a process and to its group.
const together = time.Second

// listen returns a context that the first signal ends, and one for what is
// saved then, which a second one ends. A third ends the process. A signal that
// the process was started to ignore stays ignored.
func listen() (ctx, saving context.Context) {
	signal.Ignore(syscall.SIGPIPE) // who no longer reads is an error of writing
	signals := make(chan os.Signal, 8)
	for _, s := range stops {
		if !signal.Ignored(s.signal) {
			signal.Notify(signals, s.signal)
		}
	}
	ctx, stop := context.WithCancelCause(context.Background())
	saving, stopSaving := context.WithCancelCause(context.Background())
	go func() {
		stop(stopOf(<-signals))
		first := time.Now()
		for s := range signals {
			if time.Since(first) >= together {
				signal.Reset()
				stopSaving(stopOf(s))
				return
			}
		}
	}()
	return ctx, saving
}

func stopOf(s os.Signal) *driver.Stop {
	for _, row := range stops {
		if s == row.signal {
			return &driver.Stop{By: row.name, Exit: 128 + int(row.signal)}
		}
	}
	return &driver.Stop{By: s.String(), Exit: driver.ExitInterrupted}
}

var errLimit = errors.New("want a duration of more than 0, such as 90s or 2h")

// A limit is the value of --timeout.
type limit time.Duration

func (l *limit) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return errLimit
	}
	*l = limit(d)
	return nil
}

// within is ctx until the limit is reached; without a limit it is ctx.
func (l *limit) within(ctx context.Context, started time.Time) (context.Context, context.CancelFunc) {
	if l == nil {
		return ctx, func() {}
	}
	d := time.Duration(*l)
	return context.WithDeadlineCause(ctx, started.Add(d), &driver.Stop{By: "--timeout " + d.String(), Exit: driver.ExitTimeout})
}
