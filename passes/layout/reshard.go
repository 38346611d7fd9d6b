package layout

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"slices"
	"strconv"

	"ppc/ir"
)

// A Layout says, by dimension, along which axes a tensor is sharded, major
// first. Axes of one device do not occur in it.
type Layout [][]ir.AxisRef

func (l Layout) String() string { return string(l.append(nil)) }

// append appends l as text.
func (l Layout) append(b []byte) []byte {
	for _, axes := range l {
		b = append(b, '[')
		for i, r := range axes {
			if i > 0 {
				b = append(b, ' ')
			}
			b = strconv.AppendQuote(b, r.Name)
			if r.Size != 0 {
				b = strconv.AppendInt(append(b, ":("...), int64(r.Pre), 10)
				b = strconv.AppendInt(append(b, ')'), int64(r.Size), 10)
			}
		}
		b = append(b, ']')
	}
	return b
}

func (l Layout) Equal(o Layout) bool {
	if len(l) == len(o) && (len(l) == 0 || &l[0] == &o[0]) {
		return true
	}
	return slices.EqualFunc(l, o, func(a, b []ir.AxisRef) bool { return slices.Equal(a, b) })
}

func (l Layout) Clone() Layout {
	c := make(Layout, len(l))
	for d := range l {
		c[d] = slices.Clone(l[d])
	}
	return c
}

// IsReplicated reports whether l shards no dimension.
func (l Layout) IsReplicated() bool {
	return !slices.ContainsFunc(l, func(axes []ir.AxisRef) bool { return len(axes) > 0 })
}

// Without is l without axes, and, in the dimensions that are sharded along one,
// without the axes minor to it.
func (l Layout) Without(axes []ir.AxisRef) Layout {
	c := l.Clone()
	for d := range c {
		if k := slices.IndexFunc(c[d], func(r ir.AxisRef) bool { return OverlapsAny(r, axes) }); k >= 0 {
			c[d] = c[d][:k]
		}
	}
	return c
}

func (l Layout) Uses(r ir.AxisRef) bool {
	return slices.ContainsFunc(l, func(axes []ir.AxisRef) bool { return OverlapsAny(r, axes) })
}

// SameGrid reports whether the axes of l and o are sub-axes of one grid, so that
// a device's coordinates along the ones give those along the others.
func (l Layout) SameGrid(o Layout) bool {
	for _, r := range slices.Concat(l...) {
		for _, q := range slices.Concat(o...) {
			if r != q && r.Overlaps(q) {
				return false
			}
		}
	}
	return true
}

// A Move is one step of a reshard, from a layout to the next.
type Move struct {
	Kind moveKind
	Axes []ir.AxisRef // that the dimension gains or loses
	Dim  int          // that gains or loses them
	To   int          // the dimension that gains the axes of an all-to-all
	Next Layout
}

// A moveKind is the collective that does a move, the cheapest first.
type moveKind uint8

const (
	Slice     moveKind = iota // a device keeps a slice of its shard: dynamic_slice
	AllToAll                  // a dimension becomes sharded along axes of another: all_to_all
	Permute                   // shards of the same size go to other devices: collective_permute
	AllGather                 // a dimension is no longer sharded along the axes: all_gather
)

// A ReshardPlan is how to get from one layout to another, with the number of
// bytes that a device receives on the way.
type ReshardPlan struct {
	Moves []Move
	Bytes int
}

// A Resharder plans reshards. Plans depend on the shape and the layouts only,
// and are kept.
type Resharder struct {
	Mesh  *ir.Mesh
	Still []ir.AxisRef // along which devices have different values: manual axes
	Plans map[string]*ReshardPlan
	key   []byte // of the plan that is asked for
}

// appendKey appends what tells l from other layouts.
func (l Layout) appendKey(b []byte) []byte {
	for _, axes := range l {
		for _, r := range axes {
			b = append(append(b, r.Name...), 0)
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.Pre)), uint64(r.Size))
		}
		b = append(b, 0)
	}
	return b
}

// stay is the plan where nothing moves.
var stay ReshardPlan

