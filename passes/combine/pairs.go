package combine

import (
	"slices"

	"ppc/ir"
	"ppc/passes/rewrite"
)

// disjoint joins permutes between listed devices of which none sends in two and
// none receives in two:
//
//	a = permute(x, [[0, 1]])         z = permute(select(in {2}, y, x), [[0, 1], [2, 3]])
//	b = permute(y, [[2, 3]])    =    a = select(in {1}, z, 0)
//	                                 b = select(in {3}, z, 0)
//
// The combined permute takes as long as the longest of them and sends no more
// bytes, whatever their size. The permutes that ppc's passes make are along axes:
// they have a pair for every device already, in cycles or chains, and are not
// affected.
func (j *joiner) disjoint() joining {
	return joining{
		key: func(op *ir.Op) string {
			l := op.Literal("source_target_pairs")
			if op.Kind != ir.CollectivePermute || l == nil || !j.listsDevices(op, l) {
				return ""
			}
			key := "partitions " + op.Result().Type.String()
			if !channelled(op) {
				key = "replicas " + op.Result().Type.String()
			}
			return key
		},
		fits: func(g []*ir.Op, op *ir.Op) bool {
			pairs := pairsOf(op)
			return !slices.ContainsFunc(g, func(o *ir.Op) bool {
				return slices.ContainsFunc(pairsOf(o), func(p [2]int) bool {
					return slices.ContainsFunc(pairs, func(q [2]int) bool { return p[0] == q[0] || p[1] == q[1] })
				})
			})
		},
		make: j.joinPairs,
	}
}

// listsDevices reports whether the pairs l of op identify devices by one number:
// the partition, or the replica if there is one partition.
func (j *joiner) listsDevices(op *ir.Op, l *ir.Literal) bool {
	n := j.devices(op)
	for i := range l.Type.NumElements() {
		if l.Int(i) >= int64(n) {
			return false
		}
	}
	return n > 1 && op.Operands[0].Type.IsTensor() && op.Operands[0].Type.IsStatic()
}

// devices is one more than the largest device number in the pairs of op; 0 if the
// pairs do not identify devices.
func (j *joiner) devices(op *ir.Op) int {
	replicas, partitions := max(j.m.Attrs.Int("mhlo.num_replicas"), 1), max(j.m.Attrs.Int("mhlo.num_partitions"), 1)
	switch {
	case replicas == 1:
		partitions = j.m.NumDevices()
	case partitions > 1:
		return 0
	}
	if channelled(op) {
		return partitions
	}
	return replicas
}

func pairsOf(op *ir.Op) [][2]int {
	l := op.Literal("source_target_pairs")
	out := make([][2]int, l.Type.Shape[0])
	for i := range out {
		out[i] = [2]int{int(l.Int(2 * i)), int(l.Int(2*i + 1))}
	}
	return out
}

func (j *joiner) joinPairs(b *ir.Builder, g []*ir.Op) {
	one, n := g[0], j.devices(g[0])
	var all [][2]int
	sends, gets := make([]int, n), make([]int, n) // by device, one more than the op of g in which it does
	for i, op := range g {
		for _, p := range pairsOf(op) {
			all = append(all, p)
			sends[p[0]], gets[p[1]] = i+1, i+1
		}
	}
	slices.SortFunc(all, func(p, q [2]int) int { return p[0] - q[0] })
	id := ir.PartitionID
	if !channelled(one) {
		id = ir.ReplicaID
	}
	device := b.Emit(id, nil, nil, nil, nil).Result()
	look := func(table []int) *ir.Value {
		return b.DynamicSlice(b.Const(ir.Ints64(ir.Tensor(ir.I32, n), table...)), []*ir.Value{device}, 1)
	}
	is := func(row *ir.Value, i int) *ir.Value {
		return b.Broadcast(b.Reshape(b.Compare("EQ", row, b.Splat(row.Type, float64(i+1)))), one.Operands[0].Type.Shape)
	}
	x, sender := one.Operands[0], (*ir.Value)(nil)
	for i, op := range g[1:] {
		if y := op.Operands[0]; y != one.Operands[0] {
			if sender == nil {
				sender = look(sends)
			}
			x = b.Select(is(sender, i+1), y, x)
		}
	}
	attrs, flat := slices.Clone(one.Attrs), make([]int, 0, 2*len(all))
	for _, p := range all {
		flat = append(flat, p[:]...)
	}
	attrs.Set("source_target_pairs", ir.Ints64(ir.Tensor(ir.I64, len(all), 2), flat...))
	z := b.Emit(ir.CollectivePermute, []*ir.Value{x}, attrs, nil, nil).Result()
	receiver, none := look(gets), b.Broadcast(b.Splat(ir.Tensor(z.Type.Elem), 0), z.Type.Shape)
	for i, op := range g {
		v := b.At(op.Origin).Select(is(receiver, i), z, none)
		rewrite.Adopt(v.Def, 0, op.Result())
	}
}
