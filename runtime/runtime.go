package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"ppc/ir"
	"ppc/ir/verify"
	"ppc/lower/strips"
	"ppc/runtime/kernel"
)

// An Executable is a program ready to run. It never changes after Load, which
// takes no memory for its values: even its constants are made by the first run.
type Executable struct {
	main    *function
	params  []*ir.Value
	results []ir.Result
	devices int
	classes classes
	colls   []*collective
	keeps   int   // how many there are, of each device
	folded  int   // bytes of what folded ops make
	ops     []ran // by step
	blocks  []*block
	unfused bool

	constants []constant
	zeros     map[string]blank // by type: what devices get that nobody sends to
	made      sync.Once        // the constants, and these
	told      func() *told

	spare pool                   // free buffers between runs
	works works                  // of runs that have ended
	slab  slab                   // of which buffers are made
	rolls atomic.Pointer[[]roll] // by device, where the last timeline ends
}

// Load compiles the main function of m. It reports every op that cannot run.
func Load(m *ir.Module, opts ...LoadOption) (*Executable, error) {
	if err := verify.Verify(m); err != nil {
		return nil, err
	}
	return load(m, false, opts)
}

// Check reports what Load would of m, which the verifier has passed. It takes less time
// and memory, since it keeps nothing of what it compiles.
func Check(m *ir.Module) error {
	_, err := load(m, true, nil)
	return err
}

func load(m *ir.Module, checks bool, opts []LoadOption) (*Executable, error) {
	f := m.Main()
	if f == nil || f.Body == nil {
		return nil, errors.New("the module has no function main")
	}
	exe := &Executable{classes: classes{index: make(map[int]int)}}
	for _, opt := range opts {
		opt(exe)
	}
	if !exe.unfused {
		m = strips.Of(m)
		f = m.Main()
	}
	g, err := newGrid(m)
	if err != nil {
		return nil, atFunc(f, err)
	}
	exe.params, exe.results, exe.devices = f.Params(), f.Results, g.size()
	exe.told = sync.OnceValue(exe.tell)
	for i, p := range exe.params {
		if err := kernel.Check(p.Type); err != nil {
			return nil, signatureError(f, fmt.Errorf("parameter %s: %w", paramName(p, i), err))
		}
	}
	for i, r := range exe.results {
		if err := kernel.Check(r.Type); err != nil {
			return nil, signatureError(f, fmt.Errorf("result %d: %w", i, err))
		}
	}
	c := &compiler{exe: exe, m: m, grid: g, rows: rows, funcs: make(map[string]*function), checks: checks, nothing: new(inner)}
	exe.main, err = c.function(f)
	if err != nil {
		return nil, err
	}
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	exe.spare.free = make([][]*buffer, len(exe.classes.sizes))
	return exe, nil
}

// A LoadOption changes how a program is compiled, not what it computes.
type LoadOption func(*Executable)

// Unfused computes every op by itself, in the order of the program.
func Unfused() LoadOption { return func(exe *Executable) { exe.unfused = true } }

// signatureError is err, about a parameter or result of f, with its place.
func signatureError(f *ir.Func, err error) error {
	if p := f.Origin.Place(); p.Line > 0 {
		return fmt.Errorf("%s: in %s: %w", p, ir.SymbolText(f.Name), err)
	}
	return fmt.Errorf("in %s: %w", ir.SymbolText(f.Name), err)
}

// Devices is the number of devices that the program runs on.
func (exe *Executable) Devices() int { return exe.devices }

func paramName(p *ir.Value, i int) string {
	for _, name := range []string{p.Attrs.Str(ir.KeyName), p.Name} {
		if name != "" {
			return fmt.Sprintf("%d (%s)", i, name)
		}
	}
	return fmt.Sprint(i)
}

// Run executes the program with args[device][parameter] and returns
// results[device][result]. The arguments are not changed, and may be shared
// between devices and runs; the results share memory with each other and with
// the arguments where they are the same. Memory that a run no longer needs is
// kept for the next one.
//
// The first failure stops every device; the error is then a [Fault], a
// [Deadlock], or the context's. All goroutines have ended when Run returns.
func (exe *Executable) Run(ctx context.Context, args [][]*ir.Literal, opts ...Option) ([][]*ir.Literal, error) {
	if err := exe.checkArgs(args); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	exe.made.Do(func() {
		f := &folder{made: make(map[*ir.Value]kernel.Mem)}
		for _, c := range exe.constants {
			c.make(f)
		}
		for _, z := range exe.zeros {
			z.b.mem = kernel.Zeros(z.t)
		}
	})
	r := newRun(exe, opts)
	inputs := exe.bind(args)
	results, err := r.do(ctx, inputs)
	if err != nil {
		return nil, err
	}
	out := make([][]*ir.Literal, len(results))
	for d, bs := range results {
		out[d] = make([]*ir.Literal, len(bs))
		for i, b := range bs {
			if b.pinned && !within(b.mem, inputs[d]) { // a constant stays the program's own
				b = &buffer{mem: slices.Clone(b.mem)}
			}
			out[d][i] = kernel.ToLiteral(exe.results[i].Type, b.mem)
		}
	}
	return out, nil
}

