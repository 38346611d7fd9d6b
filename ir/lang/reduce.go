package lang

import (
	"math"
	"slices"

	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

var reduceArgs = []argSpec{need("x", tensorArg), may("over", axesArg)}

// over are the axes that a reduction goes over: all of them if none are named.
func (e *elab) over(c *builtinCall, t *value.Tensor) ([]string, bool) {
	if !c.has("over") {
		return value.NamesOf(t.Axes), true
	}
	names := c.axes("over")
	return names, e.need(c, "x", t, names...)
}

// reduce combines t over axes; sums of 16-bit floats are taken in f32.
func (e *elab) reduce(t *value.Tensor, kind ir.Kind, init float64, over []string) *value.Tensor {
	zero := e.b.Splat(ir.Tensor(t.Elem()), init)
	out := &value.Tensor{V: e.b.Reduce(kind, t.V, zero, t.Dims(over)...), Axes: without(t.Axes, over...)}
	e.noteReduced(out, over)
	return out
}

func (e *elab) sumOver(t *value.Tensor, over []string) *value.Tensor {
	elem := t.Elem()
	return e.cast(e.reduce(e.cast(t, wide(elem)), ir.Add, 0, over), elem)
}

func sum(e *elab, c *builtinCall) value.Value {
	t := c.tensor("x")
	over, ok := e.over(c, t)
	if !ok {
		return value.Poison{}
	}
	if t.Elem() == ir.I1 {
		return e.fail(c.Span, "cast(x, i32) counts", syntax.ErrFloat, c.name, t)
	}
	return e.sumOver(t, over)
}

func mean(e *elab, c *builtinCall) value.Value {
	t := c.tensor("x")
	over, ok := e.over(c, t)
	if !ok {
		return value.Poison{}
	}
	if !t.Elem().IsFloat() {
		return e.fail(c.Span, "cast(x, f32)", syntax.ErrFloat, c.name, t)
	}
	n := 1
	for _, d := range t.Dims(over) {
		n *= t.Axes[d].Size
	}
	s := e.reduce(e.cast(t, wide(t.Elem())), ir.Add, 0, over)
	v := e.b.Div(s.V, e.b.Splat(s.V.Type, float64(n)))
	e.p.Means[v.Def] = true
	return e.cast(s.With(v), t.Elem())
}

// lowest is the number that a maximum (or, negated, a minimum) starts from.
func lowest(t ir.DType, init float64) float64 {
	if t.IsFloat() {
		return init
	}
	bits := float64(t.Bits())
	if t.Class() == ir.Unsigned {
		if init < 0 {
			return 0
		}
		return math.Exp2(bits) - 1
	}
	if init < 0 {
		return -math.Exp2(bits - 1)
	}
	return math.Exp2(bits-1) - 1
}

func extreme(kind ir.Kind, init float64) func(*elab, *builtinCall) value.Value {
	return func(e *elab, c *builtinCall) value.Value {
		t := c.tensor("x")
		over, ok := e.over(c, t)
		if !ok {
			return value.Poison{}
		}
		if t.Elem() == ir.I1 || t.Elem().Bits() == 64 && t.Elem().IsInt() {
			return e.fail(c.Span, "cast(x, i32)", syntax.ErrFloat, c.name, t)
		}
		return e.reduce(t, kind, lowest(t.Elem(), init), over)
	}
}

// argmax is the smallest index of a maximum.
func argmax(e *elab, c *builtinCall) value.Value {
	t, name := c.tensor("x"), c.axis("over")
	if !e.need(c, "x", t, name) {
		return value.Poison{}
	}
	if t.Elem() == ir.I1 || t.Elem().Bits() == 64 && t.Elem().IsInt() {
		return e.fail(c.Span, "cast(x, i32)", syntax.ErrFloat, c.name, t)
	}
	top := e.align(e.reduce(t, ir.Maximum, lowest(t.Elem(), math.Inf(-1)), []string{name}), t.Axes)
	is := e.b.Compare("EQ", t.V, top.V)
	shape, d := value.ShapeOf(t.Axes), t.Axis(name)
	at := e.b.Iota(ir.Tensor(ir.I32, shape...), d)
	rest := e.b.Splat(at.Type, float64(shape[d]-1))
	return e.reduce(&value.Tensor{V: e.b.Select(is, at, rest), Axes: t.Axes}, ir.Minimum, lowest(ir.I32, 1), []string{name})
}

// exponentials is exp(x - max) in the wide type, its sum over axes, and the
// maximum: what softmax and logsumexp are made of. Their values do not depend on
// what is subtracted, so no cotangent flows through the maximum.
func (e *elab) exponentials(c *builtinCall) (exps, total, top *value.Tensor, ok bool) {
	t, over := c.tensor("x"), c.axes("over")
	if !e.need(c, "x", t, over...) {
		return nil, nil, nil, false
	}
	if !t.Elem().IsFloat() {
		e.fail(c.Span, "cast(x, f32)", syntax.ErrFloat, c.name, t)
		return nil, nil, nil, false
	}
	x := e.cast(t, wide(t.Elem()))
	top = e.stopped(e.reduce(x, ir.Maximum, math.Inf(-1), over))
	exps = x.With(e.b.Unary(ir.Exponential, e.b.Sub(x.V, e.align(top, x.Axes).V)))
	return exps, e.reduce(exps, ir.Add, 0, over), top, true
}

func softmax(e *elab, c *builtinCall) value.Value {
	exps, total, _, ok := e.exponentials(c)
	if !ok {
		return value.Poison{}
	}
	return e.cast(exps.With(e.b.Div(exps.V, e.align(total, exps.Axes).V)), c.tensor("x").Elem())
}

func logsumexp(e *elab, c *builtinCall) value.Value {
	_, total, top, ok := e.exponentials(c)
	if !ok {
		return value.Poison{}
	}
	return e.cast(total.With(e.b.Add(e.b.Unary(ir.Log, total.V), top.V)), c.tensor("x").Elem())
}

func cumsum(e *elab, c *builtinCall) value.Value {
	t, name := c.tensor("x"), c.axis("over")
	if !e.need(c, "x", t, name) {
		return value.Poison{}
	}
	if t.Elem() == ir.I1 {
		return e.fail(c.Span, "cast(x, i32)", syntax.ErrFloat, c.name, t)
	}
	x, rank, d := e.cast(t, wide(t.Elem())), len(t.Axes), t.Axis(name)
	n := t.Axes[d].Size
	window, padding := slices.Repeat([]int{1}, rank), make([]int, 2*rank)
	window[d], padding[2*d] = n, n-1
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "window_dimensions", Attr: ir.Ints(window)},
		ir.NamedAttr{Name: "padding", Attr: ir.Ints64(ir.Tensor(ir.I64, rank, 2), padding...)})
	zero := e.b.Splat(ir.Tensor(x.Elem()), 0)
	v := e.b.Emit(ir.ReduceWindow, []*ir.Value{x.V, zero}, attrs, []*ir.Block{e.b.Combiner(ir.Add, x.Elem())}, nil).Results[0]
	return e.cast(x.With(v), t.Elem())
}

