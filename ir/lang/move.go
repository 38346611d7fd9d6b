package lang

import (
	"slices"

	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// take gathers: the result has the index's axes, then the rest of x's. Axes
// that both have are matched.
func take(e *elab, c *builtinCall) value.Value {
	x, index, name := c.tensor("x"), c.tensor("index"), c.axis("axis")
	if !e.need(c, "x", x, name) {
		return value.Poison{}
	}
	if !index.Elem().IsInt() {
		return e.fail(c.place("index"), "cast(index, i32)", syntax.ErrWant, "take's index", "whole numbers", value.Describe(index))
	}
	if index.Axis(name) >= 0 {
		return e.fail(c.place("index"), "rename it", syntax.ErrTakeAxis, index, name)
	}
	g := ir.GatherDims{CollapsedSliceDims: []int{x.Axis(name)}, StartIndexMap: []int{x.Axis(name)}, IndexVectorDim: len(index.Axes)}
	sizes, axes := slices.Repeat([]int{1}, len(x.Axes)), slices.Clone(index.Axes)
	for d, a := range x.Axes {
		k := index.Axis(a.Name)
		switch {
		case a.Name == name:
		case k >= 0:
			if index.Axes[k].Size != a.Size {
				return e.fail(c.Span, "", syntax.ErrSizes, "take", a.Name, a.Size, index.Axes[k].Size)
			}
			g.OperandBatchingDims, g.StartIndicesBatchingDims = append(g.OperandBatchingDims, d), append(g.StartIndicesBatchingDims, k)
		default:
			g.OffsetDims = append(g.OffsetDims, len(axes))
			sizes[d] = a.Size
			axes = append(axes, a)
		}
	}
	if !e.fitsElements(axes) {
		return e.fail(c.Span, "", syntax.ErrTensorLarge, value.AxesText(axes), maxElements)
	}
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "dimension_numbers", Attr: g}, ir.NamedAttr{Name: "slice_sizes", Attr: ir.Ints(sizes)})
	return e.constrained(&value.Tensor{V: e.b.Emit(ir.Gather, []*ir.Value{x.V, index.V}, attrs, nil, nil).Results[0], Axes: axes})
}

func oneHot(e *elab, c *builtinCall) value.Value {
	t, name := c.tensor("index"), c.axis("axis")
	n, ok := e.size(name)
	if c.has("size") {
		n, ok = e.intArg(c, "size", 1, config.MaxAxis)
	}
	if !ok || !t.Elem().IsInt() || t.Axis(name) >= 0 {
		return e.fail(c.Span, "", syntax.ErrOneHot, t, name)
	}
	axes := append(slices.Clone(t.Axes), value.Axis{Name: name, Size: n})
	if !e.fitsElements(axes) {
		return e.fail(c.Span, "", syntax.ErrTensorLarge, value.AxesText(axes), maxElements)
	}
	at := e.b.Iota(ir.Tensor(t.Elem(), value.ShapeOf(axes)...), len(axes)-1)
	return e.cast(&value.Tensor{V: e.b.Compare("EQ", e.align(t, axes).V, at), Axes: axes}, c.elem("to"))
}

// sorted sorts values, and with them their indices, along dimension d: by LT the
// smallest first, by GT the largest.
func (e *elab) sorted(t *value.Tensor, d int, by string) (values, indices *ir.Value) {
	at := e.b.Iota(ir.Tensor(ir.I32, value.ShapeOf(t.Axes)...), d)
	region := new(ir.Block)
	x := e.b.Func.NewArg(region, ir.Tensor(t.Elem()), "")
	y := e.b.Func.NewArg(region, ir.Tensor(t.Elem()), "")
	e.b.Func.NewArg(region, ir.Tensor(ir.I32), "")
	e.b.Func.NewArg(region, ir.Tensor(ir.I32), "")
	in := e.b.In(region)
	in.Emit(ir.Return, []*ir.Value{in.Compare(by, x, y)}, nil, nil, nil)
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "dimension", Attr: ir.I64Attr(d)}, ir.NamedAttr{Name: "is_stable", Attr: ir.Bool(true)})
	rs := e.b.Emit(ir.Sort, []*ir.Value{t.V, at}, attrs, []*ir.Block{region}, nil).Results
	return rs[0], rs[1]
}

