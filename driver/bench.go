package driver

import (
	"bytes"
	"cmp"
	"context"
	goruntime "runtime"
	"runtime/pprof"
	"slices"
	"time"

	"ppc/driver/binding"
	"ppc/internal/cputime"
	"ppc/ir"
	"ppc/lower/stats"
	"ppc/passes/pass"
	"ppc/runtime"
	"ppc/runtime/kernel"
)

// BenchOptions says how a program is measured.
type BenchOptions struct {
	Steps      int // steps that are timed, after one that warms up
	Seed       *uint64
	CPUProfile string // a file for a profile of the timed steps; "" for none
	Engine     string // what the devices are; "" for goroutines
	Processes  int    // of the engine JAX; 0 for one
}

// A BenchResult is what a program takes. Times are in seconds.
type BenchResult struct {
	Engine       string  `json:"engine,omitempty"`               // "" for goroutines, of which alone there are operations, flops and bytes
	CompileSec   float64 `json:"compile_s"`                      // from the text to the executable
	EngineSec    float64 `json:"engine_compile_s,omitempty"`     // of another engine, from the program per device to its executable
	EngineCPUSec float64 `json:"engine_compile_cpu_s,omitempty"` // the same, of all cores
	StepMin      float64 `json:"step_min_s"`
	StepMedian   float64 `json:"step_median_s"`
	CPUSec       float64 `json:"cpu_s"`  // of all cores, per step
	Flops        float64 `json:"flops"`  // of the contractions and convolutions of all devices, in a step
	GFlops       float64 `json:"gflops"` // per second, by the fastest step
	PeakGFlops   float64 `json:"peak_gflops"`
	BytesMoved   float64 `json:"bytes_moved"` // that ops of all devices read and wrote, in a step
	TempBytes    int     `json:"temp_bytes"`  // at the peak, beside arguments, per device
	PlanBytes    int     `json:"plan_bytes"`  // the same by the static measure
	Devices      int     `json:"devices"`
	Workers      int     `json:"workers"`

	Ops    []BenchOp   `json:"ops"`
	Passes []BenchPass `json:"passes"`
}

// A BenchOp is what all devices spent on ops of one kind in a step, waiting for
// each other included.
type BenchOp struct {
	Op    string  `json:"op"`
	Times int     `json:"times"`
	Sec   float64 `json:"s"`
	Bytes float64 `json:"bytes"`
}

// A BenchPass is the time of one pass.
type BenchPass struct {
	Pass string  `json:"pass"`
	Sec  float64 `json:"s"`
}

// Bench compiles the program and runs the same step again and again: one that
// warms up, those that are timed, and one in which every op is timed.
func Bench(ctx context.Context, src *Source, opts BenchOptions) (*BenchResult, error) {
	if opts.Steps < 1 {
		return nil, usage("--steps %d: want 1 or more", opts.Steps)
	}
	b := &bench{runner: runner{src: src, opts: RunOptions{Seed: opts.Seed, Engine: opts.Engine, Processes: opts.Processes}}, opts: opts, result: new(BenchResult)}
	if opts.Engine != "" && opts.Engine != Goroutines {
		defer b.close()
		return b.result, b.onEngine(ctx)
	}
	exe, err := b.compile(ctx)
	if err != nil {
		return nil, err
	}
	defer b.args.Close()
	defer b.feed.close()
	if err := b.measure(ctx, exe); err != nil {
		return nil, err
	}
	return b.result, nil
}

// A bench is a runner that measures.
type bench struct {
	runner
	opts   BenchOptions
	result *BenchResult
}

// compile makes the program ready to run, and measures that.
func (b *bench) compile(ctx context.Context) (*runtime.Executable, error) {
	begin := time.Now()
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	if b.opts.CPUProfile != "" {
		if err := b.src.files.writable(b.opts.CPUProfile, "the profile"); err != nil {
			return nil, err
		}
	}
	last := time.Now()
	b.p.each = append(b.p.each, func(_ int, p *pass.Pass, _ *ir.Module) error {
		now := time.Now()
		b.result.Passes = append(b.result.Passes, BenchPass{p.Name, now.Sub(last).Seconds()})
		last = now
		return nil
	})
	b.p.sayWarnings()
	if err := b.p.compile(ctx, "", ""); err != nil {
		return nil, err
	}
	rep := moduleReproducer(b.p.m, "", "run", "ppc run %s")
	exe, err := guard(ctx, "loading", rep, func() (*runtime.Executable, error) { return runtime.Load(b.p.m) })
	if err != nil {
		return nil, err
	}
	b.result.CompileSec = time.Since(begin).Seconds()
	_, err = guard(ctx, "preparing the run", rep, func() (any, error) {
		b.machine = binding.NewMachine(b.p.m, b.p.naming)
		if err := b.fits(); err != nil {
			return nil, err
		}
		return nil, b.start()
	})
	return exe, err
}

