package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// A slice, pad or concatenation along a sharded dimension, or an update at a
// constant index, moves elements between devices, and which ones depends on its
// uses: concat(x[7:8], x[0:7]) is one collective permute, but neither slice can be
// sharded eight ways. So such an op is deferred until an op that depends on it needs
// its result sharded; then the chain of deferred ops is rewritten as one
// concatenation of pieces of its sources, for which [Localize] finds the distances
// and the permutes.

// defersMove reports whether op is deferred. If its result is itself sharded along
// the dimension, it is computed now.
func (p *chooser) defersMove(op *ir.Op) bool {
	if len(op.Results) != 1 || p.moves[op.Result().ID] == 0 {
		return false
	}
	v := op.Result()
	if at := p.layoutOf(v); len(at[p.moves[v.ID]-1]) > 0 {
		p.get(v, at)
	}
	return true
}

// movesOf is, by ID, one more than the dimension along which a deferred op moves the
// elements of a value; 0 where there is none.
func (p *program) movesOf() []int {
	m := newMoves(p)
	p.f.Body.Walk(func(op *ir.Op) { m.see(op) })
	return m.dims
}

// splitMoves makes of every deferred op that moves elements along several dimensions
// one op for each.
func (p *program) splitMoves() {
	newMoves(p).split(p.f.Body)
}

// A moveDims finds the ops that are deferred.
type moveDims struct {
	p    *program
	free []bool
	dims []int // by ID, one more than the dimension; 0: none
}

func newMoves(p *program) *moveDims {
	return &moveDims{p, layout.FreeOrConstrained(p.f), make([]int, p.f.NumIDs())}
}

// see notes along which dimension op moves elements, and returns all along which it
// does, if it is deferred.
func (m *moveDims) see(op *ir.Op) []int {
	if len(op.Results) != 1 || m.free[op.Result().ID] {
		return nil
	}
	dims := movedDims(op)
	if !slices.ContainsFunc(dims, func(d int) bool { return m.sharded(op, d) }) {
		return nil
	}
	m.dims[op.Result().ID] = dims[len(dims)-1] + 1
	return dims
}

// sharded reports whether an operand or the result of op is sharded along d, or
// deferred along it. An update is unsharded, and written into each shard that it
// overlaps.
func (m *moveDims) sharded(op *ir.Op, d int) bool {
	operands := op.Operands
	if op.Kind == ir.DynamicUpdateSlice {
		operands = operands[1:2]
	}
	for _, v := range operands {
		if v.Type.Rank() > d && (m.dims[v.ID] == d+1 || !m.free[v.ID] && len(m.p.layoutOf(v)[d]) > 0) {
			return true
		}
	}
	return op.Kind != ir.DynamicUpdateSlice && len(m.p.layoutOf(op.Result())[d]) > 0
}

func (m *moveDims) split(b *ir.Block) {
	var out []*ir.Op
	for _, op := range b.Ops {
		for _, r := range op.Regions {
			m.split(r)
		}
		if dims := m.see(op); len(dims) > 1 {
			out = append(out, m.steps(op, dims)...)
			m.dims[op.Result().ID] = 0
			m.see(op)
		}
		out = append(out, op)
	}
	b.Ops = out
}

// steps makes op, a slice or a pad, move along the last of dims only, and
// returns new ops before it for the others.
func (m *moveDims) steps(op *ir.Op, dims []int) []*ir.Op {
	var out []*ir.Op
	p, x, attrs, last := m.p, op.Operands[0], op.Attrs, len(dims)-1
	for _, d := range dims[:last] {
		shape := slices.Clone(x.Type.Shape)
		shape[d] = op.Result().Type.Shape[d]
		step := &ir.Op{Kind: op.Kind, Operands: slices.Clone(op.Operands), Attrs: moveOnly(attrs, d, x.Type.Shape), Origin: op.Origin}
		step.Operands[0] = x
		v := p.f.NewValue(x.Type.WithShape(shape...), "")
		v.Def, v.Sharding = step, x.Sharding.Clone()
		if v.Sharding != nil && shape[d]%p.mesh.RefsSize(v.Sharding.Axes(d)) != 0 {
			v.Sharding.Dims[d].Axes = nil
		}
		step.Results = []*ir.Value{v}
		m.dims, m.free = append(m.dims, 0), append(m.free, false)
		m.see(step)
		out = append(out, step)
		x = v
	}
	op.Operands = slices.Clone(op.Operands)
	op.Operands[0] = x
	op.Attrs = moveOnly(attrs, dims[last], x.Type.Shape)
	return out
}

