package stats

import (
	"fmt"
	"strings"

	"ppc/ir"
	"ppc/lower/flow"
)

// nests walks the loops of a program and lists them and their collectives.
type nests struct {
	m     *ir.Module
	s     *Stats
	times map[*ir.Func]Count // per step
	path  map[*ir.Op]string  // of each while, its Loop.Name
	at    map[*ir.Block]string
	trips map[*ir.Op]Count
	used  map[string]int // how many loops of a name there are
}

func newNests(m *ir.Module, s *Stats) *nests {
	return &nests{m: m, s: s, times: map[*ir.Func]Count{m.Main(): 1}, path: make(map[*ir.Op]string), at: make(map[*ir.Block]string),
		trips: make(map[*ir.Op]Count), used: make(map[string]int)}
}

// function walks f, whose callers have all been walked.
func (n *nests) function(f *ir.Func) {
	prefix := ""
	if f != n.m.Main() {
		prefix = ir.SymbolText(f.Name)
	}
	n.block(f.Body, prefix, n.times[f])
}

func (n *nests) block(b *ir.Block, path string, times Count) {
	n.at[b] = path
	var products map[*ir.Op]int
	if path != "" {
		products = beside(b)
	}
	for _, op := range b.Ops {
		switch {
		case op.Kind.Has(ir.Collective):
			c := collectiveOf(n.m, op, path, times)
			c.Beside = products[op]
			n.s.Collectives = append(n.s.Collectives, c)
		case op.Kind == ir.While:
			n.loop(op, path, times)
		case op.Kind == ir.Case, op.Kind == ir.If:
			for _, r := range op.Regions {
				n.block(r, path, times)
			}
		default:
			if f := calleeOf(n.m, op); f != nil {
				n.times[f] = n.times[f].Plus(times)
			}
		}
	}
}

func (n *nests) loop(op *ir.Op, path string, times Count) {
	name := op.Attrs.Str(ir.KeyLoop)
	if name == "" {
		name = "while"
	}
	if op.Attrs.Has(ir.KeyReverse) {
		name = "backward " + name
	}
	if path != "" {
		name = path + "/" + name
	}
	if n.used[name]++; n.used[name] > 1 {
		name = fmt.Sprintf("%s.%d", name, n.used[name])
	}
	trips := flow.TripCount(op)
	n.path[op], n.trips[op] = name, trips
	n.s.Loops = append(n.s.Loops, loopOf(op, name, trips))
	n.block(op.Regions[0], name, times.Times(trips.Plus(1)))
	n.block(op.Regions[1], name, times.Times(trips))
}

func loopOf(op *ir.Op, name string, trips Count) *Loop {
	l := &Loop{Op: op, Name: name, Trips: trips}
	for i, a := range op.Regions[1].Args {
		array := arrayOf(carryName(op, i), a)
		if flow.Invariant(op, i) {
			l.Invariants = append(l.Invariants, array)
		} else {
			l.Carries = append(l.Carries, array)
		}
	}
	for _, v := range op.Captures() {
		if v.Def == nil || v.Def.Kind != ir.Constant {
			l.Invariants = append(l.Invariants, arrayOf(v.Name, v))
		}
	}
	return l
}

func arrayOf(name string, v *ir.Value) Array {
	return Array{Name: name, Type: v.Type, Bytes: BytesOf(v.Type), Value: v}
}

// carryName is what carry i of a loop is called, after or inside of the loop.
func carryName(op *ir.Op, i int) string {
	if name := op.Results[i].Name; name != "" {
		return name
	}
	return op.Regions[1].Args[i].Name
}

func collectiveOf(m *ir.Module, op *ir.Op, loop string, times Count) *Collective {
	axes, n, slices := groupOf(m, op)
	in, out := bytesOfAll(op.Operands), bytesOfAll(op.Results)
	c := &Collective{Op: op, Kind: strings.TrimPrefix(op.Name(), "stablehlo."), Loop: loop, Axes: axes, Group: n, Slices: slices, Bytes: max(in, out), Executions: times}
	c.Name = NameOf(op)
	c.Moved = movedBy(op.Kind, c.Bytes, n)
	return c
}

// NameOf is what people call what op makes.
func NameOf(op *ir.Op) string {
	for _, v := range op.Results {
		if v.Name != "" {
			return v.Name
		}
	}
	if op.Origin != nil {
		return op.Origin.Name()
	}
	return ""
}

// movedBy is the bytes that one device receives from its group of n in a ring
// algorithm.
func movedBy(k ir.Kind, bytes, n int) int {
	part := bytes - bytes/max(n, 1)
	switch k {
	case ir.AllReduce: // scattered, then gathered
		return 2 * part
	case ir.CollectivePermute, ir.CollectiveBroadcast:
		return bytes
	}
	return part
}

// groupOf is the mesh axes along which a collective moves, how many devices it joins,
// and in how many slices these are. Of groups that are lists only the size is known.
func groupOf(m *ir.Module, op *ir.Op) (axes string, n, slices int) {
	var refs []ir.AxisRef
	mesh := ""
	switch a := op.Attrs.Get("replica_groups").(type) {
	case ir.MeshAxes:
		mesh, refs = a.Mesh, a.Axes
	case *ir.Literal:
		if a.Type.Rank() == 2 {
			return "", a.Type.Shape[1], 1
		}
	}
	switch a := op.Attrs.Get("source_target_pairs").(type) {
	case ir.AxisShift:
		mesh, refs = a.Mesh, a.Axes
	case ir.AxisMove:
		mesh, refs = a.Mesh, a.From
	case *ir.Literal:
		return "", 0, 1
	}
	names := make([]string, len(refs))
	for i, r := range refs {
		if names[i] = r.Name; r.Size != 0 {
			names[i] = strings.ReplaceAll(r.String(), `"`, "")
		}
	}
	slices = 1
	if grid := m.Mesh(mesh); grid != nil {
		n, slices = grid.RefsSize(refs), grid.SlicesAlong(refs)
	}
	return strings.Join(names, ", "), n, slices
}
