package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// Choose decides with which layouts every op is computed, and writes that into
// the program: the sharding of each value is the layout that its op computes
// it with, with an sdy.reshard where an op needs another, and what is a sum
// over sharded axes is unreduced until a reshard reduces it. After it every op
// can be computed shard by shard, but for the halos of its windows.
//
// An op with a sharding rule is computed with the axes that [chooser.assign]
// finds cheapest for its factors. A value keeps the copies resharded from it, so
// that no reshard is done twice in one block. Constants and what is computed
// from them are computed where they are used, with the layout of the use. A
// slice, pad or concatenation along a sharded dimension is deferred until its result
// is used, see [chooser.defersMove].
//
// It warns of every value that it gathers although the program wants it sharded
// before and after.
func Choose(c *pass.Context, m *ir.Module) error {
	p, err := programOf(m)
	if err != nil || p.f == nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	p.splitMoves()
	body := learn(c, p)
	p.f.Body = body
	p.f.Renumber()
	return nil
}

// A chooser is the state of one walk over the program, which builds it anew
// and does not change it. The values of the given program are told from those
// of the new one by where they come from: copies is indexed by the IDs of the
// former and holds the latter.
type chooser struct {
	*given
	warn    func(*pass.Error)      // may be nil
	known   lessons                // of earlier walks
	learned lessons                // for later ones
	told    []answers              // what this walk asked of known
	summed  map[ir.ID][]ir.AxisRef // by ID: along which axes the result of a loop is unreduced

	home *ir.Block // of the given program, whose ops are walked
	user *ir.Op    // that is being walked
	body *ir.Block // of the new program

	copies [][]valueCopy // by ID: the layouts in which the value is at hand, its first copy first
	trail  []ir.ID       // whose copies have grown, to undo that at the end of a region

	build     ir.Builder // where ops go
	resharder layout.Resharder
}

// A valueCopy is a value of the new program that is one of the given program,
// in some layout. Where it is unreduced along axes, the value is what the
// devices along them have, combined by an op.
type valueCopy struct {
	at        layout.Layout
	v         *ir.Value
	unreduced []ir.AxisRef
	by        ir.Kind
}

// A given is the given program and what the walks ask of it.
type given struct {
	*program
	values   int                          // how many IDs its values have
	free     []bool                       // by ID: any device can compute any shard by itself
	combined map[ir.ID][]layout.Combining // by ID: how explicit collectives combine the value
	deferred map[ir.ID][]ir.AxisRef       // by ID: along which axes the value may stay unreduced
	merged   map[ir.ID][]ir.AxisRef       // by ID: along which axes it stays unreduced until it is added to another
	moves    []int                        // by ID: see [program.movesOf]
	layouts  []layout.Layout              // by ID: that its sharding states
	plans    map[string]*layout.ReshardPlan

	decisions map[*ir.Op][]*decision       // of all walks, for one op each
	alike     map[layout.Class][]*decision // of all walks, for ops that are alike; nil: none are
	asking    *decision                    // that is being made
	askings   int                          // how many were
	asked     []int                        // by ID: the last of askings that asked for its copies
}

func newGiven(p *program) *given {
	f := p.f
	g := &given{
		program: p, values: f.NumIDs(), free: layout.FreeOrConstrained(f), combined: layout.CombiningsOf(f), deferred: deferredAxes(f), moves: p.movesOf(),
		layouts: make([]layout.Layout, f.NumIDs()), plans: make(map[string]*layout.ReshardPlan),
		decisions: make(map[*ir.Op][]*decision), alike: make(map[layout.Class][]*decision), asked: make([]int, f.NumIDs()),
	}
	g.merged = g.mergedAxes(f)
	return g
}

// layoutOf is the layout that the sharding of v, of the given program, states.
func (g *given) layoutOf(v *ir.Value) layout.Layout {
	if at := g.layouts[v.ID]; at != nil || !v.Type.IsTensor() {
		return at
	}
	at := g.program.layoutOf(v)
	g.layouts[v.ID] = at
	return at
}

// factorsOf is the sharding rule of op, of the given program.
func (g *given) factorsOf(op *ir.Op) *ir.Factors {
	return g.shared.Rules.Of(op)
}

func newChooser(g *given) *chooser {
	return &chooser{
		given: g, copies: make([][]valueCopy, g.values), summed: make(map[ir.ID][]ir.AxisRef),
		resharder: layout.Resharder{Mesh: g.mesh, Plans: g.plans},
	}
}

