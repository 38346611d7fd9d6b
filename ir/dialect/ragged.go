package dialect

import (
	"slices"

	"ppc/ir"
)

// inferRagged: the sides fit as those of a dot (1 to 10), precisions are known (11);
// one dimension of the left side is ragged (12); where it is a free one, one of the
// right side, neither batched nor contracted, is that of the groups, otherwise none
// is (13); the group sizes have the outer dimensions of the left side or none, then
// that of the groups (14), as many as the right side has (15); elements are of one
// family, the sizes integers (16).
func inferRagged(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := first(anyTensors(op), plain(op)); r != nil {
		return nil, r
	}
	l, r, sizes := op.Operands[0].Type, op.Operands[1].Type, op.Operands[2].Type
	d := op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	if rule := dotDims(d.Dot, l, r); rule != nil {
		return nil, rule
	}
	if p, ok := op.Attrs.Get("precision_config").(ir.Array); ok {
		if rule := precisions(11, p); rule != nil {
			return nil, rule
		}
	}
	if rule := raggedDims(d, l, r); rule != nil {
		return nil, rule
	}
	if rule := groupSizes(d, l, r, sizes); rule != nil {
		return nil, rule
	}
	elem := l.Elem
	if len(op.Results) == 1 && op.Results[0].Type.IsTensor() { // a wider result is allowed
		elem = op.Results[0].Type.Elem
	}
	if family(l.Elem) != family(r.Elem) || family(elem) != family(l.Elem) {
		return nil, ir.Broken(16, "operands are %s and %s, the result has %s, want elements of one family", l, r, elem)
	}
	var shape []int
	if d.Mode() == ir.RaggedContract {
		shape = append(shape, sizes.Shape[sizes.Rank()-1])
	}
	for _, k := range slices.Concat(d.LhsBatch, d.FreeL(l.Rank())) {
		shape = append(shape, l.Shape[k])
	}
	for _, k := range d.FreeR(r.Rank()) {
		shape = append(shape, r.Shape[k])
	}
	return []*ir.Type{ir.Tensor(elem, shape...)}, nil
}

func raggedDims(d ir.RaggedDims, l, r *ir.Type) *ir.Rule {
	if len(d.LhsRagged) != 1 {
		return ir.Broken(12, "%s of the left side, want one", ir.Counted(len(d.LhsRagged), "ragged dimension"))
	}
	if rule := within(12, "ragged dimensions", d.LhsRagged, l.Rank()); rule != nil {
		return rule
	}
	if rule := within(13, "group dimensions", d.RhsGroup, r.Rank()); rule != nil {
		return rule
	}
	want, kind := 0, "batched or contracted"
	if d.Mode() == ir.RaggedFree {
		want, kind = 1, "free"
	}
	if len(d.RhsGroup) != want {
		return ir.Broken(13, "%s of the right side, want %d where the ragged dimension is %s", ir.Counted(len(d.RhsGroup), "group dimension"), want, kind)
	}
	return unique(13, "right dimensions", slices.Concat(d.RhsBatch, d.RhsContract, d.RhsGroup))
}

func groupSizes(d ir.RaggedDims, l, r, sizes *ir.Type) *ir.Rule {
	if !sizes.Elem.IsInt() || sizes.Elem == ir.I1 {
		return ir.Broken(16, "group sizes are %s, want integers", sizes)
	}
	outer := d.Outer()
	n := sizes.Rank()
	if n != 1 && n != len(outer)+1 {
		return ir.Broken(14, "group sizes are %s, want rank 1 or %d", sizes, len(outer)+1)
	}
	for i, k := range outer {
		if n > 1 && !ir.Fits(sizes.Shape[i], l.Shape[k]) {
			return ir.Broken(14, "dimension %d of the group sizes has size %d, want %d as dimension %d of the left side", i, sizes.Shape[i], l.Shape[k], k)
		}
	}
	for _, g := range d.RhsGroup {
		if !ir.Fits(r.Shape[g], sizes.Shape[n-1]) {
			return ir.Broken(15, "the right side has %s and there are %s", ir.Counted(r.Shape[g], "group"), ir.Counted(sizes.Shape[n-1], "group size"))
		}
	}
	return nil
}

// raggedFactors is the rule of a dot with groups. The rows of a shard of the ragged
// dimension are in groups of other sizes, which follow from those of all, so the
// dimension is sharded as any of its kind; the sizes themselves have the sharding of
// the outer dimensions alone. With the matrices of some groups a device computes the
// rows of these, and zeros for the rest: the groups are a [ir.Reduction]. Where each
// has a result of its own, a device computes those that it is to have.
func raggedFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	d := op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	l, r, sizes := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape, op.Operands[2].Type
	outer := d.Outer()
	inSizes := func(k int) int {
		if sizes.Rank() == 1 {
			return -1
		}
		return slices.Index(outer, k)
	}
	out := 0
	if d.Mode() == ir.RaggedContract {
		f.Add(sizes.Shape[sizes.Rank()-1], ir.PassThrough, []int{-1, -1, -1}, []int{0})
		out++
	}
	for i, k := range d.LhsBatch {
		f.Add(l[k], ir.PassThrough, []int{k, d.RhsBatch[i], inSizes(k)}, []int{out})
		out++
	}
	for _, k := range d.FreeL(len(l)) {
		f.Add(l[k], ir.PassThrough, []int{k, -1, inSizes(k)}, []int{out})
		out++
	}
	for _, k := range d.FreeR(len(r)) {
		f.Add(r[k], ir.PassThrough, []int{-1, k, -1}, []int{out})
		out++
	}
	for i, k := range d.LhsContract {
		f.Add(l[k], ir.Reduction, []int{k, d.RhsContract[i], inSizes(k)}, []int{-1})
	}
	for _, g := range d.RhsGroup {
		f.Add(r[g], ir.Reduction, []int{-1, g, -1}, []int{-1})
	}
	return f
}
