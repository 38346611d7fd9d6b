package lang

import (
	"fmt"
	"slices"

	"ppc/ir"
	"ppc/ir/lang/syntax"
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

// A ratio is a quotient of tensors and where it stands.
type ratio struct {
	syntax.Span
	x, by   string // as the source has them
	value   *ir.Value
	divisor *ir.Value
}

// build makes the module of the program's model.
func (p *program) build() *ir.Module {
	if len(p.models) == 0 && p.opts.Library {
		p.checkUnused(nil)
		return nil
	}
	if len(p.models) == 0 {
		root := p.files[len(p.files)-1].Src
		p.Report(syntax.Span{Src: root, Line: 1, Col: 1, Len: 1}, "model name(inputs) { … return loss }", errNoModel)
		return nil
	}
	d := p.models[0]
	m := &ir.Module{Name: d.Name}
	if p.mesh != nil {
		m.Meshes = []*ir.Mesh{p.mesh}
	}
	if p.explicit() {
		m.Attrs.Set(ir.KeyMode, ir.Str("explicit"))
	}
	f := ir.NewFunc("main")
	f.Origin = &ir.Origin{Pos: d.Pos(), Name: d.Name}
	e := &elab{p: p, b: ir.NewBuilder(f), scope: newScope(), model: &modelState{module: m, params: make(map[string]syntax.Span), layers: make(map[string]*layerFunc)}}
	e.act = &layout{p: p, of: "activations", rules: p.rules["activations"], lead: []string{"stage"}}
	e.act.batch, p.pipelined = p.batchAxis(d)
	e.inputs(d)
	e.model.batch = e.act.batch
	for _, q := range d.Params {
		if e.model.batch == "" && q.Typ != nil && len(q.Typ.Axes) > 0 {
			e.model.batch = q.Typ.Axes[0].Name
		}
	}
	v, done := e.run(d.Body)
	if !done {
		e.fail(d.Span, "return loss", errNoReturn, "model", d.Name)
	}
	e.results(d, v)
	p.checkUnused(e.model.layers)
	m.Funcs = append([]*ir.Func{f}, m.Funcs...)
	if p.Count == 0 {
		p.checkNames(m)
		p.markTraining(e.model, d, v)
		p.checkAccumulated(e.model, d)
		if n, given := p.num("pipeline", "combine"); given {
			m.Attrs.Set(ir.KeyCombine, ir.I64Attr(n))
		}
	}
	return m
}

// checkUnused builds the layers that no model stacks, to see their errors.
func (p *program) checkUnused(used map[string]*layerFunc) {
	p.rests = true
	built := make(map[*syntax.FuncDecl]bool)
	for _, l := range used {
		built[l.decl] = true
	}
	for _, name := range sortedKeys(p.fns) {
		d := p.fns[name]
		if d.Kind != "layer" || built[d] || !p.checkLayer(d) {
			continue
		}
		known := make(map[string]value)
		ok := true
		for _, q := range d.Params {
			if q.Static() {
				if ok = ok && q.Def != nil; ok {
					known[q.Name] = (&elab{p: p}).eval(q.Def)
				}
			}
		}
		if batch := p.axes.of[d.Params[0].Typ.Axes[0].Name]; ok && batch != nil {
			p.buildLayer(d, batch.size, nil, known, false)
		}
	}
}

// batchAxis is the axis that pipelines cut into microbatches: the first axis
// of the first argument of the layers that d stacks. pipelined says whether
// the first of them is in a pipeline.
func (p *program) batchAxis(d *syntax.FuncDecl) (name string, pipelined bool) {
	var visit func(x syntax.Expr)
	visit = func(x syntax.Expr) {
		switch x := x.(type) {
		case *syntax.CallExpr:
			visit(x.Fn)
			for _, a := range x.Args {
				if n, ok := a.Value.(*syntax.NameRef); ok && name == "" {
					if l := p.fns[n.Name]; l != nil && l.Kind == "layer" && len(l.Params) > 0 && l.Params[0].Typ != nil && len(l.Params[0].Typ.Axes) > 0 {
						name = l.Params[0].Typ.Axes[0].Name
						fn, _ := x.Fn.(*syntax.NameRef)
						pipelined = fn != nil && fn.Name == "pipeline"
					}
				}
				visit(a.Value)
			}
		case *syntax.BinaryExpr:
			visit(x.X)
			visit(x.Y)
		case *syntax.UnaryExpr:
			visit(x.X)
		case *syntax.ListLit:
			for _, it := range x.Items {
				visit(it.Value)
			}
		}
	}
	visitBody(d.Body, visit)
	return name, pipelined
}

// visitBody calls visit for every expression of a body.
func visitBody(body []syntax.Stmt, visit func(syntax.Expr)) {
	for _, s := range body {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			visit(s.Value)
		case *syntax.ReturnStmt:
			for _, a := range s.Args {
				visit(a.Value)
			}
		case *syntax.IfStmt:
			for _, b := range s.Branches {
				visit(b.Cond)
				visitBody(b.Body, visit)
			}
			visitBody(s.Alt, visit)
		}
	}
}

