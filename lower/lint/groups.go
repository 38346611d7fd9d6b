package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
)

// groupKey is the groups of a collective as text that is equal for equal groups.
func (p *program) groupKey(op *ir.Op) string {
	switch a := op.Attrs.Get("replica_groups").(type) {
	case ir.MeshAxes:
		return fmt.Sprint(a.Mesh, a.Axes)
	case *ir.Literal:
		return fmt.Sprint(lists(a))
	}
	return ""
}

// lists are the rows of a literal of device numbers, in order; -1 fills up.
func lists(l *ir.Literal) [][]int {
	if l.Type.Rank() != 2 || l.Type.NumElements() == 0 {
		return nil
	}
	out := make([][]int, l.Type.Shape[0])
	for i := range l.Type.NumElements() {
		if v := int(l.Int(i)); v >= 0 {
			row := i / l.Type.Shape[1]
			out[row] = append(out[row], v)
		}
	}
	slices.SortFunc(out, func(a, b []int) int { return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(a, b)) })
	return out
}

// groupsOf are the groups of a collective as lists, where its text lists them.
func groupsOf(op *ir.Op) [][]int {
	if l := op.Literal("replica_groups"); l != nil {
		return lists(l)
	}
	return nil
}

// axesOf are the mesh and the axes along which a collective moves; nil where it
// lists devices.
func (p *program) axesOf(op *ir.Op) (*ir.Mesh, []ir.AxisRef) {
	if a, ok := op.Attrs.Get("replica_groups").(ir.MeshAxes); ok {
		return p.m.Mesh(a.Mesh), a.Axes
	}
	return nil, nil
}

// generated reports whether a compiler, and not the user, has made op while it
// distributed the program: what it does is right by construction.
func generated(op *ir.Op) bool {
	return strings.Contains(op.Str("hlo.frontend_attributes"), "is_spmd_generated")
}

// A ring is the devices that the transfers of a permute connect: a cycle, or, if it
// is open, a chain whose first has no source and whose last has no target.
type ring struct {
	devices []int
	open    bool
}

// ringsOf are the rings of source-target pairs, by their smallest device; what
// sends to itself is a ring of one.
func ringsOf(pairs [][]int) []ring {
	next, targeted := make(map[int]int), make(map[int]bool)
	var starts []int
	for _, pair := range pairs {
		if len(pair) != 2 {
			continue
		}
		next[pair[0]] = pair[1]
		targeted[pair[1]] = true
		starts = append(starts, pair[0])
	}
	slices.Sort(starts)
	seen := make(map[int]bool)
	follow := func(from int, open bool) ring {
		r := ring{open: open}
		for d, ok := from, true; ok && !seen[d]; d, ok = next[d] {
			seen[d] = true
			r.devices = append(r.devices, d)
		}
		return r
	}
	var rings []ring
	for _, d := range starts {
		if !targeted[d] {
			rings = append(rings, follow(d, true))
		}
	}
	for _, d := range starts {
		if !seen[d] {
			rings = append(rings, follow(d, false))
		}
	}
	slices.SortFunc(rings, func(a, b ring) int { return cmp.Compare(slices.Min(a.devices), slices.Min(b.devices)) })
	return rings
}

// moving are the axes of mesh along which some pair leads.
func moving(mesh *ir.Mesh, pairs [][]int) []ir.AxisRef {
	at := ranks(mesh)
	var axes []ir.AxisRef
	for _, a := range mesh.Axes {
		r := ir.Ax(a.Name)
		if slices.ContainsFunc(pairs, func(pair []int) bool {
			return at(pair[0])/mesh.Stride(r)%a.Size != at(pair[1])/mesh.Stride(r)%a.Size
		}) {
			axes = append(axes, r)
		}
	}
	return axes
}

// ranks is the place of each device of mesh.
func ranks(mesh *ir.Mesh) func(device int) int {
	if mesh.DeviceIDs == nil {
		return func(d int) int { return d }
	}
	rank := make(map[int]int)
	for r, d := range mesh.DeviceIDs {
		rank[d] = r
	}
	return func(d int) int { return rank[d] }
}

// named is the axes for people.
func named(axes []ir.AxisRef) string {
	names := make([]string, len(axes))
	for i, r := range axes {
		names[i] = strings.ReplaceAll(r.String(), `"`, "")
	}
	return strings.Join(names, ", ")
}

// few is some numbers, or their beginning: 0, 4, 8, … (64).
func few(ns []int) string {
	const most = 8
	texts := make([]string, 0, most)
	for _, n := range ns[:min(len(ns), most)] {
		texts = append(texts, fmt.Sprint(n))
	}
	s := strings.Join(texts, ", ")
	if len(ns) > most {
		s += fmt.Sprintf(", … (%d in all)", len(ns))
	}
	return s
}
