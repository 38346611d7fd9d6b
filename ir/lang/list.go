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

// maxList bounds how many layers a list has: they need not be alike.
const maxList = 4096

// A layerList is what layers: [dense * 3, moe * 58] says.
type layerList struct {
	syntax.Span
	kinds []*stackCall // the layers that differ: in what they are, their names or their known arguments
	seq   []int        // the kind of each layer
}

// layerList reads a list of layers: a layer, with known arguments or without, a
// list within the list, and each of these times a number.
func (e *elab) layerList(x syntax.Expr, which string) (*layerList, bool) {
	l := &layerList{Span: x.At()}
	seq, ok := e.listed(l, x, which)
	l.seq = seq
	if ok && len(seq) == 0 {
		e.fail(x.At(), "[dense * 3, moe * 58]", syntax.ErrListLayer, which, "nothing")
		return nil, false
	}
	return l, ok
}

func (e *elab) listed(l *layerList, x syntax.Expr, which string) ([]int, bool) {
	switch x := x.(type) {
	case *syntax.ListLit:
		var out []int
		for _, it := range x.Items {
			if it.Name != nil || it.To != nil {
				e.fail(it.Span, "", syntax.ErrItem)
				return nil, false
			}
			seq, ok := e.listed(l, it.Value, which)
			if !ok || !e.listFits(x.Span, len(out)+len(seq)) {
				return nil, false
			}
			out = append(out, seq...)
		}
		return out, true
	case *syntax.BinaryExpr:
		if x.Op != "*" {
			break
		}
		seq, ok := e.listed(l, x.X, which)
		if !ok {
			return nil, false
		}
		n, isNum := e.toNumber(e.eval(x.Y), x.Y, which+"'s layers")
		if !isNum {
			return nil, false
		}
		times, isWhole := n.Whole()
		if !isWhole || times < 1 || times > maxList {
			e.fail(x.Y.At(), "", syntax.ErrRange, which, "layers", n, 1, maxList)
			return nil, false
		}
		return slices.Repeat(seq, times), e.listFits(x.Span, len(seq)*times)
	case *syntax.CallExpr:
		if n, isName := x.Fn.(*syntax.NameRef); isName && e.p.Fns[n.Name] != nil && e.p.Fns[n.Name].Kind == "layer" {
			return e.listedLayer(l, x, n, x.Args)
		}
	case *syntax.NameRef:
		if d := e.p.Fns[x.Name]; d != nil && d.Kind == "layer" {
			return e.listedLayer(l, &syntax.CallExpr{Span: x.Span, Fn: x}, x, nil)
		}
	}
	if v := e.eval(x); !value.IsPoison(v) {
		e.fail(x.At(), "[dense * 3, moe * 58]", syntax.ErrListLayer, which, value.Describe(v))
	}
	return nil, false
}

func (e *elab) listFits(at syntax.Span, n int) bool {
	if n > maxList {
		e.fail(at, "", syntax.ErrListLong, n, maxList)
	}
	return n <= maxList
}

// listedLayer is one layer of a list.
func (e *elab) listedLayer(l *layerList, c *syntax.CallExpr, name *syntax.NameRef, args []syntax.Arg) ([]int, bool) {
	s := &stackCall{decl: e.p.Fns[name.Name], name: name.Name, known: make(map[string]value.Value), at: c.Span}
	if !e.p.checkLayer(s.decl) || !e.layerArgs(s, args, []string{"name"}, name.Name) || !e.staticGiven(s, c) {
		return nil, false
	}
	k := slices.IndexFunc(l.kinds, func(o *stackCall) bool {
		return o.decl == s.decl && o.name == s.name && knownText(o.known) == knownText(s.known)
	})
	if k < 0 {
		k = len(l.kinds)
		l.kinds = append(l.kinds, s)
	}
	return []int{k}, true
}

// A listLayers is a list whose layers have been built once, so that they fit one
// another.
type listLayers struct {
	*layerList
	fns     []*layerFunc // of the kinds
	numbers map[string][]int
}

