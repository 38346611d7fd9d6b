package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
)

// controlOf is how the chooser walks an op whose tensors are related in other
// ways than by a sharding rule; nil for the others.
func controlOf(k ir.Kind) func(*chooser, *ir.Op) { return controls[k] }

// controls has a row for each such op.
var controls map[ir.Kind]func(*chooser, *ir.Op)

func init() {
	controls = map[ir.Kind]func(*chooser, *ir.Op){
		ir.While:                 whileLoop,
		ir.Case:                  branches,
		ir.If:                    branches,
		ir.OptimizationBarrier:   barrier,
		ir.ShardingConstraint:    constraint,
		ir.Reshard:               constraint,
		ir.DataFlowEdge:          constraint,
		ir.PropagationBarrier:    constraint,
		ir.SdyAllGather:          constraint,
		ir.SdyAllSlice:           constraint,
		ir.SdyAllToAll:           constraint,
		ir.SdyCollectivePermute:  constraint,
		ir.SdyAllReduce:          reduceExplicitly,
		ir.SdyReduceScatter:      reduceExplicitly,
		ir.ReplicatedToUnreduced: unreduceReplicated,
		ir.ShardedToUnreduced:    unreduceSharded,
		ir.ShardingGroup:         func(*chooser, *ir.Op) {},
		ir.ManualComputation:     manualComputation,
	}
}

// gets returns vs in the layouts that the shardings of as state, unreduced where
// these are.
func (p *chooser) gets(vs, as []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		p.learnUnreduced(v, as[i])
		out[i] = p.getDeferred(v, p.layoutOf(as[i]), p.summed[as[i].ID])
	}
	return out
}

// replace emits op with other operands and regions; its results have the
// layouts that their shardings state.
func (p *chooser) replace(op *ir.Op, operands []*ir.Value, regions []*ir.Block) {
	types := make([]*ir.Type, len(op.Results))
	for i, v := range op.Results {
		types[i] = v.Type
	}
	p.build.Origin = op.Origin
	n := p.build.Emit(op.Kind, operands, op.Attrs, regions, types)
	n.Spelling = op.Spelling
	for i, v := range op.Results {
		n.Results[i].Sharding = p.carrySharding(v)
		p.defineUnreduced(v, valueCopy{p.layoutOf(v), n.Results[i], p.summed[v.ID], ir.Add})
	}
}

// carrySharding is the sharding with which the chooser emits v, a result of an
// op with regions.
func (p *chooser) carrySharding(v *ir.Value) *ir.Sharding {
	if !v.Type.IsTensor() {
		return v.Sharding
	}
	return p.sharding(p.layoutOf(v), p.summed[v.ID], ir.Add)
}

// region walks b, whose arguments have the layouts of args, and which returns
// what has the layouts of results.
func (p *chooser) region(b *ir.Block, args, results []*ir.Value) *ir.Block {
	home, user := p.home, p.user
	defer func() { p.home, p.user = home, user }()
	p.home = b
	return p.inRegion(func() {
		for i, a := range b.Args {
			n := p.f.NewArg(p.build.Block, a.Type, a.Name)
			n.Sharding = p.carrySharding(args[i])
			p.defineUnreduced(a, valueCopy{p.layoutOf(args[i]), n, p.summed[args[i].ID], ir.Add})
		}
		p.ops(b)
		ret := b.Terminator()
		p.user = ret
		out := p.gets(ret.Operands, results)
		p.build.Origin = ret.Origin
		p.build.Emit(ret.Kind, out, ret.Attrs, nil, nil)
	})
}

func whileLoop(p *chooser, op *ir.Op) {
	for _, v := range op.Results {
		p.summed[v.ID] = p.known.unreduced[v]
	}
	operands := p.gets(op.Operands, op.Results)
	cond, body := op.Regions[0], op.Regions[1]
	p.replace(op, operands, []*ir.Block{
		p.region(cond, op.Results, cond.Terminator().Operands),
		p.region(body, op.Results, op.Results),
	})
}

func branches(p *chooser, op *ir.Op) {
	index := p.get(op.Operands[0], nil)
	regions := make([]*ir.Block, len(op.Regions))
	for i, r := range op.Regions {
		regions[i] = p.region(r, nil, op.Results)
	}
	p.replace(op, []*ir.Value{index}, regions)
}

func barrier(p *chooser, op *ir.Op) {
	operands := make([]*ir.Value, len(op.Operands))
	for i, r := range op.Results {
		c := p.handed(op.Operands[i], r)
		operands[i], p.summed[r.ID] = c.v, c.unreduced
	}
	p.replace(op, operands, nil)
}

// constraint reshards, and gives the result no other copy: who uses it gets it
// in the layout of the constraint, or resharded from that.
func constraint(p *chooser, op *ir.Op) {
	r := op.Result()
	p.defineUnreduced(r, p.handed(op.Operands[0], r))
}

// handed is x in the layout of r, which has the same value, unreduced along those
// axes of x's that r may be unreduced along.
func (p *chooser) handed(x, r *ir.Value) valueCopy {
	at := p.layoutOf(r)
	may := p.deferrable(r, at)
	if c, ok := p.reducedPartly(x, at, may); ok {
		return c
	}
	unreduced := p.unreducedAlong(x, may)
	return valueCopy{at, p.getDeferred(x, at, unreduced), unreduced, ir.Add}
}

// manualComputation walks the region: its ops work on what is one device's shard
// along the manual axes already, and are partitioned along the others. Nothing
// moves along manual axes, along which devices have values of their own.
func manualComputation(p *chooser, op *ir.Op) {
	in, out := op.Attrs.Get("in_shardings").(ir.PerValue), op.Attrs.Get("out_shardings").(ir.PerValue)
	manual := facts.ManualAxesOf(op)
	body, still := op.Regions[0], p.resharder.Still
	operands := make([]*ir.Value, len(op.Operands))
	for i, v := range op.Operands {
		operands[i] = p.getUnreduced(v, p.layout(in[i], v.Type), in[i])
	}
	p.resharder.Still = slices.Concat(still, ir.Axs(manual...))
	region := p.inRegion(func() {
		for i, a := range body.Args {
			n := p.f.NewArg(p.build.Block, a.Type, a.Name)
			at := p.layout(in[i].Without(manual...), a.Type)
			if a.Type.IsTensor() {
				n.Sharding = p.sharding(at, nil, ir.Add)
			}
			p.define(a, at, n)
		}
		p.ops(body)
		ret := body.Terminator()
		results := make([]*ir.Value, len(ret.Operands))
		for i, v := range ret.Operands {
			results[i] = p.get(v, p.layout(out[i].Without(manual...), v.Type))
		}
		p.build.Origin = ret.Origin
		p.build.Emit(ret.Kind, results, ret.Attrs, nil, nil)
	})
	p.resharder.Still = still
	p.build.Origin = op.Origin
	types := make([]*ir.Type, len(op.Results))
	for i, v := range op.Results {
		types[i] = v.Type
	}
	n := p.build.Emit(op.Kind, operands, op.Attrs, []*ir.Block{region}, types)
	for i, r := range op.Results {
		c := valueCopy{p.layout(out[i], r.Type), n.Results[i], layout.UnreducedOf(out[i]), layout.CombinerOf(out[i])}
		if r.Type.IsTensor() {
			c.v.Sharding = p.sharding(c.at, c.unreduced, c.by)
		}
		p.defineUnreduced(r, c)
	}
	p.settle(op)
}
