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

// Digits are axes in the sub-axes that are digits of what counts devices: their number, or
// their place in the grid of a mesh that lists them.
func Digits(mesh *ir.Mesh, axes []ir.AxisRef) []ir.AxisRef {
	var out []ir.AxisRef
	for _, r := range axes {
		if ds := mesh.Digits(r); len(ds) > 1 {
			out = append(out, ds...)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// Stride is the difference of that count between one device along r and the next; 0 where r is no digit of it.
func Stride(mesh *ir.Mesh, r ir.AxisRef) int {
	switch {
	case mesh.DeviceIDs != nil:
		return mesh.Stride(r)
	case mesh.Digits(r) == nil:
		return 0
	}
	return mesh.DeviceStride(r)
}

// Adjacent reports whether the count has r as the digit above s.
func Adjacent(mesh *ir.Mesh, r, s ir.AxisRef) bool {
	n := Stride(mesh, s)
	return n > 0 && Stride(mesh, r) == n*mesh.RefSize(s)
}
