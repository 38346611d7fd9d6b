package lang

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

func need(name string, kind argKind) argSpec { return argSpec{name: name, kind: kind} }

func may(name string, kind argKind) argSpec { return argSpec{name, kind, true} }

// elementwise are the functions of one tensor, by name.
var elementwise = []struct {
	name  string
	kind  ir.Kind
	float bool // takes floats only
	doc   string
	fold  func(float64) float64 // of a number
}{
	{"abs", ir.Abs, false, "magnitude", math.Abs},
	{"cbrt", ir.Cbrt, true, "cube root", math.Cbrt},
	{"ceil", ir.Ceil, true, "smallest whole number not below", math.Ceil},
	{"cos", ir.Cosine, true, "cosine", math.Cos},
	{"exp", ir.Exponential, true, "e to the power of x", math.Exp},
	{"expm1", ir.ExponentialMinusOne, true, "exp(x) - 1, exact near 0", math.Expm1},
	{"floor", ir.Floor, true, "largest whole number not above", math.Floor},
	{"log", ir.Log, true, "natural logarithm", math.Log},
	{"log1p", ir.LogPlusOne, true, "log(1 + x), exact near 0", math.Log1p},
	{"round", ir.RoundNearestEven, true, "nearest whole number, ties to even", math.RoundToEven},
	{"rsqrt", ir.Rsqrt, true, "1 / sqrt(x)", func(x float64) float64 { return 1 / math.Sqrt(x) }},
	{"sigmoid", ir.Logistic, true, "1 / (1 + exp(-x))", func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	{"sign", ir.Sign, false, "-1, 0 or 1", nil},
	{"sin", ir.Sine, true, "sine", math.Sin},
	{"sqrt", ir.Sqrt, true, "square root", math.Sqrt},
	{"tan", ir.Tan, true, "tangent", math.Tan},
	{"tanh", ir.Tanh, true, "hyperbolic tangent", math.Tanh},
}

func elementwiseBuiltin(i int) *builtin {
	row := elementwise[i]
	return &builtin{args: []argSpec{need("x", anyArg)}, doc: row.doc, run: func(e *elab, c *builtinCall) value {
		t, ok := c.args["x"].(*tensor)
		switch {
		case !ok && row.fold != nil:
			n, ok := e.toNumber(c.args["x"], c.exprs["x"], c.name+"'s x")
			if v := row.fold(float64(n)); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
				return number(v)
			}
			if ok {
				return e.fail(c.Span, "", errUndefined, c.name, "of", n)
			}
			return poison{}
		case !ok:
			return e.fail(c.place("x"), "", errWant, c.name+"'s x", "a tensor", describe(c.args["x"]))
		case row.float && !t.elem().IsFloat() || t.elem() == ir.I1:
			return e.fail(c.Span, "cast(x, f32)", errFloat, c.name, t)
		}
		return t.with(e.b.Unary(row.kind, t.v))
	}}
}

// twoTensors is a function of two operands that broadcast.
func twoTensors(kind ir.Kind, doc string) *builtin {
	return &builtin{args: []argSpec{need("x", anyArg), need("y", anyArg)}, doc: doc, run: func(e *elab, c *builtinCall) value {
		x, y := c.args["x"], c.args["y"]
		_, tx := x.(*tensor)
		_, ty := y.(*tensor)
		if !tx && !ty {
			return e.numbersOf(c, kind)
		}
		p, q, ok := e.pair(c.Span, c.name, x, y, c.exprs["x"], c.exprs["y"])
		if !ok {
			return poison{}
		}
		if p.elem() == ir.I1 {
			return e.fail(c.Span, "", errFloat, c.name, p)
		}
		return p.with(e.b.Binary(kind, p.v, q.v))
	}}
}

func (e *elab) numbersOf(c *builtinCall, kind ir.Kind) value {
	x, ok := e.toNumber(c.args["x"], c.exprs["x"], c.name+"'s x")
	y, ok2 := e.toNumber(c.args["y"], c.exprs["y"], c.name+"'s y")
	if !ok || !ok2 {
		return poison{}
	}
	switch kind {
	case ir.Maximum:
		return max(x, y)
	case ir.Minimum:
		return min(x, y)
	}
	v := math.Pow(float64(x), float64(y))
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return e.fail(c.Span, "", errUndefined, x, c.name, y)
	}
	return number(v)
}

