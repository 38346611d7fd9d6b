package lang

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// A layerFunc is the function of a layer for a batch of one size.
type layerFunc struct {
	fn      *ir.Func
	decl    *syntax.FuncDecl
	batch   value.Axis // of the function
	x       []value.Axis
	elem    ir.DType
	sides   []side // the other tensors that it takes
	carried int    // how many of them are activations too: it returns their next values
	weights []weight
	aux     int                    // scalars after the activation
	rows    numbers                // takes, as its last side input, the rows' numbers, and, as its last weight, the layer's and the step's
	known   map[string]value.Value // arguments that were given when the layer was stacked
	group   []*stackCall           // the layers that it applies one after the other; nil for one
	at      int                    // which of the group is being built
	args    []*ir.Value            // of a group: the arguments for the weights
	checked bool                   // for what depends on microbatches
	bad     bool
}

// elems are the element types of the weights.
func (l *layerFunc) elems() []ir.DType {
	out := make([]ir.DType, len(l.weights))
	for i, w := range l.weights {
		out[i] = w.elem
	}
	return out
}

// numActs is how many activations a layer hands to the next one.
func (l *layerFunc) numActs() int { return 1 + l.carried }

// A side is one per-example argument of a layer.
type side struct {
	param syntax.Param
	elem  ir.DType
	axes  []value.Axis
}

// checkLayer checks what can be seen without building.
func (p *builder) checkLayer(d *syntax.FuncDecl) bool {
	e := &elab{p: p}
	if len(d.Params) == 0 {
		e.fail(d.Span, "layer "+d.Name+"(x: f32[batch, embed])", syntax.ErrLayerArgs, d.Name)
		return false
	}
	for i, q := range d.Params {
		if q.Typ == nil || i == 0 && (!q.Typ.Open || len(q.Typ.Axes) == 0) {
			e.fail(q.Span, q.Name+": f32[batch, embed]", syntax.ErrUntyped, d.Name, q.Name)
			return false
		}
	}
	return true
}

// layerFor returns the function of layer d for batches of the given size,
// with some of its parameters known.
func (e *elab) layerFor(d *syntax.FuncDecl, batch int, lead []string, known map[string]value.Value) *layerFunc {
	key := fmt.Sprint(d.Name, " ", batch, " ", lead, knownText(known))
	return e.built(key, d.Name, func(takes numbers) *layerFunc { return e.p.buildLayer(d, batch, lead, known, takes) })
}

// knownText tells known arguments from others.
func knownText(known map[string]value.Value) string {
	text := ""
	for _, k := range config.SortedKeys(known) {
		text += fmt.Sprintf(" %s=%v", k, known[k])
	}
	return text
}

// numbers is whether a layer's function takes the numbers that randomness is keyed
// by: its rows', the layer's and the step's.
type numbers bool

const (
	noNumbers  numbers = false
	rowNumbers numbers = true
)

// built is the function that make makes, once for each key, as one of the module.
func (e *elab) built(key, name string, make func(takes numbers) *layerFunc) *layerFunc {
	if l := e.model.layers[key]; l != nil {
		return l
	}
	errors := e.p.Count
	l := make(noNumbers)
	if l.rows == rowNumbers && e.p.Count == errors { // now with the numbers that randomness is keyed by
		l = make(rowNumbers)
	}
	l.bad = e.p.Count > errors || len(l.fn.Results) == 0
	l.fn.Name = e.unique(name)
	e.model.layers[key] = l
	e.model.module.Funcs = append(e.model.module.Funcs, l.fn)
	return l
}

// unique is name, or name_2 and so on where it is taken.
func (e *elab) unique(name string) string {
	taken := func(n string) bool { return n == "main" || e.model.module.Func(n) != nil }
	out := name
	for i := 2; taken(out); i++ {
		out = fmt.Sprintf("%s_%d", name, i)
	}
	return out
}

// buildLayer builds d for batches of one size: parameters are the activation,
// the side inputs, the weights.
func (p *builder) buildLayer(d *syntax.FuncDecl, batch int, lead []string, known map[string]value.Value, takes numbers) *layerFunc {
	l := &layerFunc{fn: ir.NewFunc(d.Name), decl: d, rows: takes, known: known}
	e, ok := p.startLayer(l, batch, lead)
	if !ok {
		return l
	}
	v, done := e.run(d.Body)
	if takes == rowNumbers {
		e.layerPlace(l)
	}
	if !done {
		e.fail(d.Span, "return x", syntax.ErrNoReturn, "layer", d.Name)
		return l
	}
	if out := e.layerResults(l, d, v); out != nil {
		e.layerReturn(l, out)
	}
	if e.random != nil {
		l.rows = rowNumbers
	}
	return l
}

