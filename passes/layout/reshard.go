package layout

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"slices"
	"strconv"

	"ppc/ir"
)

// A Layout says, by dimension, along which axes a tensor is cut, major first.
// Axes of one device do not occur in it.
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
	return slices.EqualFunc(l, o, func(a, b []ir.AxisRef) bool { return slices.Equal(a, b) })
}

func (l Layout) Clone() Layout {
	c := make(Layout, len(l))
	for d := range l {
		c[d] = slices.Clone(l[d])
	}
	return c
}

// Whole reports whether l cuts nothing.
func (l Layout) Whole() bool {
	return !slices.ContainsFunc(l, func(axes []ir.AxisRef) bool { return len(axes) > 0 })
}

// Without is l as far as it cuts along none of axes.
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

// SameGrid reports whether the axes of l and o are parts of one grid, so that the
// place of a device along the ones says where it stands along the others.
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
	Axes []ir.AxisRef // that are cut, joined or moved
	Dim  int          // from which they go, or to which they come
	To   int          // where exchanged axes go
	Next Layout
}

// A moveKind is how a move is done. In the order of preference: a device keeps
// its part; the axes move to another dimension; blocks change places; what is
// cut along the axes is joined.
type moveKind uint8

const (
	CutMove      moveKind = iota // dynamic_slice
	ExchangeMove                 // all_to_all
	PlaceMove                    // collective_permute
	JoinMove                     // all_gather
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
	Still []ir.AxisRef // along which devices have different values anyway
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

// Plan returns the cheapest way that PlanSearch finds from one layout of a
// tensor of type t to another. Along the axes partial it is so: devices that
// differ there have different values, so no part comes from there.
func (rs *Resharder) Plan(t *ir.Type, from, to Layout, partial ...ir.AxisRef) *ReshardPlan {
	if from.Equal(to) {
		return new(ReshardPlan)
	}
	rs.key = append(rs.key[:0], byte(t.Elem), byte(len(t.Shape)))
	for _, n := range t.Shape {
		rs.key = binary.AppendUvarint(rs.key, uint64(n))
	}
	still := rs.Still
	if len(partial) > 0 {
		still = slices.Concat(rs.Still, partial)
	}
	rs.key = Layout{still}.appendKey(to.appendKey(from.appendKey(rs.key)))
	if p := rs.Plans[string(rs.key)]; p != nil {
		return p
	}
	key := string(rs.key)
	s := PlanSearch{Mesh: rs.Mesh, t: t, limit: planLimit}
	start, goal := s.Atoms(from, to)
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

// goesRound reports whether p may not be the best: what is joined only, or moved
// at once, is.
func (p *ReshardPlan) goesRound() bool {
	return p.Bytes > 0 && len(p.Moves) > 1 && slices.ContainsFunc(p.Moves, func(m Move) bool { return m.Kind != JoinMove })
}

// wider looks for a plan cheaper than the known one p that goes ways round; nil
// if it finds none. On a small mesh it takes every axis apart, and may cut
// along axes that neither end has, but for the axes still.
func (rs *Resharder) wider(t *ir.Type, from, to Layout, still []ir.AxisRef, p *ReshardPlan) *ReshardPlan {
	s := PlanSearch{Mesh: rs.Mesh, t: t, limit: wideLimit, wide: true, most: p.Bytes*stepCost + len(p.Moves)}
	if primes(rs.Mesh.Size()) <= smallMesh {
		var all []ir.AxisRef
		for _, a := range rs.Mesh.Axes {
			all = append(all, ir.Ax(a.Name))
		}
		s.spare = slices.DeleteFunc(s.Fine(Layout{all})[0], func(r ir.AxisRef) bool { return OverlapsAny(r, still) })
		from, to = s.Fine(from), s.Fine(to)
	} else {
		from, to = s.Atoms(from, to)
		s.spare = slices.Concat(to...)
	}
	s.goal = to
	return s.run(from)
}

// A PlanSearch looks for the cheapest moves from one layout to another among
// those that bring the goal nearer: axes are cut into the dimension where the
// goal has them, moved there, or joined where it has them elsewhere. A wide
// search cuts and moves anywhere: it takes less to move a part of a part. Layouts
// are in atoms: parts of axes that both ends have as a whole.
type PlanSearch struct {
	Mesh  *ir.Mesh
	t     *ir.Type
	goal  Layout
	spare []ir.AxisRef // that may cut dimensions on the way
	open  planHeap
	seen  map[string]int // cost
	limit int
	wide  bool
	most  int // a plan of this cost is known; 0: only by way of the whole
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

// planLimit bounds the layouts that a search looks at; past it, everything is
// joined and cut again, which always works.
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
// where a search takes every axis apart.
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

// Fine is l in parts of axes of prime sizes.
func (s *PlanSearch) Fine(l Layout) Layout {
	out := make(Layout, len(l))
	for d, axes := range l {
		for _, r := range axes {
			pre, size := s.Mesh.Span(r)
			for f := 2; size > 1; f++ {
				for ; size%f == 0; size /= f {
					out[d] = append(out[d], s.Mesh.SubAxis(r.Name, pre, f))
					pre *= f
				}
			}
		}
	}
	return out
}

// Atoms writes both layouts in axes that overlap only where they are equal.
func (s *PlanSearch) Atoms(from, to Layout) (Layout, Layout) {
	bounds := make(map[string][]int) // by axis: where parts begin and end
	for _, l := range []Layout{from, to} {
		for _, r := range slices.Concat(l...) {
			pre, size := s.Mesh.Span(r)
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
				pre, size := s.Mesh.Span(r)
				end := pre * size
				for _, b := range bounds[r.Name] {
					if b > pre && b <= end && b%pre == 0 && end%b == 0 {
						out[d] = append(out[d], s.Mesh.SubAxis(r.Name, pre, b/pre))
						pre = b
					}
				}
			}
		}
		return out
	}
	return split(from), split(to)
}

func (s *PlanSearch) run(from Layout) *ReshardPlan {
	s.seen = map[string]int{from.String(): 0}
	heap.Push(&s.open, &planNode{at: from})
	for len(s.seen) < s.limit && len(s.open) > 0 {
		n := heap.Pop(&s.open).(*planNode)
		if n.at.Equal(s.goal) {
			return n.plan()
		}
		s.expand(n)
	}
	if s.most > 0 {
		return nil
	}
	return s.viaWhole(from)
}

func (n *planNode) plan() *ReshardPlan {
	p := &ReshardPlan{Bytes: n.bytes}
	for ; n.by != nil; n = n.by {
		p.Moves = append(p.Moves, n.move)
	}
	slices.Reverse(p.Moves)
	return p
}

// viaWhole joins every dimension that differs and cuts it again.
func (s *PlanSearch) viaWhole(from Layout) *ReshardPlan {
	n := &planNode{at: from}
	step := func(m Move) { n = s.node(n, m) }
	for d := range from {
		if k := SamePrefix(n.at[d], s.goal[d]); k < len(n.at[d]) {
			step(s.join(n.at, d, len(n.at[d])-k))
		}
	}
	for d := range from {
		if k := len(n.at[d]); k < len(s.goal[d]) {
			step(s.cut(n.at, d, s.goal[d][k:]))
		}
	}
	return n.plan()
}

// LayoutBytes is the size of one device's part of a tensor of type t that lies
// as l says.
func LayoutBytes(mesh *ir.Mesh, t *ir.Type, l Layout) int {
	n := t.Elem.Size()
	for d, size := range t.Shape {
		n *= size / mesh.RefsSize(l[d])
	}
	return n
}

func (s *PlanSearch) node(by *planNode, m Move) *planNode {
	bytes := LayoutBytes(s.Mesh, s.t, by.at)
	k := s.Mesh.RefsSize(m.Axes)
	switch m.Kind {
	case CutMove:
		bytes = 0
	case ExchangeMove:
		bytes -= bytes / k
	case JoinMove:
		bytes *= k - 1
	}
	return &planNode{at: m.Next, by: by, move: m, bytes: by.bytes + bytes, cost: by.cost + bytes*stepCost + 1, order: len(s.seen)}
}

func (s *PlanSearch) expand(n *planNode) {
	at := n.at
	try := func(m Move) {
		next := s.node(n, m)
		key := m.Next.String()
		if old, ok := s.seen[key]; ok && old <= next.cost || s.most > 0 && next.cost >= s.most {
			return
		}
		s.seen[key] = next.cost
		heap.Push(&s.open, next)
	}
	for d := range at {
		into := s.goal[d]
		if s.wide {
			into = s.spare
		}
		for _, r := range into {
			if !at.Uses(r) && s.divides(at, d, r) {
				try(s.cut(at, d, []ir.AxisRef{r}))
			}
		}
		for k := 1; k <= len(at[d])-SamePrefix(at[d], s.goal[d]); k++ {
			try(s.join(at, d, k))
			axes := at[d][len(at[d])-k:]
			for to := range at {
				if to != d && (s.wide || ContainsAll(s.goal[to], axes)) && s.divides(at, to, axes...) {
					try(s.exchange(at, d, to, k))
				}
			}
		}
	}
	sorted, renamed := s.sorted(at), s.renamed(at)
	places := []Layout{sorted, renamed, s.toward(at)}
	if s.wide {
		places = append(places, s.sorted(renamed), s.renamed(sorted))
	}
	for _, next := range places {
		if !next.Equal(at) && next.SameGrid(at) {
			try(Move{Kind: PlaceMove, Next: next})
		}
	}
}

func (s *PlanSearch) divides(at Layout, d int, more ...ir.AxisRef) bool {
	return s.t.Shape[d]%(s.Mesh.RefsSize(at[d])*s.Mesh.RefsSize(more)) == 0
}

func ContainsAll(list, axes []ir.AxisRef) bool {
	for _, r := range axes {
		if !slices.Contains(list, r) {
			return false
		}
	}
	return true
}

func SamePrefix(a, b []ir.AxisRef) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (s *PlanSearch) cut(at Layout, d int, axes []ir.AxisRef) Move {
	next := at.Clone()
	next[d] = append(next[d], axes...)
	return Move{Kind: CutMove, Axes: axes, Dim: d, Next: next}
}

func (s *PlanSearch) join(at Layout, d, k int) Move {
	next := at.Clone()
	axes := next[d][len(next[d])-k:]
	next[d] = next[d][:len(next[d])-k]
	return Move{Kind: JoinMove, Axes: axes, Dim: d, Next: next}
}

func (s *PlanSearch) exchange(at Layout, d, to, k int) Move {
	m := s.join(at, d, k)
	m.Kind, m.To = ExchangeMove, to
	m.Next[to] = append(m.Next[to], m.Axes...)
	return m
}

// sorted is at with the axes of each dimension in another order: first those
// that the goal has there, in its order, then those that have to leave.
func (s *PlanSearch) sorted(at Layout) Layout {
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

// toward is the goal as far as its dimensions begin with as many parts as those
// of at have, in such parts; at itself where they do not.
func (s *PlanSearch) toward(at Layout) Layout {
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

// renamed is at with axes replaced by those that the goal has in their place,
// where these have the same size; an axis that is replaced and used elsewhere
// changes places.
func (s *PlanSearch) renamed(at Layout) Layout {
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
