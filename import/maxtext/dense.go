package maxtext

import (
	"fmt"
	"strings"
)

// traits is how a kind of layer differs from Llama's.
type traits struct {
	attention string // the path of its weights; self_attention without
	experts   string // the path of its experts, where it has them
	scaled    bool   // logits by 1 / sqrt(head)
	biases    bool   // of query, key and value, if attention_bias is set
	outBias   bool
	sinks     bool
	headNorms bool // of each head's query and key, if use_qk_norm is set
	gemma     bool // its norms' names and their eps
	postNorms bool // norms after attention and mlp as well
	olmo      bool // norms after attention and mlp alone, and over all heads
	clipped   bool // experts with biases, and an activation that is bounded

	pattern  []bool   // which layers of a group have a sliding window
	suffixes []string // of their parameters
}

// dense is layers of attention and an mlp, or experts.
func dense(t traits) decoder {
	if t.attention == "" {
		t.attention = "self_attention"
	}
	return func(p *plan) {
		w := &writer{p: p}
		w.line(`x = checkpoint(x, "decoder_layer_input")`)
		w.attention(&t)
		w.feedForward(&t)
		s := stack{name: p.c.text("decoder_block") + "_layer", path: "decoder/layers/", weights: w.weights, body: w.body, aux: t.experts != ""}
		p.group(s, &t)
	}
}

// group makes of a layer the stack, or where layers differ in a pattern, a stack
// of groups of them and one of those that are left.
func (p *plan) group(s stack, t *traits) {
	c := p.c
	n := max(1, len(t.pattern))
	interval := c.whole("inhomogeneous_layer_cycle_interval")
	switch block := c.text("decoder_block"); {
	case block == "gemma2": // one layer of its configuration is a pair
	case len(t.pattern) == 0:
		if interval > 1 {
			c.fail("inhomogeneous_layer_cycle_interval", "", "%s: layers of %s are all alike", c.is("inhomogeneous_layer_cycle_interval"), block)
		}
	case block != "gemma3": // a group has as many as it says
		n = max(1, interval)
	}
	for i := range n {
		pt := part{name: fmt.Sprintf("layers_%d", i), at: fmt.Sprint(i)}
		if len(t.suffixes) > 0 {
			if pt.name = t.suffixes[i]; !p.hf() {
				pt.at = fmt.Sprintf("%q", t.suffixes[i])
			}
		}
		pt.args = p.partArgs(t, len(t.pattern) > 0 && t.pattern[i%len(t.pattern)])
		s.parts = append(s.parts, pt)
	}
	s.suffixed, s.patterned = len(t.suffixes) > 0, len(t.pattern) > 0
	layers := p.size.layers
	if c.text("decoder_block") == "gemma2" {
		s.cycle, s.layers = 1, layers
		p.stacks = []stack{s}
		return
	}
	s.cycle, s.layers = n, layers/n
	if s.layers > 0 {
		p.stacks = []stack{s}
	}
	if left := layers % n; left > 0 { // of a pattern that begins again: all alike, or a group
		rest := s
		rest.name, rest.path, rest.parts, rest.layers, rest.cycle, rest.first, rest.rest = s.name+"_rest", "decoder/layers_remainder/", s.parts[:left], 1, left, layers-left, true
		if p.mesh.stages > 1 {
			c.fail("base_num_decoder_layers", fmt.Sprintf("%d layers fill the groups", layers-left), "%s: layers come in groups of %d under a pipeline; %d left over", c.is("base_num_decoder_layers"), n, left)
			return
		}
		p.stacks = append(p.stacks, rest)
	}
}

// partArgs are the arguments with which one part of a group differs from another.
func (p *plan) partArgs(t *traits, local bool) string {
	if len(t.pattern) == 0 {
		return ""
	}
	c := p.c
	window, base, factor := 0, c.number("rope_max_timescale"), c.number("rope_linear_scaling_factor")
	if local {
		if window = c.whole("sliding_window_size"); window < 1 {
			c.fail("sliding_window_size", "", "%s: layers with a window need its size", c.is("sliding_window_size"))
		}
		if b := c.number("local_rope_max_timescale"); b > 0 {
			base = b
		}
		if strings.HasPrefix(c.text("model_name"), "gemma3") {
			factor = 1
		}
	}
	return argument("window", float64(window), 0) + argument("base", base, 10000) + argument("factor", factor, 1)
}