// movedDims are the dimensions along which op moves elements by distances
// that are the same everywhere; none where it leaves some out, or puts numbers
// between them.
func movedDims(op *ir.Op) []int {
	var steps []int
	switch op.Kind {
	case ir.Concatenate:
		return []int{op.Int("dimension")}
	case ir.Slice:
		steps = op.Ints("strides")
	case ir.Pad:
		for _, n := range op.Ints("interior_padding") {
			steps = append(steps, n+1)
		}
	case ir.DynamicUpdateSlice:
		return updatedDims(op)
	default:
		return nil
	}
	var dims []int
	rule := ir.FactorsOf(op)
	for d, ks := range rule.Results[0] {
		if rule.Types[ks[0]] != ir.Permutation {
			continue
		}
		if steps[d] != 1 {
			return nil
		}
		dims = append(dims, d)
	}
	return dims
}

// updatedDims is the dimension in which the update of op, a
// dynamic_update_slice, is smaller than what it goes into, if that is one and
// the place is known.
func updatedDims(op *ir.Op) []int {
	var dims []int
	for d, n := range op.Operands[1].Type.Shape {
		if n < op.Result().Type.Shape[d] {
			dims = append(dims, d)
		}
	}
	if len(dims) != 1 || ir.ConstantOf(op.Operands[2+dims[0]]) == nil {
		return nil
	}
	return dims
}

// updateStart is where the update of op begins in dimension d, which is known.
func updateStart(op *ir.Op, d int) int {
	last := op.Result().Type.Shape[d] - op.Operands[1].Type.Shape[d]
	return min(max(ir.ConstantOf(op.Operands[2+d]).Index(0), 0), last)
}

// moveOnly is the attributes of a slice or a pad that leave every dimension
// but d as it is; shape is the operand's.
func moveOnly(attrs ir.Attrs, d int, shape []int) ir.Attrs {
	keep := func(name string, whole func(d int) int) {
		if !attrs.Has(name) {
			return
		}
		list := slices.Clone(attrs.Ints(name))
		for e := range list {
			if e != d {
				list[e] = whole(e)
			}
		}
		attrs.Set(name, ir.Ints(list))
	}
	zero := func(int) int { return 0 }
	keep("start_indices", zero)
	keep("limit_indices", func(e int) int { return shape[e] })
	keep("edge_padding_low", zero)
	keep("edge_padding_high", zero)
	return attrs
}

// makeMoved computes a value that waits.
func (p *chooser) makeMoved(v *ir.Value, at layout.Layout) *ir.Value {
	d := p.moves[v.ID] - 1
	if len(at[d]) > 0 {
		pieces := p.pieces(v, d)
		if p.anySharded(pieces, d) {
			if r := p.joinPieces(v, at, d, pieces); r != nil {
				return r
			}
		}
	}
	return p.makeUnmoved(v, at)
}

// anySharded reports whether a source of pieces is sharded along d.
func (p *chooser) anySharded(pieces []piece, d int) bool {
	return slices.ContainsFunc(pieces, func(c piece) bool {
		if c.src == nil || p.free[c.src.ID] {
			return false
		}
		if len(p.copies[c.src.ID]) == 0 {
			return len(p.layoutOf(c.src)[d]) > 0
		}
		return !slices.ContainsFunc(p.copies[c.src.ID], func(v valueCopy) bool { return len(v.at[d]) == 0 })
	})
}

// makeUnmoved computes v by its own op.
func (p *chooser) makeUnmoved(v *ir.Value, at layout.Layout) *ir.Value {
	op := v.Def
	a := p.choose(op, []layout.Layout{at})
	in := make([]*ir.Value, len(op.Operands))
	for i, x := range op.Operands {
		p.warnReplicated(op, a, i)
		in[i] = p.get(x, a.operands[i])
	}
	return p.reshard(p.emit(op, a, in)[0], at, nil)
}

// joinPieces computes v, sharded along d, as a concatenation of pieces. It is
// nil where a source would be gathered for that: there may be another way.
func (p *chooser) joinPieces(v *ir.Value, at layout.Layout, d int, pieces []piece) *ir.Value {
	for e := range at { // what else the chain moves along must be unsharded
		if e != d && len(at[e]) > 0 && p.chainMoves(v, d, e) {
			return nil
		}
	}
	shard := v.Type.Shape[d] / p.mesh.RefsSize(at[d])
	if shard == 0 {
		return nil
	}
	groups := groupPieces(pieces, d, v.Type.Shape[d])
	for i := range groups {
		g := &groups[i]
		if g.src == nil {
			continue
		}
		halo, bytes := (*halo)(nil), 0
		if g.at, halo, bytes = p.source(g.src, at, d, g.section(at[d], shard)); halo == nil && bytes > 0 {
			return nil
		}
	}
	from := make(map[int]*ir.Value) // by where a piece begins
	for _, g := range groups {
		var source *ir.Value
		if g.src == nil {
			source = p.get(g.pieces[0].pad, layout.Layout{})
		} else {
			source = p.get(g.src, g.at)
		}
		for _, c := range g.pieces {
			from[c.lo] = source
		}
	}
	return p.concatenate(v, at, d, pieces, from)
}

