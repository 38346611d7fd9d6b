package dialect

import (
	"slices"

	"ppc/ir"
)

// Constraints of the ops that take tensors with scales of their own for each
// slice of an axis, and of those that make and unmake quantized tensors.

// productRules are the numbers of the constraints that sums of quantized products
// share.
type productRules struct {
	quantized, storage, expressed, tensorwise, hybrid int
}

var (
	dotRules  = productRules{quantized: 14, storage: 17, expressed: 18, tensorwise: 19, hybrid: 20}
	convRules = productRules{quantized: 28, storage: 31, expressed: 32, tensorwise: 33, hybrid: 34}
)

// quantizedProduct checks the element types of op, a sum of products, where one
// of them is quantized, and returns the type of the result; nil where none is.
func quantizedProduct(op *ir.Op, n productRules) (*ir.Type, *ir.Rule) {
	l, r := op.Operands[0].Type, op.Operands[1].Type
	out := l
	if len(op.Results) == 1 && op.Results[0].Type.IsTensor() {
		out = op.Results[0].Type
	}
	if l.Quant == nil && r.Quant == nil && out.Quant == nil {
		return nil, nil
	}
	lq, rq, oq := l.Quant, r.Quant, out.Quant
	switch {
	case l.PerAxis():
		return out, ir.Broken(0, "operand 0 is %s, want a tensor%s", l, otherQuant(l))
	case rq == nil || (lq != nil) != (oq != nil):
		return out, ir.Broken(n.quantized, "operands are %s and %s, the result is %s: want operand 1 quantized, and operand 0 and the result both or neither", l, r, out)
	case lq == nil && (l.Elem != rq.Expressed || out.Elem != rq.Expressed):
		return out, ir.Broken(n.hybrid, "operand 0 is %s and the result %s, want elements of type %s, which operand 1 %s expresses", l, out, rq.Expressed, r)
	case lq == nil:
		return out, nil
	case lq.Storage != rq.Storage:
		return out, ir.Broken(n.storage, "operands are %s and %s, want one storage type", l, r)
	case lq.Expressed != rq.Expressed || lq.Expressed != oq.Expressed:
		return out, ir.Broken(n.expressed, "operands are %s and %s, the result is %s: want one expressed type", l, r, out)
	case !r.PerAxis() && out.PerAxis():
		return out, ir.Broken(n.tensorwise, "the result is %s, want one scale as in operand 1 %s", out, r)
	}
	return out, nil
}

// quantizedDot checks the right side of a quantized dot: zeros are zero, and the
// sums are over one scale each.
func quantizedDot(d ir.Dot, r *ir.Type) *ir.Rule {
	if i := slices.IndexFunc(r.Quant.Zeros, func(z int64) bool { return z != 0 }); i >= 0 {
		return ir.Broken(15, "operand 1 is %s, want zero points of 0", r)
	}
	if r.PerAxis() && slices.Contains(d.RhsContract, r.Quant.Axis) {
		return ir.Broken(16, "operand 1 is %s, quantized along dimension %d, which is contracted", r, r.Quant.Axis)
	}
	return nil
}

// quantizedConv checks that kernel and result of a quantized convolution have
// scales along the output features, if along any dimension.
func quantizedConv(d ir.ConvDims, kernel, out *ir.Type) *ir.Rule {
	if kernel.PerAxis() && kernel.Quant.Axis != d.Kernel.Second {
		return ir.Broken(29, "operand 1 is %s, quantized along dimension %d, want %d, the output features", kernel, kernel.Quant.Axis, d.Kernel.Second)
	}
	if out.PerAxis() && out.Quant.Axis != d.Output.Second {
		return ir.Broken(30, "the result is %s, quantized along dimension %d, want %d, the features", out, out.Quant.Axis, d.Output.Second)
	}
	return nil
}

// inferAdd: tensors that are not quantized are of one type. Of quantized ones,
// each may have scales of its own.
func inferAdd(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	l, r := op.Operands[0].Type, op.Operands[1].Type
	out := l
	if len(op.Results) == 1 && op.Results[0].Type.IsTensor() {
		out = op.Results[0].Type
	}
	lq, rq, oq := l.Quant, r.Quant, out.Quant
	if lq == nil && rq == nil && oq == nil {
		return inferSame(op)
	}
	switch {
	case lq == nil || rq == nil || oq == nil:
		return nil, ir.Broken(2, "operands are %s and %s, the result is %s: want all quantized, or none", l, r, out)
	case lq.Storage != rq.Storage || lq.Storage != oq.Storage:
		return nil, ir.Broken(3, "operands are %s and %s, the result is %s: want one storage type", l, r, out)
	case lq.Expressed != rq.Expressed || lq.Expressed != oq.Expressed:
		return nil, ir.Broken(4, "operands are %s and %s, the result is %s: want one expressed type", l, r, out)
	case (l.PerAxis() || r.PerAxis()) != out.PerAxis():
		return nil, ir.Broken(5, "operands are %s and %s, the result is %s: want it quantized along an axis if one of them is", l, r, out)
	case l.PerAxis() && lq.Axis != oq.Axis:
		return nil, ir.Broken(6, "operand 0 is %s, the result %s: want one axis of quantization", l, out)
	case r.PerAxis() && rq.Axis != oq.Axis:
		return nil, ir.Broken(7, "operand 1 is %s, the result %s: want one axis of quantization", r, out)
	case !ir.SameShape(l, r):
		return nil, ir.Broken(1, "operands are %s and %s, want one shape", l, r)
	}
	return []*ir.Type{out.WithShape(l.Shape...)}, nil
}

