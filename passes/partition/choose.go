package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// An assignment is how an op is computed: along which axes its factors are
// cut, and how its operands and results lie for that.
type assignment struct {
	rule     *ir.Factors // nil: everything is whole
	factors  [][]ir.AxisRef
	operands []layout.Layout
	results  []layout.Layout
	combined bool // what partial says has been done

	halos []windowHalo // by which windows get at what they need
	moved int          // the bytes of these

	left []ir.AxisRef // along which the results stay partial
	by   ir.Kind      // how these are to be combined
}

// partial are the axes along which each device has a part of every sum.
func (a *assignment) partial() []ir.AxisRef {
	var axes []ir.AxisRef
	for k, f := range a.factors {
		if a.rule.Types[k] == ir.Reduction && !a.combined {
			axes = append(axes, f...)
		}
	}
	return axes
}

// computeWeight is how many elements of its index space an op computes in the
// time that a byte takes between devices, about.
const computeWeight = 512

// choose returns the cheapest way to compute op that it finds, where its
// results are to lie as want says. It tries to compute as each of the results
// and operands lies, with axes that the others have in addition, with the axes
// of what must be whole in another dimension, and not cut at all; of the best it
// tries whether less cut is better, and, as long as something moves, whether an
// axis is better elsewhere, where another result or operand has it. What counts
// is first the bytes that move and then the elements that are computed.
//
// A sum is taken where its terms are: along a reduced factor that all operands
// are cut alike, each device adds what it has, even if it costs more than to
// gather them. It keeps the work divided as the user did. In a product another
// factor may be cut along the same axes instead where that divides the work as
// well and the memory better: the result is larger than the operands.
func (p *partitioner) choose(op *ir.Op, want []layout.Layout) *assignment {
	rule := partsRule(op)
	single := slices.ContainsFunc(op.Results, func(v *ir.Value) bool { _, ok := layout.OnOneDevice(p.m, v.Sharding); return ok })
	if rule == nil || single {
		a := new(assignment)
		for _, v := range op.Operands {
			a.operands = append(a.operands, p.wholeLayout(v))
		}
		for _, v := range op.Results {
			a.results = append(a.results, p.wholeLayout(v))
		}
		return a
	}
	wishes := p.wishes(op, want, rule)
	for _, w := range wishes {
		if moved := p.elsewhere(op, rule, w); moved != nil {
			wishes = append(wishes, moved)
		}
	}
	terms, stay := p.termWish(op, rule)
	p.freeUpdates(op, want, terms, stay)
	must := p.keepWish(op, rule, terms, stay)
	wishes = slices.Insert(wishes, 0, terms)
	if agreed := p.agreed(op, rule); agreed != nil {
		wishes = slices.Insert(wishes, 0, agreed)
		for k, axes := range agreed {
			stay[k] = stay[k] || len(axes) > 0
		}
	}
	s := &choice{p: p, op: op, want: want, rule: rule, cost: -1}
	for i := range wishes {
		s.try(p.merge(op, rule, wishes, i, stay))
	}
	s.try(p.merge(op, rule, wishes, len(wishes), stay))
	if op.Kind == ir.DotGeneral && slices.Contains(stay, true) && !must {
		s.limit = s.best
		for i := range wishes {
			s.try(p.merge(op, rule, wishes, i, make([]bool, len(stay))))
		}
		if s.best == s.limit {
			s.limit = nil
		}
	}
	for better := true; better; {
		better = false
		for k, axes := range s.best.factors {
			if len(axes) > 0 && !stay[k] {
				less := slices.Clone(s.best.factors)
				less[k] = nil
				better = s.try(less) || better
			}
		}
		better = s.exchange(wishes, stay) || better
	}
	return s.best
}

// A choice is the cheapest assignment found so far.
type choice struct {
	p    *partitioner
	op   *ir.Op
	want []layout.Layout
	rule *ir.Factors
	best *assignment
	cost int

	tried []*assignment // none is better than the best
	moved [][]movedTo   // by operand: what has been asked
	limit *assignment   // nil: none; others must compute no more, and take less memory
}

