package kernel

import (
	"errors"
	"fmt"
	"slices"

	"ppc/ir"
)

// A lambda is a region of scalars made executable: a list of Funcs over
// registers. Reductions, sorts and scatters run it once per element, where
// their region is not a single op.
type lambda struct {
	regs    []int // bytes of each register
	args    []int // registers of the arguments
	outer   []int // registers of the values captured from outside
	results []int
	consts  []constant
	ops     []lambdaOp
}

type constant struct {
	reg   int
	value Mem
}

type lambdaOp struct {
	f        Func
	dst, src []int
}

// newLambda compiles region b of an op that captures the given values, and
// builds the ops in it by sub.
func newLambda(b *ir.Block, captures []*ir.Value, sub builder) (*lambda, error) {
	l, regs := new(lambda), make(map[*ir.Value]int)
	define := func(v *ir.Value) int {
		regs[v] = len(l.regs)
		l.regs = append(l.regs, v.Type.Bytes())
		return regs[v]
	}
	for _, a := range b.Args {
		l.args = append(l.args, define(a))
	}
	for _, v := range captures {
		l.outer = append(l.outer, define(v))
	}
	for _, op := range b.Ops {
		switch {
		case op.Kind.Has(ir.Terminator):
			for _, v := range op.Operands {
				l.results = append(l.results, regs[v])
			}
		case op.Kind == ir.Constant:
			l.consts = append(l.consts, constant{define(op.Result()), FromLiteral(op.Literal("value"))})
		default:
			f, err := sub(op)
			if err != nil {
				return nil, fmt.Errorf("in the region: %w", err)
			}
			o := lambdaOp{f: f}
			for _, v := range append(op.Operands, op.Captures()...) {
				o.src = append(o.src, regs[v])
			}
			for _, v := range op.Results {
				o.dst = append(o.dst, define(v))
			}
			l.ops = append(l.ops, o)
		}
	}
	return l, nil
}

// A call is a lambda with registers of its own, ready to run.
type call struct {
	regs []Mem
	ops  []callOp
	in   []Mem // the arguments' registers
	out  []Mem // the results' registers
}

type callOp struct {
	f        Func
	dst, src []Mem
}

// call returns registers for l, in which the captured values are those given.
func (l *lambda) call(captured []Mem) *call {
	c := &call{regs: make([]Mem, len(l.regs))}
	for i, n := range l.regs {
		c.regs[i] = NewMem(n)
	}
	for i, r := range l.outer {
		c.regs[r] = captured[i]
	}
	for _, k := range l.consts {
		c.regs[k.reg] = k.value
	}
	for _, o := range l.ops {
		c.ops = append(c.ops, callOp{o.f, c.pick(o.dst), c.pick(o.src)})
	}
	c.in, c.out = c.pick(l.args), c.pick(l.results)
	return c
}

func (c *call) pick(regs []int) []Mem {
	ms := make([]Mem, len(regs))
	for i, r := range regs {
		ms[i] = c.regs[r]
	}
	return ms
}

// run computes c.out from what c.in holds.
func (c *call) run(w *Work) {
	for i := range c.ops {
		o := &c.ops[i]
		o.f(w, o.dst, o.src)
	}
}

// A combiner folds n values into n accumulators: what the region of a
// reduction says.
type combiner struct {
	kind   ir.Kind // the region is this op on accumulator and element; or Invalid
	second bool    // the region returns the element
	lambda *lambda
	n      int
	sizes  []int // bytes of an element of each accumulator
	elem   ir.DType
}

// newCombiner reads the last region of op, which folds n values at a time.
func newCombiner(op *ir.Op, n int, sub builder) (*combiner, error) {
	if r := op.CombinesTensors(); r != nil {
		return nil, errors.New(r.Msg)
	}
	b := op.Regions[len(op.Regions)-1]
	l, err := newLambda(b, op.Captures(), sub)
	if err != nil {
		return nil, err
	}
	c := &combiner{lambda: l, n: n, elem: b.Args[0].Type.Elem}
	for _, a := range b.Args[:n] {
		c.sizes = append(c.sizes, a.Type.Elem.Size())
	}
	if n > 1 {
		return c, nil
	}
	c.second = len(b.Ops) == 1 && b.Ops[0].Operands[0] == b.Args[1]
	if k, ok := Single(b); ok {
		c.kind = k
	}
	return c, nil
}

