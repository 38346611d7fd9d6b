package ir

// StateRegionShardings gives the arguments of regions the shardings that follow
// from the op around them: those of a loop are the op's results, and those of a
// manual computation its operands, less the manual axes. The text form of such
// an op has no place for them.
func StateRegionShardings(m *Module) {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *Op) {
			for _, r := range op.Regions {
				for i, a := range r.Args {
					if a.Sharding == nil && a.Type.IsTensor() {
						a.Sharding = regionSharding(op, i)
					}
				}
			}
		})
	}
}

func regionSharding(op *Op, i int) *Sharding {
	switch op.Kind {
	case While:
		if i < len(op.Results) {
			return op.Results[i].Sharding
		}
	case ManualComputation:
		per, _ := op.Attrs.Get("in_shardings").(PerValue)
		if i >= len(per) || per[i] == nil {
			return nil
		}
		var names []string
		for _, r := range ManualAxes(op) {
			names = append(names, r.Name)
		}
		s := per[i].Without(names...)
		s.Unreduced, s.ReducedBy = nil, ""
		return s
	}
	return nil
}

// CombinesTensors is the rule that op breaks where it is a reduction whose region combines
// tensors that are no scalars: StableHLO's verifier takes such an op, and its specification
// does not say what it computes.
func (op *Op) CombinesTensors() *Rule {
	if op.Kind != Reduce && op.Kind != ReduceWindow {
		return nil
	}
	for i, a := range op.Regions[0].Args {
		if a.Type.Rank() != 0 {
			return NewRule("combines", "argument %d of the region is %s: what a reduction of anything but scalars computes is not said anywhere; reduce scalars", i, a.Type)
		}
	}
	return nil
}
