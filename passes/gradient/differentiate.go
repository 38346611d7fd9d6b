package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// Differentiate makes main return, after its results, the gradient of its first
// result with respect to its parameters, and, where the module's attribute
// pp.gradient says "all" and not "params", to its floating-point inputs. Without
// the attribute it changes nothing. A parameter with the attribute pp.frozen has no
// gradient, and no residuals are kept for one.
//
// It is reverse mode over the IR's regions. The backward ops follow the forward
// ones; the backward of a loop is a loop over its iterations in reverse order:
//
//   - a value of the forward body that the backward body needs is a residual: one
//     more per-iteration output of the forward loop. Values that follow from the
//     iteration number, from the loop's per-iteration inputs and from outside of
//     the loop are rematerialised instead;
//   - inside of a pp.checkpoint region every value is rematerialised except those
//     under a name that the policy saves. Only values that the backward pass reads
//     are recomputed or saved: inputs of a region that it does not need are not
//     kept. A region around a loop runs the loop once more in the backward pass,
//     and that copy returns the residuals;
//   - the cotangent of a value from outside of the loop is a carry of the backward
//     loop that accumulates, never a per-iteration output.
//
// In explicit mode every value of the forward program states its sharding, and a
// cotangent has the sharding of its primal value.
//
// Cotangents are added in the reverse order of their uses, so the bits do not
// depend on anything but the program.
//
// It warns of checkpoint names that a policy saves without effect. It is an error
// if the first result is no floating-point scalar, or if it depends on a parameter
// through an op that has no gradient.
func Differentiate(c *pass.Context, m *ir.Module) error {
	wrt := m.Attrs.Str(ir.KeyGradient)
	if wrt == "" {
		return nil
	}
	f := m.Main()
	loss := f.Return().Operands[0]
	if !loss.Type.IsTensor() || loss.Type.Rank() != 0 || !loss.Type.Elem.IsFloat() {
		return pass.Errorf(nil, "%s is %s: only a floating-point scalar, a loss, has gradients", facts.ResultName(f, 0), loss.Type)
	}
	d := &differentiator{m: m, f: f, regions: make(map[*ir.Op]*rematRegion), kept: make(map[*ir.Value]*ir.Value), keeps: make(map[*ir.Op][]keep), hosted: make(map[*ir.Value]*ir.Value), carried: make(map[string]bool), used: make(map[string]bool), rules: gradientRules()}
	d.openCheckpoints()
	d.explicit = facts.ExplicitMode(m)
	if err := d.run(wrt == "all"); err != nil {
		return err
	}
	rewrite.DropUnused(m)
	d.warnOfNames(c)
	return nil
}

// lastOfLoops is a result of the last loop of ops, nil if there is none.
//
// A loop that no backward op depends on could be scheduled after them, and its
// operands would stay live until then.
func lastOfLoops(ops []*ir.Op) *ir.Value {
	for _, op := range slices.Backward(ops) {
		if op.Kind != ir.PPScan {
			continue
		}
		if i := slices.IndexFunc(op.Results, func(v *ir.Value) bool { return v.Type.Rank() > 0 }); i >= 0 {
			return op.Results[i]
		}
	}
	return nil
}

// A differentiator works on one function.
type differentiator struct {
	m *ir.Module
	f *ir.Func
	// explicit says that every forward value states its sharding, so that every
	// cotangent has to state one too.
	explicit bool
	regions  map[*ir.Op]*rematRegion // the checkpoint region that an op was in
	kept     map[*ir.Value]*ir.Value // the rows, one per iteration, of a saved value of a loop in a region
	keeps    map[*ir.Op][]keep       // by loop
	hosted   map[*ir.Value]*ir.Value // a saved value, in host memory

	policies []*ir.Op        // regions with different policies
	carried  map[string]bool // checkpoint names of values in regions
	used     map[string]bool // of those, the ones whose values are kept
	rules    map[ir.Kind]gradRule
	active   map[*ir.Value]bool // depends on a value whose gradient is asked for
	indices  map[*ir.Value]bool // integers computed from active values, and floating-point numbers converted from those
	// cotangents has the element types of cotangents where they differ from those
	// of the values.
	cotangents map[*ir.Value]ir.DType
	err        error

	channels int // the largest channel handle in use; 0 before the first use
}

