package propagate

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// A derivation is the sharding of one op that follows from the shardings of its
// operands, by factor of its sharding rule (see [ir.Factors]):
//
//   - The operands that have a factor agree if the axes of each along it are a
//     prefix of the longest list: each device slices what it has of the others, and
//     nothing is communicated.
//   - A mesh axis shards one factor.
//   - A factor that needs replication is sharded in no operand.
//   - A sum over a sharded factor is unreduced. That of a reduction is all-reduced;
//     that of a contraction or lookup could be all-reduced or reduce-scattered, so
//     the program has to say which.
//   - The result is sharded along the axes of its factors, as far as these can be
//     written as axes of its dimensions and divide their sizes.
//
// Where this leaves a choice, or cannot be met, there is a [clash]. If the program
// states the sharding of the result, by an attribute or by a constraint that is its
// only use, that sharding settles a clash about the result: the communication it
// takes was asked for. Without a clash a stated sharding counts where it shards the
// result further than the operands do, since that needs no communication: each
// device computes less.
type derivation struct {
	p      *propagator
	n      *propNode
	pr     *projection
	axes   [][]ir.AxisRef // by factor
	from   []int          // by factor: the operand that is sharded along these axes, -1 for none
	joined *projected     // axes, once they are found
	some   bool           // the sharding of an operand is known
	all    bool           // the shardings of all operands are known
}

// A clash is why no sharding of an op's result follows from those of its operands,
// or more than one does.
type clash struct {
	kind   clashKind
	factor int
	other  int // another factor, of clashTwice
	a, b   int // operands: the one at fault, or the two that disagree
	d      int // a dimension of operand a
	axes   []ir.AxisRef
}

type clashKind uint8

const (
	clashDiffer    clashKind = iota // a and b are sharded differently along factor
	clashTwice                      // the axes shard both factor and other
	clashReplicate                  // factor needs replication, a is sharded along it
	clashDivide                     // the size of dimension d of a does not divide
	clashPartial                    // a contraction over the sharded factor: its unreduced result is neither all-reduced nor scattered
	clashLost                       // the result cannot be sharded along the axes of factor
	clashCarried                    // a carry has a as its initial value and b as its next, which is sharded further along factor
)

// ofResult reports whether a stated sharding of the result settles c.
func (c *clash) ofResult(w *derivation) bool {
	has := func(k int) bool { return slices.Contains(slices.Concat(w.n.rule.Results[0]...), k) }
	switch c.kind {
	case clashDiffer:
		return has(c.factor)
	case clashTwice:
		return has(c.factor) || has(c.other)
	case clashPartial, clashLost:
		return true
	}
	return false
}

func newDerivation(p *propagator, n *propNode) *derivation {
	w := &derivation{p: p, n: n, axes: make([][]ir.AxisRef, len(n.rule.Sizes)), from: make([]int, len(n.rule.Sizes)), all: true}
	w.pr = &projection{mesh: p.mesh, sizes: n.rule.Sizes, inputs: len(n.operands())}
	for k := range w.from {
		w.from[k] = -1
	}
	return w
}

// followNode derives the shardings of n's results from those of its operands.
func (p *propagator) followNode(n *propNode) {
	if n.refused {
		return
	}
	if n.onOpen() {
		n.leaveOpen()
		return
	}
	w := newDerivation(p, n)
	c := w.join()
	if n.op != nil && n.op.Kind == ir.ShardingConstraint {
		c = nil
	}
	said := w.stated()
	if c == nil && w.some {
		c = w.check()
	}
	if c != nil && (said == nil || !c.ofResult(w)) {
		p.refuse(n, w.refusal(c))
		return
	}
	if c != nil {
		w.settle(said)
	} else {
		w.settle(nil)
	}
	w.fill()
}

// stated is the sharding that the program states for the result, nil if none.
func (w *derivation) stated() *ir.Sharding {
	r := w.n.results()[0].propTensor
	switch {
	case r == nil:
		return nil
	case r.seed != nil && !slices.ContainsFunc(r.seed.Dims, func(d ir.DimSharding) bool { return d.Open }):
		return r.seed
	}
	return r.said
}