// try reports whether factors make a cheaper assignment than the best, which
// it then is.
func (s *choice) try(factors [][]ir.AxisRef) bool {
	for _, t := range s.tried {
		if layout.Layout(t.factors).Equal(factors) {
			return false
		}
	}
	a := s.p.assign(s.op, s.rule, factors)
	if s.limit != nil && !s.divides(a) {
		return false
	}
	s.tried = append(s.tried, a)
	c := s.costOf(a)
	if s.best != nil && c >= s.cost {
		return false
	}
	s.best, s.cost = a, c
	return true
}

// exchange reports whether it has found something cheaper than the best by
// cutting one factor as a wish says, and along its axes no other. Factors that
// stay keep theirs.
func (s *choice) exchange(wishes [][][]ir.AxisRef, stay []bool) bool {
	better := false
	for _, w := range wishes {
		for k, axes := range w {
			for n := range axes {
				if s.cost < computeWeight+s.p.work(s.best) { // nothing moves
					return better
				}
				if with := s.with(k, axes[:n+1], stay); with != nil {
					better = s.try(with) || better
				}
			}
		}
	}
	return better
}

// With are the factors of the best, but factor k cut along axes; nil if that
// changes nothing or cannot be.
func (s *choice) with(k int, axes []ir.AxisRef, stay []bool) [][]ir.AxisRef {
	now := s.best.factors[k]
	if stay[k] || len(now) >= len(axes) && slices.Equal(now[:len(axes)], axes) ||
		cutSize(s.op, s.rule, k)%s.p.mesh.RefsSize(axes) != 0 || !s.p.mayCutAlong(s.op, s.rule, k, axes) {
		return nil
	}
	out := slices.Clone(s.best.factors)
	for j, others := range out {
		left := slices.DeleteFunc(slices.Clone(others), func(r ir.AxisRef) bool { return layout.Layout{axes}.Uses(r) })
		if stay[j] && len(left) < len(others) {
			return nil
		}
		out[j] = left
	}
	out[k] = axes
	return out
}

// divides reports whether a divides the work as well as the limit does, and the
// memory better.
func (s *choice) divides(a *assignment) bool {
	p := s.p
	return p.work(a) <= p.work(s.limit) && p.room(s.op, a) < p.room(s.op, s.limit)
}

func (p *partitioner) wholeLayout(v *ir.Value) layout.Layout {
	if !v.Type.IsTensor() {
		return nil
	}
	return make(layout.Layout, v.Type.Rank())
}

// wishes are the axes of each factor as the results and then the operands
// have them.
func (p *partitioner) wishes(op *ir.Op, want []layout.Layout, rule *ir.Factors) [][][]ir.AxisRef {
	var out [][][]ir.AxisRef
	for i, at := range want {
		out = append(out, p.wish(at, rule.Results[i], rule))
	}
	for i, v := range op.Operands {
		if v.Type.IsTensor() && !p.free[v.ID] {
			out = append(out, p.wish(p.layoutOf(v), rule.Operands[i], rule))
		}
	}
	return out
}

// wish is the axes of each factor as a tensor has them that lies as at says.
func (p *partitioner) wish(at layout.Layout, dims [][]int, rule *ir.Factors) [][]ir.AxisRef {
	factors := make([]layout.FactorAxes, len(rule.Sizes))
	for d, ks := range dims {
		layout.ProjectDim(p.mesh, at[d], ks, rule.Sizes, factors)
	}
	axes := make([][]ir.AxisRef, len(factors))
	for k := range factors {
		axes[k] = factors[k].Axes
	}
	return axes
}

// freeUpdates lets a scatter have its updates elsewhere than where they are,
// where they and its result are cut along one axis: either the updates move or
// what each device made of its own for all others' parts of the result.
func (p *partitioner) freeUpdates(op *ir.Op, want []layout.Layout, terms [][]ir.AxisRef, stay []bool) {
	if op.Kind != ir.Scatter {
		return
	}
	for k, axes := range terms {
		if slices.ContainsFunc(axes, want[0].Uses) {
			stay[k] = false
		}
	}
}

