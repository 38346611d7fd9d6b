package lang

import (
	"slices"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// take gathers: the result has the index's axes, then the rest of x's. Axes
// that both have are matched.
func take(e *elab, c *builtinCall) value {
	x, index, name := c.tensor("x"), c.tensor("index"), c.axis("axis")
	if !e.need(c, "x", x, name) {
		return poison{}
	}
	if !index.elem().IsInt() {
		return e.fail(c.place("index"), "cast(index, i32)", errWant, "take's index", "whole numbers", describe(index))
	}
	if index.axis(name) >= 0 {
		return e.fail(c.place("index"), "rename it", errTakeAxis, index, name)
	}
	g := ir.GatherDims{CollapsedSliceDims: []int{x.axis(name)}, StartIndexMap: []int{x.axis(name)}, IndexVectorDim: len(index.axes)}
	sizes, axes := slices.Repeat([]int{1}, len(x.axes)), slices.Clone(index.axes)
	for d, a := range x.axes {
		k := index.axis(a.name)
		switch {
		case a.name == name:
		case k >= 0:
			if index.axes[k].size != a.size {
				return e.fail(c.Span, "", errSizes, "take", a.name, a.size, index.axes[k].size)
			}
			g.OperandBatchingDims, g.StartIndicesBatchingDims = append(g.OperandBatchingDims, d), append(g.StartIndicesBatchingDims, k)
		default:
			g.OffsetDims = append(g.OffsetDims, len(axes))
			sizes[d] = a.size
			axes = append(axes, a)
		}
	}
	if !e.fitsElements(axes) {
		return e.fail(c.Span, "", errTensorLarge, axesText(axes), maxElements)
	}
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "dimension_numbers", Attr: g}, ir.NamedAttr{Name: "slice_sizes", Attr: ir.Ints(sizes)})
	return e.constrained(&tensor{e.b.Emit(ir.Gather, []*ir.Value{x.v, index.v}, attrs, nil, nil).Results[0], axes})
}

func oneHot(e *elab, c *builtinCall) value {
	t, name := c.tensor("index"), c.axis("axis")
	n, ok := e.size(name)
	if c.has("size") {
		n, ok = e.wholeArg(c, "size", 1, maxAxis)
	}
	if !ok || !t.elem().IsInt() || t.axis(name) >= 0 {
		return e.fail(c.Span, "", errOneHot, t, name)
	}
	axes := append(slices.Clone(t.axes), axis{name, n})
	if !e.fitsElements(axes) {
		return e.fail(c.Span, "", errTensorLarge, axesText(axes), maxElements)
	}
	at := e.b.Iota(ir.Tensor(t.elem(), shapeOf(axes)...), len(axes)-1)
	return e.cast(&tensor{e.b.Compare("EQ", e.align(t, axes).v, at), axes}, c.elem("to"))
}

// sorted sorts values, and with them their indices, along dimension d.
func (e *elab) sorted(t *tensor, d int, descending bool) (values, indices *ir.Value) {
	at := e.b.Iota(ir.Tensor(ir.I32, shapeOf(t.axes)...), d)
	region := new(ir.Block)
	x := e.b.Func.NewArg(region, ir.Tensor(t.elem()), "")
	y := e.b.Func.NewArg(region, ir.Tensor(t.elem()), "")
	e.b.Func.NewArg(region, ir.Tensor(ir.I32), "")
	e.b.Func.NewArg(region, ir.Tensor(ir.I32), "")
	in, direction := e.b.In(region), "LT"
	if descending {
		direction = "GT"
	}
	in.Emit(ir.Return, []*ir.Value{in.Compare(direction, x, y)}, nil, nil, nil)
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "dimension", Attr: ir.I64Attr(d)}, ir.NamedAttr{Name: "is_stable", Attr: ir.Bool(true)})
	rs := e.b.Emit(ir.Sort, []*ir.Value{t.v, at}, attrs, []*ir.Block{region}, nil).Results
	return rs[0], rs[1]
}

func sortAxis(e *elab, c *builtinCall) value {
	t, name := c.tensor("x"), c.axis("over")
	if !e.need(c, "x", t, name) {
		return poison{}
	}
	down, _ := c.args["descending"].(boolean)
	v, _ := e.sorted(t, t.axis(name), bool(down))
	return t.with(v)
}

// topK is the k largest elements, larger first and of equals the lower index
// first, and their indices.
func topK(e *elab, c *builtinCall) value {
	t, name, into := c.tensor("x"), c.axis("over"), c.axis("into")
	if !e.need(c, "x", t, name) {
		return poison{}
	}
	d := t.axis(name)
	k, ok := e.size(into)
	if c.has("k") {
		k, ok = e.wholeArg(c, "k", 1, t.axes[d].size)
	} else if !ok {
		e.fail(c.place("into"), "top_k(…, k: 2)", errNoSize, into)
	}
	if !ok {
		return poison{}
	}
	if k > t.axes[d].size || t.axis(into) >= 0 && into != name {
		return e.fail(c.Span, "", errTopK, k, into, t.axes[d].size, name)
	}
	values, indices := e.sorted(t, d, true)
	axes := slices.Clone(t.axes)
	axes[d] = axis{into, k}
	return tuple{&tensor{e.b.SliceDim(values, d, 0, k), axes}, &tensor{e.b.SliceDim(indices, d, 0, k), axes}}
}

