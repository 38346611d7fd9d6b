package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// An assignment is how an op is computed: along which axes its factors are
// sharded, and the layouts of its operands and results for that.
type assignment struct {
	rule     *ir.Factors // nil: everything is replicated
	factors  [][]ir.AxisRef
	operands []layout.Layout
	results  []layout.Layout
	reduced  bool // the op reduces its results itself

	halos []windowHalo // by which windows get the elements that they need
	bytes int          // that move for these
}

// partial are the axes along which each device has partial results.
func (a *assignment) partial() []ir.AxisRef {
	var axes []ir.AxisRef
	for k, f := range a.factors {
		if a.rule.Types[k] == ir.Reduction && !a.reduced {
			axes = append(axes, f...)
		}
	}
	return axes
}

// computeWeight is how many elements of its index space an op computes in the
// time that a byte takes between devices, about.
const computeWeight = 512

// choose returns the cheapest way to compute op that it finds, where its
// results are wanted in the layouts want. The candidates are the axes that each
// result and operand has for the factors, completed by those of the others; the
// same with axes moved to other factors, where the op cannot be computed
// sharded along theirs; and none at all. Of the best it tries whether fewer axes
// are better, and, as long as something moves, whether axes are better on
// another factor, where another result or operand has them. What counts is first
// the bytes that move and then the elements that are computed.
//
// A contraction is computed where its operands are: along a reduced factor that
// all operands are sharded along alike, each device reduces its shard, even
// where fewer bytes would gather the operands. That keeps the work divided as
// the user did. In a dot another factor may get the axes instead where that
// divides the work as well and takes less memory: the result is larger than the
// operands.
func (p *chooser) choose(op *ir.Op, want []layout.Layout) *assignment {
	rule := p.shardRule(op)
	single := slices.ContainsFunc(op.Results, func(v *ir.Value) bool { _, ok := p.onOneDevice(v); return ok })
	if rule == nil || single {
		return p.replicatedAssignment(op)
	}
	return p.remember(op, want, func() *assignment { return p.cheapest(op, want, rule) })
}

// cheapest searches for what [chooser.choose] returns.
func (p *chooser) cheapest(op *ir.Op, want []layout.Layout, rule *ir.Factors) *assignment {
	has := p.projected(op, rule)
	candidates := p.candidates(want, rule, has)
	for _, c := range candidates {
		if moved := p.relocated(op, rule, c); moved != nil {
			candidates = append(candidates, moved)
		}
	}
	contracted, fixed := p.contracted(op, rule, has)
	unfixUpdates(op, want, contracted, fixed)
	must := p.combinedFactors(op, rule, contracted, fixed)
	candidates = slices.Insert(candidates, 0, contracted)
	if agreed := p.agreed(op, rule); agreed != nil {
		candidates = slices.Insert(candidates, 0, agreed)
		for k, axes := range agreed {
			fixed[k] = fixed[k] || len(axes) > 0
		}
	}
	s := &search{p: p, op: op, want: want, rule: rule, cost: -1}
	for i := range len(candidates) + 1 {
		if i == len(candidates) || !containsAxes(candidates[:i], candidates[i]) {
			s.try(p.complete(op, rule, candidates, i, fixed))
		}
	}
	if op.Kind == ir.DotGeneral && slices.Contains(fixed, true) && !must {
		s.limit = s.best
		for i := range candidates {
			s.try(p.complete(op, rule, candidates, i, make([]bool, len(fixed))))
		}
		if s.best == s.limit {
			s.limit = nil
		}
	}
	s.improve(candidates, fixed)
	return s.best
}

// replicatedAssignment computes op on replicated operands.
func (p *program) replicatedAssignment(op *ir.Op) *assignment {
	a := new(assignment)
	for _, v := range op.Operands {
		a.operands = append(a.operands, p.replicated(v))
	}
	for _, v := range op.Results {
		a.results = append(a.results, p.replicated(v))
	}
	return a
}

