package driver

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/passes"
)

// A tolerance is how far results of a program may be from the reference: the
// largest difference of two elements, divided by the largest magnitude in the
// reference. It follows from the least precise floating-point type of the
// program.
type tolerance struct {
	dtype ir.DType
	max   float64
}

// tolerances holds a row per floating-point type, the least precise first. A
// bound is some hundred times the type's rounding error (2^-8, 2^-11, 2^-24,
// 2^-53), which is what deep sums of a few thousand terms lose.
var tolerances = [...]tolerance{
	{ir.BF16, 5e-2},
	{ir.F16, 1e-2},
	{ir.F32, 1e-5},
	{ir.F64, 1e-12},
}

// toleranceOf looks at every value of m; without floating-point values,
// results must be equal.
func toleranceOf(m *ir.Module) tolerance {
	found := make(map[ir.DType]bool)
	see := func(vs []*ir.Value) {
		for _, v := range vs {
			if v.Type.IsTensor() {
				found[v.Type.Elem.Part()] = true
			}
		}
	}
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		see(f.Params())
		f.Body.Walk(func(op *ir.Op) {
			see(op.Results)
			if d, ok := op.Attrs.Get("config").(ir.Dict); ok { // of a pipeline, which has yet to round its weights
				found[ir.DTypeByName(ir.Attrs(d).Str("gather_dtype"))] = true
			}
		})
	}
	for _, t := range tolerances {
		if found[t.dtype] {
			return t
		}
	}
	return tolerance{}
}

// A Comparison is one output held against the reference.
type Comparison struct {
	Name      string
	MaxAbs    float64 // the largest difference
	MaxRel    float64 // divided by the largest magnitude in the reference
	Tolerance float64 // of MaxRel
	OK        bool
	First     string // the first element beyond the tolerance, with both numbers
}

// A Mismatch is outputs beyond their tolerance, and pipelines in which
// microbatches go through other layers than they should.
type Mismatch struct {
	Checks []*Comparison
	Layers []string // what is wrong in a pipeline
}

func (e *Mismatch) Error() string {
	bad := slices.Clone(e.Layers)
	for _, c := range e.Checks {
		if !c.OK {
			bad = append(bad, fmt.Sprintf("%s differs from the reference by %.3g of its largest magnitude, more than %.3g; first at %s", c.Name, c.MaxRel, c.Tolerance, c.First))
		}
	}
	return strings.Join(bad, "\n")
}

// loose is how much further from the reference results may be than outputs, by
// kind. A gradient is a sum over all that its parameter touches, of numbers
// that partly cancel, and norms are made of gradients. An update divides by
// what it has seen of a gradient: where that is small, its rounding is not.
var loose = map[string]float64{"gradient": 10, "metric": 10, "param": 100, "state": 100}

func (t tolerance) of(v *named) float64 {
	if f := loose[v.kind]; f > 0 {
		return f * t.max
	}
	return t.max
}

// check computes the results in float64, without a pipeline, on the reference
// evaluator and compares: those of the last run, and the scalars of every step.
func (r *runner) check(ctx context.Context, values []*named) ([]*Comparison, error) {
	last, history, err := r.reference(ctx, r.steps, false)
	if err != nil {
		return nil, orStopped(ctx, err)
	}
	want := make(map[string]*ir.Literal)
	for _, v := range last {
		want[v.name] = v.literal
	}
	var checks []*Comparison
	failed := false
	for _, v := range values {
		c := compare(v.name, v.literal, want[v.name], r.tolerance.of(v))
		for i := range r.history {
			c.merge(fmt.Sprintf("step %d: ", r.first+i+1), scalarNamed(r.history[i], v.name), scalarNamed(history[i], v.name))
		}
		checks = append(checks, c)
		failed = failed || !c.OK
	}
	stray, err := r.strayLayers(ctx)
	if err != nil {
		return nil, orStopped(ctx, err)
	}
	if failed || len(stray) > 0 {
		return checks, &Mismatch{checks, stray}
	}
	return checks, nil
}

// strayLayers looks at the program as it was read.
func (r *runner) strayLayers(ctx context.Context) ([]string, error) {
	if r.before != nil {
		return strayLayers(ctx, r.before)
	}
	p, err := r.src.load(ctx, r.reading())
	if err != nil {
		return nil, err
	}
	return strayLayers(ctx, p.m)
}

func scalarNamed(vs []*named, name string) *ir.Literal {
	for _, v := range vs {
		if v.name == name {
			return v.literal
		}
	}
	return nil
}

