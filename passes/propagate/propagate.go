package propagate

import (
	"slices"

	"ppc/internal/slab"
	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// Propagate gives every tensor of @main, regions included, a closed sharding on the
// module's mesh. Stated shardings stay: those of parameters and results, of
// constraints, and the in and out shardings of manual computations. From there
// shardings propagate along the factors of each op's rule (see [ir.Factors]),
// forward and backward, with Shardy's semantics:
//
//   - dimensions of lower user priority numbers propagate first, and among equals
//     the ops of the earlier round of propRounds;
//   - along a factor, tensors that disagree keep their common major axes; an axis
//     shards one dimension of a tensor; a closed dimension takes no axis;
//   - a carry of a loop has one sharding in all iterations: an edge relates the
//     operand and the yielded value to the argument and the result;
//   - a constant, or a value computed from constants alone, propagates nothing:
//     each use of it has a sharding of its own.
//
// Unlike in Shardy, an axis shards a dimension only if it divides the size. The
// exception is a result of slice, pad or concatenate on the way to a tensor whose
// size divides: such a dimension propagates axes and ends unsharded.
//
// Each step adds an axis to a tensor and only then looks at its neighbours
// again, so the work is linear in the program times the number of axes, and
// does not depend on the axes' sizes.
//
// Where the module asks for explicit mode nothing propagates: see
// [propagator.follow].
func Propagate(_ *pass.Context, m *ir.Module) error {
	f := m.Main()
	if f == nil || f.Body == nil {
		return nil
	}
	openNamed(f)
	if len(m.Meshes) == 0 {
		return nil
	}
	mesh, err := layout.MeshOf(m, f)
	if err != nil {
		return err
	}
	layout.SummedParams(mesh, f)
	p := newPropagator(m, mesh, f)
	if p.explicit {
		if err := p.follow(); err != nil {
			return err
		}
		dropAxes(f)
	} else {
		p.applyConstraints()
		p.run()
	}
	p.assign()
	return nil
}

// A propTensor is one sharding that propagation works on: of one value, of all
// values that a loop carries as one, of one use of a constant, or of one result of
// the function. Propagation only ever adds axes at the minor end of a dimension.
type propTensor struct {
	shape  []int
	single *ir.Sharding // that says which one device has it
	seed   *ir.Sharding // the sharding that the program states, nil if none
	dims   [][]ir.AxisRef
	closed []bool
	ghost  []bool       // by dimension: axes need not divide its size; nil if they must divide all
	barred []ir.AxisRef // must shard no dimension
	nodes  []*propNode  // that read or write it, definition first
	rules  []*ir.Origin // by dimension: see findRules
	found  *ir.Sharding // in the end

	free  bool         // one use of a free value
	known bool         // in explicit mode: dims is its sharding
	open  bool         // in explicit mode: an error has left its sharding unknown
	grown []bool       // in explicit mode, by dimension: broadcast along it, and not used yet by an op that needs a sharding of it
	maker *propNode    // in explicit mode: the node whose result it is
	said  *ir.Sharding // in explicit mode: the sharding of a constraint that is its only use
}

// A propRef is a tensor as one op sees it. Outside of a manual computation its
// arguments and results are sharded along manual axes as well: manual has these, by
// dimension, major to the axes of the tensor.
type propRef struct {
	*propTensor
	manual [][]ir.AxisRef
}

// A propNode relates tensors by a rule: an op, or an edge of the data flow.
type propNode struct {
	op      *ir.Op    // nil for an edge
	at      *ir.Op    // op, or the op that the edge belongs to; nil for a result of the function
	barred  direction // in which axes may not propagate
	rule    *ir.Factors
	refs    []propRef              // the operands, then the results; without a tensor for a scalar
	inputs  int                    // the operands among refs
	oneUse  bool                   // the operands have no other use
	rounds  [lastRound + 1]allowed // what each round and those before it allow
	settled int                    // one more than the last round in which a step found no more axes, if none of the tensors has changed since
	queued  bool
	refused bool // in explicit mode: there is an error of it
}

// relate makes n relate refs, of which the first are operands and the others results.
func (n *propNode) relate(operands int, refs ...propRef) { n.refs, n.inputs = refs, operands }

func (n *propNode) operands() []propRef { return n.refs[:n.inputs:n.inputs] }

func (n *propNode) results() []propRef { return n.refs[n.inputs:] }

func (n *propNode) elementwise() bool { return n.op != nil && n.op.Kind.Has(ir.Elementwise) }

// A direction is a set of directions in which axes may propagate through a node.
type direction uint8

const (
	forward  direction = 1 << iota // from operands
	backward                       // from results
	both     = forward | backward
)

// lastRound allows every direction.
const lastRound = 4

// propRounds are the rounds of propagation by kind of op: each says in which
// direction axes propagate along a factor of a node, one that is passed through or
// another. A later round includes the earlier ones, which makes the ops of the earlier
// ones the stronger.
var propRounds = [lastRound + 1]func(n *propNode, through bool) direction{
	func(n *propNode, _ bool) direction {
		if !n.oneUse {
			return 0
		}
		return passesThrough(n)
	},
	func(n *propNode, _ bool) direction { return passesThrough(n) },
	func(n *propNode, through bool) direction {
		if !through {
			return 0
		}
		return exceptBroadcast(n)
	},
	func(n *propNode, _ bool) direction { return exceptBroadcast(n) },
	func(*propNode, bool) direction { return both },
}

// An allowed is the directions in which axes may propagate along the factors of a
// node: those that are passed through, and others.
type allowed struct{ through, other direction }

// allow finds what is allowed in the rounds up to each.
func (n *propNode) allow() {
	var a allowed
	for r, in := range propRounds {
		a.through |= in(n, true) &^ n.barred
		a.other |= in(n, false) &^ n.barred
		n.rounds[r] = a
	}
}

// keeping are the ops besides elementwise ones that keep every element as it is,
// or along the dimensions where it stays; an axis goes through them first.
var keeping = map[ir.Kind]direction{ir.Reshape: both, ir.Transpose: both, ir.DynamicSlice: forward, ir.DynamicUpdateSlice: forward}

// passesThrough is the direction for ops that keep every element or its place:
// elementwise ops, reshapes, transposes and the like; none for others.
func passesThrough(n *propNode) direction {
	if n.op == nil || n.elementwise() {
		return both
	}
	return keeping[n.op.Kind]
}

func exceptBroadcast(n *propNode) direction {
	if n.op != nil && n.op.Kind == ir.BroadcastInDim {
		return backward
	}
	return both
}

// A propagator is the state of one propagation.
type propagator struct {
	m       *ir.Module
	mesh    *ir.Mesh
	groups  map[ir.ID]*propGroup // of the values of sharding groups
	f       *ir.Func
	uses    []int         // by ID
	free    []bool        // by ID: computed from constants alone, or one scalar broadcast
	tensors []*propTensor // by ID; nil for scalars and free values
	manual  []ir.AxisRef  // of the manual computation being entered
	inUse   []*propTensor // by ID: of the first use of a free value
	wanted  map[*ir.Op][]propRef
	nodes   []*propNode
	results []*propNode // edges to the results of the function
	all     []*propTensor
	stack   []*propNode

	// What the tensors and nodes are made of.
	tensorSlab slab.Of[propTensor]
	nodeSlab   slab.Of[propNode]
	refSlab    slab.Of[propRef]
	nodesSlab  slab.Of[*propNode]
	dimSlab    slab.Of[[]ir.AxisRef]
	closedSlab slab.Of[bool]
	ruleSlab   slab.Of[*ir.Origin]
	sharding   ir.Sharding // of closedSharding
	scratch    layout.Layout
	layouts    *layout.Shared
	found      map[*[]ir.AxisRef]*ir.Sharding // by layout: the last sharding that was found

	projection projection          // see project
	factors    []layout.FactorAxes // of projection

	explicit bool          // the module asks for explicit mode
	refused  []*pass.Error // in explicit mode
	at       *ir.Op        // the op whose nodes are made
	loop     *propLoop     // the innermost loop around it; the whole function at the top
}

// A propLoop is the range of nodes of a loop's body, inner loops included, and the
// range of the edges to its carries.
type propLoop struct {
	first, edges, end int // nodes[first:edges] and nodes[edges:end]
	inner             []*propLoop
}

// enter begins a loop inside of the current one.
func (p *propagator) enter() (l, outer *propLoop) {
	l, outer = &propLoop{first: len(p.nodes)}, p.loop
	outer.inner = append(outer.inner, l)
	p.loop = l
	return l, outer
}

func newPropagator(m *ir.Module, mesh *ir.Mesh, f *ir.Func) *propagator {
	n := f.NumIDs()
	p := &propagator{
		m: m, mesh: mesh, f: f, uses: f.Uses(), free: layout.FreeValues(f), groups: groupsOf(f),
		tensors: make([]*propTensor, n), inUse: make([]*propTensor, n), wanted: make(map[*ir.Op][]propRef),
		explicit: facts.ExplicitMode(m), loop: new(propLoop), layouts: layout.NewShared(mesh), found: make(map[*[]ir.AxisRef]*ir.Sharding),
	}
	for id := range p.groups {
		p.free[id] = false
	}
	f.Body.Walk(func(op *ir.Op) { // the sharding that an explicit collective expects of its operand
		if op.Kind.Has(ir.Elementwise | ir.Collective) {
			p.free[op.Operands[0].ID] = false
		}
	})
	for _, v := range f.Params() {
		p.define(v, v.Sharding)
	}
	p.block(f.Body)
	p.at = nil
	for i, v := range f.Return().Operands {
		r := p.tensor(v.Type, f.Results[i].Sharding)
		p.edge([]*ir.Value{v}, propRef{propTensor: r})
		if r != nil {
			p.results = append(p.results, p.nodes[len(p.nodes)-1])
			p.nodes = p.nodes[:len(p.nodes)-1]
		}
	}
	return p
}

// tensor returns a new tensor, nil for what has no dimensions.
func (p *propagator) tensor(t *ir.Type, seed *ir.Sharding) *propTensor {
	if !t.IsTensor() || t.Rank() == 0 {
		return nil
	}
	x := p.tensorSlab.New()
	x.shape, x.dims, x.closed = t.Shape, p.dimSlab.Slice(t.Rank()), p.closedSlab.Slice(t.Rank())
	if _, ok := layout.OnOneDevice(p.m, seed); ok {
		x.single, seed = seed, ir.Replicated(p.mesh.Name, t.Rank())
	}
	if seed != nil && len(seed.Dims) == t.Rank() {
		x.seed = p.withoutUnits(seed)
	}
	x.barred = slices.Clone(p.manual)
	p.all = append(p.all, x)
	return x
}

// withoutUnits is s without axes of one device: s itself where it has none.
func (p *propagator) withoutUnits(s *ir.Sharding) *ir.Sharding {
	unit := func(r ir.AxisRef) bool { return p.mesh.RefSize(r) == 1 }
	units := slices.ContainsFunc(s.Replicated, unit) || slices.ContainsFunc(s.Unreduced, unit)
	for i := range s.Dims {
		units = units || slices.ContainsFunc(s.Dims[i].Axes, unit)
	}
	if !units && s.Mesh == p.mesh.Name {
		return s
	}
	c := s.Clone()
	c.Mesh = p.mesh.Name
	for i := range c.Dims {
		c.Dims[i].Axes = slices.DeleteFunc(c.Dims[i].Axes, unit)
	}
	c.Replicated, c.Unreduced = slices.DeleteFunc(c.Replicated, unit), slices.DeleteFunc(c.Unreduced, unit)
	return c
}

// define gives v its tensor, that of its group where it has one. Where two values
// of a group state different shardings each keeps its own, unless a constraint
// states one of them.
func (p *propagator) define(v *ir.Value, seed *ir.Sharding) *propTensor {
	g := p.groups[v.ID]
	if g == nil || g.tensor == nil || !slices.Equal(g.tensor.shape, v.Type.Shape) || !constrained(v) && !agree(seed, g.tensor.seed) {
		x := p.tensor(v.Type, seed)
		if x != nil {
			x.nodes = p.nodesSlab.Slice(p.uses[v.ID] + 1)[:0] // what defines it and what reads it
		}
		p.tensors[v.ID] = x
		if g != nil && g.tensor == nil {
			g.tensor = p.tensors[v.ID]
		}
		return p.tensors[v.ID]
	}
	p.tensors[v.ID] = g.tensor
	if g.tensor.seed == nil && seed != nil {
		g.tensor.seed = p.withoutUnits(seed)
	}
	return g.tensor
}

func constrained(v *ir.Value) bool { return v.Def != nil && v.Def.Kind == ir.ShardingConstraint }

// agree reports whether one sharding may satisfy both a and b: where they differ in
// a dimension, the shorter one is a prefix and open. nil agrees with everything.
func agree(a, b *ir.Sharding) bool {
	if a == nil || b == nil {
		return true
	}
	for d := range a.Dims {
		n := layout.SamePrefix(a.Axes(d), b.Axes(d))
		if n < len(a.Axes(d)) && (n < len(b.Axes(d)) || !b.Dims[d].Open) || n < len(b.Axes(d)) && !a.Dims[d].Open {
			return false
		}
	}
	return slices.Equal(a.Unreduced, b.Unreduced) && a.ReducedBy == b.ReducedBy
}

// use returns the tensor of v for one use.
func (p *propagator) use(v *ir.Value) propRef {
	if !p.free[v.ID] {
		return propRef{propTensor: p.tensors[v.ID]}
	}
	x := p.tensor(v.Type, v.Sharding)
	if x != nil {
		x.free = true
	}
	if p.inUse[v.ID] == nil {
		p.inUse[v.ID] = x
	}
	return propRef{propTensor: x}
}

func (p *propagator) block(b *ir.Block) {
	defer func(at *ir.Op) { p.at = at }(p.at)
	for _, op := range b.Ops {
		p.at = op
		if build := nodesOf[op.Kind]; build != nil {
			build(p, op)
			continue
		}
		for _, v := range op.Results {
			if !p.free[v.ID] {
				p.define(v, v.Sharding)
			}
		}
		p.op(op)
	}
}

// nodesOf makes the nodes of ops whose tensors are related in other ways than by
// a rule of factors.
var nodesOf map[ir.Kind]func(*propagator, *ir.Op)

func init() {
	nodesOf = map[ir.Kind]func(*propagator, *ir.Op){
		ir.While:               whileNodes,
		ir.PPScan:              scanNodes,
		ir.Case:                branchNodes,
		ir.If:                  branchNodes,
		ir.OptimizationBarrier: barrierNodes,
		ir.ShardingConstraint:  constraintNodes,
		ir.Reshard:             constraintNodes,
		ir.PPGather:            constraintNodes,
		ir.DataFlowEdge:        edgeNodes,
		ir.PropagationBarrier:  barredNodes,
		ir.ShardingGroup:       func(*propagator, *ir.Op) {}, // its members are one tensor
		ir.ManualComputation:   manualNodes,
	}
	for _, k := range ir.Kinds() {
		if k.Has(ir.Relayout | ir.Collective) {
			nodesOf[k] = explicitNodes
		}
	}
}

func (p *propagator) op(op *ir.Op) {
	rule := p.layouts.Rules.Of(op)
	if rule == nil && p.explicit {
		rule = replicatedFactors(op)
	}
	if rule == nil || len(op.Results) == 0 || p.free[op.Results[0].ID] {
		return
	}
	n := p.nodeSlab.New()
	n.op, n.rule, n.oneUse = op, rule, true
	refs := p.refSlab.Slice(len(op.Operands) + len(op.Results))
	for i, v := range op.Operands {
		refs[i] = p.use(v)
		n.oneUse = n.oneUse && (p.uses[v.ID] == 1 || p.free[v.ID] || v.Type.Rank() == 0)
	}
	for i, v := range op.Results {
		refs[len(op.Operands)+i] = propRef{propTensor: p.tensors[v.ID]}
		ghosts(op, rule, rule.Results[i], p.tensors[v.ID])
	}
	p.add(n, len(op.Operands), refs...)
}

// ghosts marks the dimensions that op, a slice, pad or concatenate, permutes
// elements along, so that their sizes need not divide if another such op follows.
// The list is this pass's own: it is of the ops whose chains, as a rotation is one of
// slices and a concatenation, package partition computes as one move of pieces.
func ghosts(op *ir.Op, rule *ir.Factors, dims [][]int, x *propTensor) {
	if x == nil || op.Kind != ir.Slice && op.Kind != ir.Pad && op.Kind != ir.Concatenate {
		return
	}
	x.ghost = make([]bool, len(dims))
	for d, ks := range dims {
		x.ghost[d] = len(ks) == 1 && rule.Types[ks[0]] == ir.Permutation
	}
}

// add makes n relate refs, of which the first are operands.
func (p *propagator) add(n *propNode, operands int, refs ...propRef) {
	n.at = p.at
	n.relate(operands, refs...)
	p.nodes = append(p.nodes, n)
	for _, r := range n.refs {
		if r.propTensor != nil && (len(r.nodes) == 0 || r.nodes[len(r.nodes)-1] != n) {
			r.nodes = append(r.nodes, n)
		}
	}
}

// edge relates values that flow into a target, which has one sharding with them.
func (p *propagator) edge(sources []*ir.Value, target propRef) {
	if target.propTensor == nil {
		return
	}
	n := &propNode{rule: new(ir.Factors), oneUse: true}
	dims := make([][]int, len(target.shape))
	for d, size := range target.shape {
		n.rule.Sizes, n.rule.Types = append(n.rule.Sizes, size*p.mesh.RefsSize(target.manualAxes(d))), append(n.rule.Types, ir.PassThrough)
		dims[d] = []int{d}
	}
	n.rule.Results = [][][]int{dims}
	refs := make([]propRef, len(sources), len(sources)+1)
	for i, v := range sources {
		refs[i] = p.use(v)
		n.rule.Operands = append(n.rule.Operands, dims)
	}
	p.add(n, len(sources), append(refs, target)...)
}

func (r propRef) manualAxes(d int) []ir.AxisRef {
	if r.manual == nil {
		return nil
	}
	return r.manual[d]
}
