package lang

import (
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// An argKind says how an argument of a built-in function is read.
type argKind uint8

const (
	anyArg    argKind = iota
	tensorArg         // a tensor
	numberArg         // a number, or an axis for its size
	boolArg
	textArg
	axisArg  // an axis by name
	axesArg  // an axis or a list of axes
	newArg   // the name of an axis that the call makes
	typeArg  // an element type, or a tensor for its own
	moveArg  // axis -> axis or lists of them, read by the function itself
	rulesArg // {axis -> mesh axis}
)

// An argSpec is one parameter of a built-in function.
type argSpec struct {
	name     string
	kind     argKind
	optional bool
}

// A builtin is a function that the language itself has.
type builtin struct {
	args []argSpec
	doc  string
	// run is called with arguments of the kinds that args says.
	run func(e *elab, c *builtinCall) value.Value
}

// A builtinCall is one call of a builtin with its arguments read.
type builtinCall struct {
	name string
	syntax.Span
	args  map[string]value.Value
	exprs map[string]syntax.Expr
	moves map[string]syntax.Expr // the right sides of arrows
}

func (c *builtinCall) tensor(name string) *value.Tensor { return c.args[name].(*value.Tensor) }

func (c *builtinCall) has(name string) bool { return c.args[name] != nil }

func (c *builtinCall) axis(name string) string { return string(c.args[name].(value.AxisName)) }

// axes are the axes of an axesArg.
func (c *builtinCall) axes(name string) []string {
	var out []string
	if l, ok := c.args[name].(value.List); ok {
		for _, v := range l {
			out = append(out, string(v.(value.AxisName)))
		}
	}
	return out
}

func (c *builtinCall) number(name string, def float64) float64 {
	if n, ok := c.args[name].(value.Number); ok {
		return float64(n)
	}
	return def
}

// place is the position of the argument called name, or of the call.
func (c *builtinCall) place(name string) syntax.Span {
	if x := c.exprs[name]; x != nil {
		return x.At()
	}
	return c.Span
}

func (e *elab) call(x *syntax.CallExpr) value.Value {
	n, ok := x.Fn.(*syntax.NameRef)
	if !ok {
		if inner, isCall := x.Fn.(*syntax.CallExpr); isCall {
			if n, isName := inner.Fn.(*syntax.NameRef); isName && (n.Name == "pipeline" || n.Name == "stack") {
				return e.stacked(x, inner, n)
			} else if isName && n.Name == "apply" {
				return e.applied(x, inner, n)
			} else if isName && n.Name == "blocks" {
				return e.blocked(x, inner)
			}
		}
		return e.fail(x.Fn.At(), "a function or a layer is called by its name", syntax.ErrNotFunction)
	}
	if n.Name == "pipeline" || n.Name == "stack" || n.Name == "apply" {
		return e.stackForm(x.Span, n.Name)
	}
	if n.Name == "blocks" {
		return e.fail(x.Span, "blocks(f, along: seq, size: 128)(x)", syntax.ErrBlocksForm)
	}
	if e.scope != nil {
		if f, bound := e.scope.vars[n.Name].(functionRef); bound && f.decl != nil {
			return e.inline(x, f.decl)
		} else if bound {
			return e.builtin(x, &syntax.NameRef{Span: n.Span, Name: f.name}, f.builtin)
		}
	}
	if d := e.p.Fns[n.Name]; d != nil {
		if d.Kind == "layer" {
			cure := "stack(" + n.Name + ", layers: 1)(…) applies it once"
			if e.building != nil {
				cure = "apply(" + n.Name + ")(…) applies it"
			}
			return e.fail(n.Span, cure, syntax.ErrLayerCall, n.Name)
		}
		return e.inline(x, d)
	}
	if f := e.p.builtins[n.Name]; f != nil {
		return e.builtin(x, n, f)
	}
	for _, a := range x.Args {
		e.eval(a.Value)
	}
	return e.fail(n.Span, syntax.Near(n.Name, e.functions()), syntax.ErrUnknownFunction, n.Name)
}

// functions are the names that may be called, for hints.
func (e *elab) functions() []string {
	var out []string
	for name := range e.p.builtins {
		out = append(out, name)
	}
	for name := range e.p.Fns {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// builtin reads the arguments of a built-in function and runs it.
func (e *elab) builtin(x *syntax.CallExpr, n *syntax.NameRef, f *builtin) value.Value {
	c := &builtinCall{name: n.Name, Span: x.Span, args: make(map[string]value.Value), exprs: make(map[string]syntax.Expr), moves: make(map[string]syntax.Expr)}
	if e.b == nil {
		return e.fail(x.Span, "", syntax.ErrNumbersOnly, n.Name)
	}
	names := make([]string, len(f.args))
	for i, s := range f.args {
		names[i] = s.name
	}
	slots, ok := e.match(x, n.Name, names)
	for i, s := range f.args {
		a := slots[i]
		if a == nil {
			if !s.optional && ok {
				e.fail(x.Span, n.Name+"("+strings.Join(names, ", ")+")", syntax.ErrMissingArg, n.Name, s.name)
				ok = false
			}
			continue
		}
		c.exprs[s.name] = a.Value
		if a.To != nil && s.kind != moveArg {
			e.fail(a.Span, "", syntax.ErrArrowArg, n.Name, s.name)
			ok = false
			continue
		}
		if a.To != nil {
			c.moves[s.name] = a.To
		}
		v, good := e.argument(n.Name, s, a.Value)
		ok = ok && good
		c.args[s.name] = v
	}
	if !ok {
		return value.Poison{}
	}
	e.mark(x.Span)
	return f.run(e, c)
}

// match puts the arguments of a call into the order of the parameters; a slot
// without an argument is nil.
func (e *elab) match(x *syntax.CallExpr, name string, params []string) (slots []*syntax.Arg, ok bool) {
	slots, ok = make([]*syntax.Arg, len(params)), true
	next := 0
	for i := range x.Args {
		a := &x.Args[i]
		k := next
		if a.Name != nil {
			k = slices.Index(params, a.Name.Name)
		} else {
			next++
		}
		switch {
		case a.Name != nil && k < 0:
			e.fail(a.Name.Span, syntax.Near(a.Name.Name, params), syntax.ErrUnknownArg, name, a.Name.Name)
			ok = false
		case k >= len(params):
			e.fail(a.Span, name+"("+strings.Join(params, ", ")+")", syntax.ErrManyArgs, name, ir.Counted(len(params), "argument"))
			return slots, false
		case slots[k] != nil:
			e.fail(a.Span, "", syntax.ErrArgTwice, name, params[k])
			ok = false
		default:
			slots[k] = a
		}
	}
	return slots, ok
}

// argument reads one argument of a built-in function.
func (e *elab) argument(fn string, s argSpec, x syntax.Expr) (value.Value, bool) {
	switch s.kind {
	case axisArg:
		a, ok := e.axisOf(x)
		return value.AxisName(a), ok
	case axesArg:
		return e.axesOf(x)
	case newArg:
		return e.newAxis(x)
	case moveArg, rulesArg:
		if r, ok := x.(*syntax.RulesLit); ok {
			return value.ShardRules(r.Rules), true
		}
		if s.kind == rulesArg {
			e.fail(x.At(), "constrain(x, {embed -> fsdp})", syntax.ErrWant, fn+"'s "+s.name, "{axis -> mesh axis}", "something else")
			return value.Poison{}, false
		}
		return value.None{}, true
	}
	v := e.eval(x)
	if value.IsPoison(v) {
		return v, false
	}
	good, want := true, ""
	switch s.kind {
	case tensorArg:
		_, good = v.(*value.Tensor)
		want = "a tensor"
	case numberArg:
		n, ok := e.toNumber(v, x, fn+"'s "+s.name)
		return n, ok
	case boolArg:
		_, good = v.(value.Boolean)
		want = "true or false"
	case textArg:
		_, good = v.(value.Text)
		want = "a text in quotes"
	case typeArg:
		if t, ok := v.(*value.Tensor); ok {
			return value.ElemType(t.Elem()), true
		}
		_, good = v.(value.ElemType)
		want = "an element type"
	}
	if !good {
		e.fail(x.At(), "", syntax.ErrWant, fn+"'s "+s.name, want, value.Describe(v))
	}
	return v, good
}

// axesOf reads an axis or a list of axes.
func (e *elab) axesOf(x syntax.Expr) (value.Value, bool) {
	l, ok := x.(*syntax.ListLit)
	if !ok {
		if n, isName := x.(*syntax.NameRef); isName && e.scope != nil {
			if v, isList := e.scope.vars[n.Name].(value.List); isList {
				return e.axisList(v, x)
			}
		}
		a, ok := e.axisOf(x)
		return value.List{value.AxisName(a)}, ok
	}
	out, ok := value.List{}, true
	for _, it := range l.Items {
		a, good := e.axisOf(it.Value)
		if good && slices.Contains(out, value.Value(value.AxisName(a))) {
			e.fail(it.Span, "", syntax.ErrListTwice, a)
			good = false
		}
		ok = ok && good
		out = append(out, value.AxisName(a))
	}
	return out, ok
}

func (e *elab) axisList(l value.List, x syntax.Expr) (value.Value, bool) {
	for _, v := range l {
		if _, ok := v.(value.AxisName); !ok {
			e.fail(x.At(), "", syntax.ErrWant, "this argument", "a list of axes", value.Describe(v))
			return value.Poison{}, false
		}
	}
	return l, true
}

// newAxis reads the name of an axis that the call makes.
func (e *elab) newAxis(x syntax.Expr) (value.Value, bool) {
	n, ok := x.(*syntax.NameRef)
	if !ok {
		e.fail(x.At(), "", syntax.ErrWant, "this argument", "the name of an axis", "something else")
		return value.Poison{}, false
	}
	name := n.Name
	if e.scope != nil {
		if a, bound := e.scope.vars[name].(value.AxisName); bound {
			name = string(a)
		}
	}
	e.makeAxis(name)
	return value.AxisName(name), true
}

// maxInline bounds how deep functions call each other.
const maxInline = 64

// inline calls an fn: its body runs in a scope of its own.
func (e *elab) inline(x *syntax.CallExpr, d *syntax.FuncDecl) value.Value {
	for _, f := range e.frames {
		if f.decl == d {
			return e.fail(x.Span, "functions are inlined and cannot recur", syntax.ErrRecursion, d.Name)
		}
	}
	if len(e.frames) >= maxInline {
		return e.fail(x.Span, "", syntax.ErrInline, maxInline)
	}
	inner := newScope()
	e.mark(x.Span)
	if !e.bindArgs(x, d, inner) {
		return value.Poison{}
	}
	outer := e.scope
	e.scope, e.frames = inner, append(e.frames, frame{d, x.Span})
	v, done := e.run(d.Body)
	e.scope, e.frames = outer, e.frames[:len(e.frames)-1]
	if !done {
		return e.fail(x.Span, "", syntax.ErrNoReturn, d.Kind, d.Name)
	}
	return v
}

// bindArgs binds the parameters of d to the arguments of a call, or to their
// defaults, which see the parameters before them.
func (e *elab) bindArgs(x *syntax.CallExpr, d *syntax.FuncDecl, inner *scope) bool {
	names := make([]string, len(d.Params))
	for i, p := range d.Params {
		names[i] = p.Name
	}
	slots, ok := e.match(x, d.Name, names)
	var axes []int // parameters that are axes bind first: types of others name them
	for i, p := range d.Params {
		if p.Typ != nil && p.Typ.Elem == "axis" {
			axes = append(axes, i)
		}
	}
	for _, i := range axes {
		name, good := e.axisArgument(d, i, slots[i], x)
		ok = ok && good
		inner.set(names[i], value.AxisName(name))
	}
	for i, p := range d.Params {
		if slices.Contains(axes, i) {
			continue
		}
		v := value.Value(value.Poison{})
		switch {
		case slots[i] != nil && slots[i].To != nil:
			e.fail(slots[i].Span, "", syntax.ErrArrowArg, d.Name, p.Name)
		case slots[i] != nil && p.Function():
			v = e.functionOf(slots[i].Value, d.Name+"'s "+p.Name)
		case slots[i] != nil:
			v = e.eval(slots[i].Value)
			if l, isRules := v.(value.ShardRules); isRules && len(l) == 0 {
				v = value.None{}
			}
		case p.Def != nil:
			v = e.defaultOf(p, inner)
		case ok:
			e.fail(x.Span, d.Name+"("+strings.Join(names, ", ")+")", syntax.ErrMissingArg, d.Name, p.Name)
		}
		if slots[i] != nil && !value.IsPoison(v) && !e.fits(d, p, v, slots[i].Value, inner) {
			v = value.Poison{}
		}
		ok = ok && !value.IsPoison(v)
		inner.set(p.Name, v)
	}
	return ok
}

func (e *elab) defaultOf(p syntax.Param, inner *scope) value.Value {
	outer := e.scope
	e.scope = inner
	defer func() { e.scope = outer }()
	if p.Function() {
		return e.functionOf(p.Def, p.Name)
	}
	return e.eval(p.Def)
}

// functionOf reads an argument that names a function.
func (e *elab) functionOf(x syntax.Expr, what string) value.Value {
	n, isName := x.(*syntax.NameRef)
	if !isName {
		return e.fail(x.At(), "", syntax.ErrWant, what, "the name of a function", "something else")
	}
	if n.Name == "none" {
		return value.None{}
	}
	if v, bound := e.scope.vars[n.Name]; bound {
		switch v.(type) {
		case functionRef, value.None, value.Poison:
			return v
		}
		return e.fail(x.At(), "", syntax.ErrWant, what, "the name of a function", value.Describe(v))
	}
	if d := e.p.Fns[n.Name]; d != nil && d.Kind == "fn" {
		return functionRef{n.Name, d, nil}
	} else if d != nil {
		return e.fail(x.At(), "", syntax.ErrWant, what, "the name of a function", "the "+d.Kind+" "+d.Name)
	}
	if f := e.p.builtins[n.Name]; f != nil {
		return functionRef{n.Name, nil, f}
	}
	return e.fail(x.At(), syntax.Near(n.Name, e.functions()), syntax.ErrUnknownFunction, n.Name)
}

func (e *elab) axisArgument(d *syntax.FuncDecl, i int, a *syntax.Arg, x *syntax.CallExpr) (string, bool) {
	p := d.Params[i]
	if a != nil {
		return e.axisOf(a.Value)
	}
	if n, ok := p.Def.(*syntax.NameRef); ok {
		return n.Name, true
	}
	e.fail(x.Span, "", syntax.ErrMissingArg, d.Name, p.Name)
	return "", false
}

// Fits checks an argument of an fn against the type of its parameter: a kind
// by name, an element type, and axes that it must have besides any others.
func (e *elab) fits(d *syntax.FuncDecl, p syntax.Param, v value.Value, x syntax.Expr, inner *scope) bool {
	t := p.Typ
	if t == nil || p.Function() {
		return true
	}
	want := map[string]string{"number": "a number", "bool": "a truth value", "text": "a text", "tensor": "a tensor"}[t.Elem]
	if want != "" && !t.Open {
		if _, isAxis := v.(value.AxisName); isAxis && t.Elem == "number" {
			n, ok := e.toNumber(v, x, p.Name)
			if ok {
				inner.set(p.Name, n)
			}
			return ok
		}
		if _, isNone := v.(value.None); isNone && t.Elem == "tensor" && p.Def != nil {
			return true
		}
		if v.Kind() != want {
			e.fail(x.At(), "", syntax.ErrWant, d.Name+"'s "+p.Name, want, value.Describe(v))
			return false
		}
		return true
	}
	if t.Elem != "" {
		if _, known := e.elemType(t, "number", "bool", "text", "tensor", "axis", "function"); !known {
			return false
		}
	}
	a, ok := v.(*value.Tensor)
	if !ok {
		if _, isNone := v.(value.None); isNone && p.Def != nil {
			return true
		}
		e.fail(x.At(), "", syntax.ErrWant, d.Name+"'s "+p.Name, "a tensor", value.Describe(v))
		return false
	}
	if t.Elem != "" {
		if el, _ := e.p.ElemNamed(t.Elem); el != a.Elem() {
			e.fail(x.At(), "cast(x, "+t.Elem+")", syntax.ErrWant, d.Name+"'s "+p.Name, t.Text(), value.Describe(v))
			return false
		}
	}
	for _, ax := range t.Axes {
		name := ax.Name
		if b, bound := inner.vars[name].(value.AxisName); bound {
			name = string(b)
		}
		if a.Axis(name) < 0 {
			hint := ""
			if name != ax.Name || inner.vars[ax.Name] != nil {
				hint = "say which: " + d.Name + "(…, " + ax.Name + ": axis)"
			}
			e.fail(x.At(), hint, syntax.ErrArgAxis, d.Name, p.Name, a, name)
			return false
		}
	}
	return true
}

// elemOf is the element type that a typeArg names.
func (c *builtinCall) elem(name string) ir.DType { return ir.DType(c.args[name].(value.ElemType)) }

// Describe is f for a message.
func (f functionRef) Describe() string { return "the function " + f.name }

// functionRef is a function that an argument names: an fn, or one that is
// built in.
type functionRef struct {
	name    string
	decl    *syntax.FuncDecl
	builtin *builtin
}

func (functionRef) Kind() string { return "a function" }
