package optest

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

var moveCases = []Case{
	{Name: "broadcast_in_dim", Linear: true, Build: func(p *Program) []*ir.Value {
		out := p.Sizes(1 + p.IntN(4))
		dims := p.Perm(len(out))[:p.IntN(len(out)+1)]
		in := make([]int, len(dims))
		for i, d := range dims {
			if in[i] = out[d]; p.IntN(3) == 0 {
				in[i] = 1
			}
		}
		return []*ir.Value{p.B.Broadcast(p.Float(in...), out, dims...)}
	}},
	{Name: "bitcast_convert", Build: func(p *Program) []*ir.Value {
		x := p.Float(p.shape()...)
		halves := ir.Tensor(ir.I32, append(slices.Clone(x.Type.Shape), 2)...)
		bits := p.B.Emit(ir.BitcastConvert, []*ir.Value{x}, nil, nil, []*ir.Type{halves}).Result()
		return []*ir.Value{p.B.Convert(bits, ir.F64)}
	}},
	{Name: "concatenate", Linear: true, Build: func(p *Program) []*ir.Value {
		s := p.Sizes(1 + p.IntN(3))
		dim := p.IntN(len(s))
		var xs []*ir.Value
		for range 1 + p.IntN(3) {
			s[dim] = p.IntN(3)
			xs = append(xs, p.Float(s...))
		}
		return []*ir.Value{p.B.Concat(dim, append(xs, xs[0])...)}
	}},
	{Name: "dynamic_slice", Linear: true, Build: func(p *Program) []*ir.Value {
		x := p.Float(p.shape()...)
		start, sizes := p.window(x.Type.Shape)
		return []*ir.Value{p.B.DynamicSlice(x, start, sizes...)}
	}},
	{Name: "dynamic_update_slice", Linear: true, Build: func(p *Program) []*ir.Value {
		x := p.Float(p.shape()...)
		start, sizes := p.window(x.Type.Shape)
		return []*ir.Value{p.B.DynamicUpdateSlice(x, p.Float(sizes...), start)}
	}},
	{Name: "pad", Linear: true, Build: func(p *Program) []*ir.Value {
		x := p.Float(p.shape()...)
		rank := x.Type.Rank()
		low, high, interior := make([]int, rank), make([]int, rank), make([]int, rank)
		for d, n := range x.Type.Shape {
			interior[d] = p.IntN(3)
			size := n + (n-1)*interior[d]
			low[d], high[d] = p.IntN(5)-2, p.IntN(5)-2
			if size+low[d]+high[d] < 0 {
				low[d] = -size - high[d]
			}
		}
		return []*ir.Value{p.B.Pad(x, p.Float(), low, high, interior)}
	}},
	{Name: "reshape", Linear: true, Build: func(p *Program) []*ir.Value {
		s := p.shape()
		return []*ir.Value{p.B.Reshape(p.Float(s...), ir.Tensor(ir.F64, s...).NumElements(), 1)}
	}},
	{Name: "reverse", Linear: true, Build: func(p *Program) []*ir.Value {
		s := p.shape()
		return p.Attr(ir.Reverse, []*ir.Value{p.Float(s...)}, facts.Named("dimensions", ir.Ints(p.some(len(s)))))
	}},
	{Name: "slice", Linear: true, Build: func(p *Program) []*ir.Value {
		x := p.Float(p.shape()...)
		var start, limit, strides ir.Ints
		for _, n := range x.Type.Shape {
			a := p.IntN(n + 1)
			start, limit, strides = append(start, a), append(limit, a+p.IntN(n-a+1)), append(strides, 1+p.IntN(3))
		}
		return p.Attr(ir.Slice, []*ir.Value{x}, facts.Named("start_indices", start), facts.Named("limit_indices", limit), facts.Named("strides", strides))
	}},
	{Name: "transpose", Linear: true, Build: func(p *Program) []*ir.Value {
		s := p.shape()
		return []*ir.Value{p.B.Transpose(p.Float(s...), p.Perm(len(s))...)}
	}},
}
