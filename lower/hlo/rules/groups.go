package rules

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo"
	"ppc/lower/hlo/syntax"
)

// groups checks the groups of devices that a collective goes over: each device is in one, and
// they are all devices that a group is of.
func (c *checker) groups(op *ir.Op, opcode string) {
	var lists [][]int
	text := ""
	switch a := op.Attrs.Get("replica_groups").(type) {
	case ir.Str:
		text = string(a)
		lists, _ = syntax.ParseLists(text)
	case *ir.Literal:
		lists = hlo.Rows(a)
		text = hlo.ListsText(lists)
	case ir.MeshAxes:
		mesh := c.m.Mesh(a.Mesh)
		if n, of := c.members(op, opcode); n > 1 && mesh != nil && mesh.Size() != n {
			c.fail(op, opcode, "the mesh of replica_groups has %d devices, the program %s", mesh.Size(), of)
		}
	}
	if len(lists) == 0 {
		return
	}
	seen := make(map[int]bool)
	for _, l := range lists {
		if len(l) == 0 {
			c.fail(op, opcode, "replica_groups %s have one of no device", text)
			return
		}
		if len(l) != len(lists[0]) && !strings.HasPrefix(opcode, "all-reduce") {
			c.fail(op, opcode, "replica_groups %s are of several sizes", text)
			return
		}
		for _, id := range l {
			if seen[id] {
				c.fail(op, opcode, "replica_groups %s have device %d twice", text, id)
				return
			}
			seen[id] = true
		}
	}
	for id := range len(seen) {
		if !seen[id] {
			c.fail(op, opcode, "replica_groups %s have %d devices but not device %d", text, len(seen), id)
			return
		}
	}
	if n, of := c.members(op, opcode); n > 1 && len(seen) != n {
		c.fail(op, opcode, "replica_groups %s have %d devices, the program %s", text, len(seen), of)
	}
}

// members is how many devices the groups of a collective are of, by its channel and its ids.
func (c *checker) members(op *ir.Op, opcode string) (n int, what string) {
	replicas, partitions := max(c.m.Attrs.Int("mhlo.num_replicas"), 1), max(c.m.Attrs.Int("mhlo.num_partitions"), 1)
	switch channel := op.Str("channel_id") != "" || channelOf(op); {
	case op.Str("use_global_device_ids") == "true" || op.Bool("use_global_device_ids"):
		return replicas * partitions, ir.Counted(replicas*partitions, "device")
	case channel && (opcode == "all-to-all" || opcode == "ragged-all-to-all"):
		return partitions, ir.Counted(partitions, "partition")
	}
	return replicas, ir.Counted(replicas, "replica")
}

// gathered checks the sizes that a collective along a dimension makes where it names no groups,
// which is one of all: HLO counts replicas, and with a channel all their partitions.
func gathered(c *checker, op *ir.Op) string {
	if l := op.Literal("replica_groups"); l == nil || len(l.Data) > 0 {
		return ""
	}
	n := max(c.m.Attrs.Int("mhlo.num_replicas"), 1)
	if channelOf(op) {
		n *= max(c.m.Attrs.Int("mhlo.num_partitions"), 1)
	}
	for i, v := range op.Operands {
		small, large := v.Type, op.Results[i].Type
		d := op.Int("all_gather_dim")
		if op.Kind == ir.ReduceScatter {
			small, large, d = large, small, op.Int("scatter_dimension")
		}
		if d < 0 || d >= small.Rank() || d >= large.Rank() || small.Shape[d] == ir.Dynamic || large.Shape[d] == ir.Dynamic {
			continue
		}
		if n == 1 && large.Shape[d] < small.Shape[d] { // of any number of devices, but of one at least
			return fmt.Sprintf("dimension %d has size %d on one device and %d on all", d, small.Shape[d], large.Shape[d])
		}
		if n > 1 && large.Shape[d] != n*small.Shape[d] {
			return fmt.Sprintf("dimension %d has size %d on one device and %d on all, of which there are %d", d, small.Shape[d], large.Shape[d], n)
		}
	}
	return ""
}

