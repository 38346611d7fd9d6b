package pipeline

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// A window is a loop over iterations about to become a loop over repeats: two
// buffers of each weight with sharded storage slide over the repeats, so that each
// repeat's weights are all-gathered once. Around a repeat boundary the later stages
// are still on the repeat before; they take their weights from the older buffer.
//
// N iterations make a repeat, of which the first D*(S-1) need both buffers.
type window struct {
	f       *ir.Func
	b       *ir.Builder // in place of the loop
	loop    *ir.Op
	config  facts.Config
	N, R, T int // iterations of a repeat, repeats, iterations of the loop
	cross   int // D*(S-1): iterations in which some stage is on the repeat before
	weights []windowed
	at      map[*ir.Op]int // the gathers in the body, to the weight of each
	choices map[*ir.Op]bool
}

// A windowed is a weight in the window.
type windowed struct {
	source   *ir.Value    // from outside of the loop: [R, S, …w]
	parts    *ir.Sharding // of one repeat's weights in storage
	gather   *ir.Op       // the pp.gather of the weight
	gathered *ir.Sharding // of the gathered weights
}

// window splits loop, whose body has gathers of the policy per_repeat, and returns
// the values that replace its results. It is an error if there is one repeat only,
// if loop does not have T iterations, or if a gathered weight is no slice of one
// with R rows.
//
// With prefetch = head a repeat's weights are gathered when it begins:
//
//	older := nobody looks at it
//	for r in 0..R-1   { newer := gather(r); D*(S-1) iterations on (older, newer); N - D*(S-1) iterations on newer; older := newer }
//	the iterations that are left on older: the drain
//
// A last repeat of fewer than N iterations, as with one microbatch and a delay of
// 2, follows the loop.
//
// The iterations that need both buffers are a loop of their own: the others read
// one weight and not two, and in the backward pass, where they come first, neither
// the older buffer nor its cotangents are live yet.
//
// With prefetch = ahead they are gathered beside those iterations of the repeat
// before in which all stages are on the same repeat, so one buffer is free:
//
//	older := gather(0); D*(S-1) iterations on older
//	for r in 0..R-2   { newer := gather(r+1) beside N - D*(S-1) iterations on older; D*(S-1) iterations on (older, newer); older := newer }
//	M iterations on older, the drain among them
func (p *gatherPlacer) window(b *ir.Builder, loop *ir.Op) ([]*ir.Value, error) {
	w, err := newWindow(p.f, b, loop)
	if err != nil {
		return nil, err
	}
	if w.config.Prefetch == "ahead" {
		return w.ahead(), nil
	}
	return w.head(), nil
}

func newWindow(f *ir.Func, b *ir.Builder, loop *ir.Op) (*window, error) {
	w := repeatsOf(f, b, loop)
	w.at, w.choices = make(map[*ir.Op]int), make(map[*ir.Op]bool)
	switch {
	case w.R < 2:
		return nil, pass.Errorf(loop, "pipeline: gather = per_repeat with repeats = %d: there is a window to slide with 2 or more; use once", w.R)
	case loop.Int("trip_count") != w.T || loop.Int("carries") != len(loop.Results) || loop.Bool("reverse"):
		return nil, pass.Errorf(loop, "pipeline: gather = per_repeat in a loop that is not one of %d iterations", w.T)
	}
	local := facts.DefinedIn(loop.Regions[0])
	for _, op := range loop.Regions[0].Ops {
		if !perRepeat(op) {
			continue
		}
		choice := op.Operands[0].Def
		if choice == nil || choice.Kind != ir.Gather || local[choice.Operands[0]] || choice.Operands[0].Type.Shape[0] != w.R {
			return nil, pass.Errorf(op, "pipeline: gather = per_repeat of a weight that is not chosen by repeat among %d", w.R)
		}
		w.at[op] = len(w.weights)
		w.choices[choice] = true
		w.weights = append(w.weights, windowed{source: choice.Operands[0], parts: choice.Result().Sharding, gather: op, gathered: op.Attrs.Get("sharding").(*ir.Sharding)})
	}
	return w, nil
}

// repeatsOf is the repeats of a loop over iterations, without weights.
func repeatsOf(f *ir.Func, b *ir.Builder, loop *ir.Op) *window {
	c := facts.ConfigOf(loop)
	return &window{f: f, b: b, loop: loop, config: c, N: c.Round(), R: c.R, T: c.Iterations(), cross: c.D * (c.S - 1)}
}

