package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// partitionSpecial is how an op is partitioned whose tensors are related in
// other ways than by a rule; nil for the others.
func partitionSpecial(k ir.Kind) func(*partitioner, *ir.Op) {
	switch k {
	case ir.While:
		return partitionWhile
	case ir.Case, ir.If:
		return partitionBranches
	case ir.OptimizationBarrier:
		return partitionBarrier
	case ir.ShardingConstraint, ir.Reshard, ir.DataFlowEdge, ir.PropagationBarrier,
		ir.SdyAllGather, ir.SdyAllSlice, ir.SdyAllToAll, ir.SdyCollectivePermute:
		return partitionConstraint
	case ir.SdyAllReduce, ir.SdyReduceScatter:
		return partitionReduction
	case ir.ReplicatedToUnreduced:
		return partitionReplicated
	case ir.ShardedToUnreduced:
		return partitionSharded
	case ir.ShardingGroup:
		return func(*partitioner, *ir.Op) {}
	case ir.ManualComputation:
		return partitionManual
	case ir.Call:
		return func(p *partitioner, op *ir.Op) {
			p.fail(op, "func.call of %s: calls are partitioned only once they are inlined", ir.SymbolText(op.Sym("callee")))
		}
	}
	return nil
}

// gets returns vs lying as the corresponding values of as do by their
// shardings, partial where those are summed up.
func (p *partitioner) gets(vs, as []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		p.learnPartial(v, as[i])
		out[i] = p.getLate(v, p.layoutOf(as[i]), p.summedAxes(as[i]))
	}
	return out
}

// replace emits op with other operands and regions; its results lie as their
// shardings say.
func (p *partitioner) replace(op *ir.Op, operands []*ir.Value, regions []*ir.Block) {
	types := make([]*ir.Type, len(op.Results))
	for i, v := range op.Results {
		types[i] = p.local(v.Type, p.layoutOf(v))
	}
	p.build.Origin = op.Origin
	n := p.build.Emit(op.Kind, operands, op.Attrs, regions, types)
	n.Spelling = op.Spelling
	for i, v := range op.Results {
		p.definePartial(v, p.layoutOf(v), n.Results[i], p.summedAxes(v), ir.Add)
	}
}

// region partitions b, whose arguments lie as the values of args do by their
// shardings, and which returns what lies as those of results do.
func (p *partitioner) region(b *ir.Block, args, results []*ir.Value) *ir.Block {
	home, taker := p.home, p.taker
	defer func() { p.home, p.taker = home, taker }()
	p.home = b
	return p.inRegion(func() {
		for i, a := range b.Args {
			at := p.layoutOf(args[i])
			p.definePartial(a, at, p.f.NewArg(p.build.Block, p.local(a.Type, at), a.Name), p.summedAxes(args[i]), ir.Add)
		}
		p.ops(b)
		ret := b.Terminator()
		p.taker = ret
		out := p.gets(ret.Operands, results)
		p.build.Origin = ret.Origin
		p.build.Emit(ret.Kind, out, ret.Attrs, nil, nil)
	})
}

func partitionWhile(p *partitioner, op *ir.Op) {
	for _, v := range op.Results {
		p.summed[v.ID] = p.lessons.partial[v]
	}
	operands := p.gets(op.Operands, op.Results)
	cond, body := op.Regions[0], op.Regions[1]
	p.replace(op, operands, []*ir.Block{
		p.region(cond, op.Results, cond.Terminator().Operands),
		p.region(body, op.Results, op.Results),
	})
}

func partitionBranches(p *partitioner, op *ir.Op) {
	index := p.get(op.Operands[0], nil)
	regions := make([]*ir.Block, len(op.Regions))
	for i, r := range op.Regions {
		regions[i] = p.region(r, nil, op.Results)
	}
	p.replace(op, []*ir.Value{index}, regions)
}

func partitionBarrier(p *partitioner, op *ir.Op) {
	operands := make([]*ir.Value, len(op.Operands))
	for i, r := range op.Results {
		operands[i], p.summed[r.ID] = p.handed(op.Operands[i], r)
	}
	p.replace(op, operands, nil)
}

// partitionConstraint reshards, and gives the result no other copy: who uses
// it gets it as the constraint says, or from that.
func partitionConstraint(p *partitioner, op *ir.Op) {
	r := op.Result()
	v, partial := p.handed(op.Operands[0], r)
	p.definePartial(r, p.layoutOf(r), v, partial, ir.Add)
}

// handed is x lying as r does, which is to be the same, and the axes along which
// it is partial: those of x's that r may be partial along.
func (p *partitioner) handed(x, r *ir.Value) (local *ir.Value, partial []ir.AxisRef) {
	at := p.layoutOf(r)
	late := p.lateOf(r, at)
	if v, left := p.combinedPartly(x, at, late); v != nil {
		return v, left
	}
	partial = p.partialAlong(x, late)
	return p.getLate(x, at, partial), partial
}

// partitionManual inlines the region: its ops work on what is one device's
// part along the manual axes already, and are partitioned along the others: what
// devices have that differ along manual axes has nothing to do with each other.
func partitionManual(p *partitioner, op *ir.Op) {
	in, out := op.Attrs.Get("in_shardings").(ir.PerValue), op.Attrs.Get("out_shardings").(ir.PerValue)
	manual := facts.ManualAxesOf(op)
	body, still := op.Regions[0], p.resharder.Still
	for i, a := range body.Args {
		v := op.Operands[i]
		local := p.getUnreduced(v, p.layout(in[i], v.Type, v), in[i])
		p.define(a, p.layout(in[i].Without(manual...), a.Type, a), local)
	}
	p.resharder.Still = slices.Concat(still, ir.Axs(manual...))
	p.ops(body)
	for i, v := range body.Terminator().Operands {
		local := p.get(v, p.layout(out[i].Without(manual...), v.Type, v))
		r := op.Results[i]
		p.definePartial(r, p.layout(out[i], r.Type, r), local, layout.UnreducedOf(out[i]), layout.CombinerOf(out[i]))
	}
	p.resharder.Still = still
	p.settle(op)
}
