package driver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ppc/driver"
	"ppc/internal/golden"
	"ppc/internal/shared"
)

// An orbaxTool is a Python that runs tools/orbax_params.py in dir, again and again: to import orbax takes it longer
// than what it does here.
type orbaxTool struct {
	dir string
	in  *json.Encoder
	out *json.Decoder
}

// orbaxLoop runs scripts, with arguments as on a command line, and says how each of them ends.
const orbaxLoop = `import contextlib, io, json, runpy, sys, traceback
import orbax.checkpoint, ml_dtypes
out = sys.stdout
for line in sys.stdin:
    sys.argv, said, code = json.loads(line), io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as e:
            code = e.code
        except BaseException:
            code = traceback.format_exc()
    print(json.dumps({"Said": said.getvalue(), "Failed": str(code) if code else ""}), file=out, flush=True)
`

func startOrbax(t *testing.T, dir string) *orbaxTool {
	t.Helper()
	python := shared.Setting(t, "PPC_PYTHON")
	if python == "" || exec.Command(python, "-c", "import importlib.util as u, sys; sys.exit(not (u.find_spec('orbax') and u.find_spec('ml_dtypes')))").Run() != nil {
		t.Skip("no python with orbax-checkpoint: set PPC_PYTHON")
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", orbaxLoop)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = dir, os.Stderr, 10*time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &orbaxTool{dir: dir, in: json.NewEncoder(in), out: json.NewDecoder(out)}
}

// script runs a script and returns what it says, which is an error if it fails.
func (o *orbaxTool) script(t *testing.T, file string, args ...string) (string, error) {
	t.Helper()
	var end struct{ Said, Failed string }
	if err := o.in.Encode(append([]string{file}, args...)); err != nil {
		t.Fatal(err)
	}
	if err := o.out.Decode(&end); err != nil {
		t.Fatal(err)
	}
	if end.Failed != "" {
		return end.Said, errors.New(end.Failed)
	}
	return end.Said, nil
}

// run runs the tool and returns what it says, which is an error if it fails.
func (o *orbaxTool) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	tool, err := filepath.Abs("../tools/orbax_params.py")
	if err != nil {
		t.Fatal(err)
	}
	return o.script(t, tool, args...)
}

// must runs the tool, which does not fail.
func (o *orbaxTool) must(t *testing.T, args ...string) {
	t.Helper()
	if said, err := o.run(t, args...); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, said)
	}
}