func sortAxis(e *elab, c *builtinCall) value.Value {
	t, name := c.tensor("x"), c.axis("over")
	if !e.need(c, "x", t, name) {
		return value.Poison{}
	}
	by := "LT"
	if down, _ := c.args["descending"].(value.Boolean); down {
		by = "GT"
	}
	v, _ := e.sorted(t, t.Axis(name), by)
	return t.With(v)
}

// topK is the k largest elements, larger first and of equals the lower index
// first, and their indices.
func topK(e *elab, c *builtinCall) value.Value {
	t, name, into := c.tensor("x"), c.axis("over"), c.axis("into")
	if !e.need(c, "x", t, name) {
		return value.Poison{}
	}
	d := t.Axis(name)
	k, ok := e.size(into)
	if c.has("k") {
		k, ok = e.intArg(c, "k", 1, t.Axes[d].Size)
	} else if !ok {
		e.fail(c.place("into"), "top_k(…, k: 2)", syntax.ErrNoSize, into)
	}
	if !ok {
		return value.Poison{}
	}
	if k > t.Axes[d].Size || t.Axis(into) >= 0 && into != name {
		return e.fail(c.Span, "", syntax.ErrTopK, k, into, t.Axes[d].Size, name)
	}
	values, indices := e.sorted(t, d, "GT")
	axes := slices.Clone(t.Axes)
	axes[d] = value.Axis{Name: into, Size: k}
	return value.Tuple{&value.Tensor{V: e.b.SliceDim(values, d, 0, k), Axes: axes}, &value.Tensor{V: e.b.SliceDim(indices, d, 0, k), Axes: axes}}
}

// arrow reads the two sides of the argument axes, a -> b.
func (e *elab) arrow(c *builtinCall) (from, to syntax.Expr, ok bool) {
	from, to = c.exprs["axes"], c.moves["axes"]
	if to == nil {
		e.fail(c.place("axes"), c.name+"(x, a -> b)", syntax.ErrNoArrow, c.name)
		return nil, nil, false
	}
	return from, to, true
}

// axisArrow reads an arrow from one axis of the tensor x.
func (e *elab) axisArrow(c *builtinCall) (t *value.Tensor, from string, to syntax.Expr, ok bool) {
	x, to, ok := e.arrow(c)
	if !ok {
		return nil, "", nil, false
	}
	t = c.tensor("x")
	from, ok = e.axisOf(x)
	return t, from, to, ok && e.need(c, "x", t, from)
}

func rename(e *elab, c *builtinCall) value.Value {
	t, from, y, ok := e.axisArrow(c)
	if !ok {
		return value.Poison{}
	}
	made, ok := e.newAxis(y)
	if !ok {
		return value.Poison{}
	}
	to := string(made.(value.AxisName))
	if t.Axis(to) >= 0 && to != from {
		return e.fail(c.place("axes"), "", syntax.ErrHasAxis, "rename", t, to)
	}
	if n, known := e.size(to); known && n != t.Axes[t.Axis(from)].Size {
		return e.fail(c.place("axes"), "", syntax.ErrRenameSize, from, t.Axes[t.Axis(from)].Size, to, n)
	}
	axes := slices.Clone(t.Axes)
	axes[t.Axis(from)].Name = to
	return &value.Tensor{V: t.V, Axes: axes}
}

// splitAxis makes one axis several, major first. One of them may have no size
// yet; it gets what the others leave.
func splitAxis(e *elab, c *builtinCall) value.Value {
	t, from, y, ok := e.axisArrow(c)
	if !ok {
		return value.Poison{}
	}
	d := t.Axis(from)
	parts, ok := e.parts(y, t.Axes[d])
	if !ok {
		return value.Poison{}
	}
	for _, a := range parts {
		if t.Axis(a.Name) >= 0 && a.Name != from {
			return e.fail(y.At(), "", syntax.ErrHasAxis, "split", t, a.Name)
		}
	}
	axes := slices.Concat(t.Axes[:d], parts, t.Axes[d+1:])
	return &value.Tensor{V: e.b.Reshape(t.V, value.ShapeOf(axes)...), Axes: axes}
}

