package lang

import (
	"slices"

	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// raggedDot is a dot by groups of the axis along, whose elements are in groups one after
// the other. The sizes have one axis that x lacks, that of the groups; others of theirs
// are matched with x's. Where along is contracted, the result has an element for each
// group; otherwise y has one for each.
func raggedDot(e *elab, c *builtinCall) value.Value {
	x, y, sizes := c.tensor("x"), c.tensor("y"), c.tensor("sizes")
	over, along := c.axes("over"), c.axis("along")
	if !e.need(c, "x", x, append([]string{along}, over...)...) || !e.need(c, "y", y, over...) {
		return value.Poison{}
	}
	if x.Elem() != y.Elem() {
		return e.fail(c.Span, "cast one of them: cast("+sourceText(c.exprs["y"])+", "+x.Elem().String()+")", syntax.ErrElems, c.name, x, y)
	}
	if x.Elem() == ir.I1 {
		return e.fail(c.Span, "cast(x, f32)", syntax.ErrFloat, c.name, x)
	}
	if !sizes.Elem().IsInt() || sizes.Elem() == ir.I1 {
		return e.fail(c.place("sizes"), "cast(sizes, i32)", syntax.ErrWant, c.name+"'s sizes", "whole numbers", value.Describe(sizes))
	}
	groups := without(sizes.Axes, value.NamesOf(x.Axes)...)
	if len(groups) != 1 {
		return e.fail(c.place("sizes"), "", syntax.ErrGroups, sizes, len(groups), x)
	}
	contracted := slices.Contains(over, along)
	switch has := y.Axis(groups[0].Name) >= 0; {
	case has == contracted && contracted:
		return e.fail(c.place("y"), "", syntax.ErrGroupsTwice, y, groups[0].Name, along)
	case has == contracted:
		return e.fail(c.place("y"), "", syntax.ErrNoAxis, c.name, "y", y, groups[0].Name)
	}
	r := &ragged{along: along, groups: groups[0], contracted: contracted}
	if bad := r.sides(x, y, sizes, over); bad != nil {
		return e.fail(c.Span, "", bad.m, bad.args...)
	}
	return e.byGroups(c, r, x, y, sizes, over)
}

// A ragged is what raggedDot makes of its operands' axes: in x batch, then what sizes have
// besides, the ragged axis, others and the contracted ones.
type ragged struct {
	along                     string
	groups                    value.Axis
	contracted                bool
	batch, outer, left, right []value.Axis
}

type badAxes struct {
	m    syntax.Message
	args []any
}

func (r *ragged) sides(x, y, sizes *value.Tensor, over []string) *badAxes {
	for _, a := range x.Axes {
		k, s := y.Axis(a.Name), sizes.Axis(a.Name)
		if k >= 0 && y.Axes[k].Size != a.Size {
			return &badAxes{syntax.ErrSizes, []any{"ragged_dot", a.Name, a.Size, y.Axes[k].Size}}
		}
		if s >= 0 && sizes.Axes[s].Size != a.Size {
			return &badAxes{syntax.ErrSizes, []any{"ragged_dot", a.Name, a.Size, sizes.Axes[s].Size}}
		}
		isOver := slices.Contains(over, a.Name)
		switch {
		case s >= 0 && (isOver || a.Name == r.along || k < 0 && r.contracted):
			return &badAxes{syntax.ErrGroupsAlong, []any{sizes, a.Name}}
		case k >= 0 && a.Name == r.along && !isOver:
			return &badAxes{syntax.ErrRaggedBoth, []any{y, a.Name}}
		case isOver:
		case k >= 0:
			r.batch = append(r.batch, a)
		case s >= 0:
			r.outer = append(r.outer, a)
		case a.Name != r.along:
			r.left = append(r.left, a)
		}
	}
	for _, a := range y.Axes {
		if x.Axis(a.Name) < 0 && a.Name != r.groups.Name {
			r.right = append(r.right, a)
		} else if g := r.groups; a.Name == g.Name && a.Size != g.Size {
			return &badAxes{syntax.ErrSizes, []any{"ragged_dot", a.Name, a.Size, g.Size}}
		}
	}
	return nil
}

func (e *elab) byGroups(c *builtinCall, r *ragged, x, y, sizes *value.Tensor, over []string) value.Value {
	var d ir.RaggedDims
	var order []string // of x
	put := func(axes ...string) {
		order = append(order, axes...)
	}
	put(value.NamesOf(r.batch)...)
	put(value.NamesOf(r.outer)...)
	if !r.contracted {
		put(r.along)
	}
	put(value.NamesOf(r.left)...)
	if r.contracted {
		put(r.along)
	}
	for _, a := range over {
		if a != r.along {
			put(a)
		}
	}
	d.LhsRagged = []int{slices.Index(order, r.along)}
	for i, a := range r.batch {
		d.LhsBatch, d.RhsBatch = append(d.LhsBatch, i), append(d.RhsBatch, y.Axis(a.Name))
	}
	for i, a := range order {
		if slices.Contains(over, a) {
			d.LhsContract, d.RhsContract = append(d.LhsContract, i), append(d.RhsContract, y.Axis(a))
		}
	}
	front := slices.Concat(r.batch, r.outer)
	var axes []value.Axis
	if r.contracted {
		axes = append([]value.Axis{r.groups}, front...)
		axes = slices.Concat(axes, r.left, r.right)
	} else {
		d.RhsGroup = []int{y.Axis(r.groups.Name)}
		axes = slices.Concat(front, []value.Axis{x.Axes[x.Axis(r.along)]}, r.left, r.right)
	}
	if !e.fitsElements(axes) {
		return e.fail(c.Span, "", syntax.ErrTensorLarge, value.AxesText(axes), maxElements)
	}
	if len(sizes.Axes) > 1 {
		sizes = e.align(sizes, append(slices.Clone(front), r.groups))
	}
	in := []*ir.Value{e.reorder(x, order).V, y.V, sizes.V}
	out := &value.Tensor{V: e.b.Emit(ir.RaggedDot, in, ir.AttrsOf(ir.NamedAttr{Name: "ragged_dot_dimension_numbers", Attr: d}), nil, nil).Result(), Axes: axes}
	e.noteReduced(out, over)
	names := append(value.NamesOf(without(x.Axes, over...)), value.NamesOf(r.right)...)
	if r.contracted {
		names = append([]string{r.groups.Name}, names...)
	}
	return e.constrained(e.reorder(out, names))
}
