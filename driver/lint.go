package driver

import (
	"context"
	"fmt"
	"strings"

	"ppc/internal/diag"
	"ppc/internal/spell"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/lang/config"
	"ppc/ir/xla"
	"ppc/lower/lint"
	"ppc/passes/pass"
)

// A Finding is one place where a lint applies.
type Finding = lint.Finding

// A LintInfo is one row of the table of lints.
type LintInfo struct{ Name, Doc, Explain string }

// Lints returns the table of lints: those of the program per device, and what
// is warned of when a program is read.
func Lints() []LintInfo {
	var infos []LintInfo
	for _, l := range lint.Table {
		infos = append(infos, LintInfo{l.Name, l.Doc, l.Explain})
	}
	for _, w := range config.Warnings {
		infos = append(infos, LintInfo{w.Name, w.Doc, w.Explain})
	}
	for _, w := range xla.Warnings {
		infos = append(infos, LintInfo{w.Name, w.Doc, w.Explain})
	}
	return infos
}

// LintOptions says which findings are wanted.
type LintOptions struct {
	Skip     []string // lints to leave out
	Severity string   // the least one; "" is note
}

// Lint compiles the program and returns what the lints find in what each
// device runs.
func Lint(ctx context.Context, src *Source, opts LintOptions) ([]*Finding, error) {
	for _, name := range opts.Skip {
		if _, err := lintNamed("--skip", name); err != nil {
			return nil, err
		}
	}
	p, err := src.load(ctx, lang.Options{Train: true})
	if err != nil {
		return nil, err
	}
	found, err := p.lint(ctx, src.name())
	if err != nil {
		return nil, err
	}
	return wanted(found, opts), nil
}

// lint compiles p and returns what is found in it, and the warnings of the language
// and the passes, which are reported nowhere else.
func (p *program) lint(ctx context.Context, name string) ([]*Finding, error) {
	passed := lint.Before(p.m)
	p.warn = func(d *diag.Diagnostic) { p.warnings = append(p.warnings, d) }
	p.hear = func(w *pass.Error) {
		if !passed.Warn(w) {
			p.warnOfPass(w)
		}
	}
	if err := p.compile(ctx, "", ""); err != nil {
		return nil, err
	}
	rep := moduleReproducer(p.m, "", "lint", "ppc lint %s")
	found, err := guard(ctx, "linting "+name, rep, func() ([]*Finding, error) { return lint.Of(p.m, passed) })
	if err != nil {
		return nil, inFile(name, err)
	}
	return append(languageFindings(p.warnings), found...), nil
}

// languageFindings is what the language warns of as findings.
func languageFindings(warnings diag.List) []*Finding {
	var found []*Finding
	for _, w := range warnings {
		f := &Finding{Lint: w.Warning, Severity: lint.Warning, Msg: w.Msg, Pos: ir.Pos{File: w.File, Line: w.Line, Col: w.Col}}
		if w.Hint != "" {
			f.Msg += "; " + w.Hint
		}
		found = append(found, f)
	}
	return found
}

func wanted(found []*Finding, opts LintOptions) []*Finding {
	var out []*Finding
	for _, f := range found {
		skipped := opts.Severity == lint.Warning.String() && f.Severity < lint.Warning
		for _, name := range opts.Skip {
			skipped = skipped || name == f.Lint
		}
		if !skipped {
			out = append(out, f)
		}
	}
	return out
}

func lintNamed(flag, name string) (*LintInfo, error) {
	all := Lints()
	var names []string
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
		names = append(names, all[i].Name)
	}
	hint := "have " + strings.Join(names, ", ")
	if near := spell.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, usage("%s=%s: there is no such lint; %s", flag, name, hint)
}

// ExplainLint is the explanation of the lint called name, in lines.
func ExplainLint(name string) (string, error) {
	l, err := lintNamed("--explain", name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", l.Name, l.Doc)
	const width = 80
	at := 0
	for _, word := range strings.Fields(l.Explain) {
		switch {
		case at > 0 && at+1+len(word) > width:
			b.WriteByte('\n')
			at = 0
		case at > 0:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	b.WriteByte('\n')
	return b.String(), nil
}

// PlaceText is p for people; "" where it is not known.
func PlaceText(p ir.Pos) string { return lint.PlaceText(p) }
