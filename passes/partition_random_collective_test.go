package passes

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/lower"
)

// collectiveGroups says among which devices a collective works: n each.
type collectiveGroups struct {
	attr ir.Attr
	n    int
	axes []ir.AxisRef // of the groups; nil where these are lists
}

// groupsAlong are groups along axes that are computed along by hand: one axis,
// or some of them and parts of them in any order. Lists of devices, which know
// nothing of axes, are for what is computed along all axes by hand.
func (g *programMaker) groupsAlong(names []string, lists bool) collectiveGroups {
	axes := ir.Axs(names[g.r.IntN(len(names))])
	if g.wild {
		axes = g.cutUp(ir.Axs(names...))
		g.r.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
		axes = g.mesh.JoinAxes(nil, axes[:1+g.r.IntN(len(axes))])
	}
	n := g.mesh.RefsSize(axes)
	if !g.wild || !lists || len(g.manual) < len(g.mesh.Axes) || g.r.IntN(3) > 0 {
		return collectiveGroups{ir.MeshAxes{Mesh: g.mesh.Name, Axes: axes}, n, axes}
	}
	var rows [][]int
	for ids := range slices.Chunk(g.r.Perm(g.mesh.Size()), n) {
		rows = append(rows, ids)
	}
	return collectiveGroups{attr: lower.Dense(rows, n), n: n}
}

// unequal are groups of any sizes.
func (g *programMaker) unequal() ir.Attr {
	ids := g.r.Perm(g.mesh.Size())
	var rows [][]int
	width := 0
	for len(ids) > 0 {
		n := 1 + g.r.IntN(len(ids))
		rows, ids, width = append(rows, ids[:n:n]), ids[n:], max(width, n)
	}
	for i := range rows {
		for len(rows[i]) < width {
			rows[i] = append(rows[i], -1)
		}
	}
	return lower.Dense(rows, width)
}

// missing are groups alike in size that some devices are in none of.
func (g *programMaker) missing() ir.Attr {
	ids := g.r.Perm(g.mesh.Size())
	n := 1 + g.r.IntN(len(ids))
	var rows [][]int
	for len(ids) >= n && (rows == nil || g.r.IntN(3) > 0) {
		rows, ids = append(rows, ids[:n]), ids[n:]
	}
	return lower.Dense(rows, n)
}

// collective is one along some of the axes called names. All says that these
// are all along which the program is one device's.
func (g *programMaker) collective(names []string, all bool) *ir.Value {
	groups := g.groupsAlong(names, all)
	xs := []*ir.Value{g.pick()}
	for g.wild && len(xs) < 3 && g.r.IntN(3) == 0 {
		xs = append(xs, g.pickLike(xs[0]))
	}
	rank := xs[0].Type.Rank()
	c := &collectiveMaker{g: g, xs: xs, groups: groups, shape: slices.Clone(xs[0].Type.Shape), from: g.r.IntN(rank), to: g.r.IntN(rank)}
	g.channels++
	c.channel = facts.Named("channel_handle", ir.Channel{Handle: g.channels, Type: 1})
	c.attrs = ir.AttrsOf(c.channel, facts.Named("replica_groups", groups.attr))
	kinds := []func(*collectiveMaker) *ir.Value{(*collectiveMaker).gather, (*collectiveMaker).reduce, (*collectiveMaker).scatter, (*collectiveMaker).exchange,
		(*collectiveMaker).broadcast, (*collectiveMaker).permute}
	if v := kinds[g.r.IntN(len(kinds))](c); v != nil {
		return v
	}
	return c.permute()
}

// A collectiveMaker makes one collective.
type collectiveMaker struct {
	g        *programMaker
	xs       []*ir.Value
	groups   collectiveGroups
	shape    []int // of a result
	from, to int   // dimensions
	channel  ir.NamedAttr
	attrs    ir.Attrs
}

