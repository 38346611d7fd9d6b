package eval

import (
	"context"
	"errors"
	"math"
	"slices"

	"ppc/ir"
)

// A body is a region of scalars that is run over and over: a reducer or a
// comparator. Where all of its ops are elementwise it works on many elements
// at once: its values are then tensors of width elements, made once.
type body struct {
	p     *process
	fr    frame
	block *ir.Block
	width int
	args  []*tensor // to be filled by the caller
	steps []step    // of a region of elementwise ops; nil otherwise
	out   []*tensor // the results of such a region
	runs  int
}

// A step is one elementwise op of a body.
type step struct {
	each each
	op   *ir.Op
	out  *tensor
	in   []*tensor
}

// maxWidth keeps the values of a body in the cache.
const maxWidth = 1024

// body prepares region 0 of e for n elements.
func (e *exec) body(n int) (*body, error) { return e.bodyOf(e.op.Regions[0], n) }

// bodyOf prepares a region of e for n elements.
func (e *exec) bodyOf(region *ir.Block, n int) (*body, error) {
	b := &body{p: e.p, fr: e.fr, block: region, width: max(1, min(n, maxWidth))}
	steps := e.p.w.scalar(b.block)
	if !steps {
		b.width = 1
	}
	for _, a := range b.block.Args {
		x := newTensor(e.p.elem(a.Type.Elem), []int{b.width})
		if !steps {
			x = x.reshaped(nil)
		}
		b.args = append(b.args, x)
		b.fr[a.ID] = x
	}
	if steps {
		return b, b.prepare()
	}
	return b, nil
}

// scalar reports whether b is a row of elementwise ops and constants, all on scalars.
func (w *world) scalar(b *ir.Block) bool {
	for _, op := range b.Ops {
		if w.rows[op.Kind].each == nil && op.Kind != ir.Constant && !op.Kind.Has(ir.Terminator) {
			return false
		}
		for _, v := range op.Results {
			if !v.Type.IsTensor() || v.Type.Rank() > 0 {
				return false
			}
		}
	}
	return true
}

// prepare makes the steps. A value of the region may be a scalar from outside
// or a constant: elementwise ops take one element for any number.
func (b *body) prepare() error {
	b.steps = []step{}
	for _, op := range b.block.Ops {
		r := b.p.w.rows[op.Kind]
		switch {
		case op.Kind.Has(ir.Terminator):
			b.out = b.fr.of(op.Operands)
			return nil
		case r.each == nil:
			if err := b.p.op(b.fr, op); err != nil {
				return b.p.located(op, err)
			}
			continue
		}
		v := op.Results[0]
		if _, err := b.p.w.size(v.Type); err != nil {
			return b.p.located(op, err)
		}
		s := step{r.each, op, newTensor(b.p.elem(v.Type.Elem), []int{b.width}), b.fr.of(op.Operands)}
		b.fr[v.ID] = s.out
		b.steps = append(b.steps, s)
	}
	return nil
}

// run evaluates the region on b.args and returns its results. They are valid until
// the next run; a slice of one element is a splat.
func (b *body) run() ([]*tensor, error) {
	if b.steps == nil {
		return b.p.block(b.fr, b.block, b.args)
	}
	if b.runs++; b.runs%1024 == 0 && b.p.w.ctx.Err() != nil {
		return nil, context.Cause(b.p.w.ctx)
	}
	for _, s := range b.steps {
		if err := s.each(s.op, s.out, s.in); err != nil {
			return nil, b.p.located(s.op, err)
		}
	}
	return b.out, nil
}

// load sets argument i to the elements of x at the given places.
func (b *body) load(i int, x *tensor, at []int) {
	switch a := b.args[i]; {
	case a.f != nil:
		loadFrom(a.f, x.f, at)
	case a.i != nil:
		loadFrom(a.i, x.i, at)
	case a.c != nil:
		loadFrom(a.c, x.c, at)
	}
}

func loadFrom[T any](dst, src []T, at []int) {
	for k, j := range at {
		dst[k] = src[j]
	}
}

// loadRange sets argument i to the elements lo:hi of x.
func (b *body) loadRange(i int, x *tensor, lo, hi int) {
	a := b.args[i]
	copy(a.f, x.f[min(lo, len(x.f)):min(hi, len(x.f))])
	copy(a.i, x.i[min(lo, len(x.i)):min(hi, len(x.i))])
	copy(a.c, x.c[min(lo, len(x.c)):min(hi, len(x.c))])
}

// load sets the elements of x to those of y.
func (x *tensor) load(y *tensor) {
	copy(x.f, y.f)
	copy(x.i, y.i)
	copy(x.c, y.c)
}

// storeRange sets the elements lo:hi of x to y.
func storeRange(x *tensor, lo, hi int, y *tensor) {
	for k := lo; k < hi; k++ {
		x.set(k, y, (k-lo)&indexMask(y))
	}
}

