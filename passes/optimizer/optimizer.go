package optimizer

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// Optimizer makes main one step of training, if the module's attribute
// pp.train describes one. After its other parameters main takes the state of
// the optimizer; in place of the gradients of its parameters it returns
//
//   - the scalars grad_norm, before clipping, param_norm, after the update, and
//     learning_rate;
//   - every new parameter, then every new state.
//
// A parameter with the attribute pp.frozen, and one that is not of
// floating-point numbers, is not trained: it has no gradient, no state and no
// part in the norms, and is returned as it is. The attribute pp.update of a
// parameter is what the optimizer does otherwise for it: lr_scale multiplies the
// learning rate, weight_decay is in place of the optimizer's.
//
// A new parameter or state has the type and sharding of the old one, and may be
// donated its buffer: the result has the attribute pp.alias, the number of the
// parameter that it replaces, and the parameter, for readers of StableHLO and HLO,
// tf.aliasing_output.
//
// With gradient_accumulation a step works on several batches: see
// [step.accumulate].
//
// The arithmetic is optax's, in the type of the parameter, or f32 where that is
// smaller: state keeps what a bf16 would round away. Numbers of the step,
// norms and the learning rate, have the widest of these types. Sums over all
// parameters are taken in the order of main, so the bits do not depend on anything
// but the program.
func Optimizer(_ *pass.Context, m *ir.Module) error {
	d, ok := m.Attrs.Get(ir.KeyTrain).(ir.Dict)
	if !ok {
		return nil
	}
	s := &step{m: m, f: m.Main(), config: ir.Attrs(d)}
	if s.f == nil || s.f.Body == nil {
		return pass.Errorf(nil, "there is nothing to train: the module has no main function")
	}
	if err := s.configure(); err != nil {
		return err
	}
	if err := s.takeGradients(); err != nil {
		return err
	}
	s.ret = s.f.Return()
	s.f.Body.Ops = s.f.Body.Ops[:len(s.f.Body.Ops)-1]
	s.addState()
	if err := s.accumulate(); err != nil {
		return err
	}
	s.build()
	return nil
}

// A step is one training step under construction.
type step struct {
	m      *ir.Module
	f      *ir.Func
	b      *ir.Builder
	config ir.Attrs // pp.train

	method   *method
	schedule *learningRate
	slots    []string // the state that is kept per parameter
	leaves   []*leaf
	fixed    []*ir.Value // the parameters that are not trained
	elem     ir.DType    // of the step-wide scalars

	ret     *ir.Op      // the return of main before
	values  []*ir.Value // the results of main
	results []ir.Result
	count   *ir.Value // parameter opt.step: how many steps were done before
	number  *ir.Value // of this step, from 1, as elem
	rate    *ir.Value // the learning rate
}

// A leaf is one parameter that is trained.
type leaf struct {
	param *ir.Value
	name  string
	own   int      // the number of leading dimensions that count layers, repeats or stages
	elem  ir.DType // of the state and of the arithmetic
	decay float64  // weight decay
	scale float64  // of the learning rate

	sharding *ir.Sharding // the sharding of the state
	zero     string       // why, in words

	grad, weight *ir.Value // in the sharding of the state
	state        []*ir.Value
}

// configure reads what pp.train says and finds what is not in the tables.
func (s *step) configure() error {
	var err error
	if s.method, err = lookup(methods, "optimizer", s.config.Str("optimizer"), func(m *method) string { return m.name }); err != nil {
		return err
	}
	if s.schedule, err = lookup(learningRates, "learning rate", s.rateConfig().Str("kind"), func(r *learningRate) string { return r.kind }); err != nil {
		return err
	}
	s.slots = s.method.slots(s.config)
	switch clip, decay := s.config.Float("clip"), s.config.Float("weight_decay"); {
	case s.config.Has("clip") && !(clip > 0):
		return pass.Errorf(nil, "gradients cannot be clipped to the norm %g: want a positive one, or no clipping", clip)
	case decay != 0 && !s.method.decays:
		return pass.Errorf(nil, "%s has no weight decay (%g): adamw has", s.method.name, decay)
	}
	return s.schedule.check(s.rateConfig())
}

func (s *step) rateConfig() ir.Attrs {
	d, _ := s.config.Get("lr").(ir.Dict)
	return ir.Attrs(d)
}

// lookup finds the row of a table that is called name.
func lookup[T any](rows []T, what, name string, nameOf func(*T) string) (*T, error) {
	var names []string
	for i := range rows {
		if nameOf(&rows[i]) == name {
			return &rows[i], nil
		}
		names = append(names, nameOf(&rows[i]))
	}
	return nil, pass.Errorf(nil, "there is no %s %q: want %s", what, name, strings.Join(names, ", "))
}