// join finds the axes of each factor, the longest list that an operand has, and the
// first clash among the operands.
func (w *derivation) join() *clash {
	for i, r := range w.n.operands() {
		if r.propTensor == nil || r.free {
			w.pr.tensors = append(w.pr.tensors, projected{factors: make([]layout.FactorAxes, len(w.axes))})
			continue
		}
		w.all = w.all && r.known
		if !r.known {
			w.pr.tensors = append(w.pr.tensors, projected{factors: make([]layout.FactorAxes, len(w.axes))})
			continue
		}
		w.some = true
		t := w.p.projectTensor(r, w.n.rule.Operands[i], w.n.rule.Sizes, make([]layout.FactorAxes, len(w.axes)))
		w.pr.tensors = append(w.pr.tensors, t)
	}
	var found *clash
	note := func(c *clash) {
		if found == nil || found.ofResult(w) && !c.ofResult(w) {
			found = c
		}
	}
	for k := range w.axes {
		for i := range w.n.operands() {
			f := &w.pr.tensors[i].factors[k]
			switch {
			case !f.Present || len(f.Axes) == 0 && len(f.Overflow) == 0:
			case len(f.Overflow) > 0:
				note(&clash{kind: clashLost, factor: k, a: i, axes: f.Overflow})
			case w.n.rule.Types[k] == ir.NeedReplication:
				note(&clash{kind: clashReplicate, factor: k, a: i, d: w.dimOf(i, k), axes: f.Axes})
			case w.from[k] < 0 || w.pr.strictPrefix(w.axes[k], f.Axes):
				w.axes[k], w.from[k] = f.Axes, i
			case slices.Equal(w.axes[k], f.Axes) || w.pr.strictPrefix(f.Axes, w.axes[k]):
			default:
				note(&clash{kind: clashDiffer, factor: k, a: w.from[k], b: i})
			}
		}
	}
	if found == nil || found.ofResult(w) {
		for i, r := range w.n.operands() {
			if d := w.misfit(i, r); d >= 0 {
				note(&clash{kind: clashDivide, a: i, d: d, axes: r.dims[d]})
			}
		}
	}
	return found
}

// misfit is a sharded dimension of operand i whose axes do not divide its size, or
// that has no factor; -1 if there is none. Slice, pad and concatenate may have
// results of each other whose sizes do not divide as operands.
func (w *derivation) misfit(i int, r propRef) int {
	if r.propTensor == nil || r.free || !r.known {
		return -1
	}
	moves := w.n.op != nil && w.n.results()[0].propTensor != nil && w.n.results()[0].ghost != nil
	for d, axes := range r.dims {
		divides := r.shape[d]%w.p.mesh.RefsSize(axes) == 0
		if len(axes) > 0 && (len(w.n.rule.Operands[i][d]) == 0 || !divides && !moves) {
			return d
		}
	}
	return -1
}

// dimOf is a dimension of operand i that has factor k.
func (w *derivation) dimOf(i, k int) int {
	return slices.IndexFunc(w.n.rule.Operands[i], func(ks []int) bool { return slices.Contains(ks, k) })
}

// check finds the first clash in the axes that join has found: an axis that shards
// two factors, a result that cannot have them, an unreduced sum.
func (w *derivation) check() *clash {
	var found *clash
	for k := range w.axes {
		for j := range k {
			i := slices.IndexFunc(w.axes[k], func(r ir.AxisRef) bool { return layout.OverlapsAny(r, w.axes[j]) })
			if i < 0 {
				continue
			}
			c := &clash{kind: clashTwice, factor: j, other: k, a: w.from[j], b: w.from[k], axes: w.axes[k][i : i+1]}
			if found == nil || found.ofResult(w) && !c.ofResult(w) {
				found = c
			}
		}
	}
	if found != nil {
		return found
	}
	for i, r := range w.n.results() {
		if r.propTensor == nil {
			continue
		}
		for d, ks := range w.n.rule.Results[i] {
			axes := w.dim(ks)
			for _, k := range ks {
				if !slices.Equal(w.p.mesh.JoinAxes(slices.Clone(axes), w.axes[k]), axes) && !w.covers(axes, w.axes[k]) {
					return &clash{kind: clashLost, factor: k, a: w.from[k], axes: w.axes[k]}
				}
			}
			ghost := r.ghost != nil && r.ghost[d]
			if n := r.shape[d] * w.p.mesh.RefsSize(r.manualAxes(d)); n%w.p.mesh.RefsSize(axes) != 0 && !ghost {
				return &clash{kind: clashLost, factor: ks[0], a: w.from[ks[0]], axes: axes}
			}
		}
	}
	return w.partial()
}