// newBuiltins returns every function that the language has without the library.
// A function, since its rows call what reads it.
func newBuiltins() map[string]*builtin {
	m := map[string]*builtin{
		"maximum": twoTensors(ir.Maximum, "the larger of two"),
		"minimum": twoTensors(ir.Minimum, "the smaller of two"),
		"pow":     twoTensors(ir.Power, "x to the power of y"),

		"dot": {args: []argSpec{need("x", tensorArg), need("y", tensorArg), need("over", axesArg)}, run: dot,
			doc: "sum of products over the named axes, for each element of the other axes; axes that both have are matched"},
		"sum":       {args: reduceArgs, run: sum, doc: "sum over axes, over all without over"},
		"mean":      {args: reduceArgs, run: mean, doc: "mean over axes, over all without over"},
		"max":       {args: reduceArgs, run: extreme(ir.Maximum, math.Inf(-1)), doc: "largest element over axes"},
		"min":       {args: reduceArgs, run: extreme(ir.Minimum, math.Inf(1)), doc: "smallest element over axes"},
		"argmax":    {args: []argSpec{need("x", tensorArg), need("over", axisArg)}, run: argmax, doc: "index of the first largest element, i32"},
		"softmax":   {args: []argSpec{need("x", tensorArg), need("over", axesArg)}, run: softmax, doc: "exp(x) divided by its sum over axes"},
		"logsumexp": {args: []argSpec{need("x", tensorArg), need("over", axesArg)}, run: logsumexp, doc: "log of the sum of exp(x) over axes"},
		"cumsum":    {args: []argSpec{need("x", tensorArg), need("over", axisArg)}, run: cumsum, doc: "sum of the elements up to each"},

		"cast":        {args: []argSpec{need("x", tensorArg), need("to", typeArg)}, run: castTo, doc: "the same numbers in another element type, or in that of another tensor"},
		"accumulator": {args: []argSpec{need("x", typeArg)}, run: accumulator, doc: "the element type for sums: f32 for 16-bit floats, else x's own"},
		"where":       {args: []argSpec{need("condition", tensorArg), need("x", anyArg), need("y", anyArg)}, run: where, doc: "x where the condition holds, y elsewhere"},
		"clip":        {args: []argSpec{need("x", tensorArg), need("low", numberArg), need("high", numberArg)}, run: clip, doc: "x held between two numbers"},
		"full":        {args: []argSpec{need("value", numberArg), need("to", typeArg), may("axes", axesArg)}, run: full, doc: "a tensor of one number"},

		"take": {args: []argSpec{need("x", tensorArg), need("index", tensorArg), need("axis", axisArg)}, run: take, doc: "the elements of x at the indices along an axis"},
		"normalized": {args: []argSpec{need("x", tensorArg), need("by", tensorArg)}, run: normalized,
			doc: "x divided by a number of the batch, such as a count, which is taken as its mean over all accumulated batches, without a gradient; 0 where that is 0"},
		"one_hot": {args: []argSpec{need("index", tensorArg), need("axis", axisArg), need("to", typeArg), may("size", numberArg)}, run: oneHot, doc: "1 where the index is, 0 elsewhere along a new axis"},
		"top_k":   {args: []argSpec{need("x", tensorArg), need("over", axisArg), need("into", newArg), may("k", numberArg)}, run: topK, doc: "the k largest elements and their indices, along a new axis"},
		"sort":    {args: []argSpec{need("x", tensorArg), need("over", axisArg), may("descending", boolArg)}, run: sortAxis, doc: "elements in order along an axis"},
		"iota":    {args: []argSpec{need("axis", axisArg), may("size", numberArg), may("to", typeArg)}, run: iotaAxis, doc: "0, 1, 2, … along an axis, i32"},

		"rename": {args: []argSpec{need("x", tensorArg), need("axes", moveArg)}, run: rename, doc: "x with another name for an axis: rename(x, seq -> kv_seq)"},
		"split":  {args: []argSpec{need("x", tensorArg), need("axes", moveArg)}, run: splitAxis, doc: "one axis as several: split(x, heads -> [kv_heads, group])"},
		"merge":  {args: []argSpec{need("x", tensorArg), need("axes", moveArg)}, run: mergeAxes, doc: "several axes as one: merge(x, [heads, head] -> features)"},
		"order":  {args: []argSpec{need("x", tensorArg), need("axes", axesArg)}, run: order, doc: "x with the named axes last, in this order"},
		"expand": {args: []argSpec{need("x", tensorArg), need("like", tensorArg)}, run: expand, doc: "x repeated over the axes that like has besides"},
		"slice":  {args: []argSpec{need("x", tensorArg), need("axis", axisArg), need("start", numberArg), need("end", numberArg)}, run: sliceAxis, doc: "elements start to end-1 along an axis"},
		"index":  {args: []argSpec{need("x", tensorArg), need("axis", axisArg), need("at", numberArg)}, run: indexAxis, doc: "element at of an axis, which goes"},
		"pad":    {args: []argSpec{need("x", tensorArg), need("axis", axisArg), may("low", numberArg), may("high", numberArg), may("value", numberArg)}, run: padAxis, doc: "elements before and after along an axis"},
		"concat": {args: []argSpec{need("parts", anyArg), need("axis", axisArg)}, run: concat, doc: "tensors one after the other along an axis: concat([a, b], axis: head)"},
		"roll":   {args: []argSpec{need("x", tensorArg), need("axis", axisArg), need("by", numberArg)}, run: roll, doc: "elements moved along an axis, the last ones to the front"},
		"size":   {args: []argSpec{need("x", tensorArg), need("axis", axisArg)}, run: sizeOf, doc: "the size of an axis of x, a number"},
		"has":    {args: []argSpec{need("x", tensorArg), need("axis", axisArg)}, run: hasAxis, doc: "whether x has an axis"},

		"checkpoint":    {args: []argSpec{need("x", tensorArg), need("name", textArg)}, run: checkpoint, doc: "x under a checkpoint name"},
		"constrain":     {args: []argSpec{need("x", tensorArg), may("rules", rulesArg), may("like", tensorArg)}, run: constrain, doc: "x lying as the rules say: constrain(x, {embed -> fsdp}); without rules, as the activation rules say, of x or of like"},
		"stop_gradient": {args: []argSpec{need("x", tensorArg)}, run: stopGradient, doc: "x, without a gradient"},
		"dropout":       {args: []argSpec{need("x", tensorArg), need("rate", numberArg)}, run: dropout, doc: "x with a share of elements zero and the others scaled up; x itself in a run without training"},
		"random_normal": {args: []argSpec{need("axes", axesArg), may("to", typeArg)}, run: randomNormal, doc: "independent normal numbers"},
	}
	for i, row := range elementwise {
		m[row.name] = elementwiseBuiltin(i)
	}
	for _, row := range initializers {
		m[row.name] = initBuiltin(row.name, row.args, row.doc)
	}
	return m
}