// Parameters of an imported program go to an orbax checkpoint, with layers where
// MaxText has them, and back, bit by bit; the program takes what came back. Where
// several dimensions of the checkpoint are the layers, another checkpoint says how
// large each is.
func TestOrbax(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	tool := startOrbax(t, dir)
	set := strings.Fields("decoder_block=mixtral num_experts=4 num_experts_per_tok=2 base_num_decoder_layers=4 base_emb_dim=16 base_mlp_dim=32 base_moe_mlp_dim=32 base_num_query_heads=4 " +
		"base_num_kv_heads=2 head_dim=8 vocab_size=32 max_target_length=8 per_device_batch_size=4 ici_pipeline_parallelism=2 steps=1")
	r, err := driver.Import(t.Context(), driver.ImportOptions{Set: set, Devices: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("m.pp"), []byte(r.Text), 0o666); err != nil {
		t.Fatal(err)
	}
	src := &driver.Source{File: in("m.pp")}
	for name, set := range map[string][]string{"a": nil, "narrow": {"types.weight=bf16"}} {
		typed := &driver.Source{File: src.File, Set: set}
		if _, err := driver.Run(t.Context(), typed, driver.RunOptions{Out: in(name + ".npz")}); err != nil {
			t.Fatal(err)
		}
		if err := driver.Export(t.Context(), typed, driver.ExportOptions{Args: in(name + ".npz"), Out: in(name + ".safetensors")}); err != nil {
			t.Fatal(err)
		}
		tool.must(t, "to-orbax", name+".safetensors", name)
		tool.must(t, "from-orbax", name, name+"-back.safetensors")
		sameArrays(t, in(name+".safetensors"), in(name+"-back.safetensors"))
	}
	if err := driver.Export(t.Context(), src, driver.ExportOptions{Args: in("a-back.safetensors"), Out: in("again.safetensors")}); err != nil {
		t.Fatal(err)
	}
	sameArrays(t, in("a.safetensors"), in("again.safetensors"))
	testOrbaxStages(t, tool)
}

// testOrbaxStages has the layers of a.safetensors as repeats and stages of a checkpoint,
// two of each, and says all that is wrong at once.
func testOrbaxStages(t *testing.T, tool *orbaxTool) {
	t.Helper()
	in := func(name string) string { return filepath.Join(tool.dir, name) }
	const rest = "params/params/*\t*\t-\n"
	put := func(name, text string) {
		if err := os.WriteFile(in(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("flat.tsv", "params/params/decoder/layers/*\tdecoder/layers/*\t0\n"+rest)
	put("stages.tsv", "params/params/decoder/layers/*\tdecoder/layers/*\t0,1\n"+rest)
	tool.must(t, "to-orbax", "a.safetensors", "flat", "--table", "flat.tsv")
	reshape := `import sys; sys.path.insert(0, sys.argv[1]); import orbax_params as o, orbax.checkpoint as c, numpy as np, os
x = {k: np.ascontiguousarray(v.reshape(2, 2, *v.shape[1:]) if "/layers/" in k else v) for k, v in o.restore("flat").items()}
c.PyTreeCheckpointer().save(os.path.abspath("stages"), o.nested(x))
y = {k: v for k, v in o.read("a.safetensors").items() if not k.endswith("logits_dense/kernel")}
y["decoder/decoder_norm/scale"], y["decoder/other"] = np.zeros(3, np.float32), np.zeros(3, np.float32)
o.write("wrong.safetensors", y)`
	tools, err := filepath.Abs("../tools")
	if err != nil {
		t.Fatal(err)
	}
	put("reshape.py", reshape)
	if said, err := tool.script(t, "reshape.py", tools); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	tool.must(t, "from-orbax", "stages", "b.safetensors", "--table", "stages.tsv")
	sameArrays(t, in("a.safetensors"), in("b.safetensors"))
	tool.must(t, "to-orbax", "b.safetensors", "stages2", "--table", "stages.tsv", "--like", "stages")
	tool.must(t, "from-orbax", "stages2", "c.safetensors", "--table", "stages.tsv")
	sameArrays(t, in("a.safetensors"), in("c.safetensors"))

	said, err := tool.run(t, "to-orbax", "wrong.safetensors", "stages3", "--table", "stages.tsv", "--like", "stages")
	for _, want := range []string{
		"decoder/decoder_norm/scale: shape [3] does not make [16], which params/params/decoder/decoder_norm/scale has",
		"decoder/other: stages has no params/params/decoder/other",
		"params/params/decoder/logits_dense/kernel: the file has nothing for it",
	} {
		if err == nil || !strings.Contains(said, want) {
			t.Errorf("%v, says %s, want %s", err, said, want)
		}
	}
	if _, err := os.Stat(in("stages3")); err == nil || strings.Count(said, "\n") != 3 {
		t.Errorf("a checkpoint is there, or other than three things are wrong:\n%s", said)
	}
}

func sameArrays(t *testing.T, a, b string) {
	t.Helper()
	want, got := golden.Arrays(t, a), golden.Arrays(t, b)
	if len(got) != len(want) {
		t.Errorf("%s has %d arrays, want %d", b, len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		if g == nil || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) || !bytes.Equal(g.Data, w.Data) {
			t.Errorf("%s: %s differs from that of %s", b, name, a)
		}
	}
}
