package kernel

import (
	"bytes"
	"slices"

	"ppc/ir"
)

// A windowing is the windows of an op over an operand, in the dimensions that
// have them.
type windowing struct {
	of    []ir.Window
	shape []int // of the operand
	steps []int // strides of the operand
	size  []int // of a window
}

func newWindowing(op *ir.Op, shape, steps []int) *windowing {
	w := &windowing{of: op.Windows(), shape: shape, steps: steps}
	for _, one := range w.of {
		w.size = append(w.size, one.Size)
	}
	return w
}

// element is the offset in the operand of element k of window at, or -1 where that
// is padding.
func (w *windowing) element(at, k []int) int {
	sum := 0
	for d := range w.of {
		i := w.of[d].Element(at[d], k[d], w.shape[d])
		if i < 0 {
			return -1
		}
		sum += i * w.steps[d]
	}
	return sum
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
	win := newWindowing(op, t.Shape, ir.Strides(t.Shape))
	total, inWindow, along := out.NumElements(), ir.Product(win.size), win.accumulates()
	run := func(w *Work, dst, src []Mem) {
		if total == 0 {
			return
		}
		initOnly(n)(w, dst, src)
		fold := c.folder(src[2*n:])
		at, k, zero := make([]int, rank), make([]int, rank), make([]int, rank)
		acc, x := make([]Mem, n), make([]Mem, n)
		if along >= 0 && idle(w, fold, c, src[n:2*n]) {
			c.accumulate(w, fold, dst, src, out.Shape, along)
			return
		}
		for e := range total {
			for range inWindow {
				from := win.element(at, k)
				for i, size := range c.sizes {
					acc[i], x[i] = dst[i][e*size:(e+1)*size], src[n+i]
					if from >= 0 {
						x[i] = src[i][from*size : (from+1)*size]
					}
				}
				fold(w, acc, x)
				advance(k, win.size, zero)
			}
			advance(at, out.Shape, zero)
		}
	}
	return promoted(op, run, reductionArgs(n)), nil
}

// accumulates is the dimension along which a window is that before it and an element more, as in a
// cumulative sum; -1 if there is none.
func (w *windowing) accumulates() int {
	along := -1
	for d, one := range w.of {
		n := w.shape[d]
		switch {
		case one.Identity() && one.Stride == 1:
		case along < 0 && one.Stride == 1 && one.Base == 1 && one.Dilation == 1 && !one.Reversed && one.Size >= n && one.Low == one.Size-1 && one.High == 0:
			along = d
		default:
			return -1
		}
	}
	return along
}

// idle reports whether padding changes nothing: a fold of the initial values into themselves.
func idle(w *Work, fold folder, c *combiner, init []Mem) bool {
	acc := make([]Mem, len(init))
	for i, v := range init {
		acc[i] = slices.Clone(v[:c.sizes[i]])
	}
	fold(w, acc, init)
	for i := range acc {
		if !bytes.Equal(acc[i], init[i][:c.sizes[i]]) {
			return false
		}
	}
	return true
}

// accumulate folds each element into what is before it along a dimension: the bits of folding each window, in a
// time that does not grow with its size. The results have the initial values.
func (c *combiner) accumulate(w *Work, fold folder, dst, src []Mem, shape []int, along int) {
	step, acc, x := ir.Strides(shape)[along], make([]Mem, len(c.sizes)), make([]Mem, len(c.sizes))
	for e := range ir.Product(shape) {
		for i, size := range c.sizes {
			acc[i], x[i] = dst[i][e*size:(e+1)*size], src[i][e*size:(e+1)*size]
			if e/step%shape[along] > 0 {
				copy(acc[i], dst[i][(e-step)*size:])
			}
		}
		fold(w, acc, x)
	}
}

// buildSelectAndScatter folds the elements of the source, in row-major order,
// into the elements that the first region selects in their windows.
func buildSelectAndScatter(op *ir.Op, sub builder) (Func, error) {
	captures := op.Captures()
	sel, err := newLambda(op.Regions[0], captures, sub)
	if err != nil {
		return nil, err
	}
	c, err := newCombiner(op, 1, sub)
	if err != nil {
		return nil, err
	}
	t, source := op.Operands[0].Type, op.Operands[1].Type
	rank, in, size := t.Rank(), t.Elem.Size(), c.sizes[0]
	win := newWindowing(op, t.Shape, ir.Strides(t.Shape))
	total, inWindow := source.NumElements(), ir.Product(win.size)
	run := func(w *Work, dst, src []Mem) {
		Fill(dst[0], src[2])
		fold, choose := c.folder(src[3:]), sel.call(src[3:])
		at, k, zero := make([]int, rank), make([]int, rank), make([]int, rank)
		acc, x := make([]Mem, 1), make([]Mem, 1)
		for e := range total {
			selected := -1
			for range inWindow {
				if from := win.element(at, k); from >= 0 && (selected < 0 || !choose.first(w, src[0], selected*in, from*in, in)) {
					selected = from
				}
				advance(k, win.size, zero)
			}
			if selected >= 0 {
				acc[0], x[0] = dst[0][selected*size:(selected+1)*size], src[1][e*size:(e+1)*size]
				fold(w, acc, x)
			}
			advance(at, source.Shape, zero)
		}
	}
	return promoted(op, run, []int{-1, 1, 0}), nil
}

// first reports whether c, which compares two scalars, is true of the elements of n
// bytes at i and j of x.
func (c *call) first(w *Work, x Mem, i, j, n int) bool {
	copy(c.in[0], x[i:i+n])
	copy(c.in[1], x[j:j+n])
	c.run(w)
	return c.out[0][0] != 0
}