// parts reads [a, b: 2], the axes that an axis is split into.
func (e *elab) parts(y syntax.Expr, of value.Axis) ([]value.Axis, bool) {
	l, ok := y.(*syntax.ListLit)
	if !ok {
		e.fail(y.At(), "split(x, a -> [b, c: 2])", syntax.ErrWant, "the right side of the arrow", "a list of axes", "one axis")
		return nil, false
	}
	var out []value.Axis
	rest, product := -1, 1
	for i, it := range l.Items {
		var name syntax.Expr = it.Value
		if it.Name != nil {
			name = it.Name
		}
		made, ok := e.newAxis(name)
		if !ok {
			return nil, false
		}
		a := value.Axis{Name: string(made.(value.AxisName))}
		n, known := e.size(a.Name)
		if it.Name != nil {
			num, ok := e.toNumber(e.eval(it.Value), it.Value, "the size of "+a.Name)
			if n, known = num.Whole(); !ok || !known {
				return nil, false
			}
		}
		switch {
		case known:
			a.Size = max(n, 1)
			product *= a.Size
		case rest >= 0:
			e.fail(it.Span, "give it one: "+a.Name+": 2", syntax.ErrNoSize, a.Name)
			return nil, false
		default:
			rest = i
		}
		if slices.ContainsFunc(out, func(b value.Axis) bool { return b.Name == a.Name }) {
			e.fail(it.Span, "", syntax.ErrListTwice, a.Name)
			return nil, false
		}
		if product > config.MaxAxis {
			break
		}
		out = append(out, a)
	}
	if rest >= 0 && of.Size%product == 0 {
		out[rest].Size = of.Size / product
		product = of.Size
	}
	if product != of.Size {
		e.fail(y.At(), "", syntax.ErrSplit, of.Name, of.Size, product)
		return nil, false
	}
	return out, true
}

// mergeAxes makes several axes one, the first one major, at the position of the
// first.
func mergeAxes(e *elab, c *builtinCall) value.Value {
	x, y, ok := e.arrow(c)
	if !ok {
		return value.Poison{}
	}
	t := c.tensor("x")
	l, ok := e.axesOf(x)
	if !ok {
		return value.Poison{}
	}
	from := make([]string, len(l.(value.List)))
	size := 1
	for i, v := range l.(value.List) {
		from[i] = string(v.(value.AxisName))
	}
	if !e.need(c, "x", t, from...) || len(from) == 0 {
		return value.Poison{}
	}
	for _, d := range t.Dims(from) {
		size *= t.Axes[d].Size
	}
	made, ok := e.newAxis(y)
	if !ok {
		return value.Poison{}
	}
	to := string(made.(value.AxisName))
	if n, known := e.size(to); known && n != size {
		return e.fail(c.place("axes"), "", syntax.ErrMerge, commas(from), size, to, n)
	}
	if t.Axis(to) >= 0 && !slices.Contains(from, to) {
		return e.fail(c.place("axes"), "", syntax.ErrHasAxis, "merge", t, to)
	}
	names := value.NamesOf(t.Axes)
	var sorted []string
	var axes []value.Axis
	for _, n := range names {
		if n == from[0] {
			sorted = append(sorted, from...)
			axes = append(axes, value.Axis{Name: to, Size: size})
		} else if !slices.Contains(from, n) {
			sorted = append(sorted, n)
			axes = append(axes, t.Axes[t.Axis(n)])
		}
	}
	return &value.Tensor{V: e.b.Reshape(e.reorder(t, sorted).V, value.ShapeOf(axes)...), Axes: axes}
}

func order(e *elab, c *builtinCall) value.Value {
	t, last := c.tensor("x"), c.axes("axes")
	if !e.need(c, "x", t, last...) {
		return value.Poison{}
	}
	return e.reorder(t, append(value.NamesOf(without(t.Axes, last...)), last...))
}

func expand(e *elab, c *builtinCall) value.Value {
	x := c.tensor("x")
	axes, ok := e.union(c.Span, "expand", c.tensor("like"), x)
	if !ok {
		return value.Poison{}
	}
	return e.align(x, axes)
}

