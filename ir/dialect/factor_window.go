package dialect

import (
	"ppc/ir"
)

// Sharding rules of ops that move a window over their operand.

// convolutionFactors: groups pass through, as do the batch and the output features,
// as in a matrix product, and the input features are a Reduction. Where windows
// tile the input, its spatial dimensions pass through, and each element of the
// window is a Reduction; elsewhere they are Permutations, since a shard of the
// result needs a halo of the input.
func convolutionFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	l, r, out := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape, op.Results[0].Type.Shape
	d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	groups := func(count, input int) int {
		if count > 1 {
			f.Add(count, ir.PassThrough, []int{input, d.Kernel.Second}, []int{d.Output.Second})
		}
		return count
	}
	batches := groups(op.Int("batch_group_count"), d.Input.First)
	features := groups(op.Int("feature_group_count"), d.Input.Second)
	f.Add(l[d.Input.First]/batches, ir.PassThrough, []int{d.Input.First, -1}, []int{d.Output.First})
	for i, w := range op.Windows() {
		in, kernel, result := d.Input.Spatial[i], d.Kernel.Spatial[i], d.Output.Spatial[i]
		if w.Tiles(l[in]) && !w.Reversed {
			f.Add(out[result], ir.PassThrough, []int{in, -1}, []int{result})
			f.Add(w.Size, ir.Reduction, []int{in, kernel}, []int{-1})
			continue
		}
		f.Add(min(l[in], out[result]), ir.Permutation, []int{in, -1}, []int{result})
		f.Add(w.Size, ir.NeedReplication, []int{-1, kernel}, []int{-1})
	}
	f.Add(r[d.Kernel.First], ir.Reduction, []int{d.Input.Second, d.Kernel.First}, []int{-1})
	f.Add(r[d.Kernel.Second]/(batches*features), ir.PassThrough, []int{-1, d.Kernel.Second}, []int{d.Output.Second})
	return f
}

// selectAndScatterFactors: where each element is a window of its own, the dimension
// passes through operand, source and result; elsewhere it is a Permutation, since a
// shard of the result needs a halo of the operand.
func selectAndScatterFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	in, source := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape
	for d, w := range op.Windows() {
		switch {
		case w.Identity():
			f.Add(in[d], ir.PassThrough, []int{d, d, -1}, []int{d})
		case in[d] == source[d]:
			f.Add(in[d], ir.Permutation, []int{d, d, -1}, []int{d})
		default:
			f.Add(in[d], ir.Permutation, []int{d, -1, -1}, []int{d})
			f.Add(source[d], ir.NeedReplication, []int{-1, d, -1}, []int{-1})
		}
	}
	return f
}
