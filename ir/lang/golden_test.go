package lang

import (
	"errors"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"ppc/internal/diag"
	"ppc/internal/golden"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/mlir"
)

const goldenDir = "../../testdata/golden/lang"

// inMemory is a ReadFile that knows one file, in.pp, and the examples.
func inMemory(src string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if name == "in.pp" {
			return []byte(src), nil
		}
		if strings.HasPrefix(name, "examples/") {
			return os.ReadFile("../../" + name)
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

// loadArgs is Load with the words of a golden's stage line: block.key=value
// for --set, devices=N, sequential, f64, train.
func loadArgs(src string, args []string) (*Program, error) {
	opts := config.Options{ReadFile: inMemory(src)}
	for _, a := range args {
		switch n, isDevices := strings.CutPrefix(a, "devices="); {
		case isDevices:
			opts.Devices, _ = strconv.Atoi(n)
		case a == "sequential":
			opts.Sequential = true
		case a == "f64":
			opts.Float64 = true
		case a == "train":
			opts.Train = true
		default:
			opts.Set = append(opts.Set, a)
		}
	}
	return Load("in.pp", opts)
}

func TestGolden(t *testing.T) {
	golden.Run(t, goldenDir, map[string]golden.Stage{
		"errors": func(t *testing.T, src string, args []string) string {
			_, err := loadArgs(src, args)
			if err == nil {
				t.Fatal("no error")
			}
			return err.Error() + "\n"
		},
		"warnings": func(t *testing.T, src string, args []string) string {
			p, err := loadArgs(src, args)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Warnings) == 0 {
				return ""
			}
			return p.Warnings.Error() + "\n"
		},
		"ir": func(t *testing.T, src string, args []string) string {
			p, err := loadArgs(src, args)
			if err != nil {
				t.Fatal(err)
			}
			return mlir.Print(p.Module)
		},
		"format": func(t *testing.T, src string, _ []string) string {
			out, err := syntax.Format("in.pp", []byte(src))
			if err != nil {
				t.Fatal(err)
			}
			again, err := syntax.Format("in.pp", out)
			if err != nil || string(again) != string(out) {
				t.Errorf("formatting again gives (%v)\n%s", err, again)
			}
			return string(out)
		},
	})
}

// oneOfMany is a number of things that is not told as one.
var oneOfMany = regexp.MustCompile(`(?:^|[^\w.])1 (?:layer|stage|repeat|microbatche|device|row|part|value|name|argument|element|step|axe|file|statement|byte)s\b`)

// What is counted is told in the singular where it is one.
func TestPlurals(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatal(len(paths), err)
	}
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range ar.Files {
			if m := oneOfMany.FindString(string(f.Data)); m != "" && (f.Name == "errors" || f.Name == "warnings") {
				t.Errorf("%s: %s", path, m)
			}
		}
	}
}

// unreadable are inputs that no archive should hold.
var unreadable = []struct {
	name string
	src  func() string
	want string // the first line of the error
}{
	{"parentheses", func() string { return strings.Repeat("(", 10<<20) }, "in.pp:1:101: brackets nest 101 deep, at most 100 are read"},
	{"too long", func() string { return strings.Repeat("axes { a = 1 }\n", 1<<17) }, "in.pp:1:1: the file has 1966080 bytes, at most 262144 are read"},
	{"not UTF-8", func() string { return "axes { a = 1 }\n// caf\xe9\n" }, "in.pp:2:7: byte 0xe9 is not UTF-8"},
	{"sums", func() string {
		return "axes { a = " + strings.Repeat("1+", 2000) + "1 }; model m(x: f32) { return x }"
	}, "in.pp:1:1013: more than 500 operators in a row"},
	{"signs", func() string { return "axes { a = " + strings.Repeat("-", 2000) + "1 }; model m(x: f32) { return x }" }, "in.pp:1:513: more than 500 operators in a row"},
	{"calls", func() string {
		return "axes { a = b" + strings.Repeat("()", 1000) + " }; model m(x: f32) { return x }"
	}, "in.pp:1:1014: more than 500 operators in a row"},
	{"doubling", doubling, "in.pp:1:28: calls of functions inside functions make more than 131072 statements"},
	{"deep calls", deepCalls, "in.pp:7:19: functions call each other 64 deep"},
	{"errors", func() string { return strings.Repeat("types { a = f32 }\n", 200) }, "in.pp:2:9: types a is declared twice, first on line 1"},
}

// doubling calls each function twice, 60 functions deep.
func doubling() string {
	var b strings.Builder
	b.WriteString("axes { n = 4 }; fn f0(x) { return x }\n")
	for i := range 60 {
		prev := strconv.Itoa(i)
		b.WriteString("fn f" + strconv.Itoa(i+1) + "(x) { x = f" + prev + "(x); return f" + prev + "(x) }\n")
	}
	return b.String() + "model m(x: f32[n]) { return f60(x) }\n"
}

// deepCalls is 70 functions that call each other in a row.
func deepCalls() string {
	var b strings.Builder
	b.WriteString("axes { n = 4 }; fn f0(x) { return x }\n")
	for i := range 69 {
		b.WriteString("fn f" + strconv.Itoa(i+1) + "(x) { return f" + strconv.Itoa(i) + "(x) }\n")
	}
	return b.String() + "model m(x: f32[n]) { return f69(x) }\n"
}

func TestUnreadable(t *testing.T) {
	for _, tt := range unreadable {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadArgs(tt.src(), nil)
			if err == nil {
				t.Fatal("no error")
			}
			if got, _, _ := strings.Cut(err.Error(), "\n"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if n := len(err.Error()); n > 100000 {
				t.Errorf("a message of %d bytes", n)
			}
		})
	}
}

// Every message has an example that yields it.
func TestMessages(t *testing.T) {
	seen := make(map[string]bool)
	note := func(p *Program, err error) {
		var l diag.List
		if !errors.As(err, &l) && p != nil {
			l = p.Warnings
		}
		for _, d := range l {
			seen[d.Template] = true
		}
	}
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == "in.pp" })
		var args []string
		for line := range strings.Lines(string(ar.Comment)) {
			for _, stage := range []string{"errors:", "warnings:"} {
				if rest, ok := strings.CutPrefix(line, stage); ok {
					args = strings.Fields(rest)
				}
			}
		}
		note(loadArgs(string(ar.Files[i].Data), args))
	}
	for _, tt := range unreadable {
		note(loadArgs(tt.src(), nil))
	}
	if p, err := loadArgs("hardware { memory = 16 }\nmodel m(x: f32) { return x }", nil); err == nil {
		note(&Program{Warnings: diag.List{p.WarnMemory(17, strconv.Itoa)}}, nil)
	}
	note(Load("missing.pp", config.Options{ReadFile: inMemory("")}))
	note(Load("0.pp", config.Options{ReadFile: func(name string) ([]byte, error) { // includes without end
		n, _ := strconv.Atoi(strings.TrimSuffix(name, ".pp"))
		return []byte(`include "` + strconv.Itoa(n+1) + `.pp"`), nil
	}}))
	for name, text := range messages(t) {
		if !seen[text] {
			t.Errorf("%s has no example under %s: %s", name, goldenDir, text)
		}
	}
}

// messages are the constants of syntax/messages.go.
func messages(t *testing.T) map[string]string {
	out := make(map[string]string)
	f, err := parser.ParseFile(gotoken.NewFileSet(), "syntax/messages.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != gotoken.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out[v.Names[0].Name] = text
		}
	}
	return out
}
