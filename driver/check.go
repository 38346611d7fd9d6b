package driver

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"ppc/driver/binding"
	"ppc/ir"
	"ppc/ir/lang/config"
)

// A Comparison is one output held against the reference. Distances are root
// mean squares over the output, or over the part of one layer, the one for
// which the distance is largest in comparison with what is allowed.
type Comparison struct {
	Name      string
	MaxAbs    float64 // the largest difference of two elements
	Rel       float64 // the distance relative to the reference, or, of a new parameter, to its update
	Tolerance float64 // of Rel
	OK        bool
	Worst     string // the element that is furthest away, with both numbers; "" where all are equal
}

// Lost reports whether nothing can be said of the output: rounding to the
// program's types moves it by as much as it is, with the layers in sequence too.
func (c *Comparison) Lost() bool { return c.OK && c.Tolerance >= 1 }

// A Mismatch is outputs beyond their tolerance, pipelines in which microbatches
// go through other layers than they should, and what of the model depends on
// the microbatches.
type Mismatch struct {
	Checks  []*Comparison
	Layers  []string // what is wrong in a pipeline
	Reasons []string // why the model itself may be what differs
}

func (e *Mismatch) Error() string {
	bad := slices.Clone(e.Layers)
	for _, c := range e.Checks {
		if !c.OK {
			bad = append(bad, fmt.Sprintf("%s differs from the reference by %.3g of its size, more than %.3g; most at %s", c.Name, c.Rel, c.Tolerance, c.Worst))
		}
	}
	return strings.Join(append(bad, e.Reasons...), "\n")
}

// check computes the results without a pipeline on the reference evaluator and
// compares: those of the last run, and the scalars of every step.
func (r *runner) check(ctx context.Context, values []*binding.Named) ([]*Comparison, error) {
	if r.ref == nil {
		if err := r.prepared.run(ctx, r.steps); err != nil {
			return nil, orStopped(ctx, err)
		}
		r.ref = r.prepared
	}
	ref := r.ref
	checks, err := ref.hold(ctx, func() (checks []*Comparison) {
		for _, v := range values {
			c := ref.compare(v)
			for i := range r.history {
				c.merge(i, ref.step(i, scalarNamed(r.history[i], v.Name)))
			}
			checks = append(checks, c)
		}
		return checks
	})
	if err != nil {
		return nil, orStopped(ctx, err)
	}
	stray, err := r.strayLayers(ctx)
	if err != nil {
		return nil, orStopped(ctx, err)
	}
	if anyBeyond(checks) || len(stray) > 0 {
		return checks, &Mismatch{Checks: checks, Layers: stray, Reasons: r.reasons()}
	}
	return checks, nil
}

func anyBeyond(checks []*Comparison) bool {
	return slices.ContainsFunc(checks, func(c *Comparison) bool { return !c.OK })
}

// reasons are what the language warns of by which results differ from those of
// the layers in sequence.
func (r *runner) reasons() []string {
	var reasons []string
	for _, w := range r.p.warnings {
		if i := slices.IndexFunc(config.Warnings, func(row config.Warning) bool { return row.Name == w.Warning }); i >= 0 && config.Warnings[i].Differs {
			reasons = append(reasons, fmt.Sprintf("a reason: %s: %s", PlaceText(ir.Pos{File: w.File, Line: w.Line, Col: w.Col}), w.Msg))
		}
	}
	return reasons
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

func scalarNamed(vs []*binding.Named, name string) *binding.Named {
	for _, v := range vs {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// merge takes the same value of one step more into account.
func (c *Comparison) merge(step int, s *Comparison) {
	if s == nil {
		return
	}
	c.MaxAbs = max(c.MaxAbs, s.MaxAbs)
	if step == 0 || s.worse(c) {
		c.Rel, c.Tolerance, c.OK, c.Worst = s.Rel, s.Tolerance, s.OK, s.Worst
	}
}

// worse reports whether c is further away than d, in comparison with what is
// allowed.
func (c *Comparison) worse(d *Comparison) bool {
	return c.Rel*d.Tolerance > d.Rel*c.Tolerance || c.Rel > 0 && c.Tolerance == 0
}

// theReference is whose results others are held to.
const theReference = "the reference"

// compareParts holds got against want, which is whose, where rounding moves each part as
// measured. Of a part without a size, all of which is zero, the distance is
// relative to what is allowed.
func (y *yardstick) compareParts(v *binding.Named, whose string, want, own *ir.Literal, parts []extent) *Comparison {
	c := &Comparison{Name: v.Name, OK: true}
	for i := range parts {
		p := &parts[i]
		far, at, wrong := 0.0, p.lo, false
		for i := p.lo; i < p.hi; i++ {
			d := difference(v.Literal, want, i)
			if math.IsInf(d, 0) && own != nil && difference(v.Literal, own, i) == 0 { // the types do not hold the number
				continue
			}
			wrong = wrong || math.IsInf(d, 0)
			if d > far {
				far, at = d, i
			}
		}
		distance := norm(p.lo, p.hi, func(i int) float64 { return difference(v.Literal, want, i) })
		if wrong {
			distance = math.Inf(1)
		}
		allowed := y.allowed(p, v)
		scale := p.scale
		if scale == 0 {
			scale = max(allowed, math.SmallestNonzeroFloat64)
		}
		one := &Comparison{MaxAbs: far, Rel: distance / scale, Tolerance: allowed / scale, OK: distance <= allowed}
		if far > 0 {
			one.Worst = fmt.Sprintf("%s: %s, %s has %s", elementName(v.Name, v.Literal.Type.Shape, at), binding.ElementText(v.Literal, at), whose, binding.ElementText(want, at))
		}
		c.merge(i, one)
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
