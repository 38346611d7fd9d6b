package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/passes"
	"ppc/runtime"
)

func TestGuard(t *testing.T) {
	dir := t.TempDir()
	r := reproducer{dir: dir, pattern: "ppc-rotate-*.mlir", text: func() string { return "module {}" }, command: "ppc lower %s"}
	_, err := guard(t.Context(), "pass rotate", r, func() (int, error) { panic("index out of range") })
	var bug *Bug
	if !errors.As(err, &bug) {
		t.Fatalf("error %v, want a bug", err)
	}
	for _, want := range []string{"ppc is wrong: pass rotate: panic: index out of range", bug.Reproducer, "ppc lower " + dir} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want it to say %q", err, want)
		}
	}
	if text, _ := os.ReadFile(bug.Reproducer); string(text) != "module {}" {
		t.Errorf("the reproducer holds %q", text)
	}
	if filepath.Dir(bug.Reproducer) != dir || len(bug.Stack) == 0 {
		t.Errorf("reproducer %s, %d bytes of stack", bug.Reproducer, len(bug.Stack))
	}
}

// A module so broken that it cannot be printed is still reported.
func TestGuardWithoutReproducer(t *testing.T) {
	r := reproducer{dir: t.TempDir(), pattern: "x-*", text: func() string { panic("again") }, command: "%s"}
	_, err := guard(t.Context(), "printing", r, func() (int, error) { panic("first") })
	if err == nil || !strings.Contains(err.Error(), "first") || strings.Contains(err.Error(), "reproducer") {
		t.Errorf("error %v", err)
	}
}

// A broken pass leaves the module that it got, and the command that shows it.
func TestPassBug(t *testing.T) {
	dir := t.TempDir()
	before := &ir.Module{Name: "before", Funcs: []*ir.Func{ir.NewFunc("main")}}
	err := passBug(fmt.Errorf("lowering: %w", &passes.Bug{Pass: "rotate", Cause: errors.New("panic: x"), Before: before}), dir)
	var bug *Bug
	if !errors.As(err, &bug) {
		t.Fatalf("error %v, want a bug", err)
	}
	if text, _ := os.ReadFile(bug.Reproducer); !strings.Contains(string(text), "module @before") {
		t.Errorf("the reproducer holds %q", text)
	}
	if want := "ppc lower --after=rotate " + bug.Reproducer; !strings.Contains(err.Error(), "pass rotate: panic: x") || bug.Command != want {
		t.Errorf("error %v, want pass, cause and %q", err, want)
	}
	if err := passBug(os.ErrNotExist, dir); err != os.ErrNotExist {
		t.Errorf("another error became %v", err)
	}
}

func TestRunError(t *testing.T) {
	r := reproducer{dir: t.TempDir(), pattern: "x-*", text: func() string { return "" }, command: "ppc run %s"}
	broken := &runtime.Fault{Err: errors.New("index out of range"), Stack: []byte("stack")}
	if err := runError(t.Context(), broken, r); ExitCode(err) != ExitBug {
		t.Errorf("a panic on a device is %v", err)
	}
	if err := runError(t.Context(), &runtime.Fault{Err: errors.New("killed")}, r); ExitCode(err) != ExitInput {
		t.Errorf("a fault of a device is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runError(ctx, errors.New("x"), r); ExitCode(err) != ExitInterrupted {
		t.Errorf("the end of the context is %v", err)
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{&Mismatch{}, 1},
		{usage("x"), 2},
		{fmt.Errorf("file: %w", usage("x")), 2},
		{&Bug{Stage: "x"}, 3},
		{errors.Join(errors.New("x"), &Bug{}), 3},
		{fmt.Errorf("reference: %w", &StopError{Stop: &Stop{Exit: 143}}), 143},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v exits with %d, want %d", c.err, got, c.want)
		}
	}
}
