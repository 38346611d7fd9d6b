package pipeline

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// StageSharding turns every pp.pipeline of main into a loop over iterations
// whose state is sharded over the mesh axis stage, and every pp.stack into a
// loop over layers.
//
// One iteration runs all stages, each on its own microbatch: the layer
// function mapped over a leading stage dimension. Names follow the
// mathematics: S stages, M microbatches, R repeats, L layers per stage and
// repeat, D iterations of forwarding delay, N iterations from one repeat of a
// stage to its next, m = M/S, rounded up, microbatches held by each stage's
// slice of the input and output buffer, b rows in one microbatch.
//
// Afterwards there are pp.scan loops marked with the configuration for the passes
// that follow, a pp.rotate for every move along the stage dimension, and a
// pp.gather at the use of each weight whose storage is sharded along axes that the
// use needs gathered.
func StageSharding(_ *pass.Context, m *ir.Module) error {
	for _, f := range slices.Clone(m.Funcs) {
		if f.Body == nil || f.Private {
			continue
		}
		if err := (&stager{m: m, f: f, mapped: make(map[string]*ir.Func)}).run(); err != nil {
			return err
		}
	}
	rewrite.DropUnused(m)
	for _, f := range m.Funcs {
		useGathered(f)
	}
	return nil
}

// useGathered gives the weights of a layer function the sharding of their use:
// callers all-gather them.
func useGathered(f *ir.Func) {
	if f.Body == nil {
		return
	}
	for _, p := range f.Params() {
		if g, ok := p.Attrs.Get(ir.KeyGathered).(*ir.Sharding); ok {
			p.Sharding = g
			p.Attrs.Delete(ir.KeyGathered)
		}
	}
}

// A stager lowers the pipelines and stacks of one function.
type stager struct {
	m      *ir.Module
	f      *ir.Func
	b      *ir.Builder
	sub    ir.Subst
	mapped map[string]*ir.Func // layer functions mapped over stages, by name

	params []*ir.Value // the parameters of the function afterwards
}

func (s *stager) run() error {
	ops := s.f.Body.Ops
	s.sub = s.f.NewSubst()
	s.params = slices.Clone(s.f.Params())
	body := new(ir.Block)
	s.b = &ir.Builder{Func: s.f, Block: body}
	for _, op := range ops {
		s.b.Origin = op.Origin
		s.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			s.sub.ApplyBlock(r)
		}
		var out []*ir.Value
		var err error
		switch op.Kind {
		case ir.PPPipeline:
			out, err = s.pipeline(op)
		case ir.PPStack:
			out, err = s.stackOp(op)
		default:
			body.Ops = append(body.Ops, op)
			continue
		}
		if err != nil {
			return err
		}
		for i, v := range op.Results {
			s.sub[v.ID] = out[i]
			out[i].Name = v.Name
			if out[i].Sharding == nil {
				out[i].Sharding = v.Sharding
			}
		}
	}
	body.Args = s.params
	for i, p := range body.Args {
		p.Block, p.Index = body, i
	}
	s.f.Body = body
	return nil
}

// A schedule is the configuration of one pipeline.
type schedule struct {
	facts.Config
	stage []ir.AxisRef // the stage dimension's axes: none without such a mesh axis
}

func (s *stager) schedule(op *ir.Op) (schedule, error) {
	c := schedule{Config: facts.ConfigOf(op)}
	switch pipelined := c.Pipelined; {
	case c.S < 1 || c.M < 1 || c.R < 1 || c.L < 1 || c.D < 1 || c.D > 2:
		return c, pass.Errorf(op, "pipeline: stages = %d, microbatches = %d, repeats = %d, layers_per_stage = %d, delay = %d: all at least 1, the delay 1 or 2", c.S, c.M, c.R, c.L, c.D)
	case c.S*c.R*c.L < pipelined || c.S*c.R*c.L-pipelined >= c.S*c.L || pipelined > op.Int("layers"):
		return c, pass.Errorf(op, "pipeline: %d stages x %d repeats x %d layers per stage do not make the %d layers in the pipeline (of %d)", c.S, c.R, c.L, pipelined, op.Int("layers"))
	}
	if len(s.m.Meshes) > 0 && s.m.Meshes[0].AxisSize(facts.StageAxis) > 1 {
		c.stage = ir.Axs(facts.StageAxis)
		if n := s.m.Meshes[0].AxisSize(facts.StageAxis); n != c.S {
			return c, pass.Errorf(op, "pipeline: %d stages on a mesh axis of size %d", c.S, n)
		}
	}
	if c.SkipBubbles && c.S > 1 {
		if len(c.stage) == 0 {
			return c, pass.Errorf(op, "pipeline: skip_bubbles = true with all %d stages on one device, which has work in every iteration; leave it out", c.S)
		}
		s.m.Attrs.Set(ir.KeySkipBubbles, ir.Unit{})
	}
	return c, nil
}

