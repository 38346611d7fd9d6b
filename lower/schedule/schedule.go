// Package schedule says in which order the ops of a block are computed.
package schedule

import (
	"slices"

	"ppc/ir"
)

// Order is the ops of b with every update of a part of a tensor behind the other reads
// of that tensor, where none of them depends on the update. Whoever computes in this
// order finds the tensor dead at the update and can write over it in place of a copy.
// Only updates move, to before the first op that reads what they give, so that every
// value is defined before it is read.
func Order(b *ir.Block) []*ir.Op {
	if !slices.ContainsFunc(b.Ops, updates) {
		return b.Ops
	}
	s := newScheduler(b)
	behind := make(map[int][]*ir.Op) // by place of the op that they follow
	moved := 0
	for i, op := range b.Ops {
		if !updates(op) {
			continue
		}
		if last := s.lastRead(op.Operands[0], op, make(map[*ir.Value]bool)); last > i && last < s.firstRead(op) {
			behind[last] = append(behind[last], op)
			s.moved[op] = true
			moved++
		}
	}
	if moved == 0 {
		return b.Ops
	}
	out := make([]*ir.Op, 0, len(b.Ops))
	for i, op := range b.Ops {
		if !s.moved[op] {
			out = append(out, op)
		}
		out = append(out, behind[i]...)
	}
	return out
}

// updates reports whether op gives its first operand but for a part.
func updates(op *ir.Op) bool {
	return len(op.Results) == 1 && (op.Kind == ir.DynamicUpdateSlice || op.Kind == ir.Scatter)
}

// A scheduler is a block at work.
type scheduler struct {
	readers map[*ir.Value][]int // places of the ops that read a value, in order
	b       *ir.Block
	moved   map[*ir.Op]bool
}

func newScheduler(b *ir.Block) *scheduler {
	s := &scheduler{readers: make(map[*ir.Value][]int), b: b, moved: make(map[*ir.Op]bool)}
	for i, op := range b.Ops {
		for _, v := range op.Operands {
			s.readers[v] = append(s.readers[v], i)
		}
		if len(op.Regions) > 0 {
			for _, v := range op.Captures() {
				s.readers[v] = append(s.readers[v], i)
			}
		}
	}
	return s
}

// lastRead is the place of the last op but not that reads v, or what is the same memory;
// seen are the values whose readers have been looked at.
func (s *scheduler) lastRead(v *ir.Value, not *ir.Op, seen map[*ir.Value]bool) int {
	last := -1
	if seen[v] {
		return last
	}
	seen[v] = true
	for _, i := range s.readers[v] {
		op := s.b.Ops[i]
		if op == not {
			continue
		}
		last = max(last, i)
		if op.Kind == ir.Reshape || op.Kind == ir.OptimizationBarrier {
			for k, x := range op.Operands {
				if x == v {
					last = max(last, s.lastRead(op.Results[k], not, seen))
				}
			}
		}
	}
	return last
}

// firstRead is the place of the first op that reads the result of op, or of the block's
// terminator.
func (s *scheduler) firstRead(op *ir.Op) int {
	if r := s.readers[op.Result()]; len(r) > 0 {
		return r[0]
	}
	return len(s.b.Ops) - 1
}
