package xla

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
)

// XLA's shardings number devices and name no axes. The mesh of a program is the
// coarsest one in whose axes and sub-axes every sharding of the program can be
// written.

// A digit is a mixed-radix digit of a device's place in the mesh: the place, a
// number from 0 to n-1, divided by n/(pre*size), modulo size. Digits in which each
// pre is the pre*size of another are those of a grid.
type digit struct{ pre, size int }

// A layout is a tiling in digits of the place in the mesh: along each dimension
// of a value, major first, and along each of the subgroups that follow.
type layout struct{ dims, groups [][]digit }

// digitsOf is the tiling t over n places that order lists the devices of; a nil
// order is 0, 1, 2, …. It reports false where no grid of that order has it.
func digitsOf(t *text, order []int) (layout, bool) {
	var tiles [][]digit
	ok := true
	if t.grid != nil && order == nil {
		tiles, ok = gridDigits(t)
	} else {
		tiles, ok = listDigits(t, order)
	}
	if !ok {
		return layout{}, false
	}
	k := len(t.dims())
	return layout{tiles[:k], tiles[k:]}, true
}

// gridDigits takes the tiles from the dimensions of the transposed grid, one
// after the other.
func gridDigits(t *text) ([][]digit, bool) {
	var digits []digit
	for _, d := range t.perm {
		if t.grid[d] > 1 {
			digits = append(digits, digit{ir.ProductUpTo(t.grid[:d], ir.MaxDevices), t.grid[d]})
		}
	}
	out := make([][]digit, len(t.tiles))
	for i, n := range t.tiles {
		for n > 1 {
			d := digits[0]
			switch {
			case n%d.size == 0:
				out[i], digits, n = append(out[i], d), digits[1:], n/d.size
			case d.size%n == 0:
				out[i] = append(out[i], digit{d.pre, n})
				digits[0] = digit{d.pre * n, d.size / n}
				n = 1
			default:
				return nil, false
			}
		}
	}
	return out, true
}

// places is, by device, its number among the tiles of t.
func (t *text) places() []int {
	at := make([]int, ir.ProductUpTo(t.tiles, ir.MaxDevices))
	for i := range at {
		at[t.device0(i)] = i
	}
	return at
}

// device0 is the device of tile i.
func (t *text) device0(i int) int {
	if t.list != nil {
		return t.list[i]
	}
	n := 0
	strides := make([]int, len(t.grid))
	for d := range t.grid {
		strides[d] = ir.ProductUpTo(t.grid[d+1:], ir.MaxDevices)
	}
	for _, d := range slices.Backward(t.perm) {
		n += i % t.grid[d] * strides[d]
		i /= t.grid[d]
	}
	return n
}

// listDigits finds, from the last digit of a place to the first, the tile
// coordinate that changes with it. Devices that differ only in the subgroup of
// replicas may be in any order.
func listDigits(t *text, order []int) ([][]digit, bool) {
	n, at := ir.ProductUpTo(t.tiles, ir.MaxDevices), t.places()
	ignored := -1
	if k := slices.Index(t.groups, replicated); k >= 0 {
		ignored = len(t.dims()) + k
	}
	coords := make([][]int, n) // by place
	for place := range coords {
		device := place
		if order != nil {
			device = order[place]
		}
		c, i := make([]int, len(t.tiles)), at[device]
		for d, size := range slices.Backward(t.tiles) {
			if c[d] = i % size; d == ignored {
				c[d] = 0
			}
			i /= size
		}
		coords[place] = c
	}
	if slices.ContainsFunc(coords[0], func(c int) bool { return c > 0 }) {
		return nil, false
	}
	found := make([][]digit, len(t.tiles))
	for stride := 1; stride < n; {
		size := run(coords, stride)
		if n%(stride*size) != 0 {
			return nil, false
		}
		if d := slices.IndexFunc(coords[stride], func(c int) bool { return c > 0 }); d >= 0 {
			found[d] = append(found[d], digit{n / (stride * size), size})
		}
		stride *= size
	}
	for d, digits := range found { // the digit that counts most is the major one
		counts := func(g digit) int { return coords[n/(g.pre*g.size)][d] }
		slices.SortFunc(digits, func(a, b digit) int { return counts(b) - counts(a) })
	}
	return found, says(found, coords)
}

// run is how many places stride apart, from the first on, are evenly spaced.
func run(coords [][]int, stride int) int {
	k := 2
	for ; k*stride < len(coords); k++ {
		for d, c := range coords[k*stride] {
			if c != k*coords[stride][d] {
				return k
			}
		}
	}
	return k
}

// says reports whether the digits give every place its coordinates.
func says(found [][]digit, coords [][]int) bool {
	n := len(coords)
	for place, c := range coords {
		for d, digits := range found {
			at := 0
			for _, g := range digits {
				at = at*g.size + place/(n/(g.pre*g.size))%g.size
			}
			if at != c[d] {
				return false
			}
		}
	}
	return true
}

