package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// The rules of ops that move a window over their operand.

// gradReduceWindow handles each result separately: a sum, the largest or smallest
// of a window, or a choice by any predicate.
func gradReduceWindow(t *tape, op *ir.Op, ct []*ir.Value) {
	n := len(op.Results)
	for i := range n {
		x, init := op.Operands[i], op.Operands[n+i]
		if ct[i] == nil || !t.wants(x) && !t.wants(init) {
			continue
		}
		w := &windowGrad{tape: t, op: op, i: i, ct: ct[i]}
		k := facts.Combines(op.Regions[0], i)
		if x.Type.NumElements() == 0 || ct[i].Type.NumElements() == 0 {
			t.add(x, t.zeros(x.Type))
			t.add(init, t.zeros(init.Type))
			continue
		}
		switch p, first := chooses(op.Regions[0], i); {
		case k == ir.Add:
			w.sum()
		case (k == ir.Maximum || k == ir.Minimum) && n == 1 && w.plain() && !t.wants(init):
			w.selected(k)
		case k == ir.Maximum || k == ir.Minimum:
			w.choice(func(in *ir.Builder, x, y *ir.Value, _ *ir.Value) *ir.Value { return in.Compare(holdsOver[k], x, y) })
		case p != nil:
			w.choice(func(in *ir.Builder, _, _ *ir.Value, p *ir.Value) *ir.Value {
				if first {
					return p
				}
				return in.Unary(ir.Not, p)
			})
		default:
			t.fails(op)
		}
	}
}

// holdsOver is the comparison that the result of a maximum or minimum satisfies
// with the other elements.
var holdsOver = map[ir.Kind]string{ir.Maximum: "GE", ir.Minimum: "LE"}

// A windowGrad is result i of a reduce_window, and its cotangent.
type windowGrad struct {
	*tape
	op *ir.Op
	i  int
	ct *ir.Value
}

func (w *windowGrad) x() *ir.Value { return w.op.Operands[w.i] }

func (w *windowGrad) init() *ir.Value { return w.op.Operands[len(w.op.Results)+w.i] }

// give adds g to the cotangent of v, in v's element type.
func (w *windowGrad) give(v, g *ir.Value) { w.add(v, w.b.Convert(g, v.Type.Elem)) }

// plain reports whether the windows and the operand have no gaps.
func (w *windowGrad) plain() bool {
	return !slices.ContainsFunc(w.op.Windows(), func(d ir.Window) bool { return d.Base != 1 || d.Dilation != 1 })
}

// sum handles a sum: an element gets the sum of the cotangents of the windows that
// contain it. The initial value gets each once, and once more for every padding
// element.
func (w *windowGrad) sum() {
	if w.wants(w.x()) {
		w.give(w.x(), w.windowSum(w.op, w.ct, w.x().Type))
	}
	if w.wants(w.init()) {
		elem := w.ct.Type.Elem
		nothing, one := w.zeros(w.x().Type.WithElem(elem)), w.b.Splat(ir.Tensor(elem), 1)
		times := w.b.Emit(ir.ReduceWindow, []*ir.Value{nothing, one}, w.op.Attrs, []*ir.Block{w.b.Combiner(ir.Add, elem)}, nil).Result()
		g := w.b.Mul(w.ct, times)
		w.give(w.init(), w.tape.sum(g, facts.UpTo(g.Type.Rank())...))
	}
}

// selected handles a maximum or minimum: the cotangent of a window goes to the
// first element that equals it, unless that is the initial value.
func (w *windowGrad) selected(k ir.Kind) {
	b, elem := w.b, w.ct.Type.Elem
	x, ct := b.Convert(w.need(w.x()), elem), w.ct
	if !facts.IsNeutral(k, w.init()) {
		y := w.need(w.op.Result())
		ct = b.Select(b.Compare("EQ", y, b.Broadcast(b.Convert(w.need(w.init()), elem), y.Type.Shape)), w.zeros(ct.Type), ct)
	}
	first := new(ir.Block)
	in := b.In(first)
	l, r := b.Func.NewArg(first, ir.Tensor(elem), ""), b.Func.NewArg(first, ir.Tensor(elem), "")
	in.Emit(ir.Return, []*ir.Value{in.Compare(holdsOver[k], l, r)}, nil, nil, nil)
	v := b.Emit(ir.SelectAndScatter, []*ir.Value{x, ct, b.Splat(ir.Tensor(elem), 0)}, w.op.Attrs, []*ir.Block{first, b.Combiner(ir.Add, elem)}, nil).Result()
	w.give(w.x(), v)
}