// attention writes the first half: a is the residual after it.
func (w *writer) attention(t *traits) {
	p, c := w.p, w.p.c
	eps := c.number("normalization_layer_epsilon")
	outer := eps
	pre, post := "pre_self_attention_layer_norm", ""
	if t.gemma {
		outer, pre = 1e-6, "pre_self_attention_norm"
		if t.postNorms {
			post = "post_self_attention_norm"
		}
	}
	h := "x"
	if t.olmo {
		post = "post_self_attention_layer_norm"
	} else {
		w.line("h = %s", w.norm("x", "attention_norm", pre, outer))
		h = "h"
	}
	w.projections(t, h)
	args := ""
	if t.scaled || p.hf() {
		args += ", scale: " + p.logitScale()
	}
	if len(t.pattern) > 0 {
		args += ", window: window"
	}
	if cap := c.number("attn_logits_soft_cap"); cap > 0 {
		args += ", cap: " + fraction(cap)
	}
	if t.sinks && c.flag("attention_sink") {
		args += ", sinks: " + w.param("sinks", "heads", "zeros", t.attention+"/sinks")
	}
	w.line(`context = checkpoint(attention(q, k, v, causal: true, segments: segments%s%s), "context")`, args, w.block())
	w.param("out", "heads, head, embed", p.kernel("heads * head"), t.attention+"/out/kernel")
	out := `checkpoint(project(context, out, [heads, head]), "out_proj")`
	if p.hf() {
		out = `checkpoint(project(merge(context, [heads, head] -> q_features), out, q_features), "out_proj")`
	}
	if t.outBias && c.flag("attention_bias") {
		out += " + cast(" + w.param("out_bias", "embed", "zeros", t.attention+"/out/bias") + ", x)"
	}
	if post != "" {
		w.line("h = %s", out)
		out = w.norm("h", "post_attention_norm", post, outer)
	}
	w.line("a = x + %s", out)
}

// projections writes q, k and v.
func (w *writer) projections(t *traits, h string) {
	p, c := w.p, w.p.c
	if c.flag("fused_qkv") {
		w.param("qkv", "embed, qkv_heads, head", p.kernel("embed"), t.attention+"/qkv_proj/kernel")
		w.line(`qkv_h = checkpoint(project(%s, qkv, embed), "qkv_proj")`, h)
		w.line("q = rename(slice(qkv_h, qkv_heads, 0, heads), qkv_heads -> heads)")
		w.line("k = rename(slice(qkv_h, qkv_heads, heads, heads + kv_heads), qkv_heads -> kv_heads)")
		w.line("v = rename(slice(qkv_h, qkv_heads, heads + kv_heads, qkv_heads), qkv_heads -> kv_heads)")
	} else {
		for _, q := range []struct{ short, name, heads, fan string }{{"q", "query", "heads", p.queryFan(t)}, {"k", "key", "kv_heads", "embed"}, {"v", "value", "kv_heads", "embed"}} {
			w.param(q.name, "embed, "+q.heads+", head", p.kernel(q.fan), t.attention+"/"+q.name+"/kernel")
			made := "project(" + h + ", " + q.name + ", embed)"
			if t.biases && c.flag("attention_bias") {
				made += " + cast(" + w.param(q.name+"_bias", q.heads+", head", "zeros", t.attention+"/"+q.name+"/bias") + ", x)"
			}
			if p.hf() {
				made = fmt.Sprintf("split(%s, %s -> [%s, head])", made, map[string]string{"heads": "q_features", "kv_heads": "k_features"}[q.heads], q.heads)
			}
			w.line(`%s = checkpoint(%s, "%s_proj")`, q.short, made, q.name)
		}
	}
	eps := c.number("normalization_layer_epsilon")
	switch {
	case t.olmo && c.flag("use_qk_norm"):
		w.param("query_norm", "q_features", "ones", t.attention+"/query_norm/scale")
		w.param("key_norm", "k_features", "ones", t.attention+"/key_norm/scale")
		w.line("q = %s", w.rms("q", "split(query_norm, q_features -> [heads, head])", "[heads, head]", eps))
		w.line("k = %s", w.rms("k", "split(key_norm, k_features -> [kv_heads, head])", "[kv_heads, head]", eps))
	case t.headNorms && (c.flag("use_qk_norm") || t.gemma):
		w.line("q = %s", w.rms("q", p.stored(w.param("query_norm", "head", w.scaleInit(), t.attention+"/query_norm/scale")), "head", eps))
		w.line("k = %s", w.rms("k", p.stored(w.param("key_norm", "head", w.scaleInit(), t.attention+"/key_norm/scale")), "head", eps))
	}
	rope, scale := p.rope(len(t.pattern) > 0)
	w.line("q = rope(q, pos%s)%s", rope, scale)
	w.line("k = rope(k, pos%s)%s", rope, scale)
}

