package lint

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"ppc/ir"
	"ppc/lower/flow"
	"ppc/lower/hlo"
	"ppc/lower/stats"
)

// A program is what the lints look at, and what they have found.
type program struct {
	m       *ir.Module
	main    *ir.Func
	s       *stats.Stats
	u       *flow.Uses
	weights *flow.Weights
	loops   map[*ir.Op]*stats.Loop // of each while
	params  map[*ir.Value]string   // what the user calls the parameters

	settings bool // the program was made from a .pp file, which has settings

	constants map[*ir.Op]map[*ir.Value]bool // by loop: what is known of whether a value is the same in every iteration
	differs   map[*ir.Value]bool            // between devices

	passed *Passed
	lint   *Lint // that is looking
	found  []*Finding
}

func newProgram(m *ir.Module, s *stats.Stats) *program {
	p := &program{m: m, main: m.Main(), s: s, loops: make(map[*ir.Op]*stats.Loop), params: make(map[*ir.Value]string),
		constants: make(map[*ir.Op]map[*ir.Value]bool)}
	p.u = flow.NewUses(p.main)
	p.weights = flow.WeightsOf(m, p.main)
	p.differs = p.placed()
	for _, l := range s.Loops {
		p.loops[l.Op] = l
	}
	for _, v := range p.main.Params() {
		p.settings = p.settings || v.Attrs.Has(ir.KeyLogical)
		p.params[v] = cmp.Or(hlo.UserName(v), v.Attrs.Str(ir.KeyName), v.Name, fmt.Sprintf("argument %d", v.Index))
	}
	return p
}

// collectives calls see for every collective of one of the given kinds.
func (p *program) collectives(see func(c *stats.Collective), kinds ...ir.Kind) {
	for _, c := range p.s.Collectives {
		for _, k := range kinds {
			if c.Op.Kind == k {
				see(c)
			}
		}
	}
}

// around is the innermost loop whose region op is in; nil for none.
func (p *program) around(op *ir.Op) *ir.Op {
	for o := p.u.Owner[p.u.In[op]]; o != nil; o = p.u.Owner[p.u.In[o]] {
		if o.Kind == ir.While {
			return o
		}
	}
	return nil
}

// inside reports whether op is in a region of around, at any depth.
func (p *program) inside(op, around *ir.Op) bool {
	for o := op; o != nil; o = p.u.Owner[p.u.In[o]] {
		if o == around {
			return o != op
		}
	}
	return false
}

// definedIn reports whether v is defined in a region of loop, at any depth.
func (p *program) definedIn(v *ir.Value, loop *ir.Op) bool {
	if v.Def != nil {
		return p.inside(v.Def, loop)
	}
	owner := p.u.Owner[v.Block]
	return owner == loop || owner != nil && p.inside(owner, loop)
}

// loopOf is the loop whose argument v is; nil for none.
func (p *program) loopOf(v *ir.Value) *ir.Op {
	if v.Def != nil {
		return nil
	}
	if o := p.u.Owner[v.Block]; o != nil && o.Kind == ir.While {
		return o
	}
	return nil
}

// user is what the user calls v: the weight that it is chosen from, the
// parameter that it is in another form, its own name, or its type.
func (p *program) user(v *ir.Value) string {
	name := v.Name
	if v.Def != nil {
		name = stats.NameOf(v.Def)
	}
	return cmp.Or(p.users(v), given(name), v.Type.String())
}

// users is the name of the parameter that v is chosen from; "" for none.
func (p *program) users(v *ir.Value) string {
	if w := p.weights.Of[v]; w != nil {
		return p.params[w]
	}
	for v.Def != nil && sameElements[v.Def.Kind] {
		v = v.Def.Operands[0]
	}
	return p.params[v]
}

// elements are the names that XLA gives what it takes out of tuples.
var elements = regexp.MustCompile(`^get-tuple-element[.\d]*$`)

// given is a name that was not generated, or "".
func given(name string) string {
	if elements.MatchString(name) {
		return ""
	}
	return name
}

// report adds a finding at op about the value v.
func (p *program) report(op *ir.Op, v *ir.Value, s Severity, format string, args ...any) *Finding {
	f := &Finding{Lint: p.lint.Name, Severity: s, Name: p.user(v), Op: strings.TrimPrefix(op.Name(), "stablehlo."), Bytes: stats.BytesOf(v.Type),
		Executions: 1, Msg: fmt.Sprintf(format, args...)}
	if o := op.Origin; o != nil {
		f.Pos, f.Layer = o.Place(), o.Layer()
		if o.Text != nil {
			f.Source = o.Pos
		}
	}
	if loop := p.around(op); loop != nil {
		f.Loop = p.loops[loop].Name
	}
	p.found = append(p.found, f)
	return f
}

// recomputed is what settings of a .pp program do about residuals.
const recomputed = "pipeline.remat = full with checkpoint = iteration"

// outsideOf is the setting of a .pp program by which a weight is gathered outside of
// loop: of one around others, which may be that over repeats, each of which gathers already;
// and of that over accumulated batches, in which what no pipeline gathers is gathered.
func outsideOf(loop *ir.Op) string {
	if loop.Attrs.Str(ir.KeyLoop) == ir.LoopBatches {
		return "more pipeline.microbatches in place of train.gradient_accumulation"
	}
	nested := false
	loop.Regions[1].Walk(func(op *ir.Op) { nested = nested || op.Kind == ir.While })
	if nested {
		return "pipeline.gather = once"
	}
	return "pipeline.gather = once, or per_repeat with 2 repeats or more,"
}

