package hlo

import (
	"strconv"
	"strings"

	"ppc/ir"
)

// shapeText is the shape of a value of type t, with the default layout:
// f32[4,8]{1,0}.
func shapeText(t *ir.Type) string {
	var b strings.Builder
	writeShape(&b, t, true)
	return b.String()
}

// bareShape is shapeText without layouts, as signatures have it.
func bareShape(t *ir.Type) string {
	var b strings.Builder
	writeShape(&b, t, false)
	return b.String()
}

func writeShape(b *strings.Builder, t *ir.Type, layout bool) {
	switch t.Kind {
	case ir.TokenType:
		b.WriteString("token[]")
	case ir.OpaqueType:
		b.WriteString(t.Text)
	case ir.TupleType:
		b.WriteByte('(')
		for i, e := range t.Elems {
			if i > 0 {
				b.WriteString(", ")
			}
			writeShape(b, e, layout)
		}
		b.WriteByte(')')
	default:
		b.WriteString(t.Elem.HLO())
		b.WriteByte('[')
		writeInts(b, t.Shape)
		b.WriteByte(']')
		if layout && t.Rank() > 0 {
			writeLayout(b, t.Rank())
		}
	}
}

// writeLayout writes the default order, minor dimension first: {1,0}.
func writeLayout(b *strings.Builder, rank int) {
	b.WriteByte('{')
	for i := rank - 1; i >= 0; i-- {
		b.WriteString(strconv.Itoa(i))
		if i > 0 {
			b.WriteByte(',')
		}
	}
	b.WriteByte('}')
}

func writeInts(b *strings.Builder, xs []int) {
	for i, x := range xs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(x))
	}
}

// braced is a list as attributes have it: {0,1}.
func braced(xs []int) string {
	var b strings.Builder
	b.WriteByte('{')
	writeInts(&b, xs)
	b.WriteByte('}')
	return b.String()
}

// tupleOf is the type of an instruction that computes values of types ts: the
// only one, or a tuple.
func tupleOf(ts []*ir.Type) *ir.Type {
	if len(ts) == 1 {
		return ts[0]
	}
	return ir.Tuple(ts...)
}

// printable reports whether HLO text has a shape for t: sizes must be known.
func printable(t *ir.Type) bool {
	switch t.Kind {
	case ir.TensorType:
		return t.IsStatic()
	case ir.TupleType:
		for _, e := range t.Elems {
			if !printable(e) {
				return false
			}
		}
		return true
	}
	return t.Kind == ir.TokenType || t.Kind == ir.OpaqueType
}
