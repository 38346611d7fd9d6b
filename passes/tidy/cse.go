package tidy

import (
	"bytes"
	"hash/maphash"
	"math/bits"

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

// A scope holds the ops seen in one block and those around it, in a table by the hash
// of what they compute. An entry is half of the hash and half the position of the op
// among those of the block that are kept, from 1; an op whose place is taken comes in
// the next one that is free. At most half of the places are taken.
type scope struct {
	outer  *scope
	block  *ir.Block
	places []uint64
}

func newScope(outer *scope, b *ir.Block) *scope {
	return &scope{outer, b, make([]uint64, 2<<bits.Len(uint(len(b.Ops))))}
}

const halfHash = 1<<64 - 1<<32 // of an entry

// find returns the op that has the key of op; nil if there is none. Then op would
// stand in s at the given place.
func (c *merger) find(s *scope, op *ir.Op, hash uint64) (found *ir.Op, place int) {
	for here := s; s != nil; s = s.outer {
		k := int(hash) & (len(s.places) - 1)
		for ; s.places[k] != 0; k = (k + 1) & (len(s.places) - 1) {
			if (s.places[k]^hash)&halfHash != 0 {
				continue
			}
			if other := s.block.Ops[uint32(s.places[k])-1]; c.equal(op, other) {
				return other, 0
			}
		}
		if s == here {
			place = k
		}
	}
	return nil, place
}

// equal reports whether two ops compute the same.
func (c *merger) equal(op, other *ir.Op) bool {
	c.key.Reset()
	keyOf(&c.key, op)
	c.other.Reset()
	keyOf(&c.other, other)
	return bytes.Equal(c.key.Bytes(), c.other.Bytes())
}

var seed = maphash.MakeSeed()

// hashOf is equal for two ops of one key. Most ops are told by few numbers.
func (c *merger) hashOf(op *ir.Op) uint64 {
	if !op.Kind.Has(ir.Elementwise) || len(op.Attrs)+len(op.Regions) > 0 {
		c.key.Reset()
		keyOf(&c.key, op)
		return maphash.Bytes(seed, c.key.Bytes())
	}
	const odd = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	h := uint64(op.Kind)
	for _, v := range op.Operands {
		h = bits.RotateLeft64((h^uint64(v.ID))*odd, 29)
	}
	for _, v := range op.Results {
		for _, d := range v.Type.Shape {
			h = bits.RotateLeft64((h^uint64(d))*odd, 29)
		}
		h = bits.RotateLeft64((h^uint64(v.Type.Elem))*odd, 29)
	}
	return h * odd
}

func (c *merger) block(b *ir.Block, outer *scope) {
	here := newScope(outer, b)
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
		hash := c.hashOf(op)
		first, place := c.find(here, op, hash)
		if first != nil {
			for i, v := range op.Results {
				c.sub[v.ID] = first.Results[i]
				if first.Results[i].Name == "" {
					first.Results[i].Name = v.Name
				}
			}
			continue
		}
		kept = append(kept, op)
		here.places[place] = hash&halfHash | uint64(len(kept))
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
