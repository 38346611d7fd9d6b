package passes

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/golden"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/passes/pass"
)

const goldenDir = "../testdata/golden/passes"

// Every archive is called after one of the passes that it runs, and every pass
// has one.
func TestGolden(t *testing.T) {
	golden.Run(t, goldenDir, map[string]golden.Stage{"after.mlir": after})
	for _, p := range Table {
		if paths, _ := filepath.Glob(filepath.Join(goldenDir, fileOf(p.Name)+"*.txtar")); len(paths) == 0 {
			t.Errorf("testdata/golden/passes has no archive %s_*.txtar of the pass %s", fileOf(p.Name), p.Name)
		}
	}
}

// fileOf is what the names of archives of the pass called name begin with.
func fileOf(name string) string { return strings.ReplaceAll(name, "-", "_") }

// after runs the passes named in the archive over the program and prints.
func after(t *testing.T, src string, names []string) string {
	archive := path.Base(t.Name())
	if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(archive, fileOf(name)) }) {
		t.Fatalf("the archive %s runs the passes %q, none of which it is called after: say \"after.mlir: PASS…\" in its comment, and call it PASS_WHAT.txtar", archive, names)
	}
	m, err := mlir.Parse("in.mlir", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Verify(m); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p := byName(name)
		if p == nil {
			t.Fatalf("no pass is called %q", name)
		}
		q := *p
		q.Ensures = 0 // the archive may lack what the passes before would have made
		if err := runOne(&q, m, nil, new(verify.Checker)); err != nil {
			return err.Error() + "\n"
		}
	}
	return mlir.Print(m)
}

func byName(name string) *pass.Pass {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	return nil
}