// reduce: every result element is the initial value, combined with the
// elements along the reduced dimensions one after the other, in index order.
// The specification leaves the order open, so no rounding within it is more
// right than another: the result is rounded once.
func reduce(e *exec) ([]*tensor, error) {
	if r := e.op.CombinesTensors(); r != nil {
		return nil, errors.New(r.Msg)
	}
	n := len(e.in) / 2
	xs, inits := e.in[:n], e.in[n:]
	kept := others(len(xs[0].shape), e.op.Ints("dimensions"))
	reduced := others(len(xs[0].shape), kept)
	place := func(ds []int) []int {
		return offsets(pick(xs[0].shape, ds), lattice{0, pick(ir.Strides(xs[0].shape), ds)})
	}
	wide := e.unrounded()
	out := wide.accumulators(inits)
	b, err := wide.body(out[0].len())
	if err != nil {
		return nil, err
	}
	outer, inner := place(kept), place(reduced)
	if f := b.fold(); f != nil && len(inner) > 0 {
		for k, o := range outer {
			if k%1024 == 0 && e.p.w.ctx.Err() != nil {
				return nil, context.Cause(e.p.w.ctx)
			}
			out[0].f[k] = f(out[0].f[k], xs[0].f[o:], inner)
		}
		inner = nil
	}
	at := make([]int, b.width)
	for lo := 0; lo < len(outer); lo += b.width {
		hi := min(lo+b.width, len(outer))
		for i, x := range out {
			b.loadRange(i, x, lo, hi)
		}
		for _, o := range inner {
			for k := lo; k < hi; k++ {
				at[k-lo] = outer[k] + o
			}
			for i, x := range xs {
				b.load(n+i, x, at[:hi-lo])
			}
			if err := b.feed(); err != nil {
				return nil, err
			}
		}
		for i, x := range out {
			storeRange(x, lo, hi, b.args[i])
		}
	}
	for i, x := range out {
		x.elem = e.p.elem(e.op.Results[i].Type.Elem)
		x.round()
	}
	return out, nil
}

// folds combine a number with the elements of x at the given places, one after the other, by the
// functions that most reducers apply.
var folds = map[ir.Kind]func(v float64, x []float64, at []int) float64{
	ir.Add:      sumAt,
	ir.Multiply: foldBy(multiply.f),
	ir.Maximum:  foldBy(maximum.f),
	ir.Minimum:  foldBy(minimum.f),
}

// fold is what b does where that is one of the folds, of float64 and with the
// accumulator first, so that nothing is rounded; else nil.
func (b *body) fold() func(v float64, x []float64, at []int) float64 {
	if len(b.steps) != 1 || len(b.args) != 2 || len(b.out) != 1 {
		return nil
	}
	s := &b.steps[0]
	if s.out.elem != ir.F64 || b.out[0] != s.out || len(s.in) != 2 || s.in[0] != b.args[0] || s.in[1] != b.args[1] {
		return nil
	}
	return folds[s.op.Kind]
}

func foldBy(f func(x, y float64) float64) func(v float64, x []float64, at []int) float64 {
	return func(v float64, x []float64, at []int) float64 {
		for _, k := range at {
			v = f(v, x[k])
		}
		return v
	}
}

// sumAt adds with what each addition loses (T. Ogita, S. Rump, S. Oishi, "Accurate sum and dot
// product", SIAM J. Sci. Comput. 26, 2005): the sum is off by two roundings, however many terms it has, unless
// they cancel to nothing.
func sumAt(v float64, x []float64, at []int) float64 {
	all := 0.0
	for _, k := range at {
		var lost float64
		v, lost = twoSum(v, x[k])
		all += lost
	}
	return withLost(v, all)
}

// twoSum is x + y, rounded, and what rounding took away.
func twoSum(x, y float64) (sum, lost float64) {
	sum = x + y
	z := sum - x
	return sum, x - (sum - z) + (y - z)
}

// withLost is a sum and what its additions lost, which is a number where the sum is.
func withLost(sum, lost float64) float64 {
	if math.IsNaN(lost) || math.IsInf(sum, 0) {
		return sum
	}
	return sum + lost
}

// unrounded returns e on a process that keeps floating-point values as wide as
// they get.
func (e *exec) unrounded() *exec {
	p := *e.p
	p.wide = true
	return &exec{&p, e.fr, e.op, e.in}
}

// accumulators are the results of e filled with initial values.
func (e *exec) accumulators(inits []*tensor) []*tensor {
	out := make([]*tensor, len(inits))
	for i, x := range inits {
		out[i] = e.result(i)
		out[i].fill(x, 0)
	}
	return out
}

// accumulator returns a copy of x that result i can grow in: a region may
// combine in a wider type than x has.
func (e *exec) accumulator(x *tensor, i int) *tensor {
	y := x.clone()
	y.elem = e.p.elem(e.op.Results[i].Type.Elem)
	return y
}

// into runs the region and stores its results as elements lo:hi of out.
func (b *body) into(out []*tensor, lo, hi int) error {
	ys, err := b.run()
	for i, y := range ys {
		storeRange(out[i], lo, hi, y)
	}
	return err
}

// feed runs the region and makes its results its first arguments.
func (b *body) feed() error {
	ys, err := b.run()
	if slices.ContainsFunc(ys, func(y *tensor) bool { return slices.Contains(b.args, y) }) {
		ys = slices.Clone(ys) // an argument is not overwritten before it is read
		for i, y := range ys {
			ys[i] = y.clone()
		}
	}
	for i, y := range ys {
		if y.len() == 1 {
			b.args[i].fill(y, 0)
		} else {
			b.args[i].load(y)
		}
	}
	return err
}

// combine combines every element of sum with that of x by the region, for reducing
// collectives.
func (b *body) combine(sum, x *tensor) error {
	for lo := 0; lo < sum.len(); lo += b.width {
		hi := min(lo+b.width, sum.len())
		b.loadRange(0, sum, lo, hi)
		b.loadRange(1, x, lo, hi)
		if err := b.into([]*tensor{sum}, lo, hi); err != nil {
			return err
		}
	}
	return nil
}
