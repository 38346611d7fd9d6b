package maxtext

import (
	"fmt"
	"slices"
	"strings"
)

// hf reports whether parameters have the names and shapes, and the meaning, of
// Hugging Face's checkpoints.
func (p *plan) hf() bool { return p.c.opts.HuggingFace }

// A hfWeight is one row: a parameter of MaxText, what Hugging Face calls it, and
// the order of its axes there; axes "" are those of MaxText. Heads are one axis
// with what they have.
type hfWeight struct{ leaf, name, axes string }

var hfAttention = []hfWeight{
	{"query/kernel", "self_attn.q_proj.weight", "q_features, embed"}, {"key/kernel", "self_attn.k_proj.weight", "k_features, embed"},
	{"value/kernel", "self_attn.v_proj.weight", "k_features, embed"}, {"out/kernel", "self_attn.o_proj.weight", "embed, q_features"},
	{"query/bias", "self_attn.q_proj.bias", "q_features"}, {"key/bias", "self_attn.k_proj.bias", "k_features"}, {"value/bias", "self_attn.v_proj.bias", "k_features"},
	{"query_norm/scale", "self_attn.q_norm.weight", ""}, {"key_norm/scale", "self_attn.k_norm.weight", ""},
}

var hfLlamaNorms = []hfWeight{
	{"pre_self_attention_layer_norm/scale", "input_layernorm.weight", ""}, {"post_self_attention_layer_norm/scale", "post_attention_layernorm.weight", ""},
}

var hfMLP = []hfWeight{
	{"mlp/wi_0/kernel", "mlp.gate_proj.weight", "mlp, embed"}, {"mlp/wi_1/kernel", "mlp.up_proj.weight", "mlp, embed"}, {"mlp/wo/kernel", "mlp.down_proj.weight", "embed, mlp"},
}

// hfExperts are the experts, each an array of its own.
func hfExperts(path, name, gate, up, down string) []hfWeight {
	each := name + ".experts.{experts}."
	return []hfWeight{
		{path + "/gate/kernel", name + ".gate.weight", "routes, embed"}, {path + "/wi_0", each + gate + ".weight", "experts, moe_mlp, embed"},
		{path + "/wi_1", each + up + ".weight", "experts, moe_mlp, embed"}, {path + "/wo", each + down + ".weight", "experts, embed, moe_mlp"},
	}
}

var hfLatent = []hfWeight{
	{"self_attention/wq_a/kernel", "self_attn.q_a_proj.weight", "q_lora, embed"}, {"self_attention/q_norm/scale", "self_attn.q_a_layernorm.weight", ""},
	{"self_attention/wq_b/kernel", "self_attn.q_b_proj.weight", "q_features, q_lora"}, {"self_attention/query/kernel", "self_attn.q_proj.weight", "q_features, embed"},
	{"self_attention/wkv_a/kernel", "self_attn.kv_a_proj_with_mqa.weight", "kv_a, embed"}, {"self_attention/kv_norm/scale", "self_attn.kv_a_layernorm.weight", ""},
	{"self_attention/wkv_b/kernel", "self_attn.kv_b_proj.weight", "kv_features, kv_lora"}, {"self_attention/out/kernel", "self_attn.o_proj.weight", "embed, v_features"},
	{"DeepSeekMoeBlock_0/MoeBlock_0/gate/bias", "mlp.gate.e_score_correction_bias", ""},
	{"DeepSeekMoeBlock_0/shared_experts/wi_0/kernel", "mlp.shared_experts.gate_proj.weight", "shared_mlp, embed"},
	{"DeepSeekMoeBlock_0/shared_experts/wi_1/kernel", "mlp.shared_experts.up_proj.weight", "shared_mlp, embed"},
	{"DeepSeekMoeBlock_0/shared_experts/wo/kernel", "mlp.shared_experts.down_proj.weight", "embed, shared_mlp"},
}

// under is rows whose parameters are below a path.
func under(path string, rows []hfWeight) []hfWeight {
	out := slices.Clone(rows)
	for i := range out {
		out[i].leaf = path + "/" + out[i].leaf
	}
	return out
}