// choice finds the element that is each result by reducing the elements' numbers
// along with them: it gets the cotangent. The initial value, and with it the
// padding, has the number -1. stays says, of the accumulator and the element, and
// of the predicate by which the region chooses, whether the first is the result.
func (w *windowGrad) choice(stays func(in *ir.Builder, x, y, p *ir.Value) *ir.Value) {
	b, f, n := w.b, w.d.f, len(w.op.Results)
	t := w.x().Type
	number := b.Reshape(b.Iota(ir.Tensor(ir.I32, t.NumElements()), 0), t.Shape...)
	operands := append(w.needAll(w.op.Operands[:n]), number)
	operands = append(append(operands, w.needAll(w.op.Operands[n:])...), b.I32(-1))

	sub := w.captured(w.op)
	p, _ := chooses(w.op.Regions[0], w.i)
	region := f.CopyBlock(w.op.Regions[0], sub)
	x, y := region.Args[w.i], region.Args[n+w.i]
	k, l := f.NewArg(region, ir.Tensor(ir.I32), ""), f.NewArg(region, ir.Tensor(ir.I32), "")
	region.Args = slices.Concat(region.Args[:n], []*ir.Value{k}, region.Args[n:2*n], []*ir.Value{l})
	for i, arg := range region.Args {
		arg.Index = i
	}
	ret := region.Terminator()
	region.Ops = region.Ops[:len(region.Ops)-1]
	if p != nil && sub[p] != nil {
		p = sub[p]
	}
	in := b.In(region)
	in.Emit(ir.Return, append(ret.Operands, in.Select(stays(in, x, y, p), k, l)), nil, nil, nil)
	won := b.Emit(ir.ReduceWindow, operands, w.op.Attrs, []*ir.Block{region}, nil).Results[n]

	if w.wants(w.x()) {
		w.give(w.x(), w.scattered(won))
	}
	if w.wants(w.init()) {
		g := b.Select(b.Compare("EQ", won, w.fill(won.Type, -1)), w.ct, w.zeros(w.ct.Type))
		w.give(w.init(), w.tape.sum(g, facts.UpTo(g.Type.Rank())...))
	}
}

// scattered adds up the cotangents at the numbers in won; numbers out of range,
// which no element has, are dropped.
func (w *windowGrad) scattered(won *ir.Value) *ir.Value {
	b, size := w.b, w.x().Type.NumElements()
	n := won.Type.NumElements()
	g := ir.ScatterDims{InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1}
	sums := b.Emit(ir.Scatter, []*ir.Value{w.zeros(ir.Tensor(w.ct.Type.Elem, size)), b.Reshape(won, n), b.Reshape(w.ct, n)},
		ir.AttrsOf(facts.Named("scatter_dimension_numbers", g)), []*ir.Block{b.Combiner(ir.Add, w.ct.Type.Elem)}, nil).Result()
	return b.Reshape(sums, w.x().Type.Shape...)
}

// windowSum is the transpose of the sum over windows that op takes of a value
// of type in.
//
// Element i of a dimension is at low + i*base of the padded input, and element
// w of window k at k*stride + w*dilation. So element i gets the cotangents of the
// windows k with low + i*base - w*dilation = k*stride: a window over the cotangents
// with base dilation stride, that moves by base. It begins (window-1)*dilation
// before low.
func (t *tape) windowSum(op *ir.Op, ct *ir.Value, in *ir.Type) *ir.Value {
	rank := in.Rank()
	low, high, interior := make([]int, rank), make([]int, rank), make([]int, rank)
	var size, strides, base, dilation ir.Ints
	for d, w := range op.Windows() {
		size, strides, base, dilation = append(size, w.Size), append(strides, w.Stride), append(base, w.Base), append(dilation, w.Dilation)
		low[d], high[d] = transposed(w, in.Shape[d], ct.Type.Shape[d])
		interior[d] = w.Stride - 1
	}
	attrs := ir.AttrsOf(facts.Named("window_dimensions", size), facts.Named("window_strides", base), facts.Named("window_dilations", dilation))
	zero := t.b.Splat(ir.Tensor(ct.Type.Elem), 0)
	if slices.ContainsFunc(slices.Concat(low, high), func(n int) bool { return n < 0 }) {
		ct = t.b.Pad(ct, zero, low, high, interior) // the padding must not drop cotangents of windows
	} else {
		attrs.Set("padding", facts.PaddingAttr(low, high))
		attrs.Set("base_dilations", strides)
	}
	return t.b.Emit(ir.ReduceWindow, []*ir.Value{ct, zero}, attrs, []*ir.Block{t.b.Combiner(ir.Add, ct.Type.Elem)}, nil).Result()
}

