package propagate

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

func whileNodes(p *propagator, op *ir.Op) {
	cond, body := op.Regions[0], op.Regions[1]
	for i, v := range op.Results {
		x := p.define(v, v.Sharding)
		p.tensors[cond.Args[i].ID], p.tensors[body.Args[i].ID] = x, x
	}
	l, outer := p.enter()
	p.block(cond)
	p.block(body)
	p.carries(l, outer, op, op.Operands, body.Terminator().Operands)
}

// carries ends a loop whose carries have the initial values init and the yielded
// values next: each is one tensor with its carry.
func (p *propagator) carries(l, outer *propLoop, op *ir.Op, init, next []*ir.Value) {
	p.at, p.loop, l.edges = op, outer, len(p.nodes)
	for i, v := range op.Results[:len(init)] {
		p.edge([]*ir.Value{init[i], next[i]}, propRef{propTensor: p.tensors[v.ID]})
	}
	l.end = len(p.nodes)
}

// scanNodes adds the nodes of a pp.scan: its carries, and its per-iteration inputs
// and outputs, of which each iteration has one row.
func scanNodes(p *propagator, op *ir.Op) {
	n, body := op.Int("carries"), op.Regions[0]
	yield := body.Terminator()
	for i, v := range op.Results {
		if x := p.define(v, v.Sharding); i < n {
			p.tensors[body.Args[1+i].ID] = x
		}
	}
	for i, v := range op.Operands[n:] {
		row := body.Args[1+n+i]
		p.define(row, row.Sharding)
		p.rowsOf(v, row)
	}
	l, outer := p.enter()
	p.block(body)
	p.carries(l, outer, op, op.Operands[:n], yield.Operands[:n])
	for i, v := range op.Results[n:] {
		p.stackOf(yield.Operands[n+i], v)
	}
}

// rowsOf relates all, which has a row for each iteration, to row, the row of the
// iteration.
func (p *propagator) rowsOf(all, row *ir.Value) {
	if rule, x := p.rowRule(row, all.Type), p.tensors[row.ID]; rule != nil && x != nil {
		rule.Operands, rule.Results = rule.Results, rule.Operands
		p.add(&propNode{rule: rule}, 1, p.use(all), propRef{propTensor: x})
	}
}

// stackOf relates row, the row of an iteration, to all, which has one for each.
func (p *propagator) stackOf(row, all *ir.Value) {
	if rule, x := p.rowRule(row, all.Type), p.tensors[all.ID]; rule != nil && x != nil {
		p.add(&propNode{rule: rule}, 1, p.use(row), propRef{propTensor: x})
	}
}

// rowRule is the rule of an op that makes of a row a tensor of type all, which has
// a row for each iteration; nil where rows are no tensors.
func (p *propagator) rowRule(row *ir.Value, all *ir.Type) *ir.Factors {
	if !row.Type.IsTensor() {
		return nil
	}
	rule := new(ir.Factors)
	var one [][]int
	for d, size := range row.Type.Shape {
		rule.Sizes, rule.Types = append(rule.Sizes, size), append(rule.Types, ir.PassThrough)
		one = append(one, []int{d})
	}
	k := len(rule.Sizes)
	rule.Sizes, rule.Types = append(rule.Sizes, all.Shape[0]), append(rule.Types, ir.NeedReplication)
	rule.Operands, rule.Results = [][][]int{one}, [][][]int{append([][]int{{k}}, one...)}
	return rule
}

func branchNodes(p *propagator, op *ir.Op) {
	for _, v := range op.Results {
		p.define(v, v.Sharding)
	}
	for _, r := range op.Regions {
		p.block(r)
	}
	for i, v := range op.Results {
		var sources []*ir.Value
		for _, r := range op.Regions {
			sources = append(sources, r.Terminator().Operands[i])
		}
		p.edge(sources, propRef{propTensor: p.tensors[v.ID]})
	}
}

func barrierNodes(p *propagator, op *ir.Op) {
	for i, v := range op.Results {
		p.define(v, v.Sharding)
		p.edge([]*ir.Value{op.Operands[i]}, propRef{propTensor: p.tensors[v.ID]})
	}
}

// constraintNodes adds the node of a constraint or reshard. A reshard differs in
// that nothing propagates to its operand.
func constraintNodes(p *propagator, op *ir.Op) {
	p.define(op.Result(), op.Attrs.Get("sharding").(*ir.Sharding))
	if op.Kind == ir.ShardingConstraint {
		p.op(op)
	}
}

// manualNodes adds the nodes of a manual computation: inside, values are sharded
// along the free axes only; the operands and results are sharded along the manual
// axes as well, as the op states.
func manualNodes(p *propagator, op *ir.Op) {
	manual := facts.ManualAxesOf(op)
	in, out := op.Attrs.Get("in_shardings").(ir.PerValue), op.Attrs.Get("out_shardings").(ir.PerValue)
	body := op.Regions[0]
	outer := p.manual
	p.manual = slices.Concat(outer, ir.Axs(manual...))
	for i, a := range body.Args {
		x := p.define(a, in[i].Without(manual...))
		p.edge([]*ir.Value{op.Operands[i]}, propRef{x, onlyAxes(in[i], manual)})
		p.wanted[op] = append(p.wanted[op], propRef{x, onlyAxes(in[i], manual)})
	}
	p.block(body)
	for i, v := range body.Terminator().Operands {
		// The result is one tensor inside and outside, seen with and without
		// the manual axes.
		inner := p.tensor(v.Type, out[i].Without(manual...))
		p.edge([]*ir.Value{v}, propRef{propTensor: inner})
		p.wanted[op] = append(p.wanted[op], propRef{inner, onlyAxes(out[i], manual)})
	}
	p.manual = outer
	for i, v := range op.Results {
		if p.define(v, out[i]) != nil {
			p.edgeRefs(p.wanted[op][len(op.Operands)+i], propRef{propTensor: p.tensors[v.ID]})
		}
	}
}

