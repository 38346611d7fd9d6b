package lang

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// elemTypes are the element types that programs may name.
var elemTypes = []string{"f64", "f32", "bf16", "f16", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}

func (p *program) declareTypes() {
	for _, e := range p.ordered("types") {
		if slices.Contains(elemTypes, e.Key) {
			p.Report(e.Span, "", errTypeName, e.Key)
			continue
		}
		n, ok := e.Value.(*syntax.NameRef)
		if !ok || !slices.Contains(elemTypes, n.Name) {
			word := ""
			if ok {
				word = n.Name
			}
			p.Report(e.Value.At(), syntax.Suggest(syntax.TypeWord, word, elemTypes), errTypeValue, e.Key, strings.Join(elemTypes, ", "))
			p.types.set(e.Key, p.elem(ir.F32))
			continue
		}
		p.types.set(e.Key, p.elem(ir.DTypeByName(n.Name)))
	}
}

// elem is t, or f64 where every float is to be one.
func (p *program) elem(t ir.DType) ir.DType {
	if p.opts.Float64 && t.IsFloat() {
		return ir.F64
	}
	return t
}

// elemNamed returns the element type that the program calls name.
func (p *program) elemNamed(name string) (ir.DType, bool) {
	if t, ok := p.types.of[name]; ok {
		return t, true
	}
	if slices.Contains(elemTypes, name) {
		return p.elem(ir.DTypeByName(name)), true
	}
	return 0, false
}

func (p *program) typeNames() []string { return append(slices.Clone(p.types.names), elemTypes...) }

// An axisDecl is one entry of the axes block.
type axisDecl struct {
	*syntax.Setting
	size  int
	state int // 0 not evaluated, 1 being evaluated, 2 done
	bad   bool
}

// maxAxis bounds the size of an axis, so that products stay in 64 bits.
const maxAxis = 1 << 31

func (p *program) declareAxes() {
	for _, name := range p.axes.names {
		p.axisSize(name)
	}
}

// axisSize is the declared size of the axis called name, which is declared;
// false where its declaration is wrong.
func (p *program) axisSize(name string) (int, bool) {
	d := p.axes.of[name]
	switch d.state {
	case 1:
		p.Report(d.Span, "give one of them a number", errAxisCycle, name)
		d.bad = true
		return 1, false
	case 2:
		return d.size, !d.bad
	}
	d.state, d.size = 1, 1
	e := &elab{p: p}
	n, ok := e.toNumber(e.eval(d.Value), d.Value, "the size of an axis")
	d.state = 2
	if !ok || d.bad {
		d.bad = true
		return 1, false
	}
	size, ok := n.whole()
	if !ok || size < 1 || size > maxAxis {
		p.Report(d.Value.At(), "", errAxisSize, name, n, maxAxis)
		d.bad = true
		return 1, false
	}
	d.size = size
	return size, true
}

// knownMeshAxes are the names that rules may use whether or not the mesh has
// them: MaxText's, so that one set of rules serves many meshes.
var knownMeshAxes = []string{"diloco", "stage", "data", "fsdp", "fsdp_transpose", "context", "context_usp_ulysses", "context_autoregressive",
	"tensor", "tensor_sequence", "expert", "autoregressive"}

// maxDevices bounds a mesh.
const maxDevices = 1 << 40

