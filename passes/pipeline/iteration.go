package pipeline

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// An iteration builds the body of a pipeline's loop: what all stages do at
// iteration t.
type iteration struct {
	*loop
	b  *ir.Builder
	t  *ir.Value
	in map[string]*ir.Value // the loop state before the iteration

	stage *ir.Value // [S]: 0, 1, …
	micro *ir.Value // [S]: the microbatch that each stage works on
	rep   *ir.Value // [S]: the repeat that it is in; nil without repeats
	valid *ir.Value // [S]: false where the iteration is a bubble of the stage
}

// build returns the loop state after the iteration, by name, and the sums of
// the layers' scalars.
func (it *iteration) build(aux []*ir.Value) (map[string]*ir.Value, []*ir.Value) {
	skip := it.SkipBubbles && it.S > 1
	it.progress(len(aux) > 0 || it.trains() || skip)
	slot := it.mod(it.t, it.Held()).Named("slot")
	var args, ios []*ir.Value
	for k := range it.acts {
		io := it.b.Index(it.in[it.named("state_io", k)], 1, slot).Named(it.named("io", k))
		ios = append(ios, io)
		args = append(args, it.real(it.inputs(k, io)))
	}
	for _, s := range it.sides {
		v := it.side(s)
		if it.staged(s) {
			v = it.real(v)
		}
		args = append(args, v)
	}
	out := slices.Clone(it.compute(args))
	next := make(map[string]*ir.Value)
	for k, io := range ios {
		if skip {
			out[k] = it.skipped(k, out[k])
		}
		it.rotate(next, k, out[k].Named(it.named("out", k)), io, slot)
	}
	return next, it.sum(aux, out[it.acts:])
}

// mod is v mod n, for v >= 0.
func (it *iteration) mod(v *ir.Value, n int) *ir.Value {
	if n == 1 {
		return it.b.Splat(v.Type, 0)
	}
	return it.b.Binary(ir.Remainder, v, it.b.Splat(v.Type, float64(n)))
}

// progress computes where each stage is: stage s has worked for p = max(t - D*s, 0)
// iterations, works on microbatch p % N in repeat p / N, and is in a bubble when t
// < D*s, p % N >= M or p >= N*(R-1) + M.
func (it *iteration) progress(needValid bool) {
	b := it.b
	t := ir.Tensor(ir.I32, it.S)
	it.stage = b.Iota(t, 0).Named("stage")
	now := b.Broadcast(it.t, []int{it.S})
	lead := b.Sub(now, b.Mul(it.stage, b.Splat(t, float64(it.D))))
	p := b.Binary(ir.Maximum, lead, b.Splat(t, 0))
	if slices.ContainsFunc(it.sides, func(s side) bool { return s.split }) {
		it.micro = it.turn(p)
		if it.Round() > it.M {
			it.micro = b.Binary(ir.Minimum, it.micro, b.Splat(t, float64(it.M-1)))
		}
		it.micro = it.micro.Named("microbatch")
	}
	if it.R > 1 {
		it.rep = b.Binary(ir.Minimum, b.Div(p, b.Splat(t, float64(it.Round()))), b.Splat(t, float64(it.R-1))).Named("repeat")
	}
	if needValid {
		started := b.Compare("GE", lead, b.Splat(t, 0))
		if it.Round() > it.M {
			started = b.Binary(ir.And, started, b.Compare("LT", it.turn(p), b.Splat(t, float64(it.M))))
		}
		end := it.Round()*(it.R-1) + it.M
		it.valid = b.Binary(ir.And, started, b.Compare("LT", lead, b.Splat(t, float64(end)))).Named("valid")
	}
}

// turn is p mod N, the iteration within a repeat; the first M have a microbatch.
func (it *iteration) turn(p *ir.Value) *ir.Value { return it.mod(p, it.Round()) }

// where selects x for the stages at which [S] pred holds, y elsewhere.
func (it *iteration) where(pred, x, y *ir.Value) *ir.Value {
	return it.b.Select(it.b.Broadcast(pred, x.Type.Shape, 0), x, y)
}

// trains reports whether the program is going to be differentiated.
func (l *loop) trains() bool { return l.m.Attrs.Has(ir.KeyGradient) }

// staged reports whether a side input has a stage dimension: if each stage takes
// its own microbatch of it, or if it is shared and has a cotangent, so that the
// contributions of bubbles to that can be masked by stage.
func (l *loop) staged(s side) bool { return s.split || l.trains() && s.v.Type.Elem.IsFloat() }

