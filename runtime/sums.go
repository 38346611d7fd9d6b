package runtime

import (
	"ppc/ir"
	"ppc/lower/fuse"
	"ppc/runtime/kernel"
)

// A reduce-scatter whose result is only added to another value, as the gradient of an iteration is to those of the
// iterations before, is one node with the addition: it has the op, and a group that reads the op's operand and the
// other value. Each part of the sum is made while it is in the cache.

// joinSums makes such nodes where between the two there is nothing but slices and reshapes.
func joinSums(nodes []fuse.Node) []fuse.Node {
	var readers readersIn
	gone := make(map[int]bool)
	for i, n := range nodes {
		if n.Group != nil || n.Op.Kind != ir.ReduceScatter || len(n.Op.Operands) != 1 {
			continue
		}
		if readers == nil {
			readers = readersOf(nodes)
		}
		j, v := throughReshapes(n.Op.Result(), nodes, readers)
		if j < 0 || nodes[j].Op != nil {
			continue
		}
		y := addend(nodes[j].Group, v)
		if y == nil || !moves(nodes[i+1:j]) {
			continue
		}
		g := *nodes[j].Group
		g.Inputs = []*ir.Value{n.Op.Operands[0], y}
		nodes[j] = fuse.Node{Op: n.Op, Group: &g}
		gone[i] = true
		for u := n.Op.Result(); u != v; { // the reshapes
			k := readers[u][0]
			gone[k], u = true, nodes[k].Op.Result()
		}
	}
	if len(gone) == 0 {
		return nodes
	}
	var out []fuse.Node
	for i, n := range nodes {
		if !gone[i] {
			out = append(out, n)
		}
	}
	return out
}

// addend is what g adds to v, if that is all it does; nil if not.
func addend(g *fuse.Group, v *ir.Value) *ir.Value {
	if len(g.Members) != 1 || g.Members[0].Op.Kind != ir.Add || len(g.Inputs) != 2 {
		return nil
	}
	for _, a := range g.Members[0].Args {
		if a.View == nil || !a.View.Dense() {
			return nil
		}
	}
	if g.Inputs[0] == v {
		return g.Inputs[1]
	}
	return g.Inputs[0]
}

// moves reports whether nodes only look at parts of values, or at their elements in other shapes.
func moves(nodes []fuse.Node) bool {
	for _, n := range nodes {
		if n.Group != nil || n.Op.Kind != ir.Reshape && kernel.Within(n.Op) == nil {
			return false
		}
	}
	return true
}

// sum makes s the step of a reduce-scatter and the addition to its result.
func (c *compiler) sum(s *step, n fuse.Node, at point) {
	m := &n.Group.Members[0]
	out := outputs(n.Group)
	c.begin(s, n.Op, n.Group.Inputs, out, nil, at)
	add, err := kernel.Build(m.Op)
	if err == nil {
		err = c.inGroups(s)
	}
	var x *scattering
	if err == nil {
		x, err = newScattering(c, s)
	}
	if err != nil {
		c.fail(n.Op, err)
		return
	}
	first := m.Args[0].View.Value == n.Group.Inputs[1]
	s.coll.own = func(d *device, s *step, parts [][]*buffer, place int) []*buffer {
		acc := d.takeLent(s, addends)
		if acc == nil {
			acc = d.takeOneOf(s, addends)
		}
		y := acc
		if acc == nil {
			acc, y = d.alloc(s.classes[0]), d.slots[s.in[1]]
		}
		x.addTo(d, add, acc.mem, y.mem, d.firsts(parts), place, first)
		return []*buffer{acc}
	}
	s.frees(c, n.Group.Inputs, out, at)
	c.share(s)
}

// addends is the operand of a sum's step whose memory the result may take over.
var addends = []int{1}

// sumChunk is how many bytes of a sum are made at a time.
const sumChunk = 16 << 10

// addTo sets acc to what add makes of y, first or second, and the part of the sum at a place.
func (x *scattering) addTo(d *device, add kernel.Func, acc, y kernel.Mem, parts []kernel.Mem, place int, first bool) {
	if d.chunk == nil {
		d.chunk = kernel.NewMem(sumChunk)
	}
	for lo := 0; lo < len(acc); {
		row, col := lo/x.inner, lo%x.inner
		n, rows := min(x.inner-col, sumChunk), 1
		if n == x.inner {
			rows = min(sumChunk/n, len(acc)/n-row)
		}
		chunk, hi := d.chunk[:rows*n], lo+rows*n
		d.work.FoldParts(x.f, chunk, parts, place*x.inner+row*x.n*x.inner+col, x.n*x.inner, n)
		if d.terms = [2]kernel.Mem{chunk, y[lo:hi]}; first {
			d.terms[0], d.terms[1] = y[lo:hi], chunk
		}
		d.dst = append(d.dst[:0], acc[lo:hi])
		add(d.work, d.dst, d.terms[:])
		lo = hi
	}
}