// covers reports whether every axis of part is in axes, or split off one of them.
func (w *derivation) covers(axes, part []ir.AxisRef) bool {
	for _, r := range part {
		if !slices.ContainsFunc(axes, func(a ir.AxisRef) bool { return w.p.mesh.Contains(a, r) }) {
			return false
		}
	}
	return true
}

// partial finds a contraction over sharded axes whose unreduced result is neither
// reduced nor scattered. A scalar result is always all-reduced, as is that of an op
// with a combining region.
func (w *derivation) partial() *clash {
	if w.n.op == nil || len(w.n.op.Regions) > 0 || w.n.results()[0].propTensor == nil {
		return nil
	}
	for k, axes := range w.axes {
		if w.n.rule.Types[k] == ir.Reduction && len(axes) > 0 {
			return &clash{kind: clashPartial, factor: k, a: w.from[k], axes: axes}
		}
	}
	return nil
}

// factors is the axes of all factors in the form of a projection.
func (w *derivation) factors() *projected {
	t := &projected{factors: make([]layout.FactorAxes, len(w.axes))}
	for k, axes := range w.axes {
		t.factors[k] = layout.FactorAxes{Present: true, Axes: axes}
	}
	return t
}

// dim is the axes that shard a dimension with factors ks.
func (w *derivation) dim(ks []int) []ir.AxisRef {
	if w.joined == nil {
		w.joined = w.factors()
	}
	return w.pr.dimAxes(w.joined, ks)
}

// settle writes the shardings of the results: said, if that is given, else what
// follows from the operands.
func (w *derivation) settle(said *ir.Sharding) {
	for i, r := range w.n.results() {
		x := r.propTensor
		if x == nil || x.seed != nil && !w.opens(x) {
			continue
		}
		dims := make([][]ir.AxisRef, len(x.shape))
		for d, ks := range w.n.rule.Results[i] {
			if said != nil {
				dims[d] = said.Axes(d)
				continue
			}
			axes := w.dim(ks)
			if rest, ok := w.p.withoutPrefix(axes, r.manualAxes(d)); ok {
				dims[d] = rest
			}
		}
		w.refine(dims, x.said)
		if x.seed != nil {
			w.refineOpen(dims, x)
		}
		w.p.setDims(x, dims)
		x.maker = w.n
		for d, ks := range w.n.rule.Results[i] {
			x.grown[d] = x.seed == nil && len(dims[d]) == 0 && len(ks) == 1 && w.grows(ks[0])
		}
		x.known = x.seed != nil || w.some || w.all
	}
}

func (w *derivation) opens(x *propTensor) bool {
	return slices.ContainsFunc(x.seed.Dims, func(d ir.DimSharding) bool { return d.Open })
}

// refine shards dims further where said does, along axes that shard nothing else.
func (w *derivation) refine(dims [][]ir.AxisRef, said *ir.Sharding) {
	if said == nil {
		return
	}
	for d, axes := range dims {
		more := said.Axes(d)
		if !w.pr.strictPrefix(axes, more) {
			continue
		}
		free := true
		for other, theirs := range dims {
			for _, r := range more {
				free = free && (other == d || !layout.OverlapsAny(r, theirs))
			}
		}
		if free {
			dims[d] = more
		}
	}
}

