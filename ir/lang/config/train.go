package config

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
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
	Of, Name string
	Kind     SettingKind
	Below    float64 // a number is less; 0 is no bound
	Def      any     // nil where it must be given
	Doc      string
	with     string // the argument that it goes with: where that is 0 it has no effect
}

// TrainArgs is every argument, with optax's defaults.
var TrainArgs = []trainArg{
	{Of: "sgd", Name: "lr", Kind: Rate, Doc: "learning rate"},
	{Of: "sgd", Name: "momentum", Kind: Real, Below: 1, Def: 0.0, Doc: "how much of the last update stays"},
	{Of: "sgd", Name: "nesterov", Kind: Flag, Def: false, Doc: "looks ahead along the momentum", with: "momentum"},

	{Of: "adam", Name: "lr", Kind: Rate, Doc: "learning rate"},
	{Of: "adam", Name: "b1", Kind: Real, Below: 1, Def: 0.9, Doc: "decay of the mean of gradients"},
	{Of: "adam", Name: "b2", Kind: Real, Below: 1, Def: 0.999, Doc: "decay of the mean of their squares"},
	{Of: "adam", Name: "eps", Kind: Real, Def: 1e-8, Doc: "added to the root"},
	{Of: "adam", Name: "eps_root", Kind: Real, Def: 0.0, Doc: "added under the root"},
	{Of: "adam", Name: "nesterov", Kind: Flag, Def: false, Doc: "looks ahead along the mean", with: "b1"},

	{Of: "adamw", Name: "lr", Kind: Rate, Doc: "learning rate"},
	{Of: "adamw", Name: "b1", Kind: Real, Below: 1, Def: 0.9, Doc: "decay of the mean of gradients"},
	{Of: "adamw", Name: "b2", Kind: Real, Below: 1, Def: 0.999, Doc: "decay of the mean of their squares"},
	{Of: "adamw", Name: "eps", Kind: Real, Def: 1e-8, Doc: "added to the root"},
	{Of: "adamw", Name: "eps_root", Kind: Real, Def: 0.0, Doc: "added under the root"},
	{Of: "adamw", Name: "nesterov", Kind: Flag, Def: false, Doc: "looks ahead along the mean", with: "b1"},
	{Of: "adamw", Name: "weight_decay", Kind: Real, Def: 1e-4, Doc: "of each parameter, times the learning rate"},
	{Of: "adamw", Name: "decay_rank", Kind: Count, Def: 0, Doc: "parameters of fewer axes do not decay", with: "weight_decay"},

	{Of: "update", Name: "lr_scale", Kind: Real, Def: 1.0, Doc: "multiplies the learning rate"},
	{Of: "update", Name: "weight_decay", Kind: Real, Def: "the optimizer's", Doc: "in place of the optimizer's, whatever `decay_rank` says"},

	{Of: "constant", Name: "value", Kind: Real, Doc: "the same in every step"},

	{Of: "linear", Name: "peak", Kind: Real, Doc: "reached after the warm-up"},
	{Of: "linear", Name: "warmup", Kind: Count, Def: 0, Doc: "steps from 0 to the peak"},
	{Of: "linear", Name: "decay", Kind: Count, Def: 0, Doc: "steps from the peak to the end, none to stay at the peak; by default what the warm-up leaves of train.steps"},
	{Of: "linear", Name: "end", Kind: Real, Def: 0.0, Doc: "from then on", with: "decay"},

	{Of: "cosine", Name: "peak", Kind: Real, Doc: "reached after the warm-up"},
	{Of: "cosine", Name: "warmup", Kind: Count, Def: 0, Doc: "steps from 0 to the peak"},
	{Of: "cosine", Name: "decay", Kind: Count, Def: 0, Doc: "steps from the peak to the end, none to stay at the peak; by default what the warm-up leaves of train.steps"},
	{Of: "cosine", Name: "end", Kind: Real, Def: 0.0, Doc: "from then on", with: "decay"},
}

var lrSchedules = []string{"constant", "linear", "cosine"}

// maxRates bounds a list of learning rates, which becomes a constant.
const maxRates = 1 << 16

// TrainArgsOf are the arguments that the optimizer or schedule called name takes.
func TrainArgsOf(name string) []trainArg {
	var rows []trainArg
	for _, r := range TrainArgs {
		if r.Of == name {
			rows = append(rows, r)
		}
	}
	return rows
}

