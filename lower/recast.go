package lower

import (
	"fmt"

	"ppc/ir"
)

// Recast is a copy of m in which every value of a floating-point or complex type t is of
// type to(t). Numbers are not rounded to other types on the way: a reduction of the
// precision stays only where to changes nothing. It is an error where the bits of
// a number are read, or an op outside of the program takes one.
func Recast(m *ir.Module, to func(ir.DType) ir.DType) (*ir.Module, error) {
	c := &recast{to: to, types: make(map[*ir.Type]*ir.Type), new: make(map[*ir.Type]bool)}
	m = m.Clone()
	for _, f := range m.Funcs {
		for i := range f.Results {
			f.Results[i].Type = c.typeOf(f.Results[i].Type)
		}
		if f.Body != nil {
			c.block(f.Body)
		}
	}
	return m, c.err
}

// A recast is the change of a module's types.
type recast struct {
	to    func(ir.DType) ir.DType
	types map[*ir.Type]*ir.Type
	new   map[*ir.Type]bool // types that others have become
	err   error             // the first
}

func (c *recast) typeOf(t *ir.Type) *ir.Type {
	if out, ok := c.types[t]; ok {
		return out
	}
	out := t
	switch {
	case t.Kind == ir.TupleType:
		u := *t
		u.Elems = nil
		for _, e := range t.Elems {
			u.Elems = append(u.Elems, c.typeOf(e))
		}
		out = &u
	case t.Quant != nil:
		c.fail(fmt.Errorf("%s is quantized", t))
	case t.IsTensor() && c.to(t.Elem) != t.Elem:
		out = t.WithElem(c.to(t.Elem))
	}
	c.types[t] = out
	c.new[out] = c.new[out] || out != t
	return out
}

func (c *recast) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *recast) block(b *ir.Block) {
	for _, a := range b.Args {
		a.Type = c.typeOf(a.Type)
	}
	for _, op := range b.Ops {
		c.op(op)
		for _, r := range op.Regions {
			c.block(r)
		}
	}
}

// op changes the types of op's results; those of its operands have been changed.
func (c *recast) op(op *ir.Op) {
	changed := false
	for _, v := range op.Results {
		t := c.typeOf(v.Type)
		changed = changed || t != v.Type
		v.Type = t
	}
	for _, v := range op.Operands {
		changed = changed || c.new[v.Type]
	}
	switch {
	case !changed:
	case op.Kind == ir.Constant || op.Kind == ir.SdyConstant:
		op.Attrs = append(ir.Attrs(nil), op.Attrs...)
		op.Attrs.Set("value", RecastLiteral(op.Literal("value"), op.Result().Type.Elem))
	case op.Kind == ir.ReducePrecision:
		op.Kind, op.Attrs = ir.Convert, nil
	case op.Kind == ir.BitcastConvert || op.Kind == ir.CustomCall || op.Kind == ir.Unknown:
		c.fail(fmt.Errorf("%s takes or gives numbers of a certain type", op.Name()))
	}
}

// RecastLiteral is l, of floats or complex numbers, with elements of another such type:
// the nearest that there are.
func RecastLiteral(l *ir.Literal, to ir.DType) *ir.Literal {
	if l.Type.Elem == to || l.Type.Elem.IsInt() {
		return l
	}
	from, part := l.Type.Elem.Part(), to.Part()
	n := len(l.Data) / from.Size()
	out := &ir.Literal{Type: l.Type.WithElem(to), Data: make([]byte, n*part.Size())}
	for i := range n {
		part.PutFloat(out.Data[i*part.Size():], from.GetFloat(l.Data[i*from.Size():]))
	}
	return out
}

// OneDevice makes m, a global program of StableHLO, one for a single device: without
// shardings, and without the ops that state them.
func OneDevice(m *ir.Module) {
	m.Meshes = nil
	for _, name := range []string{"mhlo.num_partitions", "mhlo.num_replicas"} {
		m.Attrs.Delete(name)
	}
	for _, f := range m.Funcs {
		for i := range f.Results {
			f.Results[i].Sharding = nil
		}
		if f.Body != nil {
			s := f.NewSubst()
			unsharded(f.Body, s)
		}
	}
}

func unsharded(b *ir.Block, s ir.Subst) {
	for _, a := range b.Args {
		a.Sharding = nil
	}
	ops := b.Ops[:0]
	for _, op := range b.Ops {
		s.Apply(op.Operands)
		if op.Kind == ir.ShardingConstraint {
			s[op.Result().ID] = op.Operands[0]
			continue
		}
		for _, v := range op.Results {
			v.Sharding = nil
		}
		for _, r := range op.Regions {
			unsharded(r, s)
		}
		ops = append(ops, op)
	}
	b.Ops = ops
}
