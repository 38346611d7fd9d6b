package kernel

import (
	"ppc/internal/rng"
	"ppc/ir"
)

// buildRngBits generates the bits of one integer type.
func buildRngBits(op *ir.Op) (Func, error) {
	t, algorithm := op.Results[1].Type, op.Word("rng_algorithm")
	n := op.Operands[0].Type.Shape[0]
	if _, _, err := rng.Generate(algorithm, make([]uint64, n), nil, 32); err != nil {
		return nil, err
	}
	if !t.Elem.IsInt() {
		return orMissing(nil, op, t.Elem)
	}
	return func(_ *Work, dst, src []Mem) {
		bits, next, _ := rng.Generate(algorithm, View[uint64](src[0]), t.Shape, t.Elem.Bits())
		copy(View[uint64](dst[0]), next)
		for i, v := range bits {
			t.Elem.PutInt(dst[1][i*t.Elem.Size():], int64(v))
		}
	}, nil
}
