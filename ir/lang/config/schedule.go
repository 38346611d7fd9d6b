package config

import (
	"fmt"
	"math"
	"strconv"

	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// A Schedule is the numbers of one pipeline: SEMANTICS' S, M, R, L, D.
type Schedule struct {
	Stages, Microbatches, Repeats, LayersPerStage, Delay int
	Pipelined                                            int // layers inside: stages x repeats x layersPerStage, or fewer where the last repeat lacks some
}

// Padded reports whether stages of the last repeat lack layers.
func (s *Schedule) Padded() bool { return s.Stages*s.Repeats*s.LayersPerStage > s.Pipelined }

// Place is the place of a setting of the pipeline block, or at.
func (p *Program) Place(key string, at syntax.Span) syntax.Span {
	if s := p.Values["pipeline"][key]; s != nil {
		return s.Span
	}
	return at
}

// Product is x * y, also as text; a number that is too large is the largest.
func Product(x, y int) (int, string) {
	if y != 0 && x > math.MaxInt/y {
		return math.MaxInt, value.Number(float64(x) * float64(y)).String()
	}
	return x * y, strconv.Itoa(x * y)
}

// Fits is that n things do.
func Fits(things string, n int) string {
	if n == 1 {
		return things + " fits"
	}
	return things + " fit"
}

// maxTries bounds the search for numbers of microbatches.
const maxTries = 4096

// Fitting are the numbers of microbatches, smallest first, that split the batch
// into rows for each of the parts: the multiples of the stages that keep all of
// them at work in every repeat, or, where none of these fits, all that fit.
func Fitting(batch, parts int, s *Schedule) []int {
	if fit := splitting(batch, parts, s.Stages*s.Delay, s.Stages); fit != nil {
		return fit
	}
	return splitting(batch, parts, 1, 1)
}

// splitting are those of first, first + step, … that split the batch into rows
// for each of the parts.
func splitting(batch, parts, first, step int) []int {
	var fit []int
	n := first
	for range maxTries {
		if n > batch/parts {
			break
		}
		if batch%(n*parts) == 0 {
			fit = append(fit, n)
		}
		n += step
	}
	return fit
}

// BatchCure lists some numbers of microbatches that fit, or the batch that m of
// them divide.
func BatchCure(batch, m, parts int, s *Schedule) string {
	var words []string
	for _, n := range Fitting(batch, parts, s) {
		words = append(words, fmt.Sprint(n))
	}
	if words == nil {
		each, _ := Product(m, parts)
		_, fit := Product(batch/each+1, each)
		return "a batch of " + fit + " fits"
	}
	return "microbatches = " + alternatives(words[:min(4, len(words))])
}

// Attr is the schedule and the other settings as passes read them.
func (s *Schedule) Attr(p *Program, outside string) ir.Dict {
	n := func(name string, v int) ir.NamedAttr { return ir.NamedAttr{Name: name, Attr: ir.I64Attr(v)} }
	w := func(name string) ir.NamedAttr {
		return ir.NamedAttr{Name: name, Attr: ir.Str(p.Word("pipeline", name))}
	}
	f := func(name string) ir.NamedAttr {
		return ir.NamedAttr{Name: name, Attr: ir.Bool(p.Flag("pipeline", name))}
	}
	unroll, _ := p.Num("pipeline", "unroll")
	as := []ir.NamedAttr{n("stages", s.Stages), n("microbatches", s.Microbatches), n("repeats", s.Repeats), n("layers_per_stage", s.LayersPerStage),
		n("delay", s.Delay), n("pipelined", s.Pipelined), n("unroll", unroll),
		w("gather"), w("prefetch"), w("rotate"), w("remat"), w("checkpoint_place"), w("mode"),
		f("scan_iterations"), f("scan_repeats"), f("scan_layers"), f("skip_bubbles"), f("save_gathered"),
		{Name: "checkpoint", Attr: ir.Str(p.Boundary())}, {Name: "save_decoder_layer_input", Attr: ir.Bool(p.keeps(layerInput))}, {Name: "save", Attr: StringArray(p.saved())}, {Name: "offload", Attr: StringArray(p.hosted())}}
	if asked := p.asked(); len(asked) > 0 {
		as = append(as, ir.NamedAttr{Name: "asked", Attr: StringArray(asked)})
	}
	if !p.keeps(iterationInput) {
		as = append(as, ir.NamedAttr{Name: "save_iteration_input", Attr: ir.Bool(false)})
	}
	for _, name := range []string{"compat", "gather_dtype", "reduce_dtype"} {
		if p.Word("pipeline", name) != "none" {
			as = append(as, w(name))
		}
	}
	if outside != "" {
		as = append(as, ir.NamedAttr{Name: "outside", Attr: ir.Sym(outside)})
	}
	return ir.Dict(ir.AttrsOf(as...))
}

// StringArray is ns as an attribute.
func StringArray(ns []string) ir.Array {
	out := make(ir.Array, len(ns))
	for i, n := range ns {
		out[i] = ir.Str(n)
	}
	return out
}

// StackAttr is the settings of a plain stack, as a pipeline of one stage has them
// that runs a layer in each iteration: those that are not given are left out. In
// the reference weights are gathered where they are used.
func (p *Program) StackAttr() ir.Dict {
	as := ir.AttrsOf(ir.NamedAttr{Name: "scan_layers", Attr: ir.Bool(p.Flag("pipeline", "scan_layers"))},
		ir.NamedAttr{Name: "checkpoint", Attr: ir.Str(p.Boundary())}, ir.NamedAttr{Name: "remat", Attr: ir.Str(p.Word("pipeline", "remat"))},
		ir.NamedAttr{Name: "save_decoder_layer_input", Attr: ir.Bool(p.keeps(layerInput))}, ir.NamedAttr{Name: "save", Attr: StringArray(p.saved())},
		ir.NamedAttr{Name: "offload", Attr: StringArray(p.hosted())}, ir.NamedAttr{Name: "checkpoint_place", Attr: ir.Str(p.Word("pipeline", "checkpoint_place"))})
	for _, name := range []string{"gather_dtype", "reduce_dtype"} {
		if t := p.Word("pipeline", name); t != "none" {
			as.Set(name, ir.Str(t))
		}
	}
	if p.Opts.Sequential {
		return ir.Dict(as)
	}
	if asked := p.asked(); len(asked) > 0 {
		as.Set("asked", StringArray(asked))
	}
	if gather := p.Word("pipeline", "gather"); gather != "per_iteration" {
		as.Set("gather", ir.Str(gather))
		if gather == "per_repeat" {
			as.Set("prefetch", ir.Str(p.Word("pipeline", "prefetch")))
			as.Set("save_gathered", ir.Bool(p.Flag("pipeline", "save_gathered")))
		}
	}
	if k, _ := p.Num("pipeline", "unroll"); k > 1 {
		as.Set("unroll", ir.I64Attr(k))
	}
	return ir.Dict(as)
}