// full is how many repeats have all their N iterations: all R, or all but the
// last.
func (w *window) full() int { return w.T / w.N }

func perRepeat(op *ir.Op) bool {
	return op.Kind == ir.PPGather && op.Attrs.Str("policy") == "per_repeat"
}

// head is the window whose newer buffer is filled when its repeat begins.
func (w *window) head() []*ir.Value {
	var older []*ir.Value
	for _, x := range w.weights { // the older buffer is not read in the first repeat
		t := x.gather.Result().Type
		v := w.b.Broadcast(w.b.Splat(ir.Tensor(t.Elem), 0), t.Shape)
		v.Def.Attrs.Set(ir.KeyDontCare, ir.Unit{})
		older = append(older, w.b.Constrain(v, x.gathered))
	}
	repeat := func(n int) func(b *ir.Builder, r *ir.Value, state, older []*ir.Value) (next, newer []*ir.Value) {
		return func(b *ir.Builder, r *ir.Value, state, older []*ir.Value) (next, newer []*ir.Value) {
			newer = w.gather(b, r)
			first := b.Mul(r, b.I32(w.N))
			state = w.iterations(b, w.cross, first, state, &pair{older, newer, r})
			return w.iterations(b, n-w.cross, b.Add(first, b.I32(w.cross)), state, &pair{newer: newer}), newer
		}
	}
	state, older := w.repeats(w.full(), w.loop.Operands, older, repeat(w.N))
	rest := w.T - w.N*w.full()
	if w.full() < w.R {
		state, _ = repeat(rest)(w.b, w.b.I32(w.full()), state, older)
		return state
	}
	return w.iterations(w.b, rest, w.b.I32(w.N*w.R), state, &pair{newer: older})
}

// ahead is the window whose newer buffer is filled during the repeat before.
func (w *window) ahead() []*ir.Value {
	older := w.gather(w.b, w.b.I32(0))
	state := w.iterations(w.b, w.cross, w.b.I32(0), w.loop.Operands, &pair{newer: older})
	state, older = w.repeats(w.R-1, state, older, func(b *ir.Builder, r *ir.Value, state, older []*ir.Value) (next, newer []*ir.Value) {
		following := b.Add(r, b.I32(1))
		newer = w.gather(b, following)
		boundary := b.Mul(following, b.I32(w.N))
		first := b.Add(b.Mul(r, b.I32(w.N)), b.I32(w.cross))
		state = w.iterations(b, w.N-w.cross, first, state, &pair{newer: older})
		return w.iterations(b, w.cross, boundary, state, &pair{older, newer, following}), newer
	})
	done := w.N*(w.R-1) + w.cross
	return w.iterations(w.b, w.T-done, w.b.I32(done), state, &pair{newer: older})
}

// repeats builds the loop over n repeats that carries the loop state and the
// older buffers; body returns the state after a repeat and the newer buffers.
func (w *window) repeats(n int, state, older []*ir.Value, body func(b *ir.Builder, r *ir.Value, state, older []*ir.Value) (next, newer []*ir.Value)) (after, last []*ir.Value) {
	block := new(ir.Block)
	in := w.b.In(block)
	r := w.f.NewArg(block, ir.Tensor(ir.I32), "r")
	var args, buffers []*ir.Value
	for i, v := range state {
		args = append(args, w.f.NewArg(block, v.Type, w.loop.Results[i].Name))
	}
	for i, v := range older {
		buffers = append(buffers, w.f.NewArg(block, v.Type, w.weights[i].source.Name))
		buffers[i].Sharding = w.weights[i].gathered
	}
	next, newer := body(in, r, args, buffers)
	in.Emit(ir.PPYield, append(slices.Clone(next), newer...), nil, nil, nil)
	init := append(slices.Clone(state), older...)
	attrs := ir.AttrsOf(facts.Named("carries", ir.I64Attr(len(init))), facts.Named("trip_count", ir.I64Attr(n)),
		facts.Named(ir.KeyLoop, ir.Str(ir.LoopRepeats)), facts.Named(ir.KeyConfig, w.config.Dict()), facts.Named(ir.KeyUnroll, w.config.UnrollAttr(ir.LoopRepeats, n)))
	scan := w.b.Emit(ir.PPScan, init, attrs, []*ir.Block{block}, nil)
	for i, v := range scan.Results {
		v.Name = block.Args[1+i].Name
	}
	return scan.Results[:len(state)], scan.Results[len(state):]
}

