package lang

import (
	"slices"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// A layout says how logical axes lie on the mesh: the rules of one shard
// block. The axis called batch, if any, is sharded along lead before its own mesh
// axes, where its size divides along both.
type layout struct {
	p     *program
	of    string // weights or activations
	layer bool   // of weights: those of a layer
	rules []syntax.Rule
	batch string
	lead  []string
	used  []string // mesh axes that no rule can have here
}

// meshAxes are the mesh axes that a rule names and that have more than one
// device.
func (l *layout) meshAxes(r syntax.Rule, ax string) []string {
	var out []string
	if ax == l.batch {
		for _, m := range l.lead {
			if l.p.mesh.AxisSize(m) > 1 {
				out = append(out, m)
			}
		}
	}
	for _, m := range r.Mesh {
		if l.p.mesh.AxisSize(m.Name) > 1 && !slices.Contains(out, m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}

// A cut is how one dimension is cut, and the rule that says so.
type cut struct {
	mesh []string
	rule *syntax.Rule
}

// origin is where the axis called name gets the cut from; nil if from no rule.
func (c cut) origin(name string) *ir.Origin {
	if c.rule == nil {
		return nil
	}
	return &ir.Origin{Pos: c.rule.Pos(), Name: name}
}

// cuts applies the rules in order, as Flax does: a rule takes its axis where
// no earlier rule did and its mesh axes are all free on this tensor.
func (l *layout) cuts(names []string) []cut {
	out := make([]cut, len(names))
	if l.p.mesh == nil {
		return out
	}
	taken := make([]bool, len(names))
	used := slices.Clone(l.used)
	take := func(d int, r *syntax.Rule, mesh []string) {
		for _, m := range mesh {
			if slices.Contains(used, m) {
				return
			}
		}
		taken[d] = true
		used = append(used, mesh...)
		out[d] = cut{mesh, r}
	}
	for i := range l.rules {
		for _, a := range l.rules[i].Axes {
			if d := slices.Index(names, a.Name); d >= 0 && !taken[d] {
				take(d, &l.rules[i], l.meshAxes(l.rules[i], a.Name))
			}
		}
	}
	if d := slices.Index(names, l.batch); d >= 0 && !taken[d] {
		take(d, nil, l.meshAxes(syntax.Rule{}, l.batch))
	}
	return out
}

// sharding is how a tensor over axes lies; nil without a mesh. Where a
// dimension does not divide, bad is told if it is given, and the dimension
// stays whole.
func (l *layout) sharding(axes []axis, bad func(a axis, c cut, parts int)) *ir.Sharding {
	if l.p.mesh == nil {
		return nil
	}
	s := ir.Replicated(l.p.mesh.Name, len(axes))
	cuts := l.cuts(namesOf(axes))
	l.note(axes, cuts)
	for d, c := range cuts {
		refs := ir.Axs(c.mesh...)
		if axes[d].size%l.p.mesh.RefsSize(refs) != 0 && axes[d].name == l.batch {
			refs = slices.DeleteFunc(refs, func(r ir.AxisRef) bool { return slices.Contains(l.lead, r.Name) })
		}
		if n := l.p.mesh.RefsSize(refs); axes[d].size%n != 0 {
			if bad != nil {
				bad(axes[d], c, n)
			}
			continue
		}
		if len(refs) > 0 {
			s.Dims[d] = ir.DimSharding{Axes: refs, Rule: c.origin(axes[d].name)}
		}
	}
	return s
}

// gatheredAxes are the mesh axes over which a weight is stored in parts and
// used whole.
var gatheredAxes = []string{"fsdp", "fsdp_transpose", "context", "expert"}

// weightLayout is how the weights of a layer lie, or a model's own. The stages
// of a pipeline hold a layer's; a model's own can be cut along stage.
func (p *program) weightLayout(layer bool) *layout {
	l := &layout{p: p, of: "weights", layer: layer, rules: p.rules["weights"]}
	if layer {
		l.used = []string{"stage"}
	}
	return l
}

// gathered is how a weight over axes that is stored as s says lies where it is
// used. The experts' own axis stays cut along expert: it is the one along which
// the activations are cut so too, and each device computes with its experts.
func (p *program) gathered(s *ir.Sharding, axes []axis) *ir.Sharding {
	out := s.Clone()
	if out == nil {
		return nil
	}
	for i := range out.Dims {
		cut := out.Dims[i].Axes
		if len(cut) == 1 && cut[0].Name == "expert" && p.holdsExperts(axes[i].name) {
			continue
		}
		out.Dims[i].Axes = slices.DeleteFunc(cut, func(r ir.AxisRef) bool { return slices.Contains(gatheredAxes, r.Name) })
	}
	return out
}

// holdsExperts reports whether the activation rules cut the axis along expert
// alone.
func (p *program) holdsExperts(ax string) bool {
	l := &layout{p: p, rules: p.rules["activations"]}
	c := l.cuts([]string{ax})[0]
	return len(c.mesh) == 1 && c.mesh[0] == "expert"
}

// An undivided is an axis that a rule cuts into parts that do not divide it.
type undivided struct {
	rule *syntax.Rule
	axis string
}

// firstUndivided reports whether nothing was said yet of the rule and the axis:
// it is one mistake, however many tensors have the axis.
func (p *program) firstUndivided(r *syntax.Rule, ax string) bool {
	if p.undivided[undivided{r, ax}] {
		return false
	}
	p.undivided[undivided{r, ax}] = true
	return true
}

// meshAxisSize is the size of a mesh axis; one that is not there has size 1.
func (p *program) meshAxisSize(name string) int {
	if p.mesh == nil {
		return 1
	}
	return p.mesh.AxisSize(name)
}

// explicit reports whether shardings that the program does not say must follow
// from those that it says.
func (p *program) explicit() bool { return p.word("pipeline", "mode") == "explicit" }

// nameAxes leaves with the op that makes t, or the parameter that it is, what its axes are called, for the
// errors of explicit mode.
func (p *program) nameAxes(t *tensor) {
	attrs := &t.v.Attrs
	if op := t.v.Def; op != nil {
		attrs = &op.Attrs
	}
	if len(t.axes) > 0 && !attrs.Has(ir.KeyAxes) && !attrs.Has(ir.KeyLogical) && (t.v.Def == nil || len(t.v.Def.Results) == 1) {
		attrs.Set(ir.KeyAxes, stringArray(namesOf(t.axes)))
	}
}

// whole is t, a weight of the model itself, as it is used: never in parts along
// stage, where the batch lies; and in explicit mode, which leaves nothing open,
// whole along the axes that weights of layers are gathered along, too.
func (e *elab) whole(t *tensor) *tensor {
	g := t.v.Sharding
	if e.p.explicit() {
		g = e.p.gathered(g, t.axes)
	}
	if g = g.Without("stage"); g.Equal(t.v.Sharding) {
		return t
	}
	return t.with(e.b.Constrain(t.v, g))
}

// gatheredOnce is t, which every iteration of a loop reads, resharded before the
// loop: what follows from the model's own weights alone is replicated along the
// axes that weights are gathered along, anything else sharded as the activation
// rules say of its axes. Keys and values, say, whose sequence no rule shards, are
// gathered once. Their cotangents are summed over the iterations, unreduced, and
// reduce-scattered after the loop. Left to who uses it, all that would be done in
// every iteration, at the same peak of memory.
func (e *elab) gatheredOnce(t *tensor) *tensor {
	if e.p.mesh == nil || e.p.explicit() {
		return t
	}
	var s *ir.Sharding
	switch {
	case !ofWeights(t.v):
		s = e.act.sharding(t.axes, nil)
	case e.model == nil: // who calls a layer has gathered its weights
		return t
	default:
		stored := e.p.weightLayout(false).sharding(t.axes, nil).Without("stage")
		if s = e.p.gathered(stored, t.axes); s.SameLayout(stored) {
			return t
		}
	}
	if s.Equal(t.v.Stated()) {
		return t
	}
	return t.with(e.b.Constrain(t.v, s))
}

// ofWeights reports whether v follows from weights alone, a model's or a layer's.
func ofWeights(v *ir.Value) bool {
	if v.Def == nil {
		return v.Attrs.Str(ir.KeyKind) == "param" || v.Attrs.Has(ir.KeyGathered)
	}
	if len(v.Def.Regions) > 0 || len(v.Def.Operands) == 0 {
		return v.Def.Kind == ir.Constant
	}
	for _, x := range v.Def.Operands {
		if !ofWeights(x) {
			return false
		}
	}
	return true
}
