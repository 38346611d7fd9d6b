package kernel

import (
	"slices"

	"ppc/ir"
)

// A gemm adds the product of a [m, k] and b [k, n] to c [m, n], all dense and
// row-major. Each element of c adds its k products in order, so that blocking
// changes no bit. It may leave c unfinished when w is stopped.
type gemm func(w *Work, c, a, b Mem, m, n, k int)

var gemms = map[ir.DType]gemm{
	ir.F32: gemmFloat[float32], ir.F64: gemmFloat[float64], ir.C64: gemmPlain[complex64], ir.C128: gemmPlain[complex128],
	ir.I8: gemmPlain[int8], ir.I16: gemmPlain[int16], ir.I32: gemmPlain[int32], ir.I64: gemmPlain[int64],
	ir.UI8: gemmPlain[uint8], ir.UI16: gemmPlain[uint16], ir.UI32: gemmPlain[uint32], ir.UI64: gemmPlain[uint64],
	ir.I1: gemmBool,
}

// An operand is one side of a contraction, brought to the element type in
// which the contraction computes and to the dimensions [batch, rows, columns].
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
	own := strides(t.Shape)
	var shape, from []int
	for _, d := range perm {
		shape, from = append(shape, t.Shape[d]), append(from, own[d])
	}
	if c := NewCopy(as.Size(), shape, strides(shape), from); !c.dense() && !c.empty {
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
	l, r, out := op.Operands[0].Type, op.Operands[1].Type, op.Results[0].Type
	d := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	lf, rf := free(l.Rank(), d.LhsBatch, d.LhsContract), free(r.Rank(), d.RhsBatch, d.RhsContract)
	as := out.Elem
	if _, ok := halves[as]; ok {
		as = ir.F32
	}
	mul := gemms[as]
	if mul == nil {
		return orMissing(nil, op, as)
	}
	left, right := newOperand(l, as, d.LhsBatch, lf, d.LhsContract), newOperand(r, as, d.RhsBatch, d.RhsContract, rf)
	batch, m, n, k := sizes(l, d.LhsBatch), sizes(l, lf), sizes(r, rf), sizes(l, d.LhsContract)
	size := as.Size()
	var narrow Func
	if as != out.Elem {
		narrow = converter(as, out.Elem)
	}
	return func(w *Work, dst, src []Mem) {
		depth := w.depth
		a, b := left.ready(w, src[0]), right.ready(w, src[1])
		c := dst[0]
		if narrow != nil {
			c = w.temp(batch * m * n * size)
		}
		clear(c)
		for i := range batch {
			mul(w, c[i*m*n*size:(i+1)*m*n*size], a[i*m*k*size:(i+1)*m*k*size], b[i*k*n*size:(i+1)*k*n*size], m, n, k)
		}
		if narrow != nil {
			w.apply(narrow, dst[0], c)
		}
		w.depth = depth
	}, nil
}

func gemmPlain[T number](_ *Work, cm, am, bm Mem, m, n, k int) {
	c, a, b := View[T](cm), View[T](am), View[T](bm)
	for i := range m {
		row := c[i*n : (i+1)*n]
		for p, x := range a[i*k : (i+1)*k] {
			for j, y := range b[p*n : (p+1)*n] {
				row[j] += x * y
			}
		}
	}
}

// gemmBool is or of ands, as StableHLO adds and multiplies booleans.
func gemmBool(_ *Work, c, a, b Mem, m, n, k int) {
	for i := range m {
		row := c[i*n : (i+1)*n]
		for p, x := range a[i*k : (i+1)*k] {
			if x == 0 {
				continue
			}
			for j, y := range b[p*n : (p+1)*n] {
				row[j] |= y
			}
		}
	}
}
