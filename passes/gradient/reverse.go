package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// reverse differentiates a pp.scan. The carries of the backward loop are the
// cotangents of the forward loop's carries and the accumulated cotangents of the
// values that the forward body captures. An accumulator begins with the cotangent
// from other uses: it is added to in place, and the bits are those of one sum over
// the iterations of all loops, however they are split.
//
// The body's backward half is built first; only then is it known which forward
// values it needs. Those become residuals: per-iteration outputs of the forward
// loop, and of its copy where the forward loop itself is recomputed.
func (t *tape) reverse(op *ir.Op, ct []*ir.Value) {
	l := t.backwardLoop(op, ct)
	l.seed(ct)
	body := op.Regions[0]
	l.in.backward(l.in.late(body.Ops[:len(body.Ops)-1]))
	if t.d.err != nil {
		return
	}
	l.end()
	l.handOn(l.emit())
}

// A backwardLoop is the loop in reverse under construction.
type backwardLoop struct {
	op     *ir.Op    // the forward loop
	t, in  *tape     // around the loop, and of its body
	block  *ir.Block // the backward body
	around *ir.Value // the iteration

	carries, args []*ir.Value // initial cotangents, then sums and replayed values, and their arguments
	carried       []int       // which forward carry each of the first carries is the cotangent of
	xs, slots     []*ir.Value // per-iteration cotangents, then residuals, and their arguments
	next          []*ir.Value // what the backward body ends with
	replays       []*replay   // those that the body needs
	inputs        []int       // the per-iteration operands that get cotangents
}

func (t *tape) backwardLoop(op *ir.Op, ct []*ir.Value) *backwardLoop {
	body, block := op.Regions[0], new(ir.Block)
	in := &tape{
		d: t.d, b: &ir.Builder{Func: t.d.f, Block: block, Origin: op.Origin}, outer: t, scan: op,
		ct: make(map[*ir.Value]*ir.Value), memo: make(map[*ir.Value]*ir.Value),
		local: facts.DefinedIn(body), lights: make(map[*ir.Value]bool),
	}
	if i := slices.IndexFunc(ct[:op.Int("carries")], func(g *ir.Value) bool { return g != nil }); i >= 0 {
		t.after = ct[i]
	}
	l := &backwardLoop{op: op, t: t, in: in, block: block, around: t.d.f.NewValue(ir.Tensor(ir.I32), body.Args[0].Name)}
	in.memo[body.Args[0]] = l.around
	if !op.Bool("reverse") { // an iteration replays the one before
		in.replaying = in.replays()
	}
	return l
}

// seed gives the cotangents ct of op's results to what its body ends with.
func (l *backwardLoop) seed(ct []*ir.Value) {
	t, in, n, body := l.t, l.in, l.op.Int("carries"), l.op.Regions[0]
	for i, v := range body.Terminator().Operands {
		wanted := in.wants(v) || i < n && t.wants(l.op.Results[i])
		switch g := ct[i]; {
		case !wanted || i < n && !in.wants(body.Args[1+i]):
		case i < n:
			l.carry(i, g)
		case g != nil:
			a := t.d.f.NewValue(in.cotangentType(v), "")
			l.xs, l.slots = append(l.xs, g), append(l.slots, a)
			in.add(v, a)
		}
	}
}

// carry makes the cotangent of forward carry i, of which g is the last, a carry.
func (l *backwardLoop) carry(i int, g *ir.Value) {
	t, in, body := l.t, l.in, l.op.Regions[0]
	v := body.Terminator().Operands[i]
	if g == nil {
		g = t.zeros(t.cotangentType(l.op.Results[i]))
	}
	a := t.d.f.NewValue(g.Type, "d."+body.Args[1+i].Name)
	if gathered(v) {
		g = t.summed(g, v)
		in.add(v, in.summed(a, v))
	} else {
		g = t.b.Constrain(g, facts.Stated(l.op.Operands[i]))
		in.add(v, a)
	}
	l.carries, l.args, l.carried = append(l.carries, g), append(l.args, a), append(l.carried, i)
	if in.after == nil {
		in.after = a
	}
}

