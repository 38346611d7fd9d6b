package lint

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower"
	"ppc/lower/flow"
	"ppc/lower/stats"
)

// permuteCycles finds permutes that split the devices of an axis in several rings,
// and those in which some device has no source, and the zeros that it gets are
// read. One ring for each row of the mesh counts as one ring; zeros that a
// selection by device replaces are not read.
func permuteCycles(p *program) {
	all := p.allRings()
	masked := p.maskedPermutes()
	p.collectives(func(c *stats.Collective) {
		if generated(c.Op) || p.passed != nil && !p.passed.Permutes[c.Op.Origin.Place()] {
			return
		}
		split, zeros := p.rings(c.Op, all)
		if split != "" {
			p.cure(p.at(c, Warning, "%s: %s", over(c), split), "", "one shift by 1 along the axis joins its devices in one ring")
		}
		if zeros == "" {
			return
		}
		if reader := p.reader(c.Op.Result(), func(op *ir.Op) bool { return masked[backward(c.Op)] && op.Kind == ir.Add }); reader != nil {
			f := p.at(c, Warning, "%s is no closed ring: %s, which %s reads", over(c), zeros, p.place(reader))
			p.cure(f, "", p.closed(c.Op)+", or select by device what stands in place of the zeros")
		}
	}, ir.CollectivePermute)
}

// closed says which pairs are missing for the rings of a permute to be closed.
func (p *program) closed(op *ir.Op) string {
	if s, ok := op.Attrs.Get("source_target_pairs").(ir.AxisShift); ok {
		last := p.m.Mesh(s.Mesh).RefsSize(s.Axes) - 1
		switch axis := named(s.Axes); s.Shift {
		case 1:
			return fmt.Sprintf("add the pair %s = %d → %d", axis, last, 0)
		case -1:
			return fmt.Sprintf("add the pair %s = %d → %d", axis, 0, last)
		default:
			return "add the pairs that wrap around " + axis
		}
	}
	l, _ := op.Attrs.Get("source_target_pairs").(*ir.Literal)
	if l == nil {
		return "give every device a source"
	}
	const most = 4
	var missing []string
	for _, r := range ringsOf(lists(l)) {
		if r.open {
			missing = append(missing, fmt.Sprintf("%d → %d", r.devices[len(r.devices)-1], r.devices[0]))
		}
	}
	switch n := len(missing); {
	case n == 0:
		return "give every device a source"
	case n == 1:
		return "add the pair " + missing[0]
	case n > most:
		missing = append(missing[:most], "…")
	}
	return "add the pairs " + strings.Join(missing, ", ")
}

// rings says in which rings a permute splits the devices of an axis, and who
// gets zeros; "" where there is nothing to say.
func (p *program) rings(op *ir.Op, all []ring) (split, zeros string) {
	switch a := op.Attrs.Get("source_target_pairs").(type) {
	case ir.AxisShift:
		return p.shiftRings(a)
	case *ir.Literal:
		return p.listedRings(lists(a), all)
	}
	return "", ""
}

// maskedPermutes are the transfers, as text, of permutes whose zeros are not read.
func (p *program) maskedPermutes() map[string]bool {
	masked := make(map[string]bool)
	p.collectives(func(c *stats.Collective) {
		if _, zeros := p.rings(c.Op, nil); zeros != "" && p.reader(c.Op.Result(), func(*ir.Op) bool { return false }) == nil {
			masked[transfers(c.Op)] = true
		}
	}, ir.CollectivePermute)
	return masked
}

// backward is the transfers of op the other way round. The gradient of a permute is
// such a permute: where the zeros of the one are not read, the other adds zeros to
// the cotangent, which is right.
func backward(op *ir.Op) string {
	switch a := op.Attrs.Get("source_target_pairs").(type) {
	case ir.AxisShift:
		return fmt.Sprint(a.Inverse())
	case *ir.Literal:
		pairs := lists(a)
		for _, pair := range pairs {
			if len(pair) == 2 {
				pair[0], pair[1] = pair[1], pair[0]
			}
		}
		return sortedPairs(pairs)
	}
	return ""
}

// transfers says which device of the mesh sends to which.
func transfers(op *ir.Op) string {
	switch a := op.Attrs.Get("source_target_pairs").(type) {
	case ir.AxisShift:
		return fmt.Sprint(a)
	case *ir.Literal:
		return sortedPairs(lists(a))
	}
	return ""
}