// checkTrainCall checks the arguments of an optimizer or a schedule: each once,
// each of its kind, none missing.
func (p *Program) checkTrainCall(at syntax.Span, name string, args []syntax.Arg) bool {
	rows := TrainArgsOf(name)
	given, errors := make(map[string]bool), p.Count
	for i, a := range args {
		row := rowOf(rows, a, i)
		switch {
		case row == nil && len(rows) == 0:
			p.Report(a.Span, "", syntax.ErrManyArgs, name, "no arguments")
			return false
		case row == nil:
			hint := ""
			if a.Name != nil {
				hint = syntax.Suggest(syntax.ArgumentWord, a.Name.Name, argNames(rows))
			}
			p.Report(a.Span, hint, syntax.ErrSettingArg, name, alternatives(argNames(rows)))
		case given[row.Name]:
			p.Report(a.Span, "", syntax.ErrArgTwice, name, row.Name)
		default:
			given[row.Name] = true
			p.checkTrainArg(row, a.Value)
		}
	}
	for _, r := range rows {
		if r.Def == nil && !given[r.Name] && p.Count == errors {
			p.Report(at, name+"("+r.Name+": 1e-3)", syntax.ErrMissingArg, name, r.Name)
		}
	}
	return p.Count == errors
}

// rowOf is the row of argument i, nil where there is none.
func rowOf(rows []trainArg, a syntax.Arg, i int) *trainArg {
	for k := range rows {
		if a.Name == nil && i == 0 || a.Name != nil && a.Name.Name == rows[k].Name {
			return &rows[k]
		}
	}
	return nil
}

func argNames(rows []trainArg) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return out
}

func (p *Program) checkTrainArg(row *trainArg, x syntax.Expr) {
	v, isNumber := NumberOf(x)
	if math.IsInf(v, 0) { // the parser has said so
		return
	}
	want, ok := "", true
	switch row.Kind {
	case Flag:
		n, isName := x.(*syntax.NameRef)
		want, ok = "true or false", isName && (n.Name == "true" || n.Name == "false")
	case Count:
		_, whole := value.Number(v).Whole()
		want, ok = fmt.Sprintf("a whole number from 0 to %d", math.MaxInt32), isNumber && whole && v >= 0 && v <= math.MaxInt32
	case Rate:
		p.checkRate(row, x)
	default:
		want, ok = "a number of at least 0", isNumber && v >= 0
		if row.Below > 0 {
			want, ok = want+" and below "+value.Number(row.Below).String(), ok && v < row.Below
		}
	}
	if !ok {
		p.Report(x.At(), "", syntax.ErrSettingValue, row.Of, row.Name, want)
	}
}

// checkRate checks a learning rate: a number, a schedule, or one number per step.
func (p *Program) checkRate(row *trainArg, x syntax.Expr) {
	if list, ok := x.(*syntax.ListLit); ok && len(list.Items) > 0 && len(list.Items) <= maxRates {
		for _, it := range list.Items {
			if v, isNumber := NumberOf(it.Value); !isNumber || v < 0 || it.Name != nil || it.To != nil {
				p.Report(it.Value.At(), "", syntax.ErrSettingValue, row.Of, row.Name, "numbers of at least 0")
				return
			}
		}
		steps := p.trainSteps()
		if p.Opts.Steps > 0 {
			steps = p.Opts.Steps
		}
		if len(list.Items) < steps {
			p.Report(x.At(), "one rate per step: "+ir.Counted(steps-len(list.Items), "rate")+" more, or steps = "+fmt.Sprint(len(list.Items)), syntax.ErrRates,
				row.Of, row.Name, ir.Counted(len(list.Items), "rate"), ir.Counted(steps, "step"))
		}
		return
	}
	if c, ok := x.(*syntax.CallExpr); ok {
		if n, isName := c.Fn.(*syntax.NameRef); isName && slices.Contains(lrSchedules, n.Name) {
			p.checkTrainCall(c.Span, n.Name, c.Args)
			return
		}
	}
	if v, ok := NumberOf(x); !ok || v < 0 {
		p.Report(x.At(), "", syntax.ErrSettingValue, row.Of, row.Name, "a number of at least 0, "+strings.Join(lrSchedules, "(…), ")+"(…), or a list with one number per step")
	}
}

// Trains reports whether the train block asks for steps.
func (p *Program) Trains() bool {
	return p.Opts.Train && !p.Opts.Grad && p.Word("train", "optimizer") != "" && p.trainSteps() > 0
}

// Training reports whether the module is for training: dropout drops.
func (p *Program) Training() bool {
	return p.Trains() || p.Opts.Grad && p.Word("train", "optimizer") != ""
}

func (p *Program) trainSteps() int {
	n, _ := p.Num("train", "steps")
	return n
}