// sameButAxis checks constraint n: the elements of t are those of in, but for the
// axis of quantization.
func sameButAxis(n int, in, t *ir.Type) *ir.Rule {
	ok := in.SameElem(t)
	if in.PerAxis() && t.PerAxis() {
		ok = in.Quant.Storage == t.Quant.Storage && in.Quant.Expressed == t.Quant.Expressed && in.Quant.Min == t.Quant.Min && in.Quant.Max == t.Quant.Max
	}
	if !ok {
		return ir.Broken(n, "operand %s and result %s have different element types", in, t)
	}
	return nil
}

// broadcastAxis checks constraint n of a broadcast along the dimensions dims: the
// axis of quantization is where dims maps it, and a scale that is broadcast is the
// same for all slices. Constraint other is that there are no other scales.
func broadcastAxis(n, other int, in, t *ir.Type, dims []int) *ir.Rule {
	if !t.PerAxis() {
		return nil
	}
	a, b := in.Quant, t.Quant
	if at := dims[a.Axis]; b.Axis != at {
		return ir.Broken(n, "result %s is quantized along dimension %d, want %d, which is dimension %d of the operand", t, b.Axis, at, a.Axis)
	}
	if len(a.Scales) != 1 {
		if !slices.Equal(a.Scales, b.Scales) || !slices.Equal(a.Zeros, b.Zeros) {
			return ir.Broken(other, "operand %s and result %s have different scales or zero points", in, t)
		}
		return nil
	}
	for i := range b.Scales {
		if b.Scales[i] != a.Scales[0] || b.Zeros[i] != a.Zeros[0] {
			return ir.Broken(n, "scale %d of result %s is not the only one of operand %s", i, t, in)
		}
	}
	return nil
}

// reshapedAxis checks constraint n of a reshape: the axis of quantization has one
// size in operand and result, and as many elements before and after it.
func reshapedAxis(n int, in, t *ir.Type) *ir.Rule {
	if !in.PerAxis() || !t.PerAxis() || !in.IsStatic() || !t.IsStatic() {
		return nil
	}
	a, b := in.Quant.Axis, t.Quant.Axis
	count := func(sizes []int) int { return ir.Tensor(ir.I1, sizes...).NumElements() }
	switch {
	case in.Shape[a] != t.Shape[b], count(in.Shape[:a]) != count(t.Shape[:b]), count(in.Shape[a+1:]) != count(t.Shape[b+1:]):
		return ir.Broken(n, "operand %s is quantized along dimension %d, result %s along %d: want one size, with as many elements before and after", in, a, t, b)
	case !slices.Equal(in.Quant.Scales, t.Quant.Scales) || !slices.Equal(in.Quant.Zeros, t.Quant.Zeros):
		return ir.Broken(1, "operand %s and result %s have different scales or zero points", in, t)
	}
	return nil
}

func inferQuantize(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	in, t := op.Operands[0].Type, op.Results[0].Type
	if !in.IsTensor() || !isReal(in) {
		return nil, ir.Broken(0, "operand 0 is %s, want a tensor of floating-point or quantized numbers", in)
	}
	if !t.IsTensor() || t.Quant == nil {
		return nil, ir.Broken(0, "result is %s, want a quantized tensor", t)
	}
	if !ir.SameShape(in, t) {
		return nil, ir.Broken(1, "operand %s and result %s have different shapes", in, t)
	}
	expressed := in.Elem
	if in.Quant != nil {
		expressed = in.Quant.Expressed
	}
	if expressed != t.Quant.Expressed {
		return nil, ir.Broken(2, "result %s expresses %s, the operand is %s", t, t.Quant.Expressed, in)
	}
	return []*ir.Type{t}, nil
}

func inferDequantize(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	in, t := op.Operands[0].Type, op.Results[0].Type
	if !in.IsTensor() || in.Quant == nil {
		return nil, ir.Broken(0, "operand 0 is %s, want a quantized tensor", in)
	}
	if !t.IsTensor() || !ir.SameShape(in, t) {
		return nil, ir.Broken(1, "operand %s and result %s have different shapes", in, t)
	}
	if t.Elem != in.Quant.Expressed {
		return nil, ir.Broken(2, "result is %s, operand %s expresses %s", t, in, in.Quant.Expressed)
	}
	return []*ir.Type{t}, nil
}
