package dialect

import (
	"slices"

	"ppc/ir"
)

// groupRules are the numbers of the constraints that the collectives have in
// common.
type groupRules struct {
	unique, complete, inRange, channel int
	padded                             bool // groups may differ in size, padded with -1
	partial                            bool // devices may be in no group
}

// check checks the groups of op: every device from 0 on is in exactly one, except
// as the flags allow.
func (n groupRules) check(op *ir.Op) *ir.Rule {
	global := op.Bool("use_global_device_ids")
	if c, _ := op.Attrs.Get("channel_handle").(ir.Channel); global && c.Handle <= 0 {
		return ir.Broken(n.channel, "use_global_device_ids with channel %d, want a channel above 0", c.Handle)
	}
	l := op.Literal("replica_groups")
	if l == nil {
		return nil
	}
	if global && l.Type.NumElements() == 0 {
		return ir.Broken(n.complete, "use_global_device_ids without groups")
	}
	return n.devices(l)
}

func (n groupRules) devices(l *ir.Literal) *ir.Rule {
	count := l.Type.NumElements()
	if l.IsSplat() {
		count = min(count, 2) // the second is wrong already
	}
	seen := make(map[int64]bool, count)
	for i := range count {
		id := l.Int(i)
		switch {
		case id == -1 && n.padded:
			continue
		case id < 0:
			return ir.Broken(n.inRange, "replica_groups have device %d, want numbers from 0 on", id)
		case seen[id]:
			return ir.Broken(n.unique, "replica_groups have device %d twice", id)
		}
		seen[id] = true
	}
	for id := range int64(len(seen)) {
		if !seen[id] && !n.partial {
			return ir.Broken(n.complete, "replica_groups have %s but not device %d: want 0 to %d", ir.Counted(len(seen), "device"), id, len(seen)-1)
		}
	}
	return nil
}

// nonEmpty checks that a dimension has elements to be split.
func nonEmpty(n int, what string, t *ir.Type, dim int) *ir.Rule {
	if t.Shape[dim] == 0 {
		return ir.Broken(n, "dimension %d of %s %s has size 0", dim, what, t)
	}
	return nil
}

func inferAllGather(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	if r := (groupRules{unique: 2, complete: 3, inRange: 4, channel: 5}).check(op); r != nil {
		return nil, r
	}
	if len(op.Operands) != len(op.Results) {
		return nil, ir.Broken(6, "%s and %s, want as many", ir.Counted(len(op.Operands), "operand"), ir.Counted(len(op.Results), "result"))
	}
	dim := op.Int("all_gather_dim")
	for i, v := range op.Operands {
		if r := isDim(1, "all_gather_dim", dim, v.Type); r != nil {
			return nil, r
		}
		if r := first(nonEmpty(6, "operand", v.Type, dim), scaled(6, v.Type, op.Results[i].Type, dim, ir.GroupSize(op))); r != nil {
			return nil, r
		}
	}
	return ir.TypesOf(op.Results), nil
}

// isDim checks that dim is a dimension of t.
func isDim(n int, what string, dim int, t *ir.Type) *ir.Rule {
	if dim < 0 || dim >= t.Rank() {
		return ir.Broken(n, "%s %d is not a dimension of %s", what, dim, t)
	}
	return nil
}

// scaled checks that big is small with dimension dim n times as large; any
// multiple where n is 0.
func scaled(rule int, small, big *ir.Type, dim, n int) *ir.Rule {
	ok := big.IsTensor() && big.Rank() == small.Rank() && big.SameElem(small)
	for d := 0; ok && d < big.Rank(); d++ {
		s, b := small.Shape[d], big.Shape[d]
		switch {
		case s == ir.Dynamic || b == ir.Dynamic:
		case d != dim:
			ok = s == b
		case n > 0:
			ok = b%n == 0 && b/n == s
		default:
			ok = s > 0 && b%s == 0
		}
	}
	switch {
	case ok:
		return nil
	case n > 0:
		return ir.Broken(rule, "%s is not %s with dimension %d multiplied by %d, the group's size", big, small, dim, n)
	}
	return ir.Broken(rule, "%s is not %s with dimension %d multiplied by the group's size", big, small, dim)
}

func inferAllReduce(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	if r := (groupRules{unique: 1, complete: 2, inRange: 3, channel: 4, padded: true}).check(op); r != nil {
		return nil, r
	}
	ts := make([]*ir.Type, len(op.Operands))
	for i, v := range op.Operands {
		elems, r := combiner(5, op.Regions[0], []*ir.Type{v.Type})
		if r != nil {
			return nil, r
		}
		ts[i] = elems[0].WithShape(v.Type.Shape...)
	}
	return ts, nil
}