// run appends the backward ops to main and makes the gradients its results.
func (d *differentiator) run(inputs bool) error {
	f := d.f
	var wrt []*ir.Value
	for _, p := range f.Params() {
		if p.Type.IsTensor() && p.Type.Elem.IsFloat() && !p.Attrs.Has(ir.KeyFrozen) && (inputs || p.Attrs.Str(ir.KeyKind) == "param") {
			wrt = append(wrt, p)
		}
	}
	d.activity(wrt)
	d.cotangentTypes()
	if loss := f.Return().Operands[0]; d.indices[loss] {
		return pass.Errorf(loss.Def, "the loss is made of indices or counts, which have no gradient")
	}
	ret := f.Return()
	f.Body.Ops = f.Body.Ops[:len(f.Body.Ops)-1]
	forward := slices.Clone(f.Body.Ops)
	t := &tape{d: d, b: ir.NewBuilder(f), ct: make(map[*ir.Value]*ir.Value), memo: make(map[*ir.Value]*ir.Value)}
	loss := ret.Operands[0]
	one := t.b.Splat(loss.Type, 1)
	if t.after = lastOfLoops(forward); t.after != nil {
		one = t.waiting(one)
	}
	t.add(loss, one)
	t.backward(forward)
	if d.err != nil {
		return d.err
	}
	results := slices.Clone(ret.Operands)
	for _, p := range wrt {
		g := t.ct[p]
		if g == nil {
			g = t.zeros(p.Type)
		}
		results = append(results, t.b.Constrain(g, p.Sharding))
		attrs := ir.AttrsOf(facts.Named(ir.KeyName, ir.Str("grad."+p.Attrs.Str(ir.KeyName))), facts.Named(ir.KeyKind, ir.Str("gradient")))
		for _, name := range []string{ir.KeyRows, ir.KeyLayers, ir.KeyLogical} {
			if a := p.Attrs.Get(name); a != nil {
				attrs.Set(name, a)
			}
		}
		f.Results = append(f.Results, ir.Result{Type: p.Type, Sharding: p.Sharding, Attrs: attrs})
	}
	(&ir.Builder{Func: f, Block: f.Body, Origin: ret.Origin}).Emit(ir.FuncReturn, results, nil, nil, nil)
	return nil
}

// activity finds the values that depend on wrt through floating-point numbers.
func (d *differentiator) activity(wrt []*ir.Value) {
	d.active, d.indices = make(map[*ir.Value]bool), make(map[*ir.Value]bool)
	for _, v := range wrt {
		d.active[v] = true
	}
	for d.markActive(d.f.Body) {
	}
}

// varies reports whether a value of type t can depend continuously on real numbers:
// floating-point and complex tensors.
func varies(t *ir.Type) bool {
	return t.Kind == ir.TupleType || t.IsTensor() && (t.Elem.IsFloat() || t.Elem.IsComplex())
}

// isComplex reports whether op computes with complex numbers.
func isComplex(op *ir.Op) bool {
	return slices.ContainsFunc(slices.Concat(op.Operands, op.Results), func(v *ir.Value) bool {
		return v.Type.IsTensor() && v.Type.Elem.IsComplex()
	})
}

// markActive marks the results of ops of b that depend on active values as active; it
// reports whether any was not yet.
func (d *differentiator) markActive(b *ir.Block) bool {
	changed := false
	mark := func(v *ir.Value) {
		if !d.active[v] && varies(v.Type) {
			d.active[v], changed = true, true
		}
	}
	for _, op := range b.Ops {
		if op.Kind == ir.PPName && op.Attrs.Has(ir.KeyStopGradient) {
			continue
		}
		some := slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return d.active[v] })
		switch {
		case op.Kind == ir.PPScan:
			changed = d.markScan(op, mark) || changed
			continue
		case op.Kind == ir.ManualComputation:
			changed = d.markManual(op, mark) || changed
			continue
		case len(op.Regions) > 0 && !facts.Reducer(op):
			for _, r := range op.Regions {
				changed = d.markActive(r) || changed
			}
			for _, v := range op.Captures() {
				some = some || d.active[v]
			}
		}
		if some {
			for _, v := range op.Results {
				mark(v)
			}
		}
		changed = d.markIndices(op, some) || changed
	}
	return changed
}

