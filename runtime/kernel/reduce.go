package kernel

import (
	"slices"

	"ppc/ir"
)

// The row folds: element i of the result, which holds the accumulator, takes
// in row i of the operand.

func foldRows[T number](dst, src []Mem, fold func(acc T, row []T) T) {
	d, x := View[T](dst[0]), View[T](src[0])
	n := len(x) / max(len(d), 1)
	for i := range d {
		d[i] = fold(d[i], x[i*n:(i+1)*n])
	}
}

func addRow[T number](_ *Work, dst, src []Mem) {
	foldRows(dst, src, func(acc T, row []T) T {
		for _, v := range row {
			acc += v
		}
		return acc
	})
}

func multiplyRow[T number](_ *Work, dst, src []Mem) {
	foldRows(dst, src, func(acc T, row []T) T {
		for _, v := range row {
			acc *= v
		}
		return acc
	})
}

func maxRow[T ordered](_ *Work, dst, src []Mem) {
	foldRows(dst, src, func(acc T, row []T) T {
		for _, v := range row {
			acc = max(acc, v)
		}
		return acc
	})
}

func minRow[T ordered](_ *Work, dst, src []Mem) {
	foldRows(dst, src, func(acc T, row []T) T {
		for _, v := range row {
			acc = min(acc, v)
		}
		return acc
	})
}

func orRow[T integer](_ *Work, dst, src []Mem) {
	foldRows(dst, src, func(acc T, row []T) T {
		for _, v := range row {
			acc |= v
		}
		return acc
	})
}

func andRow[T integer](_ *Work, dst, src []Mem) {
	foldRows(dst, src, func(acc T, row []T) T {
		for _, v := range row {
			acc &= v
		}
		return acc
	})
}

var rowFolds = map[ir.Kind]byType{
	ir.Add:      {ir.I1: orRow[uint8], ir.F32: addRow[float32], ir.F64: addRow[float64], ir.I32: addRow[int32], ir.I64: addRow[int64], ir.UI32: addRow[uint32]},
	ir.Multiply: {ir.I1: andRow[uint8], ir.F32: multiplyRow[float32], ir.F64: multiplyRow[float64], ir.I32: multiplyRow[int32]},
	ir.Maximum:  {ir.I1: orRow[uint8], ir.F32: maxRow[float32], ir.F64: maxRow[float64], ir.I32: maxRow[int32], ir.I64: maxRow[int64]},
	ir.Minimum:  {ir.I1: andRow[uint8], ir.F32: minRow[float32], ir.F64: minRow[float64], ir.I32: minRow[int32], ir.I64: minRow[int64]},
	ir.Or:       {ir.I1: orRow[uint8], ir.UI32: orRow[uint32]},
	ir.And:      {ir.I1: andRow[uint8], ir.UI32: andRow[uint32]},
}

// A folding is how a reduction walks over its operand: the dimensions that
// stay and those that are folded take turns, each merged with its like.
type folding struct {
	shape []int
	keep  []bool
	acc   []int // strides in the result; 0 where folded
}

func newFolding(shape, dims []int) *folding {
	f := new(folding)
	for d, n := range shape {
		keep := !slices.Contains(dims, d)
		if n == 1 {
			continue
		}
		if k := len(f.shape) - 1; k >= 0 && f.keep[k] == keep {
			f.shape[k] *= n
			continue
		}
		f.shape, f.keep = append(f.shape, n), append(f.keep, keep)
	}
	f.acc = make([]int, len(f.shape))
	n := 1
	for k := len(f.shape) - 1; k >= 0; k-- {
		if f.keep[k] {
			f.acc[k] = n
			n *= f.shape[k]
		}
	}
	return f
}

func buildReduce(op *ir.Op, sub builder) (Func, error) {
	n := len(op.Operands) / 2
	c, err := newCombiner(op, n, sub)
	if err != nil {
		return nil, err
	}
	t := op.Operands[0].Type
	f := newFolding(t.Shape, op.Ints("dimensions"))
	var run Func
	switch {
	case t.NumElements() == 0:
		run = initOnly(n)
	case c.kind != ir.Invalid && !wraps(c.elem):
		run = f.reduce(c.kind, c.elem)
	default:
		run = f.general(c, t.NumElements())
	}
	return promoted(op, run, reductionArgs(n)), nil
}

// initOnly is the reduction of nothing.
func initOnly(n int) Func {
	return func(_ *Work, dst, src []Mem) {
		for i := range n {
			Fill(dst[i], src[n+i])
		}
	}
}

// reduce folds full rows at a time: down the columns where the innermost dimension
// stays, along the rows where it is folded.
func (f *folding) reduce(k ir.Kind, t ir.DType) Func {
	c := carriers[t]
	if c == nil {
		walk := f.walker(binaries[k][t], rowFolds[k][t], t.Size())
		return func(w *Work, dst, src []Mem) {
			Fill(dst[0], src[1])
			walk(w, dst[0], src[0])
		}
	}
	size := c.as.Size()
	walk, times := f.walker(binaries[k][c.as], rowFolds[k][c.as], size), size/t.Size()
	return func(w *Work, dst, src []Mem) {
		acc, x, init := w.temp(times*len(dst[0])), w.temp(times*len(src[0])), w.temp(size)
		c.widen(x, src[0])
		c.widen(init, src[1])
		Fill(acc, init)
		walk(w, acc, x)
		c.narrow(dst[0], acc)
		w.depth -= 3
	}
}

// wraps reports whether what ops of elements of type t leave in their carrier is
// not yet the number that they give: integers, which wrap.
func wraps(t ir.DType) bool { return carriers[t] != nil && t.IsInt() }

