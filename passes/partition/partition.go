package partition

import (
	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// Partition turns the global program into the program of one device: @main and
// its values get the types of one device's parts, and what a device needs of
// others becomes explicit collectives, whose groups are axes of the mesh.
// Before, every tensor has a closed sharding whose axes divide it; after, no
// sharding is left, and parameters and results say in the attribute
// pp.sharding how they lie.
//
// An op with a sharding rule computes with the axes that [partitioner.choose]
// finds cheapest for its factors: its operands are resharded to that, the op
// is emitted on parts, partial results are combined over the axes of reduced
// factors, and the result is resharded to its own sharding. A value keeps the
// copies made of it, so that no reshard is done twice in one block. Constants
// and what is computed from them are made where they are used, as they are
// used. Moves along a cut dimension (slice, pad, concatenate, reverse) wait
// until their result is used: see [partitioner.moved].
//
// It warns of every value that it gathers although the program wants it sharded
// before and after.
func Partition(c *pass.Context, m *ir.Module) error {
	f := m.Main()
	if f == nil || f.Body == nil {
		return nil
	}
	mesh, err := layout.MeshOf(m, f)
	if err != nil {
		return err
	}
	if mesh == nil {
		mesh = &ir.Mesh{Name: "mesh"}
	}
	layout.SummedParams(mesh, f)
	divide(mesh, f)
	p, err := learn(c, m, mesh, f)
	if err != nil {
		return err
	}
	p.commit()
	return nil
}

func newPartitioner(m *ir.Module, mesh *ir.Mesh, f *ir.Func, plans map[string]*layout.ReshardPlan) *partitioner {
	return &partitioner{
		m: m, mesh: mesh, f: f, free: layout.FreeValues(f, true), copies: make([][]valueCopy, f.NumIDs()), waiting: make([]int, f.NumIDs()),
		reduced:   reductionsOf(f),
		late:      lateAxes(f),
		summed:    make([][]ir.AxisRef, f.NumIDs()),
		replicas:  mesh.Size() > 1 && m.Attrs.Int("mhlo.num_replicas") == mesh.Size(),
		resharder: layout.Resharder{Mesh: mesh, Plans: plans},
	}
}

// A partitioner is the state of one run of partition. Values of the global
// program are told from those of the device program by where they come from:
// copies is indexed by the IDs of the former and holds the latter.
type partitioner struct {
	m        *ir.Module
	warn     func(*pass.Error) // may be nil
	lessons  lessons           // of earlier runs
	learned  lessons           // for later ones
	mesh     *ir.Mesh
	replicas bool // the devices are replicas of one partition
	f        *ir.Func
	free     []bool         // by ID
	reduced  [][]combining  // by ID: how explicit collectives combine the value
	late     [][]ir.AxisRef // by ID: along which axes the value may stay partial
	merged   [][]ir.AxisRef // by ID: along which axes it stays partial until it is added to another
	summed   [][]ir.AxisRef // by ID: along which axes the result of a loop is partial
	// waiting is, by ID, one more than the dimension along which a value waits
	// to be moved; 0 if it does not.
	waiting []int

	home  *ir.Block // of the global program, whose ops are being partitioned
	taker *ir.Op    // that is being partitioned
	body  *ir.Block // of the device program
	undo  []func()  // what makes the global program again what it was

	copies [][]valueCopy // by ID: how the value is at hand, its first copy first
	trail  []ir.ID       // whose copies have grown, to undo that at the end of a region
	coords []coordCopy   // along which axes this device's coordinate is at hand

	build    ir.Builder // where ops go
	channels int        // given out

	resharder layout.Resharder
}

// A valueCopy is a global value as it lies on the devices. Where it is partial
// along axes, the value is what the devices along them have, combined by an op.
type valueCopy struct {
	at      layout.Layout
	v       *ir.Value
	partial []ir.AxisRef
	by      ir.Kind
}

func (p *partitioner) run() (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*pass.Error)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	p.merged = p.mergedAxes(p.f)
	p.body = new(ir.Block)
	p.build = ir.Builder{Func: p.f, Block: p.body}
	for _, v := range p.f.Params() {
		at := p.layoutOf(v)
		a := p.f.NewArg(p.body, p.local(v.Type, at), v.Name)
		a.Attrs = v.Attrs
		if v.Sharding != nil {
			a.Attrs.Set(ir.KeySharding, v.Sharding)
		}
		p.definePartial(v, at, a, layout.UnreducedOf(v.Sharding), layout.CombinerOf(v.Sharding))
	}
	p.home = p.f.Body
	p.ops(p.f.Body)
	ret := p.f.Return()
	p.taker = ret
	out := make([]*ir.Value, len(ret.Operands))
	for i, v := range ret.Operands {
		s := p.f.Results[i].Sharding
		out[i] = p.getUnreduced(v, p.layout(s, v.Type, v), s)
	}
	p.build.Origin = ret.Origin
	p.build.Emit(ir.FuncReturn, out, ret.Attrs, nil, nil)
	return nil
}