// markIndices marks the integers that op computes from active values, and the
// numbers computed from such integers. Booleans are left out: the gradient of a
// selection does not go through its predicate, as users expect.
func (d *differentiator) markIndices(op *ir.Op, active bool) bool {
	index, float := false, false
	for _, v := range op.Operands {
		index = index || d.indices[v]
		float = float || d.indices[v] && v.Type.Elem.IsFloat()
	}
	changed := false
	for _, v := range op.Results {
		if !v.Type.IsTensor() || d.indices[v] || d.active[v] {
			continue
		}
		integer := v.Type.Elem.IsInt() && (active || index)
		if integer || v.Type.Elem.IsFloat() && (float || index && op.Kind == ir.Convert) {
			d.indices[v], changed = true, true
		}
	}
	return changed
}

func (d *differentiator) markManual(op *ir.Op, mark func(*ir.Value)) bool {
	body := op.Regions[0]
	for i, v := range op.Operands {
		if d.active[v] {
			mark(body.Args[i])
		}
	}
	changed := d.markActive(body)
	for i, v := range body.Terminator().Operands {
		if d.active[v] {
			mark(op.Results[i])
		}
	}
	return changed
}

func (d *differentiator) markScan(op *ir.Op, mark func(*ir.Value)) bool {
	n, body := op.Int("carries"), op.Regions[0]
	for i, v := range op.Operands {
		if d.active[v] || i < n && d.active[op.Results[i]] {
			mark(body.Args[1+i])
		}
	}
	changed := d.markActive(body)
	for i, v := range body.Terminator().Operands {
		if !d.active[v] {
			continue
		}
		mark(op.Results[i])
		if i < n {
			mark(body.Args[1+i])
		}
	}
	return changed
}

// A tape is the backward half of one block: main's, or a loop's body.
type tape struct {
	d         *differentiator
	b         *ir.Builder // at the end of the backward block
	outer     *tape       // of the block around; nil for main
	scan      *ir.Op      // the forward loop, nil for main and for a region that runs once
	ct        map[*ir.Value]*ir.Value
	memo      map[*ir.Value]*ir.Value // forward values to the backward block's values for them
	local     map[*ir.Value]bool      // of a loop: the values defined in its body
	lights    map[*ir.Value]bool      // of a loop: the results of light so far
	after     *ir.Value               // a cotangent that rematerialised values wait for; nil where there is none
	residuals []residual
	replaying []*replay
	sums      []*ir.Value // values from outside that have a cotangent, in order of appearance
	totals    []*ir.Value // of a loop: the arguments that carry their sums over the iterations before
}

// A residual is a forward value that the forward loop saves in every iteration for
// the backward loop.
type residual struct {
	v   *ir.Value
	arg *ir.Value // in the backward body
}

// wants reports whether the cotangent of v is needed.
func (t *tape) wants(v *ir.Value) bool { return t.d.active[v] }

// add adds g to the cotangent of v.
func (t *tape) add(v, g *ir.Value) {
	if g == nil || !t.wants(v) {
		return
	}
	if elem := t.cotangentType(v).Elem; g.Type.Elem != elem {
		g = t.b.Convert(g, elem)
	}
	switch old := t.begin(v); {
	case old != nil:
		if g = t.b.Add(old, g); len(layout.UnreducedOf(facts.Stated(old))) > 0 { // the sum stays unreduced
			g = t.summed(g, v)
		}
	case t.outer != nil && !t.local[v]: // of a region that runs once
		t.sums = append(t.sums, v)
	}
	t.ct[v] = t.shardedAs(g, v)
}

// isSplat reports whether all elements of v are one constant.
func isSplat(v *ir.Value) bool {
	return v.Def != nil && (v.Def.Kind == ir.Constant || v.Def.Kind == ir.BroadcastInDim && v.Def.Operands[0].Type.Rank() == 0)
}

// resharded reports whether v is the result of a reshard or collective, possibly
// selected from or converted since: its cotangent is about to be resharded to that
// op's operand, and is accumulated in that sharding.
func (t *tape) resharded(v *ir.Value) bool {
	op := v.Def
	if op == nil || t.outer != nil && !t.local[v] {
		return false
	}
	if op.Kind == ir.PPGather || op.Kind == ir.ShardingConstraint || op.Kind == ir.Reshard {
		return true
	}
	linear := op.LinearIn()
	linear = slices.DeleteFunc(linear, func(i int) bool { return !t.wants(op.Operands[i]) })
	return op.Kind.Has(ir.Elementwise) && len(linear) == 1 && t.resharded(op.Operands[linear[0]])
}