// Plan returns the cheapest way that planSearch finds from one layout of a
// tensor of type t to another. Along the unreduced axes devices have different
// values, so that no shard can come from there.
func (rs *Resharder) Plan(t *ir.Type, from, to Layout, unreduced ...ir.AxisRef) *ReshardPlan {
	if from.Equal(to) {
		return &stay
	}
	rs.key = append(rs.key[:0], byte(t.Elem), byte(len(t.Shape)))
	for _, n := range t.Shape {
		rs.key = binary.AppendUvarint(rs.key, uint64(n))
	}
	still := rs.Still
	if len(unreduced) > 0 {
		still = slices.Concat(rs.Still, unreduced)
	}
	rs.key = Layout{still}.appendKey(to.appendKey(from.appendKey(rs.key)))
	if p := rs.Plans[string(rs.key)]; p != nil {
		return p
	}
	key := string(rs.key)
	s := planSearch{Mesh: rs.Mesh, t: t, limit: planLimit}
	start, goal := Atoms(rs.Mesh, from, to)
	s.goal = goal
	p := s.run(start)
	if p.goesRound() {
		if better := rs.wider(t, from, to, still, p); better != nil {
			p = better
		}
	}
	rs.Plans[key] = p
	return p
}

// goesRound reports whether a wider search may find a better plan: not where p
// has one move, or gathers only.
func (p *ReshardPlan) goesRound() bool {
	return p.Bytes > 0 && len(p.Moves) > 1 && slices.ContainsFunc(p.Moves, func(m Move) bool { return m.Kind != AllGather })
}

// wider looks for a plan cheaper than the known one p by way of layouts that are
// no nearer to the goal; nil if it finds none. On a small mesh it splits every
// axis into sub-axes of prime size, and may shard along axes that neither end
// has, but for the axes still.
func (rs *Resharder) wider(t *ir.Type, from, to Layout, still []ir.AxisRef, p *ReshardPlan) *ReshardPlan {
	s := planSearch{Mesh: rs.Mesh, t: t, limit: wideLimit, wide: true, most: p.Bytes*stepCost + len(p.Moves)}
	if primes(rs.Mesh.Size()) <= smallMesh {
		var all []ir.AxisRef
		for _, a := range rs.Mesh.Axes {
			all = append(all, ir.Ax(a.Name))
		}
		s.spare = slices.DeleteFunc(Fine(rs.Mesh, Layout{all})[0], func(r ir.AxisRef) bool { return OverlapsAny(r, still) })
		from, to = Fine(rs.Mesh, from), Fine(rs.Mesh, to)
	} else {
		from, to = Atoms(rs.Mesh, from, to)
		s.spare = slices.Concat(to...)
	}
	s.goal = to
	return s.run(from)
}

// A planSearch looks for the cheapest moves from one layout to another among
// those that bring the goal nearer: a dimension gains axes that the goal has
// there, by a slice or an all-to-all, and loses those that it has elsewhere. A
// wide search lets any dimension gain and lose axes: a shard of a shard takes
// fewer bytes to move. Layouts are in atoms, see [Atoms].
type planSearch struct {
	Mesh  *ir.Mesh
	t     *ir.Type
	goal  Layout
	spare []ir.AxisRef // along which dimensions may be sharded on the way
	open  planHeap
	seen  map[string]int // cost
	limit int
	wide  bool
	most  int    // a plan of this cost is known; 0: only the one by way of the replicated tensor
	key   []byte // of the layout that is looked up
}

// A planNode is a layout on the way, and how it was reached.
type planNode struct {
	at    Layout
	by    *planNode
	move  Move
	cost  int // bytes, times stepCost, plus one for each move
	bytes int
	order int // of discovery: makes the search deterministic
}

// stepCost weighs a byte against a move.
const stepCost = 16

// wideLimit bounds the layouts that a wide search looks at.
const wideLimit = 400

// planLimit bounds the layouts that a search looks at; past it, every dimension
// that differs is gathered and sliced, which always works.
const planLimit = 4000

type planHeap []*planNode

func (h planHeap) Len() int { return len(h) }

func (h planHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].cost, h[j].cost), cmp.Compare(h[i].order, h[j].order)) < 0
}

func (h planHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *planHeap) Push(x any) { *h = append(*h, x.(*planNode)) }

func (h *planHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}

// smallMesh is how many primes the number of devices is a product of at most
// where a search splits every axis into sub-axes of prime size.
const smallMesh = 4

func primes(n int) int {
	count := 0
	for f := 2; n > 1; f++ {
		for ; n%f == 0; n /= f {
			count++
		}
	}
	return count
}

// Fine is l in sub-axes of prime sizes.
func Fine(mesh *ir.Mesh, l Layout) Layout {
	out := make(Layout, len(l))
	for d, axes := range l {
		for _, r := range axes {
			pre, size := mesh.Span(r)
			for f := 2; size > 1; f++ {
				for ; size%f == 0; size /= f {
					out[d] = append(out[d], mesh.SubAxis(r.Name, pre, f))
					pre *= f
				}
			}
		}
	}
	return out
}

