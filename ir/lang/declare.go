package lang

import (
	"fmt"
	"slices"
	"strings"

	"ppc/internal/spell"
	"ppc/ir"
)

// elemTypes are the element types that programs may name.
var elemTypes = []string{"f64", "f32", "bf16", "f16", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}

// near is a hint at the candidate that word was meant to be, or "".
func near(word string, candidates []string) string {
	if c := spell.Nearest(word, candidates); c != "" && c != word {
		return "did you mean " + c + "?"
	}
	return ""
}

func (p *program) declareTypes() {
	for _, e := range p.ordered("types") {
		if slices.Contains(elemTypes, e.key) {
			p.report(e.span, "", errTypeName, e.key)
			continue
		}
		n, ok := e.value.(*nameRef)
		if !ok || !slices.Contains(elemTypes, n.name) {
			word := ""
			if ok {
				word = n.name
			}
			p.report(e.value.at(), suggest(typeWord, word, elemTypes), errTypeValue, e.key, strings.Join(elemTypes, ", "))
			p.types.set(e.key, p.elem(ir.F32))
			continue
		}
		p.types.set(e.key, p.elem(ir.DTypeByName(n.name)))
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
	*setting
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
		p.report(d.span, "give one of them a number", errAxisCycle, name)
		d.bad = true
		return 1, false
	case 2:
		return d.size, !d.bad
	}
	d.state, d.size = 1, 1
	e := &elab{p: p}
	n, ok := e.toNumber(e.eval(d.value), d.value, "the size of an axis")
	d.state = 2
	if !ok || d.bad {
		d.bad = true
		return 1, false
	}
	size, ok := n.whole()
	if !ok || size < 1 || size > maxAxis {
		p.report(d.value.at(), "", errAxisSize, name, n, maxAxis)
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
		if e.override && !slices.Contains(knownMeshAxes, e.key) && !p.inFile("mesh", e.key) {
			key := e.span
			key.len = len(e.key)
			p.report(key, suggest(meshWord, e.key, append(meshNames(mesh), knownMeshAxes...)), errUnknownMesh, e.key, meshText(mesh))
			continue
		}
		size, outer, ok := p.meshSize(e)
		if !ok {
			size = 1
		}
		if size == -1 {
			if fill >= 0 {
				p.report(e.value.at(), "", errFillTwice, mesh.Axes[fill].Name, e.key)
				size = 1
			} else {
				fill = len(mesh.Axes)
			}
		} else if product *= size; product > maxDevices {
			p.badSetting = true
			p.report(e.value.at(), "", errMeshLarge, product, maxDevices)
			product = size
		}
		spans = spans || outer > 1
		dcn = append(dcn, outer)
		mesh.Axes = append(mesh.Axes, ir.MeshAxis{Name: e.key, Size: size})
	}
	p.fillMesh(mesh, entries, fill, product)
	if spans {
		mesh.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.DCN, Attr: ir.Ints(dcn)})
	}
	p.mesh = mesh
}

func (p *program) inFile(kind, key string) bool {
	for _, f := range p.files {
		for _, b := range f.blocks {
			if b.kind == kind && slices.ContainsFunc(b.entries, func(e setting) bool { return e.key == key }) {
				return true
			}
		}
	}
	return false
}

// fillMesh gives the axis of -1 what Devices leaves.
func (p *program) fillMesh(mesh *ir.Mesh, entries []*setting, fill, product int) {
	n := p.opts.Devices
	switch {
	case fill >= 0 && n == 0:
		mesh.Axes[fill].Size = 1
		p.report(entries[fill].span, "give --devices, or --set mesh."+mesh.Axes[fill].Name+"=1", errFill, mesh.Axes[fill].Name)
	case fill >= 0 && n%product != 0:
		mesh.Axes[fill].Size = 1
		p.report(entries[fill].span, "", errFillRest, n, product)
	case fill >= 0:
		mesh.Axes[fill].Size = n / product
	case n != 0 && n != product:
		last := entries[len(entries)-1]
		p.report(last.span, "make one axis -1", errDevices, ir.Counted(product, "device"), n)
	}
}

// meshSize reads the size of a mesh axis: 4, -1, or dcn(2) * ici(4), an axis
// of 8 whose major half of 2 spans slices. outer is the dcn half.
func (p *program) meshSize(e *setting) (size, outer int, ok bool) {
	size, outer = 1, 1
	factors := []expr{e.value}
	if b, isMul := e.value.(*binaryExpr); isMul && b.op == "*" {
		factors = []expr{b.x, b.y}
	}
	for _, f := range factors {
		half, x := "", f
		if c, isCall := f.(*callExpr); isCall {
			if n, isName := c.fn.(*nameRef); isName && (n.name == "dcn" || n.name == "ici") && len(c.args) == 1 {
				half, x = n.name, c.args[0].value
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
			p.report(x.at(), "", errMeshSize, e.key, n, maxAxis)
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
			for _, a := range r.axes {
				if p.axes.of[a.name] == nil {
					p.report(a.span, near(a.name, p.axes.names), errUnknownAxis, a.name)
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
		row := theirs(meshWord, a.Name)
		ruled := slices.ContainsFunc(slices.Concat(p.rules["weights"], p.rules["activations"]), func(r rule) bool { return slices.Contains(namesOfRefs(r.mesh), a.Name) })
		if row == nil || row.ours != "stage" || ruled {
			continue
		}
		at := p.values["mesh"][a.Name].span
		at.len = len(a.Name)
		p.badSetting = true
		p.report(at, fmt.Sprintf("mesh { stage = %d }", a.Size), errStageName, a.Name)
	}
}

func (p *program) checkMeshAxes(of string, r rule) {
	for i, m := range r.mesh {
		if m.name == "none" && len(r.mesh) == 1 {
			continue
		}
		if m.name == "stage" && of == "activations" {
			p.report(m.span, "leave it out: outside of pipelined layers the batch lies along it anyway", errStageAxis)
			continue
		}
		if slices.Contains(meshNames(p.mesh), m.name) || slices.Contains(knownMeshAxes, m.name) {
			if slices.ContainsFunc(r.mesh[:i], func(o nameRef) bool { return o.name == m.name }) {
				p.report(m.span, "", errMeshTwice, m.name)
			}
			continue
		}
		p.report(m.span, suggest(meshWord, m.name, append(meshNames(p.mesh), knownMeshAxes...)), errUnknownMesh, m.name, meshText(p.mesh))
	}
}
