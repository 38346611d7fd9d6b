package propagate

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// follow is propagation in explicit mode. Stated shardings stay, as in auto mode;
// the sharding of every other value follows from those of its op's operands, by the
// op's sharding rule, in one walk forward. Nothing propagates backward or sideways,
// and nothing is chosen: an op whose operands admit several shardings of its result
// is an error, unless the program states the result's. See [derivation] for the
// rule.
//
//   - A carry of a loop has the sharding of its initial value; where that is a
//     constant, the sharding that one iteration gives it.
//   - The results of all branches of an op have one sharding.
//   - A constant, or a value computed from constants alone, takes the sharding that
//     each use needs; a dimension along which a value is broadcast takes the
//     sharding of the first use that needs one.
//
// All errors are found: the shardings of the results of an op at fault stay
// unknown, unless the program states them, and ops that use a value of unknown
// sharding are not checked.
func (p *propagator) follow() error {
	for _, x := range p.all {
		x.grown = make([]bool, len(x.shape))
		if x.seed == nil || x.free {
			continue
		}
		for d, s := range x.seed.Dims {
			x.dims[d] = s.Axes
		}
		x.known = true
	}
	for _, v := range p.f.Params() {
		if x := p.tensors[v.ID]; x != nil {
			x.known = true
		}
	}
	p.reachBack()
	root := p.loop
	root.edges = len(p.nodes)
	p.followBody(root)
	for _, n := range p.results {
		p.followNode(n)
	}
	return pass.SortedErrors(p.refused)
}

// refuse records err of n and marks the shardings of n's results as unknown.
func (p *propagator) refuse(n *propNode, err *pass.Error) {
	p.refused = append(p.refused, err)
	n.refused = true
	n.leaveOpen()
}

// leaveOpen marks the results of n for which the program states no sharding as
// unknown.
func (n *propNode) leaveOpen() {
	for _, r := range n.results() {
		if r.propTensor != nil && r.seed == nil {
			r.open = true
		}
	}
}

// onOpen reports whether n uses a value whose sharding an error has left unknown.
func (n *propNode) onOpen() bool {
	return slices.ContainsFunc(n.operands(), func(r propRef) bool { return r.propTensor != nil && r.open })
}

// reachBack finds for each tensor the sharding that the program states for it
// downstream: in a constraint that is its only use, or in a constraint of the
// result of its only use where that result has the same factors, such as its
// transpose or a sum that it is a term of.
func (p *propagator) reachBack() {
	for _, n := range slices.Backward(p.nodes) {
		if n.op == nil || len(n.results()) != 1 || n.results()[0].propTensor == nil {
			continue
		}
		said := n.results()[0].said
		if s := n.results()[0].seed; s != nil {
			said = s
		}
		if said == nil {
			continue
		}
		factors := make([]layout.FactorAxes, len(n.rule.Sizes))
		for d, ks := range n.rule.Results[0] {
			layout.ProjectDim(p.mesh, said.Axes(d), ks, n.rule.Sizes, factors)
		}
		pr := &projection{mesh: p.mesh, sizes: n.rule.Sizes}
		inResult := slices.Concat(n.rule.Results[0]...)
		elsewhere := func(k int) bool { return n.rule.Types[k] != ir.PassThrough || !slices.Contains(inResult, k) }
		for i, r := range n.operands() {
			if r.propTensor == nil || r.free || p.uses[n.op.Operands[i].ID] != 1 || slices.ContainsFunc(slices.Concat(n.rule.Operands[i]...), elsewhere) {
				continue
			}
			r.said = ir.Replicated(p.mesh.Name, len(r.shape))
			for d, ks := range n.rule.Operands[i] {
				r.said.Dims[d].Axes = pr.dimAxes(&projected{factors: factors}, ks)
			}
		}
	}
}

// followBody follows the nodes of a loop's body in order.
func (p *propagator) followBody(l *propLoop) {
	nodes := func(from, to int) {
		for _, n := range p.nodes[from:to] {
			p.followNode(n)
		}
	}
	at := l.first
	for _, in := range l.inner {
		nodes(at, in.first)
		p.followLoop(in)
		at = in.end
	}
	nodes(at, l.edges)
}

