package eval

import (
	"context"
	"errors"

	"ppc/ir"
)

// windows are the windows of an op over an operand of a given shape: of every
// dimension, or of the dimensions dims.
type windows struct {
	of    []ir.Window
	shape []int // of the operand's dimensions that have windows
	steps []int // the stride of each
	size  []int // of a window
}

func windowsOf(op *ir.Op, shape []int, dims []int) windows {
	w := windows{of: op.Windows(), shape: pick(shape, dims), steps: pick(ir.Strides(shape), dims)}
	for _, one := range w.of {
		w.size = append(w.size, one.Size)
	}
	return w
}

// place returns the offset in the operand of element at of window index, or -1 for
// padding.
func (w windows) place(index, at []int) int {
	src := 0
	for d, one := range w.of {
		i := one.Element(index[d], at[d], w.shape[d])
		if i < 0 {
			return -1
		}
		src += i * w.steps[d]
	}
	return src
}

// reduceWindow: every result element is the initial value, combined with the
// elements of its window in index order; padding and holes are the initial value.
func reduceWindow(e *exec) ([]*tensor, error) {
	if r := e.op.CombinesTensors(); r != nil {
		return nil, errors.New(r.Msg)
	}
	n := len(e.in) / 2
	xs, inits := e.in[:n], e.in[n:]
	w := windowsOf(e.op, xs[0].shape, others(len(xs[0].shape)))
	out := e.accumulators(inits)
	total := out[0].len()
	b, err := e.body(total)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(w.size))
	for range ir.Product(w.size) {
		index := make([]int, len(w.size))
		for lo := 0; lo < total; lo += b.width {
			hi := min(lo+b.width, total)
			for k := lo; k < hi; k++ {
				src := w.place(index, at)
				for i := range xs {
					if src >= 0 {
						b.args[n+i].set(k-lo, xs[i], src)
					} else {
						b.args[n+i].set(k-lo, inits[i], 0)
					}
				}
				next(index, out[0].shape)
			}
			for i := range xs {
				b.loadRange(i, out[i], lo, hi)
			}
			if err := b.into(out, lo, hi); err != nil {
				return nil, err
			}
		}
		next(at, w.size)
	}
	return out, nil
}

// selectAndScatter: of the elements in its window, each element of the source is
// scattered to the one that is selected: the first, replaced in index order by the
// next element where the first region is false. There the second region combines it
// with the result so far, which begins as the initial value.
func selectAndScatter(e *exec) ([]*tensor, error) {
	x, source := e.in[0], e.in[1]
	w := windowsOf(e.op, x.shape, others(len(x.shape)))
	sel, err := e.bodyOf(e.op.Regions[0], 1)
	if err != nil {
		return nil, err
	}
	scatter, err := e.bodyOf(e.op.Regions[1], 1)
	if err != nil {
		return nil, err
	}
	out := e.accumulators(e.in[2:])
	index, at := make([]int, len(w.size)), make([]int, len(w.size))
	for k := range source.len() {
		selected := -1
		for range ir.Product(w.size) {
			src := w.place(index, at)
			next(at, w.size)
			if src < 0 {
				continue
			}
			if selected < 0 {
				selected = src
				continue
			}
			sel.args[0].set(0, x, selected)
			sel.args[1].set(0, x, src)
			ys, err := sel.run()
			if err != nil {
				return nil, err
			}
			if ys[0].i[0] == 0 {
				selected = src
			}
		}
		next(index, source.shape)
		if selected < 0 {
			continue
		}
		scatter.args[0].set(0, out[0], selected)
		scatter.args[1].set(0, source, k)
		if err := scatter.into(out, selected, selected+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// convolution: result element (batch, place, feature) is the sum, over the places
// of the window and the input features of the feature's group, of the input there
// times the kernel; padding contributes zero. Of several batch groups, the
// feature's is used.
func convolution(e *exec) ([]*tensor, error) {
	x, y, out := e.in[0], e.in[1], e.result(0)
	c, add := newConvolution(e.op, x.shape, y.shape), e.sums(out.elem)
	index := make([]int, len(out.shape))
	for k := range out.len() {
		if k%1024 == 0 && e.p.w.ctx.Err() != nil {
			return nil, context.Cause(e.p.w.ctx)
		}
		c.terms(index)
		next(index, out.shape)
		switch {
		case x.f != nil && out.f != nil:
			add.f(out.f[k:k+1], pick(x.f, c.left), pick(y.f, c.right))
		case x.i != nil && out.i != nil:
			add.i(out.i[k:k+1], pick(x.i, c.left), pick(y.i, c.right))
			if out.elem == ir.I1 { // or of ands
				out.i[k] = truth(out.i[k] != 0)
			}
		case x.c != nil && out.c != nil:
			add.c(out.c[k:k+1], pick(x.c, c.left), pick(y.c, c.right))
		default:
			return nil, undefined(x)
		}
	}
	out.round()
	return []*tensor{out}, nil
}

// A convolver finds the terms of each element of a convolution.
type convolver struct {
	dims        ir.ConvDims
	windows     windows
	x, y        []int // strides
	batch       int   // of the result
	features    int   // of the input in a group
	perGroup    int   // features of the result in a group
	batched     bool  // the groups are of the batch
	left, right []int // the offsets of the factors of the terms
	place, at   []int // of the window, and in it
}

func newConvolution(op *ir.Op, x, y []int) *convolver {
	d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	groups, batches := op.Int("feature_group_count"), op.Int("batch_group_count")
	c := &convolver{dims: d, windows: windowsOf(op, x, d.Input.Spatial), x: ir.Strides(x), y: ir.Strides(y), batch: x[d.Input.First] / batches,
		features: x[d.Input.Second] / groups, perGroup: y[d.Kernel.Second] / (groups * batches), batched: batches > 1}
	c.place, c.at = make([]int, len(d.Input.Spatial)), make([]int, len(d.Input.Spatial))
	return c
}

// terms sets left and right to the factors of the result's element at index.
func (c *convolver) terms(index []int) {
	d := c.dims
	c.left, c.right = c.left[:0], c.right[:0]
	feature := index[d.Output.Second]
	batch, first := index[d.Output.First], 0
	if group := feature / c.perGroup; c.batched {
		batch += group * c.batch
	} else {
		first = group * c.features
	}
	for i, k := range d.Output.Spatial {
		c.place[i] = index[k]
	}
	for range ir.Product(c.windows.size) {
		src := c.windows.place(c.place, c.at)
		if src >= 0 {
			src += batch*c.x[d.Input.First] + first*c.x[d.Input.Second]
			from := feature * c.y[d.Kernel.Second]
			for i, k := range d.Kernel.Spatial {
				from += c.at[i] * c.y[k]
			}
			for f := range c.features {
				c.left = append(c.left, src+f*c.x[d.Input.Second])
				c.right = append(c.right, from+f*c.y[d.Kernel.First])
			}
		}
		next(c.at, c.windows.size)
	}
}
