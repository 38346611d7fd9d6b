// Package layers holds the import rule of ppc, and the sizes of its packages and
// functions, as tests.
package layers

import (
	"go/build"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowed says which packages of ppc each package may import outside of its
// tests; internal/* is open to all. What is not here may import none.
//
//	ir <- ir/verify, ir/dialect <- ir/facts <- passes/pass, passes/rewrite, passes/layout <- the rooms of passes <- passes
//	ir, ir/dialect <- ir/mlir, ir/lang, ir/eval, ir/xla <- passes <- lower, lower/hlo, lower/flow, lower/stats, lower/lint, lower/report <- driver <- cmd/ppc
//	ir, lower/fuse, lower/schedule, lower/strips <- runtime/kernel, runtime <- driver
var allowed = map[string][]string{
	"ir/verify":     {"ir"},
	"ir/dialect":    {"ir"},
	"ir/mlir":       {"ir", "ir/verify", "ir/dialect", "ir/mlir/names", "ir/mlir/element"},
	"ir/lang":       {"ir", "ir/verify", "ir/dialect", "ir/lang/syntax", "ir/lang/value", "ir/lang/config"},
	"ir/eval":       {"ir", "ir/verify", "ir/dialect", "ir/lapackcall"},
	"ir/lapackcall": {"ir"},

	"ir/mlir/names":   {"ir"},
	"ir/mlir/element": {"ir"},

	"ir/lang/syntax": {"ir"},
	"ir/lang/value":  {"ir", "ir/lang/syntax"},
	"ir/lang/config": {"ir", "ir/lang/syntax", "ir/lang/value"},

	"ir/xla": {"ir"},

	"ir/facts": {"ir", "ir/dialect"},

	"passes/pass":    {"ir"},
	"passes/rewrite": {"ir", "ir/facts", "passes/pass"},
	"passes/layout":  {"ir", "ir/facts", "passes/pass"},

	"passes/pipeline":  {"ir", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},
	"passes/gradient":  {"ir", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},
	"passes/optimizer": {"ir", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},
	"passes/expand":    {"ir", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},
	"passes/bubbles":   {"ir", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},
	"passes/combine":   {"ir", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},
	"passes/propagate": {"ir", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},
	"passes/pad":       {"ir", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},
	"passes/partition": {"ir", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},
	"passes/tidy":      {"ir", "ir/eval", "ir/facts", "passes/pass", "passes/rewrite", "passes/layout"},

	"passes": {
		"ir", "ir/verify", "passes/pass", "passes/pipeline", "passes/gradient", "passes/optimizer", "passes/expand",
		"passes/bubbles", "passes/combine", "passes/propagate", "passes/pad", "passes/partition", "passes/tidy",
	},
	"lower":            {"ir", "ir/facts", "ir/verify", "ir/mlir"},
	"lower/hlo":        {"ir", "ir/verify", "ir/dialect", "ir/mlir", "lower", "lower/hlo/syntax"},
	"lower/hlo/syntax": {"ir"},
	"lower/hlo/rules":  {"ir", "ir/verify", "ir/dialect", "lower/hlo", "lower/hlo/syntax"},
	"lower/flow":       {"ir"},
	"lower/fuse":       {"ir"},
	"lower/schedule":   {"ir"},
	"lower/strips":     {"ir"},
	"lower/stats":      {"ir", "lower/flow", "lower/strips"},
	"lower/lint":       {"ir", "passes/pass", "passes/propagate", "lower", "lower/flow", "lower/hlo", "lower/stats"},

	"lower/report": {"ir", "ir/facts", "lower/flow", "lower/hlo", "lower/lint", "lower/stats"},

	"runtime/kernel/scalar": {"ir"},
	"runtime/kernel/native": {"ir", "lower/fuse", "runtime/kernel/scalar"},
	"runtime/kernel":        {"ir", "ir/dialect", "ir/lapackcall", "lower/fuse", "lower/strips", "runtime/kernel/native", "runtime/kernel/scalar"},
	"runtime":               {"ir", "ir/facts", "ir/verify", "lower/fuse", "lower/schedule", "lower/strips", "runtime/kernel"},
	"runtime/pjrt":          {"ir"},

	"import/maxtext": {"ir/lang/syntax"},

	"driver/binding":  {"ir", "runtime/kernel"},
	"driver/rounding": {"driver/binding", "ir"},
	"driver/suite":    {"ir", "ir/eval", "ir/mlir", "ir/verify", "passes", "runtime"},
	"driver/view":     {"ir", "ir/mlir"},
	"driver/trace":    {"ir", "ir/facts", "lower/stats", "runtime"},
	"driver/job":      {"ir"},
	"driver/data":     {"ir"},
	"driver/against":  {"ir", "passes/rewrite"},

	"driver": {"ir/facts", "driver/against", "driver/binding", "driver/rounding", "ir/verify", "passes/expand", "passes/rewrite", "driver/data", "driver/job", "driver/suite", "driver/trace", "driver/view", "import/maxtext", "ir", "ir/mlir", "ir/lang", "ir/lang/syntax", "ir/lang/config", "ir/eval", "ir/xla", "passes", "passes/pass", "lower", "lower/hlo", "lower/hlo/rules", "lower/lint", "lower/report", "lower/stats", "lower/strips", "runtime", "runtime/kernel", "runtime/pjrt"},

	"cmd/ppc": {"driver", "runtime/pjrt"},
}

// testOnly are the internal packages that help tests: no other code imports
// them, but for each other.
var testOnly = []string{"internal/browser", "internal/conformance", "internal/golden", "internal/optest", "internal/paired", "internal/shared", "internal/wordfuzz"}

// root is the folder of the module.
const root = "../.."

// skipped is [filepath.SkipDir] for a folder that has no packages of ppc.
func skipped(dir string, d fs.DirEntry) error {
	if name := d.Name(); dir != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
		return filepath.SkipDir
	}
	return nil
}

func TestImports(t *testing.T) {
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if err := skipped(dir, d); err != nil {
			return err
		}
		pkg, err := build.ImportDir(dir, 0)
		if err != nil {
			return nil // no Go files here
		}
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		checkImports(t, filepath.ToSlash(rel), pkg.Imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkImports(t *testing.T, dir string, imports []string) {
	for _, imp := range imports {
		inner, ok := strings.CutPrefix(imp, "ppc/")
		if !ok {
			continue
		}
		switch {
		case slices.Contains(testOnly, inner) && slices.Contains(testOnly, dir):
		case slices.Contains(testOnly, dir) && path.Dir(inner) == "internal":
		case slices.Contains(testOnly, inner):
			t.Errorf("%s imports %s, which is for tests", dir, inner)
		case dir == "internal/optest" && slices.Contains([]string{"ir", "ir/facts"}, inner):
		case path.Dir(dir) == "internal":
			t.Errorf("%s imports %s: internal packages import nothing of ppc", dir, inner)
		case path.Dir(inner) != "internal" && !slices.Contains(allowed[dir], inner):
			t.Errorf("%s imports %s, which its layer does not allow", dir, inner)
		}
	}
}