// takeGradients finds the parameters to train and takes their gradients out of
// what main returns.
func (s *step) takeGradients() error {
	ret := s.f.Return()
	s.values, s.results = slices.Clone(ret.Operands), slices.Clone(s.f.Results)
	for _, p := range s.f.Params() {
		if p.Attrs.Str(ir.KeyKind) != "param" {
			continue
		}
		if !trained(p) {
			s.fixed = append(s.fixed, p)
			continue
		}
		l := &leaf{param: p, name: p.Attrs.Str(ir.KeyName), own: ownDims(p), elem: stateElem(p.Type.Elem)}
		if err := s.configureLeaf(l); err != nil {
			return err
		}
		i := slices.IndexFunc(s.results, func(r ir.Result) bool { return isGradientOf(r, p) })
		if i < 0 {
			return pass.Errorf(nil, "parameter %s has no gradient among the results: it cannot be trained", l.name)
		}
		l.grad = s.values[i]
		if !l.grad.Type.Equal(p.Type) {
			return pass.Errorf(nil, "parameter %s is %s, its gradient %s: want the same type", l.name, p.Type, l.grad.Type)
		}
		if !s.m.Attrs.Has(ir.KeyKeepGradients) {
			s.values, s.results = slices.Delete(s.values, i, i+1), slices.Delete(s.results, i, i+1)
		}
		s.leaves = append(s.leaves, l)
	}
	if len(s.leaves) == 0 {
		return pass.Errorf(nil, "there is nothing to train: main has no floating-point parameters that are not frozen")
	}
	s.elem = stateElem(ir.DTypeByName(s.config.Str("accumulate_dtype")))
	for _, l := range s.leaves {
		if l.elem == ir.F64 {
			s.elem = ir.F64
		}
	}
	return nil
}

// trained reports whether parameter p, of kind param, is trained.
func trained(p *ir.Value) bool {
	return p.Type.IsTensor() && p.Type.Elem.IsFloat() && !p.Attrs.Has(ir.KeyFrozen)
}

// configureLeaf reads what pp.train and the parameter's own pp.update say of l.
func (s *step) configureLeaf(l *leaf) error {
	l.scale = 1
	if l.param.Type.Rank()-l.own >= s.config.Int("decay_rank") {
		l.decay = s.config.Float("weight_decay")
	}
	d, _ := l.param.Attrs.Get(ir.KeyUpdate).(ir.Dict)
	own := ir.Attrs(d)
	if own.Has("lr_scale") {
		l.scale = own.Float("lr_scale")
	}
	if own.Has("weight_decay") {
		l.decay = own.Float("weight_decay")
	}
	if l.decay != 0 && !s.method.decays {
		return pass.Errorf(nil, "%s has no weight decay (%g for %s): adamw has", s.method.name, l.decay, l.name)
	}
	return nil
}

// isGradientOf reports whether r is the gradient of p, of the same rows where
// several parameters are slices of one.
func isGradientOf(r ir.Result, p *ir.Value) bool {
	return r.Attrs.Str(ir.KeyKind) == "gradient" && r.Attrs.Str(ir.KeyName) == "grad."+p.Attrs.Str(ir.KeyName) &&
		slices.Equal(r.Attrs.Ints(ir.KeyRows), p.Attrs.Ints(ir.KeyRows))
}

// stateElem is the type of an optimizer's state for a parameter of type t.
func stateElem(t ir.DType) ir.DType {
	if t == ir.F64 {
		return ir.F64
	}
	return ir.F32
}

// ownDims is how many leading dimensions of p count layers, repeats or stages.
// Where p does not name its other dimensions, they are the fewest that make as
// many layers as it has.
func ownDims(p *ir.Value) int {
	if !p.Attrs.Has(ir.KeyLayers) {
		return 0
	}
	if logical, ok := p.Attrs.Get(ir.KeyLogical).(ir.Array); ok {
		return max(p.Type.Rank()-len(logical), 0)
	}
	layers := p.Attrs.Int(ir.KeyLayers)
	if rows := p.Attrs.Ints(ir.KeyRows); len(rows) == 2 {
		layers = rows[1] - rows[0]
	}
	n := 1
	for d, size := range p.Type.Shape {
		if n *= size; n == layers {
			return d + 1
		}
	}
	return 0
}

