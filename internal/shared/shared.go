// Package shared finds what tests read: the files of the module, and the
// material that several checkouts share, which is other people's text and not
// part of the module: the suites of StableHLO, Shardy and XLA, and programs that
// JAX exported. Only tests use it.
package shared

import (
	"os"
	"path/filepath"
	"testing"
)

// Setting is the variable of the environment called name, which is CI or begins
// with PPC_. What test asked is an attribute of it that go test -json shows: a run
// with other variables need only repeat the tests that asked for one of them.
// Tests read such variables in no other way.
func Setting(t testing.TB, name string) string {
	t.Helper()
	t.Attr("setting", name)
	return os.Getenv(name)
}

// Dir returns a folder of the shared material, such as "conformance", below
// PPC_SHARED or below the directory shared beside the module. Where it is not
// there the test is skipped, or fails if CI=true, so that no check is lost
// unseen.
func Dir(t testing.TB, folder string) string {
	t.Helper()
	root := Setting(t, "PPC_SHARED")
	if root == "" {
		root = filepath.Join(Root(t), "..", "shared")
	}
	dir := filepath.Join(root, filepath.FromSlash(folder))
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return dir
	}
	if Setting(t, "CI") == "true" {
		t.Fatalf("there is no %s in %s: set PPC_SHARED", folder, root)
	}
	t.Skipf("there is no %s in %s: set PPC_SHARED", folder, root)
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

// Oracle returns the file of testdata/oracle that holds the arrays called name.
func Oracle(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(Root(t), "testdata", "oracle", name+".npz")
}

// CPUPlugin returns a PJRT plugin of CPU devices: that of the package xla-cpu-pjrt
// in the environment of PPC_PYTHON. Without that variable the test is skipped.
func CPUPlugin(t testing.TB) string {
	t.Helper()
	python := Setting(t, "PPC_PYTHON")
	if python == "" {
		t.Skip("no PJRT plugin: set PPC_PYTHON to a python with xla-cpu-pjrt")
	}
	pattern := filepath.Join(filepath.Dir(filepath.Dir(python)), "lib", "python3*", "site-packages", "xla_plugins", "xla_cpu_pjrt", "*.so")
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(files) > 0:
	case Setting(t, "CI") == "true":
		t.Fatalf("%s has no package xla-cpu-pjrt: pip install xla-cpu-pjrt", python)
	default:
		t.Skipf("%s has no package xla-cpu-pjrt", python)
	}
	return files[0]
}
