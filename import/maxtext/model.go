package maxtext

import (
	"fmt"
	"strings"
)

// logits is the expression of the logits of x.
func (p *plan) logits() string { return p.logitsOf("x") }

func (p *plan) logitsOf(x string) string {
	c := p.c
	w := "kernel"
	if c.flag("logits_via_embedding") {
		w = "table"
	}
	product := fmt.Sprintf("project(%s, %s, embed)", x, w)
	if c.flag("logits_dot_in_fp32") {
		product = fmt.Sprintf("project(cast(%s, f32), %s, embed)", x, w)
	}
	if c.flag("logits_via_embedding") && c.flag("normalize_embedding_logits") && !p.hf() {
		product += " / sqrt(embed)"
	}
	if cap := c.number("final_logits_soft_cap"); cap > 0 && c.flag("logits_via_embedding") {
		product = fmt.Sprintf("%s * tanh(%s / %[1]s)", fraction(cap), product)
	}
	return product
}

// lossOf is the expression of each token's loss.
func (p *plan) lossOf() string {
	loss := "cross_entropy(logits, targets, axis: vocab)"
	if z := p.c.number("z_loss_multiplier"); z > 0 {
		loss += fmt.Sprintf(" + %s * pow(logsumexp(cast(logits, accumulator(logits)), over: vocab), 2)", fraction(z))
	}
	return loss
}

// tokenLoss is the function of a block of tokens.
func (p *plan) tokenLoss() string {
	w := "kernel"
	if p.c.flag("logits_via_embedding") {
		w = "table"
	}
	return fmt.Sprintf("fn token_loss(x, %s, targets) {\n  logits = %s\n  return %s\n}\n", w, p.logits(), p.lossOf())
}

// finalNorm is the norm of x before the logits.
func (p *plan) finalNorm() string {
	eps := p.c.number("normalization_layer_epsilon")
	if p.c.text("decoder_block") == "gpt3" {
		return fmt.Sprintf("x = layernorm(x, norm_scale + 1, norm_bias, over: embed%s)", argument("eps", eps, 1e-5))
	}
	return fmt.Sprintf("x = rmsnorm(x, %s, over: embed%s)", p.stored("norm"), argument("eps", eps, 1e-5))
}

// modelWeights makes the parameters of the model besides those of its layers.
func (p *plan) modelWeights() {
	c := p.c
	add := func(name, axes, init, maxtext, hf string) {
		w := weight{name, axes, init, maxtext, maxtext}
		if p.hf() && hf != "" {
			w.leaf = hf
		}
		p.weights = append(p.weights, w)
	}
	add("table", "vocab, embed", "normal(1)", "token_embedder/embedding", "model.embed_tokens.weight")
	if p.size.positions > 0 {
		add("position_table", "positions, embed", "normal(1)", "decoder/position_embedder/embedding", "")
	}
	if c.text("decoder_block") == "gpt3" {
		add("norm_scale", "embed", "zeros", "decoder/decoder_norm/scale", "")
		add("norm_bias", "embed", "zeros", "decoder/decoder_norm/bias", "")
	} else {
		add("norm", "embed", (&writer{p: p}).scaleInit(), "decoder/decoder_norm/scale", "model.norm.weight")
	}
	if !c.flag("logits_via_embedding") {
		axes := "embed, vocab"
		if p.hf() {
			axes = "vocab, embed"
		}
		add("kernel", axes, p.kernel("embed"), "decoder/logits_dense/kernel", "lm_head.weight")
	}
	for k := range c.whole("mtp_num_layers") {
		name, at := fmt.Sprintf("mtp_%d_", k+1), fmt.Sprintf("mtp_block/mtp_layer_%d/mtp_%[1]d_", k+1)
		add(name+"embedding_norm", "embed", "ones", at+"embedding_norm/scale", "")
		add(name+"hidden_norm", "embed", "ones", at+"hidden_state_norm/scale", "")
		add(name+"projection", "pair, embed", p.kernel("pair"), at+"projection/kernel", "")
	}
}

