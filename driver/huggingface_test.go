package driver_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/driver"
	"ppc/internal/golden"
	"ppc/internal/optest"
	"ppc/internal/tensorfile"
	"ppc/ir"
)

const hfSizes = "base_emb_dim=16 base_mlp_dim=24 vocab_size=32 max_target_length=8 base_num_query_heads=4 base_num_kv_heads=2 base_num_decoder_layers=2 dtype=float32 per_device_batch_size=1"

// hfModels are the small models of testdata/huggingface, which tools/hf_record.py
// makes, as configurations of MaxText.
var hfModels = []struct {
	name    string
	devices int
	set     string
}{
	{"llama", 2, "decoder_block=llama2 head_dim=4 normalization_layer_epsilon=1e-6 ici_pipeline_parallelism=2"},
	{"llama31", 2, "decoder_block=llama2 head_dim=4 normalization_layer_epsilon=1e-6 rope_type=llama3.1 rope_max_timescale=500000 ici_tensor_parallelism=2"},
	{"qwen2", 2, "decoder_block=qwen2 head_dim=4 attention_bias=true normalization_layer_epsilon=1e-6 ici_pipeline_parallelism=2"},
	{"qwen3", 2, "decoder_block=qwen3 head_dim=8 use_qk_norm=true normalization_layer_epsilon=1e-6"},
	{"qwen3_moe", 2, "decoder_block=qwen3_moe head_dim=8 use_qk_norm=true normalization_layer_epsilon=1e-6 num_experts=4 num_experts_per_tok=2 base_moe_mlp_dim=12 norm_topk_prob=true ici_expert_parallelism=2"},
	{"mixtral", 2, "decoder_block=mixtral head_dim=4 normalization_layer_epsilon=1e-5 num_experts=4 num_experts_per_tok=2 base_moe_mlp_dim=24 ici_pipeline_parallelism=2"},
	{"gemma", 2, "decoder_block=gemma head_dim=8 normalization_layer_epsilon=1e-6 mlp_activations=[gelu,linear] logits_via_embedding=true ici_pipeline_parallelism=2"},
	{"gemma2", 2, "decoder_block=gemma2 head_dim=8 normalization_layer_epsilon=1e-6 mlp_activations=[gelu,linear] logits_via_embedding=true sliding_window_size=3 attn_logits_soft_cap=50 final_logits_soft_cap=30 ici_pipeline_parallelism=2"},
	{"gemma3", 2, "decoder_block=gemma3 head_dim=8 normalization_layer_epsilon=1e-6 mlp_activations=[gelu,linear] logits_via_embedding=true sliding_window_size=3 use_qk_norm=true base_num_decoder_layers=6 local_rope_max_timescale=10000 rope_max_timescale=1000000"},
	{"deepseek_v3", 2, "decoder_block=deepseek model_name=deepseek3-tiny override_model_config=true rope_type=default attention_type=mla normalization_layer_epsilon=1e-6 q_lora_rank=12 kv_lora_rank=10 qk_nope_head_dim=8 qk_rope_head_dim=4 v_head_dim=6 first_num_dense_layers=1 base_num_decoder_layers=3 num_experts=8 num_experts_per_tok=2 base_moe_mlp_dim=12 shared_experts=1 routed_score_func=sigmoid routed_bias=true routed_scaling_factor=2.5 n_routing_groups=2 topk_routing_group=1 base_num_kv_heads=4 mlp_activations=[silu,linear] ici_pipeline_parallelism=2"},
	{"deepseek_yarn", 2, "decoder_block=deepseek model_name=deepseek3-tiny override_model_config=true rope_type=yarn original_max_position_embeddings=16 max_position_embeddings=640 rope_factor=40 mscale=1 attention_type=mla normalization_layer_epsilon=1e-6 q_lora_rank=12 kv_lora_rank=10 qk_nope_head_dim=8 qk_rope_head_dim=4 v_head_dim=6 first_num_dense_layers=1 base_num_decoder_layers=3 num_experts=8 num_experts_per_tok=2 base_moe_mlp_dim=12 shared_experts=1 routed_score_func=sigmoid routed_bias=true routed_scaling_factor=2.5 n_routing_groups=2 topk_routing_group=1 base_num_kv_heads=4 mlp_activations=[silu,linear] ici_pipeline_parallelism=2"},
	{"deepseek_v2", 2, "decoder_block=deepseek rope_type=default attention_type=mla normalization_layer_epsilon=1e-6 q_lora_rank=0 kv_lora_rank=10 qk_nope_head_dim=8 qk_rope_head_dim=4 v_head_dim=6 first_num_dense_layers=1 base_num_decoder_layers=3 num_experts=8 num_experts_per_tok=2 base_moe_mlp_dim=12 shared_experts=1 routed_score_func=softmax base_num_kv_heads=4"},
}

