package hlo

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// A form is how the operands, results and regions of an op become those of
// instructions.
type form uint8

const (
	plain     form = iota // one instruction; several results are a tuple
	constant              // its literal is its operand; a splat is broadcast
	stretched             // operand dimensions of size 1 are dropped first
	leveled               // scalar operands are broadcast to the result's shape
	barrier               // several operands are one tuple
	exchange              // split and joined along one dimension, then moved
	loop                  // the state and what the regions capture is one tuple
	branches              // one operand per branch: what it captures
	call                  // of a function
)

// constant appends a constant; a splat is a scalar, broadcast, and so is a
// constant of no elements.
func (c *computation) constant(op *ir.Op) {
	v, l := op.Result(), op.Literal("value")
	scalar, n := l, l.Type.NumElements()
	spread := n == 0 || n > 1 && l.IsSplat()
	if spread {
		scalar = &ir.Literal{Type: l.Type.WithShape(), Data: l.Data}
	}
	if n == 0 {
		scalar = ir.SplatOf(scalar.Type, 0)
	}
	text := syntax.LiteralText(scalar)
	if !spread {
		c.layouts = op.Str("hlo.layout")
		c.values[v.ID] = c.line(c.want(v, "constant"), v.Type, "constant("+text+")"+verbatim(op.Attrs, v.Type)+c.metadata(op))
		return
	}
	in := c.line("constant", scalar.Type, "constant("+text+")")
	c.values[v.ID] = c.emit(c.want(v, "broadcast"), v.Type, "broadcast", []instruction{in}, ", dimensions={}"+verbatim(op.Attrs, v.Type)+c.metadata(op))
}

// broadcast appends a broadcast_in_dim. HLO's broadcast keeps the size of each
// operand dimension, so those of size 1 that would grow are dropped.
func (c *computation) broadcast(op *ir.Op, row *row) {
	x, t := op.Operands[0], op.Result().Type
	in := c.use(x)
	var shape, dims []int
	for i, d := range op.Ints("broadcast_dimensions") {
		if n := x.Type.Shape[i]; n == t.Shape[d] {
			shape, dims = append(shape, n), append(dims, d)
		}
	}
	if len(shape) < x.Type.Rank() {
		in = c.emit("reshape", x.Type.WithShape(shape...), "reshape", []instruction{in}, "")
	}
	c.results(op, row.opcode, []instruction{in}, ", dimensions="+braced(dims))
}

// level appends a select or clamp.
func (c *computation) level(op *ir.Op, row *row) {
	t := op.Result().Type
	operands := c.operands(op.Operands)
	if ranks := ir.Types(op.Operands); !t.IsStatic() && slices.ContainsFunc(ranks, func(u *ir.Type) bool { return u.Rank() < t.Rank() }) {
		c.fail(op, "a scalar is broadcast to %s, of which HLO must know every size", t)
		return
	}
	for i, v := range op.Operands {
		if v.Type.Rank() < t.Rank() {
			operands[i] = c.emit("broadcast", t.WithElem(v.Type.Elem), "broadcast", operands[i:i+1], ", dimensions={}")
		}
	}
	c.instruction(op, row, operands)
}

func (c *computation) barrier(op *ir.Op, row *row) {
	if len(op.Operands) == 1 {
		c.instruction(op, row, c.operands(op.Operands))
		return
	}
	c.instruction(op, row, []instruction{c.tuple(op.Operands, nil)})
}

// allToAll appends an all_to_all. HLO's concatenates along the dimension that it
// splits; where the op concatenates along another, the split dimension becomes (n,
// size), and n moves in front of the other: one reshape to split, one transpose to
// move, one reshape to merge.
func (c *computation) allToAll(op *ir.Op, row *row) {
	split, concat, n := op.Int("split_dimension"), op.Int("concat_dimension"), op.Int("split_count")
	operands := c.operands(op.Operands)
	if split == concat {
		c.instruction(op, row, operands)
		return
	}
	if len(operands) != 1 {
		c.fail(op, "several operands that are split along dimension %d and joined along %d have no form in HLO", split, concat)
		return
	}
	t := op.Operands[0].Type
	if !t.IsStatic() {
		c.fail(op, "%s is split along dimension %d and joined along %d, for which HLO must know every size", t, split, concat)
		return
	}
	attrs := c.fields(op, row) + c.metadata(op)
	in := c.emit(row.opcode, t, row.opcode, operands, attrs)
	sizes := slices.Clone(t.Shape)
	sizes[split] /= n
	sizes = slices.Insert(sizes, split, n)
	in = c.emit("reshape", t.WithShape(sizes...), "reshape", []instruction{in}, "")
	var perm, moved []int
	for d := range t.Shape {
		if d == concat {
			perm = append(perm, split)
		}
		if d >= split {
			d++
		}
		perm = append(perm, d)
	}
	for _, d := range perm {
		moved = append(moved, sizes[d])
	}
	in = c.emit("transpose", t.WithShape(moved...), "transpose", []instruction{in}, ", dimensions="+braced(perm))
	v := op.Result()
	c.values[v.ID] = c.emit(c.want(v, "reshape"), v.Type, "reshape", []instruction{in}, "")
}

