package stats

import (
	"strings"
	"sync"

	"ppc/ir"
	"ppc/lower/flow"
)

// classesOf is, by ID, the class of the buffer of each value of f.
func classesOf(m *ir.Module, n *nests, f *ir.Func) []Class {
	class := make([]Class, f.NumIDs())
	for i := range class {
		class[i] = Temporaries
	}
	for _, p := range f.Params() {
		class[p.ID] = Parameters
		if p.Attrs.Str(ir.KeyKind) == "state" {
			class[p.ID] = OptimizerState
		}
	}
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.While {
			of := LoopBuffers
			if op.Attrs.Str(ir.KeyLoop) == ir.LoopBatches {
				of = GradientSums
			}
			carryClasses(class, op, func(int) Class { return of })
		}
	})
	for v := range flow.WeightsOf(m, f).Gathered {
		if class[v.ID] > GatheredWeights {
			class[v.ID] = GatheredWeights
		}
	}
	u := sync.OnceValue(func() *flow.Uses { return flow.NewUses(f) }) // where there are loops
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.While {
			carryClasses(class, op, func(k int) Class {
				if residualOf(n, u(), op, k) != nil {
					return ResidualStacks
				}
				return numClasses
			})
		}
	})
	return class
}

// carryClasses classes the carries of a loop: its arguments, what the body
// makes of them, its results. numClasses leaves a carry as it is,
// and arguments of the program stay what they are.
func carryClasses(class []Class, op *ir.Op, of func(k int) Class) {
	body := op.Regions[1]
	next := body.Terminator().Operands
	for k := range op.Operands {
		c := of(k)
		if c == numClasses {
			continue
		}
		for _, v := range []*ir.Value{body.Args[k], next[k], op.Results[k]} {
			if v = viewed(v); class[v.ID] > OptimizerState {
				class[v.ID] = c
			}
		}
	}
}

// hosted is, by ID, whether a value of f is in host memory: values copied there,
// views and slices of them, stacks that such rows are written into, and carries of
// loops that begin with them. A value that is there stays so when more is known, so
// looking until nothing changes ends.
func hosted(f *ir.Func) []bool {
	host, changed := make([]bool, f.NumIDs()), true
	put := func(vs ...*ir.Value) {
		for _, v := range vs {
			if !host[v.ID] {
				host[v.ID], changed = true, true
			}
		}
	}
	uses := f.Uses()
	for changed {
		changed = false
		f.Body.Walk(func(op *ir.Op) {
			switch {
			case op.Placement() != "":
				if strings.HasSuffix(op.Placement(), "host") {
					put(op.Results...)
				}
			case op.Kind == ir.While:
				cond, body := op.Regions[0], op.Regions[1]
				for k, init := range op.Operands {
					if !host[body.Args[k].ID] && !host[body.Terminator().Operands[k].ID] {
						continue
					}
					put(cond.Args[k], body.Args[k], op.Results[k])
					if init.Def != nil && uses[init.ID] == 1 {
						put(init)
					}
				}
			case op.Kind == ir.DynamicUpdateSlice:
				if host[op.Operands[0].ID] || host[op.Operands[1].ID] {
					put(op.Result())
				}
			case op.Kind == ir.Slice, op.Kind == ir.DynamicSlice, view(op) && len(op.Operands) == len(op.Results):
				for i, v := range op.Results {
					if host[op.Operands[i].ID] {
						put(v)
					}
				}
			}
		})
	}
	return host
}
