package gradient

import (
	"math"

	"ppc/ir"
	"ppc/ir/facts"
)

// windowAttrs are random windows over a dimension of each size; plain ones have
// no gaps.
func (p *lossProgram) windowAttrs(shape []int, plain bool) ir.Attrs {
	var window, strides, base, dilation ir.Ints
	var low, high []int
	gap := func() int {
		if plain {
			return 1
		}
		return 1 + p.IntN(3)
	}
	for range shape {
		window, strides = append(window, 1+p.IntN(3)), append(strides, 1+p.IntN(3))
		base, dilation = append(base, gap()), append(dilation, gap())
		low, high = append(low, p.IntN(5)), append(high, p.IntN(5))
	}
	attrs := ir.AttrsOf(facts.Named("window_dimensions", window), facts.Named("window_strides", strides), facts.Named("padding", facts.PaddingAttr(low, high)))
	if !plain {
		attrs.Set("base_dilations", base)
		attrs.Set("window_dilations", dilation)
	}
	return attrs
}

func (p *lossProgram) number(v float64) *ir.Value { return p.b.Splat(ir.Tensor(ir.F64), v) }

func (p *lossProgram) windows(k ir.Kind, x, init *ir.Value, plain bool) []*ir.Value {
	return p.b.Emit(ir.ReduceWindow, []*ir.Value{x, init}, p.windowAttrs(x.Type.Shape, plain), []*ir.Block{p.b.Combiner(k, ir.F64)}, nil).Results
}

// convolve is a random convolution of a random number of spatial dimensions.
func (p *lossProgram) convolve(features, batches int) []*ir.Value {
	n := p.IntN(3)
	place := func() ir.ConvSide {
		perm := p.Perm(n + 2)
		return ir.ConvSide{First: perm[0], Second: perm[1], Spatial: perm[2:]}
	}
	d := ir.ConvDims{Input: place(), Kernel: place(), Output: place()}
	in, kernel := p.sizes(n+2), p.sizes(n+2)
	for _, k := range d.Input.Spatial {
		in[k] += 2
	}
	in[d.Input.First] *= batches
	in[d.Input.Second] *= features
	kernel[d.Kernel.First] = in[d.Input.Second] / features
	kernel[d.Kernel.Second] *= features * batches
	var strides, left, right ir.Ints
	var reversed ir.Bools
	var low, high []int
	for range n {
		strides, left, right = append(strides, 1+p.IntN(3)), append(left, 1+p.IntN(2)), append(right, 1+p.IntN(2))
		low, high, reversed = append(low, p.IntN(4)-1), append(high, p.IntN(4)-1), append(reversed, p.IntN(2) == 0)
	}
	attrs := ir.AttrsOf(facts.Named("dimension_numbers", d), facts.Named("feature_group_count", ir.I64Attr(features)), facts.Named("batch_group_count", ir.I64Attr(batches)),
		facts.Named("window_strides", strides), facts.Named("lhs_dilation", left), facts.Named("rhs_dilation", right), facts.Named("padding", facts.PaddingAttr(low, high)), facts.Named("window_reversal", reversed))
	return p.b.Emit(ir.Convolution, []*ir.Value{p.float(in...), p.float(kernel...)}, attrs, nil, nil).Results
}

// selectAndScatter scatters a source into the elements that are the largest of
// their windows.
func (p *lossProgram) selectAndScatter(direction string, x, init *ir.Value, k ir.Kind) []*ir.Value {
	attrs := p.windowAttrs(x.Type.Shape, true)
	windows := (&ir.Op{Kind: ir.ReduceWindow, Operands: []*ir.Value{x}, Attrs: attrs}).Windows()
	shape := make([]int, len(windows))
	for d, w := range windows {
		shape[d] = w.Count(x.Type.Shape[d])
	}
	return p.b.Emit(ir.SelectAndScatter, []*ir.Value{x, p.float(shape...), init}, attrs, []*ir.Block{p.byFirst(direction, x), p.b.Combiner(k, ir.F64)}, nil).Results
}

var windowGradients = []gradientTest{
	{name: "convolution", build: func(p *lossProgram) []*ir.Value { return p.convolve(1, 1) }},
	{name: "convolution of groups of features", build: func(p *lossProgram) []*ir.Value { return p.convolve(2, 1) }},
	{name: "convolution of groups of the batch", build: func(p *lossProgram) []*ir.Value { return p.convolve(1, 3) }},
	{name: "reduce_window", linear: true, build: func(p *lossProgram) []*ir.Value {
		return p.windows(ir.Add, p.float(p.shape()...), p.number(0), false)
	}},
	{name: "reduce_window of a running sum", linear: true, build: func(p *lossProgram) []*ir.Value {
		n := 1 + p.IntN(6)
		attrs := ir.AttrsOf(facts.Named("window_dimensions", ir.Ints{1, n}), facts.Named("padding", facts.PaddingAttr([]int{0, n - 1}, []int{0, 0})))
		return p.b.Emit(ir.ReduceWindow, []*ir.Value{p.float(2, n), p.number(0)}, attrs, []*ir.Block{p.b.Combiner(ir.Add, ir.F64)}, nil).Results
	}},
	{name: "reduce_window of a sum from something", linear: true, build: func(p *lossProgram) []*ir.Value {
		return p.windows(ir.Add, p.float(p.shape()...), p.float(), false)
	}},
	{name: "reduce_window of a maximum", build: func(p *lossProgram) []*ir.Value {
		return p.windows(ir.Maximum, p.apart(p.shape()...), p.number(-100), true)
	}},
	{name: "reduce_window of a minimum", build: func(p *lossProgram) []*ir.Value {
		return p.windows(ir.Minimum, p.apart(p.shape()...), p.number(0.03), true)
	}},
	{name: "reduce_window of a maximum with gaps", build: func(p *lossProgram) []*ir.Value {
		return p.windows(ir.Maximum, p.apart(p.shape()...), p.number(0.03), false)
	}},
	{name: "reduce_window of a minimum from something", linear: true, build: func(p *lossProgram) []*ir.Value {
		x := p.apart(append([]int{3}, p.sizes(1)...)...)
		return p.windows(ir.Minimum, p.b.SliceDim(x, 0, 0, 2), p.b.Reshape(p.b.Slice(x, []int{2, 0}, []int{3, 1})), false)
	}},
	{name: "reduce_window of the place of a maximum", build: func(p *lossProgram) []*ir.Value {
		x := p.apart(p.sizes(2)...)
		place := p.b.Iota(x.Type.WithElem(ir.I32), 1)
		op := p.argmax(x, p.number(math.Inf(-1)), 0)[0].Def
		attrs := p.windowAttrs(x.Type.Shape, false)
		region := p.b.Func.CopyBlock(op.Regions[0], make(map[*ir.Value]*ir.Value))
		return p.b.Emit(ir.ReduceWindow, []*ir.Value{x, place, p.number(-100), p.b.I32(0)}, attrs, []*ir.Block{region}, nil).Results[:1]
	}},
	{name: "select_and_scatter", linear: true, build: func(p *lossProgram) []*ir.Value {
		x := p.b.Const(p.numbers(-2, 2, ir.Tensor(ir.F64, p.shape()...)))
		return p.selectAndScatter("GE", x, p.float(), ir.Add)
	}},
	{name: "select_and_scatter of what changes", build: func(p *lossProgram) []*ir.Value {
		return p.selectAndScatter("LT", p.apart(p.shape()...), p.number(0), ir.Add)
	}},
}
