package driver

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ppc/driver/binding"
	"ppc/internal/golden"
	"ppc/internal/shared"
)

// resumed is a job for two processes of four devices each.
func resumed(t *testing.T, set ...string) string {
	t.Helper()
	if jobExamples(t) == nil {
		t.Skip("PPC_ENGINES is not all")
	}
	dir := filepath.Join(t.TempDir(), "job")
	src := &Source{File: "../examples/train_bytes.pp", Set: append([]string{"axes.seq=16"}, set...)}
	if err := Launch(t.Context(), src, LaunchOptions{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestKilled: when a process of a job is killed, the other ends within a minute and says
// why; started again, the job goes on from its last checkpoint with the losses of one
// that was not killed.
func TestKilled(t *testing.T) {
	python := jobPython(t)
	dir := resumed(t)
	want := runJob(t, python, dir, 2, 4, "--steps", "8")
	saved := filepath.Join(t.TempDir(), "checkpoints")
	flags := []string{"--steps", "1000000", "--checkpoints", saved, "--every", "3"}
	cmds, outs := startJob(t, python, dir, 2, 4, flags...)
	t.Cleanup(func() {
		for _, cmd := range cmds {
			cmd.Process.Kill()
		}
	})
	for deadline := time.Now().Add(3 * time.Minute); strings.Count(outs[0].String(), `"loss"`) < 5; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the job does not begin:\n%s", outs[0].String())
		}
	}
	cmds[1].Process.Kill()
	cmds[1].Wait()
	killed := time.Now()
	err := cmds[0].Wait()
	if took := time.Since(killed); err == nil || took > time.Minute {
		t.Errorf("%v: the other process ends %v after one was killed", err, took)
	}
	if text := outs[0].String(); !strings.Contains(text, "another process has died") && !strings.Contains(text, "distributed service") {
		t.Errorf("the other process says\n%s", text)
	}
	steps, again := stepsOf(t, runJobLines(t, python, dir, 2, 4, "--steps", "8", "--checkpoints", saved))
	if len(steps) == 0 || steps[0] < 4 && steps[0] != 1 {
		t.Fatalf("the job goes on with steps %v", steps)
	}
	for i, n := range steps {
		if again[i] != want[n-1] {
			t.Errorf("step %d: loss %v, without an interruption %v", n, again[i], want[n-1])
		}
	}
}

// TestOtherMesh: a job goes on from the checkpoint of another mesh, with four stages in
// place of two, or four devices for weights in place of two.
func TestOtherMesh(t *testing.T) {
	python := jobPython(t)
	meshes := [][]string{
		{"mesh.stage=4", "mesh.fsdp=2", "pipeline.microbatches=4"},
		{"mesh.stage=2", "mesh.fsdp=2", "pipeline.repeats=2", "pipeline.microbatches=4"},
		{"mesh.stage=2", "mesh.fsdp=4", "pipeline.repeats=2", "pipeline.microbatches=4"},
	}
	devices := []int{8, 4, 8}
	saved := filepath.Join(t.TempDir(), "checkpoints")
	want := runJob(t, python, resumed(t, meshes[0]...), 1, devices[0], "--steps", "6")
	for i, set := range meshes { // each takes two steps
		last := fmt.Sprint(2*i + 2)
		steps, got := stepsOf(t, runJobLines(t, python, resumed(t, set...), 2, devices[i]/2, "--steps", last, "--checkpoints", saved))
		if fmt.Sprint(steps) != fmt.Sprint([]int{2*i + 1, 2*i + 2}) {
			t.Fatalf("%v goes on with steps %v", set, steps)
		}
		for k, n := range steps {
			if math.Abs(got[k]-want[n-1]) > 1e-4 {
				t.Errorf("%v, step %d: loss %v, want %v", set, n, got[k], want[n-1])
			}
		}
	}
}

// TestStopped: a run on a plugin that is stopped saves the state of its last step, and goes
// on from there with the losses that it would have had.
func TestStopped(t *testing.T) {
	engine := "pjrt:" + shared.CPUPlugin(t)
	src := func() *Source {
		return &Source{File: "../examples/train_bytes.pp", Set: []string{"axes.seq=16", "train.optimizer=adamw(lr: 1e-3)"}}
	}
	losses := make(map[int]float64)
	six := 6
	hear := func(s *Step) {
		if old, ok := losses[s.Number]; ok && old != s.Loss().literal.Float(0) {
			t.Errorf("step %d: loss %v, then %v", s.Number, old, s.Loss().literal.Float(0))
		}
		losses[s.Number] = s.Loss().literal.Float(0)
	}
	once := new(compiledOnce)
	defer once.end()
	run := func(ctx context.Context, opts RunOptions) error {
		opts.Engine = engine
		_, err := (&runner{src: src(), opts: opts, engines: once.open}).run(ctx)
		return err
	}
	if err := run(t.Context(), RunOptions{Steps: &six, Step: hear}); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state.npz")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := run(ctx, RunOptions{Steps: &six, Out: state, Step: func(s *Step) {
		hear(s)
		if s.Number == 3 {
			cancel()
		}
	}})
	if !Stopped(err) || !strings.Contains(err.Error(), "has the parameters and state") {
		t.Fatalf("%v, want that it was stopped and what was saved", err)
	}
	two := 2
	heard := len(losses)
	if err := run(t.Context(), RunOptions{Steps: &two, Args: state, Step: hear}); err != nil {
		t.Fatal(err)
	}
	if len(losses) != heard {
		t.Errorf("steps %v, want none after 6", losses)
	}
}

// TestPluginLost: a training that loses its plugin saves the state that it had last, and says
// of which step that is.
func TestPluginLost(t *testing.T) {
	one, state := 6, filepath.Join(t.TempDir(), "state.npz")
	r := &runner{src: &Source{File: "../examples/train_bytes.pp", Set: []string{"axes.seq=16"}}, safeEvery: time.Nanosecond,
		opts: RunOptions{Engine: "pjrt:" + shared.CPUPlugin(t), Steps: &one, Out: state}}
	r.opts.Step = func(s *Step) {
		if s.Number == 3 {
			killChildren(t)
		}
	}
	_, err := r.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ended its process") || !strings.Contains(err.Error(), "has the parameters and state of step 3") {
		t.Fatalf("%v, want what was saved", err)
	}
	if step := binding.LiteralOf(golden.Arrays(t, state)["opt.step"]).Int(0); step != 3 {
		t.Errorf("the file is of step %d, want 3", step)
	}
}

// killChildren kills the processes that this one has started.
func killChildren(t *testing.T) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Skip("this system does not list the children of a process")
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// A said is what a process says while it runs.
type said struct {
	text bytes.Buffer
	lock chan struct{}
}

func (s *said) Write(b []byte) (int, error) {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	return s.text.String()
}

// startJob starts the job in dir on processes of so many devices.
func startJob(t *testing.T, python, dir string, processes, devices int, flags ...string) ([]*exec.Cmd, []*said) {
	t.Helper()
	address := freePort(t)
	var cmds []*exec.Cmd
	var outs []*said
	for i := range processes {
		args := append([]string{filepath.Join(dir, "run.py"), "--cpu-devices", fmt.Sprint(devices), "--processes", fmt.Sprint(processes)}, flags...)
		if processes > 1 {
			args = append(args, "--coordinator", address, "--process", fmt.Sprint(i))
		}
		out := &said{lock: make(chan struct{}, 1)}
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, 10*time.Second
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	return cmds, outs
}
