package dialect

import (
	"fmt"

	"ppc/ir"
)

// Constraints and result types of control flow and tuples.

// carried checks that values of the given types fit the block arguments or
// the returned values.
func carried(n int, what string, have, want []*ir.Type) *ir.Rule {
	if len(have) != len(want) {
		return ir.Broken(n, "%s: %s, want %d", what, ir.Counted(len(have), "value"), len(want))
	}
	for i := range have {
		if !ir.Compatible(have[i], want[i]) {
			return ir.Broken(n, "%s: value %d is %s, want %s", what, i, have[i], want[i])
		}
	}
	return nil
}

func returned(b *ir.Block) []*ir.Type {
	if ret := b.Terminator(); ret != nil {
		return ir.TypesOf(ret.Operands)
	}
	return nil
}

func inferWhile(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts := ir.TypesOf(op.Operands)
	cond, do := op.Regions[0], op.Regions[1]
	if r := carried(1, "arguments of the condition", ir.TypesOf(cond.Args), ts); r != nil {
		return nil, r
	}
	if r := carried(1, "result of the condition", returned(cond), []*ir.Type{ir.Tensor(ir.I1)}); r != nil {
		return nil, r
	}
	if r := carried(2, "arguments of the body", ir.TypesOf(do.Args), ts); r != nil {
		return nil, r
	}
	if r := carried(2, "results of the body", returned(do), ts); r != nil {
		return nil, r
	}
	return ts, nil
}

func inferCase(op *ir.Op) ([]*ir.Type, *ir.Rule) { return branches(op, ir.Tensor(ir.I32), 2, 3) }

func inferIf(op *ir.Op) ([]*ir.Type, *ir.Rule) { return branches(op, ir.Tensor(ir.I1), 1, 2) }

// branches checks that the operand has type index, that the regions take
// nothing, and that all return the same.
func branches(op *ir.Op, index *ir.Type, args, results int) ([]*ir.Type, *ir.Rule) {
	if t := op.Operands[0].Type; !t.Equal(index) {
		return nil, ir.Broken(0, "operand 0 is %s, want %s", t, index)
	}
	ts := returned(op.Regions[0])
	for i, r := range op.Regions {
		if len(r.Args) != 0 {
			return nil, ir.Broken(args, "branch %d takes %s, want none", i, ir.Counted(len(r.Args), "value"))
		}
		if rule := carried(results, fmt.Sprintf("results of branch %d, against branch 0", i), returned(r), ts); rule != nil {
			return nil, rule
		}
	}
	return ts, nil
}

func inferOptimizationBarrier(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	for i, v := range op.Operands {
		if v.Type.PerAxis() {
			return nil, ir.Broken(0, "operand %d is %s, want a token or a tensor%s", i, v.Type, otherQuant(v.Type))
		}
	}
	return inferIdentity(op)
}

func inferTuple(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return []*ir.Type{ir.Tuple(ir.TypesOf(op.Operands)...)}, nil
}

func inferGetTupleElement(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	t, i := op.Operands[0].Type, op.Int("index")
	if t.Kind != ir.TupleType || i < 0 || i >= len(t.Elems) {
		return nil, ir.Broken(1, "%s has no element %d", t, i)
	}
	return []*ir.Type{t.Elems[i]}, nil
}
