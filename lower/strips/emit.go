package strips

import (
	"math"
	"slices"

	"ppc/ir"
)

// mine puts loops in place of g. It reports false, and changes nothing, where that
// is not possible or does not pay.
func (g *group) mine() bool {
	g.findDims()
	if len(g.dims) == 0 || !g.pays() {
		return false
	}
	g.wanted = make(map[*ir.Value]bool)
	g.sub = make(map[*ir.Value]*ir.Value)
	for _, op := range slices.Backward(g.b.Ops) {
		if g.role[op] == root && slices.ContainsFunc(g.users[op.Result()], g.stays) {
			g.wanted[op.Result()] = true
		}
	}
	loops := make([][]*ir.Op, g.last+1)
	for level := g.last; level >= 0; level-- { // later loops want results of earlier ones
		loops[level] = g.loop(level)
	}
	g.replace(loops)
	return true
}

// stays reports whether op is computed beside the loops: it is no member, or is
// between members and others.
func (g *group) stays(op *ir.Op) bool {
	switch g.role[op] {
	case outsider:
		return true
	case between:
		return slices.ContainsFunc(g.users[op.Result()], g.stays)
	}
	return false
}

// pays reports whether no long contraction is computed again in a later loop, or
// what it makes is very large.
func (g *group) pays() bool {
	loops := make(map[*ir.Op]map[int]bool) // in which a member is computed
	for _, op := range slices.Backward(g.ops) {
		in := make(map[int]bool)
		if g.role[op] == root {
			in[g.level[op]] = true
		}
		for _, u := range g.users[op.Result()] {
			if g.role[op] != root && g.role[u] != outsider {
				for l := range loops[u] {
					in[l] = true
				}
			}
		}
		loops[op] = in
		if op.Kind == ir.DotGeneral && len(in) > 1 && termsOf(op) > cheapTerms && op.Result().Type.Bytes() < g.limits.Costs {
			return false
		}
	}
	return true
}

// termsOf is the length of the sums of a contraction.
func termsOf(op *ir.Op) int {
	n := 1
	for _, d := range op.Attrs.Get("dot_dimension_numbers").(ir.Dot).LhsContract {
		n *= op.Operands[0].Type.Shape[d]
	}
	return n
}

// A loop is one over all strips, in the making.
type loop struct {
	*group
	number int
	b      *ir.Builder // of the body
	start  []*ir.Value // by dimension, of the strip at hand, in rows
	zero   *ir.Value
	strips map[*ir.Value][]strip
}

// A strip is a value in strips of the given dimensions, by dim; -1 where it has none.
type strip struct {
	at []int
	v  *ir.Value
}

// loop emits the loop of a level and returns it with what it needs; nil where nothing
// that it makes is wanted.
func (g *group) loop(level int) []*ir.Op {
	var roots []*ir.Op
	for _, op := range g.ops {
		if g.role[op] == root && g.level[op] == level && g.wanted[op.Result()] {
			roots = append(roots, op)
		}
	}
	if len(roots) == 0 {
		return nil
	}
	last := roots[len(roots)-1]
	before := &ir.Builder{Func: g.f, Block: new(ir.Block), Origin: last.Origin}
	cond, body := new(ir.Block), new(ir.Block)
	l := &loop{group: g, number: level, b: before.In(body), strips: make(map[*ir.Value][]strip)}
	init := []*ir.Value{before.I32(0)}
	for _, op := range roots {
		t := carried(op, g.sums(op))
		empty := 0.0
		if g.sums(op) && t.Elem.IsFloat() {
			empty = math.Copysign(0, -1) // to which anything may be added without a change
		}
		init = append(init, before.Broadcast(before.Splat(ir.Tensor(t.Elem), empty), t.Shape))
	}
	trips := 1
	for _, d := range g.dims {
		trips *= d.trips()
	}
	var args, tests []*ir.Value
	for _, v := range init {
		tests = append(tests, g.f.NewArg(cond, v.Type, ""))
		args = append(args, g.f.NewArg(body, v.Type, ""))
	}
	c := before.In(cond)
	c.Emit(ir.Return, []*ir.Value{c.Compare("LT", tests[0], c.I32(trips))}, nil, nil, nil)
	l.starts(args[0])
	results := []*ir.Value{l.b.Add(args[0], l.b.I32(1))}
	for i, op := range roots {
		results = append(results, l.result(op, args[i+1]))
	}
	l.b.Emit(ir.Return, results, nil, nil, nil)
	attrs := ir.AttrsOf(ir.NamedAttr{Name: ir.KeyLoop, Attr: ir.Str(ir.LoopStrips)})
	w := before.Emit(ir.While, init, attrs, []*ir.Block{cond, body}, ir.TypesOf(init))
	for i, op := range roots {
		v := w.Results[i+1]
		if v.Type.Elem != op.Result().Type.Elem {
			v = before.Convert(v, op.Result().Type.Elem)
		}
		v.Name = op.Result().Name
		g.sub[op.Result()] = v
	}
	return before.Block.Ops
}

