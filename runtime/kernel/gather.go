package kernel

import (
	"slices"

	"ppc/ir"
)

// A windows is what gather and scatter share: for every index vector, the
// place of a window in the operand and in the array of windows.
type windows struct {
	read  func(m Mem, i int) int
	batch []int // shape of the index vectors' array
	index []int // strides of an index vector, by batch dimension
	outer []int // strides in the array of windows, by batch dimension
	at    []int // strides in the operand, by batch dimension: of batching dimensions

	vector int   // stride between the numbers of an index vector
	dims   []int // operand dimension of each number
	shape  []int // of the operand
	own    []int // its strides
}

// newWindows lays out index vectors idx, which point into the dimensions dims
// of operand t. outer are the dimensions of the array of windows, of type u,
// that count them; batching pairs dimensions of the operand with those of idx.
func newWindows(t, idx, u *ir.Type, dims []int, vectorDim int, outer, batching, idxBatching []int) *windows {
	g := &windows{read: indices[idx.Elem], dims: dims, shape: t.Shape, own: ir.Strides(t.Shape)}
	st, ust := ir.Strides(idx.Shape), ir.Strides(u.Shape)
	for d, n := range idx.Shape {
		if d == vectorDim {
			g.vector = st[d]
			continue
		}
		at := 0
		if k := slices.Index(idxBatching, d); k >= 0 {
			at = g.own[batching[k]]
		}
		g.batch, g.index, g.at = append(g.batch, n), append(g.index, st[d]), append(g.at, at)
		g.outer = append(g.outer, ust[outer[len(g.outer)]])
	}
	return g
}

// each calls visit for every index vector with the element of idx where it
// begins, that of the array of windows and, of batching dimensions, of the operand.
func (g *windows) each(visit func(index, window, at int)) {
	pos := make([]int, len(g.batch))
	index, window, at := 0, 0, 0
	for range ir.Product(g.batch) {
		visit(index, window, at)
		for d := len(pos) - 1; d >= 0; d-- {
			pos[d]++
			index, window, at = index+g.index[d], window+g.outer[d], at+g.at[d]
			if pos[d] < g.batch[d] {
				break
			}
			n := pos[d]
			index, window, at = index-n*g.index[d], window-n*g.outer[d], at-n*g.at[d]
			pos[d] = 0
		}
	}
}

func buildGather(op *ir.Op) (Func, error) {
	t, idx, out := op.Operands[0].Type, op.Operands[1].Type, op.Results[0].Type
	dn := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	sizes := op.Ints("slice_sizes")
	g := newWindows(t, idx, out, dn.StartIndexMap, dn.IndexVectorDim, free(out.Rank(), dn.OffsetDims), dn.OperandBatchingDims, dn.StartIndicesBatchingDims)
	to := make([]int, t.Rank())
	for k, d := range free(t.Rank(), dn.CollapsedSliceDims, dn.OperandBatchingDims) {
		to[d] = ir.Strides(out.Shape)[dn.OffsetDims[k]]
	}
	c := NewCopy(t.Elem.Size(), sizes, to, g.own)
	empty := out.NumElements() == 0
	return func(_ *Work, dst, src []Mem) {
		if empty {
			return
		}
		g.each(func(index, window, at int) {
			for k, d := range g.dims {
				at += min(max(g.read(src[1], index+k*g.vector), 0), g.shape[d]-sizes[d]) * g.own[d]
			}
			c.Run(dst[0], src[0], window, at)
		})
	}, nil
}

// A scatter folds windows of updates into places of the inputs. Elements of a
// window outside of the input are dropped; as each dimension is in or out by
// itself, the rest is a box.
type scatter struct {
	*windows
	c     *combiner
	n     int
	box   []int           // shape of a window, by dimension of the operand
	from  []int           // strides of the updates, by dimension of the operand
	sizes []int           // bytes of an element of each input
	full  []scatterCopies // by input, of windows that are all within
}

