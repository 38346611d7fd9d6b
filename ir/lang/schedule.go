package lang

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// A schedule is the numbers of one pipeline: SEMANTICS' S, M, R, L, D.
type schedule struct {
	stages, microbatches, repeats, layersPerStage, delay int
	pipelined                                            int // layers inside: stages x repeats x layersPerStage
}

// schedule derives what the pipeline block does not give and checks that all
// fits: n layers, at the place at, of a batch of the given size whose rows lie
// as cut says.
func (e *elab) schedule(at syntax.Span, n int, batch axis, rows cut) (*schedule, bool) {
	p := e.p
	if p.badSetting {
		return nil, false // of which something is reported
	}
	s := &schedule{stages: p.meshAxisSize("stage")}
	s.layersPerStage, _ = p.num("pipeline", "layers_per_stage")
	s.delay, _ = p.num("pipeline", "delay")
	if !e.layersFit(at, n, s) {
		return nil, false
	}
	if p.word("pipeline", "gather") == "per_repeat" && s.repeats < 2 {
		e.fail(p.place("gather", at), "gather = once", errWindow, s.repeats)
		return nil, false
	}
	if s.repeats == 1 && p.boundary() == "repeat" && p.word("pipeline", "checkpoint_place") == "inside" {
		e.fail(p.place("checkpoint", at), "use checkpoint = iteration, or checkpoint_place = outside besides", errOneRepeat)
		return nil, false
	}
	return s, e.microbatchesFit(at, batch, rows, s)
}

// place is where a setting of the pipeline block stands, or at.
func (p *program) place(key string, at syntax.Span) syntax.Span {
	if s := p.values["pipeline"][key]; s != nil {
		return s.Span
	}
	return at
}

// layersFit settles pipelined and repeats.
func (e *elab) layersFit(at syntax.Span, n int, s *schedule) bool {
	p, slot := e.p, s.stages*s.layersPerStage
	subset, given := p.num("pipeline", "layers")
	s.pipelined = n
	if given {
		if s.pipelined = subset; subset > n {
			e.fail(p.place("layers", at), fmt.Sprintf("at most layers = %d", n), errSubset, subset, ir.Counted(n, "layer"))
			return false
		}
	}
	repeats, given := p.num("pipeline", "repeats")
	if given {
		s.repeats = repeats
		if total, text := product(slot, repeats); total != s.pipelined {
			e.fail(p.place("repeats", at), e.layersCure(s.pipelined, n, slot, total), errLayers,
				ir.Counted(s.pipelined, "layer"), ir.Counted(s.stages, "stage"), ir.Counted(repeats, "repeat"), ir.Counted(s.layersPerStage, "layer"), text)
			return false
		}
		return true
	}
	s.repeats = s.pipelined / slot
	if s.repeats*slot != s.pipelined {
		where := at
		if subset > 0 {
			where = p.place("layers", at)
		}
		e.fail(where, e.layersCure(s.pipelined, n, slot, 0), errLayersLeft,
			ir.Counted(s.pipelined, "layer"), ir.Counted(s.stages, "stage"), ir.Counted(s.layersPerStage, "layer"), slot, s.pipelined%slot)
		return false
	}
	return true
}

// product is x * y, also as text; a number that is too large is the largest.
func product(x, y int) (int, string) {
	if y != 0 && x > math.MaxInt/y {
		return math.MaxInt, number(float64(x) * float64(y)).String()
	}
	return x * y, strconv.Itoa(x * y)
}

// fits is that n things do.
func fits(things string, n int) string {
	if n == 1 {
		return things + " fits"
	}
	return things + " fit"
}

// layersCure says what would fit: other repeats, numbers of layers near by,
// leaving some outside of the pipeline. total is what the given repeats make,
// 0 where none are given.
func (e *elab) layersCure(pipelined, n, slot, total int) string {
	repeats := func(layers int) string {
		if total == 0 {
			return ""
		}
		return fmt.Sprintf(" with repeats = %d", layers/slot)
	}
	var cures []string
	down, up := pipelined/slot*slot, (pipelined+slot-1)/slot*slot
	if down == pipelined {
		cures = append(cures, fmt.Sprintf("repeats = %d fits %s", pipelined/slot, ir.Counted(pipelined, "layer")))
		down = total
	} else {
		cures = append(cures, fmt.Sprintf("%s%s", fits(ir.Counted(up, "layer"), up), repeats(up)))
	}
	if 0 < down && down < n {
		cures = append(cures, fmt.Sprintf("layers = %d%s leaves %d outside", down, repeats(down), n-down))
	}
	return strings.Join(cures, "; or ")
}

// microbatchesFit settles microbatches.
func (e *elab) microbatchesFit(at syntax.Span, batch axis, rows cut, s *schedule) bool {
	p := e.p
	m, given := p.num("pipeline", "microbatches")
	if !given {
		m = s.stages * s.delay
	}
	s.microbatches = m
	where := p.place("microbatches", at)
	parts := e.devices(rows.mesh)
	if batch.size%m != 0 {
		e.fail(where, batchCure(batch.size, m, parts, s), errBatch, batch.name, batch.size, ir.Counted(m, "microbatch"))
		return false
	}
	b := batch.size / m
	if b%parts != 0 {
		_, all := product(m, parts)
		hint := fmt.Sprintf("%s = %s gives each of %s a row", batch.name, all, ir.Counted(parts, "part"))
		if fit := fitting(batch.size, parts, s); fit != nil {
			hint = fmt.Sprintf("microbatches = %d fits; or %s", fit[len(fit)-1], hint)
		}
		e.fail(where, hint, errRows, ir.Counted(b, "row"), batch.name, batch.size, ir.Counted(m, "microbatch"), strings.Join(rows.mesh, " x "), parts)
		return false
	}
	return true
}