// A side is an operand of a convolution, one dimension of which is split in groups.
type side struct {
	*operand
	group int // elements of a group
}

// newSide transposes a tensor to [groups, dims...], where dimension grouped is
// split in groups. dims name its dimensions.
func newSide(t *ir.Type, as ir.DType, grouped, groups int, dims ...int) side {
	shape := slices.Clone(t.Shape)
	shape[grouped] /= groups
	shape = slices.Insert(shape, grouped, groups)
	perm := []int{grouped}
	for _, d := range dims {
		if d >= grouped {
			d++
		}
		perm = append(perm, d)
	}
	return side{newOperand(t.WithShape(shape...), as, perm), t.NumElements() / groups}
}

// patchBytes bounds the windows that a convolution lays out at a time, as long as
// one window is smaller.
const patchBytes = 1 << 20

// buildConvolution multiplies, for each group and each element of the batch,
// the input's windows, laid out one a row, with the kernel. Each element adds
// up the places of its window in row-major order, and in each place the input
// features. The windows overlap, so all of an image may be far larger than it;
// they are laid out and multiplied some rows at a time.
func buildConvolution(op *ir.Op) (Func, error) {
	l, r, out := op.Operands[0].Type, op.Operands[1].Type, op.Results[0].Type
	d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	as := arithmetic(out.Elem)
	mul := gemms[as]
	if mul == nil {
		return orMissing(nil, op, as)
	}
	groups, grouped := op.Int("feature_group_count"), d.Input.Second
	if n := op.Int("batch_group_count"); n > 1 {
		groups, grouped = n, d.Input.First
	}
	// The result is computed as [groups, batch, places, features].
	left := newSide(l, as, grouped, groups, append(append([]int{d.Input.First}, d.Input.Spatial...), d.Input.Second)...)
	right := newSide(r, as, d.Kernel.Second, groups, append(slices.Clone(d.Kernel.Spatial), d.Kernel.First, d.Kernel.Second)...)
	p := newPatches(op, d, as.Size())
	batch, features := out.Shape[d.Output.First], r.Shape[d.Kernel.Second]/groups
	rows, image := p.rows*features*p.elem, 0
	many := max(1, min(p.rows, patchBytes/max(1, p.columns*p.elem)))
	if batch > 0 {
		image = left.group / batch * p.elem
	}
	result := newResult(out, as, d, groups)
	return func(w *Work, dst, src []Mem) {
		depth := w.depth
		x, y := left.ready(w, src[0]), right.ready(w, src[1])
		z := w.temp(groups * batch * rows)
		patches := w.temp(many * p.columns * p.elem)
		for g := range groups {
			kernel := y[g*right.group*p.elem:][:right.group*p.elem]
			for b := range batch {
				i := g*batch + b
				at, out := make([]int, len(p.out)), z[i*rows:][:rows]
				for done := 0; done < p.rows && !w.Stopped(); done += many {
					n := min(many, p.rows-done)
					p.fill(patches, x[i*image:][:image], at, n)
					mul(w, out[done*features*p.elem:][:n*features*p.elem], matrix{patches, p.columns, 1}, matrix{kernel, features, 1}, n, features, p.columns)
				}
			}
		}
		result(w, dst[0], z)
		w.depth = depth
	}, nil
}

// patches lay out the windows over one image, [places, features], one a row.
type patches struct {
	*windowing
	elem, features int
	rows, columns  int
	out            []int // how often the window fits
}

func newPatches(op *ir.Op, d ir.ConvDims, elem int) *patches {
	l, r, out := op.Operands[0].Type, op.Operands[1].Type, op.Results[0].Type
	p := &patches{elem: elem, features: r.Shape[d.Kernel.First]}
	var shape []int
	for i, k := range d.Input.Spatial {
		shape = append(shape, l.Shape[k])
		p.out = append(p.out, out.Shape[d.Output.Spatial[i]])
	}
	p.windowing = newWindowing(op, shape, ir.Strides(shape))
	p.rows = ir.Product(p.out)
	p.columns = ir.Product(p.size) * p.features
	return p
}

// fill sets rows to count windows over image from place at on, and moves at behind
// them.
func (p *patches) fill(rows, image Mem, at []int, count int) {
	n := p.features * p.elem
	k, zero := make([]int, len(p.size)), make([]int, len(p.size))
	inWindow := ir.Product(p.size)
	for range count {
		for range inWindow {
			if from := p.element(at, k); from >= 0 {
				copy(rows[:n], image[from*n:])
			} else {
				clear(rows[:n])
			}
			rows = rows[n:]
			advance(k, p.size, zero)
		}
		advance(at, p.out, zero)
	}
}

// newResult brings [groups, batch, places, features], of type as, to the order
// and the type of the result of a convolution.
func newResult(out *ir.Type, as ir.DType, d ir.ConvDims, groups int) func(w *Work, dst, z Mem) {
	own := ir.Strides(out.Shape)
	features := out.Shape[d.Output.Second]
	shape, to := []int{groups, out.Shape[d.Output.First]}, []int{features / groups * own[d.Output.Second], own[d.Output.First]}
	for _, k := range d.Output.Spatial {
		shape, to = append(shape, out.Shape[k]), append(to, own[k])
	}
	shape, to = append(shape, features/groups), append(to, own[d.Output.Second])
	order := NewCopy(as.Size(), shape, to, ir.Strides(shape))
	if as == out.Elem {
		return func(_ *Work, dst, z Mem) { order.Run(dst, z, 0, 0) }
	}
	narrow, n := converter(as, out.Elem), out.NumElements()*as.Size()
	return func(w *Work, dst, z Mem) {
		t := w.temp(n)
		order.Run(t, z, 0, 0)
		w.apply(narrow, dst, t)
	}
}
