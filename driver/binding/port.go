// Package binding connects the parameters and results of a program with files: what
// they are called there, the types they have there, initial values for what no file
// has, and the shards that devices take and give.
package binding

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
)

// A Port is one parameter or one result of a program: the name it has in
// files, the type it has there, and how the devices' parts make it up.
type Port struct {
	Name string // tokens, decoder.wq, in0
	File string // another name in files, {axis} in it an index of the axis; "" without
	Kind string // input, param, state, step, gradient, metric, or "" where the program does not say
	Init string // of a param or state
	Max  int    // integers are below it; 0 where the program does not say

	Alias   int // of a result: the parameter that it replaces in the next run, or -1
	Batches int // of an input: global is so many batches of inFile, one after the other

	InFile  *ir.Type // the type in files: a layer's parameter has all layers in front
	Axes    []string // names of the axes of inFile, nil where the program does not have them
	numbers []int    // of the layers in names of arrays; nil where they count from 0
	Rows    []int    // lo, hi: global is these rows of inFile, one after the other, then zeros; nil for all

	Global   *ir.Type     // of all devices together
	local    *ir.Type     // of one device
	sharding *ir.Sharding // nil where devices hold all of it
	Mesh     *ir.Mesh     // of sharding
	devices  int          // of the program
	stacked  bool         // global is the devices' parts on a new first axis

	// origin is the port as the program names it, where files number ports:
	// what a file does not have is made up under the program's own name.
	origin *Port
}

// String is the port's type in files, with the names of its axes where they
// are known: f32[layers=8, embed=64].
func (p *Port) String() string { return TypeText(p.InFile, p.Axes) }

func TypeText(t *ir.Type, axes []string) string {
	dims := make([]string, t.Rank())
	for i, n := range t.Shape {
		dims[i] = fmt.Sprint(n)
		if len(axes) == len(dims) {
			dims[i] = fmt.Sprintf("%s=%d", axes[i], n)
		}
	}
	return fmt.Sprintf("%s[%s]", t.Elem, strings.Join(dims, ", "))
}

// A Naming is how files call the arguments and results of a program.
type Naming uint8

const (
	ByNumber Naming = iota // in0, out0: the languages have no names
	ByName                 // as the program does
)

// Ports describes the parameters and the results of the main function of m.
func Ports(m *ir.Module, by Naming) (params, results []*Port) {
	f := m.Main()
	for i, v := range f.Params() {
		params = append(params, newPort(m, "in", i, v.Type, v.Attrs, by))
	}
	for i, r := range f.Results {
		results = append(results, newPort(m, "out", i, r.Type, r.Attrs, by))
	}
	return params, results
}

func newPort(m *ir.Module, prefix string, i int, t *ir.Type, attrs ir.Attrs, by Naming) *Port {
	number, name := fmt.Sprint(prefix, i), attrs.Str(ir.KeyName)
	p := &Port{Name: name, Global: t, local: t, devices: NumDevices(m), Alias: -1, Batches: max(1, attrs.Int(ir.KeyBatches))}
	if name == "" {
		p.Name = number
	}
	p.numbers = attrs.Ints(ir.KeyNumbers)
	p.File, p.Kind, p.Init, p.Max = attrs.Str(ir.KeyFile), attrs.Str(ir.KeyKind), attrs.Str(ir.KeyInit), attrs.Int(ir.KeyMax)
	if attrs.Has(ir.KeyAlias) && by == ByName {
		p.Alias = attrs.Int(ir.KeyAlias)
	}
	p.setGlobal(m, t, attrs)
	if p.InFile = p.Global; p.Batches > 1 {
		p.InFile = p.Global.WithShape(p.Global.Shape[1:]...)
	}
	p.stack(attrs)
	if by == ByName || name == "" {
		return p
	}
	q := *p
	q.Name, q.File, q.Kind, q.InFile, q.Batches, q.Rows, q.Axes, q.origin = number, "", "", p.Global, 1, nil, nil, p
	return &q
}

// setGlobal sets the global type, and how the devices' shards make up its value. A program
// for one device says it on the port, pp.sharding; one for all devices has
// global types; what says nothing has its parts stacked.
func (p *Port) setGlobal(m *ir.Module, t *ir.Type, attrs ir.Attrs) {
	if s, ok := attrs.Get(ir.KeySharding).(*ir.Sharding); ok {
		if mesh := m.Mesh(s.Mesh); mesh != nil {
			p.sharding, p.Mesh, p.Global = s, mesh, globalType(t, s, mesh)
			if size := attrs.Ints(ir.KeySize); size != nil { // the devices' shards are padded
				p.Global = t.WithShape(size...)
			}
		}
		return
	}
	if m.Form.Has(ir.Local) && p.devices > 1 {
		p.stacked = true
		p.Global = t.WithShape(slices.Insert(slices.Clone(t.Shape), 0, p.devices)...)
	}
}

