package eval

import (
	"errors"
	"math"

	"ppc/ir"
)

// A quantized value is the integers that are stored. An op on quantized values
// is the op on the numbers that they stand for, whose results are quantized; one
// that only moves elements moves the integers.

func (e *exec) isQuantized() bool {
	for _, vs := range [][]*ir.Value{e.op.Operands, e.op.Results} {
		for _, v := range vs {
			if v.Type.Quant != nil {
				return true
			}
		}
	}
	return false
}

// movers are the ops that move elements, or hand them on.
var movers = map[ir.Kind]bool{ir.BitcastConvert: true, ir.Reshape: true, ir.Transpose: true, ir.BroadcastInDim: true, ir.Slice: true, ir.DynamicSlice: true,
	ir.DynamicUpdateSlice: true, ir.Concatenate: true, ir.Reverse: true, ir.Gather: true, ir.Constant: true, ir.OptimizationBarrier: true,
	ir.AllGather: true, ir.AllToAll: true, ir.CollectivePermute: true, ir.CollectiveBroadcast: true}

func (e *exec) quantized() ([]*tensor, error) {
	switch {
	case handsOn(e.op):
		return e.row()
	case movers[e.op.Kind]:
		return e.retyped((*ir.Type).Stored).row()
	case len(e.op.Regions) > 0:
		return nil, errors.New("a region of quantized values is not evaluated")
	}
	as := e.retyped((*ir.Type).Expressed)
	as.in = make([]*tensor, len(e.in))
	for i, x := range e.in {
		as.in[i] = dequantize(x, e.op.Operands[i].Type.Quant)
	}
	out, err := as.row()
	if err != nil {
		return nil, err
	}
	for i, v := range e.op.Results {
		out[i] = quantize(out[i], v.Type.Quant)
	}
	return out, nil
}

// retyped is e with other types of operands and results.
func (e *exec) retyped(of func(*ir.Type) *ir.Type) *exec {
	each := func(vs []*ir.Value) []*ir.Type {
		ts := ir.TypesOf(vs)
		for i, t := range ts {
			ts[i] = of(t)
		}
		return ts
	}
	return &exec{e.p, e.fr, e.op.Retyped(each(e.op.Operands), each(e.op.Results)), e.in}
}

// params are the scale and the zero point of element k of x.
func params(q *ir.Quant, x *tensor, k int) (scale, zero float64) {
	i := 0
	if q.Axis != ir.PerTensor {
		i = k / ir.Strides(x.shape)[q.Axis] % x.shape[q.Axis]
	}
	return q.Expressed.Round(q.Scales[i]), float64(q.Zeros[i])
}

// dequantize returns the numbers that x stands for; x itself where q is nil.
func dequantize(x *tensor, q *ir.Quant) *tensor {
	if q == nil {
		return x
	}
	out := newTensor(q.Expressed, x.shape)
	for k, v := range x.i {
		scale, zero := params(q, x, k)
		out.f[k] = q.Expressed.Round(float64(v)-zero) * scale
	}
	out.round()
	return out
}

// quantize returns the nearest integers that stand for the numbers x; x itself
// where q is nil.
func quantize(x *tensor, q *ir.Quant) *tensor {
	if q == nil {
		return x
	}
	out, round := newTensor(q.Storage, x.shape), q.Expressed.Round
	for k, v := range x.f {
		scale, zero := params(q, x, k)
		v = round(round(v/scale) + zero)
		v = math.RoundToEven(min(max(v, round(float64(q.Min))), round(float64(q.Max))))
		out.i[k] = min(max(int64(v), q.Min), q.Max)
	}
	return out
}

func uniformQuantize(e *exec) (*tensor, error) {
	return quantize(dequantize(e.in[0], e.op.Operands[0].Type.Quant), e.op.Results[0].Type.Quant), nil
}

func uniformDequantize(e *exec) (*tensor, error) {
	x := dequantize(e.in[0], e.op.Operands[0].Type.Quant)
	if wide := e.p.elem(x.elem); wide != x.elem {
		x.elem = wide
	}
	return x, nil
}
