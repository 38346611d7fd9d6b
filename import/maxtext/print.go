package maxtext

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ppc/ir/lang/syntax"
)

// print is the program.
func (p *plan) print() []byte {
	var b strings.Builder
	b.WriteString(p.heading())
	fmt.Fprintf(&b, "types { act = %s, weight = %s }\n\n", p.c.typeOf("dtype"), p.c.typeOf("weight_dtype"))
	b.WriteString(p.axes() + "\n")
	for _, h := range p.helpers() {
		b.WriteString(h + "\n")
	}
	for i := range p.stacks {
		b.WriteString(p.layer(&p.stacks[i]) + "\n")
	}
	b.WriteString(p.model() + "\n")
	if m := p.mesh.text(); m != "" {
		b.WriteString(m + "\n")
		for _, r := range []struct {
			what   string
			weight bool
		}{{"weights", true}, {"activations", false}} {
			if lines := p.shardRules(r.weight); len(lines) > 0 {
				fmt.Fprintf(&b, "shard %s {\n%s}\n", r.what, indent(lines))
			}
		}
		b.WriteString("\n")
	}
	if len(p.run.lines) > 0 {
		fmt.Fprintf(&b, "pipeline {\n%s}\n\n", indent(p.run.lines))
	}
	b.WriteString(p.trainText)
	if p.mesh.preset != "" {
		fmt.Fprintf(&b, "\nhardware { preset = %s }\n", p.mesh.preset)
	}
	text, err := syntax.Format("imported.pp", []byte(b.String()))
	if err != nil {
		panic("maxtext: the program is not one: " + err.Error() + "\n" + b.String())
	}
	return text
}