// A search has the cheapest assignment found so far.
type search struct {
	p    *chooser
	op   *ir.Op
	want []layout.Layout
	rule *ir.Factors
	best *assignment
	cost int

	tried []*assignment // none is better than the best
	bytes [][]bytesTo   // by operand: what has been asked
	limit *assignment   // nil: none; others must compute no more, and take less memory
}

// try reports whether factors make a cheaper assignment than the best, which
// it then is. An assignment has no more axes than its factors, so that it computes
// no less; where that is too much already, it is not asked what moves.
func (s *search) try(factors [][]ir.AxisRef) bool {
	if s.best != nil && s.p.work(s.rule, factors) >= s.cost {
		return false
	}
	if slices.ContainsFunc(s.tried, func(t *assignment) bool { return layout.Layout(t.factors).Equal(factors) }) {
		return false
	}
	a := s.p.assign(s.op, s.rule, factors)
	if s.limit != nil && !s.divides(a) {
		return false
	}
	s.tried = append(s.tried, a)
	c, ok := s.costOf(a)
	if ok {
		s.best, s.cost = a, c
	}
	return ok
}

// improve changes one factor of the best at a time, as long as that makes it
// cheaper. Factors that are fixed keep their axes.
func (s *search) improve(candidates [][][]ir.AxisRef, fixed []bool) {
	for better := true; better; {
		better = false
		for k, axes := range s.best.factors {
			if len(axes) > 0 && !fixed[k] {
				fewer := slices.Clone(s.best.factors)
				fewer[k] = nil
				better = s.try(fewer) || better
			}
		}
		better = s.exchange(candidates, fixed) || better
	}
}

// exchange reports whether it has found something cheaper than the best by
// giving a factor the axes that it has in a candidate, and those to no other.
func (s *search) exchange(candidates [][][]ir.AxisRef, fixed []bool) bool {
	better := false
	for _, c := range candidates {
		for k, axes := range c {
			for n := range axes {
				if s.cost < computeWeight+s.p.work(s.rule, s.best.factors) { // nothing moves
					return better
				}
				if with := s.with(k, axes[:n+1], fixed); with != nil {
					better = s.try(with) || better
				}
			}
		}
	}
	return better
}

// with are the factors of the best, but factor k sharded along axes; nil if that
// changes nothing or cannot be.
func (s *search) with(k int, axes []ir.AxisRef, fixed []bool) [][]ir.AxisRef {
	now := s.best.factors[k]
	if fixed[k] || len(now) >= len(axes) && slices.Equal(now[:len(axes)], axes) ||
		shardedSize(s.op, s.rule, k)%s.p.mesh.RefsSize(axes) != 0 || !s.p.mayShard(s.op, s.rule, k, axes) {
		return nil
	}
	out := slices.Clone(s.best.factors)
	for j, others := range out {
		left := slices.DeleteFunc(slices.Clone(others), func(r ir.AxisRef) bool { return layout.Layout{axes}.Uses(r) })
		if fixed[j] && len(left) < len(others) {
			return nil
		}
		out[j] = left
	}
	out[k] = axes
	return out
}

// divides reports whether a device computes no more for a than for the limit,
// and takes less memory.
func (s *search) divides(a *assignment) bool {
	p := s.p
	return p.work(s.rule, a.factors) <= p.work(s.rule, s.limit.factors) && p.memory(s.op, a) < p.memory(s.op, s.limit)
}

// projected are the axes that each operand of op has for each factor of a rule; nil
// where they count for nothing.
func (p *given) projected(op *ir.Op, rule *ir.Factors) [][][]ir.AxisRef {
	has := make([][][]ir.AxisRef, len(op.Operands))
	for i, v := range op.Operands {
		if v.Type.IsTensor() && !p.free[v.ID] {
			has[i] = p.project(p.layoutOf(v), rule.Operands[i], rule)
		}
	}
	return has
}

// candidates are the axes that the results, and then the operands, have for
// each factor.
func (p *chooser) candidates(want []layout.Layout, rule *ir.Factors, has [][][]ir.AxisRef) [][][]ir.AxisRef {
	out := make([][][]ir.AxisRef, 0, 2*(len(want)+len(has)))
	for i, at := range want {
		out = append(out, p.project(at, rule.Results[i], rule))
	}
	for _, axes := range has {
		if axes != nil {
			out = append(out, axes)
		}
	}
	return out
}