// Atoms writes both layouts in sub-axes that overlap only where they are equal.
func Atoms(mesh *ir.Mesh, from, to Layout) (Layout, Layout) {
	if from.wholeAxes(mesh) && to.wholeAxes(mesh) {
		return from.Clone(), to.Clone()
	}
	bounds := make(map[string][]int) // by axis: where sub-axes begin and end
	for _, l := range []Layout{from, to} {
		for _, r := range slices.Concat(l...) {
			pre, size := mesh.Span(r)
			bounds[r.Name] = append(bounds[r.Name], pre, pre*size)
		}
	}
	for name := range bounds {
		slices.Sort(bounds[name])
		bounds[name] = slices.Compact(bounds[name])
	}
	split := func(l Layout) Layout {
		out := make(Layout, len(l))
		for d, axes := range l {
			for _, r := range axes {
				pre, size := mesh.Span(r)
				end := pre * size
				for _, b := range bounds[r.Name] {
					if b > pre && b <= end && b%pre == 0 && end%b == 0 {
						out[d] = append(out[d], mesh.SubAxis(r.Name, pre, b/pre))
						pre = b
					}
				}
			}
		}
		return out
	}
	return split(from), split(to)
}

// wholeAxes reports whether l has no sub-axes, and no axes of one device.
func (l Layout) wholeAxes(mesh *ir.Mesh) bool {
	for _, axes := range l {
		for _, r := range axes {
			if r.Size != 0 || mesh.AxisSize(r.Name) == 1 {
				return false
			}
		}
	}
	return true
}

func (s *planSearch) run(from Layout) *ReshardPlan {
	s.seen = map[string]int{string(from.appendKey(nil)): 0}
	heap.Push(&s.open, &planNode{at: from})
	for len(s.seen) < s.limit && len(s.open) > 0 {
		n := heap.Pop(&s.open).(*planNode)
		if n.at.Equal(s.goal) {
			return n.plan()
		}
		s.key = n.at.appendKey(s.key[:0])
		if s.seen[string(s.key)] == n.cost { // else a cheaper way to it was found since
			s.expand(n)
		}
	}
	if s.most > 0 {
		return nil
	}
	return s.viaReplicated(from)
}

func (n *planNode) plan() *ReshardPlan {
	p := &ReshardPlan{Bytes: n.bytes}
	for ; n.by != nil; n = n.by {
		p.Moves = append(p.Moves, n.move)
	}
	slices.Reverse(p.Moves)
	return p
}

// viaReplicated gathers every dimension that differs and slices it again.
func (s *planSearch) viaReplicated(from Layout) *ReshardPlan {
	n := &planNode{at: from}
	step := func(m Move) { n = s.node(n, m) }
	for d := range from {
		if k := SamePrefix(n.at[d], s.goal[d]); k < len(n.at[d]) {
			step(s.gather(n.at, d, len(n.at[d])-k))
		}
	}
	for d := range from {
		if k := len(n.at[d]); k < len(s.goal[d]) {
			step(s.slice(n.at, d, s.goal[d][k:]))
		}
	}
	return n.plan()
}

// LayoutBytes is the size of one device's shard of a tensor of type t with the
// layout l.
func LayoutBytes(mesh *ir.Mesh, t *ir.Type, l Layout) int {
	n := t.Elem.Size()
	for d, size := range t.Shape {
		n *= size / mesh.RefsSize(l[d])
	}
	return n
}

func (s *planSearch) node(by *planNode, m Move) *planNode {
	return s.reached(by, m, s.moved(LayoutBytes(s.Mesh, s.t, by.at), m.Kind, m.Axes))
}

// reached is where a move leads in which a device receives so many bytes.
func (s *planSearch) reached(by *planNode, m Move, bytes int) *planNode {
	return &planNode{at: m.Next, by: by, move: m, bytes: by.bytes + bytes, cost: by.costWith(bytes), order: len(s.seen)}
}

// costWith is the cost with another move, in which a device receives so many bytes.
func (n *planNode) costWith(bytes int) int { return n.cost + bytes*stepCost + 1 }

// moved is how many bytes a device receives in a move of a shard of so many bytes.
func (s *planSearch) moved(shard int, kind moveKind, axes []ir.AxisRef) int {
	switch kind {
	case Slice:
		return 0
	case AllToAll:
		return shard - shard/s.Mesh.RefsSize(axes)
	case AllGather:
		return shard * (s.Mesh.RefsSize(axes) - 1)
	}
	return shard
}

