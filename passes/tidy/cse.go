package tidy

import (
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// Cse makes every use of a value a use of the first value that computes the same
// thing, and drops the others. One walk in order is enough: when an op is reached
// its operands have been merged, so equal ops have equal keys. A region sees the
// ops before the op that holds it, so ops in the region are merged with those,
// never the other way round.
//
// Two collectives on one operand are one: every device executes the same text.
func Cse(_ *pass.Context, m *ir.Module) error {
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

// mergeable reports whether op may be merged with an equal one: any op but loops
// and branches. Regions of reducers are compared as text.
func mergeable(op *ir.Op) bool {
	if !op.Kind.Has(ir.Pure) || len(op.Results) == 0 {
		return false
	}
	return len(op.Regions) == 0 || facts.Reducer(op)
}

// opKey is a text of what op computes: two pure ops with one key are
// interchangeable.
func opKey(op *ir.Op) string {
	var b strings.Builder
	facts.WriteKey(&b, op, func(v *ir.Value) string { return strconv.Itoa(int(v.ID)) })
	return b.String()
}
