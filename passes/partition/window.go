package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// An op that moves a window over its operand reads, for a shard of its result, a
// section of the operand: the shard's windows. A [halo] exchange brings what
// other devices have of that, or each device slices the gathered operand,
// whichever moves fewer bytes, and the op does the same on sections with less
// padding.

// A windowDim is a dimension of the operand that windows move along, and the
// dimension of the result that has an element for each. A kernel has an element
// for each place in a window.
type windowDim struct {
	in, out, kernel int // kernel is -1 where there is none
	ir.Window
}

// A windowRow is how an op that moves windows is partitioned.
type windowRow struct {
	dims func(op *ir.Op) []windowDim
	over func(op *ir.Op) int        // so many operands, the first ones, are moved over
	fill func(op *ir.Op, i int) int // the operand that pads operand i; -1 for zeros
	// attrs are the attributes of op over operands in, with the windows ws and a
	// result of type out.
	attrs func(op *ir.Op, in []*ir.Value, out *ir.Type, ws []windowDim) ir.Attrs
}

// windowRows has a row for every op that moves windows.
var windowRows = map[ir.Kind]windowRow{
	ir.Convolution: {
		dims: func(op *ir.Op) []windowDim {
			d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
			ws := make([]windowDim, len(d.Input.Spatial))
			for i, w := range op.Windows() {
				ws[i] = windowDim{d.Input.Spatial[i], d.Output.Spatial[i], d.Kernel.Spatial[i], w}
			}
			return ws
		},
		over:  func(*ir.Op) int { return 1 },
		fill:  func(*ir.Op, int) int { return -1 },
		attrs: shardConvolution,
	},
	ir.ReduceWindow: {
		dims: func(op *ir.Op) []windowDim {
			var ws []windowDim
			for d, w := range op.Windows() {
				ws = append(ws, windowDim{d, d, -1, w})
			}
			return ws
		},
		over: func(op *ir.Op) int { return len(op.Results) },
		fill: func(op *ir.Op, i int) int { return len(op.Results) + i },
		attrs: func(op *ir.Op, _ []*ir.Value, _ *ir.Type, ws []windowDim) ir.Attrs {
			sizes := make(ir.Ints, len(ws))
			for d, w := range ws {
				sizes[d] = w.Size
			}
			return with(windowAttrs(op.Attrs, ws, "base_dilations"), "window_dimensions", sizes)
		},
	},
	ir.Slice: {
		dims: func(op *ir.Op) []windowDim {
			start, limit, strides := op.Ints("start_indices"), op.Ints("limit_indices"), op.Ints("strides")
			var ws []windowDim
			for d, n := range op.Operands[0].Type.Shape {
				ws = append(ws, windowDim{d, d, -1, ir.Window{Size: 1, Stride: strides[d], Low: -start[d], High: limit[d] - n, Base: 1, Dilation: 1}})
			}
			return ws
		},
		over: func(*ir.Op) int { return 1 },
		fill: func(*ir.Op, int) int { return -1 },
		attrs: func(op *ir.Op, in []*ir.Value, _ *ir.Type, ws []windowDim) ir.Attrs {
			start, limit := make(ir.Ints, len(ws)), make(ir.Ints, len(ws))
			for d, w := range ws {
				start[d], limit[d] = -w.Low, in[0].Type.Shape[d]+w.High
			}
			return with(with(op.Attrs, "start_indices", start), "limit_indices", limit)
		},
	},
	ir.Pad: {
		dims: func(op *ir.Op) []windowDim {
			low, high, interior := op.Ints("edge_padding_low"), op.Ints("edge_padding_high"), op.Ints("interior_padding")
			var ws []windowDim
			for d := range low {
				ws = append(ws, windowDim{d, d, -1, ir.Window{Size: 1, Stride: 1, Low: low[d], High: high[d], Base: interior[d] + 1, Dilation: 1}})
			}
			return ws
		},
		over: func(*ir.Op) int { return 1 },
		fill: func(*ir.Op, int) int { return 1 },
		attrs: func(op *ir.Op, in []*ir.Value, _ *ir.Type, ws []windowDim) ir.Attrs {
			low, high, interior := make(ir.Ints, len(ws)), make(ir.Ints, len(ws)), make(ir.Ints, len(ws))
			for d, w := range ws {
				low[d], high[d], interior[d] = w.Low, w.High, w.Base-1
			}
			return with(with(with(op.Attrs, "edge_padding_low", low), "edge_padding_high", high), "interior_padding", interior)
		},
	},
}

// windowAttrs is attrs with the paddings and the base dilations of ws, where
// they differ from none; base is what the latter are called.
func windowAttrs(attrs ir.Attrs, ws []windowDim, base string) ir.Attrs {
	bases, low, high := make(ir.Ints, len(ws)), make([]int, len(ws)), make([]int, len(ws))
	padded, dilated := attrs.Has("padding"), attrs.Has(base)
	for i, w := range ws {
		bases[i], low[i], high[i] = w.Base, w.Low, w.High
		padded = padded || w.Low != 0 || w.High != 0
		dilated = dilated || w.Base != 1
	}
	if padded {
		attrs = with(attrs, "padding", facts.PaddingAttr(low, high))
	}
	if dilated {
		attrs = with(attrs, base, bases)
	}
	return attrs
}