// followLoop follows a loop. The sharding of a carry whose initial value is a
// constant is not known until the body has been followed; the body is then followed
// once more, as long as each time at least one more carry becomes known.
func (p *propagator) followLoop(l *propLoop) {
	edges := p.nodes[l.edges:l.end]
	for _, n := range edges {
		x, init := n.results()[0].propTensor, n.operands()[0].propTensor
		if x.seed != nil {
			continue
		}
		if x.open = init.open; x.open {
			continue
		}
		if x.known = !init.free && init.known; x.known {
			p.setDims(x, init.dims)
		}
	}
	for changed := true; changed; {
		p.followBody(l)
		changed = p.becomeKnown(edges)
	}
	for _, n := range edges {
		if !n.refused && !n.onOpen() {
			p.carriedAlike(n)
			newDerivation(p, n).fill()
		}
	}
}

// becomeKnown gives each carry of edges that has no known sharding the sharding of
// the value that the body yields for it, and reports whether there were any. Where
// no yielded value has a known sharding, the carries are replicated.
func (p *propagator) becomeKnown(edges []*propNode) bool {
	some, left := false, false
	for _, n := range edges {
		x, next := n.results()[0].propTensor, n.operands()[1].propTensor
		if x.open = x.open || !x.known && next.open && x.seed == nil; x.known || x.open {
			continue
		}
		if !next.free && next.known {
			p.setDims(x, next.dims)
			x.known, some = true, true
			continue
		}
		left = true
	}
	if some || !left {
		return some
	}
	for _, n := range edges {
		if x := n.results()[0].propTensor; !x.known && !x.open {
			p.setDims(x, make([][]ir.AxisRef, len(x.shape)))
			x.known = true
		}
	}
	return true
}

// setDims shards x along dims, the axes of each dimension.
func (p *propagator) setDims(x *propTensor, dims [][]ir.AxisRef) {
	for d := range x.dims {
		x.dims[d] = slices.Clone(dims[d])
	}
	clear(x.grown)
	if p.grouped(x) && x.seed == nil {
		x.seed = p.closedSharding(x)
	}
}

// grouped reports whether x is the tensor of a sharding group; the first value of
// the group decides its sharding.
func (p *propagator) grouped(x *propTensor) bool {
	for _, g := range p.groups {
		if g.tensor == x {
			return true
		}
	}
	return false
}

// replicatedFactors is the sharding rule of an op that has none: every dimension of
// every operand needs replication.
func replicatedFactors(op *ir.Op) *ir.Factors {
	f := new(ir.Factors)
	dims := func(vs []*ir.Value, relate bool) [][][]int {
		var out [][][]int
		for _, v := range vs {
			var ds [][]int
			if v.Type.IsTensor() {
				ds = make([][]int, v.Type.Rank())
			}
			for d := range ds {
				if relate {
					ds[d] = []int{len(f.Sizes)}
					f.Sizes, f.Types = append(f.Sizes, v.Type.Shape[d]), append(f.Types, ir.NeedReplication)
				}
			}
			out = append(out, ds)
		}
		return out
	}
	f.Operands, f.Results = dims(op.Operands, true), dims(op.Results, false)
	return f
}

// StateShardings writes into every value of a program in explicit mode the sharding
// that follows for it, if the program asks for a gradient: a cotangent takes the
// sharding of its primal value. A value of which any device can compute any shard
// by itself (see [layout.FreeValues]) gets none. The error is an explicit-mode
// error of the program.
func StateShardings(_ *pass.Context, m *ir.Module) error {
	if m.Attrs.Str(ir.KeyGradient) == "" || !facts.ExplicitMode(m) || len(m.Meshes) == 0 {
		return nil
	}
	f := m.Main()
	mesh, err := layout.MeshOf(m, f)
	if err != nil {
		return err
	}
	// The sharding rules know nothing of checkpoint regions: shardings are found in
	// a copy without any.
	copies := make(map[*ir.Value]*ir.Value)
	open := &ir.Func{Name: f.Name, Results: f.Results, Attrs: f.Attrs}
	open.Body = open.CopyBlock(f.Body, copies)
	rewrite.OpenCheckpoints(open)
	p := newPropagator(m, mesh, open)
	if err := p.follow(); err != nil {
		return err
	}
	p.findRules()
	set := func(vs []*ir.Value) {
		for _, v := range vs {
			c := copies[v]
			if x := p.tensors[c.ID]; x != nil && v.Sharding == nil && !p.free[c.ID] && x.known {
				v.Sharding = p.closedSharding(x)
			}
		}
	}
	f.Body.Walk(func(op *ir.Op) {
		set(op.Results)
		if op.Kind == ir.PPScan {
			set(op.Regions[0].Args)
		}
	})
	return nil
}
