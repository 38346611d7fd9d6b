package maxtext

import (
	"fmt"
	"strings"
)

// checkLater refuses heads for later tokens where MaxText's have no counterpart.
func (p *plan) checkLater() {
	c, n := p.c, p.c.whole("mtp_num_layers")
	switch {
	case n == 0:
	case n < 0:
		c.fail("mtp_num_layers", "", "%s: want a whole number from 0", c.is("mtp_num_layers"))
	case p.hf():
		c.fail("mtp_num_layers", "mtp_num_layers=0, or MaxText's parameters", "%s: the names of Hugging Face's checkpoints are not those of a model with heads for later tokens", c.is("mtp_num_layers"))
	case p.last().grouped() || strings.HasPrefix(p.last().name, "simple") || p.size.positions > 0 || p.c.text("decoder_block") == "gpt3":
		c.fail("mtp_num_layers", "mtp_num_layers=0", "%s: the layer %s has no heads for later tokens", c.is("mtp_num_layers"), c.text("decoder_block"))
	case n >= p.size.seq:
		c.fail("mtp_num_layers", "", "%s: a sequence of %s has no token so late", c.is("mtp_num_layers"), c.is("max_target_length"))
	}
}

func (p *plan) last() *stack { return &p.stacks[len(p.stacks)-1] }

// laterFns are the functions that shift sequences.
func laterFns() []string {
	return []string{
		"// shifted is what the next token has, 0 at the end of the sequence.\nfn shifted(x) {\n  return where(iota(seq) < seq - 1, roll(x, seq, by: -1), 0)\n}\n",
		"// following is what the next token of the same document has, 0 at its end.\nfn following(x, documents) {\n  ends = documents != shifted(documents) || documents == 0\n  return where(ends, 0, shifted(x))\n}\n",
	}
}

// later predicts tokens after the next one: head k takes the hidden state of the one
// before, beside the embedding of the token k places later, through one more layer.
// It returns the names of the heads' load-balance losses.
func (p *plan) later(lines *[]string, lookup string) []string {
	n, s := p.c.whole("mtp_num_layers"), p.last()
	if n == 0 {
		return nil
	}
	add := func(format string, args ...any) { *lines = append(*lines, fmt.Sprintf(format, args...)) }
	eps := p.c.number("normalization_layer_epsilon")
	w := &writer{p: p}
	norm := p.finalNorm()
	add("")
	add("hidden = x")
	add("ids = inputs")
	add("after = targets")
	add("mask = cast(targets_segmentation != 0, targets)")
	add("documents = inputs_segmentation")
	var balances, sums, counts []string
	for k := 1; k <= n; k++ {
		for _, v := range []string{"ids", "after", "mask"} {
			add("%s = following(%[1]s, documents)", v)
		}
		if k < n {
			add("documents = shifted(documents)")
		}
		add("%s", strings.ReplaceAll(strings.Replace(lookup, "x = ", "e = ", 1), "inputs", "ids"))
		add("e = %s", w.rms("e", fmt.Sprintf("mtp_%d_embedding_norm", k), "embed", eps))
		add("h = %s", w.rms("hidden", fmt.Sprintf("mtp_%d_hidden_norm", k), "embed", eps))
		add("h = project(rename(concat([e, h], axis: embed), embed -> pair), mtp_%d_projection, pair)", k)
		to := "hidden"
		if s.aux {
			balances = append(balances, fmt.Sprintf("mtp_balance_%d", k))
			to += ", " + balances[k-1]
		}
		add(`%s = stack(%s, layers: 1, name: "mtp_%d", path: "mtp_block/mtp_layer_{layer + %[3]d}/mtp_%[3]d_transformer_layer/"%s)(h, inputs_position, inputs_segmentation)`, to, s.name, k, s.known())
		add("%s", strings.ReplaceAll(strings.Replace(norm, "x = ", "h = ", 1), "(x,", "(hidden,"))
		add("mtp_%d = cross_entropy(%s, after, axis: vocab)", k, p.logitsOf("h"))
		add("mtp_%d_loss = sum(where(mask != 0, mtp_%[1]d, 0))", k)
		add("mtp_%d_tokens = sum(cast(mask, mtp_%[1]d))", k)
		sums, counts = append(sums, fmt.Sprintf("mtp_%d_loss", k)), append(counts, fmt.Sprintf("mtp_%d_tokens", k))
	}
	add("mtp_loss = normalized(%s, by: %s + 1e-8)", strings.Join(sums, " + "), strings.Join(counts, " + "))
	add("")
	return balances
}
