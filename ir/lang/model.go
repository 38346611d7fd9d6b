package lang

import (
	"fmt"
	"regexp"
	"slices"

	"ppc/internal/arrayname"
	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// A modelState is what is built besides the values of the main function.
type modelState struct {
	module *ir.Module
	params map[string]syntax.Span // parameter paths that are taken
	layers map[string]*layerFunc  // by everything that a layer function depends on
	step   *ir.Value              // the parameter that random numbers depend on; nil without

	declared []*declaredParam // the parameters of main, in order

	batch   string      // the axis of the examples; "" where nothing has one
	reduced []*ir.Value // what sums and the like over the examples give
	ratios  []ratio     // quotients of tensors
}

// A declaredParam is a parameter of main and where it is declared.
type declaredParam struct {
	syntax.Span
	path  string
	value *ir.Value
}

// A ratio is a quotient of tensors and its position.
type ratio struct {
	syntax.Span
	x, by   string // as the source has them
	count   string // that by holds above a number, else by
	value   *ir.Value
	divisor *ir.Value
}

// A builder makes the module of a program.
type builder struct {
	*config.Program
	builtins map[string]*builtin
}

func newBuilder(opts config.Options) *builder {
	p := &builder{builtins: newBuiltins()}
	p.Program = config.NewProgram(opts, config.Language{
		Number: func(_ *config.Program, x syntax.Expr, what string) (value.Number, bool) {
			e := &elab{p: p}
			return e.toNumber(e.eval(x), x, what)
		},
		Builtin: func(name string) bool { return p.builtins[name] != nil },
	})
	return p
}

// build makes the module of the program's model.
func (p *builder) build() *ir.Module {
	if len(p.Models) == 0 && p.Opts.Library {
		p.checkUnused(nil)
		return nil
	}
	if len(p.Models) == 0 {
		root := p.Files[len(p.Files)-1].Src
		p.Report(syntax.Span{Src: root, Line: 1, Col: 1, Len: 1}, "model name(inputs) { … return loss }", syntax.ErrNoModel)
		return nil
	}
	d := p.Models[0]
	m := &ir.Module{Name: d.Name}
	if p.Mesh != nil {
		m.Meshes = []*ir.Mesh{p.Mesh}
	}
	if p.Explicit() {
		m.Attrs.Set(ir.KeyMode, ir.Str("explicit"))
	}
	f := ir.NewFunc("main")
	f.Origin = ir.Origin{Pos: d.Pos()}.Saying(ir.Said{Name: d.Name})
	e := &elab{p: p, b: ir.NewBuilder(f), scope: newScope(), model: &modelState{module: m, params: make(map[string]syntax.Span), layers: make(map[string]*layerFunc)}}
	e.act = &config.Layout{P: p.Program, Of: "activations", Rules: p.Rules["activations"], Lead: []string{"stage"}}
	e.act.Batch, p.Pipelined = p.BatchAxis(d)
	e.inputs(d)
	e.model.batch = e.act.Batch
	for _, q := range d.Params {
		if e.model.batch == "" && q.Typ != nil && len(q.Typ.Axes) > 0 {
			e.model.batch = q.Typ.Axes[0].Name
		}
	}
	v, done := e.run(d.Body)
	if !done {
		e.fail(d.Span, "return loss", syntax.ErrNoReturn, "model", d.Name)
	}
	e.results(d, v)
	p.checkUnused(e.model.layers)
	m.Funcs = append([]*ir.Func{f}, m.Funcs...)
	if p.Count == 0 {
		p.CheckNames(m)
		p.markTraining(e.model, d, v)
		p.checkAccumulated(e.model, d)
		if n, given := p.Num("pipeline", "combine"); given {
			m.Attrs.Set(ir.KeyCombine, ir.I64Attr(n))
		}
	}
	return m
}

// checkUnused builds the layers that no model stacks, to see their errors.
func (p *builder) checkUnused(used map[string]*layerFunc) {
	p.Rests = true
	built := make(map[*syntax.FuncDecl]bool)
	for _, l := range used {
		built[l.decl] = true
		for _, s := range l.group {
			built[s.decl] = true
		}
	}
	for _, name := range config.SortedKeys(p.Fns) {
		d := p.Fns[name]
		if d.Kind != "layer" || built[d] || !p.checkLayer(d) {
			continue
		}
		known := make(map[string]value.Value)
		ok := true
		for _, q := range d.Params {
			if q.Static() {
				if ok = ok && q.Def != nil; ok {
					known[q.Name] = (&elab{p: p}).eval(q.Def)
				}
			}
		}
		if batch := p.Axes.Of[d.Params[0].Typ.Axes[0].Name]; ok && batch != nil {
			p.buildLayer(d, batch.Size, nil, known, noNumbers)
		}
	}
}

// inputs declares the inputs of the model.
func (e *elab) inputs(d *syntax.FuncDecl) {
	for _, q := range d.Params {
		if _, taken := e.scope.vars[q.Name]; taken {
			e.fail(q.Span, "", syntax.ErrTwice, "input", q.Name, q.Line)
			continue
		}
		if q.Typ == nil {
			e.fail(q.Span, q.Name+": f32[batch]", syntax.ErrUntyped, d.Name, q.Name)
			e.scope.set(q.Name, value.Poison{})
			continue
		}
		elem, axes, ok := e.typ(q.Typ)
		if !ok {
			e.scope.set(q.Name, value.Poison{})
			continue
		}
		v := e.b.Func.NewArg(e.b.Func.Body, ir.Tensor(elem, value.ShapeOf(axes)...), q.Name)
		v.Sharding = e.shardingOf(e.act, q.Span, q.Name, axes)
		v.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str(q.Name)}, ir.NamedAttr{Name: ir.KeyKind, Attr: ir.Str("input")},
			ir.NamedAttr{Name: ir.KeyLogical, Attr: config.StringArray(value.NamesOf(axes))})
		e.model.params[q.Name] = q.Span
		e.scope.set(q.Name, &value.Tensor{V: v, Axes: axes})
	}
}

