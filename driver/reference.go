package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"ppc/driver/binding"
	"ppc/driver/rounding"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/passes"
)

// A reference is the program without a pipeline, on the reference evaluator, or on the
// kernels of runs where it is too large for that: in float64, which is what results are held to, and in its own types, which is
// what rounding costs.
type reference struct {
	r          *runner
	exact, own *evaluation // own is nil where nothing is rounded
	yardstick  *yardstick

	again  int // how often what rounding costs was measured once more
	steps  []*observation
	before map[string]*ir.Literal // new parameters, as they were before the first step
	// uncertain is how far new parameters may be from one another, by part, for
	// their updates so far do not follow from the gradients' sizes.
	uncertain map[string][]float64
	// shift is how far the parameters that the last step begins with may be from one
	// another, relatively, where the measurement does not show it.
	shift float64
}

// An observation is what one step gave.
type observation struct {
	want, own map[string]*binding.Named // by name
	parts     map[string][]extent       // of scalars, and of all results of the last step
}

// An evaluation is a module with its arguments.
type evaluation struct {
	*binding.Machine
	m     *ir.Module
	terms map[int]string // results that are terms of a scalar, which is named

	kernels *byKernels // in place of the reference evaluator; nil for that
}

// newReference prepares both evaluations.
func (r *runner) newReference(ctx context.Context) (*reference, error) {
	ref := &reference{r: r}
	var err error
	if ref.exact, err = r.evaluation(ctx, eval.Options{Float64: true}, nil); err != nil {
		return nil, err
	}
	m := ref.exact.m
	if len(r.roundings) > 0 {
		if ref.own, err = ref.ownTypes(ctx, eval.Dither{}); err != nil {
			return nil, err
		}
		m = ref.own.m
	}
	ref.yardstick = newYardstick(r.typed, m)
	return ref, nil
}

// ownTypes prepares an evaluation in the program's own types.
func (ref *reference) ownTypes(ctx context.Context, d eval.Dither) (*evaluation, error) {
	return ref.r.evaluation(ctx, eval.Options{Float32: ref.r.roundings[0] == ir.F64, Dither: d}, ref.exact)
}

const (
	// measuredAgain is how often what rounding costs is measured again at most.
	measuredAgain = 10
	// byChance is how many times its tolerance a result is away at most for which it is.
	byChance = 100
)

// hold compares results, and as long as one is beyond its tolerance, but not by far, it measures
// again what rounding costs, which may have been little by chance: the largest distance counts. By
// turns so much is rounded another way that the measurement stands for itself, and only what is near a tie.
// That stays with the program, which differs by another order of additions alone, to where steps of
// training make much of little: near a singular place, and where a sign is not known.
func (ref *reference) hold(ctx context.Context, compare func() []*Comparison) ([]*Comparison, error) {
	checks := compare()
	for ref.own != nil && ref.again < measuredAgain {
		if worst := farthestBeyond(checks); worst <= 1 || worst > byChance {
			break
		}
		dither := eval.Dither{Seed: uint64(ref.again), Size: []float64{0x1p-2, 0x1p-6}[ref.again%2]}
		var err error
		if ref.own, err = ref.ownTypes(ctx, dither); err != nil {
			return nil, err
		}
		ref.again++
		if err := ref.run(ctx, len(ref.steps)); err != nil {
			return nil, err
		}
		checks = compare()
	}
	return checks, nil
}

// farthestBeyond is how many times its tolerance a result is away at most, where one is beyond it;
// 0 where none is.
func farthestBeyond(checks []*Comparison) float64 {
	worst := 0.0
	for _, c := range checks {
		if !c.OK {
			worst = max(worst, c.Rel/c.Tolerance)
		}
	}
	return worst
}

