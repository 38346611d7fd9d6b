package strips

import (
	"slices"

	"ppc/ir"
)

// replace puts the loops of g in the place of its members. A loop stands where the
// last of its roots did; what reads it is moved behind it.
func (g *group) replace(loops [][]*ir.Op) {
	last := make(map[*ir.Op][]int) // loops that stand behind an op
	for level, ops := range loops {
		if ops == nil {
			continue
		}
		for _, op := range slices.Backward(g.b.Ops) {
			if g.role[op] == root && g.level[op] == level && g.wanted[op.Result()] {
				last[op] = append(last[op], level)
				break
			}
		}
	}
	var all []*ir.Op
	for _, op := range g.b.Ops {
		all = append(all, op)
		for _, level := range last[op] {
			for _, made := range loops[level] {
				g.locateIn(g.b, made)
				all = append(all, made)
			}
		}
	}
	(&ir.Block{Ops: all}).Walk(func(op *ir.Op) {
		for i, v := range op.Operands {
			if w := g.sub[v]; w != nil {
				op.Operands[i] = w
			}
		}
	})
	g.b.Ops = g.sorted(g.live(all))
}

// live are the ops but for members that nothing reads any more.
func (g *group) live(ops []*ir.Op) []*ir.Op {
	read := make(map[*ir.Value]bool)
	var out []*ir.Op
	for _, op := range slices.Backward(ops) {
		if g.role[op] != outsider && !read[op.Result()] {
			continue
		}
		for _, v := range reads(op) {
			read[v] = true
		}
		out = append(out, op)
	}
	slices.Reverse(out)
	return out
}

// sorted is ops in an order in which every op follows what it reads: their own, but
// for those that come too early, which follow at once when they can.
func (g *group) sorted(ops []*ir.Op) []*ir.Op {
	missing := make(map[*ir.Value]bool) // what is defined here, but not yet
	for _, op := range ops {
		for _, v := range op.Results {
			missing[v] = true
		}
	}
	var out, late []*ir.Op
	ready := func(op *ir.Op) bool {
		return !slices.ContainsFunc(reads(op), func(v *ir.Value) bool { return missing[v] })
	}
	add := func(op *ir.Op) {
		out = append(out, op)
		for _, v := range op.Results {
			delete(missing, v)
		}
	}
	for _, op := range ops {
		if op.Kind.Has(ir.Terminator) {
			late = append(late, op)
			break
		}
		if !ready(op) {
			late = append(late, op)
			continue
		}
		add(op)
		rest := late[:0]
		for _, op := range late {
			if ready(op) {
				add(op)
			} else {
				rest = append(rest, op)
			}
		}
		late = rest
	}
	for _, op := range late {
		add(op)
	}
	return out
}