// containsAxes reports whether candidates have one with the given axes.
func containsAxes(candidates [][][]ir.AxisRef, axes [][]ir.AxisRef) bool {
	return slices.ContainsFunc(candidates, func(c [][]ir.AxisRef) bool { return layout.Layout(c).Equal(axes) })
}

// project is the axes that a tensor of the given layout and dimensions has for
// each factor.
func (p *program) project(at layout.Layout, dims [][]int, rule *ir.Factors) [][]ir.AxisRef {
	var few [16]layout.FactorAxes
	factors := append(few[:0], make([]layout.FactorAxes, len(rule.Sizes))...) // on the stack where they are few
	for d, ks := range dims {
		layout.ProjectDim(p.mesh, at[d], ks, rule.Sizes, factors)
	}
	axes := make([][]ir.AxisRef, len(factors))
	for k := range factors {
		axes[k] = factors[k].Axes
	}
	return axes
}

// unfixUpdates lets a scatter get its updates in another layout than theirs
// where they and its result are sharded along one axis: then either the updates
// move, or all that each device has scattered into the shards of others.
func unfixUpdates(op *ir.Op, want []layout.Layout, contracted [][]ir.AxisRef, fixed []bool) {
	if op.Kind != ir.Scatter {
		return
	}
	for k, axes := range contracted {
		if slices.ContainsFunc(axes, want[0].Uses) {
			fixed[k] = false
		}
	}
}

