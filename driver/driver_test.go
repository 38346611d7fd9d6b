package driver

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ppc/driver/binding"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/lang"
)

// tiny is six layers, four of them pipelined, with an input that numbers the
// rows of a table, in the element type t.
const tiny = `
types { t = f64 }

axes { batch = 8, seq = 2, embed = 4, mlp = 8, vocab = 16 }

layer block(x: t[batch, seq, embed]) {
  param w: t[embed, mlp] = normal(0.1)
  param v: t[mlp, embed] = normal(0.1)
  return x + dot(tanh(dot(x, w, over: embed)), v, over: mlp)
}

model tiny(tokens: i32[batch, seq]) {
  param table: t[vocab, embed] = normal(1)
  x = take(table, tokens, axis: vocab)
  x = pipeline(block, layers: 6)(x)
  return mean(x * x)
}

mesh { stage = 2, fsdp = 2 }

shard weights     { embed -> fsdp }
shard activations { batch -> fsdp }

pipeline { layers = 4, microbatches = 4, repeats = 2 }
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// loss runs a program and returns its only output.
func loss(t *testing.T, src *Source, opts RunOptions) float64 {
	t.Helper()
	r, err := Run(t.Context(), src, opts)
	if err != nil {
		t.Fatalf("%s %v: %v", src.File, src.Set, err)
	}
	if len(r.Outputs) != 1 || !r.Outputs[0].Scalar() {
		t.Fatalf("outputs %v, want one number", r.Outputs)
	}
	return r.Outputs[0].Mean
}

// What is made up, and so what comes out, does not depend on mesh or schedule.
func TestSameNumbersEverywhere(t *testing.T) {
	file := write(t, "tiny.pp", tiny)
	want := loss(t, &Source{File: file}, RunOptions{Check: true})
	for _, set := range [][]string{
		{"mesh.stage=1", "pipeline.repeats=4", "pipeline.microbatches=1"},
		{"mesh.fsdp=1", "pipeline.microbatches=8"},
		{"mesh.stage=4", "pipeline.repeats=1"},
		{"pipeline.layers=6", "pipeline.repeats=3"},
		{"pipeline.rotate=slice_pad", "pipeline.gather=once"},
		{"pipeline.layers_per_stage=2", "pipeline.repeats=1"},
	} {
		got := loss(t, &Source{File: file, Set: set}, RunOptions{})
		if math.Abs(got-want) > 1e-13*math.Abs(want) {
			t.Errorf("%v: %.17g, want %.17g", set, got, want)
		}
	}
	seed := uint64(5)
	if got := loss(t, &Source{File: file}, RunOptions{Seed: &seed}); got == want {
		t.Error("another seed gives the same loss")
	}
}

// Integers that number the elements of an axis are made up below its size.
func TestBounds(t *testing.T) {
	p, err := (&Source{File: "../examples/llama.pp"}).load(t.Context(), lang.Options{})
	if err != nil {
		t.Fatal(err)
	}
	params, _ := binding.Ports(p.m, binding.ByName)
	for _, p := range params {
		want := 0
		if p.Kind == "input" {
			want = 512 // vocab
		}
		if p.Max != want {
			t.Errorf("%s is below %d, want %d", p.Name, p.Max, want)
		}
	}
}

// A program stopped after any pass and printed goes on where it stopped.
func TestResume(t *testing.T) {
	file := write(t, "tiny.pp", tiny)
	want := loss(t, &Source{File: file}, RunOptions{})
	for _, p := range Passes() {
		text, err := Lower(t.Context(), &Source{File: file}, LowerOptions{After: p.Name})
		if err != nil {
			t.Fatal(err)
		}
		resumed := write(t, "resumed.mlir", text)
		if got := loss(t, &Source{File: resumed}, RunOptions{}); got != want {
			t.Errorf("after %s: %.17g, want %.17g", p.Name, got, want)
		}
	}
}

// HLO text runs to the same numbers on the same parts.
func TestHLO(t *testing.T) {
	file, shards := write(t, "tiny.pp", tiny), t.TempDir()
	want := loss(t, &Source{File: file}, RunOptions{Shards: shards})
	text, err := Lower(t.Context(), &Source{File: file}, LowerOptions{Emit: "hlo"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), &Source{File: write(t, "tiny.hlo", text)}, RunOptions{Args: filepath.Join(shards, "args.npz"), Check: true})
	if err != nil {
		t.Fatal(err)
	}
	if o := r.Outputs[0]; o.Min != want || o.Max != want || o.Type() != "f64[4]" {
		t.Errorf("%s from %g to %g, want %g on each of 4 devices", o.Type(), o.Min, o.Max, want)
	}
}

func TestOutFile(t *testing.T) {
	file, out := write(t, "tiny.pp", tiny), filepath.Join(t.TempDir(), "out.safetensors")
	want := loss(t, &Source{File: file}, RunOptions{Out: out})
	f, err := tensorfile.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := f.Read("loss")
	if err != nil {
		t.Fatal(err)
	}
	if got := binding.LiteralOf(a).Float(0); got != want || len(f.Names()) != 1 {
		t.Errorf("the file holds %v, loss %g, want %g", f.Names(), got, want)
	}
}

func TestDumps(t *testing.T) {
	dir := t.TempDir()
	if _, err := Lower(t.Context(), &Source{File: write(t, "tiny.pp", tiny)}, LowerOptions{DumpTo: dir}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 5 {
		t.Fatalf("dumps %v (%v)", files, err)
	}
	last := ""
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) == last {
			t.Errorf("%s says the same as the dump before it", f)
		}
		last = string(text)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, &Source{File: write(t, "tiny.pp", tiny)}, RunOptions{})
	var stop *StopError
	if !errors.As(err, &stop) || ExitCode(err) != ExitInterrupted {
		t.Errorf("error %v, want the context's", err)
	}
}

// A file of inputs alone leaves the parameters to their initialisers, and says so.
func TestNotes(t *testing.T) {
	file := write(t, "tiny.pp", tiny)
	args := writeArgs(t, tensorfile.Named{Name: "tokens", Array: iota(ir.I64, 8, 2)}, tensorfile.Named{Name: "other", Array: iota(ir.F32)})
	var notes []string
	loss(t, &Source{File: file}, RunOptions{Args: args, Note: func(s string) { notes = append(notes, s) }})
	text := strings.Join(notes, "\n")
	for _, want := range []string{"has no table, block.w, block.v: made up from seed 0", "nothing takes other"} {
		if !strings.Contains(text, want) {
			t.Errorf("notes %q, want one with %q", text, want)
		}
	}
}

// A program that says nothing of devices may have ops that are made of others: the pass
// that makes them runs.
func TestRunComposed(t *testing.T) {
	src := &Source{File: write(t, "a.mlir", `func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    %2 = stablehlo.add %a, %a : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = chlo.zeta %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}`)}
	if err := Check(t.Context(), []*Source{src}); err != nil {
		t.Error(err)
	}
	if _, err := Run(t.Context(), src, RunOptions{}); err != nil {
		t.Error(err)
	}
}

// A reduction of tensors is one that the verifier takes and nothing computes: it is refused
// where it stands, whatever is asked for.
func TestCombinesTensors(t *testing.T) {
	src := &Source{File: write(t, "a.mlir", `func.func @main(%a: tensor<4x5xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.reduce(%a init: %i) across dimensions = [1] : (tensor<4x5xf32>, tensor<4xf32>) -> tensor<4xf32>
   reducer(%x: tensor<4xf32>, %y: tensor<4xf32>) {
    %1 = stablehlo.add %x, %y : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}`)}
	_, lowered := Lower(t.Context(), src, LowerOptions{})
	_, run := Run(t.Context(), src, RunOptions{})
	for _, err := range []error{Check(t.Context(), []*Source{src}), lowered, run} {
		if want := "stablehlo.reduce: argument 0 of the region is tensor<4xf32>"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a.mlir:2:8") || ExitCode(err) != ExitInput {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
