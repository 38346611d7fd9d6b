package config

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// ElemTypes are the element types that programs may name.
var ElemTypes = []string{"f64", "f32", "bf16", "f16", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}

func (p *Program) declareTypes() {
	for _, e := range p.ordered("types") {
		if slices.Contains(ElemTypes, e.Key) {
			p.Report(e.Span, "", syntax.ErrTypeName, e.Key)
			continue
		}
		n, ok := e.Value.(*syntax.NameRef)
		if !ok || !slices.Contains(ElemTypes, n.Name) {
			word := ""
			if ok {
				word = n.Name
			}
			p.Report(e.Value.At(), syntax.Suggest(syntax.TypeWord, word, ElemTypes), syntax.ErrTypeValue, e.Key, strings.Join(ElemTypes, ", "))
			p.types.set(e.Key, p.Elem(ir.F32))
			continue
		}
		p.types.set(e.Key, p.Elem(ir.DTypeByName(n.Name)))
	}
}

// Elem is t, or f64 where every float is to be one.
func (p *Program) Elem(t ir.DType) ir.DType {
	if p.Opts.Float64 && t.IsFloat() {
		return ir.F64
	}
	return t
}

// ElemNamed returns the element type that the program calls name.
func (p *Program) ElemNamed(name string) (ir.DType, bool) {
	if t, ok := p.types.Of[name]; ok {
		return t, true
	}
	if slices.Contains(ElemTypes, name) {
		return p.Elem(ir.DTypeByName(name)), true
	}
	return 0, false
}

// TypeNames are the element types that the program has names for, in order.
func (p *Program) TypeNames() []string { return append(slices.Clone(p.types.Names), ElemTypes...) }

// An axisDecl is one entry of the axes block.
type axisDecl struct {
	*syntax.Setting
	Size  int
	state int // 0 not evaluated, 1 being evaluated, 2 done
	bad   bool
}

// MaxAxis bounds the size of an axis, so that products stay in 64 bits.
const MaxAxis = 1 << 31

func (p *Program) declareAxes() {
	for _, name := range p.Axes.Names {
		p.AxisSize(name)
	}
}

// AxisSize is the declared size of the axis called name, which is declared;
// false where its declaration is wrong.
func (p *Program) AxisSize(name string) (int, bool) {
	d := p.Axes.Of[name]
	switch d.state {
	case 1:
		p.Report(d.Span, "give one of them a number", syntax.ErrAxisCycle, name)
		d.bad = true
		return 1, false
	case 2:
		return d.Size, !d.bad
	}
	d.state, d.Size = 1, 1
	n, ok := p.language.Number(p, d.Value, "the size of an axis")
	d.state = 2
	if !ok || d.bad {
		d.bad = true
		return 1, false
	}
	size, ok := n.Whole()
	if !ok || size < 1 || size > MaxAxis {
		p.Report(d.Value.At(), "", syntax.ErrAxisSize, name, n, MaxAxis)
		d.bad = true
		return 1, false
	}
	d.Size = size
	return size, true
}

// KnownMeshAxes are the names that rules may use whether or not the mesh has
// them: MaxText's, so that one set of rules serves many meshes.
var KnownMeshAxes = []string{"diloco", "stage", "data", "fsdp", "fsdp_transpose", "context", "context_usp_ulysses", "context_autoregressive",
	"tensor", "tensor_sequence", "expert", "autoregressive"}

func (p *Program) declareMesh() {
	entries := p.ordered("mesh")
	if len(entries) == 0 {
		return
	}
	mesh := &ir.Mesh{Name: "mesh"}
	fill, product, dcn, spans := -1, 1, []int(nil), false
	for _, e := range entries {
		if e.Override && !slices.Contains(KnownMeshAxes, e.Key) && !p.inFile("mesh", e.Key) {
			key := e.Span
			key.Len = len(e.Key)
			p.Report(key, syntax.Suggest(syntax.MeshWord, e.Key, append(meshNames(mesh), KnownMeshAxes...)), syntax.ErrUnknownMesh, e.Key, meshText(mesh))
			continue
		}
		size, outer, ok := p.meshSize(e)
		if !ok {
			size = 1
		}
		if size == -1 {
			if fill >= 0 {
				p.Report(e.Value.At(), "", syntax.ErrFillTwice, mesh.Axes[fill].Name, e.Key)
				size = 1
			} else {
				fill = len(mesh.Axes)
			}
		} else if product *= size; product > ir.MaxDevices {
			p.BadSetting = true
			p.Report(e.Value.At(), "", syntax.ErrMeshLarge, product, ir.MaxDevices)
			product = size
		}
		spans = spans || outer > 1
		dcn = append(dcn, outer)
		mesh.Axes = append(mesh.Axes, ir.MeshAxis{Name: e.Key, Size: size})
	}
	p.fillMesh(mesh, entries, fill, product)
	if spans {
		mesh.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.DCN, Attr: ir.Ints(dcn)})
	}
	p.Mesh = mesh
}

func (p *Program) inFile(kind, key string) bool {
	for _, f := range p.Files {
		for _, b := range f.Blocks {
			if b.Kind == kind && slices.ContainsFunc(b.Entries, func(e syntax.Setting) bool { return e.Key == key }) {
				return true
			}
		}
	}
	return false
}

