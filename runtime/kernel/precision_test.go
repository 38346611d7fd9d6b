package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"ppc/ir"
)

// TestReducePrecision holds the rounding of bits to that of numbers, for every format.
func TestReducePrecision(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, elem := range []ir.DType{ir.F16, ir.BF16, ir.F32, ir.F64} {
		const n = 400
		typ := ir.Tensor(elem, n)
		x, got, want, size := NewMem(typ.Bytes()), NewMem(typ.Bytes()), NewMem(8), elem.Size()
		for i := range n {
			v := math.Float64frombits(r.Uint64())
			switch {
			case i < 16: // zeros, infinities, NaN, ties and the smallest numbers
				v = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1.5, 3, -1.25, 0x1p-24, 0x3p-24, 0x1p-133, 0x1p-149, 5e-324, 65504, math.MaxFloat32, math.MaxFloat64}[i]
			case i%2 == 0:
				v = math.Ldexp(r.NormFloat64(), r.IntN(60)-30)
			}
			elem.PutFloat(x[i*size:], v)
		}
		for e := 1; e <= 11; e++ {
			for _, m := range []int{0, 1, 2, 3, 7, 9, 10, 23, 40, 52} {
				f := ir.NewFunc("f")
				arg := f.NewArg(f.Body, typ, "")
				op := ir.NewBuilder(f).Emit(ir.ReducePrecision, []*ir.Value{arg}, ir.AttrsOf(ir.NamedAttr{Name: "exponent_bits", Attr: ir.I64Attr(e)}, ir.NamedAttr{Name: "mantissa_bits", Attr: ir.I64Attr(m)}), nil, nil)
				run, err := Build(op)
				if err != nil {
					t.Fatal(err)
				}
				run(new(Work), []Mem{got}, []Mem{x})
				for i := range n {
					v := elem.GetFloat(x[i*size:])
					elem.PutFloat(want, elem.ReducedPrecision(v, e, m))
					if a, b := elem.GetFloat(got[i*size:]), elem.GetFloat(want); math.Float64bits(a) != math.Float64bits(b) && (a == a || b == b) {
						t.Fatalf("%s to e%dm%d: %g (%x) is %g, want %g", elem, e, m, v, math.Float64bits(v), a, b)
					}
				}
			}
		}
	}
}