func (s *stager) pipeline(op *ir.Op) ([]*ir.Value, error) {
	c, err := s.schedule(op)
	if err != nil {
		return nil, err
	}
	layer := s.m.Func(op.Sym("layer"))
	if layer == nil {
		return nil, pass.Errorf(op, "there is no layer function @%s", op.Sym("layer"))
	}
	l := &loop{stager: s, schedule: c, op: op, layer: layer, acts: op.Activations()}
	out, err := l.lower()
	if err != nil {
		return nil, err
	}
	if rest := op.Int("layers") - c.Pipelined; rest > 0 {
		outside := s.m.Func(c.Outside)
		if outside == nil {
			return nil, pass.Errorf(op, "there is no layer function @%s for the %d layers after the pipeline", c.Outside, rest)
		}
		acts := op.Activations()
		sides := op.Operands[acts : acts+op.Int("sides")]
		after, err := s.stack(op, outside, out[:acts], sides, l.rest, rest)
		if err != nil {
			return nil, err
		}
		for i, v := range after {
			if i >= acts {
				v = s.b.Add(out[i], v)
			}
			out[i] = v
		}
	}
	return out, nil
}

// A loop is the lowering of one pipeline.
type loop struct {
	*stager
	schedule
	op    *ir.Op
	layer *ir.Func
	acts  int // activations: the first operands and results

	weights []*ir.Value // [R, S, (L,) …w], R and L only where more than 1
	rest    []*ir.Value // rows for the layers after the pipeline
	sides   []side
	stages  *ir.Func // the layer function, mapped
}

// A side is a side input: split into microbatches, [M, b, …], or shared by all.
type side struct {
	v     *ir.Value
	split bool
}

func (l *loop) lower() ([]*ir.Value, error) {
	l.splitWeights()
	if err := l.splitSides(); err != nil {
		return nil, err
	}
	if err := l.mapLayer(); err != nil {
		return nil, err
	}
	var state []carry
	for k, x := range l.op.Operands[:l.acts] {
		if b := l.layer.Params()[k].Type.Shape[0]; x.Type.Shape[0] != l.M*b {
			return nil, pass.Errorf(l.op, "pipeline: a batch of %d does not make %d microbatches of %d", x.Type.Shape[0], l.M, b)
		}
		state = append(state, l.initial(k)...)
	}
	aux := l.op.Results[l.acts:]
	for i, r := range aux {
		state = append(state, carry{"aux", l.b.Splat(l.layer.Results[l.acts+i].Type.WithElem(r.Type.Elem), 0)})
	}
	scan := l.scan(state)
	var results []*ir.Value
	for k, x := range l.op.Operands[:l.acts] {
		at := slices.IndexFunc(state, func(c carry) bool { return c.name == l.named("state_io", k) })
		out := l.realign(scan.Results[at], x)
		if out.Sharding = l.op.Results[k].Sharding; out.Sharding != nil {
			out = l.b.Constrain(out, out.Sharding)
		}
		results = append(results, out)
	}
	for i := range aux {
		sum := scan.Results[len(state)-len(aux)+i]
		if len(l.m.Meshes) > 0 { // one all-reduce after the loop
			sum = l.b.Constrain(sum, layout.UnreducedElsewhere(l.m.Meshes[0], ir.Replicated(l.m.Meshes[0].Name, 0)))
		}
		results = append(results, l.b.Div(sum, l.b.Splat(sum.Type, float64(l.M))))
	}
	return results, nil
}