// dot contracts the named axes. Axes that both operands have besides are
// matched; the result has the left operand's axes, then the right one's.
func dot(e *elab, c *builtinCall) value.Value {
	x, y, over := c.tensor("x"), c.tensor("y"), c.axes("over")
	if !e.need(c, "x", x, over...) || !e.need(c, "y", y, over...) {
		return value.Poison{}
	}
	if x.Elem() != y.Elem() {
		return e.fail(c.Span, "cast one of them: cast("+sourceText(c.exprs["y"])+", "+x.Elem().String()+")", syntax.ErrElems, "dot", x, y)
	}
	if x.Elem() == ir.I1 {
		return e.fail(c.Span, "cast(x, f32)", syntax.ErrFloat, c.name, x)
	}
	var d ir.Dot
	var batch, left, right []value.Axis
	for i, a := range x.Axes {
		k := y.Axis(a.Name)
		if k >= 0 && y.Axes[k].Size != a.Size {
			return e.fail(c.Span, "", syntax.ErrSizes, "dot", a.Name, a.Size, y.Axes[k].Size)
		}
		switch {
		case slices.Contains(over, a.Name):
			d.LhsContract, d.RhsContract = append(d.LhsContract, i), append(d.RhsContract, k)
		case k >= 0:
			d.LhsBatch, d.RhsBatch = append(d.LhsBatch, i), append(d.RhsBatch, k)
			batch = append(batch, a)
		default:
			left = append(left, a)
		}
	}
	for _, a := range y.Axes {
		if x.Axis(a.Name) < 0 {
			right = append(right, a)
		}
	}
	axes := slices.Concat(batch, left, right)
	if !e.fitsElements(axes) {
		return e.fail(c.Span, "", syntax.ErrTensorLarge, value.AxesText(axes), maxElements)
	}
	out := &value.Tensor{V: e.b.Dot(x.V, y.V, d), Axes: axes}
	e.noteReduced(out, over)
	return e.constrained(e.reorder(out, append(value.NamesOf(without(x.Axes, over...)), value.NamesOf(right)...)))
}
