// Package value has the values of expressions while a program is built: tensors
// with a name for each axis, and what is known without running anything.
package value

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// With is t with another value of the same axes.
func (t *Tensor) With(v *ir.Value) *Tensor { return &Tensor{v, t.Axes} }

// Dims are the positions of the named axes.
func (t *Tensor) Dims(names []string) []int {
	out := make([]int, len(names))
	for i, n := range names {
		out[i] = t.Axis(n)
	}
	return out
}

// An Axis is one axis of a tensor. The size is nearly always the declared one
// of its name; slice, concat and their like make others.
type Axis struct {
	Name string
	Size int
}

// A Value is what an expression evaluates to while the program is built:
// tensors, which the built program computes, and all the rest, which is known
// now and leaves no trace.
type Value interface{ Kind() string }

type (
	// Tensor is a value of the IR with a name for each dimension. Names are
	// distinct.
	Tensor struct {
		V    *ir.Value
		Axes []Axis
	}
	// Number is a number that is known while the program is built.
	Number float64
	// Boolean is a truth value.
	Boolean bool
	// Text is a text.
	Text     string
	AxisName string // an axis that is meant, not a tensor
	// ElemType is an element type.
	ElemType ir.DType
	// List is a list.
	List  []Value
	Tuple []Value // the results of a layer that has several
	// None is no value.
	None struct{}
	// Poison is the value of an expression that failed; its uses report no further
	// errors.
	Poison struct{}
	// Mapping is from -> to, of rename and split.
	Mapping struct{}
	// ShardRules is {axis -> mesh axis}, of constrain.
	ShardRules []syntax.Rule
	// LayerRef is a layer that is named, to be stacked.
	LayerRef struct{ Decl *syntax.FuncDecl }
	// Initializer is what a param starts as: normal(0.02).
	Initializer string
)

func (*Tensor) Kind() string { return "a tensor" }

func (Number) Kind() string { return "a number" }

func (Boolean) Kind() string { return "a truth value" }

func (Text) Kind() string { return "a text" }

func (AxisName) Kind() string { return "an axis" }

func (ElemType) Kind() string { return "an element type" }

func (List) Kind() string { return "a list" }

func (Tuple) Kind() string { return "several results" }

func (None) Kind() string { return "none" }

func (Poison) Kind() string { return "nothing" }

func (Mapping) Kind() string { return "an arrow" }

func (ShardRules) Kind() string { return "sharding rules" }

func (LayerRef) Kind() string { return "a layer" }

func (Initializer) Kind() string { return "an initializer" }

// IsPoison reports whether one of vs is poison.
func IsPoison(vs ...Value) bool {
	return slices.ContainsFunc(vs, func(v Value) bool { _, ok := v.(Poison); return ok })
}

// Whole returns n as an int where it is one.
func (n Number) Whole() (int, bool) {
	if f := float64(n); f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return int(f), true
	}
	return 0, false
}

// String is n as a program has it: integers in full, as far as they are exact.
func (n Number) String() string {
	if k, ok := n.Whole(); ok {
		return strconv.Itoa(k)
	}
	return strconv.FormatFloat(float64(n), 'g', -1, 64)
}

// Elem is the element type of t.
func (t *Tensor) Elem() ir.DType { return t.V.Type.Elem }

// Axis is the position of the axis called name, or -1.
func (t *Tensor) Axis(name string) int {
	return slices.IndexFunc(t.Axes, func(a Axis) bool { return a.Name == name })
}

// String is t's type in the user's words: f32[batch, seq].
func (t *Tensor) String() string { return TypeText(t.Elem(), t.Axes) }

// TypeText is a tensor type in the user's words: f32[batch, seq].
func TypeText(elem ir.DType, axes []Axis) string {
	if len(axes) == 0 {
		return elem.String()
	}
	return elem.String() + AxesText(axes)
}

// AxesText is the axes by name: [batch, seq].
func AxesText(axes []Axis) string {
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = a.Name
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// ShapeOf is the sizes of axes.
func ShapeOf(axes []Axis) []int {
	shape := make([]int, len(axes))
	for i, a := range axes {
		shape[i] = a.Size
	}
	return shape
}

// NamesOf is the names of axes.
func NamesOf(axes []Axis) []string {
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = a.Name
	}
	return names
}

// Describe is v for a message.
func Describe(v Value) string {
	switch v := v.(type) {
	case *Tensor:
		return v.String()
	case Number:
		return "the number " + v.String()
	case AxisName:
		return "the axis " + string(v)
	case ElemType:
		return "the element type " + ir.DType(v).String()
	case Text:
		return fmt.Sprintf("the text %q", string(v))
	case LayerRef:
		return "the layer " + v.Decl.Name
	case interface{ Describe() string }:
		return v.Describe()
	}
	return v.Kind()
}
