package rules

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo"
	"ppc/lower/hlo/syntax"
)

// instructions say what is wrong with an instruction that has no op, by its opcode; "" where
// nothing is.
var instructions = map[string]func(c *checker, op *ir.Op) string{
	"add-dependency":           func(c *checker, op *ir.Op) string { return first(token(op, 1), follows(c, op)) },
	"all-gather-done":          done(1),
	"all-gather-start":         started,
	"all-reduce-done":          done(1),
	"all-reduce-start":         reduces,
	"all-to-all":               exchanged,
	"batch-norm-grad":          normalised(0, 1, 1, 1, 0),
	"batch-norm-inference":     normalised(0, 1, 1, 1, 1),
	"batch-norm-training":      normalised(0, 1, 1),
	"call":                     called("to_apply"),
	"collective-permute":       permuted,
	"collective-permute-done":  done(1),
	"collective-permute-start": func(c *checker, op *ir.Op) string { return first(started(c, op), permutes(c, op)) },
	"convolution":              convolved,
	"copy":                     follows,
	"copy-done":                done(0),
	"copy-start":               transfers(ir.Tensor(ir.UI32)),
	"domain":                   follows,
	"dynamic-reshape":          reshaped,
	"fusion":                   called("calls"),
	"get-dimension-size":       follows,
	"infeed":                   func(_ *checker, op *ir.Op) string { return first(token(op, 0), ends(op)) },
	"map":                      follows,
	"outfeed":                  fed,
	"ragged-all-to-all":        ragged,
	"recv":                     received,
	"recv-done":                func(_ *checker, op *ir.Op) string { return makes(op, ir.Tuple(orToken(op, 0), ir.Token())) },
	"rng":                      random,
	"rng-get-and-update-state": func(_ *checker, op *ir.Op) string { return makes(op, ir.Tensor(ir.UI64, 2)) },
	"send":                     sent,
	"send-done":                func(_ *checker, op *ir.Op) string { return makes(op, ir.Token()) },
	"set-dimension-size":       follows,
	"stochastic-convert":       stochastic,
	"topk":                     follows,
	"tuple":                    func(_ *checker, op *ir.Op) string { return makes(op, ir.Tuple(ir.Types(op.Operands)...)) },
}

func first(wrong ...string) string {
	for _, w := range wrong {
		if w != "" {
			return w
		}
	}
	return ""
}

// follows compares the type of op with that which follows from its operands.
func follows(c *checker, op *ir.Op) string {
	t := hlo.Follows(opcodeOf(op), ir.Types(op.Operands), op.Str, c.m.Func(op.Sym("to_apply")))
	if t == nil {
		return fmt.Sprintf("it does not fit its operands %s", hlo.BareShape(ir.Tuple(ir.Types(op.Operands)...)))
	}
	return makes(op, t)
}

// token checks that operand i is a token.
func token(op *ir.Op, i int) string {
	if i >= len(op.Operands) || op.Operands[i].Type.Kind == ir.TokenType {
		return ""
	}
	return fmt.Sprintf("operand %d is %s, want a token", i, hlo.BareShape(op.Operands[i].Type))
}

// together is the type of values that an instruction hands on: of the one, or of their tuple.
func together(vs []*ir.Value) *ir.Type {
	if len(vs) == 1 {
		return vs[0].Type
	}
	return ir.Tuple(ir.Types(vs)...)
}

// done checks that op is part i of what has been started, or all of it: texts have the type of
// a start with its operands and contexts, or without.
func done(i int) func(*checker, *ir.Op) string {
	return func(_ *checker, op *ir.Op) string {
		all := op.Operands[0].Type
		if t := part(all, i); t != nil && makes(op, t) == "" {
			return ""
		}
		return makes(op, all)
	}
}

// started checks that op is (operands, results, context…), or the results alone.
func started(_ *checker, op *ir.Op) string {
	t, in := op.Result().Type, op.Operands
	if len(in) == 4 && op.Attrs.Has("slice_sizes") { // in place: buffers and offsets in them
		return ""
	}
	if t.Kind == ir.TupleType && (len(t.Elems) < 2 || !sameKind(t.Elems[0], together(in))) {
		return fmt.Sprintf("is %s, want (%s, results)", hlo.BareShape(t), hlo.BareShape(together(in)))
	}
	return ""
}

// reduces checks that op is what it reduces, with its operands before it or without.
func reduces(_ *checker, op *ir.Op) string {
	t := together(op.Operands)
	if makes(op, ir.Tuple(t, t)) == "" {
		return ""
	}
	return makes(op, t)
}

// transfers checks that op is (operand, operand, context).
func transfers(context *ir.Type) func(*checker, *ir.Op) string {
	return func(_ *checker, op *ir.Op) string {
		t := op.Operands[0].Type
		return makes(op, ir.Tuple(t, t, context))
	}
}

func sent(_ *checker, op *ir.Op) string {
	return first(token(op, 1), makes(op, ir.Tuple(op.Operands[0].Type, ir.Tensor(ir.UI32), ir.Token())))
}

func received(_ *checker, op *ir.Op) string {
	t := part(op.Result().Type, 0)
	if t == nil {
		return ""
	}
	return first(token(op, 0), makes(op, ir.Tuple(t, ir.Tensor(ir.UI32), ir.Token())))
}

// orToken is part i of what op goes on with.
func orToken(op *ir.Op, i int) *ir.Type {
	if t := part(op.Operands[0].Type, i); t != nil {
		return t
	}
	return ir.Token()
}

// ends checks that op is (data, token).
func ends(op *ir.Op) string {
	t := op.Result().Type
	if len(t.Elems) == 2 && t.Elems[1].Kind == ir.TokenType {
		return ""
	}
	return fmt.Sprintf("is %s, want (data, token[])", hlo.BareShape(t))
}