// inputs declares the inputs of the model.
func (e *elab) inputs(d *syntax.FuncDecl) {
	for _, q := range d.Params {
		if _, taken := e.scope.vars[q.Name]; taken {
			e.fail(q.Span, "", errTwice, "input", q.Name, q.Line)
			continue
		}
		if q.Typ == nil {
			e.fail(q.Span, q.Name+": f32[batch]", errUntyped, d.Name, q.Name)
			e.scope.set(q.Name, poison{})
			continue
		}
		elem, axes, ok := e.typ(q.Typ)
		if !ok {
			e.scope.set(q.Name, poison{})
			continue
		}
		v := e.b.Func.NewArg(e.b.Func.Body, ir.Tensor(elem, shapeOf(axes)...), q.Name)
		v.Sharding = e.laid(e.act, q.Span, q.Name, axes)
		v.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str(q.Name)}, ir.NamedAttr{Name: ir.KeyKind, Attr: ir.Str("input")},
			ir.NamedAttr{Name: ir.KeyLogical, Attr: stringArray(namesOf(axes))})
		e.model.params[q.Name] = q.Span
		e.scope.set(q.Name, &tensor{v, axes})
	}
}

// laid is the sharding of a declared tensor; its sizes must divide. Of the
// batch of a pipeline the schedule says so better.
func (e *elab) laid(l *layout, at syntax.Span, name string, axes []axis) *ir.Sharding {
	p := e.p
	return l.sharding(axes, func(a axis, c cut, parts int) {
		if a.name == l.batch && p.pipelined {
			return
		}
		hint := fmt.Sprintf("%s = %d fits", a.name, (a.size/parts+1)*parts)
		if c.rule != nil && c.rule.Src != nil {
			if !p.firstUndivided(c.rule, a.name) {
				return
			}
			hint = fmt.Sprintf("the rule is at %s:%d; %s", c.rule.Src.Name, c.rule.Line, hint)
		}
		e.fail(at, hint, errDivide, name, a.size, a.name, commas(c.mesh), parts)
	})
}

// results makes what the model returns the results of main.
func (e *elab) results(d *syntax.FuncDecl, v value) {
	vs, ok := v.(tuple)
	if !ok {
		vs = tuple{v}
	}
	if isPoison(vs...) || e.p.Count > 0 {
		e.b.Return()
		return
	}
	ret := lastReturn(d.Body)
	seen := make(map[string]bool)
	var out []*ir.Value
	for i, r := range vs {
		t, ok := r.(*tensor)
		if !ok {
			e.fail(ret.Args[i].Span, "", errWant, "the result of a model", "a tensor", describe(r))
			continue
		}
		name := resultName(ret.Args[i], t, len(vs))
		if seen[name] {
			e.fail(ret.Args[i].Span, "return loss: …, out: …", errResultTwice, name)
		}
		seen[name] = true
		e.b.Func.Results = append(e.b.Func.Results, ir.Result{Type: t.v.Type, Sharding: e.act.sharding(t.axes, nil), Attrs: ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str(name)})})
		out = append(out, t.v)
	}
	e.b.Return(out...)
}

