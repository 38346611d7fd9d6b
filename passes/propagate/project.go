package propagate

import (
	"cmp"
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// A projection is the axes that shard each tensor of one node, by factor: operands
// first, then results.
type projection struct {
	mesh    *ir.Mesh
	sizes   []int // of the factors
	inputs  int
	tensors []projected
}

// A projected is the axes that shard one tensor, by factor.
type projected struct {
	factors []layout.FactorAxes
	barred  []ir.AxisRef
}

// project is the projection of n as it is now, in memory that the next one reuses.
func (p *propagator) project(n *propNode) *projection {
	k := len(n.rule.Sizes)
	p.factors = slices.Grow(p.factors[:0], len(n.refs)*k)[:len(n.refs)*k]
	clear(p.factors)
	pr := &p.projection
	*pr = projection{mesh: p.mesh, sizes: n.rule.Sizes, inputs: len(n.operands()), tensors: pr.tensors[:0]}
	for i, r := range n.refs {
		pr.tensors = append(pr.tensors, p.projectTensor(r, n.dims(i), n.rule.Sizes, p.factors[i*k:(i+1)*k]))
	}
	return pr
}

// projectTensor is r, of dimensions with the given factors of the given sizes, by
// factor.
func (p *propagator) projectTensor(r propRef, dims [][]int, sizes []int, factors []layout.FactorAxes) projected {
	t := projected{factors: factors}
	if r.propTensor == nil {
		return t
	}
	for _, axis := range r.barred {
		if !layout.OverlapsAny(axis, slices.Concat(r.manual...)) {
			t.barred = append(t.barred, axis)
		}
	}
	for d, ks := range dims {
		axes := r.dims[d]
		if manual := r.manualAxes(d); len(manual) > 0 || len(axes) > 1 {
			axes = p.mesh.JoinAxes(slices.Clone(manual), axes)
		}
		if len(ks) == 0 {
			t.barred = append(t.barred, axes...)
			continue
		}
		layout.ProjectDim(p.mesh, axes, ks, sizes, t.factors)
		for _, k := range ks {
			f := &t.factors[k]
			f.Closed = f.Closed || r.closed[d]
			f.Limit = sizes[k]
			if len(ks) == 1 {
				f.Limit = r.shape[d] * p.mesh.RefsSize(r.manualAxes(d))
			}
			if r.ghost != nil && r.ghost[d] {
				f.Limit = 0
			}
		}
	}
	return t
}

// dimAxes is the inverse of ProjectDim: the axes of a dimension with factors ks. A
// factor whose axes do not use up its size ends the list, since a sharding of a
// more minor factor would then be strided.
func (pr *projection) dimAxes(t *projected, ks []int) []ir.AxisRef {
	var axes []ir.AxisRef
	for _, k := range ks {
		f := &t.factors[k]
		axes = pr.mesh.JoinAxes(axes, f.Axes)
		if len(f.Overflow) > 0 {
			return pr.mesh.JoinAxes(axes, f.Overflow)
		}
		if pr.mesh.RefsSize(f.Axes) < pr.sizes[k] {
			return axes
		}
	}
	return axes
}

// along propagates axes along every factor in the given directions. Where two
// factors want one axis of a tensor, the factor with the larger source tensor has
// it; of elementwise ops, among equals, the one with more devices. It changes pr
// only, and reports whether it may have.
func (pr *projection) along(n *propNode, may allowed) bool {
	axes := make([][]ir.AxisRef, len(pr.sizes))
	more := false
	for k, t := range n.rule.Types {
		dir := may.other
		if t == ir.PassThrough {
			dir = may.through
		}
		if axes[k] = pr.compatible(k, dir); len(axes[k]) == 0 {
			continue
		}
		for i := range pr.tensors {
			f := &pr.tensors[i].factors[k]
			more = more || f.Present && !slices.Equal(f.Axes, axes[k])
		}
	}
	if !more {
		return false
	}
	order := pr.order(n, axes)
	for i := pr.inputs; i < len(pr.tensors); i++ {
		t := &pr.tensors[i]
		for _, k := range order {
			if next := pr.fitting(t, k, axes[k]); next != nil {
				t.factors[k].Axes = next
			}
		}
	}
	for i := range pr.inputs {
		t := &pr.tensors[i]
		for _, k := range order {
			next := pr.fitting(t, k, axes[k])
			if next != nil && n.elementwise() {
				next = pr.noFurther(k, next)
			}
			if next != nil && pr.strictPrefix(t.factors[k].Axes, next) {
				t.factors[k].Axes = next
			}
		}
	}
	return true
}

// noFurther is the part of axes that an operand of an elementwise op may take from
// another operand: no more than every result has.
func (pr *projection) noFurther(k int, axes []ir.AxisRef) []ir.AxisRef {
	for i := pr.inputs; i < len(pr.tensors); i++ {
		if f := &pr.tensors[i].factors[k]; f.Present && pr.strictPrefix(f.Axes, axes) {
			axes = f.Axes
		}
	}
	return axes
}

// compatible returns the longest list of axes for factor k that no tensor
// contradicts; where axes propagate in one direction only, one that a tensor on
// that side has.
func (pr *projection) compatible(k int, dir direction) []ir.AxisRef {
	if dir == 0 {
		return nil
	}
	first, second := pr.tensors[:pr.inputs], pr.tensors[pr.inputs:]
	if dir == backward {
		first, second = second, first
	}
	c := commonAxes{mesh: pr.mesh, open: true}
	for i := range first {
		c.meet(&first[i].factors[k])
	}
	c.open = c.open && dir == both
	for i := range second {
		c.meet(&second[i].factors[k])
	}
	return c.axes
}

// A commonAxes is a list of axes that no list met so far contradicts.
type commonAxes struct {
	mesh *ir.Mesh
	axes []ir.AxisRef
	open bool // may become longer
}

func (c *commonAxes) meet(f *layout.FactorAxes) {
	if !f.Present {
		return
	}
	old, met := c.axes, f.Axes
	switch {
	case len(met) == 0 || slices.Equal(old, met):
		return
	case len(old) == 0:
		if c.open {
			c.axes = met
		}
		return
	}
	var out []ir.AxisRef
	for len(old) > 0 && len(met) > 0 {
		a, b := old[0], met[0]
		old, met = old[1:], met[1:]
		switch {
		case a == b:
			out = append(out, a)
		case c.mesh.IsPrefix(b, a):
			if len(met) > 0 { // b is followed by something else
				c.axes, c.open = append(out, b), false
				return
			}
			out = append(out, a)
		case c.mesh.IsPrefix(a, b):
			if !c.open || len(old) > 0 {
				c.axes, c.open = append(out, a), false
				return
			}
			out = append(out, b)
		default:
			c.axes, c.open = out, false
			return
		}
	}
	out = append(out, old...)
	if c.open {
		out = append(out, met...)
	}
	c.axes = out
}

// order is the factors, the one to serve first first.
func (pr *projection) order(n *propNode, axes [][]ir.AxisRef) []int {
	type source struct{ tensor, size int }
	from := make([]source, len(pr.sizes))
	for k := range from {
		from[k] = source{-1, -1}
	}
	for i := range pr.tensors {
		t := &pr.tensors[i]
		size := 1
		for k := range t.factors {
			if t.factors[k].Present {
				size *= pr.sizes[k]
			}
		}
		for k := range t.factors {
			f := &t.factors[k]
			isSource := f.Present && len(axes[k]) > 0 && (pr.strictPrefix(axes[k], f.Axes) || slices.Equal(axes[k], f.Axes))
			if isSource && size > from[k].size {
				from[k] = source{i, size}
			}
		}
	}
	devices := func(k int) int {
		if !n.elementwise() {
			return 0
		}
		return pr.mesh.RefsSize(axes[k])
	}
	order := make([]int, len(pr.sizes))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(from[b].size, from[a].size), cmp.Compare(devices(b), devices(a)), cmp.Compare(from[a].tensor, from[b].tensor))
	})
	return order
}

