package driver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"ppc/driver/binding"
	"ppc/driver/job"
	"ppc/driver/rounding"
	"ppc/driver/trace"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/runtime"
)

// RunOptions says what to run a program on and what to do with the results.
type RunOptions struct {
	Args      string  // a file of arguments; "" for none
	Out       string  // a file for the results; "" for none
	Shards    string  // a folder for each device's arguments and results; "" for none
	Seed      *uint64 // nil for the program's own
	Steps     *int    // of training, 0 for the loss alone; nil for the program's own
	Grad      bool    // the gradients, without an update
	Check     bool    // against the reference
	Memory    int     // bytes that it may take; 0 for what the system has
	Engine    string  // what the devices are; "" for goroutines
	Against   string  // with Check: another engine that has to give the same; "" for none
	Processes int     // of the engine JAX; 0 for one
	Trace     string  // a file for what each device did when; "" for none

	// Saving ends the saving of the last step of training, for which a run that
	// its context stops goes on; nil lets it end by itself.
	Saving context.Context

	Note func(string) // takes remarks that are no errors; may be nil
	Step func(*Step)  // takes the result of each step of training; may be nil
}

// A RunResult is what a run gave.
type RunResult struct {
	Outputs []*Output     // of the last step; new parameters and state are in RunOptions.Out only
	Checks  []*Comparison // with RunOptions.Check
}

// Run compiles and executes the program: once, or, where it trains, once per
// step. With RunOptions.Check the error may be a [*Mismatch], which comes with
// the results.
func Run(ctx context.Context, src *Source, opts RunOptions) (*RunResult, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	r := &runner{src: src, opts: opts}
	return r.run(ctx)
}

func (o *RunOptions) validate() error {
	if o.Steps != nil && (*o.Steps < 0 || *o.Steps > math.MaxInt32) {
		return usage("--steps %d: want a number from 0 to %d", *o.Steps, math.MaxInt32)
	}
	if o.Steps != nil && *o.Steps > 0 && o.Grad {
		return usage("--steps %d, --grad: gradients are those of one step without an update", *o.Steps)
	}
	if o.Trace != "" && o.Engine != "" && o.Engine != Goroutines {
		return usage("--trace %s: what devices do is seen where they are %s, not with --engine=%s", o.Trace, Goroutines, o.Engine)
	}
	if o.Against != "" && !o.Check {
		return usage("--against=%s: goes with --check", o.Against)
	}
	if o.Processes != 0 && o.Engine != JAX && o.Against != JAX {
		return usage("--processes %d: goes with --engine=%s", o.Processes, JAX)
	}
	for _, file := range []string{o.Args, o.Out} {
		if file == "" || file == o.Args && tensorfile.IsIndex(file) {
			continue
		}
		if err := tensorfile.CheckName(file); err != nil {
			return usage("%v", err)
		}
	}
	return nil
}

func (o *RunOptions) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

// A runner is one run at work.
type runner struct {
	src  *Source
	opts RunOptions

	p         *program
	before    *ir.Module // as it was read, for a check of what has no reference of its own
	typed     *ir.Module // as it was read, for a check
	roundings []ir.DType // of typed
	ref       *reference // that results are held to, once it was evaluated
	machine   *binding.Machine
	args      *binding.Arguments
	feed      *feed
	first     int                               // steps that were done before
	steps     int                               // runs of the machine
	done      int                               // of them
	compared  bool                              // whether another run is compared with this one
	history   [][]*binding.Named                // the scalars of each step, of a run that is checked or compared
	job       *job.Job                          // of the engine JAX
	engines   func(name string) (engine, error) // opens engines; nil for openEngine
	heard     func(job.Line)                    // gets the steps of a job; may be nil
	safeEvery time.Duration                     // how often state comes from a plugin's devices to the host; 0 for a minute
	safeAt    time.Time                         // when it did last
	safe      []*binding.Named                  // what came
	safeDone  int                               // after so many steps
	unsettled error                             // why the results of the last step are not on the host
	trace     *trace.Recording
	loaded    func() (*runtime.Executable, error) // what goroutines run, for all runs; nil where this is the only one
	prepared  *reference                          // what --check evaluates after the run
	evaluator int                                 // bytes that the values of a reference may take on the evaluator; 0 for evaluatorMemory
}

func (r *runner) run(ctx context.Context) (*RunResult, error) {
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	r.p.sayWarnings()
	return r.compute(ctx)
}