// splitWeights gives each stacked weight its pipelined shape. A weight that is a
// parameter used only here becomes one parameter for the pipeline and one for the
// layers after it, so that each can have the sharding of its use.
func (l *loop) splitWeights() {
	first := l.acts + l.op.Int("sides")
	piped, total := l.Pipelined, l.op.Int("layers")
	uses := l.f.Uses()
	for i, w := range l.op.Operands[first:] {
		leaf := l.layer.Params()[first+i]
		shape := l.stacked(leaf.Type.Shape)
		sharding := l.stackedSharding(leaf.Sharding)
		if w.Block == l.f.Body && uses[w.ID] == 1 {
			pipe := l.param(w, w.Type.WithShape(shape...), sharding, 0, piped)
			parts := []*ir.Value{pipe}
			if piped < total {
				rest := l.param(w, w.Type.WithShape(append([]int{total - piped}, leaf.Type.Shape...)...), l.unstaged(w.Sharding), piped, total)
				parts = append(parts, rest)
				l.rest = append(l.rest, rest)
			}
			at := slices.Index(l.params, w)
			l.params = slices.Replace(l.params, at, at+1, parts...)
			l.weights = append(l.weights, pipe)
			continue
		}
		if piped < total {
			l.rest = append(l.rest, l.b.SliceDim(w, 0, piped, total))
		}
		v := l.b.SliceDim(w, 0, 0, piped)
		if more := l.lacking(); more > 0 {
			none := make([]int, v.Type.Rank())
			high := slices.Clone(none)
			high[0] = more
			v = l.b.Pad(v, l.b.Splat(ir.Tensor(v.Type.Elem), 0), none, high, none)
		}
		l.weights = append(l.weights, l.b.Constrain(l.b.Reshape(v, shape...).Named(w.Name), sharding))
	}
}

// param is a new parameter that holds the rows lo to hi of the stacked w, each of
// which may itself stand for several layers.
func (l *loop) param(w *ir.Value, t *ir.Type, s *ir.Sharding, lo, hi int) *ir.Value {
	v := l.f.NewValue(t, w.Name)
	v.Sharding, v.Attrs = s, w.Attrs
	first, layers := 0, 1
	if rows := w.Attrs.Ints(ir.KeyRows); len(rows) == 2 {
		first, layers = rows[0], (rows[1]-rows[0])/w.Type.Shape[0]
	}
	v.Attrs.Set(ir.KeyRows, ir.Ints{first + lo*layers, first + hi*layers})
	return v
}

// lacking is how many layers the last stages of the last repeat lack: their places
// have weights that are zero, and hand on what they get.
func (c schedule) lacking() int { return c.S*c.R*c.L - c.Pipelined }

// stacked is the pipelined shape of a weight: [R, S, (L,) …w].
func (c schedule) stacked(w []int) []int {
	var shape []int
	if c.R > 1 {
		shape = append(shape, c.R)
	}
	shape = append(shape, c.S)
	if c.L > 1 {
		shape = append(shape, c.L)
	}
	return append(shape, w...)
}

func (c schedule) stackedSharding(w *ir.Sharding) *ir.Sharding {
	if w == nil {
		return nil
	}
	s := w.Clone()
	if c.L > 1 {
		s = s.Prepend()
	}
	s = s.Prepend(c.stage...)
	if c.R > 1 {
		s = s.Prepend()
	}
	return s
}

// unstaged is s without the stage axis: the layers after a pipeline are not sharded
// over stages.
func (l *loop) unstaged(s *ir.Sharding) *ir.Sharding {
	if s == nil {
		return nil
	}
	return s.Without(facts.StageAxis)
}

