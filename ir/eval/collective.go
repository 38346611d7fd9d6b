package eval

import (
	"errors"
	"fmt"
	"slices"

	"ppc/ir"
)

// group returns the devices that the collective e joins with this one, itself
// among them, in the group's order; nil where it is in no group.
func (e *exec) group() ([]int, error) {
	switch g := e.op.Attrs.Get("replica_groups").(type) {
	case ir.MeshAxes:
		return e.meshGroup(g)
	case *ir.Literal:
		return e.listedGroup(g)
	}
	return nil, errors.New("no replica_groups")
}

// meshGroup: the devices that differ from this one along the axes only.
func (e *exec) meshGroup(g ir.MeshAxes) ([]int, error) {
	mesh, err := e.mesh(g.Mesh, g.Axes)
	if err != nil {
		return nil, err
	}
	at, err := e.place(mesh)
	if err != nil {
		return nil, err
	}
	shape, step := axesLattice(mesh, g.Axes)
	for i, n := range shape {
		at -= at / step[i] % n * step[i]
	}
	ranks := offsets(shape, lattice{at, step})
	for i, pos := range ranks {
		ranks[i] = mesh.Device(pos)
	}
	return e.check(ranks)
}

// place returns the place of this device in the mesh.
func (e *exec) place(mesh *ir.Mesh) (int, error) {
	at := mesh.Place(e.p.rank)
	if at < 0 || at >= mesh.Size() {
		return 0, fmt.Errorf("device %d is not on mesh %s of %d devices", e.p.rank, ir.SymbolText(mesh.Name), mesh.Size())
	}
	return at, nil
}

// mesh returns the mesh called name, which must have the axes.
func (e *exec) mesh(name string, axes []ir.AxisRef) (*ir.Mesh, error) {
	mesh := e.p.w.m.Mesh(name)
	if mesh == nil {
		return nil, fmt.Errorf("there is no mesh %s", ir.SymbolText(name))
	}
	return mesh, hasAxes(mesh, axes)
}

// hasAxes checks that the axes or sub-axes are those of mesh.
func hasAxes(mesh *ir.Mesh, axes []ir.AxisRef) error {
	for _, r := range axes {
		if mesh.Axis(r.Name) < 0 {
			return fmt.Errorf("mesh %s has no axis %q", ir.SymbolText(mesh.Name), r.Name)
		}
		if n := mesh.AxisSize(r.Name); r.Size != 0 && (r.Pre < 1 || r.Size < 1 || n%(r.Pre*r.Size) != 0) {
			return fmt.Errorf("%s does not divide axis %q of size %d", r, r.Name, n)
		}
	}
	return nil
}

// axesLattice is the grid of the given axes: sizes, and distances in position.
func axesLattice(mesh *ir.Mesh, axes []ir.AxisRef) (shape, step []int) {
	for _, r := range axes {
		shape, step = append(shape, mesh.RefSize(r)), append(step, mesh.Stride(r))
	}
	return shape, step
}

// listedGroup reads a list in one of the ways of the specification, section
// Collective ops: the numbers are replicas, partitions or devices. Without a
// channel they are replicas; but where there are not so many, devices.
func (e *exec) listedGroup(l *ir.Literal) ([]int, error) {
	channel, _ := e.op.Attrs.Get("channel_handle").(ir.Channel)
	hasMode := e.op.Kind == ir.AllGather || e.op.Kind == ir.AllReduce || e.op.Kind == ir.ReduceScatter
	replica, partition := e.p.rank/e.p.partitions, e.p.rank%e.p.partitions
	switch {
	case l.Type.NumElements() == 0 && (e.p.w.replicas == 1 && channel.Handle <= 0 || e.p.partitions == 1 || channel.Handle > 0 && hasMode):
		return e.p.peers, nil
	case l.Type.NumElements() == 0 && channel.Handle > 0: // the partitions of one replica
		return e.check(offsets([]int{e.p.partitions}, lattice{replica * e.p.partitions, []int{1}}))
	case l.Type.NumElements() == 0: // one partition of the replicas
		return e.check(offsets([]int{e.p.w.replicas}, lattice{partition, []int{e.p.partitions}}))
	case channel.Handle > 0 && hasMode && !e.op.Bool("use_global_device_ids"): // cross_replica_and_partition
		var ranks []int
		for p := range e.p.partitions {
			for _, r := range rowWith(l, replica) {
				ranks = append(ranks, r*e.p.partitions+p)
			}
		}
		return e.check(ranks)
	case channel.Handle > 0 && !hasMode: // cross_partition
		ranks := rowWith(l, partition)
		for i := range ranks {
			ranks[i] += replica * e.p.partitions
		}
		return e.check(ranks)
	case channel.Handle <= 0 && e.areReplicas(l): // cross_replica
		ranks := rowWith(l, replica)
		for i := range ranks {
			ranks[i] = ranks[i]*e.p.partitions + partition
		}
		return e.check(ranks)
	}
	return e.check(rowWith(l, e.p.rank)) // flattened_ids
}

