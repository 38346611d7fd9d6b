package runtime

import (
	"fmt"
	"slices"

	"ppc/ir"
)

// A grid is the devices of a program: partition p of replica r is device
// r*partitions + p.
type grid struct {
	replicas, partitions int
	meshes               *ir.Module // where meshes are looked up
}

func newGrid(m *ir.Module) (grid, error) {
	g := grid{replicas: max(m.Attrs.Int("mhlo.num_replicas"), 1), partitions: max(m.Attrs.Int("mhlo.num_partitions"), 1), meshes: m}
	if g.replicas == 1 {
		g.partitions = m.NumDevices()
	}
	if g.replicas > maxDevices/g.partitions {
		return g, fmt.Errorf("the program is for %s: at most %d run on one machine", g.text(), maxDevices)
	}
	return g, nil
}

// maxDevices bounds what a module may ask for by a number in its text.
const maxDevices = 1 << 16

// text says how many devices there are.
func (g grid) text() string {
	if g.replicas == 1 {
		return ir.Counted(g.partitions, "device")
	}
	return fmt.Sprintf("%d replicas of %s", g.replicas, ir.Counted(g.partitions, "device"))
}

func (g grid) size() int { return g.replicas * g.partitions }

// crossReplica is the set of ops whose groups, with a channel and without
// use_global_device_ids, name replicas, each of which means all of its partitions.
var crossReplica = map[ir.Kind]bool{ir.AllGather: true, ir.AllReduce: true, ir.ReduceScatter: true}

// A numbering is the meaning of the numbers of a collective: there are n of them,
// and each group of numbers is as many groups of devices as there are copies.
type numbering struct {
	n, copies int
	devices   func(id, copy int) []int
}

// numbering reads the numbers in lists, of op, in one of the ways of the
// specification: they are replicas, partitions or devices. Without a channel
// they are replicas; but where there are not so many, devices.
func (g grid) numbering(op *ir.Op, lists [][]int) numbering {
	one := func(at func(id, copy int) int) func(int, int) []int {
		return func(id, copy int) []int { return []int{at(id, copy)} }
	}
	channel := channelOf(op) > 0
	switch {
	case len(lists) == 0 && !channel && g.replicas == 1: // all of them
	case channel && crossReplica[op.Kind] && !op.Bool("use_global_device_ids"):
		return numbering{g.replicas, 1, func(id, _ int) []int {
			ds := make([]int, g.partitions)
			for p := range ds {
				ds[p] = id*g.partitions + p
			}
			return ds
		}}
	case channel && !crossReplica[op.Kind]:
		return numbering{g.partitions, g.replicas, one(func(id, r int) int { return r*g.partitions + id })}
	case !channel && !slices.ContainsFunc(slices.Concat(lists...), func(id int) bool { return id >= g.replicas }):
		return numbering{g.replicas, g.partitions, one(func(id, p int) int { return id*g.partitions + p })}
	}
	return numbering{g.size(), 1, one(func(id, _ int) int { return id })}
}

func channelOf(op *ir.Op) int {
	c, _ := op.Attrs.Get("channel_handle").(ir.Channel)
	return c.Handle
}

// groups expands the replica groups of op to lists of devices. An empty list
// is all devices.
func (g grid) groups(op *ir.Op) ([][]int, error) {
	var ids [][]int
	switch a := op.Attrs.Get("replica_groups").(type) {
	case ir.MeshAxes:
		mesh, err := g.mesh(a.Mesh, a.Axes...)
		if err != nil {
			return nil, err
		}
		return meshGroups(mesh, a.Axes), nil
	case *ir.Literal:
		ids = rowsOf(a)
	}
	by := g.numbering(op, ids)
	if len(ids) == 0 { // all of them
		all := make([]int, by.n)
		for i := range all {
			all[i] = i
		}
		ids = [][]int{all}
	}
	seen := make([]bool, by.n)
	var groups [][]int
	for _, row := range ids {
		copies := make([][]int, by.copies)
		for _, id := range row {
			if id == -1 { // fills up rows of unlike length
				continue
			}
			if id < 0 || id >= by.n {
				return nil, fmt.Errorf("replica_groups has %d, which is not within 0 and %d", id, by.n-1)
			}
			if seen[id] {
				return nil, fmt.Errorf("replica_groups has %d twice", id)
			}
			seen[id] = true
			for c := range copies {
				copies[c] = append(copies[c], by.devices(id, c)...)
			}
		}
		groups = append(groups, copies...)
	}
	return groups, nil
}

