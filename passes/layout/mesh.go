package layout

import (
	"fmt"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// MeshOf is the mesh that the shardings of f are of; the module's first where
// there is no sharding, nil where there is no mesh. Meshes that differ in name
// alone are one; a mesh without axes names one device and may be beside any.
func MeshOf(m *ir.Module, f *ir.Func) (*ir.Mesh, error) {
	var found *ir.Mesh
	var first string // what has a sharding of it, and where the source says so
	var err error
	var single oneDeviceValues
	see := func(op *ir.Op, what func() string, s *ir.Sharding) {
		if s == nil {
			return
		}
		mesh := m.Mesh(s.Mesh)
		has := func() string {
			return fmt.Sprintf("%s is sharded over mesh %s%s", what(), ir.SymbolText(mesh.Name), saidAt(s))
		}
		switch {
		case mesh == nil:
			return
		case len(mesh.Axes) == 0:
			single = append(single, oneDeviceValues{{op, what(), mesh}}...)
			return
		case found == nil:
			found, first = mesh, has()
		case err == nil && !found.SameDevices(mesh):
			err = pass.Errorf(op, "%s, but %s: %s is partitioned over one mesh; state all shardings over that", first, has(), ir.SymbolText(f.Name))
		}
		if a, b, clash := s.Clash(); clash && err == nil {
			err = pass.Errorf(op, "%s is sharded along %s and %s%s: no grid of the %d devices along the axis has both; state sub-axes of which each begins where another ends",
				what(), a, b, saidAt(s), mesh.AxisSize(a.Name))
		}
	}
	// plain reports whether see has nothing to say of s.
	plain := func(s *ir.Sharding) bool {
		if s == nil || found == nil || s.Mesh != found.Name {
			return s == nil
		}
		_, _, clash := s.Clash()
		return !clash
	}
	for _, v := range f.Params() {
		see(nil, func() string { return facts.Describe(v) }, v.Sharding)
	}
	for i, r := range f.Results {
		see(nil, func() string { return facts.ResultName(f, i) }, r.Sharding)
	}
	f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Results {
			if !plain(v.Sharding) {
				see(op, func() string { return facts.Describe(v) }, v.Sharding)
			}
		}
		for _, a := range op.Attrs {
			var per ir.PerValue
			switch a := a.Attr.(type) {
			case *ir.Sharding:
				per = ir.PerValue{a}
			case ir.PerValue:
				per = a
			}
			for _, s := range per {
				if !plain(s) {
					see(op, func() string { return a.Name + " of " + op.Name() }, s)
				}
			}
		}
	})
	for _, mesh := range m.Meshes {
		if found == nil && len(mesh.Axes) > 0 {
			found = mesh
		}
	}
	if found == nil && len(m.Meshes) > 0 {
		found = allDevices(m)
	}
	if err == nil && found != nil {
		err = single.beyond(found)
	}
	return found, err
}

// oneDeviceValues is the shardings of a function that name one device, and what says
// each.
type oneDeviceValues []struct {
	op   *ir.Op
	what string
	mesh *ir.Mesh
}

// beyond is an error about the first of them that is none of mesh's devices.
func (s oneDeviceValues) beyond(mesh *ir.Mesh) error {
	for _, x := range s {
		if n := mesh.Size(); len(x.mesh.DeviceIDs) == 1 && x.mesh.DeviceIDs[0] >= n {
			return pass.Errorf(x.op, "%s is on device %d alone (mesh %s), but the devices of the program are those below %d", x.what, x.mesh.DeviceIDs[0], ir.SymbolText(x.mesh.Name), n)
		}
	}
	return nil
}

// allDevices is a mesh of one axis for a module that has meshes without axes
// only, which name single devices: all devices there are. The module has it
// from then on.
func allDevices(m *ir.Module) *ir.Mesh {
	n := m.Attrs.Int("mhlo.num_partitions")
	for _, mesh := range m.Meshes {
		for _, id := range mesh.DeviceIDs {
			if !m.Attrs.Has("mhlo.num_partitions") {
				n = max(n, id+1)
			}
		}
	}
	n = max(n, 1)
	name := m.Unused("devices")
	mesh := &ir.Mesh{Name: name, Axes: []ir.MeshAxis{{Name: name, Size: n}}}
	m.Meshes = append(m.Meshes, mesh)
	return mesh
}

// saidAt is the place in the source that says s, in brackets; "" if that is not
// known.
func saidAt(s *ir.Sharding) string {
	for _, d := range s.Dims {
		if d.Rule.Place().Line > 0 {
			return " (" + d.Rule.Place().String() + ")"
		}
	}
	return ""
}

// OnOneDevice reports whether s says that one device alone has the value, and
// which one.
func OnOneDevice(m *ir.Module, s *ir.Sharding) (int, bool) {
	if s == nil {
		return 0, false
	}
	mesh := m.Mesh(s.Mesh)
	if mesh == nil || len(mesh.Axes) > 0 || len(mesh.DeviceIDs) != 1 {
		return 0, false
	}
	return mesh.DeviceIDs[0], true
}
