package lang

import (
	"fmt"
	"slices"

	"ppc/ir"
)

// A modelState is what is built besides the values of the main function.
type modelState struct {
	module *ir.Module
	params map[string]span       // parameter paths that are taken
	layers map[string]*layerFunc // by everything that a layer function depends on
	step   *ir.Value             // the parameter that random numbers depend on; nil without

	declared []*declaredParam // the parameters of main, in order

	batch   string      // the axis of the examples; "" where nothing has one
	reduced []*ir.Value // what sums and the like over the examples give
	ratios  []ratio     // quotients of tensors
}

// A declaredParam is a parameter of main and where it is declared.
type declaredParam struct {
	span
	path  string
	value *ir.Value
}

// A ratio is a quotient of tensors and where it stands.
type ratio struct {
	span
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
		root := p.files[len(p.files)-1].src
		p.report(span{root, 1, 1, 1}, "model name(inputs) { … return loss }", errNoModel)
		return nil
	}
	d := p.models[0]
	m := &ir.Module{Name: d.name}
	if p.mesh != nil {
		m.Meshes = []*ir.Mesh{p.mesh}
	}
	if p.explicit() {
		m.Attrs.Set(ir.KeyMode, ir.Str("explicit"))
	}
	f := ir.NewFunc("main")
	f.Origin = &ir.Origin{Pos: d.pos(), Name: d.name}
	e := &elab{p: p, b: ir.NewBuilder(f), scope: newScope(), model: &modelState{module: m, params: make(map[string]span), layers: make(map[string]*layerFunc)}}
	e.act = &layout{p: p, of: "activations", rules: p.rules["activations"], lead: []string{"stage"}}
	e.act.batch, p.pipelined = p.batchAxis(d)
	e.inputs(d)
	e.model.batch = e.act.batch
	for _, q := range d.params {
		if e.model.batch == "" && q.typ != nil && len(q.typ.axes) > 0 {
			e.model.batch = q.typ.axes[0].name
		}
	}
	v, done := e.run(d.body)
	if !done {
		e.fail(d.span, "return loss", errNoReturn, "model", d.name)
	}
	e.results(d, v)
	p.checkUnused(e.model.layers)
	m.Funcs = append([]*ir.Func{f}, m.Funcs...)
	if p.count == 0 {
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
	built := make(map[*funcDecl]bool)
	for _, l := range used {
		built[l.decl] = true
	}
	for _, name := range sortedKeys(p.fns) {
		d := p.fns[name]
		if d.kind != "layer" || built[d] || !p.checkLayer(d) {
			continue
		}
		known := make(map[string]value)
		ok := true
		for _, q := range d.params {
			if q.static() {
				if ok = ok && q.def != nil; ok {
					known[q.name] = (&elab{p: p}).eval(q.def)
				}
			}
		}
		if batch := p.axes.of[d.params[0].typ.axes[0].name]; ok && batch != nil {
			p.buildLayer(d, batch.size, nil, known, false)
		}
	}
}

// batchAxis is the axis that pipelines cut into microbatches: the first axis
// of the first argument of the layers that d stacks. pipelined says whether
// the first of them is in a pipeline.
func (p *program) batchAxis(d *funcDecl) (name string, pipelined bool) {
	var visit func(x expr)
	visit = func(x expr) {
		switch x := x.(type) {
		case *callExpr:
			visit(x.fn)
			for _, a := range x.args {
				if n, ok := a.value.(*nameRef); ok && name == "" {
					if l := p.fns[n.name]; l != nil && l.kind == "layer" && len(l.params) > 0 && l.params[0].typ != nil && len(l.params[0].typ.axes) > 0 {
						name = l.params[0].typ.axes[0].name
						fn, _ := x.fn.(*nameRef)
						pipelined = fn != nil && fn.name == "pipeline"
					}
				}
				visit(a.value)
			}
		case *binaryExpr:
			visit(x.x)
			visit(x.y)
		case *unaryExpr:
			visit(x.x)
		case *listLit:
			for _, it := range x.items {
				visit(it.value)
			}
		}
	}
	visitBody(d.body, visit)
	return name, pipelined
}

// visitBody calls visit for every expression of a body.
func visitBody(body []stmt, visit func(expr)) {
	for _, s := range body {
		switch s := s.(type) {
		case *assignStmt:
			visit(s.value)
		case *returnStmt:
			for _, a := range s.args {
				visit(a.value)
			}
		case *ifStmt:
			for _, b := range s.branches {
				visit(b.cond)
				visitBody(b.body, visit)
			}
			visitBody(s.alt, visit)
		}
	}
}

// inputs declares the inputs of the model.
func (e *elab) inputs(d *funcDecl) {
	for _, q := range d.params {
		if _, taken := e.scope.vars[q.name]; taken {
			e.fail(q.span, "", errTwice, "input", q.name, q.line)
			continue
		}
		if q.typ == nil {
			e.fail(q.span, q.name+": f32[batch]", errUntyped, d.name, q.name)
			e.scope.set(q.name, poison{})
			continue
		}
		elem, axes, ok := e.typ(q.typ)
		if !ok {
			e.scope.set(q.name, poison{})
			continue
		}
		v := e.b.Func.NewArg(e.b.Func.Body, ir.Tensor(elem, shapeOf(axes)...), q.name)
		v.Sharding = e.laid(e.act, q.span, q.name, axes)
		v.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str(q.name)}, ir.NamedAttr{Name: ir.KeyKind, Attr: ir.Str("input")},
			ir.NamedAttr{Name: ir.KeyLogical, Attr: stringArray(namesOf(axes))})
		e.model.params[q.name] = q.span
		e.scope.set(q.name, &tensor{v, axes})
	}
}

