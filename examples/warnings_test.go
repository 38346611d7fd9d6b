package examples_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/driver"
	"ppc/internal/shared"
	"ppc/ir/lang"
)

// changes are single changes of an example's settings; what else they need to be
// legal, such as a batch that divides, stands behind them.
var changes = [][]string{
	{"mesh.data=2", "axes.batch=32"},
	{"mesh.fsdp=4", "axes.batch=32"},
	{"mesh.tensor=2"},
	{"mesh.context=2"},
	{"mesh.expert=2", "axes.batch=32"},
	{"mesh.stage=2"},
	{"mesh.stage=1"},
	{"train.gradient_accumulation=2"},
	{"train.gradient_accumulation=2", "mesh.data=2", "axes.batch=32"},
	{"train.gradient_accumulation=2", "mesh.tensor=2"},
	{"train.gradient_accumulation=2", "mesh.context=2"},
	{"train.gradient_accumulation=2", "mesh.expert=2", "axes.batch=32"},
	{"train.shard_optimizer_over_data=true", "mesh.data=2", "axes.batch=32"},
	{"train.shard_optimizer_over_data=true", "mesh.data=2", "axes.batch=32", "train.gradient_accumulation=2"},
	{"train.reduce_gradients=per_batch", "train.shard_optimizer_over_data=true", "mesh.data=2", "axes.batch=32", "train.gradient_accumulation=2"},
	{"train.clip_by_global_norm=1"},
	{"train.optimizer=sgd(lr: 1e-3, momentum: 0.9)"},
	{"train.dtype=f64"},
	{`train.params=custom { "*norm*" = frozen }`},
	{"pipeline.gather=once"},
	{"pipeline.gather=per_repeat"},
	{"pipeline.prefetch=ahead", "pipeline.gather=per_repeat"},
	{"pipeline.save_gathered=true", "pipeline.gather=per_repeat"},
	{"pipeline.gather_dtype=bf16"},
	{"pipeline.rotate=slice_pad"},
	{"pipeline.delay=2"},
	{"pipeline.remat=none"},
	{"pipeline.remat=minimal"},
	{"pipeline.remat=minimal_offloaded"},
	{"pipeline.remat=save_qkv_proj"},
	{"pipeline.save_decoder_layer_input=false"},
	{"pipeline.checkpoint=layer"},
	{"pipeline.checkpoint=repeat"},
	{"pipeline.checkpoint=none"},
	{"pipeline.checkpoint_place=outside"},
	{"pipeline.scan_iterations=false"},
	{"pipeline.scan_repeats=false"},
	{"pipeline.scan_layers=false"},
	{"pipeline.unroll=2"},
	{"pipeline.skip_bubbles=true"},
	{"pipeline.combine=1000000"},
	{"pipeline.mode=explicit"},
	{"pipeline.repeats=1", "pipeline.layers_per_stage=2"},
}

// asked are the warnings that follow from what a change asks for: by change and
// lint, in which examples, and why.
var asked = []struct{ change, lint, examples, why string }{
	{"mesh.fsdp=4", "unused-mesh-axis", "simple.pp", "its rules shard along data alone"},
	{"mesh.tensor=2", "unused-mesh-axis", "simple.pp", "its rules shard along data alone"},
	{"mesh.context=2", "unused-mesh-axis", "", "no rule of the example shards a sequence along context"},
	{"mesh.expert=2", "unused-mesh-axis", "", "the example has no experts"},
}

// known are warnings that nobody asked for, and what the compiler does there.
var known = []struct{ change, lint, examples, why string }{
	{"axes.batch=32", "involuntary-replication", "llama_sp.pp", "the first term of the table's gradient is gathered along tensor for a sum that is then taken where its parts are"},
}

// Nothing that an example asks for, and no setting of one, is linted as a
// warning, but what the setting asks for. Every third change is tried on one
// example; with PPC_LINT=each every change is, with PPC_LINT=all on all examples.
func TestNoWarnings(t *testing.T) {
	models := slices.DeleteFunc(files(t), func(file string) bool {
		p, err := lang.Load(file, lang.Options{Library: true})
		return err != nil || p.Module == nil || ofFullSize.MatchString(file)
	})
	for _, file := range models {
		t.Run(filepath.ToSlash(file), func(t *testing.T) {
			t.Parallel()
			noWarnings(t, file, nil)
		})
	}
	which := shared.Setting(t, "PPC_LINT")
	all := which == "all"
	for i, change := range changes {
		if which == "" && i%3 > 0 {
			continue
		}
		t.Run(change[0], func(t *testing.T) {
			t.Parallel()
			legal := 0
			for k := range models {
				file := models[(7*i+k)%len(models)]
				if !all && (legal > 0 || slow(file, change)) {
					continue
				}
				if noWarnings(t, file, change) {
					legal++
				}
			}
			if legal == 0 {
				t.Errorf("%s is legal in no example", strings.Join(change, ", "))
			}
		})
	}
}

// slow reports whether a change makes a program of some ten thousand operations
// of an example.
func slow(file string, change []string) bool {
	return change[0] == "pipeline.scan_iterations=false" && filepath.Dir(file) != "maxtext" || strings.HasPrefix(filepath.Base(file), "train_")
}

// noWarnings lints an example with settings; it reports whether they are legal,
// and each has an effect there: else it is for another example.
func noWarnings(t *testing.T, file string, set []string) bool {
	t.Helper()
	found, err := driver.Lint(t.Context(), &driver.Source{File: file, Set: set}, driver.LintOptions{Severity: "warning"})
	if err != nil {
		if set == nil {
			t.Error(err)
		}
		return false
	}
	if set != nil && slices.ContainsFunc(found, func(f *driver.Finding) bool { return f.Lint == "unused-setting" }) {
		return false
	}
	for _, f := range found {
		if !isAsked(file, set, f.Lint) {
			t.Errorf("%s with %s: %s: %s [%s]", filepath.ToSlash(file), strings.Join(set, ", "), driver.PlaceText(f.Pos), f.Msg, f.Lint)
		}
	}
	return true
}

func isAsked(file string, set []string, lint string) bool {
	for _, a := range slices.Concat(asked, known) {
		if a.lint == lint && slices.Contains(set, a.change) && (a.examples == "" || slices.Contains(strings.Fields(a.examples), filepath.ToSlash(file))) {
			return true
		}
	}
	return false
}
