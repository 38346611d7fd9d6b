package lang

import (
	"strings"

	"ppc/ir"
)

// An elab walks the source and builds one function of the module: calls of fn
// are inlined, what is known now is computed now, what is not becomes ops. It
// is also the type checker: a tensor's axes are only known here.
type elab struct {
	p     *program
	b     *ir.Builder // nil where only numbers are evaluated
	scope *scope
	act   *layout // how activations lie here
	layer string  // the layer that is built, "" in a model
	// sizes are the sizes of axes that differ here from the declared ones:
	// the batch of a microbatch. The number is hidden from the program.
	sizes    map[string]int
	fresh    map[string]bool // axes that rename, split and the like made
	frames   []frame         // the functions being inlined, outermost first
	name     string          // the variable being assigned
	inBlocks bool            // in the function of blocks
	random   *randomState
	building *layerFunc  // the layer that is built, nil in a model
	model    *modelState // nil outside of a model
}

// A frame is one call that is being inlined.
type frame struct {
	decl *funcDecl
	call span
}

// A scope is the variables of a function body.
type scope struct {
	vars  map[string]value
	names []string
}

func newScope() *scope { return &scope{vars: make(map[string]value)} }

func (s *scope) set(name string, v value) {
	if _, ok := s.vars[name]; !ok {
		s.names = append(s.names, name)
	}
	s.vars[name] = v
}

// maxSteps bounds how many statements are executed to build a program, calls
// included; a large model takes a few thousand.
const maxSteps = 1 << 17

// fail reports an error at a place and returns poison. A place in the library
// becomes the place of the call that led there, the message names the function.
func (e *elab) fail(at span, hint string, text message, args ...any) value {
	where, prefix := e.where(at)
	if d := e.p.report(where, hint, text, args...); d != nil {
		d.Msg = prefix + d.Msg
	}
	return poison{}
}

func (e *elab) where(at span) (span, string) {
	if at.src == nil || !at.src.std {
		return at, ""
	}
	for i := len(e.frames) - 1; i >= 0; i-- {
		if f := e.frames[i]; !f.call.src.std {
			return f.call, f.decl.name + ": "
		}
	}
	return at, ""
}

// mark makes at the origin of the ops to come, unless it is in the library:
// then the call in the user's file stays.
func (e *elab) mark(at span) {
	if e.b == nil || at.src == nil || at.src.std {
		return
	}
	e.b.Origin = &ir.Origin{Pos: at.pos(), Name: e.name, Layer: e.layer}
	e.p.places[e.b.Origin] = at
}

// run executes statements; done says that one of them returned v.
func (e *elab) run(body []stmt) (v value, done bool) {
	for _, s := range body {
		if e.p.steps++; e.p.steps > maxSteps {
			if e.p.steps == maxSteps+1 {
				e.fail(s.at(), "", errLarge, maxSteps)
			}
			return poison{}, true
		}
		switch s := s.(type) {
		case *assignStmt:
			e.assign(s)
		case *returnStmt:
			return e.returned(s), true
		case *ifStmt:
			if v, done := e.branch(s); done {
				return v, true
			}
		case *weightStmt:
			if len(e.frames) > 0 {
				e.fail(s.span, "declare it in the layer or model and pass it", errParamPlace, s.names[0].name)
				continue
			}
			e.declareWeight(s)
		}
	}
	return none{}, false
}

func (e *elab) assign(s *assignStmt) {
	e.mark(s.span)
	if len(e.frames) == 0 {
		e.name = s.names[0].name
	}
	v := e.eval(s.value)
	if len(s.names) == 1 {
		if t, ok := v.(tuple); ok {
			v = e.fail(s.value.at(), "", errTuple, ir.Counted(len(t), "value"), "1 name")
		}
		e.bind(s.names[0], v)
		return
	}
	t, ok := v.(tuple)
	if !ok || len(t) != len(s.names) {
		if !isPoison(v) {
			e.fail(s.value.at(), "", errTuple, ir.Counted(max(1, len(t)), "value"), ir.Counted(len(s.names), "name"))
		}
		t = make(tuple, len(s.names))
		for i := range t {
			t[i] = poison{}
		}
	}
	for i, n := range s.names {
		e.bind(n, t[i])
	}
}

func (e *elab) bind(n nameRef, v value) {
	if t, ok := v.(*tensor); ok && t.v.Name == "" && !n.src.std {
		t.v.Name = n.name
	}
	e.scope.set(n.name, v)
}

func (e *elab) branch(s *ifStmt) (value, bool) {
	for _, b := range s.branches {
		switch c := e.eval(b.cond).(type) {
		case boolean:
			if c {
				return e.run(b.body)
			}
		case poison:
			return poison{}, false
		case *tensor:
			e.fail(b.cond.at(), "use where(condition, a, b)", errIfTensor, c)
			return none{}, false
		default:
			e.fail(b.cond.at(), "", errWant, "the condition of if", "a truth value", describe(c))
			return none{}, false
		}
	}
	return e.run(s.alt)
}

// returned evaluates the values of a return statement.
func (e *elab) returned(s *returnStmt) value {
	vs := make(tuple, len(s.args))
	for i, a := range s.args {
		if len(e.frames) == 0 {
			e.name = "return"
		}
		vs[i] = e.eval(a.value)
	}
	if len(vs) == 1 {
		return vs[0]
	}
	return vs
}

// eval evaluates an expression.
func (e *elab) eval(x expr) value {
	v := e.evaluate(x)
	if t, ok := v.(*tensor); ok && e.p.explicit() {
		e.p.nameAxes(t)
	}
	return v
}

