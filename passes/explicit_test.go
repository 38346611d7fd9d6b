package passes

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/passes/pass"
)

// Every error of explicit mode names constraints that settle it: with each of
// them alone in the program, it lowers. Where there are several errors, it does
// with the first of each; what only follows from an error is none.
func TestExplicitErrors(t *testing.T) {
	golden.Run(t, "../testdata/golden/explicit", map[string]golden.Stage{"error": func(t *testing.T, src string, _ []string) string {
		err := lowered(t, src)
		if err == nil {
			t.Fatal("it lowers")
		}
		line, cures := curesIn(t, err.Error())
		for _, cure := range cures {
			if err := lowered(t, cured(src, line, cure)); err != nil {
				t.Errorf("with %s: %v", cure, err)
			}
		}
		return err.Error() + "\n"
	}, "errors": func(t *testing.T, src string, _ []string) string {
		err := lowered(t, src)
		if err == nil {
			t.Fatal("it lowers")
		}
		lines := strings.Split(err.Error(), "\n")
		settled := src
		for _, msg := range slices.Backward(lines) {
			line, cures := curesIn(t, msg)
			settled = cured(settled, line, cures[0])
		}
		if err := lowered(t, settled); len(lines) < 2 || err != nil {
			t.Errorf("%d errors; when they are settled: %v", len(lines), err)
		}
		return err.Error() + "\n"
	}})
}

// A random program in explicit mode computes the same numbers partitioned, or is
// refused with the place and a cure. Programs of few ops are often accepted.
func TestExplicitRandom(t *testing.T) {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}}
	accepted, refused := 0, 0
	for seed := range uint64(600) {
		m, args := randomProgram(seed, mesh, 1+int(seed%8))
		m.Attrs.Set("pp.mode", ir.Str("explicit"))
		err := partitionedEqual(m, args)
		var is *pass.Error
		switch {
		case err == nil:
			accepted++
		case errors.As(err, &is) && strings.Contains(is.Msg, "settle it with"):
			refused++
		default:
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if accepted < 100 || refused < 100 {
		t.Errorf("%d programs are accepted and %d refused, which shows little", accepted, refused)
	}
}

// The reference's programs in explicit mode lower, or give the error that
// follows them.
func TestExplicitReference(t *testing.T) {
	doc, err := os.ReadFile("../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	shown, programs := 0, regexp.MustCompile("(?ms)^```pp\n(.*?)^```\n(?:\n```text\nmodel(.*?)^```\n)?").FindAllStringSubmatch(string(doc), -1)
	for _, p := range programs {
		if !strings.Contains(p[1], "mode = explicit") {
			continue
		}
		got := ""
		if err := lowered(t, p[1]); err != nil {
			got, shown = strings.TrimPrefix(strings.ReplaceAll(err.Error(), "in.pp", "model.pp"), "model")+"\n", shown+1
		}
		if got != p[2] {
			t.Errorf("%s\ngives %q, the document shows %q", p[1], got, p[2])
		}
	}
	if shown == 0 {
		t.Error("the reference shows no error")
	}
}

// lowered is the error of lowering a program.
func lowered(t *testing.T, src string) error {
	t.Helper()
	p, err := lang.Load("in.pp", lang.Options{ReadFile: func(string) ([]byte, error) { return []byte(src), nil }})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return Run(p.Module, Config{})
}

var errorLine = regexp.MustCompile(`^in\.pp:(\d+):`)

// curesIn are the constraints that an error names, and the line it is about.
func curesIn(t *testing.T, msg string) (line int, cures []string) {
	t.Helper()
	at := errorLine.FindStringSubmatch(msg)
	_, list, ok := strings.Cut(msg, "settle it with ")
	if at == nil || !ok {
		t.Fatalf("%s: no place, or no cure", msg)
	}
	for _, c := range at[1] {
		line = 10*line + int(c-'0')
	}
	return line, strings.Split(list, " or ")
}

// cured is src with a constraint of a variable: after the line, if that defines
// it, else before.
func cured(src string, line int, cure string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(cure, "constrain("), ",")
	lines := strings.Split(src, "\n")
	at := line
	if !strings.HasPrefix(strings.TrimSpace(lines[line-1]), name+" =") {
		at--
	}
	lines[at] = "  " + name + " = " + cure + "\n" + lines[at]
	return strings.Join(lines, "\n")
}