// walker returns the function that folds the operand x into acc.
func (f *folding) walker(fold, rows Func, size int) func(w *Work, acc, x Mem) {
	k := len(f.shape)
	if k > 0 && !f.keep[k-1] && rows == nil { // fold the elements of a row one by one
		rows = rowByElement(fold, size)
	}
	return func(w *Work, acc, x Mem) {
		if k == 0 {
			w.Fold(fold, acc, x)
			return
		}
		f.walk(w, 0, fold, rows, size, acc, x)
	}
}

func rowByElement(fold Func, size int) Func {
	return func(w *Work, dst, src []Mem) {
		acc, x := dst[0], src[0]
		n := len(x) / max(len(acc), 1) * size
		for i := 0; i < len(acc); i += size {
			row := x[i/size*n:][:n]
			for j := 0; j < n; j += size {
				w.Fold(fold, acc[i:i+size], row[j:j+size])
			}
		}
	}
}

// Fold is acc = f(acc, x), element by element, for f from [Combiner].
func (w *Work) Fold(f Func, acc, x Mem) {
	w.pair[0], w.pair[1] = acc, x
	f(w, w.pair[:1], w.pair[:])
}

// foldChunk is how many bytes of short rows are copied to contiguous memory to be folded at once.
const foldChunk = 1 << 14

// FoldParts sets acc to what f makes of parts, one after the other. Each is rows of n bytes,
// the first at byte at and the others stride bytes apart. A chunk of acc that stays in the
// cache is finished before the next.
func (w *Work) FoldParts(f Func, acc Mem, parts []Mem, at, stride, n int) {
	for lo := 0; lo < len(acc); {
		row, col := lo/n, lo%n
		bytes, rows := min(n-col, foldChunk), 1
		if bytes == n {
			rows = min(foldChunk/n, len(acc)/n-row)
		}
		for i, part := range parts {
			w.foldRows(f, acc[lo:lo+rows*bytes], part, at+row*stride+col, stride, bytes, i == 0)
		}
		lo += rows * bytes
	}
}

// foldRows is acc = f(acc, x), where x is rows of n bytes each, the first at byte at of
// src and the others stride bytes apart; it is acc = x if first.
func (w *Work) foldRows(f Func, acc, src Mem, at, stride, n int, first bool) {
	rows := len(acc) / n
	switch {
	case first:
		MoveRows(acc, n, src[at:], stride, n, rows)
	case n >= foldChunk/4:
		for r := range rows {
			w.Fold(f, acc[r*n:(r+1)*n], src[at+r*stride:][:n])
		}
	default:
		depth := w.depth
		chunk := w.temp(foldChunk)
		most := foldChunk / n
		for r := 0; r < rows; r += most {
			m := min(most, rows-r)
			MoveRows(chunk, n, src[at+r*stride:], stride, n, m)
			w.Fold(f, acc[r*n:(r+m)*n], chunk[:m*n])
		}
		w.depth = depth
	}
}

// walk folds x, the part of the operand under dimension d, into acc, the part
// of the result under it.
func (f *folding) walk(w *Work, d int, fold, rows Func, size int, acc, x Mem) {
	left := len(f.shape) - d
	part := len(x) / f.shape[d]
	switch {
	case left == 1 && f.keep[d]:
		w.Fold(fold, acc, x)
	case left == 1, left == 2 && f.keep[d]: // one row, or rows
		w.apply(rows, acc, x)
	case f.keep[d]:
		step := f.acc[d] * size
		for i := range f.shape[d] {
			f.walk(w, d+1, fold, rows, size, acc[i*step:(i+1)*step], x[i*part:(i+1)*part])
		}
	case left == 2 && f.shape[d] > columnRows:
		foldColumns(w, fold, acc, x, f.shape[d])
	default:
		for i := range f.shape[d] {
			f.walk(w, d+1, fold, rows, size, acc, x[i*part:(i+1)*part])
		}
	}
}

// columnRows is how many rows are folded element by element before the result is
// taken in to the accumulators: sums of many rows lose less so.
const columnRows = 32

// foldColumns folds so many rows of x into acc, in groups of columnRows.
func foldColumns(w *Work, fold Func, acc, x Mem, rows int) {
	depth, n := w.depth, len(acc)
	group := w.temp(n)
	for lo := 0; lo < rows; lo += columnRows {
		copy(group, x[lo*n:])
		for i := lo + 1; i < min(lo+columnRows, rows); i++ {
			w.Fold(fold, group, x[i*n:(i+1)*n])
		}
		w.Fold(fold, acc, group)
	}
	w.depth = depth
}

// general folds the elements one by one, in row-major order.
func (f *folding) general(c *combiner, total int) Func {
	n := c.n
	return func(w *Work, dst, src []Mem) {
		initOnly(n)(w, dst, src)
		fold := c.folder(src[2*n:])
		idx := make([]int, len(f.shape))
		acc, x := make([]Mem, n), make([]Mem, n)
		at := 0 // element of the result
		for e := range total {
			for i, size := range c.sizes {
				acc[i], x[i] = dst[i][at*size:(at+1)*size], src[i][e*size:(e+1)*size]
			}
			fold(w, acc, x)
			at += advance(idx, f.shape, f.acc)
		}
	}
}

// advance counts idx up in row-major order and returns how far that moves in
// an array of the given strides.
func advance(idx, shape, strides []int) int {
	moved := 0
	for d := len(shape) - 1; d >= 0; d-- {
		idx[d]++
		moved += strides[d]
		if idx[d] < shape[d] {
			return moved
		}
		moved -= idx[d] * strides[d]
		idx[d] = 0
	}
	return moved
}