// listBuilt builds the layers of a list for the full batch, and checks that they
// take the same arguments and that those of one name have the same parameters.
func (e *elab) listBuilt(l *layerList) *listLayers {
	out := &listLayers{layerList: l, numbers: make(map[string][]int)}
	for _, s := range l.kinds {
		errors := e.p.Count
		f := e.p.buildLayer(s.decl, e.batchOf(s).Size, []string{"stage"}, s.known, noNumbers)
		if e.p.Count > errors || len(f.fn.Results) == 0 {
			return nil
		}
		out.fns = append(out.fns, f)
	}
	for i, k := range l.seq {
		out.numbers[l.kinds[k].name] = append(out.numbers[l.kinds[k].name], i)
	}
	first := out.fns[0]
	for i, f := range out.fns[1:] {
		s := l.kinds[i+1]
		if a, b := argumentsText(first), argumentsText(f); a != b {
			e.fail(s.at, "", syntax.ErrListArgs, l.kinds[0].decl.Name, a, s.decl.Name, b)
			return nil
		}
		if first.carried != f.carried {
			e.fail(s.at, "", syntax.ErrListCarried, l.kinds[0].decl.Name, ir.Counted(first.numActs(), "activation"), s.decl.Name, ir.Counted(f.numActs(), "activation"))
			return nil
		}
		for j := first.numActs(); j < min(len(first.fn.Results), len(f.fn.Results)); j++ {
			if a, b := first.fn.Results[j].Type, f.fn.Results[j].Type; !a.Equal(b) {
				e.fail(s.at, "", syntax.ErrListAux, j+1, l.kinds[0].decl.Name, a.Elem, s.decl.Name, b.Elem)
				return nil
			}
		}
		k := slices.IndexFunc(l.kinds, func(o *stackCall) bool { return o.name == s.name })
		if a, b := paramsText(out.fns[k]), paramsText(f); a != b {
			e.fail(s.at, s.decl.Name+`(name: "other")`, syntax.ErrListParams, s.name, a, b)
			return nil
		}
	}
	for _, name := range out.names() {
		k := slices.IndexFunc(l.kinds, func(o *stackCall) bool { return o.name == name })
		for _, w := range out.fns[k].weights {
			path := name + "." + w.under + w.name
			if prev, taken := e.model.params[path]; taken {
				e.fail(l.kinds[k].at, l.kinds[k].decl.Name+`(name: "other")`, syntax.ErrPathTwice, path, prev.Line)
				return nil
			}
			e.model.params[path] = l.kinds[k].at
		}
	}
	return out
}

// names are the names of the layers, in the order in which they come first.
func (l *layerList) names() []string {
	var out []string
	for _, s := range l.kinds {
		if !slices.Contains(out, s.name) {
			out = append(out, s.name)
		}
	}
	return out
}

