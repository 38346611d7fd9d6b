package maxtext

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"ppc/internal/spell"
)

// An axisRule maps a logical axis of MaxText to axes of the mesh.
type axisRule struct {
	name string
	mesh []string
}

// axisRules reads logical_axis_rules.
func (c *config) axisRules(e entry) []axisRule {
	l, _ := e.value.([]any)
	var out []axisRule
	for i, v := range l {
		pair, ok := v.([]any)
		if !ok || len(pair) == 0 {
			c.list = append(c.list, e.place.at(fmt.Sprintf("logical_axis_rules: rule %d is %s, want [axis, [mesh axes]]", i+1, show(v)), ""))
			continue
		}
		r := axisRule{name: show(pair[0])}
		for _, m := range pair[1:] {
			switch m := m.(type) {
			case nil:
			case []any:
				for _, x := range m {
					r.mesh = append(r.mesh, show(x))
				}
			default:
				r.mesh = append(r.mesh, show(m))
			}
		}
		c.known(e, r)
		if !slices.ContainsFunc(logical, func(a logicalAxis) bool { return a.name == r.name }) && !slices.ContainsFunc(baseRules(), func(b axisRule) bool { return b.name == r.name }) {
			hint := ""
			if near := spell.Nearest(r.name, logicalNames()); near != "" {
				hint = "did you mean " + near + "?"
			}
			d := e.place.at(fmt.Sprintf("logical_axis_rules: no tensor has the axis %s", r.name), hint)
			d.Warning = "unused-rule"
			c.warns = append(c.warns, d)
			continue
		}
		out = append(out, r)
	}
	return out
}

// known warns of axes of the mesh in rule r, of e, that MaxText does not have.
func (c *config) known(e entry, r axisRule) {
	for _, m := range r.mesh {
		if m == "None" || keyOf(parallelism("ici", m)) != nil {
			continue
		}
		d := e.place.at(fmt.Sprintf("logical_axis_rules: the rule of %s is for mesh axis %s, which no mesh of MaxText has", r.name, m), "")
		d.Warning = "unused-rule"
		c.warns = append(c.warns, d)
	}
}

// mergeRules puts rules in place of those before for the same axes, behind the
// others, or in place of all.
func (c *config) mergeRules(rules []axisRule, all bool) {
	switch {
	case all:
		c.rules = nil
	case c.rules == nil:
		c.rules = baseRules()
	}
	kept := slices.DeleteFunc(slices.Clone(c.rules), func(old axisRule) bool {
		return slices.ContainsFunc(rules, func(r axisRule) bool { return r.name == old.name })
	})
	c.rules = append(kept, rules...)
}

// baseRules are the rules of MaxText's base.yml.
var baseRules = sync.OnceValue(func() []axisRule { return builtInRules("base") })

func builtInRules(name string) []axisRule {
	entries, _ := builtIn(rulesYML, name)
	var out []axisRule
	for _, e := range entries {
		if e.key != "logical_axis_rules" {
			continue
		}
		for _, v := range e.value.([]any) {
			pair := v.([]any)
			r := axisRule{name: show(pair[0])}
			if l, ok := pair[1].([]any); ok {
				for _, x := range l {
					r.mesh = append(r.mesh, show(x))
				}
			} else {
				r.mesh = []string{show(pair[1])}
			}
			out = append(out, r)
		}
	}
	return out
}

// A logicalAxis is what a logical axis of MaxText is here.
type logicalAxis struct {
	name   string
	ours   string
	weight bool
	// after is another logical axis of ours that comes first. MaxText has two names
	// where a tensor has experts, or is in attention; here the rule of the second is
	// what an axis falls back to where the first does not apply.
	after string
}

var logical = []logicalAxis{
	{"exp", "experts", true, ""}, {"vocab", "vocab", true, ""}, {"embed", "embed", true, ""}, {"embed_moe", "embed", true, "embed"}, {"embed_vocab", "embed", true, "embed"},
	{"mlp", "mlp", true, ""}, {"mlp_moe", "moe_mlp", true, ""}, {"heads", "heads", true, ""}, {"q_heads", "heads", true, "heads"}, {"kv_heads", "kv_heads", true, ""},
	{"kv", "head", true, ""}, {"kv_head_dim", "head", true, "kv"}, {"q_lora", "q_lora", true, ""}, {"kv_lora", "kv_lora", true, ""},
	{"activation_exp", "experts", false, ""}, {"activation_batch", "batch", false, ""}, {"activation_batch_moe", "batch", false, "activation_batch"}, {"activation_batch_attn", "batch", false, "activation_batch"},
	{"activation_heads", "heads", false, ""}, {"activation_kv_heads", "kv_heads", false, ""}, {"activation_mlp", "mlp", false, ""}, {"activation_mlp_moe", "moe_mlp", false, ""},
	{"activation_vocab", "vocab", false, ""}, {"activation_length", "seq", false, ""}, {"activation_norm_length", "seq", false, "activation_length"}, {"activation_length_attn", "seq", false, "activation_length"},
	{"activation_q_length", "seq", false, "activation_length"}, {"activation_kv_length", "kv_seq", false, ""}, {"activation_embed", "embed", false, ""},
}

