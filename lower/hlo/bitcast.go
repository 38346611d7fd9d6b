package hlo

import (
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// The attributes of a bitcast that say how its operand and its result are laid
// out, the minor dimension first, where one is not in the default order; and
// whether one is in tiles. They are no attributes in HLO.
const (
	operandOrder = "operand_minor_to_major"
	resultOrder  = "result_minor_to_major"
	tiledAttr    = "tiled"
)

func (b *body) bitcastLayouts(in *syntax.Instruction, attrs *ir.Attrs) {
	from, to := "", in.Shape.Layout()
	if o := in.Operands[0]; o.Shape != nil && o.Shape.Layout() != "" {
		from = o.Shape.Layout()
	} else if len(o.Path) == 0 {
		from = b.layouts[o.Name]
	}
	if strings.Contains(from+to, ":T(") {
		attrs.Set(tiledAttr, ir.Unit{})
	}
	for name, l := range map[string]string{operandOrder: from, resultOrder: to} {
		order, _, _ := strings.Cut(strings.Trim(l, "{}"), ":")
		if dims, err := syntax.ParseInts("{" + order + "}"); err == nil && order != "" {
			attrs.Set(name, ir.Ints(dims))
		}
	}
}

// resizes reports whether a bitcast has elements of one width before and after.
func resizes(op *ir.Op) bool {
	from, to := op.Operands[0].Type, op.Result().Type
	return from.IsTensor() && to.IsTensor() && from.IsStatic() && to.IsStatic() && from.Elem.Bits() == to.Elem.Bits() && from.NumElements() == to.NumElements() &&
		from.Elem.IsComplex() == to.Elem.IsComplex()
}

// bitcast reads the elements of its operand in the order in which they are in
// memory, under another shape and order; that order aside if no numbers count.
func (u *unfuser) bitcast(op *ir.Op) *ir.Value {
	b, x, t := u.builder(op), op.Operands[0], op.Result().Type
	if x.Type.Elem != t.Elem {
		x = b.Emit(ir.BitcastConvert, []*ir.Value{x}, nil, nil, []*ir.Type{x.Type.WithElem(t.Elem)}).Result()
	}
	if !u.exact {
		return b.Reshape(x, t.Shape...)
	}
	if op.Attrs.Has(tiledAttr) {
		u.fail(op, "bitcast between layouts with tiles, whose order of elements is that of a device")
	}
	from, to := majorFirst(op.Ints(operandOrder), x.Type.Rank()), majorFirst(op.Ints(resultOrder), t.Rank())
	laid := make([]int, t.Rank())
	back := make([]int, t.Rank())
	for i, d := range to {
		laid[i], back[d] = t.Shape[d], i
	}
	return b.Transpose(b.Reshape(b.Transpose(x, from...), laid...), back...)
}

// majorFirst is the order of dimensions whose reverse is given, or the default.
func majorFirst(minorFirst []int, rank int) []int {
	if len(minorFirst) != rank {
		return upTo(rank)
	}
	order := slices.Clone(minorFirst)
	slices.Reverse(order)
	return order
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
