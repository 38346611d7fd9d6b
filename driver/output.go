package driver

import (
	"math"

	"ppc/driver/binding"
	"ppc/ir"
)

// An Output is one result of a run.
type Output struct {
	Name  string
	DType string
	Shape []int
	Value string // of a scalar, in the shortest form that brings it back
	Min   float64
	Mean  float64
	Max   float64
	NaNs  int // elements that are no number; Min, Mean and Max leave them out

	literal *ir.Literal
}

// Type is the output's type as .pp files write it: f32[16, 512].
func (o *Output) Type() string { return binding.TypeText(o.literal.Type, nil) }

// Integer reports whether the elements are integers or booleans.
func (o *Output) Integer() bool {
	t := o.literal.Type.Elem
	return t.IsInt() || t == ir.I1
}

// Empty reports whether the output has no elements, and so no Min, Mean and Max.
func (o *Output) Empty() bool { return ir.Product(o.Shape) == 0 }

// Scalar reports whether the output is one number.
func (o *Output) Scalar() bool { return len(o.Shape) == 0 }

func newOutput(name string, l *ir.Literal) *Output {
	o := &Output{Name: name, DType: l.Type.Elem.String(), Shape: l.Type.Shape, literal: l}
	if o.Scalar() {
		o.Value = binding.ElementText(l, 0)
	}
	o.summarise()
	return o
}

// summarise takes minimum, mean and maximum; of complex numbers, of their
// magnitudes.
func (o *Output) summarise() {
	n := 0
	var sum, lost float64 // compensated, so that the mean of many is good
	o.Min, o.Max = math.Inf(1), math.Inf(-1)
	for i := range o.literal.Type.NumElements() {
		v := binding.Number(o.literal, i)
		if math.IsNaN(v) {
			o.NaNs++
			continue
		}
		n++
		o.Min, o.Max = min(o.Min, v), max(o.Max, v)
		next := sum + v
		if math.Abs(sum) >= math.Abs(v) {
			lost += sum - next + v
		} else {
			lost += v - next + sum
		}
		sum = next
	}
	if math.IsNaN(lost) { // infinities among the numbers
		lost = 0
	}
	o.Mean = (sum + lost) / float64(n)
	if n == 0 {
		o.Min, o.Mean, o.Max = math.NaN(), math.NaN(), math.NaN()
	}
}
