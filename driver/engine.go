package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ppc/driver/binding"
	"ppc/driver/job"
	"ppc/driver/trace"
	"ppc/ir"
	"ppc/lower"
	"ppc/runtime"
	"ppc/runtime/pjrt"
)

// An engine runs programs for one device on as many devices as they are for.
type engine interface {
	// load compiles m; it takes no memory for its values.
	load(ctx context.Context, m *ir.Module) (executable, error)
	close()
}

// An executable is a program that an engine has compiled.
type executable interface {
	// Run executes the program with args[device][parameter] and returns
	// results[device][result].
	Run(ctx context.Context, args [][]*ir.Literal) ([][]*ir.Literal, error)
}

// Goroutines is the name of the default engine: devices are goroutines, with
// nothing to install.
const Goroutines = "goroutines"

// openEngine is the engine called name: Goroutines, or "" for it, a platform whose
// plugin is found in the usual places, pjrt:PATH, or JAX, in that many processes.
func openEngine(name string, processes int) (engine, error) {
	switch name {
	case "", Goroutines:
		return goroutines{}, nil
	case JAX:
		return openJAX(processes)
	case Evaluator:
		return evaluator{}, nil
	}
	if path, ok := strings.CutPrefix(name, "pjrt:"); ok {
		if path == "" {
			return nil, usage("--engine=pjrt: want the path of a plugin: --engine=pjrt:/path/to/plugin.so")
		}
		return &plugin{name: name, path: path}, nil
	}
	platform := pjrt.PlatformOf(name)
	if platform == nil {
		return nil, usage("--engine=%s: want %s, %s, %s, %s or pjrt:PATH", name, Goroutines, strings.Join(pjrt.PlatformNames(), ", "), JAX, Evaluator)
	}
	found := platform.Find()
	if len(found) == 0 {
		return nil, fmt.Errorf("--engine=%s: no PJRT plugin is found; %s, or give its path: --engine=pjrt:PATH", name, platform.Install)
	}
	return &plugin{name: name, path: found[0]}, nil
}

// goroutines is the engine of package runtime.
type goroutines struct {
	trace  *trace.Recording                    // of the runs; nil for none
	loaded func() (*runtime.Executable, error) // the program, where it runs several times; nil where it is loaded for this run
}

func (g goroutines) load(_ context.Context, m *ir.Module) (executable, error) {
	load := g.loaded
	if load == nil {
		load = func() (*runtime.Executable, error) { return runtime.Load(m) }
	}
	exe, err := load()
	if err != nil {
		return nil, err
	}
	return local{exe, g.trace}, nil
}

func (goroutines) close() {}

// A local is an executable of package runtime.
type local struct {
	*runtime.Executable
	trace *trace.Recording
}

func (l local) Run(ctx context.Context, args [][]*ir.Literal) ([][]*ir.Literal, error) {
	if l.trace == nil {
		return l.Executable.Run(ctx, args)
	}
	return l.trace.Run(ctx, l.Executable, args)
}

// A plugin is an engine that a PJRT plugin is, in a process of its own.
type plugin struct {
	name, path string
	worker     *pjrt.Worker
}

func (p *plugin) load(ctx context.Context, m *ir.Module) (executable, error) {
	f := m.Main()
	for i, v := range f.Params() {
		if err := pjrt.Check(v.Type); err != nil {
			return nil, fmt.Errorf("--engine=%s: parameter %d: %w", p.name, i, err)
		}
	}
	var results []*ir.Type
	for i, r := range f.Results {
		if err := pjrt.Check(r.Type); err != nil {
			return nil, fmt.Errorf("--engine=%s: result %d: %w", p.name, i, err)
		}
		results = append(results, r.Type)
	}
	n := max(binding.NumDevices(m), 1)
	var err error
	if p.worker == nil {
		if p.worker, err = startDevices(ctx, p.path, n); err != nil {
			return nil, fmt.Errorf("--engine=%s: %w", p.name, err)
		}
	}
	text, err := lower.Replicas(forPlatform(m, p.worker.Info.Platform))
	if err != nil {
		return nil, fmt.Errorf("--engine=%s: %w", p.name, err)
	}
	exe, err := p.worker.Compile(ctx, text, n, pjrt.CompileOptions{Replicas: n, Partitions: 1}, results)
	if err != nil {
		return nil, fmt.Errorf("--engine=%s: %w", p.name, err)
	}
	return exe, nil
}

