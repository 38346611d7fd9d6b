package partition

import (
	"slices"

	"ppc/ir"
	"ppc/passes/layout"
)

// A reduction is how a tensor is reduced along axes: by a reduce-scatter for
// each dimension that gains axes, and an all-reduce over the rest.
type reduction struct {
	scattered []dimAxes
	rest      []ir.AxisRef
}

// A dimAxes is axes that a dimension gains.
type dimAxes struct {
	dim  int
	axes []ir.AxisRef
}

// reduction finds which of the axes that a tensor of the layout at is unreduced
// along are next in some dimension of the layout want.
func (p *program) reduction(at, want layout.Layout, axes []ir.AxisRef) reduction {
	has, to := layout.Atoms(p.mesh, append(at.Clone(), axes), want)
	s := reduction{rest: has[len(at)]}
	for d := range at {
		n := len(has[d])
		if n >= len(to[d]) || layout.SamePrefix(has[d], to[d]) < n {
			continue
		}
		k := n
		for k < len(to[d]) && slices.Contains(s.rest, to[d][k]) {
			s.rest = slices.DeleteFunc(s.rest, func(r ir.AxisRef) bool { return r == to[d][k] })
			k++
		}
		if k > n {
			s.scattered = append(s.scattered, dimAxes{d, p.mesh.JoinAxes(nil, to[d][n:k])})
		}
	}
	return s
}

// combineCost is the layout that a tensor of type t has once it is reduced along
// axes, and how many bytes a device receives for that.
func (p *program) combineCost(t *ir.Type, at, want layout.Layout, axes []ir.AxisRef) (layout.Layout, int) {
	s := p.reduction(at, want, axes)
	at = at.Clone()
	bytes := 0
	for _, d := range s.scattered {
		n := layout.LayoutBytes(p.mesh, t, at)
		bytes += n - n/p.mesh.RefsSize(d.axes)
		at[d.dim] = p.mesh.JoinAxes(at[d.dim], d.axes)
	}
	if len(s.rest) > 0 {
		n := layout.LayoutBytes(p.mesh, t, at)
		bytes += 2 * (n - n/p.mesh.RefsSize(s.rest))
	}
	return at, bytes
}