// scatterCopies move a box: of the input and of the updates together, and back.
type scatterCopies struct {
	size              int // bytes of an element
	n                 int // elements of the box
	get, update, back *Copy
}

func (s *scatter) copies(box []int) []scatterCopies {
	out := make([]scatterCopies, len(s.sizes))
	packed := ir.Strides(box)
	for i, size := range s.sizes {
		out[i] = scatterCopies{size, ir.Product(box), NewCopy(size, box, packed, s.own), NewCopy(size, box, packed, s.from), NewCopy(size, box, s.own, packed)}
	}
	return out
}

// packed is the box of x at an offset, in elements: itself where it is contiguous in x.
func (c *scatterCopies) packed(w *Work, copy *Copy, x Mem, at int) Mem {
	if copy.dense() {
		return x[at*c.size : (at+c.n)*c.size]
	}
	m := w.temp(c.n * c.size)
	copy.Run(m, x, 0, at)
	return m
}

func buildScatter(op *ir.Op, sub builder) (Func, error) {
	n := (len(op.Operands) - 1) / 2
	c, err := newCombiner(op, n, sub)
	if err != nil {
		return nil, err
	}
	t, idx, upd := op.Operands[0].Type, op.Operands[n].Type, op.Operands[n+1].Type
	dn := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	s := &scatter{c: c, n: n, box: make([]int, t.Rank()), from: make([]int, t.Rank()), sizes: c.sizes}
	s.windows = newWindows(t, idx, upd, dn.ScatterDimsToOperandDims, dn.IndexVectorDim, free(upd.Rank(), dn.UpdateWindowDims), dn.InputBatchingDims, dn.ScatterIndicesBatchingDims)
	for d := range s.box {
		s.box[d] = 1
	}
	window := slices.Sorted(slices.Values(dn.UpdateWindowDims))
	for k, d := range free(t.Rank(), dn.InsertedWindowDims, dn.InputBatchingDims) {
		s.box[d], s.from[d] = upd.Shape[window[k]], ir.Strides(upd.Shape)[window[k]]
	}
	s.full = s.copies(s.box)
	empty := upd.NumElements() == 0 || t.NumElements() == 0 // no place is within
	at := make([]int, 2*n+1)                                // the inputs accumulate; the indices stay
	for i := range n {
		at[i], at[n+1+i] = i, n+i
	}
	at[n] = -1
	run := func(w *Work, dst, src []Mem) {
		for i := range n {
			if !Same(dst[i], src[i]) {
				copy(dst[i], src[i])
			}
		}
		if !empty {
			s.run(w, dst, src)
		}
	}
	return promoted(op, run, at), nil
}

func (s *scatter) run(w *Work, dst, src []Mem) {
	fold := s.c.folder(src[2*s.n+1:])
	acc, x := make([]Mem, s.n), make([]Mem, s.n)
	box := make([]int, len(s.box))
	s.each(func(index, window, at int) {
		copy(box, s.box)
		copies := s.full
		for k, d := range s.dims {
			lo := s.read(src[s.n], index+k*s.vector)
			if lo < -s.box[d] || lo > s.shape[d] {
				return // and no sum below overflows
			}
			hi := min(lo+s.box[d], s.shape[d])
			if lo < 0 {
				window -= lo * s.from[d]
				lo = 0
			}
			if hi <= lo {
				return
			}
			if hi-lo < s.box[d] {
				box[d], copies = hi-lo, nil
			}
			at += lo * s.own[d]
		}
		if copies == nil {
			copies = s.copies(box)
		}
		depth := w.depth
		for i := range copies {
			c := &copies[i]
			acc[i], x[i] = c.packed(w, c.get, dst[i], at), c.packed(w, c.update, src[s.n+1+i], window)
		}
		fold(w, acc, x)
		for i := range copies {
			if c := &copies[i]; !c.get.dense() {
				c.back.Run(dst[i], acc[i], at, 0)
			}
		}
		w.depth = depth
	})
}
