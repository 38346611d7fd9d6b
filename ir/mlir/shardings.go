package mlir

import (
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/mlir/names"
)

// mesh reads sdy.mesh @mesh = <["x"=2]>.
func (s *parser) mesh() {
	at := s.tok.start
	s.next()
	if s.tok.kind != symbolToken {
		s.wanted("the mesh's name")
		return
	}
	m := &ir.Mesh{Name: s.symbol(), Origin: s.place(at)}
	s.expect("=")
	s.meshBody(m)
	if s.at("{") {
		m.Attrs = s.dict()
	}
	s.optionalLoc()
	if s.failed {
		return
	}
	s.m.Meshes = append(s.m.Meshes, m)
}

// meshBody reads <["x"=2, "y"=4], device_ids=[1, 0, …]>. Device ids in order
// are dropped, as they are what a mesh has without.
func (s *parser) meshBody(m *ir.Mesh) {
	s.expect("<")
	s.list("[", "]", func() {
		if s.tok.kind != stringToken {
			s.wanted("the name of an axis")
			return
		}
		name := unquote(s.take())
		s.expect("=")
		m.Axes = append(m.Axes, ir.MeshAxis{Name: name, Size: s.integer()})
	})
	if s.accept(",") {
		s.expect("device_ids")
		s.expect("=")
		at := s.tok.start
		if m.DeviceIDs = s.ints(); len(m.DeviceIDs) == 0 {
			s.fail(at, "device_ids are empty, want one for each device")
		}
	}
	s.expect(">")
	inOrder := len(m.Axes) > 0 && len(m.DeviceIDs) == m.Size()
	for i, id := range m.DeviceIDs {
		inOrder = inOrder && i == id
	}
	if inOrder {
		m.DeviceIDs = nil
	}
}

// inlinedMeshes are the meshes that shardings contain rather than name. Each
// becomes one of the module's, under a name that the text does not have.
type inlinedMeshes struct {
	base   string
	byText map[string]string
	meshes []*ir.Mesh
}

func newInlinedMeshes(src string) *inlinedMeshes {
	base, most := "inlined_mesh", -1 // how many _ follow that in the text
	for rest := src; ; {
		_, after, found := strings.Cut(rest, "@"+base)
		if !found {
			break
		}
		rest = strings.TrimLeft(after, "_")
		most = max(most, len(after)-len(rest))
	}
	return &inlinedMeshes{base: base + strings.Repeat("_", most+1), byText: make(map[string]string)}
}

// name returns the name under which m stands in the module.
func (x *inlinedMeshes) name(m *ir.Mesh) string {
	text := meshText(m)
	if name, ok := x.byText[text]; ok {
		return name
	}
	m.Name = x.base
	if n := len(x.meshes); n > 0 {
		m.Name += "_" + strconv.Itoa(n)
	}
	x.byText[text] = m.Name
	x.meshes = append(x.meshes, m)
	return m.Name
}

// meshRef reads @mesh or mesh<…>.
func (s *parser) meshRef() string {
	if s.tok.kind == symbolToken {
		return s.symbol()
	}
	if !s.at("mesh") {
		s.wanted("a mesh")
	}
	s.unshared()
	s.next()
	m := new(ir.Mesh)
	if s.meshBody(m); s.failed {
		return ""
	}
	return s.inlined.name(m)
}

// sharding reads <@mesh, [{"x", ?}, {}p1], replicated={"y"}, unreduced={"z"}>.
func (s *parser) sharding() *ir.Sharding {
	s.node(1)
	place := s.place(s.tok.start)
	s.expect("<")
	sh := &ir.Sharding{Mesh: s.meshRef(), Dims: []ir.DimSharding{}}
	s.expect(",")
	s.list("[", "]", func() { sh.Dims = append(sh.Dims, s.dimSharding(place)) })
	for s.accept(",") {
		switch {
		case sh.Replicated == nil && s.accept("replicated"):
			s.expect("=")
			sh.Replicated = s.axisRefs()
		case sh.Unreduced == nil && s.accept("unreduced"):
			s.expect("=")
			switch {
			case s.at("max") || s.at("min"):
				sh.ReducedBy = s.take()
			case s.at("sum"): // which is what they are without
				s.next()
			}
			sh.Unreduced = s.axisRefs()
		default:
			s.wanted("replicated or unreduced, each once")
		}
	}
	s.expect(">")
	return sh
}

// dimSharding reads {"x", ?}p1, of a sharding at place.
func (s *parser) dimSharding(place *ir.Origin) ir.DimSharding {
	d := ir.DimSharding{Rule: place}
	s.list("{", "}", func() {
		if d.Open {
			s.wanted(`"}" after "?"`)
		}
		if s.accept("?") {
			d.Open = true
			return
		}
		d.Axes = append(d.Axes, s.axisRef())
	})
	if t := s.text(); s.tok.kind == nameToken && t[0] == 'p' && names.IsNumber(t[1:]) {
		if len(d.Axes) == 0 && !d.Open {
			s.report(s.tok.start, "a closed dimension without axes has no priority")
		}
		d.Priority = s.smallInt(t[1:])
		s.next()
	}
	return d
}