// within reports whether m is a part of one of bs.
func within(m kernel.Mem, bs []*buffer) bool {
	return slices.ContainsFunc(bs, func(b *buffer) bool { return kernel.Overlap(m, b.mem) })
}

func (exe *Executable) checkArgs(args [][]*ir.Literal) error {
	if len(args) != exe.devices {
		return fmt.Errorf("arguments for %s, the program runs on %d", ir.Counted(len(args), "device"), exe.devices)
	}
	for d, list := range args {
		if len(list) != len(exe.params) {
			return fmt.Errorf("device %d: %s, the program takes %d", d, ir.Counted(len(list), "argument"), len(exe.params))
		}
		for i, l := range list {
			if err := checkArg(l, exe.params[i].Type); err != nil {
				return fmt.Errorf("device %d: argument %s %w", d, paramName(exe.params[i], i), err)
			}
		}
	}
	return nil
}

func checkArg(l *ir.Literal, want *ir.Type) error {
	switch {
	case l == nil:
		return errors.New("is missing")
	case l.Type == nil || !l.Type.IsTensor() || l.Type.Elem != want.Elem || !slices.Equal(l.Type.Shape, want.Shape):
		return fmt.Errorf("is %s, want %s", l.Type, want)
	case len(l.Data) != want.Bytes() && len(l.Data) != want.Elem.Size():
		return fmt.Errorf("has %d bytes, %s takes %d", len(l.Data), want, want.Bytes())
	}
	return nil
}

// bind makes buffers of args; an argument that several devices share is one.
func (exe *Executable) bind(args [][]*ir.Literal) [][]*buffer {
	known := make(map[*ir.Literal]*buffer)
	inputs := make([][]*buffer, len(args))
	for d, list := range args {
		inputs[d] = make([]*buffer, len(list))
		for i, l := range list {
			b := known[l]
			if b == nil {
				b = pinned(kernel.FromLiteral(l))
				known[l] = b
			}
			inputs[d][i] = b
		}
	}
	return inputs
}

// An Option changes how one Run goes, not what it computes.
type Option func(*options)

type options struct {
	workers       int
	shuffle       bool
	seed          uint64
	poisonBuffers bool
	poisonBubbles bool
	kills         []kill
	trace         *Trace
	profile       *Profile
	timeline      *Timeline
	infeed        [][]*ir.Literal
	probe         func(id string, value *ir.Literal)
}

type kill struct{ device, n int }

// Workers bounds the number of devices that compute at the same time; by
// default there are as many as the process may use cores. With one, the order
// of all events is the same every time.
func Workers(n int) Option { return func(o *options) { o.workers = max(n, 1) } }

// Shuffle lets devices go on in an order that the seed decides, in place of
// that the scheduler prefers.
func Shuffle(seed uint64) Option { return func(o *options) { o.shuffle, o.seed = true, seed } }

// PoisonBuffers fills every buffer with NaN (integers with -1) before an op
// writes its result there: an op that leaves something out becomes visible.
func PoisonBuffers() Option { return func(o *options) { o.poisonBuffers = true } }

// PoisonBubbles makes NaN of the results of ops that are marked pp.dont_care:
// if one reaches a result of the program, it becomes visible.
func PoisonBubbles() Option { return func(o *options) { o.poisonBubbles = true } }

// Kill makes a device fail at its n-th collective, counted from 1.
func Kill(device, n int) Option {
	return func(o *options) { o.kills = append(o.kills, kill{device, n}) }
}

// A Trace is what a run did.
type Trace struct {
	// Collectives is what became of each collective of the program, in its order.
	Collectives []Traced
	// PeakBytes is the most bytes that buffers held at one moment, on all
	// devices together: results and what is computed on the way, but not
	// arguments and constants. What devices share counts once. How far devices
	// run apart decides what coincides; with one worker that is always the same.
	PeakBytes int
}

// A Traced is a collective of the program that ran.
type Traced struct {
	Op *ir.Op
	// Times is, by device, how often it took part.
	Times []int
	// Meets is, by device, how many devices exchange something with it, itself
	// among them; of a permute, itself and the one that it gets from.
	Meets []int
}

// Count is how often collectives of kind k were executed, summed over devices.
func (t *Trace) Count(k ir.Kind) int {
	n := 0
	for _, c := range t.Collectives {
		if c.Op.Kind == k {
			for _, times := range c.Times {
				n += times
			}
		}
	}
	return n
}

// WithTrace fills t when the run ends, failed or not.
func WithTrace(t *Trace) Option { return func(o *options) { o.trace = t } }
