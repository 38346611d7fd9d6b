package lang

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// A Training is what a train block asks for.
type Training struct {
	Steps      int    // updates
	Accumulate int    // batches per update
	Rates      int    // learning rates in a list, one per step; 0 where there is no list
	Data       string // a file with batches on a leading axis, relative to the working folder; "" is synthetic
}

// A trainArg is one argument of an optimizer or of a learning rate's schedule.
// The first of each may be given without its name.
type trainArg struct {
	of, name string
	kind     settingKind
	below    float64 // a number is less; 0 is no bound
	def      any     // nil where it must be given
	doc      string
	with     string // the argument that it goes with: where that is 0 it has no effect
}

// trainArgs is every argument, with optax's defaults.
var trainArgs = []trainArg{
	{of: "sgd", name: "lr", kind: rate, doc: "learning rate"},
	{of: "sgd", name: "momentum", kind: real, below: 1, def: 0.0, doc: "how much of the last update stays"},
	{of: "sgd", name: "nesterov", kind: flag, def: false, doc: "looks ahead along the momentum", with: "momentum"},

	{of: "adam", name: "lr", kind: rate, doc: "learning rate"},
	{of: "adam", name: "b1", kind: real, below: 1, def: 0.9, doc: "decay of the mean of gradients"},
	{of: "adam", name: "b2", kind: real, below: 1, def: 0.999, doc: "decay of the mean of their squares"},
	{of: "adam", name: "eps", kind: real, def: 1e-8, doc: "added to the root"},
	{of: "adam", name: "eps_root", kind: real, def: 0.0, doc: "added under the root"},
	{of: "adam", name: "nesterov", kind: flag, def: false, doc: "looks ahead along the mean", with: "b1"},

	{of: "adamw", name: "lr", kind: rate, doc: "learning rate"},
	{of: "adamw", name: "b1", kind: real, below: 1, def: 0.9, doc: "decay of the mean of gradients"},
	{of: "adamw", name: "b2", kind: real, below: 1, def: 0.999, doc: "decay of the mean of their squares"},
	{of: "adamw", name: "eps", kind: real, def: 1e-8, doc: "added to the root"},
	{of: "adamw", name: "eps_root", kind: real, def: 0.0, doc: "added under the root"},
	{of: "adamw", name: "nesterov", kind: flag, def: false, doc: "looks ahead along the mean", with: "b1"},
	{of: "adamw", name: "weight_decay", kind: real, def: 1e-4, doc: "of each parameter, times the learning rate"},
	{of: "adamw", name: "decay_rank", kind: count, def: 0, doc: "parameters of fewer axes do not decay", with: "weight_decay"},

	{of: "update", name: "lr_scale", kind: real, def: 1.0, doc: "multiplies the learning rate"},
	{of: "update", name: "weight_decay", kind: real, def: "the optimizer's", doc: "in place of the optimizer's, whatever `decay_rank` says"},

	{of: "constant", name: "value", kind: real, doc: "the same in every step"},

	{of: "linear", name: "peak", kind: real, doc: "reached after the warm-up"},
	{of: "linear", name: "warmup", kind: count, def: 0, doc: "steps from 0 to the peak"},
	{of: "linear", name: "decay", kind: count, def: 0, doc: "steps from the peak to the end, none to stay at the peak; by default what the warm-up leaves of train.steps"},
	{of: "linear", name: "end", kind: real, def: 0.0, doc: "from then on", with: "decay"},

	{of: "cosine", name: "peak", kind: real, doc: "reached after the warm-up"},
	{of: "cosine", name: "warmup", kind: count, def: 0, doc: "steps from 0 to the peak"},
	{of: "cosine", name: "decay", kind: count, def: 0, doc: "steps from the peak to the end, none to stay at the peak; by default what the warm-up leaves of train.steps"},
	{of: "cosine", name: "end", kind: real, def: 0.0, doc: "from then on", with: "decay"},
}

var lrSchedules = []string{"constant", "linear", "cosine"}

// maxRates bounds a list of learning rates, which becomes a constant.
const maxRates = 1 << 16

func trainArgsOf(name string) []trainArg {
	var rows []trainArg
	for _, r := range trainArgs {
		if r.of == name {
			rows = append(rows, r)
		}
	}
	return rows
}

