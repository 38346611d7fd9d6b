package maxtext

import (
	"fmt"
	"strings"
)

// dispatch is the arguments of a mixture that say how tokens get to experts: sorted
// and by groups, as many as there are devices that share the experts, where
// MaxText's are sorted, and at places of a capacity where it drops tokens. Without
// either every expert sees every token.
func (p *plan) dispatch() string {
	c := p.c
	capacity, buffer := c.number("capacity_factor"), c.number("ragged_buffer_factor")
	if !c.flag("sparse_matmul") {
		if capacity <= 0 {
			return ""
		}
		return ", capacity: " + fraction(capacity)
	}
	if capacity > 0 {
		c.warn("maxtext-capacity", "capacity_factor", "%s has no effect beside sparse_matmul=true, here as in MaxText: no token is dropped", c.is("capacity_factor"))
	}
	groups := p.expertGroups()
	if groups == 1 {
		return ", groups: 1"
	}
	if p.size.experts%groups != 0 {
		c.fail("num_experts", "", "%s do not divide over %s (%s)", c.is("num_experts"), counted(groups, "device"), strings.Join(p.expertMesh(), ", "))
	}
	if buffer <= 0 {
		return ", groups: expert_group"
	}
	if c.flag("use_ring_of_experts") && !c.flag("use_ragged_sort") {
		c.fail("ragged_buffer_factor", "use_ragged_sort=true", "%s: beside use_ring_of_experts=true MaxText has a buffer only with use_ragged_sort=true", c.is("ragged_buffer_factor"))
	}
	if buffer < float64(groups) {
		c.warn("maxtext-buffer", "ragged_buffer_factor", "%s: MaxText drops the tokens for which a device's buffer has no room. Here each row of the batch has so much room, in parts of what it needs if all experts are used alike, and one that needs more is no number, with which training ends", c.is("ragged_buffer_factor"))
	}
	return ", groups: expert_group, room: " + fraction(buffer)
}

// expertGroups is how many devices share the experts of sorted tokens, each of which
// has a group of them: those of the rule for activations, or of that for weights
// where there is none. It is 1 where tokens are not sorted.
func (p *plan) expertGroups() int {
	n := 1
	for _, name := range p.expertMesh() {
		for _, a := range p.mesh.axes {
			if a.name == name {
				n *= a.size()
			}
		}
	}
	return n
}

func (p *plan) expertMesh() []string {
	if p.size.experts < 2 || !p.c.flag("sparse_matmul") {
		return nil
	}
	for _, of := range []string{"activation_exp", "exp"} {
		for _, r := range p.c.rules {
			if mesh := p.meshOf(r.mesh); r.name == of && len(mesh) > 0 {
				return mesh
			}
		}
	}
	return nil
}

// expertWeights declares the experts.
func (w *writer) expertWeights(path string) {
	p := w.p
	w.param("wi_0", "experts, embed, moe_mlp", p.kernel("embed"), path+"/wi_0")
	w.param("wi_1", "experts, embed, moe_mlp", p.kernel("embed"), path+"/wi_1")
	w.param("wo", "experts, moe_mlp, embed", p.kernel("moe_mlp"), path+"/wo")
}

const expertArgs = "cast(wi_0, h), cast(wi_1, h), cast(wo, h)"