// while appends a loop. Its tuple holds the loop's values, then what the
// regions capture, which the body returns unchanged.
func (c *computation) while(op *ir.Op, row *row) {
	captured := captures(op.Regions...)
	names := []string{"cond", "body"}
	for i, region := range op.Regions {
		used := used(region)
		if i == 1 {
			for _, v := range captured {
				used[v] = true // returned unchanged
			}
		}
		in := c.computation(c.uses)
		in.unpack("state", region.Args, op.Operands, captured, c, func(v *ir.Value) bool { return used[v] })
		in.block(region)
		results := region.Terminator().Operands
		if i == 1 {
			in.result = in.tuple(slices.Concat(results, captured), region.Terminator().Attrs)
		} else {
			in.root(results, region.Terminator().Attrs)
		}
		names[i] = c.finish(names[i], in)
	}
	state := c.tuple(slices.Concat(op.Operands, captured), nil)
	c.layouts = state.layouts
	tuple := c.emit(row.opcode, state.typ, row.opcode, []instruction{state}, ", condition=%"+names[0]+", body=%"+names[1]+verbatim(op.Attrs, state.typ)+c.metadata(op))
	c.elements(op, tuple, op.Regions[1].Args)
}

// finish finishes the computation in and returns its name.
func (c *computation) finish(want string, in *computation) string {
	name := c.titles.unique(want)
	c.done = append(c.done, "%"+name+in.text())
	return name
}

// used are the values that ops of b and of its regions have as operands.
func used(b *ir.Block) map[*ir.Value]bool {
	m := make(map[*ir.Value]bool)
	b.Walk(func(op *ir.Op) {
		for _, v := range op.Operands {
			m[v] = true
		}
	})
	return m
}

// conditional appends a choice. Each branch takes a tuple of what it captures.
func (c *computation) conditional(op *ir.Op, row *row) {
	operands := []instruction{c.use(op.Operands[0])}
	var names []string
	for i, region := range op.Regions {
		captured := captures(region)
		in := c.computation(c.uses)
		in.unpack("captured", nil, nil, captured, c, func(*ir.Value) bool { return true })
		in.block(region)
		in.root(region.Terminator().Operands, region.Terminator().Attrs)
		names = append(names, "%"+c.finish(fmt.Sprintf("branch%d", i), in))
		operands = append(operands, c.tuple(captured, nil))
	}
	attrs := ", branch_computations={" + strings.Join(names, ", ") + "}"
	if op.Kind == ir.If {
		attrs = ", true_computation=" + names[0] + ", false_computation=" + names[1]
	}
	c.results(op, row.opcode, operands, attrs)
}

func (c *computation) call(op *ir.Op, row *row) {
	c.results(op, row.opcode, c.operands(op.Operands), ", to_apply=%"+c.callee(op, op.Sym("callee")))
}

// unknown appends an op that is not in package ir's table: one of byName, or one
// that was read from HLO, whose attributes are HLO's own, unread but for the computations
// that they name.
func (c *computation) unknown(op *ir.Op) {
	if write := byName[op.Name()]; write != nil {
		write(c, op)
		return
	}
	opcode, ok := strings.CutPrefix(op.Name(), "hlo.")
	if op.Kind != ir.Unknown || !ok || len(op.Results) != 1 {
		c.fail(op, "the op is not written as HLO text here: --emit=stablehlo keeps it")
		return
	}
	var attrs strings.Builder
	for _, a := range op.Attrs {
		switch v := a.Attr.(type) {
		case ir.Str:
			if a.Name != argumentAttr && !strings.HasPrefix(a.Name, "hlo.") {
				attrs.WriteString(", " + a.Name + "=" + string(v))
			}
		case ir.Sym:
			attrs.WriteString(", " + a.Name + "=%" + c.callee(op, string(v)))
		case ir.Array:
			attrs.WriteString(", " + a.Name + "={" + c.callees(op, v) + "}")
		}
	}
	if op.Attrs.Has(argumentAttr) {
		v := op.Result()
		c.layouts = op.Str("hlo.layout")
		c.values[v.ID] = c.line(c.want(v, opcode), v.Type, opcode+"("+op.Str(argumentAttr)+")"+attrs.String()+verbatim(op.Attrs, v.Type)+c.metadata(op))
		return
	}
	c.results(op, opcode, c.operands(op.Operands), attrs.String())
}

// argumentAttr is the attribute of an unknown op that keeps a text in the place of
// operands.
const argumentAttr = "argument"

func (c *computation) callees(op *ir.Op, list ir.Array) string {
	names := make([]string, len(list))
	for i, a := range list {
		sym, _ := a.(ir.Sym)
		names[i] = "%" + c.callee(op, string(sym))
	}
	return strings.Join(names, ", ")
}