// Loop is what the train block says of the loop around the module; nil
// where there is none.
func (p *Program) Loop() *Training {
	if !p.Trains() {
		return nil
	}
	t := &Training{Steps: p.trainSteps()}
	t.Accumulate, _ = p.Num("train", "gradient_accumulation")
	_, args := CallOf(p.Values["train"]["optimizer"].Value)
	if list, ok := args["lr"].(*syntax.ListLit); ok {
		t.Rates = len(list.Items)
	}
	if s := p.Values["train"]["data"]; s != nil {
		if file, ok := s.Value.(*syntax.TextLit); ok {
			t.Data = file.Text
			if !path.IsAbs(t.Data) && !s.Override {
				t.Data = path.Join(path.Dir(s.Src.Name), t.Data)
			}
		}
	}
	return t
}

// TrainAttr is the train block as passes read it.
func (p *Program) TrainAttr() ir.Dict {
	s := p.Values["train"]["optimizer"]
	name, args := CallOf(s.Value)
	as := ir.AttrsOf(ir.NamedAttr{Name: "optimizer", Attr: ir.Str(name)})
	for _, row := range TrainArgsOf(name) {
		as.Set(row.Name, p.trainValue(&row, args[row.Name]))
	}
	if clip := p.Values["train"]["clip_by_global_norm"]; clip != nil {
		v, _ := NumberOf(clip.Value)
		as.Set("clip", ir.Float{Value: v, Type: ir.F64})
	}
	accumulate, _ := p.Num("train", "gradient_accumulation")
	as.Set("gradient_accumulation", ir.I64Attr(accumulate))
	if p.Word("train", "reduce_gradients") == "per_batch" {
		as.Set("reduce_gradients", ir.Str("per_batch"))
	}
	as.Set("accumulate_dtype", ir.Str(p.Elem(ir.DTypeByName(p.Word("train", "dtype"))).String()))
	as.Set("shard_optimizer_over_data", ir.Bool(p.Flag("train", "shard_optimizer_over_data")))
	as.Set("seed", ir.I64Attr(p.Seed()))
	as.Set("steps", ir.I64Attr(p.trainSteps()))
	return ir.Dict(as)
}

// CallOf reads word(args) or word; the first argument may lack its name.
func CallOf(x syntax.Expr) (name string, args map[string]syntax.Expr) {
	args = make(map[string]syntax.Expr)
	c, ok := x.(*syntax.CallExpr)
	if !ok {
		n, _ := x.(*syntax.NameRef)
		return n.Name, args
	}
	name = c.Fn.(*syntax.NameRef).Name
	rows := TrainArgsOf(name)
	for i, a := range c.Args {
		args[rowOf(rows, a, i).Name] = a.Value
	}
	return name, args
}

// trainValue is an argument, or its default, as an attribute.
func (p *Program) trainValue(row *trainArg, x syntax.Expr) ir.Attr {
	v, _ := NumberOf(x)
	switch row.Kind {
	case Rate:
		return p.rateAttr(x)
	case Flag:
		n, ok := x.(*syntax.NameRef)
		return ir.Bool(ok && n.Name == "true")
	case Count:
		if x == nil {
			v = float64(row.Def.(int))
		}
		return ir.I64Attr(int(v))
	}
	if x == nil {
		v = row.Def.(float64)
	}
	return ir.Float{Value: v, Type: ir.F64}
}

func (p *Program) rateAttr(x syntax.Expr) ir.Dict {
	switch x := x.(type) {
	case *syntax.ListLit:
		var values ir.Array
		for _, it := range x.Items {
			v, _ := NumberOf(it.Value)
			values = append(values, ir.Float{Value: v, Type: ir.F64})
		}
		return ir.Dict(ir.AttrsOf(ir.NamedAttr{Name: "kind", Attr: ir.Str("table")}, ir.NamedAttr{Name: "values", Attr: values}))
	case *syntax.CallExpr:
		kind, args := CallOf(x)
		as := ir.AttrsOf(ir.NamedAttr{Name: "kind", Attr: ir.Str(kind)})
		for _, row := range TrainArgsOf(kind) {
			as.Set(row.Name, p.trainValue(&row, args[row.Name]))
		}
		if as.Has("decay") && args["decay"] == nil {
			as.Set("decay", ir.I64Attr(max(p.trainSteps()-as.Int("warmup"), 0)))
		}
		return ir.Dict(as)
	}
	v, _ := NumberOf(x)
	return ir.Dict(ir.AttrsOf(ir.NamedAttr{Name: "kind", Attr: ir.Str("constant")}, ir.NamedAttr{Name: "value", Attr: ir.Float{Value: v, Type: ir.F64}}))
}