// compute compiles and runs what was loaded.
func (r *runner) compute(ctx context.Context) (*RunResult, error) {
	defer r.close()
	values, err := r.values(ctx)
	if err != nil {
		return nil, err
	}
	result := new(RunResult)
	for _, v := range values {
		if !v.State {
			result.Outputs = append(result.Outputs, newOutput(v.Name, v.Literal))
		}
	}
	if r.opts.Check {
		result.Checks, err = r.check(ctx, values)
	}
	if r.opts.Against != "" && err == nil {
		var more []*Comparison
		more, err = r.holdAgainst(ctx, values)
		result.Checks = append(result.Checks, more...)
	}
	var stop *StopError
	if errors.As(err, &stop) {
		stop.Left = "before the check was done"
	}
	return result, err
}

// values compiles and runs what was loaded, and saves and returns the results of the
// last step.
func (r *runner) values(ctx context.Context) ([]*binding.Named, error) {
	engine, err := r.engine(r.opts.Engine)
	if err != nil {
		return nil, err
	}
	defer engine.close()
	jax, ofJAX := engine.(*jaxEngine)
	if ofJAX {
		jax.watch(r.p)
	}
	if err := r.p.compile(ctx, "", ""); err != nil {
		return nil, err
	}
	rep := moduleReproducer(r.p.m, "", "run", "ppc run %s")
	if g, local := engine.(goroutines); local {
		g.trace, g.loaded = r.trace, r.loaded
		engine = g
	}
	exe, err := guard(ctx, "preparing the run", rep, func() (executable, error) { return r.prepare(ctx, engine) })
	if err != nil {
		return nil, err
	}
	if r.opts.Check && r.ref == nil { // before the run, which may take long
		if r.prepared, err = r.newReference(ctx); err != nil {
			return nil, orStopped(ctx, err)
		}
	}
	if ofJAX {
		err = r.follow(ctx, jax)
	} else {
		err = r.onDevices(ctx, exe, rep)
	}
	if lost := r.writeTrace(ctx); err == nil {
		err = lost
	}
	if err != nil {
		return nil, r.leave(ctx, err)
	}
	values, err := r.save(ctx)
	if err != nil {
		return nil, r.leave(ctx, err)
	}
	if ctx.Err() != nil { // while the last step was saved
		return nil, r.saved(stopped(ctx))
	}
	return values, nil
}

// engine is the engine called name.
func (r *runner) engine(name string) (engine, error) {
	if r.engines != nil {
		return r.engines(name)
	}
	return openEngine(name, r.opts.Processes)
}

// close closes the files that the run reads.
func (r *runner) close() {
	if r.args != nil {
		r.args.Close()
	}
	if r.feed != nil {
		r.feed.close()
	}
}

// prepare opens and checks all that the run reads and writes, and compiles the
// program for it.
func (r *runner) prepare(ctx context.Context, e engine) (executable, error) {
	r.machine = binding.NewMachine(r.p.m, r.p.naming)
	if err := r.fits(); err != nil { // before loading: what it measures is as large as what is loaded
		return nil, err
	}
	exe, err := e.load(ctx, r.p.m)
	if err != nil {
		return nil, err
	}
	if err := r.start(); err != nil {
		return nil, err
	}
	return exe, r.claim()
}

// reading is how the program is read: as a step of training unless the steps
// are 0 or gradients are wanted.
func (r *runner) reading() lang.Options {
	opts := lang.Options{Grad: r.opts.Grad, Train: r.opts.Steps == nil || *r.opts.Steps > 0}
	if r.opts.Steps != nil {
		opts.Steps = *r.opts.Steps
	}
	return opts
}

// load reads the program and settles how often it runs.
func (r *runner) load(ctx context.Context) error {
	var err error
	if r.p, err = r.src.load(ctx, r.reading()); err != nil {
		return err
	}
	if r.opts.Grad && r.p.naming == binding.ByNumber {
		return usage("--grad: %s asks for what it computes itself; gradients are taken of .pp programs", r.src.name())
	}
	if err := r.p.unattended(r.src); err != nil {
		return err
	}
	if err := r.p.executable(); err != nil {
		return err
	}
	boundInputs(r.p.m)
	if r.opts.Trace != "" {
		r.trace = trace.New(r.p.m)
	}
	if r.opts.Check {
		r.typed, r.roundings = r.p.m.Clone(), rounding.Types(r.p.m)
		if r.p.naming == binding.ByNumber {
			r.before = r.typed
		}
	}
	r.steps = 1
	if t := r.p.training; t != nil {
		r.steps = t.Steps
	}
	if n := r.opts.Steps; n != nil && *n > 0 {
		if r.p.training == nil {
			return fmt.Errorf("--steps %d: %s does not train: give it train { optimizer = adamw(lr: 1e-3) }", *n, r.src.name())
		}
		r.steps = *n
	}
	if r.opts.Engine == JAX && r.opts.Shards != "" && r.steps > 1 {
		return usage("--shards, --engine=%s: JAX keeps the results of %d steps to itself but for the last: --steps 1", JAX, r.steps)
	}
	return nil
}

