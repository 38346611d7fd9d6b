package hlo

import (
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// follows is the type of what in, an instruction without a row, computes; nil where its text
// must say it, or where its operands are not what it takes.
func (b *body) follows(in *syntax.Instruction, operands []*node) *ir.Type {
	var t *ir.Type // of the first operand
	if len(operands) > 0 {
		t = operands[0].typ
	}
	switch in.Opcode {
	case "after-all":
		return ir.Token()
	case "add-dependency", "batch-norm-inference", "copy", "domain":
		return t
	case "batch-norm-grad", "batch-norm-training":
		if d := b.number(in, "feature_index"); hasDim(t, d) && operands[1].typ.Rank() == 1 && operands[2].typ.Rank() == 1 {
			features := t.WithShape(t.Shape[d])
			return ir.Tuple(t, features, features)
		}
	case "call":
		return b.returned(in, operands)
	case "get-dimension-size":
		if hasDim(t, b.number(in, "dimensions")) {
			return ir.Tensor(ir.I32)
		}
	case "map":
		return b.mapped(in, operands)
	case "set-dimension-size":
		if d := b.number(in, "dimensions"); hasDim(t, d) && operands[1].typ.Equal(ir.Tensor(ir.I32)) {
			return boundedAt(t, d)
		}
	case "topk":
		if k := b.number(in, "k"); t.IsTensor() && t.Rank() > 0 && k >= 0 && k <= t.Shape[t.Rank()-1] {
			top := t.WithShape(append(slices.Clone(t.Shape[:t.Rank()-1]), k)...)
			return ir.Tuple(top, top.WithElem(ir.I32))
		}
	}
	return nil
}

// number is an attribute of in that is a number, or a list of one; -1 where it is neither.
func (b *body) number(in *syntax.Instruction, name string) int {
	a := b.find(in, name)
	if a == nil {
		return -1
	}
	n, err := syntax.ParseInt(strings.Trim(a.Text, "{} "))
	if err != nil {
		return -1
	}
	return n
}

func hasDim(t *ir.Type, d int) bool { return t.IsTensor() && d >= 0 && d < t.Rank() }

// boundedAt is t with a size that is not known in dimension d, of which that of t is the bound.
func boundedAt(t *ir.Type, d int) *ir.Type {
	bounds := make([]string, t.Rank())
	for i, n := range largest(t) {
		if bounds[i] = "?"; n != ir.Dynamic && (i == d || t.Shape[i] == ir.Dynamic) {
			bounds[i] = strconv.Itoa(n)
		}
	}
	u := *t.WithShape(slices.Clone(t.Shape)...)
	u.Shape[d], u.Text = ir.Dynamic, "#stablehlo.bounds<"+strings.Join(bounds, ", ")+">"
	return &u
}

// returned is what in, a call, returns.
func (b *body) returned(in *syntax.Instruction, operands []*node) *ir.Type {
	c := b.called(*b.find(in, "to_apply"))
	if c == nil {
		return nil
	}
	f := b.function(c)
	if b.Err != nil || !b.takes(f, operands) {
		return nil
	}
	var results []*ir.Type
	for _, r := range f.Results {
		results = append(results, r.Type)
	}
	if len(results) == 1 {
		return results[0]
	}
	return ir.Tuple(results...)
}

// takes reports whether f takes the operands.
func (b *body) takes(f *ir.Func, operands []*node) bool {
	return slices.EqualFunc(f.Params(), operands, func(p *ir.Value, n *node) bool { return shapesAgree(p.Type, n.typ) })
}

// mapped is what in, a map over all dimensions of its operands, computes.
func (b *body) mapped(in *syntax.Instruction, operands []*node) *ir.Type {
	c := b.called(*b.find(in, "to_apply"))
	if c == nil {
		return nil
	}
	f, t := b.function(c), operands[0].typ
	if b.Err != nil || !t.IsTensor() || len(f.Results) != 1 || !f.Results[0].Type.IsTensor() || len(f.Params()) != len(operands) {
		return nil
	}
	for i, n := range operands {
		if !n.typ.IsTensor() || !shapesAgree(n.typ.WithElem(t.Elem), t) || f.Params()[i].Type.Elem != n.typ.Elem {
			return nil
		}
	}
	for _, a := range in.Attrs {
		if dims, err := syntax.ParseInts(a.Text); a.Name == "dimensions" && (err != nil || !slices.Equal(dims, upTo(t.Rank()))) {
			return nil
		}
	}
	if !slices.ContainsFunc(in.Attrs, func(a syntax.Attr) bool { return a.Name == "dimensions" }) && t.Rank() > 0 {
		return nil
	}
	return t.WithElem(f.Results[0].Type.Elem)
}