// real is v, which has a stage dimension, with a cotangent only from the stages
// that are not in a bubble; for the others the value passes through stop_gradient.
// So no infinity or NaN that a bubble computes from don't-care inputs reaches the
// cotangent of a weight or another stage.
func (it *iteration) real(v *ir.Value) *ir.Value { return it.cotangentWhere(it.valid, v) }

// cotangentWhere is v with a cotangent only from the stages at which [S] pred holds.
func (it *iteration) cotangentWhere(pred, v *ir.Value) *ir.Value {
	if !it.trains() || !v.Type.Elem.IsFloat() {
		return v
	}
	stopped := it.b.Emit(ir.PPName, []*ir.Value{v}, ir.AttrsOf(facts.Named("name", ir.Str("")), facts.Named(ir.KeyStopGradient, ir.Unit{})), nil, nil).Results[0]
	stopped.Sharding = v.Sharding
	out := it.where(pred, v, stopped).Named(v.Name)
	out.Sharding = v.Sharding
	return out
}

// skipped is v, activation k as all stages return it, with zeros for the stages in a bubble.
func (it *iteration) skipped(k int, v *ir.Value) *ir.Value {
	none := it.b.Broadcast(it.b.Splat(ir.Tensor(v.Type.Elem), 0), v.Type.Shape)
	none.Def.Attrs.Set(ir.KeyDontCare, ir.Unit{})
	out := it.where(it.valid, v, none)
	out.Def.Attrs.Set(ir.KeyBubble, ir.Unit{})
	if s := it.layer.Params()[k].Sharding; s != nil {
		out.Sharding = s.Prepend(it.stageAxes()...)
	}
	return out
}

// inputs is activation k as the stages work on it: stage 0 takes the next input
// microbatch while there is one, then the output of the last stage for the next
// repeat; every other stage takes the output of the stage before.
func (it *iteration) inputs(k int, io *ir.Value) *ir.Value {
	b := it.b
	first := io
	if it.R > 1 {
		back := it.in[it.named("shift", k)]
		if it.Storage() {
			back = b.Index(it.in[it.named("circ_storage", k)], 1, it.mod(it.t, it.M)).Named("circ")
		}
		fresh := b.Compare("LT", it.t, b.I32(it.M))
		first = b.Select(fresh, io, back)
	}
	isFirst := b.Compare("EQ", it.stage, b.Splat(it.stage.Type, 0))
	x := it.where(isFirst, first, it.in[it.named("shift", k)]).Named(it.named("stages_in", k))
	if s := it.layer.Params()[k].Sharding; s != nil {
		x = b.Constrain(x, s.Prepend(it.loop.stageAxes()...))
	}
	name := b.Emit(ir.PPName, []*ir.Value{x}, ir.AttrsOf(facts.Named("name", ir.Str("iteration_input"))), nil, nil).Results[0]
	return name.Named(it.named("stages_in", k))
}

func (l *loop) stageAxes() []ir.AxisRef { return l.schedule.stage }

// toStages broadcasts v, which all stages share, along a stage dimension.
func (it *iteration) toStages(v *ir.Value) *ir.Value {
	dims := make([]int, v.Type.Rank())
	for d := range dims {
		dims[d] = d + 1
	}
	out := it.b.Broadcast(v, append([]int{it.S}, v.Type.Shape...), dims...).Named(v.Name)
	if v.Sharding != nil {
		out.Sharding = v.Sharding.Prepend(it.stageAxes()...)
	}
	return out
}

// side is the slice of a side input for the microbatch that each stage works on.
func (it *iteration) side(s side) *ir.Value {
	switch {
	case !it.staged(s):
		return s.v
	case !s.split:
		return it.toStages(s.v)
	}
	return rowsOf(it.b, s.v, it.micro).Named(s.v.Name)
}

// rowsOf takes row index[s] of v, which is [n, …], for each stage s. The result is
// [S, …].
func rowsOf(b *ir.Builder, v, index *ir.Value) *ir.Value {
	g := ir.GatherDims{CollapsedSliceDims: []int{0}, StartIndexMap: []int{0}, IndexVectorDim: 1}
	return gatherRows(b, v, b.Reshape(index, index.Type.Shape[0], 1), g)
}

// ownRowsOf is rowsOf where each stage has rows of its own: v is [n, S, …].
func ownRowsOf(b *ir.Builder, v, index *ir.Value) *ir.Value {
	g := ir.GatherDims{CollapsedSliceDims: []int{0}, StartIndexMap: []int{0}, OperandBatchingDims: []int{1}, StartIndicesBatchingDims: []int{0}, IndexVectorDim: 1}
	return gatherRows(b, v, b.Reshape(index, index.Type.Shape[0], 1), g)
}