// splitSides splits the side inputs that have the batch dimension into
// microbatches.
func (l *loop) splitSides() error {
	for i := range l.op.Int("sides") {
		v, want := l.op.Operands[l.acts+i], l.layer.Params()[l.acts+i]
		switch {
		case v.Type.Equal(want.Type):
			if l.M == 1 && l.S > 1 { // of one microbatch, either with the batch dimension or shared
				v = l.b.Constrain(v, want.Sharding)
			}
			l.sides = append(l.sides, side{v, false})
		case v.Type.Rank() == want.Type.Rank() && want.Type.Rank() > 0 && v.Type.Shape[0] == l.M*want.Type.Shape[0]:
			split := l.b.Reshape(v, append([]int{l.M}, want.Type.Shape...)...).Named(v.Name)
			if want.Sharding != nil {
				split = l.b.Constrain(split, want.Sharding.Prepend())
			}
			l.sides = append(l.sides, side{split, true})
		default:
			return pass.Errorf(l.op, "side input %d is %s, the layer takes %s for one of %d microbatches", i, v.Type, want.Type, l.M)
		}
	}
	return nil
}

// mapLayer maps the layer function over the stages: the activation, the staged
// side inputs and the weights have a stage dimension.
func (l *loop) mapLayer() error {
	batched := make([]bool, len(l.layer.Params()))
	for i := range batched {
		side := i - l.acts
		batched[i] = side < 0 || side >= len(l.sides) || l.staged(l.sides[side])
	}
	name := l.layer.Name + ".stages"
	if g := l.mapped[name]; g != nil {
		l.stages = g
		return nil
	}
	flat := l.layer.Clone()
	useGathered(flat)
	if err := rewrite.InlineCalls(l.m, flat); err != nil {
		return err
	}
	g, err := Vmap(flat, name, batched, l.S, l.stage)
	if err != nil {
		return err
	}
	l.m.Funcs = append(l.m.Funcs, g)
	l.mapped[name], l.stages = g, g
	return nil
}

// A carry is one buffer of the loop state.
type carry struct {
	name string
	init *ir.Value
}

// named is the name of a buffer of activation k: those after the first have their
// own in it.
func (l *loop) named(buffer string, k int) string {
	if k == 0 {
		return buffer
	}
	return buffer + "_" + l.layer.Params()[k].Name
}

// initial makes the loop state of activation k: see the buffers and their shapes in
// the order of the mathematics. All but state_io start with elements that are never
// read.
func (l *loop) initial(k int) []carry {
	b, x, micro := l.b, l.op.Operands[k], l.layer.Params()[k]
	inner := micro.Type.Shape
	state := []carry{{l.named("state_io", k), l.stream(x, micro)}}
	buffer := func(name string, shape ...int) {
		v := b.Broadcast(b.Splat(ir.Tensor(x.Type.Elem), 0), append(shape, inner...))
		v.Def.Attrs.Set(ir.KeyDontCare, ir.Unit{})
		state = append(state, carry{l.named(name, k), l.alongStages(v, micro.Sharding, len(shape)-1)})
	}
	buffer("shift", l.S)
	if l.D == 2 {
		buffer("prev_outputs", l.S)
	}
	if l.Storage() {
		buffer("circ_storage", l.S, l.M)
		buffer("circ_storage_mover", l.S)
	}
	return state
}

// alongStages constrains v to have its stage dimension sharded along the stage axis, then
// extra unsharded dimensions, then the sharding of one microbatch.
func (l *loop) alongStages(v *ir.Value, micro *ir.Sharding, extra int) *ir.Value {
	if micro == nil {
		return v
	}
	s := micro.Clone()
	for range extra {
		s = s.Prepend()
	}
	return l.b.Constrain(v, s.Prepend(l.stage...))
}

// scan builds the loop over iterations.
func (l *loop) scan(state []carry) *ir.Op {
	body := new(ir.Block)
	t := l.f.NewArg(body, ir.Tensor(ir.I32), "t")
	in := make(map[string]*ir.Value)
	var init, aux []*ir.Value
	for _, c := range state {
		v := l.f.NewArg(body, c.init.Type, c.name)
		init = append(init, c.init)
		if in[c.name] = v; c.name == "aux" {
			aux = append(aux, v)
		}
	}
	it := &iteration{loop: l, b: l.b.In(body), t: t, in: in}
	next, sums := it.build(aux)
	var yield []*ir.Value
	for _, c := range state {
		if c.name != "aux" {
			v := next[c.name]
			if v.Name == "" {
				v.Name = c.name
			}
			yield = append(yield, v)
		}
	}
	it.b.Emit(ir.PPYield, append(yield, sums...), nil, nil, nil)
	attrs := ir.AttrsOf(facts.Named("carries", ir.I64Attr(len(state))), facts.Named("trip_count", ir.I64Attr(l.Iterations())),
		facts.Named(ir.KeyLoop, ir.Str(ir.LoopIterations)), facts.Named(ir.KeyConfig, l.Dict()), facts.Named(ir.KeyUnroll, l.UnrollAttr(ir.LoopIterations, l.Iterations())))
	scan := l.b.Emit(ir.PPScan, init, attrs, []*ir.Block{body}, nil)
	for i, c := range state {
		scan.Results[i].Name = c.name
	}
	return scan
}