// commit makes the device program that run has built the program.
func (p *partitioner) commit() {
	for i, v := range p.body.Terminator().Operands {
		r := &p.f.Results[i]
		r.Type = v.Type
		if r.Sharding != nil {
			r.Attrs.Set(ir.KeySharding, r.Sharding)
		}
		r.Sharding = nil
	}
	p.f.Body = p.body
	p.f.Renumber()
	if !p.replicas {
		p.m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: p.mesh.Size(), Type: ir.I32})
	}
}

// fail ends the run with an error about op.
func (p *partitioner) fail(op *ir.Op, format string, args ...any) {
	panic(pass.Errorf(op, format, args...))
}

// layoutOf is how v lies by its own sharding.
func (p *partitioner) layoutOf(v *ir.Value) layout.Layout { return p.layout(v.Sharding, v.Type, v) }

// Layout is the layout of a tensor of type t that lies as s says; v is whose
// it is. Sizes that do not divide end the run.
func (p *partitioner) layout(s *ir.Sharding, t *ir.Type, v *ir.Value) layout.Layout {
	if !t.IsTensor() {
		return nil
	}
	at := make(layout.Layout, t.Rank())
	if s == nil {
		return at
	}
	for d := range at {
		for _, r := range s.Axes(d) {
			if p.mesh.RefSize(r) > 1 {
				at[d] = append(at[d], r)
			}
		}
		if n := p.mesh.RefsSize(at[d]); t.Shape[d]%n != 0 {
			p.fail(v.Def, "%s: dimension %d has size %d, which the axes %s do not divide (%d)%s; choose another size or another sharding",
				facts.Describe(v), d, t.Shape[d], layout.AxesText(p.mesh, at[d]), n, layout.RulesText(p.mesh, layout.ShardedDim{D: d, Axes: at[d], Rule: s.Dims[d].Rule}))
		}
	}
	return at
}

// local is the type of one device's part of a tensor of type t.
func (p *partitioner) local(t *ir.Type, at layout.Layout) *ir.Type {
	if !t.IsTensor() || at.Whole() {
		return t
	}
	shape := make([]int, t.Rank())
	for d, n := range t.Shape {
		shape[d] = n / p.mesh.RefsSize(at[d])
	}
	return t.WithShape(shape...)
}

// define notes that local is the global value v, lying as at says.
func (p *partitioner) define(v *ir.Value, at layout.Layout, local *ir.Value) {
	p.definePartial(v, at, local, nil, ir.Invalid)
}

// definePartial is define for what is partial along axes.
func (p *partitioner) definePartial(v *ir.Value, at layout.Layout, local *ir.Value, axes []ir.AxisRef, by ir.Kind) {
	if local.Name == "" {
		local.Name = v.Name
	}
	p.copies[v.ID] = append(p.copies[v.ID], valueCopy{at, local, axes, by})
	p.trail = append(p.trail, v.ID)
}

// get returns v lying as at says: a copy that is at hand, or a new one from
// the copy that is cheapest to reshard.
func (p *partitioner) get(v *ir.Value, at layout.Layout) *ir.Value {
	p.learnCopy(v, at)
	for _, c := range p.copies[v.ID] {
		if len(c.partial) == 0 && c.at.Equal(at) {
			return c.v
		}
	}
	local := p.make(v, at)
	p.define(v, at, local)
	return local
}

