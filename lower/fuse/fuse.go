// Package fuse says which ops of a block are computed together: a group of
// elementwise ops, of what moves their operands and of reductions of what they
// give, whose values in between exist a tile at a time.
//
// The elements of a group are numbered in row-major order; where it reduces, they
// are rows of [Group.Cols]. A member gives a number for every element or for
// every row. [Plan] changes no op and no value: with every group computed where
// its last op stands, the program computes what it did, in the same order of
// roundings.
package fuse

import (
	"slices"

	"ppc/ir"
)

// A Level says how many numbers a member has.
type Level int

const (
	Full  Level = iota // one for each element
	Row                // one for each row
	Cols               // one for each column: folded over the rows, complete at the end
	Whole              // one, folded over all elements, complete at the end
)

// A Group is ops that are computed together.
type Group struct {
	Members  []Member // in order
	Elements int
	Cols     int         // elements of a row; 0 where there are no rows
	Inputs   []*ir.Value // that members read, each once
	Outputs  []int       // members that others than the group read
}

// A Member is an op of a group. Row members read arguments that are rows; a Row
// member that folds reads full ones.
type Member struct {
	Op    *ir.Op
	Level Level
	Folds bool // it is a reduction
	Args  []Arg
}

// An Arg is what a member reads: another member, or a view of an input, or one
// number for all.
type Arg struct {
	Member int  // -1 where it is none
	Spread bool // the member gives a number for each row, here wanted for each element
	View   *View
	Splat  *ir.Literal
}

// A Node is an op that is computed by itself, or a group in place of its ops.
type Node struct {
	Op    *ir.Op
	Group *Group
}

// Limits of what is fused. What has fewer elements than smallest is quickly done
// by itself. A row is computed at once, so that longest bounds a tile.
const (
	smallest = 16
	longest  = 16384
)

// Plan groups ops, those of a block in the order in which they are computed. The groups
// stand where their last op does; ops that nothing but groups reads through views are
// left out.
func Plan(ops []*ir.Op) []Node {
	if !slices.ContainsFunc(ops, fusable) { // and so nothing is read through
		nodes := make([]Node, len(ops))
		for i, op := range ops {
			nodes[i].Op = op
		}
		return nodes
	}
	p := newPlanner(ops)
	for i, op := range ops {
		p.visit(i, op)
	}
	return p.nodes()
}

// An open group takes more members until another op reads one of them.
type open struct {
	ops    []*ir.Op // in order
	level  map[*ir.Op]Level
	n      int
	cols   int
	flat   bool // has folds over all elements, and can have no rows
	closed bool
	last   int // place in the block
	into   *open
}

func (g *open) root() *open {
	for g.into != nil {
		g = g.into
	}
	return g
}

// A planner is a block at work.
type planner struct {
	ops   []*ir.Op
	users map[*ir.Value][]*ir.Op
	views map[*ir.Value]*View // of values that are read through, by groups alone
	group map[*ir.Op]*open
	place map[*ir.Op]int
}

func newPlanner(ops []*ir.Op) *planner {
	p := &planner{ops: ops, users: make(map[*ir.Value][]*ir.Op), views: make(map[*ir.Value]*View), group: make(map[*ir.Op]*open), place: make(map[*ir.Op]int)}
	for i, op := range ops {
		p.place[op] = i
		for _, v := range reads(op) {
			p.users[v] = append(p.users[v], op)
		}
	}
	p.findViews()
	return p
}

// reads are the values that op uses, regions included.
func reads(op *ir.Op) []*ir.Value {
	if len(op.Regions) == 0 {
		return op.Operands
	}
	return append(slices.Clip(op.Operands), op.Captures()...)
}

