package lint

import (
	"fmt"
	"strings"

	"ppc/ir"
	"ppc/lower/flow"
	"ppc/lower/stats"
	"ppc/passes/propagate"
)

// weightGathers finds all-gathers in loops by which more elements of a weight
// are gathered than it has. A loop over the layers or repeats of a stacked
// weight gathers each once, which is as much as there is.
func weightGathers(p *program) {
	p.collectives(func(c *stats.Collective) {
		w := p.weights.Of[c.Op.Operands[0]]
		loop := p.around(c.Op)
		if w == nil || loop == nil || !w.Type.IsStatic() {
			return
		}
		elements := w.Type.NumElements() * p.gatheredBy(c.Op.Operands[0], w) * c.Group
		gathered := c.Executions.Times(flow.Count(c.Op.Result().Type.NumElements()))
		if gathered != flow.Unknown && int(gathered) <= elements {
			return
		}
		all := elements * c.Op.Result().Type.Elem.Size()
		f := p.at(c, Note, "%s in %s: %s; once, all of it is %s%s", over(c), iterations(p.loops[loop]), each(c.Executions, c.Bytes), size(all), p.rules(w, c.Op))
		p.cure(f, outsideOf(loop)+" gathers it outside of the loop", "gather it before the loop")
	}, ir.AllGather)
}

// rules says which rules of the source shard the parameter w along the axes of
// the collective op, as far as these are known.
func (p *program) rules(w *ir.Value, op *ir.Op) string {
	s, _ := w.Attrs.Get(ir.KeySharding).(*ir.Sharding)
	groups, ok := op.Attrs.Get("replica_groups").(ir.MeshAxes)
	if !ok || s == nil || p.m.Mesh(s.Mesh) == nil {
		return ""
	}
	return propagate.RulesAlong(p.m.Mesh(s.Mesh), s, groups.Axes)
}

// gatheredBy is the factor by which all-gathers between the weight w and v, which
// comes from it, have enlarged it.
func (p *program) gatheredBy(v, w *ir.Value) int {
	n := 1
	for seen := map[*ir.Value]bool{}; v != w && !seen[v]; {
		seen[v] = true
		if loop := p.loopOf(v); loop != nil {
			v = loop.Operands[v.Index]
			continue
		}
		if v.Def == nil {
			break
		}
		if v.Def.Kind == ir.AllGather {
			n *= max(1, v.Type.NumElements()/max(1, v.Def.Operands[v.Index].Type.NumElements()))
		}
		next := v
		for _, x := range v.Def.Operands {
			if p.weights.Of[x] == w {
				next = x
				break
			}
		}
		v = next
	}
	return n
}

// gatheredTwice finds all-gathers of a value that an earlier one, whose result
// is at hand, has gathered along the same axes.
func gatheredTwice(p *program) {
	n := newNumbering(p)
	earlier := make(map[string][]*stats.Collective)
	p.collectives(func(c *stats.Collective) {
		key := fmt.Sprint(n.through[c.Op.Operands[0]], " ", p.groupKey(c.Op))
		for _, before := range earlier[key] {
			if !p.atHand(before.Op, c.Op) {
				continue
			}
			severity, why, cure := Warning, "", "use that one's result"
			if n.strict[c.Op.Operands[0]] != n.strict[before.Op.Operands[0]] {
				severity, why, cure = Note, ", on the other side of a barrier", "hand that one's result through the barrier"
			}
			f := p.at(c, severity, "%s again, %s: %s has the same%s", over(c), each(c.Executions, c.Bytes), p.place(before.Op), why)
			p.cure(f, "", cure)
			return
		}
		earlier[key] = append(earlier[key], c)
	}, ir.AllGather)
}

// atHand reports whether the results of a can be used at b, which is later in the
// program.
func (p *program) atHand(a, b *ir.Op) bool {
	home := p.u.In[a]
	for o := b; o != nil; o = p.u.Owner[p.u.In[o]] {
		if p.u.In[o] == home {
			return true
		}
	}
	return false
}

// place names an op by its source position: all_gather at llama.pp:16:8.
func (p *program) place(op *ir.Op) string {
	name := strings.TrimPrefix(op.Name(), "stablehlo.")
	if at := op.Origin.Place(); at.Line > 0 {
		return name + " at " + at.String()
	}
	return name
}