// evaluation prepares the reference for evaluation with opts: the program as it
// was read, with layers one after the other, and, where it trains or rounds
// weights that are gathered, as the passes for that have left it. like is another
// evaluation of it, which decides how it is computed; it may be nil.
func (r *runner) evaluation(ctx context.Context, opts eval.Options, like *evaluation) (*evaluation, error) {
	e := &evaluation{terms: make(map[int]string)}
	if r.before != nil {
		e.m = r.before.Clone()
	} else {
		reading := r.reading()
		reading.Sequential, reading.Float64 = true, opts.Float64
		p, err := r.src.load(ctx, reading)
		if err != nil {
			return nil, err
		}
		e.m = p.m
	}
	if !e.m.Form.Has(ir.Local) || binding.NumDevices(e.m) == 1 {
		rounding.ExposeTerms(e.m)
	}
	if e.m.Attrs.Has(ir.KeyGradient) || r.before == nil && !opts.Float64 {
		err := stage(ctx, e.m, "compiling", func() error {
			return passBug(passes.Run(e.m, passes.Config{Context: ctx, After: "optimizer"}), "")
		})
		if err != nil {
			return nil, err
		}
	}
	for i, res := range e.m.Main().Results {
		if res.Attrs.Has("pp.terms_of") {
			e.terms[i] = res.Attrs.Str("pp.terms_of")
		}
	}
	mc := binding.NewMachine(e.m, r.p.naming)
	var err error
	if e.kernels, err = r.kernels(ctx, e.m, opts, like); err != nil {
		return nil, err
	}
	mc.Exec = func(ctx context.Context, args [][]*ir.Literal) ([][]*ir.Literal, error) {
		if e.kernels != nil {
			return e.kernels.run(ctx, args, opts.Dither)
		}
		opts := opts
		opts.Context, opts.Memory = ctx, r.referenceMemory()
		if !mc.Global {
			return eval.RunDevices(e.m, e.m.Main(), args, opts)
		}
		out, err := eval.Run(e.m, e.m.Main(), args[0], opts)
		return [][]*ir.Literal{out}, err
	}
	e.Machine = mc
	if e.kernels != nil {
		return e, nil
	}
	opts.Memory = r.referenceMemory()
	return e, stage(ctx, e.m, "preparing", func() error { return eval.Fits(e.m, opts) })
}

// referenceMemory bounds what the values of a reference take: it needs more than a run, whose
// microbatches come one after the other and whose numbers are not all of 8 bytes. What is
// left is for its results and the garbage.
func (r *runner) referenceMemory() int64 { return max(4<<30, int64(r.memory())/4*3) }

// run takes that many steps in both evaluations, side by side. What an earlier run measured
// counts where it was more.
func (ref *reference) run(ctx context.Context, steps int) error {
	earlier := ref.steps
	ref.steps, ref.shift = nil, 0
	ref.uncertain, ref.before = make(map[string][]float64), make(map[string]*ir.Literal)
	for _, e := range ref.evaluations() {
		if err := stage(ctx, e.m, "evaluating", func() error { return e.Bind(ref.r.args) }); err != nil {
			return err
		}
	}
	for _, p := range ref.exact.Params {
		if p.Kind != "param" {
			continue
		}
		l, err := ref.r.args.FileValue(p)
		if err != nil {
			return err
		}
		ref.before["param."+p.Name] = l
	}
	doing := "checking"
	if ref.again > 0 {
		doing = "checking again"
	}
	for i := range steps {
		ctx := during(ctx, Progress{Doing: doing, Unit: "step", Done: i, Total: steps, Even: true})
		for _, e := range ref.evaluations() {
			if err := stage(ctx, e.m, "evaluating", func() error { return ref.r.stepOf(ctx, e.Machine, i) }); err != nil {
				return err
			}
		}
		ref.observe()
	}
	ref.measureParts()
	for i, o := range earlier {
		ref.steps[i].widen(o)
	}
	ref.learn()
	return nil
}

func (ref *reference) evaluations() []*evaluation {
	if ref.own == nil {
		return []*evaluation{ref.exact}
	}
	return []*evaluation{ref.exact, ref.own}
}

