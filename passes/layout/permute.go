package layout

import (
	"slices"

	"ppc/ir"
)

// PermutePairs are the pairs that bring each shard of a tensor from the devices of
// one layout to those of another with shards of the same size. Along axes that
// neither uses, nothing moves.
func PermutePairs(mesh *ir.Mesh, from, to Layout) ir.AxisMove {
	from, to = Atoms(mesh, from, to)
	a := ir.AxisMove{Mesh: mesh.Name, From: slices.Concat(from...), To: slices.Concat(to...)}
	for _, r := range subAxes(mesh, from, to) { // shards that several devices have
		if !from.Uses(r) && to.Uses(r) {
			a.From = append(a.From, r)
		}
		if from.Uses(r) && !to.Uses(r) {
			a.To = append(a.To, r)
		}
	}
	for len(a.From) > 0 && a.From[0] == a.To[0] {
		a.From, a.To = a.From[1:], a.To[1:]
	}
	for n := len(a.From) - 1; n >= 0 && a.From[n] == a.To[n]; n-- {
		a.From, a.To = a.From[:n], a.To[:n]
	}
	return a
}

// subAxes is every axis of the mesh, split where an axis of the layouts begins or
// ends.
func subAxes(mesh *ir.Mesh, ls ...Layout) []ir.AxisRef {
	var out []ir.AxisRef
	for _, a := range mesh.Axes {
		bounds := []int{a.Size}
		for _, l := range ls {
			for _, r := range slices.Concat(l...) {
				if r.Name == a.Name {
					pre, size := mesh.Span(r)
					bounds = append(bounds, pre, pre*size)
				}
			}
		}
		slices.Sort(bounds)
		pre := 1
		for _, b := range slices.Compact(bounds) {
			if b > pre {
				out = append(out, mesh.SubAxis(a.Name, pre, b/pre))
				pre = b
			}
		}
	}
	return out
}
