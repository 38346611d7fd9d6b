package native

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ppc/lower/fuse"
	"ppc/runtime/kernel/scalar"
)

// A Layout says where the numbers of a node are in memory. All but the first are at offsets in bytes that a table has, 4
// bytes each: for every row, or for every 8 elements where there are no rows.
type Layout int

const (
	Dense   Layout = iota // one after the other, by element or by row
	Vectors               // those of a row, or 16, are together
	Halves                // 8 are together; there are no rows
	Numbers               // those of a row, or 16, are one number
)

// A Node is a vector of numbers or, where it is a condition, of booleans: bytes of 0 or 1 in memory.
type Node int

// Kinds of nodes.
type kind int

const (
	isLoad kind = iota
	isConst
	isCall
	isSpread
	isFold
)

type node struct {
	kind      kind
	level     fuse.Level // Full or Row
	condition bool
	layout    Layout
	array     int // that it is loaded from
	table     int // the array of its offsets, where the layout says so
	bits      uint32
	call      func(c *code, x []value) value
	name      string // of call: the same for the same function
	args      []Node
	init      Node  // of a fold
	into      []int // arrays that it is stored to
	phase     int   // the loop in which an element's number is computed, or after which a row's is
}

// A Chain is functions one after the other.
type Chain struct {
	cols    int
	nodes   []node
	arrays  int
	sizes   []int  // by array, of an element in bytes
	written []bool // by array
}

// Lanes is the number of chains in which a row is folded, of whose length it is a divisor.
const Lanes = scalar.Lanes

// NewChain begins a chain over rows of so many elements, a multiple of [Lanes]; 0 is that there are no rows.
func NewChain(cols int) *Chain { return &Chain{cols: cols} }

func (c *Chain) add(n node) Node {
	if n.level == fuse.Row && n.kind != isFold {
		n.phase = beforeLoops
	}
	for _, a := range n.args {
		switch x := &c.nodes[a]; {
		case x.kind == isConst:
		case n.kind == isSpread:
			n.phase = max(n.phase, x.phase+1)
		default:
			n.phase = max(n.phase, x.phase)
		}
	}
	c.nodes = append(c.nodes, n)
	return Node(len(c.nodes) - 1)
}

// beforeLoops is the phase of a row's numbers that do not follow from its elements.
const beforeLoops = -1

// Array is one more array that [Code.Run] is given, by its index.
func (c *Chain) Array() int {
	c.arrays++
	c.sizes, c.written = append(c.sizes, 4), append(c.written, false)
	return c.arrays - 1
}

// Load is the numbers of an array, one after the other.
func (c *Chain) Load(array int, level fuse.Level, condition bool) Node {
	c.has(array, condition)
	return c.add(node{kind: isLoad, array: array, level: level, condition: condition})
}

// LoadBy is the numbers of an array at the offsets of a table.
func (c *Chain) LoadBy(array, table int, layout Layout, condition bool) Node {
	c.has(array, condition)
	return c.add(node{kind: isLoad, array: array, table: table, layout: layout, condition: condition})
}

// Const is one number.
func (c *Chain) Const(x float32) Node { return c.add(node{kind: isConst, bits: math.Float32bits(x)}) }

// Spread is x, a row's number, for each element.
func (c *Chain) Spread(x Node) Node { return c.add(node{kind: isSpread, args: []Node{x}}) }

// Fold is the sum of each row of x, or, with largest, its maximum, folded into init.
func (c *Chain) Fold(x Node, largest bool, init float32) Node {
	first := c.Const(init)
	fold, name := (*code).add, "sum"
	neutral := float32(math.Copysign(0, -1))
	if largest {
		fold, name, neutral = (*code).max, "maximum", float32(math.Inf(-1))
	}
	return c.add(node{kind: isFold, level: fuse.Row, args: []Node{x}, init: first, bits: math.Float32bits(neutral), name: name, call: func(m *code, v []value) value { return fold(m, v[0], v[1]) }})
}

// Store has the numbers of x written to an array.
func (c *Chain) Store(x Node, array int) {
	c.has(array, c.nodes[x].condition)
	c.written[array] = true
	c.nodes[x].into = append(c.nodes[x].into, array)
}

// has notes what an array has.
func (c *Chain) has(array int, condition bool) {
	if condition {
		c.sizes[array] = 1
	}
}

// mayTake reports whether array to may be the memory of array from: what is written to an element of it is
// computed after the last use of the element of from.
func (c *Chain) mayTake(to, from int) bool {
	var written *node
	at := 0
	for i := range c.nodes {
		if slices.Contains(c.nodes[i].into, to) {
			written, at = &c.nodes[i], i
		}
	}
	if written == nil || written.level != fuse.Full {
		return false
	}
	for i := range c.nodes {
		for _, a := range c.nodes[i].args {
			if x := &c.nodes[a]; x.kind != isLoad || x.array != from {
				continue
			}
			if n := &c.nodes[i]; n.kind == isSpread || n.phase > written.phase || n.phase == written.phase && i > at {
				return false
			}
		}
	}
	return true
}

// key is the same for chains that are the same.
func (c *Chain) key() string {
	var b strings.Builder
	fmt.Fprint(&b, c.cols, c.arrays)
	for _, n := range c.nodes {
		n.call = nil
		fmt.Fprint(&b, n)
	}
	return b.String()
}
