package kernel

import (
	"slices"

	"ppc/ir"
)

// A Copy moves a box of elements from one array to another. Element (i0, i1, …) of
// the box is at the sum of i*stride in each; strides may be zero or negative.
type Copy struct {
	elem  int // bytes of an element
	run   int // elements that are contiguous in both arrays, copied as one
	empty bool
	shape []int // of runs
	dst   []int // strides, in elements
	src   []int
	rows  func(c *Copy, dst, src Mem, d, s int) // moves a box of at most two dimensions
}

// NewCopy returns a Copy of elements of elem bytes. Dimensions that are contiguous
// in both arrays are merged, and an innermost one that is dense in both becomes the
// run.
func NewCopy(elem int, shape, dst, src []int) *Copy {
	c := &Copy{elem: elem, run: 1, empty: slices.Contains(shape, 0)}
	for i, n := range shape {
		if n == 1 {
			continue
		}
		k := len(c.shape) - 1
		if k >= 0 && c.dst[k] == dst[i]*n && c.src[k] == src[i]*n {
			c.shape[k], c.dst[k], c.src[k] = c.shape[k]*n, dst[i], src[i]
			continue
		}
		c.shape, c.dst, c.src = append(c.shape, n), append(c.dst, dst[i]), append(c.src, src[i])
	}
	if k := len(c.shape) - 1; k >= 0 && c.dst[k] == 1 && c.src[k] == 1 {
		c.run = c.shape[k]
		c.shape, c.dst, c.src = c.shape[:k], c.dst[:k], c.src[:k]
	}
	c.rows = moveRuns
	if c.run == 1 && len(c.shape) > 0 {
		c.rows = movers[elem]
	}
	return c
}

// dense reports whether the box is one run.
func (c *Copy) dense() bool { return len(c.shape) == 0 }

// Run copies the box whose first element is element d of dst and s of src.
func (c *Copy) Run(dst, src Mem, d, s int) {
	if !c.empty {
		c.outer(0, dst, src, d, s)
	}
}

func (c *Copy) outer(dim int, dst, src Mem, d, s int) {
	if len(c.shape)-dim <= 2 {
		c.rows(c, dst, src, d, s)
		return
	}
	for range c.shape[dim] {
		c.outer(dim+1, dst, src, d, s)
		d += c.dst[dim]
		s += c.src[dim]
	}
}

// inner are the sizes and strides of the last two dimensions; sizes are 1
// where there are fewer.
func (c *Copy) inner() (n0, d0, s0, n1, d1, s1 int) {
	n0, n1 = 1, 1
	k := len(c.shape)
	if k > 0 {
		n1, d1, s1 = c.shape[k-1], c.dst[k-1], c.src[k-1]
	}
	if k > 1 {
		n0, d0, s0 = c.shape[k-2], c.dst[k-2], c.src[k-2]
	}
	return
}

func moveRuns(c *Copy, dst, src Mem, d, s int) {
	n0, d0, s0, n1, d1, s1 := c.inner()
	bytes := c.run * c.elem
	if d0 < 0 || s0 < 0 || d1 < 0 || s1 < 0 {
		moveBackward(c, dst, src, d, s)
		return
	}
	moveBoxes(dst[d*c.elem:], d1*c.elem, d0*c.elem, src[s*c.elem:], s1*c.elem, s0*c.elem, bytes, n1, n0)
}

// moveBackward is moveRuns where a stride is negative.
func moveBackward(c *Copy, dst, src Mem, d, s int) {
	n0, d0, s0, n1, d1, s1 := c.inner()
	bytes := c.run * c.elem
	for range n0 {
		dd, ss := d*c.elem, s*c.elem
		for range n1 {
			copy(dst[dd:dd+bytes], src[ss:ss+bytes])
			dd += d1 * c.elem
			ss += s1 * c.elem
		}
		d += d0
		s += s0
	}
}

var movers = map[int]func(c *Copy, dst, src Mem, d, s int){
	1: moveElems[uint8], 2: moveElems[uint16], 4: moveElems[uint32], 8: moveElems[uint64], 16: moveElems[[2]uint64],
}

// block is the side of the squares in which a transposition is done, so that
// the lines of both arrays stay in the cache.
const block = 32