// cure ends f with what makes it go away: the setting, where there is one and
// the program was made from settings, else the change of the program's text.
func (p *program) cure(f *Finding, setting, text string) {
	if setting != "" && (p.settings || text == "") {
		text = setting
	}
	if text != "" {
		f.Msg += "; " + text
	}
}

// at adds a finding at a collective, which has an operand and a result.
func (p *program) at(c *stats.Collective, s Severity, format string, args ...any) *Finding {
	v := c.Op.Result()
	if p.users(c.Op.Operands[0]) != "" {
		v = c.Op.Operands[0]
	}
	f := p.report(c.Op, v, s, format, args...)
	f.Axes, f.Bytes, f.Executions = c.Axes, c.Bytes, c.Executions
	return f
}

// over is a collective and what it moves along: all_gather over fsdp; of groups
// without names, how many devices.
func over(c *stats.Collective) string {
	switch {
	case c.Axes != "":
		return c.Kind + " over " + c.Axes
	case c.Group > 0:
		return fmt.Sprintf("%s over groups of %d", c.Kind, c.Group)
	}
	return c.Kind
}

// each is how often something happens and what that is in bytes:
// 19 x 32.0 KiB = 608.0 KiB per step.
func each(n flow.Count, bytes int) string {
	if n == flow.Unknown {
		return size(bytes) + " each time"
	}
	if n == 1 {
		return size(bytes) + " per step"
	}
	return fmt.Sprintf("%s x %s = %s per step", n, size(bytes), size(int(n.Times(flow.Count(bytes)))))
}

// size is n bytes for people.
func size(n int) string { return strings.TrimSpace(stats.SizeText(n)) }

// iterations is a loop for people: the 19 iterations of "iterations".
func iterations(l *stats.Loop) string {
	if l.Trips == flow.Unknown {
		return fmt.Sprintf("each iteration of %q", l.Name)
	}
	return fmt.Sprintf("each of %s iterations of %q", l.Trips, l.Name)
}

// same reports whether v is the same in every iteration of loop: it is defined
// before the loop, or computed from such values alone.
func (p *program) same(v *ir.Value, loop *ir.Op) bool {
	known := p.constants[loop]
	if known == nil {
		known = make(map[*ir.Value]bool)
		p.constants[loop] = known
	}
	return p.sameIn(v, loop, known)
}

func (p *program) sameIn(v *ir.Value, loop *ir.Op, known map[*ir.Value]bool) bool {
	if !p.definedIn(v, loop) {
		return true
	}
	if s, ok := known[v]; ok {
		return s
	}
	known[v] = false // where values depend on themselves
	s := false
	switch {
	case p.loopOf(v) == loop:
		s = flow.Invariant(loop, v.Index)
	case v.Def != nil && (v.Def.Kind.Has(ir.Pure) || v.Def.Kind.Has(ir.Collective)) && len(v.Def.Regions) == 0 || v.Def != nil && combines(v.Def):
		s = true
		for _, x := range reads(v.Def) {
			s = s && p.sameIn(x, loop, known)
		}
	}
	known[v] = s
	return s
}

// combines reports whether the regions of op combine scalars.
func combines(op *ir.Op) bool { return len(op.Regions) > 0 && !op.Kind.Has(ir.TensorRegions) }

// reads are the values that op uses, its regions included.
func reads(op *ir.Op) []*ir.Value {
	if len(op.Regions) == 0 {
		return op.Operands
	}
	return append(append([]*ir.Value{}, op.Operands...), op.Captures()...)
}

// reached are the values that op, which reads v, computes of it: its results,
// or, of a loop and of what ends an iteration or a branch, those that v becomes.
func (p *program) reached(op *ir.Op, v *ir.Value) []*ir.Value {
	around := p.u.Owner[p.u.In[op]]
	switch {
	case op.Kind == ir.While:
		return carried(op, op.Operands, v)
	case op.Kind == ir.OptimizationBarrier:
		return flow.Moved(op, v)
	case !op.Kind.Has(ir.Terminator):
		return op.Results
	case around == nil:
		return nil
	case around.Kind == ir.While && p.u.In[op] == around.Regions[1]:
		return carried(around, op.Operands, v)
	case around.Kind == ir.While:
		return nil
	case around.Kind == ir.If, around.Kind == ir.Case:
		return p.u.HandedOn(op, v)
	}
	return around.Results
}

// carried are the values that the carries of a loop have where v is among from.
func carried(loop *ir.Op, from []*ir.Value, v *ir.Value) []*ir.Value {
	var out []*ir.Value
	for k, x := range from {
		if x == v {
			out = append(out, loop.Regions[0].Args[k], loop.Regions[1].Args[k], loop.Results[k])
		}
	}
	return out
}

// placed are the values that may differ between devices because they are
// different devices: those that follow from the device's number, or from an
// integer parameter, which may be one.
func (p *program) placed() map[*ir.Value]bool {
	set := make(map[*ir.Value]bool)
	var work []*ir.Value
	add := func(v *ir.Value) {
		if !set[v] {
			set[v] = true
			work = append(work, v)
		}
	}
	for _, v := range p.main.Params() {
		if v.Type.IsTensor() && !v.Type.Elem.IsFloat() {
			add(v)
		}
	}
	p.main.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.PartitionID || op.Kind == ir.ReplicaID {
			add(op.Result())
		}
	})
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		for _, op := range p.u.Of[v] {
			for _, r := range p.reached(op, v) {
				add(r)
			}
		}
	}
	return set
}
