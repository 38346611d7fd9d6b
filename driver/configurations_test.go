package driver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"ppc/ir/lang/config"
)

// A drawer makes choices from bytes; when they are used up it takes the first
// of everything, so that every input is a configuration.
type drawer struct{ data []byte }

// n is a number from 0 to k-1.
func (d *drawer) n(k int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := int(d.data[0])
	d.data = d.data[1:]
	return b % k
}

// rarely is true once in k times.
func (d *drawer) rarely(k int) bool { return d.n(k) == k-1 }

func (d *drawer) of(words ...string) string { return words[d.n(len(words))] }

// some are those of words that chance takes, in their order.
func (d *drawer) some(words ...string) []string {
	var out []string
	for _, w := range words {
		if d.rarely(3) {
			out = append(out, w)
		}
	}
	return out
}

// program is a model, a mesh, rules and settings, legal or not. Programs are
// small: most run in some ten milliseconds. Sizes mostly fit.
func (d *drawer) program() string {
	var b strings.Builder
	stages, lps, repeats := d.n(4)+1, d.n(2)+1, d.n(3)+1
	microbatches := stages * (d.n(2) + 1)
	if d.rarely(4) {
		microbatches = d.n(9) + 1
	}
	layers, batch := stages*lps*repeats, microbatches*d.size(1, 2, 4, 6)
	if d.rarely(8) {
		layers, batch = layers+d.n(3), d.n(16)+1
	}
	fmt.Fprintf(&b, "types { t = %s }\n\n", d.of("f64", "f32", "bf16", "f16"))
	fmt.Fprintf(&b, "axes { batch = %d, seq = %d, embed = %d, mlp = %d, vocab = %d }\n\n", batch, d.size(2, 4, 6, 3), d.size(4, 12, 6), d.size(12, 8, 5), d.size(12, 8))
	aux := d.rarely(4)
	b.WriteString(layerText(aux))
	b.WriteString(d.model(layers, aux))
	b.WriteString(d.mesh(stages))
	b.WriteString(d.rules())
	d.blocks(&b, map[string]int{"microbatches": microbatches, "repeats": repeats, "layers_per_stage": lps})
	return b.String()
}

func (d *drawer) size(ns ...int) int { return ns[d.n(len(ns))] }

// layerText is a residual block, with an auxiliary scalar or without.
func layerText(aux bool) string {
	x := `layer block(x: t[batch, seq, embed]) {
  param scale: t[embed]      = ones
  param w:     t[embed, mlp] = normal(0.1)
  param v:     t[mlp, embed] = normal(0.1)
  x = checkpoint(x, "decoder_layer_input")
  h = tanh(checkpoint(dot(rmsnorm(x, scale, over: embed), w, over: embed), "mlpwi"))
  y = x + checkpoint(dot(h, v, over: mlp), "mlpwo")
  return `
	if aux {
		return x + "y, mean(h * h)\n}\n\n"
	}
	return x + "y\n}\n\n"
}

// model is a table, layers in a pipeline, in a stack or in one after the other,
// and a loss.
func (d *drawer) model(layers int, aux bool) string {
	to, loss := "x", "mean(x * x)"
	if aux {
		to, loss = "x, a", "mean(x * x) + 0.1 * a"
	}
	b := "model m(tokens: i32[batch, seq]) {\n  param table: t[vocab, embed] = normal(1)\n  x = take(table, tokens, axis: vocab)\n"
	switch how := d.n(8); {
	case how < 6:
		b += fmt.Sprintf("  %s = pipeline(block, layers: %d)(x)\n", to, layers)
	case how == 6:
		b += fmt.Sprintf("  %s = stack(block, layers: %d)(x)\n", to, layers)
	default:
		b += fmt.Sprintf("  x = tanh(x)\n  %s = pipeline(block, layers: %d)(x)\n  x = x * x\n", to, layers)
	}
	if d.rarely(4) {
		b += "  x = dot(x, table, over: embed)\n"
	}
	return b + "  return " + loss + "\n}\n\n"
}

var drawnAxes = []string{"data", "fsdp", "tensor", "context", "expert", "fsdp_transpose"}

func (d *drawer) mesh(stages int) string {
	axes := []string{fmt.Sprintf("stage = %d", stages)}
	for _, a := range d.some(drawnAxes...) {
		if len(axes) < 3 {
			axes = append(axes, a+" = "+d.of("2", "2", "2", "2", "2", "3", "1", "4"))
		}
	}
	return "mesh { " + strings.Join(axes, ", ") + " }\n\n"
}

