package xla

import (
	"strings"

	"ppc/internal/split"
	"ppc/ir"
)

// A survey says what may be among the ops of a module. Most have nothing of what this
// package converts, and one look at a large one shows it.
type survey struct {
	attrs bool // an attribute of a dialect, as all are that the front ends add
	calls bool // a custom call
	host  bool // an op that calls the host or has a queue to it
	edges bool // an edge of Shardy's
}

// least is how many ops a part of a function has at the least.
const least = 1 << 12

// surveyOf looks at the ops of m, at parts of a long function at the same time.
func surveyOf(m *ir.Module) survey {
	var all survey
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		if len(f.Body.Ops) < 2*least {
			f.Body.Walk(all.see)
			continue
		}
		parts := split.Parts(len(f.Body.Ops), least)
		found := make([]survey, len(parts))
		split.Do(parts, func(p split.Part) {
			part := ir.Block{Ops: f.Body.Ops[p.From:p.To]}
			part.Walk(found[p.Number].see)
		})
		for _, s := range found {
			all.attrs, all.calls, all.host, all.edges = all.attrs || s.attrs, all.calls || s.calls, all.host || s.host, all.edges || s.edges
		}
	}
	return all
}

func (s *survey) see(op *ir.Op) {
	for _, a := range op.Attrs {
		s.attrs = s.attrs || strings.IndexByte(a.Name, '.') >= 0
	}
	switch {
	case op.Kind == ir.CustomCall:
		s.calls, s.host = true, s.host || isHostCall(op)
	case isHostCall(op) || isHostQueue(op):
		s.host = true
	case isEdge(op):
		s.edges = true
	}
}