// start opens the files that arguments and batches come from and sets the
// parameters of the first step.
func (r *runner) start() error {
	seed := r.p.seed
	if r.opts.Seed != nil {
		seed = *r.opts.Seed
	}
	var err error
	if r.args, err = binding.Open(r.opts.Args, seed, r.machine.Params); err != nil {
		return fileError(err)
	}
	if err := r.batches(); err != nil {
		r.args.Close()
		return err
	}
	r.remark(seed)
	return nil
}

func (r *runner) batches() error {
	data := ""
	if r.p.training != nil {
		data = r.p.training.Data
		for _, p := range r.machine.Params {
			if p.Kind == "state" && p.Name == "opt.step" {
				l, err := r.args.FileValue(p)
				if err != nil {
					return err
				}
				if r.first = int(l.Int(0)); r.first < 0 || r.first > math.MaxInt32 {
					return fmt.Errorf("%s: %s is %d, want a number from 0 to %d: how many steps there were before", r.opts.Args, p.Name, r.first, math.MaxInt32)
				}
			}
		}
	}
	if t := r.p.training; t != nil && t.Rates > 0 && t.Rates < r.first+r.steps {
		return fmt.Errorf("%s: train: the list of learning rates has %d, one per step, and this run ends with step %d: give it %d more, or --steps %d",
			r.src.name(), t.Rates, r.first+r.steps, r.first+r.steps-t.Rates, max(0, t.Rates-r.first))
	}
	var err error
	r.feed, err = newFeed(data, r.args, r.machine.Params, r.first, r.steps)
	if err != nil {
		return err
	}
	return r.machine.Bind(r.args)
}

// remark says which arguments are made up and which arrays are not used.
func (r *runner) remark(seed uint64) {
	made := slices.DeleteFunc(r.args.MadeUp(r.machine.Params), func(name string) bool { return r.training(name) })
	if r.args.File != nil && len(made) > 0 {
		r.opts.note("%s has no %s: made up from seed %d", r.opts.Args, binding.Few(made), seed)
	}
	results := make(map[string]bool)
	for _, p := range r.machine.Results {
		results[p.Name] = true
	}
	if names := slices.DeleteFunc(r.args.Unused(r.machine.Params), func(name string) bool { return results[name] }); len(names) > 0 {
		r.opts.note("%s: nothing takes %s", r.opts.Args, binding.Few(names))
	}
}

// training reports whether name is an input that training finds elsewhere: in
// its file of batches, or, if there is none, made up as a matter of course.
func (r *runner) training(name string) bool {
	return r.p.training != nil && slices.ContainsFunc(r.machine.Params, func(p *binding.Port) bool { return p.Name == name && p.Kind == "input" })
}

// shardFiles are the files in the folder of --shards.
var shardFiles = [...]string{"args.npz", "results.npz"}

// writeShards writes what each device took and gave, each value stacked on an
// axis of devices; for one device there is no such axis.
func writeShards(ctx context.Context, dir string, args, results [][]*ir.Literal) error {
	for _, file := range []struct {
		name, prefix string
		values       [][]*ir.Literal
	}{{shardFiles[0], "in", args}, {shardFiles[1], "out", results}} {
		var arrays []tensorfile.Named
		for i := range file.values[0] {
			arrays = append(arrays, tensorfile.Named{Name: fmt.Sprint(file.prefix, i), Array: binding.ArrayOf(stackDevices(file.values, i))})
		}
		if err := writeArrays(ctx, filepath.Join(dir, file.name), arrays); err != nil {
			return err
		}
	}
	return nil
}

// stackDevices stacks value i of all devices.
func stackDevices(values [][]*ir.Literal, i int) *ir.Literal {
	if len(values) == 1 {
		return values[0][i]
	}
	parts := make([]*ir.Literal, len(values))
	for d := range parts {
		parts[d] = values[d][i]
	}
	t := parts[0].Type
	return binding.Stack(t.WithShape(append([]int{len(parts)}, t.Shape...)...), parts)
}
