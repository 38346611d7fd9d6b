package eval

import (
	"slices"

	"ppc/ir"
)

// raggedDot: the ragged dimension of the left side falls into groups of the given
// sizes, one after the other. Where it is a free one, each group is multiplied by a
// right side of its own, and what is in no group is zero; where it is contracted,
// each group makes a result of its own; where it is batched, the groups do not matter.
// A size below 0 counts as 0, and groups end where the dimension does.
func raggedDot(e *exec) (*tensor, error) {
	d := e.op.Attrs.Get("ragged_dot_dimension_numbers").(ir.RaggedDims)
	if out := e.result(0); d.Mode() == ir.RaggedBatch {
		return e.dotOf(d.Dot, e.in[0], e.in[1])
	} else if ir.Product(out.shape) == 0 || ir.Product(e.in[0].shape) == 0 || ir.Product(e.in[2].shape) == 0 {
		return out, nil
	}
	return e.ragged(d, d.Outer(), e.in[0], e.in[1], e.in[2])
}

// dotOf is the dot of x and y in the element type of the result.
func (e *exec) dotOf(d ir.Dot, x, y *tensor) (*tensor, error) {
	t := ir.Tensor(e.p.elem(e.op.Results[0].Type.Elem), dotShapeOf(d, x.shape, y.shape)...)
	return e.do(ir.DotGeneral, t, ir.AttrsOf(ir.NamedAttr{Name: "dot_dimension_numbers", Attr: d}), x, y)
}

// ragged takes one index after the other of each of the outer dimensions of the left
// side that are not contracted.
func (e *exec) ragged(d ir.RaggedDims, outer []int, l, r, sizes *tensor) (*tensor, error) {
	if len(outer) == 0 || slices.Contains(d.LhsContract, outer[0]) {
		if d.Mode() == ir.RaggedContract {
			return e.raggedContract(d, l, r, sizes)
		}
		return e.raggedFree(d, l, r, sizes)
	}
	k := outer[0]
	var parts []*tensor
	for i := range l.shape[k] {
		y, n := r, sizes
		if right := d.Right(k); right >= 0 {
			y = r.part(right, i, 1)
		}
		if len(sizes.shape) > 1 {
			n = sizes.part(0, i, 1).reshaped(slices.Clone(sizes.shape[1:]))
		}
		part, err := e.ragged(d, outer[1:], l.part(k, i, 1), y, n)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return concat(resultDim(d, k, len(l.shape)), parts), nil
}

// groupEnds are where each group ends, within a dimension of the given length: a
// size below 0 counts as 0, and what is beyond the end of the dimension in no group.
func groupEnds(ns []int, length int) []int {
	ns, at := slices.Clone(ns), 0
	for g, n := range ns {
		at += min(max(n, 0), length-at)
		ns[g] = at
	}
	return ns
}

// raggedContract brings the left side to [b, m, k] and the right one to [b, k, n], with
// the outer contracted dimensions and the ragged one as one: a group is a part of it for
// each outer index.
func (e *exec) raggedContract(d ir.RaggedDims, l, r, sizes *tensor) (*tensor, error) {
	nb, at := len(d.LhsBatch), d.Contracted()
	freeL, freeR := d.FreeL(len(l.shape)), d.FreeR(len(r.shape))
	length := l.shape[d.Ragged()]
	joined := func(x *tensor, dim int, perm []int) *tensor {
		x = x.permuted(perm)
		return x.reshaped(slices.Replace(slices.Clone(x.shape), dim, dim+at+1, ir.Product(x.shape[dim:dim+at+1])))
	}
	left, right := nb+len(freeL), nb
	x := joined(l, left, slices.Concat(d.LhsBatch, freeL, d.LhsContract))
	y := joined(r, right, slices.Concat(d.RhsBatch, d.RhsContract, freeR))
	var dims ir.Dot
	for i := range nb {
		dims.LhsBatch, dims.RhsBatch = append(dims.LhsBatch, i), append(dims.RhsBatch, i)
	}
	for i := range len(d.LhsContract) - at {
		dims.LhsContract, dims.RhsContract = append(dims.LhsContract, left+i), append(dims.RhsContract, right+i)
	}
	ns := intsOf(sizes)
	groups := sizes.shape[len(sizes.shape)-1]
	var out []*tensor
	for g := range groups {
		var xs, ys []*tensor
		for o := range x.shape[left] / length {
			ends := groupEnds(ns[o*groups%len(ns):][:groups], length)
			start := append([]int{0}, ends...)[g]
			xs = append(xs, x.part(left, o*length+start, ends[g]-start))
			ys = append(ys, y.part(right, o*length+start, ends[g]-start))
		}
		part, err := e.dotOf(dims, concat(left, xs), concat(right, ys))
		if err != nil {
			return nil, err
		}
		out = append(out, part.reshaped(slices.Insert(slices.Clone(part.shape), 0, 1)))
	}
	return concat(0, out), nil
}

func (e *exec) raggedFree(d ir.RaggedDims, l, r, sizes *tensor) (*tensor, error) {
	var parts []*tensor
	at, length := 0, l.shape[d.Ragged()]
	for g, end := range groupEnds(intsOf(sizes), length) {
		y, dims := ofGroup(r, d, g)
		part, err := e.dotOf(dims, l.part(d.Ragged(), at, end-at), y)
		if err != nil {
			return nil, err
		}
		parts, at = append(parts, part), end
	}
	dim := resultDim(d, d.Ragged(), len(l.shape))
	shape := slices.Clone(parts[0].shape)
	shape[dim] = length - at
	return concat(dim, append(parts, parts[0].like(shape))), nil
}

// resultDim is the dimension of the result that is dimension k of the left side, of
// the given rank, which is not contracted.
func resultDim(d ir.RaggedDims, k, rank int) int {
	dim := slices.Index(slices.Concat(d.LhsBatch, d.FreeL(rank)), k)
	if d.Mode() == ir.RaggedContract {
		dim++
	}
	return dim
}

// ofGroup is the right side of group g, without the dimension of groups, and the
// dimension numbers for it.
func ofGroup(r *tensor, d ir.RaggedDims, g int) (*tensor, ir.Dot) {
	dim := d.RhsGroup[0]
	without := func(ds []int) []int {
		out := slices.Clone(ds)
		for i, k := range out {
			if k > dim {
				out[i]--
			}
		}
		return out
	}
	dims := d.Dot
	dims.RhsBatch, dims.RhsContract = without(dims.RhsBatch), without(dims.RhsContract)
	return r.part(dim, g, 1).reshaped(slices.Delete(slices.Clone(r.shape), dim, dim+1)), dims
}

// dotShapeOf is the shape of a dot: batch, left and right dimensions.
func dotShapeOf(d ir.Dot, l, r []int) []int {
	return slices.Concat(pick(l, d.LhsBatch), pick(l, others(len(l), d.LhsBatch, d.LhsContract)), pick(r, others(len(r), d.RhsBatch, d.RhsContract)))
}
