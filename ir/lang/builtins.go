package lang

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
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
	{"ceil", ir.Ceil, true, "smallest integer not below", math.Ceil},
	{"cos", ir.Cosine, true, "cosine", math.Cos},
	{"exp", ir.Exponential, true, "e to the power of x", math.Exp},
	{"expm1", ir.ExponentialMinusOne, true, "exp(x) - 1, exact near 0", math.Expm1},
	{"floor", ir.Floor, true, "largest integer not above", math.Floor},
	{"log", ir.Log, true, "natural logarithm", math.Log},
	{"log1p", ir.LogPlusOne, true, "log(1 + x), exact near 0", math.Log1p},
	{"round", ir.RoundNearestEven, true, "nearest integer, ties to even", math.RoundToEven},
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
	return &builtin{args: []argSpec{need("x", anyArg)}, doc: row.doc, run: func(e *elab, c *builtinCall) value.Value {
		t, ok := c.args["x"].(*value.Tensor)
		switch {
		case !ok && row.fold != nil:
			n, ok := e.toNumber(c.args["x"], c.exprs["x"], c.name+"'s x")
			if v := row.fold(float64(n)); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
				return value.Number(v)
			}
			if ok {
				return e.fail(c.Span, "", syntax.ErrUndefined, c.name, "of", n)
			}
			return value.Poison{}
		case !ok:
			return e.fail(c.place("x"), "", syntax.ErrWant, c.name+"'s x", "a tensor", value.Describe(c.args["x"]))
		case row.float && !t.Elem().IsFloat() || t.Elem() == ir.I1:
			return e.fail(c.Span, "cast(x, f32)", syntax.ErrFloat, c.name, t)
		}
		return t.With(e.b.Unary(row.kind, t.V))
	}}
}

// twoTensors is a function of two operands that broadcast.
func twoTensors(kind ir.Kind, doc string) *builtin {
	return &builtin{args: []argSpec{need("x", anyArg), need("y", anyArg)}, doc: doc, run: func(e *elab, c *builtinCall) value.Value {
		x, y := c.args["x"], c.args["y"]
		_, tx := x.(*value.Tensor)
		_, ty := y.(*value.Tensor)
		if !tx && !ty {
			return e.numbersOf(c, kind)
		}
		p, q, ok := e.pair(c.Span, c.name, x, y, c.exprs["x"], c.exprs["y"])
		if !ok {
			return value.Poison{}
		}
		if p.Elem() == ir.I1 {
			return e.fail(c.Span, "", syntax.ErrFloat, c.name, p)
		}
		return p.With(e.b.Binary(kind, p.V, q.V))
	}}
}

func (e *elab) numbersOf(c *builtinCall, kind ir.Kind) value.Value {
	x, ok := e.toNumber(c.args["x"], c.exprs["x"], c.name+"'s x")
	y, ok2 := e.toNumber(c.args["y"], c.exprs["y"], c.name+"'s y")
	if !ok || !ok2 {
		return value.Poison{}
	}
	switch kind {
	case ir.Maximum:
		return max(x, y)
	case ir.Minimum:
		return min(x, y)
	}
	v := math.Pow(float64(x), float64(y))
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return e.fail(c.Span, "", syntax.ErrUndefined, x, c.name, y)
	}
	return value.Number(v)
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
		"ragged_dot": {args: []argSpec{need("x", tensorArg), need("y", tensorArg), need("sizes", tensorArg), need("over", axesArg), need("along", axisArg)}, run: raggedDot,
			doc: "dot by groups of x along an axis, one after the other and of the given sizes: each has a y of its own or, where the axis is contracted, a result of its own"},
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
		"constrain":     {args: []argSpec{need("x", tensorArg), may("rules", rulesArg), may("like", tensorArg)}, run: constrain, doc: "x with the sharding of the rules: constrain(x, {embed -> fsdp}); without rules, of the activation rules, for x or for like"},
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
	return &builtin{args: args, doc: doc, run: func(e *elab, c *builtinCall) value.Value {
		s := name + "("
		for i, a := range args {
			if i > 0 {
				s += ", "
			}
			s += fmt.Sprint(c.args[a.name].(value.Number))
		}
		return value.Initializer(s + ")")
	}}
}

func castTo(e *elab, c *builtinCall) value.Value {
	t := c.tensor("x")
	return e.cast(t, c.elem("to"))
}

func accumulator(e *elab, c *builtinCall) value.Value {
	t := wide(c.elem("x"))
	if !t.IsFloat() {
		t = e.p.Elem(ir.F32)
	}
	return value.ElemType(t)
}

