// Package lower prints programs for other compilers: as StableHLO, with the devices
// of collectives listed. Package lower/hlo prints HLO.
package lower

import (
	"fmt"
	"slices"

	"ppc/ir"
)

// Digits sees the number of a device in mesh as one whose digits, major first,
// have the sizes dims, so that every axis of axes is one or two of them. perm is
// the digits in the order in which counting visits the groups along axes one
// after the other: the others first, then those of axes in their order. The
// axes must pass [CheckAxes]. It reports false where the number of a device has
// no such digits; then they are those of its place in the grid.
func Digits(mesh *ir.Mesh, axes []ir.AxisRef) (dims, perm []int, numbers bool) {
	numbers = mesh.DeviceIDs == nil
	for _, r := range axes {
		numbers = numbers && mesh.Digits(r) != nil
	}
	var bounds []int // by axis: the size of its sub-axis over slices
	stride := mesh.Stride
	if numbers {
		bounds, stride = mesh.Slices(), mesh.DeviceStride
	}
	var digits []ir.AxisRef
	for i, a := range mesh.Axes {
		ends := []int{a.Size}
		if bounds != nil {
			ends = append(ends, bounds[i])
		}
		for _, r := range axes {
			if r.Name == a.Name {
				pre, size := mesh.Span(r)
				ends = append(ends, pre, pre*size)
			}
		}
		slices.Sort(ends)
		pre := 1
		for _, end := range ends {
			if end > pre {
				digits = append(digits, mesh.SubAxis(a.Name, pre, end/pre))
				pre = end
			}
		}
	}
	slices.SortStableFunc(digits, func(a, b ir.AxisRef) int { return stride(b) - stride(a) })
	grouped := make([]bool, len(digits))
	var last []int
	for _, r := range axes {
		for pre, size := mesh.Span(r); size > 1; {
			d := slices.IndexFunc(digits, func(d ir.AxisRef) bool {
				from, _ := mesh.Span(d)
				return d.Name == r.Name && from == pre
			})
			n := mesh.RefSize(digits[d])
			last, grouped[d], pre, size = append(last, d), true, pre*n, size/n
		}
	}
	for d, r := range digits {
		if dims = append(dims, mesh.RefSize(r)); !grouped[d] {
			perm = append(perm, d)
		}
	}
	return dims, append(perm, last...), numbers
}

// MeshOf is the mesh of m called name, which must have the axes, as
// [CheckAxes] says.
func MeshOf(m *ir.Module, name string, axes ...ir.AxisRef) (*ir.Mesh, error) {
	mesh := m.Mesh(name)
	if mesh == nil {
		return nil, fmt.Errorf("there is no mesh %s", ir.SymbolText(name))
	}
	return mesh, CheckAxes(mesh, axes...)
}

// CheckAxes reports why axes are not distinct axes or sub-axes of mesh.
func CheckAxes(mesh *ir.Mesh, axes ...ir.AxisRef) error {
	for i, r := range axes {
		n := mesh.AxisSize(r.Name)
		if mesh.Axis(r.Name) < 0 {
			return fmt.Errorf("mesh %s has no axis %q", ir.SymbolText(mesh.Name), r.Name)
		}
		if r.Size != 0 && (r.Size < 1 || r.Pre < 1 || n%(r.Pre*r.Size) != 0) {
			return fmt.Errorf("%s does not divide axis %q of size %d", r, r.Name, n)
		}
		for _, s := range axes[:i] {
			if r.Overlaps(s) {
				return fmt.Errorf("axis %s is named twice", r)
			}
			if r.Name == s.Name && !disjointSplit(r, s) && !disjointSplit(s, r) {
				return fmt.Errorf("%s and %s do not split axis %q the same way", s, r, r.Name)
			}
		}
	}
	return nil
}

// disjointSplit reports whether an axis can be split before r so that s is in the
// major sub-axis.
func disjointSplit(r, s ir.AxisRef) bool { return r.Pre%(s.Pre*s.Size) == 0 }

// Groups is the groups of devices that differ only along axes, each in the
// order of the axes, and the groups in the order of their first devices.
func Groups(mesh *ir.Mesh, axes []ir.AxisRef) [][]int {
	dims, perm, numbers := Digits(mesh, axes)
	strides := make([]int, len(dims))
	stride := 1
	for d := len(dims) - 1; d >= 0; d-- {
		strides[d] = stride
		stride *= dims[d]
	}
	size := mesh.RefsSize(axes)
	groups := make([][]int, mesh.Size()/size)
	at := make([]int, len(perm))
	rank := 0
	for g := range groups {
		groups[g] = make([]int, size)
		for i := range size {
			if groups[g][i] = rank; !numbers {
				groups[g][i] = mesh.Device(rank)
			}
			for k := len(perm) - 1; k >= 0; k-- { // count one up in permuted digits
				at[k]++
				rank += strides[perm[k]]
				if at[k] < dims[perm[k]] {
					break
				}
				rank -= at[k] * strides[perm[k]]
				at[k] = 0
			}
		}
	}
	return groups
}

// Pairs is the source and the target of every transfer of s, by source.
func Pairs(mesh *ir.Mesh, s ir.AxisShift) [][]int {
	pairs, cells := make([][]int, 0, mesh.Size()), make([]int, 0, 2*mesh.Size())
	for place := range mesh.Size() {
		to, ok := mesh.Shifted(s, place)
		if !ok {
			continue
		}
		cells = append(cells, mesh.Device(place), mesh.Device(to))
		pairs = append(pairs, cells[len(cells)-2:len(cells):len(cells)])
	}
	return pairs
}

// MovePairs is the source and the target of every transfer of a, by source.
func MovePairs(mesh *ir.Mesh, a ir.AxisMove) [][]int {
	pairs := make([][]int, mesh.Size())
	for rank := range pairs {
		pairs[rank] = []int{mesh.Device(rank), mesh.Device(mesh.Target(a, rank))}
	}
	return pairs
}
