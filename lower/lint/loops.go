package lint

import (
	"cmp"
	"fmt"
	"slices"

	"ppc/ir"
	"ppc/lower/flow"
	"ppc/lower/stats"
)

// reduceInLoop finds reductions in a loop whose results are only added up: one
// reduction of the sum after the loop gives the same. It also names other
// reductions over an axis called data, along which devices have different examples
// and nothing else to say to each other.
func reduceInLoop(p *program) {
	p.collectives(func(c *stats.Collective) {
		loop := p.around(c.Op)
		if loop == nil || !sums(c.Op) {
			return
		}
		for i, v := range c.Op.Results {
			sum := p.addedUp(v, loop)
			if sum == nil {
				continue
			}
			bytes := max(stats.BytesOf(v.Type), stats.BytesOf(c.Op.Operands[i].Type))
			severity, once, until, setting := Warning, stats.BytesOf(sum.Type), "", ""
			if c.Op.Kind == ir.ReduceScatter || p.ownShard(v, nil) {
				severity, once, until, setting = Note, once*max(1, c.Group), ", the sum unsharded until then", outsideOf(loop)+" reduces it outside of the loop"
			}
			if trips := p.loops[loop].Trips; trips != flow.Unknown && int(trips.Times(flow.Count(bytes))) <= once {
				continue
			}
			f := p.at(c, severity, "%s in %s, of what is only added up: %s, or %s once after the loop%s", over(c), iterations(p.loops[loop]),
				each(c.Executions, bytes), size(once), until)
			p.cure(f, setting, "add up what each device has, and reduce the sum after the loop")
			f.Name, f.Bytes = cmp.Or(given(loop.Results[sum.Index].Name), given(sum.Name), p.user(v)), bytes
			return
		}
		if _, axes := p.axesOf(c.Op); slices.ContainsFunc(axes, func(r ir.AxisRef) bool { return r.Name == "data" }) {
			f := p.at(c, Note, "%s in %s: %s", over(c), iterations(p.loops[loop]), each(c.Executions, c.Bytes))
			p.cure(f, "", "take it over the examples of each device, or outside of the loop")
		}
	}, ir.AllReduce, ir.ReduceScatter)
}

// sums reports whether a reduction adds.
func sums(op *ir.Op) bool {
	if len(op.Regions) != 1 {
		return false
	}
	def := op.Regions[0].Terminator().Operands[0].Def
	for def != nil && def.Kind == ir.Convert {
		def = def.Operands[0].Def
	}
	return def != nil && def.Kind == ir.Add
}

// addedUp is the sum, a carry of loop, to which v, which an iteration computes,
// is added and for nothing else used; nil if it is used otherwise. What is done
// to it on the way is linear, so that it may be done to the sum.
func (p *program) addedUp(v *ir.Value, loop *ir.Op) *ir.Value {
	body := loop.Regions[1]
	var sum *ir.Value
	seen := map[*ir.Value]bool{v: true}
	for work := []*ir.Value{v}; len(work) > 0; work = work[1:] {
		x := work[0]
		if len(p.u.Of[x]) == 0 {
			return nil
		}
		for _, op := range p.u.Of[x] {
			switch {
			case op == body.Terminator():
				continue
			case p.u.In[op] != body || len(op.Results) != 1:
				return nil
			case op.Kind == ir.Add && op.Operands[0] != op.Operands[1]:
				other := op.Operands[0]
				if other == x {
					other = op.Operands[1]
				}
				if carry := p.carryOf(other, loop); carry != nil {
					if sum = carry; !seen[carry] { // the next iteration adds to it and does no more
						seen[carry], work = true, append(work, carry)
					}
				}
			case op.Kind == ir.DynamicUpdateSlice && (op.Operands[1] == x && p.carryOf(op.Operands[0], loop) != nil || x == sum && op.Operands[0] == x):
			case op.Kind == ir.DynamicSlice && op.Operands[0] == sum: // a slice of it that is added to
			case p.linear(op, x, loop):
			default:
				return nil
			}
			if r := op.Result(); !seen[r] {
				seen[r] = true
				work = append(work, r)
			}
		}
	}
	return sum
}

// linear reports whether op does the same to x in every iteration, and to a sum
// what it does to its terms.
func (p *program) linear(op *ir.Op, x *ir.Value, loop *ir.Op) bool {
	switch op.Kind {
	case ir.CollectivePermute, ir.ReducePrecision, ir.Convert: // rounding aside
		return true
	case ir.Multiply:
		return op.Operands[0] != op.Operands[1] && (op.Operands[0] == x && p.same(op.Operands[1], loop) || op.Operands[1] == x && p.same(op.Operands[0], loop))
	case ir.Select: // masked, as bubbles are
		return op.Operands[0] != x
	}
	linear := op.LinearIn()
	for i, v := range op.Operands {
		if in := slices.Contains(linear, i); v == x && !in || v != x && !in && !p.same(v, loop) {
			return false
		}
	}
	return true
}