// argumentsText is what a layer takes: its tensors by name.
func argumentsText(f *layerFunc) string {
	out := []string{f.decl.Params[0].Name + ": " + value.TypeText(f.elem, f.x)}
	for _, s := range f.sides {
		out = append(out, s.param.Name+": "+value.TypeText(s.elem, s.axes))
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// paramsText is the parameters of a layer.
func paramsText(f *layerFunc) string {
	var out []string
	for _, w := range f.weights {
		text := w.under + w.name + ": " + value.TypeText(w.elem, w.axes)
		if w.file != "" {
			text += fmt.Sprintf(" as %q", w.file)
		}
		out = append(out, text)
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// A window is layers of a list that repeat a pattern: layers lo to lo + n, of which
// each is of the kind of the one period before it.
type window struct{ lo, n, period int }

// slots are the places of a pipeline for layers: those of one repeat.
type slots struct {
	stages   int
	perStage int  // layers in each; 0 for as many as the pattern has
	pad      bool // some may have no layer
}

// window is the layers that a pipeline with these slots can hold: the longest that
// repeat a pattern, in full repeats, or with pad in any number. It is empty where
// no pattern fills the stages once.
func (l *layerList) window(s slots) window {
	var best window
	most := 0
	once := s.perStage > 0 && (s.stages == 1 || s.pad) // one slot is enough
	for p := 1; p == 1 || 2*p <= len(l.seq) || once && p <= s.perStage && p <= len(l.seq); p++ {
		if s.perStage > 0 && s.perStage%p != 0 {
			continue
		}
		w := l.longest(p, once)
		slot, full := s.stages*max(s.perStage, p), w.n
		if !s.pad {
			full -= full % slot
		}
		if full > most {
			best, most = w, full
		}
	}
	return best
}

// longest is the longest layers that repeat a pattern of p, in full periods: at least
// two, or where once is enough one.
func (l *layerList) longest(p int, once bool) window {
	best, run := window{0, 0, p}, 0
	note := func(end, run int) {
		if n := run + p; (once || p == 1 || run >= p) && n > best.n {
			best.lo, best.n = end-n, n
		}
	}
	for i := p; i < len(l.seq); i++ {
		if l.seq[i] != l.seq[i-p] {
			note(i, run)
			run = -1
		}
		run++
	}
	note(len(l.seq), run)
	best.n -= best.n % p
	return best
}

// runs are the layers lo to hi in parts of one kind each.
func (l *layerList) runs(lo, hi int) []window {
	var out []window
	for i := lo; i < hi; i++ {
		if k := len(out) - 1; k >= 0 && l.seq[out[k].lo] == l.seq[i] {
			out[k].n++
		} else {
			out = append(out, window{i, 1, 1})
		}
	}
	return out
}

// text is the layers of w in words: [local * 5, global] * 10.
func (l *layerList) text(w window) string {
	var out []string
	for _, r := range l.runs(w.lo, w.lo+w.period) {
		k := l.kinds[l.seq[r.lo]]
		if w.period == 1 {
			r.n = w.n
		}
		out = append(out, k.at.Text(k.name)+times(r.n))
	}
	if len(out) > 6 {
		out = append(out[:5], "…")
	}
	if len(out) == 1 {
		return out[0]
	}
	return "[" + strings.Join(out, ", ") + "]" + times(w.n/w.period)
}

func times(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" * %d", n)
}

// listOf applies the layers of a list: those that repeat a pattern in the pipeline,
// those before and after them one after the other.
func (e *elab) listOf(s *stackCall, ops []*value.Tensor, piped bool) value.Value {
	l := e.listBuilt(s.list)
	if l == nil {
		return value.Poison{}
	}
	sum := &listSum{e: e, ops: slices.Clone(ops), acts: l.fns[0].numActs()}
	after := 0 // the first layer after the pipeline
	if piped {
		stages := e.p.MeshAxisSize("stage")
		perStage := 0
		if e.p.Values["pipeline"]["layers_per_stage"] != nil {
			perStage, _ = e.p.Num("pipeline", "layers_per_stage")
		}
		w := l.window(slots{stages, perStage, e.p.Flag("pipeline", "pad_layers")})
		if w.n == 0 {
			return e.noWindow(l, stages, perStage)
		}
		batch, rows := e.inside(l.kinds[0])
		sched, ok := e.scheduleOf(s.at, layerCount{w.n, len(l.seq) - w.n, w.period}, batch, rows)
		if !ok {
			return value.Poison{}
		}
		n := sched.Pipelined * w.period
		if !sum.stacks(l, 0, w.lo) || !sum.pipeline(l, window{w.lo, n, w.period}, batch.Size, sched) {
			return value.Poison{}
		}
		after = w.lo + n
	}
	if !sum.stacks(l, after, len(l.seq)) {
		return value.Poison{}
	}
	var out value.Tuple
	for _, x := range sum.ops[:sum.acts] {
		out = append(out, x)
	}
	for _, a := range sum.aux {
		out = append(out, &value.Tensor{V: a})
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

// noWindow refuses layers of which no pattern fills the stages.
func (e *elab) noWindow(l *listLayers, stages, perStage int) value.Value {
	what := l.text(l.window(slots{stages: 1}))
	cure := "stack(layers: …)"
	if w := l.window(slots{stages: stages}); perStage > 0 && w.n > 0 {
		cure = fmt.Sprintf("layers_per_stage = %d fits %s", w.period, l.text(window{w.lo, w.n - w.n%(stages*w.period), w.period}))
	} else {
		for n := stages - 1; n > 1; n-- {
			if w := l.window(slots{stages: n, perStage: perStage}); w.n > 0 {
				cure = fmt.Sprintf("stage = %d fits", n)
				break
			}
		}
	}
	if perStage > 0 {
		return e.fail(e.p.Place("layers_per_stage", l.Span), cure, syntax.ErrNoPatternOf, ir.Counted(perStage, "layer"), ir.Counted(stages, "stage"), what)
	}
	return e.fail(l.Span, cure, syntax.ErrNoPattern, ir.Counted(stages, "stage"), what)
}

// A listSum is the activations and the sums of scalars on the way through a list.
type listSum struct {
	e    *elab
	ops  []*value.Tensor // the activations, then the side inputs
	acts int
	aux  []*ir.Value
}

// then takes the results of some of the layers.
func (s *listSum) then(v value.Value) bool {
	vs, ok := v.(value.Tuple)
	if !ok {
		vs = value.Tuple{v}
	}
	if value.IsPoison(vs...) {
		return false
	}
	for k := range s.acts {
		s.ops[k] = vs[k].(*value.Tensor)
	}
	for i, a := range vs[s.acts:] {
		if t := a.(*value.Tensor); i < len(s.aux) {
			s.aux[i] = s.e.b.Add(s.aux[i], t.V)
		} else {
			s.aux = append(s.aux, t.V)
		}
	}
	return true
}

// stacks applies the layers lo to hi to the full batch, those of one kind as one
// stack.
func (s *listSum) stacks(l *listLayers, lo, hi int) bool {
	for _, r := range l.runs(lo, hi) {
		k := l.kinds[l.seq[r.lo]]
		f := s.e.layerFor(k.decl, s.e.batchOf(k).Size, []string{"stage"}, k.known)
		if f.bad || !s.then(s.e.stackOf(f, s.ops, s.e.listSlab(l, r))) {
			return false
		}
	}
	return true
}

// pipeline applies the layers of w by the schedule.
func (s *listSum) pipeline(l *listLayers, w window, batch int, sched *config.Schedule) bool {
	f := s.e.microbatchLayer(l.kinds[l.seq[w.lo]], sched.Microbatches, func(n int) *layerFunc { return s.e.layersFor(l, w, n) })
	return !f.bad && s.then(s.e.pipelineOf(f, s.ops, f, s.e.listSlab(l, w), sched, ""))
}
