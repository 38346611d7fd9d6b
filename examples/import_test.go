package examples_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ppc/driver"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
)

// configured is what a recording was configured with, as a command line gives it.
func (r *recording) configured(t *testing.T, skip ...string) []string {
	t.Helper()
	var meta struct{ Config map[string]any }
	if err := json.Unmarshal(r.read("meta").Data, &meta); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(meta.Config)) {
		if slices.Contains(skip, key) {
			continue
		}
		v, err := json.Marshal(meta.Config[key])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, key+"="+strings.Trim(string(v), `"`))
	}
	return out
}

// imported writes the program of a configuration and returns its file.
func imported(t *testing.T, devices int, set ...string) string {
	t.Helper()
	r, err := driver.Import(t.Context(), driver.ImportOptions{Set: set, Devices: devices})
	if err != nil {
		t.Fatalf("%v: %v", set, err)
	}
	file := filepath.Join(t.TempDir(), "imported.pp")
	if err := os.WriteFile(file, []byte(r.Text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// bare puts in place of the model of an imported program one that has its
// pipeline alone, as the layers are recorded.
func bare(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^  (x.*) = pipeline\((\w+), layers: (\w+[^)]*)\)`).FindStringSubmatch(string(text))
	name := regexp.MustCompile(`(?m)^model (\w+)`).FindStringSubmatch(string(text))
	if m == nil || name == nil {
		t.Fatalf("no pipeline in\n%s", text)
	}
	to, aux := "out", ""
	if m[1] != "x" {
		to, aux = "out, balance", ", balance: balance"
	}
	inputs, sides := ", positions: i32[batch, seq], segment_ids: i32[batch, seq]", ", positions, segment_ids"
	if strings.HasPrefix(m[2], "simple") {
		inputs, sides = "", ""
	}
	out := fmt.Sprintf(`include "imported.pp"

model %s(x: act[batch, seq, embed], dout: act[batch, seq, embed]%s) {
  %s = pipeline(%s, layers: %s)(x%s)
  return loss: sum(out * dout), out%s
}
`, name[1], inputs, to, m[2], m[3], sides, aux)
	file = filepath.Join(filepath.Dir(file), "bare.pp")
	if err := os.WriteFile(file, []byte(out), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// The layers that are imported from the configurations of the recordings, at one
// of four stages, with layers that change nothing at the others. Experts are sharded
// over devices too, with room for all tokens and with a buffer that no row overflows.
func TestImportedLayers(t *testing.T) {
	v3 := []string{"model_name=deepseek3-tiny", "override_model_config=true", "first_num_dense_layers=0", "rope_type=default", "normalization_layer_epsilon=1e-5", "mscale=1.0", "mlp_activations=[silu,linear]"}
	sharded := func(set ...string) []string {
		return append(set, "sparse_matmul=true", "ici_expert_parallelism=2", "per_device_batch_size=0.5", "num_pipeline_microbatches=2")
	}
	for _, c := range []struct {
		layer, path string   // of the parameters in files
		set         []string // besides what is recorded, and in place of it
	}{
		{"simple", "", nil}, {"simple_mlp", "", nil}, {"llama2", "", nil}, {"llama2_fused", "", nil}, {"mistral", "", nil}, {"qwen2", "", nil}, {"qwen3", "", nil},
		{"gemma", "", nil}, {"gemma2", "", nil}, {"gpt3", "", nil}, {"gpt_oss", "", nil}, {"olmo3", "", []string{"model_name=default"}},
		{"gemma3_local", "layers_1/", []string{"model_name=default"}}, {"gemma3_global", "layers_5/", []string{"model_name=default"}},
		{"mixtral_dense", "", nil}, {"mixtral_sparse", "", nil}, {"mixtral_drop", "", nil}, {"mixtral_aux", "", nil}, {"qwen3_moe", "", nil},
		{"deepseek_dense", "", []string{"first_num_dense_layers=4"}}, {"deepseek_yarn", "", []string{"first_num_dense_layers=4"}}, {"deepseek_moe", "", nil}, {"deepseek_moe_drop", "", nil},
		{"deepseek_v3_moe", "", v3},
		{"mixtral_sparse", "", sharded()}, {"qwen3_moe", "", sharded("ragged_buffer_factor=2")}, {"gpt_oss", "", sharded()},
		{"deepseek_moe", "", sharded("use_ring_of_experts=true")}, {"deepseek_v3_moe", "", sharded(append(v3, "ragged_buffer_factor=2")...)},
	} {
		t.Run(c.layer, func(t *testing.T) {
			r := record(t, "layer_"+c.layer)
			devices, set := 4, []string{"per_device_batch_size=1", "num_pipeline_microbatches=4"}
			if slices.Contains(c.set, "ici_expert_parallelism=2") {
				devices, set = 8, nil
			}
			set = append(set, c.set...)
			skip := []string{"base_num_decoder_layers", "per_device_batch_size"}
			for _, s := range c.set {
				key, _, _ := strings.Cut(s, "=")
				skip = append(skip, key)
			}
			layers := 4
			if strings.HasPrefix(c.layer, "gemma3") {
				layers = 24
			}
			set = slices.Concat(r.configured(t, skip...), set, []string{fmt.Sprintf("base_num_decoder_layers=%d", layers), "ici_pipeline_parallelism=4"})
			file := imported(t, devices, set...)
			s := &setup{program: bare(t, file)}
			paths := s.paths(t)
			const at = 1
			s.args = r.inputs(c.layer)
			leafOf := func(path string) string {
				for _, prefix := range []string{"decoder/layers/", "decoder/dense_layers/", "decoder/moe_layers/"} {
					path = strings.TrimPrefix(path, prefix)
				}
				return path
			}
			for path := range paths {
				leaf := leafOf(path)
				if strings.HasPrefix(leaf, "layers_") && !strings.HasPrefix(leaf, c.path) {
					_, leaf, _ = strings.Cut(leaf, "/")
					w := *r.read("w/" + leaf)
					s.args = append(s.args, tensorfile.Named{Name: path, Array: stack(neutral(leaf, w), neutral(leaf, w), at)})
					continue
				}
				leaf = strings.TrimPrefix(leaf, c.path)
				if !slices.Contains(r.names, leaf) {
					if !strings.HasPrefix(path, "decoder/") { // the model's own
						continue
					}
					t.Errorf("the layer has a parameter %s, which is not recorded", path)
					continue
				}
				w := *r.read("w/" + leaf)
				s.args = append(s.args, tensorfile.Named{Name: path, Array: stack(w, neutral(leaf, w), at)})
			}
			got := s.run(t, "f64", driver.RunOptions{Grad: true})
			near(t, "out", got["out"], r.read("out"), 1e-12)
			near(t, "the gradient of x", got["grad.x"], r.read("gx"), 1e-10)
			found := 0
			for path, name := range paths {
				leaf := leafOf(path)
				if !strings.HasPrefix(leaf, c.path) {
					continue
				}
				found++
				near(t, "the gradient of "+path, row(got["grad."+name], at), r.read("gw/"+strings.TrimPrefix(leaf, c.path)), 1e-10)
			}
			if found != len(r.names) {
				t.Errorf("%d parameters, %d are recorded", found, len(r.names))
			}
		})
	}
}

// The training runs that are imported from their configurations: losses of all
// steps and weights after them.
func TestImportedTraining(t *testing.T) {
	for _, name := range []string{"train_llama2_adamw_pipe", "train_llama2_sgd_subset", "train_mixtral_lb"} {
		t.Run(name, func(t *testing.T) {
			r := record(t, name)
			s := &setup{program: imported(t, 8, append(r.configured(t), "dtype=float32")...)}
			for _, name := range []string{"inputs", "targets", "inputs_position", "inputs_segmentation", "targets_segmentation"} {
				s.args = append(s.args, tensorfile.Named{Name: name, Array: *r.read(name)})
			}
			file := func(key string) string {
				if leaf, ok := strings.CutPrefix(key, "layers/"); ok {
					return "decoder/layers/" + leaf
				}
				return key
			}
			paths := s.paths(t)
			for _, key := range r.file.Names() {
				if leaf, ok := strings.CutPrefix(key, "w0/"); ok {
					s.args = append(s.args, tensorfile.Named{Name: file(leaf), Array: *r.read(key)})
				}
			}
			losses := literal(*r.read("loss"))
			got := s.run(t, "f64", driver.RunOptions{Step: func(step *driver.Step) {
				for _, o := range step.Outputs {
					if want := losses.Float(step.Number - 1); o.Name == "loss" && !(abs(o.Mean-want) <= 1e-7*want) {
						t.Errorf("step %d: the loss is %v, want %v", step.Number, o.Mean, want)
					}
				}
			}})
			for _, key := range r.file.Names() {
				if leaf, ok := strings.CutPrefix(key, "w_end/"); ok { // MaxText's rates are float32
					near(t, key, got["param."+paths[file(leaf)]], r.read(key), 1e-7)
				}
			}
		})
	}
}

func abs(x float64) float64 { return max(x, -x) }

// Heads for later tokens have the losses and gradients of a program in JAX that was
// written from the text of MaxText's, testdata/mtp/later.py, with and without a pipeline.
func TestImportedLater(t *testing.T) {
	f, err := tensorfile.Open(filepath.Join(shared.Root(t), "testdata", "mtp", "later.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &recording{t: t, file: f, have: make(map[string]*tensorfile.Array)}
	var config map[string]any
	if err := json.Unmarshal(r.read("config").Data, &config); err != nil {
		t.Fatal(err)
	}
	var set []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		set = append(set, fmt.Sprintf("%s=%v", key, config[key]))
	}
	layer := regexp.MustCompile(`\{layer \+ (\d)\}`)
	for _, mesh := range [][]string{{"ici_fsdp_parallelism=4"}, {"ici_pipeline_parallelism=2", "ici_fsdp_parallelism=2", "num_pipeline_microbatches=2"}} {
		s := &setup{program: imported(t, 4, slices.Concat(set, mesh, []string{"per_device_batch_size=1"})...)}
		for _, name := range f.Names() {
			path, weight := strings.CutPrefix(name, "w/")
			if weight || strings.HasPrefix(name, "inputs") || strings.HasPrefix(name, "targets") {
				s.args = append(s.args, tensorfile.Named{Name: path, Array: *r.read(name)})
			}
		}
		got := s.run(t, "f64", driver.RunOptions{Grad: true})
		near(t, "loss", got["loss"], r.read("loss"), 1e-12)
		paths := s.paths(t)
		for path, name := range paths {
			grad, file := got["grad."+name], layer.ReplaceAllString(path, "$1")
			if file != path { // one layer of its own
				grad = row(grad, 0)
			}
			near(t, "the gradient of "+file, grad, r.read("g/"+file), 1e-10)
		}
		if len(paths) != 9*3+3+2*3 {
			t.Errorf("%d parameters", len(paths))
		}
	}
}
