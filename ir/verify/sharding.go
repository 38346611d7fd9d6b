package verify

import (
	"slices"

	"ppc/ir"
)

func verifyMesh(mesh *ir.Mesh, errs *Errors) {
	errs.addMesh(mesh, soundAttrs(mesh.Attrs))
	r := ir.SoundMesh(mesh)
	if r == nil {
		r = deviceIDs(mesh)
	}
	errs.addMesh(mesh, r)
}

// deviceIDs checks that the list is a permutation of the ranks; of a mesh
// without axes it names one device.
func deviceIDs(mesh *ir.Mesh) *ir.Rule {
	if mesh.DeviceIDs == nil {
		return nil
	}
	if len(mesh.Axes) == 0 {
		if len(mesh.DeviceIDs) > 1 || slices.ContainsFunc(mesh.DeviceIDs, func(id int) bool { return id < 0 }) {
			return ir.NewRule("mesh-3", "mesh %s has no axes and %d device_ids, want one that is not negative", ir.SymbolText(mesh.Name), len(mesh.DeviceIDs))
		}
		return nil
	}
	n := mesh.Size()
	wrong := ir.NewRule("mesh-3", "device_ids of mesh %s are not a permutation of 0 to %d", ir.SymbolText(mesh.Name), n-1)
	if len(mesh.DeviceIDs) != n {
		return wrong
	}
	seen := make([]bool, n)
	for _, id := range mesh.DeviceIDs {
		if id < 0 || id >= n || seen[id] {
			return wrong
		}
		seen[id] = true
	}
	return nil
}

// resultShardings checks the shardings of the results of op.
func (v *verifier) resultShardings(op *ir.Op) {
	for i, x := range op.Results {
		if r := v.unfit(x.Sharding, x.Type); r != nil {
			v.errs.add(op, ir.NewRule(r.Label, "result %d: %s", i, r.Msg))
		}
	}
}

// shardings checks the shardings in the attributes of op.
func (v *verifier) shardings(op *ir.Op) {
	if len(op.Attrs) == 0 {
		return
	}
	if len(op.Results) == 1 {
		v.shardingAttrs(op, "", op.Attrs, op.Results[0].Type)
	}
	for _, a := range ir.ManualAxes(op) {
		if r := v.notManual(&ir.Sharding{Replicated: []ir.AxisRef{a}}); r != nil {
			v.errs.add(op, ir.NewRule(r.Label, "axis %s is manual already in a region around this one", a))
		}
	}
	for _, a := range op.Attrs {
		per, _ := a.Attr.(ir.PerValue)
		for i, s := range per {
			if r := v.notManual(s); r != nil {
				v.errs.add(op, ir.NewRule(r.Label, "%s %d: %s", a.Name, i, r.Msg))
			}
		}
	}
	v.unplaced(op)
	v.errs.add(op, v.stated(op))
}

// shardingName is the attribute that states the shardings of results in text. The
// reader makes it the Sharding of the values; it stays an attribute where there is
// no such value, and where it has the wrong kind.
const shardingName = "sdy.sharding"

func (v *verifier) unplaced(op *ir.Op) {
	a := op.Attrs.Get(shardingName)
	if a == nil {
		return
	}
	per, ok := a.(ir.PerValue)
	if !ok || len(op.Results) > 0 || len(per) > 1 {
		v.errs.add(op, ir.NewRule("sharding-9", "%s is %s, want one sharding for each of %s", shardingName, a, ir.Counted(len(op.Results), "result")))
		return
	}
	for _, s := range per {
		v.sharding(op, shardingName, s, ir.Token())
	}
}

