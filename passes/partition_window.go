package passes

import (
	"slices"

	"ppc/ir"
)

// A dimension that an op moves windows along may be cut: each device takes, of
// its neighbours, what the windows of its part of the result reach into, and
// then moves its windows over that. Slices with strides and pads between
// elements are such ops too, with windows of one element.

// A windowDim is a dimension along which an op moves windows: of its operands
// and of its results.
type windowDim struct {
	in, out int
	ir.Window
}

// A windowOp is how an op that moves windows is partitioned.
type windowOp struct {
	dims  func(op *ir.Op) []windowDim
	whole func(op *ir.Op) int        // so many operands, the first ones, are moved over
	fill  func(op *ir.Op, i int) int // the operand that stands around operand i; -1 for zeros
	// attrs are the attributes of op over operands in, on which the windows lie
	// as ws say, with a result of type out.
	attrs func(op *ir.Op, in []*ir.Value, out *ir.Type, ws []windowDim) ir.Attrs
}

// windowOps has a row for every op that moves windows.
var windowOps = map[ir.Kind]windowOp{
	ir.Convolution: {
		dims: func(op *ir.Op) []windowDim {
			d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
			ws := make([]windowDim, len(d.Input.Spatial))
			for i, w := range op.Windows() {
				ws[i] = windowDim{d.Input.Spatial[i], d.Output.Spatial[i], w}
			}
			return ws
		},
		whole: func(*ir.Op) int { return 1 },
		fill:  func(*ir.Op, int) int { return -1 },
		attrs: partConvolution,
	},
	ir.ReduceWindow: {
		dims: func(op *ir.Op) []windowDim {
			var ws []windowDim
			for d, w := range op.Windows() {
				ws = append(ws, windowDim{d, d, w})
			}
			return ws
		},
		whole: func(op *ir.Op) int { return len(op.Results) },
		fill:  func(op *ir.Op, i int) int { return len(op.Results) + i },
		attrs: paddedWindows,
	},
	ir.Slice: {
		dims: func(op *ir.Op) []windowDim {
			start, limit, strides := op.Ints("start_indices"), op.Ints("limit_indices"), op.Ints("strides")
			var ws []windowDim
			for d, n := range op.Operands[0].Type.Shape {
				ws = append(ws, windowDim{d, d, ir.Window{Size: 1, Stride: strides[d], Low: -start[d], High: limit[d] - n, Base: 1, Dilation: 1}})
			}
			return ws
		},
		whole: func(*ir.Op) int { return 1 },
		fill:  func(*ir.Op, int) int { return -1 },
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
				ws = append(ws, windowDim{d, d, ir.Window{Size: 1, Stride: 1, Low: low[d], High: high[d], Base: interior[d] + 1, Dilation: 1}})
			}
			return ws
		},
		whole: func(*ir.Op) int { return 1 },
		fill:  func(*ir.Op, int) int { return 1 },
		attrs: func(op *ir.Op, in []*ir.Value, _ *ir.Type, ws []windowDim) ir.Attrs {
			low, high := make(ir.Ints, len(ws)), make(ir.Ints, len(ws))
			for d, w := range ws {
				low[d], high[d] = w.Low, w.High
			}
			return with(with(op.Attrs, "edge_padding_low", low), "edge_padding_high", high)
		},
	},
}

func paddedWindows(op *ir.Op, _ []*ir.Value, _ *ir.Type, ws []windowDim) ir.Attrs {
	low, high := make([]int, len(ws)), make([]int, len(ws))
	some := op.Attrs.Has("padding")
	for i, w := range ws {
		low[i], high[i] = w.Low, w.High
		some = some || w.Low != 0 || w.High != 0
	}
	if !some {
		return op.Attrs
	}
	return with(op.Attrs, "padding", paddingAttr(low, high))
}