// queryFan is what the initial query is made for: MaxText folds 1 / sqrt(head)
// into it where logits are not scaled.
func (p *plan) queryFan(t *traits) string {
	if t.headNorms && p.c.flag("use_qk_norm") || t.scaled || p.hf() {
		return "embed"
	}
	return "embed * head"
}

// rope is the arguments of rope and what it is multiplied by. In a group, base and
// factor are the part's.
func (p *plan) rope(group bool) (args, scale string) {
	c := p.c
	kind := strings.ToLower(c.text("rope_type"))
	switch {
	case strings.HasPrefix(c.text("model_name"), "llama3.1") || strings.HasPrefix(kind, "llama3.1"):
		pairs := ", interleaved: true"
		if p.hf() {
			pairs = ""
		}
		if c.flag("rope_use_scale") {
			return ", frequencies: frequencies" + pairs, ""
		}
		return argument("base", c.number("rope_max_timescale"), 10000) + pairs, ""
	case strings.HasPrefix(kind, "yarn"):
		args = ", frequencies: frequencies"
		if c.flag("rope_interleave") {
			args += ", interleaved: true"
		}
		if f := c.number("rope_factor"); c.flag("rope_attention_scaling") && f > 1 {
			scale = fmt.Sprintf(" * (0.1 * log(%s) + 1)", fraction(f))
		}
		return args, scale
	case kind != "default":
		c.fail("rope_type", "", "%s: want default, llama3.1 or yarn", c.is("rope_type"))
	}
	if group {
		return ", base: base, factor: factor", ""
	}
	return argument("base", c.number("rope_max_timescale"), 10000) + argument("factor", c.number("rope_linear_scaling_factor"), 1), ""
}

// feedForward writes the second half: the mlp or the experts, and the return.
func (w *writer) feedForward(t *traits) {
	c := w.p.c
	eps := c.number("normalization_layer_epsilon")
	pre, post := "post_self_attention_layer_norm", ""
	if t.gemma {
		eps, pre = 1e-6, "pre_ffw_norm"
		if t.postNorms {
			post = "post_ffw_norm"
		}
	}
	h := "a"
	if t.olmo {
		post = "post_mlp_layer_norm"
	} else {
		w.line("h = %s", w.norm("a", "mlp_norm", pre, eps))
		h = "h"
	}
	if t.experts != "" {
		w.experts(t)
		w.line("return a + y, balance")
		return
	}
	out := w.mlp(h, "", "mlp")
	if post != "" {
		w.line("h = %s", out)
		out = w.norm("h", "post_mlp_norm", post, eps)
	}
	w.line("return a + %s", out)
}

// mlp writes a gated mlp of h and returns the expression of its result.
func (w *writer) mlp(h, prefix, path string) string {
	p, c := w.p, w.p.c
	act := w.activation()
	a, b := fmt.Sprintf(`checkpoint(project(%s, %swi_0, embed), "mlpwi_0")`, h, prefix), fmt.Sprintf(`checkpoint(project(%s, %swi_1, embed), "mlpwi_1")`, h, prefix)
	if c.flag("fused_mlp") {
		w.param(prefix+"wi", "embed, halves, mlp", p.kernel("embed"), path+"/wi/kernel")
		w.line(`wi_h = checkpoint(project(%s, %swi, embed), "mlpwi")`, h, prefix)
		a, b = "index(wi_h, halves, 0)", "index(wi_h, halves, 1)"
	} else {
		w.param(prefix+"wi_0", "embed, "+w.width(prefix), p.kernel("embed"), path+"/wi_0/kernel")
		w.param(prefix+"wi_1", "embed, "+w.width(prefix), p.kernel("embed"), path+"/wi_1/kernel")
	}
	w.param(prefix+"wo", w.width(prefix)+", embed", p.kernel(w.width(prefix)), path+"/wo/kernel")
	if c.flag("activations_in_float32") {
		w.line("hidden = cast(%s(cast(%s, f32)) * cast(%s, f32), x)", act, a, b)
	} else {
		w.line("hidden = %s(%s) * %s", act, a, b)
	}
	return fmt.Sprintf(`checkpoint(project(hidden, %swo, %s), "mlpwo")`, prefix, w.width(prefix))
}

// width is the axis of the mlp: the shared experts have one of their own.
func (w *writer) width(prefix string) string {
	if prefix == "" {
		return "mlp"
	}
	return "shared_mlp"
}
