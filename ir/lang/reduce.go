package lang

import (
	"math"
	"slices"

	"ppc/ir"
)

var reduceArgs = []argSpec{need("x", tensorArg), may("over", axesArg)}

// over are the axes that a reduction goes over: all of them if none are named.
func (e *elab) over(c *builtinCall, t *tensor) ([]string, bool) {
	if !c.has("over") {
		return namesOf(t.axes), true
	}
	names := c.axes("over")
	return names, e.need(c, "x", t, names...)
}

// reduce combines t over axes; sums of 16-bit floats are taken in f32.
func (e *elab) reduce(t *tensor, kind ir.Kind, init float64, over []string) *tensor {
	zero := e.b.Splat(ir.Tensor(t.elem()), init)
	out := &tensor{e.b.Reduce(kind, t.v, zero, t.dims(over)...), without(t.axes, over...)}
	e.noteReduced(out, over)
	return out
}

func (e *elab) sumOver(t *tensor, over []string) *tensor {
	elem := t.elem()
	return e.cast(e.reduce(e.cast(t, wide(elem)), ir.Add, 0, over), elem)
}

func sum(e *elab, c *builtinCall) value {
	t := c.tensor("x")
	over, ok := e.over(c, t)
	if !ok {
		return poison{}
	}
	if t.elem() == ir.I1 {
		return e.fail(c.Span, "cast(x, i32) counts", errFloat, c.name, t)
	}
	return e.sumOver(t, over)
}

func mean(e *elab, c *builtinCall) value {
	t := c.tensor("x")
	over, ok := e.over(c, t)
	if !ok {
		return poison{}
	}
	if !t.elem().IsFloat() {
		return e.fail(c.Span, "cast(x, f32)", errFloat, c.name, t)
	}
	n := 1
	for _, d := range t.dims(over) {
		n *= t.axes[d].size
	}
	s := e.reduce(e.cast(t, wide(t.elem())), ir.Add, 0, over)
	v := e.b.Div(s.v, e.b.Splat(s.v.Type, float64(n)))
	e.p.means[v.Def] = true
	return e.cast(s.with(v), t.elem())
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

func extreme(kind ir.Kind, init float64) func(*elab, *builtinCall) value {
	return func(e *elab, c *builtinCall) value {
		t := c.tensor("x")
		over, ok := e.over(c, t)
		if !ok {
			return poison{}
		}
		if t.elem() == ir.I1 || t.elem().Bits() == 64 && t.elem().IsInt() {
			return e.fail(c.Span, "cast(x, i32)", errFloat, c.name, t)
		}
		return e.reduce(t, kind, lowest(t.elem(), init), over)
	}
}

// argmax is the smallest index at which the maximum stands.
func argmax(e *elab, c *builtinCall) value {
	t, name := c.tensor("x"), c.axis("over")
	if !e.need(c, "x", t, name) {
		return poison{}
	}
	if t.elem() == ir.I1 || t.elem().Bits() == 64 && t.elem().IsInt() {
		return e.fail(c.Span, "cast(x, i32)", errFloat, c.name, t)
	}
	top := e.align(e.reduce(t, ir.Maximum, lowest(t.elem(), math.Inf(-1)), []string{name}), t.axes)
	is := e.b.Compare("EQ", t.v, top.v)
	shape, d := shapeOf(t.axes), t.axis(name)
	at := e.b.Iota(ir.Tensor(ir.I32, shape...), d)
	rest := e.b.Splat(at.Type, float64(shape[d]-1))
	return e.reduce(&tensor{e.b.Select(is, at, rest), t.axes}, ir.Minimum, lowest(ir.I32, 1), []string{name})
}

// exponentials is exp(x - max) in the wide type, its sum over axes, and the
// maximum: what softmax and logsumexp are made of.
func (e *elab) exponentials(c *builtinCall) (exps, total, top *tensor, ok bool) {
	t, over := c.tensor("x"), c.axes("over")
	if !e.need(c, "x", t, over...) {
		return nil, nil, nil, false
	}
	if !t.elem().IsFloat() {
		e.fail(c.Span, "cast(x, f32)", errFloat, c.name, t)
		return nil, nil, nil, false
	}
	x := e.cast(t, wide(t.elem()))
	top = e.reduce(x, ir.Maximum, math.Inf(-1), over)
	exps = x.with(e.b.Unary(ir.Exponential, e.b.Sub(x.v, e.align(top, x.axes).v)))
	return exps, e.reduce(exps, ir.Add, 0, over), top, true
}

func softmax(e *elab, c *builtinCall) value {
	exps, total, _, ok := e.exponentials(c)
	if !ok {
		return poison{}
	}
	return e.cast(exps.with(e.b.Div(exps.v, e.align(total, exps.axes).v)), c.tensor("x").elem())
}

func logsumexp(e *elab, c *builtinCall) value {
	_, total, top, ok := e.exponentials(c)
	if !ok {
		return poison{}
	}
	return e.cast(total.with(e.b.Add(e.b.Unary(ir.Log, total.v), top.v)), c.tensor("x").elem())
}

func cumsum(e *elab, c *builtinCall) value {
	t, name := c.tensor("x"), c.axis("over")
	if !e.need(c, "x", t, name) {
		return poison{}
	}
	if t.elem() == ir.I1 {
		return e.fail(c.Span, "cast(x, i32)", errFloat, c.name, t)
	}
	x, rank, d := e.cast(t, wide(t.elem())), len(t.axes), t.axis(name)
	n := t.axes[d].size
	window, padding := slices.Repeat([]int{1}, rank), make([]int, 2*rank)
	window[d], padding[2*d] = n, n-1
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "window_dimensions", Attr: ir.Ints(window)},
		ir.NamedAttr{Name: "padding", Attr: ir.Ints64(ir.Tensor(ir.I64, rank, 2), padding...)})
	zero := e.b.Splat(ir.Tensor(x.elem()), 0)
	v := e.b.Emit(ir.ReduceWindow, []*ir.Value{x.v, zero}, attrs, []*ir.Block{e.b.Combiner(ir.Add, x.elem())}, nil).Results[0]
	return e.cast(x.with(v), t.elem())
}