// emit emits op k and returns one of the results.
func (c *collectiveMaker) emit(k ir.Kind, attrs ir.Attrs, regions ...*ir.Block) *ir.Value {
	var types []*ir.Type
	for _, x := range c.xs {
		types = append(types, x.Type.WithShape(c.shape...))
	}
	op := c.g.b.Emit(k, c.xs, attrs, regions, types)
	if len(c.xs) == 1 {
		return op.Result()
	}
	return op.Results[c.g.r.IntN(len(c.xs))]
}

func (c *collectiveMaker) global() ir.Attrs {
	return withAttr(c.attrs, "use_global_device_ids", ir.Unit{})
}

func (c *collectiveMaker) combiner() *ir.Block {
	return c.g.b.Combiner([]ir.Kind{ir.Add, ir.Maximum, ir.Minimum}[c.g.r.IntN(3)], ir.F64)
}

func (c *collectiveMaker) gather() *ir.Value {
	d := c.from
	c.shape[d] *= c.groups.n
	return c.emit(ir.AllGather, withAttr(c.global(), "all_gather_dim", ir.I64Attr(d)))
}

func (c *collectiveMaker) reduce() *ir.Value {
	attrs := c.global()
	if c.groups.axes == nil && c.g.r.IntN(2) == 0 {
		attrs.Set("replica_groups", c.g.unequal())
	}
	return c.g.small(c.emit(ir.AllReduce, attrs, c.combiner()))
}

func (c *collectiveMaker) scatter() *ir.Value {
	d := c.from
	if c.shape[d]%c.groups.n != 0 {
		return nil
	}
	c.xs = c.xs[:1]
	c.shape[d] /= c.groups.n
	return c.g.small(c.emit(ir.ReduceScatter, withAttr(c.global(), "scatter_dimension", ir.I64Attr(d)), c.combiner()))
}

func (c *collectiveMaker) exchange() *ir.Value {
	d, e, n := c.from, c.to, c.groups.n
	if c.shape[d]%n != 0 {
		return nil
	}
	c.shape[d] /= n
	c.shape[e] *= n
	attrs := withAttr(withAttr(c.attrs, "split_dimension", ir.I64Attr(d)), "concat_dimension", ir.I64Attr(e))
	return c.emit(ir.AllToAll, withAttr(attrs, "split_count", ir.I64Attr(n)))
}

func (c *collectiveMaker) broadcast() *ir.Value {
	if c.groups.axes == nil {
		c.attrs.Set("replica_groups", c.g.missing())
	}
	c.xs = c.xs[:1]
	return c.emit(ir.CollectiveBroadcast, c.attrs)
}

func (c *collectiveMaker) permute() *ir.Value {
	c.xs, c.shape = c.xs[:1], c.xs[0].Type.Shape
	var pairs ir.Attr
	if c.groups.axes != nil {
		shift := ir.AxisShift{Mesh: c.g.mesh.Name, Axes: c.groups.axes, Shift: 1, Wrap: c.g.r.IntN(2) == 0}
		if c.g.wild {
			shift.Shift, shift.Reverse = (1+c.g.r.IntN(c.groups.n))*(1-2*c.g.r.IntN(2)), c.g.r.IntN(3) == 0
		}
		pairs = shift
	} else {
		from, to := c.g.r.Perm(c.g.mesh.Size()), c.g.r.Perm(c.g.mesh.Size())
		var rows [][]int
		for i := range 1 + c.g.r.IntN(len(from)) {
			rows = append(rows, []int{from[i], to[i]})
		}
		pairs = lower.Dense(rows, 2)
	}
	moved := c.emit(ir.CollectivePermute, ir.AttrsOf(facts.Named("source_target_pairs", pairs), c.channel))
	return c.g.b.Add(c.xs[0], moved)
}

// withAttr is attrs with one more, or another one in place of that of the name.
func withAttr(attrs ir.Attrs, name string, a ir.Attr) ir.Attrs {
	attrs.Set(name, a)
	return attrs
}
