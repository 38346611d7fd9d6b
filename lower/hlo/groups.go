package hlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/lower"
	"ppc/lower/hlo/syntax"
)

// longList is the number of devices beyond which a list of groups is longer
// than any iota form, so that it need not be written to be compared.
const longList = 64

// groupsText is the replica groups along axes of mesh: the iota form
// [groups,size]<=[dims]T(perm), or lists where these are shorter or where there
// is no such form.
func groupsText(mesh *ir.Mesh, axes []ir.AxisRef) string {
	iota, ok := iotaText(mesh, axes)
	if !ok {
		return ListsText(lower.Groups(mesh, axes))
	}
	if mesh.Size() > longList {
		return iota
	}
	if lists := ListsText(lower.Groups(mesh, axes)); len(lists) < len(iota) {
		return lists
	}
	return iota
}

// iotaText splits the mesh into digits, major first, and puts those of axes last:
// counting in the new order visits the groups one after the other. Digits that stay
// neighbours are merged.
func iotaText(mesh *ir.Mesh, axes []ir.AxisRef) (string, bool) {
	dims, perm, ok := lower.Digits(mesh, axes)
	if !ok {
		return "", false
	}
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
	return b.String(), true
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

// ListsText is groups or pairs as lists: {{0,1},{2,3}}.
func ListsText(groups [][]int) string {
	b := make([]byte, 0, 16*len(groups)+2)
	b = append(b, '{')
	for i, g := range groups {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		for k, id := range g {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(id), 10)
		}
		b = append(b, '}')
	}
	return string(append(b, '}'))
}

// Rows are the rows of a two-dimensional literal; -1 pads ragged ones.
func Rows(l *ir.Literal) [][]int {
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

// parseGroups reads replica groups: lists, the iota form, or axes of a mesh.
// Groups that are the axes of a grid become so, with the grid as a mesh of m.
func parseGroups(m *ir.Module, text string) (ir.Attr, error) {
	switch {
	case strings.HasPrefix(text, "mesh["):
		return parseMeshGroups(m, text)
	case strings.HasPrefix(text, "["):
		return parseIota(m, text)
	case strings.HasPrefix(text, "{"):
		lists, err := syntax.ParseLists(text)
		if err != nil {
			return nil, err
		}
		if width := widest(lists); width*len(lists) > ir.MaxDevices {
			return nil, fmt.Errorf("groups of %d devices: want at most %d in all", width, ir.MaxDevices)
		}
		return ragged(lists), nil
	}
	return nil, fmt.Errorf("%s are no replica groups", text)
}

func widest(lists [][]int) int {
	width := 0
	for _, l := range lists {
		width = max(width, len(l))
	}
	return width
}

// ragged is lists of any lengths, filled up with -1.
func ragged(lists [][]int) *ir.Literal {
	width := widest(lists)
	for i := range lists {
		for len(lists[i]) < width {
			lists[i] = append(lists[i], -1)
		}
	}
	return lower.Dense(lists, width)
}

// parseIota reads [groups,size]<=[dims]T(perm).
func parseIota(m *ir.Module, text string) (ir.Attr, error) {
	s := &syntax.Scanner{Src: text, End: len(text)}
	shape := s.Ints("[", "]")
	s.Expect("<=")
	dims, perm := s.IotaGrid()
	if s.Err != nil || s.Peek() != 0 || len(shape) != 2 {
		return nil, fmt.Errorf("want [groups,size]<=[dims]T(perm), found %s", text)
	}
	n := ir.ProductUpTo(dims, ir.MaxDevices)
	if n < 1 || n > ir.MaxDevices || ir.ProductUpTo(shape, ir.MaxDevices) != n {
		return nil, fmt.Errorf("%s: %d groups of %d are not the devices of a grid of at most %d", text, shape[0], shape[1], ir.MaxDevices)
	}
	if mesh, axes, ok := gridOf(dims, perm, shape[1]); ok && ofDevices(m, n) {
		addMesh(m, mesh)
		return ir.MeshAxes{Mesh: mesh.Name, Axes: axes}, nil
	}
	return lower.Dense(syntax.IotaLists(shape, dims, perm), shape[1]), nil
}

// ofDevices reports whether n numbers are all devices of m. They are not where
// they are replicas, or partitions, of several.
func ofDevices(m *ir.Module, n int) bool {
	replicas, partitions := max(m.Attrs.Int("mhlo.num_replicas"), 1), max(m.Attrs.Int("mhlo.num_partitions"), 1)
	return n%replicas == 0 && n/replicas == partitions || replicas == 1 && partitions == 1
}

// gridOf is the mesh of which the groups of the given size are axes, if there is
// one: the last dimensions in permuted order, one of them split in two where they
// are too large. The others must be in order.
func gridOf(dims, perm []int, size int) (*ir.Mesh, []ir.AxisRef, bool) {
	first := len(perm)
	for n := size; n > 1; {
		first--
		d := perm[first]
		if n%dims[d] == 0 {
			n /= dims[d]
			continue
		}
		if dims[d]%n != 0 {
			return nil, nil, false
		}
		dims = slices.Insert(slices.Clone(dims), d+1, n)
		dims[d] /= n
		split := make([]int, 0, len(perm)+1)
		for i, p := range perm {
			if p > d {
				p++
			}
			split = append(split, p)
			if i == first {
				split = append(split, d+1)
			}
		}
		perm = split
		first++
		break
	}
	mesh := &ir.Mesh{Name: "grid"}
	for i, d := range dims {
		mesh.Axes = append(mesh.Axes, ir.MeshAxis{Name: fmt.Sprintf("d%d", i), Size: d})
		mesh.Name += fmt.Sprintf("_%d", d)
	}
	var axes []ir.AxisRef
	for _, d := range perm[first:] {
		axes = append(axes, ir.Ax(mesh.Axes[d].Name))
	}
	return mesh, axes, slices.IsSorted(perm[:first])
}

// addMesh gives m the mesh, unless it has it.
func addMesh(m *ir.Module, mesh *ir.Mesh) {
	if m.Mesh(mesh.Name) == nil {
		m.Meshes = append(m.Meshes, mesh)
	}
}

// parseMeshGroups reads mesh['x'=2,'y'=4], device_ids=(...) {'x'}.
func parseMeshGroups(m *ir.Module, text string) (ir.Attr, error) {
	s := &syntax.Scanner{Src: text, End: len(text)}
	s.Expect("mesh")
	mesh := s.Mesh()
	mesh.Name = "mesh"
	for _, a := range mesh.Axes {
		mesh.Name += fmt.Sprintf("_%s%d", a.Name, a.Size)
	}
	s.Expect("{")
	var axes []ir.AxisRef
	for !s.Accept("}") && s.Err == nil {
		if len(axes) > 0 {
			s.Expect(",")
		}
		axes = append(axes, s.AxisRef(mesh))
	}
	if s.Err != nil {
		return nil, fmt.Errorf("%s: %s", text, s.Err.Msg)
	}
	if mesh.DeviceIDs != nil {
		mesh.Name += fmt.Sprintf("_%d", len(m.Meshes)) // the name does not say the order
	}
	if err := lower.CheckAxes(mesh, axes...); err != nil {
		return nil, err
	}
	addMesh(m, mesh)
	return ir.MeshAxes{Mesh: mesh.Name, Axes: axes}, nil
}