// relocated is a candidate with the axes of factors that op cannot be sharded
// along moved to others, those with the largest shards first; nil where there
// are none, or no place for them.
func (p *chooser) relocated(op *ir.Op, rule *ir.Factors, candidate [][]ir.AxisRef) [][]ir.AxisRef {
	var out [][]ir.AxisRef
	some := false
	for k, axes := range candidate {
		if len(axes) == 0 || p.mayShard(op, rule, k, axes) {
			continue
		}
		if out == nil {
			out = slices.Clone(candidate)
		}
		out[k] = nil
		for _, r := range axes {
			best, largest := -1, 0
			for j, t := range rule.Types {
				n := rule.Sizes[j] / p.mesh.RefsSize(out[j])
				if t == ir.PassThrough && n%p.mesh.RefSize(r) == 0 && n > largest && !layout.Layout(out).Uses(r) {
					best, largest = j, n
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

// contracted are the axes of the reduced factors that all operands are sharded
// along alike, and which factors these are: they are fixed.
func (p *given) contracted(op *ir.Op, rule *ir.Factors, has [][][]ir.AxisRef) (axes [][]ir.AxisRef, fixed []bool) {
	axes, fixed = make([][]ir.AxisRef, len(rule.Sizes)), make([]bool, len(rule.Sizes))
	if own := p.factorsOf(op); own != nil { // not those that are reduced where that moves fewer bytes
		for k, t := range own.Types {
			fixed[k] = t == ir.Reduction
		}
	}
	for i, has := range has {
		if has == nil {
			continue
		}
		for _, ks := range rule.Operands[i] {
			for _, k := range ks {
				switch {
				case axes[k] == nil:
					axes[k] = has[k]
				case !slices.Equal(axes[k], has[k]):
					fixed[k] = false
				}
				fixed[k] = fixed[k] && len(has[k]) > 0
			}
		}
	}
	for k := range axes {
		if !fixed[k] {
			axes[k] = nil
		}
	}
	return axes, fixed
}

// agreed are the axes of the contracted factors of a dot that both operands are
// sharded along alike; nil if there are none.
func (p *chooser) agreed(op *ir.Op, rule *ir.Factors) [][]ir.AxisRef {
	if op.Kind != ir.DotGeneral {
		return nil
	}
	l := p.project(p.layoutOf(op.Operands[0]), rule.Operands[0], rule)
	r := p.project(p.layoutOf(op.Operands[1]), rule.Operands[1], rule)
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

// complete is the candidate of the given number and, of the others, what does
// not contradict it; no axes where there is no such candidate. Before that the
// factors that are fixed get the axes of the first candidate.
func (p *chooser) complete(op *ir.Op, rule *ir.Factors, candidates [][][]ir.AxisRef, number int, fixed []bool) [][]ir.AxisRef {
	out := make([][]ir.AxisRef, len(rule.Sizes))
	add := func(k int, axes []ir.AxisRef) {
		n := len(out[k])
		if len(axes) <= n || !slices.Equal(axes[:n], out[k]) {
			return
		}
		for _, r := range axes[n:] {
			more := append(slices.Clone(out[k]), r)
			if layout.Layout(out).Uses(r) || shardedSize(op, rule, k)%p.mesh.RefsSize(more) != 0 || !p.mayShard(op, rule, k, more) {
				break
			}
			out[k] = more
		}
	}
	if len(candidates) > 0 {
		for k, axes := range candidates[0] {
			if fixed[k] {
				add(k, axes)
			}
		}
	}
	if number == len(candidates) {
		return out
	}
	for k, axes := range candidates[number] {
		add(k, axes)
	}
	for i, c := range candidates {
		if i != number {
			for k, axes := range c {
				add(k, axes)
			}
		}
	}
	return out
}

// shardable reports whether op can be computed sharded along a factor of type t.
func shardable(op *ir.Op, t ir.FactorType) bool {
	return t == ir.PassThrough || t == ir.Reduction || t == ir.Permutation && (op.Kind == ir.Reverse || windowRowOf(op) != nil)
}

// mayShard reports whether op can be computed with factor k sharded along axes.
func (p *program) mayShard(op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) bool {
	if may := shardRowOf(op.Kind).may; may != nil {
		return may(p, op, rule, k, axes)
	}
	return shardable(op, rule.Types[k]) && shardedSize(op, rule, k) > 0
}

// shardedSize is the size that the axes of factor k have to divide: of windows,
// how many there are.
func shardedSize(op *ir.Op, rule *ir.Factors, k int) int {
	if rule.Types[k] == ir.Permutation {
		for d, ks := range rule.Results[0] {
			if slices.Contains(ks, k) {
				return op.Results[0].Type.Shape[d]
			}
		}
	}
	return rule.Sizes[k]
}

// assign is the assignment with the given factors, less what would make shards
// of elements that are not neighbours: a factor is sharded only if those major to
// it in a dimension have one element per device.
func (p *chooser) assign(op *ir.Op, rule *ir.Factors, factors [][]ir.AxisRef) *assignment {
	windowsOrKernel(op, rule, factors)
	for p.unshardStrided(rule, factors, rule.Operands) || p.unshardStrided(rule, factors, rule.Results) {
	}
	n := len(rule.Operands)
	layouts := make([]layout.Layout, 0, n+len(rule.Results))
	for _, dims := range rule.Operands {
		layouts = append(layouts, p.layoutBy(factors, dims))
	}
	for _, dims := range rule.Results {
		layouts = append(layouts, p.layoutBy(factors, dims))
	}
	a := &assignment{rule: rule, factors: factors, operands: layouts[:n:n], results: layouts[n:]}
	if place := shardRowOf(op.Kind).place; place != nil {
		place(p, op, a)
	}
	return a
}

// unshardStrided takes the axes from factors that are minor, in a dimension of one
// of the tensors, to some that are not sharded completely; it reports whether there
// were any.
func (p *program) unshardStrided(rule *ir.Factors, factors [][]ir.AxisRef, tensors [][][]int) bool {
	some := false
	for _, dims := range tensors {
		for _, ks := range dims {
			if len(ks) == 1 {
				continue
			}
			complete := true
			for _, k := range ks {
				if !complete && len(factors[k]) > 0 {
					factors[k], some = nil, true
				}
				complete = complete && p.mesh.RefsSize(factors[k]) == rule.Sizes[k]
			}
		}
	}
	return some
}

// layoutBy is the layout of a tensor with the given dimensions, whose factors are
// sharded along the given axes.
func (p *program) layoutBy(factors [][]ir.AxisRef, dims [][]int) layout.Layout {
	at := make(layout.Layout, len(dims))
	for d, ks := range dims {
		if len(ks) == 1 && len(factors[ks[0]]) <= 1 { // nothing to merge
			at[d] = slices.Clip(factors[ks[0]])
			continue
		}
		for _, k := range ks {
			at[d] = p.mesh.JoinAxes(at[d], factors[k])
		}
	}
	return at
}

// A bytesTo is how many bytes a device receives for a value to get a layout.
type bytesTo struct {
	at    layout.Layout
	bytes int
}

// operandBytes is bytesTo for operand i, which is found once for each layout: many
// assignments differ in one operand only, and nothing is emitted while they are
// compared.
func (s *search) operandBytes(i int, at layout.Layout) int {
	if s.bytes == nil {
		s.bytes = make([][]bytesTo, len(s.op.Operands))
	}
	for _, m := range s.bytes[i] {
		if m.at.Equal(at) {
			return m.bytes
		}
	}
	n := s.p.bytesTo(s.op.Operands[i], at)
	s.bytes[i] = append(s.bytes[i], bytesTo{at, n})
	return n
}

// costOf is what computing the op as a says, and giving its results the layouts
// that are wanted, costs in bytes moved and elements computed; false if that is no
// less than the best costs.
func (s *search) costOf(a *assignment) (int, bool) {
	p, op, want := s.p, s.op, s.want
	cost := a.bytes*computeWeight + p.work(a.rule, a.factors)
	add := func(bytes int) bool {
		cost += bytes * computeWeight
		return s.best == nil || cost < s.cost
	}
	axes := a.partial()
	for i, v := range op.Results {
		if !v.Type.IsTensor() {
			continue
		}
		at, moved := a.results[i], 0
		if _, rest := p.kept(v, axes, combinerFor(op)); len(rest) > 0 {
			at, moved = p.combineCost(v.Type, at, want[i], rest)
		}
		if !add(moved + p.resharder.Plan(v.Type, at, want[i]).Bytes) {
			return 0, false
		}
	}
	for i := range op.Operands {
		if !add(s.operandBytes(i, a.operands[i])) {
			return 0, false
		}
	}
	return cost, add(0)
}

// work is how many elements of the index space of an op by rule a device computes,
// where the factors are sharded along the given axes.
func (p *program) work(rule *ir.Factors, factors [][]ir.AxisRef) int {
	n := 1
	for k, size := range rule.Sizes {
		n *= max(size/p.mesh.RefsSize(factors[k]), 1)
	}
	return n
}

// memory is the bytes of the operands, and of the results before they are
// reduced.
func (p *chooser) memory(op *ir.Op, a *assignment) int {
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

// combinesByRegion reports whether what devices have of the result of op is
// combined as the region of op says; that of any other op is added.
func combinesByRegion(op *ir.Op) bool { return op.Kind == ir.Reduce || op.Kind == ir.Scatter }

// combinerFor is the op that combines the partial results of op.
func combinerFor(op *ir.Op) ir.Kind {
	if combinesByRegion(op) {
		return ir.CombinerOf(op.Regions[0])
	}
	return ir.Add
}

// bytesTo is how many bytes a device receives for v to get a layout: none where
// another op gets it in that layout anyway.
func (p *chooser) bytesTo(v *ir.Value, at layout.Layout) int {
	if !v.Type.IsTensor() || p.free[v.ID] || p.gotAnyway(v, at) {
		return 0
	}
	from := p.layoutOf(v)
	copies := p.atHand(v)
	if len(copies) > 0 {
		from = p.nearest(v, at).at
	}
	n := p.resharder.Plan(v.Type, from, at).Bytes
	if n > 0 && len(copies) > 0 {
		if a, fewer := p.recomputation(v, at, n); a != nil {
			return fewer
		}
	}
	return n
}
