package lang

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir/lang/syntax"
)

// An axisUse is what lies along a mesh axis.
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

// note remembers what the rules of l do to a tensor over axes.
func (l *layout) note(axes []axis, cuts []cut) {
	if l.p.rests {
		return
	}
	names := namesOf(axes)
	for d, c := range cuts {
		if n := l.p.parts(c.mesh); axes[d].size%n != 0 {
			continue
		}
		for _, m := range c.mesh {
			u := l.p.axisUse(m)
			switch {
			case l.of == "activations":
				u.activations = true
			case l.layer && slices.Contains(gatheredAxes, m):
				u.gathered = true
			default:
				u.weights = true
			}
		}
	}
	for i := range l.rules {
		l.noteRule(&l.rules[i], names, cuts)
	}
}

func (l *layout) noteRule(r *syntax.Rule, names []string, cuts []cut) {
	u := l.p.ruleUses[r]
	if u == nil {
		u = new(ruleUse)
		l.p.ruleUses[r] = u
	}
	for _, a := range r.Axes {
		d := slices.Index(names, a.Name)
		if d < 0 || u.applied {
			continue
		}
		if cuts[d].rule == r {
			u.applied = true
			return
		}
		u.axis, u.mesh, u.earlier = a.Name, "", cuts[d].rule
		if cuts[d].rule != nil && len(cuts[d].mesh) > 0 {
			continue // that rule came first
		}
		for _, c := range cuts {
			for _, m := range c.mesh {
				if slices.ContainsFunc(r.Mesh, func(n syntax.NameRef) bool { return n.Name == m }) {
					u.mesh, u.earlier = m, c.rule
				}
			}
		}
	}
}

func (p *program) axisUse(m string) *axisUse {
	if p.along[m] == nil {
		p.along[m] = new(axisUse)
	}
	return p.along[m]
}

// parts is the number of devices along mesh axes.
func (p *program) parts(mesh []string) int {
	n := 1
	for _, m := range mesh {
		n *= p.mesh.AxisSize(m)
	}
	return n
}

// checkMeshUse warns of mesh axes whose devices compute the same, and of rules
// that apply to no tensor.
func (p *program) checkMeshUse() {
	if p.mesh == nil || p.opts.Sequential {
		return
	}
	for _, a := range p.mesh.Axes {
		if a.Size == 1 || a.Name == "stage" && len(p.use.schedules) > 0 {
			continue
		}
		at, u := p.values["mesh"][a.Name].Span, p.axisUse(a.Name)
		switch {
		case u.activations || u.weights && !u.gathered:
		case u.gathered:
			p.Warn(at, unusedMeshAxis, p.ruleFor(a.Name, a.Size, true), warnReplicas, a.Name, a.Size)
		default:
			p.Warn(at, unusedMeshAxis, p.ruleFor(a.Name, a.Size, false), warnMeshAxis, a.Name, a.Size)
		}
	}
	for _, of := range []string{"weights", "activations"} {
		for i := range p.rules[of] {
			p.checkRuleUse(of, &p.rules[of][i])
		}
	}
}

// checkRuleUse warns of a rule that applies to no tensor though the mesh has its
// axes: one for a mesh axis that the mesh lacks counts as not there, and one that
// keeps an axis whole applies where it does nothing.
func (p *program) checkRuleUse(of string, r *syntax.Rule) {
	live := slices.ContainsFunc(r.Mesh, func(m syntax.NameRef) bool { return p.mesh.AxisSize(m.Name) > 1 })
	u := p.ruleUses[r]
	if !live || u != nil && u.applied {
		return
	}
	if u == nil || u.axis == "" {
		p.Warn(r.Span, unusedRule, "leave it out, or name an axis that "+of+" have", warnRuleAxis, strings.TrimSuffix(of, "s"), alternatives(namesOfRefs(r.Axes)))
		return
	}
	why, cure := "mesh axis stage holds the stages", "leave it out"
	if u.earlier != nil {
		where := fmt.Sprintf("the rule at %s:%d:%d", u.earlier.Src.Name, u.earlier.Line, u.earlier.Col)
		if why, cure = where+" has sharded it", "leave it out, or move it before that one"; u.mesh != "" {
			why = where + " uses mesh axis " + u.mesh
		}
	}
	p.Warn(r.Span, unusedRule, cure, warnRuleLate, strings.TrimSuffix(of, "s"), u.axis, why)
}

func namesOfRefs(ns []syntax.NameRef) []string {
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = n.Name
	}
	return out
}

// usual are the axes that each mesh axis usually shards, by the names that models
// give them; batch stands for the axis that pipelines cut.
var usual = map[string][]string{
	"data": {"batch"}, "fsdp": {"batch"}, "fsdp_transpose": {"batch"}, "diloco": {"batch"}, "autoregressive": {"batch"},
	"context": {"seq", "length", "sequence"}, "context_usp_ulysses": {"seq", "length", "sequence"}, "context_autoregressive": {"kv_seq", "seq"},
	"tensor": {"heads", "mlp", "vocab", "kv_heads"}, "tensor_sequence": {"seq", "heads", "mlp"},
	"expert": {"experts", "batch"},
}

// ruleFor is the rule that could use a mesh axis of the given size: for axes of
// the model that it usually shards and that divide, or, of an axis that is not
// known, for the batch. stored says that weights are stored along it.
func (p *program) ruleFor(mesh string, size int, stored bool) string {
	if row := syntax.Theirs(syntax.MeshWord, mesh); row != nil && !slices.Contains(knownMeshAxes, mesh) {
		return fmt.Sprintf("%s is %s here: mesh { %s = %d }; or leave it out", mesh, row.Ours, row.Ours, size)
	}
	batch, _ := p.batchAxis(p.models[0])
	known, ok := usual[mesh]
	if !ok {
		known = []string{"batch"}
	}
	var axes []string
	for _, name := range known {
		if name == "batch" && batch != "" {
			name = batch
		}
		if p.axes.of[name] == nil {
			continue
		}
		if n, ok := p.axisSize(name); ok && n%size == 0 {
			axes = append(axes, name)
		}
	}
	switch {
	case axes == nil && stored:
		return "shard an axis of activations along it too, or leave it out"
	case axes == nil:
		return "name it in a shard rule, or leave it out"
	}
	return fmt.Sprintf("shard activations { %s -> %s }, or leave it out", strings.Join(axes, ", "), p.meshAxesWith(axes[0], mesh))
}

// meshAxesWith is the mesh axes that the activation rules give an axis, and one
// more.
func (p *program) meshAxesWith(axis, mesh string) string {
	for _, r := range p.rules["activations"] {
		if slices.Contains(namesOfRefs(r.Axes), axis) {
			return strings.Join(append(namesOfRefs(r.Mesh), mesh), ", ")
		}
	}
	return mesh
}
