package rules

import (
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo"
)

// A pair is the two instructions that an operation is split into.
type pair struct{ start, done string }

// pairs are those with opcodes of their own. The instructions of others are async-start and so on,
// also where the text says add-start.
var pairs = []pair{{"all-gather-start", "all-gather-done"}, {"all-reduce-start", "all-reduce-done"}, {"collective-permute-start", "collective-permute-done"},
	{"copy-start", "copy-done"}, {"send", "send-done"}, {"recv", "recv-done"}}

// pairOf is the pair that an opcode is of; that of async-start where it splits another operation.
func pairOf(opcode string) *pair {
	for i := range pairs {
		if p := &pairs[i]; p.start == opcode || p.done == opcode {
			return p
		}
	}
	if _, split := hlo.Wrapped(opcode); split {
		return &pair{start: "async-start", done: "async-done"}
	}
	return nil
}

// paired checks that a start has an end, and an end a start.
func (c *checker) paired(op *ir.Op, opcode string, p *pair) {
	_, split := hlo.Wrapped(opcode)
	switch {
	case strings.HasSuffix(opcode, "-done") || split && strings.HasSuffix(opcode, "-update"):
		if len(op.Operands) > 0 && !c.begun(op.Operands[0], make(map[*ir.Value]bool)) {
			c.fail(op, opcode, "its operand does not come from any %s", p.start)
		}
	case !c.ends(op):
		c.fail(op, opcode, "it has no %s", p.done)
	default:
		if n := c.dones(op); n > 1 {
			c.fail(op, opcode, "it has %d %ss", n, p.done)
		}
	}
}

// dones is how often what op starts is ended.
func (c *checker) dones(op *ir.Op) int {
	n := 0
	for _, user := range c.uses[op.Result()] {
		if strings.HasSuffix(opcodeOf(user), "-done") {
			n++
		}
	}
	return n
}

// ends reports whether something goes on with what op starts. In another computation than the
// entry that may be what calls it.
func (c *checker) ends(op *ir.Op) bool {
	return slices.ContainsFunc(c.uses[op.Result()], func(user *ir.Op) bool { return c.f != c.main || user.Kind != ir.FuncReturn })
}

// begun reports whether v may be what a start has computed: not if it is a parameter of the
// program or an op that computes something else.
func (c *checker) begun(v *ir.Value, seen map[*ir.Value]bool) bool {
	if v.Def == nil || seen[v] {
		return v.Block != c.main.Body
	}
	seen[v] = true
	if from := v.Def; from.Kind == ir.Unknown {
		if p := pairOf(opcodeOf(from)); p != nil {
			return p.done != opcodeOf(from)
		}
	} else if len(from.Regions) > 0 || from.Kind == ir.Call {
		return true
	}
	return handsOn(v.Def) && slices.ContainsFunc(v.Def.Operands, func(o *ir.Value) bool { return c.begun(o, seen) })
}

// handsOn reports whether op computes nothing: its result is of its operands.
func handsOn(op *ir.Op) bool {
	switch op.Kind {
	case ir.GetTupleElement, ir.TupleOp, ir.OptimizationBarrier:
		return true
	}
	opcode := opcodeOf(op)
	return opcode == "copy" || opcode == "tuple"
}

// async checks an instruction that starts, continues or ends the computation that it calls: its
// type is ((operands), result, context…), the operands and the result each the first ones of
// what the computation takes and gives. Those that are not there yet come with an update.
func (c *checker) async(op *ir.Op, base string) {
	opcode, t := opcodeOf(op), op.Result().Type
	f := c.m.Func(c.calls(op))
	var takes, gives *ir.Type
	if f != nil {
		takes, gives = ir.Tuple(ir.Types(f.Params())...), hlo.Returns(f)
	}
	if strings.HasSuffix(opcode, "-done") {
		if gives != nil && !sameKind(gives, t) {
			c.fail(op, opcode, "is %s, what it calls returns %s", hlo.BareShape(t), hlo.BareShape(gives))
		}
		if from := op.Operands[0].Type; takes != nil && part(from, 0) != nil && len(part(from, 0).Elems) != len(takes.Elems) {
			c.fail(op, opcode, "%s of %s have been given", ir.Counted(len(part(from, 0).Elems), "operand"), ir.Counted(len(takes.Elems), "parameter"))
		}
		return
	}
	in, out := part(t, 0), part(t, 1)
	if in == nil || out == nil || in.Kind != ir.TupleType {
		return // the parser has seen that
	}
	if takes != nil && !isPrefix(in, takes) {
		c.fail(op, opcode, "has operands %s, what it calls takes %s", hlo.BareShape(in), hlo.BareShape(takes))
	}
	if gives != nil && !isPrefix(out, gives) {
		c.fail(op, opcode, "has the result %s, what it calls returns %s", hlo.BareShape(out), hlo.BareShape(gives))
	}
	before, operands := 0, op.Operands
	if strings.HasSuffix(opcode, "-update") {
		from := part(operands[0].Type, 0)
		if from == nil || !isPrefix(from, in) || !isPrefix(part(operands[0].Type, 1), out) || !sameContexts(operands[0].Type, t) {
			c.fail(op, opcode, "is %s, it goes on with %s", hlo.BareShape(t), hlo.BareShape(operands[0].Type))
			return
		}
		before, operands = len(from.Elems), operands[1:]
	}
	if len(operands) != len(in.Elems)-before {
		c.fail(op, opcode, "has %s more, its type %d", ir.Counted(len(operands), "operand"), len(in.Elems)-before)
		return
	}
	for i, v := range operands {
		if e := in.Elems[before+i]; !sameKind(v.Type, e) {
			c.fail(op, opcode, "operand %d is %s, its type says %s", i, hlo.BareShape(v.Type), hlo.BareShape(e))
		}
	}
}

// sameContexts reports whether two parts of an operation agree in what stands behind its operands
// and its result.
func sameContexts(t, u *ir.Type) bool {
	return len(t.Elems) >= 2 && len(u.Elems) >= 2 && slices.EqualFunc(t.Elems[2:], u.Elems[2:], sameKind)
}

// calls is the function that the operation of op calls, which its start says.
func (c *checker) calls(op *ir.Op) string {
	for {
		if f := op.Sym("calls"); f != "" {
			return f
		}
		opcode := opcodeOf(op)
		if base, _ := hlo.Wrapped(opcode); base == "call" && op.Sym("to_apply") != "" {
			return op.Sym("to_apply")
		}
		if strings.HasSuffix(opcode, "-start") || len(op.Operands) == 0 || op.Operands[0].Def == nil {
			return ""
		}
		op = op.Operands[0].Def
	}
}

// isPrefix reports whether t is u, or a tuple of the first parts of u.
func isPrefix(t, u *ir.Type) bool {
	if t == nil || u == nil {
		return t == u
	}
	if sameKind(t, u) {
		return true
	}
	if t.Kind != ir.TupleType || len(t.Elems) > 0 && (u.Kind != ir.TupleType || len(t.Elems) > len(u.Elems)) {
		return false
	}
	for i, e := range t.Elems {
		if !isPrefix(e, u.Elems[i]) {
			return false
		}
	}
	return true
}