// hfTables are the rows of each decoder block whose checkpoints are known.
var hfTables = func() map[string][]hfWeight {
	llama := slices.Concat(hfLlamaNorms, under("self_attention", hfAttention), hfMLP)
	gemma := slices.Concat(under("self_attention", hfAttention), hfMLP, []hfWeight{{"pre_self_attention_norm/scale", "input_layernorm.weight", ""}})
	four := slices.Concat(gemma, []hfWeight{
		{"post_self_attention_norm/scale", "post_attention_layernorm.weight", ""}, {"pre_ffw_norm/scale", "pre_feedforward_layernorm.weight", ""}, {"post_ffw_norm/scale", "post_feedforward_layernorm.weight", ""},
	})
	return map[string][]hfWeight{
		"llama2": llama, "mistral": llama, "qwen2": llama, "qwen3": llama,
		"gemma": slices.Concat(gemma, []hfWeight{{"pre_ffw_norm/scale", "post_attention_layernorm.weight", ""}}), "gemma2": four, "gemma3": four,
		"mixtral":   slices.Concat(llama, hfExperts("MoeBlock_0", "block_sparse_moe", "w1", "w3", "w2")),
		"qwen3_moe": slices.Concat(llama, hfExperts("moe_block", "mlp", "gate_proj", "up_proj", "down_proj")),
		"deepseek":  slices.Concat(hfLlamaNorms, hfLatent, hfMLP, hfExperts("DeepSeekMoeBlock_0/MoeBlock_0", "mlp", "gate_proj", "up_proj", "down_proj")),
	}
}()

// hfRow is the row of a parameter of a layer.
func (p *plan) hfRow(leaf string) (hfWeight, bool) {
	rows := hfTables[p.c.text("decoder_block")]
	k := slices.IndexFunc(rows, func(r hfWeight) bool { return r.leaf == leaf })
	if k < 0 {
		return hfWeight{}, false
	}
	return rows[k], true
}

// hfPath is the name of a layer's parameter: its number is that of the model's
// layer, of which some may come before the stack, or be in one group.
func hfPath(s *stack, leaf string) string {
	number := "layer"
	switch {
	case s.grouped():
		number = "layer * group + at"
	case s.first > 0:
		number = fmt.Sprintf("layer + %d", s.first)
	}
	return "model.layers.{" + number + "}." + leaf
}

// checkHF refuses what checkpoints of Hugging Face do not have.
func (p *plan) checkHF() {
	if !p.hf() {
		return
	}
	c := p.c
	block := c.text("decoder_block")
	if hfTables[block] == nil {
		var known []string
		for name := range hfTables {
			known = append(known, name)
		}
		slices.Sort(known)
		c.fail("decoder_block", "one of "+strings.Join(known, ", "), "%s: the names of its parameters in checkpoints of Hugging Face are not known", c.is("decoder_block"))
	}
	for _, key := range []string{"fused_qkv", "fused_mlp"} {
		if c.flag(key) {
			c.fail(key, key+"=false", "%s: checkpoints of Hugging Face have these weights apart", c.is(key))
		}
	}
	if c.whole("trainable_position_size") > 0 {
		c.fail("trainable_position_size", "", "%s: checkpoints of Hugging Face have no table of positions", c.is("trainable_position_size"))
	}
}

// isGemma reports whether norms are stored around 0 and the embedding is scaled,
// in checkpoints of Hugging Face.
func (p *plan) isGemma() bool { return strings.HasPrefix(p.c.text("decoder_block"), "gemma") }

// stored is a scale as a norm takes it.
func (p *plan) stored(scale string) string {
	if p.hf() && p.isGemma() {
		return scale + " + 1"
	}
	return scale
}

// logitScale is what logits are multiplied by, where queries do not have it.
func (p *plan) logitScale() string {
	if name := p.c.text("model_name"); p.hf() && strings.HasSuffix(name, "-27b") && (strings.HasPrefix(name, "gemma2") || strings.HasPrefix(name, "gemma3")) {
		return "1 / sqrt(embed / heads)"
	}
	return "1 / sqrt(head)"
}

// hfAxes are the axes that heads are one of with what they have.
func (p *plan) hfAxes() []axisSize {
	if !p.hf() {
		return nil
	}
	if p.c.text("decoder_block") == "deepseek" {
		return []axisSize{{"q_features", "heads * qk_head"}, {"kv_features", "heads * kv_b"}, {"v_features", "heads * v_head"}}
	}
	return []axisSize{{"q_features", "heads * head"}, {"k_features", "kv_heads * head"}}
}

// withFeatures adds to the rules of heads those of the axes of which they are a
// part.
func (p *plan) withFeatures(lines []ruleLine) []ruleLine {
	if !p.hf() {
		return lines
	}
	of := map[string][]string{"heads": {"q_features", "kv_features", "v_features"}, "kv_heads": {"k_features"}}
	var out []ruleLine
	for _, l := range lines {
		out = append(out, l)
		for _, axis := range of[l.ours] {
			if slices.ContainsFunc(p.hfAxes(), func(a axisSize) bool { return a.name == axis }) {
				out = appendNew(out, ruleLine{axis, l.mesh})
			}
		}
	}
	return out
}
