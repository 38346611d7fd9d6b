package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ppc/internal/atomicfile"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/passes"
)

// A UsageError is a flag that does not fit the others or the file.
type UsageError struct{ Msg string }

func (e *UsageError) Error() string { return e.Msg }

func usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// A Bug is an error of ppc itself.
type Bug struct {
	Stage      string // a pass, or what else ppc was at
	Cause      error
	Stack      []byte // of a panic
	Reproducer string // a file that shows it; "" where none could be written
	Command    string // that runs into it again
}

func (b *Bug) Error() string {
	text := fmt.Sprintf("ppc is wrong: %s: %v", b.Stage, b.Cause)
	if b.Reproducer != "" {
		text += fmt.Sprintf("\n  reproducer: %s\n  to see it again: %s", b.Reproducer, b.Command)
	}
	return text
}

func (b *Bug) Unwrap() error { return b.Cause }

// A reproducer is the input of the stage at work, to be kept should it break.
type reproducer struct {
	dir     string // "" for the system's folder of temporary files
	pattern string // of the file's name
	text    func() string
	command string // %s is the file
}

// keep writes the reproducer. That must not fail for what broke the stage.
func (b *Bug) keep(r reproducer) {
	defer func() {
		// What is wrong with the module that broke the stage may break its printer too.
		if recover() != nil {
			b.Reproducer = ""
		}
	}()
	dir := r.dir
	if dir == "" {
		dir = os.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return
	}
	f, err := os.CreateTemp(dir, r.pattern)
	if err != nil {
		return
	}
	f.Close()
	if atomicfile.WriteBytes(context.Background(), f.Name(), []byte(r.text())) != nil {
		os.Remove(f.Name())
		return
	}
	b.Reproducer, b.Command = f.Name(), fmt.Sprintf(r.command, f.Name())
}

// passBug makes of a broken pass a Bug with a reproducer: the module that the
// pass got.
func passBug(err error, dir string) error {
	var broken *passes.Bug
	if !errors.As(err, &broken) {
		return err
	}
	bug := &Bug{Stage: "pass " + broken.Pass, Cause: broken.Cause, Stack: broken.Stack}
	if broken.Before != nil {
		bug.keep(moduleReproducer(broken.Before, dir, broken.Pass, "ppc lower --after="+broken.Pass+" %s"))
	}
	return bug
}

func moduleReproducer(m *ir.Module, dir, stage, command string) reproducer {
	return reproducer{dir: dir, pattern: "ppc-" + stage + "-*.mlir", text: func() string { return mlir.Print(m) }, command: command}
}

// Exit codes.
const (
	ExitDone        = 0
	ExitInput       = 1 // the input or the outside world is wrong
	ExitUsage       = 2
	ExitBug         = 3   // ppc is wrong
	ExitTimeout     = 124 // --timeout
	ExitInterrupted = 130 // Ctrl-C; other signals have 128 and their number too
)

// ExitCode is the exit status that goes with err.
func ExitCode(err error) int {
	var use *UsageError
	var bug *Bug
	var stop *StopError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &bug):
		return ExitBug
	case errors.As(err, &use):
		return ExitUsage
	case errors.As(err, &stop):
		return stop.Stop.Exit
	}
	return ExitInput
}

// fileError says of a file what the system said, without the system's call.
func fileError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", filepath.ToSlash(p.Path), p.Err)
	}
	return err
}

// inFile begins err with the name of the file that it is about, unless it says a
// place in that file already.
func inFile(file string, err error) error {
	if strings.HasPrefix(err.Error(), file+":") {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// writeError says which file could not be written and why.
func writeError(path string, err error) error {
	var p *fs.PathError
	if err == nil || errors.As(err, &p) {
		return fileError(err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