// refineOpen makes dims the open sharding of x, extended by their own further axes
// where it uses those for nothing else.
func (w *derivation) refineOpen(dims [][]ir.AxisRef, x *propTensor) {
	found := slices.Clone(dims)
	taken := slices.Concat(x.seed.Replicated, x.seed.Unreduced, x.barred)
	for d, s := range x.seed.Dims {
		dims[d] = s.Axes
		taken = append(taken, s.Axes...)
	}
	for d, s := range x.seed.Dims {
		more, _ := w.p.withoutPrefix(found[d], s.Axes)
		if s.Open && !slices.ContainsFunc(more, func(r ir.AxisRef) bool { return layout.OverlapsAny(r, taken) }) {
			dims[d] = w.p.mesh.JoinAxes(slices.Clone(s.Axes), more)
			taken = append(taken, more...)
		}
	}
}

// grows reports whether every operand with factor k is free or broadcast along it,
// so that it can take any sharding of k.
func (w *derivation) grows(k int) bool {
	if w.n.rule.Types[k] != ir.PassThrough {
		return false
	}
	for i, r := range w.n.operands() {
		if d := w.dimOf(i, k); d >= 0 && !r.free && !(r.known && r.grown[d]) {
			return false
		}
	}
	return true
}

// fill gives free operands the sharding that the op needs. It does so for operands
// along broadcast dimensions too: the first use that needs a sharding decides it.
func (w *derivation) fill() {
	factors := w.factors()
	for i, r := range w.n.results() {
		if r.propTensor == nil || !r.known {
			continue
		}
		for d, ks := range w.n.rule.Results[i] {
			layout.ProjectDim(w.p.mesh, w.p.mesh.JoinAxes(slices.Clone(r.manualAxes(d)), r.dims[d]), ks, w.pr.sizes, factors.factors)
		}
	}
	for i, r := range w.n.operands() {
		if r.propTensor != nil && !r.free && r.known && w.all {
			w.grow(r.propTensor, w.n.rule.Operands[i], factors)
		}
		if r.propTensor == nil || !r.free {
			continue
		}
		var used []ir.AxisRef
		for d, ks := range w.n.rule.Operands[i] {
			axes := w.pr.dimAxes(factors, ks)
			if slices.ContainsFunc(axes, func(a ir.AxisRef) bool { return layout.OverlapsAny(a, used) }) || r.shape[d]%w.p.mesh.RefsSize(axes) != 0 {
				axes = nil
			}
			used = append(used, axes...)
			r.dims[d] = axes
		}
	}
}

// grow shards x, an operand with dimensions of factors dims, as factors say along
// its broadcast dimensions, and does so for the values that x is computed from.
func (w *derivation) grow(x *propTensor, dims [][]int, factors *projected) {
	more := false
	for d, ks := range dims {
		if !x.grown[d] || len(ks) != 1 {
			continue
		}
		axes := w.pr.dimAxes(factors, ks)
		x.grown[d] = len(axes) == 0 && w.growsOn(ks[0])
		taken := slices.ContainsFunc(axes, func(r ir.AxisRef) bool { return layout.OverlapsAny(r, slices.Concat(x.dims...)) })
		if len(axes) > 0 && !taken && x.shape[d]%w.p.mesh.RefsSize(axes) == 0 {
			x.dims[d], more = slices.Clone(axes), true
		}
	}
	if more && x.maker != nil {
		newDerivation(w.p, x.maker).fill()
	}
}

// growsOn reports whether a result is broadcast along factor k and has no sharding
// of it yet.
func (w *derivation) growsOn(k int) bool {
	for i, r := range w.n.results() {
		for d, ks := range w.n.rule.Results[i] {
			if r.propTensor != nil && slices.Equal(ks, []int{k}) && r.grown[d] {
				return true
			}
		}
	}
	return false
}

// carriedAlike checks that the yielded value of a carry needs no communication to
// take the carry's sharding.
func (p *propagator) carriedAlike(n *propNode) {
	x, next := n.results()[0], n.operands()[1]
	if next.free || !next.known {
		return
	}
	pr := &projection{mesh: p.mesh}
	for d, axes := range next.dims {
		if !slices.Equal(axes, x.dims[d]) && !pr.strictPrefix(axes, x.dims[d]) {
			w := newDerivation(p, n)
			w.join()
			p.refuse(n, w.refusal(&clash{kind: clashCarried, factor: d, a: 0, b: 1}))
			return
		}
	}
}