func fed(_ *checker, op *ir.Op) string {
	if text := op.Str("outfeed_shape"); text != "" {
		s := &syntax.Scanner{Src: text, End: len(text)}
		if want := s.Shape(); s.Err == nil && !hlo.ShapesAgree(want.Type, op.Operands[0].Type) {
			return fmt.Sprintf("its operand is %s, outfeed_shape says %s", hlo.BareShape(op.Operands[0].Type), hlo.BareShape(want.Type))
		}
	}
	return first(token(op, 1), makes(op, ir.Token()))
}

// called checks that op has the operands and the type of the computation that it calls.
func called(attr string) func(*checker, *ir.Op) string {
	return func(c *checker, op *ir.Op) string {
		f := c.m.Func(op.Sym(attr))
		if f == nil {
			return ""
		}
		if t := hlo.Returns(f); !sameKind(op.Result().Type, t) {
			return fmt.Sprintf("is %s, %s returns %s", hlo.BareShape(op.Result().Type), f.Name, hlo.BareShape(t))
		}
		return takes(f, op.Operands)
	}
}

// normalised checks that the operands of a batch norm are floating-point numbers, those of rank 1
// as many as there are features.
func normalised(ranks ...int) func(*checker, *ir.Op) string {
	return func(c *checker, op *ir.Op) string {
		x := op.Operands[0].Type
		d, err := syntax.ParseInt(op.Str("feature_index"))
		if err != nil || !x.IsTensor() || d < 0 || d >= x.Rank() {
			return fmt.Sprintf("feature_index %s is no dimension of %s", op.Str("feature_index"), hlo.BareShape(x))
		}
		for i, v := range op.Operands {
			want := x
			if ranks[i] == 1 {
				want = x.WithShape(x.Shape[d])
			}
			if !v.Type.IsTensor() || !v.Type.Elem.IsFloat() || !sameKind(v.Type, want) {
				return fmt.Sprintf("operand %d is %s, want floating-point numbers as in %s", i, hlo.BareShape(v.Type), hlo.BareShape(want))
			}
		}
		return follows(c, op)
	}
}

func random(_ *checker, op *ir.Op) string {
	if len(op.Operands) != 2 {
		return fmt.Sprintf("has %s, want 2", ir.Counted(len(op.Operands), "operand"))
	}
	t := op.Result().Type
	for i, v := range op.Operands {
		if !v.Type.IsTensor() || v.Type.Rank() != 0 || !t.IsTensor() || !sameKind(v.Type, ir.Tensor(t.Elem)) {
			return fmt.Sprintf("operand %d is %s, want a scalar of the type of its result %s", i, hlo.BareShape(v.Type), hlo.BareShape(t))
		}
	}
	if op.Str("distribution") == "rng_normal" && !t.Elem.IsFloat() {
		return fmt.Sprintf("is %s, want floating-point numbers of a normal distribution", hlo.BareShape(t))
	}
	return ""
}

func stochastic(_ *checker, op *ir.Op) string {
	x, bits, t := op.Operands[0].Type, op.Operands[1].Type, op.Result().Type
	if !x.IsTensor() || !bits.IsTensor() || !t.IsTensor() || !x.Elem.IsFloat() || bits.Elem.Class() != ir.Unsigned || x.Elem.Bits() != bits.Elem.Bits() || !slices.Equal(x.Shape, bits.Shape) || !slices.Equal(x.Shape, t.Shape) {
		return fmt.Sprintf("is %s of %s and %s, want floating-point numbers and as many random bits, unsigned and as wide", hlo.BareShape(t), hlo.BareShape(x), hlo.BareShape(bits))
	}
	return ""
}

func reshaped(_ *checker, op *ir.Op) string {
	x, t := op.Operands[0].Type, op.Result().Type
	if !x.IsTensor() || !t.IsTensor() || x.Elem != t.Elem || len(op.Operands) != t.Rank()+1 {
		return fmt.Sprintf("is %s of %s and %s, want the elements of the former and a size for each dimension", hlo.BareShape(t), hlo.BareShape(x), ir.Counted(len(op.Operands)-1, "size"))
	}
	for i, v := range op.Operands[1:] {
		if !v.Type.Equal(ir.Tensor(ir.I32)) {
			return fmt.Sprintf("size %d is %s, want s32[]", i, hlo.BareShape(v.Type))
		}
	}
	return ""
}

// convolved compares the windows of a convolution with its dimension numbers and its kernel.
func convolved(_ *checker, op *ir.Op) string {
	in, _, _ := strings.Cut(op.Str("dim_labels"), "->")
	_, labels, _ := strings.Cut(in, "_")
	var size []int
	for _, w := range strings.Fields(strings.Trim(op.Str("window"), "{}")) {
		if text, ok := strings.CutPrefix(w, "size="); ok {
			size, _ = syntax.ParseList(text, "x")
		}
	}
	kernel := op.Operands[1].Type
	if len(size) != max(len(labels)-2, 0) {
		return fmt.Sprintf("its windows have %s, %s has %d in space", ir.Counted(len(size), "dimension"), op.Str("dim_labels"), len(labels)-2)
	}
	if kernel.Rank() != len(labels) {
		return fmt.Sprintf("the kernel is %s, %s has %s", hlo.BareShape(kernel), op.Str("dim_labels"), ir.Counted(len(labels), "dimension"))
	}
	for i, label := range labels {
		if d := int(label - '0'); d >= 0 && d < len(size) && kernel.Shape[i] != size[d] {
			return fmt.Sprintf("its windows have size %d in dimension %d, the kernel %s", size[d], d, hlo.BareShape(kernel))
		}
	}
	return ""
}