// merge takes the same value of one step more into account.
func (c *Comparison) merge(where string, got, want *ir.Literal) {
	if got == nil {
		return
	}
	step := compare(c.Name, got, want, c.Tolerance)
	c.MaxAbs, c.MaxRel = max(c.MaxAbs, step.MaxAbs), max(c.MaxRel, step.MaxRel)
	if !step.OK && (c.OK || !strings.HasPrefix(c.First, "step ")) {
		c.OK, c.First = false, where+step.First
	}
}

// reference takes steps on the reference evaluator and returns the results of
// the last and the scalars of each. With trap it ends at the first op that
// makes a NaN.
func (r *runner) reference(ctx context.Context, steps int, trap bool) ([]*named, [][]*named, error) {
	m := r.before
	if m == nil {
		opts := r.reading()
		opts.Sequential, opts.Float64 = true, true
		p, err := r.src.load(ctx, opts)
		if err != nil {
			return nil, nil, err
		}
		m = p.m
	}
	rep := moduleReproducer(m, "", "check", "ppc run --check %s")
	if m.Attrs.Has("pp.gradient") {
		_, err := guard(ctx, "compiling the reference", rep, func() (any, error) {
			return nil, passBug(passes.Run(m, passes.Config{Context: ctx, After: "optimizer"}), "")
		})
		if err != nil {
			return nil, nil, err
		}
	}
	mc := newMachine(m, r.p.named)
	eo := eval.Options{Float64: true, Context: ctx, NaN: trap}
	mc.exec = func(_ context.Context, args [][]*ir.Literal) ([][]*ir.Literal, error) {
		if !mc.global {
			return eval.RunDevices(m, m.Main(), args, eo)
		}
		out, err := eval.Run(m, m.Main(), args[0], eo)
		return [][]*ir.Literal{out}, err
	}
	var history [][]*named
	_, err := guard(ctx, "evaluating the reference", rep, func() (any, error) {
		if err := mc.bind(r.args); err != nil {
			return nil, err
		}
		for i := range steps {
			if err := r.feed.fill(mc, r.first+i); err != nil {
				return nil, err
			}
			if err := mc.run(ctx); err != nil {
				return nil, err
			}
			history = append(history, mc.scalars())
		}
		return nil, nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reference: %w", err)
	}
	return mc.values(), history, nil
}

// compare holds got against want, element by element. NaN equals NaN, and an
// infinity itself.
func compare(name string, got, want *ir.Literal, tol float64) *Comparison {
	c := &Comparison{Name: name, Tolerance: tol, OK: true}
	if !got.Type.Elem.IsFloat() && !got.Type.Elem.IsComplex() {
		c.Tolerance = 0
	}
	n := got.Type.NumElements()
	scale := 0.0
	for i := range n {
		if v := math.Abs(number(want, i)); v > scale && !math.IsInf(v, 0) {
			scale = v
		}
	}
	for i := range n {
		d := difference(got, want, i)
		c.MaxAbs = max(c.MaxAbs, d)
		if c.OK && !(d <= c.Tolerance*scale) {
			c.OK = false
			c.First = fmt.Sprintf("%s: %s, the reference has %s", elementName(name, got.Type.Shape, i), elementText(got, i), elementText(want, i))
		}
	}
	if c.MaxAbs > 0 {
		c.MaxRel = c.MaxAbs / scale
	}
	return c
}

func difference(got, want *ir.Literal, i int) float64 {
	if got.Type.Elem.IsComplex() {
		a, b := got.Complex(i), want.Complex(i)
		return max(distance(real(a), real(b)), distance(imag(a), imag(b)))
	}
	if !got.Type.Elem.IsFloat() {
		if got.Int(i) != want.Int(i) {
			return math.Abs(got.Float(i)-want.Float(i)) + math.SmallestNonzeroFloat64
		}
		return 0
	}
	return distance(got.Float(i), want.Float(i))
}

// distance is |a-b|: none between equals, NaN and infinities among them, and
// infinite from any of these to another number.
func distance(a, b float64) float64 {
	switch {
	case a == b || math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a) || math.IsNaN(b):
		return math.Inf(1)
	}
	return math.Abs(a - b)
}

// elementName is the name of element i: logits[3, 0].
func elementName(name string, shape []int, i int) string {
	if len(shape) == 0 {
		return name
	}
	index := make([]string, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		index[d] = fmt.Sprint(i % shape[d])
		i /= shape[d]
	}
	return name + "[" + strings.Join(index, ", ") + "]"
}
