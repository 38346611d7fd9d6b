package ir

import (
	"slices"
	"strings"
)

// maxAxes is how many axes a mesh may have.
const maxAxes = 256

// MaxDevices bounds the devices of a program, so that a short text cannot ask for long lists of them.
const MaxDevices = 1 << 20

// SoundMesh checks that the axes have names of their own, and that the devices are
// not too many.
func SoundMesh(mesh *Mesh) *Rule {
	name := SymbolText(mesh.Name)
	n := 1
	if len(mesh.Axes) > maxAxes {
		return NewRule("mesh-5", "mesh %s has %d axes, more than %d", name, len(mesh.Axes), maxAxes)
	}
	for i, a := range mesh.Axes {
		switch {
		case a.Size < 1:
			return NewRule("mesh-1", "axis %q of mesh %s has size %d, want at least 1", a.Name, name, a.Size)
		case n > MaxDevices/a.Size:
			return NewRule("mesh-1", "mesh %s has more than %d devices", name, MaxDevices)
		case mesh.Axis(a.Name) != i:
			return NewRule("mesh-2", "mesh %s has two axes %q", name, a.Name)
		}
		n *= a.Size
	}
	if !mesh.Attrs.Has(DCN) {
		return nil
	}
	outer := mesh.Attrs.Ints(DCN)
	if len(outer) != len(mesh.Axes) {
		return NewRule("mesh-4", "%s of mesh %s has %d sizes for %d axes", DCN, name, len(outer), len(mesh.Axes))
	}
	for i, a := range mesh.Axes {
		if outer[i] < 1 || a.Size%outer[i] != 0 {
			return NewRule("mesh-4", "axis %q of mesh %s has %d devices, which do not divide into %d slices", a.Name, name, a.Size, outer[i])
		}
	}
	return nil
}

// Refs are all axes that s names.
func (s *Sharding) Refs() []AxisRef {
	n := len(s.Replicated) + len(s.Unreduced)
	for _, d := range s.Dims {
		n += len(d.Axes)
	}
	if n == 0 {
		return nil
	}
	return s.appendRefs(make([]AxisRef, 0, n))
}

func (s *Sharding) appendRefs(rs []AxisRef) []AxisRef {
	for _, d := range s.Dims {
		rs = append(rs, d.Axes...)
	}
	return append(append(rs, s.Replicated...), s.Unreduced...)
}

// FitsMesh checks s by itself, as Shardy does: that sizes divide is demanded
// only of manual axes.
func FitsMesh(m *Module, s *Sharding, t *Type) *Rule {
	mesh := m.Mesh(s.Mesh)
	if mesh == nil && s.Mesh != "" {
		return NewRule("sharding-1", "there is no mesh %s", SymbolText(s.Mesh))
	}
	if r := fitsType(s, mesh, t); r != nil {
		return r
	}
	if mesh == nil || len(mesh.Axes) > maxAxes {
		return nil // the text said neither mesh nor axes, or SoundMesh has an error
	}
	var few [8]AxisRef
	if r := DistinctAxes(mesh, s.appendRefs(few[:0])); r != nil {
		return NewRule(r.Label, "%s: %s", s, r.Msg)
	}
	for i, d := range s.Dims {
		if r := Mergeable(d.Axes); r != nil {
			return NewRule(r.Label, "%s: %s", s, r.Msg)
		}
		if len(d.Axes) == 0 && !d.Open && d.Priority > 0 {
			return NewRule("sharding-8", "%s: dimension %d is empty and closed, so it has no priority", s, i)
		}
	}
	for _, list := range [][]AxisRef{s.Replicated, s.Unreduced} {
		if r := Mergeable(list); r != nil {
			return NewRule(r.Label, "%s: %s", s, r.Msg)
		}
		if !slices.IsSortedFunc(list, mesh.CompareRefs) {
			return NewRule("sharding-7", "%s: replicated and unreduced axes must be in the order of mesh %s", s, SymbolText(mesh.Name))
		}
	}
	return nil
}