// resultName is what was written, or loss for a number, or the variable's name.
func resultName(a syntax.Arg, t *tensor, n int) string {
	if a.Name != nil {
		return a.Name.Name
	}
	if len(t.axes) == 0 && t.elem().IsFloat() && n == 1 {
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
	axes []axis
	init string
	file string

	frozen bool // not trained
}

// weights declares the names of one param statement.
func (e *elab) weights(s *syntax.WeightStmt) []weight {
	elem, axes, ok := e.typ(s.Typ)
	init, okInit := e.initial(s)
	var out []weight
	for _, n := range s.Names {
		if _, taken := e.scope.vars[n.Name]; taken {
			e.fail(n.Span, "", errParamTwice, n.Name)
			continue
		}
		if !ok || !okInit {
			e.scope.set(n.Name, poison{})
			continue
		}
		w := weight{Span: n.Span, name: n.Name, elem: elem, axes: axes, init: init, frozen: s.Frozen}
		if s.File != nil {
			if w.file = s.File.Text; len(s.Names) > 1 {
				e.fail(s.File.Span, "declare them one by one", errFileMany, s.File.Text, len(s.Names))
			}
		}
		out = append(out, w)
	}
	return out
}

// initial is the initializer of a param; none is zeros... a param must say.
func (e *elab) initial(s *syntax.WeightStmt) (string, bool) {
	if s.Init == nil {
		e.fail(s.Names[0].Span, "= normal(0.02), ones or zeros", errNoInit, s.Names[0].Name)
		return "", false
	}
	switch v := e.eval(s.Init).(type) {
	case initializer:
		return string(v), true
	case poison:
		return "", false
	default:
		e.fail(s.Init.At(), "normal(0.02), uniform(-1, 1), constant(0.5), ones or zeros", errWant, "the value of a param", "an initializer", describe(v))
		return "", false
	}
}

// parameter appends a parameter of main: path is its name, layers the length
// of the leading axis of a layer's stacked parameter, 0 for the model's own.
func (e *elab) parameter(at syntax.Span, w weight, path string, layers int) *ir.Value {
	if prev, taken := e.model.params[path]; taken {
		e.fail(at, `stack(…, name: "other")`, errPathTwice, path, prev.Line)
	}
	e.model.params[path] = at
	shape := shapeOf(w.axes)
	if layers > 0 {
		shape = append([]int{layers}, shape...)
	}
	v := e.b.Func.NewArg(e.b.Func.Body, ir.Tensor(w.elem, shape...), path)
	if s := e.laid(e.p.weightLayout(layers > 0), w.Span, w.name, w.axes); s != nil {
		if v.Sharding = s; layers > 0 {
			v.Sharding = s.Prepend()
		}
	}
	as := []ir.NamedAttr{{Name: ir.KeyName, Attr: ir.Str(path)}, {Name: ir.KeyKind, Attr: ir.Str("param")}, {Name: ir.KeyInit, Attr: ir.Str(w.init)},
		{Name: ir.KeyLogical, Attr: stringArray(namesOf(w.axes))}}
	if layers > 0 {
		as = append(as, ir.NamedAttr{Name: ir.KeyLayers, Attr: ir.I64Attr(layers)})
	}
	if w.file != "" {
		as = append(as, ir.NamedAttr{Name: ir.KeyFile, Attr: ir.Str(w.file)})
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
		e.scope.set(w.name, e.whole(&tensor{e.parameter(w.Span, w, w.name, 0), w.axes}))
	}
}

func sortedKeys[V any](m map[string]V) []string {
	ks := make([]string, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}
