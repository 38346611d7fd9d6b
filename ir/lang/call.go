package lang

import (
	"slices"
	"strings"

	"ppc/ir"
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
	run func(e *elab, c *builtinCall) value
}

// A builtinCall is one call of a builtin with its arguments read.
type builtinCall struct {
	name string
	span
	args  map[string]value
	exprs map[string]expr
	moves map[string]expr // the right sides of arrows
}

func (c *builtinCall) tensor(name string) *tensor { return c.args[name].(*tensor) }
func (c *builtinCall) has(name string) bool       { return c.args[name] != nil }

func (c *builtinCall) axis(name string) string { return string(c.args[name].(axisName)) }

// axes are the axes of an axesArg.
func (c *builtinCall) axes(name string) []string {
	var out []string
	if l, ok := c.args[name].(list); ok {
		for _, v := range l {
			out = append(out, string(v.(axisName)))
		}
	}
	return out
}

func (c *builtinCall) number(name string, def float64) float64 {
	if n, ok := c.args[name].(number); ok {
		return float64(n)
	}
	return def
}

// at is where the argument called name stands, or the call.
func (c *builtinCall) place(name string) span {
	if x := c.exprs[name]; x != nil {
		return x.at()
	}
	return c.span
}

func (e *elab) call(x *callExpr) value {
	n, ok := x.fn.(*nameRef)
	if !ok {
		if inner, isCall := x.fn.(*callExpr); isCall {
			if n, isName := inner.fn.(*nameRef); isName && (n.name == "pipeline" || n.name == "stack") {
				return e.stacked(x, inner, n)
			} else if isName && n.name == "blocks" {
				return e.blocked(x, inner)
			}
		}
		return e.fail(x.span, "", errNotFunction)
	}
	if n.name == "pipeline" || n.name == "stack" {
		return e.fail(x.span, n.name+"(layer, layers: 8)(x)", errStackForm, n.name)
	}
	if n.name == "blocks" {
		return e.fail(x.span, "blocks(f, along: seq, size: 128)(x)", errBlocksForm)
	}
	if e.scope != nil {
		if f, bound := e.scope.vars[n.name].(functionRef); bound && f.decl != nil {
			return e.inline(x, f.decl)
		} else if bound {
			return e.builtin(x, &nameRef{n.span, f.name}, f.builtin)
		}
	}
	if d := e.p.fns[n.name]; d != nil {
		if d.kind == "layer" {
			return e.fail(n.span, "stack("+n.name+", layers: 1)(…) applies it once", errLayerCall, n.name)
		}
		return e.inline(x, d)
	}
	if f := e.p.builtins[n.name]; f != nil {
		return e.builtin(x, n, f)
	}
	for _, a := range x.args {
		e.eval(a.value)
	}
	return e.fail(n.span, near(n.name, e.functions()), errUnknownFunction, n.name)
}

