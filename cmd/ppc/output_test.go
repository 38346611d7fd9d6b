package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"ppc/driver"
)

// writing is every way to write something to standard output.
var writing = [][]string{
	{"version"}, {"passes"}, {"--help"}, {"run", "--help"}, {"lint", "--list"}, {"lint", "--explain", "growing-residual"},
	{"lower", "t.pp"}, {"lower", "t.pp", "--stats"}, {"lower", "t.pp", "--stats", "--json"}, {"lower", "t.pp", "--dump-hlo"},
	{"run", "t.pp", "--steps", "1"}, {"run", "t.pp", "--steps", "1", "--json"}, {"run", "t.pp", "--steps", "0", "--check"},
	{"lint", "l.pp"}, {"lint", "l.pp", "--json"}, {"fmt", "t.pp"}, {"fmt", "-d", "l.pp"},
}

func writerIn(t *testing.T) (dir string) {
	t.Helper()
	dir = trainerIn(t)
	finds := trainer + "mesh{stage=2,fsdp=2}\nshard weights { embed -> fsdp }\n"
	finds = strings.Replace(finds, "mesh { stage = 2 }", "", 1)
	if err := os.WriteFile(filepath.Join(dir, "l.pp"), []byte(finds), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Output that cannot be written is an error that is said, whatever the command
// has to say besides.
func TestFullStandardOutput(t *testing.T) {
	dir := writerIn(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range writing {
		c := ppc(t, dir, args...)
		c.Stdout = full
		if code, _, stderr := exitOf(t, c); code != 1 || !strings.Contains(stderr, "standard output: no space left on device") {
			t.Errorf("ppc %v >/dev/full: exit status %d, %q", args, code, stderr)
		}
	}
	// Where even that cannot be said, the exit status tells.
	for want, args := range [][]string{{"version"}, {"run", "t.pp", "--steps", "1"}} {
		c := ppc(t, dir, args...)
		c.Stderr = full
		if code, _, _ := exitOf(t, c); code != want {
			t.Errorf("ppc %v 2>/dev/full: exit status %d, want %d", args, code, want)
		}
	}
}

func TestClosedStandardOutput(t *testing.T) {
	dir := writerIn(t)
	sh, err := exec.LookPath("sh")
	if _, null := os.Stat("/proc/self/fd"); err != nil || null != nil {
		t.Skip(err, null)
	}
	link := filepath.Join(t.TempDir(), "ppc")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	shell := func(script string, args []string) *exec.Cmd {
		c := exec.Command(sh, append([]string{"-c", script, link}, args...)...)
		c.Dir = dir
		return c
	}
	for _, args := range writing {
		if code, _, stderr := exitOf(t, shell(`"$0" "$@" >&-`, args)); code != 1 || !strings.Contains(stderr, "standard output is closed") {
			t.Errorf("ppc %v >&-: exit status %d, %q", args, code, stderr)
		}
	}
	for _, script := range []string{`"$0" "$@" >/dev/null`, `"$0" "$@" 2>&-`, `"$0" "$@" <&-`} {
		if code, _, stderr := exitOf(t, shell(script, writing[0])); code != 0 {
			t.Errorf("%s: exit status %d, %q", script, code, stderr)
		}
	}
	// What writes nothing there needs none.
	for _, args := range [][]string{{"check", "t.pp"}, {"lower", "t.pp", "-o", "f.mlir"}, {"run", "t.pp", "--steps", "1", "--quiet"}} {
		if code, _, stderr := exitOf(t, shell(`"$0" "$@" >&-`, args)); code != 0 {
			t.Errorf("ppc %v >&-: exit status %d, %q", args, code, stderr)
		}
	}
	// A reader that goes away is not spoken to.
	if code, stdout, stderr := exitOf(t, shell(`{ "$0" "$@"; echo $? >code; } | :; cat code`, writing[6])); code != 0 || stdout != "141\n" || stderr != "" {
		t.Errorf("ppc lower | true: exit status %q, %q", stdout, stderr)
	}
}

// A reader that reads nothing does not keep a command from being stopped.
func TestBlockedOutput(t *testing.T) {
	file := filepath.Join(writerIn(t), "t.pp")
	for name, blocked := range map[string]int{"standard output": 1, "standard error": 2} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, &driver.Stop{By: "the test", Exit: 99})
		defer cancel()
		r, w := io.Pipe() // whose reader does not read
		defer r.Close()
		out := []io.Writer{io.Discard, io.Discard, io.Discard}
		out[blocked] = w
		begin := time.Now()
		code := run(ctx, []string{"run", file, "--steps", "2"}, strings.NewReader(""), out[1], out[2])
		if took := time.Since(begin); code == 0 || took > 3*time.Second {
			t.Errorf("%s blocks: exit status %d after %s", name, code, took)
		}
	}
}

// Nothing that a terminal obeys reaches it from names, settings and files.
func TestOutputIsQuoted(t *testing.T) {
	const bad = "\x1b[31m\u202e\u009b\n\x7f"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.pp":          "axes { a = 4, \x1b[31mb\x1b[2J = 2 }",
		"b.pp":          "axes { a = 4 }\n// \x1b[2J\u202e\nmodel m(x: f32[a]) { return mean(x) + \"\x1b\" + relluu(x) }",
		"c.pp":          "include \"\x1b[2J.pp\"\n",
		bad + ".pp":     "axes { a = 4, a = 5 }",
		"a.mlir":        "func.func @main(%a: tensor<f32>) -> tensor<f32> { \x1b[2J }",
		"b.mlir":        "func.func @\"ma\u202ein\"(%a: tensor<f32>) -> tensor<f32> { %0 = \"stable\x1bhlo.add\"(%a) : (tensor<f32>) -> tensor<f64> return %0 : tensor<f32> }",
		"a.hlo":         "HloModule \x1b[31mx\nENTRY main {\n \x1b[2J a = f32[] parameter(0)\n}",
		bad + ".mlir":   "func.func @main() { return }\nfunc.func @main() { return }",
		bad + ".npz":    "PK",
		"k.safetensors": safetensors("{\"tok\\u001b[2Jens\\n\u202e\":{\"dtype\":\"F\\u001b4\",\"shape\":[1],\"data_offsets\":[0,1]}}"),
		"t.pp":          trainer,
		"result.mlir":   "func.func @main(%a: tensor<f32>) -> (tensor<f32> {jax.result_info = \"\\1B[2J\\0A\"}) { return %a : tensor<f32> }",
		"names.mlir": "module { sdy.mesh @m = <[\"x\\1B[2J\"=2]>\nfunc.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\\1B[2J\"}]>}) -> tensor<4xf32> {\n" +
			"%b = \"my.op\\1B[2J\"(%a) : (tensor<4xf32>) -> tensor<4xf32> loc(\"f\\1B[2J.py\":1:2)\nreturn %b : tensor<4xf32> } }",
		bad + "lints.pp": strings.Replace(trainer, "mesh { stage = 2 }", "mesh { stage = 2, data = 2 }", 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Skip(err) // some systems have no such names
		}
	}
	t.Chdir(dir)
	for _, args := range [][]string{
		{"check", "a.pp"}, {"check", "b.pp"}, {"check", "c.pp"}, {"check", bad + ".pp"}, {"check", "a.mlir"}, {"lower", "b.mlir"}, {"check", "a.hlo"},
		{"run", bad + ".mlir"}, {"check", bad}, {"check", bad + "none.pp"}, {"check", bad + "none.mlir"}, {bad}, {"--" + bad}, {"check", "t.pp", "--set", bad},
		{"check", "t.pp", "--set", "pipeline.repeats=" + bad}, {"check", "t.pp", "--set=" + bad + ".x=1"}, {"lower", "t.pp", "--emit", bad}, {"lower", "t.pp", "--after", bad},
		{"lower", "t.pp", "-o", bad + "/x"}, {"lower", "t.pp", "--dump-to", "t.pp/" + bad}, {"run", "t.pp", "--args", bad + ".npz"}, {"run", "t.pp", "--args=" + bad + "none.npz"},
		{"run", "t.pp", "--args", "k.safetensors"}, {"run", "t.pp", "--out", bad + "/x.npz"}, {"lint", "t.pp", "--skip", bad}, {"lint", "--explain", bad},
		{"check", "t.pp", "--include-dir", bad}, {"check", "t.pp", "--timeout", bad}, {"check", "--lang", bad, "t.pp"}, {"run", "t.pp", "--set", "train.data=\"" + bad + "\""},
		{"fmt", "-d", bad + "none.pp"}, {"lint", bad + "lints.pp"}, {"lint", bad + "lints.pp", "--json"}, {"run", "result.mlir"}, {"run", "result.mlir", "--json"},
		{"lower", "names.mlir", "--stats"}, {"lower", "names.mlir", "--stats", "--json"}, {"lower", "names.mlir", "--emit=ir"}, {"run", "names.mlir"},
	} {
		var stdout, stderr strings.Builder
		run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		said := stdout.String() + stderr.String()
		if said == "" {
			t.Errorf("ppc %q says nothing", args)
		}
		for _, r := range said {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("ppc %q says %q", args, said)
				break
			}
		}
		for line := range strings.Lines(stdout.String()) {
			if slices.Contains(args, "--json") && !json.Valid([]byte(line)) {
				t.Errorf("ppc %q: no JSON: %s", args, line)
			}
		}
		for line := range strings.Lines(said) { // the lines of a source are indented
			if !strings.HasPrefix(line, "  ") && strings.Contains(line, "\\u009b\n") {
				t.Errorf("ppc %q breaks a line: %q", args, said)
			}
		}
	}
}

// safetensors is a file with this header and one byte of elements.
func safetensors(header string) string {
	return string([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}) + header + "x"
}
