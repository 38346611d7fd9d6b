package kernel

import (
	"slices"
	"unsafe"

	"ppc/lower/fuse"
	"ppc/runtime/kernel/native"
)

// A chain is instructions of a Fused in machine code.
type chain struct {
	code   *native.Code
	arrays []chainArray
}

// A chainArray is a value, for the tile at hand; or an operand; or a table.
type chainArray struct {
	value  int // -1 where it is none
	source int
	table  []int32 // with an entry for each row, or for every 8 elements
	byRow  bool
}

// chainTile is the number of elements of a tile where a chain is all, which keeps nothing of a tile. It cannot be
// preempted.
const chainTile = 1 << 16

// compiled adds a chain.
func (b *fusedBuilder) compiled(p *native.Piece) {
	c := &chain{code: p.Code}
	in := instr{chain: c}
	for _, a := range p.Arrays {
		at := chainArray{value: -1}
		switch {
		case a.Table != nil:
			at.table, at.byRow = a.Table, a.ByRow
		case a.Writes:
			at.value = b.value(fusedValue{size: a.Size, level: a.Level, source: -1, result: slices.Index(b.g.Outputs, a.Member)})
			if b.values[at.value].result >= 0 {
				b.values[at.value].temp = -1
			}
			b.members[a.Member] = at.value
			in.dsts = append(in.dsts, at.value)
		case a.Member >= 0:
			at.value = b.members[a.Member]
			in.src = append(in.src, at.value)
		case !a.Whole:
			at.value = b.leaf(a.View, a.Size, a.Level)
			in.src = append(in.src, at.value)
		default: // what holds it is not another's before the end
			at.source = slices.Index(b.g.Inputs, a.View.Value)
			b.value(fusedValue{size: a.Size, level: fuse.Row, source: at.source, result: -1})
		}
		c.arrays = append(c.arrays, at)
	}
	b.code = append(b.code, in)
}

// mayTake reports whether what the instruction makes may be in the place of what it reads.
func (in *instr) mayTake(made, read int) bool {
	if in.chain == nil {
		return true
	}
	to := slices.IndexFunc(in.chain.arrays, func(a chainArray) bool { return a.value == made })
	for i, a := range in.chain.arrays {
		if a.value == read && !in.chain.code.MayTake(to, i) {
			return false
		}
	}
	return true
}

// run computes the tile.
func (c *chain) run(f *Fused, w *Work, t *tileOf) {
	arrays := w.arrays[:0]
	for _, a := range c.arrays {
		var p unsafe.Pointer
		switch {
		case a.value >= 0:
			p = unsafe.Pointer(unsafe.SliceData(f.mem(w, a.value, t)))
		case a.table == nil:
			p = unsafe.Pointer(unsafe.SliceData(t.src[a.source]))
		case a.byRow:
			p = unsafe.Pointer(&a.table[t.row])
		default:
			p = unsafe.Pointer(&a.table[t.lo/8])
		}
		arrays = append(arrays, p)
	}
	n := t.hi - t.lo
	if f.cols > 0 {
		n = t.rows
	}
	depth := w.depth
	w.arrays = c.code.Run(arrays, n, w.temp(c.code.Scratch()))
	w.depth = depth
	clear(w.arrays)
}