// stage runs f, a stage of the evaluation of reference m.
func stage(ctx context.Context, m *ir.Module, what string, f func() error) error {
	_, err := guard(ctx, what+" the reference", moduleReproducer(m, "", "check", "ppc run --check %s"), func() (any, error) { return nil, f() })
	var large *eval.TooLarge
	switch {
	case errors.As(err, &large):
		return fmt.Errorf("reference: %w: it computes every layer for the whole batch at once; a smaller batch or shorter sequences (--set axes.NAME=…) check the same program", err)
	case err != nil:
		return fmt.Errorf("reference: %w", err)
	}
	return nil
}

// stepOf feeds a machine and runs it once; step is counted in this run.
func (r *runner) stepOf(ctx context.Context, mc *binding.Machine, step int) error {
	if err := r.feed.fill(mc, r.first+step); err != nil {
		return err
	}
	return mc.Run(ctx)
}

// observe measures what the last step gave. Of earlier steps only the scalars
// are kept.
func (ref *reference) observe() {
	y, o := ref.yardstick, &observation{want: byName(ref.exact.Values()), parts: make(map[string][]extent)}
	if ref.own != nil {
		o.own = byName(ref.own.Values())
	}
	var last *observation
	if n := len(ref.steps); n > 0 {
		last = ref.steps[n-1]
	}
	noise := ref.noise()
	for name, v := range o.want {
		if v.Literal.Type.Rank() > 0 || v.State {
			continue
		}
		parts := y.measures(v.Literal, o.literal(name), nil, 1)
		m := &parts[0]
		m.own = max(m.own, y.scale*noise[name]*m.scale)
		if last != nil {
			m.own = max(m.own, last.parts[name][0].own)
		}
		o.parts[name] = parts
	}
	ref.moved(o)
	ref.countUncertain(last, o)
	if last != nil {
		last.own = nil
		maps.DeleteFunc(last.want, func(_ string, v *binding.Named) bool { return v.Literal.Type.Rank() > 0 })
	}
	ref.steps = append(ref.steps, o)
}

func byName(vs []*binding.Named) map[string]*binding.Named {
	m := make(map[string]*binding.Named)
	for _, v := range vs {
		m[v.Name] = v
	}
	return m
}

// LiteralOf is a result in the program's own types; nil where nothing is rounded.
func (o *observation) literal(name string) *ir.Literal {
	if v := o.own[name]; v != nil {
		return v.Literal
	}
	return nil
}

// noise is the relative error of the sums that scalars are made of, in the types
// of the measurement.
func (ref *reference) noise() map[string]float64 {
	noise := make(map[string]float64)
	if ref.own == nil {
		return noise
	}
	for i, name := range ref.exact.terms {
		noise[name] = max(noise[name], rounding.OfSum(ref.exact.Value(i), ref.own.Value(i), ref.yardstick.sums/ref.yardstick.scale))
	}
	return noise
}

// moved allows the outputs of a step what the uncertain parameters that it begins with
// move them by, where the measurement does not show it: the norm of the gradient, that of the loss for all outputs, times the
// error along it.
func (ref *reference) moved(o *observation) {
	squares, n := 0.0, 0
	for name, parts := range ref.uncertain {
		n += o.want[name].Literal.Type.NumElements()
		for _, u := range parts {
			squares += u * u
		}
	}
	gradient := o.want["grad_norm"]
	if gradient == nil || squares == 0 || !ref.yardstick.reduced {
		return
	}
	ref.shift = math.Sqrt(squares) / binding.Number(o.want[paramNorm].Literal, 0)
	for name, parts := range o.parts {
		if o.want[name].Kind == "" {
			parts[0].least = deviations * binding.Number(gradient.Literal, 0) * math.Sqrt(squares/float64(n))
		}
	}
}

// deviations is how many standard deviations are allowed of an error that is as likely in
// any direction, along one: of its norm, that is a part by the root of the number of elements.
const deviations = 4

