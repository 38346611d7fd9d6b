package dialect

import (
	"math/big"
	"slices"

	"ppc/ir"
)

// Constraints and result types of ops that move data without looking at it.

func inferBroadcast(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	if r := ir.Settled(t); r != nil {
		return nil, r
	}
	return []*ir.Type{t}, broadcasts(op, t)
}

// broadcasts checks constraints 1 to 6 of a broadcast of the first operand of op
// to the type t.
func broadcasts(op *ir.Op, t *ir.Type) *ir.Rule {
	in, dims := op.Operands[0].Type, op.Ints("broadcast_dimensions")
	if r := sameButAxis(1, in, t); r != nil {
		return r
	}
	if len(dims) != in.Rank() {
		return ir.Broken(2, "%d broadcast_dimensions for an operand of rank %d", len(dims), in.Rank())
	}
	for i, d := range dims {
		if d < 0 || d >= t.Rank() {
			return ir.Broken(3, "broadcast dimension %d is not a dimension of %s", d, t)
		}
		if slices.Contains(dims[:i], d) {
			return ir.Broken(4, "%d occurs twice in broadcast_dimensions", d)
		}
		if in.Shape[i] != 1 && in.Shape[i] != t.Shape[d] && in.Shape[i] != ir.Dynamic && t.Shape[d] != ir.Dynamic {
			return ir.Broken(5, "operand dimension %d has size %d, result dimension %d has size %d: want 1 or one size", i, in.Shape[i], d, t.Shape[d])
		}
	}
	return broadcastAxis(6, 1, in, t, dims)
}

func inferConcatenate(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, dim := op.Operands[0].Type, op.Int("dimension")
	if dim < 0 || dim >= t.Rank() {
		return nil, ir.Broken(4, "dimension %d is not a dimension of %s", dim, t)
	}
	shape := slices.Clone(t.Shape)
	for i, v := range op.Operands[1:] {
		if !v.Type.SameElem(t) {
			return nil, ir.Broken(1, "operand %d is %s, operand 0 is %s", i+1, v.Type, t)
		}
		if v.Type.Rank() != t.Rank() {
			return nil, ir.Broken(2, "operand %d has rank %d, operand 0 has rank %d", i+1, v.Type.Rank(), t.Rank())
		}
		for d, n := range v.Type.Shape {
			switch {
			case d == dim:
				if n == ir.Dynamic || shape[d] == ir.Dynamic {
					shape[d] = ir.Dynamic
				} else {
					shape[d] += n
				}
			case n != shape[d] && n != ir.Dynamic && shape[d] != ir.Dynamic:
				return nil, ir.Broken(2, "operand %d is %s, operand 0 is %s: they differ outside of dimension %d", i+1, v.Type, t, dim)
			}
		}
	}
	return []*ir.Type{t.WithShape(shape...)}, nil
}

func inferPad(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, v := op.Operands[0].Type, op.Operands[1].Type
	if !v.SameElem(t) || v.Rank() != 0 {
		return nil, ir.Broken(1, "padding value is %s, want a scalar %s", v, t.ElemText())
	}
	low, high, interior := op.Ints("edge_padding_low"), op.Ints("edge_padding_high"), op.Ints("interior_padding")
	if len(low) != t.Rank() || len(high) != t.Rank() || len(interior) != t.Rank() {
		return nil, ir.Broken(2, "%d, %d and %d paddings for an operand of rank %d", len(low), len(high), len(interior), t.Rank())
	}
	shape := slices.Clone(t.Shape)
	for d := range shape {
		if interior[d] < 0 {
			return nil, ir.Broken(3, "interior padding %d of dimension %d is negative", interior[d], d)
		}
		if shape[d] == ir.Dynamic {
			if n, ok := boundOf(t, d); ok {
				if p := paddedSize(n, low[d], interior[d], high[d]); p.Sign() < 0 {
					return nil, ir.Broken(4, "padding leaves dimension %d, which has the bound %d, with size %d", d, n, p)
				}
			}
			continue
		}
		n := paddedSize(shape[d], low[d], interior[d], high[d])
		if n.Sign() < 0 || !n.IsInt64() {
			return nil, ir.Broken(4, "padding leaves dimension %d with size %d", d, n)
		}
		shape[d] = int(n.Int64())
	}
	return []*ir.Type{t.WithShape(shape...)}, nil
}