// experts writes y and balance of h.
func (w *writer) experts(t *traits) {
	p, c := w.p, w.p.c
	k := fmt.Sprintf("k: %d%s", p.size.perToken, p.dispatch())
	if p.hf() && c.text("decoder_block") == "qwen3_moe" && !c.flag("norm_topk_prob") {
		k += `, among: "all"`
	}
	w.param("gate", "embed, routes", p.kernel("embed"), t.experts+"/gate/kernel")
	w.expertWeights(t.experts)
	if !t.clipped {
		w.line("y, balance = moe(h, cast(gate, h), %s, %s%s, mlp: moe_mlp)", expertArgs, k, p.expertActivation())
		return
	}
	scores := "project(h, gate, embed)"
	if c.flag("routed_bias") {
		scores += " + cast(" + w.param("gate_bias", "routes", "zeros", t.experts+"/gate/bias") + ", h)"
	}
	w.line("scores = %s", scores)
	w.line("weights, picked, balance = routed(cast(scores, accumulator(h)), k: %d)", p.size.perToken)
	biases := ""
	if c.flag("mlp_bias") {
		w.param("wi_0_bias", "experts, moe_mlp", "zeros", t.experts+"/wi_0_bias")
		w.param("wi_1_bias", "experts, moe_mlp", "zeros", t.experts+"/wi_1_bias")
		w.param("wo_bias", "experts, embed", "zeros", t.experts+"/wo_bias")
		biases = ", wi_0_bias: cast(wi_0_bias, h), wi_1_bias: cast(wi_1_bias, h), wo_bias: cast(wo_bias, h)"
	}
	w.line("y = mixture(h, picked, weights, %s, %s%s%s, mlp: moe_mlp)", expertArgs, k, biases, p.expertActivation())
}

// expertActivation is the argument of a mixture whose experts are not SwiGLU.
func (p *plan) expertActivation() string {
	names := strings.Join(p.c.texts("mlp_activations"), " ")
	if names == "silu linear" && p.c.number("mlp_activations_limit") <= 0 {
		return ""
	}
	return ", activation: gated"
}

// expertFn is that function.
func (p *plan) expertFn() string {
	c := p.c
	names, limit := strings.Join(c.texts("mlp_activations"), " "), c.number("mlp_activations_limit")
	switch {
	case names == "silu linear" && limit <= 0:
		return ""
	case c.text("decoder_block") == "gpt_oss" && names == "sigmoid linear":
		bound := ""
		value := "value"
		if limit > 0 {
			bound = fmt.Sprintf("  gate = minimum(gate, %s)\n", fraction(limit))
			value = fmt.Sprintf("clip(value, -%s, %[1]s)", fraction(limit))
		}
		return "fn gated(gate, value) {\n" + bound + "  return gate * sigmoid(1.702 * gate) * (" + value + " + 1)\n}\n"
	case limit <= 0:
		return fmt.Sprintf("fn gated(gate, value) {\n  return %s(gate) * value\n}\n", (&writer{p: p}).activation())
	}
	c.fail("mlp_activations_limit", "mlp_activations_limit=-1", "%s: the experts of %s have no limit", c.is("mlp_activations_limit"), c.text("decoder_block"))
	return ""
}

// deepseek has latent attention, dense layers first and then layers with experts.
func deepseek(p *plan) {
	c := p.c
	dense := c.whole("first_num_dense_layers")
	if dense < 0 || dense > p.size.layers {
		c.fail("first_num_dense_layers", "", "%s of %s", c.is("first_num_dense_layers"), c.is("base_num_decoder_layers"))
		return
	}
	eps := c.number("normalization_layer_epsilon")
	half := func() *writer {
		w := &writer{p: p}
		w.line(`x = checkpoint(x, "decoder_layer_input")`)
		w.line("h = %s", w.norm("x", "attention_norm", "pre_self_attention_layer_norm", eps))
		w.latent()
		w.line("h = %s", w.norm("a", "mlp_norm", "post_self_attention_layer_norm", eps))
		return w
	}
	if dense > 0 {
		w := half()
		w.line("return a + %s", w.mlp("h", "", "mlp"))
		p.stacks = append(p.stacks, stack{name: "dense_layer", path: "decoder/dense_layers/", layers: dense, cycle: 1, parts: make([]part, 1), weights: w.weights, body: w.body})
	}
	if moe := p.size.layers - dense; moe > 0 {
		w := half()
		w.deepseekExperts()
		p.stacks = append(p.stacks, stack{name: "moe_layer", path: "decoder/moe_layers/", layers: moe, first: dense, cycle: 1, parts: make([]part, 1), weights: w.weights, body: w.body, aux: true})
	}
}

