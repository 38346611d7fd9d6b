package passes

import (
	"strconv"
	"strings"

	"ppc/ir"
)

// cse makes every use of a value a use of the first value that computes the
// same thing, and drops the others. One walk in order is enough: when an op is
// reached its operands have been merged, so equal ops have equal keys. A
// region sees what stands before the op that holds it, so it is merged with
// that, never the other way round.
//
// Two collectives on one operand are one: every device executes the same text.
func cse(_ *Context, m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		c := &merger{sub: f.NewSubst()}
		c.block(f.Body, nil)
	}
	return nil
}

type merger struct {
	sub ir.Subst
}

// A scope holds the ops seen in one block and those around it, by key.
type scope struct {
	outer *scope
	ops   map[string]*ir.Op
}

func (s *scope) find(key string) *ir.Op {
	for ; s != nil; s = s.outer {
		if op := s.ops[key]; op != nil {
			return op
		}
	}
	return nil
}

func (c *merger) block(b *ir.Block, outer *scope) {
	here := &scope{outer, make(map[string]*ir.Op)}
	kept := b.Ops[:0]
	for _, op := range b.Ops {
		c.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			inner := here
			if op.Kind.Has(ir.Isolated) {
				inner = nil
			}
			c.block(r, inner)
		}
		if !mergeable(op) {
			kept = append(kept, op)
			continue
		}
		if op.Kind.Has(ir.Commutative) && op.Operands[0].ID > op.Operands[1].ID {
			op.Operands[0], op.Operands[1] = op.Operands[1], op.Operands[0]
		}
		key := opKey(op)
		if first := here.find(key); first != nil {
			for i, v := range op.Results {
				c.sub[v.ID] = first.Results[i]
				if first.Results[i].Name == "" {
					first.Results[i].Name = v.Name
				}
			}
			continue
		}
		here.ops[key] = op
		kept = append(kept, op)
	}
	b.Ops = kept
}

// mergeable: loops and branches are left alone; reducers are compared whole.
func mergeable(op *ir.Op) bool {
	if !op.Kind.Has(ir.Pure) || len(op.Results) == 0 {
		return false
	}
	return len(op.Regions) == 0 || reducer(op)
}

// reducer reports whether op's only region combines scalars of its own.
func reducer(op *ir.Op) bool {
	return len(op.Regions) == 1 && len(op.Regions[0].Args) > 0 && op.Kind != ir.PPScan && !op.Kind.Has(ir.Isolated) && len(op.Captures()) == 0
}

// opKey says what op computes: two pure ops with one key are interchangeable.
func opKey(op *ir.Op) string {
	var b strings.Builder
	writeKey(&b, op, func(v *ir.Value) string { return strconv.Itoa(int(v.ID)) })
	return b.String()
}

func writeKey(b *strings.Builder, op *ir.Op, ref func(*ir.Value) string) {
	b.WriteString(op.Name())
	for _, v := range op.Operands {
		b.WriteByte(' ')
		b.WriteString(ref(v))
	}
	for _, a := range op.Attrs {
		if a.Name != "channel_handle" {
			writeAttr(b, a)
		}
	}
	for _, v := range op.Results {
		b.WriteByte(':')
		b.WriteString(v.Type.String())
		if v.Sharding != nil {
			b.WriteString(v.Sharding.String())
		}
	}
	for _, r := range op.Regions {
		writeRegion(b, r, ref)
	}
}

func writeAttr(b *strings.Builder, a ir.NamedAttr) {
	b.WriteByte(';')
	b.WriteString(a.Name)
	b.WriteByte('=')
	if l, ok := a.Attr.(*ir.Literal); ok {
		b.WriteString(l.Type.String())
		b.Write(l.Data)
		return
	}
	b.WriteString(a.Attr.String())
}

func writeRegion(b *strings.Builder, r *ir.Block, ref func(*ir.Value) string) {
	local := make(map[*ir.Value]string)
	name := func(vs []*ir.Value) {
		for _, v := range vs {
			local[v] = "r" + strconv.Itoa(len(local))
		}
	}
	name(r.Args)
	for _, inner := range r.Ops {
		b.WriteByte('{')
		writeKey(b, inner, func(v *ir.Value) string {
			if s, ok := local[v]; ok {
				return s
			}
			return ref(v)
		})
		b.WriteByte('}')
		name(inner.Results)
	}
}
