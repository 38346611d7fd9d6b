package lang

import "slices"

// A Warning is one row of [Warnings].
type Warning struct {
	Name    string // as in --skip; lower case, no spaces
	Doc     string // one line
	Explain string // a paragraph: what is warned of, what it costs, when it is right
}

// The names of the warnings.
const (
	unusedMeshAxis = "unused-mesh-axis"
)

// Warnings is every warning that the language gives of a program that it
// takes.
var Warnings = []Warning{
	{unusedMeshAxis, "the devices along a mesh axis all compute the same",
		`No rule shards anything along the mesh axis, so each device along it computes and stores what the others do: the program takes that
many times the devices for the same step time. Add the axis to a shard rule, or leave it out of the mesh.`},
}

// checkMeshUse warns of mesh axes along which nothing is sharded.
func (p *program) checkMeshUse() {
	if p.mesh == nil {
		return
	}
	for _, a := range p.mesh.Axes {
		if a.Size == 1 || a.Name == "stage" && p.pipelined || p.ruled(a.Name) {
			continue
		}
		s := p.values["mesh"][a.Name]
		p.warn(s.span, unusedMeshAxis, "name it in a shard rule, or leave it out", warnMeshAxis, a.Name, a.Size)
	}
}

// ruled reports whether a shard rule names the mesh axis.
func (p *program) ruled(axis string) bool {
	for _, rules := range p.rules {
		for _, r := range rules {
			if slices.ContainsFunc(r.mesh, func(n nameRef) bool { return n.name == axis }) {
				return true
			}
		}
	}
	return false
}
