package ir

import (
	"fmt"
	"slices"
)

// LAPACK checks that op, a custom call of a routine of LAPACK, has operands and results
// of the given ranks, behind as many batch dimensions each, and that its matrices are
// in the order of LAPACK, where it says how they are laid out.
func LAPACK(op *Op, operands, results []int) error {
	if len(op.Operands) != len(operands) || len(op.Results) != len(results) {
		return fmt.Errorf("%s and %s, want %d and %d", Counted(len(op.Operands), "operand"), Counted(len(op.Results), "result"), len(operands), len(results))
	}
	first := op.Operands[0].Type
	batch := first.Rank() - operands[0]
	check := func(what string, vs []*Value, ranks []int, layouts string) error {
		orders, _ := op.Attrs.Get(layouts).(Array)
		for i, v := range vs {
			t := v.Type
			switch {
			case !t.IsTensor() || !t.IsStatic() || t.Elem != first.Elem && t.Elem != I32 || first.Elem != F32 && first.Elem != F64:
				return fmt.Errorf("%s %d is %s, want a tensor of known sizes, of f32, f64 or, to number something, i32", what, i, t)
			case batch < 0 || t.Rank() != batch+ranks[i] || !slices.Equal(t.Shape[:batch], first.Shape[:batch]):
				return fmt.Errorf("%s %d is %s, want %d dimensions behind those of the batch", what, i, t, ranks[i])
			case i >= len(orders) || ranks[i] != 2:
				continue
			}
			if l, ok := orders[i].(*Literal); ok && l.Type.NumElements() > 1 && int(l.Int(0)) != t.Rank()-2 {
				return fmt.Errorf("%s %d is laid out by rows, and routines of LAPACK take columns", what, i)
			}
		}
		return nil
	}
	if err := check("operand", op.Operands, operands, "operand_layouts"); err != nil {
		return err
	}
	return check("result", op.Results, results, "result_layouts")
}

// ShapesBehind are the last sizes of each of vs, as many as ranks says.
func ShapesBehind(vs []*Value, ranks []int) [][]int {
	out := make([][]int, len(vs))
	for i, v := range vs {
		out[i] = v.Type.Shape[v.Type.Rank()-ranks[i]:]
	}
	return out
}

// LAPACKOption reads the options of op, which are in its configuration as attributes or
// as text, which read reads.
func LAPACKOption(op *Op, read func(config, name string) (int, bool)) func(name string) int {
	return func(name string) int {
		for _, key := range []string{"mhlo.backend_config", "backend_config"} {
			switch config := op.Attrs.Get(key).(type) {
			case Dict:
				if Attrs(config).Has(name) {
					return Attrs(config).Int(name)
				}
			case Str:
				if v, ok := read(string(config), name); ok {
					return v
				}
			}
		}
		return 0
	}
}
