package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"ppc/driver/binding"
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
	scalars   map[string]*extent
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
	ref := &reference{r: r, uncertain: make(map[string][]float64), before: make(map[string]*ir.Literal)}
	var err error
	if ref.exact, err = r.evaluation(ctx, eval.Options{Float64: true}, nil); err != nil {
		return nil, err
	}
	types := r.roundings
	switch {
	case len(types) == 0:
	case types[0] == ir.F64:
		ref.own, err = r.evaluation(ctx, eval.Options{Float32: true}, ref.exact)
	default:
		ref.own, err = r.evaluation(ctx, eval.Options{}, ref.exact)
	}
	if err != nil {
		return nil, err
	}
	m := ref.exact.m
	if ref.own != nil {
		m = ref.own.m
	}
	ref.yardstick = newYardstick(r.typed, m)
	return ref, nil
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
		exposeTerms(e.m)
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
			return e.kernels.run(ctx, args)
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

// exposeTerms makes the terms of the sums that scalar results of main are made
// of results too, so that their rounding can be looked at one by one: that of
// a sum may be nothing by chance.
func exposeTerms(m *ir.Module) {
	f := m.Main()
	ret := f.Return()
	seen := make(map[string]bool)
	for i, r := range slices.Clone(f.Results) {
		name := r.Attrs.Str(ir.KeyName)
		if name == "" {
			name = fmt.Sprint("out", i)
		}
		if !scalarFloat(ret.Operands[i]) || seen[name] {
			continue
		}
		seen[name] = true
		for _, t := range termsOf(ret.Operands[i]) {
			ret.Operands = append(ret.Operands, t)
			f.Results = append(f.Results, ir.Result{Type: t.Type, Attrs: ir.AttrsOf(ir.NamedAttr{Name: "pp.terms_of", Attr: ir.Str(name)})})
		}
	}
}

func scalarFloat(v *ir.Value) bool {
	return v.Type.IsTensor() && v.Type.Rank() == 0 && v.Type.Elem.IsFloat()
}

// termsOf are the operands of the reductions that v is computed from by
// operations on single numbers alone.
func termsOf(v *ir.Value) []*ir.Value {
	var terms []*ir.Value
	seen := make(map[*ir.Value]bool)
	var visit func(v *ir.Value)
	visit = func(v *ir.Value) {
		if seen[v] || v.Def == nil || !scalarFloat(v) {
			return
		}
		seen[v] = true
		if t := v.Def.Operands; v.Def.Kind == ir.Reduce && len(v.Def.Results) == 1 && t[0].Type.Elem.IsFloat() {
			terms = append(terms, t[0])
			return
		}
		for _, x := range v.Def.Operands {
			visit(x)
		}
	}
	visit(v)
	return terms
}

// run takes that many steps in both evaluations, side by side.
func (ref *reference) run(ctx context.Context, steps int) error {
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
	for i := range steps {
		ctx := during(ctx, Progress{Doing: "checking", Unit: "step", Done: i, Total: steps, Even: true})
		for _, e := range ref.evaluations() {
			if err := stage(ctx, e.m, "evaluating", func() error { return ref.r.stepOf(ctx, e.Machine, i) }); err != nil {
				return err
			}
		}
		ref.observe()
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
	y, o := ref.yardstick, &observation{want: byName(ref.exact.Values()), scalars: make(map[string]*extent)}
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
		m := &y.measures(v.Literal, o.literal(name), nil, 1)[0]
		m.own = max(m.own, y.scale*noise[name]*m.scale)
		if last != nil {
			m.own = max(m.own, last.scalars[name].own)
		}
		o.scalars[name] = m
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
// of the measurement: what their terms have, as if the errors of the examples, or
// other parts of the terms, were independent, and what the additions lose, which
// is much where terms cancel.
func (ref *reference) noise() map[string]float64 {
	noise := make(map[string]float64)
	if ref.own == nil {
		return noise
	}
	for i, name := range ref.exact.terms {
		want, own := ref.exact.Value(i), ref.own.Value(i)
		n := want.Type.NumElements()
		row := n / leadingRows(want.Type.Shape)
		sum, squares := 0.0, 0.0
		lost := ref.yardstick.sums / ref.yardstick.scale
		for lo := 0; lo < n; lo += row {
			off := 0.0
			for k := lo; k < lo+row; k++ {
				sum += want.Float(k)
				off += own.Float(k) - want.Float(k)
				squares += lost * want.Float(k) * lost * want.Float(k)
			}
			squares += off * off
		}
		if rel := math.Sqrt(squares) / math.Abs(sum); sum != 0 && !math.IsInf(rel, 0) && !math.IsNaN(rel) {
			noise[name] = max(noise[name], rel)
		}
	}
	return noise
}

// leadingRows is the product of the fewest leading sizes that is at least 16,
// or of all.
func leadingRows(shape []int) int {
	rows := 1
	for _, n := range shape {
		if rows < 16 {
			rows *= n
		}
	}
	return max(rows, 1)
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
	for name, m := range o.scalars {
		if o.want[name].Kind == "" {
			m.least = deviations * binding.Number(gradient.Literal, 0) * math.Sqrt(squares/float64(n))
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
	if m := o.scalars[paramNorm]; m != nil && m.scale > 0 && ref.yardstick.reduced {
		m.least = deviations * math.Sqrt(along) / m.scale
	}
}

// paramNorm is the metric of training that is the norm of all new parameters.
const paramNorm = "param_norm"

// last is what the last step gave.
func (ref *reference) last() *observation { return ref.steps[len(ref.steps)-1] }

// parts measures a result of the last step.
func (ref *reference) parts(v *binding.Named) []extent {
	o := ref.last()
	if m := o.scalars[v.Name]; m != nil {
		return []extent{*m}
	}
	ms := ref.yardstick.measures(v.Literal, o.literal(v.Name), ref.before[v.Name], v.Layers)
	for i := range ref.uncertain[v.Name] {
		ms[i].least = ref.uncertain[v.Name][i]
	}
	if v.Kind == "state" { // functions of gradients, which move as the parameters do
		for i := range ms {
			ms[i].least = ref.shift * ms[i].scale
		}
	}
	return ms
}

// learn finds out what distances are usual.
func (ref *reference) learn() {
	kinds := make(map[string][]extent)
	for _, v := range ref.last().want {
		if v.Literal.Type.Rank() > 0 {
			kinds[kindOf(v)] = append(kinds[kindOf(v)], ref.parts(v)...)
		}
	}
	ref.yardstick.learn(kinds)
}

// compare holds a result of the last step against the reference.
func (ref *reference) compare(v *binding.Named) *Comparison {
	o := ref.last()
	want := o.want[v.Name]
	return ref.yardstick.compareParts(v, theReference, want.Literal, o.literal(v.Name), ref.parts(want))
}

// step holds a scalar of step i against the reference.
func (ref *reference) step(i int, v *binding.Named) *Comparison {
	if v == nil {
		return nil
	}
	o := ref.steps[i]
	c := ref.yardstick.compareParts(v, theReference, o.want[v.Name].Literal, o.literal(v.Name), []extent{*o.scalars[v.Name]})
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