// gatheredUnread finds all-gathers whose result nothing reads, those of which
// only a row is read that could have been taken first, and those in loops that only the next iteration reads: what the last one gathers is lost.
func gatheredUnread(p *program) {
	needed := p.needed()
	p.collectives(func(c *stats.Collective) {
		if !needed[c.Op.Result()] {
			p.cure(p.at(c, Warning, "%s, %s, is never read", over(c), each(c.Executions, c.Bytes)), "", "leave it out")
			return
		}
		if row := p.rowRead(c.Op.Result(), c.Op.Int("all_gather_dim")); row != nil && (!p.placedAt(row) || p.weights.Of[c.Op.Result()] != nil) {
			cure := "take the slice before it"
			if p.placedAt(row) {
				cure = instead
			}
			p.cure(p.at(c, Warning, "%s, %s, of which %s is read", over(c), each(c.Executions, c.Bytes), size(row.Result().Type.Bytes())), "", cure)
			return
		}
		loop := p.around(c.Op)
		if loop == nil || !p.onlyNext(c.Op.Result(), loop, needed) {
			return
		}
		n := "the last iteration"
		if t := p.loops[loop].Trips; t != flow.Unknown {
			n = fmt.Sprintf("the last of %s iterations", t)
		}
		f := p.at(c, Note, "%s: what %s of %q gathers, %s, is never read", over(c), n, p.loops[loop].Name, size(c.Bytes))
		p.cure(f, "", "take the last iteration out of the loop, without the gather")
	}, ir.AllGather)
}

// onlyNext reports whether v, which an iteration of loop computes, is only a carry
// to the next iteration, and unused after the last one.
func (p *program) onlyNext(v *ir.Value, loop *ir.Op, needed map[*ir.Value]bool) bool {
	end := loop.Regions[1].Terminator()
	seen := map[*ir.Value]bool{v: true}
	for work := []*ir.Value{v}; len(work) > 0; work = work[1:] {
		x := work[0]
		for _, op := range p.u.Of[x] {
			switch {
			case op == end:
				for k, y := range end.Operands {
					if y == x && needed[loop.Results[k]] {
						return false
					}
				}
			case flow.Moves(op, x) && p.u.In[op] == loop.Regions[1]:
				for _, r := range flow.Moved(op, x) {
					if !seen[r] {
						seen[r] = true
						work = append(work, r)
					}
				}
			default:
				return false
			}
		}
	}
	return true
}

// needed are the values that the results of the program, or ops with effects,
// are computed from. A carry of a loop is needed where its last value is, or
// where a needed value of an iteration is computed from it.
func (p *program) needed() map[*ir.Value]bool {
	set := make(map[*ir.Value]bool)
	var work []*ir.Value
	add := func(vs ...*ir.Value) {
		for _, v := range vs {
			if !set[v] {
				set[v] = true
				work = append(work, v)
			}
		}
	}
	add(p.main.Return().Operands...)
	p.main.Body.Walk(func(op *ir.Op) {
		if effects(op) {
			add(op.Operands...)
		}
		if op.Kind == ir.While {
			add(op.Regions[0].Terminator().Operands...)
		}
	})
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		op := v.Def
		switch loop := p.loopOf(v); {
		case loop != nil:
			add(loop.Operands[v.Index], loop.Regions[1].Terminator().Operands[v.Index])
		case op == nil:
			if around := p.u.Owner[v.Block]; around != nil {
				add(around.Operands...)
			}
		case op.Kind == ir.While:
			add(op.Operands[v.Index], op.Regions[1].Terminator().Operands[v.Index])
		case op.Kind == ir.If, op.Kind == ir.Case:
			add(op.Operands...)
			for _, r := range op.Regions {
				add(r.Terminator().Operands[v.Index])
			}
		default:
			add(reads(op)...)
		}
	}
	return set
}

// effectful are the ops of HLO without a row that do more than compute results.
var effectful = map[string]bool{"hlo.infeed": true, "hlo.outfeed": true, "hlo.recv": true, "hlo.recv-done": true, "hlo.send": true, "hlo.send-done": true}

// effects reports whether op does more than compute its results. Collectives
// do not: a device that has no use for the result need not take part if none has.
func effects(op *ir.Op) bool {
	switch op.Kind {
	case ir.Unknown:
		return effectful[op.Spelling] || !strings.HasPrefix(op.Spelling, "hlo.")
	case ir.CustomCall:
		return op.Bool("has_side_effect")
	}
	return !op.Kind.Has(ir.Pure) && !op.Kind.Has(ir.Collective) && !op.Kind.Has(ir.Terminator)
}
