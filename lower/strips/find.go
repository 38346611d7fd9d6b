package strips

import (
	"slices"

	"ppc/ir"
)

// A role is why an op is a member of a group.
type role int

const (
	outsider role = iota
	maker         // its result is large, and exists in strips alone
	root          // it makes something small of large values
	between       // small, on the way from a root to a member
)

// A group is ops of a block that share large values: those that make and read them.
type group struct {
	*miner
	b      *ir.Block
	users  map[*ir.Value][]*ir.Op // ops of b, for what is in their regions too
	unkept map[*ir.Value]bool     // what contractions are behind: made in strips, never kept
	ops    []*ir.Op               // members in order; what makes captured values first
	role   map[*ir.Op]role

	// level is in which loop a member is computed: one later than what it needs of
	// another loop by way of ops that are no members.
	level map[*ir.Op]int
	after map[*ir.Op]int // of others: the last loop that they depend on; -1
	last  int            // loop

	dims   []*dim
	wanted map[*ir.Value]bool      // results of roots that are put together
	sub    map[*ir.Value]*ir.Value // and what has them
}

// find returns the first group of b that has a contraction; nil where there is none.
func (k *miner) find(b *ir.Block) *group {
	users := usersIn(b)
	large := k.avoidable(b, users)
	parts := newParts()
	for _, op := range b.Ops {
		parts.join(touched(op, large))
	}
	seen := make(map[*ir.Value]bool)
	for _, op := range b.Ops {
		if op.Kind != ir.DotGeneral {
			continue
		}
		for _, v := range touched(op, large) {
			if p := parts.of(v); !seen[p] {
				seen[p] = true
				return k.group(b, users, large, parts, p)
			}
		}
	}
	return nil
}

// usersIn says which ops of b read a value, themselves or in their regions.
func usersIn(b *ir.Block) map[*ir.Value][]*ir.Op {
	users := make(map[*ir.Value][]*ir.Op)
	for _, op := range b.Ops {
		for _, v := range reads(op) {
			users[v] = append(users[v], op)
		}
	}
	return users
}

func reads(op *ir.Op) []*ir.Value {
	if len(op.Regions) == 0 {
		return op.Operands
	}
	return append(slices.Clip(op.Operands), op.Captures()...)
}

// avoidable are the large values of b that only ops read which can be computed strip
// by strip, and whose results are small or large values of the same sort.
func (k *miner) avoidable(b *ir.Block, users map[*ir.Value][]*ir.Op) map[*ir.Value]bool {
	out := make(map[*ir.Value]bool)
	for _, op := range slices.Backward(b.Ops) {
		if !supported(op) || !k.large(op.Result()) || k.kept[op.Result()] || k.cheap(op.Result()) {
			continue
		}
		fits := true
		for _, u := range users[op.Result()] {
			fits = fits && supported(u) && (!k.large(u.Result()) || out[u.Result()])
		}
		out[op.Result()] = fits
	}
	return out
}

// touched are the values of op that are in large.
func touched(op *ir.Op, large map[*ir.Value]bool) []*ir.Value {
	var out []*ir.Value
	for _, vs := range [][]*ir.Value{op.Results, op.Operands} {
		for _, v := range vs {
			if large[v] {
				out = append(out, v)
			}
		}
	}
	return out
}

// A parts is values in classes.
type parts map[*ir.Value]*ir.Value

func newParts() parts { return make(parts) }

func (p parts) of(v *ir.Value) *ir.Value {
	for p[v] != nil && p[v] != v {
		v = p[v]
	}
	return v
}

func (p parts) join(vs []*ir.Value) {
	for _, v := range vs {
		p[p.of(v)] = p.of(vs[0])
	}
}

// group is the group of the large values of the class p.
func (k *miner) group(b *ir.Block, users map[*ir.Value][]*ir.Op, large map[*ir.Value]bool, classes parts, p *ir.Value) *group {
	g := &group{miner: k, b: b, users: users, unkept: make(map[*ir.Value]bool), role: make(map[*ir.Op]role), level: make(map[*ir.Op]int), after: make(map[*ir.Op]int)}
	for _, op := range b.Ops {
		for _, v := range touched(op, large) {
			if classes.of(v) != p {
				continue
			}
			g.unkept[v] = true
			g.role[op] = root
			if large[op.Result()] {
				g.role[op] = maker
			}
		}
	}
	for _, op := range b.Ops {
		if g.role[op] != outsider {
			for _, v := range op.Operands {
				g.addCheap(v)
			}
		}
	}
	for _, op := range b.Ops {
		if g.role[op] != outsider {
			g.ops = append(g.ops, op)
		}
	}
	g.addBetween()
	g.findLevels()
	return g
}

// addCheap makes what computes v a member, if v is cheap, and large or made of what is.
func (g *group) addCheap(v *ir.Value) {
	op := v.Def
	if op == nil || g.unkept[v] || g.role[op] != outsider || !g.limits.large(v) && !slices.ContainsFunc(op.Operands, g.limits.large) || !g.cheap(v) {
		return
	}
	for _, x := range op.Operands {
		g.addCheap(x)
	}
	g.role[op] = maker
	if g.of[v] != g.b {
		g.ops = append(g.ops, op)
	}
}

// addBetween finds the small ops between roots and other members.
func (g *group) addBetween() {
	reached := make(map[*ir.Op]bool)
	for _, op := range g.b.Ops {
		if g.role[op] != outsider || !small(op) {
			continue
		}
		reached[op] = slices.ContainsFunc(op.Operands, func(v *ir.Value) bool {
			return v.Def != nil && (g.role[v.Def] == root || reached[v.Def])
		})
	}
	added := false
	for _, op := range slices.Backward(g.b.Ops) {
		if reached[op] && slices.ContainsFunc(g.users[op.Result()], func(u *ir.Op) bool { return g.role[u] != outsider }) {
			g.role[op] = between
			added = true
		}
	}
	if !added {
		return
	}
	outer := slices.DeleteFunc(g.ops, func(op *ir.Op) bool { return g.of[op.Result()] == g.b })
	g.ops = slices.Clip(outer)
	for _, op := range g.b.Ops {
		if g.role[op] != outsider {
			g.ops = append(g.ops, op)
		}
	}
}

// small reports whether op may be computed in every loop that needs it.
func small(op *ir.Op) bool {
	return supported(op) && op.Kind != ir.DotGeneral && op.Kind != ir.Reduce && op.Kind != ir.Constant
}

// findLevels counts the loops: a root is computed after what its operands depend
// on by way of ops that are no members.
func (g *group) findLevels() {
	for _, op := range g.ops { // of other blocks, to begin with
		if g.of[op.Result()] != g.b {
			g.level[op] = 0
		}
	}
	for _, op := range g.b.Ops {
		if g.role[op] == outsider {
			g.after[op] = -1
			for _, v := range reads(op) {
				g.after[op] = max(g.after[op], g.ended(v))
			}
			continue
		}
		for _, v := range op.Operands {
			if d := v.Def; d != nil && g.role[d] != outsider {
				g.level[op] = max(g.level[op], g.level[d])
			} else {
				g.level[op] = max(g.level[op], g.ended(v)+1)
			}
		}
		g.last = max(g.last, g.level[op])
	}
}

// ended is the last loop that all of v depends on.
func (g *group) ended(v *ir.Value) int {
	d := v.Def
	switch {
	case d == nil || g.of[v] != g.b:
		return -1
	case g.role[d] != outsider:
		return g.level[d]
	}
	return g.after[d]
}