func (e *elab) evaluate(x expr) value {
	switch x := x.(type) {
	case *numberLit:
		return number(x.value)
	case *textLit:
		return text(x.text)
	case *nameRef:
		return e.lookup(x)
	case *listLit:
		return e.evalList(x)
	case *rulesLit:
		return shardRules(x.rules)
	case *unaryExpr:
		return e.unary(x)
	case *binaryExpr:
		return e.binary(x)
	case *callExpr:
		return e.call(x)
	}
	return poison{}
}

func (e *elab) evalList(x *listLit) value {
	out := make(list, len(x.items))
	for i, it := range x.items {
		if it.name != nil || it.to != nil {
			return e.fail(it.span, "", errItem)
		}
		out[i] = e.eval(it.value)
	}
	return out
}

// constants are names that are always known.
var constants = map[string]value{"true": boolean(true), "false": boolean(false), "none": none{}, "pi": number(3.14159265358979323846), "ones": initializer("ones"), "zeros": initializer("zeros")}

func (e *elab) lookup(x *nameRef) value {
	if e.scope != nil {
		if v, ok := e.scope.vars[x.name]; ok {
			return v
		}
	}
	if v, ok := constants[x.name]; ok {
		return v
	}
	if e.p.axes.of[x.name] != nil || e.fresh[x.name] {
		return axisName(x.name)
	}
	if t, ok := e.p.elemNamed(x.name); ok {
		return elemType(t)
	}
	if d := e.p.fns[x.name]; d != nil && d.kind == "layer" {
		return layerRef{d}
	}
	hint := suggest(typeWord, x.name, e.visible())
	if e.p.fns[x.name] != nil || e.p.builtins[x.name] != nil {
		hint = "call it: " + x.name + "(…)"
	}
	return e.fail(x.span, hint, errUnknownName, x.name)
}

// visible are the names that an expression may use, for hints.
func (e *elab) visible() []string {
	var out []string
	if e.scope != nil {
		out = append(out, e.scope.names...)
	}
	return append(out, e.p.axes.names...)
}

// size is the size of a declared axis here.
func (e *elab) size(name string) (int, bool) {
	if n, ok := e.sizes[name]; ok {
		return n, true
	}
	if e.p.axes.of[name] == nil {
		return 1, false
	}
	return e.p.axisSize(name)
}

// toNumber reads a number, or the size of an axis.
func (e *elab) toNumber(v value, at expr, what string) (number, bool) {
	switch v := v.(type) {
	case number:
		return v, true
	case poison:
		return 0, false
	case axisName:
		if _, ok := e.sizes[string(v)]; ok {
			e.fail(at.at(), "use mean, which does not depend on it", errHidden, string(v))
			return 0, false
		}
		n, ok := e.size(string(v))
		if !ok && e.p.axes.of[string(v)] == nil {
			e.fail(at.at(), "size(x, "+string(v)+") is the size on the tensor x", errNoSize, string(v))
		}
		return number(n), ok
	}
	e.fail(at.at(), "", errWant, what, "a number", describe(v))
	return 0, false
}

// axisOf reads an axis argument. A variable counts where it is bound to an
// axis; otherwise the name is the axis itself.
func (e *elab) axisOf(x expr) (string, bool) {
	n, ok := x.(*nameRef)
	if !ok {
		v := e.eval(x)
		if a, ok := v.(axisName); ok {
			return string(a), true
		}
		if !isPoison(v) {
			e.fail(x.at(), "", errWant, "this argument", "an axis", describe(v))
		}
		return "", false
	}
	if e.scope != nil {
		switch v := e.scope.vars[n.name].(type) {
		case axisName:
			return string(v), true
		case poison:
			return "", false
		}
	}
	if e.p.axes.of[n.name] == nil && !e.fresh[n.name] && !n.src.std {
		e.fail(n.span, near(n.name, e.p.axes.names), errUnknownAxis, n.name)
		return "", false
	}
	return n.name, true
}

// makeAxis notes that ops here make an axis of this name.
func (e *elab) makeAxis(name string) {
	if e.fresh == nil {
		e.fresh = make(map[string]bool)
	}
	e.fresh[name] = true
}

// typ reads a tensor type with declared axes.
func (e *elab) typ(t *typeExpr) (elem ir.DType, axes []axis, ok bool) {
	ok = true
	elem, known := e.p.elemNamed(t.elem)
	if !known {
		at := t.span
		at.len = max(1, len(t.elem))
		if t.elem == "" {
			e.fail(at, "write f32["+joinNames(t.axes)+"]", errNoElem)
		} else {
			e.fail(at, suggest(typeWord, t.elem, e.p.typeNames()), errUnknownType, t.elem)
		}
		ok = false
	}
	total := 1
	for i, a := range t.axes {
		n, known := e.size(a.name)
		if e.p.axes.of[a.name] == nil {
			e.fail(a.span, near(a.name, e.p.axes.names), errUnknownAxis, a.name)
		}
		for _, b := range t.axes[:i] {
			if b.name == a.name {
				e.fail(a.span, "declare an alias: axes { "+a.name+"_2 = "+a.name+" }", errAxisTwice, a.name, t.text())
				known = false
			}
		}
		ok = ok && known
		if total > maxElements/n {
			e.fail(t.span, "", errTensorLarge, t.text(), maxElements)
			return elem, nil, false
		}
		total *= n
		axes = append(axes, axis{a.name, n})
	}
	return elem, axes, ok
}

// maxElements bounds a tensor, so that sizes in bytes stay in 64 bits.
const maxElements = 1 << 50

func joinNames(ns []nameRef) string {
	ss := make([]string, len(ns))
	for i, n := range ns {
		ss[i] = n.name
	}
	return strings.Join(ss, ", ")
}

func (t *typeExpr) text() string {
	if !t.open {
		return t.elem
	}
	return t.elem + "[" + joinNames(t.axes) + "]"
}
