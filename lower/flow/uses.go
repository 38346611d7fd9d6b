package flow

import "ppc/ir"

// Uses is the uses of the values of a function, and the blocks that its ops are in.
type Uses struct {
	Of    map[*ir.Value][]*ir.Op // each once, in program order
	In    map[*ir.Op]*ir.Block   // the block that an op is in
	Owner map[*ir.Block]*ir.Op   // the op whose region a block is
}

// NewUses walks f once.
func NewUses(f *ir.Func) *Uses {
	u := &Uses{Of: make(map[*ir.Value][]*ir.Op), In: make(map[*ir.Op]*ir.Block), Owner: make(map[*ir.Block]*ir.Op)}
	u.block(f.Body)
	return u
}

func (u *Uses) block(b *ir.Block) {
	for _, op := range b.Ops {
		u.In[op] = b
		for _, v := range op.Operands {
			if of := u.Of[v]; len(of) == 0 || of[len(of)-1] != op {
				u.Of[v] = append(of, op)
			}
		}
		for _, r := range op.Regions {
			u.Owner[r] = op
			u.block(r)
		}
	}
}

// LaterLoop is the first loop that reads v, a slice of it, or a result of a loop
// around that is computed so from it; nil if there is none.
func (u *Uses) LaterLoop(v *ir.Value) *ir.Op {
	seen := map[*ir.Value]bool{v: true}
	for work := []*ir.Value{v}; len(work) > 0; work = work[1:] {
		x := work[0]
		for _, op := range u.Of[x] {
			var next []*ir.Value
			switch at := u.Beside(op, x); {
			case at.Kind == ir.While:
				return at
			case at != op: // inside of a branch
			case Moves(op, x):
				next = Moved(op, x)
			case op.Kind.Has(ir.Terminator):
				next = u.HandedOn(op, x)
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

// Beside is op, or the op around it that is in the block that defines v.
func (u *Uses) Beside(op *ir.Op, v *ir.Value) *ir.Op {
	home := v.Block
	if v.Def != nil {
		home = u.In[v.Def]
	}
	for u.In[op] != home && u.Owner[u.In[op]] != nil {
		op = u.Owner[u.In[op]]
	}
	return op
}

// HandedOn are the results that a terminator makes of v.
func (u *Uses) HandedOn(op *ir.Op, v *ir.Value) []*ir.Value {
	around := u.Owner[u.In[op]]
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