// stackOp lowers a pp.stack.
func (s *stager) stackOp(op *ir.Op) ([]*ir.Value, error) {
	layer := s.m.Func(op.Sym("layer"))
	if layer == nil {
		return nil, pass.Errorf(op, "there is no layer function @%s", op.Sym("layer"))
	}
	acts := op.Activations()
	k := acts + op.Int("sides")
	return s.stack(op, layer, op.Operands[:acts], op.Operands[acts:k], op.Operands[k:], op.Int("layers"))
}

// stack applies the layer function n times: a loop over layers that carries the
// activation and the sums of the scalars, with the weights as per-iteration inputs.
// With gather = per_repeat it is lowered as a pipeline of one stage, so that a
// window of gathered weights slides over the layers.
func (s *stager) stack(op *ir.Op, layer *ir.Func, xs, sides, weights []*ir.Value, n int) ([]*ir.Value, error) {
	config := facts.ConfigOf(op)
	config.Unrolled = ir.LoopLayers
	policy := config.Gather
	switch {
	case policy == "per_repeat" && n > 1 && slices.ContainsFunc(layer.Params()[len(xs)+len(sides):], func(leaf *ir.Value) bool { return isGathered(leaf, roundedTo(layer, leaf, config)) }):
		return s.windowedStack(op, layer, xs, sides, weights, n)
	case policy != "once":
		policy = "per_iteration"
	}
	body := new(ir.Block)
	b := s.b.In(body)
	s.f.NewArg(body, ir.Tensor(ir.I32), "layer")
	init := s.asTaken(layer, xs)
	var args, sums []*ir.Value
	for k, x := range init {
		name := "x"
		if k > 0 {
			name = layer.Params()[k].Name
		}
		args = append(args, s.f.NewArg(body, x.Type, name))
	}
	args = append(args, sides...)
	for _, r := range layer.Results[len(xs):] {
		init = append(init, s.b.Splat(r.Type, 0))
		sums = append(sums, s.f.NewArg(body, r.Type, "aux"))
	}
	for i := range weights {
		leaf := layer.Params()[len(xs)+len(sides)+i]
		v := s.f.NewArg(body, leaf.Type, leaf.Attrs.Str(ir.KeyName))
		args = append(args, gathered(b, v, layer, leaf, nil, policy, config))
	}
	out := slices.Clone(b.Call(layer, args...))
	for i := range sums {
		out[len(xs)+i] = b.Add(sums[i], out[len(xs)+i])
	}
	b.Emit(ir.PPYield, out, nil, nil, nil)
	attrs := ir.AttrsOf(facts.Named("carries", ir.I64Attr(len(init))), facts.Named("trip_count", ir.I64Attr(n)),
		facts.Named(ir.KeyLoop, ir.Str(ir.LoopLayers)), facts.Named(ir.KeyConfig, config.Dict()), facts.Named(ir.KeyUnroll, config.UnrollAttr(ir.LoopLayers, n)))
	return s.b.Emit(ir.PPScan, append(init, weights...), attrs, []*ir.Block{body}, nil).Results, nil
}

// asTaken is the activations xs with the shardings with which the layer takes them,
// where nothing may be chosen.
func (s *stager) asTaken(layer *ir.Func, xs []*ir.Value) []*ir.Value {
	xs = slices.Clone(xs)
	if facts.ExplicitMode(s.m) {
		for k, x := range xs {
			xs[k] = s.b.Constrain(x, layer.Params()[k].Sharding)
		}
	}
	return xs
}

