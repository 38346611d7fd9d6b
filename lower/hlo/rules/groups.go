package rules

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo"
	"ppc/lower/hlo/syntax"
)

// groups checks the lists of devices that a collective without an op goes over: each device is in
// one group, and they are all devices that a group is of.
func (c *checker) groups(op *ir.Op, opcode, text string) {
	lists, err := syntax.ParseLists(text)
	if err != nil || len(lists) == 0 {
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
	switch channel := op.Str("channel_id") != ""; {
	case op.Str("use_global_device_ids") == "true":
		return replicas * partitions, ir.Counted(replicas*partitions, "device")
	case channel && (opcode == "all-to-all" || opcode == "ragged-all-to-all"):
		return partitions, ir.Counted(partitions, "partition")
	}
	return replicas, ir.Counted(replicas, "replica")
}

// exchanged checks an all-to-all that has an operand for each device.
func exchanged(c *checker, op *ir.Op) string {
	if op.Attrs.Has("dimensions") {
		return ""
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
	if wrong := permutes(c, op); wrong != "" || len(op.Operands) == 4 && op.Attrs.Has("slice_sizes") {
		return wrong
	}
	return makes(op, together(op.Operands))
}

// permutes checks the pairs of a collective-permute: a device sends once and receives once, in
// place once for each slice.
func permutes(c *checker, op *ir.Op) string {
	lists, err := syntax.ParseLists(op.Str("source_target_pairs"))
	if err != nil || slices.ContainsFunc(lists, func(l []int) bool { return len(l) != 2 }) {
		return ""
	}
	most := 1
	if op.Attrs.Has("slice_sizes") && len(op.Operands) == 4 {
		offsets := op.Operands[2].Type
		if op.Operands[0].Type.Kind == ir.TupleType {
			offsets = part(offsets, 0)
		}
		if offsets != nil {
			most = max(len(offsets.Elems), 1)
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