// gathers checks the results of an all-gather-start: each is its operand with one dimension as
// often as there are devices in a group.
func (c *checker) gathers(op *ir.Op) string {
	d, err := syntax.ParseInts(op.Str("dimensions"))
	out := part(op.Result().Type, 1)
	if err != nil || len(d) != 1 || out == nil {
		return ""
	}
	if len(op.Operands) == 1 && out.Kind != ir.TupleType {
		out = ir.Tuple(out)
	}
	n, _ := c.members(op, "all-gather")
	if op.Str("channel_id") != "" && op.Str("use_global_device_ids") != "true" {
		n *= max(c.m.Attrs.Int("mhlo.num_partitions"), 1)
	}
	if text := op.Str("replica_groups"); strings.Trim(text, "{} ") != "" {
		lists, err := syntax.ParseLists(text)
		if err != nil || len(lists) == 0 {
			return ""
		}
		n = len(lists[0])
	}
	for i, v := range op.Operands {
		x := v.Type
		if i >= len(out.Elems) || !x.IsTensor() || d[0] < 0 || d[0] >= x.Rank() || x.Shape[d[0]] == ir.Dynamic {
			continue
		}
		sizes, t := slices.Clone(x.Shape), out.Elems[i]
		if sizes[d[0]] *= n; n == 1 && t.Rank() == x.Rank() { // of any number of devices
			sizes[d[0]] = t.Shape[d[0]]
		}
		if want := x.WithShape(sizes...); !sameKind(t, want) {
			return fmt.Sprintf("gives %s, want %s", hlo.BareShape(t), hlo.BareShape(want))
		}
	}
	return ""
}

// peopled checks that each group of a collective with an op has a device.
func peopled(op *ir.Op) string {
	for i, l := range rowsOf(op.Literal("replica_groups")) {
		if !slices.ContainsFunc(l, func(id int) bool { return id >= 0 }) {
			return fmt.Sprintf("group %d of replica_groups has no device", i)
		}
	}
	return ""
}

// channelOf reports whether op has a channel.
func channelOf(op *ir.Op) bool {
	channel, _ := op.Attrs.Get("channel_handle").(ir.Channel)
	return channel.Handle > 0
}

// rowsOf are the rows of a matrix of numbers.
func rowsOf(l *ir.Literal) [][]int {
	if l == nil || l.Type.Rank() != 2 {
		return nil
	}
	rows := make([][]int, l.Type.Shape[0])
	for i := range rows {
		for k := range l.Type.Shape[1] {
			rows[i] = append(rows[i], int(l.Int(i*l.Type.Shape[1]+k)))
		}
	}
	return rows
}

// among checks that lists name devices of the program: partitions over a channel, else replicas.
// One that says of a single one is for any number.
func (c *checker) among(lists [][]int, channel bool) string {
	n, what := max(c.m.Attrs.Int("mhlo.num_replicas"), 1), "replica"
	if channel {
		n, what = max(c.m.Attrs.Int("mhlo.num_partitions"), 1), "partition"
	}
	for _, l := range lists {
		for _, id := range l {
			if id < 0 || n > 1 && id >= n {
				return fmt.Sprintf("source_target_pairs name device %d, the program has %s", id, ir.Counted(n, what))
			}
		}
	}
	return ""
}

// exchanged checks an all-to-all that has an operand for each device.
func exchanged(c *checker, op *ir.Op) string {
	if op.Attrs.Has("dimensions") {
		return fmt.Sprintf("has %s, of which none is split along dimensions %s: that is for one", ir.Counted(len(op.Operands), "operand"), op.Str("dimensions"))
	}
	n, _ := c.members(op, "all-to-all")
	if lists, err := syntax.ParseLists(op.Str("replica_groups")); err == nil && len(lists) > 0 {
		n = len(lists[0])
	}
	if text := op.Str("replica_groups"); len(op.Operands) != n && !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "mesh") {
		return fmt.Sprintf("has %s for groups of %d", ir.Counted(len(op.Operands), "operand"), n)
	}
	for i, v := range op.Operands {
		if !hlo.ShapesAgree(v.Type, op.Operands[0].Type) {
			return fmt.Sprintf("operand %d is %s, operand 0 %s", i, hlo.BareShape(v.Type), hlo.BareShape(op.Operands[0].Type))
		}
	}
	return makes(op, ir.Tuple(ir.Types(op.Operands)...))
}

// ragged checks the six operands of a ragged all-to-all: what is sent, what it is put into, and
// four lists of offsets and sizes that are alike.
func ragged(_ *checker, op *ir.Op) string {
	if len(op.Operands) != 6 {
		return fmt.Sprintf("has %s, want 6", ir.Counted(len(op.Operands), "operand"))
	}
	lists := op.Operands[2:]
	for i, v := range lists {
		if t := v.Type; !t.IsTensor() || t.Rank() != 1 && t.Rank() != 2 || !hlo.ShapesAgree(t, lists[0].Type) {
			return fmt.Sprintf("operand %d is %s, operand 2 %s: want lists of one length, of rank 1 or 2", i+2, hlo.BareShape(t), hlo.BareShape(lists[0].Type))
		}
	}
	return makes(op, op.Operands[1].Type)
}