// latent writes latent attention, which is a function of the program.
func (w *writer) latent() {
	p := w.p
	args := []string{"h"}
	add := func(name, axes, init, leaf string) {
		args = append(args, w.param(name, axes, init, "self_attention/"+leaf))
	}
	if p.size.qLora > 0 {
		add("wq_a", "embed, q_lora", p.kernel("embed"), "wq_a/kernel")
		add("q_norm", "q_lora", "ones", "q_norm/scale")
		add("wq_b", "q_lora, heads, qk_head", p.kernel("q_lora"), "wq_b/kernel")
	} else {
		add("query", "embed, heads, qk_head", p.kernel("embed"), "query/kernel")
	}
	add("wkv_a", "embed, kv_a", p.kernel("embed"), "wkv_a/kernel")
	add("kv_norm", "kv_lora", "ones", "kv_norm/scale")
	add("wkv_b", "kv_lora, heads, kv_b", p.kernel("kv_lora"), "wkv_b/kernel")
	add("out", "heads, v_head, embed", p.kernel("heads * v_head"), "out/kernel")
	w.line("a = x + latent_attention(%s, pos, segments)", strings.Join(args, ", "))
}

// latentFn is the function latent_attention.
func (p *plan) latentFn() string {
	c := p.c
	eps := c.number("normalization_layer_epsilon")
	w := &writer{p: p}
	rope, turn := p.rope(false)
	if p.hf() && !strings.Contains(rope, "interleaved") {
		rope += ", interleaved: true"
	}
	params := "query"
	if p.size.qLora > 0 {
		params = "wq_a, q_norm, wq_b"
		w.line(`q = %s`, w.rms(`checkpoint(project(h, wq_a, embed), "query_wa_proj")`, "q_norm", "q_lora", eps))
		w.line(`q = checkpoint(%s, "mla_q")`, p.inHeads("project(q, wq_b, q_lora)", "q_features", "qk_head"))
	} else {
		w.line(`q = checkpoint(%s, "mla_q")`, p.inHeads("project(h, query, embed)", "q_features", "qk_head"))
	}
	w.line("turned = rope(slice(q, qk_head, qk_nope, qk_head), pos%s, head: qk_head)%s", rope, turn)
	w.line("q = concat([slice(q, qk_head, 0, qk_nope), turned], axis: qk_head)")
	w.line("")
	w.line(`c = checkpoint(project(h, wkv_a, embed), "kv_wa_proj")`)
	w.line("turned = rope(slice(c, kv_a, kv_lora, kv_a), pos%s, head: kv_a)%s", rope, turn)
	w.line("c = %s", w.rms("rename(slice(c, kv_a, 0, kv_lora), kv_a -> kv_lora)", "kv_norm", "kv_lora", eps))
	w.line(`kv = checkpoint(%s, "mla_kv")`, p.inHeads("project(c, wkv_b, kv_lora)", "kv_features", "kv_b"))
	w.line("k = rename(slice(kv, kv_b, 0, qk_nope), kv_b -> part)")
	w.line("k = concat([k, expand(rename(turned, kv_a -> part), index(k, part, 0))], axis: part)")
	w.line("v = rename(slice(kv, kv_b, qk_nope, kv_b), kv_b -> v_head)")
	w.line("")
	scale := "1 / sqrt(qk_head)"
	if yarn := strings.HasPrefix(c.text("rope_type"), "yarn"); c.whole("max_position_embeddings") > c.whole("original_max_position_embeddings") && (yarn || !p.hf()) {
		w.line("m = 0.1 * %s * log(%s) + 1", fraction(c.number("mscale")), fraction(c.number("rope_factor")))
		scale = "m * m / sqrt(qk_head)"
	}
	w.line("context = attention(q, rename(k, part -> qk_head), v, causal: true, scale: %s, segments: segments%s, head: qk_head, value: v_head)", scale, w.block())
	if p.hf() {
		w.line(`context = merge(checkpoint(context, "context"), [heads, v_head] -> v_features)`)
		w.line(`return checkpoint(project(context, out, v_features), "out_proj")`)
	} else {
		w.line(`return checkpoint(project(checkpoint(context, "context"), out, [heads, v_head]), "out_proj")`)
	}
	return "fn latent_attention(h, " + params + ", wkv_a, kv_norm, wkv_b, out, pos, segments) {\n" + indent(w.body) + "}\n"
}

