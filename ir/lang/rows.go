package lang

import (
	"slices"

	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// This file finds out what of a layer depends on how the batch is split into
// microbatches. A pipeline calls the layer on each microbatch by itself, so it
// computes what the layers in sequence compute if
//
//   - each row of the activation depends on the same row of the inputs alone;
//   - each auxiliary scalar is a mean over the rows of what each row gives, or a
//     linear function of such means: then the mean over microbatches, which is
//     what the model gets, is that over the batch.
//
// It follows the rows through the ops by their factors: what relates the
// dimensions of operands and results for shardings says as well where the rows
// of a result come from.

// A piece is the dimension of a value that holds an index of rows, or part of one:
// dimension dim is [.., size, minor], and size counts rows in steps of `of`.
type piece struct{ dim, size, minor, of int }

// A rowState is what is known of how a value depends on rows.
type rowState struct {
	pieces []piece // where its rows are; none if it has the same for all
	varies []bool  // along which dimensions its elements may differ

	stat     *ir.Op // the first op that combined several rows; nil if each row depends on itself
	bent     *ir.Op // the first by which it is no linear function of means over rows
	unscaled *ir.Op // a sum over rows that is not divided by their number
}

// free reports whether no row has to do with the value.
func (s *rowState) free() bool { return len(s.pieces) == 0 && s.stat == nil }

// A rowFlow follows the rows through a function.
type rowFlow struct {
	m      *ir.Module      // of the layers that are stacked; nil in a layer
	means  map[*ir.Op]bool // divisions by the number of elements that were added up
	states map[*ir.Value]*rowState
	counts map[*ir.Op]bool // what counts, the divisors of normalized, are no linear functions of means by
}

func (f *rowFlow) of(v *ir.Value) *rowState {
	if s := f.states[v]; s != nil {
		return s
	}
	return &rowState{varies: slices.Repeat([]bool{true}, rankOf(v))}
}

func rankOf(v *ir.Value) int {
	if !v.Type.IsTensor() {
		return 0
	}
	return v.Type.Rank()
}

// Block follows the rows through b and returns what it knows of its results.
func (f *rowFlow) block(b *ir.Block) []*rowState {
	for _, op := range b.Ops {
		switch {
		case op.Kind.Has(ir.Terminator):
			return f.all(op.Operands)
		case op.Kind == ir.PPScan:
			f.scan(op)
		case op.Kind == ir.PPPipeline || op.Kind == ir.PPStack:
			f.layers(op)
		case op.Kind == ir.PPCheckpoint:
			f.set(op, f.block(op.Regions[0]))
		case op.Kind == ir.Constant:
			l := op.Literal("value")
			f.set(op, []*rowState{{varies: slices.Repeat([]bool{l == nil || !l.IsSplat()}, rankOf(op.Results[0]))}})
		case op.Kind == ir.PPName && op.Attrs.Has(ir.KeyOverBatches): // a number of all batches of a step
			count := &rowState{varies: slices.Repeat([]bool{true}, rankOf(op.Results[0])), bent: f.of(op.Operands[0]).bent}
			if count.bent != nil {
				f.counts[count.bent] = true
			}
			f.set(op, []*rowState{count})
		case op.Kind == ir.Iota:
			s := &rowState{varies: make([]bool, rankOf(op.Results[0]))}
			s.varies[op.Int("iota_dimension")] = true
			f.set(op, []*rowState{s})
		default:
			f.op(op)
		}
	}
	return nil
}

func (f *rowFlow) all(vs []*ir.Value) []*rowState {
	out := make([]*rowState, len(vs))
	for i, v := range vs {
		out[i] = f.of(v)
	}
	return out
}

func (f *rowFlow) set(op *ir.Op, states []*rowState) {
	for i, v := range op.Results {
		f.states[v] = states[i]
	}
}

// scan is a loop over blocks, which are the first dimension of all operands and
// results.
func (f *rowFlow) scan(op *ir.Op) {
	args := op.Regions[0].Args[1:] // after the number of the block
	var first []piece              // rows along which the blocks are
	for i, x := range op.Operands {
		s := *f.of(x)
		s.varies = s.varies[1:]
		s.pieces = nil
		for _, p := range f.of(x).pieces {
			if p.dim == 0 {
				first = append(first, p)
				continue
			}
			p.dim--
			s.pieces = append(s.pieces, p)
		}
		f.states[args[i]] = &s
	}
	slices.SortFunc(first, func(a, b piece) int { return a.of - b.of })
	first = slices.Compact(first)
	var out []*rowState
	for _, inside := range f.block(op.Regions[0]) {
		s := *inside
		s.varies = append([]bool{true}, s.varies...)
		s.pieces = slices.Clone(first)
		for _, p := range inside.pieces {
			p.dim++
			s.pieces = append(s.pieces, p)
		}
		out = append(out, &s)
	}
	f.set(op, out)
}

// layers follows the rows through the first two layers of a stack. The others
// are like the second, which gets what a layer returns.
func (f *rowFlow) layers(op *ir.Op) {
	n := op.Activations()
	f.layer(op, f.all(op.Operands[:n]))
	if xs := f.all(op.Results[:n]); slices.ContainsFunc(xs, func(s *rowState) bool { return s.stat != nil }) {
		f.layer(op, xs)
	}
}

// layer follows the rows through one layer of a stack, called on the activations xs.
func (f *rowFlow) layer(op *ir.Op, xs []*rowState) {
	layer := f.m.Func(op.Sym("layer"))
	for i, v := range layer.Params() {
		x := f.of(op.Operands[i])
		if i < len(xs) {
			x = xs[i]
		}
		s := &rowState{varies: slices.Repeat([]bool{true}, rankOf(v)), stat: x.stat, bent: x.bent, unscaled: x.unscaled}
		for _, p := range x.pieces {
			if i < len(xs)+op.Int("sides") && p.of == 1 && p.minor == 1 && v.Type.Shape[p.dim] > 1 { // the rows of a microbatch
				s.pieces = append(s.pieces, piece{p.dim, v.Type.Shape[p.dim], 1, 1})
			}
		}
		f.states[v] = s
	}
	out := f.block(layer.Body)
	for i, s := range out {
		t := *s
		t.varies, t.pieces = slices.Repeat([]bool{true}, rankOf(op.Results[i])), nil
		if i < len(xs) {
			t.pieces = f.of(op.Operands[i]).pieces
		}
		out[i] = &t
	}
	f.set(op, out)
}

// op follows the rows through an op by its factors.
func (f *rowFlow) op(op *ir.Op) {
	in := f.all(op.Operands)
	u := &rowUse{op: op, in: in, rule: ir.FactorsOf(op), microbatch: f.m == nil}
	for range op.Results {
		u.out = append(u.out, new(rowState))
	}
	for i, s := range in {
		for _, p := range s.pieces {
			u.follow(i, p)
		}
	}
	for r, s := range u.out {
		s.varies = u.varies(r)
		u.combine(s)
		if f.means[op] && s.unscaled != nil && s.unscaled == op.Operands[0].Def {
			s.unscaled = nil
		}
	}
	f.set(op, u.out)
}

// A rowUse is one op that rows go through.
type rowUse struct {
	op         *ir.Op
	in         []*rowState
	out        []*rowState
	rule       *ir.Factors
	microbatch bool // the batch is one of several microbatches: the number of a row in it means nothing

	mixed   bool // rows of a result depend on other rows, or on their position in the batch
	reduced bool // rows are combined to fewer
}

// follow finds the rows of operand i that piece p counts in the results.
func (u *rowUse) follow(i int, p piece) {
	if p.size == 1 {
		return
	}
	if u.rule == nil {
		u.mixed = true
		return
	}
	done := 1
	stride := 1
	factors := u.rule.Operands[i][p.dim]
	for _, k := range slices.Backward(factors) {
		size := u.rule.Sizes[k]
		lo, hi := max(stride, p.minor), min(stride*size, p.minor*p.size)
		if lo < hi {
			if lo%stride != 0 || hi%lo != 0 || lo%p.minor != 0 {
				break
			}
			done *= hi / lo
			u.factor(i, k, piece{size: hi / lo, minor: lo / stride, of: p.of * (lo / p.minor)})
		}
		stride *= size
	}
	if done != p.size {
		u.mixed = true
	}
}

// factor finds factor k, which has rows in operand i, in the results; p is
// where they stand in the factor.
func (u *rowUse) factor(i, k int, p piece) {
	for j, s := range u.in {
		for d, factors := range u.rule.Operands[j] {
			if u.microbatch && j != i && slices.Contains(factors, k) && len(s.pieces) == 0 && s.varies[d] {
				u.mixed = true // the row depends on its number in the microbatch
			}
		}
	}
	found := false
	for r, dims := range u.rule.Results {
		for d, factors := range dims {
			stride := 1
			for _, other := range slices.Backward(factors) {
				if other == k {
					found = true
					u.place(r, piece{dim: d, size: p.size, minor: p.minor * stride, of: p.of})
				}
				stride *= u.rule.Sizes[other]
			}
		}
	}
	switch t := u.rule.Types[k]; {
	case t == ir.Reduction:
		u.reduced = true
	case t != ir.PassThrough || !found:
		u.mixed = true
	}
}

// place notes that result r has rows as p says. An op that has the same rows
// in two places combines each with every other.
func (u *rowUse) place(r int, p piece) {
	s := u.out[r]
	for _, q := range s.pieces {
		if p == q {
			return
		}
		if p.of < q.of*q.size && q.of < p.of*p.size {
			u.mixed = true
			return
		}
	}
	s.pieces = append(s.pieces, p)
}

// varies is along which dimensions the elements of result r may differ.
func (u *rowUse) varies(r int) []bool {
	out := make([]bool, rankOf(u.op.Results[r]))
	for d := range out {
		out[d] = u.rule == nil || len(u.rule.Results[r][d]) == 0 && u.op.Kind != ir.BroadcastInDim
		if u.rule == nil {
			continue
		}
		for i, dims := range u.rule.Operands {
			for e, factors := range dims {
				shared := slices.ContainsFunc(factors, func(k int) bool { return slices.Contains(u.rule.Results[r][d], k) })
				out[d] = out[d] || shared && u.in[i].varies[e]
			}
		}
	}
	return out
}

// combine finds out how a result depends on several rows.
func (u *rowUse) combine(s *rowState) {
	for i, x := range u.in {
		s.stat, s.bent, s.unscaled = either(s.stat, x.stat), either(s.bent, x.bent), either(s.unscaled, x.unscaled)
		if x.stat != nil && !u.linear(i) {
			s.bent = either(s.bent, u.op)
		}
	}
	if u.op.Kind == ir.Divide && u.in[1].stat != nil { // a quotient says more than how its divisor is made
		s.bent = u.op
	}
	switch {
	case u.mixed:
		s.stat, s.bent = either(s.stat, u.op), either(s.bent, u.op)
	case u.reduced && !adds(u.op):
		s.stat, s.bent = either(s.stat, u.op), either(s.bent, u.op)
	case u.reduced:
		s.stat, s.unscaled = either(s.stat, u.op), either(s.unscaled, u.op)
	}
}

func either(a, b *ir.Op) *ir.Op {
	if a != nil {
		return a
	}
	return b
}

// linear reports whether the op is a linear function of operand i, the factors
// of which no row has to do with.
func (u *rowUse) linear(i int) bool {
	othersFree := func() bool {
		for j, s := range u.in {
			if j != i && !s.free() {
				return false
			}
		}
		return true
	}
	switch u.op.Kind {
	case ir.Add, ir.Subtract, ir.Negate, ir.Convert, ir.ReducePrecision, ir.Reshape, ir.Transpose, ir.BroadcastInDim, ir.Slice, ir.Concatenate, ir.Pad,
		ir.PPName, ir.ShardingConstraint, ir.OptimizationBarrier:
		return true
	case ir.Multiply, ir.DotGeneral:
		return othersFree()
	case ir.Divide, ir.Gather:
		return i == 0 && othersFree()
	case ir.Select:
		return i > 0 && u.in[0].free()
	case ir.Reduce, ir.ReduceWindow:
		return adds(u.op)
	}
	return false
}

// adds reports whether the op combines elements by adding them up.
func adds(op *ir.Op) bool {
	switch op.Kind {
	case ir.DotGeneral:
		return true
	case ir.Reduce, ir.ReduceWindow:
		ops := op.Regions[0].Ops
		return len(op.Results) == 1 && len(ops) == 2 && ops[0].Kind == ir.Add
	}
	return false
}

// checkRows warns of what in layer l, which a pipeline calls on each of so many
// microbatches, depends on their number.
func (p *builder) checkRows(l *layerFunc, microbatches int) {
	if l.checked || microbatches == 1 {
		return
	}
	l.checked = true
	if l.batch.Size == 1 { // of one row nothing shows
		if l = p.trialLayer(l, 2); l == nil {
			return
		}
	}
	f := &rowFlow{means: p.Means, states: make(map[*ir.Value]*rowState)}
	for i, v := range l.fn.Params() {
		var axes []value.Axis
		switch n := len(l.sides); {
		case i == 0:
			axes = l.x
		case i <= n:
			axes = l.sides[i-1].axes
		case i == n+1 && l.rows == rowNumbers:
			axes = []value.Axis{l.batch}
		}
		for d, a := range axes {
			if a.Name == l.batch.Name {
				f.states[v] = &rowState{pieces: []piece{{d, a.Size, 1, 1}}, varies: slices.Repeat([]bool{true}, len(axes))}
			}
		}
	}
	for i, s := range f.block(l.fn.Body) {
		switch {
		case i < l.numActs() && s.stat != nil:
			p.warnRows(l.decl.Span, s.stat, config.MicrobatchStatistics, "reduce over other axes, or say microbatches = 1", syntax.WarnStatistics, l.batch.Name, microbatches, l.decl.Name)
		case i >= l.numActs() && s.bent != nil:
			p.warnRows(l.decl.Span, s.bent, config.AuxiliaryMean, "return mean(…) of what each row gives", syntax.WarnAuxiliary, i-l.numActs()+1, l.decl.Name, l.batch.Name, microbatches)
		case i >= l.numActs() && s.unscaled != nil:
			p.warnRows(l.decl.Span, s.unscaled, config.AuxiliaryMean, "mean(…) does not depend on the size of a microbatch", syntax.WarnAuxiliarySum, i-l.numActs()+1, l.decl.Name, l.batch.Name, microbatches)
		}
	}
}

// checkAccumulated warns of results that depend on how examples are put in the
// batches of a step: those that are no linear function of means over the
// examples. [program.checkMeanOfMeans] warns of quotients that the source
// writes as such.
func (p *builder) checkAccumulated(model *modelState, d *syntax.FuncDecl) {
	n, _ := p.Num("train", "gradient_accumulation")
	m, batch := model.module, model.batch
	if n < 2 || !p.Trains() || batch == "" {
		return
	}
	said := make(map[*ir.Op]bool)
	for _, q := range model.ratios {
		said[q.value.Def] = true
	}
	f := &rowFlow{m: m, means: p.Means, states: make(map[*ir.Value]*rowState), counts: make(map[*ir.Op]bool)}
	for _, v := range m.Main().Params() {
		axes, _ := v.Attrs.Get(ir.KeyLogical).(ir.Array)
		if k := slices.Index(axes, ir.Attr(ir.Str(batch))); k >= 0 && v.Attrs.Str(ir.KeyKind) == "input" {
			f.states[v] = &rowState{pieces: []piece{{k, v.Type.Shape[k], 1, 1}}, varies: slices.Repeat([]bool{true}, len(axes))}
		}
	}
	for i, s := range f.block(m.Main().Body) {
		r := &m.Main().Results[i]
		if s.bent == nil || said[s.bent] || r.Type.Rank() > 0 || !r.Type.Elem.IsFloat() {
			continue
		}
		said[s.bent] = true
		cure := "put all examples in one batch, or return means of what each gives"
		if f.counts[s.bent] {
			cure = "normalized(…, by: sum(…)) as it is: where all counts are 0, the result is 0"
		}
		p.warnRows(d.Span, s.bent, config.AccumulatedStatistics, cure, syntax.WarnAccumulated, r.Attrs.Str(ir.KeyName), batch, n)
	}
}

// trialLayer builds a layer like l for a batch of n rows, nil where that is not
// possible.
func (p *builder) trialLayer(l *layerFunc, n int) *layerFunc {
	list, count, warns := p.List, p.Count, p.Warns
	var trial *layerFunc
	if l.group != nil {
		trial = p.buildGroup(l.group, n, l.rows)
	} else {
		trial = p.buildLayer(l.decl, n, nil, l.known, l.rows)
	}
	failed := p.Count > count
	p.List, p.Count, p.Warns = list, count, warns
	if failed {
		return nil
	}
	return trial
}

// warnRows warns of an op, at the place that the user wrote it. The message
// begins with what is written there.
func (p *builder) warnRows(decl syntax.Span, op *ir.Op, name, hint string, text syntax.Message, args ...any) {
	at, ok := p.Places[op.Origin]
	if !ok {
		at = decl
	}
	p.Warn(at, name, hint, text, append([]any{at.Text("this")}, args...)...)
}
