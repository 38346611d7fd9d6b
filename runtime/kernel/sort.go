package kernel

import (
	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

// buildSort sorts the lines along a dimension, all operands together, by
// merging: it is stable, ends whatever the comparator says, and asks it n log n
// times.
func buildSort(op *ir.Op, sub builder) (Func, error) {
	l, err := newLambda(op.Regions[0], op.Captures(), sub)
	if err != nil {
		return nil, err
	}
	t, dim := op.Operands[0].Type, op.Int("dimension")
	if dim < 0 {
		dim += t.Rank()
	}
	if t.Rank() == 0 || t.NumElements() == 0 {
		return func(_ *Work, dst, src []Mem) {
			for i := range dst {
				copy(dst[i], src[i])
			}
		}, nil
	}
	s := &sorter{lambda: l, n: t.Shape[dim], stride: ir.Strides(t.Shape)[dim]}
	s.lines = t.NumElements() / s.n
	for _, v := range op.Operands {
		s.sizes = append(s.sizes, v.Type.Elem.Size())
	}
	return s.run, nil
}

type sorter struct {
	lambda *lambda
	n      int // elements of a line
	stride int // between them
	lines  int
	sizes  []int // bytes of an element of each operand
}

func (s *sorter) run(w *Work, dst, src []Mem) {
	c := s.lambda.call(src[len(s.sizes):])
	order, spare := make([]int, s.n), make([]int, s.n)
	for line := range s.lines {
		if w.Stopped() {
			return
		}
		first := line/s.stride*s.stride*s.n + line%s.stride
		at := func(i int) int { return first + i*s.stride }
		less := func(a, b int) bool {
			for i, size := range s.sizes {
				copy(c.in[2*i], src[i][at(a)*size:][:size])
				copy(c.in[2*i+1], src[i][at(b)*size:][:size])
			}
			c.run(w)
			return c.out[0][0] != 0
		}
		for i := range order {
			order[i] = i
		}
		scalar.MergeSort(order, spare, less)
		for i, size := range s.sizes {
			for k, from := range order {
				copy(dst[i][at(k)*size:][:size], src[i][at(from)*size:][:size])
			}
		}
	}
}
