package driver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/driver"
	"ppc/internal/diag"
	"ppc/internal/golden"
	"ppc/internal/shared"
)

var meshLine = regexp.MustCompile(`(?m)^mesh \{ (.*) \}$`)

// Every command of MaxText that is collected becomes a program that loads, or is
// refused by the names of its keys. Of every twelfth a step of training is lowered,
// with CI=true of all.
func TestImportCommands(t *testing.T) {
	path := filepath.Join("..", "testdata", "maxtext", "commands.txt")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	commands := 0
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "> ") {
			continue
		}
		out = append(out, line)
		if line != "" && line[0] != '#' {
			commands++
			lower := commands%12 == 0 || shared.Setting(t, "CI") == "true"
			out = append(out, outcome(t, strings.Fields(strings.ReplaceAll(line, "'", "")), lower)...)
		}
	}
	if commands < 200 {
		t.Errorf("%d commands", commands)
	}
	got := strings.Join(out, "\n") + "\n"
	if golden.Updating() {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(text), got); diff != "" {
		t.Errorf("%s (-file +now):\n%s", path, diff)
	}
}

// outcome is what becomes of a command, in lines.
func outcome(t *testing.T, set []string, lower bool) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "imported.pp")
	devices := 8
	for _, s := range set {
		if strings.HasPrefix(s, "compile_topology=") {
			devices = 0
		}
	}
	r, err := driver.Import(t.Context(), driver.ImportOptions{Set: set, Devices: devices})
	var list diag.List
	if errors.As(err, &list) {
		var out []string
		for _, d := range list {
			line := "> refused: " + d.Msg
			if d.Hint != "" {
				line += " (" + d.Hint + ")"
			}
			out = append(out, line)
		}
		return out
	} else if err != nil {
		t.Errorf("%v: %v", set, err)
		return nil
	}
	if lower {
		if err := os.WriteFile(file, []byte(r.Text), 0o666); err != nil {
			t.Fatal(err)
		}
		src := &driver.Source{File: file}
		if strings.Contains(r.Text, "scan_layers = false") { // as long as there are layers
			src.Set = []string{"pipeline.scan_layers=true"}
		}
		if _, err := driver.Lower(t.Context(), src, driver.LowerOptions{}); err != nil {
			t.Errorf("%v: %v", set, err)
		}
	}
	mesh := "one device"
	if m := meshLine.FindStringSubmatch(r.Text); m != nil {
		mesh = m[1]
	}
	out := []string{fmt.Sprintf("> %s", mesh)}
	for _, w := range r.Warnings {
		out = append(out, "> warning: "+w.Msg+" ["+w.Warning+"]")
	}
	return out
}

// A configuration is not overwritten by its program, and what is not there is named.
func TestImportFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "base.yml")
	if err := os.WriteFile(file, []byte("steps: 3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		opts driver.ImportOptions
		want string
	}{
		{driver.ImportOptions{Files: []string{file}, Out: file, Devices: 8}, "is a configuration and would be overwritten as the program: name another file"},
		{driver.ImportOptions{Files: []string{file + ".yml"}, Devices: 8}, "base.yml.yml: cannot be read: no such file or directory"},
		{driver.ImportOptions{Files: []string{filepath.Dir(file)}, Devices: 8}, "cannot be read: it is a folder, want a regular file"},
	} {
		if _, err := driver.Import(t.Context(), c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.opts, err, c.want)
		}
	}
}

// Imported programs compute what their layers do in sequence, whatever axes of the
// mesh they have together: the first two, and with CI=true the others.
func TestImportChecks(t *testing.T) {
	const sizes = "base_emb_dim=16 base_num_query_heads=4 head_dim=4 base_mlp_dim=32 vocab_size=32 max_target_length=16 per_device_batch_size=2 steps=1 dtype=float32 "
	const experts = "num_experts=4 num_experts_per_tok=2 sparse_matmul=false capacity_factor=1.0 load_balance_loss_weight=0.01 base_moe_mlp_dim=16 "
	for i, set := range []string{
		"decoder_block=mixtral base_num_kv_heads=2 base_num_decoder_layers=4 ici_pipeline_parallelism=2 ici_expert_parallelism=2 ici_context_parallelism=2 " + experts,
		"decoder_block=deepseek attention_type=mla base_num_decoder_layers=6 first_num_dense_layers=1 shared_experts=1 q_lora_rank=8 kv_lora_rank=16 qk_nope_head_dim=8 qk_rope_head_dim=4 v_head_dim=8 ici_pipeline_parallelism=4 ici_tensor_parallelism=2 pipeline_parallel_layers=4 " + experts,
		"decoder_block=gpt_oss base_num_kv_heads=2 mlp_activations=[sigmoid,linear] mlp_activations_limit=7.0 routed_bias=true mlp_bias=true attention_bias=true attention_sink=true sliding_window_size=4 inhomogeneous_layer_cycle_interval=2 base_num_decoder_layers=8 ici_pipeline_parallelism=4 ici_expert_parallelism=2 " + experts,
		"decoder_block=gemma3 base_num_kv_heads=2 mlp_activations=[gelu,linear] sliding_window_size=4 use_qk_norm=true logits_via_embedding=true base_num_decoder_layers=12 ici_pipeline_parallelism=2 ici_tensor_parallelism=2 ici_data_parallelism=2 ici_fsdp_parallelism=1 shard_optimizer_over_data=true",
		"decoder_block=llama2 base_num_kv_heads=2 base_num_decoder_layers=8 ici_pipeline_parallelism=2 ici_tensor_parallelism=2 ici_context_parallelism=2 pipeline_fsdp_ag_per_repeat=true num_pipeline_microbatches=4 rope_type=llama3.1 fused_mlp=true sa_block_q=8 num_vocab_tiling=2",
		"decoder_block=gpt3 base_num_kv_heads=4 fused_qkv=true mlp_activations=[gelu] trainable_position_size=16 base_num_decoder_layers=4 ici_fsdp_transpose_parallelism=2 ici_tensor_parallelism=2 logits_via_embedding=true gradient_accumulation_steps=2",
	} {
		if i > 1 && shared.Setting(t, "CI") != "true" {
			break
		}
		r, err := driver.Import(t.Context(), driver.ImportOptions{Set: strings.Fields(sizes + set), Devices: 8})
		if err != nil {
			t.Errorf("%s: %v", set, err)
			continue
		}
		file := filepath.Join(t.TempDir(), "imported.pp")
		if err := os.WriteFile(file, []byte(r.Text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := driver.Run(t.Context(), &driver.Source{File: file}, driver.RunOptions{Check: true}); err != nil {
			t.Errorf("%s: %v", set, err)
		}
	}
}
