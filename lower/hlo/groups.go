package hlo

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower"
)

// longList is the number of devices beyond which a list of groups is longer
// than any iota form, so that it need not be written to be compared.
const longList = 64

// groupsText is the replica groups along axes of mesh: the iota form
// [groups,size]<=[dims]T(perm), or lists where these are shorter or where the
// mesh names its devices.
func groupsText(mesh *ir.Mesh, axes []ir.AxisRef) string {
	if mesh.DeviceIDs != nil {
		return listsText(lower.Groups(mesh, axes))
	}
	iota := iotaText(mesh, axes)
	if mesh.Size() > longList {
		return iota
	}
	if lists := listsText(lower.Groups(mesh, axes)); len(lists) < len(iota) {
		return lists
	}
	return iota
}

// iotaText cuts the mesh into digits, major first, and puts those of axes
// last: counting in the new order visits the groups one after the other.
// Digits that stay neighbours are one.
func iotaText(mesh *ir.Mesh, axes []ir.AxisRef) string {
	dims, perm := lower.Digits(mesh, axes)
	size := mesh.RefsSize(axes)
	dims, perm = mergeDigits(dims, perm)
	var b strings.Builder
	fmt.Fprintf(&b, "[%d,%d]<=[", mesh.Size()/size, size)
	writeInts(&b, dims)
	b.WriteByte(']')
	if len(dims) > 1 {
		b.WriteString("T(")
		writeInts(&b, perm)
		b.WriteByte(')')
	}
	return b.String()
}

// mergeDigits drops digits of size 1 and joins those that follow one another
// both before and after the permutation.
func mergeDigits(dims, perm []int) ([]int, []int) {
	var runs [][2]int // first digit, product, in permuted order
	last := -1
	for _, d := range perm {
		if dims[d] == 1 {
			continue
		}
		next := last + 1
		for next < d && dims[next] == 1 {
			next++
		}
		if last >= 0 && next == d {
			runs[len(runs)-1][1] *= dims[d]
		} else {
			runs = append(runs, [2]int{d, dims[d]})
		}
		last = d
	}
	if runs == nil {
		return []int{1}, []int{0}
	}
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b [2]int) int { return a[0] - b[0] })
	outDims, outPerm := make([]int, len(runs)), make([]int, len(runs))
	for i, r := range sorted {
		outDims[i] = r[1]
	}
	for i, r := range runs {
		outPerm[i] = slices.Index(sorted, r)
	}
	return outDims, outPerm
}

// listsText is groups or pairs as lists: {{0,1},{2,3}}.
func listsText(groups [][]int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, g := range groups {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('{')
		writeInts(&b, g)
		b.WriteByte('}')
	}
	b.WriteByte('}')
	return b.String()
}

// rows are the rows of a two-dimensional literal; -1 pads ragged ones.
func rows(l *ir.Literal) [][]int {
	n, width := l.Type.Shape[0], l.Type.Shape[1]
	out := make([][]int, n)
	for i := range out {
		for k := range width {
			if v := int(l.Int(i*width + k)); v >= 0 {
				out[i] = append(out[i], v)
			}
		}
	}
	return out
}
