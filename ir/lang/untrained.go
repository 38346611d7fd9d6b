package lang

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
)

// applyParams gives each parameter what the first pattern says that matches its
// path. A pattern that decides for none is refused.
func (p *builder) applyParams(s *modelState) {
	decided := make(map[*declaredParam]string)
	for _, e := range p.Params() {
		var matched, own []*declaredParam
		for _, d := range s.declared {
			if !config.Matches(e.Key, d.path) {
				continue
			}
			matched = append(matched, d)
			if decided[d] == "" && !d.value.Attrs.Has(ir.KeyFrozen) {
				own = append(own, d)
			}
		}
		key := keyOf(e)
		switch {
		case len(matched) == 0:
			p.Report(key, p.likePath(s, e.Key), syntax.ErrParamsNone, e.Key)
		case len(own) == 0 && decided[matched[0]] == "":
			p.Report(key, "leave it out", syntax.ErrParamsFrozen, e.Key, matched[0].path)
		case len(own) == 0:
			p.Report(key, "the first pattern that matches counts: move it up, or leave it out", syntax.ErrParamsDecided, e.Key, decided[matched[0]])
		}
		for _, d := range own {
			decided[d] = e.Key
			d.apply(e.Value)
		}
	}
}

// keyOf is the position of the key of a setting, quotes included.
func keyOf(e syntax.Setting) syntax.Span {
	at := e.Span
	at.Len = utf8.RuneCountInString(e.Key)
	if line := []rune(diag.LineOf(at.Src.Text, at.Line)); at.Col <= len(line) && line[at.Col-1] == '"' {
		at.Len += 2
	}
	return at
}

// apply gives the parameter what a pattern says.
func (d *declaredParam) apply(x syntax.Expr) {
	if n, ok := x.(*syntax.NameRef); ok {
		if n.Name == "frozen" {
			d.value.Attrs.Set(ir.KeyFrozen, ir.Unit{})
		}
		return
	}
	call, _ := x.(*syntax.CallExpr)
	_, args := config.CallOf(call)
	var update ir.Attrs
	for _, name := range config.SortedKeys(args) {
		v, _ := config.NumberOf(args[name])
		update.Set(name, ir.Float{Value: v, Type: ir.F64})
	}
	d.value.Attrs.Set(ir.KeyUpdate, ir.Dict(update))
}

// likePath is a hint at what a pattern was meant to match.
func (p *builder) likePath(s *modelState, pattern string) string {
	var paths []string
	for _, d := range s.declared {
		paths = append(paths, d.path)
	}
	if hint := syntax.Near(pattern, paths); hint != "" {
		return hint
	}
	if hint := syntax.Near(strings.Trim(pattern, "*."), paths); hint != "" {
		return hint
	}
	const most = 8
	if n := len(paths); n > most {
		paths = append(paths[:most:most], fmt.Sprintf("and %d more", n-most))
	}
	return "there are " + strings.Join(paths, ", ")
}

// leaveUntrained freezes the parameters that can have no gradient: weight decay
// alone would change them. There must be others.
func (p *builder) leaveUntrained(s *modelState) {
	main := s.module.Main()
	loss := main.Return().Operands[0]
	flows, depends := dependence{s.module, stopsGradient}.of(main, loss), dependence{module: s.module}.of(main, loss)
	trained := 0
	for _, d := range s.declared {
		v := d.value
		switch {
		case !v.Type.Elem.IsFloat() || v.Attrs.Has(ir.KeyFrozen):
		case flows[v]:
			trained++
		default:
			why := "the loss does not depend on it"
			if depends[v] {
				why = "the loss depends on it through stop_gradient alone"
			}
			v.Attrs.Set(ir.KeyFrozen, ir.Unit{})
			p.Warn(d.Span, config.NoGradient, "param "+d.name()+": … = … frozen, where that is meant", syntax.WarnNoGradient, d.path, why)
		}
	}
	if set := p.Values["train"]["optimizer"]; trained == 0 {
		p.Report(set.Span, "steps = 0 computes the loss alone", syntax.ErrNothingTrained, s.module.Name)
	}
}

// name is how the parameter is declared.
func (d *declaredParam) name() string { return d.path[strings.LastIndex(d.path, ".")+1:] }

// A dependence finds what a value depends on, through layers and loops, but not
// through ops for which ends, if it is not nil, holds.
type dependence struct {
	module *ir.Module
	ends   func(*ir.Op) bool
}

func stopsGradient(op *ir.Op) bool { return op.Kind == ir.PPName && op.Attrs.Has(ir.KeyStopGradient) }

// of is the values of f, those in regions included, that v, which f computes,
// depends on.
func (d dependence) of(f *ir.Func, v *ir.Value) map[*ir.Value]bool {
	need := map[*ir.Value]bool{v: true}
	d.block(f.Body, need)
	return need
}

// Block adds to need what the needed values of b depend on.
func (d dependence) block(b *ir.Block, need map[*ir.Value]bool) {
	for _, op := range slices.Backward(b.Ops) {
		if !slices.ContainsFunc(op.Results, func(v *ir.Value) bool { return need[v] }) || d.ends != nil && d.ends(op) {
			continue
		}
		switch {
		case op.Kind == ir.PPPipeline || op.Kind == ir.PPStack:
			d.layers(op, need)
		case op.Kind == ir.PPScan:
			d.loop(op, op.Regions[0].Args[1:], op.Int("carries"), need)
		case op.Kind == ir.PPCheckpoint:
			d.loop(op, op.Regions[0].Args, 0, need)
		default:
			for _, v := range slices.Concat(op.Operands, op.Captures()) {
				need[v] = true
			}
		}
	}
}

// loop is block for an op whose region yields its results and takes its operands
// as args, the first n of them in turn.
func (d dependence) loop(op *ir.Op, args []*ir.Value, n int, need map[*ir.Value]bool) {
	yield := op.Regions[0].Terminator()
	for again := true; again; {
		again = false
		for i, v := range op.Results {
			if need[v] || i < n && need[args[i]] {
				need[yield.Operands[i]] = true
			}
		}
		d.block(op.Regions[0], need)
		for i := range n {
			if need[args[i]] && !need[yield.Operands[i]] {
				again = true
			}
		}
	}
	for i, v := range args {
		if i < len(op.Operands) && need[v] {
			need[op.Operands[i]] = true
		}
	}
}

// layers is block for a layer that is applied again and again: its operands are
// those of the layer's function, of which the activations are results of the layer
// before.
func (d dependence) layers(op *ir.Op, need map[*ir.Value]bool) {
	f := d.module.Func(op.Sym("layer"))
	inside := make(map[*ir.Value]bool)
	params, results := f.Params(), f.Return().Operands
	for i, v := range op.Results {
		if need[v] {
			inside[results[i]] = true
		}
	}
	d.block(f.Body, inside)
	for again := true; again; {
		again = false
		for i := range op.Activations() {
			if inside[params[i]] && !inside[results[i]] {
				inside[results[i]], again = true, true
			}
		}
		if again {
			d.block(f.Body, inside)
		}
	}
	for i, v := range params {
		if inside[v] {
			need[op.Operands[i]] = true
		}
	}
}