// addState gives main the parameters that hold the state. The shardings of
// parameters and state are closed, so that the results of a step have the shardings
// of the next step's parameters.
func (s *step) addState() {
	s.count = s.f.NewArg(s.f.Body, ir.Tensor(ir.I32), "step")
	s.count.Attrs = stateAttrs("opt.step")
	for _, l := range s.leaves {
		l.param.Sharding = s.closed(l.param)
		l.sharding, l.zero = s.shard(l)
	}
	for _, p := range s.fixed {
		p.Sharding = s.closed(p)
	}
	for _, slot := range s.slots {
		for _, l := range s.leaves {
			v := s.f.NewArg(s.f.Body, l.param.Type.WithElem(l.elem), slot)
			v.Sharding, v.Attrs = l.sharding, stateAttrs("opt."+slot+"."+l.name)
			for _, name := range []string{ir.KeyRows, ir.KeyLayers, ir.KeyLogical} {
				if a := l.param.Attrs.Get(name); a != nil {
					v.Attrs.Set(name, a)
				}
			}
			if l.zero != "" {
				v.Attrs.Set(ir.KeyZero, ir.Str(l.zero))
			}
			l.state = append(l.state, v)
		}
	}
}

func stateAttrs(name string) ir.Attrs {
	return ir.AttrsOf(facts.Named(ir.KeyName, ir.Str(name)), facts.Named(ir.KeyKind, ir.Str("state")), facts.Named(ir.KeyInit, ir.Str("zeros")))
}

// closed is the sharding of v with all dimensions closed; nil where there is no
// mesh.
func (s *step) closed(v *ir.Value) *ir.Sharding {
	if len(s.m.Meshes) == 0 {
		return nil
	}
	if v.Sharding == nil {
		return ir.Replicated(s.m.Meshes[0].Name, v.Type.Rank())
	}
	c := v.Sharding.Clone()
	for d := range c.Dims {
		c.Dims[d].Open = false
	}
	return c
}

// build appends the update to main.
func (s *step) build() {
	s.b = &ir.Builder{Func: s.f, Block: s.f.Body, Origin: s.origin()}

	s.rate = s.schedule.build(s, s.rateConfig()).Named("learning_rate")
	next := s.b.Add(s.count, s.b.I32(1)).Named("step")
	s.number = s.b.Convert(next, s.elem)
	s.gather()
	norm := s.norm(func(l *leaf) *ir.Value { return l.grad }).Named("grad_norm")
	s.clip(norm)
	weights, states := s.update()
	paramNorm := s.norm(func(l *leaf) *ir.Value { return l.weight }).Named("param_norm")

	for _, v := range []*ir.Value{norm, paramNorm, s.rate} {
		s.result(v, nil, ir.AttrsOf(facts.Named(ir.KeyName, ir.Str(v.Name)), facts.Named(ir.KeyKind, ir.Str("metric"))))
	}
	for i, l := range s.leaves {
		s.replace(l.param, weights[i], "param."+l.name)
	}
	for _, p := range s.fixed {
		s.replace(p, p, "param."+p.Attrs.Str(ir.KeyName))
	}
	s.replace(s.count, next, "opt.step")
	for k := range s.slots {
		for i, l := range s.leaves {
			s.replace(l.state[k], states[i][k], l.state[k].Attrs.Str(ir.KeyName))
		}
	}
	s.f.Results = s.results
	s.b.At(s.ret.Origin).Emit(ir.FuncReturn, s.values, s.ret.Attrs, nil, nil)
}

// origin is where the ops of the step come from.
func (s *step) origin() *ir.Origin {
	origin := ir.Origin{}.Saying(ir.Said{Pass: "optimizer"})
	if s.ret.Origin != nil {
		origin.Pos = s.ret.Origin.Pos
	}
	return origin
}

// gather reshards the gradients to the sharding of the state.
func (s *step) gather() {
	for _, l := range s.leaves {
		g := s.b.Constrain(terms(l.grad, l.sharding), l.sharding)
		l.grad = s.b.Convert(g, l.elem).Named("grad." + l.name)
	}
}

// terms is v without constraints to shardings other than at, so that an unreduced
// sum is reduced to at directly.
func terms(v *ir.Value, at *ir.Sharding) *ir.Value {
	if def := v.Def; def != nil && def.Kind == ir.ShardingConstraint {
		if s, ok := def.Attrs.Get("sharding").(*ir.Sharding); ok && !s.SameLayout(at) {
			return def.Operands[0]
		}
	}
	return v
}

// norm is the square root of the sum of all squares of the chosen values.
func (s *step) norm(of func(*leaf) *ir.Value) *ir.Value {
	var sum *ir.Value
	for _, l := range s.leaves {
		x := s.b.Convert(of(l), l.elem)
		x = s.b.Mul(x, x)
		if dims := facts.UpTo(x.Type.Rank()); len(dims) > 0 {
			x = s.b.Reduce(ir.Add, x, s.b.Splat(ir.Tensor(l.elem), 0), dims...)
		}
		x = s.b.Convert(x, s.elem)
		if sum == nil {
			sum = x
		} else {
			sum = s.b.Add(sum, x)
		}
	}
	return s.b.Unary(ir.Sqrt, sum)
}