// concatenate emits v as the concatenation along d of pieces; from has what they
// are taken from, by where they begin. The pieces are unsharded along d: whoever
// computes the concatenation reads their sources.
func (p *chooser) concatenate(v *ir.Value, at layout.Layout, d int, pieces []piece, from map[int]*ir.Value) *ir.Value {
	unsharded := at.Clone()
	unsharded[d] = nil
	in := make([]*ir.Value, len(pieces))
	for i, c := range pieces {
		if c.src == nil {
			shape := slices.Clone(v.Type.Shape)
			shape[d] = c.hi - c.lo
			in[i] = p.build.Broadcast(from[c.lo], shape)
		} else {
			src := from[c.lo]
			start, limit := make([]int, src.Type.Rank()), slices.Clone(src.Type.Shape)
			start[d], limit[d] = c.lo+c.off, c.hi+c.off
			in[i] = p.build.Slice(src, start, limit)
		}
		in[i].Sharding = p.sharding(unsharded, nil, ir.Add)
	}
	r := p.build.Emit(ir.Concatenate, in, ir.AttrsOf(ir.NamedAttr{Name: "dimension", Attr: ir.I64Attr(d)}), nil, []*ir.Type{v.Type}).Result()
	r.Name, r.Sharding = v.Name, p.sharding(at, nil, ir.Add)
	return r
}

// chainMoves reports whether an op between v and its sources along d moves
// along e too.
func (p *chooser) chainMoves(v *ir.Value, d, e int) bool {
	if p.moves[v.ID] != d+1 {
		return false
	}
	if slices.Contains(movedDims(v.Def), e) {
		return true
	}
	return slices.ContainsFunc(v.Def.Operands, func(x *ir.Value) bool { return p.chainMoves(x, d, e) })
}

// source is the layout in which the value v is best at hand, with or without the
// axes of s in dimension d, so that each device gets its section of that, where
// the other dimensions are as in at; the halo is nil where d is unsharded. The
// bytes are those that a device receives for it.
func (p *chooser) source(v *ir.Value, at layout.Layout, d int, s section) (layout.Layout, *halo, int) {
	whole := at.Clone()
	whole[d] = nil
	least := p.bytesTo(v, whole)
	size := v.Type.Shape[d]
	if size == 0 || size%p.mesh.RefsSize(s.axes) != 0 {
		return whole, nil, least
	}
	sharded := at.Clone()
	sharded[d] = s.axes
	h := p.halo(s, size)
	bytes := p.bytesTo(v, sharded) + p.haloBytes(h, v.Type, sharded)
	if hops, _ := h.hops(); !s.wrap && (hops > maxHops || bytes > least) {
		return whole, nil, least
	}
	return sharded, h, bytes
}

// haloBytes is how many bytes a device receives for h, of a tensor of type t with
// the layout at.
func (p *program) haloBytes(h *halo, t *ir.Type, at layout.Layout) int {
	_, rows := h.hops()
	return rows * (layout.LayoutBytes(p.mesh, t, at) / h.shard)
}

// A piece is a range of a dimension: elements lo to hi are those of src that are
// off further on, or, without src, all the scalar pad.
type piece struct {
	lo, hi int
	src    *ir.Value
	off    int
	pad    *ir.Value
}

// pieces are the ranges of dimension d of v, in order, without gaps.
func (p *chooser) pieces(v *ir.Value, d int) []piece {
	if p.moves[v.ID] != d+1 {
		return []piece{{hi: v.Type.Shape[d], src: v}}
	}
	op, n := v.Def, v.Type.Shape[d]
	switch op.Kind {
	case ir.Slice:
		return clip(p.pieces(op.Operands[0], d), -op.Ints("start_indices")[d], n)
	case ir.Pad:
		low, size := op.Ints("edge_padding_low")[d], op.Operands[0].Type.Shape[d]
		out := clip([]piece{{hi: low, pad: op.Operands[1]}}, 0, n)
		out = append(out, clip(p.pieces(op.Operands[0], d), low, n)...)
		return append(out, clip([]piece{{lo: low + size, hi: n, pad: op.Operands[1]}}, 0, n)...)
	case ir.DynamicUpdateSlice:
		start, size, old := updateStart(op, d), op.Operands[1].Type.Shape[d], p.pieces(op.Operands[0], d)
		out := clip(old, 0, start)
		out = append(out, clip(p.pieces(op.Operands[1], d), start, start+size)...)
		for _, c := range clip(old, 0, n) {
			if c.lo = max(c.lo, start+size); c.lo < c.hi {
				out = append(out, c)
			}
		}
		return out
	}
	var out []piece
	at := 0
	for _, x := range op.Operands {
		out = append(out, clip(p.pieces(x, d), at, n)...)
		at += x.Type.Shape[d]
	}
	return out
}

// clip moves pieces by some distance and keeps what is then in 0 to n.
func clip(pieces []piece, by, n int) []piece {
	var out []piece
	for _, c := range pieces {
		c.lo, c.hi, c.off = max(c.lo+by, 0), min(c.hi+by, n), c.off-by
		if c.lo < c.hi {
			out = append(out, c)
		}
	}
	return out
}
