package config

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// An axisUse is what is sharded along a mesh axis.
type axisUse struct {
	activations bool
	gathered    bool // weights of layers that are gathered before they are used
	weights     bool // others
}

// A ruleUse is what became of a rule on the tensors that have its axes.
type ruleUse struct {
	applied bool
	axis    string // that some tensor has; "" is that none does
	mesh    string // the mesh axis that was taken; "" is that the axis was sharded
	earlier *syntax.Rule
}

// note records which rules of l apply to a tensor over axes.
func (l *Layout) note(axes []value.Axis, dims []DimRule) {
	if l.P.Rests {
		return
	}
	names := value.NamesOf(axes)
	if l.Of == "activations" {
		for _, name := range names {
			l.P.activated[name] = true
		}
	}
	for d, c := range dims {
		if n := l.P.parts(c.Mesh); axes[d].Size%n != 0 {
			continue
		}
		for _, m := range c.Mesh {
			u := l.P.axisUse(m)
			switch {
			case l.Of == "activations":
				u.activations = true
			case l.layer && slices.Contains(gatheredAxes, m):
				u.gathered = true
			default:
				u.weights = true
			}
		}
	}
	for i := range l.Rules {
		l.noteRule(&l.Rules[i], names, dims)
	}
}

func (l *Layout) noteRule(r *syntax.Rule, names []string, dims []DimRule) {
	u := l.P.ruleUses[r]
	if u == nil {
		u = new(ruleUse)
		l.P.ruleUses[r] = u
	}
	for _, a := range r.Axes {
		d := slices.Index(names, a.Name)
		if d < 0 || u.applied {
			continue
		}
		if dims[d].Rule == r {
			u.applied = true
			return
		}
		u.axis, u.mesh, u.earlier = a.Name, "", dims[d].Rule
		if dims[d].Rule != nil && len(dims[d].Mesh) > 0 {
			continue // that rule came first
		}
		for _, c := range dims {
			for _, m := range c.Mesh {
				if slices.ContainsFunc(r.Mesh, func(n syntax.NameRef) bool { return n.Name == m }) {
					u.mesh, u.earlier = m, c.Rule
				}
			}
		}
	}
}

func (p *Program) axisUse(m string) *axisUse {
	if p.along[m] == nil {
		p.along[m] = new(axisUse)
	}
	return p.along[m]
}

// parts is the number of devices along mesh axes.
func (p *Program) parts(mesh []string) int {
	n := 1
	for _, m := range mesh {
		n *= p.Mesh.AxisSize(m)
	}
	return n
}

// CheckMeshUse warns of mesh axes whose devices compute the same, and of rules
// that apply to no tensor.
func (p *Program) CheckMeshUse() {
	if p.Mesh == nil || p.Opts.Sequential {
		return
	}
	for _, a := range p.Mesh.Axes {
		if a.Size == 1 || a.Name == "stage" && len(p.Use.Schedules) > 0 {
			continue
		}
		at, u := p.Values["mesh"][a.Name].Span, p.axisUse(a.Name)
		switch {
		case u.activations || u.weights && !u.gathered:
		case u.gathered:
			p.Warn(at, unusedMeshAxis, p.ruleFor(a), syntax.WarnReplicas, a.Name, a.Size)
		default:
			p.Warn(at, unusedMeshAxis, p.ruleFor(a), syntax.WarnMeshAxis, a.Name, a.Size)
		}
	}
	for _, of := range []string{"weights", "activations"} {
		for i := range p.Rules[of] {
			p.checkRuleUse(of, &p.Rules[of][i])
		}
	}
}

