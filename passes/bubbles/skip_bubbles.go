package bubbles

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// SkipBubbles leaves out the work of bubbles, where the configuration asks for it
// (the module's attribute pp.skip_bubbles): each device has a stage of its own, and
// need not compute values that are never read.
//
// stage-sharding selects the results of a stage, and differentiate its cotangents,
// by whether the stage has a microbatch. On one device that is a single predicate,
// so the ops whose results only such a select or a saved residual reads become the
// branch of an if:
//
//	y = work(x)                         y = if valid { work(x) } else { other }
//	out = select(valid, y, other)  ->   out = y
//
// Residuals of a bubble may be any value, since the backward of that iteration is a
// bubble, too, and skips the ops that would read them. Ops that depend on out and
// are used only where valid holds, as the backward is where loops are unrolled, are
// another branch.
//
// A collective may be in the branch if all devices of each of its groups have the
// same predicate: that holds along every mesh axis but stage. One over the stage
// axis stays outside; where it is between the ops of a layer, some stages alone
// cannot skip the layer, and that is an error.
func SkipBubbles(_ *pass.Context, m *ir.Module) error {
	if !m.Attrs.Has(ir.KeySkipBubbles) || len(m.Meshes) == 0 { // without a mesh there are no stages
		return nil
	}
	f := m.Main()
	s := &skipper{f: f, mesh: m.Meshes[0], axes: make(map[*ir.Value]axisSet), loops: make(map[*ir.Block]*ir.Op)}
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.While {
			s.loops[op.Regions[1]] = op
		}
	})
	return s.block(f.Body)
}

// A skipper works on one function.
type skipper struct {
	f     *ir.Func
	mesh  *ir.Mesh
	axes  map[*ir.Value]axisSet // what onWhich has found
	loops map[*ir.Block]*ir.Op  // by their bodies
	def   []*member             // by ID of a value
}

// An axisSet is mesh axes, by their bits.
type axisSet uint64

func (s *skipper) block(b *ir.Block) error {
	if preds := s.predicates(b); len(preds) > 0 {
		s.accumulate(b, preds)
		q := s.sequenceOf(b, preds)
		for _, p := range preds {
			if err := q.skip(*p); err != nil {
				return err
			}
		}
		b.Ops = q.ops()
	}
	for _, op := range b.Ops {
		if facts.Reducer(op) {
			continue
		}
		for _, r := range op.Regions {
			if err := s.block(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// truth is the scalar predicate by which op, a select, selects all elements; nil if
// op selects by element.
func truth(op *ir.Op) *ir.Value {
	if op.Kind != ir.Select {
		return nil
	}
	p := op.Operands[0]
	for p.Def != nil && (p.Def.Kind == ir.BroadcastInDim || p.Def.Kind == ir.Reshape) {
		p = p.Def.Operands[0]
	}
	if p.Type.NumElements() != 1 {
		return nil
	}
	return p
}

func (s *skipper) stage() axisSet {
	if i := s.mesh.Axis(facts.StageAxis); i >= 0 && s.mesh.Axes[i].Size > 1 {
		return 1 << i
	}
	return 0
}

// between is the axes whose strides in the number of a device are at least lo and
// below hi; all, if the mesh lists its devices.
func (s *skipper) between(lo, hi int) axisSet {
	var set axisSet
	for i, a := range s.mesh.Axes {
		if a.Size > 1 && (s.mesh.DeviceIDs != nil || slices.ContainsFunc(s.mesh.Digits(ir.Ax(a.Name)), func(d ir.AxisRef) bool {
			stride := s.mesh.DeviceStride(d)
			return lo < stride*s.mesh.RefSize(d) && stride < hi
		})) {
			set |= 1 << i
		}
	}
	return set
}

// onWhich is the mesh axes along which the devices' values of v may differ.
func (s *skipper) onWhich(v *ir.Value) axisSet {
	if set, ok := s.axes[v]; ok {
		return set
	}
	s.axes[v] = 0 // of a loop's argument that depends on itself
	set := s.between(1, s.mesh.Size())
	if lo, hi, ok := s.coordinate(v); ok {
		set = s.between(lo, hi)
	} else if op := v.Def; op != nil && (op.Kind.Has(ir.Elementwise) || small[op.Kind]) {
		set = 0
		for _, x := range op.Operands {
			set |= s.onWhich(x)
		}
	} else if loop := s.loops[v.Block]; loop != nil {
		set = s.onWhich(loop.Operands[v.Index]) | s.onWhich(loop.Regions[1].Terminator().Operands[v.Index])
	}
	s.axes[v] = set
	return set
}

// small is the kinds besides elementwise ones that a predicate may be computed by.
var small = map[ir.Kind]bool{ir.Constant: true, ir.Iota: true, ir.BroadcastInDim: true, ir.Reshape: true, ir.Convert: true, ir.Slice: true, ir.DynamicSlice: true, ir.Concatenate: true}

// coordinate reports whether v is the coordinate of this device along the axes of
// strides from lo to below hi: rank / lo rem (hi / lo).
func (s *skipper) coordinate(v *ir.Value) (lo, hi int, ok bool) {
	op := v.Def
	switch {
	case op == nil:
		return 0, 0, false
	case op.Kind == ir.PartitionID:
		return 1, s.mesh.Size(), true
	case op.Kind == ir.Convert && v.Type.Rank() == 0:
		return s.coordinate(op.Operands[0])
	case op.Kind == ir.Divide || op.Kind == ir.Remainder:
		lo, hi, ok = s.coordinate(op.Operands[0])
		l := ir.ConstantOf(op.Operands[1])
		if !ok || l == nil || !l.IsSplat() || l.Int(0) < 1 {
			return 0, 0, false
		}
		if n := int(l.Int(0)); op.Kind == ir.Divide {
			lo *= n
		} else {
			hi = min(hi, lo*n)
		}
		return lo, hi, true
	}
	return 0, 0, false
}

// exchanges reports whether op, or an op in it, is a collective over some axis
// of set.
func (s *skipper) exchanges(op *ir.Op, set axisSet) bool {
	found := false
	(&ir.Block{Ops: []*ir.Op{op}}).Walk(func(op *ir.Op) {
		if !op.Kind.Has(ir.Collective) {
			return
		}
		groups := op.Attrs.Get("replica_groups")
		if groups == nil {
			groups = op.Attrs.Get("source_target_pairs")
		}
		found = found || s.over(groups)&set != 0
	})
	return found
}

// over is the axes along which the members of groups differ.
func (s *skipper) over(groups ir.Attr) axisSet {
	var refs []ir.AxisRef
	switch g := groups.(type) {
	case ir.MeshAxes:
		refs = g.Axes
	case ir.AxisShift:
		refs = g.Axes
	case ir.AxisMove:
		refs = slices.Concat(g.From, g.To)
	default:
		return s.between(1, s.mesh.Size())
	}
	var set axisSet
	for i, a := range s.mesh.Axes {
		if slices.ContainsFunc(refs, func(r ir.AxisRef) bool { return r.Name == a.Name }) {
			set |= 1 << i
		}
	}
	return set
}
