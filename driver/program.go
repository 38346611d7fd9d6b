package driver

import (
	"context"
	"sync"

	"ppc/runtime"
)

// A Program is a program that was compiled, to run any number of times.
type Program struct {
	opts  RunOptions
	src   *Source
	p     *program
	steps int

	loaded func() (*runtime.Executable, error)
}

// Compile reads and compiles the program that [Run] runs with the options. These may ask
// for no check, which takes the program as it was read, for no trace, and not for JAX.
func Compile(ctx context.Context, src *Source, opts RunOptions) (*Program, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.Check || opts.Trace != "" || opts.Engine == JAX {
		return nil, usage("a program that is compiled once runs without a check, a trace and JAX: run it by itself for these")
	}
	r := &runner{src: src, opts: opts}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	r.p.sayWarnings()
	if err := r.p.compile(ctx, "", ""); err != nil {
		return nil, err
	}
	load := sync.OnceValues(func() (*runtime.Executable, error) { return runtime.Load(r.p.m) })
	return &Program{opts, src, r.p, r.steps, load}, nil
}

// Run runs the program like [Run], with the arguments of one file, and the results in
// another; "" for none.
func (p *Program) Run(ctx context.Context, args, out string) (*RunResult, error) {
	opts := p.opts
	opts.Args, opts.Out = args, out
	if err := opts.validate(); err != nil {
		return nil, err
	}
	r := &runner{src: p.src, opts: opts, p: p.p, steps: p.steps, loaded: p.loaded}
	return r.compute(ctx)
}