// run walks the program.
func (p *chooser) run() {
	p.body = p.f.NewBody()
	p.build = ir.Builder{Func: p.f, Block: p.body}
	for _, v := range p.f.Params() {
		a := p.f.NewArg(p.body, v.Type, v.Name)
		a.Attrs, a.Sharding = v.Attrs, p.ofMesh(v.Sharding)
		p.defineUnreduced(v, valueCopy{p.layoutOf(v), a, layout.UnreducedOf(v.Sharding), layout.CombinerOf(v.Sharding)})
	}
	p.home = p.f.Body
	p.ops(p.f.Body)
	ret := p.f.Return()
	p.user = ret
	out := make([]*ir.Value, len(ret.Operands))
	for i, v := range ret.Operands {
		s := p.f.Results[i].Sharding
		out[i] = p.getUnreduced(v, p.layout(s, v.Type), s)
	}
	p.build.Origin = ret.Origin
	p.build.Emit(ir.FuncReturn, out, ret.Attrs, nil, nil)
}

// ofMesh is s, of the mesh that all shardings are of.
func (p *program) ofMesh(s *ir.Sharding) *ir.Sharding {
	if s == nil || p.meshless || s.Mesh == p.mesh.Name {
		return s
	}
	if _, ok := layout.OnOneDevice(p.m, s); ok {
		return s
	}
	s = s.Clone()
	s.Mesh = p.mesh.Name
	return s
}

// define notes that the value v of the given program is local, with a layout.
func (p *chooser) define(v *ir.Value, at layout.Layout, local *ir.Value) {
	p.defineUnreduced(v, valueCopy{at: at, v: local})
}

// defineUnreduced is define for a copy that may be unreduced.
func (p *chooser) defineUnreduced(v *ir.Value, c valueCopy) {
	if c.v.Name == "" {
		c.v.Name = v.Name
	}
	p.copies[v.ID] = append(p.copies[v.ID], c)
	p.trail = append(p.trail, v.ID)
}

// get returns v in the given layout: a copy that is at hand, or one resharded
// from the copy from which the fewest bytes move.
func (p *chooser) get(v *ir.Value, at layout.Layout) *ir.Value {
	p.learnCopy(v, at)
	for _, c := range p.copies[v.ID] {
		if len(c.unreduced) == 0 && c.at.Equal(at) {
			return c.v
		}
	}
	c := p.make(v, at)
	p.define(v, at, c)
	return c
}

func (p *chooser) make(v *ir.Value, at layout.Layout) *ir.Value {
	switch {
	case p.free[v.ID]:
		return p.makeFree(v, at)
	case len(p.copies[v.ID]) == 0:
		return p.makeMoved(v, at)
	}
	if a, _ := p.recomputation(v, at, p.bytesFrom(v, at)); a != nil {
		return p.recompute(v, a)
	}
	best := p.nearest(v, at)
	p.warnThroughReplicated(v, best.at, at)
	return p.reshard(best, at, nil)
}

// reshard makes of a copy one with the given layout that is unreduced along
// no axes but left; the others are reduced.
func (p *chooser) reshard(c valueCopy, at layout.Layout, left []ir.AxisRef) *ir.Value {
	if c.at.Equal(at) && len(left) == len(c.unreduced) {
		return c.v
	}
	s := p.sharding(at, left, c.by)
	v := p.build.Emit(ir.Reshard, []*ir.Value{c.v}, ir.AttrsOf(ir.NamedAttr{Name: "sharding", Attr: s}), nil, []*ir.Type{c.v.Type}).Result()
	v.Name, v.Sharding = c.v.Name, s
	return v
}

// reduce reduces c along axes, and leaves the others unreduced. The result is
// scattered where the layout want has some of axes next.
func (p *chooser) reduce(c valueCopy, want layout.Layout, axes []ir.AxisRef) valueCopy {
	if len(axes) == 0 {
		return c
	}
	at, _ := p.combineCost(c.v.Type, c.at, want, axes)
	left := p.outside(c.unreduced, axes)
	return valueCopy{at, p.reshard(c, at, left), left, c.by}
}

