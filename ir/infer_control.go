package ir

import "fmt"

// Constraints and result types of control flow and tuples.

// carried checks that values of the given types fit the block arguments or
// the returned values.
func carried(n int, what string, have, want []*Type) *Rule {
	if len(have) != len(want) {
		return broken(n, "%s: %s, want %d", what, Counted(len(have), "value"), len(want))
	}
	for i := range have {
		if !compatible(have[i], want[i]) {
			return broken(n, "%s: value %d is %s, want %s", what, i, have[i], want[i])
		}
	}
	return nil
}

func returned(b *Block) []*Type {
	if ret := b.Terminator(); ret != nil {
		return typesOf(ret.Operands)
	}
	return nil
}

func inferWhile(op *Op) ([]*Type, *Rule) {
	ts := typesOf(op.Operands)
	cond, do := op.Regions[0], op.Regions[1]
	if r := carried(1, "arguments of the condition", typesOf(cond.Args), ts); r != nil {
		return nil, r
	}
	if r := carried(1, "result of the condition", returned(cond), []*Type{Tensor(I1)}); r != nil {
		return nil, r
	}
	if r := carried(2, "arguments of the body", typesOf(do.Args), ts); r != nil {
		return nil, r
	}
	if r := carried(2, "results of the body", returned(do), ts); r != nil {
		return nil, r
	}
	return ts, nil
}

func inferCase(op *Op) ([]*Type, *Rule) { return branches(op, Tensor(I32), 2, 3) }

func inferIf(op *Op) ([]*Type, *Rule) { return branches(op, Tensor(I1), 1, 2) }

// branches checks that the operand has type index, that the regions take
// nothing, and that all return the same.
func branches(op *Op, index *Type, args, results int) ([]*Type, *Rule) {
	if t := op.Operands[0].Type; !t.Equal(index) {
		return nil, broken(0, "operand 0 is %s, want %s", t, index)
	}
	ts := returned(op.Regions[0])
	for i, r := range op.Regions {
		if len(r.Args) != 0 {
			return nil, broken(args, "branch %d takes %s, want none", i, Counted(len(r.Args), "value"))
		}
		if rule := carried(results, fmt.Sprintf("results of branch %d, against branch 0", i), returned(r), ts); rule != nil {
			return nil, rule
		}
	}
	return ts, nil
}

func inferTuple(op *Op) ([]*Type, *Rule) { return []*Type{Tuple(typesOf(op.Operands)...)}, nil }

func inferGetTupleElement(op *Op) ([]*Type, *Rule) {
	t, i := op.Operands[0].Type, op.Int("index")
	if t.Kind != TupleType || i < 0 || i >= len(t.Elems) {
		return nil, broken(1, "%s has no element %d", t, i)
	}
	return []*Type{t.Elems[i]}, nil
}
