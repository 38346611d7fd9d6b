package lang

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// An elab walks the source and builds one function of the module: calls of fn
// are inlined, what is known now is computed now, what is not becomes ops. It
// is also the type checker: a tensor's axes are only known here.
type elab struct {
	p     *builder
	b     *ir.Builder // nil where only numbers are evaluated
	scope *scope
	act   *config.Layout // the activation rules that apply here
	layer string         // the layer that is built, "" in a model
	// sizes are the sizes of axes that differ here from the declared ones:
	// the batch of a microbatch. The number is hidden from the program.
	sizes    map[string]int
	fresh    map[string]bool // axes that rename, split and the like made
	frames   []frame         // the functions being inlined, outermost first
	name     string          // the variable being assigned
	inBlocks bool            // in the function of blocks
	random   *randomState
	building *layerFunc  // the layer that is built, nil in a model
	under    string      // what the names of parameters begin with: the layers that are applied in it
	model    *modelState // nil outside of a model
}

// A frame is one call that is being inlined.
type frame struct {
	decl *syntax.FuncDecl
	call syntax.Span
}

// A scope is the variables of a function body.
type scope struct {
	vars  map[string]value.Value
	names []string
}

func newScope() *scope { return &scope{vars: make(map[string]value.Value)} }

func (s *scope) set(name string, v value.Value) {
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
func (e *elab) fail(at syntax.Span, hint string, text syntax.Message, args ...any) value.Value {
	where, prefix := e.where(at)
	if d := e.p.Report(where, hint, text, args...); d != nil {
		d.Msg = prefix + d.Msg
	}
	return value.Poison{}
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
	e.b.Origin = ir.Origin{Pos: at.Pos()}.Saying(ir.Said{Name: e.name, Layer: e.layer})
	e.p.Places[e.b.Origin] = at
}

// run executes statements; done says that one of them returned v.
func (e *elab) run(body []syntax.Stmt) (v value.Value, done bool) {
	for _, s := range body {
		if e.p.Steps++; e.p.Steps > maxSteps {
			if e.p.Steps == maxSteps+1 {
				e.fail(s.At(), "", syntax.ErrLarge, maxSteps)
			}
			return value.Poison{}, true
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
			if n := len(e.frames); n > 0 && e.frames[n-1].decl.Kind != "layer" {
				e.fail(s.Span, "declare it in the layer or model and pass it", syntax.ErrParamPlace, s.Names[0].Name)
				continue
			}
			e.declareWeight(s)
		}
	}
	return value.None{}, false
}

func (e *elab) assign(s *syntax.AssignStmt) {
	e.mark(s.Span)
	if len(e.frames) == 0 {
		e.name = s.Names[0].Name
	}
	v := e.eval(s.Value)
	if len(s.Names) == 1 {
		if t, ok := v.(value.Tuple); ok {
			v = e.fail(s.Value.At(), "", syntax.ErrTuple, ir.Counted(len(t), "value"), "1 name")
		}
		e.bind(s.Names[0], v)
		return
	}
	t, ok := v.(value.Tuple)
	if !ok || len(t) != len(s.Names) {
		if !value.IsPoison(v) {
			e.fail(s.Value.At(), "", syntax.ErrTuple, ir.Counted(max(1, len(t)), "value"), ir.Counted(len(s.Names), "name"))
		}
		t = make(value.Tuple, len(s.Names))
		for i := range t {
			t[i] = value.Poison{}
		}
	}
	for i, n := range s.Names {
		e.bind(n, t[i])
	}
}

func (e *elab) bind(n syntax.NameRef, v value.Value) {
	if t, ok := v.(*value.Tensor); ok && t.V.Name == "" && !n.Src.Std {
		t.V.Name = n.Name
	}
	e.scope.set(n.Name, v)
}

func (e *elab) branch(s *syntax.IfStmt) (value.Value, bool) {
	for _, b := range s.Branches {
		switch c := e.eval(b.Cond).(type) {
		case value.Boolean:
			if c {
				return e.run(b.Body)
			}
		case value.Poison:
			return value.Poison{}, false
		case *value.Tensor:
			e.fail(b.Cond.At(), "use where(condition, a, b)", syntax.ErrIfTensor, c)
			return value.None{}, false
		default:
			e.fail(b.Cond.At(), "", syntax.ErrWant, "the condition of if", "a truth value", value.Describe(c))
			return value.None{}, false
		}
	}
	return e.run(s.Alt)
}

// returned evaluates the values of a return statement.
func (e *elab) returned(s *syntax.ReturnStmt) value.Value {
	vs := make(value.Tuple, len(s.Args))
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
func (e *elab) eval(x syntax.Expr) value.Value {
	v := e.evaluate(x)
	if t, ok := v.(*value.Tensor); ok && e.p.Explicit() {
		e.p.NameAxes(t)
	}
	return v
}

func (e *elab) evaluate(x syntax.Expr) value.Value {
	switch x := x.(type) {
	case *syntax.NumberLit:
		if math.IsInf(x.Value, 0) { // which the parser has said of it
			return value.Poison{}
		}
		return value.Number(x.Value)
	case *syntax.TextLit:
		return value.Text(x.Text)
	case *syntax.NameRef:
		return e.lookup(x)
	case *syntax.ListLit:
		return e.evalList(x)
	case *syntax.RulesLit:
		return value.ShardRules(x.Rules)
	case *syntax.UnaryExpr:
		return e.unary(x)
	case *syntax.BinaryExpr:
		return e.binary(x)
	case *syntax.CallExpr:
		return e.call(x)
	}
	return value.Poison{}
}

func (e *elab) evalList(x *syntax.ListLit) value.Value {
	out := make(value.List, len(x.Items))
	for i, it := range x.Items {
		if it.Name != nil || it.To != nil {
			return e.fail(it.Span, "", syntax.ErrItem)
		}
		out[i] = e.eval(it.Value)
	}
	return out
}

// constants are names that are always known.
var constants = map[string]value.Value{"true": value.Boolean(true), "false": value.Boolean(false), "none": value.None{}, "pi": value.Number(3.14159265358979323846), "ones": value.Initializer("ones"), "zeros": value.Initializer("zeros")}

func (e *elab) lookup(x *syntax.NameRef) value.Value {
	if e.scope != nil {
		if v, ok := e.scope.vars[x.Name]; ok {
			return v
		}
	}
	if v, ok := constants[x.Name]; ok {
		return v
	}
	if e.p.Axes.Of[x.Name] != nil || e.fresh[x.Name] {
		return value.AxisName(x.Name)
	}
	if t, ok := e.p.ElemNamed(x.Name); ok {
		return value.ElemType(t)
	}
	if d := e.p.Fns[x.Name]; d != nil && d.Kind == "layer" {
		return value.LayerRef{Decl: d}
	}
	hint := syntax.Suggest(syntax.TypeWord, x.Name, e.visible())
	if e.p.Fns[x.Name] != nil || e.p.builtins[x.Name] != nil {
		hint = "call it: " + x.Name + "(…)"
	}
	return e.fail(x.Span, hint, syntax.ErrUnknownName, x.Name)
}

// visible are the names that an expression may use, for hints.
func (e *elab) visible() []string {
	var out []string
	if e.scope != nil {
		out = append(out, e.scope.names...)
	}
	return append(out, e.p.Axes.Names...)
}

// size is the size of a declared axis here.
func (e *elab) size(name string) (int, bool) {
	if n, ok := e.sizes[name]; ok {
		return n, true
	}
	if e.p.Axes.Of[name] == nil {
		return 1, false
	}
	return e.p.AxisSize(name)
}

// toNumber reads a number, or the size of an axis.
func (e *elab) toNumber(v value.Value, at syntax.Expr, what string) (value.Number, bool) {
	switch v := v.(type) {
	case value.Number:
		return v, true
	case value.Poison:
		return 0, false
	case value.AxisName:
		if _, ok := e.sizes[string(v)]; ok {
			e.fail(at.At(), "use mean, which does not depend on it", syntax.ErrHidden, string(v))
			return 0, false
		}
		n, ok := e.size(string(v))
		if !ok && e.p.Axes.Of[string(v)] == nil {
			e.fail(at.At(), "size(x, "+string(v)+") is the size on the tensor x", syntax.ErrNoSize, string(v))
		}
		return value.Number(n), ok
	}
	e.fail(at.At(), "", syntax.ErrWant, what, "a number", value.Describe(v))
	return 0, false
}

// axisOf reads an axis argument. A variable counts where it is bound to an
// axis; otherwise the name is the axis itself.
func (e *elab) axisOf(x syntax.Expr) (string, bool) {
	n, ok := x.(*syntax.NameRef)
	if !ok {
		v := e.eval(x)
		if a, ok := v.(value.AxisName); ok {
			return string(a), true
		}
		if !value.IsPoison(v) {
			e.fail(x.At(), "", syntax.ErrWant, "this argument", "an axis", value.Describe(v))
		}
		return "", false
	}
	if e.scope != nil {
		switch v := e.scope.vars[n.Name].(type) {
		case value.AxisName:
			return string(v), true
		case value.Poison:
			return "", false
		}
	}
	if e.p.Axes.Of[n.Name] == nil && !e.fresh[n.Name] && !n.Src.Std {
		e.fail(n.Span, syntax.Near(n.Name, e.p.Axes.Names), syntax.ErrUnknownAxis, n.Name)
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

// elemType reads the element type of t; others are words that may stand in its place.
func (e *elab) elemType(t *syntax.TypeExpr, others ...string) (ir.DType, bool) {
	elem, known := e.p.ElemNamed(t.Elem)
	if !known {
		at := t.Span
		at.Len = max(1, len(t.Elem))
		if t.Elem == "" {
			e.fail(at, "write f32["+syntax.JoinNames(t.Axes)+"]", syntax.ErrNoElem)
		} else {
			names := slices.Concat(e.p.TypeNames(), others)
			e.fail(at, cmp.Or(syntax.Suggest(syntax.TypeWord, t.Elem, names), "have "+strings.Join(names, ", ")), syntax.ErrUnknownType, t.Elem)
		}
	}
	return elem, known
}

// typ reads a tensor type with declared axes.
func (e *elab) typ(t *syntax.TypeExpr) (elem ir.DType, axes []value.Axis, ok bool) {
	elem, ok = e.elemType(t)
	total := 1
	for i, a := range t.Axes {
		n, known := e.size(a.Name)
		if e.p.Axes.Of[a.Name] == nil {
			e.fail(a.Span, syntax.Near(a.Name, e.p.Axes.Names), syntax.ErrUnknownAxis, a.Name)
		}
		for _, b := range t.Axes[:i] {
			if b.Name == a.Name {
				e.fail(a.Span, "declare an alias: axes { "+a.Name+"_2 = "+a.Name+" }", syntax.ErrAxisTwice, a.Name, t.Text())
				known = false
			}
		}
		ok = ok && known
		if total > maxElements/n {
			e.fail(t.Span, "", syntax.ErrTensorLarge, t.Text(), maxElements)
			return elem, nil, false
		}
		total *= n
		axes = append(axes, value.Axis{Name: a.Name, Size: n})
	}
	return elem, axes, ok
}

// maxElements bounds a tensor, so that sizes in bytes stay in 64 bits.
const maxElements = 1 << 50
