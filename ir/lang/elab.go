package lang

import (
	"ppc/ir"
	"ppc/ir/lang/syntax"
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
	decl *syntax.FuncDecl
	call syntax.Span
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
func (e *elab) fail(at syntax.Span, hint string, text syntax.Message, args ...any) value {
	where, prefix := e.where(at)
	if d := e.p.Report(where, hint, text, args...); d != nil {
		d.Msg = prefix + d.Msg
	}
	return poison{}
}

func (e *elab) where(at syntax.Span) (syntax.Span, string) {
	if at.Src == nil || !at.Src.Std {
		return at, ""
	}
	for i := len(e.frames) - 1; i >= 0; i-- {
		if f := e.frames[i]; !f.call.Src.Std {
			return f.call, f.decl.Name + ": "
		}
	}
	return at, ""
}

// mark makes at the origin of the ops to come, unless it is in the library:
// then the call in the user's file stays.
func (e *elab) mark(at syntax.Span) {
	if e.b == nil || at.Src == nil || at.Src.Std {
		return
	}
	e.b.Origin = &ir.Origin{Pos: at.Pos(), Name: e.name, Layer: e.layer}
	e.p.places[e.b.Origin] = at
}

// run executes statements; done says that one of them returned v.
func (e *elab) run(body []syntax.Stmt) (v value, done bool) {
	for _, s := range body {
		if e.p.steps++; e.p.steps > maxSteps {
			if e.p.steps == maxSteps+1 {
				e.fail(s.At(), "", errLarge, maxSteps)
			}
			return poison{}, true
		}
		switch s := s.(type) {
		case *syntax.AssignStmt:
			e.assign(s)
		case *syntax.ReturnStmt:
			return e.returned(s), true
		case *syntax.IfStmt:
			if v, done := e.branch(s); done {
				return v, true
			}
		case *syntax.WeightStmt:
			if len(e.frames) > 0 {
				e.fail(s.Span, "declare it in the layer or model and pass it", errParamPlace, s.Names[0].Name)
				continue
			}
			e.declareWeight(s)
		}
	}
	return none{}, false
}

func (e *elab) assign(s *syntax.AssignStmt) {
	e.mark(s.Span)
	if len(e.frames) == 0 {
		e.name = s.Names[0].Name
	}
	v := e.eval(s.Value)
	if len(s.Names) == 1 {
		if t, ok := v.(tuple); ok {
			v = e.fail(s.Value.At(), "", errTuple, ir.Counted(len(t), "value"), "1 name")
		}
		e.bind(s.Names[0], v)
		return
	}
	t, ok := v.(tuple)
	if !ok || len(t) != len(s.Names) {
		if !isPoison(v) {
			e.fail(s.Value.At(), "", errTuple, ir.Counted(max(1, len(t)), "value"), ir.Counted(len(s.Names), "name"))
		}
		t = make(tuple, len(s.Names))
		for i := range t {
			t[i] = poison{}
		}
	}
	for i, n := range s.Names {
		e.bind(n, t[i])
	}
}

func (e *elab) bind(n syntax.NameRef, v value) {
	if t, ok := v.(*tensor); ok && t.v.Name == "" && !n.Src.Std {
		t.v.Name = n.Name
	}
	e.scope.set(n.Name, v)
}

func (e *elab) branch(s *syntax.IfStmt) (value, bool) {
	for _, b := range s.Branches {
		switch c := e.eval(b.Cond).(type) {
		case boolean:
			if c {
				return e.run(b.Body)
			}
		case poison:
			return poison{}, false
		case *tensor:
			e.fail(b.Cond.At(), "use where(condition, a, b)", errIfTensor, c)
			return none{}, false
		default:
			e.fail(b.Cond.At(), "", errWant, "the condition of if", "a truth value", describe(c))
			return none{}, false
		}
	}
	return e.run(s.Alt)
}

// returned evaluates the values of a return statement.
func (e *elab) returned(s *syntax.ReturnStmt) value {
	vs := make(tuple, len(s.Args))
	for i, a := range s.Args {
		if len(e.frames) == 0 {
			e.name = "return"
		}
		vs[i] = e.eval(a.Value)
	}
	if len(vs) == 1 {
		return vs[0]
	}
	return vs
}

// eval evaluates an expression.
func (e *elab) eval(x syntax.Expr) value {
	v := e.evaluate(x)
	if t, ok := v.(*tensor); ok && e.p.explicit() {
		e.p.nameAxes(t)
	}
	return v
}

func (e *elab) evaluate(x syntax.Expr) value {
	switch x := x.(type) {
	case *syntax.NumberLit:
		return number(x.Value)
	case *syntax.TextLit:
		return text(x.Text)
	case *syntax.NameRef:
		return e.lookup(x)
	case *syntax.ListLit:
		return e.evalList(x)
	case *syntax.RulesLit:
		return shardRules(x.Rules)
	case *syntax.UnaryExpr:
		return e.unary(x)
	case *syntax.BinaryExpr:
		return e.binary(x)
	case *syntax.CallExpr:
		return e.call(x)
	}
	return poison{}
}

func (e *elab) evalList(x *syntax.ListLit) value {
	out := make(list, len(x.Items))
	for i, it := range x.Items {
		if it.Name != nil || it.To != nil {
			return e.fail(it.Span, "", errItem)
		}
		out[i] = e.eval(it.Value)
	}
	return out
}

// constants are names that are always known.
var constants = map[string]value{"true": boolean(true), "false": boolean(false), "none": none{}, "pi": number(3.14159265358979323846), "ones": initializer("ones"), "zeros": initializer("zeros")}

func (e *elab) lookup(x *syntax.NameRef) value {
	if e.scope != nil {
		if v, ok := e.scope.vars[x.Name]; ok {
			return v
		}
	}
	if v, ok := constants[x.Name]; ok {
		return v
	}
	if e.p.axes.of[x.Name] != nil || e.fresh[x.Name] {
		return axisName(x.Name)
	}
	if t, ok := e.p.elemNamed(x.Name); ok {
		return elemType(t)
	}
	if d := e.p.fns[x.Name]; d != nil && d.Kind == "layer" {
		return layerRef{d}
	}
	hint := syntax.Suggest(syntax.TypeWord, x.Name, e.visible())
	if e.p.fns[x.Name] != nil || e.p.builtins[x.Name] != nil {
		hint = "call it: " + x.Name + "(…)"
	}
	return e.fail(x.Span, hint, errUnknownName, x.Name)
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
func (e *elab) toNumber(v value, at syntax.Expr, what string) (number, bool) {
	switch v := v.(type) {
	case number:
		return v, true
	case poison:
		return 0, false
	case axisName:
		if _, ok := e.sizes[string(v)]; ok {
			e.fail(at.At(), "use mean, which does not depend on it", errHidden, string(v))
			return 0, false
		}
		n, ok := e.size(string(v))
		if !ok && e.p.axes.of[string(v)] == nil {
			e.fail(at.At(), "size(x, "+string(v)+") is the size on the tensor x", errNoSize, string(v))
		}
		return number(n), ok
	}
	e.fail(at.At(), "", errWant, what, "a number", describe(v))
	return 0, false
}

// axisOf reads an axis argument. A variable counts where it is bound to an
// axis; otherwise the name is the axis itself.
func (e *elab) axisOf(x syntax.Expr) (string, bool) {
	n, ok := x.(*syntax.NameRef)
	if !ok {
		v := e.eval(x)
		if a, ok := v.(axisName); ok {
			return string(a), true
		}
		if !isPoison(v) {
			e.fail(x.At(), "", errWant, "this argument", "an axis", describe(v))
		}
		return "", false
	}
	if e.scope != nil {
		switch v := e.scope.vars[n.Name].(type) {
		case axisName:
			return string(v), true
		case poison:
			return "", false
		}
	}
	if e.p.axes.of[n.Name] == nil && !e.fresh[n.Name] && !n.Src.Std {
		e.fail(n.Span, syntax.Near(n.Name, e.p.axes.names), errUnknownAxis, n.Name)
		return "", false
	}
	return n.Name, true
}

// makeAxis notes that ops here make an axis of this name.
func (e *elab) makeAxis(name string) {
	if e.fresh == nil {
		e.fresh = make(map[string]bool)
	}
	e.fresh[name] = true
}

// typ reads a tensor type with declared axes.
func (e *elab) typ(t *syntax.TypeExpr) (elem ir.DType, axes []axis, ok bool) {
	ok = true
	elem, known := e.p.elemNamed(t.Elem)
	if !known {
		at := t.Span
		at.Len = max(1, len(t.Elem))
		if t.Elem == "" {
			e.fail(at, "write f32["+syntax.JoinNames(t.Axes)+"]", errNoElem)
		} else {
			e.fail(at, syntax.Suggest(syntax.TypeWord, t.Elem, e.p.typeNames()), errUnknownType, t.Elem)
		}
		ok = false
	}
	total := 1
	for i, a := range t.Axes {
		n, known := e.size(a.Name)
		if e.p.axes.of[a.Name] == nil {
			e.fail(a.Span, syntax.Near(a.Name, e.p.axes.names), errUnknownAxis, a.Name)
		}
		for _, b := range t.Axes[:i] {
			if b.Name == a.Name {
				e.fail(a.Span, "declare an alias: axes { "+a.Name+"_2 = "+a.Name+" }", errAxisTwice, a.Name, t.Text())
				known = false
			}
		}
		ok = ok && known
		if total > maxElements/n {
			e.fail(t.Span, "", errTensorLarge, t.Text(), maxElements)
			return elem, nil, false
		}
		total *= n
		axes = append(axes, axis{a.Name, n})
	}
	return elem, axes, ok
}

// maxElements bounds a tensor, so that sizes in bytes stay in 64 bits.
const maxElements = 1 << 50
