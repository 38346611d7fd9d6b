package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// Localize makes the program the one of a single device: values get the types
// of their shards, explicit collectives become those of StableHLO, whose groups
// are axes of the mesh, and windows, slices and rotations along sharded
// dimensions exchange halos. After it no sharding is left; parameters and results
// have theirs in the attribute pp.sharding.
//
// Every op is computed with the layouts that its operands and results state: it
// decides nothing.
func Localize(_ *pass.Context, m *ir.Module) error {
	p, err := programOf(m)
	if err != nil || p.f == nil {
		return err
	}
	f := p.f
	l := &localizer{
		program: p, values: make([]*ir.Value, f.NumIDs()), body: f.NewBody(),
		layouts: make([]layout.Layout, f.NumIDs()), alike: make(map[layout.Class]*assignment),
		replicas: p.mesh.Size() > 1 && m.Attrs.Int("mhlo.num_replicas") == p.mesh.Size(),
	}
	l.pieces = l.onlyPieces()
	l.build = ir.Builder{Func: f, Block: l.body}
	for _, v := range f.Params() {
		a := f.NewArg(l.body, p.local(v.Type, p.layoutOf(v)), v.Name)
		a.Attrs = v.Attrs
		if v.Sharding != nil {
			a.Attrs.Set(ir.KeySharding, v.Sharding)
		}
		l.values[v.ID] = a
	}
	if err := l.block(f.Body); err != nil {
		return err
	}
	for i, v := range l.body.Terminator().Operands {
		r := &f.Results[i]
		r.Type = v.Type
		if r.Sharding != nil {
			r.Attrs.Set(ir.KeySharding, r.Sharding)
		}
		r.Sharding = nil
	}
	f.Body = l.body
	f.Renumber()
	if !l.replicas {
		m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: p.mesh.Size(), Type: ir.I32})
	}
	return nil
}

// A localizer is the state of one run of [Localize].
type localizer struct {
	*program
	replicas bool                         // the devices are replicas of one partition
	layouts  []layout.Layout              // by ID of the global program
	values   []*ir.Value                  // by ID of the global program: this device's shard
	pieces   []bool                       // by ID of the global program: see onlyPieces
	alike    map[layout.Class]*assignment // what is stated of ops that are alike
	body     *ir.Block

	build    ir.Builder  // where ops go
	coords   []coordCopy // along which axes this device's coordinate is at hand
	channels int         // given out
}

// layoutOf is the layout that the sharding of v, of the global program, states.
func (p *localizer) layoutOf(v *ir.Value) layout.Layout {
	if p.layouts[v.ID] == nil {
		p.layouts[v.ID] = p.program.layoutOf(v)
	}
	return p.layouts[v.ID]
}

// value is this device's shard of v.
func (p *localizer) value(v *ir.Value) *ir.Value { return p.values[v.ID] }

// define notes that local is this device's shard of v.
func (p *localizer) define(v, local *ir.Value) {
	if local.Name == "" {
		local.Name = v.Name
	}
	p.values[v.ID] = local
}

// operands are this device's shards of vs; nil for pieces, which no op reads.
func (p *localizer) operands(vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		out[i] = p.value(v)
	}
	return out
}

// block computes the ops of b.
func (p *localizer) block(b *ir.Block) error {
	for _, op := range b.Ops {
		p.build.Origin = op.Origin
		lower := lowerings[op.Kind]
		if lower == nil {
			lower = (*localizer).op
		}
		if err := lower(p, op); err != nil {
			return err
		}
	}
	return nil
}

// lowerings has the ops that are not computed by a sharding rule.
var lowerings map[ir.Kind]func(*localizer, *ir.Op) error