// areReplicas reports whether every number in l is that of a replica.
func (e *exec) areReplicas(l *ir.Literal) bool {
	for i := range l.Type.NumElements() {
		if l.Int(i) >= int64(e.p.w.replicas) {
			return false
		}
	}
	return true
}

// rowWith returns the row of l that has v, without padding; nil if none has.
func rowWith(l *ir.Literal, v int) []int {
	n := l.Type.Shape[1]
	for i := range l.Type.Shape[0] {
		var row []int
		for j := range n {
			if x := int(l.Int(i*n + j)); x >= 0 {
				row = append(row, x)
			}
		}
		if slices.Contains(row, v) {
			return row
		}
	}
	return nil
}

// check refuses devices that there are not.
func (e *exec) check(ranks []int) ([]int, error) {
	n := e.p.w.replicas * e.p.partitions
	for _, r := range ranks {
		if r >= n {
			return nil, fmt.Errorf("names device %d of %d", r, n)
		}
	}
	return ranks, nil
}

// exchange sends the operands to the group and returns those of each member,
// in the group's order.
func (e *exec) exchange(group []int) ([][]*tensor, error) {
	route := e.route(group)
	epoch := e.p.w.epoch(e.p.rank, route)
	e.p.w.put(address{route, e.p.rank, epoch}, len(group), e.in)
	all := make([][]*tensor, len(group))
	for i, r := range group {
		var err error
		if all[i], err = e.p.w.get(e.p.rank, e.op, address{route, r, epoch}); err != nil {
			return nil, err
		}
	}
	for i, r := range group {
		if len(all[i]) != len(e.in) {
			return nil, fmt.Errorf("device %d has %d operands where device %d has %d", r, len(all[i]), e.p.rank, len(e.in))
		}
		for k, x := range all[i] {
			if x.elem != e.in[k].elem || !slices.Equal(x.shape, e.in[k].shape) {
				return nil, fmt.Errorf("device %d has %s where device %d has %s", r, x, e.p.rank, e.in[k])
			}
		}
	}
	return all, nil
}

// route names the channel of a collective between the given devices.
func (e *exec) route(devices []int) string {
	channel, _ := e.op.Attrs.Get("channel_handle").(ir.Channel)
	return fmt.Sprint(e.op.Name(), channel.Handle, devices)
}

// together is exchange among this device's own group, and its place in it.
func (e *exec) together() (all [][]*tensor, at int, err error) {
	group, err := e.group()
	if err != nil {
		return nil, 0, err
	}
	if at = slices.Index(group, e.p.rank); at < 0 {
		return nil, 0, fmt.Errorf("device %d is in no group", e.p.rank)
	}
	all, err = e.exchange(group)
	return all, at, err
}

func allGather(e *exec) ([]*tensor, error) {
	all, _, err := e.together()
	if err != nil {
		return nil, err
	}
	return e.eachOperand(func(k int) (*tensor, error) { return concat(e.op.Int("all_gather_dim"), column(all, k)), nil })
}

// column is operand k of every device.
func column(all [][]*tensor, k int) []*tensor {
	xs := make([]*tensor, len(all))
	for i, row := range all {
		xs[i] = row[k]
	}
	return xs
}

