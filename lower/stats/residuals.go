package stats

import (
	"sync"

	"ppc/ir"
	"ppc/lower/flow"
)

// residuals lists the stacks of rows that loops write and later loops read.
func (s *Stats) residuals(n *nests, order []*ir.Func) {
	for _, f := range order {
		u := sync.OnceValue(func() *flow.Uses { return flow.NewUses(f) }) // where there are loops
		f.Body.Walk(func(op *ir.Op) {
			if op.Kind != ir.While {
				return
			}
			for k := range op.Operands {
				if r := residualOf(n, u(), op, k); r != nil {
					s.Residuals = append(s.Residuals, r)
				}
			}
		})
	}
}

// residualOf is carry k of a loop, if it is a residual, or nil. The op that
// writes the rows says why it is there, if differentiate made it.
func residualOf(n *nests, u *flow.Uses, op *ir.Op, k int) *Residual {
	write := rowWrite(n, u, op, k)
	if write == nil {
		return nil
	}
	r := &Residual{Op: write, While: op, Carry: k, Array: arrayOf(carryName(op, k), op.Results[k]), Loop: n.path[op]}
	if d, ok := write.Attrs.Get(ir.KeyResidual).(ir.Dict); ok {
		r.Name, r.Why = ir.Attrs(d).Str("name"), ir.Attrs(d).Str("why")
		return r
	}
	if by := u.LaterLoop(op.Results[k]); by != nil {
		r.Why = "read by " + n.path[by]
		return r
	}
	return nil
}

// rowWrite is the op in which each iteration of a loop writes its row of carry
// k: nothing else looks at the carry, it has as many rows as the loop has
// iterations, and the row is one that the counter chooses. nil if that is not so.
func rowWrite(n *nests, u *flow.Uses, op *ir.Op, k int) *ir.Op {
	body := op.Regions[1]
	a, write := body.Args[k], body.Terminator().Operands[k].Def
	if write == nil || write.Kind != ir.DynamicUpdateSlice || write.Operands[0] != a || len(u.Of[a]) != 1 || len(u.Of[op.Regions[0].Args[k]]) > 0 {
		return nil
	}
	dim := -1
	row, stack := write.Operands[1].Type.Shape, a.Type.Shape
	for d := range stack {
		switch {
		case row[d] == stack[d] && (stack[d] != 1 || n.trips[op] != 1):
		case row[d] == 1 && Count(stack[d]) == n.trips[op] && dim < 0:
			dim = d
		default:
			return nil
		}
	}
	counter, _ := flow.CounterOf(op)
	if dim < 0 || counter < 0 || !flow.Follows(write.Operands[2+dim], body.Args[counter]) {
		return nil
	}
	return write
}
