package kernel

import (
	"fmt"
	"math/cmplx"
	"slices"

	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

// wide makes a Func of one that works on complex numbers in float64, which get
// the operands and the room for the result: the elements of types are converted
// to such and back. Linear algebra is sums of many terms that cancel.
func wide(op *ir.Op, f func(w *Work, dst []complex128, src [][]complex128)) (Func, error) {
	var read []func(dst []complex128, m Mem)
	for _, v := range op.Operands {
		r := readerOf(v.Type.Elem)
		if r == nil {
			return nil, fmt.Errorf("%s has no kernel for elements of type %s", op.Name(), v.Type.Elem)
		}
		read = append(read, r)
	}
	elem := op.Results[0].Type.Elem
	write := writerOf(elem)
	if write == nil {
		return nil, fmt.Errorf("%s has no kernel for elements of type %s", op.Name(), elem)
	}
	n := op.Results[0].Type.NumElements()
	return func(w *Work, dst, src []Mem) {
		depth := w.depth
		in := make([][]complex128, len(src))
		for i, m := range src {
			in[i] = View[complex128](w.temp(16 * op.Operands[i].Type.NumElements()))
			read[i](in[i], m)
		}
		out := View[complex128](w.temp(16 * n))
		f(w, out, in)
		write(dst[0], out)
		w.depth = depth
	}, nil
}

func readReal[T float](dst []complex128, m Mem) {
	for i, x := range View[T](m) {
		dst[i] = complex(float64(x), 0)
	}
}

func readComplex[T complexes](dst []complex128, m Mem) {
	for i, x := range View[T](m) {
		dst[i] = complex128(x)
	}
}

func writeReal[T float](m Mem, src []complex128) {
	d := View[T](m)
	for i := range d {
		d[i] = T(real(src[i]))
	}
}

func writeComplex[T complexes](m Mem, src []complex128) {
	d := View[T](m)
	for i := range d {
		d[i] = T(src[i])
	}
}

// readerOf and writerOf are nil for elements that are no numbers with a fraction.
func readerOf(t ir.DType) func([]complex128, Mem) {
	if carriers[t] != nil && t.IsFloat() {
		return func(dst []complex128, m Mem) {
			for i := range dst {
				dst[i] = complex(t.GetFloat(m[i*t.Size():]), 0)
			}
		}
	}
	return readers[t]
}

func writerOf(t ir.DType) func(Mem, []complex128) {
	if carriers[t] != nil && t.IsFloat() {
		return func(m Mem, src []complex128) {
			for i, x := range src {
				t.PutFloat(m[i*t.Size():], real(x))
			}
		}
	}
	return writers[t]
}

var (
	readers = [ir.Index + 1]func([]complex128, Mem){ir.F32: readReal[float32], ir.F64: readReal[float64], ir.C64: readComplex[complex64], ir.C128: readComplex[complex128]}
	writers = [ir.Index + 1]func(Mem, []complex128){ir.F32: writeReal[float32], ir.F64: writeReal[float64], ir.C64: writeComplex[complex64], ir.C128: writeComplex[complex128]}
)

// A square is n by n numbers in a slice.
type square struct {
	at          []complex128
	row, column int // distance of neighbours in a column, and in a row
	conjugate   bool
}

func (m square) get(i, j int) complex128 {
	v := m.at[i*m.row+j*m.column]
	if m.conjugate {
		return cmplx.Conj(v)
	}
	return v
}

// buildCholesky makes the factor column by column: each column is what is left of
// the operand's after the columns before have been taken off.
func buildCholesky(op *ir.Op) (Func, error) {
	t := op.Results[0].Type
	n, lower := t.Shape[t.Rank()-1], op.Bool("lower")
	return wide(op, func(_ *Work, dst []complex128, src [][]complex128) {
		copy(dst, src[0])
		for at := 0; at < len(dst); at += n * n {
			m := dst[at : at+n*n]
			if !lower {
				scalar.Adjoint(m, n)
			}
			if !scalar.Cholesky(m, n) {
				for i := range m {
					m[i] = cmplx.NaN()
				}
			}
			if !lower {
				scalar.Adjoint(m, n)
			}
		}
	})
}

// buildTriangularSolve takes, of each unknown once it is known, its share off
// those that follow.
func buildTriangularSolve(op *ir.Op) (Func, error) {
	t := op.Results[0].Type
	rank := t.Rank()
	n, rows, columns := op.Operands[0].Type.Shape[rank-1], t.Shape[rank-2], t.Shape[rank-1]
	left, unit, lower := op.Bool("left_side"), op.Bool("unit_diagonal"), op.Bool("lower")
	word := op.Word("transpose_a")
	a := square{row: n, column: 1, conjugate: word == "ADJOINT"}
	if (word != "NO_TRANSPOSE") == left {
		a.row, a.column, lower = 1, n, !lower
	}
	next, other, others := columns, 1, columns // between unknowns, between right sides, and how many of these
	if !left {
		next, other, others = 1, columns, rows
	}
	if t.NumElements() == 0 {
		return func(*Work, []Mem, []Mem) {}, nil
	}
	return wide(op, func(_ *Work, dst []complex128, src [][]complex128) {
		copy(dst, src[1])
		for batch := range len(dst) / (rows * columns) {
			x := dst[batch*rows*columns:]
			a.at = src[0][batch*n*n:]
			for s := range others {
				for step := range n {
					j, from, to := step, step+1, n
					if !lower {
						j = n - 1 - step
						from, to = 0, j
					}
					at := s*other + j*next
					if !unit {
						x[at] /= a.get(j, j)
					}
					for i := from; i < to; i++ {
						x[s*other+i*next] -= a.get(i, j) * x[at]
					}
				}
			}
		}
	})
}

// buildFFT transforms along one dimension after the other.
func buildFFT(op *ir.Op) (Func, error) {
	in, out := op.Operands[0].Type, op.Results[0].Type
	kind, length := op.Word("fft_type"), op.Ints("fft_length")
	first := in.Rank() - len(length)
	shape := slices.Concat(out.Shape[:first], length)
	if kind != "IRFFT" && !slices.Equal(shape, in.Shape) {
		return nil, fmt.Errorf("fft_length %v for %s: want the sizes of its last dimensions", length, in)
	}
	f := scalar.NewFouriers(shape, first, kind == "IFFT" || kind == "IRFFT")
	last := length[len(length)-1]
	return wide(op, func(w *Work, dst []complex128, src [][]complex128) {
		depth := w.depth
		v := View[complex128](w.temp(16 * ir.Product(shape)))
		if kind == "IRFFT" {
			f.Mirror(v, src[0], in.Shape)
		} else {
			copy(v, src[0])
		}
		f.Run(v, View[complex128](w.temp(32*slices.Max(length))))
		w.depth = depth
		if kind != "RFFT" {
			copy(dst, v)
			return
		}
		for at, to := 0, 0; at < len(v); at += last {
			to += copy(dst[to:], v[at:at+last/2+1])
		}
	})
}