func sliceAxis(e *elab, c *builtinCall) value.Value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return value.Poison{}
	}
	d := t.Axis(name)
	lo, ok := e.intArg(c, "start", 0, t.Axes[d].Size-1)
	hi, ok2 := e.intArg(c, "end", 1, t.Axes[d].Size)
	if !ok || !ok2 {
		return value.Poison{}
	}
	if lo >= hi {
		return e.fail(c.Span, "", syntax.ErrSlice, lo, hi)
	}
	axes := slices.Clone(t.Axes)
	axes[d].Size = hi - lo
	return &value.Tensor{V: e.b.SliceDim(t.V, d, lo, hi), Axes: axes}
}

func indexAxis(e *elab, c *builtinCall) value.Value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return value.Poison{}
	}
	d := t.Axis(name)
	at, ok := e.intArg(c, "at", 0, t.Axes[d].Size-1)
	if !ok {
		return value.Poison{}
	}
	axes := without(t.Axes, name)
	return &value.Tensor{V: e.b.Reshape(e.b.SliceDim(t.V, d, at, at+1), value.ShapeOf(axes)...), Axes: axes}
}

func padAxis(e *elab, c *builtinCall) value.Value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return value.Poison{}
	}
	lo, hi, ok := 0, 0, true
	if c.has("low") {
		lo, ok = e.intArg(c, "low", 0, config.MaxAxis)
	}
	if c.has("high") && ok {
		hi, ok = e.intArg(c, "high", 0, config.MaxAxis)
	}
	if !ok {
		return value.Poison{}
	}
	d, rank := t.Axis(name), len(t.Axes)
	low, high := make([]int, rank), make([]int, rank)
	low[d], high[d] = lo, hi
	axes := slices.Clone(t.Axes)
	axes[d].Size += lo + hi
	if !e.fitsElements(axes) {
		return e.fail(c.Span, "", syntax.ErrTensorLarge, value.AxesText(axes), maxElements)
	}
	fill := e.b.Splat(ir.Tensor(t.Elem()), c.number("value", 0))
	return &value.Tensor{V: e.b.Pad(t.V, fill, low, high, make([]int, rank)), Axes: axes}
}

func concat(e *elab, c *builtinCall) value.Value {
	l, ok := c.args["parts"].(value.List)
	name := c.axis("axis")
	var ts []*value.Tensor
	for _, v := range l {
		t, isTensor := v.(*value.Tensor)
		ok = ok && isTensor
		ts = append(ts, t)
	}
	if slices.ContainsFunc(l, func(v value.Value) bool { return value.IsPoison(v) }) {
		return value.Poison{}
	}
	if !ok || len(ts) == 0 {
		return e.fail(c.place("parts"), "concat([a, b], axis: head)", syntax.ErrWant, "concat's parts", "a list of tensors", value.Describe(c.args["parts"]))
	}
	first := ts[0]
	var vs []*ir.Value
	total := 0
	for _, t := range ts {
		if !e.need(c, "parts", t, name) {
			return value.Poison{}
		}
		if t.Elem() != first.Elem() {
			return e.fail(c.Span, "cast one of them", syntax.ErrElems, "concat", first, t)
		}
		rest, others := without(first.Axes, name), without(t.Axes, name)
		for _, a := range others {
			if !slices.Contains(rest, a) {
				return e.fail(c.Span, "", syntax.ErrConcat, first, t)
			}
		}
		if len(rest) != len(others) {
			return e.fail(c.Span, "", syntax.ErrConcat, first, t)
		}
		vs = append(vs, e.reorder(t, value.NamesOf(first.Axes)).V)
		total += t.Axes[t.Axis(name)].Size
	}
	axes := slices.Clone(first.Axes)
	axes[first.Axis(name)].Size = total
	return &value.Tensor{V: e.b.Concat(first.Axis(name), vs...), Axes: axes}
}

func roll(e *elab, c *builtinCall) value.Value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return value.Poison{}
	}
	by, ok := e.intArg(c, "by", -config.MaxAxis, config.MaxAxis)
	if !ok {
		return value.Poison{}
	}
	d := t.Axis(name)
	n := t.Axes[d].Size
	if by = ((by % n) + n) % n; by == 0 {
		return t
	}
	return t.With(e.b.Concat(d, e.b.SliceDim(t.V, d, n-by, n), e.b.SliceDim(t.V, d, 0, n-by)))
}
