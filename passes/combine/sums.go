package combine

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/rewrite"
)

// sums combines collectives of b of the same key whose results are added up and
// have no other use:
//
//	all_reduce(x) + all_reduce(y) = all_reduce(x + y)
//
// This holds for every linear collective, for any number of terms, and with other
// terms in the sum. An addition of two collectives becomes one of their operands,
// in place; the collective is appended where the sum is complete. A transpose of
// the result is moved before the collective if that is elementwise.
func (j *joiner) sums(b *ir.Block) {
	s := j.sumsIn(b)
	if len(s.key) == 0 {
		return
	}
	out := &ir.Block{}
	for _, op := range b.Ops {
		switch {
		case s.turned[op] != nil:
			c := s.turned[op]
			c.Result().Type = op.Result().Type
			in := &ir.Builder{Func: j.f, Block: out, Origin: op.Origin}
			x := in.Transpose(c.Operands[0], op.Ints("permutation")...).Named(c.Operands[0].Name)
			s.of[op.Result()] = partialSum{parts: []summand{{c, x}}}
		case s.key[op] != "":
			s.of[op.Result()] = partialSum{parts: []summand{{op, op.Operands[0]}}}
		case s.adds[op] == nil:
			out.Ops = append(out.Ops, op)
		default:
			in := &ir.Builder{Func: j.f, Block: out, Origin: op.Origin}
			sum := s.plus(in, op)
			if s.adds[op] == op {
				sum.complete(in, op)
			} else {
				s.of[op.Result()] = sum
			}
		}
	}
	b.Ops = out.Ops
}

// addends is the collectives of a block whose results are added up.
type addends struct {
	key    map[*ir.Op]string        // of collectives; those of one key can be combined
	turned map[*ir.Op]*ir.Op        // the transposes of some of them
	adds   map[*ir.Op]*ir.Op        // the additions between them, and the last one of each sum
	of     map[*ir.Value]partialSum // the sums so far
}

// A partialSum is the sum of plain, if that is not nil, and a collective of each
// part.
type partialSum struct {
	plain *ir.Value
	parts []summand
}

// A summand is the operand of a collective to be.
type summand struct {
	op *ir.Op
	v  *ir.Value
}

func (j *joiner) sumsIn(b *ir.Block) *addends {
	s := &addends{key: make(map[*ir.Op]string), turned: make(map[*ir.Op]*ir.Op), adds: make(map[*ir.Op]*ir.Op), of: make(map[*ir.Value]partialSum)}
	if !slices.ContainsFunc(b.Ops, func(op *ir.Op) bool { return op.Kind.Has(ir.Collective) }) {
		return s // no value of a block around b is added up here
	}
	here := make(map[*ir.Op]bool, len(b.Ops))
	for _, op := range b.Ops {
		here[op] = true
	}
	once := func(v *ir.Value) bool { return here[v.Def] && int(v.ID) < len(j.uses) && j.uses[v.ID] == 1 }
	inner := make(map[*ir.Op]bool)
	for _, root := range slices.Backward(b.Ops) {
		if root.Kind != ir.Add || inner[root] {
			continue
		}
		adds, found, count := []*ir.Op{root}, []*ir.Op(nil), make(map[string]int)
		for i := 0; i < len(adds); i++ {
			for _, v := range adds[i].Operands {
				switch op := v.Def; {
				case !once(v):
				case op.Kind == ir.Add:
					inner[op] = true
					adds = append(adds, op)
				case op.Kind != ir.Transpose || once(op.Operands[0]) && op.Operands[0].Def.Kind == ir.AllReduce:
					if k := linearKey(op); k != "" {
						found = append(found, op)
						count[k]++
					}
				}
			}
		}
		several := false
		for _, op := range found {
			k := linearKey(op)
			if count[k] == 1 {
				continue
			}
			several = true
			if op.Kind == ir.Transpose {
				s.turned[op] = op.Operands[0].Def
				op = op.Operands[0].Def
			}
			s.key[op] = k
		}
		for _, op := range adds {
			if several {
				s.adds[op] = root
			}
		}
	}
	return s
}

// linearKey is a text of op, a collective that is a linear function of its operand,
// without that operand; "" for other ops. For a transpose of a collective it is the
// text of the collective applied to the transposed operand.
func linearKey(op *ir.Op) string {
	if len(op.Operands) != 1 {
		return ""
	}
	t := op.Operands[0].Type
	if op.Kind == ir.Transpose {
		t, op = op.Result().Type, op.Operands[0].Def
	}
	if !op.Kind.Has(ir.Collective) || len(op.Operands) != 1 || len(op.Regions) > 0 && facts.Combines(op.Regions[0], 0) != ir.Add {
		return ""
	}
	if key := alikeKey(op, nil); key != "" {
		return key + t.String()
	}
	return ""
}

// plus is the sum of the operands of op, an addition, with the collectives not yet
// applied.
func (s *addends) plus(b *ir.Builder, op *ir.Op) partialSum {
	x, y := s.partial(op.Operands[0]), s.partial(op.Operands[1])
	sum := partialSum{x.plain, slices.Clone(x.parts)}
	switch {
	case x.plain == nil:
		sum.plain = y.plain
	case y.plain != nil:
		sum.plain = b.Add(x.plain, y.plain).Named(op.Result().Name)
	}
	for _, p := range y.parts {
		i := slices.IndexFunc(sum.parts, func(q summand) bool { return s.key[q.op] == s.key[p.op] })
		if i < 0 {
			sum.parts = append(sum.parts, p)
		} else {
			sum.parts[i].v = b.Add(sum.parts[i].v, p.v)
		}
	}
	return sum
}

func (s *addends) partial(v *ir.Value) partialSum {
	if sum, ok := s.of[v]; ok {
		return sum
	}
	return partialSum{plain: v}
}

// complete appends the collectives of the sum and computes the result of root, the
// last addition, from them.
func (sum partialSum) complete(b *ir.Builder, root *ir.Op) {
	var total *ir.Value
	for i, p := range sum.parts {
		p.op.Operands[0] = p.v
		if sum.plain == nil && len(sum.parts) == 1 {
			rewrite.Adopt(p.op, 0, root.Result())
		}
		b.Block.Ops = append(b.Block.Ops, p.op)
		if v := p.op.Result(); i == 0 {
			total = v
		} else {
			total = b.Add(total, v)
		}
	}
	if sum.plain != nil {
		total = b.Add(sum.plain, total)
	}
	if total != root.Result() {
		rewrite.Adopt(total.Def, 0, root.Result())
	}
}
