package layout

import (
	"slices"

	"ppc/ir"
)

// A FactorAxes is how one tensor is sharded along one factor.
type FactorAxes struct {
	Present  bool
	Axes     []ir.AxisRef
	Overflow []ir.AxisRef // more axes of the dimension, which do not divide the factor
	Closed   bool
	Last     bool // the minor-most factor of its dimension
	Limit    int  // the product of the axes divides it; 0 is no limit
}

// ProjectDim hands the axes of one dimension out to its factors ks, major
// first: each takes axes, and sub-axes, until it has an element per device; the
// last takes what is left.
func ProjectDim(mesh *ir.Mesh, axes []ir.AxisRef, ks, sizes []int, factors []FactorAxes) {
	rest := slices.Clip(axes)
	for i, k := range ks {
		f := &factors[k]
		*f = FactorAxes{Present: true, Last: i == len(ks)-1}
		if i > 0 && len(factors[ks[i-1]].Overflow) > 0 || i > 0 && factors[ks[i-1]].Closed {
			f.Closed = true // what is major to it is not sharded completely, and never will be
			continue
		}
		if f.Last {
			f.Axes = rest
			return
		}
		left := sizes[k]
		for len(rest) > 0 && left > 1 {
			pre, size := mesh.Span(rest[0])
			common := GcdOf(left, size)
			if common == 1 {
				break
			}
			f.Axes = append(f.Axes, mesh.SubAxis(rest[0].Name, pre, common))
			left /= common
			if common < size {
				rest = slices.Clone(rest)
				rest[0] = mesh.SubAxis(rest[0].Name, pre*common, size/common)
			} else {
				rest = rest[1:]
			}
		}
		if left > 1 && len(rest) > 0 {
			f.Overflow, rest = rest, nil
		}
	}
}