func moveElems[T any](c *Copy, dstMem, srcMem Mem, d, s int) {
	dst, src := View[T](dstMem), View[T](srcMem)
	n0, d0, s0, n1, d1, s1 := c.inner()
	switch {
	case turns(c.elem, d1, s0, d0, s1, n0, n1):
		transposeBox(c.elem, dstMem, srcMem, d, s, n0, d0, n1, s1)
	case turns(c.elem, d0, s1, d1, s0, n0, n1):
		transposeBox(c.elem, dstMem, srcMem, d, s, n1, d1, n0, s0)
	case s1 == 0 && d1 == 1:
		for range n0 {
			fill(dst[d:d+n1], src[s])
			d += d0
			s += s0
		}
	case n0 > block && n1 > block && s0 < s1:
		for i := 0; i < n0; i += block {
			for j := 0; j < n1; j += block {
				moveBox(dst, src, d+i*d0+j*d1, s+i*s0+j*s1, min(block, n0-i), d0, s0, min(block, n1-j), d1, s1)
			}
		}
	default:
		moveBox(dst, src, d, s, n0, d0, s0, n1, d1, s1)
	}
}

// turns reports whether a box of n0 by n1 elements is a transposition for the vectors of this machine:
// one of its dimensions is contiguous in dst and the other in src, by what are their strides.
func turns(elem, inDst, inSrc, dstRow, srcRow, n0, n1 int) bool {
	return fastest.vector > 0 && (elem == 4 || elem == 8) && inDst == 1 && inSrc == 1 && dstRow > 0 && srcRow > 0 && min(n0, n1) >= 32/elem
}

// transposeBox sets rows rows of dst, dstRow elements apart, to as many columns of src, whose cols rows
// are srcRow apart.
func transposeBox(elem int, dst, src Mem, d, s, rows, dstRow, cols, srcRow int) {
	dst, src = dst[d*elem:(d+(rows-1)*dstRow+cols)*elem], src[s*elem:(s+(cols-1)*srcRow+rows)*elem]
	side := 32 / elem
	for i := 0; i < rows-side+1; i += 2 * block {
		n := min(2*block, rows-i) / side
		for j := 0; j < cols-side+1; j += side {
			transposeBlocks(elem, &dst[(i*dstRow+j)*elem], dstRow*elem, &src[(i+j*srcRow)*elem], srcRow*elem, n)
		}
	}
	i, j := rows/side*side, cols/side*side
	rest := func(i, j, rows, cols int) {
		at, from := i*dstRow+j, i+j*srcRow
		if elem == 4 {
			moveBox(View[uint32](dst), View[uint32](src), at, from, rows, dstRow, 1, cols, 1, srcRow)
		} else {
			moveBox(View[uint64](dst), View[uint64](src), at, from, rows, dstRow, 1, cols, 1, srcRow)
		}
	}
	rest(0, j, rows, cols-j)
	rest(i, 0, rows-i, j)
}

func moveBox[T any](dst, src []T, d, s, n0, d0, s0, n1, d1, s1 int) {
	for range n0 {
		dd, ss := d, s
		for range n1 {
			dst[dd] = src[ss]
			dd += d1
			ss += s1
		}
		d += d0
		s += s0
	}
}

// fill sets every element of x to v: the first ones one by one, and the others by
// copies of what is there.
func fill[T any](x []T, v T) {
	const few = 16
	for i := range x[:min(few, len(x))] {
		x[i] = v
	}
	for n := few; n < len(x); n *= 2 {
		copy(x[n:], x[:n])
	}
}

// fills are fillMem by the size of an element.
var fills = [17]func(dst, v Mem){1: fillMem[uint8], 2: fillMem[uint16], 4: fillMem[uint32], 8: fillMem[uint64], 16: fillMem[[2]uint64]}

func fillMem[T any](dst, v Mem) { fill(View[T](dst), View[T](v)[0]) }

// Fill sets every element of dst to the one element that v holds.
func Fill(dst, v Mem) { fillOn(fastest, dst, v) }

// An Exchange is the copy of one slice in an all_to_all: each member of a group
// splits its operand along one dimension, and concatenates the slices that it
// receives along another.
type Exchange struct {
	c        *Copy
	from, to int // elements between parts, in the operand and in the result
}

// NewExchange returns the move for n members, whose operands have type in and
// whose results have type out.
func NewExchange(in, out *ir.Type, splitDim, concatDim, n int) *Exchange {
	part := slices.Clone(in.Shape)
	part[splitDim] /= n
	from, to := ir.Strides(in.Shape), ir.Strides(out.Shape)
	return &Exchange{NewCopy(in.Elem.Size(), part, to, from), part[splitDim] * from[splitDim], part[concatDim] * to[concatDim]}
}

// Run moves the part that the member at place dstPlace gets from the one at
// place srcPlace.
func (e *Exchange) Run(dst, src Mem, srcPlace, dstPlace int) {
	e.c.Run(dst, src, srcPlace*e.to, dstPlace*e.from)
}