// clip scales all gradients so that their global norm is at most that of pp.train.
func (s *step) clip(norm *ir.Value) {
	if !s.config.Has("clip") {
		return
	}
	limit := s.b.Splat(norm.Type, s.config.Float("clip"))
	factor := s.b.Binary(ir.Minimum, s.b.Splat(norm.Type, 1), s.b.Div(limit, norm)).Named("clip")
	for _, l := range s.leaves {
		l.grad = s.scale(l.grad, factor).Named(l.grad.Name)
	}
}

// scale is x times a step-wide scalar.
func (s *step) scale(x, by *ir.Value) *ir.Value { return s.b.Mul(x, s.broadcast(by, x.Type)) }

// broadcast is a step-wide scalar as a tensor of type t.
func (s *step) broadcast(x *ir.Value, t *ir.Type) *ir.Value {
	x = s.b.Convert(x, t.Elem)
	if t.Rank() == 0 {
		return x
	}
	return s.b.Broadcast(x, t.Shape)
}

// update computes the new weights, in the sharding of the state, and the new states
// of each leaf.
func (s *step) update() (weights []*ir.Value, states [][]*ir.Value) {
	for _, l := range s.leaves {
		l.weight = s.b.Convert(s.b.Constrain(l.param, l.sharding), l.elem)
		by, next := s.method.update(s, l)
		rate := s.rate
		if l.scale != 1 {
			rate = s.times(l.scale, rate)
		}
		w := s.b.Sub(l.weight, s.scale(by, rate))
		l.weight = s.b.Constrain(s.b.Convert(w, l.param.Type.Elem), l.sharding).Named(l.name)
		weights = append(weights, s.b.Constrain(l.weight, l.param.Sharding))
		for i, v := range next {
			next[i] = s.b.Constrain(v, l.sharding).Named(s.slots[i])
		}
		states = append(states, next)
	}
	return weights, states
}

// result makes v one more result of main.
func (s *step) result(v *ir.Value, at *ir.Sharding, attrs ir.Attrs) {
	s.values = append(s.values, v)
	s.results = append(s.results, ir.Result{Type: v.Type, Sharding: at, Attrs: attrs})
}

// replace makes v, which is called name, the result that replaces parameter old in
// the next step.
func (s *step) replace(old, v *ir.Value, name string) {
	attrs := ir.AttrsOf(facts.Named(ir.KeyName, ir.Str(name)), facts.Named(ir.KeyAlias, ir.I64Attr(old.Index)), facts.Named(ir.KeyKind, old.Attrs.Get(ir.KeyKind)))
	for _, carry := range []string{ir.KeyRows, ir.KeyLayers, ir.KeyLogical} {
		if a := old.Attrs.Get(carry); a != nil {
			attrs.Set(carry, a)
		}
	}
	old.Attrs.Set("tf.aliasing_output", ir.Int{Value: len(s.values), Type: ir.I32})
	s.result(v, old.Sharding, attrs)
}

// shard is the sharding of the state of l, and the choice in words: that of the
// parameter, and with shard_optimizer_over_data along the mesh axis data in
// addition, in the first of the weight's own dimensions whose size divides.
func (s *step) shard(l *leaf) (*ir.Sharding, string) {
	at := l.param.Sharding
	if !s.config.Bool("shard_optimizer_over_data") || len(s.m.Meshes) == 0 || s.m.Meshes[0].AxisSize(dataAxis) == 1 {
		return at, ""
	}
	mesh, data := s.m.Meshes[0], ir.Ax(dataAxis)
	for d := range at.Dims {
		if slices.ContainsFunc(at.Axes(d), data.Overlaps) {
			return at, l.onAxis(d)
		}
	}
	for d := l.own; d < len(at.Dims); d++ {
		if n := mesh.RefsSize(at.Axes(d)) * mesh.RefSize(data); l.param.Type.Shape[d]%n == 0 {
			sharded := at.Clone()
			sharded.Dims[d].Axes = append(sharded.Dims[d].Axes, data)
			sharded.Replicated = slices.DeleteFunc(sharded.Replicated, data.Overlaps)
			return sharded, l.onAxis(d)
		}
	}
	return at, fmt.Sprintf("no dimension divides by %s", dataAxis)
}

const dataAxis = "data"

// onAxis says along which dimension the state of l is sharded over data.
func (l *leaf) onAxis(d int) string {
	logical, _ := l.param.Attrs.Get(ir.KeyLogical).(ir.Array)
	if i := d - l.own; i >= 0 && i < len(logical) {
		if name, ok := logical[i].(ir.Str); ok && name != "" {
			return fmt.Sprintf("%s on axis %s", dataAxis, string(name))
		}
	}
	return fmt.Sprintf("%s on dimension %d", dataAxis, d)
}