func (e *exec) eachOperand(f func(k int) (*tensor, error)) ([]*tensor, error) {
	out := make([]*tensor, len(e.in))
	for k := range e.in {
		var err error
		if out[k], err = f(k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fold combines operand k of every device, in group order.
func (e *exec) fold(all [][]*tensor, k int) (*tensor, error) {
	sum := e.accumulator(all[0][k], k)
	b, err := e.body(sum.len())
	if err != nil {
		return nil, err
	}
	for _, row := range all[1:] {
		if err := b.combine(sum, row[k]); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

func allReduce(e *exec) ([]*tensor, error) {
	all, _, err := e.together()
	if err != nil {
		return nil, err
	}
	return e.eachOperand(func(k int) (*tensor, error) { return e.fold(all, k) })
}

func reduceScatter(e *exec) ([]*tensor, error) {
	all, at, err := e.together()
	if err != nil {
		return nil, err
	}
	return e.eachOperand(func(k int) (*tensor, error) {
		sum, err := e.fold(all, k)
		if err != nil {
			return nil, err
		}
		return sliceOf(sum, e.op.Int("scatter_dimension"), at, len(all))
	})
}

// sliceOf returns slice i of n of x along dimension dim.
func sliceOf(x *tensor, dim, i, n int) (*tensor, error) {
	if x.shape[dim]%n != 0 {
		return nil, fmt.Errorf("dimension %d of %s does not split into %d parts", dim, x, n)
	}
	size := x.shape[dim] / n
	return x.part(dim, i*size, size), nil
}

func allToAll(e *exec) ([]*tensor, error) {
	all, at, err := e.together()
	if err != nil {
		return nil, err
	}
	if n := e.op.Int("split_count"); n != len(all) {
		return nil, fmt.Errorf("split_count is %d in a group of %d", n, len(all))
	}
	return e.eachOperand(func(k int) (*tensor, error) {
		parts := column(all, k)
		for i, x := range parts {
			if parts[i], err = sliceOf(x, e.op.Int("split_dimension"), at, len(all)); err != nil {
				return nil, err
			}
		}
		return concat(e.op.Int("concat_dimension"), parts), nil
	})
}

// collectiveBroadcast: zeros on a device that is in no group.
func collectiveBroadcast(e *exec) ([]*tensor, error) {
	group, err := e.group()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(group, e.p.rank) {
		return e.zeros(), nil
	}
	all, err := e.exchange(group)
	if err != nil {
		return nil, err
	}
	out := make([]*tensor, len(e.op.Results))
	for k := range out {
		root := 0
		if e.op.Bool("has_dynamic_root") {
			if root = int(e.in[len(e.in)-1].i[k]); root < 0 || root >= len(all) {
				return nil, fmt.Errorf("the root of operand %d is %d in a group of %d", k, root, len(all))
			}
		}
		out[k] = all[root][k]
	}
	return out, nil
}

// zeros are results of zeros, of the sizes that the operands have.
func (e *exec) zeros() []*tensor {
	out := make([]*tensor, len(e.op.Results))
	for i, v := range e.op.Results {
		t := typeOfValue(e.in[i], v.Type)
		out[i] = newTensor(e.p.elem(t.Elem), t.Shape)
	}
	return out
}

// collectivePermute returns zeros on a device that is no target. Sending does not
// wait.
func collectivePermute(e *exec) ([]*tensor, error) {
	from, to, err := e.neighbours()
	if err != nil {
		return nil, err
	}
	w, rank := e.p.w, e.p.rank
	if to >= 0 {
		route := e.route([]int{rank, to})
		w.put(address{route, rank, w.epoch(rank, route)}, 1, e.in)
	}
	if from < 0 {
		return []*tensor{e.result(0)}, nil
	}
	route := e.route([]int{from, rank})
	epoch := w.epoch(rank, "to "+route)
	return w.get(rank, e.op, address{route, from, epoch})
}

// neighbours returns the devices that this one receives from and sends to; -1
// for none.
func (e *exec) neighbours() (from, to int, err error) {
	switch g := e.op.Attrs.Get("source_target_pairs").(type) {
	case ir.AxisShift:
		mesh, err := e.mesh(g.Mesh, g.Axes)
		if err != nil {
			return -1, -1, err
		}
		at, err := e.place(mesh)
		if err != nil {
			return -1, -1, err
		}
		from, to = shifted(mesh, g.Inverse(), at), shifted(mesh, g, at)
	case ir.AxisMove:
		mesh, err := e.mesh(g.Mesh, g.From)
		if err != nil {
			return -1, -1, err
		}
		at, err := e.place(mesh)
		if err != nil {
			return -1, -1, err
		}
		from, to = mesh.Device(mesh.Target(g.Inverse(), at)), mesh.Device(mesh.Target(g, at))
	case *ir.Literal:
		from, to = e.listedNeighbours(g)
	default:
		return -1, -1, errors.New("no source_target_pairs")
	}
	_, err = e.check([]int{from, to})
	return from, to, err
}

// shifted returns the device to which the one at a place sends, or -1.
func shifted(mesh *ir.Mesh, a ir.AxisShift, place int) int {
	to, ok := mesh.Shifted(a, place)
	if !ok {
		return -1
	}
	return mesh.Device(to)
}

// listedNeighbours: pairs name partitions of this replica where the op has a
// channel, else replicas of this partition; devices where there are not so many.
func (e *exec) listedNeighbours(l *ir.Literal) (from, to int) {
	channel, _ := e.op.Attrs.Get("channel_handle").(ir.Channel)
	me, base, step := e.p.rank%e.p.partitions, e.p.rank-e.p.rank%e.p.partitions, 1
	if channel.Handle <= 0 && e.areReplicas(l) {
		me, base, step = e.p.rank/e.p.partitions, e.p.rank%e.p.partitions, e.p.partitions
	}
	from, to = -1, -1
	for i := range l.Type.Shape[0] {
		source, target := int(l.Int(2*i)), int(l.Int(2*i+1))
		if source == me {
			to = base + target*step
		}
		if target == me {
			from = base + source*step
		}
	}
	return from, to
}
