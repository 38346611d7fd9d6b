package suite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ppc/internal/directives"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/passes"
)

// A Case is one program of a file: a piece between lines "// -----".
type Case struct {
	File    string
	Segment int    // from 0
	Line    int    // of the file, at which it begins
	Source  string // with the lines before it empty, so that places are those of the file
}

// Name is the file, and which of its programs it is.
func (c Case) Name() string { return fmt.Sprintf("%s#%d", c.File, c.Segment) }

// Cases are the programs of a file that are more than comments.
func Cases(file, text string) (cases []Case) {
	line := 0
	for i, segment := range directives.Split(text) {
		c := Case{File: file, Segment: i, Line: line + 1, Source: strings.Repeat("\n", line) + directives.Generic(segment)}
		line += strings.Count(segment, "\n")
		if !blank(segment) {
			cases = append(cases, c)
		}
	}
	return cases
}

func blank(segment string) bool {
	for l := range strings.Lines(segment) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "//") {
			return false
		}
	}
	return true
}

// Test holds what the program says of itself: where comments expect errors, that it is
// refused where they say, and else its checks, for which it is run. A program without
// checks is sound.
func (c Case) Test(ctx context.Context, on Machine) error {
	if expected := directives.ExpectedErrors(c.Source); len(expected) > 0 {
		return c.refused(expected)
	}
	m, err := parse(c.File, c.Source)
	if err != nil {
		return err
	}
	checks := false
	for _, f := range m.Funcs {
		checks = checks || f.Body != nil && hasCheck(f.Body)
	}
	if !checks {
		return nil
	}
	return Run(ctx, on, c.File, c.Source)
}

func hasCheck(b *ir.Block) bool {
	found := false
	b.Walk(func(op *ir.Op) { found = found || isCheck(op) })
	return found
}

// refused holds that the program has errors at the lines where they are expected.
func (c Case) refused(expected []directives.ExpectedError) error {
	_, err := parse(c.File, c.Source)
	if err == nil {
		return fmt.Errorf("%s:%d: the program is accepted, expected: %s", c.File, expected[0].Line, expected[0].Text)
	}
	lines := Lines(c.File, err)
	for _, e := range expected {
		if lines[e.Line] {
			return nil
		}
	}
	return fmt.Errorf("the program is refused at another line than %d, where it says: %s\n%w", expected[0].Line, expected[0].Text, err)
}

// Lines are the lines of file that an error is about.
func Lines(file string, err error) map[int]bool {
	lines := make(map[int]bool)
	for _, at := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(file)+`:(\d+):\d+: `).FindAllStringSubmatch(err.Error(), -1) {
		line, _ := strconv.Atoi(at[1])
		lines[line] = true
	}
	return lines
}

func parse(file, source string) (*ir.Module, error) {
	m, err := mlir.Parse(file, []byte(source))
	if err != nil {
		return nil, err
	}
	return m, verify.Verify(m)
}

// Run runs the main function of a program, or its first, on what a RUN line passes.
func Run(ctx context.Context, on Machine, file, source string) error {
	m, err := mlir.Parse(file, []byte(source))
	if err != nil {
		return err
	}
	f := m.Main()
	if f == nil && len(m.Funcs) > 0 {
		f = m.Funcs[0]
	}
	if f == nil {
		return nil // a comment
	}
	args, err := argsOf(source)
	if err != nil {
		return err
	}
	if runCHLO.MatchString(source) {
		if err := passes.RunNamed("expand", m); err != nil {
			return err
		}
		f = m.Func(f.Name)
	}
	if n := len(f.Params()); f.Body == nil || n != len(args) {
		return errors.New(ir.SymbolText(f.Name) + " takes " + ir.Counted(n, "argument") + ", and no RUN line passes as many by --args")
	}
	return on.Main(ctx, m, f, args)
}

var (
	// What is run is then made of the ops that chlo's are defined by, each of which rounds.
	runCHLO  = regexp.MustCompile(`(?m)^// RUN.*--chlo-(pre-serialization-pipeline|legalize-to-stablehlo)`)
	runArgs  = regexp.MustCompile(`(?m)^// RUN: .*--args="\[(dense.*)\]"`)
	runValue = regexp.MustCompile(`dense<[^>]*> : tensor<[^>]*>`)
)

// argsOf are the arguments that a RUN line passes, if one does.
func argsOf(source string) (args []*ir.Literal, err error) {
	found := runArgs.FindStringSubmatch(source)
	if found == nil {
		return nil, nil
	}
	var b strings.Builder
	b.WriteString("func.func @main() {\n")
	for i, arg := range runValue.FindAllString(found[1], -1) {
		fmt.Fprintf(&b, "%%%d = stablehlo.constant %s\n", i, arg)
	}
	m, err := mlir.Parse("args", []byte(b.String()+"return\n}\n"))
	if err != nil {
		return nil, err
	}
	for _, op := range m.Main().Body.Ops {
		if l := op.Literal("value"); l != nil {
			args = append(args, l)
		}
	}
	return args, nil
}