// carryOf is the carry of loop that v is chosen from, or a sum with it; nil if
// there is none, or if it stays as it is.
func (p *program) carryOf(v *ir.Value, loop *ir.Op) *ir.Value {
	for v.Def != nil && len(v.Def.Operands) > 0 && (flow.Moves(v.Def, v.Def.Operands[0]) || v.Def.Kind == ir.Add) {
		if v.Def.Kind == ir.Add { // several terms are added one after the other
			if carry := p.carryOf(v.Def.Operands[0], loop); carry != nil {
				return carry
			}
			v = v.Def.Operands[1]
			continue
		}
		v = v.Def.Operands[0]
	}
	if p.loopOf(v) == loop && !flow.Invariant(loop, v.Index) {
		return v
	}
	return nil
}

// invariantCollective finds collectives in a loop whose operands are the same
// in every iteration, and with them the results.
func invariantCollective(p *program) {
	p.collectives(func(c *stats.Collective) {
		var out *ir.Op // the outermost loop that it could be moved before
		for loop := p.around(c.Op); loop != nil && p.sameAll(c.Op, loop); loop = p.around(loop) {
			if p.loops[loop].Trips != 1 {
				out = loop
			}
		}
		if out == nil || len(c.Op.Operands) == 0 {
			return
		}
		severity, setting, cost := Warning, "", ""
		if c.Op.Kind != ir.AllReduce && c.Op.Kind != ir.ReduceScatter && p.weights.Of[c.Op.Operands[0]] != nil {
			severity, cost = Note, fmt.Sprintf(", which keeps %s throughout", size(c.Bytes))
		}
		if cost != "" && c.Op.Kind == ir.AllGather {
			setting = outsideOf(out) + " gathers it before the loop" + cost
		}
		f := p.at(c, severity, "%s, the same in %s: %s", over(c), iterations(p.loops[out]), each(c.Executions, c.Bytes))
		p.cure(f, setting, "move it before the loop"+cost)
	}, ir.AllGather, ir.AllReduce, ir.AllToAll, ir.CollectiveBroadcast, ir.CollectivePermute, ir.ReduceScatter)
}

func (p *program) sameAll(op *ir.Op, loop *ir.Op) bool {
	for _, v := range reads(op) {
		if !p.same(v, loop) {
			return false
		}
	}
	return true
}

// growingResiduals finds what loops save of each iteration for a later loop,
// but for what the checkpoint policy names. Worst are gathered weights: every
// copy of them was saved by gathering.
func growingResiduals(p *program) {
	for _, r := range p.s.Residuals {
		row := r.Op.Operands[1]
		if r.Why == "named by the policy" || row.Type.NumElements() <= 1 {
			continue
		}
		l := p.loops[r.While]
		what := fmt.Sprintf("%s of each of %s iterations of %q is kept, %s in all, ", size(stats.BytesOf(row.Type)), l.Trips, l.Name, size(r.Bytes))
		var f *Finding
		switch gathered := p.weights.Gathered[row]; {
		case gathered && r.Why == "save_gathered":
			f = p.report(r.Op, row, Note, "gathered weights: %sas save_gathered asks", what)
			p.cure(f, "pipeline.save_gathered = false gathers them again", "gather them again in the later loop")
		case gathered:
			f = p.report(r.Op, row, Warning, "gathered weights: %s%s", what, r.Why)
			p.cure(f, recomputed+" gathers them again", "gather them again in the later loop")
		case p.weights.Of[row] != nil && p.fromCounter(row, r.While):
			f = p.report(r.Op, row, Warning, "%s%s: a copy of what the weight itself has", what, r.Why)
			p.cure(f, recomputed+" chooses it again", "choose it of the weight again in the later loop")
		case p.fromCounter(row, r.While):
			f = p.report(r.Op, row, Note, "%s%s, though it follows from the number of the iteration", what, r.Why)
			p.cure(f, recomputed+" recomputes it", "recompute it in the later loop")
		default:
			f = p.report(r.Op, row, Note, "%s%s", what, r.Why)
			p.cure(f, recomputed+" recomputes it", "recompute it in the later loop from what the iteration reads")
		}
		if p.users(row) == "" {
			f.Name = cmp.Or(given(r.Name), f.Name)
		}
		f.Bytes, f.Executions = r.Bytes, l.Trips
	}
}

// fromCounter reports whether v follows from the counter of loop and from what
// is the same in all iterations.
func (p *program) fromCounter(v *ir.Value, loop *ir.Op) bool {
	counter, _ := flow.CounterOf(loop)
	seen := map[*ir.Value]bool{v: true}
	for work := []*ir.Value{v}; len(work) > 0; work = work[1:] {
		x := work[0]
		switch {
		case p.same(x, loop), p.loopOf(x) == loop && x.Index == counter:
		case x.Def == nil || len(x.Def.Regions) > 0 && !combines(x.Def):
			return false
		default:
			for _, y := range reads(x.Def) {
				if !seen[y] {
					seen[y] = true
					work = append(work, y)
				}
			}
		}
	}
	return true
}