// model is the model: the embedding, the layers, the loss.
func (p *plan) model() string {
	c := p.c
	var lines []string
	for _, w := range p.weights {
		lines = append(lines, w.declaration(w.leaf))
	}
	tied := c.flag("logits_via_embedding")
	if tied && c.typeOf("dtype") == "f32" && !p.hf() {
		c.warn("maxtext-embedding", "logits_via_embedding", "MaxText rounds the table to bfloat16 for the logits, whatever the types. This program does not")
	}
	lines = append(lines, "")
	lookup := "x = cast(take(table, inputs, axis: vocab), act)"
	if c.typeOf("dtype") == c.typeOf("weight_dtype") {
		lookup = "x = take(table, inputs, axis: vocab)"
	}
	lines = append(lines, lookup)
	if p.size.positions > 0 {
		lines = append(lines, "x = x + cast(take(position_table, inputs_position, axis: positions), x)")
	}
	if p.hf() && p.isGemma() {
		lines = append(lines, "x = x * sqrt(embed)")
	}
	balances := p.applyStacks(&lines)
	later := p.later(&lines, lookup)
	balances = append(balances, later...)
	lines = append(lines, p.finalNorm())
	if p.size.tokens > 0 {
		w := "kernel"
		if tied {
			w = "table"
		}
		lines = append(lines, fmt.Sprintf("loss = blocks(token_loss, along: seq, size: tokens)(x, %s, targets)", w))
	} else {
		lines = append(lines, "logits = "+p.logits(), "loss = "+p.lossOf())
	}
	loss := "normalized(sum(where(real, loss, 0)), by: sum(cast(real, loss)) + 1e-8)"
	if weight := c.number("load_balance_loss_weight"); weight > 0 && len(balances) > 0 {
		sum := strings.Join(balances, " + ")
		if len(balances) > 1 {
			sum = "(" + sum + ")"
		}
		loss += fmt.Sprintf(" + %s * %s / %d", fraction(weight), sum, p.expertLayers()+len(later))
	}
	if p.c.whole("mtp_num_layers") > 0 {
		loss += fmt.Sprintf(" + %s * mtp_loss", fraction(c.number("mtp_loss_scaling_factor")))
	}
	lines = append(lines, "real = targets_segmentation != 0", "return loss: "+loss)
	return fmt.Sprintf(`model %s(
    inputs: i32[batch, seq], targets: i32[batch, seq], inputs_position: i32[batch, seq],
    inputs_segmentation: i32[batch, seq], targets_segmentation: i32[batch, seq]
) {
%s}
`, p.name, indent(lines))
}

// listed reports whether the stacks are one list of layers, of which those of the
// last kind are pipelined.
func (p *plan) listed() bool {
	return p.mesh.stages > 1 && len(p.stacks) == 2 && !p.stacks[0].grouped() && !p.stacks[1].grouped()
}

// applyStacks applies the stacks, the last in the pipeline if there is one, and
// returns the names of their load-balance losses.
func (p *plan) applyStacks(lines *[]string) []string {
	if p.listed() {
		var kinds []string
		to, balances := "x", []string(nil)
		for _, s := range p.stacks {
			kinds = append(kinds, fmt.Sprintf("%s * %d", s.name, s.layers))
			if s.aux {
				to, balances = "x, balance", []string{"balance"}
			}
		}
		*lines = append(*lines, fmt.Sprintf("%s = pipeline(layers: [%s])(x, inputs_position, inputs_segmentation)", to, strings.Join(kinds, ", ")))
		return balances
	}
	var balances []string
	for i := range p.stacks {
		s := &p.stacks[i]
		how := "stack"
		if i == len(p.stacks)-1 && p.mesh.stages > 1 {
			how = "pipeline"
		}
		n := fmt.Sprint(s.layers)
		if len(p.stacks) == 1 {
			n = "layers"
		}
		to := "x"
		if s.aux {
			balance := "balance"
			if len(balances) > 0 {
				balance = fmt.Sprintf("balance_%d", len(balances)+1)
			}
			balances = append(balances, balance)
			to = "x, " + balance
		}
		sides := "x, inputs_position, inputs_segmentation"
		if strings.HasPrefix(s.name, "simple") {
			sides = "x"
		}
		*lines = append(*lines, fmt.Sprintf("%s = %s(%s, layers: %s%s)(%s)", to, how, s.group(), n, s.known(), sides))
	}
	return balances
}

// expertLayers is how many layers of the model have experts.
func (p *plan) expertLayers() int {
	n := 0
	for _, s := range p.stacks {
		if s.aux {
			n += s.layers * len(s.parts)
		}
	}
	return n
}