// gatherRows gathers from v at index, along the collapsed and batching dimensions
// of g; the slices have all of the other dimensions.
func gatherRows(b *ir.Builder, v, index *ir.Value, g ir.GatherDims) *ir.Value {
	sizes := slices.Clone(v.Type.Shape)
	for d := range sizes {
		if slices.Contains(g.CollapsedSliceDims, d) || slices.Contains(g.OperandBatchingDims, d) {
			sizes[d] = 1
		} else {
			g.OffsetDims = append(g.OffsetDims, len(g.OffsetDims)+1)
		}
	}
	attrs := ir.AttrsOf(facts.Named("dimension_numbers", g), facts.Named("slice_sizes", ir.Ints(sizes)))
	return b.Emit(ir.Gather, []*ir.Value{v, index}, attrs, nil, nil).Results[0]
}

// compute runs the L layers of every stage. With several, they are a loop over
// positions whose body is one layer of all stages. Weights that are all-gathered in
// every iteration are sliced and gathered in that loop: one layer is gathered at a
// time, and its gradient is accumulated into that of all layers in place. With
// skip_bubbles they are sliced before the loop: the backward loop then has no
// results but the weights' cotangents, so that it can be skipped.
func (it *iteration) compute(args []*ir.Value) []*ir.Value {
	if it.L == 1 {
		return it.call(args, it.chosen(it.used, it.ofRepeat), nil)
	}
	body := new(ir.Block)
	in := *it
	in.b = it.b.In(body)
	pos := it.f.NewArg(body, ir.Tensor(ir.I32), "position")
	var ws []*ir.Value
	if it.Gather == "per_iteration" && !it.SkipBubbles {
		ws = in.chosen(it.used, func(w *ir.Value) *ir.Value { return in.ofLayer(w, pos) })
	} else {
		all := it.chosen(func(s *ir.Sharding) *ir.Sharding { return it.used(s.Prepend()) }, it.ofRepeat)
		for _, w := range all {
			ws = append(ws, in.b.Index(w, 1, pos).Named(w.Name))
		}
	}
	init := slices.Clone(args[:it.acts])
	var inner, sums []*ir.Value
	for k, x := range init {
		name := "x"
		if k > 0 {
			name = it.layer.Params()[k].Name
		}
		inner = append(inner, it.f.NewArg(body, x.Type, name))
	}
	inner = append(inner, args[it.acts:]...)
	for _, r := range it.stages.Results[it.acts:] {
		init = append(init, it.b.Splat(r.Type, 0))
		sums = append(sums, it.f.NewArg(body, r.Type, "aux"))
	}
	out := in.call(inner, ws, pos)
	for i := range sums {
		out[it.acts+i] = in.b.Add(sums[i], out[it.acts+i])
	}
	in.b.Emit(ir.PPYield, out, nil, nil, nil)
	attrs := ir.AttrsOf(facts.Named("carries", ir.I64Attr(len(init))), facts.Named("trip_count", ir.I64Attr(it.L)),
		facts.Named(ir.KeyLoop, ir.Str(ir.LoopLayers)), facts.Named(ir.KeyConfig, it.Dict()), facts.Named(ir.KeyUnroll, it.UnrollAttr(ir.LoopLayers, it.L)))
	return it.b.Emit(ir.PPScan, init, attrs, []*ir.Block{body}, nil).Results
}

// call runs the layer at position pos of every stage, nil where there is one. A place
// that lacks its layer hands on the activations, adds nothing to the scalars, and
// no cotangent goes into it.
func (it *iteration) call(args, weights []*ir.Value, pos *ir.Value) []*ir.Value {
	if it.lacking() == 0 {
		return slices.Clone(it.b.Call(it.stages, slices.Concat(args, weights)...))
	}
	b := it.b
	place := it.stage
	if it.R > 1 {
		place = b.Add(b.Mul(it.rep, b.Splat(it.rep.Type, float64(it.S))), place)
	}
	if pos != nil {
		place = b.Add(b.Mul(place, b.Splat(place.Type, float64(it.L))), b.Broadcast(pos, []int{it.S}))
	}
	there := b.Compare("LT", place, b.Splat(place.Type, float64(it.Pipelined))).Named("there")
	var in []*ir.Value
	for i, v := range slices.Concat(args, weights) {
		if i < it.acts || i >= len(args) || it.staged(it.sides[i-it.acts]) {
			v = it.cotangentWhere(there, v)
		}
		in = append(in, v)
	}
	out := slices.Clone(b.Call(it.stages, in...))
	for k := range out {
		if k < it.acts {
			out[k] = it.where(there, out[k], args[k])
			if s := it.layer.Params()[k].Sharding; s != nil {
				out[k].Sharding = s.Prepend(it.stageAxes()...)
			}
		} else {
			out[k] = b.Select(there, out[k], b.Splat(out[k].Type, 0))
		}
	}
	return out
}