// shardConvolution: a device with a shard of the groups has fewer of them, and of
// windows side by side it may have a shard of each.
func shardConvolution(op *ir.Op, in []*ir.Value, out *ir.Type, ws []windowDim) ir.Attrs {
	d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	attrs := windowAttrs(op.Attrs, ws, "lhs_dilation")
	if n := in[1].Type.Shape[d.Kernel.First]; n > 0 {
		attrs.Set("feature_group_count", ir.I64Attr(in[0].Type.Shape[d.Input.Second]/n))
	}
	if n := out.Shape[d.Output.First]; n > 0 {
		attrs.Set("batch_group_count", ir.I64Attr(in[0].Type.Shape[d.Input.First]/n))
	}
	strides, changed := make(ir.Ints, len(ws)), false
	for i, w := range ws {
		strides[i] = w.Stride
		if n := in[1].Type.Shape[d.Kernel.Spatial[i]]; n != w.Size {
			strides[i], changed = n, true
		}
	}
	if changed {
		attrs.Set("window_strides", strides)
	}
	return attrs
}

// windowRowOf is the row of op, nil where it moves no windows.
func windowRowOf(op *ir.Op) *windowRow {
	if row, ok := windowRows[op.Kind]; ok {
		return &row
	}
	return nil
}

// moves reports whether op, computed as a says, is sharded along w and needs more
// there than the shard of its operand.
func (w *windowDim) moves(a *assignment) bool {
	ks := a.rule.Results[0][w.out]
	return len(a.results[0][w.out]) > 0 && len(ks) == 1 && a.rule.Types[ks[0]] == ir.Permutation
}

// kernelReduced: each device may have a shard of the kernel, and the partial
// results of it, if the operand is not sharded along the windows.
func kernelReduced(op *ir.Op, rule *ir.Factors) {
	for _, w := range windowRowOf(op).dims(op) {
		rule.Types[rule.Operands[1][w.kernel][0]] = ir.Reduction
	}
}

// sums reports whether op, computed as a says, is sharded along the kernel of w, so
// that each device needs what its shard of the kernel meets in every window.
func (w *windowDim) sums(a *assignment) bool {
	return w.kernel >= 0 && len(a.operands[1][w.kernel]) > 0 && len(a.rule.Operands[0][w.in]) == 1
}

// windowsOrKernel removes the axes of the kernel's factor in each dimension in
// which those of the windows have some: op is sharded along one of the two.
func windowsOrKernel(op *ir.Op, rule *ir.Factors, factors [][]ir.AxisRef) {
	row := windowRowOf(op)
	if row == nil || op.Kind != ir.Convolution {
		return
	}
	for _, w := range row.dims(op) {
		if ks := rule.Operands[0][w.in]; len(ks) == 1 && len(factors[ks[0]]) > 0 {
			factors[rule.Operands[1][w.kernel][0]] = nil
		}
	}
}

// A reading is the section of an operand that each device needs for its shard of
// the result, or of the kernel. Where the windows of different shards begin at
// different places between the elements of the dilated operand, phased is set: a
// device takes the elements around its windows, dilates them, and slices span
// elements of that.
type reading struct {
	section
	phased bool
	span   int
	window ir.Window // of the section
}

// reading is what op, computed as a says, needs of the operands along w; false
// where that is their shards.
func (p *program) reading(op *ir.Op, a *assignment, w *windowDim) (reading, bool) {
	count := p.local(op.Results[0].Type, a.results[0]).Shape[w.out]
	switch {
	case w.moves(a):
		return w.reading(a.results[0][w.out], count*w.Stride, 0, (count-1)*w.Stride+w.Reach(), w.Size), true
	case w.sums(a):
		axes := a.operands[1][w.kernel]
		part := w.Size / p.mesh.RefsSize(axes)
		step, first := part*w.Dilation, 0
		if w.Reversed {
			step, first = -step, (w.Size-part)*w.Dilation
		}
		return w.reading(axes, step, first, (count-1)*w.Stride+(part-1)*w.Dilation+1, part), true
	}
	return reading{}, false
}

// reading is the elements first to first+span, and step further on for each
// device along axes, of the padded and dilated operand, with windows of some
// size in it.
func (w *windowDim) reading(axes []ir.AxisRef, step, first, span, size int) reading {
	r := reading{window: w.Window, span: span}
	r.window.Size = size
	if step%w.Base == 0 {
		from, to := -floorDiv(w.Low-first, w.Base), floorDiv(first+span-1-w.Low, w.Base)
		if from <= to {
			r.section = section{axes: axes, mul: step / w.Base, add: from, div: 1, size: to - from + 1}
			r.window.Low = from*w.Base + w.Low - first
			r.window.High = span - r.window.Low - ((r.size-1)*w.Base + 1)
			return r
		}
	}
	r.phased = true
	r.section = section{axes: axes, mul: step, add: first - w.Low, div: w.Base, size: (w.Base+span-2)/w.Base + 1}
	r.window.Low, r.window.High, r.window.Base = 0, 0, 1
	return r
}

