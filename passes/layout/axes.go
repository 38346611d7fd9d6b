package layout

import (
	"slices"

	"ppc/ir"
)

func SortedAxes(mesh *ir.Mesh, axes []ir.AxisRef) []ir.AxisRef {
	out := slices.Clone(axes)
	slices.SortFunc(out, func(a, b ir.AxisRef) int {
		if n := mesh.Axis(a.Name) - mesh.Axis(b.Name); n != 0 {
			return n
		}
		return a.Pre - b.Pre
	})
	return out
}

func OverlapsAny(r ir.AxisRef, others []ir.AxisRef) bool {
	return slices.ContainsFunc(others, r.Overlaps)
}

func GcdOf(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
