package maxtext

import (
	"fmt"
	"slices"
	"strings"
)

// A stack is layers of one kind.
type stack struct {
	name      string // of the layer
	path      string // of its parameters in files
	layers    int    // that are stacked
	first     int    // the model's layers before
	rest      bool   // what is left of a pattern: its parts are of the stack before
	parts     []part // that a layer has, one after the other
	cycle     int    // the same, as a number of the model's layers
	weights   []weight
	body      []string // of one part: from x to the result
	suffixed  bool     // MaxText has the part's name in those of its parameters
	patterned bool     // parts have arguments
	aux       bool     // returns a load-balance loss too
}

func (s *stack) what() string {
	if s.cycle > 1 {
		return fmt.Sprintf("group of %d layers", s.cycle)
	}
	return "layer"
}

// A part is one of the layers of the model that are one layer here.
type part struct {
	name string // of it in the layer
	at   string // the argument that tells its parameters in files from those of others
	args string // window, base and factor, where they are not those of all
}

// A weight is a parameter: with what it has as its name in files, and in MaxText,
// both below the path of its layer.
type weight struct{ name, axes, init, leaf, maxtext string }

// declaration is how a program has it.
func (w *weight) declaration(as string) string {
	return fmt.Sprintf("param %s: weight[%s] = %s as %q", w.name, w.axes, w.init, as)
}

// layers makes the stacks of the decoder block.
func (p *plan) layers() {
	c := p.c
	block := c.text("decoder_block")
	if c.flag("enable_dropout") && c.number("dropout_rate") > 0 {
		c.fail("dropout_rate", "enable_dropout=false", "%s: write dropout(x, rate) where the layer should have it", c.is("dropout_rate"))
	}
	make, known := decoders[block]
	if !known {
		c.fail("decoder_block", "one of "+strings.Join(decoderNames(), ", "), "%s: the layer is not known", c.is("decoder_block"))
		return
	}
	p.refuseForeign(block)
	p.checkHF()
	make(p)
}

// A decoder makes the stacks of one kind of layer.
type decoder func(p *plan)

var decoders map[string]decoder

func init() {
	decoders = map[string]decoder{
		"simple": simple, "simple_mlp": simpleMLP, "gpt3": gpt3, "deepseek": deepseek,
		"llama2":    dense(traits{}),
		"mistral":   dense(traits{}),
		"qwen2":     dense(traits{scaled: true, biases: true}),
		"qwen3":     dense(traits{scaled: true, headNorms: true}),
		"gemma":     dense(traits{gemma: true}),
		"gemma2":    dense(traits{gemma: true, postNorms: true, pattern: []bool{true, false}, suffixes: []string{"local", "global"}}),
		"gemma3":    dense(traits{gemma: true, postNorms: true, scaled: true, headNorms: true, pattern: []bool{true, true, true, true, true, false}}),
		"olmo3":     dense(traits{scaled: true, olmo: true, attention: "attention", pattern: []bool{true, true, true, false}}),
		"mixtral":   dense(traits{experts: "MoeBlock_0"}),
		"qwen3_moe": dense(traits{scaled: true, headNorms: true, experts: "moe_block"}),
		"gpt_oss":   dense(traits{scaled: true, biases: true, outBias: true, sinks: true, attention: "GptOssAttention", experts: "GptOssMlp", clipped: true, pattern: []bool{true, false}}),
	}
}