// chosen is the weights of this iteration, which choose slices from those of all
// repeats, all-gathered where their storage is sharded. lift turns a sharding of a
// layer's weight into one of the slice.
func (it *iteration) chosen(lift func(*ir.Sharding) *ir.Sharding, choose func(w *ir.Value) *ir.Value) []*ir.Value {
	var ws []*ir.Value
	first := it.acts + len(it.sides)
	for i, w := range it.weights {
		leaf := it.layer.Params()[first+i]
		v := choose(w)
		if leaf.Sharding != nil {
			v.Sharding = lift(leaf.Sharding)
		}
		ws = append(ws, it.real(gathered(it.b, v, it.layer, leaf, lift, it.Gather, it.Config)))
	}
	return ws
}

// ofRepeat is the slice of w for the repeat that each stage is in: [S, (L,) …w].
func (it *iteration) ofRepeat(w *ir.Value) *ir.Value {
	if it.R == 1 {
		return w
	}
	return ownRowsOf(it.b, w, it.rep).Named(w.Name)
}

// ofLayer is the slice of w for the repeat that each stage is in, at position pos:
// [S, …w].
func (it *iteration) ofLayer(w, pos *ir.Value) *ir.Value {
	b := it.b
	if it.R == 1 {
		return b.Index(w, 1, pos).Named(w.Name)
	}
	index := b.Concat(1, b.Reshape(it.rep, it.S, 1), b.Broadcast(pos, []int{it.S, 1}))
	return gatherRows(b, w, index, ir.GatherDims{CollapsedSliceDims: []int{0, 2}, StartIndexMap: []int{0, 2}, IndexVectorDim: 1,
		OperandBatchingDims: []int{1}, StartIndicesBatchingDims: []int{0}}).Named(w.Name)
}

// used is the sharding of a layer's weight at its use by all stages: [S, …w].
func (it *iteration) used(leaf *ir.Sharding) *ir.Sharding { return leaf.Prepend(it.stageAxes()...) }

// rotate moves activation k, which the stages have computed as out: to the next
// stage, into the circular storage for the next repeat, and out of the pipeline.
func (it *iteration) rotate(next map[string]*ir.Value, k int, out, io, slot *ir.Value) {
	b := it.b
	of := func(buffer string) string { return it.named(buffer, k) }
	send := out
	if it.D == 2 {
		send = it.in[of("prev_outputs")]
		next[of("prev_outputs")] = out
	}
	edge := "zero"
	if it.R > 1 && !it.Storage() {
		edge = "wrap"
	}
	next[of("shift")] = it.move(k, edge, 1, send).Named(of("shift"))
	if it.Storage() {
		// The mover lags by one iteration, so that its transfer overlaps with
		// compute.
		arrived := it.move(k, "wrap", 1, it.in[of("circ_storage_mover")])
		lag := it.D*(it.S-1) + 1
		at := it.mod(b.Add(it.t, b.I32((it.M-lag%it.M)%it.M)), it.M)
		next[of("circ_storage")] = b.SetIndex(it.in[of("circ_storage")], 1, at, arrived)
		next[of("circ_storage_mover")] = out
	}
	stream := it.move(k, "fill", -1, io, out)
	next[of("state_io")] = b.SetIndex(it.in[of("state_io")], 1, slot, stream)
}

func (it *iteration) move(k int, edge string, shift int, vs ...*ir.Value) *ir.Value {
	attrs := ir.AttrsOf(facts.Named("shift", ir.I64Attr(shift)), facts.Named("edge", ir.Str(edge)), facts.Named("lowering", ir.Str(it.Rotate)))
	v := it.b.Emit(ir.PPRotate, vs, attrs, nil, nil).Results[0]
	if s := it.layer.Params()[k].Sharding; s != nil {
		v.Sharding = s.Prepend(it.stageAxes()...)
	}
	return v
}

// sum adds the auxiliary scalars of the stages that are not in a bubble.
func (it *iteration) sum(aux, out []*ir.Value) []*ir.Value {
	var sums []*ir.Value
	for i, v := range out {
		zero := it.b.Splat(v.Type, 0)
		kept := it.b.Select(it.valid, v, zero)
		total := it.b.Reduce(ir.Add, kept, it.b.Splat(ir.Tensor(v.Type.Elem), 0), 0)
		sums = append(sums, it.b.Add(aux[i], total).Named("aux"))
	}
	return sums
}
