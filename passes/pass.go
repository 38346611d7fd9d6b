// Package passes turns a model into one program per device, one [Pass] at a
// time. [Table] is the one list of the passes and their order; the file named
// after a pass holds that pass.
//
// The package imports ir, its text form for reproducers, and the reference
// evaluator for folding. It knows nothing of HLO text, of execution, or of the
// command line.
package passes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"ppc/ir"
)

// A Pass is one transformation of a Module.
//
// Requires, Ensures and Breaks state the Form it works in. [Run] refuses an
// order in which a Pass does not get what it requires, so the order of Table
// is checked, not only commented.
type Pass struct {
	Name string // as in --after; lower case, no spaces
	Doc  string // one sentence, beginning with a verb

	Requires ir.Form // holds before, or Run does not start
	Ensures  ir.Form // holds after
	Breaks   ir.Form // may hold no more after

	Run func(*Context, *ir.Module) error
}

// A Context is what a pass may ask of its caller. A nil Context has no wishes.
type Context struct {
	// Warn, if not nil, is called with what a pass does that the program
	// probably does not mean, such as gathering a value that is sharded before
	// and after.
	Warn func(*Error)
}

// warn tells the caller of e.
func (c *Context) warn(e *Error) {
	if c.wants() {
		c.Warn(e)
	}
}

// wants reports whether the caller wants to hear of warnings.
func (c *Context) wants() bool { return c != nil && c.Warn != nil }

// after is the Form of a Module of Form f once p has run.
func (p *Pass) after(f ir.Form) ir.Form { return f&^p.Breaks | p.Ensures }

// A Config says how to run passes.
type Config struct {
	// Context ends the run between two passes; nil never does.
	Context context.Context
	// After stops the run after the first pass of this name that follows the
	// form the module has; "" runs all.
	After string
	// Each, if not nil, is called with every pass that has run, and its place
	// in the order, from 1.
	Each func(n int, p *Pass, m *ir.Module) error
	// Warn, if not nil, is called with the warnings of passes.
	Warn func(*Error)
	// Again, if not nil, makes the module once more as Run got it. It is called
	// for a [Bug] alone, whose Before follows from it; otherwise Run keeps a copy.
	Again func() (*ir.Module, error)
}

// A Bug is an error of ppc itself: a pass that panicked or broke the rules of
// the IR. Before is the module as the pass got it, nil where that is not known.
type Bug struct {
	Pass   string
	Cause  error
	Stack  []byte // of a panic
	Before *ir.Module
}

func (b *Bug) Error() string { return fmt.Sprintf("pass %s: %v", b.Pass, b.Cause) }

func (b *Bug) Unwrap() error { return b.Cause }

// An Error is a program that a pass cannot lower, through no fault of ppc.
type Error struct {
	Pass string
	Op   *ir.Op // nil where no op is to blame
	Msg  string

	Replication *Replication // that a warning is about; nil if it is about something else

	// Setting is the key of the pipeline block that a warning is about, "" if it is
	// about something else; Kept is the checkpoint name that it speaks of there.
	Setting, Kept string
}

func (e *Error) Error() string {
	at := ""
	if p := e.Pos(); p.Line > 0 {
		at = p.String() + ": "
	}
	if name := e.Name(); name != "" {
		at += name + ": "
	}
	return at + e.Msg
}

// Pos is where the op to blame comes from; its line is 0 where that is not
// known.
func (e *Error) Pos() ir.Pos {
	if e.Op == nil || e.Op.Origin == nil {
		return ir.Pos{}
	}
	return e.Op.Origin.Pos
}

// Name is what the user calls the op to blame; "" if nothing.
func (e *Error) Name() string {
	if e.Op == nil {
		return ""
	}
	return opUserName(e.Op)
}

func opUserName(op *ir.Op) string {
	if op.Origin != nil && op.Origin.Name != "" {
		return op.Origin.Name
	}
	for _, v := range op.Results {
		if v.Name != "" {
			return v.Name
		}
	}
	return ""
}

// A Replication is a tensor that every device has all of at some time though
// the program wants it sharded before and after.
type Replication struct {
	Value *ir.Value    // of the global program
	By    string       // the op that needs it unsharded, "" where it is on its way to another sharding
	Dim   int          // that By needs unsharded
	Along []ir.AxisRef // that Dim is sharded along
	From  *ir.Sharding // of the value
	To    *ir.Sharding // of what By makes of it, or of the value after
}

func errorf(op *ir.Op, format string, args ...any) error { return errorOf(op, format, args...) }

