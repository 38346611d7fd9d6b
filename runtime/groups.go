package runtime

import (
	"fmt"
	"slices"

	"ppc/ir"
)

// A grid is the devices of a program. One of the two sizes is 1.
type grid struct {
	replicas, partitions int
	meshes               *ir.Module // where meshes are looked up
}

func newGrid(m *ir.Module) (grid, error) {
	g := grid{replicas: max(m.Attrs.Int("mhlo.num_replicas"), 1), partitions: max(m.Attrs.Int("mhlo.num_partitions"), 1), meshes: m}
	if g.replicas > 1 && g.partitions > 1 {
		return g, fmt.Errorf("%d replicas of %d partitions: programs run with one of the two", g.replicas, g.partitions)
	}
	if g.replicas == 1 {
		g.partitions = m.NumDevices()
	}
	if n := g.size(); n > maxDevices {
		return g, fmt.Errorf("the program is for %d devices: at most %d run on one machine", n, maxDevices)
	}
	return g, nil
}

// maxDevices bounds what a module may ask for by a number in its text.
const maxDevices = 1 << 16

func (g grid) size() int { return g.replicas * g.partitions }

// wholeReplicas are the ops whose groups, with a channel and without
// use_global_device_ids, name replicas that stand for all their partitions.
var wholeReplicas = map[ir.Kind]bool{ir.AllGather: true, ir.AllReduce: true, ir.ReduceScatter: true}

// ids says how many numbers there are for the groups of op to name, and which
// devices each stands for: a partition or a replica, whichever the program has.
func (g grid) ids(op *ir.Op) (n int, devices func(id int) []int) {
	if wholeReplicas[op.Kind] && channelOf(op) > 0 && !op.Bool("use_global_device_ids") {
		return g.replicas, func(id int) []int {
			ds := make([]int, g.partitions)
			for p := range ds {
				ds[p] = id*g.partitions + p
			}
			return ds
		}
	}
	return g.size(), func(id int) []int { return []int{id} }
}

func channelOf(op *ir.Op) int {
	c, _ := op.Attrs.Get("channel_handle").(ir.Channel)
	return c.Handle
}

// lone reports whether lists, of an op without a channel, name nothing but the
// one replica that all partitions are: then every device is by itself.
func (g grid) lone(op *ir.Op, lists [][]int) bool {
	if channelOf(op) > 0 || g.replicas > 1 || g.partitions == 1 || len(lists) != 1 {
		return false
	}
	return !slices.ContainsFunc(lists[0], func(id int) bool { return id != 0 })
}

// groups expands the replica groups of op to lists of devices. An empty list
// is all devices.
func (g grid) groups(op *ir.Op) ([][]int, error) {
	n, devices := g.ids(op)
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
	if g.lone(op, ids) {
		return singletons(g.size()), nil
	}
	if len(ids) == 0 { // all of them
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		ids = [][]int{all}
	}
	seen := make([]bool, n)
	var groups [][]int
	for _, row := range ids {
		var group []int
		for _, id := range row {
			if id == -1 { // fills up rows of unlike length
				continue
			}
			if id < 0 || id >= n {
				return nil, fmt.Errorf("replica_groups has %d, which is not within 0 and %d", id, n-1)
			}
			if seen[id] {
				return nil, fmt.Errorf("replica_groups has %d twice", id)
			}
			seen[id] = true
			group = append(group, devices(id)...)
		}
		groups = append(groups, group)
	}
	return groups, nil
}

func singletons(n int) [][]int {
	groups := make([][]int, n)
	for i := range groups {
		groups[i] = []int{i}
	}
	return groups
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
		if g.lone(op, rows) {
			for d := range to {
				to[d] = d
			}
			return to, nil
		}
		return to, densePairs(to, rows)
	}
	return to, nil
}

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
