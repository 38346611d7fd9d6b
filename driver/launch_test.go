package driver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/driver/job"
	"ppc/internal/atomicfile"
	"ppc/internal/shared"
)

// jobPython is a python with jax, for jobs.
func jobPython(t *testing.T) string {
	t.Helper()
	python := shared.Setting(t, "PPC_PYTHON")
	if python == "" {
		t.Skip("no python with jax: set PPC_PYTHON")
	}
	return python
}

// TestLaunch: the parameters of a job have the shapes and shardings of the program.
func TestLaunch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "job")
	five := 5
	if err := Launch(t.Context(), &Source{File: "../examples/llama.pp"}, LaunchOptions{Dir: dir, Steps: &five}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "job.json"))
	if err != nil {
		t.Fatal(err)
	}
	var j job.Job
	if err := json.Unmarshal(text, &j); err != nil {
		t.Fatal(err)
	}
	if j.Devices != 8 || j.Steps != five || fmt.Sprint(j.Mesh) != "[[stage 4] [fsdp 2]]" {
		t.Errorf("%d devices, %d steps, mesh %v, want 8, 5 and stage 4, fsdp 2", j.Devices, j.Steps, j.Mesh)
	}
	for _, p := range j.Params {
		if p.Name == "table" && (p.DType != "float32" || fmt.Sprint(p.Shape, p.Spec) != "[512 64] [[] [fsdp]]" || p.Init != "normal(0.02)") {
			t.Errorf("%+v, want float32[512, 64], the second dimension sharded along fsdp, normal(0.02)", p)
		}
	}
	for _, name := range []string{"program.mlir", "run.py", "slurm.sh", "gke.yaml", "ssh.sh"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestJob: one process with all devices, two with half of them each, and goroutines
// have the same losses.
func TestJob(t *testing.T) {
	python := jobPython(t)
	if shared.Setting(t, "PPC_ENGINES") != "all" {
		t.Skip("PPC_ENGINES is not all")
	}
	dir := filepath.Join(t.TempDir(), "job")
	three := 3
	src := &Source{File: "../examples/llama.pp"}
	if err := Launch(t.Context(), src, LaunchOptions{Dir: dir, Steps: &three}); err != nil {
		t.Fatal(err)
	}
	var want []float64
	_, err := Run(t.Context(), src, RunOptions{Steps: &three, Step: func(s *Step) { want = append(want, s.Loss().literal.Float(0)) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, processes := range []int{1, 2} {
		got := runJob(t, python, dir, processes, 8/processes)
		if len(got) != len(want) {
			t.Fatalf("%d processes: %d steps, want %d", processes, len(got), len(want))
		}
		for i := range got {
			if math.Abs(got[i]-want[i]) > 1e-4 {
				t.Errorf("%d processes, step %d: loss %v, on goroutines %v", processes, i+1, got[i], want[i])
			}
		}
	}
}

// TestJobExamples: examples by number are the same data as arrays of batches, on every process; those that do not fit are
// named.
func TestJobExamples(t *testing.T) {
	python := jobPython(t)
	if shared.Setting(t, "PPC_ENGINES") != "all" {
		t.Skip("PPC_ENGINES is not all")
	}
	folder := t.TempDir()
	dir, two := filepath.Join(folder, "job"), 2
	if err := Launch(t.Context(), &Source{File: "../examples/llama.pp"}, LaunchOptions{Dir: dir, Steps: &two}); err != nil {
		t.Fatal(err)
	}
	source := `import numpy as np

class Data:
    def __getitem__(self, i):
        if i >= %d:
            raise IndexError(i)
        at = np.arange(%d)
        return {"tokens": (7 * i + 3 * at) %% 512, "targets": (7 * i + 3 * at + 3) %% 512}

data = Data()
`
	file := func(name string, limit, length int) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, fmt.Appendf(nil, source, limit, length), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, arrays := file("whole.py", 32, 64), filepath.Join(folder, "arrays.npz")
	const save = `import runpy, sys, numpy as np
data = runpy.run_path(sys.argv[1])["data"]
np.savez(sys.argv[2], **{k: np.stack([np.stack([data[16 * n + r][k] for r in range(16)]) for n in range(2)]).astype(np.int32) for k in ("tokens", "targets")})
`
	if out, err := exec.Command(python, "-c", save, whole, arrays).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := runJob(t, python, dir, 1, 8, "--data", arrays)
	if got := runJob(t, python, dir, 2, 4, "--data", whole); len(got) != 2 || !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }) {
		t.Errorf("losses %v from examples, %v from arrays", got, want)
	}
	for path, want := range map[string]string{
		file("few.py", 20, 64):   "few.py: example 20 has no tokens: IndexError: 20",
		file("short.py", 32, 60): "short.py: tokens of example 0 is [60], want [64]",
	} {
		cmds, outs := startJob(t, python, dir, 1, 8, "--data", path)
		if err := cmds[0].Wait(); err == nil || !strings.Contains(outs[0].String(), want) {
			t.Errorf("%v: %s\nwant %s", err, outs[0].String(), want)
		}
	}
}

// runJob runs the job in dir on processes of so many devices, and returns the losses.
func runJob(t *testing.T, python, dir string, processes, devices int, flags ...string) []float64 {
	t.Helper()
	_, losses := stepsOf(t, runJobLines(t, python, dir, processes, devices, flags...))
	return losses
}

// runJobLines is what process 0 of a job prints.
func runJobLines(t *testing.T, python, dir string, processes, devices int, flags ...string) string {
	t.Helper()
	cmds, outs := startJob(t, python, dir, processes, devices, flags...)
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("process %d: %v\n%s", i, err, outs[i].String())
		}
	}
	return outs[0].String()
}

// stepsOf reads the numbers and the losses of steps.
func stepsOf(t *testing.T, text string) (steps []int, losses []float64) {
	t.Helper()
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		var line struct {
			Step int      `json:"step"`
			Loss *float64 `json:"loss"`
		}
		if strings.HasPrefix(s.Text(), "{") && json.Unmarshal(s.Bytes(), &line) == nil && line.Loss != nil {
			steps, losses = append(steps, line.Step), append(losses, *line.Loss)
		}
	}
	return steps, losses
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A folder that cannot be written is named.
func TestLaunchNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := atomicfile.WriteBytes(t.Context(), file, nil); err != nil {
		t.Fatal(err)
	}
	err := Launch(t.Context(), &Source{File: "../examples/simple.pp"}, LaunchOptions{Dir: file})
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v, want the folder", err)
	}
}