func sortedPairs(pairs [][]int) string {
	slices.SortFunc(pairs, slices.Compare)
	return fmt.Sprint(pairs)
}

// shiftRings says what is wrong with a shift along axes: the rings that it
// splits in, and who gets zeros. What goes to the other end and back is as it
// should be.
func (p *program) shiftRings(s ir.AxisShift) (split, zeros string) {
	mesh := p.m.Mesh(s.Mesh)
	if mesh == nil {
		return "", ""
	}
	n, axis := mesh.RefsSize(s.Axes), named(s.Axes)
	by := max(s.Shift, -s.Shift)
	if s.Wrap {
		if rings := ir.GCD(n, by); rings > 1 && by%n != 0 && !s.Reverse {
			split = fmt.Sprintf("a shift by %d splits the %d devices of %s in %d rings of %d", s.Shift, n, axis, rings, n/rings)
		}
		return split, ""
	}
	from, to := 0, min(by, n)
	if s.Shift < 0 {
		from, to = n-to, n
	}
	switch to - from {
	case 0:
		return "", ""
	case 1:
		return "", fmt.Sprintf("%s = %d gets zeros", axis, from)
	}
	return "", fmt.Sprintf("%s = %d to %d get zeros", axis, from, to-1)
}

// allRings are the rings of all permutes of the program that list their pairs.
func (p *program) allRings() []ring {
	var all []ring
	p.collectives(func(c *stats.Collective) {
		if l := c.Op.Literal("source_target_pairs"); l != nil && !generated(c.Op) {
			all = append(all, ringsOf(lists(l))...)
		}
	}, ir.CollectivePermute)
	return all
}

// listedRings is shiftRings for pairs of devices. In a mesh the devices of the
// axes along which the pairs lead should be one ring; without one, rings should
// be rows of some mesh, which another permute of the program does not join.
func (p *program) listedRings(pairs [][]int, all []ring) (split, zeros string) {
	rings := ringsOf(pairs)
	if len(rings) == 0 {
		return "", "every device gets zeros"
	}
	mesh := p.meshOfAll()
	if mesh == nil {
		split = splitRows(rings, all)
	} else {
		split = splitAxes(mesh, pairs, rings)
	}
	targeted := make(map[int]bool)
	for _, pair := range pairs {
		targeted[pair[1]] = true
	}
	var empty []int
	for d := range p.devices() {
		if !targeted[d] {
			empty = append(empty, d)
		}
	}
	switch {
	case len(empty) == 1:
		zeros = fmt.Sprintf("device %d gets zeros", empty[0])
	case len(empty) > 1:
		zeros = fmt.Sprintf("devices %s get zeros", few(empty))
	}
	if mesh != nil && zeros != "" {
		zeros += whereAlong(mesh, moving(mesh, pairs), empty)
	}
	return split, zeros
}

// devices is the number of devices that run the program.
func (p *program) devices() int {
	return p.m.NumDevices() * max(1, p.m.Attrs.Int("mhlo.num_replicas"))
}

// meshOfAll is a mesh of all devices whose axes have names that mean something.
func (p *program) meshOfAll() *ir.Mesh {
	for _, mesh := range p.m.Meshes {
		if mesh.Size() == p.devices() && mesh.Size() > 1 && !strings.HasPrefix(mesh.Name, "grid_") {
			return mesh
		}
	}
	return nil
}