func (s *planSearch) expand(n *planNode) {
	at, shard := n.at, LayoutBytes(s.Mesh, s.t, n.at)
	// fits reports whether a plan with this move may be cheaper than the one that is known.
	fits := func(kind moveKind, axes []ir.AxisRef) bool {
		return s.most == 0 || n.costWith(s.moved(shard, kind, axes)) < s.most
	}
	try := func(m Move) {
		bytes := s.moved(shard, m.Kind, m.Axes)
		s.key = m.Next.appendKey(s.key[:0])
		if old, ok := s.seen[string(s.key)]; ok && old <= n.costWith(bytes) {
			return
		}
		next := s.reached(n, m, bytes)
		s.seen[string(s.key)] = next.cost
		heap.Push(&s.open, next)
	}
	for d := range at {
		into := s.goal[d]
		if s.wide {
			into = s.spare
		}
		for _, r := range into {
			if fits(Slice, nil) && !at.Uses(r) && s.divides(at, d, r) {
				try(s.slice(at, d, []ir.AxisRef{r}))
			}
		}
		for k := 1; k <= len(at[d])-SamePrefix(at[d], s.goal[d]); k++ {
			axes := at[d][len(at[d])-k:]
			if fits(AllGather, axes) {
				try(s.gather(at, d, k))
			}
			for to := range at {
				if to != d && fits(AllToAll, axes) && (s.wide || ContainsAll(s.goal[to], axes)) && s.divides(at, to, axes...) {
					try(s.allToAll(at, d, to, k))
				}
			}
		}
	}
	if !fits(Permute, nil) {
		return
	}
	sorted, renamed := s.sorted(at), s.renamed(at)
	places := []Layout{sorted, renamed, s.toward(at)}
	if s.wide {
		places = append(places, s.sorted(renamed), s.renamed(sorted))
	}
	for _, next := range places {
		if !next.Equal(at) && next.SameGrid(at) {
			try(Move{Kind: Permute, Next: next})
		}
	}
}

func (s *planSearch) divides(at Layout, d int, more ...ir.AxisRef) bool {
	return s.t.Shape[d]%(s.Mesh.RefsSize(at[d])*s.Mesh.RefsSize(more)) == 0
}

// ContainsAll reports whether list has all of axes.
func ContainsAll(list, axes []ir.AxisRef) bool {
	for _, r := range axes {
		if !slices.Contains(list, r) {
			return false
		}
	}
	return true
}

// SamePrefix is how many axes a and b begin with alike.
func SamePrefix(a, b []ir.AxisRef) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (s *planSearch) slice(at Layout, d int, axes []ir.AxisRef) Move {
	next := at.Clone()
	next[d] = append(next[d], axes...)
	return Move{Kind: Slice, Axes: axes, Dim: d, Next: next}
}

func (s *planSearch) gather(at Layout, d, k int) Move {
	next := at.Clone()
	axes := next[d][len(next[d])-k:]
	next[d] = next[d][:len(next[d])-k]
	return Move{Kind: AllGather, Axes: axes, Dim: d, Next: next}
}

func (s *planSearch) allToAll(at Layout, d, to, k int) Move {
	m := s.gather(at, d, k)
	m.Kind, m.To = AllToAll, to
	m.Next[to] = append(m.Next[to], m.Axes...)
	return m
}

// sorted is at with the axes of each dimension in another order: first those
// that the goal has there, in its order, then those that have to leave.
func (s *planSearch) sorted(at Layout) Layout {
	next := make(Layout, len(at))
	for d := range at {
		for _, r := range s.goal[d] {
			if slices.Contains(at[d], r) {
				next[d] = append(next[d], r)
			}
		}
		for _, r := range at[d] {
			if !slices.Contains(s.goal[d], r) {
				next[d] = append(next[d], r)
			}
		}
	}
	return next
}

// toward is the layout that has as many shards in each dimension as at, along
// the first axes that the goal has there; at itself where there is none.
func (s *planSearch) toward(at Layout) Layout {
	next := make(Layout, len(at))
	for d := range at {
		parts := s.Mesh.RefsSize(at[d])
		for _, r := range s.goal[d] {
			if s.Mesh.RefsSize(next[d]) < parts {
				next[d] = append(next[d], r)
			}
		}
		if s.Mesh.RefsSize(next[d]) != parts {
			return at
		}
	}
	return next
}

// renamed is at with each axis replaced by the one that the goal has in its
// place, if both have the same size; where that one is used elsewhere, the two
// change places.
func (s *planSearch) renamed(at Layout) Layout {
	next := at.Clone()
	for d := range next {
		for i := range min(len(next[d]), len(s.goal[d])) {
			have, want := next[d][i], s.goal[d][i]
			if have == want || s.Mesh.RefSize(have) != s.Mesh.RefSize(want) {
				continue
			}
			for e := range next {
				if j := slices.Index(next[e], want); j >= 0 {
					next[e][j] = have
				}
			}
			next[d][i] = want
		}
	}
	return next
}