// startLayer declares what a function of l takes before its weights.
func (p *builder) startLayer(l *layerFunc, batch int, lead []string) (*elab, bool) {
	d := l.decl
	l.fn.Private = true
	l.fn.Origin = ir.Origin{Pos: d.Pos()}.Saying(ir.Said{Name: d.Name, Layer: d.Name})
	l.batch = value.Axis{Name: d.Params[0].Typ.Axes[0].Name, Size: batch}
	e := &elab{p: p, b: ir.NewBuilder(l.fn), scope: newScope(), layer: d.Name, sizes: map[string]int{l.batch.Name: batch}, building: l}
	e.b.Origin = l.fn.Origin
	e.act = &config.Layout{P: p.Program, Of: "activations", Rules: p.Rules["activations"], Batch: l.batch.Name, Lead: lead}
	if !e.layerParams(l, l.known) {
		return e, false
	}
	if l.rows == rowNumbers {
		e.layerRows(l)
	}
	return e, true
}

// layerRows declares what random numbers are keyed by.
func (e *elab) layerRows(l *layerFunc) {
	v := l.fn.NewArg(l.fn.Body, ir.Tensor(ir.I32, l.batch.Size), "row")
	v.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str("row")})
	v.Sharding = e.act.Sharding([]value.Axis{l.batch}, nil)
	axes := []value.Axis{{Size: 2}}
	if l.group != nil {
		axes = []value.Axis{{Size: len(l.group)}, {Size: 2}}
	}
	place := l.fn.NewArg(l.fn.Body, ir.Tensor(ir.I32, value.ShapeOf(axes)...), "place")
	place.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str("place")})
	e.random = &randomState{rows: &value.Tensor{V: v, Axes: []value.Axis{l.batch}}, place: place}
	if place.Sharding = e.act.Sharding(axes, nil); place.Sharding != nil {
		place.Attrs.Set(ir.KeyGathered, place.Sharding)
	}
}

// layerParams declares the activation and the side inputs.
func (e *elab) layerParams(l *layerFunc, known map[string]value.Value) bool {
	ok := true
	for i := range l.decl.Params {
		q := &l.decl.Params[i]
		if q.Static() {
			e.scope.set(q.Name, known[q.Name])
			continue
		}
		elem, axes, good := e.typ(q.Typ)
		if !good {
			ok = false
			continue
		}
		v := l.fn.NewArg(l.fn.Body, ir.Tensor(elem, value.ShapeOf(axes)...), q.Name)
		v.Sharding = e.act.Sharding(axes, nil)
		v.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str(q.Name)})
		t := &value.Tensor{V: v, Axes: axes}
		if i == 0 {
			l.x, l.elem = axes, elem
			t = e.constrained(t)
		} else {
			l.sides = append(l.sides, side{*q, elem, axes})
		}
		e.scope.set(q.Name, t)
	}
	return ok
}

// weight declares one param of the layer that is being built.
func (l *layerFunc) weight(e *elab, w weight) {
	if slices.ContainsFunc(w.axes, func(a value.Axis) bool { return a.Name == l.batch.Name }) {
		e.fail(w.Span, "", syntax.ErrWeightBatch, w.name, l.batch.Name)
		e.scope.set(w.name, value.Poison{})
		return
	}
	if l.group != nil {
		e.scope.set(w.name, &value.Tensor{V: l.weightOfGroup(e, w), Axes: w.axes})
		return
	}
	if k := slices.IndexFunc(l.weights, func(o weight) bool { return o.under+o.name == w.under+w.name }); k >= 0 && len(e.frames) > 0 {
		e.fail(e.frames[len(e.frames)-1].call, `apply(…, name: "other")`, syntax.ErrPathTwice, w.under+w.name, l.weights[k].Line)
	}
	l.weights = append(l.weights, w)
	e.scope.set(w.name, &value.Tensor{V: l.weightArg(e, w), Axes: w.axes})
}

// weightArg is the argument that holds w: that of each of its layers, where a group
// has several.
func (l *layerFunc) weightArg(e *elab, w weight) *ir.Value {
	shape := value.ShapeOf(w.axes)
	if w.per > 0 {
		shape = append([]int{w.per}, shape...)
	}
	v := l.fn.NewArg(l.fn.Body, ir.Tensor(w.elem, shape...), w.under+w.name)
	v.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str(w.under + w.name)})
	if s := e.p.LayerWeightLayout().Sharding(w.axes, nil); s != nil {
		g := e.p.Gathered(s, w.axes)
		if w.per > 0 {
			s, g = s.Prepend(), g.Prepend()
		}
		v.Sharding = s
		v.Attrs.Set(ir.KeyGathered, g)
	}
	return v
}