// sums reports whether op contracts a dimension that strips are taken of.
func (g *group) sums(op *ir.Op) bool {
	return slices.ContainsFunc(g.dims, func(d *dim) bool { return slices.Contains(d.sums, op) })
}

// carried is the type in which op's result is put together: sums of strips are not
// rounded to small floats before all are added up.
func carried(op *ir.Op, sums bool) *ir.Type {
	t := op.Result().Type
	if sums && t.Elem.IsFloat() && t.Elem.Size() < 4 {
		return t.WithElem(ir.F32)
	}
	return t
}

// starts emits where the strip of an iteration begins: the last dimension comes
// first. The last strip of a dimension has as many rows as the others, some of
// which the one before has too.
func (l *loop) starts(i *ir.Value) {
	l.zero = l.b.I32(0)
	l.start = make([]*ir.Value, len(l.dims))
	for n, d := range slices.Backward(l.dims) {
		index := i
		if n > 0 {
			index = l.b.Binary(ir.Remainder, i, l.b.I32(d.trips()))
			i = l.b.Div(i, l.b.I32(d.trips()))
		}
		start := index
		if d.strip > 1 {
			start = l.b.Mul(index, l.b.I32(d.strip))
		}
		if d.rows%d.strip != 0 {
			start = l.b.Binary(ir.Minimum, start, l.b.I32(d.rows-d.strip))
		}
		l.start[n] = start
	}
}

// result puts the strip of op's result into all of it, or adds it.
func (l *loop) result(op *ir.Op, all *ir.Value) *ir.Value {
	at := l.places(op.Result())
	sums := l.sums(op)
	var v *ir.Value
	if sums {
		v = l.op(op, at, carried(op, true).Elem)
	} else {
		v = l.strip(op.Result(), at)
	}
	l.b.Origin = op.Origin
	if sums {
		old := all
		if v.Type.NumElements() < all.Type.NumElements() {
			old = l.b.DynamicSlice(all, l.window(all, at), v.Type.Shape...)
		}
		v = l.b.Add(old, v)
	}
	if v.Type.NumElements() == all.Type.NumElements() {
		return v
	}
	return l.b.DynamicUpdateSlice(all, v, l.window(all, at))
}

// places are the dimensions of v, which a member makes, by dim.
func (g *group) places(v *ir.Value) []int {
	at := make([]int, len(g.dims))
	for i, d := range g.dims {
		n, known := d.at[v]
		if at[i] = -1; known {
			at[i] = n
		}
	}
	return at
}

// window is where the strip at hand of v begins.
func (l *loop) window(v *ir.Value, at []int) []*ir.Value {
	start := slices.Repeat([]*ir.Value{l.zero}, v.Type.Rank())
	for i, n := range at {
		if n < 0 {
			continue
		}
		start[n] = l.start[i]
		if unit := v.Type.Shape[n] / l.dims[i].rows; unit > 1 {
			start[n] = l.b.Mul(l.start[i], l.b.I32(unit))
		}
	}
	return start
}

