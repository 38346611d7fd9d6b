package hlo

import (
	"cmp"
	"regexp"
	"slices"

	"ppc/ir"
	"ppc/lower"
)

// counted are the names of axes that were generated.
var counted = regexp.MustCompile(`^(axis_|d)\d+$`)

// nameGroups writes the groups and pairs of collectives as axes of a mesh of m
// whose axes somebody has named, where they can be written so: text that lists
// devices, or counts through them, means the same mesh as text that names it.
func nameGroups(m *ir.Module) {
	i := slices.IndexFunc(m.Meshes, func(mesh *ir.Mesh) bool {
		return mesh.DeviceIDs == nil && mesh.Size() > 1 && !slices.ContainsFunc(mesh.Axes, func(a ir.MeshAxis) bool { return counted.MatchString(a.Name) })
	})
	if i < 0 {
		return
	}
	mesh := m.Meshes[i]
	m.Main().Body.Walk(func(op *ir.Op) {
		switch a := op.Attrs.Get("replica_groups").(type) {
		case ir.MeshAxes:
			if axes, ok := sameAxes(mesh, m.Mesh(a.Mesh), a.Axes); ok {
				op.Attrs.Set("replica_groups", ir.MeshAxes{Mesh: mesh.Name, Axes: axes})
			}
		case *ir.Literal:
			if axes, ok := axesOfGroups(mesh, a); ok {
				op.Attrs.Set("replica_groups", ir.MeshAxes{Mesh: mesh.Name, Axes: axes})
			}
		}
		if l := op.Literal("source_target_pairs"); l != nil {
			if s, ok := shiftOfPairs(mesh, l); ok {
				op.Attrs.Set("source_target_pairs", s)
			}
		}
	})
}

// sameAxes are the axes of mesh that join the same devices as those of other.
// Each axis must be one of mesh's, or several that follow one another.
func sameAxes(mesh, other *ir.Mesh, axes []ir.AxisRef) ([]ir.AxisRef, bool) {
	if other == nil || other == mesh || other.DeviceIDs != nil || other.Size() != mesh.Size() {
		return nil, false
	}
	var out []ir.AxisRef
	for _, r := range axes {
		stride, n := other.Stride(r), other.RefSize(r)
		var run []ir.AxisRef // minor first
		for _, a := range slices.Backward(mesh.Axes) {
			if a.Size > 1 && mesh.Stride(ir.Ax(a.Name)) == stride && n%a.Size == 0 {
				run = append(run, ir.Ax(a.Name))
				stride, n = stride*a.Size, n/a.Size
			}
		}
		if n != 1 {
			return nil, false
		}
		slices.Reverse(run)
		out = append(out, run...)
	}
	return out, true
}

// axesOfGroups are the axes of mesh whose groups a list of groups is.
func axesOfGroups(mesh *ir.Mesh, l *ir.Literal) ([]ir.AxisRef, bool) {
	groups := Rows(l)
	if len(l.Data) == 0 || len(groups) == 0 || len(groups)*len(groups[0]) != mesh.Size() {
		return nil, false
	}
	var axes []ir.AxisRef
	for _, a := range mesh.Axes {
		if to := groups[0][0] + mesh.Stride(ir.Ax(a.Name)); a.Size > 1 && groups[0][0] == 0 && slices.Contains(groups[0], to) {
			axes = append(axes, ir.Ax(a.Name))
		}
	}
	return axes, mesh.RefsSize(axes) == len(groups[0]) && equalLists(groups, lower.Groups(mesh, axes))
}

// shiftOfPairs is the shift along an axis of mesh that a list of pairs is.
func shiftOfPairs(mesh *ir.Mesh, l *ir.Literal) (ir.AxisShift, bool) {
	pairs := Rows(l)
	if len(l.Data) == 0 || len(pairs) == 0 || len(pairs) > mesh.Size() || len(pairs[0]) != 2 {
		return ir.AxisShift{}, false
	}
	for _, a := range mesh.Axes {
		by := pairs[0][1] - pairs[0][0]
		stride := mesh.Stride(ir.Ax(a.Name))
		if a.Size == 1 || by == 0 || by%stride != 0 {
			continue
		}
		by /= stride
		for _, s := range []ir.AxisShift{{Shift: by}, {Shift: by, Wrap: true}, {Shift: by - a.Size, Wrap: true}, {Shift: by + a.Size, Wrap: true}} {
			s.Mesh, s.Axes = mesh.Name, ir.Axs(a.Name)
			if max(s.Shift, -s.Shift) < a.Size && equalLists(pairs, lower.Pairs(mesh, s)) {
				return s, true
			}
		}
	}
	return ir.AxisShift{}, false
}

// equalLists reports whether a and b are the same lists, in any order.
func equalLists(a, b [][]int) bool {
	sorted := func(lists [][]int) [][]int {
		out := slices.Clone(lists)
		slices.SortFunc(out, func(x, y []int) int { return cmp.Or(cmp.Compare(len(x), len(y)), slices.Compare(x, y)) })
		return out
	}
	return slices.EqualFunc(sorted(a), sorted(b), slices.Equal)
}