// shardingAttrs checks the shardings among the attributes as, which are of
// something of type t.
func (v *verifier) shardingAttrs(op *ir.Op, what string, as ir.Attrs, t *ir.Type) {
	for _, a := range as {
		if s, ok := a.Attr.(*ir.Sharding); ok {
			v.sharding(op, a.Name+prefixed(" of ", what), s, t)
		}
	}
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// sharding checks that s, which may be nil, can be the sharding of something
// of type t.
func (v *verifier) sharding(op *ir.Op, what string, s *ir.Sharding, t *ir.Type) {
	if r := v.unfit(s, t); r != nil {
		v.errs.add(op, ir.NewRule(r.Label, "%s: %s", what, r.Msg))
	}
}

// unfit is why s, which may be nil, cannot be the sharding of something of type t.
func (v *verifier) unfit(s *ir.Sharding, t *ir.Type) *ir.Rule {
	if s == nil {
		return nil
	}
	if r := ir.FitsMesh(v.m, s, t); r != nil {
		return r
	}
	return v.notManual(s)
}

// notManual checks that s does not use an axis along which the region is per
// device already.
func (v *verifier) notManual(s *ir.Sharding) *ir.Rule {
	if len(v.manual) == 0 {
		return nil
	}
	for _, r := range s.Refs() {
		for _, a := range v.manual {
			if a.Overlaps(r) {
				return ir.NewRule("sharding-10", "%s: axis %s is manual here, every device works for itself along it", s, r)
			}
		}
	}
	return nil
}

// meshOf is the mesh of the shardings of op, a manual computation; nil if there is none,
// or it is not sound.
func (v *verifier) meshOf(op *ir.Op) *ir.Mesh {
	for _, name := range []string{"in_shardings", "out_shardings"} {
		if per, _ := op.Attrs.Get(name).(ir.PerValue); len(per) > 0 {
			if mesh := v.m.Mesh(per[0].Mesh); mesh != nil && ir.SoundMesh(mesh) == nil && deviceIDs(mesh) == nil {
				return mesh
			}
		}
	}
	return nil
}

// alongManual checks that the devices between which op exchanges values differ along
// manual axes alone: along the others a region is of all devices together.
func (v *verifier) alongManual(op *ir.Op) *ir.Rule {
	if v.mesh == nil {
		return nil
	}
	for _, name := range []string{"replica_groups", "source_target_pairs"} {
		var r *ir.Rule
		switch a := op.Attrs.Get(name).(type) {
		case *ir.Literal:
			if c, _ := op.Attrs.Get("channel_handle").(ir.Channel); a.Type.Rank() == 2 && c.Handle > 0 {
				r = v.rowsAlongManual(name, a)
			}
		case ir.MeshAxes:
			if i := slices.IndexFunc(a.Axes, func(r ir.AxisRef) bool { return !v.isManual(r.Name) }); i >= 0 {
				r = ir.NewRule(notAlongManual, "%s are along axis %s: the region is not manual along it", name, a.Axes[i])
			}
		}
		if r != nil {
			return r
		}
	}
	return nil
}

const notAlongManual = "sharding-11"

func (v *verifier) isManual(axis string) bool {
	return slices.ContainsFunc(v.manual, func(m ir.AxisRef) bool { return m.Name == axis })
}

// rowsAlongManual checks the rows of devices l, the attribute called name.
func (v *verifier) rowsAlongManual(name string, l *ir.Literal) *ir.Rule {
	var free []ir.AxisRef
	for _, a := range v.mesh.Axes {
		if a.Size > 1 && !v.isManual(a.Name) {
			free = append(free, ir.AxisRef{Name: a.Name})
		}
	}
	if len(free) == 0 {
		return nil
	}
	places := make([]int, v.mesh.Size())
	for place := range places {
		places[v.mesh.Device(place)] = place
	}
	known := func(id int64) bool { return 0 <= id && id < int64(len(places)) }
	width := l.Type.Shape[1]
	for i := range l.Type.NumElements() {
		a, b := l.Int(i-i%width), l.Int(i)
		if !known(a) || !known(b) {
			continue
		}
		for _, r := range free {
			if n, k := v.mesh.Stride(r), v.mesh.RefSize(r); places[a]/n%k != places[b]/n%k {
				return ir.NewRule(notAlongManual, "%s has devices %d and %d in one row, which differ along axis %s: the region is not manual along it", name, a, b, r)
			}
		}
	}
	return nil
}
