package optest

import (
	"ppc/ir"
	"ppc/ir/facts"
)

// manual computes build for each device of a mesh of 2 x 2.
func (p *Program) manual(in, out []*ir.Sharding, results []*ir.Type, operands []*ir.Value, build func(b *ir.Builder, args []*ir.Value) []*ir.Value) []*ir.Value {
	p.M.Meshes = []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}}}
	mesh := p.M.Meshes[0]
	body := new(ir.Block)
	for i, v := range operands {
		p.B.Func.NewArg(body, in[i].Local(v.Type, mesh), "")
	}
	inside := p.B.In(body)
	inside.Emit(ir.SdyReturn, build(inside, body.Args), nil, nil, nil)
	attrs := ir.AttrsOf(facts.Named("in_shardings", ir.PerValue(in)), facts.Named("out_shardings", ir.PerValue(out)), facts.Named("manual_axes", ir.Array{ir.Str("x"), ir.Str("y")}))
	return p.B.Emit(ir.ManualComputation, operands, attrs, []*ir.Block{body}, results).Results
}

// along is the sharding with dimension i along the axes dims[i].
func along(dims ...[]ir.AxisRef) *ir.Sharding { return ir.NewSharding("mesh", dims...) }

// groups are attributes of a collective along axis.
func groups(axis string, more ...ir.NamedAttr) ir.Attrs {
	return ir.AttrsOf(append(more, facts.Named("replica_groups", ir.MeshAxes{Mesh: "mesh", Axes: ir.Axs(axis)}), facts.Named("channel_handle", ir.Channel{Handle: 1, Type: 1}))...)
}

// each is a test of a collective on values of 4x4, of which each device has a
// part of 2x2, that makes local parts of the given sizes.
func each(name string, rows, cols int, build func(b *ir.Builder, x *ir.Value) []*ir.Value) Case {
	return Case{Name: name, Linear: true, Build: func(p *Program) []*ir.Value {
		s := along(ir.Axs("x"), ir.Axs("y"))
		return p.manual([]*ir.Sharding{s}, []*ir.Sharding{s}, []*ir.Type{ir.Tensor(ir.F64, 2*rows, 2*cols)}, []*ir.Value{p.Float(4, 4)},
			func(b *ir.Builder, args []*ir.Value) []*ir.Value { return build(b, args[0]) })
	}}
}

func rotation(edge string, shift int) Case {
	return Case{Name: "pp.rotate " + edge, Linear: true, Build: func(p *Program) []*ir.Value {
		s := p.Sizes(1 + p.IntN(3))
		operands := []*ir.Value{p.Float(s...)}
		if edge == "fill" {
			operands = append(operands, p.Float(s...))
		}
		return p.Attr(ir.PPRotate, operands, facts.Named("edge", ir.Str(edge)), facts.Named("shift", ir.I64Attr(shift)), facts.Named("lowering", ir.Str("slice_pad")))
	}}
}

// resharded is an op whose result is its operand with another sharding.
func resharded(name string, k ir.Kind, to *ir.Sharding) Case {
	return Case{Name: name, Linear: true, Build: func(p *Program) []*ir.Value {
		p.M.Meshes = []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}}}}
		x := p.Float(4, 3)
		x.Sharding = along(ir.Axs("x"), nil)
		return p.Attr(k, []*ir.Value{x}, facts.Named("sharding", to))
	}}
}

