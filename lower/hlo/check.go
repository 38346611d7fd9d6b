package hlo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// The functions in this file look into what is carried through unread, as far
// as HLO's own parser refuses it.

// checks are the attributes whose text is looked into.
var checks = map[string]func(in *syntax.Instruction, text string) error{
	"window":          checkWindow,
	"result_accuracy": checkAccuracy,
	"dim_labels":      checkLabels,
}

// check reports what is wrong with an attribute of in that is carried through.
func (p *parser) check(in *syntax.Instruction, a syntax.Attr) {
	if f := checks[a.Name]; f != nil {
		if err := f(in, a.Text); err != nil {
			p.FailAt(a.At, "%s: %v", a.Name, err)
		}
	}
}

func checkWindow(_ *syntax.Instruction, text string) error {
	return convWindow().parse(nil, text, new(ir.Attrs))
}

func checkAccuracy(in *syntax.Instruction, _ string) error {
	return fmt.Errorf("%s has no accuracy", in.Opcode)
}

// checkLabels looks at the dimension numbers of a convolution, b01f_01io->b01f:
// each of three parts has two letters and the spatial dimensions 0, 1, ….
func checkLabels(_ *syntax.Instruction, text string) error {
	in, out, ok := strings.Cut(text, "->")
	lhs, rhs, ok2 := strings.Cut(in, "_")
	if !ok || !ok2 {
		return fmt.Errorf("want dimension numbers such as b0f_0io->b0f, found %s", text)
	}
	if len(lhs) != len(rhs) || len(lhs) != len(out) {
		return fmt.Errorf("%s have %d, %d and %d dimensions, want as many", text, len(lhs), len(rhs), len(out))
	}
	for _, part := range []struct{ text, letters string }{{lhs, "bf"}, {rhs, "io"}, {out, "bf"}} {
		for i := range len(part.text) {
			c := part.text[i]
			spatial := int(c) - '0'
			letter := strings.IndexByte(part.letters, c) >= 0
			if !letter && c != '?' && (spatial < 0 || spatial >= len(part.text)-2) || c != '?' && strings.Count(part.text, string(c)) > 1 {
				return fmt.Errorf("%s are no dimension numbers: %q in %s", text, string(c), part.text)
			}
		}
		for _, c := range part.letters {
			if !strings.ContainsRune(part.text, c) {
				return fmt.Errorf("%s are no dimension numbers: %s has no %q", text, part.text, string(c))
			}
		}
	}
	return nil
}

// constraints compares the shapes that a custom call wants its operands in with those that it
// gets.
func (b *body) constraints(in *syntax.Instruction, operands []*node) {
	i := slices.IndexFunc(in.Attrs, func(a syntax.Attr) bool { return a.Name == "operand_layout_constraints" })
	if i < 0 {
		return
	}
	a := in.Attrs[i]
	s := &syntax.Scanner{Src: a.Text, End: len(a.Text)}
	s.Expect("{")
	n := 0
	for ; !s.Accept("}") && s.Err == nil; n++ {
		if n > 0 {
			s.Expect(",")
		}
		want := s.Shape()
		if s.Err == nil && n < len(operands) && !ShapesAgree(want.Type, operands[n].typ) {
			b.FailAt(a.At, "%s: operand %d is %s, the constraint %s", a.Name, n, BareShape(operands[n].typ), BareShape(want.Type))
		}
	}
	if s.Err != nil {
		b.FailAt(a.At, "%s: %s", a.Name, s.Err.Msg)
	}
	if n != len(operands) {
		b.FailAt(a.At, "%s: %s for %s", a.Name, ir.Counted(n, "constraint"), ir.Counted(len(operands), "operand"))
	}
}

// nonEmpty checks that what receives is a tuple with something in it.
func (b *body) nonEmpty(in *syntax.Instruction) {
	if t := in.Shape.Type; (in.Opcode == "infeed" || in.Opcode == "recv") && (t.Kind != ir.TupleType || len(t.Elems) == 0) {
		b.FailAt(in.At, "%s is %s, want a tuple that is not empty", in.Opcode, BareShape(t))
	}
}

