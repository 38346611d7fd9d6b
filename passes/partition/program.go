package partition

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/layout"
	"ppc/passes/pass"
)

// A program is the function that is partitioned, and the mesh that all its
// shardings are of.
type program struct {
	m        *ir.Module
	f        *ir.Func
	mesh     *ir.Mesh
	meshless bool // the module has no mesh: there is one device, and no sharding
	shared   *layout.Shared
}

// programOf is the program of m; its f is nil where there is nothing to
// partition.
func programOf(m *ir.Module) (*program, error) {
	f := m.Main()
	if f == nil || f.Body == nil {
		return &program{m: m}, nil
	}
	mesh, err := layout.MeshOf(m, f)
	if err != nil {
		return nil, err
	}
	if mesh == nil {
		mesh = &ir.Mesh{Name: "mesh"}
		return &program{m: m, f: f, mesh: mesh, meshless: true, shared: layout.NewShared(mesh)}, nil
	}
	return &program{m: m, f: f, mesh: mesh, shared: layout.NewShared(mesh)}, nil
}

// layoutOf is the layout that the sharding of v states.
func (p *program) layoutOf(v *ir.Value) layout.Layout { return p.layout(v.Sharding, v.Type) }

// layout is what s states of a tensor of type t: axes of one device are left
// out. What is no tensor has none.
func (p *program) layout(s *ir.Sharding, t *ir.Type) layout.Layout { return p.shared.Stated(s, t) }

// divides is an error where the axes of s do not divide a size of t; v is
// whose sharding it is.
func (p *program) divides(s *ir.Sharding, t *ir.Type, v *ir.Value) error {
	for d, axes := range p.layout(s, t) {
		if n := p.mesh.RefsSize(axes); t.Shape[d]%n != 0 {
			return pass.Errorf(v.Def, "%s: dimension %d has size %d, which the axes %s do not divide (%d)%s; choose another size or another sharding",
				facts.Describe(v), d, t.Shape[d], layout.AxesText(p.mesh, axes), n, layout.RulesText(p.mesh, layout.ShardedDim{D: d, Axes: axes, Rule: s.Dims[d].Rule}))
		}
	}
	return nil
}

// check is the first error that keeps the program from being partitioned: a
// size that its axes do not divide, or a call.
func (p *program) check() (err error) {
	see := func(v *ir.Value, s *ir.Sharding) {
		if err == nil {
			err = p.divides(s, v.Type, v)
		}
	}
	for _, v := range p.f.Params() {
		see(v, v.Sharding)
	}
	p.f.Body.Walk(func(op *ir.Op) {
		if err == nil && op.Kind == ir.Call {
			err = pass.Errorf(op, "func.call of %s: calls are partitioned only once they are inlined", ir.SymbolText(op.Sym("callee")))
		}
		for _, v := range op.Results {
			see(v, v.Sharding)
		}
		if op.Kind != ir.ManualComputation {
			return
		}
		for name, vs := range map[string][]*ir.Value{"in_shardings": op.Operands, "out_shardings": op.Results} {
			per, _ := op.Attrs.Get(name).(ir.PerValue)
			for i, s := range per {
				see(vs[i], s)
			}
		}
	})
	for i, v := range p.f.Return().Operands {
		see(v, p.f.Results[i].Sharding)
	}
	return err
}

// sharding is the sharding of what has the given layout and is unreduced along
// axes, to be combined by k. It is nil where the module has no mesh.
func (p *program) sharding(at layout.Layout, unreduced []ir.AxisRef, k ir.Kind) *ir.Sharding {
	if p.meshless {
		return nil
	}
	return p.shared.Sharding(at, unreduced, k)
}

// local is the type of one device's shard of a tensor of type t.
func (p *program) local(t *ir.Type, at layout.Layout) *ir.Type { return p.shared.Local(t, at) }

// replicated is the layout of v on which every device has all of it.
func (p *program) replicated(v *ir.Value) layout.Layout {
	if !v.Type.IsTensor() {
		return nil
	}
	return make(layout.Layout, v.Type.Rank())
}

// sortedAxes is axes in the order of the mesh.
func (p *program) sortedAxes(axes []ir.AxisRef) []ir.AxisRef {
	return layout.SortedAxes(p.mesh, axes)
}

// outside is what of axes none of others covers.
func (p *program) outside(axes, others []ir.AxisRef) []ir.AxisRef {
	if len(axes) == 0 {
		return nil
	}
	parts, _ := layout.Atoms(p.mesh, layout.Layout{axes}, layout.Layout{others})
	return p.mesh.JoinAxes(nil, slices.DeleteFunc(parts[0], func(r ir.AxisRef) bool { return layout.OverlapsAny(r, others) }))
}

// shardTypes are the types of the shards of op's results.
func (p *program) shardTypes(op *ir.Op, a *assignment) []*ir.Type {
	types := make([]*ir.Type, len(op.Results))
	for i, v := range op.Results {
		types[i] = p.local(v.Type, a.results[i])
	}
	return types
}

// onOneDevice is the device that alone has v by its sharding.
func (p *program) onOneDevice(v *ir.Value) (device int, ok bool) {
	return layout.OnOneDevice(p.m, v.Sharding)
}

// classOf is the class of op, whose values have the given layouts; false where it is not
// computed as others of its class: its result is unreduced or on one device, or elements
// have to be at a place.
func (p *program) classOf(op *ir.Op, layoutOf func(*ir.Value) layout.Layout, free func(*ir.Value) bool) (layout.Class, bool) {
	row := shardRowOf(op.Kind)
	if row.rule != nil || row.more != nil || row.may != nil || row.place != nil || row.either != nil {
		return layout.Class{}, false
	}
	for _, v := range op.Results {
		if _, single := p.onOneDevice(v); single || len(layout.UnreducedOf(v.Sharding)) > 0 {
			return layout.Class{}, false
		}
	}
	return p.shared.ClassOf(op, layoutOf, free)
}
