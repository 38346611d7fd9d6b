package lang

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// An axis is one axis of a tensor. The size is nearly always the declared one
// of its name; slice, concat and their like make others.
type axis struct {
	name string
	size int
}

// A value is what an expression evaluates to while the program is built:
// tensors, which the built program computes, and all the rest, which is known
// now and leaves no trace.
type value interface{ kind() string }

type (
	// tensor is a value of the IR with a name for each dimension. Names are
	// distinct.
	tensor struct {
		v    *ir.Value
		axes []axis
	}
	number   float64
	boolean  bool
	text     string
	axisName string // an axis that is meant, not a tensor
	elemType ir.DType
	list     []value
	tuple    []value // the results of a layer that has several
	none     struct{}
	// poison stands for what failed; everything made of it keeps silent.
	poison struct{}
	// mapping is from -> to, of rename and split.
	mapping struct{}
	// shardRules is {axis -> mesh axis}, of constrain.
	shardRules []syntax.Rule
	// layerRef is a layer that is named, to be stacked.
	layerRef struct{ decl *syntax.FuncDecl }
	// functionRef is a function that an argument names: an fn, or one that is
	// built in.
	functionRef struct {
		name    string
		decl    *syntax.FuncDecl
		builtin *builtin
	}
	// initializer is what a param starts as: normal(0.02).
	initializer string
)

func (*tensor) kind() string { return "a tensor" }

func (number) kind() string { return "a number" }

func (boolean) kind() string { return "a truth value" }

func (text) kind() string { return "a text" }

func (axisName) kind() string { return "an axis" }

func (elemType) kind() string { return "an element type" }

func (list) kind() string { return "a list" }

func (tuple) kind() string { return "several results" }

func (none) kind() string { return "none" }

func (poison) kind() string { return "nothing" }

func (mapping) kind() string { return "an arrow" }

func (shardRules) kind() string { return "sharding rules" }

func (layerRef) kind() string { return "a layer" }

func (functionRef) kind() string { return "a function" }

func (initializer) kind() string { return "an initializer" }

func isPoison(vs ...value) bool {
	return slices.ContainsFunc(vs, func(v value) bool { _, ok := v.(poison); return ok })
}

// whole returns n as an int where it is one.
func (n number) whole() (int, bool) {
	if f := float64(n); f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return int(f), true
	}
	return 0, false
}

func (n number) String() string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }

// elem is the element type of t.
func (t *tensor) elem() ir.DType { return t.v.Type.Elem }

// axis is the position of the axis called name, or -1.
func (t *tensor) axis(name string) int {
	return slices.IndexFunc(t.axes, func(a axis) bool { return a.name == name })
}

// String is t's type in the user's words: f32[batch, seq].
func (t *tensor) String() string { return typeText(t.elem(), t.axes) }

func typeText(elem ir.DType, axes []axis) string {
	if len(axes) == 0 {
		return elem.String()
	}
	return elem.String() + axesText(axes)
}

// axesText is the axes by name: [batch, seq].
func axesText(axes []axis) string {
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = a.name
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func shapeOf(axes []axis) []int {
	shape := make([]int, len(axes))
	for i, a := range axes {
		shape[i] = a.size
	}
	return shape
}

func namesOf(axes []axis) []string {
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = a.name
	}
	return names
}

// describe is v for a message.
func describe(v value) string {
	switch v := v.(type) {
	case *tensor:
		return v.String()
	case number:
		return "the number " + v.String()
	case axisName:
		return "the axis " + string(v)
	case elemType:
		return "the element type " + ir.DType(v).String()
	case text:
		return fmt.Sprintf("the text %q", string(v))
	case layerRef:
		return "the layer " + v.decl.Name
	case functionRef:
		return "the function " + v.name
	}
	return v.kind()
}