// end closes the backward body, of which it is known now what it sums, replays
// and reads of the forward pass.
func (l *backwardLoop) end() {
	t, in, body := l.t, l.in, l.op.Regions[0]
	for _, i := range l.carried {
		l.next = append(l.next, in.cotangent(body.Args[1+i]))
	}
	for k, v := range in.sums { // sums over the iterations
		t.begin(v)
		l.carries, l.args, l.next = append(l.carries, t.summed(t.cotangent(v), v)), append(l.args, in.totals[k]), append(l.next, in.ct[v])
	}
	l.replays = slices.DeleteFunc(in.replaying, func(p *replay) bool { return p.newer == nil })
	for _, p := range l.replays {
		l.carries, l.args, l.next = append(l.carries, t.need(l.op.Results[p.index])), append(l.args, p.newer), append(l.next, in.older(p))
	}
	l.inputs = in.inputCotangents(l.op, l.op.Int("carries"))
	for _, x := range l.inputs {
		l.next = append(l.next, in.cotangent(body.Args[1+x]))
	}
	in.b.Emit(ir.PPYield, l.next, nil, nil, nil)
	for _, r := range in.residuals {
		l.xs, l.slots = append(l.xs, t.stacked(l.op, r.v)), append(l.slots, r.arg)
	}
	l.block.Args = slices.Concat([]*ir.Value{l.around}, l.args, l.slots)
	for i, a := range l.block.Args {
		a.Block, a.Index = l.block, i
	}
}

// emit is the loop, which runs the other way than the forward loop.
func (l *backwardLoop) emit() *ir.Op {
	attrs := ir.AttrsOf(facts.Named("carries", ir.I64Attr(len(l.carries))), facts.Named("trip_count", ir.I64Attr(l.op.Int("trip_count"))))
	if !l.op.Bool("reverse") {
		attrs.Set("reverse", ir.Unit{})
	}
	for _, name := range []string{ir.KeyLoop, ir.KeyUnroll} {
		if a := l.op.Attrs.Get(name); a != nil {
			attrs.Set(name, a)
		}
	}
	return l.t.b.At(l.op.Origin).Emit(ir.PPScan, append(l.carries, l.xs...), attrs, []*ir.Block{l.block}, nil)
}

// handOn adds the results of back to the cotangents around the loop.
func (l *backwardLoop) handOn(back *ir.Op) {
	t, in, body := l.t, l.in, l.op.Regions[0]
	for k, v := range in.sums { // these began with the cotangents of other uses
		t.replace(v, t.summed(back.Results[len(l.carried)+k].Named("d."+v.Name), v))
	}
	for k, i := range l.carried {
		g := back.Results[k].Named("d." + body.Args[1+i].Name)
		if v := body.Terminator().Operands[i]; gathered(v) {
			g = t.summed(g, v)
		}
		t.add(l.op.Operands[i], g)
	}
	for k, p := range l.replays {
		if in.continues(p) {
			t.memo[p.init] = back.Results[len(l.carried)+len(in.sums)+k]
		}
	}
	for k, x := range l.inputs {
		t.add(l.op.Operands[x], back.Results[len(l.carries)+k])
	}
}

// begin is the cotangent of v accumulated so far, nil where there is none. In a
// loop's body, where v is from outside, that is the sum over the iterations before
// and of this one so far.
func (t *tape) begin(v *ir.Value) *ir.Value {
	if t.ct[v] == nil && t.scan != nil && !t.local[v] && t.wants(v) {
		total := t.d.f.NewValue(t.cotangentType(v), "d."+v.Name)
		total.Sharding = v.Sharding
		t.sums, t.totals, t.ct[v] = append(t.sums, v), append(t.totals, total), total
	}
	return t.ct[v]
}

// gathered reports whether v is an all-gathered weight: its cotangent is a sum over
// the iterations that use it.
func gathered(v *ir.Value) bool { return v.Def != nil && v.Def.Kind == ir.PPGather }

// summed constrains g, a sum of cotangents of v, to the sharding of v, unreduced
// along the other axes of the mesh: it is reduced once, when the sum over
// iterations is complete.
func (t *tape) summed(g, v *ir.Value) *ir.Value {
	s := facts.Stated(v)
	if s == nil || len(t.d.m.Meshes) == 0 {
		return g
	}
	return t.b.Constrain(g, layout.UnreducedElsewhere(t.d.m.Meshes[0], s))
}

// late is ops, of the loop's body, with each op of a light result moved to right
// before the first op that reads it: a weight of an iteration is sliced, gathered
// and converted where a layer needs it. In reverse order its cotangent is then
// accumulated as soon as it is known.
func (t *tape) late(ops []*ir.Op) []*ir.Op {
	var out []*ir.Op
	done := make(map[*ir.Op]bool)
	isLight := func(op *ir.Op) bool { return len(op.Results) > 0 && t.local[op.Results[0]] && t.light(op.Results[0]) }
	var place func(op *ir.Op)
	place = func(op *ir.Op) {
		if done[op] {
			return
		}
		done[op] = true
		for _, v := range slices.Concat(op.Operands, op.Captures()) {
			if v.Def != nil && t.local[v] && isLight(v.Def) {
				place(v.Def)
			}
		}
		out = append(out, op)
	}
	for _, op := range ops {
		if !isLight(op) {
			place(op)
		}
	}
	for _, op := range ops { // the values that the next iteration reads
		place(op)
	}
	return out
}