// renames reads the arrows of rename: one a -> b, or several in a call of
// rename inside another.
func (e *elab) arrow(c *builtinCall) (from, to syntax.Expr, ok bool) {
	from, to = c.exprs["axes"], c.moves["axes"]
	if to == nil {
		e.fail(c.place("axes"), c.name+"(x, a -> b)", errNoArrow, c.name)
		return nil, nil, false
	}
	return from, to, true
}

func rename(e *elab, c *builtinCall) value {
	x, y, ok := e.arrow(c)
	if !ok {
		return poison{}
	}
	t := c.tensor("x")
	from, ok := e.axisOf(x)
	if !ok || !e.need(c, "x", t, from) {
		return poison{}
	}
	made, ok := e.newAxis(y)
	if !ok {
		return poison{}
	}
	to := string(made.(axisName))
	if t.axis(to) >= 0 && to != from {
		return e.fail(c.place("axes"), "", errHasAxis, "rename", t, to)
	}
	if n, known := e.size(to); known && n != t.axes[t.axis(from)].size {
		return e.fail(c.place("axes"), "", errRenameSize, from, t.axes[t.axis(from)].size, to, n)
	}
	axes := slices.Clone(t.axes)
	axes[t.axis(from)].name = to
	return &tensor{t.v, axes}
}

// splitAxis makes one axis several, major first. One of them may have no size
// yet; it gets what the others leave.
func splitAxis(e *elab, c *builtinCall) value {
	x, y, ok := e.arrow(c)
	if !ok {
		return poison{}
	}
	t := c.tensor("x")
	from, ok := e.axisOf(x)
	if !ok || !e.need(c, "x", t, from) {
		return poison{}
	}
	d := t.axis(from)
	parts, ok := e.parts(y, t.axes[d])
	if !ok {
		return poison{}
	}
	for _, a := range parts {
		if t.axis(a.name) >= 0 && a.name != from {
			return e.fail(y.At(), "", errHasAxis, "split", t, a.name)
		}
	}
	axes := slices.Concat(t.axes[:d], parts, t.axes[d+1:])
	return &tensor{e.b.Reshape(t.v, shapeOf(axes)...), axes}
}

// parts reads [a, b: 2], the axes that an axis is split into.
func (e *elab) parts(y syntax.Expr, whole axis) ([]axis, bool) {
	l, ok := y.(*syntax.ListLit)
	if !ok {
		e.fail(y.At(), "split(x, a -> [b, c: 2])", errWant, "the right side of the arrow", "a list of axes", "one axis")
		return nil, false
	}
	var out []axis
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
		a := axis{name: string(made.(axisName))}
		n, known := e.size(a.name)
		if it.Name != nil {
			num, ok := e.toNumber(e.eval(it.Value), it.Value, "the size of "+a.name)
			if n, known = num.whole(); !ok || !known {
				return nil, false
			}
		}
		switch {
		case known:
			a.size = max(n, 1)
			product *= a.size
		case rest >= 0:
			e.fail(it.Span, "give it one: "+a.name+": 2", errNoSize, a.name)
			return nil, false
		default:
			rest = i
		}
		if slices.ContainsFunc(out, func(b axis) bool { return b.name == a.name }) {
			e.fail(it.Span, "", errListTwice, a.name)
			return nil, false
		}
		if product > maxAxis {
			break
		}
		out = append(out, a)
	}
	if rest >= 0 && whole.size%product == 0 {
		out[rest].size = whole.size / product
		product = whole.size
	}
	if product != whole.size {
		e.fail(y.At(), "", errSplit, whole.name, whole.size, product)
		return nil, false
	}
	return out, true
}

// mergeAxes makes several axes one, the first one major. They are brought
// together at the place of the first.
func mergeAxes(e *elab, c *builtinCall) value {
	x, y, ok := e.arrow(c)
	if !ok {
		return poison{}
	}
	t := c.tensor("x")
	l, ok := e.axesOf(x)
	if !ok {
		return poison{}
	}
	from := make([]string, len(l.(list)))
	size := 1
	for i, v := range l.(list) {
		from[i] = string(v.(axisName))
	}
	if !e.need(c, "x", t, from...) || len(from) == 0 {
		return poison{}
	}
	for _, d := range t.dims(from) {
		size *= t.axes[d].size
	}
	made, ok := e.newAxis(y)
	if !ok {
		return poison{}
	}
	to := string(made.(axisName))
	if n, known := e.size(to); known && n != size {
		return e.fail(c.place("axes"), "", errMerge, commas(from), size, to, n)
	}
	if t.axis(to) >= 0 && !slices.Contains(from, to) {
		return e.fail(c.place("axes"), "", errHasAxis, "merge", t, to)
	}
	names := namesOf(t.axes)
	var sorted []string
	var axes []axis
	for _, n := range names {
		if n == from[0] {
			sorted = append(sorted, from...)
			axes = append(axes, axis{to, size})
		} else if !slices.Contains(from, n) {
			sorted = append(sorted, n)
			axes = append(axes, t.axes[t.axis(n)])
		}
	}
	return &tensor{e.b.Reshape(e.reorder(t, sorted).v, shapeOf(axes)...), axes}
}