// shardingOf is the sharding of a declared tensor, whose sizes must divide; of the
// batch of a pipeline the schedule says so.
func (e *elab) shardingOf(l *config.Layout, at syntax.Span, name string, axes []value.Axis) *ir.Sharding {
	p := e.p
	return l.Sharding(axes, func(a value.Axis, c config.DimRule, parts int) {
		if a.Name == l.Batch && p.Pipelined {
			return
		}
		hint := fmt.Sprintf("%s = %d fits", a.Name, (a.Size/parts+1)*parts)
		if c.Rule != nil && c.Rule.Src != nil {
			if !p.FirstUndivided(c.Rule, a.Name) {
				return
			}
			hint = fmt.Sprintf("the rule is at %s:%d; %s", c.Rule.Src.Name, c.Rule.Line, hint)
		}
		e.fail(at, hint, syntax.ErrDivide, name, a.Size, a.Name, commas(c.Mesh), parts)
	})
}

// results makes what the model returns the results of main.
func (e *elab) results(d *syntax.FuncDecl, v value.Value) {
	vs, ok := v.(value.Tuple)
	if !ok {
		vs = value.Tuple{v}
	}
	if value.IsPoison(vs...) || e.p.Count > 0 {
		e.b.Return()
		return
	}
	ret := lastReturn(d.Body)
	seen := make(map[string]bool)
	var out []*ir.Value
	for i, r := range vs {
		t, ok := r.(*value.Tensor)
		if !ok {
			e.fail(ret.Args[i].Span, "", syntax.ErrWant, "the result of a model", "a tensor", value.Describe(r))
			continue
		}
		name := resultName(ret.Args[i], t, len(vs))
		if seen[name] {
			e.fail(ret.Args[i].Span, "return loss: …, out: …", syntax.ErrResultTwice, name)
		}
		seen[name] = true
		e.b.Func.Results = append(e.b.Func.Results, ir.Result{Type: t.V.Type, Sharding: e.act.Sharding(t.Axes, nil), Attrs: ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str(name)})})
		out = append(out, t.V)
	}
	e.b.Return(out...)
}

// resultName is what was written, or loss for a number, or the variable's name.
func resultName(a syntax.Arg, t *value.Tensor, n int) string {
	if a.Name != nil {
		return a.Name.Name
	}
	if len(t.Axes) == 0 && t.Elem().IsFloat() && n == 1 {
		return "loss"
	}
	if v, ok := a.Value.(*syntax.NameRef); ok {
		return v.Name
	}
	return "out"
}

