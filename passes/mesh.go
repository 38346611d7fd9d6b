package passes

import "ppc/ir"

// meshOf is the mesh that the shardings of f are of; the module's first where
// there is no sharding, nil where there is no mesh. Meshes that differ in name
// alone are one; a mesh without axes names one device and stands beside any.
func meshOf(m *ir.Module, f *ir.Func) (*ir.Mesh, error) {
	var found *ir.Mesh
	var err error
	see := func(op *ir.Op, s *ir.Sharding) {
		if s == nil {
			return
		}
		mesh := m.Mesh(s.Mesh)
		switch {
		case mesh == nil || len(mesh.Axes) == 0:
		case found == nil:
			found = mesh
		case err == nil && !found.SameDevices(mesh):
			err = errorf(op, "%s lies on meshes %s and %s: a program is partitioned over one mesh", ir.SymbolText(f.Name), ir.SymbolText(found.Name), ir.SymbolText(mesh.Name))
		}
	}
	for _, v := range f.Params() {
		see(nil, v.Sharding)
	}
	for _, r := range f.Results {
		see(nil, r.Sharding)
	}
	f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Results {
			see(op, v.Sharding)
		}
		for _, a := range op.Attrs {
			switch a := a.Attr.(type) {
			case *ir.Sharding:
				see(op, a)
			case ir.PerValue:
				for _, s := range a {
					see(op, s)
				}
			}
		}
	})
	if found == nil && len(m.Meshes) > 0 {
		found = m.Meshes[0]
	}
	return found, err
}

// onOneDevice reports whether s says that one device alone has the value, and
// which one.
func onOneDevice(m *ir.Module, s *ir.Sharding) (int, bool) {
	if s == nil {
		return 0, false
	}
	mesh := m.Mesh(s.Mesh)
	if mesh == nil || len(mesh.Axes) > 0 || len(mesh.DeviceIDs) != 1 {
		return 0, false
	}
	return mesh.DeviceIDs[0], true
}