// elsewhere is wish with the axes of factors along which op cannot be cut moved
// to others, those of the most parts first; nil where there are none, or no
// place for them.
func (p *partitioner) elsewhere(op *ir.Op, rule *ir.Factors, wish [][]ir.AxisRef) [][]ir.AxisRef {
	out, some := slices.Clone(wish), false
	for k, axes := range wish {
		if len(axes) == 0 || p.mayCutAlong(op, rule, k, axes) {
			continue
		}
		out[k] = nil
		for _, r := range axes {
			best, parts := -1, 0
			for j, t := range rule.Types {
				n := rule.Sizes[j] / p.mesh.RefsSize(out[j])
				if t == ir.PassThrough && n%p.mesh.RefSize(r) == 0 && n > parts && !layout.Layout(out).Uses(r) {
					best, parts = j, n
				}
			}
			if best >= 0 {
				out[best], some = append(slices.Clone(out[best]), r), true
			}
		}
	}
	if !some {
		return nil
	}
	return out
}

// termWish are the axes of the reduced factors that all operands are cut
// alike, and which factors these are.
func (p *partitioner) termWish(op *ir.Op, rule *ir.Factors) (axes [][]ir.AxisRef, stay []bool) {
	axes, stay = make([][]ir.AxisRef, len(rule.Sizes)), make([]bool, len(rule.Sizes))
	if own := ir.FactorsOf(op); own != nil { // not those that are reduced where that moves less
		for k, t := range own.Types {
			stay[k] = t == ir.Reduction
		}
	}
	for i, v := range op.Operands {
		if !v.Type.IsTensor() || p.free[v.ID] {
			continue
		}
		wish := p.wish(p.layoutOf(v), rule.Operands[i], rule)
		for _, k := range slices.Concat(rule.Operands[i]...) {
			switch {
			case axes[k] == nil:
				axes[k] = wish[k]
			case !slices.Equal(axes[k], wish[k]):
				stay[k] = false
			}
			stay[k] = stay[k] && len(wish[k]) > 0
		}
	}
	for k := range axes {
		if !stay[k] {
			axes[k] = nil
		}
	}
	return axes, stay
}

// agreed is how the contracted factors are cut of which all operands have the
// same parts; nil if there are none.
func (p *partitioner) agreed(op *ir.Op, rule *ir.Factors) [][]ir.AxisRef {
	if op.Kind != ir.DotGeneral {
		return nil
	}
	l := p.wish(p.layoutOf(op.Operands[0]), rule.Operands[0], rule)
	r := p.wish(p.layoutOf(op.Operands[1]), rule.Operands[1], rule)
	out := make([][]ir.AxisRef, len(rule.Sizes))
	some := false
	for k, t := range rule.Types {
		if t == ir.Reduction && len(l[k]) > 0 && slices.Equal(l[k], r[k]) {
			out[k], some = l[k], true
		}
	}
	if !some {
		return nil
	}
	return out
}

// merge fulfils wish first, and of the others what does not contradict it;
// none where there is no such wish. Before that it fulfils, of factors that
// stay, the first one.
func (p *partitioner) merge(op *ir.Op, rule *ir.Factors, wishes [][][]ir.AxisRef, first int, stay []bool) [][]ir.AxisRef {
	out := make([][]ir.AxisRef, len(rule.Sizes))
	add := func(wish [][]ir.AxisRef, which func(k int) bool) {
		for k, axes := range wish {
			n := len(out[k])
			if !which(k) || len(axes) <= n || !slices.Equal(axes[:n], out[k]) {
				continue
			}
			for _, r := range axes[n:] {
				more := append(slices.Clone(out[k]), r)
				if layout.Layout(out).Uses(r) || cutSize(op, rule, k)%p.mesh.RefsSize(more) != 0 || !p.mayCutAlong(op, rule, k, more) {
					break
				}
				out[k] = more
			}
		}
	}
	if len(wishes) > 0 {
		add(wishes[0], func(k int) bool { return stay[k] })
	}
	if first == len(wishes) {
		return out
	}
	all := func(int) bool { return true }
	add(wishes[first], all)
	for i, w := range wishes {
		if i != first {
			add(w, all)
		}
	}
	return out
}

// mayCut reports whether op can be computed on parts of a factor of type t.
func mayCut(op *ir.Op, t ir.FactorType) bool {
	return t == ir.PassThrough || t == ir.Reduction || t == ir.Permutation && (op.Kind == ir.Reverse || windowRowOf(op) != nil)
}