// Stack finds out what a file holds of a layer's parameter: all layers, in
// model order, on a leading axis.
func (p *Port) stack(attrs ir.Attrs) {
	logical := attrs.Get(ir.KeyLogical)
	if list, ok := logical.(ir.Array); ok {
		for _, name := range list {
			if s, ok := name.(ir.Str); ok {
				p.Axes = append(p.Axes, string(s))
			}
		}
	}
	layers := attrs.Int(ir.KeyLayers)
	if layers == 0 {
		return
	}
	if rows := attrs.Ints(ir.KeyRows); len(rows) == 2 {
		p.Rows = rows
		p.InFile = p.Global.WithShape(slices.Insert(slices.Clone(layerShape(p.Global.Shape, len(p.Axes), rows[1]-rows[0])), 0, layers)...)
	}
	if p.Axes != nil {
		p.Axes = slices.Insert(p.Axes, 0, "layers")
	}
}

// layers is the number of layers on the first axis of the value in files; 0 without
// such an axis.
func (p *Port) layers() int {
	if len(p.Axes) > 0 && p.Axes[0] == "layers" {
		return p.InFile.Shape[0]
	}
	return 0
}

// layerShape is the part of shape that belongs to one of n rows: its last rank
// sizes, or, where the rank is not known, what follows when the leading sizes
// have made n.
func layerShape(shape []int, rank, n int) []int {
	if rank > 0 && rank <= len(shape) {
		return shape[len(shape)-rank:]
	}
	i, k := 0, 1
	for i < len(shape) && (k < n || i == 0) {
		k *= shape[i]
		i++
	}
	return shape[i:]
}

// globalType is the type of the value of which t is one device's part.
func globalType(t *ir.Type, s *ir.Sharding, mesh *ir.Mesh) *ir.Type {
	shape := slices.Clone(t.Shape)
	for i := range shape {
		shape[i] *= mesh.RefsSize(s.Axes(i))
	}
	return t.WithShape(shape...)
}

// NumDevices is how many devices run m: partitions times replicas, or those of
// its mesh.
func NumDevices(m *ir.Module) int {
	if n := m.Attrs.Int("mhlo.num_replicas"); n > 1 { // whose meshes are of all replicas
		return n * max(1, m.Attrs.Int("mhlo.num_partitions"))
	}
	return m.NumDevices()
}

// Value returns the port's global value, given the one of a file: its rows, under
// its own type, or, of an input that takes several batches, the same batch
// repeated. Otherwise the bytes are shared.
func (p *Port) Value(full *ir.Literal) *ir.Literal {
	v := &ir.Literal{Type: p.Global.WithElem(full.Type.Elem), Data: full.Data}
	switch {
	case p.Rows != nil && (!full.IsSplat() || p.lacks()):
		data := full.Expand()
		row := len(data) / full.Type.Shape[0]
		v.Data = data[p.Rows[0]*row : p.Rows[1]*row]
		if p.lacks() {
			v.Data = append(slices.Clone(v.Data), make([]byte, v.Type.Bytes()-len(v.Data))...)
		}
	case full.IsSplat():
	case p.Batches > 1:
		v.Data = bytes.Repeat(full.Data, p.Batches)
	}
	return v
}

// lacks reports whether the port has places for more rows than a file has for it.
func (p *Port) lacks() bool {
	return p.Rows != nil && p.Global.NumElements() > (p.Rows[1]-p.Rows[0])*(p.InFile.NumElements()/p.InFile.Shape[0])
}

// Shards returns the shard of a global value for each device. Replicated shards
// share memory.
func (p *Port) Shards(global *ir.Literal) []*ir.Literal {
	parts := make([]*ir.Literal, p.devices)
	if p.stacked {
		size := p.local.Bytes()
		for d := range parts {
			parts[d] = &ir.Literal{Type: p.local, Data: global.Data}
			if !global.IsSplat() {
				parts[d].Data = global.Data[d*size : (d+1)*size]
			}
		}
		return parts
	}
	seen := make(map[string]*ir.Literal)
	for d := range parts {
		key := p.part(d)
		if seen[key] == nil {
			seen[key] = &ir.Literal{Type: p.local, Data: global.Data}
			if p.Mesh != nil {
				seen[key] = ir.ShardOf(global, p.sharding, p.Mesh, d)
			}
		}
		parts[d] = seen[key]
	}
	return parts
}

// part names the part that device d holds.
func (p *Port) part(d int) string {
	if p.Mesh == nil {
		return ""
	}
	var b strings.Builder
	for dim := range p.sharding.Dims {
		fmt.Fprintf(&b, "%d.", p.sharding.ShardIndex(p.Mesh, d, dim))
	}
	for _, r := range p.sharding.Unreduced {
		fmt.Fprintf(&b, "%d.", p.Mesh.Coordinate(d, r))
	}
	return b.String()
}

// Join is the inverse of parts.
func (p *Port) Join(parts []*ir.Literal) *ir.Literal {
	switch {
	case p.stacked:
		return Stack(p.Global, parts)
	case p.Mesh != nil:
		return ir.FromShards(p.Mesh, p.sharding, p.Global, parts)
	}
	return &ir.Literal{Type: p.Global, Data: parts[0].Data}
}

// Stack puts parts on a new first axis.
func Stack(t *ir.Type, parts []*ir.Literal) *ir.Literal {
	data := make([]byte, 0, t.Bytes())
	for _, l := range parts {
		data = append(data, l.Expand()...)
	}
	return &ir.Literal{Type: t, Data: data}
}
