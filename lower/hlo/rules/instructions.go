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
	"all-gather-start":         func(c *checker, op *ir.Op) string { return first(started(c, op), c.gathers(op)) },
	"all-reduce-done":          done(1),
	"all-reduce-start":         reduces,
	"all-to-all":               exchanged,
	"batch-norm-grad":          normalised(0, 1, 1, 1, 0),
	"batch-norm-inference":     normalised(0, 1, 1, 1, 1),
	"batch-norm-training":      normalised(0, 1, 1),
	"call":                     func(c *checker, op *ir.Op) string { return first(composed(op), called("to_apply")(c, op)) },
	"collective-permute":       permuted,
	"collective-permute-done":  done(1),
	"collective-permute-start": func(c *checker, op *ir.Op) string { return first(started(c, op), permutes(c, op)) },
	"convolution":              convolved,
	"copy":                     follows,
	"copy-done":                done(0),
	"copy-start":               transfers(ir.Tensor(ir.UI32)),
	"domain":                   follows,
	"dynamic-reshape":          reshaped,
	"dynamic-slice":            sliced,
	"dynamic-update-slice":     sliced,
	"fusion": func(c *checker, op *ir.Op) string {
		return first(called("calls")(c, op), used(c.m.Func(op.Sym("calls"))))
	},
	"get-dimension-size": follows,
	"infeed":             func(_ *checker, op *ir.Op) string { return first(token(op, 0), ends(op)) },
	"map":                follows,
	"outfeed":            fed,
	"ragged-all-to-all":  ragged,
	"recv":               received,
	"recv-done": func(_ *checker, op *ir.Op) string {
		return first(sameEnds(op), gives(op, ir.Tuple(orToken(op, 0), ir.Token())))
	},
	"rng":                      random,
	"rng-get-and-update-state": func(_ *checker, op *ir.Op) string { return makes(op, ir.Tensor(ir.UI64, 2)) },
	"send":                     sent,
	"send-done":                func(_ *checker, op *ir.Op) string { return first(sameEnds(op), gives(op, ir.Token())) },
	"set-dimension-size":       follows,
	"stochastic-convert":       stochastic,
	"topk":                     follows,
	"tuple":                    func(_ *checker, op *ir.Op) string { return gives(op, ir.Tuple(ir.Types(op.Operands)...)) },
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

// kinds say what is wrong with an instruction that has an op beyond what the op keeps.
var kinds = map[ir.Kind]func(c *checker, op *ir.Op) string{
	ir.AllGather:      gathered,
	ir.BroadcastInDim: kept,
	ir.CollectivePermute: func(c *checker, op *ir.Op) string {
		return c.among(rowsOf(op.Literal("source_target_pairs")), channelOf(op))
	},
	ir.ReduceScatter: gathered,
}

// kept checks that a broadcast keeps the sizes of its operand, also those of 1.
func kept(_ *checker, op *ir.Op) string {
	x, t := op.Operands[0].Type, op.Result().Type
	from, to := hlo.Largest(x), hlo.Largest(t)
	for i, d := range op.Ints("broadcast_dimensions") {
		if i < len(from) && d >= 0 && d < len(to) && from[i] != to[d] {
			return fmt.Sprintf("dimension %d of its operand %s is dimension %d of %s, want one of that size", i, hlo.BareShape(x), d, hlo.BareShape(t))
		}
	}
	return ""
}

// sliced checks the indices of a slice that are numbers or one list, and the type of the result.
func sliced(_ *checker, op *ir.Op) string {
	x := op.Operands[0].Type
	n, t := 1, op.Operands[0].Type
	if opcodeOf(op) == "dynamic-update-slice" {
		n = 2
	} else if sizes, err := syntax.ParseInts(op.Str("dynamic_slice_sizes")); err == nil && x.IsTensor() {
		t = x.WithShape(sizes...)
	}
	for i, v := range op.Operands[n:] {
		if u := v.Type; !u.IsTensor() || !u.Elem.IsInt() || !x.IsTensor() || u.Rank() == 1 && u.Shape[0] != x.Rank() {
			return fmt.Sprintf("index %d is %s, want integers for the dimensions of %s", i, hlo.BareShape(u), hlo.BareShape(x))
		}
	}
	return makes(op, t)
}

// used checks that what a fusion computes is used: each instruction by another, the root by none.
func used(f *ir.Func) string {
	if f == nil || f.Return() == nil {
		return ""
	}
	uses := f.Uses()
	if root := f.Return().Operands; len(root) == 1 && root[0].Def != nil && len(root[0].Def.Results) == 1 && uses[root[0].ID] > 1 {
		return fmt.Sprintf("%s, what %s returns, is used in it", root[0].Name, f.Name)
	}
	for i, v := range f.Params() {
		if uses[v.ID] == 0 {
			return fmt.Sprintf("parameter %d of %s is not used", i, f.Name)
		}
	}
	for _, op := range f.Body.Ops {
		if len(op.Results) == 1 && uses[op.Result().ID] == 0 {
			return fmt.Sprintf("%s of %s is not used", op.Result().Name, f.Name)
		}
	}
	return ""
}

// sameEnds checks that both parts of a transfer say whether it is one to the host.
func sameEnds(op *ir.Op) string {
	const name = "is_host_transfer"
	if from := op.Operands[0].Def; from != nil && (opcodeOf(from) == "send" || opcodeOf(from) == "recv") && (from.Str(name) == "true") != (op.Str(name) == "true") {
		return fmt.Sprintf("%s is not what its beginning says", name)
	}
	return ""
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

// started checks that op is (operands, results, context…).
func started(_ *checker, op *ir.Op) string {
	t, in := op.Result().Type, op.Operands
	if len(in) == 4 && op.Attrs.Has("slice_sizes") { // in place: buffers and offsets in them
		return ""
	}
	if t.Kind != ir.TupleType || len(t.Elems) < 2 || !sameKind(t.Elems[0], together(in)) {
		return fmt.Sprintf("is %s, want (%s, results)", hlo.BareShape(t), hlo.BareShape(together(in)))
	}
	return ""
}

// reduces checks that op is what it reduces.
func reduces(_ *checker, op *ir.Op) string { return makes(op, together(op.Operands)) }

// transfers checks that op is (operand, operand, context).
func transfers(context *ir.Type) func(*checker, *ir.Op) string {
	return func(_ *checker, op *ir.Op) string {
		t := op.Operands[0].Type
		return makes(op, ir.Tuple(t, t, context))
	}
}

func sent(_ *checker, op *ir.Op) string {
	return first(token(op, 1), gives(op, ir.Tuple(op.Operands[0].Type, ir.Tensor(ir.UI32), ir.Token())))
}

func received(_ *checker, op *ir.Op) string {
	t := part(op.Result().Type, 0)
	if t == nil {
		return ""
	}
	return first(token(op, 0), gives(op, ir.Tuple(t, ir.Tensor(ir.UI32), ir.Token())))
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

// composed checks that the call of a composite says in its frontend attributes what it is of.
func composed(op *ir.Op) string {
	_, name, _ := strings.Cut(op.Str("frontend_attributes"), `composite.name="`)
	if op.Str("is_composite") == "true" && (name == "" || name[0] == '"') {
		return "is_composite is true, and its frontend_attributes have no composite.name"
	}
	return ""
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
		if !v.Type.IsTensor() || v.Type.Rank() != 0 || !t.IsTensor() || v.Type.Elem != t.Elem {
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