var deviceCases = []Case{
	each("all_gather", 4, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		return b.Emit(ir.AllGather, []*ir.Value{x}, groups("y", facts.Named("all_gather_dim", ir.I64Attr(0)), facts.Named("use_global_device_ids", ir.Unit{})), nil, []*ir.Type{ir.Tensor(ir.F64, 4, 2)}).Results
	}),
	each("reduce_scatter", 2, 1, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		attrs := groups("x", facts.Named("scatter_dimension", ir.I64Attr(1)), facts.Named("use_global_device_ids", ir.Unit{}))
		return b.Emit(ir.ReduceScatter, []*ir.Value{x}, attrs, []*ir.Block{b.Combiner(ir.Add, ir.F64)}, []*ir.Type{ir.Tensor(ir.F64, 2, 1)}).Results
	}),
	each("all_reduce", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		return b.Emit(ir.AllReduce, []*ir.Value{x}, groups("x", facts.Named("use_global_device_ids", ir.Unit{})), []*ir.Block{b.Combiner(ir.Add, ir.F64)}, nil).Results
	}),
	each("all_to_all", 4, 1, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		attrs := groups("y", facts.Named("split_dimension", ir.I64Attr(1)), facts.Named("concat_dimension", ir.I64Attr(0)), facts.Named("split_count", ir.I64Attr(2)))
		return b.Emit(ir.AllToAll, []*ir.Value{x}, attrs, nil, nil).Results
	}),
	each("collective_permute along an axis", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		pairs := ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("x"), Shift: 1}
		return b.Emit(ir.CollectivePermute, []*ir.Value{x}, ir.AttrsOf(facts.Named("source_target_pairs", pairs)), nil, nil).Results
	}),
	each("collective_permute along two axes, reversed", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		pairs := ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("y", "x"), Shift: 1, Reverse: true}
		return b.Emit(ir.CollectivePermute, []*ir.Value{x}, ir.AttrsOf(facts.Named("source_target_pairs", pairs)), nil, nil).Results
	}),
	each("collective_permute between axes", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		pairs := ir.AxisMove{Mesh: "mesh", From: ir.Axs("x", "y"), To: ir.Axs("y", "x")}
		return b.Emit(ir.CollectivePermute, []*ir.Value{x}, ir.AttrsOf(facts.Named("source_target_pairs", pairs)), nil, nil).Results
	}),
	each("collective_permute of pairs", 2, 2, func(b *ir.Builder, x *ir.Value) []*ir.Value {
		pairs := ir.Ints64(ir.Tensor(ir.I64, 3, 2), 0, 3, 3, 1, 2, 2)
		return b.Emit(ir.CollectivePermute, []*ir.Value{x}, ir.AttrsOf(facts.Named("source_target_pairs", pairs), facts.Named("channel_handle", ir.Channel{Handle: 1, Type: 1})), nil, nil).Results
	}),
	{Name: "sdy.manual_computation", Build: func(p *Program) []*ir.Value {
		rows, whole := along(ir.Axs("x"), nil), along(nil, nil)
		t := ir.Tensor(ir.F64, 4, 2)
		return p.manual([]*ir.Sharding{rows, whole}, []*ir.Sharding{rows, whole}, []*ir.Type{t, t.WithShape(2, 2)}, []*ir.Value{p.Float(4, 2), p.Float(2, 2)},
			func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				h := b.Unary(ir.Tanh, b.Mul(args[0], args[1]))
				all := b.Emit(ir.AllReduce, []*ir.Value{h}, groups("x", facts.Named("use_global_device_ids", ir.Unit{})), []*ir.Block{b.Combiner(ir.Add, ir.F64)}, nil).Result()
				return []*ir.Value{b.Mul(h, all), b.Mul(all, args[1])}
			})
	}},
	resharded("sdy.sharding_constraint", ir.ShardingConstraint, along(ir.Axs("x"), nil)),
	resharded("sdy.reshard", ir.Reshard, along(nil, ir.Axs("x"))),
	resharded("pp.gather", ir.PPGather, along(nil, nil)),
	{Name: "pp.name", Linear: true, Build: func(p *Program) []*ir.Value {
		return p.Attr(ir.PPName, []*ir.Value{p.Float(p.shape()...)}, facts.Named("name", ir.Str("x")))
	}},
	rotation("wrap", 1), rotation("wrap", -1), rotation("zero", 1), rotation("zero", -1), rotation("fill", 1), rotation("fill", -1),
}
