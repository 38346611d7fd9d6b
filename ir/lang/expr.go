package lang

import (
	"math"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// An operator is one row: what it makes of numbers and of tensors.
type operator struct {
	numbers func(x, y float64) value.Value
	kind    ir.Kind // of tensors
	compare string  // the direction, of comparisons
	logical bool    // takes truth values
}

var operators = map[string]operator{
	"+":  {numbers: func(x, y float64) value.Value { return value.Number(x + y) }, kind: ir.Add},
	"-":  {numbers: func(x, y float64) value.Value { return value.Number(x - y) }, kind: ir.Subtract},
	"*":  {numbers: func(x, y float64) value.Value { return value.Number(x * y) }, kind: ir.Multiply},
	"/":  {numbers: func(x, y float64) value.Value { return value.Number(x / y) }, kind: ir.Divide},
	"%":  {numbers: func(x, y float64) value.Value { return value.Number(math.Mod(x, y)) }, kind: ir.Remainder},
	"==": {numbers: func(x, y float64) value.Value { return value.Boolean(x == y) }, compare: "EQ"},
	"!=": {numbers: func(x, y float64) value.Value { return value.Boolean(x != y) }, compare: "NE"},
	"<":  {numbers: func(x, y float64) value.Value { return value.Boolean(x < y) }, compare: "LT"},
	"<=": {numbers: func(x, y float64) value.Value { return value.Boolean(x <= y) }, compare: "LE"},
	">":  {numbers: func(x, y float64) value.Value { return value.Boolean(x > y) }, compare: "GT"},
	">=": {numbers: func(x, y float64) value.Value { return value.Boolean(x >= y) }, compare: "GE"},
	"&&": {kind: ir.And, logical: true},
	"||": {kind: ir.Or, logical: true},
}

func (e *elab) binary(x *syntax.BinaryExpr) value.Value {
	a, b := e.eval(x.X), e.eval(x.Y)
	if value.IsPoison(a, b) {
		return value.Poison{}
	}
	op := operators[x.Op]
	_, tx := a.(*value.Tensor)
	_, ty := b.(*value.Tensor)
	if tx || ty {
		v := e.tensorOp(x, op, a, b)
		e.noteRatio(x, v, a, b)
		return v
	}
	p, isBool := a.(value.Boolean)
	q, isBool2 := b.(value.Boolean)
	if isBool && isBool2 {
		switch x.Op {
		case "&&":
			return p && q
		case "||":
			return p || q
		case "==":
			return value.Boolean(p == q)
		case "!=":
			return value.Boolean(p != q)
		}
	}
	if _, isNumber := a.(value.Number); !isNumber && op.compare != "" && (x.Op == "==" || x.Op == "!=") && comparable(a) && comparable(b) {
		return value.Boolean((a == b) == (x.Op == "=="))
	}
	if op.numbers == nil {
		return e.fail(x.Span, "", syntax.ErrOperands, x.Op, value.Describe(a), value.Describe(b))
	}
	m, ok := e.toNumber(a, x.X, "the left side of "+x.Op)
	n, ok2 := e.toNumber(b, x.Y, "the right side of "+x.Op)
	if !ok || !ok2 {
		return value.Poison{}
	}
	v := op.numbers(float64(m), float64(n))
	if f, isNum := v.(value.Number); isNum && (math.IsNaN(float64(f)) || math.IsInf(float64(f), 0)) {
		return e.fail(x.Span, "", syntax.ErrUndefined, m, x.Op, n)
	}
	return v
}

// comparable reports whether Go's == tells values like v apart.
func comparable(v value.Value) bool {
	switch v.(type) {
	case value.List, value.Tuple, value.ShardRules, value.Mapping:
		return false
	}
	return true
}

func (e *elab) unary(x *syntax.UnaryExpr) value.Value {
	v := e.eval(x.X)
	if value.IsPoison(v) {
		return v
	}
	switch t := v.(type) {
	case *value.Tensor:
		e.mark(x.Span)
		if x.Op == "-" && t.Elem() != ir.I1 {
			return t.With(e.b.Unary(ir.Negate, t.V))
		}
		if x.Op == "!" && t.Elem() == ir.I1 {
			return t.With(e.b.Unary(ir.Not, t.V))
		}
	case value.Boolean:
		if x.Op == "!" {
			return !t
		}
	case value.Number, value.AxisName:
		if x.Op == "-" {
			n, ok := e.toNumber(v, x.X, "the operand of -")
			if !ok {
				return value.Poison{}
			}
			return -n
		}
	}
	return e.fail(x.Span, "", syntax.ErrOperand, x.Op, value.Describe(v))
}

// tensorOp is x op y where at least one side is a tensor.
func (e *elab) tensorOp(x *syntax.BinaryExpr, op operator, a, b value.Value) value.Value {
	if e.b == nil {
		return value.Poison{}
	}
	for _, side := range []struct {
		v value.Value
		x syntax.Expr
	}{{a, x.X}, {b, x.Y}} {
		if _, ok := side.v.(value.None); ok && (x.Op == "==" || x.Op == "!=") {
			return value.Boolean(x.Op == "!=") // a tensor is never none
		}
		switch side.v.(type) {
		case *value.Tensor, value.Number, value.AxisName:
		default:
			return e.fail(side.x.At(), "", syntax.ErrOperands, x.Op, value.Describe(a), value.Describe(b))
		}
	}
	e.mark(x.Span)
	p, q, ok := e.pair(x.Span, x.Op, a, b, x.X, x.Y)
	if !ok {
		return value.Poison{}
	}
	if op.logical != (p.Elem() == ir.I1) && !(p.Elem() == ir.I1 && (x.Op == "==" || x.Op == "!=")) {
		return e.fail(x.Span, "", syntax.ErrOperands, x.Op, value.Describe(p), value.Describe(q))
	}
	if op.compare != "" {
		return p.With(e.b.Compare(op.compare, p.V, q.V))
	}
	return p.With(e.b.Binary(op.kind, p.V, q.V))
}

// pair brings two operands to one element type and to the same axes.
func (e *elab) pair(at syntax.Span, what string, a, b value.Value, ax, bx syntax.Expr) (p, q *value.Tensor, ok bool) {
	p, isTensor := a.(*value.Tensor)
	q, isTensor2 := b.(*value.Tensor)
	if !isTensor {
		p, ok = e.splatLike(at, a, ax, q)
	} else if !isTensor2 {
		q, ok = e.splatLike(at, b, bx, p)
	} else if ok = p.Elem() == q.Elem(); !ok {
		e.fail(at, "cast one of them: cast("+sourceText(bx)+", "+p.Elem().String()+")", syntax.ErrElems, what, p, q)
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
func (e *elab) splatLike(at syntax.Span, v value.Value, x syntax.Expr, t *value.Tensor) (*value.Tensor, bool) {
	n, ok := e.toNumber(v, x, "an operand")
	if !ok {
		return nil, false
	}
	if _, whole := n.Whole(); !whole && t.Elem().IsInt() || t.Elem() == ir.I1 {
		e.fail(at, "cast the tensor to a float first", syntax.ErrNotWhole, n, t)
		return nil, false
	}
	return t.With(e.b.Splat(t.V.Type, float64(n))), true
}

// union is the axes of an elementwise result: the left operand's, then what
// the right one adds. Axes of one name must have one size.
func (e *elab) union(at syntax.Span, what string, ts ...*value.Tensor) ([]value.Axis, bool) {
	axes := slices.Clone(ts[0].Axes)
	for _, t := range ts[1:] {
		for _, a := range t.Axes {
			i := slices.IndexFunc(axes, func(b value.Axis) bool { return b.Name == a.Name })
			if i < 0 {
				axes = append(axes, a)
			} else if axes[i].Size != a.Size {
				e.fail(at, "", syntax.ErrSizes, what, a.Name, axes[i].Size, a.Size)
				return nil, false
			}
		}
	}
	if !e.fitsElements(axes) {
		e.fail(at, "", syntax.ErrTensorLarge, value.AxesText(axes), maxElements)
		return nil, false
	}
	return axes, true
}

func (e *elab) fitsElements(axes []value.Axis) bool {
	total := 1
	for _, a := range axes {
		if a.Size > 0 && total > maxElements/a.Size {
			return false
		}
		total *= a.Size
	}
	return true
}

// align brings t to the given axes, which include its own: it reorders and
// repeats.
func (e *elab) align(t *value.Tensor, axes []value.Axis) *value.Tensor {
	if slices.Equal(t.Axes, axes) {
		return t
	}
	var order []int // t's dimensions in the order of axes
	var dims []int  // where they go
	for i, a := range axes {
		if d := t.Axis(a.Name); d >= 0 {
			order, dims = append(order, d), append(dims, i)
		}
	}
	v := t.V
	if len(order) > 0 {
		v = e.b.Transpose(v, order...)
	}
	if len(axes) > len(t.Axes) {
		v = e.b.Broadcast(v, value.ShapeOf(axes), dims...)
	}
	return &value.Tensor{V: v, Axes: axes}
}

// reorder is t with its axes in the order of names, which are all of them.
func (e *elab) reorder(t *value.Tensor, names []string) *value.Tensor {
	axes := make([]value.Axis, len(names))
	for i, n := range names {
		axes[i] = t.Axes[t.Axis(n)]
	}
	return e.align(t, axes)
}

// without is axes but for the named ones.
func without(axes []value.Axis, names ...string) []value.Axis {
	var out []value.Axis
	for _, a := range axes {
		if !slices.Contains(names, a.Name) {
			out = append(out, a)
		}
	}
	return out
}

// need reports an axis that t lacks.
func (e *elab) need(c *builtinCall, arg string, t *value.Tensor, names ...string) bool {
	ok := true
	for _, n := range names {
		if t.Axis(n) < 0 {
			e.fail(c.place(arg), syntax.Near(n, value.NamesOf(t.Axes)), syntax.ErrNoAxis, c.name, arg, t, n)
			ok = false
		}
	}
	return ok
}

// wide is the type in which sums of elements of type t are taken.
func wide(t ir.DType) ir.DType {
	if t == ir.BF16 || t == ir.F16 {
		return ir.F32
	}
	return t
}

func (e *elab) cast(t *value.Tensor, elem ir.DType) *value.Tensor {
	return t.With(e.b.Convert(t.V, elem))
}

// commas joins names for a message.
func commas(names []string) string { return strings.Join(names, ", ") }
