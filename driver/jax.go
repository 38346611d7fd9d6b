package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ppc/driver/binding"
	"ppc/driver/job"
	"ppc/internal/atomicfile"
	"ppc/ir"
	"ppc/lower"
	"ppc/passes/pass"
)

// JAX is the name of the engine that is processes of JAX on this machine.
const JAX = "jax"

// jaxEngine runs a whole job: the steps are its own, and so is the state between
// them. What it runs is the program for all devices, which XLA partitions.
type jaxEngine struct {
	python    string
	processes int
	global    *ir.Module // the program for all devices, once it was compiled
}

func openJAX(processes int) (engine, error) {
	python := job.Python()
	if python == "" {
		return nil, fmt.Errorf("--engine=%s: there is no python on the path, and PPC_PYTHON does not name one", JAX)
	}
	return &jaxEngine{python: python, processes: max(processes, 1)}, nil
}

// watch keeps the program for all devices when p is compiled.
func (j *jaxEngine) watch(p *program) {
	p.each = append(p.each, func(_ int, q *pass.Pass, m *ir.Module) error {
		if q.Name == globalAfter {
			j.global = m.Clone()
		}
		return nil
	})
}

func (j *jaxEngine) load(context.Context, *ir.Module) (executable, error) { return nil, nil }

func (j *jaxEngine) close() {}

// follow runs the steps as a job and takes over what it says and leaves.
func (r *runner) follow(ctx context.Context, j *jaxEngine) error {
	if err := r.launch(ctx, j); err != nil {
		return orStopped(ctx, err)
	}
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	return nil
}

func (r *runner) launch(ctx context.Context, j *jaxEngine) error {
	if j.global == nil {
		return fmt.Errorf("--engine=%s: %s is a program for one device already; JAX gets that for all of them", JAX, r.src.name())
	}
	dir, err := os.MkdirTemp("", "ppc-job-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := r.writeJob(ctx, j, dir); err != nil {
		return err
	}
	begin := time.Now()
	life := ctx
	if r.p.training != nil && r.opts.Out != "" {
		life = r.saving(ctx) // a job that is stopped leaves its last step
	}
	run, err := r.job.Start(life, dir, job.Options{Python: j.python, Processes: j.processes})
	if err != nil {
		return fmt.Errorf("--engine=%s: %w", JAX, err)
	}
	if err := r.listen(ctx, run, begin); err != nil {
		run.Kill()
		run.Wait()
		return err
	}
	if err := run.Wait(); err != nil {
		return fmt.Errorf("--engine=%s: %w", JAX, err)
	}
	return r.collect(ctx, run)
}

// writeJob writes the job, with the arguments that its script does not make itself.
func (r *runner) writeJob(ctx context.Context, j *jaxEngine, dir string) error {
	order := placeDevices(j.global)
	text, err := lower.StableHLO(j.global)
	if err != nil {
		return err
	}
	if r.job, err = newJob(r.p, j.global); err != nil {
		return fmt.Errorf("--engine=%s: %w", JAX, err)
	}
	r.job.Order = order
	r.job.Seed, r.job.First, r.job.Steps = r.args.Seed, r.first, r.steps
	for i, p := range r.machine.Params {
		q := r.job.Params[i]
		given := r.args.Keys(p) != nil && !r.feed.has(p)
		if made := p.Kind == "param" || p.Kind == "state" || p.Kind == "input" || p.Kind == "step"; made && !given {
			continue
		}
		full, err := r.args.FileValue(p)
		if err != nil {
			return err
		}
		l, err := binding.Convert(p.Value(full), p.Global.Elem)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if len(l.Data) == 0 {
			continue
		}
		q.File = fmt.Sprintf("in%d.bin", i)
		if err := atomicfile.WriteBytes(ctx, filepath.Join(dir, q.File), l.Expand()); err != nil {
			return err
		}
	}
	return r.job.Write(ctx, dir, text)
}

// listen hands on the steps of the job as they are done. When ctx ends, the job is
// told to.
func (r *runner) listen(ctx context.Context, run *job.Running, begin time.Time) error {
	tokens := countTokens(r.machine.Params)
	done := ctx.Done()
	r.advance(ctx)
	for {
		select {
		case <-done:
			run.Stop()
			done = nil
		case l, more := <-run.Lines():
			if !more {
				return nil
			}
			now := time.Now()
			s := &Step{Number: l.Step, Left: r.steps - r.done - 1, Took: now.Sub(begin), Tokens: tokens}
			begin = now
			r.done++
			r.advance(ctx)
			if r.heard != nil {
				r.heard(l)
			}
			if r.p.training == nil {
				continue
			}
			if err := r.report(ctx, s, r.scalarsOf(l)); err != nil {
				return err
			}
		}
	}
}

// advance says how many steps of a job are done.
func (r *runner) advance(ctx context.Context) {
	at := Progress{Doing: "running"}
	if r.p.training != nil {
		at = Progress{Doing: "training", Unit: "step", Done: r.done, Total: r.steps, Even: true}
	}
	advance(ctx, at)
}

// scalarsOf are the results that a line of a job has.
func (r *runner) scalarsOf(l job.Line) []*binding.Named {
	var out []*binding.Named
	for _, p := range r.machine.Results {
		if v, ok := l.Scalars[p.Name]; ok && p.Alias < 0 && p.Global.Rank() == 0 {
			value := ir.SplatOf(p.Global, v)
			out = append(out, &binding.Named{Name: p.Name, Kind: p.Kind, Literal: value})
		}
	}
	return out
}

// collect takes what the last step left.
func (r *runner) collect(ctx context.Context, run *job.Running) error {
	var args [][]*ir.Literal
	if r.opts.Shards != "" {
		if err := r.feed.fill(r.machine, r.first); err != nil {
			return err
		}
		args = r.firstShards(0)
	}
	out := make([][]*ir.Literal, len(r.machine.Args))
	for i, p := range r.machine.Results {
		l, err := run.Result(i, p.Global)
		if err != nil {
			return fmt.Errorf("--engine=%s: %w", JAX, err)
		}
		for d, part := range p.Shards(l) {
			out[d] = append(out[d], part)
		}
	}
	r.machine.Adopt(out)
	if args == nil {
		return nil
	}
	return writeShards(ctx, r.opts.Shards, args, out)
}
