package lang_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ppc/internal/diag"
	"ppc/internal/golden"
	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/lang/syntax"
)

// example is a block of code in a document, with what stands right after it:
// the errors that it yields.
var example = regexp.MustCompile("(?ms)^```pp(?: ([a-z]+))?\n(.*?)^```\n(\n```\n(.*?)^```\n)?")

// A reference is a document whose examples are run.
//
// An example is a program, or a file without a model; the comment in its first
// line may name it, for later ones to include. One marked fragment is
// statements that stand where the one marked frame, which comes first, has a
// line with … alone. An example that a block without a language follows must
// yield the errors in it, with lines counted from the example's first; any
// other must be right. A comment behind an assignment that is a type, or that
// describes a value known before the program runs, must be true.
//
// PPC_UPDATE=1 formats the examples and writes the errors.
type reference struct {
	t     *testing.T
	frame string
	named map[string]string
}

func TestLanguageReference(t *testing.T) {
	path := filepath.Join(shared.Root(t), "docs", "language.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &reference{t: t, named: make(map[string]string)}
	var out bytes.Buffer
	end, count := 0, 0
	for _, at := range example.FindAllSubmatchIndex(doc, -1) {
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return string(doc[at[2*i]:at[2*i+1]])
		}
		line := 1 + bytes.Count(doc[:at[0]], []byte("\n"))
		count++
		var text, errs string
		t.Run(fmt.Sprintf("line %d", line), func(t *testing.T) {
			r.t = t
			text, errs = r.run(group(1), group(2), group(4), at[6] >= 0)
		})
		out.Write(doc[end:at[4]])
		out.WriteString(text + "```\n")
		if at[6] >= 0 {
			out.WriteString("\n```\n" + errs + "```\n")
		}
		end = at[1]
	}
	out.Write(doc[end:])
	if count == 0 {
		t.Error("the reference has no examples")
	}
	if golden.Updating() && !t.Failed() && !bytes.Equal(out.Bytes(), doc) {
		if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

const hole = "  …\n"

// run checks one example. It returns the text and the errors as they should
// be.
func (r *reference) run(mark, text, want string, fails bool) (formatted, errs string) {
	src, before := text, 0
	switch mark {
	case "frame":
		if r.frame = text; strings.Count(text, hole) != 1 {
			r.t.Fatal("the frame has no line with … alone")
		}
		src = strings.Replace(text, hole, "", 1)
	case "fragment":
		above, below, _ := strings.Cut(r.frame, hole)
		src, before = above+indent(text)+below, strings.Count(above, "\n")
	case "":
		if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "// ") && strings.HasSuffix(first, ".pp") {
			r.named[first[3:]] = text
		}
	default:
		r.t.Fatalf("examples are not marked %s", mark)
	}
	errs = r.load(src, before)
	switch {
	case fails && errs == "":
		r.t.Error("it should fail")
	case !fails && errs != "":
		r.t.Errorf("it fails:\n%s", errs)
	case errs != want && !golden.Updating():
		r.t.Errorf("it fails with\n%s\nthe document shows\n%s", errs, want)
	}
	if !fails {
		r.types(src)
		r.layouts(src)
	}
	return r.format(mark, text, src), errs
}

// format formats an example that can be read.
func (r *reference) format(mark, text, src string) string {
	out, err := syntax.Format("model.pp", []byte(src))
	if err != nil || mark == "frame" {
		return text
	}
	got := string(out)
	if mark == "fragment" {
		above, below, _ := strings.Cut(r.frame, hole)
		got = unindent(strings.TrimSuffix(strings.TrimPrefix(got, above), below))
	}
	if got != text && !golden.Updating() {
		r.t.Errorf("it is not formatted; this is\n%s", got)
	}
	return got
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	return b.String()
}

func unindent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(line, "  "))
	}
	return b.String()
}

// load returns the errors of a program; before lines stand above the example.
func (r *reference) load(src string, before int) string {
	_, err := lang.Load("model.pp", lang.Options{Library: true, ReadFile: r.read(src)})
	var list diag.List
	if err != nil && !errors.As(err, &list) {
		r.t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range list {
		if before > 0 { // as it stands in the document
			d.Line, d.Col, d.Text = d.Line-before, d.Col-2, strings.TrimPrefix(d.Text, "  ")
		}
		b.WriteString(d.String())
	}
	return b.String()
}

func (r *reference) read(src string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if name == "model.pp" {
			return []byte(src), nil
		}
		if text, ok := r.named[name]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

var (
	// typed is an assignment with a type or a description in the comment.
	typed = regexp.MustCompile(`^ +([a-z_0-9]+) += .* // ((?:[a-z]+[0-9]+(?:\[.*\])?)|(?:the (?:number|axis) .*))$`)
	// described is what an if says of a condition that is no truth value.
	described = regexp.MustCompile(`cannot depend on (.*), which is known|want a truth value, have (.*)`)
)

// types holds the comments behind assignments against what the checker says
// of the variable: put into a condition, it is refused by its type.
func (r *reference) types(src string) {
	lines := strings.SplitAfter(src, "\n")
	for i, line := range lines {
		m := typed.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		asked := strings.Join(lines[:i+1], "") + "if " + m[1] + " { }\n" + strings.Join(lines[i+1:], "")
		said := described.FindStringSubmatch(r.load(asked, 0))
		if said == nil {
			r.t.Errorf("nothing is said of %s in %s", m[1], line)
		} else if got := said[1] + said[2]; got != m[2] {
			r.t.Errorf("%s is %s, the comment says %s", m[1], got, m[2])
		}
	}
}

// stated is a param with a comment that states its sharding.
var stated = regexp.MustCompile(`(?m)^ +param (\w+): .* // (\w+ (?:unsharded|along ).*)$`)

func (r *reference) layouts(src string) {
	found := stated.FindAllStringSubmatch(src, -1)
	if found == nil {
		return
	}
	p, err := lang.Load("model.pp", lang.Options{ReadFile: r.read(src)})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range found {
		for _, v := range p.Module.Main().Params() {
			if v.Attrs.Str("pp.name") != m[1] {
				continue
			}
			var parts []string
			for i, name := range v.Attrs.Get("pp.logical").(ir.Array) {
				how := "unsharded"
				if axes := v.Sharding.Axes(i); len(axes) > 0 {
					how = "along " + axes[0].Name
				}
				parts = append(parts, string(name.(ir.Str))+" "+how)
			}
			if got := strings.Join(parts, ", "); got != m[2] {
				r.t.Errorf("%s is sharded %s, the comment says %s", m[1], got, m[2])
			}
		}
	}
}