// hfProgram writes the program of a small model, which returns logits too.
func hfProgram(t *testing.T, i int) string {
	t.Helper()
	m := hfModels[i]
	given := make(map[string]string)
	for _, s := range strings.Fields(hfSizes + " " + m.set) {
		key, value, _ := strings.Cut(s, "=")
		given[key] = value
	}
	var set []string
	for _, key := range slices.Sorted(maps.Keys(given)) {
		set = append(set, key+"="+given[key])
	}
	r, err := driver.Import(t.Context(), driver.ImportOptions{Set: set, Devices: m.devices, Hub: true})
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	text := strings.Replace(r.Text, "\n}\n\nmesh", ", logits\n}\n\nmesh", 1)
	file := filepath.Join(t.TempDir(), m.name+".pp")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

func hfFile(name string) string { return filepath.Join("..", "testdata", "huggingface", name) }

// With the weights that transformers wrote, programs give its logits.
func TestHuggingFaceLogits(t *testing.T) {
	for i, m := range hfModels {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			logits := golden.Arrays(t, hfFile(m.name+".logits.npz"))
			args := []tensorfile.Named{{Name: "inputs", Array: *logits["tokens"]}}
			ones := ir.Tensor(ir.I32, 2, 8)
			positions := make([]float64, 16)
			for i := range positions {
				positions[i] = float64(i % 8)
			}
			args = append(args, tensorfile.Named{Name: "inputs_position", Array: tensorfile.Array{DType: "i32", Shape: ones.Shape, Data: ir.Floats64(ones, positions...).Data}},
				tensorfile.Named{Name: "inputs_segmentation", Array: tensorfile.Array{DType: "i32", Shape: ones.Shape, Data: ir.SplatOf(ones, 1).Expand()}})
			for name, a := range golden.Arrays(t, hfFile(m.name+".safetensors")) {
				args = append(args, tensorfile.Named{Name: name, Array: *a})
			}
			in, out := filepath.Join(dir, "in.safetensors"), filepath.Join(dir, "out.npz")
			w, err := os.Create(in)
			if err != nil {
				t.Fatal(err)
			}
			if err := tensorfile.Write(w, in, args); err != nil {
				t.Fatal(err)
			}
			w.Close()
			zero := 0
			src := &driver.Source{File: hfProgram(t, i), Set: []string{"types.act=f64", "types.weight=f64"}}
			if _, err := driver.Run(t.Context(), src, driver.RunOptions{Args: in, Out: out, Steps: &zero}); err != nil {
				t.Fatal(err)
			}
			got, want := golden.Arrays(t, out)["logits"], logits["logits"]
			if got == nil {
				t.Fatal("there are no logits")
			}
			type literal = ir.Literal
			if abs, rel := optest.MaxDiff(&literal{Type: ir.Tensor(ir.F64, got.Shape...), Data: got.Data}, &literal{Type: ir.Tensor(ir.F64, want.Shape...), Data: want.Data}); !(rel <= 1e-6) {
				t.Errorf("logits differ by %g, %g of the largest", abs, rel)
			}
		})
	}
}