// scanned checks the number of operands of a scan against what it applies, and its carries.
func (b *body) scanned(in *syntax.Instruction) {
	if in.Opcode != "scan" {
		return
	}
	c := b.called(*b.find(in, "to_apply"))
	carries, err := syntax.ParseInt(b.find(in, "num_carries").Text)
	switch {
	case b.Err != nil || err != nil:
	case len(c.Parameters()) != len(in.Operands):
		b.FailAt(in.OpAt, "scan has %s, %s takes %d", ir.Counted(len(in.Operands), "operand"), c.Name, len(c.Parameters()))
	case carries > len(in.Operands):
		b.FailAt(in.OpAt, "scan carries %s and has %s", ir.Counted(carries, "value"), ir.Counted(len(in.Operands), "operand"))
	}
}

// sameChannel checks that the end of a transfer has the channel of its beginning.
func (b *body) sameChannel(in *syntax.Instruction, operands []*node) {
	if in.Opcode != "send-done" && in.Opcode != "recv-done" || len(operands) == 0 || operands[0].value == nil || operands[0].value.Def == nil {
		return
	}
	from := operands[0].value.Def
	if from.Spelling != "hlo.send" && from.Spelling != "hlo.recv" {
		return
	}
	have := ""
	for _, a := range in.Attrs {
		if a.Name == "channel_id" {
			have = a.Text
		}
	}
	if want := from.Str("channel_id"); have != want {
		b.FailAt(in.OpAt, "%s has %s, its operand has %s", in.Opcode, cmp.Or(have, "no channel_id"), cmp.Or(want, "none"))
	}
}

// checkAsync reports what is wrong with the update or done of an asynchronous
// operation: its operand is the start, or an update of it, with the same
// attributes.
func (b *body) checkAsync(in *syntax.Instruction, operands []*node) {
	start := strings.HasSuffix(in.Opcode, "-start")
	op, split := Wrapped(in.Opcode)
	if _, own := otherOpcodes[in.Opcode]; !split || own && op != "async" {
		return
	}
	if t := in.Shape.Type; !strings.HasSuffix(in.Opcode, "-done") && (t.Kind != ir.TupleType || len(t.Elems) < 2 || t.Elems[0].Kind != ir.TupleType) {
		b.FailAt(in.At, "%s is %s, want ((operands), results, …)", in.Name, BareShape(t))
		return
	}
	if start {
		return
	}
	if len(operands) == 0 {
		b.FailAt(in.OpAt, "%s has no operand", in.Opcode)
		return
	}
	v := operands[0].value
	if v == nil || v.Def == nil || v.Def.Kind != ir.Unknown {
		return
	}
	from := v.Def
	prior := strings.TrimPrefix(from.Spelling, "hlo.")
	priorOp, ok := Wrapped(prior)
	if !ok {
		return
	}
	if strings.HasSuffix(prior, "-done") {
		b.FailAt(in.OpAt, "%s takes %s, which is done", in.Opcode, prior)
	}
	if priorOp != op && priorOp != "async" && op != "async" {
		b.FailAt(in.OpAt, "%s takes %s", in.Opcode, prior)
	}
	for _, a := range in.Attrs {
		switch a.Name {
		case "calls":
			calls := firstPart(from).Sym("calls")
			if c := b.called(a); c != nil && calls != "" && calls != c.Name {
				b.FailAt(a.At, "%s calls %s, the first part calls %s", in.Opcode, c.Name, calls)
			}
		case "async_execution_thread":
			if have := from.Str(a.Name); have != a.Text {
				b.FailAt(a.At, "%s runs on %s, %s on %s", in.Opcode, a.Text, prior, cmp.Or(have, `"main"`))
			}
		}
	}
}

// firstPart is the -start that an -update goes back to.
func firstPart(op *ir.Op) *ir.Op {
	for strings.HasSuffix(op.Spelling, "-update") && op.Operands[0].Def != nil {
		op = op.Operands[0].Def
	}
	return op
}