// laid is the sharding of a declared tensor; its sizes must divide. Of the
// batch of a pipeline the schedule says so better.
func (e *elab) laid(l *layout, at span, name string, axes []axis) *ir.Sharding {
	p := e.p
	return l.sharding(axes, func(a axis, c cut, parts int) {
		if a.name == l.batch && p.pipelined {
			return
		}
		hint := fmt.Sprintf("%s = %d fits", a.name, (a.size/parts+1)*parts)
		if c.rule != nil && c.rule.src != nil {
			if !p.firstUndivided(c.rule, a.name) {
				return
			}
			hint = fmt.Sprintf("the rule is at %s:%d; %s", c.rule.src.name, c.rule.line, hint)
		}
		e.fail(at, hint, errDivide, name, a.size, a.name, commas(c.mesh), parts)
	})
}

// results makes what the model returns the results of main.
func (e *elab) results(d *funcDecl, v value) {
	vs, ok := v.(tuple)
	if !ok {
		vs = tuple{v}
	}
	if isPoison(vs...) || e.p.count > 0 {
		e.b.Return()
		return
	}
	ret := lastReturn(d.body)
	seen := make(map[string]bool)
	var out []*ir.Value
	for i, r := range vs {
		t, ok := r.(*tensor)
		if !ok {
			e.fail(ret.args[i].span, "", errWant, "the result of a model", "a tensor", describe(r))
			continue
		}
		name := resultName(ret.args[i], t, len(vs))
		if seen[name] {
			e.fail(ret.args[i].span, "return loss: …, out: …", errResultTwice, name)
		}
		seen[name] = true
		e.b.Func.Results = append(e.b.Func.Results, ir.Result{Type: t.v.Type, Sharding: e.act.sharding(t.axes, nil), Attrs: ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str(name)})})
		out = append(out, t.v)
	}
	e.b.Return(out...)
}

// resultName is what was written, or loss for a number, or the variable's name.
func resultName(a arg, t *tensor, n int) string {
	if a.name != nil {
		return a.name.name
	}
	if len(t.axes) == 0 && t.elem().IsFloat() && n == 1 {
		return "loss"
	}
	if v, ok := a.value.(*nameRef); ok {
		return v.name
	}
	return "out"
}

// lastReturn is the return statement that ended a body: the last one written,
// since those in branches not taken do not count.
func lastReturn(body []stmt) *returnStmt {
	for i := len(body) - 1; i >= 0; i-- {
		if r, ok := body[i].(*returnStmt); ok {
			return r
		}
	}
	return nil
}

// A weight is one param of a layer.
type weight struct {
	span
	name string
	elem ir.DType
	axes []axis
	init string
	file string

	frozen bool // not trained
}

// weights declares the names of one param statement.
func (e *elab) weights(s *weightStmt) []weight {
	elem, axes, ok := e.typ(s.typ)
	init, okInit := e.initial(s)
	var out []weight
	for _, n := range s.names {
		if _, taken := e.scope.vars[n.name]; taken {
			e.fail(n.span, "", errParamTwice, n.name)
			continue
		}
		if !ok || !okInit {
			e.scope.set(n.name, poison{})
			continue
		}
		w := weight{span: n.span, name: n.name, elem: elem, axes: axes, init: init, frozen: s.frozen}
		if s.file != nil {
			if w.file = s.file.text; len(s.names) > 1 {
				e.fail(s.file.span, "declare them one by one", errFileMany, s.file.text, len(s.names))
			}
		}
		out = append(out, w)
	}
	return out
}

// initial is the initializer of a param; none is zeros... a param must say.
func (e *elab) initial(s *weightStmt) (string, bool) {
	if s.init == nil {
		e.fail(s.names[0].span, "= normal(0.02), ones or zeros", errNoInit, s.names[0].name)
		return "", false
	}
	switch v := e.eval(s.init).(type) {
	case initializer:
		return string(v), true
	case poison:
		return "", false
	default:
		e.fail(s.init.at(), "normal(0.02), uniform(-1, 1), constant(0.5), ones or zeros", errWant, "the value of a param", "an initializer", describe(v))
		return "", false
	}
}

// parameter appends a parameter of main: path is its name, layers the length
// of the leading axis of a layer's stacked parameter, 0 for the model's own.
func (e *elab) parameter(at span, w weight, path string, layers int) *ir.Value {
	if prev, taken := e.model.params[path]; taken {
		e.fail(at, `stack(…, name: "other")`, errPathTwice, path, prev.line)
	}
	e.model.params[path] = at
	shape := shapeOf(w.axes)
	if layers > 0 {
		shape = append([]int{layers}, shape...)
	}
	v := e.b.Func.NewArg(e.b.Func.Body, ir.Tensor(w.elem, shape...), path)
	if s := e.laid(e.p.weightLayout(layers > 0), w.span, w.name, w.axes); s != nil {
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
	e.model.declared = append(e.model.declared, &declaredParam{span: w.span, path: path, value: v})
	return v
}

// declareWeight makes the params of a statement variables: of the main
// function in a model, of the layer function in a layer.
func (e *elab) declareWeight(s *weightStmt) {
	for _, w := range e.weights(s) {
		if e.building != nil {
			e.building.weight(e, w)
			continue
		}
		e.scope.set(w.name, e.whole(&tensor{e.parameter(w.span, w, w.name, 0), w.axes}))
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