// initializers are what params may start as, besides ones and zeros.
var initializers = []struct {
	name string
	args []argSpec
	doc  string
}{
	{"normal", []argSpec{need("std", numberArg)}, "of a param: normal numbers of mean 0 and this standard deviation"},
	{"uniform", []argSpec{need("low", numberArg), need("high", numberArg)}, "of a param: evenly spread between two numbers"},
	{"constant", []argSpec{need("value", numberArg)}, "of a param: one number everywhere"},
}

func initBuiltin(name string, args []argSpec, doc string) *builtin {
	return &builtin{args: args, doc: doc, run: func(e *elab, c *builtinCall) value {
		s := name + "("
		for i, a := range args {
			if i > 0 {
				s += ", "
			}
			s += fmt.Sprint(c.args[a.name].(number))
		}
		return initializer(s + ")")
	}}
}

func castTo(e *elab, c *builtinCall) value {
	t := c.tensor("x")
	return e.cast(t, c.elem("to"))
}

func accumulator(e *elab, c *builtinCall) value {
	t := wide(c.elem("x"))
	if !t.IsFloat() {
		t = e.p.elem(ir.F32)
	}
	return elemType(t)
}

func where(e *elab, c *builtinCall) value {
	cond := c.tensor("condition")
	if cond.elem() != ir.I1 {
		return e.fail(c.place("condition"), "", errWant, "where's condition", "i1", describe(cond))
	}
	_, tx := c.args["x"].(*tensor)
	_, ty := c.args["y"].(*tensor)
	if !tx && !ty {
		return e.fail(c.Span, "full(0, f32) is a tensor", errWhere)
	}
	x, y, ok := e.pair(c.Span, "where", c.args["x"], c.args["y"], c.exprs["x"], c.exprs["y"])
	if !ok {
		return poison{}
	}
	axes, ok := e.union(c.Span, "where", x, cond)
	if !ok {
		return poison{}
	}
	return &tensor{e.b.Select(e.align(cond, axes).v, e.align(x, axes).v, e.align(y, axes).v), axes}
}