// countUncertain adds to each parameter what the updates of this step that have an
// unknown sign come to. The norm of all parameters moves by their error along the
// parameters.
func (ref *reference) countUncertain(last, o *observation) {
	if ref.own == nil {
		return
	}
	along := 0.0
	for name, v := range o.want {
		path, isParam := strings.CutPrefix(name, "param.")
		moment := o.want[binding.StatePrefix+"m."+path]
		if !isParam || moment == nil || moment.Literal.Type.NumElements() != v.Literal.Type.NumElements() {
			continue
		}
		before := ref.before[name]
		if last != nil {
			before = last.want[name].Literal
		}
		largest := 0.0
		for i := range v.Literal.Type.NumElements() {
			largest = max(largest, difference(v.Literal, before, i))
		}
		for i, m := range ref.yardstick.measures(v.Literal, nil, nil, v.Layers) {
			if len(ref.uncertain[name]) == i {
				ref.uncertain[name] = append(ref.uncertain[name], 0)
			}
			ref.uncertain[name][i] += ref.yardstick.uncertain(&m, moment.Literal, o.literal(moment.Name), largest)
			share := ref.uncertain[name][i] * m.scale
			along += share * share / float64(max(1, m.hi-m.lo))
		}
	}
	if parts := o.parts[paramNorm]; len(parts) > 0 && parts[0].scale > 0 && ref.yardstick.reduced {
		parts[0].least = deviations * math.Sqrt(along) / parts[0].scale
	}
}

// paramNorm is the metric of training that is the norm of all new parameters.
const paramNorm = "param_norm"

// last is what the last step gave.
func (ref *reference) last() *observation { return ref.steps[len(ref.steps)-1] }

// measureParts measures the results of the last step that are not measured at every step.
func (ref *reference) measureParts() {
	o := ref.last()
	for name, v := range o.want {
		if o.parts[name] != nil {
			continue
		}
		ms := ref.yardstick.measures(v.Literal, o.literal(name), ref.before[name], v.Layers)
		for i := range ref.uncertain[name] {
			ms[i].least = ref.uncertain[name][i]
		}
		if v.Kind == "state" { // functions of gradients, which move as the parameters do
			for i := range ms {
				ms[i].least = ref.shift * ms[i].scale
			}
		}
		o.parts[name] = ms
	}
}

// widen takes the distances of another measurement where they are larger.
func (o *observation) widen(other *observation) {
	for name, parts := range o.parts {
		for i := range parts {
			m, n := &parts[i], other.parts[name][i]
			m.own, m.least = max(m.own, n.own), max(m.least, n.least)
		}
	}
}

// learn finds out what distances are usual.
func (ref *reference) learn() {
	kinds := make(map[string][]extent)
	for _, v := range ref.last().want {
		if v.Literal.Type.Rank() > 0 {
			kinds[kindOf(v)] = append(kinds[kindOf(v)], ref.last().parts[v.Name]...)
		}
	}
	ref.yardstick.learn(kinds)
}

// compare holds a result of the last step against the reference.
func (ref *reference) compare(v *binding.Named) *Comparison {
	o := ref.last()
	want := o.want[v.Name]
	return ref.yardstick.compareParts(v, theReference, want.Literal, o.literal(v.Name), o.parts[v.Name])
}

// step holds a scalar of step i against the reference.
func (ref *reference) step(i int, v *binding.Named) *Comparison {
	if v == nil {
		return nil
	}
	o := ref.steps[i]
	c := ref.yardstick.compareParts(v, theReference, o.want[v.Name].Literal, o.literal(v.Name), o.parts[v.Name])
	if c.Worst != "" {
		c.Worst = fmt.Sprintf("step %d: %s", ref.r.first+i+1, c.Worst)
	}
	return c
}

// findNaN takes the steps until an op makes a NaN of numbers.
func (r *runner) trapNaN(ctx context.Context, steps int) error {
	e, err := r.evaluation(ctx, eval.Options{Float64: true, NaN: true}, nil)
	if err != nil {
		return err
	}
	return stage(ctx, e.m, "evaluating", func() error {
		if err := e.Bind(r.args); err != nil {
			return err
		}
		for i := range steps {
			if err := r.stepOf(ctx, e.Machine, i); err != nil {
				return err
			}
		}
		return nil
	})
}