func inferReduceScatter(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	if r := (groupRules{unique: 3, complete: 4, inRange: 5, channel: 6}).check(op); r != nil {
		return nil, r
	}
	t, dim := op.Operands[0].Type, op.Int("scatter_dimension")
	if r := isDim(2, "scatter_dimension", dim, t); r != nil {
		return nil, r
	}
	elems, r := combiner(7, op.Regions[0], []*ir.Type{t})
	if r != nil {
		return nil, r
	}
	if n := ir.GroupSize(op); n > 0 && t.Shape[dim] != ir.Dynamic && t.Shape[dim]%n != 0 {
		return nil, ir.Broken(1, "dimension %d of %s is not a multiple of %d, the group's size", dim, t, n)
	}
	out, r := given(op)
	if r != nil {
		return nil, r
	}
	if !out.SameElem(elems[0]) {
		return nil, ir.Broken(9, "result is %s, the region makes elements of type %s", out, elems[0].ElemText())
	}
	if r := first(nonEmpty(8, "operand", t, dim), scaled(8, t.WithShape(out.Shape...), t, dim, ir.GroupSize(op))); r != nil {
		return nil, r
	}
	return []*ir.Type{out}, nil
}

func inferAllToAll(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	split, concat, n := op.Int("split_dimension"), op.Int("concat_dimension"), op.Int("split_count")
	if n < 1 {
		return nil, ir.Broken(4, "split_count is %d, want at least 1", n)
	}
	if r := (groupRules{unique: 5, complete: 6, inRange: 7}).check(op); r != nil {
		return nil, r
	}
	if l := op.Literal("replica_groups"); l != nil && (l.Type.NumElements() == 0 || l.Type.Shape[1] != n) {
		return nil, ir.Broken(8, "split_count is %d, the groups are %s: want groups of size %d", n, l.Type, n)
	}
	var ts []*ir.Type
	for _, v := range op.Operands {
		t := v.Type
		if r := first(isDim(1, "split_dimension", split, t), isDim(3, "concat_dimension", concat, t)); r != nil {
			return nil, r
		}
		if t.Shape[split] != ir.Dynamic && t.Shape[split]%n != 0 {
			return nil, ir.Broken(2, "split_count %d does not divide dimension %d of %s", n, split, t)
		}
		shape := slices.Clone(t.Shape)
		if split != concat && shape[split] != ir.Dynamic {
			shape[split] /= n
		}
		if split != concat && shape[concat] != ir.Dynamic {
			shape[concat] *= n
		}
		ts = append(ts, t.WithShape(shape...))
	}
	return ts, nil
}

func inferCollectiveBroadcast(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	if r := (groupRules{unique: 1, inRange: 2, partial: true}).check(op); r != nil {
		return nil, r
	}
	in := op.Operands
	if op.Bool("has_dynamic_root") {
		last := len(in) - 1
		if root := in[last].Type; last < 1 || root.Rank() != 1 || root.Elem != ir.I32 || root.Shape[0] != last {
			return nil, ir.Broken(4, "operand %d is %s, want the number of a root for each of %s before it", last, root, ir.Counted(last, "operand"))
		}
		in = in[:last]
	}
	return ir.TypesOf(in), nil
}

func inferCollectivePermute(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	if l := op.Literal("source_target_pairs"); l != nil {
		if r := permutePairs(l); r != nil {
			return nil, r
		}
	}
	return ir.TypesOf(op.Operands), nil
}

func permutePairs(l *ir.Literal) *ir.Rule {
	if l.Type.Shape[1] != 2 {
		return ir.Broken(1, "source_target_pairs are %s, want two numbers in each row", l.Type)
	}
	rows := l.Type.Shape[0]
	if l.IsSplat() {
		rows = min(rows, 2) // the second is wrong already
	}
	var seen [2]map[int64]bool
	for i, what := range []string{"source", "target"} {
		seen[i] = make(map[int64]bool, rows)
		for k := range rows {
			id := l.Int(2*k + i)
			switch {
			case id < 0:
				return ir.Broken(4, "source_target_pairs have device %d, want numbers from 0 on", id)
			case seen[i][id]:
				return ir.Broken(2+i, "device %d is the %s of two pairs", id, what)
			}
			seen[i][id] = true
		}
	}
	return nil
}