// strictPrefix reports whether a is a proper prefix of b, where the last axis of a
// may be a major sub-axis of the one in b.
func (pr *projection) strictPrefix(a, b []ir.AxisRef) bool {
	if len(a) > len(b) || slices.Equal(a, b) {
		return false
	}
	if len(a) == 0 {
		return true
	}
	last := len(a) - 1
	return slices.Equal(a[:last], b[:last]) && pr.mesh.IsPrefix(a[last], b[last])
}

// fitting returns the axes that t can take along factor k, of those wanted:
// nil where that is no more than it has.
func (pr *projection) fitting(t *projected, k int, wanted []ir.AxisRef) []ir.AxisRef {
	f := &t.factors[k]
	if !f.Present {
		return nil
	}
	axes := pr.truncate(wanted, func(r ir.AxisRef, before int) (ir.AxisRef, bool) { return pr.withinFactor(t, f, r, before) })
	if !pr.strictPrefix(f.Axes, axes) {
		return nil
	}
	axes = pr.truncate(axes, func(r ir.AxisRef, _ int) (ir.AxisRef, bool) {
		ok := true
		for other := range t.factors {
			if g := &t.factors[other]; ok && other != k && g.Present {
				if r, ok = pr.mesh.PrefixOutside(r, g.Overflow); ok {
					r, ok = pr.mesh.PrefixOutside(r, g.Axes)
				}
			}
		}
		return r, ok
	})
	if !pr.strictPrefix(f.Axes, axes) {
		return nil
	}
	return axes
}

// truncate ends axes before the first of which fit keeps nothing, or after the
// first of which it keeps a sub-axis. fit gets the number of devices along the axes
// before.
func (pr *projection) truncate(axes []ir.AxisRef, fit func(r ir.AxisRef, before int) (ir.AxisRef, bool)) []ir.AxisRef {
	before := 1
	for i, r := range axes {
		kept, ok := fit(r, before)
		if !ok {
			return axes[:i]
		}
		if kept != r {
			return append(slices.Clone(axes[:i]), kept)
		}
		before *= pr.mesh.RefSize(r)
	}
	return axes
}

// withinFactor returns the major sub-axis of r that t may have along its factor f.
func (pr *projection) withinFactor(t *projected, f *layout.FactorAxes, r ir.AxisRef, before int) (ir.AxisRef, bool) {
	r, ok := pr.mesh.PrefixOutside(r, t.barred)
	if !ok {
		return r, false
	}
	for _, has := range f.Axes {
		if pr.mesh.Contains(has, r) {
			return r, true
		}
	}
	if !f.Closed && len(f.Overflow) == 0 {
		if f.Limit == 0 {
			return r, true
		}
		pre, size := pr.mesh.Span(r)
		if f.Limit%before == 0 {
			switch common := layout.GcdOf(f.Limit/before, size); {
			case common == size:
				return r, true
			case common > 1 && !f.Last:
				return pr.mesh.SubAxis(r.Name, pre, common), true
			}
		}
	}
	if n := len(f.Axes); n > 0 && pr.mesh.IsPrefix(f.Axes[n-1], r) {
		return f.Axes[n-1], true
	}
	return r, false
}