// mayCutAlong is mayCut for factor k, which is to be cut along axes.
func (p *partitioner) mayCutAlong(op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) bool {
	if may := partRowOf(op.Kind).may; may != nil {
		return may(p, op, rule, k, axes)
	}
	return mayCut(op, rule.Types[k]) && cutSize(op, rule, k) > 0
}

// cutSize is the size that the axes have to divide along which factor k of op
// is cut: of windows, how many there are.
func cutSize(op *ir.Op, rule *ir.Factors, k int) int {
	if rule.Types[k] == ir.Permutation {
		for d, ks := range rule.Results[0] {
			if slices.Contains(ks, k) {
				return op.Results[0].Type.Shape[d]
			}
		}
	}
	return rule.Sizes[k]
}

// assign is the assignment with the given factors, less what would cut some
// dimension in strides: a factor is cut only if what is major to it in every
// dimension is cut completely.
func (p *partitioner) assign(op *ir.Op, rule *ir.Factors, factors [][]ir.AxisRef) *assignment {
	notBoth(op, rule, factors)
	sides := slices.Concat(rule.Operands, rule.Results)
	for again := true; again; {
		again = false
		for _, dims := range sides {
			for _, ks := range dims {
				complete := true
				for _, k := range ks {
					if !complete && len(factors[k]) > 0 {
						factors[k], again = nil, true
					}
					complete = complete && p.mesh.RefsSize(factors[k]) == rule.Sizes[k]
				}
			}
		}
	}
	a := &assignment{rule: rule, factors: factors}
	for _, dims := range rule.Operands {
		a.operands = append(a.operands, p.joined(factors, dims))
	}
	for _, dims := range rule.Results {
		a.results = append(a.results, p.joined(factors, dims))
	}
	if place := partRowOf(op.Kind).place; place != nil {
		place(p, op, a)
	}
	return a
}

// joined is the layout of a tensor with the given dimensions.
func (p *partitioner) joined(factors [][]ir.AxisRef, dims [][]int) layout.Layout {
	at := make(layout.Layout, len(dims))
	for d, ks := range dims {
		for _, k := range ks {
			at[d] = p.mesh.JoinAxes(at[d], factors[k])
		}
	}
	return at
}

// A movedTo is how many bytes have to be moved for a value to have a layout.
type movedTo struct {
	at    layout.Layout
	bytes int
}

// operandMoved is p.moved for operand i, which is computed once for each layout:
// many assignments differ in what they do with one operand only, and nothing is
// made while they are compared.
func (s *choice) operandMoved(i int, at layout.Layout) int {
	if s.moved == nil {
		s.moved = make([][]movedTo, len(s.op.Operands))
	}
	for _, m := range s.moved[i] {
		if m.at.Equal(at) {
			return m.bytes
		}
	}
	n := s.p.moved(s.op.Operands[i], at)
	s.moved[i] = append(s.moved[i], movedTo{at, n})
	return n
}

// costOf is what computing the op as a says, and bringing its results to where they
// are wanted, costs in bytes moved and elements computed.
func (s *choice) costOf(a *assignment) int {
	p, op, want := s.p, s.op, s.want
	bytes := a.moved
	for i := range op.Operands {
		bytes += s.operandMoved(i, a.operands[i])
	}
	axes := a.partial()
	for i, v := range op.Results {
		if !v.Type.IsTensor() {
			continue
		}
		at := a.results[i]
		if _, rest := p.kept(v, axes, combinerFor(op)); len(rest) > 0 {
			var moved int
			at, moved = p.combineCost(v.Type, at, want[i], rest)
			bytes += moved
		}
		bytes += p.resharder.Plan(v.Type, at, want[i]).Bytes
	}
	return bytes*computeWeight + p.work(a)
}

// work is how many elements of the index space a device computes.
func (p *partitioner) work(a *assignment) int {
	n := 1
	for k, size := range a.rule.Sizes {
		n *= max(size/p.mesh.RefsSize(a.factors[k]), 1)
	}
	return n
}

// room is what the operands take, and the results before they are combined.
func (p *partitioner) room(op *ir.Op, a *assignment) int {
	bytes := 0
	for i, v := range op.Operands {
		if v.Type.IsTensor() && !p.free[v.ID] {
			bytes += layout.LayoutBytes(p.mesh, v.Type, a.operands[i])
		}
	}
	for i, v := range op.Results {
		if v.Type.IsTensor() {
			bytes += layout.LayoutBytes(p.mesh, v.Type, a.results[i])
		}
	}
	return bytes
}

