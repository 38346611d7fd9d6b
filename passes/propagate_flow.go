package passes

import (
	"slices"

	"ppc/ir"
)

func whileNodes(p *propagator, op *ir.Op) {
	cond, body := op.Regions[0], op.Regions[1]
	for i, v := range op.Results {
		x := p.define(v, v.Sharding)
		p.tensors[cond.Args[i].ID], p.tensors[body.Args[i].ID] = x, x
	}
	p.block(cond)
	p.block(body)
	for i, v := range op.Results {
		p.edge([]*ir.Value{op.Operands[i], body.Terminator().Operands[i]}, propRef{propTensor: p.tensors[v.ID]})
	}
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

// constraintNodes: a reshard differs from a constraint in that its operand is
// meant to lie otherwise.
func constraintNodes(p *propagator, op *ir.Op) {
	p.define(op.Result(), op.Attrs.Get("sharding").(*ir.Sharding))
	if op.Kind == ir.ShardingConstraint {
		p.op(op)
	}
}

// manualNodes: inside, values lie along the other axes only; the operands and
// results lie along the manual axes as well, as the op says.
func manualNodes(p *propagator, op *ir.Op) {
	manual := manualAxesOf(op)
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
	n.operands, n.rule.Operands = []propRef{source}, n.rule.Results
	source.nodes = append(source.nodes, n)
}

// manualAxesOf are the names of the axes that a manual computation is manual
// over.
func manualAxesOf(op *ir.Op) []string {
	list, _ := op.Attrs.Get("manual_axes").(ir.Array)
	names := make([]string, len(list))
	for i, a := range list {
		s, _ := a.(ir.Str)
		names[i] = string(s)
	}
	return names
}

// onlyAxes are, by dimension, the axes of s that are named.
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