// Weights that are read and written again are the same bytes under the same names,
// in one file, in several with an index, and by way of an .npz file.
func TestHuggingFaceRoundTrip(t *testing.T) {
	for i, m := range hfModels {
		dir, file, program := t.TempDir(), hfFile(m.name+".safetensors"), hfProgram(t, i)
		want := golden.Arrays(t, file)
		from := file
		for _, name := range []string{"one.safetensors", "many.safetensors.index.json", "state.npz", "last.safetensors"} {
			to := filepath.Join(dir, name)
			if err := driver.Export(t.Context(), &driver.Source{File: program}, driver.ExportOptions{Args: from, Out: to, Shard: 5000}); err != nil {
				t.Fatalf("%s: %v", m.name, err)
			}
			got := golden.Arrays(t, to)
			if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
				t.Errorf("%s: %s has %v, want %v", m.name, name, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			for key, a := range want {
				if b := got[key]; b != nil && (b.DType != a.DType || !slices.Equal(b.Shape, a.Shape) || !bytes.Equal(b.Data, a.Data)) {
					t.Errorf("%s: %s: %s differs", m.name, name, key)
				}
			}
			from = to
		}
		if shards, _ := filepath.Glob(filepath.Join(dir, "many-*-of-*.safetensors")); len(shards) < 3 {
			t.Errorf("%s: %d shards", m.name, len(shards))
		}
	}
}

// What a checkpoint lacks, and what has another shape or type, is named, all at once.
func TestHuggingFaceDamaged(t *testing.T) {
	arrays := golden.Arrays(t, hfFile("mixtral.safetensors"))
	delete(arrays, "model.layers.1.block_sparse_moe.experts.2.w1.weight")
	delete(arrays, "model.norm.weight")
	arrays["model.layers.0.self_attn.q_proj.weight"] = &tensorfile.Array{DType: "f32", Shape: []int{8, 32}, Data: make([]byte, 1024)}
	arrays["model.layers.1.self_attn.v_proj.weight"] = &tensorfile.Array{DType: "i1", Shape: []int{8, 16}, Data: make([]byte, 128)}
	arrays["model.norm.wieght"] = arrays["model.layers.0.input_layernorm.weight"]
	var named []tensorfile.Named
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		named = append(named, tensorfile.Named{Name: name, Array: *arrays[name]})
	}
	dir := t.TempDir()
	in := filepath.Join(dir, "in.safetensors")
	w, err := os.Create(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := tensorfile.Write(w, in, named); err != nil {
		t.Fatal(err)
	}
	w.Close()
	program := hfProgram(t, slices.IndexFunc(hfModels, func(m struct {
		name    string
		devices int
		set     string
	}) bool {
		return m.name == "mixtral"
	}))
	err = driver.Export(t.Context(), &driver.Source{File: program}, driver.ExportOptions{Args: in, Out: filepath.Join(dir, "out.safetensors")})
	for _, want := range []string{
		`there is no "model.layers.1.block_sparse_moe.experts.2.w1.weight", a parameter f32[layers=2, experts=4, moe_mlp=24, embed=16] of the program`,
		`there is no "model.norm.weight", a parameter f32[embed=16] of the program; did you mean "model.norm.wieght", which is there?`,
		`"model.layers.0.self_attn.q_proj.weight" is f32[8, 32], the program takes f32[q_features=16, embed=16]`,
		`"model.layers.1.self_attn.v_proj.weight" is i1, the program takes f32`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// An index names files beside it, which have what it says.
func TestHuggingFaceIndex(t *testing.T) {
	dir, program := t.TempDir(), hfProgram(t, 0)
	for content, want := range map[string]string{
		`{`:                  "not an index of .safetensors files: no JSON at byte 1: unexpected end of JSON input",
		`{"weight_map": {}}`: "weight_map names no array",
		`{"weight_map": {"a": "../x.safetensors"}}`:       `array "a" is in "../x.safetensors", want the name of a .safetensors file beside the index`,
		`{"weight_map": {"a": "x.bin"}}`:                  `want the name of a .safetensors file beside the index`,
		`{"weight_map": {"a": "x.safetensors"}}`:          "x.safetensors: no such file or directory",
		`{"weight_map": {"a": "llama.safetensors"}}`:      `there is no array "a", which in.safetensors.index.json says is there`,
		`{"weight_map": {"a": 1}}`:                        "not an index of .safetensors files: weight_map: found a JSON number, want a string",
		fmt.Sprintf(`{"weight_map": {%s}}`, `"a": ["x"]`): "weight_map: found a JSON array, want a string",
	} {
		in := filepath.Join(dir, "in.safetensors.index.json")
		if err := os.WriteFile(in, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		llama, err := os.ReadFile(hfFile("llama.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "llama.safetensors"), llama, 0o666); err != nil {
			t.Fatal(err)
		}
		err = driver.Export(t.Context(), &driver.Source{File: program}, driver.ExportOptions{Args: in, Out: filepath.Join(dir, "out.safetensors")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", content, err, want)
		}
	}
}