func init() {
	lowerings = map[ir.Kind]func(*localizer, *ir.Op) error{
		ir.While: (*localizer).control, ir.Case: (*localizer).control, ir.If: (*localizer).control,
		ir.OptimizationBarrier: (*localizer).control, ir.Return: (*localizer).terminator, ir.FuncReturn: (*localizer).terminator,
		ir.ManualComputation: (*localizer).manual,
		ir.Concatenate:       (*localizer).concatenate,
		ir.SdyAllGather:      lowered((*localizer).allGather), ir.SdyAllSlice: lowered((*localizer).allSlice),
		ir.SdyAllToAll: lowered((*localizer).allToAll), ir.SdyCollectivePermute: lowered((*localizer).collectivePermute),
		ir.SdyAllReduce: lowered((*localizer).allReduce), ir.SdyReduceScatter: lowered((*localizer).reduceScatter),
		ir.ReplicatedToUnreduced: lowered((*localizer).replicatedToUnreduced), ir.ShardedToUnreduced: lowered((*localizer).shardedToUnreduced),
		ir.ShardingConstraint: unexpected, ir.Reshard: unexpected, ir.DataFlowEdge: unexpected, ir.PropagationBarrier: unexpected,
	}
}

// unexpected is an op that an earlier pass removes.
func unexpected(_ *localizer, op *ir.Op) error {
	return pass.Errorf(op, "%s is left over; choose and collectives replace it by explicit collectives", op.Name())
}

// lowered makes a lowering of what computes the shard of one result.
func lowered(lower func(p *localizer, op *ir.Op, x *ir.Value) *ir.Value) func(*localizer, *ir.Op) error {
	return func(p *localizer, op *ir.Op) error {
		x := p.value(op.Operands[0])
		v := lower(p, op, x)
		if v != x {
			v.Name = op.Result().Name
		}
		p.define(op.Result(), v)
		return nil
	}
}

// op computes an op by its sharding rule, with the layouts that are stated.
func (p *localizer) op(op *ir.Op) error {
	if len(op.Results) == 1 && p.pieces[op.Result().ID] {
		return nil
	}
	if !op.Known() && len(op.Regions) > 0 {
		return pass.Errorf(op, "%s is no op that is known here: what its region computes on shards is not known either; leave the mesh out, or put ops that are known in its place", op.Name())
	}
	a, err := p.fitting(op)
	if err != nil {
		return err
	}
	for i, v := range p.emit(op, a, p.operands(op.Operands)) {
		r := op.Results[i]
		if axes := p.reducedHere(op, a); len(axes) > 0 {
			v = p.reduceHere(ir.CombinerOf(op.Regions[0]), v, r, a.results[i], axes)
		}
		if device, ok := p.onOneDevice(r); ok {
			v = p.broadcastFrom(v, device)
		}
		p.define(r, v)
	}
	return nil
}

// fitting is what is stated of op, which is what it can be computed with.
func (p *localizer) fitting(op *ir.Op) (*assignment, error) {
	class, ok := p.classOf(op, p.layoutOf, func(*ir.Value) bool { return false })
	if a := p.alike[class]; ok && a != nil {
		return a, nil
	}
	a := p.stated(op)
	if err := p.fits(op, a); err != nil {
		return nil, err
	}
	if ok {
		if len(p.alike) == layout.MaxClasses {
			clear(p.alike)
		}
		p.alike[class] = a
	}
	return a, nil
}

// stated is the assignment that the layouts of op's operands and results state.
// The results are those of the op before it reduces them itself.
func (p *localizer) stated(op *ir.Op) *assignment {
	if slices.ContainsFunc(op.Results, func(v *ir.Value) bool { _, ok := p.onOneDevice(v); return ok }) {
		return p.replicatedAssignment(op)
	}
	rule := p.shardRule(op)
	if rule == nil {
		return p.replicatedAssignment(op)
	}
	a := &assignment{rule: rule, operands: make([]layout.Layout, len(op.Operands)), results: make([]layout.Layout, len(op.Results))}
	for i, v := range op.Operands {
		a.operands[i] = p.layoutOf(v)
	}
	for i, v := range op.Results {
		a.results[i] = p.layoutOf(v)
	}
	a.factors = p.statedFactors(a)
	if len(p.reducedHere(op, a)) > 0 {
		for i, dims := range a.rule.Results {
			a.results[i] = p.layoutBy(a.factors, dims)
		}
	}
	if halos := shardRowOf(op.Kind).halos; halos != nil {
		a.halos = halos(p.program, op, a)
	}
	return a
}