// checkTrainCall checks the arguments of an optimizer or a schedule: each once,
// each of its kind, none missing.
func (p *program) checkTrainCall(at syntax.Span, name string, args []syntax.Arg) bool {
	rows := trainArgsOf(name)
	given, errors := make(map[string]bool), p.Count
	for i, a := range args {
		row := rowOf(rows, a, i)
		switch {
		case row == nil && len(rows) == 0:
			p.Report(a.Span, "", errManyArgs, name, "no arguments")
			return false
		case row == nil:
			hint := ""
			if a.Name != nil {
				hint = syntax.Suggest(syntax.ArgumentWord, a.Name.Name, argNames(rows))
			}
			p.Report(a.Span, hint, errSettingArg, name, alternatives(argNames(rows)))
		case given[row.name]:
			p.Report(a.Span, "", errArgTwice, name, row.name)
		default:
			given[row.name] = true
			p.checkTrainArg(row, a.Value)
		}
	}
	for _, r := range rows {
		if r.def == nil && !given[r.name] && p.Count == errors {
			p.Report(at, name+"("+r.name+": 1e-3)", errMissingArg, name, r.name)
		}
	}
	return p.Count == errors
}

// rowOf is the row of argument i, nil where there is none.
func rowOf(rows []trainArg, a syntax.Arg, i int) *trainArg {
	for k := range rows {
		if a.Name == nil && i == 0 || a.Name != nil && a.Name.Name == rows[k].name {
			return &rows[k]
		}
	}
	return nil
}

func argNames(rows []trainArg) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.name)
	}
	return out
}

func (p *program) checkTrainArg(row *trainArg, x syntax.Expr) {
	v, isNumber := numberOf(x)
	want, ok := "", true
	switch row.kind {
	case flag:
		n, isName := x.(*syntax.NameRef)
		want, ok = "true or false", isName && (n.Name == "true" || n.Name == "false")
	case count:
		_, whole := number(v).whole()
		want, ok = fmt.Sprintf("a whole number from 0 to %d", math.MaxInt32), isNumber && whole && v >= 0 && v <= math.MaxInt32
	case rate:
		p.checkRate(row, x)
	default:
		want, ok = "a number of at least 0", isNumber && v >= 0 && !math.IsInf(v, 0)
		if row.below > 0 {
			want, ok = want+" and below "+number(row.below).String(), ok && v < row.below
		}
	}
	if !ok {
		p.Report(x.At(), "", errSettingValue, row.of, row.name, want)
	}
}

// checkRate checks a learning rate: a number, a schedule, or one number per step.
func (p *program) checkRate(row *trainArg, x syntax.Expr) {
	if list, ok := x.(*syntax.ListLit); ok && len(list.Items) > 0 && len(list.Items) <= maxRates {
		for _, it := range list.Items {
			if v, isNumber := numberOf(it.Value); !isNumber || v < 0 || it.Name != nil || it.To != nil {
				p.Report(it.Value.At(), "", errSettingValue, row.of, row.name, "numbers of at least 0")
				return
			}
		}
		steps := p.trainSteps()
		if p.opts.Steps > 0 {
			steps = p.opts.Steps
		}
		if len(list.Items) < steps {
			p.Report(x.At(), "one rate per step: "+ir.Counted(steps-len(list.Items), "rate")+" more, or steps = "+fmt.Sprint(len(list.Items)), errRates,
				row.of, row.name, ir.Counted(len(list.Items), "rate"), ir.Counted(steps, "step"))
		}
		return
	}
	if c, ok := x.(*syntax.CallExpr); ok {
		if n, isName := c.Fn.(*syntax.NameRef); isName && slices.Contains(lrSchedules, n.Name) {
			p.checkTrainCall(c.Span, n.Name, c.Args)
			return
		}
	}
	if v, ok := numberOf(x); !ok || v < 0 || math.IsInf(v, 0) {
		p.Report(x.At(), "", errSettingValue, row.of, row.name, "a number of at least 0, "+strings.Join(lrSchedules, "(…), ")+"(…), or a list with one number per step")
	}
}

// trains reports whether the train block asks for steps.
func (p *program) trains() bool {
	return p.opts.Train && !p.opts.Grad && p.word("train", "optimizer") != "" && p.trainSteps() > 0
}

// training reports whether the module is for training: dropout drops.
func (p *program) training() bool {
	return p.trains() || p.opts.Grad && p.word("train", "optimizer") != ""
}

func (p *program) trainSteps() int {
	n, _ := p.num("train", "steps")
	return n
}

// loop is what the train block says of the loop around the module; nil
// where there is none.
func (p *program) loop() *Training {
	if !p.trains() {
		return nil
	}
	t := &Training{Steps: p.trainSteps()}
	t.Accumulate, _ = p.num("train", "gradient_accumulation")
	_, args := callOf(p.values["train"]["optimizer"].Value)
	if list, ok := args["lr"].(*syntax.ListLit); ok {
		t.Rates = len(list.Items)
	}
	if s := p.values["train"]["data"]; s != nil {
		if file, ok := s.Value.(*syntax.TextLit); ok {
			t.Data = file.Text
			if !path.IsAbs(t.Data) && !s.Override {
				t.Data = path.Join(path.Dir(s.Src.Name), t.Data)
			}
		}
	}
	return t
}