func logicalNames() []string {
	var out []string
	for _, a := range logical {
		out = append(out, a.name)
	}
	return out
}

// shardRules are the rules for weights or for activations, as lines.
func (p *plan) shardRules(weight bool) []string {
	var lines []ruleLine
	add := func(of string) {
		row := logical[slices.IndexFunc(logical, func(a logicalAxis) bool { return a.name == of })]
		for _, r := range p.c.rules {
			if r.name != of {
				continue
			}
			mesh := p.meshOf(r.mesh)
			lines = appendNew(lines, ruleLine{row.ours, strings.Join(mesh, ", ")})
			if row.ours == "experts" && !weight && p.expertGroups() > 1 {
				lines = appendNew(lines, ruleLine{"expert_group", strings.Join(mesh, ", ")})
			}
		}
	}
	axes := p.axisNames()
	used := func(a logicalAxis) bool {
		return a.weight == weight && slices.Contains(axes, a.ours) && (!strings.HasSuffix(a.name, "_moe") || p.uses("experts"))
	}
	for _, a := range logical { // experts come first, as what has them falls back then
		if used(a) && a.ours == "experts" {
			add(a.name)
		}
	}
	var order []string // of the rules' first mention
	for _, r := range p.c.rules {
		if !slices.Contains(order, r.name) {
			order = append(order, r.name)
		}
	}
	for _, name := range order {
		k := slices.IndexFunc(logical, func(a logicalAxis) bool { return a.name == name })
		if k < 0 || !used(logical[k]) || logical[k].ours == "experts" {
			continue
		}
		if first := logical[k].after; first != "" && slices.Contains(order, first) {
			continue // comes with it
		}
		add(name)
		for _, a := range logical {
			if a.after == name && used(a) {
				add(a.name)
			}
		}
	}
	lines = withoutExperts(lines, func(axis string) bool { return !weight || p.ofExperts(axis) })
	lines = p.withFeatures(lines)
	var out []string
	for i := 0; i < len(lines); i++ { // neighbours with one right side are one line
		left := []string{lines[i].ours}
		for i+1 < len(lines) && lines[i+1].mesh == lines[i].mesh && !slices.Contains(left, lines[i+1].ours) {
			left = append(left, lines[i+1].ours)
			i++
		}
		out = append(out, strings.Join(left, ", ")+" -> "+lines[i].mesh)
	}
	return out
}

// ofExperts reports whether a weight has experts and an axis.
func (p *plan) ofExperts(axis string) bool {
	for _, s := range p.stacks {
		for _, w := range s.weights {
			if axes := strings.Split(w.axes, ", "); slices.Contains(axes, "experts") && slices.Contains(axes, axis) {
				return true
			}
		}
	}
	return false
}

// A ruleLine is one rule: an axis and the mesh axes that shard it.
type ruleLine struct{ ours, mesh string }

func appendNew(lines []ruleLine, l ruleLine) []ruleLine {
	if l.mesh == "" || slices.Contains(lines, l) {
		return lines
	}
	return append(lines, l)
}

// withoutExperts adds to each rule along mesh axes of the experts, behind it, what
// is left of it where a tensor has experts and the axis.
func withoutExperts(lines []ruleLine, together func(axis string) bool) []ruleLine {
	var taken, out []string
	for _, l := range lines {
		if ofGroups(l.ours) {
			taken = append(taken, strings.Split(l.mesh, ", ")...)
		}
	}
	var all []ruleLine
	for i, l := range lines {
		all = appendNew(all, l)
		last := !slices.ContainsFunc(lines[i+1:], func(k ruleLine) bool { return k.ours == l.ours })
		if ofGroups(l.ours) || !last || !together(l.ours) {
			continue
		}
		for _, k := range lines {
			if k.ours != l.ours {
				continue
			}
			out = slices.DeleteFunc(strings.Split(k.mesh, ", "), func(m string) bool { return slices.Contains(taken, m) })
			all = appendNew(all, ruleLine{l.ours, strings.Join(out, ", ")})
		}
	}
	return all
}

// ofGroups reports whether an axis is that of experts or of groups of them.
func ofGroups(axis string) bool { return axis == "experts" || axis == "expert_group" }

// meshOf leaves of a rule the axes of more than one device. Stages hold layers.
func (p *plan) meshOf(names []string) []string {
	var out []string
	for _, name := range names {
		if name != "stage" && slices.ContainsFunc(p.mesh.axes, func(a meshAxis) bool { return a.name == name }) {
			out = append(out, name)
		}
	}
	return out
}
