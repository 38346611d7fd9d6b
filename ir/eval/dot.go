package eval

import (
	"context"
	"slices"

	"ppc/internal/products"
	"ppc/ir"
)

// dotGeneral: element (batch, left, right) is the sum over the contracted
// index of products, taken in index order. Both operands are first laid out so that
// the loops run over contiguous rows.
func dotGeneral(e *exec) ([]*tensor, error) {
	d := e.op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	l, r, out := e.in[0], e.in[1], e.result(0)
	lfree := others(len(l.shape), d.LhsBatch, d.LhsContract)
	rfree := others(len(r.shape), d.RhsBatch, d.RhsContract)
	x := l.permuted(slices.Concat(d.LhsBatch, lfree, d.LhsContract))
	y := r.permuted(slices.Concat(d.RhsBatch, d.RhsContract, rfree))
	s := dotSizes{
		batch:    ir.Product(pick(l.shape, d.LhsBatch)),
		left:     ir.Product(pick(l.shape, lfree)),
		contract: ir.Product(pick(l.shape, d.LhsContract)),
		right:    ir.Product(pick(r.shape, rfree)),
	}
	add := e.sums(out.elem)
	var err error
	switch {
	case x.f != nil && out.f != nil:
		err = dotRows(e.p.w.ctx, s, out.f, x.f, y.f, add.f)
	case x.i != nil && out.i != nil:
		err = dotRows(e.p.w.ctx, s, out.i, x.i, y.i, add.i)
	case x.c != nil && out.c != nil:
		err = dotRows(e.p.w.ctx, s, out.c, x.c, y.c, add.c)
	default:
		err = undefined(x)
	}
	if out.elem == ir.I1 { // or of ands
		for k, v := range out.i {
			out.i[k] = truth(v != 0)
		}
	}
	out.round()
	return []*tensor{out}, err
}

// others are the dimensions below rank that are in neither list.
func others(rank int, lists ...[]int) []int {
	var ds []int
	for d := range rank {
		if !slices.Contains(slices.Concat(lists...), d) {
			ds = append(ds, d)
		}
	}
	return ds
}

// permuted returns x with dimension perm[i] as dimension i.
func (x *tensor) permuted(perm []int) *tensor {
	if slices.IsSorted(perm) {
		return x
	}
	out := x.like(pick(x.shape, perm))
	move(out.shape, out, dense(out.shape), x, lattice{0, pick(ir.Strides(x.shape), perm)})
	return out
}

type dotSizes struct{ batch, left, contract, right int }

// dotRows computes out[b, i, :] = sum over k of x[b, i, k] * y[b, k, :], with
// row doing one k after the other.
func dotRows[T any](ctx context.Context, s dotSizes, out, x, y []T, row func(out, x, y []T)) error {
	for b := range s.batch {
		ys := y[b*s.contract*s.right:][:s.contract*s.right]
		for i := range s.left {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			at := b*s.left + i
			row(out[at*s.right:][:s.right], x[at*s.contract:][:s.contract], ys)
		}
	}
	return nil
}

// sums add x[k] * y[k, :] to out for every k, one after the other. y has len(x) rows
// as long as out.
type sums struct {
	f func(out, x, y []float64)
	i func(out, x, y []int64)
	c func(out, x, y []complex128)
}

// sums are those of dot_general and convolution with results of type t: exact up to float64, or
// rounded at every term. tensor.round rounds them to narrower types.
func (e *exec) sums(t ir.DType) sums {
	s := sums{new(chains).add, addProducts[int64], addProducts[complex128]}
	switch {
	case !e.p.w.opts.EachTerm:
	case t.IsFloat() && t != ir.F64:
		s.f = func(out, x, y []float64) {
			for k, v := range x {
				for j, w := range y[k*len(out):][:len(out)] {
					out[j] = float64(float32(out[j]) + float32(v*w))
				}
			}
		}
	case t == ir.C64:
		s.c = func(out, x, y []complex128) {
			for k, v := range x {
				for j, w := range y[k*len(out):][:len(out)] {
					out[j] = complex128(complex64(out[j]) + complex64(v)*complex64(w))
				}
			}
		}
	}
	return s
}

// chains adds products in chains, and the sums of the chains with what their additions lose: what a
// sum loses does not grow with the number of its terms, not even where they repeat and all round alike.
type chains struct{ sum, lost []float64 }

const longChain = 64

func (c *chains) add(out, x, y []float64) {
	if len(x) <= longChain {
		products.AddRows(out, x, y)
		return
	}
	n := len(out)
	c.sum, c.lost = slices.Grow(c.sum[:0], n)[:n], slices.Grow(c.lost[:0], n)[:n]
	clear(c.lost)
	for lo := 0; lo < len(x); lo += longChain {
		hi := min(lo+longChain, len(x))
		clear(c.sum)
		products.AddRows(c.sum, x[lo:hi], y[lo*n:hi*n])
		for j, v := range c.sum {
			sum, lost := twoSum(out[j], v)
			out[j], c.lost[j] = sum, c.lost[j]+lost
		}
	}
	for j, v := range c.lost {
		out[j] = withLost(out[j], v)
	}
}

func addProducts[T int64 | complex128](out, x, y []T) {
	for k, v := range x {
		for j, w := range y[k*len(out):][:len(out)] {
			out[j] += v * w
		}
	}
}
