package hlo

import (
	"slices"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// region builds the computation that attribute name of in names into a block. args
// are the values that its parameters are bound to; nil makes them arguments of the
// block.
func (b *body) region(in *syntax.Instruction, name string, args []*node) *ir.Block {
	a := b.find(in, name)
	if a == nil {
		return nil
	}
	c := b.called(*a)
	if c == nil {
		return nil
	}
	return b.inline(c, args)
}

func (b *body) inline(c *syntax.Computation, args []*node) *ir.Block {
	r := &body{parser: b.parser, f: b.f, block: new(ir.Block)}
	b.numbered(c)
	params := c.Parameters()
	if args == nil {
		for _, in := range params {
			if in.Shape == nil || in.Shape.Type.Kind == ir.TupleType {
				b.FailAt(in.At, "parameter %s of a computation that combines scalars is no scalar", in.Name)
				return r.block
			}
			args = append(args, leaf(b.f.NewArg(r.block, in.Shape.Type, in.Name)))
		}
	}
	b.takes(c, len(args))
	r.args = func(in *syntax.Instruction, i int, t *ir.Type) *node {
		if i >= len(args) {
			b.FailAt(in.ArgAt, "parameter %d, but %s takes %s here", i, c.Name, ir.Counted(len(args), "value"))
			return leaf(b.f.NewValue(t, ""))
		}
		if !ShapesAgree(args[i].typ, t) {
			b.FailAt(in.At, "parameter %d of %s is %s, it is given %s", i, c.Name, BareShape(t), BareShape(args[i].typ))
		}
		if v := args[i].value; v != nil && v.Name == "" && v.Block == r.block {
			v.Name = in.Name
		}
		return args[i]
	}
	root := r.computation(c)
	if b.Err != nil {
		return r.block
	}
	results := r.flat(root, nil)
	r.builder().Emit(ir.Return, results, tupleAttrs(c.Root, results), nil, nil)
	return r.block
}

// takes checks that c has n parameters.
func (b *body) takes(c *syntax.Computation, n int) {
	if have := len(c.Parameters()); have < n {
		b.FailAt(c.At, "%s has %s, it takes %s here", c.Name, ir.Counted(have, "parameter"), ir.Counted(n, "value"))
	}
}

// while builds a loop over the values in its tuple.
func (b *body) while(in *syntax.Instruction, operands []*node) *node {
	attrs, _ := b.attrs(in, nil)
	if len(operands) != 1 {
		b.FailAt(in.OpAt, "while has %s, want one", ir.Counted(len(operands), "operand"))
		return nil
	}
	state := operands[0]
	init := b.flat(state, nil)
	var regions []*ir.Block
	for _, name := range []string{"condition", "body"} {
		a := b.find(in, name)
		if a == nil {
			return nil
		}
		c := b.called(*a)
		if c == nil {
			return nil
		}
		regions = append(regions, b.loopRegion(c, state.typ))
	}
	if b.Err != nil {
		return nil
	}
	op := b.builder().At(b.origin(in)).Emit(ir.While, init, attrs, regions, ir.Types(init))
	return refill(state.typ, op.Results)
}

// loopRegion builds the computation of a loop whose parameter is of type t.
func (b *body) loopRegion(c *syntax.Computation, t *ir.Type) *ir.Block {
	r := &body{parser: b.parser, f: b.f, block: new(ir.Block)}
	b.takes(c, 1)
	state := unflat(t, func(t *ir.Type) *ir.Value { return b.f.NewArg(r.block, t, "") })
	r.args = func(in *syntax.Instruction, i int, u *ir.Type) *node {
		if i != 0 || !ShapesAgree(t, u) {
			b.FailAt(in.At, "parameter %d of %s is %s, the loop carries %s", i, c.Name, BareShape(u), BareShape(t))
		}
		return state
	}
	root := r.computation(c)
	if b.Err == nil {
		results := r.flat(root, nil)
		r.builder().Emit(ir.Return, results, tupleAttrs(c.Root, results), nil, nil)
	}
	return r.block
}

// refill is the node of type t that holds vs.
func refill(t *ir.Type, vs []*ir.Value) *node {
	return unflat(t, func(*ir.Type) *ir.Value {
		v := vs[0]
		vs = vs[1:]
		return v
	})
}

// conditional builds a case, or an if where the operand is a boolean.
func (b *body) conditional(in *syntax.Instruction, operands []*node) *node {
	attrs, _ := b.attrs(in, nil)
	index := operands[0]
	kind := ir.Case
	var comps []*syntax.Computation
	switch {
	case index.typ.Equal(ir.Tensor(ir.I1)):
		kind = ir.If
		for _, name := range []string{"true_computation", "false_computation"} {
			if a := b.find(in, name); a != nil {
				comps = append(comps, b.called(*a))
			}
		}
	case index.typ.Equal(ir.Tensor(ir.I32)):
		if a := b.find(in, "branch_computations"); a != nil {
			comps = b.calledAll(*a)
		}
	default:
		b.FailAt(in.OpAt, "the first operand of conditional is %s, want pred[] or s32[]", BareShape(index.typ))
	}
	if b.Err == nil && len(comps) != len(operands)-1 {
		b.FailAt(in.OpAt, "%d branches, but operands for %d", len(comps), len(operands)-1)
	}
	if b.Err != nil {
		return nil
	}
	var regions []*ir.Block
	for i, c := range comps {
		regions = append(regions, b.inline(c, operands[i+1:i+2]))
	}
	if b.Err != nil {
		return nil
	}
	results := ir.Types(regions[0].Terminator().Operands)
	for i, r := range regions {
		if in.Shape == nil && !slices.EqualFunc(ir.Types(r.Terminator().Operands), results, ShapesAgree) {
			b.FailAt(in.OpAt, "branches 0 and %d of the conditional return values of different types", i)
			return nil
		}
	}
	op := b.builder().At(b.origin(in)).Emit(kind, []*ir.Value{index.value}, attrs, regions, results)
	if in.Shape == nil || in.Shape.Type.Kind != ir.TupleType {
		if len(op.Results) != 1 {
			return tupleNode(leaves(op.Results))
		}
		return leaf(op.Result().Named(in.Name))
	}
	if len(flatTypes(in.Shape.Type, nil)) != len(results) {
		b.FailAt(in.At, "%s is %s, its branches make %s", in.Name, BareShape(in.Shape.Type), ir.Counted(len(results), "value"))
		return nil
	}
	return refill(in.Shape.Type, op.Results)
}

// flatTypes are the types in t, tuples taken apart.
func flatTypes(t *ir.Type, out []*ir.Type) []*ir.Type {
	if t.Kind != ir.TupleType {
		return append(out, t)
	}
	for _, e := range t.Elems {
		out = flatTypes(e, out)
	}
	return out
}

func (b *body) call(in *syntax.Instruction, operands []*node) *node {
	attrs, extra := b.attrs(in, nil)
	a := b.find(in, "to_apply")
	if a == nil || extra {
		return nil
	}
	c := b.called(*a)
	if c == nil {
		return nil
	}
	f := b.function(c)
	if b.Err != nil {
		return nil
	}
	values := make([]*ir.Value, len(operands))
	for i, n := range operands {
		values[i] = b.value(n)
	}
	if in.Shape == nil && !takes(f, ir.Types(values)) {
		b.FailAt(in.OpAt, "call: the operands are not what %s takes", f.Name)
	}
	ts := make([]*ir.Type, len(f.Results))
	for i, r := range f.Results {
		ts[i] = r.Type
	}
	attrs.Set("callee", ir.Sym(f.Name))
	return b.emit(in, ir.Call, values, attrs, nil, ts)
}

// barrier builds an optimization_barrier of the values in its operand.
func (b *body) barrier(in *syntax.Instruction, operand *node) *node {
	attrs, extra := b.attrs(in, nil)
	if extra {
		return nil
	}
	if operand.typ.Kind != ir.TupleType {
		return b.emit(in, ir.OptimizationBarrier, []*ir.Value{operand.value}, attrs, nil, []*ir.Type{operand.typ})
	}
	values := b.flat(operand, nil)
	op := b.builder().At(b.origin(in)).Emit(ir.OptimizationBarrier, values, attrs, nil, ir.Types(values))
	return refill(operand.typ, op.Results)
}