// rowsOf reads a matrix of integers.
func rowsOf(l *ir.Literal) [][]int {
	rows := make([][]int, l.Type.Shape[0])
	n := l.Type.Shape[1]
	for i := range rows {
		rows[i] = make([]int, n)
		for j := range n {
			rows[i][j] = int(l.Int(i*n + j))
		}
	}
	return rows
}

// mesh returns the mesh called name, which must have the axes and as many
// devices as the program.
func (g grid) mesh(name string, axes ...ir.AxisRef) (*ir.Mesh, error) {
	mesh := g.meshes.Mesh(name)
	switch {
	case mesh == nil:
		return nil, fmt.Errorf("there is no mesh %s", ir.SymbolText(name))
	case mesh.Size() != g.size():
		return nil, fmt.Errorf("mesh %s has %d devices, the program runs on %d", ir.SymbolText(name), mesh.Size(), g.size())
	}
	for _, r := range axes {
		i := mesh.Axis(r.Name)
		if i < 0 {
			return nil, fmt.Errorf("mesh %s has no axis %q", ir.SymbolText(name), r.Name)
		}
		if r.Size != 0 && (r.Pre < 1 || r.Size < 1 || mesh.Axes[i].Size%(r.Pre*r.Size) != 0) {
			return nil, fmt.Errorf("%s does not divide axis %q of size %d", r, r.Name, mesh.Axes[i].Size)
		}
	}
	return mesh, nil
}

// meshGroups are the devices that differ only along axes, in the axes' order,
// major first; groups in the order of their first member's place.
func meshGroups(mesh *ir.Mesh, axes []ir.AxisRef) [][]int {
	offsets := []int{0}
	for _, r := range axes {
		var next []int
		for _, at := range offsets {
			for i := range mesh.RefSize(r) {
				next = append(next, at+i*mesh.Stride(r))
			}
		}
		offsets = next
	}
	seen := make([]bool, mesh.Size())
	var groups [][]int
	for first := range seen {
		if seen[first] {
			continue
		}
		group := make([]int, len(offsets))
		for k, at := range offsets {
			seen[first+at] = true
			group[k] = mesh.Device(first + at)
		}
		groups = append(groups, group)
	}
	return groups
}

// pairs returns, by device, where it sends to in the permute op; -1 for nowhere.
func (g grid) pairs(op *ir.Op) ([]int, error) {
	to := make([]int, g.size())
	for i := range to {
		to[i] = -1
	}
	switch a := op.Attrs.Get("source_target_pairs").(type) {
	case ir.AxisShift:
		mesh, err := g.mesh(a.Mesh, a.Axes...)
		if err != nil {
			return nil, err
		}
		for place := range mesh.Size() {
			if t, ok := mesh.Shifted(a, place); ok {
				to[mesh.Device(place)] = mesh.Device(t)
			}
		}
	case ir.AxisMove:
		mesh, err := g.mesh(a.Mesh, a.From...)
		if err != nil {
			return nil, err
		}
		for place := range mesh.Size() {
			to[mesh.Device(place)] = mesh.Device(mesh.Target(a, place))
		}
	case *ir.Literal:
		rows := rowsOf(a)
		by := g.numbering(op, rows)
		ids := slices.Repeat([]int{-1}, by.n)
		if err := densePairs(ids, rows); err != nil {
			return nil, err
		}
		for c := range by.copies {
			for id, target := range ids {
				if target >= 0 {
					to[by.devices(id, c)[0]] = by.devices(target, c)[0]
				}
			}
		}
	}
	return to, nil
}

// densePairs writes to each source its target.
func densePairs(to []int, pairs [][]int) error {
	n := len(to)
	from := make([]bool, n)
	for _, p := range pairs {
		if len(p) != 2 {
			return fmt.Errorf("source_target_pairs has rows of %d numbers, want 2", len(p))
		}
		s, t := p[0], p[1]
		switch {
		case s < 0 || s >= n || t < 0 || t >= n:
			return fmt.Errorf("source_target_pairs has (%d, %d), which is not within 0 and %d", s, t, n-1)
		case to[s] >= 0:
			return fmt.Errorf("source_target_pairs has source %d twice", s)
		case from[t]:
			return fmt.Errorf("source_target_pairs has target %d twice", t)
		}
		to[s], from[t] = t, true
	}
	return nil
}

// places inverts groups: by device, its group and its place in it; -1 for none.
func places(groups [][]int, n int) (group, place []int) {
	group, place = slices.Repeat([]int{-1}, n), slices.Repeat([]int{-1}, n)
	for i, ds := range groups {
		for k, d := range ds {
			group[d], place[d] = i, k
		}
	}
	return group, place
}