func indent(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if l != "" {
			b.WriteString("  " + l)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// heading says what was imported.
func (p *plan) heading() string {
	words := []string{"ppc import maxtext"}
	for _, f := range p.c.opts.Files {
		words = append(words, filepath.Base(f))
	}
	for _, a := range p.c.opts.Set {
		if strings.ContainsAny(a, " '\"[]{}\t\r\n") {
			a = "'" + strings.Join(strings.Fields(strings.ReplaceAll(a, "'", "\"")), " ") + "'"
		}
		words = append(words, a)
	}
	if p.hf() {
		words = append(words, "--parameters=huggingface")
	}
	var b strings.Builder
	line := "//"
	for _, w := range words {
		if len(line)+len(w) > 110 && line != "//" {
			b.WriteString(line + "\n")
			line = "//  "
		}
		line += " " + w
	}
	whose := "MaxText's"
	if p.hf() {
		whose = "those of Hugging Face's checkpoints"
	}
	b.WriteString(line + "\n//\n// The names of parameters in files are " + whose + ".\n\n")
	return b.String()
}

// An axisSize is an axis and the size that it has.
type axisSize struct{ name, size string }

// axisLists are the axes by lines.
func (p *plan) axisLists() [][]axisSize {
	s, c := p.size, p.c
	n := func(name string, size int) axisSize { return axisSize{name, fmt.Sprint(size)} }
	block := c.text("decoder_block")
	lists := [][]axisSize{{n("batch", s.batch), n("seq", s.seq), {"kv_seq", "seq"}}}
	lists = append(lists, p.modelAxes(n))
	if block == "deepseek" {
		var latent []axisSize
		if s.qLora > 0 {
			latent = append(latent, n("q_lora", s.qLora))
		}
		lists = append(lists, append(latent, n("kv_lora", s.kvLora), n("qk_nope", s.qkNope), n("qk_rope", s.qkRope), n("v_head", s.vHead)),
			[]axisSize{{"qk_head", "qk_nope + qk_rope"}, {"kv_a", "kv_lora + qk_rope"}, {"kv_b", "qk_nope + v_head"}})
	}
	if p.uses("experts") {
		experts := []axisSize{n("experts", s.experts), {"routes", "experts"}, n("moe_mlp", s.moeMLP)}
		if groups := p.expertGroups(); groups > 1 {
			experts = append(experts, n("expert_group", groups))
		}
		if p.uses("shared_mlp") {
			shared := axisSize{"shared_mlp", "moe_mlp"}
			if n := c.whole("shared_experts"); n > 1 {
				shared.size = fmt.Sprintf("%d * moe_mlp", n)
			}
			experts = append(experts, shared)
		}
		lists = append(lists, experts)
	}
	if p.hf() {
		lists = append(lists, p.hfAxes())
	}
	var rest []axisSize
	for _, a := range []axisSize{{"three", "3"}, {"qkv_heads", "heads + 2 * kv_heads"}, {"halves", "2"}, {"q_features", "heads * head"}, {"k_features", "kv_heads * head"}} {
		if p.uses(a.name) && !p.hf() {
			rest = append(rest, a)
		}
	}
	if c.whole("mtp_num_layers") > 0 {
		rest = append(rest, axisSize{"pair", "2 * embed"})
	}
	if s.positions > 0 {
		rest = append(rest, n("positions", s.positions))
	}
	if s.queries > 0 {
		rest = append(rest, n("queries", s.queries))
	}
	if s.tokens > 0 {
		rest = append(rest, n("tokens", s.tokens))
	}
	if len(p.stacks) == 1 {
		rest = append(rest, n("layers", p.stacks[0].layers))
	}
	if len(rest) > 0 {
		lists = append(lists, rest)
	}
	return lists
}

// modelAxes are those of most layers.
func (p *plan) modelAxes(n func(name string, size int) axisSize) []axisSize {
	s, block := p.size, p.c.text("decoder_block")
	model := []axisSize{n("embed", s.embed)}
	switch block {
	case "simple":
		model = append(model, axisSize{"features", "embed"})
	case "simple_mlp":
		model = append(model, n("mlp", s.mlp))
	case "deepseek":
		model = append(model, n("heads", s.heads))
	default:
		model = append(model, n("heads", s.heads), n("kv_heads", s.kvHeads), n("head", s.head))
	}
	if p.uses("mlp") && block != "simple_mlp" {
		model = append(model, n("mlp", s.mlp))
	}
	model = append(model, n("vocab", s.vocab))
	return model
}

// uses reports whether a weight has an axis.
func (p *plan) uses(axis string) bool {
	for _, s := range p.stacks {
		for _, w := range s.weights {
			if slices.Contains(strings.Split(w.axes, ", "), axis) {
				return true
			}
		}
	}
	return false
}

// axisNames are the names of all axes.
func (p *plan) axisNames() []string {
	var out []string
	for _, l := range p.axisLists() {
		for _, a := range l {
			out = append(out, a.name)
		}
	}
	return out
}

func (p *plan) axes() string {
	var lines []string
	for _, l := range p.axisLists() {
		parts := make([]string, len(l))
		for i, a := range l {
			parts[i] = a.name + " = " + a.size
		}
		lines = append(lines, strings.Join(parts, ", "))
	}
	return "axes {\n" + indent(lines) + "}\n"
}

// helpers are the functions that layers call.
func (p *plan) helpers() []string {
	out := []string{"// project multiplies by a weight in the type of the activations.\nfn project(h, kernel, over) {\n  return dot(h, cast(kernel, h), over: over)\n}\n"}
	if f := p.frequencies(); f != "" {
		out = append(out, f)
	}
	if p.uses("experts") {
		if f := p.expertFn(); f != "" {
			out = append(out, f)
		}
	}
	if p.c.text("decoder_block") == "deepseek" {
		out = append(out, p.latentFn())
	}
	if p.c.whole("mtp_num_layers") > 0 {
		out = append(out, laterFns()...)
	}
	if p.size.tokens > 0 {
		out = append(out, p.tokenLoss())
	}
	return out
}

// frequencies is the function of rope's frequencies, where it has one.
func (p *plan) frequencies() string {
	c := p.c
	if rope, _ := p.rope(false); !strings.Contains(rope, "frequencies: frequencies") || slices.Contains([]string{"simple", "simple_mlp", "gpt3"}, c.text("decoder_block")) {
		return ""
	}
	base := fraction(c.number("rope_max_timescale"))
	made := fmt.Sprintf("long_rope(x, base: %s, head: head)", base)
	if strings.HasPrefix(strings.ToLower(c.text("rope_type")), "yarn") && !strings.HasPrefix(c.text("model_name"), "llama3.1") {
		made = fmt.Sprintf("yarn(x, base: %s, factor: %s, original: %d, fast: %s, slow: %s", base, fraction(c.number("rope_factor")), c.whole("original_max_position_embeddings"),
			fraction(c.number("beta_fast")), fraction(c.number("beta_slow")))
		if !c.flag("rope_truncate") {
			made += ", truncate: false"
		}
		made += ", head: head)"
	}
	return "fn frequencies(x, head: axis) {\n  return " + made + "\n}\n"
}

// layer is one layer, and where layers are grouped the layer of which it is made.
func (p *plan) layer(s *stack) string {
	sides := ", pos: i32[batch, seq], segments: i32[batch, seq]"
	if strings.HasPrefix(s.name, "simple") {
		sides = ""
	}
	known := ""
	if s.patterned {
		known = ", window: number = 0, base: number = 10000, factor: number = 1"
	}
	if !s.grouped() {
		if p.pathed(s) {
			known += fmt.Sprintf(", path: text = %q", s.path)
		}
		return p.declare(s, s.name, sides+known)
	}
	var b strings.Builder
	one := strings.TrimSuffix(s.name, "_rest")
	if !s.rest {
		b.WriteString(p.declare(s, one, sides+known+", "+p.atParam(s)) + "\n")
	}
	var calls []string
	for _, part := range s.parts {
		calls = append(calls, fmt.Sprintf("apply(%s, name: %q, %s%s)(x, pos, segments)", one, part.name, p.atArgs(s, part), part.args))
	}
	fmt.Fprintf(&b, "layer %s(x: act[batch, seq, embed]%s) {\n", s.group(), sides)
	var balances []string
	for i, call := range calls {
		if s.aux {
			balances = append(balances, fmt.Sprintf("balance_%d", i))
			fmt.Fprintf(&b, "  x, balance_%d = %s\n", i, call)
		} else {
			fmt.Fprintf(&b, "  x = %s\n", call)
		}
	}
	result := "x"
	if s.aux {
		result += ", " + strings.Join(balances, " + ")
	}
	fmt.Fprintf(&b, "  return %s\n}\n", result)
	return b.String()
}

// declare is one layer with its parameters.
func (p *plan) declare(s *stack, name, sides string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "layer %s(x: act[batch, seq, embed]%s) {\n", name, sides)
	for _, w := range s.weights {
		b.WriteString("  " + w.declaration(p.pathOf(s, w.leaf)) + "\n")
	}
	b.WriteString("\n" + indent(s.body) + "}\n")
	return b.String()
}

// pathOf is the name of a parameter in files. In a group it depends on the part.
func (p *plan) pathOf(s *stack, leaf string) string {
	switch {
	case p.hf() && p.listed(): // which numbers layers itself
		one := *s
		one.first = 0
		return hfPath(&one, leaf)
	case p.hf():
		return hfPath(s, leaf)
	case p.pathed(s):
		return "{path}" + leaf
	case s.grouped() && !s.suffixed:
		return s.pathIn("decoder/{stack}/", "{at}", leaf)
	}
	return s.pathIn(s.path, "{at}", leaf)
}

// pathed reports whether layers of the stack stand in other places of the model too.
func (p *plan) pathed(s *stack) bool { return p.c.whole("mtp_num_layers") > 0 && s == p.last() }

// atParam declares the arguments on which the names of a part's parameters in
// files depend, and atArgs gives them.
func (p *plan) atParam(s *stack) string {
	switch {
	case p.hf():
		return "group: number = 1, at: number = 0"
	case s.suffixed:
		return `at: text = ""`
	}
	return `stack: text = "layers", at: text = "0"`
}

func (p *plan) atArgs(s *stack, t part) string {
	switch {
	case p.hf():
		at := t.at
		if k := slices.IndexFunc(s.parts, func(o part) bool { return o.name == t.name }); s.first > 0 || s.suffixed {
			at = fmt.Sprint(s.first + k)
		}
		return fmt.Sprintf("group: %d, at: %s", len(s.parts), at)
	case s.suffixed:
		return "at: " + t.at
	case s.rest:
		return fmt.Sprintf("stack: %q, at: %q", "layers_remainder", t.at)
	}
	return fmt.Sprintf("at: %q", t.at)
}

// grouped reports whether the layer is made of parts.
func (s *stack) grouped() bool { return len(s.parts) > 1 || s.rest }

// known are the arguments with which a layer that is no group is stacked.
func (s *stack) known() string {
	if s.grouped() {
		return ""
	}
	return s.parts[0].args
}

// group is the name of the layer that is stacked.
func (s *stack) group() string {
	if !s.grouped() {
		return s.name
	}
	return strings.Replace(s.name, "_layer", "_group", 1)
}