// lastReturn is the return statement that ended a body: the last one written,
// since those in branches not taken do not count.
func lastReturn(body []syntax.Stmt) *syntax.ReturnStmt {
	for i := len(body) - 1; i >= 0; i-- {
		if r, ok := body[i].(*syntax.ReturnStmt); ok {
			return r
		}
	}
	return nil
}

// A weight is one param of a layer.
type weight struct {
	syntax.Span
	name string
	elem ir.DType
	axes []value.Axis
	init string
	file string

	under  string // the names of the layers that it is in, within one
	frozen bool   // not trained
	stack  string // in a group of layers: the name of those that have one
	per    int    // and how many they are
}

// weights declares the names of one param statement.
func (e *elab) weights(s *syntax.WeightStmt) []weight {
	elem, axes, ok := e.typ(s.Typ)
	init, okInit := e.initial(s)
	var out []weight
	for _, n := range s.Names {
		if _, taken := e.scope.vars[n.Name]; taken {
			e.fail(n.Span, "", syntax.ErrParamTwice, n.Name)
			continue
		}
		if !ok || !okInit {
			e.scope.set(n.Name, value.Poison{})
			continue
		}
		w := weight{Span: n.Span, name: n.Name, elem: elem, axes: axes, init: init, under: e.under, frozen: s.Frozen}
		if s.File != nil {
			if w.file = e.fileName(s.File.Text); len(s.Names) > 1 {
				e.fail(s.File.Span, "declare them one by one", syntax.ErrFileMany, s.File.Text, len(s.Names))
			}
			e.checkFile(s.File, w.file, axes)
		}
		out = append(out, w)
	}
	return out
}

