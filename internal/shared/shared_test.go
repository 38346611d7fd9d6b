package shared

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A recorder is a test of which is recorded how it ends.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) { r.skipped += fmt.Sprintf(format, args...) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed += fmt.Sprintf(format, args...)
	panic(r)
}

// dir calls Dir for a test that is recorded.
func dir(r *recorder, folder string) (dir string) {
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
	}()
	return Dir(r, folder)
}

// Without a folder a test is skipped in one line, and fails under CI.
func TestDir(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PPC_SHARED", root)
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		there, gone := &recorder{TB: t}, &recorder{TB: t}
		if got := dir(there, "a/b"); got != filepath.Join(root, "a", "b") || there.skipped+there.failed != "" {
			t.Errorf("CI=%s: %q, skipped %q, failed %q", ci, got, there.skipped, there.failed)
		}
		dir(gone, "a/c")
		said, other := gone.skipped, gone.failed
		if ci != "" {
			said, other = other, said
		}
		if !strings.Contains(said, "there is no a/c in "+root) || strings.Contains(said, "\n") || other != "" {
			t.Errorf("CI=%s: skipped %q, failed %q", ci, gone.skipped, gone.failed)
		}
	}
}