// step runs the program once and says how long that took.
func (b *bench) step(ctx context.Context, exe *runtime.Executable, opts ...runtime.Option) (time.Duration, error) {
	rep := moduleReproducer(b.p.m, "", "run", "ppc run %s")
	if _, err := guard(ctx, "reading a batch", rep, func() (any, error) { return nil, b.feed.fill(b.machine, b.first+b.done) }); err != nil {
		return 0, err
	}
	var took time.Duration
	out, err := guard(ctx, "running", rep, func() ([][]*ir.Literal, error) {
		begin := time.Now()
		out, err := exe.Run(ctx, b.machine.Args, opts...)
		took = time.Since(begin)
		return out, err
	})
	if err != nil {
		return 0, runError(ctx, err, rep)
	}
	exe.Recycle(b.machine.Adopt(out))
	return took, nil
}

func (b *bench) measure(ctx context.Context, exe *runtime.Executable) error {
	r := b.result
	if _, err := b.step(ctx, exe); err != nil {
		return err
	}
	var cpuProfile bytes.Buffer
	if b.opts.CPUProfile != "" {
		if err := pprof.StartCPUProfile(&cpuProfile); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var times []time.Duration
	cpu := cputime.Now()
	for range b.opts.Steps {
		took, err := b.step(ctx, exe)
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	r.CPUSec = (cputime.Now() - cpu).Seconds() / float64(len(times))
	if b.opts.CPUProfile != "" {
		pprof.StopCPUProfile()
		if err := WriteFile(ctx, b.opts.CPUProfile, cpuProfile.Bytes()); err != nil {
			return err
		}
	}
	slices.Sort(times)
	r.StepMin, r.StepMedian = times[0].Seconds(), times[len(times)/2].Seconds()
	trace, profile := new(runtime.Trace), new(runtime.Profile)
	if _, err := b.step(ctx, exe, runtime.WithTrace(trace), runtime.WithProfile(profile)); err != nil {
		return err
	}
	r.Devices, r.Workers = exe.Devices(), goruntime.GOMAXPROCS(0)
	r.TempBytes = trace.PeakBytes / r.Devices
	r.count(profile)
	r.GFlops = r.Flops / r.StepMin / 1e9
	r.PeakGFlops = kernel.Peak(r.Workers) / 1e9
	s, err := measured(b.p.m)
	if err != nil {
		return err
	}
	r.PlanBytes = s.Run.Peak - s.Run.Parts[stats.Parameters] - s.Run.Parts[stats.OptimizerState]
	return nil
}

// count adds up what the profile says of each kind of op.
func (r *BenchResult) count(p *runtime.Profile) {
	kinds := make(map[string]*BenchOp)
	for _, o := range p.Ops {
		name := o.Op.Name()
		if o.Group != nil {
			name = "fused"
		}
		k := kinds[name]
		if k == nil {
			k = &BenchOp{Op: name}
			kinds[name] = k
		}
		n, bytes := float64(o.Times), bytesOf(&o)
		k.Times += o.Times
		k.Sec += o.Time.Seconds()
		k.Bytes += n * bytes
		r.Flops += n * flopsOf(o.Op)
		if len(o.Op.Regions) == 0 {
			r.BytesMoved += n * bytes
		}
	}
	for _, k := range kinds {
		r.Ops = append(r.Ops, *k)
	}
	slices.SortFunc(r.Ops, func(a, b BenchOp) int { return cmp.Or(cmp.Compare(b.Sec, a.Sec), cmp.Compare(a.Op, b.Op)) })
}

// bytesOf is what the operands and results of an op hold, or of a group.
func bytesOf(o *runtime.ProfiledOp) float64 {
	vs := append(slices.Clip(o.Op.Operands), o.Op.Results...)
	if g := o.Group; g != nil {
		vs = slices.Clone(g.Inputs)
		for _, k := range g.Outputs {
			vs = append(vs, g.Members[k].Op.Result())
		}
	}
	n := 0.0
	for _, v := range vs {
		if v.Type.IsTensor() {
			n += float64(v.Type.Bytes())
		}
	}
	return n
}

// flopsOf counts the multiplications and additions of a contraction.
func flopsOf(op *ir.Op) float64 {
	if op.Kind != ir.DotGeneral {
		return 0
	}
	n := 2 * float64(op.Results[0].Type.NumElements())
	l := op.Operands[0].Type
	for _, d := range op.Attrs.Get("dot_dimension_numbers").(ir.Dot).LhsContract {
		n *= float64(l.Shape[d])
	}
	return n
}
