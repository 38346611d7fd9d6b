package driver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"ppc/ir/lang"
	"ppc/lower/report"
)

// ReportOptions says what a report is of.
type ReportOptions struct {
	Compare []string // each some settings, block.key=value, apart by spaces: the same program once more with these
	Out     string   // the file that the page is for; "" where there is none
}

// A Report is the facts of a program, and of the same under other settings.
type Report struct{ facts []*report.Facts }

// Text is the report for a terminal, which may want colour.
func (r *Report) Text(colour bool) string { return report.Text(r.facts, colour) }

// HTML is the report as one page.
func (r *Report) HTML() string { return report.HTML(r.facts) }

// JSON is one object per line, one for each choice of settings.
func (r *Report) JSON() string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, f := range r.facts {
		if err := e.Encode(f); err != nil {
			panic(err) // numbers and text
		}
	}
	return b.String()
}

// MakeReport compiles the program, once for each choice of settings, and says
// what each device does in a step.
func MakeReport(ctx context.Context, src *Source, opts ReportOptions) (*Report, error) {
	r := new(Report)
	f, err := src.facts(ctx, src.Set)
	if err != nil {
		return nil, err
	}
	if opts.Out != "" {
		if err := src.files.writable(opts.Out, "the page"); err != nil {
			return nil, err
		}
	}
	r.facts = append(r.facts, f)
	for _, c := range opts.Compare {
		set := settingsIn(c)
		if len(set) == 0 {
			return nil, usage("--compare %q: want block.key=value, or several, apart by spaces", c)
		}
		other := src.with(set)
		f, err := other.facts(ctx, append(slices.Clone(src.Set), set...))
		if err != nil {
			return nil, err
		}
		r.facts = append(r.facts, f)
	}
	return r, nil
}

// with is s under more settings.
func (s *Source) with(set []string) *Source {
	other := *s
	other.files = nil
	other.Set = append(slices.Clone(s.Set), set...)
	return &other
}

// settingsIn are the settings in a text: each begins with block.key=, at the start
// or after a space.
func settingsIn(text string) []string {
	var set []string
	for _, word := range strings.Fields(text) {
		name, _, is := strings.Cut(word, "=")
		if is && settingName(name) || len(set) == 0 {
			set = append(set, word)
			continue
		}
		set[len(set)-1] += " " + word
	}
	return set
}

func settingName(s string) bool {
	return strings.Contains(s, ".") && !strings.ContainsFunc(s, func(r rune) bool { return r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// facts compiles s and measures it; settings is what it is called by.
func (s *Source) facts(ctx context.Context, settings []string) (*report.Facts, error) {
	p, err := s.load(ctx, lang.Options{Train: true})
	if err != nil {
		return nil, err
	}
	schedules := report.Before(p.m)
	found, err := p.lint(ctx, s.name())
	if err != nil {
		return nil, err
	}
	rep := moduleReproducer(p.m, "", "report", "ppc report %s")
	f, err := guard(ctx, "measuring "+s.name(), rep, func() (*report.Facts, error) {
		return report.Of(p.m, s.name(), settings, schedules, found)
	})
	if err != nil {
		return nil, inFile(s.name(), err)
	}
	return f, nil
}

// A Difference is a quantity in which two programs differ.
type Difference = report.Difference

// Differences compiles two programs and lists the facts in which they differ.
func Differences(ctx context.Context, a, b *Source) ([]Difference, error) {
	left, err := a.facts(ctx, a.Set)
	if err != nil {
		return nil, err
	}
	right, err := b.facts(ctx, b.Set)
	if err != nil {
		return nil, err
	}
	return report.Diff(left, right), nil
}

// DifferencesText is differences for a terminal.
func DifferencesText(a, b string, ds []Difference) string { return report.DiffText(a, b, ds) }