// windowedStack is a stack as a pipeline of one stage: one microbatch, which is
// the batch, goes through a layer in each repeat.
func (s *stager) windowedStack(op *ir.Op, layer *ir.Func, xs, sides, weights []*ir.Value, n int) ([]*ir.Value, error) {
	xs = s.asTaken(layer, xs)
	attrs := rewrite.AttrsWith(op, facts.Named("layers", ir.I64Attr(n)))
	one := &ir.Op{Kind: ir.PPPipeline, Attrs: attrs, Operands: slices.Concat(xs, sides, weights), Results: op.Results, Origin: op.Origin}
	c := facts.ConfigOf(op).OneStage(n)
	return (&loop{stager: s, schedule: schedule{Config: c}, op: one, layer: layer, acts: op.Activations()}).lower()
}

// gathered is weight v with a pp.gather where leaf, the layer's parameter, is
// stored sharded along axes that its use needs gathered, or has more bits than the
// type that it is rounded to first. lift turns a sharding of leaf into one of v. The
// result has v's type.
func gathered(b *ir.Builder, v *ir.Value, layer *ir.Func, leaf *ir.Value, lift func(*ir.Sharding) *ir.Sharding, policy string, config facts.Config) *ir.Value {
	elem, own := roundedTo(layer, leaf, config), v.Type.Elem
	if !isGathered(leaf, elem) {
		if elem != own {
			v = b.Convert(v, elem)
			v.Def.Attrs.Set(ir.KeyReduceDType, ir.Str(own.String()))
			v = b.Convert(v, own)
		}
		return v
	}
	g := leaf.Attrs.Get(ir.KeyGathered).(*ir.Sharding)
	if lift != nil {
		g = lift(g)
	}
	attrs := ir.AttrsOf(facts.Named("sharding", g), facts.Named("policy", ir.Str(policy)))
	if elem != own {
		attrs.Set("dtype", ir.Str(elem.String()))
	}
	if config.ReduceDType != nil {
		attrs.Set(ir.KeyReduceDType, config.ReduceDType)
	}
	out := b.Emit(ir.PPGather, []*ir.Value{v}, attrs, nil, nil).Results[0]
	out.Name = v.Name
	return b.Convert(out, own)
}

// roundedTo is the element type that leaf, a weight of the layer, is rounded to before
// it is gathered: the configuration's gather_dtype, where that is narrower than the
// weight's own, else the type that the layer itself rounds the weight to, if it has no
// other use. Rounded before or after, the numbers are the same; fewer bytes are gathered.
func roundedTo(layer *ir.Func, leaf *ir.Value, config facts.Config) ir.DType {
	own := leaf.Type.Elem
	narrower := func(elem ir.DType) bool { return elem.IsFloat() && own.IsFloat() && elem.Bits() < own.Bits() }
	if narrower(config.GatherDType) {
		return config.GatherDType
	}
	if !isGathered(leaf, own) {
		return own
	}
	if elem := usedAs(layer, leaf); narrower(elem) {
		return elem
	}
	return own
}

// usedAs is the one element type that every use of leaf in the layer converts it to,
// or its own.
func usedAs(layer *ir.Func, leaf *ir.Value) ir.DType {
	elem, own := ir.InvalidDType, leaf.Type.Elem
	layer.Body.Walk(func(op *ir.Op) {
		if !slices.Contains(op.Operands, leaf) {
			return
		}
		to := own
		if op.Kind == ir.Convert {
			to = op.Result().Type.Elem
		}
		if elem != ir.InvalidDType && elem != to {
			to = own
		}
		elem = to
	})
	return elem
}

// isGathered reports whether leaf, a weight of a layer that is rounded to elem, has
// a pp.gather where it is used: its storage is sharded along axes that its use
// needs gathered, or it is rounded before a reshard that the program states.
func isGathered(leaf *ir.Value, elem ir.DType) bool {
	g, ok := leaf.Attrs.Get(ir.KeyGathered).(*ir.Sharding)
	return ok && leaf.Sharding != nil && (!g.SameLayout(leaf.Sharding) || elem != leaf.Type.Elem)
}
