package tidy

import (
	"bytes"
	"hash/maphash"

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
	sub   ir.Subst
	key   facts.Key // of the op at hand
	other facts.Key // of one that may be equal
}

// A scope holds the ops seen in one block and those around it, by the hash of their
// keys. Ops of other keys that have the same hash are under the hashes that follow.
type scope struct {
	outer *scope
	ops   map[uint64]*ir.Op
}

// find returns the op that has the key of op, which becomes c.key; nil if there is
// none. Then op would stand under the given hash in s.
func (c *merger) find(s *scope, op *ir.Op) (found *ir.Op, hash uint64) {
	c.key.Reset()
	keyOf(&c.key, op)
	at := maphash.Bytes(seed, c.key.Bytes())
	for here := s; s != nil; s = s.outer {
		k := at
		for ; s.ops[k] != nil; k++ {
			c.other.Reset()
			if keyOf(&c.other, s.ops[k]); bytes.Equal(c.other.Bytes(), c.key.Bytes()) {
				return s.ops[k], 0
			}
		}
		if s == here {
			hash = k
		}
	}
	return nil, hash
}

var seed = maphash.MakeSeed()

func (c *merger) block(b *ir.Block, outer *scope) {
	here := &scope{outer, make(map[uint64]*ir.Op, len(b.Ops))}
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
		first, hash := c.find(here, op)
		if first != nil {
			for i, v := range op.Results {
				c.sub[v.ID] = first.Results[i]
				if first.Results[i].Name == "" {
					first.Results[i].Name = v.Name
				}
			}
			continue
		}
		here.ops[hash] = op
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

// keyOf writes a text of what op computes: two pure ops with one key are
// interchangeable.
func keyOf(k *facts.Key, op *ir.Op) { facts.WriteKey(k, op, writeID) }

func writeID(k *facts.Key, v *ir.Value) { k.WriteInt(int(v.ID)) }