// placeWindows gives the operands that op moves windows over the layouts in which
// the fewest bytes move for their sections.
func (p *chooser) placeWindows(op *ir.Op, a *assignment) {
	row := windowRowOf(op)
	for _, w := range row.dims(op) {
		r, ok := p.reading(op, a, &w)
		if !ok {
			continue
		}
		exchanged, bytes := *a, 0
		for i := range row.over(op) {
			bytes += p.placeSection(op, &exchanged, i, w.in, r.section)
		}
		if p.scans(op, &w) && p.placeScan(op, a, &w, bytes) {
			continue
		}
		*a = exchanged
	}
}

// placeSection gives operand i of op the layout in which the fewest bytes move for
// a section of its dimension d, and returns these.
func (p *chooser) placeSection(op *ir.Op, a *assignment, i, d int, s section) int {
	v := op.Operands[i]
	at, halo, bytes := p.source(v, a.operands[i], d, s)
	a.operands = slices.Clone(a.operands)
	a.operands[i] = at
	a.bytes += bytes - p.bytesTo(v, at)
	a.halos = append(slices.Clip(a.halos), windowHalo{operand: i, dim: d, halo: halo})
	return bytes
}

// A windowHalo is how to get the sections of a dimension of an operand; the halo
// is nil where it is unsharded, or where the op is computed by a scan.
type windowHalo struct {
	operand, dim int
	halo         *halo
	scan         bool
}

// windowHalos are the halos of the windows of op, whose layouts are as a says.
func windowHalos(p *program, op *ir.Op, a *assignment) []windowHalo {
	var out []windowHalo
	row := windowRowOf(op)
	for _, w := range row.dims(op) {
		r, ok := p.reading(op, a, &w)
		if !ok {
			continue
		}
		if p.scans(op, &w) && p.scansStated(op, a, &w, r.section) {
			for i := range op.Results {
				out = append(out, windowHalo{operand: i, dim: w.in, scan: true})
			}
			continue
		}
		for i := range row.over(op) {
			out = append(out, windowHalo{operand: i, dim: w.in, halo: p.statedHalo(r.section, op.Operands[i], w.in)})
		}
	}
	return out
}

// emitWindows computes op, which moves windows, on sections.
func (p *localizer) emitWindows(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	row := windowRowOf(op)
	ws, types := row.dims(op), p.shardTypes(op, a)
	in = p.windowSections(op, a, ws, in)
	if slices.ContainsFunc(a.halos, func(h windowHalo) bool { return h.scan }) {
		return p.emitScan(op, a, ws, in)
	}
	return p.emitTyped(op, in, row.attrs(op, in, types[0], ws), types)
}

// windowSections is the sections of the operands of op, and makes ws the windows
// of these.
func (p *localizer) windowSections(op *ir.Op, a *assignment, ws []windowDim, in []*ir.Value) []*ir.Value {
	row, in := windowRowOf(op), slices.Clone(in)
	for k := range ws {
		w := &ws[k]
		r, ok := p.reading(op, a, w)
		if !ok || a.haloOf(0, w.in).scan {
			continue
		}
		for i := range row.over(op) {
			var fill *ir.Value
			if k := row.fill(op, i); k >= 0 && !isZero(op.Operands[k]) {
				fill = in[k]
			}
			in[i] = p.read(r, a.haloOf(i, w.in).halo, in[i], w.in, fill)
		}
		w.Window = r.window
	}
	return in
}

// haloOf is how a gets the sections of a dimension of an operand.
func (a *assignment) haloOf(operand, dim int) windowHalo {
	i := slices.IndexFunc(a.halos, func(h windowHalo) bool { return h.operand == operand && h.dim == dim })
	return a.halos[i]
}

// read is what r needs of dimension d of x.
func (p *localizer) read(r reading, h *halo, x *ir.Value, d int, fill *ir.Value) *ir.Value {
	x = p.section(r.section, h, x, d, fill)
	if !r.phased {
		return x
	}
	b := &p.build
	none := make([]int, x.Type.Rank())
	high, interior := slices.Clone(none), slices.Clone(none)
	interior[d] = r.div - 1
	high[d] = max(0, r.div-1+r.span-((r.size-1)*r.div+1))
	if fill == nil {
		fill = b.Splat(ir.Tensor(x.Type.Elem), 0)
	}
	x = b.Pad(x, fill, none, high, interior)
	first := r.add - floorDiv(r.add, r.div)*r.div
	phase := b.Binary(ir.Remainder, addInt(b, b.Mul(p.coord(r.axes), b.I32((r.mul%r.div+r.div)%r.div)), first), b.I32(r.div))
	return p.sliceAt(x, d, phase, r.span)
}