// findViews decides which ops are read through: those that move elements, if
// everything that reads them is fused, or read through as well.
func (p *planner) findViews() {
	composed := make(map[*ir.Value]*View)
	for _, op := range p.ops {
		if !moves(op) {
			continue
		}
		from := composed[op.Operands[0]]
		if from == nil {
			from = full(op.Operands[0])
		}
		if v := from.through(op); v != nil {
			composed[op.Result()] = v
		} else if v := full(op.Operands[0]).through(op); v != nil {
			composed[op.Result()] = v
		}
	}
	for _, op := range slices.Backward(p.ops) {
		if !moves(op) || composed[op.Result()] == nil {
			continue
		}
		v := op.Result()
		through := len(p.users[v]) > 0 && (op.Kind == ir.Reshape || composed[v].read())
		for _, u := range p.users[v] {
			through = through && (fusable(u) && !isReduce(u) || p.views[result(u)] != nil)
		}
		if through {
			p.views[v] = composed[v]
		}
	}
	// What is read through reads through what is before it only where that is too.
	for _, op := range p.ops {
		if len(op.Results) != 1 || p.views[op.Result()] == nil {
			continue
		}
		from := p.views[op.Operands[0]]
		if from == nil {
			from = full(op.Operands[0])
		}
		p.views[op.Result()] = from.through(op)
		if p.views[op.Result()] == nil || op.Kind != ir.Reshape && !p.views[op.Result()].read() {
			delete(p.views, op.Result())
			for in := op.Operands[0]; p.views[in] != nil; in = in.Def.Operands[0] {
				delete(p.views, in)
			}
		}
	}
}

func result(op *ir.Op) *ir.Value {
	if len(op.Results) != 1 {
		return nil
	}
	return op.Results[0]
}

// moves reports whether op may be computed as a view of its operand.
func moves(op *ir.Op) bool {
	if views[op.Kind] == nil {
		return false
	}
	t := op.Result().Type
	return static(t) && static(op.Operands[0].Type) && t.NumElements() >= smallest && !op.Attrs.Has(ir.KeyDontCare)
}

func static(t *ir.Type) bool { return t.IsTensor() && t.IsStatic() }

// fusable reports whether op may be a member.
func fusable(op *ir.Op) bool {
	if len(op.Results) != 1 || op.Attrs.Has(ir.KeyDontCare) {
		return false
	}
	if isReduce(op) {
		return true
	}
	t := op.Result().Type
	if !op.Kind.Has(ir.Elementwise) || op.Kind.Has(ir.Collective) || len(op.Regions) > 0 || len(op.Operands) == 0 || len(op.Operands) > 3 {
		return false
	}
	if !static(t) || t.NumElements() < smallest || t.Elem.IsComplex() {
		return false
	}
	for _, v := range op.Operands {
		if !static(v.Type) || v.Type.NumElements() != t.NumElements() || v.Type.Elem.IsComplex() {
			return false
		}
	}
	return !copies(op)
}

// copies reports whether op changes nothing.
func copies(op *ir.Op) bool {
	return op.Kind == ir.Convert && op.Operands[0].Type.Elem == op.Result().Type.Elem
}

// folds are the ops that reductions of groups have in their regions.
var folds = []ir.Kind{ir.Add, ir.Maximum}

// isReduce reports whether op folds floats by one of folds.
func isReduce(op *ir.Op) bool {
	if op.Kind != ir.Reduce || len(op.Operands) != 2 || len(op.Results) != 1 || op.Attrs.Has(ir.KeyDontCare) {
		return false
	}
	in := op.Operands[0].Type
	if !static(in) || in.NumElements() < smallest || in.Elem != ir.F32 && in.Elem != ir.F64 || splat(op.Operands[1]) == nil || op.Operands[1].Type.Elem != in.Elem || op.Result().Type.Elem != in.Elem {
		return false
	}
	_, ok := Fold(op)
	return ok
}

// Fold is the op that a reduction folds by.
func Fold(op *ir.Op) (ir.Kind, bool) {
	b := op.Regions[0]
	if len(b.Ops) != 2 || len(b.Args) != 2 {
		return 0, false
	}
	f, ret := b.Ops[0], b.Ops[1]
	if !slices.Contains(folds, f.Kind) || len(ret.Operands) != 1 || ret.Operands[0].Def != f || f.Operands[0] == f.Operands[1] {
		return 0, false
	}
	for _, v := range f.Operands {
		if v.Block != b {
			return 0, false
		}
	}
	return f.Kind, true
}

// splat is the literal of a constant whose elements are all the same and are those of v, which may be
// a broadcast of it, in this block or before it; nil where v is no such thing.
func splat(v *ir.Value) *ir.Literal {
	for v.Def != nil && (v.Def.Kind == ir.BroadcastInDim || v.Def.Kind == ir.Reshape) && !v.Def.Attrs.Has(ir.KeyDontCare) {
		v = v.Def.Operands[0]
	}
	if v.Def == nil || v.Def.Kind != ir.Constant {
		return nil
	}
	if l := v.Def.Literal("value"); l != nil && (l.IsSplat() || l.Type.NumElements() == 1) {
		return l
	}
	return nil
}