// whereAlong says which coordinates the devices have along axes, if they are
// the same for all: " (stage = 0)".
func whereAlong(mesh *ir.Mesh, axes []ir.AxisRef, devices []int) string {
	at := ranks(mesh)
	var parts []string
	for _, r := range axes {
		stride, n := mesh.Stride(r), mesh.RefSize(r)
		first := at(devices[0]) / stride % n
		if slices.ContainsFunc(devices, func(d int) bool { return at(d)/stride%n != first }) {
			return ""
		}
		parts = append(parts, fmt.Sprintf("%s = %d", named([]ir.AxisRef{r}), first))
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// splitAxes says in which rings pairs split the devices along the axes that
// they lead along, if these all move and form more than one.
func splitAxes(mesh *ir.Mesh, pairs [][]int, rings []ring) string {
	axes := moving(mesh, pairs)
	for _, row := range lower.Groups(mesh, axes) {
		var in []ring
		still := len(row)
		for _, r := range rings {
			if slices.Contains(row, r.devices[0]) {
				in = append(in, r)
				still -= len(r.devices)
			}
		}
		if len(in) > 1 && still == 0 && !slices.ContainsFunc(in, func(r ring) bool { return len(r.devices) == 1 }) {
			return fmt.Sprintf("the %d devices along %s are %d rings, not one: %s", len(row), named(axes), len(in), ringsText(in))
		}
	}
	return ""
}

// splitRows says which rings are no rows of any mesh: they have different
// sizes, or are not at the same distances, or another permute joins several.
func splitRows(rings, all []ring) string {
	if len(rings) < 2 {
		return ""
	}
	steps := func(r ring) []int {
		ds := slices.Sorted(slices.Values(r.devices))
		for i := range ds {
			ds[len(ds)-1-i] -= ds[0]
		}
		return ds
	}
	with := make(map[int][]ring) // by device, the rings that it is in
	for _, o := range all {
		for _, d := range o.devices {
			with[d] = append(with[d], o)
		}
	}
	first := steps(rings[0])
	for _, r := range rings {
		if len(r.devices) == 1 && !r.open {
			return "" // some stay where they are: no ring is meant
		}
		for _, o := range with[r.devices[0]] {
			if len(o.devices) > len(r.devices) && common(o.devices, r.devices) == len(r.devices) {
				return fmt.Sprintf("%d rings, %s; another permute joins %d devices in one", len(rings), ringsText(rings), len(o.devices))
			}
		}
	}
	for _, r := range rings {
		if len(r.devices) != len(first) {
			return fmt.Sprintf("%d rings of different sizes: %s", len(rings), ringsText(rings))
		}
		if !slices.Equal(steps(r), first) {
			return fmt.Sprintf("%d rings that are rows of no mesh: %s", len(rings), ringsText(rings))
		}
	}
	return ""
}

// ringsText is rings for people: 0 → 1 → 0 and 2 → 3 → 2.
func ringsText(rings []ring) string {
	const most, longest = 4, 8
	var texts []string
	for _, r := range rings[:min(len(rings), most)] {
		var b strings.Builder
		for i, d := range r.devices {
			if i == longest {
				b.WriteString("…")
				break
			}
			fmt.Fprintf(&b, "%d → ", d)
		}
		text := strings.TrimSuffix(b.String(), " → ")
		if !r.open && len(r.devices) <= longest {
			text += fmt.Sprintf(" → %d", r.devices[0])
		}
		texts = append(texts, text)
	}
	if len(rings) > most {
		texts = append(texts, "…")
	}
	return strings.Join(texts, ", ")
}

// reader is the first op that computes with v, or with what is made of it by
// moving elements, before a selection or a product by device has replaced what
// v is where nothing came; nil if none does. Ops that skip holds for do not count.
func (p *program) reader(v *ir.Value, skip func(op *ir.Op) bool) *ir.Op {
	seen := map[*ir.Value]bool{v: true}
	for work := []*ir.Value{v}; len(work) > 0; work = work[1:] {
		x := work[0]
		for _, op := range p.u.Of[x] {
			switch {
			case p.masks(op, x), skip(op):
				continue
			case !hands(op, x):
				return op
			case op == p.main.Return():
				return op
			}
			for _, r := range p.reached(op, x) {
				if !seen[r] {
					seen[r] = true
					work = append(work, r)
				}
			}
		}
	}
	return nil
}

// masks reports whether op replaces elements of x on some devices.
func (p *program) masks(op *ir.Op, x *ir.Value) bool {
	switch op.Kind {
	case ir.Select:
		return op.Operands[0] != x && p.differs[op.Operands[0]]
	case ir.Multiply, ir.And:
		return p.differs[op.Operands[0]] && op.Operands[0] != x || p.differs[op.Operands[1]] && op.Operands[1] != x
	}
	return false
}

// hands reports whether op only moves the elements of x.
func hands(op *ir.Op, x *ir.Value) bool {
	filled := op.Kind == ir.BroadcastInDim || op.Kind == ir.Pad
	return flow.Moves(op, x) || filled || op.Kind == ir.While || op.Kind.Has(ir.View) || op.Kind.Has(ir.Terminator)
}