func decoderNames() []string {
	var out []string
	for name := range decoders {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// refuseForeign refuses what is of another layer, and would be passed over.
func (p *plan) refuseForeign(block string) {
	c := p.c
	for _, f := range []struct {
		key    string
		blocks []string
	}{
		{"attention_bias", []string{"qwen2", "gpt_oss"}}, {"mlp_bias", []string{"gpt_oss"}}, {"attention_sink", []string{"gpt_oss"}},
		{"use_qk_norm", []string{"qwen3", "qwen3_moe", "gemma3", "olmo3"}}, {"routed_bias", []string{"deepseek", "gpt_oss"}},
		{"fused_qkv", []string{"gpt3", "llama2", "mistral", "gemma", "mixtral"}}, {"fused_mlp", []string{"llama2", "mistral", "gemma", "gemma2", "gemma3", "qwen2", "qwen3", "olmo3"}},
	} {
		if c.flag(f.key) && !slices.Contains(f.blocks, block) {
			c.fail(f.key, "", "%s: the layer %s has none", c.is(f.key), block)
		}
	}
	if p.size.experts > 1 && !slices.Contains([]string{"mixtral", "qwen3_moe", "gpt_oss", "deepseek"}, block) {
		c.fail("num_experts", "decoder_block=mixtral has experts", "%s: the layer %s has none", c.is("num_experts"), block)
	}
	if kind := c.text("attention_type"); kind != "global" && !(kind == "mla" && block == "deepseek") {
		c.fail("attention_type", "", "%s: the layer %s has no such attention", c.is("attention_type"), block)
	}
	for _, key := range []string{"dtype", "weight_dtype"} {
		if c.typeOf(key) == "" {
			c.fail(key, "", "%s: want float32, bfloat16, float16 or float64", c.is(key))
		}
	}
}

// names reports whether a value of some layer has a checkpoint name.
func (p *plan) names(name string) bool {
	for _, s := range p.stacks {
		for _, line := range append(slices.Clone(s.body), p.helpers()...) {
			if strings.Contains(line, `"`+name+`"`) {
				return true
			}
		}
		if s.aux && slices.Contains([]string{"mlpwi_0", "mlpwi_1"}, name) {
			return true
		}
	}
	return false
}

// kernel is the initial value of a weight whose products sum over so many
// numbers.
func (p *plan) kernel(fan string) string {
	if s := p.c.number("dense_init_scale"); s != 1 {
		return fmt.Sprintf("normal(sqrt(%s / (%s)))", fraction(s), fan)
	}
	if strings.Contains(fan, " ") {
		return "normal(1 / sqrt(" + fan + "))"
	}
	return "normal(1 / sqrt(" + fan + "))"
}

// A writer collects the weights and the body of one part.
type writer struct {
	p       *plan
	weights []weight
	body    []string
}

// param declares a weight and returns its name.
func (w *writer) param(name, axes, init, leaf string) string {
	maxtext := leaf
	if w.p.hf() {
		if row, ok := w.p.hfRow(leaf); ok {
			if leaf = row.name; row.axes != "" {
				axes = row.axes
			}
		} else if hfTables[w.p.c.text("decoder_block")] != nil {
			w.p.c.fail("decoder_block", "", "%s: checkpoints of Hugging Face have no %s", w.p.c.is("decoder_block"), leaf)
		}
	}
	w.weights = append(w.weights, weight{name, axes, init, leaf, maxtext})
	return name
}

func (w *writer) line(format string, args ...any) {
	w.body = append(w.body, fmt.Sprintf(format, args...))
}

// norm declares a scale over embed and returns the norm of x.
func (w *writer) norm(x, name, leaf string, eps float64) string {
	w.param(name, "embed", w.scaleInit(), leaf+"/scale")
	return w.rms(x, w.p.stored(name), "embed", eps)
}

// scaleInit is what the scale of a norm starts as.
func (w *writer) scaleInit() string {
	if w.p.stored("") != "" {
		return "zeros"
	}
	return "ones"
}

func (w *writer) rms(x, scale, over string, eps float64) string {
	if eps == 1e-5 {
		return fmt.Sprintf("rmsnorm(%s, %s, over: %s)", x, scale, over)
	}
	return fmt.Sprintf("rmsnorm(%s, %s, over: %s, eps: %s)", x, scale, over, fraction(eps))
}

// one is the stack of all layers of a model, each made by write.
func (p *plan) one(name string, write func(w *writer)) {
	w := &writer{p: p}
	write(w)
	p.stacks = []stack{{name: name, path: "decoder/layers/", layers: p.size.layers, cycle: 1, parts: make([]part, 1), weights: w.weights, body: w.body}}
}

func simple(p *plan) {
	p.one("simple_layer", func(w *writer) {
		w.param("weights", "embed, features", p.kernel("embed"), "weights")
		w.line("return rename(project(x, weights, embed), features -> embed)")
	})
}

func simpleMLP(p *plan) {
	p.one("simple_mlp_layer", func(w *writer) {
		w.param("ff_1", "embed, mlp", p.kernel("embed"), "ff_1")
		w.param("ff_2", "mlp, embed", p.kernel("mlp"), "ff_2")
		w.line("return project(project(x, ff_1, embed), ff_2, mlp)")
	})
}

// gpt3 has layer norms whose scale is stored around 0, and biases.
func gpt3(p *plan) {
	c := p.c
	if !c.flag("fused_qkv") {
		c.fail("fused_qkv", "fused_qkv=true", "%s: the layer gpt3 has one weight for query, key and value", c.is("fused_qkv"))
	}
	eps := c.number("normalization_layer_epsilon")
	p.size.kvHeads = p.size.heads
	p.one("gpt3_layer", func(w *writer) {
		layerNorm := func(x, name, leaf string) string {
			w.param(name+"_scale", "embed", "zeros", leaf+"/scale")
			w.param(name+"_bias", "embed", "zeros", leaf+"/bias")
			return fmt.Sprintf("layernorm(%s, %s_scale + 1, %[2]s_bias, over: embed%s)", x, name, argument("eps", eps, 1e-5))
		}
		w.line(`x = checkpoint(x, "decoder_layer_input")`)
		w.line("h = %s", layerNorm("x", "attention", "pre_self_attention_norm"))
		w.param("qkv", "embed, three, heads, head", p.kernel("embed"), "self_attention/qkv_proj/kernel")
		w.param("qkv_bias", "three, heads, head", "zeros", "self_attention/qkv_proj/bias")
		w.line(`h = checkpoint(project(h, qkv, embed) + cast(qkv_bias, h), "qkv_proj")`)
		w.line(`context = checkpoint(attention(index(h, three, 0), index(h, three, 1), index(h, three, 2), causal: true, scale: 1 / sqrt(head), segments: segments%s), "context")`, w.block())
		w.param("out", "heads, head, embed", p.kernel("heads * head"), "self_attention/out/kernel")
		w.param("out_bias", "embed", "zeros", "self_attention/out/bias")
		w.line(`a = x + checkpoint(project(context, out, [heads, head]), "out_proj") + cast(out_bias, x)`)
		w.line("h = %s", layerNorm("a", "mlp", "mlp/mlp_layer_norm"))
		w.param("wi", "embed, mlp", p.kernel("embed"), "mlp/wi/kernel")
		w.param("wi_bias", "mlp", "zeros", "mlp/wi/bias")
		w.line(`h = %s(checkpoint(project(h, wi, embed) + cast(wi_bias, h), "mlpwi"))`, w.activation("gelu"))
		w.param("wo", "mlp, embed", p.kernel("mlp"), "mlp/wo/kernel")
		w.param("wo_bias", "embed", "zeros", "mlp/wo/bias")
		w.line(`return a + checkpoint(project(h, wo, mlp), "mlpwo") + cast(wo_bias, a)`)
	})
}

// argument is an argument by name that differs from its default.
func argument(name string, v, def float64) string {
	if v == def {
		return ""
	}
	return ", " + name + ": " + fraction(v)
}

func (w *writer) block() string {
	if w.p.size.queries == 0 {
		return ""
	}
	return ", block: queries"
}

// activation is the function of mlp_activations, which is of so many weights.
func (w *writer) activation(only ...string) string {
	c := w.p.c
	names := c.texts("mlp_activations")
	gated := len(names) == 2 && names[1] == "linear"
	if len(only) > 0 {
		if len(names) == 1 && slices.Contains(only, names[0]) {
			return names[0]
		}
		c.fail("mlp_activations", "mlp_activations="+show([]any{only[0]}), "%s: the layer has one product", c.is("mlp_activations"))
		return only[0]
	}
	if !gated || !slices.Contains([]string{"silu", "gelu", "relu", "sigmoid", "tanh"}, names[0]) {
		c.fail("mlp_activations", `mlp_activations=["silu","linear"]`, "%s: want silu, gelu, relu, sigmoid or tanh, then linear", c.is("mlp_activations"))
		return "silu"
	}
	return names[0]
}
