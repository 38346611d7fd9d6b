package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ppc/driver/against"
	"ppc/driver/binding"
	"ppc/ir"
	"ppc/ir/eval"
)

// Evaluator is the name of the engine that is the reference evaluator, which computes
// op by op as the specification says.
const Evaluator = "evaluator"

// evaluator runs the program per device, or what JAX gets, in its own types.
type evaluator struct{}

func (evaluator) load(_ context.Context, m *ir.Module) (executable, error) { return evaluated{m}, nil }

func (evaluator) close() {}

type evaluated struct{ m *ir.Module }

// Run evaluates the program on all devices.
func (e evaluated) Run(ctx context.Context, args [][]*ir.Literal) ([][]*ir.Literal, error) {
	return eval.RunDevices(e.m, e.m.Main(), args, eval.Options{Context: ctx})
}

// An EnginesError is two engines that give different results for one program.
type EnginesError struct {
	Engines [2]string
	Outputs []string // how each output that differs does
	First   string   // the first value that differs
}

func (e *EnginesError) Error() string {
	shown := e.Outputs[:min(len(e.Outputs), 5)]
	text := fmt.Sprintf("%s and %s differ:\n%s", e.Engines[0], e.Engines[1], strings.Join(shown, "\n"))
	if left := len(e.Outputs) - len(shown); left > 0 {
		text += fmt.Sprintf("\nand %s more", ir.Counted(left, "result"))
	}
	if e.First != "" {
		text += "\n" + e.First
	}
	return text
}

// holdAgainst runs the program on another engine, too, and compares: the scalars of every
// step and the values of the last one, each by twice what rounding moves it by on
// either.
func (r *runner) holdAgainst(ctx context.Context, values []*binding.Named) ([]*Comparison, error) {
	opts := r.opts
	opts.Engine, opts.Against, opts.Check, opts.Out, opts.Shards, opts.Trace, opts.Step = r.opts.Against, "", false, "", "", "", nil
	opts.Note = nil
	if opts.Engine != JAX {
		opts.Processes = 0
	}
	other := &runner{src: r.src, opts: opts, engines: r.engines, compared: true}
	defer other.close()
	if opts.Engine != JAX && r.opts.Engine != JAX { // which has the program of all devices
		other.p, other.steps = r.p, r.steps
	} else if err := other.load(ctx); err != nil {
		return nil, err
	}
	theirs, err := other.values(ctx)
	if err != nil {
		return nil, err
	}
	checks, err := r.ref.hold(ctx, func() (checks []*Comparison) {
		for _, v := range values {
			c := r.ref.between(v, namedOf(theirs, v.Name))
			for i := range r.history {
				if mine := scalarNamed(r.history[i], v.Name); mine != nil {
					c.merge(i, r.ref.betweenSteps(i, mine, scalarNamed(other.history[i], v.Name)))
				}
			}
			checks = append(checks, c)
		}
		return checks
	})
	if err != nil {
		return nil, orStopped(ctx, err)
	}
	e := &EnginesError{Engines: [2]string{engineName(r.opts.Engine), r.opts.Against}}
	for _, c := range checks {
		if !c.OK {
			e.Outputs = append(e.Outputs, fmt.Sprintf("%s differs by %.3g of its size, more than %.3g; most at %s", c.Name, c.Rel, c.Tolerance, c.Worst))
		}
		c.Name += " on " + r.opts.Against
	}
	if len(e.Outputs) == 0 {
		return checks, nil
	}
	if e.First, err = r.firstDifference(ctx); err != nil {
		return checks, err
	}
	return checks, e
}

func engineName(name string) string {
	if name == "" {
		return Goroutines
	}
	return name
}

func namedOf(vs []*binding.Named, name string) *binding.Named {
	i := slices.IndexFunc(vs, func(v *binding.Named) bool { return v.Name == name })
	return vs[i]
}

// between holds a result of the last step on one engine against that on another.
func (ref *reference) between(a, b *binding.Named) *Comparison {
	o := ref.last()
	return ref.yardstick.compareParts(a, ref.r.opts.Against, b.Literal, o.literal(a.Name), ref.yardstick.twice(a, o.parts[a.Name]))
}

// betweenSteps is between for a scalar of step i.
func (ref *reference) betweenSteps(i int, a, b *binding.Named) *Comparison {
	o := ref.steps[i]
	c := ref.yardstick.compareParts(a, ref.r.opts.Against, b.Literal, o.literal(a.Name), ref.yardstick.twice(a, o.parts[a.Name]))
	if c.Worst != "" {
		c.Worst = fmt.Sprintf("step %d: %s", ref.r.first+i+1, c.Worst)
	}
	return c
}

// firstDifference runs a step on both engines with the values on the way as results.
func (r *runner) firstDifference(ctx context.Context) (string, error) {
	names := [2]string{engineName(r.opts.Engine), r.opts.Against}
	if slices.Contains(names[:], JAX) {
		return "", nil // its program is that of all devices, which has other values on the way
	}
	machine := binding.NewMachine(r.p.m, r.p.naming)
	if err := machine.Bind(r.args); err != nil {
		return "", err
	}
	if err := r.feed.fill(machine, r.first); err != nil {
		return "", err
	}
	var engines [2]engine
	for i, name := range names {
		e, err := r.engine(name)
		if err != nil {
			return "", err
		}
		defer e.close()
		engines[i] = e
	}
	d, err := against.Find(r.p.m, func(m *ir.Module) (results [2][][]*ir.Literal, err error) {
		for i, e := range engines {
			results[i], err = guard(ctx, "looking for the first difference", moduleReproducer(m, "", "run", "ppc run %s"), func() ([][]*ir.Literal, error) {
				exe, err := e.load(ctx, m)
				if err != nil {
					return nil, err
				}
				return exe.Run(ctx, machine.Args)
			})
			if err != nil {
				return results, fmt.Errorf("--engine=%s: %w", names[i], err)
			}
		}
		return results, nil
	})
	switch {
	case err != nil:
		return "", err
	case d == nil:
		return fmt.Sprintf("in step %d no value outside of loops differs by more than rounding", r.first+1), nil
	}
	return d.Text(r.p.m, names), nil
}

// twice are parts of which two values are held against each other, either of which may be
// off by as much as is allowed.
func (y *yardstick) twice(v *binding.Named, parts []extent) []extent {
	out := slices.Clone(parts)
	for i := range out {
		out[i].least = 2 * y.allowed(&parts[i], v)
	}
	return out
}
