package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"ppc/driver/binding"
	"ppc/internal/atomicfile"
	"ppc/internal/tensorfile"
	"ppc/runtime"
)

// writeArrays writes a file of arrays, whole or not at all.
func writeArrays(ctx context.Context, path string, arrays []tensorfile.Named) error {
	return orStopped(ctx, writeError(path, atomicfile.Write(ctx, path, func(w io.Writer) error { return tensorfile.Write(w, path, arrays) })))
}

// claim holds the files that the run writes against those that it reads and
// each other.
func (r *runner) claim() error {
	files := &r.src.files
	if r.feed.path != "" {
		files.reads(newClaim(r.feed.path, "train.data"))
	}
	if r.opts.Out != "" {
		if err := r.claimOut(files); err != nil {
			return err
		}
	}
	if r.opts.Trace != "" {
		if err := files.writable(r.opts.Trace, "the trace"); err != nil {
			return err
		}
	}
	if r.opts.Shards == "" {
		return nil
	}
	if err := os.MkdirAll(r.opts.Shards, 0o777); err != nil {
		return fileError(err)
	}
	if r.opts.Args != "" {
		files.reads(newClaim(r.opts.Args, "the file of --args"))
	}
	for _, name := range shardFiles {
		if err := files.writable(filepath.Join(r.opts.Shards, name), "shards"); err != nil {
			return err
		}
	}
	return nil
}

// claimOut claims the file of the results. They may take the place of the
// arguments where they have every array of these, as those of training do.
func (r *runner) claimOut(files *claims) error {
	what := "the results"
	if r.opts.Args != "" {
		if lost := r.lost(); len(lost) > 0 {
			files.reads(newClaim(r.opts.Args, "the file of --args"))
			what += ", which do not have " + binding.Few(lost)
		}
	}
	return files.writable(r.opts.Out, what)
}

// lost are the arrays of the file of arguments that are not among the results.
func (r *runner) lost() []string {
	results := make(map[string]bool)
	for _, p := range r.machine.Results {
		results[p.Name] = true
	}
	return slices.DeleteFunc(r.args.File.Names(), func(name string) bool { return results[name] })
}

// writeTrace writes what the devices did, of a run that failed too.
func (r *runner) writeTrace(ctx context.Context) error {
	if r.trace == nil || ctx.Err() != nil {
		return nil
	}
	if n := r.trace.Lost(); n > 0 {
		r.opts.note("%s has the beginning of the run: %d ops more ran than a trace holds", r.opts.Trace, n)
	}
	return orStopped(ctx, writeError(r.opts.Trace, atomicfile.Write(ctx, r.opts.Trace, r.trace.Write)))
}

// saving is the context of what is saved: in training, that goes on when the
// run is stopped, but for a pipe, which takes nothing until somebody reads.
func (r *runner) saving(ctx context.Context) context.Context {
	switch {
	case r.p.training == nil || pipe(r.opts.Out):
		return ctx
	case r.opts.Saving != nil:
		return r.opts.Saving
	}
	return context.WithoutCancel(ctx)
}

// pipe reports whether name is there and no regular file.
func pipe(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular()
}

// save writes the results of the last complete step, where a file is named for
// them, and returns them.
func (r *runner) save(ctx context.Context) ([]*binding.Named, error) {
	ctx = r.saving(ctx)
	values, err := guard(ctx, "putting results together", moduleReproducer(r.p.m, "", "run", "ppc run %s"), func() ([]*binding.Named, error) { return r.machine.Values(), nil })
	if err != nil || r.opts.Out == "" {
		return values, err
	}
	return values, r.write(ctx, values)
}

// write writes values to the file of the results.
func (r *runner) write(ctx context.Context, values []*binding.Named) error {
	arrays := make([]tensorfile.Named, len(values))
	for i, v := range values {
		arrays[i] = tensorfile.Named{Name: v.Name, Array: binding.ArrayOf(v.Literal)}
	}
	return writeArrays(ctx, r.opts.Out, arrays)
}

// leave ends a run that failed. If it was stopped, the last complete training step
// is saved, and the error says which.
func (r *runner) leave(ctx context.Context, err error) error {
	var stop *StopError
	if !errors.As(err, &stop) {
		return r.rescue(ctx, err)
	}
	switch {
	case r.p.training == nil && r.opts.Out != "":
		stop.Left = fmt.Sprintf("before %s was written", r.opts.Out)
	case r.p.training == nil:
	case r.done == 0:
		stop.Left = "before the first step was done: nothing was saved"
	case r.opts.Out == "":
		stop.Left = r.progress() + ": nothing was saved, for which --out names a file"
	case pipe(r.opts.Out):
		stop.Left = fmt.Sprintf("%s: nothing was saved, for %s is no regular file", r.progress(), r.opts.Out)
	default:
		err := r.unsettled
		if err == nil {
			_, err = r.save(ctx)
		}
		if err != nil {
			stop.Left = fmt.Sprintf("%s: nothing was saved: %v", r.progress(), err)
			return stop
		}
		return r.saved(stop)
	}
	return stop
}

// rescue saves, of a run whose plugin has failed, the last state that was brought to the
// host.
func (r *runner) rescue(ctx context.Context, err error) error {
	var bug *Bug
	var nan *NaNError
	if r.safe == nil || errors.As(err, &bug) || errors.As(err, &nan) {
		return err
	}
	if lost := r.write(r.saving(ctx), r.safe); lost != nil {
		return fmt.Errorf("%w; nothing was saved: %w", err, lost)
	}
	return fmt.Errorf("%w; %s has the parameters and state of step %d", err, r.opts.Out, r.first+r.safeDone)
}

// saved says that what was done before the run was stopped is saved.
func (r *runner) saved(stop *StopError) error {
	if r.p.training == nil {
		stop.Left = fmt.Sprintf("when %s was written", r.opts.Out)
		return stop
	}
	stop.Left = fmt.Sprintf("%s: %s has the parameters and state", r.progress(), r.opts.Out)
	if left := r.steps - r.done; left > 0 {
		stop.Left += fmt.Sprintf("; --args %s --steps %d takes the rest", r.opts.Out, left)
	}
	return stop
}

// progress says how far training has come.
func (r *runner) progress() string {
	return fmt.Sprintf("after step %d, with %d left", r.first+r.done, r.steps-r.done)
}

// runError tells what failed: the end of the context, ppc itself, or the
// program.
func runError(ctx context.Context, err error, rep reproducer) error {
	var fault *runtime.Fault
	if errors.As(err, &fault) && fault.Stack != nil {
		bug := &Bug{Stage: "running", Cause: err, Stack: fault.Stack}
		bug.keep(rep)
		return bug
	}
	return orStopped(ctx, err)
}
