package kernel

import (
	"fmt"

	"ppc/internal/lapack"
	"ppc/ir"
	"ppc/ir/lapackcall"
)

// CustomCall returns the Func of a custom call, if its target is a routine of LAPACK.
func CustomCall(op *ir.Op) (Func, error) {
	target := op.Str("call_target_name")
	r := lapack.Find(target)
	if r == nil {
		return nil, fmt.Errorf("there is no implementation of the target %q", target)
	}
	if err := lapackcall.Check(op, r.Precision, r.Operands, r.Results); err != nil {
		return nil, err
	}
	option := lapackcall.Option(op, lapack.Option)
	if err := r.Check(option, lapackcall.ShapesBehind(op.Operands, r.Operands), lapackcall.ShapesBehind(op.Results, r.Results)); err != nil {
		return nil, err
	}
	wide := map[bool]ir.DType{false: ir.F64, true: ir.C128} // what is computed with, by what is complex
	batch := ir.Product(op.Operands[0].Type.Shape[:op.Operands[0].Type.Rank()-r.Operands[0].Rank])
	arrays := func(vs []*ir.Value, parts []lapack.Part, ms []Mem, i int) []lapack.Array {
		out := make([]lapack.Array, len(vs))
		for k, v := range vs {
			out[k].Shape = v.Type.Shape[v.Type.Rank()-parts[k].Rank:]
			n := ir.Product(out[k].Shape) * wide[v.Type.Elem.IsComplex()].Size()
			if m := ms[k][i*n : (i+1)*n]; v.Type.Elem.IsComplex() {
				out[k].Complex = View[complex128](m)
			} else {
				out[k].Data = View[float64](m)
			}
		}
		return out
	}
	return func(w *Work, dst, src []Mem) {
		depth := w.depth
		in, out := make([]Mem, len(src)), make([]Mem, len(dst))
		for k, v := range op.Operands {
			in[k] = w.temp(wide[v.Type.Elem.IsComplex()].Size() * v.Type.NumElements())
			w.apply(converter(v.Type.Elem, wide[v.Type.Elem.IsComplex()]), in[k], src[k])
		}
		for k, v := range op.Results {
			out[k] = w.temp(wide[v.Type.Elem.IsComplex()].Size() * v.Type.NumElements())
			clear(out[k])
		}
		for i := range batch {
			r.Run(option, arrays(op.Operands, r.Operands, in, i), arrays(op.Results, r.Results, out, i))
		}
		for k, v := range op.Results {
			w.apply(converter(wide[v.Type.Elem.IsComplex()], v.Type.Elem), dst[k], out[k])
		}
		w.depth = depth
	}, nil
}
