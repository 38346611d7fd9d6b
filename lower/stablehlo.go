package lower

import (
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

// ExpandGroups turns every [ir.MeshAxes], [ir.AxisShift] and [ir.AxisMove] of m
// into the list of devices that it denotes. Each such attribute costs as much as m
// has devices: it is for text that is read by others.
func ExpandGroups(m *ir.Module) error {
	var err error
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			for _, a := range op.Attrs {
				l, e := expand(m, a.Attr)
				if e != nil && err == nil {
					err = &verify.Error{Func: f, Op: op, Rule: &ir.Rule{Label: "groups", Msg: e.Error()}}
				}
				if l != nil {
					op.Attrs.Set(a.Name, l)
				}
			}
		})
	}
	return err
}

// expand returns the list that a denotes, or nil if a is no such attribute.
func expand(m *ir.Module, a ir.Attr) (*ir.Literal, error) {
	switch v := a.(type) {
	case ir.MeshAxes:
		mesh, err := MeshOf(m, v.Mesh, v.Axes...)
		if err != nil {
			return nil, err
		}
		return Dense(Groups(mesh, v.Axes), mesh.RefsSize(v.Axes)), nil
	case ir.AxisShift:
		mesh, err := MeshOf(m, v.Mesh, v.Axes...)
		if err != nil {
			return nil, err
		}
		return Dense(Pairs(mesh, v), 2), nil
	case ir.AxisMove:
		mesh, err := MeshOf(m, v.Mesh, v.From...)
		if err != nil {
			return nil, err
		}
		return Dense(MovePairs(mesh, v), 2), nil
	}
	return nil, nil
}

// Dense is rows of n numbers each as a literal.
func Dense(rows [][]int, n int) *ir.Literal {
	t := ir.Tensor(ir.I64, len(rows), n)
	data := make([]byte, 0, t.Bytes())
	for _, row := range rows {
		data = append(data, ir.Ints64(t, row...).Data...)
	}
	return &ir.Literal{Type: t, Data: data}
}

// StableHLO returns the text of m, a per-device or a global program, for
// readers that know StableHLO and Shardy only: devices are listed, no attribute
// of ppc's own is left, and the module says for how many devices it is. A
// per-device program has no meshes either. It fails where an op is ppc's own or
// HLO's, and does not change m.
func StableHLO(m *ir.Module) (string, error) { return stableHLO(m, func(*ir.Module) {}) }

// Replicas is [StableHLO] of a per-device program as one of as many replicas as
// there are devices, in place of partitions: the same program, and the form in which
// XLA, a PJRT plugin and JAX's runtime compile it as it is. Programs for partitions
// they give to a partitioner.
func Replicas(m *ir.Module) (string, error) {
	if !m.Form.Has(ir.Local) {
		return "", &verify.Error{Rule: &ir.Rule{Label: "stablehlo", Msg: "a program of all devices has no replicas: it is not lowered to one per device"}}
	}
	return stableHLO(m, asReplicas)
}

// asReplicas makes the partitions of a per-device program replicas.
func asReplicas(m *ir.Module) {
	n := m.Attrs.Int("mhlo.num_partitions")
	if n < 2 {
		return
	}
	m.Attrs.Set("mhlo.num_replicas", ir.Int{Value: n, Type: ir.I32})
	m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: 1, Type: ir.I32})
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			if op.Kind == ir.PartitionID {
				op.Kind = ir.ReplicaID
			}
			op.Attrs.Delete("channel_handle")
			op.Attrs.Delete("use_global_device_ids")
		})
	}
}

func stableHLO(m *ir.Module, change func(*ir.Module)) (string, error) {
	c := m.Clone()
	if err := ExpandGroups(c); err != nil {
		return "", err
	}
	kept := foreign
	if c.Form.Has(ir.Local) {
		c.Meshes = nil
		kept = func(as ir.Attrs) ir.Attrs { return slices.DeleteFunc(foreign(as), ofMesh) }
	} else {
		forPartitioners(c)
		for i, mesh := range c.Meshes {
			c.Meshes[i] = listed(mesh)
		}
	}
	c.Form = 0
	c.Attrs = kept(c.Attrs)
	if n := m.NumDevices(); n > 1 && !c.Attrs.Has("mhlo.num_replicas") {
		c.Attrs.Set("mhlo.num_partitions", ir.Int{Value: n, Type: ir.I32})
	}
	for _, f := range c.Funcs {
		f.Attrs = kept(f.Attrs)
		for i := range f.Results {
			f.Results[i].Attrs = kept(f.Results[i].Attrs)
		}
		if f.Body == nil {
			continue
		}
		for _, v := range f.Params() {
			v.Attrs = kept(v.Attrs)
		}
		var own *ir.Op
		f.Body.Walk(func(op *ir.Op) {
			op.Attrs = kept(op.Attrs)
			if own == nil && isOwn(op.Name()) {
				own = op
			}
		})
		if own != nil {
			return "", &verify.Error{Func: f, Op: own, Rule: &ir.Rule{Label: "stablehlo", Msg: "the op has no StableHLO form"}}
		}
	}
	change(c)
	return mlir.Print(c), nil
}

// listed is mesh with the numbers of its devices written out where they are not
// those of their places.
func listed(mesh *ir.Mesh) *ir.Mesh {
	c := *mesh
	if mesh.DeviceIDs == nil && mesh.Slices() != nil {
		c.DeviceIDs = make([]int, mesh.Size())
		for place := range c.DeviceIDs {
			c.DeviceIDs[place] = mesh.Device(place)
		}
	}
	c.Attrs = foreign(mesh.Attrs)
	return &c
}

// isOwn reports whether an op or attribute is of a dialect of ppc's own: pp, or
// hlo, what was read from HLO and has no form in StableHLO.
func isOwn(name string) bool {
	return strings.HasPrefix(name, "pp.") || strings.HasPrefix(name, "hlo.")
}

// ofMesh reports whether a says something of a mesh.
func ofMesh(a ir.NamedAttr) bool {
	switch a.Attr.(type) {
	case *ir.Sharding, ir.PerValue:
		return true
	}
	return false
}

// foreign is as without the attributes that are ppc's own.
func foreign(as ir.Attrs) ir.Attrs {
	var kept ir.Attrs
	for _, a := range as {
		if !isOwn(a.Name) {
			kept = append(kept, a)
		}
	}
	return kept
}