// shardedAs is g, the cotangent of v, constrained in explicit mode to the sharding of
// v.
func (t *tape) shardedAs(g, v *ir.Value) *ir.Value {
	s := v.Sharding
	if !t.d.explicit || s == nil || isSplat(g) || t.resharded(v) {
		return g
	}
	switch at := facts.Stated(g); {
	case at != nil && s.SameDims(at):
	case g.Sharding != nil || g.Def == nil:
		return t.b.Constrain(g, s)
	default:
		g.Sharding = s
	}
	return g
}

func (t *tape) zeros(typ *ir.Type) *ir.Value {
	return t.b.Broadcast(t.b.Splat(ir.Tensor(typ.Elem), 0), typ.Shape)
}

// backward runs the gradient rules of ops, last to first.
func (t *tape) backward(ops []*ir.Op) {
	for n, op := range slices.Backward(ops) {
		if t.d.err != nil {
			return
		}
		if op.Kind == ir.PPScan {
			t.settle(ops[:n+1])
		}
		ct := make([]*ir.Value, len(op.Results))
		some := false
		for i, v := range op.Results {
			ct[i] = t.ct[v]
			some = some || ct[i] != nil
		}
		if !some || op.Kind == ir.PPName && op.Attrs.Has(ir.KeyStopGradient) {
			continue
		}
		t.b.Origin = op.Origin
		if op.Kind == ir.PPScan {
			t.reverse(op, ct)
			continue
		}
		rule := t.d.rules[op.Kind]
		if op.Kind == ir.Unknown {
			rule = namedRules[op.Name()]
		}
		if rule == nil || isComplex(op) && !holdsForComplex(op) {
			t.d.err = t.d.noGradient(op)
			return
		}
		if t.d.err = t.d.noIndex(op); t.d.err != nil {
			return
		}
		rule(t, op, ct)
	}
}

// settle ties the cotangents computed so far together in an optimization barrier:
// those of the results of ops, and of values from outside. A value that waits for
// one of them waits for all. In explicit mode a cotangent that is about to be
// resharded is left out, since the reshard states its sharding.
func (t *tape) settle(ops []*ir.Op) {
	var of, ct []*ir.Value
	tie := func(v *ir.Value) {
		if g := t.ct[v]; g != nil && g.Type.Rank() > 0 && !isSplat(g) && !(t.d.explicit && t.resharded(v)) {
			of, ct = append(of, v), append(ct, g)
		}
	}
	for _, op := range ops {
		for _, v := range op.Results {
			tie(v)
		}
	}
	for _, v := range t.sums {
		tie(v)
	}
	if len(ct) < 2 {
		return
	}
	tied := t.b.Emit(ir.OptimizationBarrier, ct, nil, nil, ir.Types(ct))
	for i, g := range tied.Results {
		g.Name, g.Sharding = ct[i].Name, ct[i].Sharding
		t.ct[of[i]] = g
	}
}

// noGradient is the error that op has no gradient rule, with the value through
// which the loss depends on it.
func (d *differentiator) noGradient(op *ir.Op) error {
	name := pass.OpUserName(op)
	if name == "" {
		name = "a value"
	}
	what := op.Name()
	if isComplex(op) {
		what += " of complex numbers"
	}
	return pass.Errorf(op, "%s has no gradient, and the loss depends on it through %s: put stop_gradient around it if none is meant", what, name)
}

// noOperandGradient is the error that op has no gradient by operand i, which what names, and
// why.
func (d *differentiator) noOperandGradient(op *ir.Op, i int, what, why string) error {
	name := op.Operands[i].Name
	if name == "" {
		name = "a value"
	}
	return pass.Errorf(op, "%s has no gradient by its %s, operand %d: %s; the loss depends on %s there: put stop_gradient around it if none is meant", op.Name(), what, i, why, name)
}

// noIndex is the error that an operand of op is a number computed from integers
// that depend on values whose gradient is asked for, such as indices or counts:
// these have no gradient.
func (d *differentiator) noIndex(op *ir.Op) error {
	for _, v := range op.Operands {
		if !d.indices[v] || !v.Type.Elem.IsFloat() {
			continue
		}
		name := v.Name
		if name == "" && v.Def != nil {
			name = pass.OpUserName(v.Def)
		}
		return pass.Errorf(op, "the loss depends on %q, numbers made of indices or counts, which have no gradient: put stop_gradient around them if none is meant", name)
	}
	return nil
}