// partConvolution: a device that has parts of the groups has fewer of them, and
// of windows that lie side by side it may have a part of each.
func partConvolution(op *ir.Op, in []*ir.Value, out *ir.Type, ws []windowDim) ir.Attrs {
	d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	attrs := paddedWindows(op, in, out, ws)
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

// A span is what each device needs of a dimension that is cut in n parts: its
// elements first + c*step to first + c*step + length, where c is the device's
// coordinate. What is outside of the dimension is filling.
type span struct {
	size, n, part       int // of the dimension
	first, step, length int
}

// cutWindow is what each of n devices needs of a dimension of size in to have
// its part of a result of size out, and the windows that it moves over that.
// It reports false where that is not the same for all devices.
//
// The windows of device c begin at c*part*stride - low of the operand as it is
// dilated, and so at the same distance after one of the operand's elements if
// part*stride is a number of elements.
func cutWindow(w ir.Window, in, out, n int) (span, ir.Window, bool) {
	if in == 0 || out == 0 || w.Size < 1 || in%n != 0 || out%n != 0 || out/n*w.Stride%w.Base != 0 {
		return span{}, w, false
	}
	part := out / n
	s := span{size: in, n: n, part: in / n, first: floorDiv(-w.Low, w.Base), step: part * w.Stride / w.Base}
	w.Low += s.first * w.Base
	covered := (part-1)*w.Stride + w.Reach() - w.Low // from the first element on
	s.length = floorDiv(covered-1, w.Base) + 1
	w.High = covered - (s.length-1)*w.Base - 1
	return s, w, true
}

// uniform reports whether every device needs the same of its neighbours.
func (s span) uniform() bool { return s.step == s.part }

// reach is how many parts further on the first and the last part stand that any
// device needs. Between the devices that need only elements which are there,
// the distances grow or shrink steadily.
func (s span) reach() (first, last int) {
	started := false
	at := func(c int) {
		if c < 0 || c >= s.n {
			return
		}
		lo, hi := s.first+c*s.step, s.first+c*s.step+s.length-1
		if hi < 0 || lo >= s.size {
			return
		}
		a, b := floorDiv(max(lo, 0), s.part)-c, floorDiv(min(hi, s.size-1), s.part)-c
		if !started {
			first, last, started = a, b, true
		}
		first, last = min(first, a), max(last, b)
	}
	inside, outside := floorDiv(-s.first, s.step), floorDiv(s.size-s.first-s.length, s.step)
	for _, c := range []int{0, inside, inside + 1, outside, outside + 1, s.n - 1} {
		at(c)
	}
	return first, last
}

// moved is how many elements each device gets of others, about.
func (s span) moved() int {
	first, last := s.reach()
	if !s.uniform() {
		return (last - first) * s.part
	}
	return max(0, -s.first) + max(0, s.first+s.length-s.part)
}

// hops is the number of permutes that it takes.
func (s span) hops() int {
	first, last := s.reach()
	return max(last, 0) - min(first, 0)
}

// cutSpan is what devices along axes need of operand 0 of op, and how they move
// windows over that, where factor k of its rule is cut along the axes; false
// where the factor is none of windows, or this takes more than gathering.
func (p *partitioner) cutSpan(op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) (span, windowDim, bool) {
	row, ok := windowOps[op.Kind]
	if !ok {
		return span{}, windowDim{}, false
	}
	for _, d := range row.dims(op) {
		if !slices.Equal(rule.Operands[0][d.in], []int{k}) || !slices.Equal(rule.Results[0][d.out], []int{k}) {
			continue
		}
		n := p.mesh.RefsSize(axes)
		s, w, ok := cutWindow(d.Window, op.Operands[0].Type.Shape[d.in], op.Results[0].Type.Shape[d.out], n)
		d.Window = w
		return s, d, ok && s.hops() <= min(maxHops, n-1)
	}
	return span{}, windowDim{}, false
}

// mayCutAlong reports whether op can be computed on parts of factor k along axes.
func (p *partitioner) mayCutAlong(op *ir.Op, rule *ir.Factors, k int, axes []ir.AxisRef) bool {
	if mayCut(op, rule.Types[k]) {
		return true
	}
	if rule.Types[k] != ir.Permutation {
		return false
	}
	if op.Kind == ir.SelectAndScatter {
		_, ok := p.cutScatter(op, rule, k, axes)
		return ok
	}
	_, _, ok := p.cutSpan(op, rule, k, axes)
	return ok
}

// spanBytes are the bytes that each device gets of others to compute op as a
// says.
func (p *partitioner) spanBytes(op *ir.Op, a *assignment) int {
	bytes := 0
	for k, axes := range a.factors {
		if len(axes) == 0 || a.rule.Types[k] != ir.Permutation {
			continue
		}
		get := func(i int, s span) {
			bytes += layoutBytes(p.mesh, op.Operands[i].Type, a.operands[i]) / s.part * s.moved()
		}
		if op.Kind == ir.SelectAndScatter {
			c, _ := p.cutScatter(op, a.rule, k, axes)
			get(0, c.operand)
			get(1, c.source)
		} else if s, _, ok := p.cutSpan(op, a.rule, k, axes); ok {
			for i := range windowOps[op.Kind].whole(op) {
				get(i, s)
			}
		}
	}
	return bytes
}

// emitWindows emits an op that moves windows, after what its operands need of
// the neighbours in dimensions that are cut.
func (p *partitioner) emitWindows(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	row := windowOps[op.Kind]
	in = slices.Clone(in)
	ws := row.dims(op)
	for k, axes := range a.factors {
		if len(axes) == 0 || a.rule.Types[k] != ir.Permutation {
			continue
		}
		s, cut, _ := p.cutSpan(op, a.rule, k, axes)
		for i := range row.whole(op) {
			var fill *ir.Value
			if f := row.fill(op, i); f >= 0 && !isZero(op.Operands[f]) {
				fill = in[f]
			}
			in[i] = p.span(in[i], cut.in, axes, s, fill)
		}
		for j := range ws {
			if ws[j].in == cut.in {
				ws[j] = cut
			}
		}
	}
	return p.emitAs(op, a, in, row.attrs(op, in, p.local(op.Results[0].Type, a.results[0]), ws))
}

// span is what s says of a tensor whose part x is: fill, or zeros if that is
// nil, stands outside of it.
func (p *partitioner) span(x *ir.Value, d int, axes []ir.AxisRef, s span, fill *ir.Value) *ir.Value {
	h := &halo{p: p, d: d, axes: axes, n: s.n, part: s.length}
	if s.uniform() {
		x = h.same(x, s)
	} else {
		x = h.shifting(x, s)
	}
	if fill == nil {
		return x
	}
	return h.filled(x, s, fill)
}

// same joins what every device needs of its neighbours, the same of each.
func (h *halo) same(x *ir.Value, s span) *ir.Value {
	var parts []*ir.Value
	for far := floorDiv(s.first, s.part); far*s.part < s.first+s.length; far++ {
		lo, hi := max(0, s.first-far*s.part), min(s.part, s.first+s.length-far*s.part)
		parts = append(parts, h.from(h.p.build.SliceDim(x, h.d, lo, hi), far, false))
	}
	return h.p.build.Concat(h.d, parts...)
}

// shifting cuts what this device needs out of the parts of all that any needs.
func (h *halo) shifting(x *ir.Value, s span) *ir.Value {
	b := &h.p.build
	first, last := s.reach()
	var parts []*ir.Value
	for far := first; far <= last; far++ {
		parts = append(parts, h.from(x, far, false))
	}
	// What device c needs begins at from + c*(step-part) of the joined parts.
	from, drift := s.first-first*s.part, (s.n-1)*(s.step-s.part)
	low := max(0, -from, -from-drift)
	high := max(0, max(from, from+drift)+s.length-(last-first+1)*s.part)
	all := h.padded(b.Concat(h.d, parts...), low, high)
	return h.sliceAt(all, b.Add(b.Mul(h.p.coord(h.axes), b.I32(s.step-s.part)), b.I32(from+low)))
}

// filled puts fill where x, which is as s says, is outside of its tensor.
func (h *halo) filled(x *ir.Value, s span, fill *ir.Value) *ir.Value {
	b := &h.p.build
	below, above := s.first < 0, s.first+(s.n-1)*s.step+s.length > s.size
	if !below && !above {
		return x
	}
	index := ir.Tensor(ir.I32, s.length)
	start := b.Add(b.Mul(h.p.coord(h.axes), b.I32(s.step)), b.I32(s.first))
	place := b.Add(b.Iota(index, 0), b.Broadcast(start, index.Shape))
	var inside *ir.Value
	if below {
		inside = b.Compare("GE", place, b.Splat(index, 0))
	}
	if above {
		under := b.Compare("LT", place, b.Splat(index, float64(s.size)))
		if inside != nil {
			under = b.Binary(ir.And, inside, under)
		}
		inside = under
	}
	return b.Select(b.Broadcast(inside, x.Type.Shape, h.d), x, b.Broadcast(fill, x.Type.Shape))
}
