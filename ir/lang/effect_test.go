package lang

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ppc/internal/diag"
	"ppc/ir/lang/config"
)

// always are the settings that act on every program.
var always = []string{"train.optimizer", "train.seed", "hardware.memory", "hardware.preset"}

// bare is a program in which no setting but those of always has an effect.
const bare = `axes { batch = 16, embed = 16 }

model bare(x: f32[batch, embed]) {
  param w: f32[embed] = ones
  return mean(x * w)
}
`

// rich is a program in which every setting has one.
const rich = `axes { batch = 48, embed = 16, mlp = 32 }

layer block(x: f32[batch, embed]) {
  param w: f32[embed, mlp] = normal(1)
  param v: f32[mlp, embed] = normal(1)
  x = checkpoint(x, "decoder_layer_input")
  return x + dot(checkpoint(tanh(dot(x, w, over: embed)), "mlpwi"), v, over: mlp)
}

model rich(x: f32[batch, embed]) {
  return mean(pipeline(block, layers: 15)(x))
}

mesh { stage = 3, data = 2, fsdp = 2 }

shard weights     { embed -> fsdp }
shard activations { batch -> data, fsdp }
`

// besides are the settings that the rich program has, and those that a setting
// goes with.
var besides = map[string][]string{
	"pipeline":                  {"microbatches = 6", "repeats = 2", "layers_per_stage = 2", "layers = 12"},
	"train":                     {"optimizer = sgd(lr: 0.1)"},
	"train.reduce_gradients":    {"gradient_accumulation = 2", "shard_optimizer_over_data = true"},
	"pipeline.pad_layers":       {"layers = 11"},
	"pipeline.prefetch":         {"gather = per_repeat"},
	"pipeline.save_gathered":    {"gather = per_repeat"},
	"pipeline.compat":           {"gather = per_repeat"},
	"pipeline.scan_repeats":     {"checkpoint = repeat"},
	"pipeline.checkpoint_place": {"checkpoint = layer"},
}

// other is a value of a setting that is not its default, for the rich program.
func other(row *config.SettingRow) string {
	switch row.Key {
	case "save", "offload":
		return "[mlpwi]"
	case "microbatches":
		return "6"
	case "layers":
		return "12"
	case "remat":
		return "minimal"
	case "optimizer":
		return "sgd(lr: 0.1)"
	case "params":
		return `custom { "*.v" = frozen }`
	case "data":
		return `"data.npz"`
	}
	switch row.Kind {
	case config.Flag:
		return fmt.Sprint(row.Def != true)
	case config.Word:
		return row.Words[1]
	}
	return "2"
}

// Every setting with a value of its own acts, or something is said of it where it
// stands.
func TestSettingsAct(t *testing.T) {
	for i := range config.SettingTable {
		row := &config.SettingTable[i]
		name := row.Block + "." + row.Key
		t.Run(name, func(t *testing.T) {
			said, _ := saidOf(t, programWith(row, bare))
			if want := !slices.Contains(always, name); said != want {
				t.Errorf("in a program without anything that it is about, something is said of it: %v, want %v", said, want)
			}
			if said, what := saidOf(t, programWith(row, rich, slices.Concat(besides[row.Block], besides[name])...)); said {
				t.Errorf("in a program that has what it is about: %s", what)
			}
			for _, c := range row.Acts {
				if config.Conditions()[c] == nil {
					t.Errorf("there is no condition %q", c)
				}
			}
		})
	}
}

// saidOf reports whether something is said of a program, and what.
func saidOf(t *testing.T, text string) (bool, string) {
	t.Helper()
	p, err := loadArgs(text, nil)
	var list diag.List
	if err == nil {
		list = p.Warnings
	} else if !errors.As(err, &list) {
		t.Fatal(err)
	}
	return len(list) > 0, list.Error()
}

// programWith is text with the setting of row, and with the settings of others.
func programWith(row *config.SettingRow, text string, others ...string) string {
	var kept []string // of several settings of one key the last
	for _, s := range append(slices.Clone(others), row.Key+" = "+other(row)) {
		key, _, _ := strings.Cut(s, " =")
		kept = append(slices.DeleteFunc(kept, func(o string) bool { return strings.HasPrefix(o, key+" =") }), s)
	}
	return fmt.Sprintf("%s\n%s { %s }\n", text, row.Block, strings.Join(kept, ", "))
}