// need is forward value v in the backward block: itself, a residual, or
// rematerialised.
func (t *tape) need(v *ir.Value) *ir.Value {
	if w := t.memo[v]; w != nil {
		return w
	}
	if t.outer != nil && !t.local[v] {
		return t.outer.need(v)
	}
	if w := t.replayed(v); w != nil {
		return w
	}
	region := t.regionOf(v)
	if region.saves(v.Def) {
		t.d.used[v.Def.Str("name")] = true
	}
	switch {
	case t.outer == nil && region == nil:
		return v
	case t.outer != nil && t.scan == nil:
		return t.recompute(v, region)
	case v.Def != nil && t.recomputes(v, region):
		return t.recompute(v, region)
	case t.scan == nil:
		return v
	}
	arg := t.d.f.NewValue(v.Type, v.Name)
	arg.Sharding = v.Sharding
	t.memo[v] = arg
	kept := v
	if h := t.d.onHost(v, region, t.scan.Regions[0]); h != nil {
		kept, t.memo[v] = h, place(t.b, arg, deviceMemory)
	}
	t.residuals = append(t.residuals, residual{kept, arg})
	if region != nil && t.scan.Int("trip_count") == 1 {
		t.memo[v] = t.waiting(t.memo[v]) // a loop of one iteration may be inlined by a compiler
	}
	return t.memo[v]
}

func (t *tape) regionOf(v *ir.Value) *rematRegion {
	if v.Def == nil {
		return nil
	}
	return t.d.regions[v.Def]
}

// recomputes reports whether the backward block rematerialises v: inside of a
// region every value but those that the policy saves, elsewhere in a loop the light
// ones.
func (t *tape) recomputes(v *ir.Value, region *rematRegion) bool {
	if region != nil {
		return !region.saves(v.Def)
	}
	return t.light(v) || cheap[v.Def.Kind] && t.d.kept[v] == nil
}

// cheap are the ops whose results are never kept, since their operands take no
// more memory.
var cheap = map[ir.Kind]bool{ir.ShardingConstraint: true, ir.PPName: true, ir.Reshape: true, ir.Transpose: true, ir.BroadcastInDim: true}

// light reports whether v is rematerialised rather than saved in every iteration:
// it follows from the iteration number, per-iteration inputs, constants and values
// outside of the loop, without contractions. All-gathered weights are light too: to
// save them would take one gathered copy for each iteration.
func (t *tape) light(v *ir.Value) bool {
	if t.scan == nil {
		return false
	}
	if !t.local[v] || v == t.scan.Regions[0].Args[0] || facts.InputOf(t.scan, v) != nil {
		return true
	}
	if v.Def == nil {
		return false
	}
	if known, ok := t.lights[v]; ok {
		return known
	}
	op := v.Def
	is := !op.Kind.Has(ir.Costly) && !(op.Kind == ir.PPGather && op.Attrs.Has(ir.KeySave)) && (len(op.Regions) == 0 || facts.Reducer(op))
	for _, x := range op.Operands {
		is = is && t.light(x)
	}
	t.lights[v] = is
	return is
}

// recompute copies the op that makes v into the backward block, with what it
// needs. Outside of loops the copy reads its operands through a barrier, so
// that nothing merges it with the original.
func (t *tape) recompute(v *ir.Value, region *rematRegion) *ir.Value {
	op := v.Def
	sub := make(map[*ir.Value]*ir.Value)
	for _, x := range op.Operands {
		sub[x] = t.need(x)
	}
	for _, x := range op.Captures() {
		sub[x] = t.need(x)
	}
	t.shield(op, sub)
	if t.outer == nil && region != nil {
		t.barrier(op, sub)
	}
	c := t.d.f.CopyOp(op, sub)
	t.d.feed(c, op, sub, t.need)
	t.b.Block.Ops = append(t.b.Block.Ops, c)
	for old, copied := range sub {
		if !slices.Contains(op.Operands, old) {
			t.memo[old] = copied // inner values too: the copy of a loop is found through them
		}
	}
	for i, r := range op.Results {
		t.memo[r] = c.Results[i]
	}
	return t.memo[v]
}

// barrier puts the operands of a copy that are forward values behind an
// optimization barrier.
func (t *tape) barrier(op *ir.Op, sub map[*ir.Value]*ir.Value) {
	for _, x := range op.Operands {
		if sub[x] == x && x.Type.IsTensor() && x.Type.Rank() > 0 && (x.Def == nil || x.Def.Kind != ir.Constant) {
			y := t.waiting(x)
			sub[x], t.memo[x] = y, y
		}
	}
}
