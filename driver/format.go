package driver

import (
	"context"
	"errors"

	"github.com/rogpeppe/go-internal/diff"

	"ppc/driver/binding"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/lang/syntax"
)

// Check reads the programs and reports everything for which they would not run,
// whatever the arguments and the machine. A .pp file may lack a model, for
// others to include.
func Check(ctx context.Context, srcs []*Source) error {
	var errs []error
	for i, s := range srcs {
		ctx := ctx
		if len(srcs) > 1 {
			ctx = during(ctx, Progress{Doing: "checking", What: s.name(), Unit: "file", Done: i, Total: len(srcs)})
		}
		p, err := s.load(ctx, lang.Options{Library: true, Train: true})
		if err == nil {
			err = p.unattended(s)
		}
		if err == nil {
			p.sayWarnings()
			err = p.tryGradient(ctx)
		}
		if err == nil && p.naming == binding.ByNumber { // of a .pp file, all has been checked
			err = p.loads(ctx)
		}
		errs = append(errs, err)
		if Stopped(err) {
			break
		}
	}
	return errors.Join(errs...)
}

// tryGradient differentiates a program of which a gradient is asked, for what is
// known of its settings only then.
func (p *program) tryGradient(ctx context.Context) error {
	if p.lang == nil || p.m == nil || !p.m.Attrs.Has(ir.KeyGradient) {
		return nil
	}
	return p.compile(ctx, "differentiate", "")
}

// A Formatted is a .pp file before and after formatting.
type Formatted struct {
	Name     string
	Old, New []byte

	stdin bool
}

// Format formats a .pp file. It writes nothing.
func Format(ctx context.Context, src *Source) (*Formatted, error) {
	name, err := src.language()
	if err != nil {
		return nil, err
	}
	if name != "pp" {
		return nil, usage("%s: only .pp files are formatted", src.name())
	}
	f := &Formatted{Name: src.name(), stdin: src.File == "-"}
	return guard(ctx, "formatting "+f.Name, src.reproducer(".pp"), func() (*Formatted, error) {
		var err error
		if f.Old, err = src.read(src.name()); err != nil {
			return nil, fileError(err)
		}
		f.New, err = syntax.Format(f.Name, f.Old)
		return f, err
	})
}

// Diff is what formatting changes, as a unified diff; nil where it changes
// nothing.
func (f *Formatted) Diff() []byte {
	return diff.Diff(f.Name, f.Old, f.Name+" (formatted)", f.New)
}

// Write writes the formatted text back, where it differs.
func (f *Formatted) Write(ctx context.Context) error {
	if f.stdin {
		return usage("-w: standard input cannot be written back")
	}
	if string(f.Old) == string(f.New) {
		return nil
	}
	return WriteFile(ctx, f.Name, f.New)
}
