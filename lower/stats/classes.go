package stats

import (
	"ppc/ir"
	"ppc/lower/flow"
)

// classesOf says, by ID, what the buffers that are made for a value of f are for.
func classesOf(m *ir.Module, n *nests, f *ir.Func) []Class {
	class := make([]Class, f.NumIDs())
	for i := range class {
		class[i] = Temporaries
	}
	for _, p := range f.Params() {
		class[p.ID] = Parameters
		if p.Attrs.Str("pp.kind") == "state" {
			class[p.ID] = OptimizerState
		}
	}
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.While {
			carryClasses(class, op, func(int) Class { return LoopBuffers })
		}
	})
	for v := range flow.WeightsOf(m, f).Gathered {
		if class[v.ID] > GatheredWeights {
			class[v.ID] = GatheredWeights
		}
	}
	u := flow.NewUses(f)
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.While {
			carryClasses(class, op, func(k int) Class {
				if residualOf(n, u, op, k) != nil {
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
			for v.Def != nil && view(v.Def) && len(v.Def.Operands) == 1 {
				v = v.Def.Operands[0]
			}
			if class[v.ID] > OptimizerState {
				class[v.ID] = c
			}
		}
	}
}