// layerResults checks what a layer d returns: a value of its first argument's
// type, values of the types of the arguments that follow, if it is these that the
// next layer gets too, then scalars. It returns them, or nil where something is
// wrong.
func (e *elab) layerResults(l *layerFunc, d *syntax.FuncDecl, v value.Value) []*ir.Value {
	vs, ok := v.(value.Tuple)
	if !ok {
		vs = value.Tuple{v}
	}
	if value.IsPoison(vs...) {
		return nil
	}
	ret := lastReturn(d.Body)
	at := func(i int) syntax.Span {
		if ret != nil && i < len(ret.Args) {
			return ret.Args[i].Span
		}
		return d.Span
	}
	l.carried = 0
	var out []*ir.Value
	for i, r := range vs {
		t, ok := r.(*value.Tensor)
		switch {
		case i == 0 || ok && len(t.Axes) > 0 && i == l.numActs() && i <= len(l.sides):
			v := e.layerActivation(l, d, i, r, at(i))
			if v == nil {
				return nil
			}
			l.carried = i
			out = append(out, v)
		case !ok || len(t.Axes) > 0 || !t.Elem().IsFloat():
			e.fail(at(i), "mean(…) makes it one", syntax.ErrLayerAux, d.Name, i+1, value.Describe(r))
			return nil
		default:
			out = append(out, t.V)
		}
	}
	return out
}

// layerActivation is r, result i of a layer, which has to be of the type of
// argument i.
func (e *elab) layerActivation(l *layerFunc, d *syntax.FuncDecl, i int, r value.Value, at syntax.Span) *ir.Value {
	elem, axes, name := l.elem, l.x, d.Params[0].Name
	if i > 0 {
		s := l.sides[i-1]
		elem, axes, name = s.elem, s.axes, s.param.Name
	}
	t, ok := r.(*value.Tensor)
	if !ok || t.Elem() != elem || len(t.Axes) != len(axes) || !allIn(t.Axes, axes) {
		to := value.Describe(r)
		if ok {
			to = e.sized(t, axes)
		}
		e.fail(at, "", syntax.ErrLayerType, d.Name, name, value.TypeText(elem, axes), to)
		return nil
	}
	if len(axes) == 0 || axes[0].Name != l.batch.Name {
		e.fail(at, "", syntax.ErrLayerCarried, d.Name, name, value.TypeText(elem, axes), l.batch.Name)
		return nil
	}
	v := e.constrained(e.align(t, axes)).V
	if s := e.act.Sharding(axes, nil); e.p.Explicit() && s != nil { // the result has the sharding of the argument, also without rules
		v = e.b.Constrain(v, s)
	}
	return v
}

// layerReturn makes out the results of l.
func (e *elab) layerReturn(l *layerFunc, out []*ir.Value) {
	l.aux = len(out) - l.numActs()
	e.b.Return(out...)
	l.fn.Results[0].Sharding = e.act.Sharding(l.x, nil)
	for i, s := range l.sides[:l.carried] {
		l.fn.Results[i+1].Sharding = e.act.Sharding(s.axes, nil)
	}
}

func allIn(as, bs []value.Axis) bool {
	return !slices.ContainsFunc(as, func(a value.Axis) bool { return !slices.Contains(bs, a) })
}

// stacked is pipeline(layer, layers: n)(x, sides…) and the same with stack.
func (e *elab) stacked(x, inner *syntax.CallExpr, which *syntax.NameRef) value.Value {
	if e.model == nil || len(e.frames) > 0 {
		return e.fail(which.Span, "call it in the model", syntax.ErrStackPlace, which.Name)
	}
	s, ok := e.stackArgs(inner, which)
	if !ok {
		for _, a := range x.Args {
			e.eval(a.Value)
		}
		return value.Poison{}
	}
	operands, ok := e.stackOperands(x, s.decl)
	if !ok {
		return value.Poison{}
	}
	e.mark(x.Span)
	piped := which.Name == "pipeline" && !e.p.Opts.Sequential
	if s.list != nil {
		return e.listOf(s, operands, piped)
	}
	if piped {
		return e.pipeline(s, operands)
	}
	return e.stack(s, operands)
}

// A stackCall is what the first pair of parentheses says.
type stackCall struct {
	decl   *syntax.FuncDecl
	layers int
	at     syntax.Span // of the number of layers
	name   string
	known  map[string]value.Value
	list   *layerList // of several kinds; nil where all layers are alike
}