// paddedSize is the size that padding makes of n, which may be more than an int has.
func paddedSize(n, low, interior, high int) *big.Int {
	between := new(big.Int).Mul(big.NewInt(int64(max(n-1, 0))), big.NewInt(int64(interior)))
	ends := new(big.Int).Add(big.NewInt(int64(low)), big.NewInt(int64(high)))
	return between.Add(between, ends.Add(ends, big.NewInt(int64(n))))
}

func inferReshape(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	if r := ir.Settled(t); r != nil {
		return nil, r
	}
	return []*ir.Type{t}, reshapes(op.Operands[0].Type, t)
}

// reshapes checks constraints 1 to 3 of a reshape of in to t.
func reshapes(in, t *ir.Type) *ir.Rule {
	if r := sameButAxis(1, in, t); r != nil {
		return r
	}
	if in.IsStatic() && t.IsStatic() && in.NumElements() != t.NumElements() {
		return ir.Broken(2, "%d elements in %s, %d in %s", in.NumElements(), in, t.NumElements(), t)
	}
	return reshapedAxis(3, in, t)
}

func inferReverse(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	dims := op.Ints("dimensions")
	if r := first(unique(2, "dimensions", dims), within(3, "dimensions", dims, op.Operands[0].Type.Rank())); r != nil {
		return nil, r
	}
	return ir.TypesOf(op.Operands), nil
}

// boundOf is the bound of dimension d of t, where it has one.
func boundOf(t *ir.Type, d int) (int, bool) {
	bounds, ok := t.Bounds()
	if !ok || d >= len(bounds) || bounds[d] == ir.Dynamic {
		return 0, false
	}
	return bounds[d], true
}

func inferSlice(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	start, limit, strides := op.Ints("start_indices"), op.Ints("limit_indices"), op.Ints("strides")
	if len(start) != t.Rank() || len(limit) != t.Rank() || len(strides) != t.Rank() {
		return nil, ir.Broken(2, "%d starts, %d limits and %d strides for an operand of rank %d", len(start), len(limit), len(strides), t.Rank())
	}
	shape := make([]int, t.Rank())
	for d := range shape {
		if start[d] < 0 || start[d] > limit[d] || t.Shape[d] != ir.Dynamic && limit[d] > t.Shape[d] {
			return nil, ir.Broken(3, "%d:%d is no range of dimension %d, which has size %d", start[d], limit[d], d, t.Shape[d])
		}
		if n, ok := boundOf(t, d); ok && limit[d] > n {
			return nil, ir.Broken(3, "limit %d of dimension %d is above the bound %d", limit[d], d, n)
		}
		if strides[d] < 1 {
			return nil, ir.Broken(4, "stride %d of dimension %d, want at least 1", strides[d], d)
		}
		shape[d] = 0
		if n := limit[d] - start[d]; n > 0 {
			shape[d] = (n-1)/strides[d] + 1
		}
	}
	return []*ir.Type{t.WithShape(shape...)}, nil
}

func inferTranspose(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	t, perm := op.Operands[0].Type, op.Ints("permutation")
	if len(perm) != t.Rank() {
		return nil, ir.Broken(2, "permutation [%s] for an operand of rank %d", ir.JoinInts(perm), t.Rank())
	}
	if r := first(within(2, "permutation", perm, t.Rank()), unique(2, "permutation", perm)); r != nil {
		return nil, r
	}
	shape := make([]int, len(perm))
	for d, i := range perm {
		shape[d] = t.Shape[i]
	}
	out := t.WithShape(shape...)
	if t.PerAxis() {
		axis := slices.Index(perm, t.Quant.Axis)
		out = out.WithQuant(t.Quant.OnAxis(axis))
		if len(op.Results) == 1 && op.Results[0].Type.PerAxis() && op.Results[0].Type.Quant.Axis != axis {
			return nil, ir.Broken(4, "operand %s is quantized along dimension %d, which is %d of the result %s", t, t.Quant.Axis, axis, op.Results[0].Type)
		}
	}
	return []*ir.Type{out}, nil
}
