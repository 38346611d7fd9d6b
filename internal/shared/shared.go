// Package shared finds the material that several checkouts share, which is too
// large for the repository: conformance suites, recorded oracles, tools. Only
// tests use it.
package shared

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the directory of shared material: PPC_SHARED, or the directory
// shared beside the module. Where there is none it skips the test, or fails it
// if CI=true, so that no check is lost unseen.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("PPC_SHARED")
	if dir == "" {
		dir = filepath.Join(Root(t), "..", "shared")
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return dir
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("no shared material in %s: set PPC_SHARED", dir)
	}
	t.Skipf("no shared material in %s", dir)
	return ""
}

// Root returns the directory of the module that the test belongs to.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd() // of the package under test
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("the test does not run inside a module")
		}
		dir = parent
	}
}