// cotangent is the cotangent of v, a value of the body, zeros where it has none.
func (t *tape) cotangent(v *ir.Value) *ir.Value {
	if g := t.ct[v]; g != nil {
		return g
	}
	return t.zeros(t.cotangentType(v))
}

// replace makes g the cotangent of v, in place of the one accumulated so far.
func (t *tape) replace(v, g *ir.Value) {
	if t.ct[v] == nil {
		t.add(v, g)
		return
	}
	t.ct[v] = g
}

// inputCotangents are the indices, among op's operands, of the per-iteration inputs
// whose cotangent is needed.
func (t *tape) inputCotangents(op *ir.Op, n int) []int {
	var out []int
	for i := n; i < len(op.Operands); i++ {
		if t.wants(op.Regions[0].Args[1+i]) && t.wants(op.Operands[i]) {
			out = append(out, i)
		}
	}
	return out
}

// stacked is value v of the body of op, one row per iteration, in the block of t: a
// per-iteration input of the loop, one of its outputs, or a new one.
func (t *tape) stacked(op *ir.Op, v *ir.Value) *ir.Value {
	f := t.d.f
	if rows := facts.InputOf(op, v); rows != nil {
		return t.need(rows)
	}
	if rows := t.d.kept[v]; rows != nil {
		return t.need(rows)
	}
	if t.d.regions[op] != nil || t.scan == nil && t.local[t.anyResult(op)] {
		// The loop is rematerialised: copy it, then give the copy the output.
		made := t.need(t.anyResult(op))
		if c := made.Def; c != nil && c.Kind == ir.PPScan && c != op {
			return stack(f, c, t.copied(v), t.why(v))
		}
	}
	rows := stack(f, op, v, t.why(v))
	if t.local[t.anyResult(op)] {
		t.local[rows] = true
	}
	return t.need(rows)
}

// copied is the value in t's copy of a loop for v, a value in that loop. Outputs
// added since to a loop nested in it are added to the nested loop's copy.
func (t *tape) copied(v *ir.Value) *ir.Value {
	if w := t.memo[v]; w != nil {
		return w
	}
	row := v.Def.Regions[0].Terminator().Operands[v.Index]
	w := stack(t.d.f, t.memo[v.Def.Results[0]].Def, t.copied(row), t.why(row))
	t.memo[v] = w
	return w
}

// anyResult is a result of op, which has one.
func (t *tape) anyResult(op *ir.Op) *ir.Value { return op.Results[0] }

// why describes, for profiles and messages, the residual v: its name, and the
// setting by which it is saved.
func (t *tape) why(v *ir.Value) ir.Dict {
	if op := v.Def; facts.IsPlacement(op) {
		v = op.Operands[0]
	}
	if op := v.Def; op != nil && op.Kind == ir.PPScan && v.Index >= op.Int("carries") { // per-iteration outputs of a nested loop
		if d, _ := facts.ResidualsOf(op)[v.Index-op.Int("carries")].(ir.Dict); len(d) > 0 {
			return d
		}
	}
	if t.regionOf(v).saves(v.Def) {
		return whySaved(v.Def)
	}
	why := "needed by the backward pass"
	if saved(v) {
		why = "save_gathered"
	}
	return ir.Dict(ir.AttrsOf(facts.Named("name", ir.Str(v.Name)), facts.Named("why", ir.Str(why))))
}

// whySaved is why for the value that op, a pp.name, names.
func whySaved(op *ir.Op) ir.Dict {
	return ir.Dict(ir.AttrsOf(facts.Named("name", ir.Str(op.Str("name"))), facts.Named("why", ir.Str("named by the policy"))))
}

// stack makes v, a value of op's body, a per-iteration output of op. The attribute
// pp.residuals describes each such output; it is handed on to the op that writes
// the rows, as pp.residual.
func stack(f *ir.Func, op *ir.Op, v *ir.Value, why ir.Dict) *ir.Value {
	yield := op.Regions[0].Terminator()
	n := op.Int("carries")
	reasons := facts.ResidualsOf(op)
	for i, y := range yield.Operands[n:] {
		if y == v {
			if d, _ := reasons[i].(ir.Dict); len(d) == 0 {
				reasons[i] = why
				op.Attrs.Set(ir.KeyResiduals, reasons)
			}
			return op.Results[n+i]
		}
	}
	yield.Operands = append(slices.Clone(yield.Operands), v)
	r := f.NewValue(v.Type.WithShape(append([]int{op.Int("trip_count")}, v.Type.Shape...)...), v.Name)
	r.Def, r.Index = op, len(op.Results)
	if v.Sharding != nil {
		r.Sharding = v.Sharding.Prepend()
	}
	op.Results = append(op.Results, r)
	op.Attrs.Set(ir.KeyResiduals, append(reasons, why))
	return r
}