func (e *elab) stackArgs(c *syntax.CallExpr, which *syntax.NameRef) (*stackCall, bool) {
	if len(c.Args) > 0 && c.Args[0].Name != nil && c.Args[0].Name.Name == "layers" && which.Name != "apply" {
		if _, isList := c.Args[0].Value.(*syntax.ListLit); isList {
			return e.listArgs(c, which)
		}
	}
	if len(c.Args) == 0 || c.Args[0].Name != nil {
		e.stackForm(c.Span, which.Name)
		return nil, false
	}
	v := e.eval(c.Args[0].Value)
	ref, ok := v.(value.LayerRef)
	if !ok {
		if !value.IsPoison(v) {
			e.fail(c.Args[0].Span, "", syntax.ErrWant, which.Name+"'s first argument", "a layer", value.Describe(v))
		}
		return nil, false
	}
	s := &stackCall{decl: ref.Decl, name: ref.Decl.Name, known: make(map[string]value.Value)}
	if !e.p.checkLayer(s.decl) {
		return nil, false
	}
	own := []string{"name", "layers"}
	if which.Name == "apply" {
		own = own[:1]
	}
	if !e.layerArgs(s, c.Args[1:], own, which.Name) {
		return nil, false
	}
	if s.layers == 0 && which.Name != "apply" {
		e.fail(c.Span, which.Name+"("+s.decl.Name+", layers: 8)", syntax.ErrMissingArg, which.Name, "layers")
		return nil, false
	}
	return s, e.staticGiven(s, c)
}

// listArgs reads pipeline(layers: [dense * 3, moe * 58]).
func (e *elab) listArgs(c *syntax.CallExpr, which *syntax.NameRef) (*stackCall, bool) {
	l, ok := e.layerList(c.Args[0].Value, which.Name)
	for _, a := range c.Args[1:] {
		name := "a second one"
		if a.Name != nil {
			name = a.Name.Name
		}
		e.fail(a.Span, "layers in the list take their own: dense(name: \"first\") * 3", syntax.ErrUnknownArg, which.Name, name)
		ok = false
	}
	if !ok {
		return nil, false
	}
	s := *l.kinds[0]
	if s.layers, s.at = len(l.seq), c.Args[0].Span; len(l.kinds) > 1 {
		s.list = l
	}
	return &s, true
}

// layerArgs reads the arguments of a layer that is stacked: those that it has to
// know, and of name and layers those that are the call's own.
func (e *elab) layerArgs(s *stackCall, args []syntax.Arg, own []string, which string) bool {
	allowed := append(e.staticParams(s), own...)
	for _, a := range args {
		if a.Name == nil || !slices.Contains(allowed, a.Name.Name) {
			hint := ""
			name := "a second one"
			if a.Name != nil {
				name = a.Name.Name
				hint = syntax.Near(name, allowed)
			}
			e.fail(a.Span, hint, syntax.ErrUnknownArg, which, name)
			return false
		}
		v := e.eval(a.Value)
		switch a.Name.Name {
		case "layers":
			n, isNum := e.toNumber(v, a.Value, "layers")
			whole, isWhole := n.Whole()
			if !isNum {
				return false
			}
			if !isWhole || whole < 1 || whole > config.MaxLayers {
				e.fail(a.Span, "", syntax.ErrRange, which, "layers", n, 1, config.MaxLayers)
				return false
			}
			s.layers, s.at = whole, syntax.Span{Src: a.Name.Src, Line: a.Name.Line, Col: a.Name.Col, Len: a.Span.Col + a.Span.Len - a.Name.Col}
		case "name":
			t, isText := v.(value.Text)
			if !isText {
				e.fail(a.Span, "", syntax.ErrWant, which+"'s name", "a text in quotes", value.Describe(v))
				return false
			}
			s.name = string(t)
		default:
			s.known[a.Name.Name] = v
		}
	}
	return true
}

// staticParams are the parameters of the layer that are given with layers.
func (e *elab) staticParams(s *stackCall) []string {
	var out []string
	for _, q := range s.decl.Params {
		if q.Static() {
			out = append(out, q.Name)
		}
	}
	return out
}

