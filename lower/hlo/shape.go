package hlo

import (
	"strconv"
	"strings"

	"ppc/ir"
)

// layoutText is the shape of a value of type t, with layouts: f32[4,8]{1,0}.
// layouts are those of the tensors in t, in order and apart by spaces, where
// they are not the default.
func layoutText(t *ir.Type, layouts string) string {
	var b strings.Builder
	w := shapeWriter{Builder: &b, layout: true}
	if layouts != "" {
		w.own = strings.Split(layouts, " ")
	}
	w.write(t)
	return b.String()
}

// joinLayouts are the layouts of a tuple of ins, in the form that layoutText takes.
func joinLayouts(ins []instruction) string {
	var all []string
	for _, in := range ins {
		own := make([]string, len(flatTypes(in.typ, nil)))
		if in.layouts != "" {
			copy(own, strings.Split(in.layouts, " "))
		}
		all = append(all, own...)
	}
	return strings.TrimRight(strings.Join(all, " "), " ")
}

// partLayouts are the layouts of element i of a tuple of type t that has these.
func partLayouts(t *ir.Type, layouts string, i int) string {
	if layouts == "" {
		return ""
	}
	all := strings.Split(layouts, " ")
	from := min(len(flatTypes(ir.Tuple(t.Elems[:i]...), nil)), len(all))
	to := min(from+len(flatTypes(t.Elems[i], nil)), len(all))
	return strings.TrimRight(strings.Join(all[from:to], " "), " ")
}

// BareShape is layoutText without layouts, as signatures have it.
func BareShape(t *ir.Type) string {
	var b strings.Builder
	(&shapeWriter{Builder: &b}).write(t)
	return b.String()
}

func writeShape(b *strings.Builder, t *ir.Type) {
	(&shapeWriter{Builder: b, layout: true}).write(t)
}

type shapeWriter struct {
	*strings.Builder
	layout bool     // write layouts
	own    []string // of the tensors to come; "" or none is the default
}

func (w *shapeWriter) write(t *ir.Type) {
	switch t.Kind {
	case ir.TokenType:
		w.WriteString("token[]")
		w.next()
	case ir.OpaqueType:
		w.WriteString(t.Text)
		w.next()
	case ir.TupleType:
		w.WriteByte('(')
		for i, e := range t.Elems {
			if i > 0 {
				w.WriteString(", ")
			}
			w.write(e)
		}
		w.WriteByte(')')
	default:
		w.WriteString(t.Elem.HLO())
		w.WriteByte('[')
		writeSizes(w.Builder, t)
		w.WriteByte(']')
		if own := w.next(); own != "" {
			w.WriteString(own)
		} else if w.layout && t.Rank() > 0 {
			writeLayout(w.Builder, t.Rank())
		}
	}
}

// next is the layout of the next tensor if it has its own.
func (w *shapeWriter) next() string {
	if len(w.own) == 0 {
		return ""
	}
	own := w.own[0]
	w.own = w.own[1:]
	return own
}

// writeSizes writes the sizes of a tensor: n, <=n where it is bounded, or ?.
func writeSizes(b *strings.Builder, t *ir.Type) {
	bounds, _ := t.Bounds()
	for i, n := range t.Shape {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case n != ir.Dynamic:
			b.WriteString(strconv.Itoa(n))
		case i < len(bounds) && bounds[i] != ir.Dynamic:
			b.WriteString("<=" + strconv.Itoa(bounds[i]))
		default:
			b.WriteByte('?')
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

// printable reports whether HLO text has a shape for t.
func printable(t *ir.Type) bool {
	switch t.Kind {
	case ir.TupleType:
		for _, e := range t.Elems {
			if !printable(e) {
				return false
			}
		}
		return true
	case ir.OpaqueType:
		return t.Text == "opaque[]" || strings.HasPrefix(t.Text, "b(")
	}
	return t.Kind == ir.TensorType && t.Quant == nil || t.Kind == ir.TokenType
}