// onDevices runs all steps. After a run that is stopped, too, the results of the last
// step are on the host, if they are to be saved.
func (r *runner) onDevices(ctx context.Context, exe executable, rep reproducer) error {
	r.keep(exe)
	err := r.loop(ctx, exe, rep)
	if err != nil && (!Stopped(err) || r.p.training == nil || r.opts.Out == "") {
		return err
	}
	r.unsettled = r.settle(r.saving(ctx), exe)
	if err == nil {
		err = orStopped(ctx, r.unsettled)
	}
	return err
}

// keep makes the results that are no single numbers stay on a plugin's devices until
// the last step is done.
func (r *runner) keep(exe executable) {
	remote, ok := exe.(*pjrt.Remote)
	if !ok || r.p.training == nil || r.opts.Shards != "" {
		return
	}
	for _, p := range r.machine.Results {
		remote.Keep = append(remote.Keep, p.Alias >= 0 || p.Global.Rank() > 0)
	}
}

// keepSafe brings what stays on a plugin's devices to the host from time to time, for a
// run whose results are saved: where the plugin fails, that is what is left.
func (r *runner) keepSafe(ctx context.Context, exe executable) error {
	remote, ok := exe.(*pjrt.Remote)
	if !ok || remote.Keep == nil || r.opts.Out == "" {
		return nil
	}
	if r.safeAt.IsZero() {
		r.safeAt = time.Now()
	}
	if time.Since(r.safeAt) < cmp.Or(r.safeEvery, time.Minute) {
		return nil
	}
	if err := remote.Fetch(ctx, r.machine.Out); err != nil {
		return err
	}
	r.safe, r.safeDone, r.safeAt = r.machine.Values(), r.done, time.Now()
	return nil
}

// settle brings what stayed on a plugin's devices to the host, after the step that is
// at work.
func (r *runner) settle(ctx context.Context, exe executable) error {
	remote, ok := exe.(*pjrt.Remote)
	if !ok || remote.Keep == nil {
		return nil
	}
	out, err := remote.Finish(ctx)
	if err != nil {
		return err
	}
	if out != nil {
		r.machine.Adopt(out)
		r.done++
	}
	if r.machine.Out == nil {
		return nil
	}
	return remote.Fetch(ctx, r.machine.Out)
}

func (p *plugin) close() {
	if p.worker != nil {
		p.worker.Close()
	}
}

// cpu is the platform whose plugins make as many devices as they are asked for;
// others have those of the machine.
const cpu = "cpu"

// startDevices starts the plugin at path for a program on n devices.
func startDevices(ctx context.Context, path string, n int) (*pjrt.Worker, error) {
	w, err := pjrt.Start(ctx, path, "", nil)
	if err != nil || w.Info.Platform != cpu || w.Info.Devices == n {
		return w, err
	}
	w.Close()
	return pjrt.Start(ctx, path, "", pjrt.Options{"cpu_device_count": n})
}

// An Engine is something that programs can run on.
type Engine struct {
	Name     string `json:"name"` // as --engine has it
	Path     string `json:"path,omitempty"`
	Version  string `json:"version,omitempty"` // of the interface and of the plugin
	Devices  int    `json:"devices,omitempty"` // of one kind; 0 where there are as many as are asked for
	Kind     string `json:"kind,omitempty"`
	Unusable string `json:"unusable,omitempty"` // why it cannot be used
}

// Engines are the engines of this machine, found in the usual places.
func Engines(ctx context.Context) []Engine {
	out := []Engine{{Name: Goroutines, Version: Version(), Kind: "goroutine"}}
	for _, p := range pjrt.Platforms {
		for i, path := range p.Find() {
			name := p.Name
			if i > 0 {
				name = "pjrt:" + path
			}
			out = append(out, describePlugin(ctx, name, path))
			if ctx.Err() != nil {
				return out
			}
		}
	}
	if python := job.Python(); python != "" {
		e := Engine{Name: JAX, Path: python}
		var err error
		if e.Version, err = job.Version(ctx, python); err != nil {
			e.Unusable = err.Error()
		}
		out = append(out, e)
	}
	return out
}

func describePlugin(ctx context.Context, name, path string) Engine {
	e := Engine{Name: name, Path: path}
	w, err := pjrt.Start(ctx, path, "", nil)
	if err != nil {
		e.Unusable = unusable(err)
		return e
	}
	defer w.Close()
	e.Version = fmt.Sprintf("PJRT %d.%d, %s", w.Info.Major, w.Info.Minor, strings.ReplaceAll(strings.TrimSpace(w.Info.Version), "\n", ", "))
	e.Devices, e.Kind = w.Info.Devices, w.Info.Kind
	if w.Info.Platform == cpu {
		e.Devices = 0
	}
	return e
}

// unusable is why a plugin does not start, in one line.
func unusable(err error) string {
	var e *pjrt.Error
	text := err.Error()
	if errors.As(err, &e) {
		text = e.Message
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}