// promoted makes f, the Func of op, take operands of other types than those
// that the last region combines: they are converted first. at[k] is the
// region's argument that operand k becomes.
func promoted(op *ir.Op, f Func, at []int) Func {
	args := op.Regions[len(op.Regions)-1].Args
	casts := make([]Func, len(at))
	wide := make([]int, len(at))
	needed := false
	for k, i := range at {
		if i < 0 {
			continue
		}
		from, to := op.Operands[k].Type, args[i].Type.Elem
		if from.Elem != to {
			casts[k], wide[k], needed = converter(from.Elem, to), from.NumElements()*to.Size(), true
		}
	}
	if !needed {
		return f
	}
	return func(w *Work, dst, src []Mem) {
		depth := w.depth
		src = slices.Clone(src)
		for k, cast := range casts {
			if cast != nil {
				t := w.temp(wide[k])
				w.apply(cast, t, src[k])
				src[k] = t
			}
		}
		f(w, dst, src)
		w.depth = depth
	}
}

// reductionArgs are the arguments that n inputs and n initial values become.
func reductionArgs(n int) []int {
	at := make([]int, 2*n)
	for i := range n {
		at[i], at[n+i] = n+i, i
	}
	return at
}

// A folder folds each element of src into the element of acc at its place.
type folder func(w *Work, acc, src []Mem)

// folder returns the folder for one run of an op that captured the given values.
func (c *combiner) folder(captured []Mem) folder {
	switch {
	case c.kind != ir.Invalid:
		f := binaries[c.kind].forType(c.elem, c.elem)
		return func(w *Work, acc, src []Mem) { w.Fold(f, acc[0], src[0]) }
	case c.second:
		return func(_ *Work, acc, src []Mem) { copy(acc[0], src[0]) }
	}
	call := c.lambda.call(captured)
	return func(w *Work, acc, src []Mem) {
		for e := range len(acc[0]) / c.sizes[0] {
			for i, size := range c.sizes {
				copy(call.in[i], acc[i][e*size:(e+1)*size])
				copy(call.in[c.n+i], src[i][e*size:(e+1)*size])
			}
			call.run(w)
			for i, size := range c.sizes {
				copy(acc[i][e*size:(e+1)*size], call.out[i])
			}
		}
	}
}

// Single reports whether region b is one op on its two arguments, and which: one
// that folds full arrays of accumulators and elements.
func Single(b *ir.Block) (ir.Kind, bool) {
	if len(b.Ops) != 2 || len(b.Args) != 2 {
		return 0, false
	}
	op, ret := b.Ops[0], b.Ops[1]
	t := b.Args[0].Type.Elem
	if binaries[op.Kind].forType(t, t) == nil || len(ret.Operands) != 1 || ret.Operands[0].Def != op {
		return 0, false
	}
	x, y := op.Operands[0], op.Operands[1]
	inOrder := x == b.Args[0] && y == b.Args[1]
	turned := x == b.Args[1] && y == b.Args[0] && op.Kind.Has(ir.Commutative)
	return op.Kind, inOrder || turned
}

// Combiner returns the Func that folds src[1] into src[0], element by element,
// as region b says; its result may be src[0].
func Combiner(b *ir.Block) (Func, error) {
	t := b.Args[0].Type.Elem
	if k, ok := Single(b); ok {
		return binaries[k].forType(t, t), nil
	}
	l, err := newLambda(b, nil, Build)
	if err != nil {
		return nil, err
	}
	size := t.Size()
	return func(w *Work, dst, src []Mem) {
		c := l.call(nil)
		for at := 0; at < len(dst[0]); at += size {
			copy(c.in[0], src[0][at:at+size])
			copy(c.in[1], src[1][at:at+size])
			c.run(w)
			copy(dst[0][at:at+size], c.out[0])
		}
	}, nil
}
