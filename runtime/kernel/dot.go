package kernel

import (
	"slices"

	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

var gemms = map[ir.DType]gemm{
	ir.F32: gemmFloat[float32], ir.F64: gemmFloat[float64], ir.C64: gemmDense(scalar.MultiplyPlain[complex64]), ir.C128: gemmDense(scalar.MultiplyPlain[complex128]),
	ir.I8: gemmDense(scalar.MultiplyPlain[int8]), ir.I16: gemmDense(scalar.MultiplyPlain[int16]), ir.I32: gemmDense(scalar.MultiplyPlain[int32]), ir.I64: gemmDense(scalar.MultiplyPlain[int64]),
	ir.UI8: gemmDense(scalar.MultiplyPlain[uint8]), ir.UI16: gemmDense(scalar.MultiplyPlain[uint16]), ir.UI32: gemmDense(scalar.MultiplyPlain[uint32]), ir.UI64: gemmDense(scalar.MultiplyPlain[uint64]),
	ir.I1: gemmDense(scalar.MultiplyBool),
}

// An operand is one side of a contraction, brought to the element type in
// which the contraction computes and, where order says so, to other dimensions.
type operand struct {
	convert Func  // nil: it has the type
	order   *Copy // nil: it has the order
	n       int   // elements
	in, to  int   // bytes of an element as it comes, and as it is used
}

func newOperand(t *ir.Type, as ir.DType, dims ...[]int) *operand {
	o := &operand{n: t.NumElements(), in: t.Elem.Size(), to: as.Size()}
	if t.Elem != as {
		o.convert = converter(t.Elem, as)
	}
	perm := slices.Concat(dims...)
	own := ir.Strides(t.Shape)
	var shape, from []int
	for _, d := range perm {
		shape, from = append(shape, t.Shape[d]), append(from, own[d])
	}
	if c := NewCopy(as.Size(), shape, ir.Strides(shape), from); !c.dense() && !c.empty {
		o.order = c
	}
	return o
}

// ready returns m as the contraction takes it; it leaves scratch of w in use.
func (o *operand) ready(w *Work, m Mem) Mem {
	if o.convert != nil {
		t := w.temp(o.n * o.to)
		w.apply(o.convert, t, m)
		m = t
	}
	if o.order != nil {
		t := w.temp(o.n * o.to)
		o.order.Run(t, m, 0, 0)
		m = t
	}
	return m
}

// A factor is an operand as a batch of matrices.
type factor struct {
	*operand
	batch, row, col int // strides, in elements
}

// newFactor reads a tensor as [batch, rows, columns], each of them several
// dimensions: as it is stored, where each has one stride, or else brought to
// that order.
func newFactor(t *ir.Type, as ir.DType, batch, rows, cols []int) factor {
	own := ir.Strides(t.Shape)
	b, ok1 := strideOf(t.Shape, own, batch)
	r, ok2 := strideOf(t.Shape, own, rows)
	c, ok3 := strideOf(t.Shape, own, cols)
	if ok1 && ok2 && ok3 {
		inOrder := make([]int, t.Rank())
		for d := range inOrder {
			inOrder[d] = d
		}
		return factor{newOperand(t, as, inOrder), b, r, c}
	}
	m, n := sizes(t, rows), sizes(t, cols)
	return factor{newOperand(t, as, batch, rows, cols), m * n, n, 1}
}

// strideOf is the distance of neighbours along dims seen as one dimension;
// false if there is none. It is 1 where there are no neighbours.
func strideOf(shape, strides, dims []int) (int, bool) {
	stride, next := 1, 0
	for i := len(dims) - 1; i >= 0; i-- {
		switch d := dims[i]; {
		case shape[d] == 1:
		case next == 0:
			stride, next = strides[d], strides[d]*shape[d]
		case strides[d] != next:
			return 0, false
		default:
			next *= shape[d]
		}
	}
	return stride, true
}

// of is matrix i of the batch.
func (f *factor) of(m Mem, i int) matrix { return matrix{m[i*f.batch*f.to:], f.row, f.col} }

// free are the dimensions of a tensor of the given rank that are not in used.
func free(rank int, used ...[]int) []int {
	var out []int
	for d := range rank {
		if !slices.Contains(slices.Concat(used...), d) {
			out = append(out, d)
		}
	}
	return out
}

// sizes multiplies the sizes of the given dimensions.
func sizes(t *ir.Type, dims []int) int {
	n := 1
	for _, d := range dims {
		n *= t.Shape[d]
	}
	return n
}

func buildDot(op *ir.Op) (Func, error) {
	return buildProduct(op, op.Attrs.Get("dot_dimension_numbers").(ir.Dot))
}

// buildProduct is the dot of op's first two operands.
func buildProduct(op *ir.Op, d ir.Dot) (Func, error) {
	l, r, out := op.Operands[0].Type, op.Operands[1].Type, op.Results[0].Type
	lf, rf := free(l.Rank(), d.LhsBatch, d.LhsContract), free(r.Rank(), d.RhsBatch, d.RhsContract)
	as := arithmetic(out.Elem)
	mul := gemms[as]
	if mul == nil {
		return orMissing(nil, op, as)
	}
	left, right := newFactor(l, as, d.LhsBatch, lf, d.LhsContract), newFactor(r, as, d.RhsBatch, d.RhsContract, rf)
	batch, m, n, k := sizes(l, d.LhsBatch), sizes(l, lf), sizes(r, rf), sizes(l, d.LhsContract)
	if m*n*k == 0 { // sums of no terms, if there are any: no matrix has a first element
		zeros := Zeros(out)
		return func(_ *Work, dst, _ []Mem) { copy(dst[0], zeros) }, nil
	}
	size := as.Size()
	return narrowed(as, out, func(w *Work, c Mem, src []Mem) {
		a, b := left.ready(w, src[0]), right.ready(w, src[1])
		for i := range batch {
			mul(w, c[i*m*n*size:(i+1)*m*n*size], left.of(a, i), right.of(b, i), m, n, k)
		}
	}), nil
}

// narrowed computes a result of type out in the element type as. What compute
// leaves of scratch in use is free afterwards.
func narrowed(as ir.DType, out *ir.Type, compute func(w *Work, c Mem, src []Mem)) Func {
	if as == out.Elem {
		return func(w *Work, dst, src []Mem) {
			depth := w.depth
			compute(w, dst[0], src)
			w.depth = depth
		}
	}
	narrow, bytes := converter(as, out.Elem), out.NumElements()*as.Size()
	return func(w *Work, dst, src []Mem) {
		depth := w.depth
		c := w.temp(bytes)
		compute(w, c, src)
		w.apply(narrow, dst[0], c)
		w.depth = depth
	}
}