// staticGiven fills in the defaults of the static parameters and checks them.
func (e *elab) staticGiven(s *stackCall, c *syntax.CallExpr) bool {
	for _, q := range s.decl.Params {
		if !q.Static() {
			continue
		}
		v, given := s.known[q.Name]
		if !given {
			if q.Def == nil {
				e.fail(c.Span, "", syntax.ErrMissingArg, s.decl.Name, q.Name)
				return false
			}
			v = (&elab{p: e.p}).eval(q.Def)
		}
		if value.IsPoison(v) {
			return false
		}
		want := map[string]string{"number": "a number", "bool": "a truth value", "text": "a text"}[q.Typ.Elem]
		if v.Kind() != want {
			e.fail(c.Span, "", syntax.ErrWant, s.decl.Name+"'s "+q.Name, want, value.Describe(v))
			return false
		}
		s.known[q.Name] = v
	}
	return true
}

// stackForm reports a call of a layer that lacks its first argument, or its second
// parentheses.
func (e *elab) stackForm(at syntax.Span, name string) value.Value {
	if name == "apply" {
		return e.fail(at, "apply(layer)(x)", syntax.ErrApplyForm)
	}
	return e.fail(at, name+"(layer, layers: 8)(x)", syntax.ErrStackForm, name)
}

// applied is apply(layer)(x, sides…) in a layer: the layer is inlined, and its
// parameters are those of the layer that is built, with its name in front.
func (e *elab) applied(x, inner *syntax.CallExpr, which *syntax.NameRef) value.Value {
	if e.building == nil || slices.ContainsFunc(e.frames, func(f frame) bool { return f.decl.Kind != "layer" }) {
		return e.fail(which.Span, "in a model: stack(layer, layers: 1)", syntax.ErrApplyPlace)
	}
	s, ok := e.stackArgs(inner, which)
	if !ok {
		for _, a := range x.Args {
			e.eval(a.Value)
		}
		return value.Poison{}
	}
	if s.decl == e.building.decl || slices.ContainsFunc(e.frames, func(f frame) bool { return f.decl == s.decl }) {
		return e.fail(x.Span, "layers are inlined and cannot recur", syntax.ErrRecursion, s.decl.Name)
	}
	operands, ok := e.stackOperands(x, s.decl)
	if !ok {
		return value.Poison{}
	}
	e.mark(x.Span)
	scope := newScope()
	next := 0
	for _, q := range s.decl.Params {
		if q.Static() {
			scope.set(q.Name, s.known[q.Name])
			continue
		}
		t := operands[next]
		if next == 0 {
			t = e.constrained(t)
		}
		scope.set(q.Name, t)
		next++
	}
	outer, under := e.scope, e.under
	e.scope, e.under = scope, under+s.name+"."
	e.frames = append(e.frames, frame{s.decl, x.Span})
	v, done := e.run(s.decl.Body)
	e.scope, e.under = outer, under
	e.frames = e.frames[:len(e.frames)-1]
	if !done {
		return e.fail(s.decl.Span, "return x", syntax.ErrNoReturn, "layer", s.decl.Name)
	}
	return v
}

// stackOperands evaluates the activation and the side inputs.
func (e *elab) stackOperands(x *syntax.CallExpr, d *syntax.FuncDecl) ([]*value.Tensor, bool) {
	var params []syntax.Param
	var names []string
	for _, q := range d.Params {
		if !q.Static() {
			params, names = append(params, q), append(names, q.Name)
		}
	}
	slots, ok := e.match(x, d.Name, names)
	out := make([]*value.Tensor, len(params))
	for i, q := range params {
		if slots[i] == nil {
			if ok {
				e.fail(x.Span, "("+strings.Join(names, ", ")+")", syntax.ErrMissingArg, d.Name, q.Name)
				ok = false
			}
			continue
		}
		v := e.eval(slots[i].Value)
		t, isTensor := v.(*value.Tensor)
		if !isTensor {
			if !value.IsPoison(v) {
				e.fail(slots[i].Span, "", syntax.ErrWant, d.Name+"'s "+q.Name, "a tensor", value.Describe(v))
			}
			ok = false
			continue
		}
		elem, axes, good := e.typ(q.Typ)
		ok = ok && good
		if good && (t.Elem() != elem || !allIn(t.Axes, axes) || i == 0 && len(t.Axes) != len(axes)) {
			e.fail(slots[i].Span, "", syntax.ErrWant, d.Name+"'s "+q.Name, value.TypeText(elem, axes), e.sized(t, axes))
			ok = false
		}
		out[i] = t
	}
	return out, ok
}

// sized is t for a message, with the sizes that clash with the wanted axes.
func (e *elab) sized(t *value.Tensor, want []value.Axis) string {
	s := t.String()
	for _, a := range t.Axes {
		for _, w := range want {
			if a.Name == w.Name && a.Size != w.Size {
				s += fmt.Sprintf(" with %s = %d, not %d", a.Name, a.Size, w.Size)
			}
		}
	}
	return s
}
