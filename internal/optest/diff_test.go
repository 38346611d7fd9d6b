package optest

import (
	"math"
	"testing"

	"ppc/ir"
)

func TestMaxDiff(t *testing.T) {
	s, inf, nan := []int{2}, math.Inf(1), math.NaN()
	floats := func(e ir.DType, shape []int, xs ...float64) *ir.Literal {
		l := &ir.Literal{Type: ir.Tensor(e, shape...), Data: make([]byte, len(xs)*e.Size())}
		for i, x := range xs {
			e.PutFloat(l.Data[i*e.Size():], x)
		}
		return l
	}
	for _, c := range []struct {
		a, b     *ir.Literal
		abs, rel float64
	}{
		{floats(ir.F64, s, 1, 2), floats(ir.F32, s, 1, 4), 2, 0.5},
		{floats(ir.F64, s, inf, nan), floats(ir.F64, s, inf, nan), 0, 0},
		{floats(ir.F64, s, inf, 1), floats(ir.F64, s, -inf, 1), inf, inf},
		{floats(ir.F64, s, nan, 1), floats(ir.F64, s, 0, 1), inf, inf},
		{floats(ir.F64, s, 1, 0), floats(ir.F64, s, 0, 0), 1, inf},
		{floats(ir.F64, nil, 1), floats(ir.F64, []int{1}, 1), inf, inf},
		{ir.Ints64(ir.Tensor(ir.I64, 1), math.MaxInt64), ir.Ints64(ir.Tensor(ir.I64, 1), math.MaxInt64-1), 1, 1.0 / (1 << 63)},
	} {
		if abs, rel := MaxDiff(c.a, c.b); abs != c.abs || rel != c.rel {
			t.Errorf("%s, %s: %g %g, want %g %g", c.a, c.b, abs, rel, c.abs, c.rel)
		}
	}
}
