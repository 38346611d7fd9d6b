package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// setting is a literal that names a variable of the environment which says what tests
// do, but for that with which they write what they are compared with.
var setting = regexp.MustCompile(`^"(CI|PPC_[A-Z_]+)"$`)

const updating = `"PPC_UPDATE"`

// TestSettings: tests read these variables by shared.Setting, which says so, as
// .ci/run repeats only the tests that have asked for what is set.
func TestSettings(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipped(path, d)
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if !strings.HasSuffix(path, "_test.go") && (filepath.Ext(path) != ".go" || !slices.Contains(testOnly, filepath.ToSlash(rel))) {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		named := make(map[ast.Node]bool) // as settings, or to be set
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				name := ""
				switch f := n.Fun.(type) {
				case *ast.SelectorExpr:
					name = f.Sel.Name
				case *ast.Ident:
					name = f.Name
				}
				if at := slices.Index([]string{"Setenv", "Setting"}, name); at >= 0 && at < len(n.Args) {
					named[n.Args[at]] = true
				}
			case *ast.BasicLit:
				if setting.MatchString(n.Value) && n.Value != updating && !named[n] {
					t.Errorf("%s: %s is not read by shared.Setting", fset.Position(n.Pos()), n.Value)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
