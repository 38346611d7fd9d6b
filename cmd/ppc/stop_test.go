package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ppc is a process of its own, in dir: the test binary by another name.
func ppc(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Args[0] = "ppc"
	c.Dir = dir
	return c
}

// exitOf runs c and returns its exit status and what it wrote.
func exitOf(t *testing.T, c *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &diagnostics
	}
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), diagnostics.String()
}

// trainer is a program whose steps take some milliseconds, and whose state is
// some hundred kilobytes.
const trainer = `
axes { batch = 8, embed = 32, mlp = 64 }

layer block(x: f32[batch, embed]) {
  param w: f32[embed, mlp] = normal(0.1)
  param v: f32[mlp, embed] = normal(0.1)
  return x + dot(tanh(dot(x, w, over: embed)), v, over: mlp)
}

model trainer(x: f32[batch, embed]) {
  y = pipeline(block, layers: 4)(x)
  return mean(y * y)
}

mesh { stage = 2 }

pipeline { microbatches = 4 }

train { optimizer = adamw(lr: 1e-3), steps = 100000 }
`

func trainerIn(t *testing.T) (dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.pp"), []byte(trainer), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// train starts a training run and returns it when the first steps are done,
// with the rest of what it says.
func train(t *testing.T, dir string, args ...string) (c *exec.Cmd, said *bufio.Reader) {
	t.Helper()
	c = ppc(t, dir, append([]string{"run", "t.pp"}, args...)...)
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said = bufio.NewReader(pipe)
	for {
		line, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		if strings.HasPrefix(line, "step 3 ") {
			return c, said
		}
	}
}

var afterStep = regexp.MustCompile(`(?m)^stopped by (.*) after step (\d+), with (\d+) left: (.*)$`)

// A run that a signal or its limit stops has saved the last complete step, which is
// what a run of so many steps saves; it says so, and its exit status is the
// signal's.
func TestStopTraining(t *testing.T) {
	dir := trainerIn(t)
	for _, c := range []struct {
		by     string
		signal syscall.Signal
		code   int
	}{{"Ctrl-C", syscall.SIGINT, 130}, {"SIGTERM", syscall.SIGTERM, 143}, {"SIGHUP", syscall.SIGHUP, 129}, {"--timeout 2s", 0, 124}} {
		if c.signal != 0 && signal.Ignored(c.signal) {
			continue // as under nohup: ppc ignores it, too
		}
		args := []string{"--out", "s.npz"}
		if c.signal == 0 {
			args = append(args, "--timeout", "2s")
		}
		p, said := train(t, dir, args...)
		if c.signal != 0 {
			// Some programs send the signal to the process and to its group.
			p.Process.Signal(c.signal)
			p.Process.Signal(c.signal)
		}
		begin := time.Now()
		rest, _ := io.ReadAll(said)
		p.Wait()
		if took := time.Since(begin); took > 2*time.Second && c.signal != 0 {
			t.Errorf("%s: it took %s", c.by, took)
		}
		if got := p.ProcessState.ExitCode(); got != c.code {
			t.Errorf("%s: exit status %d, want %d: %s", c.by, got, c.code, rest)
		}
		m := afterStep.FindSubmatch(rest)
		if m == nil || string(m[1]) != c.by {
			t.Fatalf("%s: it says %q", c.by, rest)
		}
		if want := fmt.Sprintf("s.npz has the parameters and state; --args s.npz --steps %s takes the rest", m[3]); string(m[4]) != want {
			t.Errorf("%s: it says %q, want %q", c.by, m[4], want)
		}
		if code, _, stderr := exitOf(t, ppc(t, dir, "run", "t.pp", "--steps", string(m[2]), "--out", "w.npz")); code != 0 {
			t.Fatal(stderr)
		}
		if got, want := readFile(t, dir, "s.npz"), readFile(t, dir, "w.npz"); got != want {
			t.Errorf("%s: after step %s it has saved something else than %s steps do", c.by, m[2], m[2])
		}
		if left := filesIn(t, dir); !slices.Equal(left, []string{"s.npz", "t.pp", "w.npz"}) {
			t.Errorf("%s: the folder has %v", c.by, left)
		}
	}
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A program that takes long to compile is no exception.
func TestStopCompiling(t *testing.T) {
	for _, command := range []string{"lower", "lint", "run"} {
		begin := time.Now()
		code, stdout, stderr := exitOf(t, ppc(t, "../../examples", command, "llama2_7b.pp", "--set", "pipeline.scan_iterations=false", "--timeout", "100ms"))
		if took := time.Since(begin); code != 124 || stdout != "" || took > 3*time.Second {
			t.Errorf("%s: exit status %d after %s: %s", command, code, took, stderr)
		}
	}
}

// Where nothing is saved, the run says that.
func TestStopWithoutSaving(t *testing.T) {
	dir := trainerIn(t)
	p, said := train(t, dir)
	p.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(said)
	p.Wait()
	if m := afterStep.FindSubmatch(rest); m == nil || string(m[4]) != "nothing was saved, for which --out names a file" || p.ProcessState.ExitCode() != 143 {
		t.Errorf("exit status %d, %q", p.ProcessState.ExitCode(), rest)
	}
	code, _, stderr := exitOf(t, ppc(t, dir, "run", "t.pp", "--out", "s.npz", "--timeout", "1ms"))
	if code != 124 || strings.Contains(stderr, "after step") || !strings.Contains(stderr, "stopped by --timeout 1ms") {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	if left := filesIn(t, dir); !slices.Equal(left, []string{"t.pp"}) {
		t.Errorf("the folder has %v", left)
	}
}

// A folder that vanishes, or a disk that is full, loses the step but not what
// was saved before, and is no success.
func TestStopWhereNothingCanBeSaved(t *testing.T) {
	dir := trainerIn(t)
	if err := os.Mkdir(filepath.Join(dir, "gone"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, said := train(t, dir, "--out", "gone/s.npz")
	if err := os.RemoveAll(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	p.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(said)
	p.Wait()
	if !strings.Contains(string(rest), ": nothing was saved: gone/s.npz: no such file or directory") || p.ProcessState.ExitCode() != 143 {
		t.Errorf("exit status %d, %q", p.ProcessState.ExitCode(), rest)
	}
}

// A run that is killed at any time leaves the state before or a later one,
// whole, and the next run leaves nothing else.
func TestKillTraining(t *testing.T) {
	dir := trainerIn(t)
	save := []string{"run", "t.pp", "--steps", "1", "--out", "s.npz", "--quiet"}
	begin := time.Now()
	if code, _, stderr := exitOf(t, ppc(t, dir, save...)); code != 0 {
		t.Fatal(stderr)
	}
	took := time.Since(begin)
	before := readFile(t, dir, "s.npz")
	if code, _, stderr := exitOf(t, ppc(t, dir, "run", "t.pp", "--steps", "2", "--out", "w.npz", "--quiet")); code != 0 {
		t.Fatal(stderr)
	}
	after := readFile(t, dir, "w.npz")
	resume := append(save, "--args", "s.npz")
	for range 10 {
		p := ppc(t, dir, resume...)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(took) + 1)))
		p.Process.Kill()
		p.Wait()
		if got := readFile(t, dir, "s.npz"); got != before && got != after {
			t.Fatalf("%d bytes that are neither the state before nor the one after", len(got))
		}
		if code, _, stderr := exitOf(t, ppc(t, dir, save...)); code != 0 {
			t.Fatal(stderr)
		}
		if left := filesIn(t, dir); !slices.Equal(left, []string{"s.npz", "t.pp", "w.npz"}) {
			t.Errorf("the folder has %v", left)
		}
	}
}

// Every file that a command writes is whole or as it was on a disk that is
// full after any number of bytes, and nothing else is left.
func TestFullDiskAtAnyByte(t *testing.T) {
	dir := trainerIn(t)
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	unformatted := trainer + strings.Repeat("// text\n", 2000) + "axes{a=1}"
	for _, c := range []struct {
		args []string
		file string
	}{
		{[]string{"run", "t.pp", "--steps", "1", "--out", "f.npz"}, "f.npz"},
		{[]string{"run", "t.pp", "--steps", "1", "--out", "f.safetensors"}, "f.safetensors"},
		{[]string{"run", "t.pp", "--steps", "1", "--shards", "."}, "args.npz"},
		{[]string{"lower", "t.pp", "-o", "f.mlir"}, "f.mlir"},
		{[]string{"lower", "t.pp", "--dump-to", "."}, "01-stage-sharding.mlir"},
		{[]string{"fmt", "-w", "f.pp"}, "f.pp"},
	} {
		for _, blocks := range []int{0, 1, 8} {
			old := strings.Repeat("old", 10)
			if c.file == "f.pp" {
				old = unformatted
			}
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(old), 0o644); err != nil {
				t.Fatal(err)
			}
			p := ppc(t, dir)
			p.Args = append([]string{"sh", "-c", `ulimit -f $1; shift; exec "$@"`, "sh", strconv.Itoa(blocks), p.Path}, c.args...)
			p.Path, _ = exec.LookPath("sh")
			// The name decides what the test binary is.
			link := filepath.Join(t.TempDir(), "ppc")
			if err := os.Symlink(p.Args[5], link); err != nil {
				t.Fatal(err)
			}
			p.Args[5] = link
			code, _, stderr := exitOf(t, p)
			if code != 1 || !strings.Contains(stderr, c.file+": file too large") {
				t.Errorf("%v, %d blocks: exit status %d, %q", c.args, blocks, code, stderr)
			}
			if got := readFile(t, dir, c.file); got != old {
				t.Errorf("%v, %d blocks: %s has changed", c.args, blocks, c.file)
			}
			os.Remove(filepath.Join(dir, c.file))
			if left := filesIn(t, dir); !slices.Equal(left, []string{"t.pp"}) {
				t.Fatalf("%v, %d blocks: the folder has %v", c.args, blocks, left)
			}
		}
	}
}
