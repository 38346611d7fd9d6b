package examples_test

import (
	"path/filepath"
	"strings"
	"testing"

	"ppc/driver"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/lower/stats"
	"ppc/passes"
	"ppc/passes/pass"
)

// Every example, with its gradient or training step, lowers in explicit mode as well: what
// it and the passes say of shardings leaves nothing open. What it moves is what
// it moves where the compiler chooses, but for a twentieth; some small ones
// are run, with their gradients or steps of training.
func TestExplicitMode(t *testing.T) {
	steps := bytesOfSteps(t)
	for _, file := range files(t) {
		t.Run(filepath.ToSlash(file), func(t *testing.T) {
			explicit, model := bytesIn(t, file, "explicit")
			if !model {
				return // a library
			}
			auto, known := steps[strings.TrimSuffix(filepath.ToSlash(file), ".pp")]
			if !known {
				auto, _ = bytesIn(t, file, "auto")
			}
			if explicit > auto+auto/20 {
				t.Errorf("devices receive %d bytes, %d where the compiler chooses", explicit, auto)
			}
			trains := strings.HasPrefix(filepath.Base(file), "train_")
			if !trains && file != "simple.pp" && filepath.Base(file) != "qwen3_moe.pp" {
				return
			}
			src := &driver.Source{File: file, Set: []string{"pipeline.mode=explicit"}}
			opts := driver.RunOptions{Check: true, Grad: !trains}
			if trains {
				opts.Steps = new(2) // the second takes what the first has made
			}
			if file == "train_bytes.pp" {
				src.Set = append(src.Set, smaller...)
			}
			if _, err := driver.Run(t.Context(), src, opts); err != nil {
				t.Error(err)
			}
		})
	}
}

// bytesIn is how many bytes a device receives in a step of an example in a mode, or with
// the gradient of one that does not train. It reports false of a library.
func bytesIn(t *testing.T, file, mode string) (bytes int, model bool) {
	t.Helper()
	set := []string{"pipeline.mode=" + mode}
	p, err := lang.Load(file, lang.Options{Library: true, Train: true, Set: set})
	if err == nil && p.Training == nil {
		p, err = lang.Load(file, lang.Options{Library: true, Grad: true, Set: set})
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.Module == nil {
		return 0, false
	}
	return bytesOf(t, p.Module), true
}

// bytesOf is how many bytes a device receives in a step of an example, of whose values
// that a rule of the program shards messages can name the rule: see [rulesReach].
func bytesOf(t *testing.T, m *ir.Module) (bytes int) {
	t.Helper()
	each := func(_ int, p *pass.Pass, m *ir.Module) error {
		if p.Name == "propagate" {
			rulesReach(t, m)
		}
		return nil
	}
	if err := passes.Run(m, passes.Config{Each: each}); err != nil {
		t.Fatal(err)
	}
	s, err := stats.Of(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Collectives {
		bytes += c.Moved * int(c.Executions)
	}
	return bytes
}

// Where microbatches do not fill the stages, and activations have no dimension that all
// devices of the batch divide, explicit mode gathers the rows that are added or dropped.
func TestExplicitRows(t *testing.T) {
	for _, split := range []string{"1", "2"} {
		src := &driver.Source{File: text(t, `axes { batch = 24, embed = 2, mlp = 16 }

layer block(x: f32[batch, embed]) {
  param wi: f32[embed, mlp] = normal(0.2)
  param wo: f32[mlp, embed] = normal(0.2)
  return x + dot(tanh(dot(x, wi, over: embed)), wo, over: mlp)
}

model m(x: f32[batch, embed]) {
  x = pipeline(block, layers: 4)(x)
  return loss: mean(x * x)
}

mesh { stage = 2, fsdp = 4 }

shard weights     { mlp -> fsdp }
shard activations { batch -> fsdp }

pipeline { microbatches = 3, repeats = 2, mode = explicit }
`), Set: []string{"pipeline.batch_split=" + split}}
		if _, err := driver.Run(t.Context(), src, driver.RunOptions{Check: true, Grad: true}); err != nil {
			t.Errorf("batch_split = %s: %v", split, err)
		}
	}
}