// edgeRefs relates one tensor to another that is the same value.
func (p *propagator) edgeRefs(source, target propRef) {
	p.edge(nil, target)
	n := p.nodes[len(p.nodes)-1]
	n.rule.Operands = n.rule.Results
	n.relate(1, source, target)
	source.nodes = append(source.nodes, n)
}

// onlyAxes is, by dimension, the axes of s whose names are in names.
func onlyAxes(s *ir.Sharding, names []string) [][]ir.AxisRef {
	dims := make([][]ir.AxisRef, len(s.Dims))
	for d := range dims {
		for _, r := range s.Dims[d].Axes {
			if slices.Contains(names, r.Name) {
				dims[d] = append(dims[d], r)
			}
		}
	}
	return dims
}

// edgeNodes adds the edge of an op whose result is its operand at a place where
// data flows together: both have one sharding.
func edgeNodes(p *propagator, op *ir.Op) {
	seed, _ := op.Attrs.Get("sharding").(*ir.Sharding)
	if seed == nil {
		seed = op.Result().Sharding
	}
	p.edge(op.Operands, propRef{propTensor: p.define(op.Result(), seed)})
}

// barredNodes adds the node of a propagation barrier: axes propagate in the allowed
// direction only.
func barredNodes(p *propagator, op *ir.Op) {
	if p.define(op.Result(), op.Result().Sharding) == nil {
		return
	}
	p.edge(op.Operands, propRef{propTensor: p.tensors[op.Result().ID]})
	p.nodes[len(p.nodes)-1].barred = [...]direction{both, backward, forward, 0}[op.Int("allowed_direction")]
}

// explicitNodes adds the nodes of an explicit collective: operand and result have
// the shardings that it states; nothing propagates across it.
func explicitNodes(p *propagator, op *ir.Op) {
	p.define(op.Result(), op.Attrs.Get("out_sharding").(*ir.Sharding))
	if x := p.tensors[op.Operands[0].ID]; x != nil && x.seed == nil {
		x.seed = ir.Replicated(p.mesh.Name, len(x.shape))
	}
}

// A propGroup is the values of a sharding group, which share one tensor.
type propGroup struct{ tensor *propTensor }

// groupsOf finds the group of each value that sdy.sharding_group names; groups
// that share a value are one.
func groupsOf(f *ir.Func) map[ir.ID]*propGroup {
	byNumber := make(map[int]int) // to the number of the group that it has become
	of := make(map[ir.ID]int)
	root := func(n int) int {
		for byNumber[n] != n {
			n = byNumber[n]
		}
		return n
	}
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind != ir.ShardingGroup {
			return
		}
		n := op.Int("group_id")
		if _, ok := byNumber[n]; !ok {
			byNumber[n] = n
		}
		id := op.Operands[0].ID
		if old, ok := of[id]; ok {
			byNumber[root(old)] = root(n)
		}
		of[id] = n
	})
	groups := make(map[int]*propGroup)
	out := make(map[ir.ID]*propGroup)
	for id, n := range of {
		n = root(n)
		if groups[n] == nil {
			groups[n] = new(propGroup)
		}
		out[id] = groups[n]
	}
	return out
}

// openNamed inlines the bodies of named computations. The shardings that these
// state for their operands and results become constraints.
func openNamed(f *ir.Func) {
	o := &opener{f: f, sub: f.NewSubst()}
	o.block(f.Body)
}

type opener struct {
	f   *ir.Func
	sub ir.Subst
}

func (o *opener) block(b *ir.Block) {
	var out []*ir.Op
	build := &ir.Builder{Func: o.f, Block: new(ir.Block)}
	constrained := func(v *ir.Value, a ir.Attr, i int) *ir.Value {
		per, _ := a.(ir.PerValue)
		if i >= len(per) || !v.Type.IsTensor() {
			return v
		}
		return build.Emit(ir.ShardingConstraint, []*ir.Value{v}, ir.AttrsOf(ir.NamedAttr{Name: "sharding", Attr: per[i]}), nil, nil).Result()
	}
	take := func() {
		out = append(out, build.Block.Ops...)
		build.Block.Ops = nil
	}
	for _, op := range b.Ops {
		o.sub.Apply(op.Operands)
		if op.Kind != ir.NamedComputation {
			for _, r := range op.Regions {
				o.block(r)
			}
			out = append(out, op)
			continue
		}
		build.Origin = op.Origin
		body := op.Regions[0]
		for i, a := range body.Args {
			o.sub[a.ID] = constrained(op.Operands[i], op.Attrs.Get("in_shardings"), i)
		}
		take()
		o.block(body)
		n := len(body.Ops) - 1
		out = append(out, body.Ops[:n]...)
		for i, v := range body.Ops[n].Operands {
			o.sub[op.Results[i].ID] = constrained(v, op.Attrs.Get("out_shardings"), i)
		}
		take()
	}
	b.Ops = out
}