// gather all-gathers the weights of repeat r, for every stage.
func (w *window) gather(b *ir.Builder, r *ir.Value) []*ir.Value {
	var out []*ir.Value
	var ids *ir.Value
	if w.config.Compat == "maxtext_prefetch" {
		ids = w.early(b, r)
	}
	for _, x := range w.weights {
		var v *ir.Value
		if ids != nil && !x.gathered.SameLayout(x.parts) {
			v = ownRowsOf(b.At(x.gather.Origin), x.source, ids)
		} else {
			v = b.At(x.gather.Origin).Index(x.source, 0, r)
		}
		v.Name, v.Sharding = x.source.Name, x.parts
		g := b.At(x.gather.Origin).Emit(ir.PPGather, []*ir.Value{v}, rewrite.AttrsWith(x.gather), nil, nil)
		g.Attrs.Delete("policy")
		if w.config.SaveGathered {
			g.Attrs.Set(ir.KeySave, ir.Unit{})
		}
		out = append(out, g.Result().Named(x.source.Name))
	}
	return out
}

// early is the repeat of each stage that MaxText computes when repeat r begins: the
// one that the stage is in one iteration later, at which the stages from the third
// on are still in the repeat before. They never get the last repeat's weights.
func (w *window) early(b *ir.Builder, r *ir.Value) *ir.Value {
	c := w.config
	t := ir.Tensor(ir.I32, c.S)
	now := b.Broadcast(b.Add(b.Mul(r, b.I32(w.N)), b.I32(1)), t.Shape)
	lead := b.Sub(now, b.Mul(b.Iota(t, 0), b.Splat(t, float64(c.D))))
	repeat := b.Div(b.Binary(ir.Maximum, lead, b.Splat(t, 0)), b.Splat(t, float64(w.N)))
	return b.Binary(ir.Minimum, repeat, b.Broadcast(r, t.Shape)) // one iteration may be a repeat
}

// A pair is the window during some iterations: the stages on repeat r take
// newer, the others older. Without older every stage takes newer.
type pair struct {
	older, newer []*ir.Value
	r            *ir.Value
}

// choose is weight k for each stage; repeat is [S, 1], the repeat that each of them
// is in.
func (w *window) choose(b *ir.Builder, k int, p *pair, repeat *ir.Value) *ir.Value {
	v := p.newer[k]
	if p.older == nil {
		return v
	}
	stages := repeat.Type.Shape[0]
	on := b.Compare("EQ", b.Reshape(repeat, stages), b.Broadcast(p.r, []int{stages}))
	out := b.Select(b.Broadcast(on, v.Type.Shape, 0), v, p.older[k]).Named(v.Name)
	out.Sharding = w.weights[k].gathered
	return out
}

// iterations builds the loop over n iterations from first on, with the weights of
// the pair, and returns the state after them.
func (w *window) iterations(b *ir.Builder, n int, first *ir.Value, state []*ir.Value, p *pair) []*ir.Value {
	if n == 0 {
		return state
	}
	body := w.loop.Regions[0]
	block := new(ir.Block)
	in := b.In(block)
	i := w.f.NewArg(block, ir.Tensor(ir.I32), "i")
	sub := make(map[*ir.Value]*ir.Value)
	for _, a := range body.Args[1:] {
		sub[a] = w.f.NewArg(block, a.Type, a.Name)
	}
	sub[body.Args[0]] = in.Add(first, i).Named(body.Args[0].Name)
	for _, op := range body.Ops {
		in.Origin = op.Origin
		if k, ok := w.at[op]; ok {
			sub[op.Result()] = w.choose(in, k, p, sub[op.Operands[0].Def.Operands[1]])
		} else if !w.choices[op] {
			block.Ops = append(block.Ops, w.f.CopyOp(op, sub))
		}
	}
	attrs := w.loop.Attrs
	attrs.Set("trip_count", ir.I64Attr(n))
	attrs.Delete(ir.KeyUnroll)
	if a := w.config.UnrollAttr(ir.LoopIterations, n); a != nil {
		attrs.Set(ir.KeyUnroll, a)
	}
	scan := b.Emit(ir.PPScan, state, attrs, []*ir.Block{block}, nil)
	for k, v := range scan.Results {
		v.Name = w.loop.Results[k].Name
	}
	return scan.Results
}
