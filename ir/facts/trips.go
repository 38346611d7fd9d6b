package facts

import (
	"math"
	"slices"

	"ppc/ir"
)

// A count is the counter of a while: argument arg is start + step*i in iteration i.
type count struct {
	Arg                int
	Start, Step, Trips int
}

// At is the counter in the given iteration.
func (c count) At(b *ir.Builder, iteration *ir.Value, elem ir.DType) *ir.Value {
	v := b.Convert(iteration, elem)
	if c.Step != 1 {
		v = b.Mul(v, b.Splat(v.Type, float64(c.Step)))
	}
	if c.Start != 0 {
		v = b.Add(v, b.Splat(v.Type, float64(c.Start)))
	}
	return v
}

// CountOf finds the counter of op, a while; false if it has none of constant start,
// step and limit.
func CountOf(op *ir.Op) (count, bool) {
	w := whileLoop{op}
	test := op.Regions[0].Terminator().Operands[0].Def
	if test == nil || test.Kind != ir.Compare {
		return count{}, false
	}
	direction := test.Word("comparison_direction")
	for side, v := range test.Operands {
		arg := slices.Index(op.Regions[0].Args, v)
		if arg < 0 || v.Type.Rank() != 0 || !v.Type.Elem.IsInt() {
			continue
		}
		start, ok1 := w.number(op.Operands[arg])
		limit, ok2 := w.number(test.Operands[1-side])
		step, ok3 := w.step(arg)
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		if side == 1 {
			direction = mirrored(direction)
		}
		trips, ok := TripCount(direction, start, limit, step)
		if end := start + step*trips; !ok || trips > math.MaxInt32 || end > largest(v.Type.Elem) || end < smallest(v.Type.Elem) {
			continue
		}
		return count{arg, start, step, trips}, true
	}
	return count{}, false
}

// A whileLoop is a while that may have a counter.
type whileLoop struct{ op *ir.Op }

// step is what each iteration adds to argument arg, a constant.
func (w whileLoop) step(arg int) (int, bool) {
	do := w.op.Regions[1]
	next := do.Terminator().Operands[arg].Def
	if next == nil || next.Kind != ir.Add && next.Kind != ir.Subtract {
		return 0, false
	}
	switch a := do.Args[arg]; {
	case next.Operands[0] == a && next.Kind == ir.Subtract:
		n, ok := w.number(next.Operands[1])
		return -n, ok
	case next.Operands[0] == a:
		return w.number(next.Operands[1])
	case next.Operands[1] == a && next.Kind == ir.Add:
		return w.number(next.Operands[0])
	}
	return 0, false
}

// number is the value of v in every iteration: that of a constant, or of a
// loop-invariant argument that begins with one.
func (w whileLoop) number(v *ir.Value) (int, bool) {
	for _, r := range w.op.Regions {
		if i := slices.Index(r.Args, v); i >= 0 {
			if w.op.Regions[1].Terminator().Operands[i] != w.op.Regions[1].Args[i] {
				return 0, false
			}
			v = w.op.Operands[i]
		}
	}
	l := ir.ConstantOf(v)
	if l == nil || l.Type.Rank() != 0 {
		return 0, false
	}
	n := l.Int(0)
	const bound = 1 << 40 // far from where sums and products of numbers overflow
	return int(n), -bound < n && n < bound
}

// mirrored is the direction d for which limit d x is equivalent to x direction
// limit.
func mirrored(direction string) string {
	switch direction {
	case "LT":
		return "GT"
	case "LE":
		return "GE"
	case "GT":
		return "LT"
	case "GE":
		return "LE"
	}
	return direction
}

// TripCount is the number of iterations of a loop whose counter is start, start +
// step, … and that runs while counter direction limit holds; false if it does not
// end.
func TripCount(direction string, start, limit, step int) (int, bool) {
	if direction == "GT" || direction == "GE" { // the same, downwards
		start, limit, step = -start, -limit, -step
	}
	switch direction {
	case "LE", "GE":
		limit++
	case "NE":
		if step < 0 {
			start, limit, step = -start, -limit, -step
		}
		if step == 0 || limit < start || (limit-start)%step != 0 {
			return 0, limit == start
		}
	case "EQ":
		return 0, false
	}
	switch {
	case start >= limit:
		return 0, true
	case step <= 0:
		return 0, false
	}
	return (limit - start + step - 1) / step, true
}

// smallest is the smallest number that a value of integer type t can hold.
func smallest(t ir.DType) int {
	if t.Class() == ir.Unsigned {
		return 0
	}
	return -largest(t) - 1
}