// axisRefs reads {"x", "y":(1)2}, at least one.
func (s *parser) axisRefs() []ir.AxisRef {
	at := s.tok.start
	refs := []ir.AxisRef{}
	s.list("{", "}", func() { refs = append(refs, s.axisRef()) })
	if len(refs) == 0 {
		s.fail(at, "a list of no axes, want an axis, or no list")
	}
	return refs
}

// axisRef reads "x" or "x":(1)2.
func (s *parser) axisRef() ir.AxisRef {
	if s.tok.kind != stringToken {
		s.wanted("the name of an axis")
		return ir.AxisRef{}
	}
	r := ir.AxisRef{Name: unquote(s.take())}
	if s.accept(":") {
		s.expect("(")
		r.Pre = s.integer()
		s.expect(")")
		at := s.tok.start
		if r.Size = s.integer(); r.Size <= 0 {
			s.fail(at, "%d is no size of a sub-axis", r.Size)
		}
	}
	return r
}

// shardings reads [<…>, <…>].
func (s *parser) shardings() ir.PerValue {
	out := ir.PerValue{}
	s.list("[", "]", func() {
		if s.text() == "#sdy.sharding" { // may be spelled out
			s.next()
		}
		out = append(out, s.sharding())
	})
	return out
}

// meshAxes reads #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = […]>.
func (s *parser) meshAxes() ir.Attr {
	var a ir.MeshAxes
	s.allFields(
		field{"mesh", func() { a.Mesh = s.hloMesh() }},
		field{"axes", func() { a.Axes = s.hloAxisRefs() }})
	return a
}

func (s *parser) hloAxisRefs() []ir.AxisRef {
	rs := []ir.AxisRef{}
	s.list("[", "]", func() { rs = append(rs, s.hloAxisRef()) })
	return rs
}

// axisMove reads #pp.axis_move<mesh = @mesh, from = […], to = […]>.
func (s *parser) axisMove() ir.Attr {
	var a ir.AxisMove
	s.fields(
		field{"mesh", func() { a.Mesh = s.hloMesh() }},
		field{"from", func() { a.From = s.hloAxisRefs() }},
		field{"to", func() { a.To = s.hloAxisRefs() }})
	return a
}

// hloMesh reads @mesh or #stablehlo.mesh<axes = […], device_ids = dense<…>>.
func (s *parser) hloMesh() string {
	if s.tok.kind == symbolToken {
		return s.symbol()
	}
	if s.tok.kind != hashToken || s.text() != "#stablehlo.mesh" {
		s.wanted("a mesh")
	}
	s.unshared()
	m := new(ir.Mesh)
	s.fields(
		field{"axes", func() { s.list("[", "]", func() { m.Axes = append(m.Axes, s.hloMeshAxis()) }) }},
		field{"device_ids", func() {
			at := s.tok.start
			l, ok := s.attr().(*ir.Literal)
			if !ok || !l.Type.Elem.IsInt() || len(l.Data) != l.Type.Bytes() {
				s.fail(at, "device_ids is no list of different integers")
				return
			}
			m.DeviceIDs = ir.AttrsOf(ir.NamedAttr{Name: "ids", Attr: l}).Ints("ids")
		}})
	if s.failed {
		return ""
	}
	return s.inlined.name(m)
}

func (s *parser) hloMeshAxis() ir.MeshAxis {
	var a ir.MeshAxis
	if s.text() != "#stablehlo.mesh_axis" {
		s.wanted("#stablehlo.mesh_axis")
	}
	s.allFields(field{"name", func() { a.Name = s.stringText() }}, field{"size", &a.Size})
	return a
}

// hloAxisRef reads #stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>.
func (s *parser) hloAxisRef() ir.AxisRef {
	var r ir.AxisRef
	if s.text() != "#stablehlo.axis_ref" {
		s.wanted("#stablehlo.axis_ref")
	}
	s.fields(
		field{"name", func() { r.Name = s.stringText() }},
		field{"sub_axis_info", func() {
			s.expect("(")
			r.Pre = s.integer()
			s.expect(")")
			r.Size = s.integer()
		}})
	if r.Name == "" {
		s.wanted("the name of an axis before it")
	}
	return r
}

func (s *parser) stringText() string {
	if s.tok.kind != stringToken {
		s.wanted("a string")
		return ""
	}
	return unquote(s.take())
}

// axisShift reads #pp.axis_shift<mesh = @mesh, axis = …, shift = 1, wrap, reverse>,
// or axes = […] in place of the axis.
func (s *parser) axisShift() ir.Attr {
	var a ir.AxisShift
	s.fields(
		field{"mesh", func() { a.Mesh = s.hloMesh() }},
		field{"axis", func() { a.Axes = append(a.Axes, s.hloAxisRef()) }},
		field{"axes", func() { a.Axes = append(a.Axes, s.hloAxisRefs()...) }},
		field{"shift", &a.Shift}, field{"wrap", &a.Wrap}, field{"reverse", &a.Reverse})
	return a
}
