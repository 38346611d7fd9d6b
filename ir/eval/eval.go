package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ppc/ir"
	"ppc/ir/verify"
)

// Options says how to evaluate. The zero Options rounds every result to its element
// type.
type Options struct {
	// Float64 keeps every floating-point value in float64 (every complex one in
	// complex128) from beginning to end; results have these types too.
	Float64 bool
	// Float32 does the same with float32 for every type that is wider than it.
	Float32 bool
	// EachTerm rounds every product and every sum of a dot_general or convolution, one after
	// the other, to float32 where results are not wider, as StableHLO's interpreter and XLA do;
	// without it they round once, at the end.
	EachTerm bool
	// Dither makes results round another way.
	Dither Dither
	// Poison makes the floating-point results of ops with the attribute
	// pp.dont_care NaN, so that a use of them is seen in the results.
	Poison bool
	// NaN ends the evaluation with an error at the first op that makes a NaN of
	// operands that have none.
	NaN bool
	// Memory bounds the bytes of the values that are held at one time, 8 for each number:
	// an evaluation that would take more ends with a TooLarge. 0 is 4 GiB.
	Memory int64
	// Context ends the evaluation when it is done; nil never does.
	Context context.Context

	foreign map[string]func(*exec) ([]*tensor, error) // rows for ops and custom calls that the table lacks
}

// A Dither is what is added to a number before it is rounded: a random part of Size times the
// distance of the numbers next to it, up to half of it in either direction. With Size 1 that is
// stochastic rounding, which makes the number what is expected; with less only what is near a tie
// rounds another way. Equal numbers always round alike. The zero Dither rounds to nearest.
type Dither struct {
	Seed uint64
	Size float64
}

// An Error is an error of evaluation, and the op that failed.
type Error struct {
	Func string // the function, without the @
	Op   *ir.Op
	Err  error
}

