package native

import (
	"fmt"
	"math"
	"slices"

	"ppc/ir"
	"ppc/lower/fuse"
	"ppc/runtime/kernel/scalar"
)

// A Piece is members of a group that are computed by one code, or one member by itself, without code.
type Piece struct {
	Members []int
	Code    *Code
	Arrays  []Array // that Code.Run is given
}

// An Array is what a code reads or writes.
type Array struct {
	Member int        // whose numbers it has, or -1
	View   *fuse.View // of an input, whose numbers it has, or, where a table is for it, whose input it is
	Level  fuse.Level
	Size   int     // of an element, in bytes
	Writes bool    // the code does
	Whole  bool    // it is the view's input
	Table  []int32 // it is a table
	ByRow  bool    // which has an entry for each row, and not for every 8 elements
}

// smallest is how many elements are worth code of their own.
const smallest = 512

// mostMembers bounds a code.
const mostMembers = 256

// Plan divides g into pieces, in an order in which they can be computed: its members one by one where no code is made for it.
func Plan(g *fuse.Group) []Piece {
	if pieces := compiled(g); pieces != nil {
		return pieces
	}
	pieces := make([]Piece, len(g.Members))
	for i := range pieces {
		pieces[i].Members = []int{i}
	}
	return pieces
}

// compiled is Plan where codes are made; nil elsewhere.
func compiled(g *fuse.Group) []Piece {
	if !Available() || g.Elements < smallest || g.Cols%Lanes != 0 || g.Cols > scalar.Longest {
		return nil
	}
	p := &planner{Group: g, readers: make([][]int, len(g.Members)), output: make([]bool, len(g.Members)), in: make([]int, len(g.Members))}
	for _, i := range g.Outputs {
		p.output[i] = true
	}
	for i := range g.Members {
		for _, a := range g.Members[i].Args {
			if a.Member >= 0 {
				p.readers[a.Member] = append(p.readers[a.Member], i)
			}
		}
	}
	var pieces []Piece
	var members []int // of the code at hand, before which come the members that it does not need to wait for
	next := 1
	end := func() bool {
		if len(members) == 0 {
			return true
		}
		piece := p.piece(members)
		pieces, members, next = append(pieces, piece), nil, next+1
		return piece.Code != nil
	}
	for i := range g.Members {
		switch {
		case p.can(i):
			members, p.in[i] = append(members, i), next
			if len(members) == mostMembers && !end() {
				return nil
			}
			continue
		case slices.ContainsFunc(g.Members[i].Args, func(a fuse.Arg) bool { return a.Member >= 0 && p.in[a.Member] == next }):
			if !end() {
				return nil
			}
		}
		pieces = append(pieces, Piece{Members: []int{i}})
	}
	if !end() {
		return nil
	}
	return pieces
}

type planner struct {
	*fuse.Group
	readers [][]int // by member
	output  []bool  // by member
	in      []int   // by member, the code that it is in
}

// can reports whether member i can be part of a code.
func (p *planner) can(i int) bool {
	m := &p.Members[i]
	f32 := func(vs ...*ir.Value) bool {
		return !slices.ContainsFunc(vs, func(v *ir.Value) bool { return v.Type.Elem != ir.F32 })
	}
	numbers := slices.ContainsFunc(m.Args, func(a fuse.Arg) bool { return a.Splat == nil })
	switch op := m.Op; {
	case m.Level != fuse.Full && m.Level != fuse.Row || !numbers:
		return false
	case m.Folds:
		k, _ := fuse.Fold(op)
		return m.Level == fuse.Row && f32(op.Operands...) && (k == ir.Add || k == ir.Maximum)
	case op.Kind == ir.Select:
		return m.Level == fuse.Full && f32(op.Operands[1:]...) && op.Operands[0].Type.Rank() > 0 && m.Args[0].Splat == nil
	case op.Kind == ir.Compare:
		return m.Level == fuse.Full && f32(op.Operands...) && op.Word("compare_type") != "TOTALORDER"
	}
	return Has(m.Op.Kind) && f32(m.Op.Operands...) && f32(m.Op.Results...)
}

// piece makes one code of members.
func (p *planner) piece(members []int) Piece {
	b := &pieceBuilder{planner: p, chain: NewChain(p.Cols), nodes: make(map[int]Node), loads: make(map[string]Node), spread: make(map[Node]Node), arrays: make(map[string]int)}
	b.Members = members
	for _, i := range members {
		m := &p.Group.Members[i]
		level := m.Level
		if m.Folds {
			level = fuse.Full
		}
		var x []Node
		for j := range m.Args {
			if m.Folds && j > 0 {
				break
			}
			x = append(x, b.arg(m, j, level))
		}
		var n Node
		switch k := m.Op.Kind; {
		case m.Folds:
			k, _ := fuse.Fold(m.Op)
			n = b.chain.Fold(x[0], k == ir.Maximum, float32(m.Args[1].Splat.Float(0)))
		case k == ir.Select:
			n = b.chain.Select(x[0], x[1], x[2])
		case k == ir.Compare:
			n = b.chain.Compare(m.Op.Word("comparison_direction"), x[0], x[1])
		case len(x) == 1:
			n = b.chain.Unary(k, x[0])
		default:
			n = b.chain.Binary(k, x[0], x[1])
		}
		b.nodes[i] = n
	}
	for _, i := range members {
		outside := func(j int) bool { return p.in[j] != p.in[i] }
		if p.output[i] || slices.ContainsFunc(p.readers[i], outside) {
			m := &p.Group.Members[i]
			b.chain.Store(b.nodes[i], b.array(Array{Member: i, Level: m.Level, Size: m.Op.Result().Type.Elem.Size(), Writes: true}))
		}
	}
	b.Code = b.chain.Compile()
	return b.Piece
}

