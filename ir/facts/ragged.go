package facts

import (
	"slices"

	"ppc/ir"
)

// GroupRanges are where each group of a dimension of the given length starts and ends,
// as i32, in the shape of their sizes, whose last dimension is that of the groups. A
// size below 0 counts as 0, and groups end where the dimension does.
func GroupRanges(b *ir.Builder, sizes *ir.Value, length int) (starts, ends *ir.Value) {
	if sizes.Type.Elem.Bits() < 32 { // it may not hold the length
		sizes = b.Convert(sizes, ir.I32)
	}
	scalar := ir.Tensor(sizes.Type.Elem)
	each := b.Emit(ir.Clamp, []*ir.Value{b.Splat(scalar, 0), sizes, b.Splat(scalar, float64(length))}, nil, nil, nil).Result()
	each = b.Convert(each, ir.I32)
	last := each.Type.Rank() - 1
	n := each.Type.Shape[last]
	window, low := slices.Repeat([]int{1}, last+1), make([]int, last+1)
	window[last], low[last] = n, n-1
	attrs := ir.AttrsOf(Named("window_dimensions", ir.Ints(window)), Named("padding", PaddingAttr(low, make([]int, last+1))))
	sums := b.Emit(ir.ReduceWindow, []*ir.Value{each, b.I32(0)}, attrs, []*ir.Block{b.Combiner(ir.Add, ir.I32)}, nil).Result()
	most := b.Splat(sums.Type, float64(length))
	return b.Binary(ir.Minimum, b.Sub(sums, each), most), b.Binary(ir.Minimum, sums, most)
}