// dot contracts the named axes. Axes that both operands have besides are
// matched; the result has the left operand's axes, then the right one's.
func dot(e *elab, c *builtinCall) value {
	x, y, over := c.tensor("x"), c.tensor("y"), c.axes("over")
	if !e.need(c, "x", x, over...) || !e.need(c, "y", y, over...) {
		return poison{}
	}
	if x.elem() != y.elem() {
		return e.fail(c.Span, "cast one of them: cast("+sourceText(c.exprs["y"])+", "+x.elem().String()+")", errElems, "dot", x, y)
	}
	if x.elem() == ir.I1 {
		return e.fail(c.Span, "cast(x, f32)", errFloat, c.name, x)
	}
	var d ir.Dot
	var batch, left, right []axis
	for i, a := range x.axes {
		k := y.axis(a.name)
		if k >= 0 && y.axes[k].size != a.size {
			return e.fail(c.Span, "", errSizes, "dot", a.name, a.size, y.axes[k].size)
		}
		switch {
		case slices.Contains(over, a.name):
			d.LhsContract, d.RhsContract = append(d.LhsContract, i), append(d.RhsContract, k)
		case k >= 0:
			d.LhsBatch, d.RhsBatch = append(d.LhsBatch, i), append(d.RhsBatch, k)
			batch = append(batch, a)
		default:
			left = append(left, a)
		}
	}
	for _, a := range y.axes {
		if x.axis(a.name) < 0 {
			right = append(right, a)
		}
	}
	axes := slices.Concat(batch, left, right)
	if !e.fitsElements(axes) {
		return e.fail(c.Span, "", errTensorLarge, axesText(axes), maxElements)
	}
	out := &tensor{e.b.Dot(x.v, y.v, d), axes}
	e.noteReduced(out, over)
	return e.constrained(e.reorder(out, append(namesOf(without(x.axes, over...)), namesOf(right)...)))
}
