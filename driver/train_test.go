package driver

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ppc/driver/binding"
	"ppc/internal/optest"
	"ppc/internal/tensorfile"
	"ppc/ir"
)

// trained is a small model with names for policies, dropout, a table that is
// used twice and two layers outside of the pipeline.
const trained = `
axes { batch = 8, seq = 2, embed = 4, mlp = 8, vocab = 16 }

layer block(x: f64[batch, seq, embed]) {
  param wi_0, wi_1: f64[embed, mlp] = normal(0.3)
  param wo: f64[mlp, embed] = normal(0.3)
  x = checkpoint(x, "decoder_layer_input")
  h = tanh(checkpoint(dot(x, wi_0, over: embed), "mlpwi_0")) * checkpoint(dot(x, wi_1, over: embed), "mlpwi_1")
  return x + dropout(checkpoint(dot(h, wo, over: mlp), "mlpwo"), 0.2)
}

model trained(tokens: i32[batch, seq], targets: i32[batch, seq]) {
  param table: f64[vocab, embed] = normal(1)
  x = take(table, tokens, axis: vocab)
  x = pipeline(block, layers: 6)(x)
  return mean(cross_entropy(dot(x, table, over: embed), targets, axis: vocab))
}

mesh { stage = 2, data = 1, fsdp = 2 }

shard weights     { embed -> fsdp }
shard activations { batch -> data, fsdp }

pipeline { layers = 4, microbatches = 4, repeats = 2 }

train { optimizer = adamw(lr: 1e-2), steps = 2, clip_by_global_norm = 0.5 }
`

// train runs the program and returns what it writes.
func train(t *testing.T, file string, set ...string) map[string]*tensorfile.Array {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.npz")
	if _, err := Run(t.Context(), &Source{File: file, Set: set}, RunOptions{Out: out}); err != nil {
		t.Fatalf("%v: %v", set, err)
	}
	f, err := tensorfile.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	values := make(map[string]*tensorfile.Array)
	for _, name := range f.Names() {
		if values[name], err = f.Read(name); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// What training gives does not depend on mesh, schedule, or on what is kept
// and what is computed again; nor do the masks of dropout.
func TestTrainingEverywhere(t *testing.T) {
	file := write(t, "trained.pp", trained)
	want := train(t, file)
	if len(want) != 4+4+1+2*4 {
		t.Errorf("%d results, want loss, three numbers, four parameters, and their state", len(want))
	}
	for _, set := range []string{
		"mesh.stage=1 pipeline.repeats=4 pipeline.microbatches=1",
		"mesh.fsdp=1 pipeline.microbatches=8",
		"mesh.stage=4 pipeline.repeats=1 pipeline.rotate=slice_pad",
		"pipeline.layers=6 pipeline.repeats=3 pipeline.gather=once",
		"pipeline.layers_per_stage=2 pipeline.repeats=1 pipeline.checkpoint=layer",
		"pipeline.layers_per_stage=2 pipeline.repeats=1 pipeline.checkpoint=none",
		"pipeline.delay=2 pipeline.remat=minimal",
		"pipeline.checkpoint=layer pipeline.remat=save_out_proj",
		"pipeline.remat=none",
		"pipeline.checkpoint=none",
		"pipeline.save_decoder_layer_input=false pipeline.save=mlpwo",
		"pipeline.scan_iterations=false",
		"pipeline.unroll=2 pipeline.remat=save_dot_except_mlpwi",
		"pipeline.gather=per_repeat",
		"pipeline.gather=per_repeat pipeline.prefetch=ahead pipeline.microbatches=8 mesh.fsdp=1 pipeline.save_gathered=true",
		"pipeline.checkpoint=repeat",
		"pipeline.checkpoint_place=outside",
		"pipeline.checkpoint=layer pipeline.checkpoint_place=outside pipeline.save=mlpwi_0",
		"pipeline.gather=per_repeat pipeline.checkpoint=repeat pipeline.scan_repeats=false",
		"pipeline.remat=minimal_offloaded",
		"pipeline.offload=mlpwo pipeline.checkpoint=layer",
		"mesh.data=2 mesh.fsdp=1 train.shard_optimizer_over_data=true",
	} {
		got := train(t, file, strings.Fields(set)...)
		for name, w := range want {
			if got[name] == nil {
				t.Errorf("%s: there is no %s", set, name)
				continue
			}
			if _, rel := optest.MaxDiff(binding.LiteralOf(got[name]), binding.LiteralOf(w)); !(rel <= 1e-11) {
				t.Errorf("%s: %s differs by %g", set, name, rel)
			}
		}
	}
}

// A step that takes the same batch several times is a step that takes it once.
func TestAccumulation(t *testing.T) {
	file := write(t, "trained.pp", strings.Replace(trained, ", 0.2)", ", 0)", 1))
	args := filepath.Join(t.TempDir(), "args.npz")
	tokens := iota(ir.I32, 8, 2)
	if err := writeArrays(t.Context(), args, []tensorfile.Named{{Name: "tokens", Array: tokens}, {Name: "targets", Array: tokens}}); err != nil {
		t.Fatal(err)
	}
	losses := func(set ...string) (out []float64) {
		opts := RunOptions{Args: args, Step: func(s *Step) { out = append(out, s.Loss().Mean) }}
		if _, err := Run(t.Context(), &Source{File: file, Set: set}, opts); err != nil {
			t.Fatal(err)
		}
		return out
	}
	want, got := losses(), losses("train.gradient_accumulation=3")
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-13*want[i] {
			t.Errorf("step %d: the loss is %.17g, want %.17g", i+1, got[i], want[i])
		}
	}
}