// nearest is the copy of v from which the layout is reached with the fewest
// bytes.
func (p *chooser) nearest(v *ir.Value, at layout.Layout) valueCopy {
	copies := p.atHand(v)
	best, bytes := copies[0], -1
	for _, c := range copies {
		if n := p.bytesOf(c, v.Type, at); bytes < 0 || n < bytes {
			best, bytes = c, n
		}
	}
	return best
}

// bytesFrom is how many bytes a device receives for v to get a layout, from the
// nearest of its copies.
func (p *chooser) bytesFrom(v *ir.Value, at layout.Layout) int {
	return p.bytesOf(p.nearest(v, at), v.Type, at)
}

// bytesOf is how many bytes a device receives for the copy c of a value of type
// t to be reduced and to get a layout.
func (p *chooser) bytesOf(c valueCopy, t *ir.Type, at layout.Layout) int {
	from, n := c.at, 0
	if len(c.unreduced) > 0 {
		from, n = p.combineCost(t, from, at, c.unreduced)
	}
	return n + p.resharder.Plan(t, from, at).Bytes
}

// inRegion runs do with a new block to build in, and forgets the copies made
// there.
func (p *chooser) inRegion(do func()) *ir.Block {
	outer, trail := p.build.Block, len(p.trail)
	b := new(ir.Block)
	p.build.Block = b
	do()
	p.build.Block = outer
	for _, id := range p.trail[trail:] {
		p.copies[id] = p.copies[id][:len(p.copies[id])-1]
	}
	p.trail = p.trail[:trail]
	return b
}

// ops walks the ops of b but for its terminator.
func (p *chooser) ops(b *ir.Block) {
	for _, op := range b.Ops[:len(b.Ops)-1] {
		p.build.Origin, p.user = op.Origin, op
		if control := controlOf(op.Kind); control != nil {
			control(p, op)
			continue
		}
		if len(op.Results) == 1 && p.free[op.Result().ID] || p.defersMove(op) || p.opDeferred(op) || p.opMerged(op) {
			continue
		}
		p.op(op)
	}
}

// op computes an op by its sharding rule; one without a rule has replicated
// operands and results.
func (p *chooser) op(op *ir.Op) {
	want := make([]layout.Layout, len(op.Results))
	for i, v := range op.Results {
		want[i] = p.layoutOf(v)
	}
	a := p.choose(op, want)
	operands := make([]*ir.Value, len(op.Operands))
	for i, v := range op.Operands {
		p.warnReplicated(op, a, i)
		operands[i] = p.get(v, a.operands[i])
	}
	p.build.Origin = op.Origin
	for i, c := range p.emit(op, a, operands) {
		v := op.Results[i]
		_, rest := p.kept(v, c.unreduced, c.by)
		p.defineUnreduced(v, p.reduce(c, want[i], rest))
	}
	p.settle(op)
}

// settle gives the results of op the layouts of their shardings, where they
// are computed: what is computed outside of a loop is not resharded inside.
func (p *chooser) settle(op *ir.Op) {
	for _, v := range op.Results {
		if n := len(p.copies[v.ID]); v.Type.IsTensor() && n > 0 && len(p.copies[v.ID][n-1].unreduced) == 0 {
			p.get(v, p.layoutOf(v))
		}
	}
}

// emit emits op with operands of the layouts that a says, and returns its
// results as they are computed.
func (p *chooser) emit(op *ir.Op, a *assignment, in []*ir.Value) []valueCopy {
	if axes := a.partial(); len(axes) > 0 {
		switch op.Kind {
		case ir.Reduce:
			return p.emitReduce(op, a, in, axes)
		case ir.Scatter:
			return p.emitScatter(op, a, in, axes)
		}
	}
	return p.emitOp(op, a, in, ir.Add)
}

// emitOp emits op. Its results are unreduced along the axes of reduced factors,
// to be combined by k.
func (p *chooser) emitOp(op *ir.Op, a *assignment, in []*ir.Value, k ir.Kind) []valueCopy {
	regions := p.copyRegions(op)
	n := &ir.Op{Kind: op.Kind, Spelling: op.Spelling, Operands: in, Attrs: op.Attrs, Regions: regions, Origin: p.build.Origin}
	axes := a.partial()
	out := make([]valueCopy, len(op.Results))
	for i, v := range op.Results {
		r := p.f.NewValue(v.Type, v.Name)
		r.Def, r.Index = n, i
		_, single := p.onOneDevice(v)
		switch {
		case single && a.results[i].IsReplicated(): // a free value may have another layout, on all devices
			r.Sharding = v.Sharding
		case v.Type.IsTensor():
			r.Sharding = p.sharding(a.results[i], axes, k)
		}
		n.Results = append(n.Results, r)
		out[i] = valueCopy{a.results[i], r, axes, k}
	}
	p.build.Block.Ops = append(p.build.Block.Ops, n)
	return out
}