func (p *partitioner) make(v *ir.Value, at layout.Layout) *ir.Value {
	switch {
	case p.free[v.ID]:
		return p.makeFree(v, at)
	case len(p.copies[v.ID]) == 0:
		return p.makeMoved(v, at)
	}
	if a, _ := p.again(v, at, p.movedFrom(v, at)); a != nil {
		return p.computeAgain(v, a)
	}
	best := p.nearest(v, at)
	p.warnThroughWhole(v, best.at, at)
	if len(best.partial) > 0 {
		best.v, best.at = p.combine(best.by, best.v, v.Type, best.at, at, best.partial)
	}
	return p.reshard(best.v, v.Type, best.at, at)
}

// nearest is the copy of v from which at is reached with the fewest bytes.
func (p *partitioner) nearest(v *ir.Value, at layout.Layout) valueCopy {
	copies := p.copies[v.ID]
	best, bytes := copies[0], -1
	for _, c := range copies {
		from, n := c.at, 0
		if len(c.partial) > 0 {
			from, n = p.combineCost(v.Type, from, at, c.partial)
		}
		if n += p.resharder.Plan(v.Type, from, at).Bytes; bytes < 0 || n < bytes {
			best, bytes = c, n
		}
	}
	return best
}

// inRegion runs do with a new block to build in, and forgets the copies made
// there.
func (p *partitioner) inRegion(do func()) *ir.Block {
	outer, trail, coords := p.build.Block, len(p.trail), len(p.coords)
	b := new(ir.Block)
	p.build.Block = b
	do()
	p.build.Block = outer
	for _, id := range p.trail[trail:] {
		p.copies[id] = p.copies[id][:len(p.copies[id])-1]
	}
	p.trail, p.coords = p.trail[:trail], p.coords[:coords]
	return b
}

// ops partitions the ops of b but for its terminator.
func (p *partitioner) ops(b *ir.Block) {
	for _, op := range b.Ops[:len(b.Ops)-1] {
		p.build.Origin, p.taker = op.Origin, op
		if special := partitionSpecial(op.Kind); special != nil {
			special(p, op)
			continue
		}
		if len(op.Results) == 1 && p.free[op.Result().ID] || p.waits(op) || p.opLate(op) || p.opMerged(op) {
			continue
		}
		p.op(op)
	}
}

// op partitions an op by its sharding rule; one without a rule has whole
// operands and makes whole results.
func (p *partitioner) op(op *ir.Op) {
	want := make([]layout.Layout, len(op.Results))
	for i, v := range op.Results {
		want[i] = p.layoutOf(v)
	}
	a := p.choose(op, want)
	operands := make([]*ir.Value, len(op.Operands))
	for i, v := range op.Operands {
		p.warnWhole(op, a, i)
		operands[i] = p.get(v, a.operands[i])
	}
	p.build.Origin = op.Origin
	for i, local := range p.emit(op, a, operands) {
		v := op.Results[i]
		at := a.results[i]
		if axes := a.partial(); len(axes) > 0 {
			var rest []ir.AxisRef
			a.left, rest = p.kept(v, axes, ir.Add)
			a.by = ir.Add
			local, at = p.combine(ir.Add, local, v.Type, at, want[i], rest)
		}
		if device, ok := layout.OnOneDevice(p.m, v.Sharding); ok {
			local = p.broadcastFrom(local, device)
		}
		p.definePartial(v, at, local, a.left, a.by)
	}
	p.settle(op)
}

// settle makes the results of op lie as their shardings say, where they were
// computed: what is made inside a loop is not resharded there if the value
// comes from outside.
func (p *partitioner) settle(op *ir.Op) {
	for _, v := range op.Results {
		if n := len(p.copies[v.ID]); v.Type.IsTensor() && n > 0 && len(p.copies[v.ID][n-1].partial) == 0 {
			p.get(v, p.layoutOf(v))
		}
	}
}