func order(e *elab, c *builtinCall) value {
	t, last := c.tensor("x"), c.axes("axes")
	if !e.need(c, "x", t, last...) {
		return poison{}
	}
	return e.reorder(t, append(namesOf(without(t.axes, last...)), last...))
}

func expand(e *elab, c *builtinCall) value {
	x := c.tensor("x")
	axes, ok := e.union(c.Span, "expand", c.tensor("like"), x)
	if !ok {
		return poison{}
	}
	return e.align(x, axes)
}

func sliceAxis(e *elab, c *builtinCall) value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return poison{}
	}
	d := t.axis(name)
	lo, ok := e.wholeArg(c, "start", 0, t.axes[d].size-1)
	hi, ok2 := e.wholeArg(c, "end", 1, t.axes[d].size)
	if !ok || !ok2 {
		return poison{}
	}
	if lo >= hi {
		return e.fail(c.Span, "", errSlice, lo, hi)
	}
	axes := slices.Clone(t.axes)
	axes[d].size = hi - lo
	return &tensor{e.b.SliceDim(t.v, d, lo, hi), axes}
}

func indexAxis(e *elab, c *builtinCall) value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return poison{}
	}
	d := t.axis(name)
	at, ok := e.wholeArg(c, "at", 0, t.axes[d].size-1)
	if !ok {
		return poison{}
	}
	axes := without(t.axes, name)
	return &tensor{e.b.Reshape(e.b.SliceDim(t.v, d, at, at+1), shapeOf(axes)...), axes}
}

func padAxis(e *elab, c *builtinCall) value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return poison{}
	}
	lo, hi, ok := 0, 0, true
	if c.has("low") {
		lo, ok = e.wholeArg(c, "low", 0, maxAxis)
	}
	if c.has("high") && ok {
		hi, ok = e.wholeArg(c, "high", 0, maxAxis)
	}
	if !ok {
		return poison{}
	}
	d, rank := t.axis(name), len(t.axes)
	low, high := make([]int, rank), make([]int, rank)
	low[d], high[d] = lo, hi
	axes := slices.Clone(t.axes)
	axes[d].size += lo + hi
	if !e.fitsElements(axes) {
		return e.fail(c.Span, "", errTensorLarge, axesText(axes), maxElements)
	}
	fill := e.b.Splat(ir.Tensor(t.elem()), c.number("value", 0))
	return &tensor{e.b.Pad(t.v, fill, low, high, make([]int, rank)), axes}
}

func concat(e *elab, c *builtinCall) value {
	l, ok := c.args["parts"].(list)
	name := c.axis("axis")
	var ts []*tensor
	for _, v := range l {
		t, isTensor := v.(*tensor)
		ok = ok && isTensor
		ts = append(ts, t)
	}
	if slices.ContainsFunc(l, func(v value) bool { return isPoison(v) }) {
		return poison{}
	}
	if !ok || len(ts) == 0 {
		return e.fail(c.place("parts"), "concat([a, b], axis: head)", errWant, "concat's parts", "a list of tensors", describe(c.args["parts"]))
	}
	first := ts[0]
	var vs []*ir.Value
	total := 0
	for _, t := range ts {
		if !e.need(c, "parts", t, name) {
			return poison{}
		}
		if t.elem() != first.elem() {
			return e.fail(c.Span, "cast one of them", errElems, "concat", first, t)
		}
		rest, others := without(first.axes, name), without(t.axes, name)
		for _, a := range others {
			if !slices.Contains(rest, a) {
				return e.fail(c.Span, "", errConcat, first, t)
			}
		}
		if len(rest) != len(others) {
			return e.fail(c.Span, "", errConcat, first, t)
		}
		vs = append(vs, e.reorder(t, namesOf(first.axes)).v)
		total += t.axes[t.axis(name)].size
	}
	axes := slices.Clone(first.axes)
	axes[first.axis(name)].size = total
	return &tensor{e.b.Concat(first.axis(name), vs...), axes}
}

func roll(e *elab, c *builtinCall) value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return poison{}
	}
	by, ok := e.wholeArg(c, "by", -maxAxis, maxAxis)
	if !ok {
		return poison{}
	}
	d := t.axis(name)
	n := t.axes[d].size
	if by = ((by % n) + n) % n; by == 0 {
		return t
	}
	return t.with(e.b.Concat(d, e.b.SliceDim(t.v, d, n-by, n), e.b.SliceDim(t.v, d, 0, n-by)))
}
