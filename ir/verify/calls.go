package verify

import (
	"ppc/ir"
)

// callees are the functions that op runs.
func callees(op *ir.Op) []string {
	if len(op.Attrs) == 0 {
		return nil
	}
	var names []string
	for _, name := range [...]string{op.Callee(), op.Sym("layer"), ir.ConfigOf(op).Sym("outside")} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// verifyCalls checks that no function calls itself, directly or indirectly:
// programs are evaluated by inlining.
func verifyCalls(m *ir.Module, errs *Errors) {
	c := callGraph{m: m, errs: errs, state: make(map[*ir.Func]int)}
	for _, f := range m.Funcs {
		c.visit(f)
	}
	errs.fn = nil
}

type callGraph struct {
	m     *ir.Module
	errs  *Errors
	state map[*ir.Func]int // 0 not seen, 1 on the way, 2 done
}

func (c *callGraph) visit(f *ir.Func) {
	if f == nil || f.Body == nil || c.state[f] != 0 {
		return
	}
	c.state[f] = 1
	var calls []*ir.Op
	c.errs.calls(f, func(op *ir.Op) {
		if callees(op) != nil {
			calls = append(calls, op)
		}
	})
	for _, op := range calls {
		for _, name := range callees(op) {
			g := c.m.Func(name)
			if g != nil && c.state[g] == 1 {
				c.errs.fn = f
				c.errs.add(op, ir.NewRule("structure-10", "%s calls itself, by way of %s", ir.SymbolText(g.Name), ir.SymbolText(f.Name)))
				continue
			}
			c.visit(g)
		}
	}
	c.state[f] = 2
}

// calls visits the ops of f, unless an error has been found in it: its blocks may
// then be nil, or contain themselves.
func (e *Errors) calls(f *ir.Func, visit func(*ir.Op)) {
	for _, err := range e.List {
		if err.Func == f {
			return
		}
	}
	f.Body.Walk(visit)
}
