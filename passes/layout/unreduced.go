package layout

import (
	"ppc/ir"
)

// What a sum over axes means. In the global program sdy.all_reduce and
// sdy.reduce_scatter are the identity, as ir/eval has it: their operand is a
// value, of which the devices have partial sums that add up to it, or each all
// of it. Partial sums, where an op or a sharding has made them, are added up;
// what every device has all of is left alone: copies are never added up. What a
// parameter holds is not known here, so one that is summed along axes is
// unreduced along them (see [SummedParams]). The maximum or minimum of copies is
// the copy.
//
// A value with unreduced axes is what the devices along them have, combined. On
// a constraint they are a permission: where unreduced results are computed along such
// axes they are not combined until the value is needed. What flows in or out of
// the program, and what an explicit collective combines, is unreduced in fact.

// UnreducedOf are the axes that s leaves unreduced.
func UnreducedOf(s *ir.Sharding) []ir.AxisRef {
	if s == nil {
		return nil
	}
	return s.Unreduced
}

// CombinerOf is the op by which what s leaves unreduced is combined.
func CombinerOf(s *ir.Sharding) ir.Kind {
	if s == nil {
		return ir.Add
	}
	return map[string]ir.Kind{"": ir.Add, "max": ir.Maximum, "min": ir.Minimum}[s.ReducedBy]
}

// CombinerName is how a sharding spells that k combines what it leaves unreduced.
func CombinerName(k ir.Kind) string {
	return map[ir.Kind]string{ir.Maximum: "max", ir.Minimum: "min"}[k]
}

// ReductionAxes are the axes along which op, an explicit collective, combines.
func ReductionAxes(op *ir.Op) []ir.AxisRef {
	return append(op.AxisRefs("reduction_axes"), op.AxisRefs("reduce_scatter_axes")...)
}

// Reducers are the ops by which an explicit collective may combine, in the order
// of its attribute reduction_op.
var Reducers = []ir.Kind{ir.Add, ir.Maximum, ir.Minimum}

// ReductionOf is the op by which an explicit collective combines.
func ReductionOf(op *ir.Op) ir.Kind { return Reducers[op.Int("reduction_op")] }

// SummedParams makes the parameters of f that explicit collectives add up, one
// after the other, unreduced along their axes.
func SummedParams(mesh *ir.Mesh, f *ir.Func) {
	addsUp := func(op *ir.Op) bool {
		return op != nil && (op.Kind == ir.SdyAllReduce || op.Kind == ir.SdyReduceScatter) && ReductionOf(op) == ir.Add
	}
	f.Body.Walk(func(op *ir.Op) {
		if !addsUp(op) {
			return
		}
		v := op.Operands[0]
		for addsUp(v.Def) {
			v = v.Def.Operands[0]
		}
		if v.Block != f.Body || v.Sharding != nil && v.Sharding.ReducedBy != "" {
			return
		}
		s := v.Sharding.Clone()
		if s == nil {
			s = ir.Replicated(mesh.Name, v.Type.Rank())
		}
		for _, r := range ReductionAxes(op) {
			if mesh.RefSize(r) > 1 && !s.Uses(r) && !OverlapsAny(r, s.Unreduced) {
				s.Unreduced = append(s.Unreduced, r)
			}
		}
		s.Unreduced = SortedAxes(mesh, s.Unreduced)
		v.Sharding = s
	})
}

// UnreducedElsewhere is s, unreduced along the axes that it does not use.
func UnreducedElsewhere(mesh *ir.Mesh, s *ir.Sharding) *ir.Sharding {
	s = s.Clone()
	for _, a := range mesh.Axes {
		if r := ir.Ax(a.Name); a.Size > 1 && !s.Uses(r) {
			s.Unreduced = append(s.Unreduced, r)
		}
	}
	return s
}