// orders are the orders of devices that the mesh may have: as they are numbered,
// or as one of the shardings lists them, those without replicas first.
func orders(all []*text) [][]int {
	out := [][]int{nil}
	for _, full := range []bool{true, false} {
		for _, t := range all {
			if t.list != nil && full == (len(t.groups) == 0) && !slices.ContainsFunc(out, func(o []int) bool { return slices.Equal(o, t.list) }) {
				out = append(out, t.list)
			}
		}
	}
	return out[:min(len(out), 8)]
}

// meshOf is the mesh of all tilings of a program for n devices. If there is
// none, it is an error that names two shardings which exclude each other.
func meshOf(all []*text, n int, name string) (*ir.Mesh, error) {
	var bad *text
	for _, order := range orders(all) {
		var layouts []layout
		var miss *text
		for _, t := range all {
			l, ok := digitsOf(t, order)
			if !ok {
				miss = t
				break
			}
			layouts = append(layouts, l)
		}
		if miss == nil {
			mesh := &ir.Mesh{Name: name, Axes: axesOf(layouts, n), DeviceIDs: order}
			return mesh, nil
		}
		if bad == nil {
			bad = miss
		}
	}
	return nil, fmt.Errorf("no mesh has the devices in the order of both %s and %s; number the devices of all shardings by one grid", all[0].spelling, bad.spelling)
}

// axesOf is the coarsest grid of n places of which all layouts use full axes, or
// sub-axes where the layouts' factorisations exclude each other.
func axesOf(layouts []layout, n int) []ir.MeshAxis {
	bounds := []int{1, n}
	for _, l := range layouts {
		for _, digits := range slices.Concat(l.dims, l.groups) {
			for _, d := range digits {
				bounds = append(bounds, d.pre, d.pre*d.size)
			}
		}
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	common := slices.DeleteFunc(slices.Clone(bounds), func(b int) bool {
		return slices.ContainsFunc(bounds, func(c int) bool { return b%c != 0 && c%b != 0 })
	})
	var axes []ir.MeshAxis
	for i := 1; i < len(common); i++ {
		axes = append(axes, ir.MeshAxis{Name: fmt.Sprintf("axis_%d", i-1), Size: common[i] / common[i-1]})
	}
	if axes == nil {
		axes = []ir.MeshAxis{{Name: "axis_0", Size: 1}}
	}
	return axes
}

// refs is digits as axes or sub-axes of mesh.
func refs(mesh *ir.Mesh, digits []digit) []ir.AxisRef {
	var out []ir.AxisRef
	for _, d := range digits {
		pre := 1
		for _, a := range mesh.Axes {
			lo, hi := max(pre, d.pre), min(pre*a.Size, d.pre*d.size)
			if lo < hi {
				out = mesh.JoinAxes(out, []ir.AxisRef{mesh.SubAxis(a.Name, lo/pre, hi/lo)})
			}
			pre *= a.Size
		}
	}
	return out
}

// sharding is t of a value of some rank on mesh, without the axes along which a
// region is manual already; closed but for the dimensions that open lists.
func (t *text) sharding(mesh *ir.Mesh, rank int, open []int) (s *ir.Sharding, manualAxes []ir.AxisRef, err error) {
	if t.named != nil {
		s, manualAxes = t.named.Clone(), t.manual
		s.Mesh = mesh.Name
		if len(s.Dims) != rank {
			return nil, nil, fmt.Errorf("%s is of a value of rank %d, not %d", t.spelling, len(s.Dims), rank)
		}
	} else {
		if len(t.dims()) != rank {
			return nil, nil, fmt.Errorf("%s tiles %s, the value has %d", t.spelling, counted(len(t.dims()), "dimension"), rank)
		}
		l, ok := digitsOf(t, mesh.DeviceIDs)
		if !ok {
			return nil, nil, fmt.Errorf("%s is no part of the mesh %s", t.spelling, meshText(mesh))
		}
		s = ir.Replicated(mesh.Name, rank)
		for d, digits := range l.dims {
			s.Dims[d].Axes = refs(mesh, digits)
		}
		for i, digits := range l.groups {
			switch t.groups[i] {
			case manual:
				manualAxes = append(manualAxes, refs(mesh, digits)...)
			case unreduced:
				s.Unreduced = append(s.Unreduced, refs(mesh, digits)...)
			}
		}
	}
	s.Replicated, s.Unreduced = ordered(mesh, s.Replicated), ordered(mesh, s.Unreduced)
	return opened(s, open), manualAxes, nil
}

// ordered is axes in the order of mesh, as of axes that are a set.
func ordered(mesh *ir.Mesh, axes []ir.AxisRef) []ir.AxisRef {
	axes = slices.SortedFunc(slices.Values(axes), mesh.CompareRefs)
	return mesh.JoinAxes(nil, axes)
}

func meshText(mesh *ir.Mesh) string {
	var parts []string
	for _, a := range mesh.Axes {
		parts = append(parts, fmt.Sprintf("%s=%d", a.Name, a.Size))
	}
	return strings.Join(parts, " x ")
}