func (e *Error) Error() string {
	at := ""
	if o := e.Op.Origin; o != nil && o.Pos.Line > 0 {
		at = o.Pos.String() + ": "
	}
	return fmt.Sprintf("%sin %s: %s: %s", at, ir.SymbolText(e.Func), e.Op.Name(), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Run evaluates fn, a function of the global program m, on one argument per
// parameter. With opts.Float64 an argument may have f64 elements where the
// parameter declares another floating-point type.
func Run(m *ir.Module, fn *ir.Func, args []*ir.Literal, opts Options) ([]*ir.Literal, error) {
	out, err := run(m, []*ir.Func{fn}, 1, [][]*ir.Literal{args}, opts)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// RunDevices evaluates fn, a function of the per-device program m, on one process
// per element of args: args[d] are the arguments of device d, whose partition_id is
// d. The results are by device too. If the module has mhlo.num_replicas, the
// devices are that many replicas of the partitions.
func RunDevices(m *ir.Module, fn *ir.Func, args [][]*ir.Literal, opts Options) ([][]*ir.Literal, error) {
	replicas := max(m.Attrs.Int("mhlo.num_replicas"), 1)
	if len(args)%replicas != 0 {
		return nil, fmt.Errorf("%d devices are not a multiple of %d replicas", len(args), replicas)
	}
	return run(m, slices.Repeat([]*ir.Func{fn}, len(args)), replicas, args, opts)
}

// run evaluates fns[d] on args[d], all devices d at once.
func run(m *ir.Module, fns []*ir.Func, replicas int, args [][]*ir.Literal, opts Options) ([][]*ir.Literal, error) {
	if err := verify.Verify(m); err != nil {
		return nil, err
	}
	w := newWorld(m, opts, replicas, len(fns))
	defer w.close()
	in := make([][]*tensor, len(fns))
	for d, fn := range fns {
		var err error
		if in[d], err = w.bind(fn, args[d]); err != nil {
			return nil, err
		}
	}
	results, err := w.start(fns, in)
	if err != nil {
		return nil, err
	}
	out := make([][]*ir.Literal, len(fns))
	for d, xs := range results {
		for _, x := range xs {
			out[d] = append(out[d], x.literal())
		}
	}
	return out, nil
}

// start evaluates fns[d] on in[d], all devices d at once.
func (w *world) start(fns []*ir.Func, in [][]*tensor) (out [][]*tensor, err error) {
	out = make([][]*tensor, len(fns))
	err = w.fork(process{w: w, partitions: w.devices / w.replicas}, w.ranks(), func(p *process, d int) error {
		var err error
		out[d], err = p.call(fns[d], in[d])
		return err
	})
	return out, err
}

// bind checks args against the parameters of fn and makes them values.
func (w *world) bind(fn *ir.Func, args []*ir.Literal) ([]*tensor, error) {
	if fn == nil || fn.Body == nil {
		return nil, errors.New("there is no function to evaluate")
	}
	params := fn.Params()
	if len(args) != len(params) {
		return nil, fmt.Errorf("%s takes %d arguments, not %d", ir.SymbolText(fn.Name), len(params), len(args))
	}
	in := make([]*tensor, len(args))
	for i, l := range args {
		t := params[i].Type.Stored() // of a quantized parameter
		if l != nil && isOpen(params[i]) && l.Type.IsTensor() && slices.EqualFunc(l.Type.Shape, t.Shape, ir.Fits) {
			t = t.WithShape(l.Type.Shape...)
		}
		n, err := w.size(t)
		if err == nil {
			err = w.take(n)
		}
		if err != nil {
			return nil, fmt.Errorf("parameter %d of %s: %w", i, ir.SymbolText(fn.Name), err)
		}
		if l == nil || !l.Type.IsTensor() || !slices.Equal(l.Type.Shape, t.Shape) || l.Type.Elem != t.Elem && l.Type.Elem != w.opts.elem(t.Elem) {
			return nil, fmt.Errorf("argument %d of %s is %s, want %s", i, ir.SymbolText(fn.Name), typeOf(l), t)
		}
		if n := len(l.Data); !l.IsSplat() && n != l.Type.Bytes() {
			return nil, fmt.Errorf("argument %d of %s has %d bytes of data, want %d", i, ir.SymbolText(fn.Name), n, l.Type.Bytes())
		}
		in[i] = fromLiteral(l, w.opts.elem(t.Elem))
	}
	return in, nil
}

func typeOf(l *ir.Literal) *ir.Type {
	if l == nil {
		return nil
	}
	return l.Type
}

// elem is the element type with which values of type t are computed.
func (o Options) elem(t ir.DType) ir.DType {
	switch {
	case o.Float64 && t.IsFloat():
		return ir.F64
	case o.Float64 && t.IsComplex():
		return ir.C128
	case o.Float32 && t == ir.F64:
		return ir.F32
	case o.Float32 && t == ir.C128:
		return ir.C64
	}
	return t
}

// elem is the element type with which p computes values of type t.
func (p *process) elem(t ir.DType) ir.DType {
	o := p.w.opts
	o.Float64 = o.Float64 || p.wide
	return o.elem(t)
}

// A process executes one program: the only one, or that of a device.
type process struct {
	w          *world
	rank       int   // the device
	peers      []int // the devices that run the same code with it, itself among them
	partitions int   // in each replica
	fn         *ir.Func
	depth      int  // of calls
	wide       bool // inside of a reduction, which does not round before its end
}

// A frame holds the values of one activation of a function, by ID.
type frame []*tensor

func (fr frame) of(vs []*ir.Value) []*tensor {
	xs := make([]*tensor, len(vs))
	for i, v := range vs {
		xs[i] = fr[v.ID]
	}
	return xs
}

// maxDepth bounds the depth of calls, which StableHLO wants free of recursion.
const maxDepth = 1000

// call evaluates f in a frame of its own.
func (p *process) call(f *ir.Func, args []*tensor) ([]*tensor, error) {
	if f == nil || f.Body == nil {
		return nil, errors.New("the function called is not defined")
	}
	if p.depth >= maxDepth {
		return nil, fmt.Errorf("calls are nested %d deep", maxDepth)
	}
	if err := p.fits(ir.SymbolText(f.Name), f.Params(), args); err != nil {
		return nil, err
	}
	size := int64(f.NumIDs()) * 8
	defer p.w.used.Add(-size)
	if err := p.w.take(size); err != nil {
		return nil, err
	}
	q := *p
	q.fn, q.depth = f, p.depth+1
	return q.block(make(frame, f.NumIDs()), f.Body, args)
}

// fits checks that xs are values for vs.
func (p *process) fits(what string, vs []*ir.Value, xs []*tensor) error {
	if len(vs) != len(xs) {
		return fmt.Errorf("%s takes %d values, not %d", what, len(vs), len(xs))
	}
	for i, v := range vs {
		if !p.is(xs[i], v.Type) {
			return fmt.Errorf("%s takes %s as value %d, not %s", what, v.Type, i, xs[i])
		}
	}
	return nil
}

// is reports whether x is a value of the declared type t.
func (p *process) is(x *tensor, t *ir.Type) bool {
	if !t.IsTensor() {
		return true
	}
	elem := t.Elem
	if t.Quant != nil {
		elem = t.Quant.Storage
	}
	same := x.elem == p.elem(elem) || p.wide && x.elem == p.w.opts.elem(elem) // a value from outside
	return same && slices.EqualFunc(x.shape, t.Shape, ir.Fits)
}

// block evaluates b on args and returns the operands of its terminator.
func (p *process) block(fr frame, b *ir.Block, args []*tensor) ([]*tensor, error) {
	for i, a := range b.Args {
		fr[a.ID] = args[i]
	}
	var held int64
	defer func() { p.w.used.Add(-held) }()
	dead := p.w.deaths(b)
	for i, op := range b.Ops {
		if op.Kind.Has(ir.Terminator) {
			return fr.of(op.Operands), nil
		}
		n, err := p.w.reserve(op)
		held += n
		if err == nil {
			err = p.op(fr, op)
		}
		if err != nil {
			return nil, p.located(op, err)
		}
		for _, v := range dead[i] {
			fr[v.ID] = nil
			if v.Def != nil {
				held -= p.w.release(v)
			}
		}
	}
	return nil, errors.New("a block has no terminator")
}

// located gives err the place op, unless it has one.
func (p *process) located(op *ir.Op, err error) error {
	var e *Error
	if errors.As(err, &e) || err == context.Cause(p.w.ctx) {
		return err
	}
	return &Error{p.fn.Name, op, err}
}

// op evaluates op and puts its results into fr.
func (p *process) op(fr frame, op *ir.Op) error {
	e := &exec{p, fr, op, fr.of(op.Operands)}
	out, err := e.run()
	if err != nil {
		return err
	}
	if len(out) != len(op.Results) {
		return fmt.Errorf("makes %d values for %d results", len(out), len(op.Results))
	}
	for i, v := range op.Results {
		x := out[i]
		if !p.is(x, v.Type) {
			return fmt.Errorf("makes %s as result %d, which is %s", x, i, v.Type)
		}
		if p.w.opts.Poison && x.f != nil && op.Attrs.Has(ir.KeyDontCare) {
			x = poison(x)
		}
		fr[v.ID] = x
	}
	if p.w.opts.NaN && anyNaN(out) && !anyNaN(e.in) {
		return errors.New("makes NaN of numbers")
	}
	return nil
}

func anyNaN(xs []*tensor) bool {
	return slices.ContainsFunc(xs, func(x *tensor) bool { return x != nil && slices.ContainsFunc(x.f, math.IsNaN) })
}

// An exec is an op about to be evaluated.
type exec struct {
	p  *process
	fr frame
	op *ir.Op
	in []*tensor
}

func (e *exec) run() ([]*tensor, error) {
	e, err := e.concrete()
	if err != nil {
		return nil, err
	}
	if e.isQuantized() {
		return e.quantized()
	}
	return e.row()
}

// row evaluates an op whose operands and results have known sizes, and elements
// that are not quantized.
func (e *exec) row() ([]*tensor, error) {
	r, ok := e.p.w.rows[e.op.Kind]
	name := e.op.Name()
	if e.op.Kind == ir.CustomCall {
		name = e.op.Str("call_target_name")
	}
	if f := e.p.w.opts.foreign[name]; f != nil {
		return f(e)
	}
	switch {
	case r.each != nil:
		out := e.result(0)
		return []*tensor{out}, r.each(e.op, out, e.in)
	case r.one != nil:
		return []*tensor{r.one(e)}, nil
	case ok:
		return r.run(e)
	}
	return nil, errors.New("an op that is not evaluated")
}

// result returns zeros of the type of result i.
func (e *exec) result(i int) *tensor {
	t := e.op.Results[i].Type
	x := newTensor(e.p.elem(t.Elem), t.Shape)
	x.dither = e.p.w.opts.Dither
	return x
}

// region evaluates region i.
func (e *exec) region(i int, args []*tensor) ([]*tensor, error) {
	return e.p.block(e.fr, e.op.Regions[i], args)
}
