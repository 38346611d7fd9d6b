package runtime

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/lower/fuse"
	"ppc/runtime/kernel"
)

// A piece is a slice of a tensor that is the tensor's memory and no copy of it. It holds a
// reference to the tensor's buffer, so that nobody writes over that while the piece is
// read. A slice is a piece if it is contiguous in the tensor and everything that reads it
// is computed, in the same block, before the last reader of the tensor: an update in
// place, which is the last of them, finds no piece.
//
// A piece is lent if, besides, it is read by one group of elementwise ops alone, whose result
// becomes the same piece of the tensor again, as a gradient that is accumulated over
// iterations does:
//
//	old = dynamic_slice(sum, i)
//	new = old + gradient
//	sum = dynamic_update_slice(sum, new, i)
//
// The group may then write its result over the piece, and the update has nothing left to do.
type piece struct{ lent bool }

// readersIn are the nodes of a block that read each value, in order.
type readersIn map[*ir.Value][]int

// findPieces finds the slices of b, whose last uses are known, that are pieces.
func (c *compiler) findPieces(b *ir.Block, nodes []fuse.Node) {
	if c.checks || c.exe.unfused {
		return
	}
	var readers readersIn
	for i, n := range nodes {
		if n.Group != nil || kernel.Within(n.Op) == nil {
			continue
		}
		if readers == nil {
			readers = readersOf(nodes)
		}
		x := n.Op.Operands[0]
		last, ok := lastOfPiece(n.Op.Result(), nodes, readers)
		if !ok || last == i || c.home[x.ID] == b && (c.owner[x.ID] != b || last+1 >= int(c.last[x.ID])) {
			continue
		}
		if c.pieces == nil {
			c.pieces = make(map[*ir.Op]*piece)
		}
		c.pieces[n.Op] = &piece{lent: c.lent(n.Op, b, nodes, readers)}
	}
}

func readersOf(nodes []fuse.Node) readersIn {
	readers := make(readersIn)
	for i, n := range nodes {
		for _, v := range readBy(n) {
			if at := readers[v]; len(at) == 0 || at[len(at)-1] != i {
				readers[v] = append(at, i)
			}
		}
	}
	return readers
}

// lastOfPiece is the last node that reads v or what is the same memory; false if one is
// not in b, or may keep the memory, or send it to other devices.
func lastOfPiece(v *ir.Value, nodes []fuse.Node, readers readersIn) (int, bool) {
	last := -1
	for _, i := range readers[v] {
		last = max(last, i)
		op := nodes[i].Op
		switch {
		case nodes[i].Group != nil && (op == nil || v != op.Operands[0]): // a group, or what a reduce-scatter adds to
		case len(op.Regions) > 0:
			return 0, false
		case op.Kind == ir.Reshape:
			after, ok := lastOfPiece(op.Result(), nodes, readers)
			if !ok {
				return 0, false
			}
			last = max(last, after)
		case !kernel.Has(op.Kind) || kernel.Within(op) != nil || isCopy(op):
			return 0, false
		}
	}
	return last, true
}

// lent reports whether slice, which is a piece, is lent.
func (c *compiler) lent(slice *ir.Op, b *ir.Block, nodes []fuse.Node, readers readersIn) bool {
	x := slice.Operands[0]
	i, v := throughReshapes(slice.Result(), nodes, readers)
	if i < 0 || nodes[i].Group == nil {
		return false
	}
	for _, out := range outputs(nodes[i].Group) {
		if out.Type.Bytes() != v.Type.Bytes() {
			continue
		}
		k, u := throughReshapes(out, nodes, readers)
		if k < 0 || nodes[k].Group != nil {
			continue
		}
		if update := nodes[k].Op; replaces(update, slice, u) && c.dies(x, point{b, int32(k) + 1}) && !readBetween(readers[x], i, k) {
			return true
		}
	}
	return false
}

// throughReshapes is the one node that reads v, or a reshape of it, and the value that it
// reads; -1 if there are several or none.
func throughReshapes(v *ir.Value, nodes []fuse.Node, readers readersIn) (int, *ir.Value) {
	for {
		at := readers[v]
		if len(at) != 1 {
			return -1, nil
		}
		op := nodes[at[0]].Op
		if nodes[at[0]].Group != nil || op.Kind != ir.Reshape {
			return at[0], v
		}
		v = op.Result()
	}
}

// replaces reports whether update puts v in the place that slice reads.
func replaces(update, slice *ir.Op, v *ir.Value) bool {
	return facts.Replaces(update, slice) && update.Operands[1] == v && !slices.Contains(update.Operands[2:], v)
}

// readBetween reports whether some of the places is from lo to below hi.
func readBetween(places []int, lo, hi int) bool {
	for _, i := range places {
		if lo <= i && i < hi {
			return true
		}
	}
	return false
}

// of is p, the n bytes of full from lo.
func (p *piece) of(d *device, full *buffer, lo, n int) *buffer {
	b := d.pieces
	if b == nil {
		b = new(buffer)
	} else {
		d.pieces = b.base
	}
	b.mem, b.base, b.lent = full.mem[lo:lo+n], full.retain(), p.lent
	b.refs.Store(1)
	return b
}

// overwritten reports whether the holder of the only reference to b, a piece, may write over it.
func (b *buffer) overwritten() bool {
	return b.lent && b.refs.Load() == 1 && b.base.refs.Load() == 2 // the tensor's own and b's
}

// execUpdate is for updates in place of a lent piece.
func execUpdate(d *device, s *step) error {
	full, b := d.slots[s.in[0]], d.slots[s.in[1]]
	if b.base != full || !s.move[1] || !b.overwritten() {
		return execKernel(d, s)
	}
	d.slots[s.in[1]] = nil
	d.release(b)
	d.put(s, 0, d.take(s, 0))
	return nil
}
