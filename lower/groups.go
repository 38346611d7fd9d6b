// Package lower is what happens to a per-device program after the passes:
// here, its text for other compilers, StableHLO with the devices of collectives
// listed. Package lower/hlo prints HLO.
//
// It imports ir and ir/mlir only.
package lower

import (
	"fmt"

	"ppc/ir"
)

// Digits sees the rank of a device in mesh as a number whose digits, major
// first, have the sizes dims: one or more per mesh axis, so that every axis of
// axes is one digit. perm is the digits in the order in which counting visits
// the groups along axes one after the other: the others first, then those of
// axes in their order. The axes must pass [CheckAxes].
func Digits(mesh *ir.Mesh, axes []ir.AxisRef) (dims, perm []int) {
	digit := make(map[ir.AxisRef]int)
	for _, a := range mesh.Axes {
		for pre := 1; pre < a.Size; {
			size := a.Size / pre
			for _, r := range axes {
				start, n := mesh.Span(r)
				if r.Name != a.Name || n == 1 {
					continue
				}
				if start == pre {
					size = n
					digit[r] = len(dims)
					break
				}
				if start > pre {
					size = min(size, start/pre)
				}
			}
			dims = append(dims, size)
			pre *= size
		}
	}
	grouped := make([]bool, len(dims))
	for _, d := range digit {
		grouped[d] = true
	}
	for d := range dims {
		if !grouped[d] {
			perm = append(perm, d)
		}
	}
	for _, r := range axes {
		if d, ok := digit[r]; ok {
			perm = append(perm, d)
		}
	}
	return dims, perm
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
			if r.Name == s.Name && !disjointCut(r, s) && !disjointCut(s, r) {
				return fmt.Errorf("%s and %s do not cut axis %q the same way", s, r, r.Name)
			}
		}
	}
	return nil
}

// disjointCut reports whether the sub-axis s can be cut off before r.
func disjointCut(r, s ir.AxisRef) bool { return r.Pre%(s.Pre*s.Size) == 0 }

// Groups is the groups of devices that differ only along axes, each in the
// order of the axes, and the groups in the order of their first devices.
func Groups(mesh *ir.Mesh, axes []ir.AxisRef) [][]int {
	dims, perm := Digits(mesh, axes)
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
			groups[g][i] = deviceAt(mesh, rank)
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
	stride, n := mesh.Stride(s.Axis), mesh.RefSize(s.Axis)
	pairs, cells := make([][]int, 0, mesh.Size()), make([]int, 0, 2*mesh.Size())
	for rank := range mesh.Size() {
		i := rank / stride % n
		j := i + s.Shift
		if s.Wrap {
			j = ((j % n) + n) % n
		}
		if j < 0 || j >= n {
			continue
		}
		cells = append(cells, deviceAt(mesh, rank), deviceAt(mesh, rank+(j-i)*stride))
		pairs = append(pairs, cells[len(cells)-2:len(cells):len(cells)])
	}
	return pairs
}

// MovePairs is the source and the target of every transfer of a, by source.
func MovePairs(mesh *ir.Mesh, a ir.AxisMove) [][]int {
	pairs := make([][]int, mesh.Size())
	for rank := range pairs {
		pairs[rank] = []int{deviceAt(mesh, rank), deviceAt(mesh, mesh.Target(a, rank))}
	}
	return pairs
}

func deviceAt(mesh *ir.Mesh, rank int) int {
	if mesh.DeviceIDs != nil {
		return mesh.DeviceIDs[rank]
	}
	return rank
}
