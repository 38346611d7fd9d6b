package pipeline

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// The rules of ops that move a window over their operand.

// withoutWindow gives the attributes of a window op one more dimension in
// front, along which each element is its own window.
func withoutWindow(op *ir.Op) ir.Attrs {
	attrs := op.Attrs
	for _, name := range []string{"window_dimensions", "window_strides", "base_dilations", "window_dilations"} {
		if attrs.Has(name) {
			attrs.Set(name, prepend(1, op.Ints(name)))
		}
	}
	if attrs.Has("padding") {
		low, high := op.Padding(op.Results[0].Type.Rank())
		attrs.Set("padding", facts.PaddingAttr(prepend(0, low), prepend(0, high)))
	}
	return attrs
}

func vmapReduceWindow(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	n := len(in) / 2
	if err := scalarInit(op, in, n); err != nil {
		return nil, err
	}
	return m.emit(op, append(m.all(in[:n]), values(in[n:])...), withoutWindow(op)), nil
}

func vmapSelectAndScatter(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	if err := scalarInit(op, in, 2); err != nil {
		return nil, err
	}
	return m.emit(op, append(m.all(in[:2]), in[2].v), withoutWindow(op)), nil
}

// vmapConvolution makes the instances groups if both sides are mapped, batch groups
// where the op has some and else feature groups. If only the input is mapped they
// join its batch dimension, if only the kernel is, its output features, in each
// group.
func vmapConvolution(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	features, batches := op.Int("feature_group_count"), op.Int("batch_group_count")
	x, y, attrs := in[0].v, in[1].v, op.Attrs
	dim, groups := d.Output.Second, 1 // the result dimension that the instances are in
	switch {
	case in[0].batched && in[1].batched:
		y = m.into(y, d.Kernel.Second, 1)
		if batches > 1 {
			x = m.into(x, d.Input.First, 1)
			attrs.Set("batch_group_count", ir.I64Attr(m.n*batches))
		} else {
			x = m.into(x, d.Input.Second, 1)
			attrs.Set("feature_group_count", ir.I64Attr(m.n*features))
		}
	case in[0].batched:
		x = m.into(x, d.Input.First, batches)
		dim = d.Output.First
	default:
		groups = features * batches
		y = m.into(y, d.Kernel.Second, groups)
	}
	t := op.Result().Type
	shape := slices.Clone(t.Shape)
	shape[dim] *= m.n
	v := m.b.Emit(op.Kind, []*ir.Value{x, y}, attrs, nil, []*ir.Type{t.WithShape(shape...)}).Result()
	return []mapped{{m.outOf(v, dim, groups), true}}, nil
}

// into merges the new dimension of x into its dimension d, within each of the
// groups that this is divided in.
func (m *vmapper) into(x *ir.Value, d, groups int) *ir.Value {
	shape := x.Type.Shape[1:]
	split := slices.Concat([]int{m.n}, shape[:d], []int{groups, shape[d] / groups}, shape[d+1:])
	perm := slices.Insert(facts.UpTo(len(split))[1:], d+1, 0)
	joined := slices.Clone(shape)
	joined[d] *= m.n
	return m.b.Reshape(m.b.Transpose(m.b.Reshape(x, split...), perm...), joined...)
}

// outOf splits the new dimension from dimension d of x, into which into has merged
// it.
func (m *vmapper) outOf(x *ir.Value, d, groups int) *ir.Value {
	shape := slices.Clone(x.Type.Shape)
	shape[d] /= m.n
	split := slices.Concat(shape[:d], []int{groups, m.n, shape[d] / groups}, shape[d+1:])
	perm := append([]int{d + 1}, facts.Others(len(split), []int{d + 1})...)
	return m.b.Reshape(m.b.Transpose(m.b.Reshape(x, split...), perm...), append([]int{m.n}, shape...)...)
}