// checkRuleUse warns of a rule that applies to no tensor though the mesh has its
// axes: one for a mesh axis that the mesh lacks counts as not there, and one that
// keeps an axis unsharded applies where it does nothing.
func (p *Program) checkRuleUse(of string, r *syntax.Rule) {
	live := slices.ContainsFunc(r.Mesh, func(m syntax.NameRef) bool { return p.Mesh.AxisSize(m.Name) > 1 })
	u := p.ruleUses[r]
	if !live || u != nil && u.applied {
		return
	}
	if u == nil || u.axis == "" {
		p.Warn(r.Span, unusedRule, "leave it out, or name an axis that "+of+" have", syntax.WarnRuleAxis, strings.TrimSuffix(of, "s"), alternatives(namesOfRefs(r.Axes)))
		return
	}
	why, cure := "mesh axis stage holds the stages", "leave it out"
	if u.earlier != nil {
		where := fmt.Sprintf("the rule at %s:%d:%d", u.earlier.Src.Name, u.earlier.Line, u.earlier.Col)
		if why, cure = where+" has sharded it", "leave it out, or move it before that one"; u.mesh != "" {
			why = where + " uses mesh axis " + u.mesh
		}
	}
	p.Warn(r.Span, unusedRule, cure, syntax.WarnRuleLate, strings.TrimSuffix(of, "s"), u.axis, why)
}

func namesOfRefs(ns []syntax.NameRef) []string {
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = n.Name
	}
	return out
}

// usual are the axes that each mesh axis usually shards, by the names that models
// give them; batch means the axis that pipelines split.
var usual = map[string][]string{
	"data": {"batch"}, "fsdp": {"batch"}, "fsdp_transpose": {"batch"}, "diloco": {"batch"}, "autoregressive": {"batch"},
	"context": {"seq", "length", "sequence"}, "context_usp_ulysses": {"seq", "length", "sequence"}, "context_autoregressive": {"kv_seq", "seq"},
	"tensor": {"heads", "mlp", "vocab", "kv_heads"}, "tensor_sequence": {"seq", "heads", "mlp"},
	"expert": {"experts", "batch"},
}

// ruleFor is the rule that could use mesh axis a: for axes of the model that it
// usually shards and that divide, or, of an axis that is not known, for the batch.
func (p *Program) ruleFor(a ir.MeshAxis) string {
	mesh, size := a.Name, a.Size
	if row := syntax.Theirs(syntax.MeshWord, mesh); row != nil && !slices.Contains(KnownMeshAxes, mesh) {
		return fmt.Sprintf("%s is %s here: mesh { %s = %d }; or leave it out", mesh, row.Ours, row.Ours, size)
	}
	batch, _ := p.BatchAxis(p.Models[0])
	known, ok := usual[mesh]
	if !ok {
		known = []string{"batch"}
	}
	var axes []string
	for _, name := range known {
		if name == "batch" && batch != "" {
			name = batch
		}
		if p.Axes.Of[name] == nil || !p.activated[name] {
			continue
		}
		if n, ok := p.AxisSize(name); ok && n%size == 0 {
			axes = append(axes, name)
		}
	}
	switch {
	case axes == nil && p.axisUse(mesh).gathered: // weights are stored sharded along it
		return "shard an axis of activations along it too, or leave it out"
	case axes == nil && slices.ContainsFunc(p.Rules["activations"], func(r syntax.Rule) bool { return slices.Contains(namesOfRefs(r.Mesh), mesh) }):
		return "shard an axis that activations have along it, or leave it out"
	case axes == nil:
		return "name it in a shard rule, or leave it out"
	}
	return fmt.Sprintf("shard activations { %s -> %s }, or leave it out", strings.Join(axes, ", "), p.meshAxesWith(axes[0], mesh))
}

// meshAxesWith is the mesh axes that the activation rules give an axis, and one
// more.
func (p *Program) meshAxesWith(axis, mesh string) string {
	for _, r := range p.Rules["activations"] {
		if slices.Contains(namesOfRefs(r.Axes), axis) {
			return strings.Join(append(namesOfRefs(r.Mesh), mesh), ", ")
		}
	}
	return mesh
}
