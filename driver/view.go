package driver

import (
	"context"

	"ppc/driver/view"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/passes/pass"
)

// ViewOptions says what a view shows.
type ViewOptions struct {
	After string // the last pass; "" for all
	Out   string // the file that the page is for
}

// View compiles the program and returns a page of what each pass changed.
func View(ctx context.Context, src *Source, opts ViewOptions) (string, error) {
	if err := checkPass(opts.After); err != nil {
		return "", err
	}
	p, err := src.load(ctx, lang.Options{Train: true})
	if err != nil {
		return "", err
	}
	if err := src.files.writable(opts.Out, "the page"); err != nil {
		return "", err
	}
	p.sayWarnings()
	v := view.New(src.name(), p.m)
	p.each = append(p.each, func(_ int, q *pass.Pass, m *ir.Module) error {
		v.Step(q.Name, q.Doc, m)
		return nil
	})
	if err := p.compile(ctx, opts.After, ""); err != nil {
		return "", err
	}
	return guard(ctx, "writing the page", moduleReproducer(p.m, "", "view", "ppc view %s --html view.html"), func() (string, error) { return v.HTML(src.read), nil })
}
