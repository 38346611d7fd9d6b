package driver

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"ppc/driver/binding"
	"ppc/ir"
)

// A Step is what one step of training gave.
type Step struct {
	Number  int       // from 1, those of earlier runs included
	Left    int       // in this run
	Outputs []*Output // the scalars; the loss is the first
	Took    time.Duration
	Tokens  int // of its batches
}

// Loss is the first output.
func (s *Step) Loss() *Output { return s.Outputs[0] }

// TokensPerSecond is the step's speed.
func (s *Step) TokensPerSecond() float64 { return float64(s.Tokens) / s.Took.Seconds() }

// A NaNError is a loss that is no number.
type NaNError struct {
	Step  int
	Name  string // of the loss
	Cause string // where it came from, or how to find out
}

func (e *NaNError) Error() string {
	return fmt.Sprintf("step %d: %s is NaN: %s", e.Step, e.Name, e.Cause)
}

// loop runs the per-device program on all devices as often as the program asks
// for.
func (r *runner) loop(ctx context.Context, exe executable, rep reproducer) error {
	tokens := countTokens(r.machine.Params)
	for i := range r.steps {
		step, begin := r.first+i, time.Now()
		at := Progress{Doing: "running"}
		if r.p.training != nil {
			at = Progress{Doing: "training", Unit: "step", Done: i, Total: r.steps, Even: true}
		}
		ctx := during(ctx, at)
		args, err := guard(ctx, "reading a batch", rep, func() ([][]*ir.Literal, error) {
			err := r.feed.fill(r.machine, step)
			return r.firstShards(i), err
		})
		if err != nil {
			return err
		}
		out, err := guard(ctx, "running", rep, func() ([][]*ir.Literal, error) { return exe.Run(ctx, r.machine.Args) })
		if err != nil {
			return runError(ctx, err, rep)
		}
		old := r.machine.Adopt(out)
		if l, ok := exe.(local); ok {
			l.Recycle(old)
		}
		r.done++
		if err := r.keepSafe(ctx, exe); err != nil {
			return orStopped(ctx, err)
		}
		if args != nil {
			if err := writeShards(ctx, r.opts.Shards, args, r.machine.Out); err != nil {
				return err
			}
		}
		if r.p.training == nil {
			continue
		}
		s := &Step{Number: step + 1, Left: r.steps - i - 1, Took: time.Since(begin), Tokens: tokens}
		if err := r.report(ctx, s, r.machine.Scalars()); err != nil {
			return err
		}
	}
	return nil
}

// firstShards is a copy of the devices' arguments in the first run, if they are to
// be written.
func (r *runner) firstShards(run int) [][]*ir.Literal {
	if r.opts.Shards == "" || run > 0 {
		return nil
	}
	args := make([][]*ir.Literal, len(r.machine.Args))
	for d, list := range r.machine.Args {
		args[d] = append([]*ir.Literal(nil), list...)
	}
	return args
}

// report passes the scalars of a step to the listener. A loss that is no number ends the run.
func (r *runner) report(ctx context.Context, s *Step, scalars []*binding.Named) error {
	for _, v := range scalars {
		s.Outputs = append(s.Outputs, newOutput(v.Name, v.Literal))
	}
	if r.opts.Check || r.compared {
		r.history = append(r.history, scalars)
	}
	if r.opts.Step != nil {
		r.opts.Step(s)
	}
	if !math.IsNaN(s.Loss().literal.Float(0)) {
		return nil
	}
	e := &NaNError{Step: s.Number, Name: s.Loss().Name, Cause: "--check names the operation that made it"}
	if r.opts.Check {
		e.Cause = r.findNaN(ctx)
	}
	return e
}

// findNaN takes the same steps on the reference until an op makes a NaN, and
// says which.
func (r *runner) findNaN(ctx context.Context) string {
	err := r.trapNaN(ctx, len(r.history))
	if err == nil {
		return "the reference has none, in float64: a number was too large for the types of the program"
	}
	return strings.TrimPrefix(err.Error(), "reference: ")
}

// countTokens is how many tokens a step takes: the elements of the largest
// input, but for the last axis, the features, where its elements are floats.
func countTokens(params []*binding.Port) int {
	most := 0
	for _, p := range params {
		if p.Kind != "input" {
			continue
		}
		n := p.Global.NumElements()
		if p.Global.Elem.IsFloat() && p.Global.Rank() > 0 {
			n /= p.Global.Shape[p.Global.Rank()-1]
		}
		most = max(most, n)
	}
	return most
}
