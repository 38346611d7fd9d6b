package passes

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"ppc/ir"
	"ppc/ir/verify"
	"ppc/passes/pass"
)

// A Config says how to run passes.
type Config struct {
	// Context ends the run between two passes; nil never does.
	Context context.Context
	// After stops the run after the first pass of this name that follows the
	// form the module has; "" runs all.
	After string
	// Each, if not nil, is called with every pass that has run, and its position in
	// the order, from 1.
	Each func(n int, p *pass.Pass, m *ir.Module) error
	// Warn, if not nil, is called with the warnings of passes.
	Warn func(*pass.Error)
	// Rebuild, if not nil, returns the module as Run got it, built anew. It is
	// called for a [Bug] alone, to find the module before the pass; without it Run
	// keeps a copy.
	Rebuild func() (*ir.Module, error)
	// Checker is what has verified the module as Run gets it; nil where nothing has.
	Checker *verify.Checker
}

// Run runs the passes of Table over m, in order, from the first that has not run
// according to m's form. The verifier runs before the first pass and after each; an
// error after a pass is a [*Bug].
func Run(m *ir.Module, cfg Config) error {
	checker := cfg.Checker
	if checker == nil {
		checker = new(verify.Checker)
		if err := checker.Verify(m); err != nil {
			return err
		}
	}
	if cfg.Rebuild == nil {
		first := m.Clone()
		cfg.Rebuild = func() (*ir.Module, error) { return first, nil }
	}
	m.ShareAttrs()
	seen := false
	for i := range Table {
		p := &Table[i]
		if done(p, m.Form) {
			continue
		}
		if cfg.Context != nil && cfg.Context.Err() != nil {
			return cfg.Context.Err()
		}
		if !m.Form.Has(p.Requires) {
			return &pass.Error{Pass: p.Name, Msg: fmt.Sprintf("pass %s requires the form %q, the program has %q", p.Name, p.Requires, m.Form)}
		}
		if err := runOne(p, m, cfg.Warn, checker); err != nil {
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
		return &pass.Error{Pass: cfg.After, Msg: fmt.Sprintf("pass %s has already been run over this program (its form is %q)", cfg.After, m.Form)}
	}
	return nil
}

// before is the module that the pass at i gets: passes are deterministic, so
// running those before it on the rebuilt module yields it. It is nil if one of them
// fails.
func (cfg *Config) before(i int) (m *ir.Module) {
	defer func() {
		// A bug is being reported; another one must not hide it.
		if recover() != nil {
			m = nil
		}
	}()
	m, err := cfg.Rebuild()
	if err != nil {
		return nil
	}
	for j := range i {
		p := &Table[j]
		if done(p, m.Form) {
			continue
		}
		if err := p.Run(nil, m); err != nil {
			return nil
		}
		m.Form = p.After(m.Form)
	}
	return m
}

// laterOfSameName reports whether Table has the pass at i once more before the form
// changes: --after names the last of them.
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

// done reports whether p has run on a module of form f: f has the properties that p
// ensures, or those that a later pass does.
func done(p *pass.Pass, f ir.Form) bool {
	later := false
	for i := range Table {
		later = later || &Table[i] == p
		if later && Table[i].Ensures != 0 && f.Has(Table[i].Ensures) {
			return true
		}
	}
	return false
}

// RunNamed runs the pass of the table called name over m, and verifies the result.
func RunNamed(name string, m *ir.Module) error {
	return runOne(&Table[slices.IndexFunc(Table, func(p pass.Pass) bool { return p.Name == name })], m, nil, new(verify.Checker))
}

// runOne runs p over m and verifies the result. A [*Bug] that it returns has no
// Before.
func runOne(p *pass.Pass, m *ir.Module, warn func(*pass.Error), checker *verify.Checker) (err error) {
	defer func() {
		// A bug in p: it is reported with the module that p got.
		if r := recover(); r != nil {
			err = &Bug{Pass: p.Name, Cause: fmt.Errorf("panic: %v", r), Stack: debug.Stack()}
		}
	}()
	var c pass.Context
	if warn != nil {
		c.OnWarning = func(w *pass.Error) {
			w.Pass = p.Name
			warn(w)
		}
	}
	if err := p.Run(&c, m); err != nil {
		switch e := err.(type) {
		case *pass.Error:
			e.Pass = p.Name
		case pass.Errors:
			for _, e := range e {
				e.Pass = p.Name
			}
		}
		return err
	}
	m.Form = p.After(m.Form)
	if err := checker.Verify(m); err != nil {
		return &Bug{Pass: p.Name, Cause: err}
	}
	return nil
}