func errorOf(op *ir.Op, format string, args ...any) *Error {
	return &Error{Op: op, Msg: fmt.Sprintf(format, args...)}
}

// Errors is several errors of one pass, in source order.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// sortedErrors is es in source order, each once: nil where there is none, and
// the one where there is one.
func sortedErrors(es []*Error) error {
	place := func(e *Error) (file string, pos ir.Pos) { return e.Pos().File, e.Pos() }
	said := make(map[string]bool)
	es = slices.DeleteFunc(es, func(e *Error) bool {
		again := said[e.Error()]
		said[e.Error()] = true
		return again
	})
	slices.SortStableFunc(es, func(a, b *Error) int {
		f, p := place(a)
		g, q := place(b)
		return cmp.Or(cmp.Compare(f, g), p.Compare(q))
	})
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	return Errors(es)
}

// Run runs the passes of Table over m, in order, from the first that m's form
// has not yet behind it. The verifier runs before the first pass and after
// each; what a pass breaks is a [*Bug].
func Run(m *ir.Module, cfg Config) error {
	if err := ir.Verify(m); err != nil {
		return err
	}
	if cfg.Again == nil {
		first := m.Clone()
		cfg.Again = func() (*ir.Module, error) { return first, nil }
	}
	seen := false
	for i := range Table {
		p := &Table[i]
		if p.done(m.Form) {
			continue
		}
		if cfg.Context != nil && cfg.Context.Err() != nil {
			return cfg.Context.Err()
		}
		if !m.Form.Has(p.Requires) {
			return &Error{Pass: p.Name, Msg: fmt.Sprintf("pass %s requires the form %q, the program has %q", p.Name, p.Requires, m.Form)}
		}
		if err := runOne(p, m, cfg.Warn); err != nil {
			var bug *Bug
			if errors.As(err, &bug) {
				bug.Before = cfg.before(i)
			}
			return err
		}
		if cfg.Each != nil {
			if err := cfg.Each(i+1, p, m); err != nil {
				return err
			}
		}
		if p.Name == cfg.After {
			seen = true
			if !laterOfSameName(i) {
				break
			}
		}
	}
	if cfg.After != "" && !seen {
		return &Error{Pass: cfg.After, Msg: fmt.Sprintf("pass %s has already been run over this program (its form is %q)", cfg.After, m.Form)}
	}
	return nil
}

// before is the module that the pass at i gets: passes are deterministic, so
// those before it make it again. It is nil where they do not.
func (cfg *Config) before(i int) (m *ir.Module) {
	defer func() {
		if recover() != nil {
			m = nil
		}
	}()
	m, err := cfg.Again()
	if err != nil {
		return nil
	}
	for j := range i {
		p := &Table[j]
		if p.done(m.Form) {
			continue
		}
		if err := p.Run(nil, m); err != nil {
			return nil
		}
		m.Form = p.after(m.Form)
	}
	return m
}

// laterOfSameName reports whether the pass at i stands in Table once more
// before the form changes: --after names the last of them.
func laterOfSameName(i int) bool {
	for j := i + 1; j < len(Table); j++ {
		if Table[j].Ensures != 0 {
			return false
		}
		if Table[j].Name == Table[i].Name {
			return true
		}
	}
	return false
}

// done reports whether a module of form f has p behind it: it has what p
// ensures, or what a later pass does.
func (p *Pass) done(f ir.Form) bool {
	later := false
	for i := range Table {
		later = later || &Table[i] == p
		if later && Table[i].Ensures != 0 && f.Has(Table[i].Ensures) {
			return true
		}
	}
	return false
}

// RunOne runs p over m and verifies what it made. A [*Bug] has no Before.
func RunOne(p *Pass, m *ir.Module) error { return runOne(p, m, nil) }

func runOne(p *Pass, m *ir.Module, warn func(*Error)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Bug{Pass: p.Name, Cause: fmt.Errorf("panic: %v", r), Stack: debug.Stack()}
		}
	}()
	var c Context
	if warn != nil {
		c.Warn = func(w *Error) {
			w.Pass = p.Name
			warn(w)
		}
	}
	if err := p.Run(&c, m); err != nil {
		switch e := err.(type) {
		case *Error:
			e.Pass = p.Name
		case Errors:
			for _, e := range e {
				e.Pass = p.Name
			}
		}
		return err
	}
	m.Form = p.after(m.Form)
	if err := ir.Verify(m); err != nil {
		return &Bug{Pass: p.Name, Cause: err}
	}
	return nil
}