// combinerFor is the op that combines what devices have of the sums of op.
func combinerFor(op *ir.Op) ir.Kind {
	if op.Kind == ir.Reduce || op.Kind == ir.Scatter {
		return ir.CombinerOf(op.Regions[0])
	}
	return ir.Add
}

// moved is how many bytes have to be moved for v to lie as at says.
func (p *partitioner) moved(v *ir.Value, at layout.Layout) int {
	if !v.Type.IsTensor() || p.free[v.ID] || p.takenAnyway(v, at) {
		return 0
	}
	from := p.layoutOf(v)
	if len(p.copies[v.ID]) > 0 {
		from = p.nearest(v, at).at
	}
	n := p.resharder.Plan(v.Type, from, at).Bytes
	if n > 0 && len(p.copies[v.ID]) > 0 {
		if a, fewer := p.again(v, at, n); a != nil {
			return fewer
		}
	}
	return n
}

// A scattering is what reduce_scatter can do for a tensor of partial sums: the
// axes that its dimensions get, and those over which all_reduce is left.
type scattering struct {
	dims []dimAxes
	rest []ir.AxisRef
}

// A dimAxes is axes that a dimension gets.
type dimAxes struct {
	dim  int
	axes []ir.AxisRef
}

// scatter finds which of the axes of partial sums, lying as at says, are
// wanted next in some dimension.
func (p *partitioner) scatter(at, want layout.Layout, axes []ir.AxisRef) scattering {
	has, to := (&layout.PlanSearch{Mesh: p.mesh}).Atoms(append(at.Clone(), axes), want)
	var s scattering
	s.rest = has[len(at)]
	for d := range at {
		n := len(has[d])
		if n >= len(to[d]) || layout.SamePrefix(has[d], to[d]) < n {
			continue
		}
		k := n
		for k < len(to[d]) && slices.Contains(s.rest, to[d][k]) {
			s.rest = slices.DeleteFunc(s.rest, func(r ir.AxisRef) bool { return r == to[d][k] })
			k++
		}
		if k > n {
			s.dims = append(s.dims, dimAxes{d, p.mesh.JoinAxes(nil, to[d][n:k])})
		}
	}
	return s
}

func (p *partitioner) combineCost(t *ir.Type, at, want layout.Layout, axes []ir.AxisRef) (layout.Layout, int) {
	s := p.scatter(at, want, axes)
	at = at.Clone()
	bytes := 0
	for _, d := range s.dims {
		n := layout.LayoutBytes(p.mesh, t, at)
		bytes += n - n/p.mesh.RefsSize(d.axes)
		at[d.dim] = p.mesh.JoinAxes(at[d.dim], d.axes)
	}
	if len(s.rest) > 0 {
		n := layout.LayoutBytes(p.mesh, t, at)
		bytes += 2 * (n - n/p.mesh.RefsSize(s.rest))
	}
	return at, bytes
}

// Combine adds up, or combines by k, what the devices along axes have of a
// tensor of type t that lies as at says: by reduce_scatter where want has axes
// next, by all_reduce along the others. It returns how the result lies.
func (p *partitioner) combine(k ir.Kind, v *ir.Value, t *ir.Type, at, want layout.Layout, axes []ir.AxisRef) (*ir.Value, layout.Layout) {
	if k == ir.Add && t.Elem == ir.I1 {
		k = ir.Or
	}
	name := v.Name
	s := p.scatter(at, want, axes)
	at = at.Clone()
	for _, d := range s.dims {
		at[d.dim] = p.mesh.JoinAxes(at[d.dim], d.axes)
		v = p.collective(ir.ReduceScatter, v, p.local(t, at), d.axes, p.build.Combiner(k, t.Elem),
			ir.AttrsOf(ir.NamedAttr{Name: "scatter_dimension", Attr: ir.I64Attr(d.dim)}))
		v.Name = name
	}
	if len(s.rest) > 0 {
		v = p.collective(ir.AllReduce, v, v.Type, p.sortedAxes(s.rest), p.build.Combiner(k, t.Elem), nil)
		v.Name = name
	}
	return v, at
}
