package driver

import (
	"context"
	"slices"
	"time"

	"ppc/driver/binding"
	"ppc/driver/job"
	"ppc/ir"
	"ppc/runtime/pjrt"
)

// onEngine measures the program on an engine that is not goroutines: what it takes to
// compile there and for a step, state staying where it is.
func (b *bench) onEngine(ctx context.Context) error {
	if b.opts.CPUProfile != "" {
		return usage("--cpuprofile %s: what is measured is %s, not --engine=%s", b.opts.CPUProfile, Goroutines, b.opts.Engine)
	}
	e, err := b.engine(b.opts.Engine)
	if err != nil {
		return err
	}
	defer e.close()
	begin := time.Now()
	if err := b.load(ctx); err != nil {
		return err
	}
	jax, ofJAX := e.(*jaxEngine)
	if ofJAX {
		jax.watch(b.p)
	}
	b.p.sayWarnings()
	if err := b.p.compile(ctx, "", ""); err != nil {
		return err
	}
	b.result.CompileSec = time.Since(begin).Seconds()
	b.result.Engine, b.result.Devices = b.opts.Engine, max(binding.NumDevices(b.p.m), 1)
	b.steps = b.opts.Steps + 1 // of which the first warms up
	rep := moduleReproducer(b.p.m, "", "run", "ppc run %s")
	begin = time.Now()
	exe, err := guard(ctx, "preparing the run", rep, func() (executable, error) { return b.prepare(ctx, e) })
	if err != nil {
		return err
	}
	b.result.EngineSec = time.Since(begin).Seconds()
	var times []time.Duration
	if ofJAX {
		b.heard = func(l job.Line) { times = append(times, time.Duration(l.Scalars["s"]*float64(time.Second))) }
		err = b.follow(ctx, jax) // which compiles in its first step
	} else {
		times, err = b.timed(ctx, exe, rep)
	}
	if err != nil {
		return err
	}
	if remote, ok := exe.(*pjrt.Remote); ok && remote.Stats != nil {
		b.result.TempBytes = int(remote.Stats.Temporaries)
	}
	warm := times[0]
	times = times[1:]
	slices.Sort(times)
	b.result.StepMin, b.result.StepMedian = times[0].Seconds(), times[len(times)/2].Seconds()
	if ofJAX {
		b.result.EngineSec = warm.Seconds() - b.result.StepMedian
	}
	return nil
}

// timed runs all steps and says how long each took.
func (b *bench) timed(ctx context.Context, exe executable, rep reproducer) ([]time.Duration, error) {
	b.keep(exe)
	var times []time.Duration
	for i := range b.steps {
		out, err := guard(ctx, "running", rep, func() ([][]*ir.Literal, error) {
			if err := b.feed.fill(b.machine, b.first+i); err != nil {
				return nil, err
			}
			begin := time.Now()
			out, err := exe.Run(ctx, b.machine.Args)
			times = append(times, time.Since(begin))
			return out, err
		})
		if err != nil {
			return nil, runError(ctx, err, rep)
		}
		b.machine.Adopt(out)
	}
	return times, nil
}
