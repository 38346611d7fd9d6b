package config

import (
	"slices"

	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// A Layout maps logical axes to mesh axes: the rules of one shard block. The axis
// called batch, if any, is sharded along lead before its own mesh axes, where its
// size divides along both.
type Layout struct {
	P     *Program
	Of    string // weights or activations
	layer bool   // of weights: those of a layer
	Rules []syntax.Rule
	Batch string
	Lead  []string
	used  []string // mesh axes that no rule can have here
}

// meshAxes are the mesh axes that a rule names and that have more than one
// device.
func (l *Layout) meshAxes(r syntax.Rule, ax string) []string {
	var out []string
	if ax == l.Batch {
		for _, m := range l.Lead {
			if l.P.Mesh.AxisSize(m) > 1 {
				out = append(out, m)
			}
		}
	}
	for _, m := range r.Mesh {
		if l.P.Mesh.AxisSize(m.Name) > 1 && !slices.Contains(out, m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}

// A DimRule is the mesh axes that shard one dimension, and the rule that states
// them.
type DimRule struct {
	Mesh []string
	Rule *syntax.Rule
}

// origin is the place of the rule for the axis called name; nil if there is none.
func (c DimRule) origin(name string) *ir.Origin {
	if c.Rule == nil {
		return nil
	}
	return ir.Origin{Pos: c.Rule.Pos()}.Saying(ir.Said{Name: name})
}

// Apply applies the rules in order, as Flax does: a rule takes its axis where no
// earlier rule did and its mesh axes are all free on this tensor.
func (l *Layout) Apply(names []string) []DimRule {
	out := make([]DimRule, len(names))
	if l.P.Mesh == nil {
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
		out[d] = DimRule{mesh, r}
	}
	for i := range l.Rules {
		for _, a := range l.Rules[i].Axes {
			if d := slices.Index(names, a.Name); d >= 0 && !taken[d] {
				take(d, &l.Rules[i], l.meshAxes(l.Rules[i], a.Name))
			}
		}
	}
	if d := slices.Index(names, l.Batch); d >= 0 && !taken[d] {
		take(d, nil, l.meshAxes(syntax.Rule{}, l.Batch))
	}
	return out
}

// Sharding is the sharding of a tensor over axes; nil without a mesh. Where axes do
// not divide a dimension, bad is called if it is given, and the dimension stays
// unsharded.
func (l *Layout) Sharding(axes []value.Axis, bad func(a value.Axis, c DimRule, parts int)) *ir.Sharding {
	if l.P.Mesh == nil {
		return nil
	}
	s := ir.Replicated(l.P.Mesh.Name, len(axes))
	dims := l.Apply(value.NamesOf(axes))
	l.note(axes, dims)
	for d, c := range dims {
		refs := ir.Axs(c.Mesh...)
		if axes[d].Size%l.P.Mesh.RefsSize(refs) != 0 && axes[d].Name == l.Batch {
			refs = slices.DeleteFunc(refs, func(r ir.AxisRef) bool { return slices.Contains(l.Lead, r.Name) })
		}
		if n := l.P.Mesh.RefsSize(refs); axes[d].Size%n != 0 {
			if bad != nil {
				bad(axes[d], c, n)
			}
			continue
		}
		if len(refs) > 0 {
			s.Dims[d] = ir.DimSharding{Axes: refs, Rule: c.origin(axes[d].Name)}
		}
	}
	return s
}

// gatheredAxes are the mesh axes along which a weight is stored sharded and
// gathered for use.
var gatheredAxes = []string{"fsdp", "fsdp_transpose", "context", "expert"}

// WeightLayout is the layout of a model's own weights, which can be sharded along
// stage.
func (p *Program) WeightLayout() *Layout {
	return &Layout{P: p, Of: "weights", Rules: p.Rules["weights"]}
}

// LayerWeightLayout is the layout of the weights of a layer, which are on its stage.
func (p *Program) LayerWeightLayout() *Layout {
	l := p.WeightLayout()
	l.layer, l.used = true, []string{"stage"}
	return l
}

// Gathered is the sharding, at its use, of a weight over axes that is stored with
// the sharding s. An axis of experts stays sharded as far as activations with experts
// are sharded along it: each device computes with its experts.
func (p *Program) Gathered(s *ir.Sharding, axes []value.Axis) *ir.Sharding {
	out := s.Clone()
	if out == nil {
		return nil
	}
	for i := range out.Dims {
		held := p.heldExperts(axes[i].Name)
		out.Dims[i].Axes = slices.DeleteFunc(out.Dims[i].Axes, func(r ir.AxisRef) bool {
			return slices.Contains(gatheredAxes, r.Name) && !slices.Contains(held, r.Name)
		})
	}
	return out
}

// heldExperts are the mesh axes along which the activation rules shard the axis ax,
// if expert is one of them.
func (p *Program) heldExperts(ax string) []string {
	l := &Layout{P: p, Rules: p.Rules["activations"]}
	if mesh := l.Apply([]string{ax})[0].Mesh; slices.Contains(mesh, "expert") {
		return mesh
	}
	return nil
}

// An undivided is an axis whose size is not divisible by the mesh axes of its rule.
type undivided struct {
	rule *syntax.Rule
	axis string
}

// FirstUndivided reports whether nothing was said yet of the rule and the axis:
// it is one mistake, however many tensors have the axis.
func (p *Program) FirstUndivided(r *syntax.Rule, ax string) bool {
	if p.undivided[undivided{r, ax}] {
		return false
	}
	p.undivided[undivided{r, ax}] = true
	return true
}

// MeshAxisSize is the size of a mesh axis; one that is not there has size 1.
func (p *Program) MeshAxisSize(name string) int {
	if p.Mesh == nil {
		return 1
	}
	return p.Mesh.AxisSize(name)
}

// Explicit reports whether shardings that the program does not say must follow
// from those that it says.
func (p *Program) Explicit() bool { return p.Word("pipeline", "mode") == "explicit" }

// NameAxes leaves with the op that makes t, or the parameter that it is, what its axes are called, for the
// errors of explicit mode.
func (p *Program) NameAxes(t *value.Tensor) {
	attrs := &t.V.Attrs
	if op := t.V.Def; op != nil {
		attrs = &op.Attrs
	}
	if len(t.Axes) > 0 && !attrs.Has(ir.KeyAxes) && !attrs.Has(ir.KeyLogical) && (t.V.Def == nil || len(t.V.Def.Results) == 1) {
		attrs.Set(ir.KeyAxes, StringArray(value.NamesOf(t.Axes)))
	}
}

// OfWeights reports whether v follows from weights alone, a model's or a layer's.
func OfWeights(v *ir.Value) bool {
	if v.Def == nil {
		return v.Attrs.Str(ir.KeyKind) == "param" || v.Attrs.Has(ir.KeyGathered)
	}
	if len(v.Def.Regions) > 0 || len(v.Def.Operands) == 0 {
		return v.Def.Kind == ir.Constant
	}
	for _, x := range v.Def.Operands {
		if !OfWeights(x) {
			return false
		}
	}
	return true
}