// fitsType checks the rank. Values that are no tensors have rank 0, as do values on
// one device; a tuple of one element counts as that element.
func fitsType(s *Sharding, mesh *Mesh, t *Type) *Rule {
	if t.Kind == TupleType {
		if len(t.Elems) != 1 {
			return NewRule("sharding-2", "%s is the sharding of a tuple of %d, want a tuple of 1", s, len(t.Elems))
		}
		t = t.Elems[0]
	}
	bare := len(s.Dims)+len(s.Replicated)+len(s.Unreduced) == 0
	switch {
	case mesh != nil && len(mesh.Axes) == 0 && len(mesh.DeviceIDs) > 0:
		if !bare {
			return NewRule("sharding-2", "%s names one device, so it has no dimensions and no axes", s)
		}
	case strings.HasPrefix(t.Text, "tensor<*"):
		return NewRule("sharding-2", "%s is the sharding of %s, want a ranked tensor", s, t)
	case t.Kind == OpaqueType && !strings.HasPrefix(t.Text, "!"):
	case !t.IsTensor():
		if !bare {
			return NewRule("sharding-2", "%s is the sharding of %s, which has no dimensions", s, t)
		}
	case len(s.Dims) != t.Rank():
		return NewRule("sharding-2", "%s has %s, %s has %d", s, Counted(len(s.Dims), "dimension"), t, t.Rank())
	}
	return nil
}

// DistinctAxes checks that rs are axes or sub-axes of mesh, no two of which
// overlap.
func DistinctAxes(mesh *Mesh, rs []AxisRef) *Rule {
	for i, r := range rs {
		k := mesh.Axis(r.Name)
		if k < 0 {
			return NewRule("sharding-3", "mesh %s has no axis %q", SymbolText(mesh.Name), r.Name)
		}
		if bad := subAxis(r, mesh.Axes[k].Size); bad != nil {
			return bad
		}
		for _, o := range rs[:i] {
			if o.shares(r) {
				return NewRule("sharding-4", "axis %q is used twice, as %s and as %s", r.Name, o, r)
			}
		}
	}
	return nil
}

// subAxis checks that r is a proper sub-axis of its axis, which has n devices.
func subAxis(r AxisRef, n int) *Rule {
	if r.Size == 0 && r.Pre == 0 {
		return nil // the full axis
	}
	switch {
	case r.Pre < 1 || r.Size < 2:
		return NewRule("sharding-5", "%s is no sub-axis: want at least (1)2", r)
	case r.Pre > n/r.Size || n%(r.Pre*r.Size) != 0:
		return NewRule("sharding-5", "%s does not divide axis %q, which has size %d", r, r.Name, n)
	case r.Size == n:
		return NewRule("sharding-5", "%s is the full axis, write %q", r, r.Name)
	}
	return nil
}

// Mergeable checks that no two neighbours are consecutive sub-axes of one axis,
// which could be merged: a sharding has one spelling.
func Mergeable(rs []AxisRef) *Rule {
	for i := 1; i < len(rs); i++ {
		if a, b := rs[i-1], rs[i]; a.Name == b.Name && a.Size > 0 && b.Pre == a.Pre*a.Size {
			return NewRule("sharding-6", "%s and %s are one sub-axis, write %s", a, b, AxisRef{a.Name, a.Pre, a.Size * b.Size})
		}
	}
	return nil
}

// CompareRefs orders axes as the mesh does, sub-axes of one axis major first.
func (m *Mesh) CompareRefs(a, b AxisRef) int {
	if i, k := m.Axis(a.Name), m.Axis(b.Name); i != k {
		return i - k
	}
	return a.Pre - b.Pre
}

// ManualAxes are the axes along which op's regions are per device.
func ManualAxes(op *Op) []AxisRef {
	list, _ := op.Attrs.Get("manual_axes").(Array)
	var axes []AxisRef
	for _, a := range list {
		if name, ok := a.(Str); ok {
			axes = append(axes, Ax(string(name)))
		}
	}
	return axes
}