// functions are the names that may be called, for hints.
func (e *elab) functions() []string {
	var out []string
	for name := range e.p.builtins {
		out = append(out, name)
	}
	for name := range e.p.fns {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// builtin reads the arguments of a built-in function and runs it.
func (e *elab) builtin(x *callExpr, n *nameRef, f *builtin) value {
	c := &builtinCall{name: n.name, span: x.span, args: make(map[string]value), exprs: make(map[string]expr), moves: make(map[string]expr)}
	if e.b == nil {
		return e.fail(x.span, "", errNumbersOnly, n.name)
	}
	names := make([]string, len(f.args))
	for i, s := range f.args {
		names[i] = s.name
	}
	slots, ok := e.match(x, n.name, names)
	for i, s := range f.args {
		a := slots[i]
		if a == nil {
			if !s.optional && ok {
				e.fail(x.span, n.name+"("+strings.Join(names, ", ")+")", errMissingArg, n.name, s.name)
				ok = false
			}
			continue
		}
		c.exprs[s.name] = a.value
		if a.to != nil && s.kind != moveArg {
			e.fail(a.span, "", errArrowArg, n.name, s.name)
			ok = false
			continue
		}
		if a.to != nil {
			c.moves[s.name] = a.to
		}
		v, good := e.argument(n.name, s, a.value)
		ok = ok && good
		c.args[s.name] = v
	}
	if !ok {
		return poison{}
	}
	e.mark(x.span)
	return f.run(e, c)
}

// match puts the arguments of a call into the order of the parameters; a slot
// without an argument is nil.
func (e *elab) match(x *callExpr, name string, params []string) (slots []*arg, ok bool) {
	slots, ok = make([]*arg, len(params)), true
	next := 0
	for i := range x.args {
		a := &x.args[i]
		k := next
		if a.name != nil {
			k = slices.Index(params, a.name.name)
		} else {
			next++
		}
		switch {
		case a.name != nil && k < 0:
			e.fail(a.name.span, near(a.name.name, params), errUnknownArg, name, a.name.name)
			ok = false
		case k >= len(params):
			e.fail(a.span, name+"("+strings.Join(params, ", ")+")", errManyArgs, name, ir.Counted(len(params), "argument"))
			return slots, false
		case slots[k] != nil:
			e.fail(a.span, "", errArgTwice, name, params[k])
			ok = false
		default:
			slots[k] = a
		}
	}
	return slots, ok
}

// argument reads one argument of a built-in function.
func (e *elab) argument(fn string, s argSpec, x expr) (value, bool) {
	switch s.kind {
	case axisArg:
		a, ok := e.axisOf(x)
		return axisName(a), ok
	case axesArg:
		return e.axesOf(x)
	case newArg:
		return e.newAxis(x)
	case moveArg, rulesArg:
		if r, ok := x.(*rulesLit); ok {
			return shardRules(r.rules), true
		}
		if s.kind == rulesArg {
			e.fail(x.at(), "constrain(x, {embed -> fsdp})", errWant, fn+"'s "+s.name, "{axis -> mesh axis}", "something else")
			return poison{}, false
		}
		return none{}, true
	}
	v := e.eval(x)
	if isPoison(v) {
		return v, false
	}
	good, want := true, ""
	switch s.kind {
	case tensorArg:
		_, good = v.(*tensor)
		want = "a tensor"
	case numberArg:
		n, ok := e.toNumber(v, x, fn+"'s "+s.name)
		return n, ok
	case boolArg:
		_, good = v.(boolean)
		want = "true or false"
	case textArg:
		_, good = v.(text)
		want = "a text in quotes"
	case typeArg:
		if t, ok := v.(*tensor); ok {
			return elemType(t.elem()), true
		}
		_, good = v.(elemType)
		want = "an element type"
	}
	if !good {
		e.fail(x.at(), "", errWant, fn+"'s "+s.name, want, describe(v))
	}
	return v, good
}

// axesOf reads an axis or a list of axes.
func (e *elab) axesOf(x expr) (value, bool) {
	l, ok := x.(*listLit)
	if !ok {
		if n, isName := x.(*nameRef); isName && e.scope != nil {
			if v, isList := e.scope.vars[n.name].(list); isList {
				return e.axisList(v, x)
			}
		}
		a, ok := e.axisOf(x)
		return list{axisName(a)}, ok
	}
	out, ok := list{}, true
	for _, it := range l.items {
		a, good := e.axisOf(it.value)
		if good && slices.Contains(out, value(axisName(a))) {
			e.fail(it.span, "", errListTwice, a)
			good = false
		}
		ok = ok && good
		out = append(out, axisName(a))
	}
	return out, ok
}

func (e *elab) axisList(l list, x expr) (value, bool) {
	for _, v := range l {
		if _, ok := v.(axisName); !ok {
			e.fail(x.at(), "", errWant, "this argument", "a list of axes", describe(v))
			return poison{}, false
		}
	}
	return l, true
}

// newAxis reads the name of an axis that the call makes.
func (e *elab) newAxis(x expr) (value, bool) {
	n, ok := x.(*nameRef)
	if !ok {
		e.fail(x.at(), "", errWant, "this argument", "the name of an axis", "something else")
		return poison{}, false
	}
	name := n.name
	if e.scope != nil {
		if a, bound := e.scope.vars[name].(axisName); bound {
			name = string(a)
		}
	}
	e.makeAxis(name)
	return axisName(name), true
}

// maxInline bounds how deep functions call each other.
const maxInline = 64

// inline calls an fn: its body runs in a scope of its own.
func (e *elab) inline(x *callExpr, d *funcDecl) value {
	for _, f := range e.frames {
		if f.decl == d {
			return e.fail(x.span, "functions are inlined and cannot recur", errRecursion, d.name)
		}
	}
	if len(e.frames) >= maxInline {
		return e.fail(x.span, "", errInline, maxInline)
	}
	inner := newScope()
	e.mark(x.span)
	if !e.bindArgs(x, d, inner) {
		return poison{}
	}
	outer := e.scope
	e.scope, e.frames = inner, append(e.frames, frame{d, x.span})
	v, done := e.run(d.body)
	e.scope, e.frames = outer, e.frames[:len(e.frames)-1]
	if !done {
		return e.fail(x.span, "", errNoReturn, d.kind, d.name)
	}
	return v
}

// bindArgs binds the parameters of d to the arguments of a call, or to their
// defaults, which see the parameters before them.
func (e *elab) bindArgs(x *callExpr, d *funcDecl, inner *scope) bool {
	names := make([]string, len(d.params))
	for i, p := range d.params {
		names[i] = p.name
	}
	slots, ok := e.match(x, d.name, names)
	var axes []int // parameters that are axes bind first: types of others name them
	for i, p := range d.params {
		if p.typ != nil && p.typ.elem == "axis" {
			axes = append(axes, i)
		}
	}
	for _, i := range axes {
		name, good := e.axisArgument(d, i, slots[i], x)
		ok = ok && good
		inner.set(names[i], axisName(name))
	}
	for i, p := range d.params {
		if slices.Contains(axes, i) {
			continue
		}
		v := value(poison{})
		switch {
		case slots[i] != nil && slots[i].to != nil:
			e.fail(slots[i].span, "", errArrowArg, d.name, p.name)
		case slots[i] != nil && p.function():
			v = e.functionOf(slots[i].value, d.name+"'s "+p.name)
		case slots[i] != nil:
			v = e.eval(slots[i].value)
			if l, isRules := v.(shardRules); isRules && len(l) == 0 {
				v = none{}
			}
		case p.def != nil:
			v = e.defaultOf(p, inner)
		case ok:
			e.fail(x.span, d.name+"("+strings.Join(names, ", ")+")", errMissingArg, d.name, p.name)
		}
		if slots[i] != nil && !isPoison(v) && !e.fits(d, p, v, slots[i].value, inner) {
			v = poison{}
		}
		ok = ok && !isPoison(v)
		inner.set(p.name, v)
	}
	return ok
}

func (e *elab) defaultOf(p param, inner *scope) value {
	outer := e.scope
	e.scope = inner
	defer func() { e.scope = outer }()
	if p.function() {
		return e.functionOf(p.def, p.name)
	}
	return e.eval(p.def)
}

// function reports whether a parameter of an fn takes a function.
func (p *param) function() bool { return p.typ != nil && !p.typ.open && p.typ.elem == "function" }

// functionOf reads an argument that names a function.
func (e *elab) functionOf(x expr, what string) value {
	n, isName := x.(*nameRef)
	if !isName {
		return e.fail(x.at(), "", errWant, what, "the name of a function", "something else")
	}
	if n.name == "none" {
		return none{}
	}
	if v, bound := e.scope.vars[n.name]; bound {
		switch v.(type) {
		case functionRef, none, poison:
			return v
		}
		return e.fail(x.at(), "", errWant, what, "the name of a function", describe(v))
	}
	if d := e.p.fns[n.name]; d != nil && d.kind == "fn" {
		return functionRef{n.name, d, nil}
	} else if d != nil {
		return e.fail(x.at(), "", errWant, what, "the name of a function", "the "+d.kind+" "+d.name)
	}
	if f := e.p.builtins[n.name]; f != nil {
		return functionRef{n.name, nil, f}
	}
	return e.fail(x.at(), near(n.name, e.functions()), errUnknownFunction, n.name)
}

func (e *elab) axisArgument(d *funcDecl, i int, a *arg, x *callExpr) (string, bool) {
	p := d.params[i]
	if a != nil {
		return e.axisOf(a.value)
	}
	if n, ok := p.def.(*nameRef); ok {
		return n.name, true
	}
	e.fail(x.span, "", errMissingArg, d.name, p.name)
	return "", false
}

// fits checks an argument of an fn against the type of its parameter: a kind
// by name, an element type, and axes that it must have besides any others.
func (e *elab) fits(d *funcDecl, p param, v value, x expr, inner *scope) bool {
	t := p.typ
	if t == nil || p.function() {
		return true
	}
	want := map[string]string{"number": "a number", "bool": "a truth value", "text": "a text", "tensor": "a tensor"}[t.elem]
	if want != "" && !t.open {
		if _, isAxis := v.(axisName); isAxis && t.elem == "number" {
			n, ok := e.toNumber(v, x, p.name)
			if ok {
				inner.set(p.name, n)
			}
			return ok
		}
		if _, isNone := v.(none); isNone && t.elem == "tensor" && p.def != nil {
			return true
		}
		if v.kind() != want {
			e.fail(x.at(), "", errWant, d.name+"'s "+p.name, want, describe(v))
			return false
		}
		return true
	}
	a, ok := v.(*tensor)
	if !ok {
		if _, isNone := v.(none); isNone && p.def != nil {
			return true
		}
		e.fail(x.at(), "", errWant, d.name+"'s "+p.name, "a tensor", describe(v))
		return false
	}
	if t.elem != "" {
		if el, known := e.p.elemNamed(t.elem); known && el != a.elem() {
			e.fail(x.at(), "cast(x, "+t.elem+")", errWant, d.name+"'s "+p.name, t.text(), describe(v))
			return false
		}
	}
	for _, ax := range t.axes {
		name := ax.name
		if b, bound := inner.vars[name].(axisName); bound {
			name = string(b)
		}
		if a.axis(name) < 0 {
			hint := ""
			if name != ax.name || inner.vars[ax.name] != nil {
				hint = "say which: " + d.name + "(…, " + ax.name + ": axis)"
			}
			e.fail(x.at(), hint, errArgAxis, d.name, p.name, a, name)
			return false
		}
	}
	return true
}

// elemOf is the element type that a typeArg names.
func (c *builtinCall) elem(name string) ir.DType { return ir.DType(c.args[name].(elemType)) }
