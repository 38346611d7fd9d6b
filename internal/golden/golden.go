// Package golden runs the golden tests: text archives under testdata/golden
// that hold one program and what the stages of the compiler make of it.
//
// An archive has the program in a file called in, with the extension of its
// language (in.pp, in.mlir, in.hlo), one file for each stage that it tests,
// and a comment above that says what it shows:
//
//	Two equal sums become one.
//	passes: cse dce
//	-- in.mlir --
//	…
//	-- passes --
//	…
//
// A file called cured, with an extension, is the program in which what the
// archive shows does not happen; tests of their own read it.
//
// A new expectation starts as an empty file. Run with PPC_UPDATE=1 to write
// what the stages give, and read the diff before you commit:
//
//	PPC_UPDATE=1 go test ./passes
//
// An environment variable and not a flag, because go test ./... hands a flag
// to every package, also to those that do not know it.
package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// A Stage turns a program into the text that the archive should hold. args
// are the words of the archive's comment line that begins with the stage's
// name and a colon, such as "passes: cse dce".
type Stage func(t *testing.T, src string, args []string) string

// Updating reports whether expectations are to be written, not compared.
func Updating() bool { return os.Getenv("PPC_UPDATE") == "1" }

// Run runs one subtest for each archive in dir: every file in it but the
// program must be what the stage of that name makes of the program. A file
// that no stage makes is an error, so no stale expectation stays behind, and so
// are an archive without a comment and one without an expectation.
func Run(t *testing.T, dir string, stages map[string]Stage) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives in %s (%v)", dir, err)
	}
	RunFiles(t, paths, stages)
}

// RunFiles is Run for the given archives.
func RunFiles(t *testing.T, paths []string, stages map[string]Stage) {
	t.Helper()
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			runArchive(t, path, stages)
		})
	}
}

func runArchive(t *testing.T, path string, stages map[string]Stage) {
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	in := program(ar)
	switch {
	case in == nil:
		t.Fatalf("%s: want one program, in.pp, in.mlir or in.hlo", path)
	case len(bytes.TrimSpace(ar.Comment)) == 0:
		t.Errorf("%s: want a comment that says what it shows", path)
	case len(ar.Files) == 1:
		t.Errorf("%s: want the output of at least one stage", path)
	}
	for i := range ar.Files {
		f := &ar.Files[i]
		if f == in || strings.HasPrefix(f.Name, "cured.") {
			continue
		}
		stage, ok := stages[f.Name]
		if !ok {
			t.Errorf("%s: no stage makes %s", path, f.Name)
			continue
		}
		got := wholeLines(stage(t, string(in.Data), args(ar.Comment, f.Name)))
		if Updating() {
			f.Data = []byte(got)
			continue
		}
		if diff := cmp.Diff(string(f.Data), got); diff != "" {
			t.Errorf("%s: %s differs (-want +got):\n%s", path, f.Name, diff)
		}
	}
	if Updating() && !t.Failed() {
		write(t, path, txtar.Format(ar))
	}
}

// program returns the only file called in, or nil.
func program(ar *txtar.Archive) *txtar.File {
	var in *txtar.File
	for i := range ar.Files {
		if strings.HasPrefix(ar.Files[i].Name, "in.") {
			if in != nil {
				return nil
			}
			in = &ar.Files[i]
		}
	}
	return in
}

// args returns the words after "stage:" in the comment.
func args(comment []byte, stage string) []string {
	for line := range strings.Lines(string(comment)) {
		if rest, ok := strings.CutPrefix(line, stage+":"); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

// wholeLines ends s with a newline, as every file of an archive does.
func wholeLines(s string) string {
	if s != "" && !strings.HasSuffix(s, "\n") {
		return s + "\n"
	}
	return s
}

func write(t *testing.T, path string, data []byte) {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, data) {
		return
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}
