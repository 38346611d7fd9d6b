package layers

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The largest that a package and a function may be, tests and generated files not
// counted.
const (
	maxFiles         = 40
	maxPackageLines  = 6000
	maxFunctionLines = 80
)

// TestSizes holds packages and functions to a size that a reader can keep in mind.
func TestSizes(t *testing.T) {
	type size struct{ files, lines int }
	packages := make(map[string]size)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipped(path, d)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		p := packages[filepath.Dir(path)]
		packages[filepath.Dir(path)] = size{p.files + 1, p.lines + bytes.Count(src, []byte("\n"))}
		checkFunctions(t, fset, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, p := range packages {
		if p.files > maxFiles || p.lines > maxPackageLines {
			t.Errorf("%s has %d files with %d lines, want at most %d with %d: split it", dir, p.files, p.lines, maxFiles, maxPackageLines)
		}
	}
}

func checkFunctions(t *testing.T, fset *token.FileSet, file *ast.File) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; n > maxFunctionLines {
			t.Errorf("%s: %s has %d lines, want at most %d: split it", fset.Position(f.Pos()), f.Name.Name, n, maxFunctionLines)
		}
	}
}
