// Package lapackcall reads custom calls of routines of LAPACK: what they take and give, and their options.
package lapackcall

import (
	"fmt"
	"slices"

	"ppc/ir"
)

// A Part is what a routine of LAPACK takes or gives, behind the dimensions of the batch: of
// how many dimensions it is, and of which numbers. Those are the routine's own where Of is 0,
// and else real ones of that precision, 'r', complex ones, 'c', or integers, 'i'.
type Part = struct {
	Rank int
	Of   byte
}

// numbersOf is the type of the numbers of p in the routine whose name begins with precision.
func numbersOf(precision byte, p Part) ir.DType {
	own := p.Of == 0 && (precision == 'c' || precision == 'z')
	switch double := precision == 'd' || precision == 'z'; {
	case p.Of == 'i':
		return ir.I32
	case double && (own || p.Of == 'c'):
		return ir.C128
	case own || p.Of == 'c':
		return ir.C64
	case double:
		return ir.F64
	}
	return ir.F32
}

// Check checks that op, a custom call of the routine of LAPACK for numbers of the given
// precision, s, d, c or z, has these operands and results, behind as many batch dimensions each,
// and that its matrices are in the order of LAPACK, where it says how they are laid out.
func Check(op *ir.Op, precision byte, operands, results []Part) error {
	if len(op.Operands) != len(operands) || len(op.Results) != len(results) {
		return fmt.Errorf("%s and %s, want %d and %d", ir.Counted(len(op.Operands), "operand"), ir.Counted(len(op.Results), "result"), len(operands), len(results))
	}
	first := op.Operands[0].Type
	batch := first.Rank() - operands[0].Rank
	check := func(what string, vs []*ir.Value, parts []Part, layouts string) error {
		orders, _ := op.Attrs.Get(layouts).(ir.Array)
		for i, v := range vs {
			t, rank := v.Type, parts[i].Rank
			switch want := numbersOf(precision, parts[i]); {
			case !t.IsTensor() || !t.IsStatic() || t.Elem != want:
				return fmt.Errorf("%s %d is %s, want a tensor of known sizes, of %s", what, i, t, want)
			case batch < 0 || t.Rank() != batch+rank || !slices.Equal(t.Shape[:batch], first.Shape[:batch]):
				return fmt.Errorf("%s %d is %s, want %d dimensions behind those of the batch", what, i, t, rank)
			case i >= len(orders) || rank != 2:
				continue
			}
			if l, ok := orders[i].(*ir.Literal); ok && l.Type.NumElements() > 1 && int(l.Int(0)) != t.Rank()-2 {
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

// ShapesBehind are the last sizes of each of vs, as many as parts says.
func ShapesBehind(vs []*ir.Value, parts []Part) [][]int {
	out := make([][]int, len(vs))
	for i, v := range vs {
		out[i] = v.Type.Shape[v.Type.Rank()-parts[i].Rank:]
	}
	return out
}

// Option reads the options of op, which are in its configuration as attributes or
// as text, which read reads.
func Option(op *ir.Op, read func(config, name string) (int, bool)) func(name string) int {
	return func(name string) int {
		for _, key := range []string{"mhlo.backend_config", "backend_config"} {
			switch config := op.Attrs.Get(key).(type) {
			case ir.Dict:
				if ir.Attrs(config).Has(name) {
					return ir.Attrs(config).Int(name)
				}
			case ir.Str:
				if v, ok := read(string(config), name); ok {
					return v
				}
			}
		}
		return 0
	}
}