// markTraining gives the module of model d the attributes that ask for gradients
// and an update. The first result, v, has to be a loss then.
func (p *program) markTraining(s *modelState, d *syntax.FuncDecl, v value) {
	m := s.module
	p.applyParams(s)
	switch {
	case p.opts.Grad:
		m.Attrs.Set(ir.KeyGradient, ir.Str("all"))
	case p.trains():
		m.Attrs.Set(ir.KeyGradient, ir.Str("params"))
		m.Attrs.Set(ir.KeyTrain, p.trainAttr())
	default:
		return
	}
	if vs, ok := v.(tuple); ok {
		v = vs[0]
	}
	if t, ok := v.(*tensor); ok && (len(t.axes) > 0 || !t.elem().IsFloat()) {
		p.Report(lastReturn(d.Body).Args[0].Span, "mean(…) makes it one", errLoss, d.Name, describe(v))
		return
	}
	if p.trains() {
		p.leaveUntrained(s)
		p.checkMeanOfMeans(s)
	}
}

// trainAttr is the train block as passes read it.
func (p *program) trainAttr() ir.Dict {
	s := p.values["train"]["optimizer"]
	name, args := callOf(s.Value)
	as := ir.AttrsOf(ir.NamedAttr{Name: "optimizer", Attr: ir.Str(name)})
	for _, row := range trainArgsOf(name) {
		as.Set(row.name, p.trainValue(&row, args[row.name]))
	}
	if clip := p.values["train"]["clip_by_global_norm"]; clip != nil {
		v, _ := numberOf(clip.Value)
		as.Set("clip", ir.Float{Value: v, Type: ir.F64})
	}
	accumulate, _ := p.num("train", "gradient_accumulation")
	as.Set("gradient_accumulation", ir.I64Attr(accumulate))
	if p.word("train", "reduce_gradients") == "per_batch" {
		as.Set("reduce_gradients", ir.Str("per_batch"))
	}
	as.Set("accumulate_dtype", ir.Str(p.elem(ir.DTypeByName(p.word("train", "dtype"))).String()))
	as.Set("shard_optimizer_over_data", ir.Bool(p.flag("train", "shard_optimizer_over_data")))
	as.Set("seed", ir.I64Attr(p.seed()))
	as.Set("steps", ir.I64Attr(p.trainSteps()))
	return ir.Dict(as)
}

// callOf reads word(args) or word; the first argument may lack its name.
func callOf(x syntax.Expr) (name string, args map[string]syntax.Expr) {
	args = make(map[string]syntax.Expr)
	c, ok := x.(*syntax.CallExpr)
	if !ok {
		n, _ := x.(*syntax.NameRef)
		return n.Name, args
	}
	name = c.Fn.(*syntax.NameRef).Name
	rows := trainArgsOf(name)
	for i, a := range c.Args {
		args[rowOf(rows, a, i).name] = a.Value
	}
	return name, args
}

// trainValue is an argument, or its default, as an attribute.
func (p *program) trainValue(row *trainArg, x syntax.Expr) ir.Attr {
	v, _ := numberOf(x)
	switch row.kind {
	case rate:
		return p.rateAttr(x)
	case flag:
		n, ok := x.(*syntax.NameRef)
		return ir.Bool(ok && n.Name == "true")
	case count:
		if x == nil {
			v = float64(row.def.(int))
		}
		return ir.I64Attr(int(v))
	}
	if x == nil {
		v = row.def.(float64)
	}
	return ir.Float{Value: v, Type: ir.F64}
}

func (p *program) rateAttr(x syntax.Expr) ir.Dict {
	switch x := x.(type) {
	case *syntax.ListLit:
		var values ir.Array
		for _, it := range x.Items {
			v, _ := numberOf(it.Value)
			values = append(values, ir.Float{Value: v, Type: ir.F64})
		}
		return ir.Dict(ir.AttrsOf(ir.NamedAttr{Name: "kind", Attr: ir.Str("table")}, ir.NamedAttr{Name: "values", Attr: values}))
	case *syntax.CallExpr:
		kind, args := callOf(x)
		as := ir.AttrsOf(ir.NamedAttr{Name: "kind", Attr: ir.Str(kind)})
		for _, row := range trainArgsOf(kind) {
			as.Set(row.name, p.trainValue(&row, args[row.name]))
		}
		if as.Has("decay") && args["decay"] == nil {
			as.Set("decay", ir.I64Attr(max(p.trainSteps()-as.Int("warmup"), 0)))
		}
		return ir.Dict(as)
	}
	v, _ := numberOf(x)
	return ir.Dict(ir.AttrsOf(ir.NamedAttr{Name: "kind", Attr: ir.Str("constant")}, ir.NamedAttr{Name: "value", Attr: ir.Float{Value: v, Type: ir.F64}}))
}