// permuted checks a collective-permute of several operands, or in place of slices.
func permuted(c *checker, op *ir.Op) string {
	if wrong := permutes(c, op); wrong != "" {
		return wrong
	}
	if len(op.Operands) == 4 && op.Attrs.Has("slice_sizes") {
		return first(offsets(op.Operands[0].Type, op.Operands[2].Type), offsets(op.Operands[1].Type, op.Operands[3].Type))
	}
	return makes(op, together(op.Operands))
}

// offsets checks where slices of a buffer are: a tuple of numbers, one for each dimension, or a
// tuple of several of these; of a tuple of buffers one for each.
func offsets(buffer, at *ir.Type) string {
	if at.Kind != ir.TupleType {
		return fmt.Sprintf("the offsets in %s are %s, want a tuple", hlo.BareShape(buffer), hlo.BareShape(at))
	}
	if buffer.Kind == ir.TupleType {
		if len(at.Elems) != len(buffer.Elems) {
			return fmt.Sprintf("has %s for %s", ir.Counted(len(at.Elems), "offset"), ir.Counted(len(buffer.Elems), "buffer"))
		}
		for i, t := range buffer.Elems {
			if wrong := offsets(t, at.Elems[i]); wrong != "" {
				return wrong
			}
		}
		return ""
	}
	each := at.Elems
	if len(each) == 0 || each[0].Kind != ir.TupleType {
		each = []*ir.Type{at}
	}
	for _, t := range each {
		if t.Kind != ir.TupleType || len(t.Elems) != buffer.Rank() {
			return fmt.Sprintf("the offset in %s is %s, want a number for each dimension", hlo.BareShape(buffer), hlo.BareShape(t))
		}
	}
	return ""
}

// permutes checks the pairs of a collective-permute: a device sends once and receives once, in
// place once for each slice.
func permutes(c *checker, op *ir.Op) string {
	lists, err := syntax.ParseLists(op.Str("source_target_pairs"))
	if err != nil || slices.ContainsFunc(lists, func(l []int) bool { return len(l) != 2 }) {
		return ""
	}
	if wrong := c.among(lists, op.Str("channel_id") != ""); wrong != "" {
		return wrong
	}
	most := 1
	if op.Attrs.Has("slice_sizes") && len(op.Operands) == 4 {
		if op.Operands[0].Type.Kind == ir.TupleType {
			if offsets := part(op.Operands[2].Type, 0); offsets != nil {
				most = max(len(offsets.Elems), 1)
			}
		} else if slices, err := syntax.ParseLists(op.Str("slice_sizes")); err == nil {
			most = max(len(slices), 1)
		}
	}
	for end, what := range []string{"source", "target"} {
		count := make(map[int]int)
		for _, l := range lists {
			if count[l[end]]++; count[l[end]] > most {
				return fmt.Sprintf("device %d is the %s of %s, want at most %d", l[end], what, ir.Counted(count[l[end]], "pair"), most)
			}
		}
	}
	return ""
}

// aliasing checks { {0}: (1, {}) }: the parts of the result and of operands that share memory are
// there and of one shape.
func (c *checker) aliasing(op *ir.Op, opcode string) {
	text := op.Str("output_to_operand_aliasing")
	pairs, err := hlo.ParseAliases(text)
	if text == "" || err != nil || strings.HasPrefix(opcode, "async") {
		return
	}
	for _, al := range pairs {
		if al.Param >= len(op.Operands) {
			c.fail(op, opcode, "output_to_operand_aliasing names operand %d of %d", al.Param, len(op.Operands))
			return
		}
		out, in := part(op.Result().Type, al.Output...), part(op.Operands[al.Param].Type, al.ParamIndex...)
		if out == nil || in == nil || out.Kind != ir.OpaqueType && in.Kind != ir.OpaqueType && !hlo.ShapesAgree(out, in) {
			c.fail(op, opcode, "output_to_operand_aliasing: part %s of the result %s and part %s of operand %d, %s, are not of one shape", pathText(al.Output), hlo.BareShape(op.Result().Type), pathText(al.ParamIndex), al.Param, hlo.BareShape(op.Operands[al.Param].Type))
		}
	}
}