func clip(e *elab, c *builtinCall) value {
	t := c.tensor("x")
	lo, ok := e.splatLike(c.Span, c.args["low"], c.exprs["low"], t)
	hi, ok2 := e.splatLike(c.Span, c.args["high"], c.exprs["high"], t)
	if !ok || !ok2 {
		return poison{}
	}
	return t.with(e.b.Emit(ir.Clamp, []*ir.Value{lo.v, t.v, hi.v}, nil, nil, nil).Results[0])
}

func full(e *elab, c *builtinCall) value {
	axes, ok := e.declared(c, "axes")
	if !ok {
		return poison{}
	}
	return &tensor{e.b.Splat(ir.Tensor(c.elem("to"), shapeOf(axes)...), c.number("value", 0)), axes}
}

// declared are the axes of an argument with the sizes they have here.
func (e *elab) declared(c *builtinCall, arg string) ([]axis, bool) {
	var axes []axis
	for _, name := range c.axes(arg) {
		n, ok := e.size(name)
		if !ok {
			if e.p.axes.of[name] == nil {
				e.fail(c.place(arg), "", errNoSize, name)
			}
			return nil, false
		}
		axes = append(axes, axis{name, n})
	}
	if !e.fitsElements(axes) {
		e.fail(c.place(arg), "", errTensorLarge, axesText(axes), maxElements)
		return nil, false
	}
	return axes, true
}

func iotaAxis(e *elab, c *builtinCall) value {
	name := c.axis("axis")
	n, ok := e.size(name)
	if c.has("size") {
		n, ok = e.wholeArg(c, "size", 1, maxAxis)
	} else if _, hidden := e.sizes[name]; hidden {
		return e.fail(c.place("axis"), "pass it as an argument of the layer", errHidden, name)
	} else if !ok && e.p.axes.of[name] == nil {
		e.fail(c.place("axis"), "iota(axis, size: n)", errNoSize, name)
	}
	if !ok {
		return poison{}
	}
	elem := ir.I32
	if c.has("to") {
		elem = c.elem("to")
	}
	return &tensor{e.b.Iota(ir.Tensor(elem, n), 0), []axis{{name, n}}}
}

// wholeArg reads a number argument that must be whole and in a range.
func (e *elab) wholeArg(c *builtinCall, arg string, lo, hi int) (int, bool) {
	n := c.args[arg].(number)
	v, ok := n.whole()
	if !ok || v < lo || v > hi {
		e.fail(c.place(arg), "", errRange, c.name, arg, n, lo, hi)
		return 0, false
	}
	return v, true
}

func sizeOf(e *elab, c *builtinCall) value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return poison{}
	}
	if _, hidden := e.sizes[name]; hidden {
		return e.fail(c.place("axis"), "use mean, which does not depend on it", errHidden, name)
	}
	return number(t.axes[t.axis(name)].size)
}

func hasAxis(e *elab, c *builtinCall) value { return boolean(c.tensor("x").axis(c.axis("axis")) >= 0) }

func checkpoint(e *elab, c *builtinCall) value {
	t := c.tensor("x")
	v := e.b.Emit(ir.PPName, []*ir.Value{t.v}, ir.AttrsOf(ir.NamedAttr{Name: "name", Attr: ir.Str(c.args["name"].(text))}), nil, nil).Results[0]
	return t.with(v)
}

