// Package rules holds what XLA's verifier asks of HLO text beyond what the ops of package ir
// keep: of the instructions that have no op, of pairs of them, and of the header.
//
// XLA's parser, and so [hlo.Parse], reads texts that break these rules. [Verify] checks a module
// as it has been read.
package rules

import (
	"fmt"
	"strings"

	"ppc/ir"
	"ppc/ir/verify"
	"ppc/lower/hlo"
)

// Verify reports the rules that m, which has been read from HLO text and keeps those of package
// verify, breaks, as a [*verify.Errors].
func Verify(m *ir.Module) error {
	c := &checker{m: m, main: m.Main()}
	c.header()
	for _, f := range m.Funcs {
		if f.Body != nil {
			c.function(f)
		}
	}
	if len(c.errs) == 0 {
		return nil
	}
	return &verify.Errors{List: c.errs}
}

// maxErrors bounds what is reported of a text that is wrong throughout.
const maxErrors = 1000

// A checker checks the functions of a module, one after the other.
type checker struct {
	m    *ir.Module
	main *ir.Func
	f    *ir.Func
	uses map[*ir.Value][]*ir.Op // of the starts of f: what uses them
	errs []*verify.Error
}

// fail reports a broken rule of op, or of the function where op is nil.
func (c *checker) fail(op *ir.Op, rule, format string, args ...any) {
	if len(c.errs) < maxErrors {
		c.errs = append(c.errs, &verify.Error{Func: c.f, Op: op, Rule: &ir.Rule{Label: "hlo." + rule, Msg: fmt.Sprintf(format, args...)}})
	}
}

func (c *checker) function(f *ir.Func) {
	c.f, c.uses = f, make(map[*ir.Value][]*ir.Op)
	f.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Operands {
			if v.Def != nil && v.Def.Kind == ir.Unknown && pairOf(opcodeOf(v.Def)) != nil {
				c.uses[v] = append(c.uses[v], op)
			}
		}
	})
	for _, v := range f.Params() {
		c.origin(nil, v.Attrs.Str("hlo.origin"), v.Type)
	}
	c.origin(nil, f.Attrs.Str("hlo.origin"), hlo.Returns(f))
	f.Body.Walk(c.op)
}

// opcodeOf is the opcode of an instruction that has no op; "" for one that has.
func opcodeOf(op *ir.Op) string {
	if op.Kind != ir.Unknown || len(op.Results) != 1 {
		return ""
	}
	opcode, ok := strings.CutPrefix(op.Spelling, "hlo.")
	if !ok {
		return ""
	}
	return opcode
}

func (c *checker) op(op *ir.Op) {
	opcode := opcodeOf(op)
	if opcode == "" {
		wrong := ""
		if check := kinds[op.Kind]; check != nil {
			wrong = check(c, op)
		}
		c.groups(op, strings.ReplaceAll(strings.TrimPrefix(op.Kind.String(), "stablehlo."), "_", "-"))
		if wrong = first(wrong, peopled(op), bounded(op)); wrong != "" {
			c.fail(op, strings.TrimPrefix(op.Kind.String(), "stablehlo."), "%s", wrong)
		}
		if len(op.Results) == 1 {
			c.origin(op, op.Str("hlo.origin"), op.Result().Type)
		}
		return
	}
	c.origin(op, op.Str("origin"), op.Result().Type)
	c.aliasing(op, opcode)
	if p := pairOf(opcode); p != nil {
		c.paired(op, opcode, p)
	}
	c.groups(op, opcode)
	if op.Str("use_global_device_ids") == "true" && op.Str("channel_id") == "" {
		c.fail(op, opcode, "use_global_device_ids is true, and there is no channel_id")
	}
	if wrong := tensors(op, opcode); wrong != "" {
		c.fail(op, opcode, "%s", wrong)
		return
	}
	if check := instructions[opcode]; check != nil {
		if wrong := check(c, op); wrong != "" {
			c.fail(op, opcode, "%s", wrong)
		}
		return
	}
	if base, split := hlo.Wrapped(opcode); split {
		c.async(op, base)
	}
}

// tensors checks that what takes tensors, or computes one of them, has no tuple there.
func tensors(op *ir.Op, opcode string) string {
	switch t := op.Result().Type; {
	case hlo.Elementwise(opcode) && t.Kind == ir.TupleType:
		return fmt.Sprintf("is computed element by element, not %s", hlo.BareShape(t))
	case !hlo.Gives(opcode, t):
		return fmt.Sprintf("computes no %s", hlo.BareShape(t))
	}
	for i, v := range op.Operands {
		if hlo.OfTensors(opcode) && v.Type.Kind == ir.TupleType {
			return fmt.Sprintf("operand %d is %s, want a tensor", i, hlo.BareShape(v.Type))
		}
	}
	return ""
}

// gives says how the result of op is none of type t, of the same precision; "" where it is one.
func gives(op *ir.Op, t *ir.Type) string {
	if got := op.Result().Type; !hlo.ShapesAgree(got, t) {
		return fmt.Sprintf("is %s, its operands make %s", hlo.BareShape(got), hlo.BareShape(t))
	}
	return ""
}

// makes says how the result of op is none of type t; "" where it is one. Numbers may be of
// another precision, as XLA makes them on some machines.
func makes(op *ir.Op, t *ir.Type) string {
	if got := op.Result().Type; !sameKind(got, t) {
		return fmt.Sprintf("is %s, its operands make %s", hlo.BareShape(got), hlo.BareShape(t))
	}
	return ""
}

// sameKind reports whether t and u agree but for the precision of floating-point numbers.
func sameKind(t, u *ir.Type) bool {
	if t.Kind == ir.TupleType && u.Kind == ir.TupleType {
		if len(t.Elems) != len(u.Elems) {
			return false
		}
		for i, e := range t.Elems {
			if !sameKind(e, u.Elems[i]) {
				return false
			}
		}
		return true
	}
	if t.IsTensor() && u.IsTensor() && t.Elem.IsFloat() && u.Elem.IsFloat() {
		same := *t // with its bounds
		same.Elem = u.Elem
		t = &same
	}
	return hlo.ShapesAgree(t, u)
}

// part is element i of a tuple; nil where t has none.
func part(t *ir.Type, path ...int) *ir.Type {
	for _, i := range path {
		if t == nil || t.Kind != ir.TupleType || i < 0 || i >= len(t.Elems) {
			return nil
		}
		t = t.Elems[i]
	}
	return t
}

// takes says how the computation f does not take operands of these types; "" where it does.
func takes(f *ir.Func, operands []*ir.Value) string {
	params := f.Params()
	if len(params) != len(operands) {
		return fmt.Sprintf("has %s, %s takes %d", ir.Counted(len(operands), "operand"), f.Name, len(params))
	}
	for i, v := range operands {
		if !sameKind(v.Type, params[i].Type) {
			return fmt.Sprintf("operand %d is %s, parameter %d of %s is %s", i, hlo.BareShape(v.Type), i, f.Name, hlo.BareShape(params[i].Type))
		}
	}
	return ""
}
