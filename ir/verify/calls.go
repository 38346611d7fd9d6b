package verify

import (
	"ppc/ir"
)

// callees are the functions that op runs, and "" where it runs fewer.
func callees(op *ir.Op) (names [3]string) {
	if len(op.Attrs) > 0 {
		names = [3]string{op.Callee(), op.Sym("layer"), ir.ConfigOf(op).Sym("outside")}
	}
	return names
}

func runsAny(op *ir.Op) bool { return callees(op) != [3]string{} }

// verifyCalls checks that no function calls itself, directly or indirectly:
// programs are evaluated by inlining.
func verifyCalls(m *ir.Module, errs *Errors) {
	c := callGraph{m: m, errs: errs, state: make(map[*ir.Func]int)}
	for f := range errs.wrong {
		c.state[f] = done
	}
	for _, f := range m.Funcs {
		c.visit(f)
	}
	errs.fn = nil
}

type callGraph struct {
	m     *ir.Module
	errs  *Errors
	state map[*ir.Func]int
}

// States of functions, besides that of not being seen. A function in which an error
// has been found is done from the start: its blocks may be nil, or contain themselves.
const (
	underway = 1
	done     = 2
)

func (c *callGraph) visit(f *ir.Func) {
	if f == nil || f.Body == nil {
		return
	}
	calls := c.errs.calls[f]
	if len(calls) == 0 || c.state[f] != 0 {
		return
	}
	c.state[f] = underway
	for _, op := range calls {
		for _, name := range callees(op) {
			if name == "" {
				continue
			}
			g := c.m.Func(name)
			if g != nil && c.state[g] == underway {
				c.errs.fn = f
				c.errs.add(op, ir.NewRule("structure-10", "%s calls itself, by way of %s", ir.SymbolText(g.Name), ir.SymbolText(f.Name)))
				continue
			}
			c.visit(g)
		}
	}
	c.state[f] = done
}
