package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/runtime"
)

// RunOptions says what to run a program on and what to do with the results.
type RunOptions struct {
	Args   string  // a file of arguments; "" for none
	Out    string  // a file for the results; "" for none
	Shards string  // a folder for each device's arguments and results; "" for none
	Seed   *uint64 // nil for the program's own
	Steps  int     // training steps
	Check  bool    // against the reference

	Note func(string) // takes remarks that are no errors; may be nil
}

// A RunResult is what a run gave.
type RunResult struct {
	Outputs []*Output
	Checks  []*Comparison // with RunOptions.Check, one per output
}

// Run compiles and executes the program. With RunOptions.Check the error may
// be a [*Mismatch], which comes with the results.
func Run(ctx context.Context, src *Source, opts RunOptions) (*RunResult, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	r := &runner{src: src, opts: opts}
	return r.run(ctx)
}

func (o *RunOptions) validate() error {
	if o.Steps != 0 {
		return fmt.Errorf("--steps %d: training is not there yet: no pass computes gradients or updates parameters; without --steps the loss of one forward pass is printed", o.Steps)
	}
	for _, file := range []string{o.Args, o.Out} {
		if file == "" {
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

	p               *program
	before          *ir.Module // as it was read, for a check of what has no reference of its own
	tolerance       tolerance
	params, results []*port
	args            *arguments
	values          []*ir.Literal // global results
}

func (r *runner) run(ctx context.Context) (*RunResult, error) {
	var err error
	if r.p, err = r.src.load(lang.Options{}); err != nil {
		return nil, err
	}
	boundInputs(r.p.m)
	r.tolerance = toleranceOf(r.p.m)
	if r.opts.Check && !r.p.named {
		r.before = r.p.m.Clone()
	}
	if err := r.p.compile("", ""); err != nil {
		return nil, err
	}
	r.params, r.results = ports(r.p.m, r.p.named)
	seed := r.p.seed
	if r.opts.Seed != nil {
		seed = *r.opts.Seed
	}
	if r.args, err = newArguments(r.opts.Args, seed, r.params); err != nil {
		return nil, err
	}
	defer r.args.close()
	r.remark(seed)
	if err := r.execute(ctx); err != nil {
		return nil, err
	}
	result := new(RunResult)
	for i, p := range r.results {
		result.Outputs = append(result.Outputs, newOutput(p.name, r.values[i]))
	}
	if err := r.write(result); err != nil {
		return nil, err
	}
	if r.opts.Check {
		result.Checks, err = r.check(ctx, result.Outputs)
	}
	return result, err
}

// remark says which arguments are made up and which arrays are not used.
func (r *runner) remark(seed uint64) {
	if names := r.args.madeUp(r.params); r.args.file != nil && len(names) > 0 {
		r.opts.note("%s has no %s: made up from seed %d", r.opts.Args, few(names), seed)
	}
	if names := r.args.unused(r.params); len(names) > 0 {
		r.opts.note("%s: nothing takes %s", r.opts.Args, few(names))
	}
}

// execute runs the per-device program on all devices and joins the results.
func (r *runner) execute(ctx context.Context) error {
	devices := numDevices(r.p.m)
	args, err := r.args.bind(r.params, devices)
	if err != nil {
		return err
	}
	var out [][]*ir.Literal
	rep := moduleReproducer(r.p.m, "", "run", "ppc run %s")
	err = guard("running", rep, func() error {
		exe, err := runtime.Load(r.p.m)
		if err != nil {
			return err
		}
		out, err = exe.Run(ctx, args)
		return err
	})
	if err != nil {
		return runError(ctx, err, rep)
	}
	for i, p := range r.results {
		parts := make([]*ir.Literal, devices)
		for d := range parts {
			parts[d] = out[d][i]
		}
		r.values = append(r.values, p.join(parts))
	}
	if r.opts.Shards == "" {
		return nil
	}
	return writeShards(r.opts.Shards, args, out)
}

// runError tells what failed: the context's end, ppc itself, or the program.
func runError(ctx context.Context, err error, rep reproducer) error {
	var fault *runtime.Fault
	if errors.As(err, &fault) && fault.Stack != nil {
		bug := &Bug{Stage: "running", Cause: err, Stack: fault.Stack}
		bug.keep(rep)
		return bug
	}
	return cancelled(ctx, err)
}

// cancelled makes the context's end the cause of an error that it caused.
func cancelled(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("stopped: %w", cause)
	}
	return err
}

// writeShards writes what each device took and gave, each value stacked on an
// axis of devices; for one device there is no such axis.
func writeShards(dir string, args, results [][]*ir.Literal) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fileError(err)
	}
	for _, file := range []struct {
		name, prefix string
		values       [][]*ir.Literal
	}{{"args.npz", "in", args}, {"results.npz", "out", results}} {
		var arrays []tensorfile.Named
		for i := range file.values[0] {
			arrays = append(arrays, tensorfile.Named{Name: fmt.Sprint(file.prefix, i), Array: array(stackDevices(file.values, i))})
		}
		if err := writeArrays(filepath.Join(dir, file.name), arrays); err != nil {
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
	return stack(t.WithShape(append([]int{len(parts)}, t.Shape...)...), parts)
}

func (r *runner) write(result *RunResult) error {
	if r.opts.Out == "" {
		return nil
	}
	arrays := make([]tensorfile.Named, len(result.Outputs))
	for i, o := range result.Outputs {
		arrays[i] = tensorfile.Named{Name: o.Name, Array: array(o.literal)}
	}
	return writeArrays(r.opts.Out, arrays)
}
