package pipeline

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/rewrite"
)

// vmapRagged makes the new dimension the first batch dimension. Group sizes that were
// the same for all outer dimensions are repeated over them where instances have
// different ones, and stay as they are otherwise.
func vmapRagged(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	d := op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	outer := d.Outer()
	mode := d.Mode()
	d.LhsBatch, d.RhsBatch = prepend(0, shift(d.LhsBatch)), prepend(0, shift(d.RhsBatch))
	d.LhsContract, d.RhsContract, d.LhsRagged, d.RhsGroup = shift(d.LhsContract), shift(d.RhsContract), shift(d.LhsRagged), shift(d.RhsGroup)
	sizes := in[2].v
	if t := op.Operands[2].Type; in[2].batched || t.Rank() > 1 {
		sizes = m.batch(in[2])
		if t.Rank() == 1 {
			shape := []int{m.n}
			for _, k := range outer {
				shape = append(shape, op.Operands[0].Type.Shape[k])
			}
			sizes = m.b.Broadcast(sizes, append(shape, t.Shape[0]), 0, len(shape))
		}
	}
	attrs := rewrite.AttrsWith(op, facts.Named("ragged_dot_dimension_numbers", d))
	operands := []*ir.Value{m.batch(in[0]), m.batch(in[1]), sizes}
	if mode != ir.RaggedContract {
		return m.emit(op, operands, attrs), nil
	}
	// The groups come first in the result.
	t := op.Result().Type
	v := m.b.Emit(op.Kind, operands, attrs, nil, []*ir.Type{t.WithShape(slices.Insert(slices.Clone(t.Shape), 1, m.n)...)}).Result()
	perm := facts.UpTo(t.Rank() + 1)
	perm[0], perm[1] = 1, 0
	return []mapped{{m.b.Transpose(v, perm...), true}}, nil
}