func where(e *elab, c *builtinCall) value.Value {
	cond := c.tensor("condition")
	if cond.Elem() != ir.I1 {
		return e.fail(c.place("condition"), "", syntax.ErrWant, "where's condition", "i1", value.Describe(cond))
	}
	_, tx := c.args["x"].(*value.Tensor)
	_, ty := c.args["y"].(*value.Tensor)
	if !tx && !ty {
		return e.fail(c.Span, "full(0, f32) is a tensor", syntax.ErrWhere)
	}
	x, y, ok := e.pair(c.Span, "where", c.args["x"], c.args["y"], c.exprs["x"], c.exprs["y"])
	if !ok {
		return value.Poison{}
	}
	axes, ok := e.union(c.Span, "where", x, cond)
	if !ok {
		return value.Poison{}
	}
	return &value.Tensor{V: e.b.Select(e.align(cond, axes).V, e.align(x, axes).V, e.align(y, axes).V), Axes: axes}
}

func clip(e *elab, c *builtinCall) value.Value {
	t := c.tensor("x")
	lo, ok := e.splatLike(c.Span, c.args["low"], c.exprs["low"], t)
	hi, ok2 := e.splatLike(c.Span, c.args["high"], c.exprs["high"], t)
	if !ok || !ok2 {
		return value.Poison{}
	}
	return t.With(e.b.Emit(ir.Clamp, []*ir.Value{lo.V, t.V, hi.V}, nil, nil, nil).Results[0])
}

func full(e *elab, c *builtinCall) value.Value {
	axes, ok := e.declared(c, "axes")
	if !ok {
		return value.Poison{}
	}
	return &value.Tensor{V: e.b.Splat(ir.Tensor(c.elem("to"), value.ShapeOf(axes)...), c.number("value", 0)), Axes: axes}
}

// declared are the axes of an argument with the sizes they have here.
func (e *elab) declared(c *builtinCall, arg string) ([]value.Axis, bool) {
	var axes []value.Axis
	for _, name := range c.axes(arg) {
		n, ok := e.size(name)
		if !ok {
			if e.p.Axes.Of[name] == nil {
				e.fail(c.place(arg), "", syntax.ErrNoSize, name)
			}
			return nil, false
		}
		axes = append(axes, value.Axis{Name: name, Size: n})
	}
	if !e.fitsElements(axes) {
		e.fail(c.place(arg), "", syntax.ErrTensorLarge, value.AxesText(axes), maxElements)
		return nil, false
	}
	return axes, true
}

func iotaAxis(e *elab, c *builtinCall) value.Value {
	name := c.axis("axis")
	n, ok := e.size(name)
	if c.has("size") {
		n, ok = e.intArg(c, "size", 1, config.MaxAxis)
	} else if _, hidden := e.sizes[name]; hidden {
		return e.fail(c.place("axis"), "pass it as an argument of the layer", syntax.ErrHidden, name)
	} else if !ok && e.p.Axes.Of[name] == nil {
		e.fail(c.place("axis"), "iota(axis, size: n)", syntax.ErrNoSize, name)
	}
	if !ok {
		return value.Poison{}
	}
	elem := ir.I32
	if c.has("to") {
		elem = c.elem("to")
	}
	return &value.Tensor{V: e.b.Iota(ir.Tensor(elem, n), 0), Axes: []value.Axis{{Name: name, Size: n}}}
}

// intArg reads a number argument that must be an integer in a range.
func (e *elab) intArg(c *builtinCall, arg string, lo, hi int) (int, bool) {
	n := c.args[arg].(value.Number)
	v, ok := n.Whole()
	if !ok || v < lo || v > hi {
		e.fail(c.place(arg), "", syntax.ErrRange, c.name, arg, n, lo, hi)
		return 0, false
	}
	return v, true
}

func sizeOf(e *elab, c *builtinCall) value.Value {
	t, name := c.tensor("x"), c.axis("axis")
	if !e.need(c, "x", t, name) {
		return value.Poison{}
	}
	if _, hidden := e.sizes[name]; hidden {
		return e.fail(c.place("axis"), "use mean, which does not depend on it", syntax.ErrHidden, name)
	}
	return value.Number(t.Axes[t.Axis(name)].Size)
}

func hasAxis(e *elab, c *builtinCall) value.Value {
	return value.Boolean(c.tensor("x").Axis(c.axis("axis")) >= 0)
}

func checkpoint(e *elab, c *builtinCall) value.Value {
	t := c.tensor("x")
	v := e.b.Emit(ir.PPName, []*ir.Value{t.V}, ir.AttrsOf(ir.NamedAttr{Name: "name", Attr: ir.Str(c.args["name"].(value.Text))}), nil, nil).Results[0]
	return t.With(v)
}

func stopGradient(e *elab, c *builtinCall) value.Value { return e.stopped(c.tensor("x")) }

