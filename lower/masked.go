package lower

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// Masked is m with every dot by groups as a dot of masked operands, for compilers that
// have no other: XLA's for CPUs. It is m itself where there is none, and shares nothing
// with m that it changes. A masked dot multiplies all rows with the matrices of all
// groups, those of other groups as zeros; so what is not finite in one group is not in
// the others either.
func Masked(m *ir.Module) *ir.Module { return withoutRagged(m, maskedDot) }

// withoutRagged is m with the value that with makes in place of every dot by groups.
func withoutRagged(m *ir.Module, with func(b *ir.Builder, op *ir.Op) *ir.Value) *ir.Module {
	if !slices.ContainsFunc(m.Funcs, hasRagged) {
		return m
	}
	m = m.Clone()
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		k := replacer{f: f, sub: f.NewSubst(), with: with}
		k.block(f.Body)
	}
	return m
}

func hasRagged(f *ir.Func) bool {
	found := false
	if f.Body != nil {
		f.Body.Walk(func(op *ir.Op) { found = found || op.Kind == ir.RaggedDot })
	}
	return found
}

type replacer struct {
	f    *ir.Func
	sub  ir.Subst
	with func(b *ir.Builder, op *ir.Op) *ir.Value
}

func (k *replacer) block(block *ir.Block) {
	ops := block.Ops
	block.Ops = nil
	for _, op := range ops {
		k.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			k.block(r)
		}
		if op.Kind != ir.RaggedDot {
			block.Ops = append(block.Ops, op)
			continue
		}
		v := k.with(&ir.Builder{Func: k.f, Block: block, Origin: op.Origin}, op)
		v.Name, v.Sharding = op.Result().Name, op.Result().Sharding
		k.sub[op.Result().ID] = v
	}
}

// maskedDot repeats the left side for each group, with zeros for what is not in it. The
// groups are contracted where the right side has them, and a dimension of the result
// where they are contracted.
func maskedDot(b *ir.Builder, op *ir.Op) *ir.Value {
	d := op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	x, y, t := op.Operands[0], op.Operands[1], op.Result().Type
	if d.Mode() == ir.RaggedBatch {
		return dotAs(b, op, x, y, d.Dot, t)
	}
	shape := slices.Clone(x.Type.Shape)
	rank := len(shape)
	starts, ends := facts.GroupRanges(b, op.Operands[2], shape[d.Ragged()])
	shape = append(shape, starts.Type.Shape[starts.Type.Rank()-1])
	at := []int{rank}
	if starts.Type.Rank() > 1 {
		at = append(d.Outer(), rank)
	}
	row := b.Iota(ir.Tensor(ir.I32, shape...), d.Ragged())
	in := b.Binary(ir.And, b.Compare("GE", row, b.Broadcast(starts, shape, at...)), b.Compare("LT", row, b.Broadcast(ends, shape, at...)))
	all := b.Broadcast(x, shape, facts.UpTo(rank)...)
	x = b.Select(in, all, b.Splat(all.Type, 0))
	if d.Mode() == ir.RaggedFree {
		dot := d.Dot
		dot.LhsContract, dot.RhsContract = append(slices.Clone(dot.LhsContract), rank), append(slices.Clone(dot.RhsContract), d.RhsGroup...)
		return dotAs(b, op, x, y, dot, t)
	}
	// The groups are the last free dimension of the left side, and the first of the result.
	n := len(d.LhsBatch) + len(d.FreeL(rank))
	v := dotAs(b, op, x, y, d.Dot, t.WithShape(slices.Insert(slices.Clone(t.Shape[1:]), n, t.Shape[0])...))
	perm := slices.Insert(slices.Delete(facts.UpTo(t.Rank()), n, n+1), 0, n)
	return b.Transpose(v, perm...)
}

// dotAs is a dot with a result of type t, as precise as op.
func dotAs(b *ir.Builder, op *ir.Op, x, y *ir.Value, d ir.Dot, t *ir.Type) *ir.Value {
	attrs := ir.AttrsOf(facts.Named("dot_dimension_numbers", d))
	if p, ok := op.Attrs.Get("precision_config").(ir.Array); ok {
		p = slices.Clone(p)
		for i, a := range p {
			p[i] = ir.HLOEnum("precision", a.(ir.Enum).Value)
		}
		attrs.Set("precision_config", p)
	}
	return b.Emit(ir.DotGeneral, []*ir.Value{x, y}, attrs, nil, []*ir.Type{t}).Result()
}
