package kernel

import "ppc/ir"

// A windowing is one dimension of a reduce_window.
type windowing struct {
	in, out, size, stride, base, dilation, low int
}

// element is the element of the operand at place k of window i, or -1 where
// that is padding.
func (d *windowing) element(i, k int) int {
	at := i*d.stride + k*d.dilation - d.low
	if at < 0 || at%d.base != 0 || at/d.base >= d.in {
		return -1
	}
	return at / d.base
}

// buildReduceWindow folds the elements of each window in row-major order;
// padding counts as initial values.
func buildReduceWindow(op *ir.Op, sub builder) (Func, error) {
	n := len(op.Operands) / 2
	c, err := newCombiner(op, n, sub)
	if err != nil {
		return nil, err
	}
	t, out := op.Operands[0].Type, op.Results[0].Type
	rank := t.Rank()
	low, _ := op.Padding(rank)
	dims := make([]windowing, rank)
	size := op.Ints("window_dimensions")
	for d := range dims {
		dims[d] = windowing{t.Shape[d], out.Shape[d], size[d], op.IntsOr("window_strides", rank, 1)[d],
			op.IntsOr("base_dilations", rank, 1)[d], op.IntsOr("window_dilations", rank, 1)[d], low[d]}
	}
	own := strides(t.Shape)
	total, inWindow := out.NumElements(), product(size)
	run := func(w *Work, dst, src []Mem) {
		if total == 0 {
			return
		}
		initOnly(n)(w, dst, src)
		fold := c.folder(src[2*n:])
		at, k, zero := make([]int, rank), make([]int, rank), make([]int, rank)
		acc, x := make([]Mem, n), make([]Mem, n)
		for e := range total {
			for range inWindow {
				from := element(dims, own, at, k)
				for i, size := range c.sizes {
					acc[i], x[i] = dst[i][e*size:(e+1)*size], src[n+i]
					if from >= 0 {
						x[i] = src[i][from*size : (from+1)*size]
					}
				}
				fold(w, acc, x)
				advance(k, size, zero)
			}
			advance(at, out.Shape, zero)
		}
	}
	return promoted(op, run, reductionArgs(n)), nil
}

func element(dims []windowing, strides, at, k []int) int {
	sum := 0
	for d := range dims {
		i := dims[d].element(at[d], k[d])
		if i < 0 {
			return -1
		}
		sum += i * strides[d]
	}
	return sum
}
