package driver

import (
	"context"
	"fmt"
	"math"
	"strings"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/lang"
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
		f.Body.Walk(func(op *ir.Op) { see(op.Results) })
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

// A Mismatch is outputs beyond their tolerance.
type Mismatch struct{ Checks []*Comparison }

func (e *Mismatch) Error() string {
	var bad []string
	for _, c := range e.Checks {
		if !c.OK {
			bad = append(bad, fmt.Sprintf("%s differs from the reference by %.3g of its largest magnitude, more than %.3g; first at %s", c.Name, c.MaxRel, c.Tolerance, c.First))
		}
	}
	return strings.Join(bad, "\n")
}

// check computes the outputs in float64, without a pipeline, on the reference
// evaluator and compares.
func (r *runner) check(ctx context.Context, outputs []*Output) ([]*Comparison, error) {
	want, err := r.reference(ctx)
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	checks, failed := make([]*Comparison, len(outputs)), false
	for i, o := range outputs {
		checks[i] = compare(o.Name, o.literal, want[o.Name], r.tolerance.max)
		failed = failed || !checks[i].OK
	}
	if failed {
		return checks, &Mismatch{checks}
	}
	return checks, nil
}

// reference returns the outputs by name.
func (r *runner) reference(ctx context.Context) (map[string]*ir.Literal, error) {
	m := r.before
	if m == nil {
		p, err := r.src.load(lang.Options{Sequential: true, Float64: true})
		if err != nil {
			return nil, err
		}
		m = p.m
	}
	params, results := ports(m, r.p.named)
	var values []*ir.Literal
	rep := moduleReproducer(m, "", "check", "ppc run --check %s")
	err := guard("evaluating the reference", rep, func() (err error) {
		values, err = r.evaluate(ctx, m, params, results)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	byName := make(map[string]*ir.Literal)
	for i, p := range results {
		byName[p.name] = values[i]
	}
	return byName, nil
}

func (r *runner) evaluate(ctx context.Context, m *ir.Module, params, results []*port) ([]*ir.Literal, error) {
	opts := eval.Options{Float64: true, Context: ctx}
	if m.Form.Has(ir.Local) {
		args, err := r.args.bind(params, numDevices(m))
		if err != nil {
			return nil, err
		}
		out, err := eval.RunDevices(m, m.Main(), args, opts)
		if err != nil {
			return nil, err
		}
		return joinWide(results, out), nil
	}
	args := make([]*ir.Literal, len(params))
	for i, p := range params {
		whole, err := r.args.whole(p)
		if err != nil {
			return nil, err
		}
		// The reference may be typed wider than the program.
		if whole, err = convert(whole, p.global.Elem); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		args[i] = p.value(whole)
	}
	return eval.Run(m, m.Main(), args, opts)
}

// joinWide joins the devices' results, whose elements are wider than the
// program says.
func joinWide(results []*port, out [][]*ir.Literal) []*ir.Literal {
	values := make([]*ir.Literal, len(results))
	for i, p := range results {
		parts := make([]*ir.Literal, len(out))
		for d := range parts {
			parts[d] = out[d][i]
		}
		wide := *p
		wide.global = p.global.WithElem(parts[0].Type.Elem)
		values[i] = wide.join(parts)
	}
	return values
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