func (d *drawer) rules() string {
	of := func(block string, axes ...string) string {
		var rules []string
		for _, a := range d.some(axes...) {
			to := []string{d.of(drawnAxes...)}
			if d.rarely(4) {
				to = append(to, d.of(drawnAxes...))
			}
			rules = append(rules, a+" -> "+strings.Join(to, ", "))
		}
		if rules == nil {
			return ""
		}
		return "shard " + block + " { " + strings.Join(rules, "; ") + " }\n"
	}
	weights := of("weights", "embed", "mlp", "vocab")
	return weights + of("activations", "batch", "seq", "embed", "mlp") + "\n"
}

// blocks writes the pipeline and train blocks: those of fit mostly as they are,
// each other setting seldom.
func (d *drawer) blocks(b *strings.Builder, fit map[string]int) {
	for _, block := range []string{"pipeline", "train"} {
		fmt.Fprintf(b, "%s {\n", block)
		for _, s := range config.SettingTable {
			if s.Block != block {
				continue
			}
			often := 10
			switch s.Key {
			case "optimizer":
				often = 2
			case "data", "seed", "layers":
				continue // files, and other numbers of the same kind
			case "compat":
				continue // defects of others
			}
			switch n, ok := fit[s.Key]; {
			case ok && !d.rarely(20):
				fmt.Fprintf(b, "  %s = %d\n", s.Key, n)
			case d.rarely(often):
				fmt.Fprintf(b, "  %s = %s\n", s.Key, d.value(s))
			}
		}
		b.WriteString("}\n")
	}
}

// value is one for s, mostly of the right kind.
func (d *drawer) value(s config.SettingRow) string {
	if d.rarely(40) {
		return d.of("-1", "0", "1.5", "1e30", "9223372036854775807", "true", "nothing", `"text"`, "[mlpwi]", "[]", "f(x: 1)")
	}
	switch {
	case s.Key == "optimizer":
		return d.of("sgd(lr: 0.1)", "adamw(lr: 1e-3)", "adam(lr: 1e-3)", "adamw(lr: 1e-2, weight_decay: 0.1)", "sgd")
	case s.Key == "remat" && d.rarely(4):
		return "custom { mlpwi = " + d.of("device", "remat", "offload") + ", mlpwo = " + d.of("device", "remat", "offload") + " }"
	case s.Kind == config.Flag:
		return d.of("true", "false")
	case len(s.Words) > 0:
		return d.of(s.Words...)
	case s.Key == "save" || s.Key == "offload":
		return d.of("[mlpwi]", "[mlpwo]", "mlpwi", "[mlpwi, mlpwo]", "[decoder_layer_input]", "[other]")
	case s.Key == "clip_by_global_norm":
		return d.of("1", "0.01")
	}
	return d.of("1", "2", "4", "3", "8", "6")
}

// sentence is how every refusal of a configuration begins: a place in its text.
var sentence = regexp.MustCompile(`^in\.pp:\d+:\d+: \S`)

// maxSentences is how many lines a refusal of a small configuration has at most:
// three for each error.
const maxSentences = 60

// lawful checks that a configuration computes what the layers in sequence do,
// or is refused for a reason at a place.
func lawful(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	t.Chdir(t.TempDir())
	src := &Source{File: "-", Stdin: strings.NewReader(text)}
	warned := make(map[string]bool)
	src.Warn = func(w *Warning) { warned[w.Warning] = true }
	_, err := Run(ctx, src, RunOptions{Check: true})
	if err == nil {
		return
	}
	var differs *Mismatch
	var bug *Bug
	msg := strings.ReplaceAll(err.Error(), stdinName, "in.pp")
	switch {
	case errors.As(err, &bug):
		t.Errorf("%v\n%s\n\n%s", err, bug.Stack, text)
	case errors.As(err, &differs):
		t.Errorf("%v\n\n%s", err, text)
	case errors.Is(err, context.DeadlineExceeded):
		t.Errorf("not done in a minute:\n%s", text)
	case !sentence.MatchString(msg) || strings.Count(msg, "\n") >= maxSentences:
		t.Errorf("refused without a place or in too many words:\n%s\n\n%s", msg, text)
	}
}

// Random configurations, of a fixed seed.
func TestConfigurations(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 60 {
		data := make([]byte, 120)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		lawful(t, (&drawer{data}).program())
	}
}

// Every configuration computes what the layers in sequence do, or is refused in
// a sentence.
func FuzzConfigurations(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a mesh, rules and settings are drawn from these bytes, one choice each"))
	f.Fuzz(func(t *testing.T, data []byte) { lawful(t, (&drawer{data}).program()) })
}
