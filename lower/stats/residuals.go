package stats

import (
	"slices"

	"ppc/ir"
)

// residuals lists the stacks of rows that loops write and later loops read.
func (s *Stats) residuals(n *nests, order []*ir.Func) {
	for _, f := range order {
		u := newUses(f)
		f.Body.Walk(func(op *ir.Op) {
			if op.Kind != ir.While {
				return
			}
			for k := range op.Operands {
				if r := residualOf(n, u, op, k); r != nil {
					s.Residuals = append(s.Residuals, r)
				}
			}
		})
	}
}

// residualOf is carry k of a loop, if it is a residual, or nil. The op that
// writes the rows says why it is there, if differentiate made it.
func residualOf(n *nests, u *uses, op *ir.Op, k int) *Residual {
	write := rowWrite(n, u, op, k)
	if write == nil {
		return nil
	}
	r := &Residual{Array: arrayOf(carryName(op, k), op.Results[k].Type), Loop: n.path[op]}
	if d, ok := write.Attrs.Get("pp.residual").(ir.Dict); ok {
		r.Name, r.Why = ir.Attrs(d).Str("name"), ir.Attrs(d).Str("why")
		return r
	}
	if by := u.laterLoop(op.Results[k]); by != nil {
		r.Why = "read by " + n.path[by]
		return r
	}
	return nil
}

// rowWrite is the op in which each iteration of a loop writes its row of carry
// k: nothing else looks at the carry, it has as many rows as the loop has
// iterations, and the row is one that the counter chooses. nil if that is not so.
func rowWrite(n *nests, u *uses, op *ir.Op, k int) *ir.Op {
	body := op.Regions[1]
	a, write := body.Args[k], body.Terminator().Operands[k].Def
	if write == nil || write.Kind != ir.DynamicUpdateSlice || write.Operands[0] != a || len(u.of[a]) != 1 || len(u.of[op.Regions[0].Args[k]]) > 0 {
		return nil
	}
	dim := -1
	row, whole := write.Operands[1].Type.Shape, a.Type.Shape
	for d := range whole {
		switch {
		case row[d] == whole[d] && (whole[d] != 1 || n.trips[op] != 1):
		case row[d] == 1 && Count(whole[d]) == n.trips[op] && dim < 0:
			dim = d
		default:
			return nil
		}
	}
	counter, _ := counterOf(op)
	if dim < 0 || counter < 0 || !follows(write.Operands[2+dim], body.Args[counter]) {
		return nil
	}
	return write
}

// follows reports whether v is computed from the counter of the loop and from
// no other of its carries.
func follows(v, counter *ir.Value) bool {
	seen := map[*ir.Value]bool{v: true}
	work := []*ir.Value{v}
	found := false
	for len(work) > 0 {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		switch {
		case x == counter:
			found = true
		case x.Block == counter.Block:
			return false
		case x.Def != nil:
			for _, y := range x.Def.Operands {
				if !seen[y] {
					seen[y] = true
					work = append(work, y)
				}
			}
		}
	}
	return found
}

// uses says who reads the values of a function.
type uses struct {
	of    map[*ir.Value][]*ir.Op
	in    map[*ir.Op]*ir.Block // the block that an op stands in
	owner map[*ir.Block]*ir.Op // the op whose region a block is
}

func newUses(f *ir.Func) *uses {
	u := &uses{of: make(map[*ir.Value][]*ir.Op), in: make(map[*ir.Op]*ir.Block), owner: make(map[*ir.Block]*ir.Op)}
	u.block(f.Body)
	return u
}

func (u *uses) block(b *ir.Block) {
	for _, op := range b.Ops {
		u.in[op] = b
		for i, v := range op.Operands {
			if !slices.Contains(op.Operands[:i], v) {
				u.of[v] = append(u.of[v], op)
			}
		}
		for _, r := range op.Regions {
			u.owner[r] = op
			u.block(r)
		}
	}
}

// laterLoop is the first loop that reads v, what is chosen from it, or what
// the loops around hand out of it; nil where none does.
func (u *uses) laterLoop(v *ir.Value) *ir.Op {
	seen := map[*ir.Value]bool{v: true}
	for work := []*ir.Value{v}; len(work) > 0; work = work[1:] {
		x := work[0]
		for _, op := range u.of[x] {
			var next []*ir.Value
			switch at := u.beside(op, x); {
			case at.Kind == ir.While:
				return at
			case at != op: // inside of a branch
			case moves(op, x):
				next = op.Results
			case op.Kind.Has(ir.Terminator):
				next = u.handedOn(op, x)
			}
			for _, y := range next {
				if !seen[y] {
					seen[y] = true
					work = append(work, y)
				}
			}
		}
	}
	return nil
}

// beside is op, or the op around it, that stands in the block that defines v.
func (u *uses) beside(op *ir.Op, v *ir.Value) *ir.Op {
	home := v.Block
	if v.Def != nil {
		home = u.in[v.Def]
	}
	for u.in[op] != home && u.owner[u.in[op]] != nil {
		op = u.owner[u.in[op]]
	}
	return op
}

// handedOn are the results that a terminator makes of v.
func (u *uses) handedOn(op *ir.Op, v *ir.Value) []*ir.Value {
	around := u.owner[u.in[op]]
	if around == nil {
		return nil
	}
	var out []*ir.Value
	for i, x := range op.Operands {
		if x == v && i < len(around.Results) {
			out = append(out, around.Results[i])
		}
	}
	return out
}