// copyRegions copies regions that combine scalars, such as that of a reduction.
func (p *chooser) copyRegions(op *ir.Op) []*ir.Block {
	if len(op.Regions) == 0 {
		return nil
	}
	sub := make(map[*ir.Value]*ir.Value)
	for _, v := range op.Captures() {
		sub[v] = p.get(v, p.replicated(v))
	}
	var out []*ir.Block
	for _, r := range op.Regions {
		out = append(out, p.f.CopyBlock(r, sub))
	}
	return out
}

// unreducible reports whether a value may be unreduced that k combines.
func unreducible(k ir.Kind) bool { return k == ir.Add || k == ir.Maximum || k == ir.Minimum }

// emitReduce emits a reduction along sharded axes. The initial value is combined
// with the result, once, unless it changes nothing. What only an all-gather can
// combine, or a combiner that no sharding can name, is reduced at once.
func (p *chooser) emitReduce(op *ir.Op, a *assignment, in []*ir.Value, axes []ir.AxisRef) []valueCopy {
	k := ir.CombinerOf(op.Regions[0])
	a.reduced = k == ir.Invalid
	if a.reduced {
		return p.emitOp(op, a, in, ir.Invalid)
	}
	init, once := in[1], facts.IsNeutral(k, op.Operands[1]) || k.Has(ir.Idempotent)
	if !once {
		neutral := p.build.Const(facts.Neutral(k, op.Result().Type.Elem))
		neutral.Sharding = p.sharding(layout.Layout{}, nil, k)
		in = []*ir.Value{in[0], neutral}
	}
	return p.emitCombined(op, a, in, k, func(at layout.Layout) *ir.Value {
		if once {
			return nil
		}
		v := p.build.Broadcast(init, op.Result().Type.Shape)
		v.Sharding = p.sharding(at, nil, k)
		return v
	})
}

// emitScatter emits a scatter of updates that are sharded: each device scatters
// its own into neutral values, and the operand is combined with the result,
// unless it is neutral itself.
func (p *chooser) emitScatter(op *ir.Op, a *assignment, in []*ir.Value, axes []ir.AxisRef) []valueCopy {
	k := ir.CombinerOf(op.Regions[0])
	in = slices.Clone(in)
	in[0] = p.neutral(op.Result().Type, a.operands[0], k)
	return p.emitCombined(op, a, in, k, func(at layout.Layout) *ir.Value {
		if x := op.Operands[0]; !facts.IsNeutral(k, x) {
			return p.get(x, at)
		}
		return nil
	})
}

// neutral is the tensor of a layout that changes nothing when k combines it.
func (p *chooser) neutral(t *ir.Type, at layout.Layout, k ir.Kind) *ir.Value {
	c := p.build.Const(facts.Neutral(k, t.Elem))
	c.Sharding = p.sharding(layout.Layout{}, nil, k)
	v := p.build.Broadcast(c, t.Shape)
	v.Sharding = p.sharding(at, nil, k)
	return v
}

// emitCombined emits op, whose results are partial, reduces them, and combines
// that with more, once, unless that is nil.
func (p *chooser) emitCombined(op *ir.Op, a *assignment, in []*ir.Value, k ir.Kind, more func(at layout.Layout) *ir.Value) []valueCopy {
	r := op.Result()
	left, rest := p.kept(r, a.partial(), k)
	var c valueCopy
	if unreducible(k) {
		c = p.reduce(p.emitOp(op, a, in, k)[0], p.layoutOf(r), rest)
	} else {
		a.results[0], _ = p.combineCost(r.Type, a.results[0], p.layoutOf(r), rest)
		a.reduced = true
		c = p.emitOp(op, a, in, k)[0]
	}
	if x := more(c.at); x != nil {
		v := p.build.Binary(k, p.onFirst(x, c.at, left, k), c.v)
		v.Name, v.Sharding = c.v.Name, c.v.Sharding
		c.v = v
	}
	return []valueCopy{c}
}