// statedFactors are the axes of each factor. Operands state them, but for those
// of windows, which a halo exchange may read from an operand that is not sharded
// along them; what no operand has, the results state.
func (p *program) statedFactors(a *assignment) [][]ir.AxisRef {
	factors, stated := make([][]ir.AxisRef, len(a.rule.Sizes)), make([]bool, len(a.rule.Sizes))
	for i, dims := range a.rule.Operands {
		if a.operands[i] == nil {
			continue
		}
		axes := p.project(a.operands[i], dims, a.rule)
		for _, k := range slices.Concat(dims...) {
			if !stated[k] && a.rule.Types[k] != ir.Permutation {
				factors[k], stated[k] = axes[k], true
			}
		}
	}
	for i, dims := range a.rule.Results {
		axes := p.project(a.results[i], dims, a.rule)
		for _, k := range slices.Concat(dims...) {
			if !stated[k] {
				factors[k], stated[k] = axes[k], true
			}
		}
	}
	return factors
}

// reducedHere are the axes along which op has partial results, and its result is
// not unreduced. They are reduced at once, where op says how.
func (p *localizer) reducedHere(op *ir.Op, a *assignment) []ir.AxisRef {
	if !combinesByRegion(op) || ir.CombinerOf(op.Regions[0]) == ir.Invalid {
		return nil
	}
	return p.outside(a.partial(), layout.UnreducedOf(op.Result().Sharding))
}

// reduceHere reduces v, the shard of r with the layout at, along axes.
func (p *localizer) reduceHere(k ir.Kind, v, r *ir.Value, at layout.Layout, axes []ir.AxisRef) *ir.Value {
	s := p.reduction(at, p.layoutOf(r), axes)
	at = at.Clone()
	for _, d := range s.scattered {
		at[d.dim] = p.mesh.JoinAxes(at[d.dim], d.axes)
		v = p.scatterAlong(v, p.local(r.Type, at), d.dim, d.axes, k).Named(v.Name)
	}
	if len(s.rest) > 0 {
		v = p.reduceAlong(v, p.sortedAxes(s.rest), k).Named(v.Name)
	}
	return v
}

// control computes an op with regions, or a barrier: its results have the layouts
// of their shardings.
func (p *localizer) control(op *ir.Op) error {
	in := p.operands(op.Operands)
	regions := make([]*ir.Block, len(op.Regions))
	for i, r := range op.Regions {
		var err error
		if regions[i], err = p.region(r); err != nil {
			return err
		}
	}
	types := make([]*ir.Type, len(op.Results))
	for i, v := range op.Results {
		types[i] = p.local(v.Type, p.layoutOf(v))
	}
	p.build.Origin = op.Origin
	n := p.build.Emit(op.Kind, in, op.Attrs, regions, types)
	n.Spelling = op.Spelling
	for i, v := range op.Results {
		p.define(v, n.Results[i])
	}
	return nil
}

// region computes b in a block of its own, and forgets the coordinates that are
// at hand there.
func (p *localizer) region(b *ir.Block) (*ir.Block, error) {
	outer, coords := p.build.Block, len(p.coords)
	defer func() { p.build.Block, p.coords = outer, p.coords[:coords] }()
	p.build.Block = new(ir.Block)
	for _, a := range b.Args {
		p.define(a, p.f.NewArg(p.build.Block, p.local(a.Type, p.layoutOf(a)), a.Name))
	}
	inner := p.build.Block
	return inner, p.block(b)
}

func (p *localizer) terminator(op *ir.Op) error {
	p.build.Emit(op.Kind, p.operands(op.Operands), op.Attrs, nil, nil)
	return nil
}

// manual puts the region in place of the manual computation: its ops work on one
// device's shards along the manual axes already.
func (p *localizer) manual(op *ir.Op) error {
	body := op.Regions[0]
	for i, a := range body.Args {
		p.define(a, p.value(op.Operands[i]))
	}
	ops := body.Ops[:len(body.Ops)-1]
	if err := p.block(&ir.Block{Ops: ops}); err != nil {
		return err
	}
	for i, v := range body.Terminator().Operands {
		p.define(op.Results[i], p.value(v))
	}
	return nil
}

// concatenate computes a concatenation, along a sharded dimension from the
// sources of its pieces.
func (p *localizer) concatenate(op *ir.Op) error {
	a := p.stated(op)
	if len(a.results[0][op.Int("dimension")]) == 0 {
		return p.op(op)
	}
	p.define(op.Result(), p.emitConcatenate(op, a))
	return nil
}
