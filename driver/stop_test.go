package driver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ppc/internal/tensorfile"
	"ppc/ir"
)

// Work that does not look at the context is left behind soon after its end;
// what ends in time keeps its result, or its bug.
func TestGuardStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(&Stop{By: "the test", Exit: 7}) })
		begin := time.Now()
		_, err := guard(ctx, "sleeping", reproducer{}, func() (int, error) {
			time.Sleep(2 * time.Hour)
			panic("nobody hears of this")
		})
		if took := time.Since(begin); took != time.Hour+grace {
			t.Errorf("it took %s", took)
		}
		if err == nil || err.Error() != "stopped by the test" || ExitCode(err) != 7 {
			t.Errorf("error %v", err)
		}
		if _, err := guard(ctx, "starting", reproducer{}, func() (int, error) { panic("it starts") }); ExitCode(err) != 7 {
			t.Errorf("error %v", err)
		}
		ctx, cancel = context.WithCancelCause(t.Context())
		n, err := guard(ctx, "ending", reproducer{}, func() (int, error) {
			cancel(&Stop{By: "the test", Exit: 7})
			time.Sleep(grace / 2)
			return 3, nil
		})
		if n != 3 || err != nil {
			t.Errorf("%d, error %v", n, err)
		}
		time.Sleep(2 * time.Hour) // until the first one has ended
	})
}

// Training that is stopped after any step has saved what that many steps save,
// or nothing; what it was given is as it was.
func TestStopAfterAnyStep(t *testing.T) {
	const steps = 3
	file := write(t, "trained.pp", trained)
	var full [steps + 1]string
	for n := 1; n <= steps; n++ {
		out := filepath.Join(t.TempDir(), "out.npz")
		if _, err := Run(t.Context(), &Source{File: file}, RunOptions{Steps: &n, Out: out}); err != nil {
			t.Fatal(err)
		}
		full[n] = content(t, out)
	}
	for n := range steps + 1 {
		out := filepath.Join(t.TempDir(), "out.npz")
		if err := os.WriteFile(out, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		full[0] = "old"
		ctx, cancel := context.WithCancel(t.Context())
		if n == 0 {
			cancel()
		}
		s := steps
		_, err := Run(ctx, &Source{File: file}, RunOptions{Steps: &s, Out: out, Step: func(step *Step) {
			if step.Number == n {
				cancel()
			}
		}})
		cancel()
		var stop *StopError
		if !errors.As(err, &stop) {
			t.Fatalf("after step %d: error %v", n, err)
		}
		if n > 0 && !strings.HasPrefix(stop.Left, "after step "+string(rune('0'+n))) {
			t.Errorf("after step %d it says %v", n, err)
		}
		if got := content(t, out); got != full[n] {
			t.Errorf("after step %d, %d bytes are saved that are not of that step", n, len(got))
		}
		if files, _ := os.ReadDir(filepath.Dir(out)); len(files) != 1 {
			t.Errorf("after step %d the folder has %v", n, files)
		}
	}
}

// The saving can be stopped too.
func TestStopSaving(t *testing.T) {
	file, out := write(t, "trained.pp", trained), filepath.Join(t.TempDir(), "out.npz")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Run(ctx, &Source{File: file}, RunOptions{Out: out, Saving: ctx, Step: func(*Step) { cancel() }})
	if err == nil || !strings.Contains(err.Error(), "after step 1, with 1 left: nothing was saved: stopped") {
		t.Errorf("error %v", err)
	}
	if files, _ := os.ReadDir(filepath.Dir(out)); len(files) != 0 {
		t.Errorf("the folder has %v", files)
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Of a file of batches, a run reads those of its own steps, in whichever
// format; the first step of a run that resumes is not the file's first.
func TestBatchesOfOneRun(t *testing.T) {
	file := write(t, "trained.pp", trained)
	dir := t.TempDir()
	tokens := iota(ir.I32, 4, 8, 2)
	for i := range tokens.Data {
		if i%4 == 0 {
			tokens.Data[i] = byte(i/4) * 7 % 16
		} else {
			tokens.Data[i] = 0
		}
	}
	arrays := []tensorfile.Named{{Name: "tokens", Array: tokens}, {Name: "targets", Array: tokens}}
	var states []string
	for _, data := range []string{"data.npz", "data.safetensors"} {
		path := filepath.Join(dir, data)
		if err := writeArrays(t.Context(), path, arrays); err != nil {
			t.Fatal(err)
		}
		set := []string{`train.data="` + filepath.ToSlash(path) + `"`}
		once, half, rest := filepath.Join(dir, "once.npz"), filepath.Join(dir, "half.npz"), filepath.Join(dir, "rest.npz")
		two, four := 2, 4
		for _, o := range []RunOptions{{Steps: &four, Out: once}, {Steps: &two, Out: half}, {Steps: &two, Args: half, Out: rest}} {
			if _, err := Run(t.Context(), &Source{File: file, Set: set}, o); err != nil {
				t.Fatal(err)
			}
		}
		if content(t, once) != content(t, rest) {
			t.Errorf("%s: two steps and two more are not four", data)
		}
		states = append(states, content(t, once))
	}
	if states[0] != states[1] {
		t.Error("the two formats differ")
	}
}

// Training that is stopped does not wait for somebody to read the pipe that its
// results go to.
func TestStopBeforePipe(t *testing.T) {
	file, out := write(t, "trained.pp", trained), filepath.Join(t.TempDir(), "out.npz")
	if err := exec.Command("mkfifo", out).Run(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, &Source{File: file}, RunOptions{Out: out, Step: func(*Step) {
			time.AfterFunc(100*time.Millisecond, func() { cancel(&Stop{By: "the test", Exit: 7}) })
		}})
		done <- err
	}()
	select {
	case err := <-done:
		if ExitCode(err) != 7 || !strings.Contains(err.Error(), "nothing was saved, for "+out+" is no regular file") {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
}

// What a run keeps does not grow with its steps, unless something is compared with them.
func TestHistory(t *testing.T) {
	for _, check := range []bool{false, true} {
		r := &runner{src: &Source{File: write(t, "trained.pp", trained)}, opts: RunOptions{Check: check}}
		if _, err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: r.steps}[check]; len(r.history) != want {
			t.Errorf("check %v: the scalars of %d steps are kept, want %d", check, len(r.history), want)
		}
	}
}