// inHeads is a product whose axis of heads and what they have is taken apart,
// where the weight has them in one.
func (p *plan) inHeads(product, features, each string) string {
	if !p.hf() {
		return product
	}
	return fmt.Sprintf("split(%s, %s -> [heads, %s])", product, features, each)
}

// deepseekExperts writes the routed and the shared experts. The bias of the scores
// chooses; of a model whose name begins with deepseek3 it does not weigh.
func (w *writer) deepseekExperts() {
	p, c := w.p, w.p.c
	const path = "DeepSeekMoeBlock_0/MoeBlock_0"
	v3 := strings.HasPrefix(c.text("model_name"), "deepseek3")
	w.param("gate", "embed, routes", p.kernel("embed"), path+"/gate/kernel")
	scores := "cast(project(h, gate, embed), accumulator(h))"
	switch f := c.text("routed_score_func"); f {
	case "":
	case "sigmoid":
		scores = "sigmoid(" + scores + ")"
	case "softmax":
		scores = "softmax(" + scores + ", over: routes)"
	default:
		c.fail("routed_score_func", "", "%s: want sigmoid, softmax or nothing", c.is("routed_score_func"))
	}
	w.line("scores = %s", scores)
	choice := "scores"
	if c.flag("routed_bias") {
		w.param("gate_bias", "routes", "zeros", path+"/gate/bias")
		if v3 {
			w.line("choice = scores + cast(gate_bias, scores)")
			choice = "choice"
		} else {
			w.line("scores = scores + cast(gate_bias, scores)")
		}
	}
	among := choice
	if g, keep := c.whole("n_routing_groups"), c.whole("topk_routing_group"); v3 && g > 0 {
		if p.size.experts%g != 0 || keep < 1 || keep > g {
			c.fail("n_routing_groups", "", "%s, %s: want groups that divide %s", c.is("n_routing_groups"), c.is("topk_routing_group"), c.is("num_experts"))
		}
		among = fmt.Sprintf("limited(%s, groups: %d, keep: %d)", choice, g, keep)
	}
	k := p.size.perToken
	w.line("picked = chosen(%s, k: %d, over: routes)", among, k)
	w.line("weights = where(picked > 0, scores, 0)")
	scale := c.number("routed_scaling_factor")
	switch {
	case c.text("routed_score_func") == "sigmoid" && scale != 1:
		w.line("weights = %s * weights / (sum(weights, over: routes) + 1e-20)", fraction(scale))
	case c.text("routed_score_func") == "sigmoid":
		w.line("weights = weights / (sum(weights, over: routes) + 1e-20)")
	case scale != 1:
		w.line("weights = %s * weights", fraction(scale))
	}
	w.expertWeights(path)
	w.line("y = mixture(h, picked, weights, %s, k: %d%s%s, mlp: moe_mlp)", expertArgs, k, p.dispatch(), p.expertActivation())
	balance := fmt.Sprintf("load_balance(picked, softmax(%s, over: routes))", choice)
	if n := c.whole("shared_experts"); n > 0 {
		w.line("return a + y + %s, %s", w.mlp("h", "shared_", "DeepSeekMoeBlock_0/shared_experts"), balance)
		return
	}
	w.line("return a + y, %s", balance)
}