type pieceBuilder struct {
	*planner
	Piece
	chain  *Chain
	nodes  map[int]Node // of members
	loads  map[string]Node
	spread map[Node]Node
	arrays map[string]int
}

func (b *pieceBuilder) key(a Array) string {
	key := fmt.Sprint(a.Member, a.Whole, a.Level, a.Writes)
	if a.View != nil {
		m := a.View.Merged()
		key = fmt.Sprint(key, slices.Index(b.Inputs, m.Value), m.Offset, m.Shape, m.Strides)
	}
	return key
}

// array is the number of array a in the chain.
func (b *pieceBuilder) array(a Array) int {
	i, ok := b.arrays[b.key(a)]
	if !ok {
		i = b.chain.Array()
		b.arrays[b.key(a)] = i
		b.Arrays = append(b.Arrays, a)
	}
	return i
}

// arg is argument j of m at a level.
func (b *pieceBuilder) arg(m *fuse.Member, j int, level fuse.Level) Node {
	a, elem := m.Args[j], m.Op.Operands[j].Type.Elem
	if a.Splat != nil {
		return b.chain.Const(float32(a.Splat.Float(0)))
	}
	n, ok := b.nodes[a.Member]
	if a.Member < 0 || !ok {
		at := Array{Member: a.Member, Level: level, Size: elem.Size()}
		if at.View = a.View; a.Member >= 0 {
			at.View, at.Level = nil, b.Group.Members[a.Member].Level
		}
		n = b.load(at, elem == ir.I1)
	}
	if !a.Spread {
		return n
	}
	return b.spreadOf(n)
}

func (b *pieceBuilder) spreadOf(x Node) Node {
	n, ok := b.spread[x]
	if !ok {
		n = b.chain.Spread(x)
		b.spread[x] = n
	}
	return n
}

// load is the numbers of an array for the members.
func (b *pieceBuilder) load(a Array, condition bool) Node {
	n, ok := b.loads[b.key(a)]
	if ok {
		return n
	}
	switch layout := b.layoutOf(&a); {
	case layout != Dense:
		key := b.key(a)
		table := b.table(a)
		a.Whole = true
		n = b.chain.LoadBy(b.array(a), table, layout, condition)
		b.loads[key] = n
		return n
	case a.Level == fuse.Row:
		n = b.chain.Load(b.array(a), fuse.Row, condition)
	default:
		n = b.chain.Load(b.array(a), fuse.Full, condition)
	}
	b.loads[b.key(a)] = n
	return n
}

// mostOfTable bounds the elements that a table has entries for by eights.
const mostOfTable = 1 << 15

// layoutOf is how an array can be read by a table; Dense where it is not.
func (b *pieceBuilder) layoutOf(a *Array) Layout {
	if a.View == nil || a.Level != fuse.Full || a.View.Dense() || a.View.Value.Type.NumElements() > math.MaxInt32/a.Size {
		return Dense
	}
	m := a.View.Merged()
	k, together := len(m.Shape)-1, b.Cols
	if together == 0 {
		together = lanes
		if n := a.View.Elements(); n > mostOfTable || n%lanes != 0 {
			return Dense
		}
	}
	switch {
	case k < 0:
		return Dense
	case m.Strides[k] == 0 && m.Shape[k]%together == 0:
		return Numbers
	case m.Strides[k] == 1 && m.Shape[k]%together == 0:
		return Vectors
	case m.Strides[k] == 1 && m.Shape[k]%8 == 0 && b.Cols == 0 && a.Size == 4:
		return Halves
	}
	return Dense
}

// table is the array of the offsets of a's view.
func (b *pieceBuilder) table(a Array) int {
	key := "table " + b.key(a)
	i, ok := b.arrays[key]
	if !ok {
		m, step := a.View.Merged(), b.Cols
		if step == 0 {
			step = 8
		}
		table := make([]int32, a.View.Elements()/step)
		for e := range table {
			at, rest := m.Offset, e*step
			for d := len(m.Shape) - 1; d >= 0; d-- {
				at += rest % m.Shape[d] * m.Strides[d]
				rest /= m.Shape[d]
			}
			table[e] = int32(at * a.Size)
		}
		i = b.chain.Array()
		b.arrays[key] = i
		b.Arrays = append(b.Arrays, Array{Member: -1, Table: table, ByRow: b.Cols > 0})
	}
	return i
}