// fillMesh gives the axis of -1 what Devices leaves.
func (p *Program) fillMesh(mesh *ir.Mesh, entries []*syntax.Setting, fill, product int) {
	n := p.Opts.Devices
	switch {
	case fill >= 0 && n == 0:
		mesh.Axes[fill].Size, p.BadSetting = 1, true
		p.Report(entries[fill].Span, "give --devices, or --set mesh."+mesh.Axes[fill].Name+"=1", syntax.ErrFill, mesh.Axes[fill].Name)
	case fill >= 0 && n > ir.MaxDevices:
		mesh.Axes[fill].Size, p.BadSetting = 1, true
		p.Report(entries[fill].Span, "", syntax.ErrMeshLarge, n, ir.MaxDevices)
	case fill >= 0 && n%product != 0:
		mesh.Axes[fill].Size, p.BadSetting = 1, true
		p.Report(entries[fill].Span, "", syntax.ErrFillRest, n, product)
	case fill >= 0:
		mesh.Axes[fill].Size = n / product
	case n != 0 && n != product:
		last := entries[len(entries)-1]
		p.Report(last.Span, "make one axis -1", syntax.ErrDevices, ir.Counted(product, "device"), n)
	}
}

// meshSize reads the size of a mesh axis: 4, -1, or dcn(2) * ici(4), an axis
// of 8 whose major half of 2 spans slices. outer is the dcn half.
func (p *Program) meshSize(e *syntax.Setting) (size, outer int, ok bool) {
	size, outer = 1, 1
	factors := []syntax.Expr{e.Value}
	if b, isMul := e.Value.(*syntax.BinaryExpr); isMul && b.Op == "*" {
		factors = []syntax.Expr{b.X, b.Y}
	}
	for _, f := range factors {
		half, x := "", f
		if c, isCall := f.(*syntax.CallExpr); isCall {
			if n, isName := c.Fn.(*syntax.NameRef); isName && (n.Name == "dcn" || n.Name == "ici") && len(c.Args) == 1 {
				half, x = n.Name, c.Args[0].Value
			}
		}
		n, isNumber := p.language.Number(p, x, "the size of a mesh axis")
		if !isNumber {
			return 1, 1, false
		}
		v, isWhole := n.Whole()
		if !isWhole || v < 1 && !(v == -1 && len(factors) == 1) || v > MaxAxis {
			p.BadSetting = true
			p.Report(x.At(), "", syntax.ErrMeshSize, e.Key, n, MaxAxis)
			return 1, 1, false
		}
		if size *= v; half == "dcn" {
			outer *= v
		}
	}
	return size, outer, true
}

func meshNames(m *ir.Mesh) []string {
	if m == nil {
		return nil
	}
	names := make([]string, len(m.Axes))
	for i, a := range m.Axes {
		names[i] = a.Name
	}
	return names
}

// meshText is the axes of m for a message.
func meshText(m *ir.Mesh) string {
	if m == nil || len(m.Axes) == 0 {
		return "none"
	}
	return strings.Join(meshNames(m), ", ")
}

// checkRules checks the names in the shard blocks.
func (p *Program) checkRules() {
	for _, of := range []string{"weights", "activations"} {
		for _, r := range p.Rules[of] {
			for _, a := range r.Axes {
				if p.Axes.Of[a.Name] == nil {
					p.Report(a.Span, syntax.Near(a.Name, p.Axes.Names), syntax.ErrUnknownAxis, a.Name)
				}
			}
			p.CheckMeshAxes(of, r)
		}
	}
}

// checkStageAxis refuses a mesh whose axis of stages is called otherwise: no rule
// has the axis, and there is no other for stages.
func (p *Program) checkStageAxis() {
	if p.Mesh == nil || p.Mesh.Axis("stage") >= 0 {
		return
	}
	for _, a := range p.Mesh.Axes {
		row := syntax.Theirs(syntax.MeshWord, a.Name)
		ruled := slices.ContainsFunc(slices.Concat(p.Rules["weights"], p.Rules["activations"]), func(r syntax.Rule) bool { return slices.Contains(namesOfRefs(r.Mesh), a.Name) })
		if row == nil || row.Ours != "stage" || ruled {
			continue
		}
		at := p.Values["mesh"][a.Name].Span
		at.Len = len(a.Name)
		p.BadSetting = true
		p.Report(at, fmt.Sprintf("mesh { stage = %d }", a.Size), syntax.ErrStageName, a.Name)
	}
}

// CheckMeshAxes reports mesh axes of rules that the mesh has not.
func (p *Program) CheckMeshAxes(of string, r syntax.Rule) {
	for i, m := range r.Mesh {
		if m.Name == "none" && len(r.Mesh) == 1 {
			continue
		}
		if m.Name == "stage" && of == "activations" {
			p.Report(m.Span, "leave it out: outside of pipelined layers the batch is sharded along it anyway", syntax.ErrStageAxis)
			continue
		}
		if slices.Contains(meshNames(p.Mesh), m.Name) || slices.Contains(KnownMeshAxes, m.Name) {
			if slices.ContainsFunc(r.Mesh[:i], func(o syntax.NameRef) bool { return o.Name == m.Name }) {
				p.Report(m.Span, "", syntax.ErrMeshTwice, m.Name)
			}
			continue
		}
		p.Report(m.Span, syntax.Suggest(syntax.MeshWord, m.Name, append(meshNames(p.Mesh), KnownMeshAxes...)), syntax.ErrUnknownMesh, m.Name, meshText(p.Mesh))
	}
}
