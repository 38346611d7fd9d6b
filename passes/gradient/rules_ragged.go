package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/rewrite"
)

// The gradients of a dot by groups are dots by groups. In the comments b are batching
// dimensions, k contracted ones, of which one may be ragged, m and n the free ones of
// the sides, and g the groups.

// gradRaggedLeft: of [b, m, k] x [g, b, k, n] -> [b, m, n] it is the rows of the
// cotangent times the matrices of their groups; of [b, m, k] x [b, k, n] -> [g, b, m, n]
// it is the rows of the right side times the cotangents of their groups. Rows of no
// group have no gradient in either.
func gradRaggedLeft(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	d := op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	l, r := op.Operands[0].Type, op.Operands[1].Type
	freeL, freeR, nb := d.FreeL(l.Rank()), d.FreeR(r.Rank()), len(d.LhsBatch)
	switch d.Mode() {
	case ir.RaggedFree:
		n := nb + len(freeL)
		back := ir.RaggedDims{Dot: ir.Dot{LhsBatch: facts.UpTo(nb), RhsBatch: d.RhsBatch, LhsContract: facts.UpTo(n + len(freeR))[n:], RhsContract: freeR},
			LhsRagged: []int{nb + slices.Index(freeL, d.Ragged())}, RhsGroup: d.RhsGroup}
		dims := slices.Concat(d.LhsBatch, freeL, paired(d.RhsContract, d.LhsContract))
		return t.ragged(op, ct, t.need(op.Operands[1]), back, l, dims)
	case ir.RaggedContract:
		// The cotangent is [g, b, m, n]; the right side is brought to [b, k, n].
		x := t.b.Transpose(t.need(op.Operands[1]), slices.Concat(d.RhsBatch, d.RhsContract, freeR)...)
		return t.ragged(op, x, ct, ofGroups(d, 1+nb+len(freeL), len(freeR)), l, slices.Concat(d.LhsBatch, d.LhsContract, freeL))
	}
	n := nb + len(freeL)
	back := ir.RaggedDims{Dot: ir.Dot{LhsBatch: facts.UpTo(nb), RhsBatch: d.RhsBatch, LhsContract: facts.UpTo(n + len(freeR))[n:], RhsContract: freeR},
		LhsRagged: []int{slices.Index(d.LhsBatch, d.Ragged())}}
	return t.ragged(op, ct, t.need(op.Operands[1]), back, l, slices.Concat(d.LhsBatch, freeL, paired(d.RhsContract, d.LhsContract)))
}

// gradRaggedRight: of [b, m, k] x [g, b, k, n] -> [b, m, n] it is, for each group, the
// product of its rows and their cotangents; of [b, m, k] x [b, k, n] -> [g, b, m, n] it
// is the rows of the left side, which are contracted there, times the cotangents of
// their groups.
func gradRaggedRight(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	d := op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	l, r := op.Operands[0].Type, op.Operands[1].Type
	freeL, freeR, nb := d.FreeL(l.Rank()), d.FreeR(r.Rank()), len(d.LhsBatch)
	back := ir.RaggedDims{Dot: ir.Dot{LhsBatch: d.LhsBatch, RhsBatch: facts.UpTo(nb), LhsContract: freeL, RhsContract: facts.UpTo(nb + len(freeL))[nb:]}, LhsRagged: d.LhsRagged}
	dims := slices.Concat(d.RhsBatch, paired(d.LhsContract, d.RhsContract), freeR)
	switch d.Mode() {
	case ir.RaggedFree:
		return t.ragged(op, t.need(op.Operands[0]), ct, back, r, slices.Concat(d.RhsGroup, dims))
	case ir.RaggedContract:
		x := t.b.Transpose(t.need(op.Operands[0]), slices.Concat(d.LhsBatch, d.LhsContract, freeL)...)
		return t.ragged(op, x, ct, ofGroups(d, 1+nb, len(freeL)), r, slices.Concat(d.RhsBatch, d.RhsContract, freeR))
	}
	return t.ragged(op, t.need(op.Operands[0]), ct, back, r, dims)
}

// ofGroups contracts a side that is brought to [b, k, free] over its free dimensions
// with those of a cotangent [g, b, …] that begin at from.
func ofGroups(d ir.RaggedDims, from, free int) ir.RaggedDims {
	nb, nk := len(d.LhsBatch), len(d.LhsContract)
	all := facts.UpTo(max(nb+nk, from, 1+nb) + free)
	return ir.RaggedDims{Dot: ir.Dot{LhsBatch: all[:nb], RhsBatch: all[1 : 1+nb], LhsContract: all[nb+nk:][:free], RhsContract: all[from:][:free]},
		LhsRagged: []int{nb + d.Contracted()}, RhsGroup: []int{0}}
}

// ragged is [tape.dot] of a dot by groups with the group sizes of op.
func (t *tape) ragged(op *ir.Op, x, y *ir.Value, d ir.RaggedDims, typ *ir.Type, dims []int) *ir.Value {
	attrs := rewrite.AttrsWith(op, facts.Named("ragged_dot_dimension_numbers", d))
	return t.product(op, []*ir.Value{x, y, t.need(op.Operands[2])}, attrs, typ, dims)
}
