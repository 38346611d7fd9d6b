// Package lint finds communication and memory in a local program that is probably
// unnecessary.
//
// [Table] is the one list of the lints: each has a name, an explanation and a
// function that looks for it. [Of] runs them over one program. What they share,
// loops, collectives, who reads what and which values are weights, is found
// once; package flow and package stats know it.
//
// A program that XLA made is read as it was before it was fused and split in
// time (hlo.Unfuse), and its groups and pairs, which list devices, by what they
// join.
package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/flow"
	"ppc/lower/hlo"
	"ppc/lower/stats"
	"ppc/passes/pass"
)

// A Severity says how sure it is that a finding is not meant.
type Severity int

const (
	Note    Severity = iota // a cost that a setting may ask for
	Warning                 // nothing that anybody would ask for
)

func (s Severity) String() string { return [...]string{"note", "warning"}[s] }

// A Finding is one place where a lint applies.
type Finding struct {
	Lint     string
	Severity Severity
	Pos      ir.Pos // in the text that was read
	Source   ir.Pos // in the source that the text was made from, if it says so
	Name     string // what the user calls the value
	Layer    string // that the op is in, or the path of its name in HLO

	Op         string     // all_gather
	Loop       string     // the innermost loop around, by path; "" for none
	Axes       string     // the mesh axes that a collective moves along, where they have names
	Bytes      int        // of the value, on one device
	Executions flow.Count // per step

	Msg string // what is so, what it costs, and what makes it go away
}

// String is f as one line: place, severity, name, message and lint.
func (f *Finding) String() string {
	var b strings.Builder
	if f.Pos.Line > 0 {
		fmt.Fprintf(&b, "%s: ", f.Pos)
	}
	fmt.Fprintf(&b, "%s: ", f.Severity)
	if f.Name != "" {
		fmt.Fprintf(&b, "%s: ", f.Name)
	}
	b.WriteString(f.Msg)
	if f.Source.Line > 0 && f.Source != f.Pos {
		fmt.Fprintf(&b, " (%s)", PlaceText(f.Source))
	}
	fmt.Fprintf(&b, " [%s]", f.Lint)
	return b.String()
}

// PlaceText is p for people: without a column where that is not known, "" where
// nothing is.
func PlaceText(p ir.Pos) string {
	switch {
	case p.Line == 0:
		return ""
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return p.String()
}

// A Lint is one row of Table.
type Lint struct {
	Name    string
	Doc     string // one line
	Explain string // a paragraph: what it finds, what that costs, when it is right
	find    func(p *program)
}

// Passed is what is known of a program that passes have made.
type Passed struct {
	Warned []*pass.Error // by the passes
	// Permutes are the places of the permutes that the user wrote: the others
	// are right by construction.
	Permutes map[ir.Pos]bool
}

// Before is what is known of m, which the passes have still to make a program
// per device; nil of one that is read as it is.
func Before(m *ir.Module) *Passed {
	if m.Form.Has(ir.Local) {
		return nil
	}
	p := &Passed{Permutes: make(map[ir.Pos]bool)}
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			if op.Kind == ir.CollectivePermute {
				p.Permutes[op.Origin.Place()] = true
			}
		})
	}
	return p
}

// Warn keeps w if it is a finding of a lint, and reports whether it is.
func (p *Passed) Warn(w *pass.Error) bool {
	if p == nil || w.Replication == nil {
		return false
	}
	p.Warned = append(p.Warned, w)
	return true
}

// Of runs every lint over m, a per-device program. passed is what [Before] said
// before passes made it. The findings are in the order of their places.
func Of(m *ir.Module, passed *Passed) ([]*Finding, error) {
	u, err := hlo.Unfuse(m)
	if err != nil {
		return nil, err
	}
	s, err := stats.Of(u)
	if err != nil {
		return nil, err
	}
	p := newProgram(u, s)
	p.passed = passed
	for i := range Table {
		p.lint = &Table[i]
		p.lint.find(p)
	}
	slices.SortStableFunc(p.found, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), a.Pos.Compare(b.Pos))
	})
	return p.found, nil
}
