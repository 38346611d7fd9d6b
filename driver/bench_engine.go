package driver

import (
	"cmp"
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
	remote, ofPlugin := exe.(*pjrt.Remote)
	if ofPlugin {
		b.result.EngineCPUSec = remote.CPU.Seconds()
	}
	var steps []timedStep
	if ofJAX {
		b.heard = func(l job.Line) { steps = append(steps, timedStep{l.Scalars["s"], l.Scalars["cpu_s"]}) }
		err = b.follow(ctx, jax) // which compiles in its first step
	} else {
		steps, err = b.timed(ctx, exe, rep)
	}
	if err != nil {
		return err
	}
	if ofPlugin && remote.Stats != nil {
		b.result.TempBytes = int(remote.Stats.Temporaries)
	}
	warm, rest := steps[0], steps[1:]
	slices.SortFunc(rest, func(a, b timedStep) int { return cmp.Compare(a.cpu, b.cpu) })
	b.result.CPUSec = rest[len(rest)/2].cpu
	slices.SortFunc(rest, func(a, b timedStep) int { return cmp.Compare(a.took, b.took) })
	b.result.StepMin, b.result.StepMedian = rest[0].took, rest[len(rest)/2].took
	if ofJAX {
		b.result.EngineSec, b.result.EngineCPUSec = warm.took-b.result.StepMedian, warm.cpu-b.result.CPUSec
	}
	return nil
}

// A timedStep is what a step took, in seconds: until it was done, and of all cores of the
// process that has the devices, where that says so.
type timedStep struct{ took, cpu float64 }

// timed runs all steps and says how long each took.
func (b *bench) timed(ctx context.Context, exe executable, rep reproducer) ([]timedStep, error) {
	b.keep(exe)
	var steps []timedStep
	for i := range b.steps {
		out, err := guard(ctx, "running", rep, func() ([][]*ir.Literal, error) {
			if err := b.feed.fill(b.machine, b.first+i); err != nil {
				return nil, err
			}
			begin := time.Now()
			out, err := exe.Run(ctx, b.machine.Args)
			s := timedStep{took: time.Since(begin).Seconds()}
			if remote, ok := exe.(*pjrt.Remote); ok {
				s.cpu = remote.CPU.Seconds()
			}
			steps = append(steps, s)
			return out, err
		})
		if err != nil {
			return nil, runError(ctx, err, rep)
		}
		b.machine.Adopt(out)
	}
	return steps, nil
}