// gradSelectAndScatter handles a scatter region that adds: a source element gets
// the cotangent of the element that is selected in its window, and the initial
// value the sum of all. The selection is piecewise constant in the operand, which
// gets none.
func gradSelectAndScatter(t *tape, op *ir.Op, ct []*ir.Value) {
	x, source, init := op.Operands[0], op.Operands[1], op.Operands[2]
	if !t.wants(source) && !t.wants(init) {
		return
	}
	if facts.Combines(op.Regions[1], 0) != ir.Add {
		t.fails(op)
		return
	}
	if t.wants(init) {
		t.add(init, t.b.Convert(t.sum(ct[0], facts.UpTo(ct[0].Type.Rank())...), init.Type.Elem))
	}
	if t.wants(source) {
		t.add(source, t.b.Convert(t.selectedFrom(op, t.need(x), ct[0]), source.Type.Elem))
	}
}

// selectedFrom is, for each window of op, the element of y at the place that op
// selects in x. A third operand tells elements from padding, which is not selected.
func (t *tape) selectedFrom(op *ir.Op, x, y *ir.Value) *ir.Value {
	b, f := t.b, t.d.f
	sub := t.captured(op)
	is, none := t.fill(x.Type.WithElem(ir.I1), 1), b.Splat(ir.Tensor(ir.I1), 0)
	operands := []*ir.Value{is, x, y, none, b.Splat(ir.Tensor(x.Type.Elem), 0), b.Splat(ir.Tensor(y.Type.Elem), 0)}
	region := new(ir.Block)
	var args []*ir.Value
	for _, v := range operands {
		args = append(args, f.NewArg(region, ir.Tensor(v.Type.Elem), ""))
	}
	sel := op.Regions[0]
	sub[sel.Args[0]], sub[sel.Args[1]] = args[1], args[4]
	for _, o := range sel.Ops[:len(sel.Ops)-1] {
		region.Ops = append(region.Ops, f.CopyOp(o, sub))
	}
	stays := sel.Terminator().Operands[0]
	if sub[stays] != nil {
		stays = sub[stays]
	}
	in := b.In(region)
	stays = in.Binary(ir.And, args[0], in.Binary(ir.Or, in.Unary(ir.Not, args[3]), stays))
	in.Emit(ir.Return, []*ir.Value{in.Binary(ir.Or, args[0], args[3]), in.Select(stays, args[1], args[4]), in.Select(stays, args[2], args[5])}, nil, nil, nil)
	return b.Emit(ir.ReduceWindow, operands, op.Attrs, []*ir.Block{region}, nil).Results[2]
}

// gradConvolutionInput convolves the cotangent with the reversed kernel: window
// strides become base dilations and base dilations strides, and input and output
// features are exchanged. Groups of the batch become groups of features, in the
// dimension where the batch had them.
func gradConvolutionInput(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	in := op.Operands[0].Type
	if in.NumElements() == 0 || ct.Type.NumElements() == 0 || op.Operands[1].Type.NumElements() == 0 {
		return t.zeros(in)
	}
	d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	features, batches := op.Int("feature_group_count"), op.Int("batch_group_count")
	c := newTransposed(t, op, ir.ConvDims{Input: d.Output, Kernel: ir.ConvSide{First: d.Kernel.Second, Second: d.Kernel.First, Spatial: d.Kernel.Spatial}, Output: d.Input})
	for i, w := range op.Windows() {
		low, high := transposed(w, in.Shape[d.Input.Spatial[i]], ct.Type.Shape[d.Output.Spatial[i]])
		c.window(ir.Window{Stride: w.Base, Base: w.Stride, Dilation: w.Dilation, Low: low, High: high, Reversed: !w.Reversed})
	}
	kernel := moveGroups(t.b, t.need(op.Operands[1]), d.Kernel.Second, d.Kernel.First, features*batches)
	v := c.emit(ct, kernel, features*batches, 1)
	return t.b.Convert(moveGroups(t.b, v, d.Input.Second, d.Input.First, batches), in.Elem)
}