// shape is that of a strip of v.
func (g *group) shape(v *ir.Value, at []int) []int {
	shape := slices.Clone(v.Type.Shape)
	for i, n := range at {
		if n >= 0 {
			shape[n] = g.dims[i].size(v, n)
		}
	}
	return shape
}

// strip is the strip at hand of v, in the given dimensions.
func (l *loop) strip(v *ir.Value, at []int) *ir.Value {
	for _, s := range l.strips[v] {
		if slices.Equal(s.at, at) {
			return s.v
		}
	}
	out := v
	switch op := v.Def; {
	case l.computed(v):
		out = l.op(op, at, v.Type.Elem)
	case !slices.ContainsFunc(at, func(n int) bool { return n >= 0 }):
		l.want(v)
	case op != nil && op.Kind == ir.Constant && op.Literal("value").IsSplat():
		out = l.constant(op, v.Type.WithShape(l.shape(v, at)...))
	default:
		l.want(v)
		out = l.b.DynamicSlice(v, l.window(v, at), l.shape(v, at)...)
	}
	l.strips[v] = append(l.strips[v], strip{at, out})
	return out
}

// want notes that v is read: a root makes all of it then.
func (l *loop) want(v *ir.Value) {
	if v.Def != nil && l.role[v.Def] == root {
		l.wanted[v] = true
	}
}

// computed reports whether the loop computes v, and does not read it.
func (l *loop) computed(v *ir.Value) bool {
	if v.Def == nil {
		return false
	}
	switch l.role[v.Def] {
	case maker, between:
		return true
	case root:
		return l.level[v.Def] == l.number && !l.sums(v.Def)
	}
	return false
}

// op emits op for the strip at hand. Its result has the given places and elements.
func (l *loop) op(op *ir.Op, at []int, elem ir.DType) *ir.Value {
	t := op.Result().Type.WithShape(l.shape(op.Result(), at)...).WithElem(elem)
	if op.Kind == ir.Constant {
		return l.constant(op, t)
	}
	in := make([]*ir.Value, len(op.Operands))
	for j, v := range op.Operands {
		places := make([]int, len(l.dims))
		for i, d := range l.dims {
			places[i], _ = place(d.rules[op].Operands[j], d.key(op))
		}
		in[j] = l.strip(v, places)
	}
	c := l.f.CopyOp(op, make(map[*ir.Value]*ir.Value))
	c.Operands = in
	out := c.Result()
	out.Type, out.Sharding, out.Name = t, nil, op.Result().Name
	if op.Kind == ir.Slice {
		c.Attrs = slices.Clone(c.Attrs)
		limits := slices.Clone(op.Ints("limit_indices"))
		for _, n := range at {
			if n >= 0 {
				limits[n] = t.Shape[n]
			}
		}
		c.Attrs.Set("limit_indices", ir.Ints(limits))
	}
	l.b.Origin = op.Origin
	l.b.Block.Ops = append(l.b.Block.Ops, c)
	if n := op.Int("iota_dimension"); op.Kind == ir.Iota && slices.Contains(at, n) {
		return l.counted(c, l.window(op.Result(), at)[n])
	}
	return out
}

// counted is the iota c from start on.
func (l *loop) counted(c *ir.Op, start *ir.Value) *ir.Value {
	t := c.Result().Type
	c.Result().Type = t.WithElem(ir.I32)
	return l.b.Convert(l.b.Add(c.Result(), l.b.Broadcast(start, t.Shape)), t.Elem)
}

// constant is the splat op as a constant of type t.
func (l *loop) constant(op *ir.Op, t *ir.Type) *ir.Value {
	elem := op.Literal("value").Data[:t.Elem.Size()]
	l.b.Origin = op.Origin
	return l.b.Const(&ir.Literal{Type: t, Data: elem})
}
