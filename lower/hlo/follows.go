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
	types := make([]*ir.Type, len(operands))
	for i, n := range operands {
		types[i] = n.typ
	}
	var callee *ir.Func
	if in.Opcode == "call" || in.Opcode == "map" {
		c := b.called(*b.find(in, "to_apply"))
		if c == nil {
			return nil
		}
		if callee = b.function(c); b.Err != nil {
			return nil
		}
	}
	if in.Opcode == "map" && len(types) > 0 { // whose dimensions are read here alone
		var text string
		for _, a := range in.Attrs {
			if a.Name == "dimensions" {
				text = a.Text
			}
		}
		if dims, err := syntax.ParseInts(text); (text != "" || types[0].Rank() > 0) && (err != nil || !slices.Equal(dims, upTo(types[0].Rank()))) {
			return nil
		}
	}
	return Follows(in.Opcode, types, func(name string) string {
		for _, a := range in.Attrs {
			if a.Name == name {
				return a.Text
			}
		}
		return ""
	}, callee)
}

// Follows is the type of what an instruction without a row computes on operands of these types,
// by the texts of its attributes and the function that it calls, if it is one that calls one;
// nil where the opcode leaves it open, or where the operands are not what it takes.
func Follows(opcode string, operands []*ir.Type, text func(name string) string, callee *ir.Func) *ir.Type {
	var t *ir.Type // of the first operand
	if len(operands) > 0 {
		t = operands[0]
	}
	switch opcode {
	case "after-all":
		return ir.Token()
	case "add-dependency", "batch-norm-inference", "copy", "domain":
		return t
	case "batch-norm-grad", "batch-norm-training":
		if d := oneNumber(text("feature_index")); hasDim(t, d) && operands[1].Rank() == 1 && operands[2].Rank() == 1 {
			features := t.WithShape(t.Shape[d])
			return ir.Tuple(t, features, features)
		}
	case "call":
		return returned(callee, operands)
	case "get-dimension-size":
		if hasDim(t, oneNumber(text("dimensions"))) {
			return ir.Tensor(ir.I32)
		}
	case "map":
		return mapped(callee, operands)
	case "set-dimension-size":
		if d := oneNumber(text("dimensions")); hasDim(t, d) && operands[1].Equal(ir.Tensor(ir.I32)) {
			return boundedAt(t, d)
		}
	case "topk":
		if k := oneNumber(text("k")); t.IsTensor() && t.Rank() > 0 && k >= 0 && k <= t.Shape[t.Rank()-1] {
			top := t.WithShape(append(slices.Clone(t.Shape[:t.Rank()-1]), k)...)
			return ir.Tuple(top, top.WithElem(ir.I32))
		}
	}
	return nil
}

// oneNumber is the value of an attribute that is a number, or a list of one; -1 where it is neither.
func oneNumber(text string) int {
	n, err := syntax.ParseInt(strings.Trim(text, "{} "))
	if err != nil {
		return -1
	}
	return n
}

func hasDim(t *ir.Type, d int) bool { return t.IsTensor() && d >= 0 && d < t.Rank() }

// boundedAt is t with a size that is not known in dimension d, of which that of t is the bound.
func boundedAt(t *ir.Type, d int) *ir.Type {
	bounds := make([]string, t.Rank())
	for i, n := range Largest(t) {
		if bounds[i] = "?"; n != ir.Dynamic && (i == d || t.Shape[i] == ir.Dynamic) {
			bounds[i] = strconv.Itoa(n)
		}
	}
	u := *t.WithShape(slices.Clone(t.Shape)...)
	u.Shape[d], u.Text = ir.Dynamic, "#stablehlo.bounds<"+strings.Join(bounds, ", ")+">"
	return &u
}

// returned is what a call of f returns; nil where f does not take the operands.
func returned(f *ir.Func, operands []*ir.Type) *ir.Type {
	if !takes(f, operands) {
		return nil
	}
	return Returns(f)
}

// takes reports whether f takes the operands.
func takes(f *ir.Func, operands []*ir.Type) bool {
	return slices.EqualFunc(f.Params(), operands, func(p *ir.Value, t *ir.Type) bool { return ShapesAgree(p.Type, t) })
}

// Returns is what the computation that f has been read from returns.
func Returns(f *ir.Func) *ir.Type {
	var results []*ir.Type
	for _, r := range f.Results {
		results = append(results, r.Type)
	}
	return tupleOf(results)
}

// mapped is what a map of f computes, which is over all dimensions of its operands whatever it
// says of dimensions.
func mapped(f *ir.Func, operands []*ir.Type) *ir.Type {
	t := operands[0]
	if !t.IsTensor() || len(f.Results) != 1 || !f.Results[0].Type.IsTensor() || len(f.Params()) != len(operands) {
		return nil
	}
	for i, u := range operands {
		if !u.IsTensor() || !ShapesAgree(u.WithElem(t.Elem), t) || f.Params()[i].Type.Elem != u.Elem {
			return nil
		}
	}
	return t.WithElem(f.Results[0].Type.Elem)
}
