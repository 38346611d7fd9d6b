package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ppc/ir"
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
	for _, op := range b.Ops {
		switch {
		case op.Kind.Has(ir.Collective):
			n.s.Collectives = append(n.s.Collectives, collectiveOf(n.m, op, path, times))
		case op.Kind == ir.While:
			n.loop(op, path, times)
		case op.Kind == ir.Case, op.Kind == ir.If:
			for _, r := range op.Regions {
				n.block(r, path, times)
			}
		default:
			if f := calleeOf(n.m, op); f != nil {
				n.times[f] = n.times[f].plus(times)
			}
		}
	}
}

func (n *nests) loop(op *ir.Op, path string, times Count) {
	name := op.Attrs.Str("pp.loop")
	if name == "" {
		name = "while"
	}
	if op.Attrs.Has("pp.reverse") {
		name = "backward " + name
	}
	if path != "" {
		name = path + "/" + name
	}
	if n.used[name]++; n.used[name] > 1 {
		name = fmt.Sprintf("%s.%d", name, n.used[name])
	}
	trips := tripCount(op)
	n.path[op], n.trips[op] = name, trips
	n.s.Loops = append(n.s.Loops, loopOf(op, name, trips))
	n.block(op.Regions[0], name, times.times(trips.plus(1)))
	n.block(op.Regions[1], name, times.times(trips))
}

func loopOf(op *ir.Op, name string, trips Count) *Loop {
	l := &Loop{Name: name, Trips: trips}
	for i, a := range op.Regions[1].Args {
		array := arrayOf(carryName(op, i), a.Type)
		if invariant(op, i) {
			l.Invariants = append(l.Invariants, array)
		} else {
			l.Carries = append(l.Carries, array)
		}
	}
	for _, v := range op.Captures() {
		if v.Def == nil || v.Def.Kind != ir.Constant {
			l.Invariants = append(l.Invariants, arrayOf(v.Name, v.Type))
		}
	}
	return l
}

func arrayOf(name string, t *ir.Type) Array { return Array{Name: name, Type: t, Bytes: bytesOf(t)} }

// carryName is what carry i of a loop is called, after or inside of the loop.
func carryName(op *ir.Op, i int) string {
	if name := op.Results[i].Name; name != "" {
		return name
	}
	return op.Regions[1].Args[i].Name
}

// invariant reports whether every iteration hands carry i on as it got it.
func invariant(op *ir.Op, i int) bool {
	body := op.Regions[1]
	return body.Terminator().Operands[i] == body.Args[i]
}

// tripCount reads how often the body of a while runs: its condition compares a
// carry, which begins at a constant and to which every iteration adds a
// constant, with a constant. Anything else is Unknown.
func tripCount(op *ir.Op) Count {
	k, limit := counterOf(op)
	if k < 0 {
		return Unknown
	}
	first, known := constant(op.Operands[k], nil)
	step, steps := stepOf(op, k)
	if !known || !steps || step < 1 {
		return Unknown
	}
	if limit <= first {
		return 0
	}
	if limit-first < 0 { // further apart than an int says
		return Unknown
	}
	return Count((limit-first-1)/step + 1)
}

// counterOf is the carry that counts, and the number that it stays below; -1
// where there is none.
func counterOf(op *ir.Op) (carry, limit int) {
	cond := op.Regions[0]
	test := cond.Terminator().Operands[0].Def
	if test == nil || test.Kind != ir.Compare {
		return -1, 0
	}
	x, y, direction := test.Operands[0], test.Operands[1], test.Word("comparison_direction")
	if slices.Contains([]string{"GT", "GE"}, direction) {
		x, y, direction = y, x, map[string]string{"GT": "LT", "GE": "LE"}[direction]
	}
	limit, known := constant(y, op)
	if x.Block != cond || !known {
		return -1, 0
	}
	switch direction {
	case "LT":
		return x.Index, limit
	case "LE":
		if limit < math.MaxInt {
			return x.Index, limit + 1
		}
	}
	return -1, 0
}

// stepOf is what each iteration adds to carry k.
func stepOf(op *ir.Op, k int) (int, bool) {
	body := op.Regions[1]
	sum := body.Terminator().Operands[k].Def
	if sum == nil || sum.Kind != ir.Add {
		return 0, false
	}
	x, y := sum.Operands[0], sum.Operands[1]
	if x != body.Args[k] {
		x, y = y, x
	}
	if x != body.Args[k] {
		return 0, false
	}
	return constant(y, op)
}

// constant is the number that v is: a scalar constant, or a carry of loop that
// is one and stays it. loop may be nil.
func constant(v *ir.Value, loop *ir.Op) (int, bool) {
	if loop != nil && v.Block != nil && (v.Block == loop.Regions[0] || v.Block == loop.Regions[1]) && invariant(loop, v.Index) {
		return constant(loop.Operands[v.Index], nil)
	}
	if v.Def == nil || v.Def.Kind != ir.Constant || !v.Type.IsTensor() || v.Type.NumElements() != 1 || !v.Type.Elem.IsInt() {
		return 0, false
	}
	return int(v.Def.Literal("value").Int(0)), true
}

func collectiveOf(m *ir.Module, op *ir.Op, loop string, times Count) *Collective {
	axes, n := groupOf(m, op)
	in, out := bytesOfAll(op.Operands), bytesOfAll(op.Results)
	c := &Collective{Kind: strings.TrimPrefix(op.Name(), "stablehlo."), Loop: loop, Axes: axes, Group: n, Bytes: max(in, out), Executions: times}
	c.Name = nameOf(op)
	c.Moved = movedBy(op.Kind, c.Bytes, n)
	return c
}

// nameOf is what people call what op makes.
func nameOf(op *ir.Op) string {
	for _, v := range op.Results {
		if v.Name != "" {
			return v.Name
		}
	}
	if op.Origin != nil {
		return op.Origin.Name
	}
	return ""
}

// movedBy is what one device gets from the n-1 others of its group, where they
// pass parts on in a ring.
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

// groupOf is the mesh axes along which a collective moves, and how many devices
// it joins. Of groups that are lists only the size is known.
func groupOf(m *ir.Module, op *ir.Op) (axes string, n int) {
	var refs []ir.AxisRef
	mesh := ""
	switch a := op.Attrs.Get("replica_groups").(type) {
	case ir.MeshAxes:
		mesh, refs = a.Mesh, a.Axes
	case *ir.Literal:
		if a.Type.Rank() == 2 {
			return "", a.Type.Shape[1]
		}
	}
	switch a := op.Attrs.Get("source_target_pairs").(type) {
	case ir.AxisShift:
		mesh, refs = a.Mesh, []ir.AxisRef{a.Axis}
	case ir.AxisMove:
		mesh, refs = a.Mesh, a.From
	case *ir.Literal:
		return "", 0
	}
	names := make([]string, len(refs))
	for i, r := range refs {
		if names[i] = r.Name; r.Size != 0 {
			names[i] = strings.ReplaceAll(r.String(), `"`, "")
		}
	}
	if grid := m.Mesh(mesh); grid != nil {
		n = grid.RefsSize(refs)
	}
	return strings.Join(names, ", "), n
}
