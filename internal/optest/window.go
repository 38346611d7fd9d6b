package optest

import (
	"math"

	"ppc/ir"
	"ppc/ir/facts"
)

// gaps is whether windows have gaps between the elements of operand and window.
type gaps bool

const (
	plain  gaps = false
	gapped gaps = true
)

// windowAttrs are random windows over a dimension of each size.
func (p *Program) windowAttrs(shape []int, of gaps) ir.Attrs {
	var window, strides, base, dilation ir.Ints
	var low, high []int
	gap := func() int {
		if of == plain {
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
	if of == gapped {
		attrs.Set("base_dilations", base)
		attrs.Set("window_dilations", dilation)
	}
	return attrs
}

func (p *Program) number(v float64) *ir.Value { return p.B.Splat(ir.Tensor(ir.F64), v) }

func (p *Program) windows(k ir.Kind, x, init *ir.Value, of gaps) []*ir.Value {
	return p.B.Emit(ir.ReduceWindow, []*ir.Value{x, init}, p.windowAttrs(x.Type.Shape, of), []*ir.Block{p.B.Combiner(k, ir.F64)}, nil).Results
}

// convolve is a random convolution of a random number of spatial dimensions.
func (p *Program) convolve(features, batches int) []*ir.Value {
	n := p.IntN(3)
	place := func() ir.ConvSide {
		perm := p.Perm(n + 2)
		return ir.ConvSide{First: perm[0], Second: perm[1], Spatial: perm[2:]}
	}
	d := ir.ConvDims{Input: place(), Kernel: place(), Output: place()}
	in, kernel := p.Sizes(n+2), p.Sizes(n+2)
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
	return p.B.Emit(ir.Convolution, []*ir.Value{p.Float(in...), p.Float(kernel...)}, attrs, nil, nil).Results
}

// selectAndScatter scatters a source into the elements that are the largest of
// their windows.
func (p *Program) selectAndScatter(direction string, x, init *ir.Value, k ir.Kind) []*ir.Value {
	attrs := p.windowAttrs(x.Type.Shape, plain)
	windows := (&ir.Op{Kind: ir.ReduceWindow, Operands: []*ir.Value{x}, Attrs: attrs}).Windows()
	shape := make([]int, len(windows))
	for d, w := range windows {
		shape[d] = w.Count(x.Type.Shape[d])
	}
	return p.B.Emit(ir.SelectAndScatter, []*ir.Value{x, p.Float(shape...), init}, attrs, []*ir.Block{p.byFirst(direction, x), p.B.Combiner(k, ir.F64)}, nil).Results
}

var windowCases = []Case{
	{Name: "convolution", Build: func(p *Program) []*ir.Value { return p.convolve(1, 1) }},
	{Name: "convolution of groups of features", Build: func(p *Program) []*ir.Value { return p.convolve(2, 1) }},
	{Name: "convolution of groups of the batch", Build: func(p *Program) []*ir.Value { return p.convolve(1, 3) }},
	{Name: "reduce_window", Linear: true, Build: func(p *Program) []*ir.Value {
		return p.windows(ir.Add, p.Float(p.shape()...), p.number(0), gapped)
	}},
	{Name: "reduce_window of a running sum", Linear: true, Build: func(p *Program) []*ir.Value {
		n := 1 + p.IntN(6)
		attrs := ir.AttrsOf(facts.Named("window_dimensions", ir.Ints{1, n}), facts.Named("padding", facts.PaddingAttr([]int{0, n - 1}, []int{0, 0})))
		return p.B.Emit(ir.ReduceWindow, []*ir.Value{p.Float(2, n), p.number(0)}, attrs, []*ir.Block{p.B.Combiner(ir.Add, ir.F64)}, nil).Results
	}},
	{Name: "reduce_window of a sum from something", Linear: true, Build: func(p *Program) []*ir.Value {
		return p.windows(ir.Add, p.Float(p.shape()...), p.Float(), gapped)
	}},
	{Name: "reduce_window of a maximum", Build: func(p *Program) []*ir.Value {
		return p.windows(ir.Maximum, p.apart(p.shape()...), p.number(-100), plain)
	}},
	{Name: "reduce_window of a minimum", Build: func(p *Program) []*ir.Value {
		return p.windows(ir.Minimum, p.apart(p.shape()...), p.number(0.03), plain)
	}},
	{Name: "reduce_window of a maximum with gaps", Build: func(p *Program) []*ir.Value {
		return p.windows(ir.Maximum, p.apart(p.shape()...), p.number(0.03), gapped)
	}},
	{Name: "reduce_window of a minimum from something", Linear: true, Build: func(p *Program) []*ir.Value {
		x := p.apart(append([]int{3}, p.Sizes(1)...)...)
		return p.windows(ir.Minimum, p.B.SliceDim(x, 0, 0, 2), p.B.Reshape(p.B.Slice(x, []int{2, 0}, []int{3, 1})), gapped)
	}},
	{Name: "reduce_window of the place of a maximum", Build: func(p *Program) []*ir.Value {
		x := p.apart(p.Sizes(2)...)
		place := p.B.Iota(x.Type.WithElem(ir.I32), 1)
		op := p.Argmax(x, p.number(math.Inf(-1)), 0)[0].Def
		attrs := p.windowAttrs(x.Type.Shape, gapped)
		region := p.B.Func.CopyBlock(op.Regions[0], make(map[*ir.Value]*ir.Value))
		return p.B.Emit(ir.ReduceWindow, []*ir.Value{x, place, p.number(-100), p.B.I32(0)}, attrs, []*ir.Block{region}, nil).Results[:1]
	}},
	{Name: "select_and_scatter", Linear: true, Build: func(p *Program) []*ir.Value {
		x := p.B.Const(p.Numbers(-2, 2, ir.Tensor(ir.F64, p.shape()...)))
		return p.selectAndScatter("GE", x, p.Float(), ir.Add)
	}},
	{Name: "select_and_scatter of what changes", Build: func(p *Program) []*ir.Value {
		return p.selectAndScatter("LT", p.apart(p.shape()...), p.number(0), ir.Add)
	}},
}