// gradConvolutionKernel convolves the input with the cotangent, with batch and
// feature dimensions exchanged. The windows are as large as the result, and strides
// become window dilations. Groups of the batch become groups of features and the
// other way round.
func gradConvolutionKernel(t *tape, op *ir.Op, ct *ir.Value) *ir.Value {
	kernel := op.Operands[1].Type
	if kernel.NumElements() == 0 || ct.Type.NumElements() == 0 || op.Operands[0].Type.NumElements() == 0 {
		return t.zeros(kernel)
	}
	d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	swap := func(s ir.ConvSide) ir.ConvSide {
		return ir.ConvSide{First: s.Second, Second: s.First, Spatial: s.Spatial}
	}
	c := newTransposed(t, op, ir.ConvDims{Input: swap(d.Input), Kernel: d.Output, Output: d.Kernel})
	var reversed []int
	for i, w := range op.Windows() {
		in, out := op.Operands[0].Type.Shape[d.Input.Spatial[i]], ct.Type.Shape[d.Output.Spatial[i]]
		// As many windows fit as the kernel has elements: the last begins at
		// reach-1.
		high := w.Reach() + (out-1)*w.Stride - w.Low - ((in-1)*w.Base + 1)
		c.window(ir.Window{Stride: w.Dilation, Base: w.Base, Dilation: w.Stride, Low: w.Low, High: high})
		if w.Reversed {
			reversed = append(reversed, d.Kernel.Spatial[i])
		}
	}
	v := c.emit(t.need(op.Operands[0]), ct, op.Int("batch_group_count"), op.Int("feature_group_count"))
	if len(reversed) > 0 {
		v = t.b.Emit(ir.Reverse, []*ir.Value{v}, ir.AttrsOf(facts.Named("dimensions", ir.Ints(reversed))), nil, nil).Result()
	}
	return t.b.Convert(v, kernel.Elem)
}

// transposed is the padding with which the windows over a cotangent of size out
// cover a dimension of size n of the operand: see windowSum.
func transposed(w ir.Window, n, out int) (low, high int) {
	low = w.Reach() - 1 - w.Low
	return low, (n-1)*w.Base + w.Reach() - low - ((out-1)*w.Stride + 1)
}

// A transposedConv is a convolution, under construction, that computes the gradient
// of another.
type transposedConv struct {
	t                       *tape
	op                      *ir.Op
	dims                    ir.ConvDims
	strides, base, dilation ir.Ints
	low, high               []int
	reversed                ir.Bools
}

func newTransposed(t *tape, op *ir.Op, dims ir.ConvDims) *transposedConv {
	return &transposedConv{t: t, op: op, dims: dims}
}

// window adds the windows of the next spatial dimension.
func (c *transposedConv) window(w ir.Window) {
	c.strides, c.base, c.dilation = append(c.strides, w.Stride), append(c.base, w.Base), append(c.dilation, w.Dilation)
	c.low, c.high, c.reversed = append(c.low, w.Low), append(c.high, w.High), append(c.reversed, w.Reversed)
}

// emit appends the convolution of x and y, with the precision of the op.
func (c *transposedConv) emit(x, y *ir.Value, features, batches int) *ir.Value {
	attrs := ir.AttrsOf(facts.Named("dimension_numbers", c.dims), facts.Named("feature_group_count", ir.I64Attr(features)), facts.Named("batch_group_count", ir.I64Attr(batches)),
		facts.Named("window_strides", c.strides), facts.Named("lhs_dilation", c.base), facts.Named("rhs_dilation", c.dilation), facts.Named("padding", facts.PaddingAttr(c.low, c.high)))
	if slices.Contains(c.reversed, true) {
		attrs.Set("window_reversal", c.reversed)
	}
	if p := c.op.Attrs.Get("precision_config"); p != nil {
		attrs.Set("precision_config", p)
	}
	if x.Type.Elem.Bits() < y.Type.Elem.Bits() {
		x = c.t.b.Convert(x, y.Type.Elem)
	}
	return c.t.b.Emit(ir.Convolution, []*ir.Value{x, y}, attrs, nil, nil).Result()
}

// moveGroups splits dimension from of x in groups and moves the group dimension in
// front of dimension to.
func moveGroups(b *ir.Builder, x *ir.Value, from, to, groups int) *ir.Value {
	if groups == 1 {
		return x
	}
	shape := slices.Clone(x.Type.Shape)
	shape[from] /= groups
	split := slices.Insert(slices.Clone(shape), from, groups) // dimension d is d+1 from there on
	perm := facts.Others(len(split), []int{from})
	perm = slices.Insert(perm, to, from)
	shape[to] *= groups
	return b.Reshape(b.Transpose(b.Reshape(x, split...), perm...), shape...)
}