// stopped is t, through which no cotangent flows: an empty checkpoint name carries the
// fact.
func (e *elab) stopped(t *value.Tensor) *value.Tensor {
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "name", Attr: ir.Str("")}, ir.NamedAttr{Name: ir.KeyStopGradient, Attr: ir.Unit{}})
	return t.With(e.b.Emit(ir.PPName, []*ir.Value{t.V}, attrs, nil, nil).Results[0])
}

func constrain(e *elab, c *builtinCall) value.Value {
	t := c.tensor("x")
	switch {
	case c.has("like"):
		return e.alike(t, c.tensor("like"))
	case !c.has("rules"):
		return e.constrained(t)
	case e.p.Mesh == nil:
		return t
	}
	rules := c.args["rules"].(value.ShardRules)
	l := &config.Layout{P: e.p.Program, Of: "activations", Rules: rules}
	if e.act != nil { // outside of pipelines the batch is sharded along stage too
		l.Batch, l.Lead = e.act.Batch, e.act.Lead
	}
	var used []string
	for _, r := range rules {
		e.p.CheckMeshAxes("activations", r)
		for _, a := range r.Axes {
			if t.Axis(a.Name) < 0 {
				return e.fail(a.Span, syntax.Near(a.Name, value.NamesOf(t.Axes)), syntax.ErrNoAxis, c.name, "x", t, a.Name)
			}
		}
		for _, m := range r.Mesh {
			if slices.Contains(used, m.Name) || len(r.Axes) > 1 && m.Name != "none" {
				return e.fail(m.Span, "", syntax.ErrMeshTwice, m.Name)
			}
			used = append(used, m.Name)
		}
	}
	failed := false
	s := l.Sharding(t.Axes, func(a value.Axis, cu config.DimRule, parts int) {
		failed = true
		e.fail(cu.Rule.Span, "", syntax.ErrDivide, c.name, a.Size, a.Name, commas(cu.Mesh), parts)
	})
	if failed {
		return value.Poison{}
	}
	v := e.b.Constrain(t.V, s)
	if e.p.Explicit() { // errors tell it from t
		v.Name = ""
	}
	return t.With(v)
}

// undivided reports, at its rule, an axis of t that does not divide.
func (e *elab) undivided(t *value.Tensor, a value.Axis, c config.DimRule, parts int) {
	hint := fmt.Sprintf("%s = %d fits", a.Name, (a.Size/parts+1)*parts)
	name := cmp.Or(t.V.Name, e.name)
	if name == "return" {
		name = "what is returned"
	}
	if o := e.b.Origin; o != nil {
		hint = fmt.Sprintf("that is at %s:%d; %s", o.Pos.File, o.Pos.Line, hint)
	}
	e.p.Report(c.Rule.Span, hint, syntax.ErrDivide, name, a.Size, a.Name, commas(c.Mesh), parts)
}

// alike is t, with the axes that it has in common with like sharded by the
// activation rules for like.
func (e *elab) alike(t, like *value.Tensor) *value.Tensor {
	if e.act == nil || e.p.Mesh == nil {
		return t
	}
	theirs := e.act.Sharding(like.Axes, nil)
	s := ir.Replicated(theirs.Mesh, len(t.Axes))
	for d, a := range t.Axes {
		if k := like.Axis(a.Name); k >= 0 && like.Axes[k].Size == a.Size {
			s.Dims[d] = theirs.Dims[k]
		}
	}
	return e.constrainTo(t, s)
}

// constrained is t with the sharding of the activation rules, where these say anything.
func (e *elab) constrained(t *value.Tensor) *value.Tensor {
	if e.act == nil {
		return t
	}
	s := e.act.Sharding(t.Axes, func(a value.Axis, c config.DimRule, parts int) {
		scheduled := a.Name == e.act.Batch && e.p.Pipelined
		if n, _ := e.size(a.Name); n == a.Size && c.Rule != nil && !scheduled && e.p.FirstUndivided(c.Rule, a.Name) {
			e.undivided(t, a, c, parts)
		}
	})
	return e.constrainTo(t, s)
}

// constrainTo constrains t to s, the sharding by the rules. A replicated one is stated in
// explicit mode only, and only if there are rules.
func (e *elab) constrainTo(t *value.Tensor, s *ir.Sharding) *value.Tensor {
	if d := t.V.Def; d != nil && d.Kind == ir.ShardingConstraint && d.Attrs.Get("sharding").(*ir.Sharding).Equal(s) {
		return t
	}
	if s != nil && (!s.IsReplicated() || e.p.Explicit() && len(e.act.Rules) > 0) {
		return t.With(e.b.Constrain(t.V, s))
	}
	return t
}