var (
	inBraces = regexp.MustCompile(`\{[^{}]*\}`)
	word     = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// fileName puts the known arguments of the layer in their places in the name of an
// array: a text for its braces, a number for the name in braces.
func (e *elab) fileName(name string) string {
	return inBraces.ReplaceAllStringFunc(name, func(part string) string {
		if t, ok := e.scope.vars[part[1:len(part)-1]].(value.Text); ok {
			return string(t)
		}
		return word.ReplaceAllStringFunc(part, func(w string) string {
			if n, ok := e.scope.vars[w].(value.Number); ok {
				return n.String()
			}
			return w
		})
	})
}

// checkFile checks the names in braces in the name of an array: indices of the
// first axes of what a file holds of the parameter, in their order. That of a
// layer's parameter has the layers in front.
func (e *elab) checkFile(file *syntax.TextLit, text string, axes []value.Axis) {
	name, err := arrayname.Parse(text)
	if err != nil {
		e.fail(file.Span, "{layer}, {layer * 2 + 1}, or {axis} with an axis of the parameter", syntax.ErrFileName, text, err)
		return
	}
	first := value.NamesOf(axes)
	if e.building != nil {
		first = slices.Insert(first, 0, "layer")
	}
	for i, v := range name.Vars {
		if i >= len(first) {
			e.fail(file.Span, "", syntax.ErrFileIndices, text, len(name.Vars), len(first))
			return
		}
		if v.Axis != first[i] {
			e.fail(file.Span, "", syntax.ErrFileIndex, text, v.Axis, first[i])
			return
		}
	}
}

// initial is the initializer of a param; none is zeros... a param must say.
func (e *elab) initial(s *syntax.WeightStmt) (string, bool) {
	if s.Init == nil {
		e.fail(s.Names[0].Span, "= normal(0.02), ones or zeros", syntax.ErrNoInit, s.Names[0].Name)
		return "", false
	}
	switch v := e.eval(s.Init).(type) {
	case value.Initializer:
		return string(v), true
	case value.Poison:
		return "", false
	default:
		e.fail(s.Init.At(), "normal(0.02), uniform(-1, 1), constant(0.5), ones or zeros", syntax.ErrWant, "the value of a param", "an initializer", value.Describe(v))
		return "", false
	}
}

// parameter appends a parameter of main: path is its name, layers the length
// of the leading axis of a layer's stacked parameter, 0 for the model's own.
func (e *elab) parameter(at syntax.Span, w weight, path string, layers int) *ir.Value {
	if prev, taken := e.model.params[path]; taken {
		e.fail(at, `stack(…, name: "other")`, syntax.ErrPathTwice, path, prev.Line)
	}
	e.model.params[path] = at
	return e.parameterRows(w, path, stackRows{layers: layers, hi: layers, count: layers})
}

// stackRows is which layers a parameter of main holds: of so many in all those from
// lo to hi, count times per of them (per 0 is 1, without an axis). Numbers are those of
// the layers in files, where they do not count from 0.
type stackRows struct {
	layers, lo, hi, count, per int
	numbers                    []int
}

// parameterRows appends a parameter of main that holds some layers of the one
// called path.
func (e *elab) parameterRows(w weight, path string, r stackRows) *ir.Value {
	shape := value.ShapeOf(w.axes)
	rules := e.p.WeightLayout()
	if r.layers > 0 {
		rules = e.p.LayerWeightLayout()
	}
	s := e.shardingOf(rules, w.Span, w.name, w.axes)
	for _, n := range []int{r.per, r.count} {
		if n == 0 {
			continue
		}
		shape = append([]int{n}, shape...)
		if s != nil {
			s = s.Prepend()
		}
	}
	v := e.b.Func.NewArg(e.b.Func.Body, ir.Tensor(w.elem, shape...), path)
	v.Sharding = s
	as := []ir.NamedAttr{{Name: ir.KeyName, Attr: ir.Str(path)}, {Name: ir.KeyKind, Attr: ir.Str("param")}, {Name: ir.KeyInit, Attr: ir.Str(w.init)},
		{Name: ir.KeyLogical, Attr: config.StringArray(value.NamesOf(w.axes))}}
	if r.layers > 0 {
		as = append(as, ir.NamedAttr{Name: ir.KeyLayers, Attr: ir.I64Attr(r.layers)})
	}
	if r.lo > 0 || r.hi < r.layers || r.per > 0 {
		as = append(as, ir.NamedAttr{Name: ir.KeyRows, Attr: ir.Ints{r.lo, r.hi}})
	}
	if w.file != "" {
		as = append(as, ir.NamedAttr{Name: ir.KeyFile, Attr: ir.Str(w.file)})
		if n := len(r.numbers); n > 0 && r.numbers[n-1] >= n {
			as = append(as, ir.NamedAttr{Name: ir.KeyNumbers, Attr: ir.Ints(r.numbers)})
		}
	}
	if w.frozen {
		as = append(as, ir.NamedAttr{Name: ir.KeyFrozen, Attr: ir.Unit{}})
	}
	v.Attrs = ir.AttrsOf(as...)
	e.model.declared = append(e.model.declared, &declaredParam{Span: w.Span, path: path, value: v})
	return v
}

// declareWeight makes the params of a statement variables: of the main
// function in a model, of the layer function in a layer.
func (e *elab) declareWeight(s *syntax.WeightStmt) {
	for _, w := range e.weights(s) {
		if e.building != nil {
			e.building.weight(e, w)
			continue
		}
		e.scope.set(w.name, e.gathered(&value.Tensor{V: e.parameter(w.Span, w, w.name, 0), Axes: w.axes}))
	}
}

// markTraining gives the module of model d the attributes that ask for gradients
// and an update. The first result, v, has to be a loss then.
func (p *builder) markTraining(s *modelState, d *syntax.FuncDecl, v value.Value) {
	m := s.module
	p.applyParams(s)
	switch {
	case p.Opts.Grad:
		m.Attrs.Set(ir.KeyGradient, ir.Str("all"))
	case p.Trains():
		m.Attrs.Set(ir.KeyGradient, ir.Str("params"))
		m.Attrs.Set(ir.KeyTrain, p.TrainAttr())
	default:
		return
	}
	if vs, ok := v.(value.Tuple); ok {
		v = vs[0]
	}
	if t, ok := v.(*value.Tensor); ok && (len(t.Axes) > 0 || !t.Elem().IsFloat()) {
		p.Report(lastReturn(d.Body).Args[0].Span, "mean(…) makes it one", syntax.ErrLoss, d.Name, value.Describe(v))
		return
	}
	if p.Trains() {
		p.leaveUntrained(s)
		p.checkMeanOfMeans(s)
	}
}
