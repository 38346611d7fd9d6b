// Package strips keeps large intermediate values out of memory: what computes and
// reads them becomes a loop over strips of rows, in which a strip of each exists at
// a time. Attention has no [query, key] matrix so, forward or backward, and a loss
// no [token, vocabulary] matrix.
//
// What belongs to a loop follows from dataflow and from the sharding rules of ops:
// a dimension along which every op of a group could be sharded without communication
// is one along which it can be computed strip by strip. A contraction over that
// dimension is the sum of those of the strips. So no pattern is named.
//
// # Same bits
//
// The element of a strip is computed by the same ops from the same elements as
// without strips. A contraction over rows has its products in blocks of [SumBlock],
// whose sums are added up in order; a strip of a contracted dimension has exactly one
// block, so the sums of strips are added up in the same order.
package strips

import (
	"slices"

	"ppc/ir"
)

// SumBlock is how many products a contraction adds up before it adds their sum to
// those of the products before.
const SumBlock = 256

// Limits say what is large, and how much of it a strip has.
type Limits struct {
	Large int // bytes of a value that is kept out of memory
	Strip int // bytes of a strip of the largest of them, as nearly as sizes permit
	Costs int // bytes of a value from which on it is computed again however long its contractions are
}

// Defaults are the limits of [Of]. A value of Large does not fit a cache and is
// noticed in the memory of a program; a strip fits the caches that cores share.
var Defaults = Limits{Large: 64 << 20, Strip: 4 << 20, Costs: 1 << 30}

// cheapTerms is the length of a contraction that is computed again in place of
// being kept: what it takes is like what moving its results takes.
const cheapTerms = 512

// Of is m in strips: m itself where nothing in it is large, else a copy.
func Of(m *ir.Module) *ir.Module { return With(m, Defaults) }

// With is [Of] with other limits.
func With(m *ir.Module, limits Limits) *ir.Module {
	if !needed(m, limits) {
		return m
	}
	c := m.Clone()
	for _, f := range c.Funcs {
		if f.Body != nil {
			k := &miner{f: f, limits: limits, kept: make(map[*ir.Value]bool), of: make(map[*ir.Value]*ir.Block), cheaps: make(map[*ir.Value]bool)}
			k.locate(f.Body)
			k.block(f.Body)
			k.sweep(f)
		}
	}
	return c
}

// needed reports whether a contraction of m has a large operand or result.
func needed(m *ir.Module, limits Limits) bool {
	found := false
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			if found || op.Kind != ir.DotGeneral || !supported(op) {
				return
			}
			for _, v := range []*ir.Value{op.Operands[0], op.Operands[1], op.Result()} {
				found = found || limits.large(v)
			}
		})
	}
	return found
}

func (l Limits) large(v *ir.Value) bool {
	return v.Type.IsTensor() && v.Type.IsStatic() && v.Type.Bytes() >= l.Large
}

// A miner is a function at work.
type miner struct {
	f      *ir.Func
	limits Limits
	kept   map[*ir.Value]bool      // large values that stay in memory
	of     map[*ir.Value]*ir.Block // where values are defined
	cheaps map[*ir.Value]bool
	bound  int // bytes of the largest values that are looked for
}

// locate notes where the values of b and of what is in it are defined.
func (k *miner) locate(b *ir.Block) {
	for _, a := range b.Args {
		k.of[a] = b
	}
	for _, op := range b.Ops {
		k.locateIn(b, op)
	}
}

func (k *miner) locateIn(b *ir.Block, op *ir.Op) {
	for _, v := range op.Results {
		k.of[v] = b
	}
	for _, r := range op.Regions {
		k.locate(r)
	}
}

// block makes loops of what b computes, regions first: what they make out of
// strips of a value of b need not be in memory in b.
func (k *miner) block(b *ir.Block) {
	for _, op := range b.Ops {
		if op.Kind.Has(ir.TensorRegions) {
			for _, r := range op.Regions {
				k.block(r)
			}
		}
	}
	for k.bound = k.largestIn(b); k.bound >= k.limits.Large; k.bound /= similar {
		for g := k.find(b); g != nil; g = k.find(b) {
			if !g.mine() {
				for v := range g.unkept {
					k.kept[v] = true
				}
			}
		}
	}
}

// similar is how many times as large the values of a group may be as others of it:
// those that come with the largest one, and not what these are made of or made into.
const similar = 4

// largestIn is the size of the largest result of a contraction in b.
func (k *miner) largestIn(b *ir.Block) int {
	n := 0
	for _, op := range b.Ops {
		if op.Kind == ir.DotGeneral && supported(op) {
			n = max(n, op.Result().Type.Bytes())
		}
	}
	return n
}

// large reports whether v has at least the size that is looked for: more than a part
// of the largest value.
func (k *miner) large(v *ir.Value) bool {
	return v.Type.IsTensor() && v.Type.IsStatic() && v.Type.Bytes() > k.bound/similar && v.Type.Bytes() >= k.limits.Large
}

// supported reports whether op can be computed strip by strip, if its dimensions
// permit it.
func supported(op *ir.Op) bool {
	if len(op.Results) != 1 || op.Kind.Has(ir.Collective) {
		return false
	}
	for _, vs := range [][]*ir.Value{op.Operands, op.Results} {
		for _, v := range vs {
			if !v.Type.IsTensor() || !v.Type.IsStatic() || v.Type.Quant != nil {
				return false
			}
		}
	}
	switch op.Kind {
	case ir.BroadcastInDim, ir.Reshape, ir.Transpose, ir.DotGeneral, ir.Iota, ir.Slice, ir.Pad, ir.Concatenate:
		return true
	case ir.Constant:
		return op.Literal("value").IsSplat()
	case ir.Reduce:
		return len(op.Operands) == 2 && len(op.Captures()) == 0
	}
	return op.Kind.Has(ir.Elementwise) && len(op.Regions) == 0 && len(op.Operands) > 0
}

// cheap reports whether v is made of small values without contractions and
// reductions, so that each strip may make it anew.
func (k *miner) cheap(v *ir.Value) bool {
	if known, ok := k.cheaps[v]; ok {
		return known
	}
	op := v.Def
	is := op != nil && supported(op) && op.Kind != ir.DotGeneral && op.Kind != ir.Reduce
	for i := 0; is && i < len(op.Operands); i++ {
		is = !k.limits.large(op.Operands[i]) || k.cheap(op.Operands[i])
	}
	k.cheaps[v] = is
	return is
}

// sweep removes what loops make anew and nothing reads any more.
func (k *miner) sweep(f *ir.Func) {
	uses := f.Uses()
	var block func(b *ir.Block)
	block = func(b *ir.Block) {
		for i := len(b.Ops) - 1; i >= 0; i-- {
			op := b.Ops[i]
			if len(op.Results) == 1 && uses[op.Result().ID] == 0 && k.limits.large(op.Result()) && k.cheap(op.Result()) {
				for _, v := range op.Operands {
					uses[v.ID]--
				}
				b.Ops = slices.Delete(b.Ops, i, i+1)
				continue
			}
			for _, r := range op.Regions {
				block(r)
			}
		}
	}
	block(f.Body)
}