// stopGradient marks x: an empty checkpoint name that carries the fact.
func stopGradient(e *elab, c *builtinCall) value {
	t := c.tensor("x")
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "name", Attr: ir.Str("")}, ir.NamedAttr{Name: ir.KeyStopGradient, Attr: ir.Unit{}})
	return t.with(e.b.Emit(ir.PPName, []*ir.Value{t.v}, attrs, nil, nil).Results[0])
}

func constrain(e *elab, c *builtinCall) value {
	t := c.tensor("x")
	switch {
	case c.has("like"):
		return e.alike(t, c.tensor("like"))
	case !c.has("rules"):
		return e.constrained(t)
	case e.p.mesh == nil:
		return t
	}
	rules := c.args["rules"].(shardRules)
	l := &layout{p: e.p, of: "activations", rules: rules}
	if e.act != nil { // outside of pipelines the batch lies along the stages too
		l.batch, l.lead = e.act.batch, e.act.lead
	}
	var used []string
	for _, r := range rules {
		e.p.checkMeshAxes("activations", r)
		for _, a := range r.Axes {
			if t.axis(a.Name) < 0 {
				return e.fail(a.Span, syntax.Near(a.Name, namesOf(t.axes)), errNoAxis, c.name, "x", t, a.Name)
			}
		}
		for _, m := range r.Mesh {
			if slices.Contains(used, m.Name) || len(r.Axes) > 1 && m.Name != "none" {
				return e.fail(m.Span, "", errMeshTwice, m.Name)
			}
			used = append(used, m.Name)
		}
	}
	failed := false
	s := l.sharding(t.axes, func(a axis, cu cut, parts int) {
		failed = true
		e.fail(cu.rule.Span, "", errDivide, c.name, a.size, a.name, commas(cu.mesh), parts)
	})
	if failed {
		return poison{}
	}
	v := e.b.Constrain(t.v, s)
	if e.p.explicit() { // errors tell it from t
		v.Name = ""
	}
	return t.with(v)
}

// undivided reports, at its rule, an axis of t that does not divide.
func (e *elab) undivided(t *tensor, a axis, c cut, parts int) {
	hint := fmt.Sprintf("%s = %d fits", a.name, (a.size/parts+1)*parts)
	name := cmp.Or(t.v.Name, e.name)
	if name == "return" {
		name = "what is returned"
	}
	if o := e.b.Origin; o != nil {
		hint = fmt.Sprintf("that is at %s:%d; %s", o.Pos.File, o.Pos.Line, hint)
	}
	e.p.Report(c.rule.Span, hint, errDivide, name, a.size, a.name, commas(c.mesh), parts)
}

// alike is t lying, along the axes that it shares with like, as the activation
// rules say of that.
func (e *elab) alike(t, like *tensor) *tensor {
	if e.act == nil || e.p.mesh == nil {
		return t
	}
	theirs := e.act.sharding(like.axes, nil)
	s := ir.Replicated(theirs.Mesh, len(t.axes))
	for d, a := range t.axes {
		if k := like.axis(a.name); k >= 0 && like.axes[k].size == a.size {
			s.Dims[d] = theirs.Dims[k]
		}
	}
	return e.lay(t, s)
}

// constrained is t lying as the activation rules say, where they say anything.
func (e *elab) constrained(t *tensor) *tensor {
	if e.act == nil {
		return t
	}
	s := e.act.sharding(t.axes, func(a axis, c cut, parts int) {
		scheduled := a.name == e.act.batch && e.p.pipelined
		if n, _ := e.size(a.name); n == a.size && c.rule != nil && !scheduled && e.p.firstUndivided(c.rule, a.name) {
			e.undivided(t, a, c, parts)
		}
	})
	return e.lay(t, s)
}

// lay is t lying as s, which the rules say. That a tensor is whole is worth
// saying in explicit mode, where there are rules.
func (e *elab) lay(t *tensor, s *ir.Sharding) *tensor {
	if d := t.v.Def; d != nil && d.Kind == ir.ShardingConstraint && d.Attrs.Get("sharding").(*ir.Sharding).Equal(s) {
		return t
	}
	if s != nil && (!s.IsReplicated() || e.p.explicit() && len(e.act.rules) > 0) {
		return t.with(e.b.Constrain(t.v, s))
	}
	return t
}
