package kernel

import (
	"slices"

	"ppc/ir"
)

// A raggedDot is a product by groups: the outer dimensions as one, each with a
// ragged dimension whose groups have their rows one after the other.
type raggedDot struct {
	left, right           factor
	mul                   gemm
	add                   Func // of elements as they are computed
	size                  int  // bytes of one
	batch, outer          int  // batches, and the other outer dimensions of each
	groups, length, inner int  // groups, the ragged dimension, and what of its kind is inside of it
	m, n, k               int  // of a product; of the ragged dimension's kind, without that and what is inside
	sizes                 *groupReader
}

func buildRagged(op *ir.Op) (Func, error) {
	l, r, out := op.Operands[0].Type, op.Operands[1].Type, op.Results[0].Type
	d := op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	if d.Mode() == ir.RaggedBatch {
		return buildProduct(op, d.Dot)
	}
	as := arithmetic(out.Elem)
	x := &raggedDot{mul: gemms[as], add: binaries[ir.Add][as], size: as.Size(), batch: sizes(l, d.LhsBatch), length: l.Shape[d.Ragged()]}
	if x.mul == nil || x.add == nil {
		return orMissing(nil, op, as)
	}
	if slices.ContainsFunc([]*ir.Type{l, r, out}, func(t *ir.Type) bool { return t.NumElements() == 0 }) { // sums of no terms, if there are any
		zeros := Zeros(out)
		return func(_ *Work, dst, _ []Mem) { copy(dst[0], zeros) }, nil
	}
	t := op.Operands[2].Type
	x.groups = t.Shape[t.Rank()-1]
	x.sizes = newGroupReader(t)
	freeL, freeR := d.FreeL(l.Rank()), d.FreeR(r.Rank())
	x.n = sizes(r, freeR)
	run := x.contract
	if d.Mode() == ir.RaggedFree {
		run = x.free
		at := slices.Index(freeL, d.Ragged())
		x.outer, x.inner, x.k = sizes(l, freeL[:at]), sizes(l, freeL[at+1:]), sizes(l, d.LhsContract)
		x.left = newFactor(l, as, slices.Concat(d.LhsBatch, freeL[:at]), freeL[at:], d.LhsContract)
		x.right = newFactor(r, as, slices.Concat(d.RhsGroup, d.RhsBatch), d.RhsContract, freeR)
	} else {
		at := d.Contracted()
		x.outer, x.inner, x.m = sizes(l, d.LhsContract[:at]), sizes(l, d.LhsContract[at+1:]), sizes(l, freeL)
		x.left = newFactor(l, as, slices.Concat(d.LhsBatch, d.LhsContract[:at]), freeL, d.LhsContract[at:])
		x.right = newFactor(r, as, slices.Concat(d.RhsBatch, d.RhsContract[:at]), d.RhsContract[at:], freeR)
	}
	return narrowed(as, out, func(w *Work, c Mem, src []Mem) {
		run(w, c, x.left.ready(w, src[0]), x.right.ready(w, src[1]), src[2])
	}), nil
}

// free computes [batch, outer, length, inner, n]: of each group the rows times its own
// matrix, and zeros for the rows of no group.
func (x *raggedDot) free(w *Work, c, a, b, sizes Mem) {
	for o := range x.batch * x.outer {
		rows := c[o*x.length*x.inner*x.n*x.size:][:x.length*x.inner*x.n*x.size]
		row := x.inner * x.n * x.size
		at := 0
		for g := range x.groups {
			to := x.sizes.end(sizes, o, g, at, x.length)
			if to > at {
				left := x.left.of(a, o)
				left.mem = left.mem[at*x.inner*left.row*x.size:]
				x.mul(w, rows[at*row:to*row], left, x.right.of(b, g*x.batch+o/x.outer), (to-at)*x.inner, x.n, x.k)
			}
			at = to
		}
		clear(rows[at*row:])
	}
}

// contract computes [groups, batch, m, n]: of each group the product over its part of
// the ragged dimension, added up over the outer contracted dimensions.
func (x *raggedDot) contract(w *Work, c, a, b, sizes Mem) {
	clear(c)
	bytes := x.m * x.n * x.size
	depth := w.depth
	part := w.temp(bytes)
	for o := range x.batch * x.outer {
		at := 0
		for g := range x.groups {
			to := x.sizes.end(sizes, o, g, at, x.length)
			if to > at {
				left, right := x.left.of(a, o), x.right.of(b, o)
				left.mem, right.mem = left.mem[at*x.inner*left.col*x.size:], right.mem[at*x.inner*right.row*x.size:]
				sum := c[(g*x.batch+o/x.outer)*bytes:][:bytes]
				if o%x.outer == 0 {
					x.mul(w, sum, left, right, x.m, x.n, (to-at)*x.inner)
				} else {
					x.mul(w, part, left, right, x.m, x.n, (to-at)*x.inner)
					x.add(w, []Mem{sum}, []Mem{sum, part})
				}
			}
			at = to
		}
	}
	w.depth = depth
}

// A groupReader reads the sizes of groups.
type groupReader struct {
	read   func(m Mem, i int) int
	groups int
	same   bool // for all outer dimensions
}

func newGroupReader(t *ir.Type) *groupReader {
	return &groupReader{read: indices[t.Elem], groups: t.Shape[t.Rank()-1], same: t.Rank() == 1}
}

// end is where group g of outer index o ends, which begins at at: within the length of
// the ragged dimension whatever its size is.
func (r *groupReader) end(m Mem, o, g, at, length int) int {
	if !r.same {
		g += o * r.groups
	}
	return at + min(max(r.read(m, g), 0), length-at)
}