func (e *elab) devices(mesh []string) int {
	n := 1
	for _, m := range mesh {
		n *= e.p.meshAxisSize(m)
	}
	return n
}

// maxTries bounds the search for numbers of microbatches.
const maxTries = 4096

// fitting are the numbers of microbatches, smallest first, that split the batch
// into rows for each of the parts: the multiples of the stages that keep all of
// them at work in every repeat, or, where none of these fits, all that fit.
func fitting(batch, parts int, s *schedule) []int {
	if fit := splitting(batch, parts, s.stages*s.delay, s.stages); fit != nil {
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

// batchCure lists some numbers of microbatches that fit, or says which batch m
// of them cut.
func batchCure(batch, m, parts int, s *schedule) string {
	var words []string
	for _, n := range fitting(batch, parts, s) {
		words = append(words, fmt.Sprint(n))
	}
	if words == nil {
		each, _ := product(m, parts)
		_, fit := product(batch/each+1, each)
		return "a batch of " + fit + " fits"
	}
	return "microbatches = " + alternatives(words[:min(4, len(words))])
}

// attr is the schedule and the other settings as passes read them.
func (s *schedule) attr(p *program, outside string) ir.Dict {
	n := func(name string, v int) ir.NamedAttr { return ir.NamedAttr{Name: name, Attr: ir.I64Attr(v)} }
	w := func(name string) ir.NamedAttr {
		return ir.NamedAttr{Name: name, Attr: ir.Str(p.word("pipeline", name))}
	}
	f := func(name string) ir.NamedAttr {
		return ir.NamedAttr{Name: name, Attr: ir.Bool(p.flag("pipeline", name))}
	}
	unroll, _ := p.num("pipeline", "unroll")
	as := []ir.NamedAttr{n("stages", s.stages), n("microbatches", s.microbatches), n("repeats", s.repeats), n("layers_per_stage", s.layersPerStage),
		n("delay", s.delay), n("pipelined", s.pipelined), n("unroll", unroll),
		w("gather"), w("prefetch"), w("rotate"), w("remat"), w("checkpoint_place"), w("mode"),
		f("scan_iterations"), f("scan_repeats"), f("scan_layers"), f("skip_bubbles"), f("save_gathered"),
		{Name: "checkpoint", Attr: ir.Str(p.boundary())}, {Name: "save_decoder_layer_input", Attr: ir.Bool(p.keeps(layerInput))}, {Name: "save", Attr: stringArray(p.saved())}, {Name: "offload", Attr: stringArray(p.hosted())}}
	if asked := p.asked(); len(asked) > 0 {
		as = append(as, ir.NamedAttr{Name: "asked", Attr: stringArray(asked)})
	}
	if !p.keeps(iterationInput) {
		as = append(as, ir.NamedAttr{Name: "save_iteration_input", Attr: ir.Bool(false)})
	}
	for _, name := range []string{"compat", "gather_dtype", "reduce_dtype"} {
		if p.word("pipeline", name) != "none" {
			as = append(as, w(name))
		}
	}
	if outside != "" {
		as = append(as, ir.NamedAttr{Name: "outside", Attr: ir.Sym(outside)})
	}
	return ir.Dict(ir.AttrsOf(as...))
}

func stringArray(ns []string) ir.Array {
	out := make(ir.Array, len(ns))
	for i, n := range ns {
		out[i] = ir.Str(n)
	}
	return out
}

// stackAttr is the settings of a plain stack, as a pipeline of one stage has them
// that runs a layer in each iteration: those that are not given are left out. In
// the reference weights are gathered where they are used.
func (p *program) stackAttr() ir.Dict {
	as := ir.AttrsOf(ir.NamedAttr{Name: "scan_layers", Attr: ir.Bool(p.flag("pipeline", "scan_layers"))},
		ir.NamedAttr{Name: "checkpoint", Attr: ir.Str(p.boundary())}, ir.NamedAttr{Name: "remat", Attr: ir.Str(p.word("pipeline", "remat"))},
		ir.NamedAttr{Name: "save_decoder_layer_input", Attr: ir.Bool(p.keeps(layerInput))}, ir.NamedAttr{Name: "save", Attr: stringArray(p.saved())},
		ir.NamedAttr{Name: "offload", Attr: stringArray(p.hosted())}, ir.NamedAttr{Name: "checkpoint_place", Attr: ir.Str(p.word("pipeline", "checkpoint_place"))})
	for _, name := range []string{"gather_dtype", "reduce_dtype"} {
		if t := p.word("pipeline", name); t != "none" {
			as.Set(name, ir.Str(t))
		}
	}
	if p.opts.Sequential {
		return ir.Dict(as)
	}
	if asked := p.asked(); len(asked) > 0 {
		as.Set("asked", stringArray(asked))
	}
	if gather := p.word("pipeline", "gather"); gather != "per_iteration" {
		as.Set("gather", ir.Str(gather))
		if gather == "per_repeat" {
			as.Set("prefetch", ir.Str(p.word("pipeline", "prefetch")))
			as.Set("save_gathered", ir.Bool(p.flag("pipeline", "save_gathered")))
		}
	}
	if k, _ := p.num("pipeline", "unroll"); k > 1 {
		as.Set("unroll", ir.I64Attr(k))
	}
	return ir.Dict(as)
}
