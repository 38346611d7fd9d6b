package expand

import (
	"slices"

	"ppc/ir"
	"ppc/passes/pass"
)

// A quantized value becomes the integers that are stored. An op on quantized values
// becomes the op on the numbers that they stand for, whose results are quantized; one
// that only moves elements moves the integers.

// movers are the ops that move elements, or hand them on.
var movers = map[ir.Kind]bool{ir.BitcastConvert: true, ir.Reshape: true, ir.Transpose: true, ir.BroadcastInDim: true, ir.Slice: true, ir.DynamicSlice: true,
	ir.DynamicUpdateSlice: true, ir.Concatenate: true, ir.Reverse: true, ir.Gather: true, ir.Constant: true, ir.OptimizationBarrier: true,
	ir.AllGather: true, ir.AllToAll: true, ir.CollectivePermute: true, ir.CollectiveBroadcast: true}

// handsOn are the ops whose operands and results are those of regions.
var handsOn = map[ir.Kind]bool{ir.While: true, ir.If: true, ir.Case: true, ir.Return: true, ir.FuncReturn: true}

// dequantize rewrites f so that no value is quantized.
func dequantize(f *ir.Func) error {
	is := func(v *ir.Value) bool { return v.Type.Quant != nil }
	found := slices.ContainsFunc(f.Params(), is)
	f.Body.Walk(func(op *ir.Op) { found = found || slices.ContainsFunc(op.Results, is) })
	if !found {
		return nil
	}
	q := &quantizer{f: f, of: make(map[ir.ID]*ir.Quant), sub: f.NewSubst()}
	q.store(f.Params())
	for i, r := range f.Results {
		f.Results[i].Type = r.Type.Stored()
	}
	q.block(f.Body)
	return q.err
}

type quantizer struct {
	f   *ir.Func
	of  map[ir.ID]*ir.Quant // of the values that were quantized
	sub ir.Subst
	err error
}

// store gives vs the types of what is stored.
func (q *quantizer) store(vs []*ir.Value) {
	for _, v := range vs {
		if v.Type.Quant != nil {
			q.of[v.ID] = v.Type.Quant
			v.Type = v.Type.Stored()
		}
	}
}

func (q *quantizer) block(b *ir.Block) {
	q.store(b.Args)
	ops := b.Ops
	b.Ops = nil
	for _, op := range ops {
		q.op(&ir.Builder{Func: q.f, Block: b, Origin: op.Origin}, op)
	}
}

func (q *quantizer) op(b *ir.Builder, op *ir.Op) {
	quantized := false
	for _, v := range op.Operands {
		quantized = quantized || q.of[v.ID] != nil
	}
	for _, v := range op.Results {
		quantized = quantized || v.Type.Quant != nil
	}
	if quantized && !movers[op.Kind] && !handsOn[op.Kind] {
		q.express(b, op)
		return
	}
	q.sub.Apply(op.Operands)
	for _, r := range op.Regions {
		q.block(r)
	}
	q.store(op.Results)
	b.Block.Ops = append(b.Block.Ops, op)
}

// express computes op on the numbers that its operands stand for.
func (q *quantizer) express(b *ir.Builder, op *ir.Op) {
	if len(op.Regions) > 0 || op.Kind == ir.CustomCall {
		if q.err == nil {
			q.err = pass.Errorf(op, "%s of quantized values is not compiled: dequantize its operands", op.Name())
		}
		return
	}
	operands := make([]*ir.Value, len(op.Operands))
	for i, v := range op.Operands {
		operands[i] = q.numbers(b, q.sub.Of(v), q.of[v.ID])
	}
	results := operands[:1]
	if op.Spelling != "stablehlo.uniform_quantize" && op.Spelling != "stablehlo.uniform_dequantize" {
		types := ir.TypesOf(op.Results)
		for i, t := range types {
			types[i] = t.Expressed()
		}
		as := b.Emit(op.Kind, operands, op.Attrs, nil, types)
		as.Spelling = op.Spelling
		results = as.Results
	}
	for i, v := range op.Results {
		out := results[i]
		if p := v.Type.Quant; p != nil {
			out = integers(b, out, p)
			q.of[v.ID] = p
		}
		if out.Sharding == nil {
			out.Sharding = v.Sharding
		}
		q.sub[v.ID] = out
	}
}

// perElement is a number of each slice along the axis of q, for each element of x.
func perElement(b *ir.Builder, x *ir.Value, q *ir.Quant, numbers []float64) *ir.Value {
	t := x.Type.WithElem(q.Expressed)
	if q.Axis == ir.PerTensor {
		return b.Broadcast(b.Splat(ir.Tensor(q.Expressed), numbers[0]), t.Shape)
	}
	return b.Broadcast(b.Const(ir.Floats64(ir.Tensor(q.Expressed, len(numbers)), numbers...)), t.Shape, q.Axis)
}

func zeros(q *ir.Quant) []float64 {
	out := make([]float64, len(q.Zeros))
	for i, z := range q.Zeros {
		out[i] = float64(z)
	}
	return out
}

// numbers are those that the integers x stand for; x itself where q is nil.
func (*quantizer) numbers(b *ir.Builder, x *ir.Value, q *ir.Quant) *ir.Value {
	if q == nil {
		return x
	}
	return b.Mul(b.Sub(b.Convert(x, q.Expressed), perElement(b, x, q, zeros(q))), perElement(b, x, q, q.Scales))
}

// integers are the nearest ones that stand for the numbers x.
func integers(b *ir.Builder, x *ir.Value, q *ir.Quant) *ir.Value {
	x = b.Convert(x, q.Expressed)
	v := b.Add(b.Div(x, perElement(b, x, q, q.Scales)), perElement(b, x, q, zeros(q)))
	bound := func(n int64) *ir.Value { return b.Splat(ir.Tensor(q.Expressed), float64(n)) }
	v = b.Emit(ir.Clamp, []*ir.Value{bound(q.Min), v, bound(q.Max)}, nil, nil, nil).Result()
	return b.Convert(b.Unary(ir.RoundNearestEven, v), q.Storage)
}