func (p *program) declareMesh() {
	entries := p.ordered("mesh")
	if len(entries) == 0 {
		return
	}
	mesh := &ir.Mesh{Name: "mesh"}
	fill, product, dcn, spans := -1, 1, []int(nil), false
	for _, e := range entries {
		if e.Override && !slices.Contains(knownMeshAxes, e.Key) && !p.inFile("mesh", e.Key) {
			key := e.Span
			key.Len = len(e.Key)
			p.Report(key, syntax.Suggest(syntax.MeshWord, e.Key, append(meshNames(mesh), knownMeshAxes...)), errUnknownMesh, e.Key, meshText(mesh))
			continue
		}
		size, outer, ok := p.meshSize(e)
		if !ok {
			size = 1
		}
		if size == -1 {
			if fill >= 0 {
				p.Report(e.Value.At(), "", errFillTwice, mesh.Axes[fill].Name, e.Key)
				size = 1
			} else {
				fill = len(mesh.Axes)
			}
		} else if product *= size; product > maxDevices {
			p.badSetting = true
			p.Report(e.Value.At(), "", errMeshLarge, product, maxDevices)
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
	p.mesh = mesh
}

func (p *program) inFile(kind, key string) bool {
	for _, f := range p.files {
		for _, b := range f.Blocks {
			if b.Kind == kind && slices.ContainsFunc(b.Entries, func(e syntax.Setting) bool { return e.Key == key }) {
				return true
			}
		}
	}
	return false
}

// fillMesh gives the axis of -1 what Devices leaves.
func (p *program) fillMesh(mesh *ir.Mesh, entries []*syntax.Setting, fill, product int) {
	n := p.opts.Devices
	switch {
	case fill >= 0 && n == 0:
		mesh.Axes[fill].Size = 1
		p.Report(entries[fill].Span, "give --devices, or --set mesh."+mesh.Axes[fill].Name+"=1", errFill, mesh.Axes[fill].Name)
	case fill >= 0 && n%product != 0:
		mesh.Axes[fill].Size = 1
		p.Report(entries[fill].Span, "", errFillRest, n, product)
	case fill >= 0:
		mesh.Axes[fill].Size = n / product
	case n != 0 && n != product:
		last := entries[len(entries)-1]
		p.Report(last.Span, "make one axis -1", errDevices, ir.Counted(product, "device"), n)
	}
}

// meshSize reads the size of a mesh axis: 4, -1, or dcn(2) * ici(4), an axis
// of 8 whose major half of 2 spans slices. outer is the dcn half.
func (p *program) meshSize(e *syntax.Setting) (size, outer int, ok bool) {
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
		ev := &elab{p: p}
		n, isNumber := ev.toNumber(ev.eval(x), x, "the size of a mesh axis")
		if !isNumber {
			return 1, 1, false
		}
		v, isWhole := n.whole()
		if !isWhole || v < 1 && !(v == -1 && len(factors) == 1) || v > maxAxis {
			p.badSetting = true
			p.Report(x.At(), "", errMeshSize, e.Key, n, maxAxis)
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
func (p *program) checkRules() {
	for _, of := range []string{"weights", "activations"} {
		for _, r := range p.rules[of] {
			for _, a := range r.Axes {
				if p.axes.of[a.Name] == nil {
					p.Report(a.Span, syntax.Near(a.Name, p.axes.names), errUnknownAxis, a.Name)
				}
			}
			p.checkMeshAxes(of, r)
		}
	}
}

// checkStageAxis refuses a mesh whose axis of stages is called otherwise: no rule
// has the axis, and there is no other for stages.
func (p *program) checkStageAxis() {
	if p.mesh == nil || p.mesh.Axis("stage") >= 0 {
		return
	}
	for _, a := range p.mesh.Axes {
		row := syntax.Theirs(syntax.MeshWord, a.Name)
		ruled := slices.ContainsFunc(slices.Concat(p.rules["weights"], p.rules["activations"]), func(r syntax.Rule) bool { return slices.Contains(namesOfRefs(r.Mesh), a.Name) })
		if row == nil || row.Ours != "stage" || ruled {
			continue
		}
		at := p.values["mesh"][a.Name].Span
		at.Len = len(a.Name)
		p.badSetting = true
		p.Report(at, fmt.Sprintf("mesh { stage = %d }", a.Size), errStageName, a.Name)
	}
}

func (p *program) checkMeshAxes(of string, r syntax.Rule) {
	for i, m := range r.Mesh {
		if m.Name == "none" && len(r.Mesh) == 1 {
			continue
		}
		if m.Name == "stage" && of == "activations" {
			p.Report(m.Span, "leave it out: outside of pipelined layers the batch lies along it anyway", errStageAxis)
			continue
		}
		if slices.Contains(meshNames(p.mesh), m.Name) || slices.Contains(knownMeshAxes, m.Name) {
			if slices.ContainsFunc(r.Mesh[:i], func(o syntax.NameRef) bool { return o.Name == m.Name }) {
				p.Report(m.Span, "", errMeshTwice, m.Name)
			}
			continue
		}
		p.Report(m.Span, syntax.Suggest(syntax.MeshWord, m.Name, append(meshNames(p.mesh), knownMeshAxes...)), errUnknownMesh, m.Name, meshText(p.mesh))
	}
}
