package lang

import (
	"math"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// An operator is one row: what it makes of numbers and of tensors.
type operator struct {
	numbers func(x, y float64) value
	kind    ir.Kind // of tensors
	compare string  // the direction, of comparisons
	logical bool    // takes truth values
}

var operators = map[string]operator{
	"+":  {numbers: func(x, y float64) value { return number(x + y) }, kind: ir.Add},
	"-":  {numbers: func(x, y float64) value { return number(x - y) }, kind: ir.Subtract},
	"*":  {numbers: func(x, y float64) value { return number(x * y) }, kind: ir.Multiply},
	"/":  {numbers: func(x, y float64) value { return number(x / y) }, kind: ir.Divide},
	"%":  {numbers: func(x, y float64) value { return number(math.Mod(x, y)) }, kind: ir.Remainder},
	"==": {numbers: func(x, y float64) value { return boolean(x == y) }, compare: "EQ"},
	"!=": {numbers: func(x, y float64) value { return boolean(x != y) }, compare: "NE"},
	"<":  {numbers: func(x, y float64) value { return boolean(x < y) }, compare: "LT"},
	"<=": {numbers: func(x, y float64) value { return boolean(x <= y) }, compare: "LE"},
	">":  {numbers: func(x, y float64) value { return boolean(x > y) }, compare: "GT"},
	">=": {numbers: func(x, y float64) value { return boolean(x >= y) }, compare: "GE"},
	"&&": {kind: ir.And, logical: true},
	"||": {kind: ir.Or, logical: true},
}

func (e *elab) binary(x *syntax.BinaryExpr) value {
	a, b := e.eval(x.X), e.eval(x.Y)
	if isPoison(a, b) {
		return poison{}
	}
	op := operators[x.Op]
	_, tx := a.(*tensor)
	_, ty := b.(*tensor)
	if tx || ty {
		v := e.tensorOp(x, op, a, b)
		e.noteRatio(x, v, a, b)
		return v
	}
	p, isBool := a.(boolean)
	q, isBool2 := b.(boolean)
	if isBool && isBool2 {
		switch x.Op {
		case "&&":
			return p && q
		case "||":
			return p || q
		case "==":
			return boolean(p == q)
		case "!=":
			return boolean(p != q)
		}
	}
	if _, isNumber := a.(number); !isNumber && op.compare != "" && (x.Op == "==" || x.Op == "!=") && comparable(a) && comparable(b) {
		return boolean((a == b) == (x.Op == "=="))
	}
	if op.numbers == nil {
		return e.fail(x.Span, "", errOperands, x.Op, describe(a), describe(b))
	}
	m, ok := e.toNumber(a, x.X, "the left side of "+x.Op)
	n, ok2 := e.toNumber(b, x.Y, "the right side of "+x.Op)
	if !ok || !ok2 {
		return poison{}
	}
	v := op.numbers(float64(m), float64(n))
	if f, isNum := v.(number); isNum && (math.IsNaN(float64(f)) || math.IsInf(float64(f), 0)) {
		return e.fail(x.Span, "", errUndefined, m, x.Op, n)
	}
	return v
}

// comparable reports whether Go's == tells values like v apart.
func comparable(v value) bool {
	switch v.(type) {
	case list, tuple, shardRules, mapping:
		return false
	}
	return true
}

func (e *elab) unary(x *syntax.UnaryExpr) value {
	v := e.eval(x.X)
	if isPoison(v) {
		return v
	}
	switch t := v.(type) {
	case *tensor:
		e.mark(x.Span)
		if x.Op == "-" && t.elem() != ir.I1 {
			return t.with(e.b.Unary(ir.Negate, t.v))
		}
		if x.Op == "!" && t.elem() == ir.I1 {
			return t.with(e.b.Unary(ir.Not, t.v))
		}
	case boolean:
		if x.Op == "!" {
			return !t
		}
	case number, axisName:
		if x.Op == "-" {
			n, ok := e.toNumber(v, x.X, "the operand of -")
			if !ok {
				return poison{}
			}
			return -n
		}
	}
	return e.fail(x.Span, "", errOperand, x.Op, describe(v))
}

// with is t with another value of the same axes.
func (t *tensor) with(v *ir.Value) *tensor { return &tensor{v, t.axes} }

// tensorOp is x op y where at least one side is a tensor.
func (e *elab) tensorOp(x *syntax.BinaryExpr, op operator, a, b value) value {
	if e.b == nil {
		return poison{}
	}
	for _, side := range []struct {
		v value
		x syntax.Expr
	}{{a, x.X}, {b, x.Y}} {
		if _, ok := side.v.(none); ok && (x.Op == "==" || x.Op == "!=") {
			return boolean(x.Op == "!=") // a tensor is never none
		}
		switch side.v.(type) {
		case *tensor, number, axisName:
		default:
			return e.fail(side.x.At(), "", errOperands, x.Op, describe(a), describe(b))
		}
	}
	e.mark(x.Span)
	p, q, ok := e.pair(x.Span, x.Op, a, b, x.X, x.Y)
	if !ok {
		return poison{}
	}
	if op.logical != (p.elem() == ir.I1) && !(p.elem() == ir.I1 && (x.Op == "==" || x.Op == "!=")) {
		return e.fail(x.Span, "", errOperands, x.Op, describe(p), describe(q))
	}
	if op.compare != "" {
		return p.with(e.b.Compare(op.compare, p.v, q.v))
	}
	return p.with(e.b.Binary(op.kind, p.v, q.v))
}

// pair brings two operands to one element type and to the same axes.
func (e *elab) pair(at syntax.Span, what string, a, b value, ax, bx syntax.Expr) (p, q *tensor, ok bool) {
	p, isTensor := a.(*tensor)
	q, isTensor2 := b.(*tensor)
	if !isTensor {
		p, ok = e.splatLike(at, a, ax, q)
	} else if !isTensor2 {
		q, ok = e.splatLike(at, b, bx, p)
	} else if ok = p.elem() == q.elem(); !ok {
		e.fail(at, "cast one of them: cast("+sourceText(bx)+", "+p.elem().String()+")", errElems, what, p, q)
	}
	if !ok {
		return nil, nil, false
	}
	axes, ok := e.union(at, what, p, q)
	if !ok {
		return nil, nil, false
	}
	return e.align(p, axes), e.align(q, axes), true
}

// sourceText is an expression as a hint shows it: a name, or x.
func sourceText(x syntax.Expr) string {
	if n, ok := x.(*syntax.NameRef); ok {
		return n.Name
	}
	return "x"
}

// splatLike is a number as a tensor of t's type.
func (e *elab) splatLike(at syntax.Span, v value, x syntax.Expr, t *tensor) (*tensor, bool) {
	n, ok := e.toNumber(v, x, "an operand")
	if !ok {
		return nil, false
	}
	if _, whole := n.whole(); !whole && t.elem().IsInt() || t.elem() == ir.I1 {
		e.fail(at, "cast the tensor to a float first", errNotWhole, n, t)
		return nil, false
	}
	return t.with(e.b.Splat(t.v.Type, float64(n))), true
}

// union is the axes of an elementwise result: the left operand's, then what
// the right one adds. Axes of one name must have one size.
func (e *elab) union(at syntax.Span, what string, ts ...*tensor) ([]axis, bool) {
	axes := slices.Clone(ts[0].axes)
	for _, t := range ts[1:] {
		for _, a := range t.axes {
			i := slices.IndexFunc(axes, func(b axis) bool { return b.name == a.name })
			if i < 0 {
				axes = append(axes, a)
			} else if axes[i].size != a.size {
				e.fail(at, "", errSizes, what, a.name, axes[i].size, a.size)
				return nil, false
			}
		}
	}
	if !e.fitsElements(axes) {
		e.fail(at, "", errTensorLarge, axesText(axes), maxElements)
		return nil, false
	}
	return axes, true
}

func (e *elab) fitsElements(axes []axis) bool {
	total := 1
	for _, a := range axes {
		if a.size > 0 && total > maxElements/a.size {
			return false
		}
		total *= a.size
	}
	return true
}

// align brings t to the given axes, which include its own: it reorders and
// repeats.
func (e *elab) align(t *tensor, axes []axis) *tensor {
	if slices.Equal(t.axes, axes) {
		return t
	}
	var order []int // t's dimensions in the order of axes
	var dims []int  // where they go
	for i, a := range axes {
		if d := t.axis(a.name); d >= 0 {
			order, dims = append(order, d), append(dims, i)
		}
	}
	v := t.v
	if len(order) > 0 {
		v = e.b.Transpose(v, order...)
	}
	if len(axes) > len(t.axes) {
		v = e.b.Broadcast(v, shapeOf(axes), dims...)
	}
	return &tensor{v, axes}
}

// reorder is t with its axes in the order of names, which are all of them.
func (e *elab) reorder(t *tensor, names []string) *tensor {
	axes := make([]axis, len(names))
	for i, n := range names {
		axes[i] = t.axes[t.axis(n)]
	}
	return e.align(t, axes)
}

// without is axes but for the named ones.
func without(axes []axis, names ...string) []axis {
	var out []axis
	for _, a := range axes {
		if !slices.Contains(names, a.name) {
			out = append(out, a)
		}
	}
	return out
}

// need reports an axis that t lacks.
func (e *elab) need(c *builtinCall, arg string, t *tensor, names ...string) bool {
	ok := true
	for _, n := range names {
		if t.axis(n) < 0 {
			e.fail(c.place(arg), syntax.Near(n, namesOf(t.axes)), errNoAxis, c.name, arg, t, n)
			ok = false
		}
	}
	return ok
}

// dims are the positions of the named axes.
func (t *tensor) dims(names []string) []int {
	out := make([]int, len(names))
	for i, n := range names {
		out[i] = t.axis(n)
	}
	return out
}

// wide is the type in which sums of elements of type t are taken.
func wide(t ir.DType) ir.DType {
	if t == ir.BF16 || t == ir.F16 {
		return ir.F32
	}
	return t
}

func (e *elab) cast(t *tensor, elem ir.DType) *tensor { return t.with(e.b.Convert(t.v, elem)) }

// commas joins names for a message.
func commas(names []string) string { return strings.Join(names, ", ") }
