package ir

import (
	"slices"
	"strconv"
	"strings"
)

// A TypeKind says which fields of a [Type] mean something.
type TypeKind uint8

// The kinds of types.
const (
	InvalidType TypeKind = iota
	TensorType           // Elem, Shape, Text is an encoding such as #stablehlo.bounds<3, ?>
	ScalarType           // Elem: a builtin number, the type of an attribute
	TokenType            // !stablehlo.token
	TupleType            // Elems
	FutureType           // Elems
	FuncType             // Elems[:NumIn] -> Elems[NumIn:]
	NoneType             // none
	OpaqueType           // Text, carried through unread
)

// Dynamic is the size of an axis that is not known.
const Dynamic = -1

// A Type is the type of a [Value]: almost always a tensor. Types are
// immutable and compared with Equal.
type Type struct {
	Kind  TypeKind
	Elem  DType  // InvalidDType of a quantized tensor
	Quant *Quant // the element type of a quantized tensor, else nil
	Shape []int  // outermost axis first; empty for a scalar
	Elems []*Type
	NumIn int
	Text  string
}

// Tensor returns the type of a tensor of the given element type and axis sizes.
func Tensor(elem DType, shape ...int) *Type {
	return &Type{Kind: TensorType, Elem: elem, Shape: slices.Clone(shape)}
}

// Scalar returns the builtin type of one number, as attributes have it.
func Scalar(elem DType) *Type { return &Type{Kind: ScalarType, Elem: elem} }

var token = &Type{Kind: TokenType}

// Token returns the token type.
func Token() *Type { return token }

// Tuple returns the type of a tuple.
func Tuple(elems ...*Type) *Type { return &Type{Kind: TupleType, Elems: elems} }

// IsTensor reports whether t is a tensor; t may be nil.
func (t *Type) IsTensor() bool { return t != nil && t.Kind == TensorType }

// Rank is the number of axes of a tensor.
func (t *Type) Rank() int { return len(t.Shape) }

// IsStatic reports whether every axis of a tensor has a known size.
func (t *Type) IsStatic() bool { return !slices.Contains(t.Shape, Dynamic) }

// NumElements is the product of the axis sizes.
func (t *Type) NumElements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Bytes is the size of a static tensor in memory.
func (t *Type) Bytes() int { return t.NumElements() * t.Elem.Size() }

// Equal reports whether t and u are the same type. Two nils are equal.
func (t *Type) Equal(u *Type) bool {
	if t == u {
		return true
	}
	if t == nil || u == nil {
		return false
	}
	return t.Kind == u.Kind && t.Elem == u.Elem && t.Quant.Equal(u.Quant) && t.NumIn == u.NumIn && t.Text == u.Text &&
		slices.Equal(t.Shape, u.Shape) && slices.EqualFunc(t.Elems, u.Elems, (*Type).Equal)
}

// WithShape returns a tensor type of t's element type and another shape.
func (t *Type) WithShape(shape ...int) *Type {
	u := Tensor(t.Elem, shape...)
	u.Quant = t.Quant
	return u
}

// Stored is t with the element type that its elements are stored in: another than
// its own where it is quantized.
func (t *Type) Stored() *Type {
	if t.Quant == nil {
		return t
	}
	return Tensor(t.Quant.Storage, t.Shape...)
}

// Expressed is t with the element type of the numbers that its elements stand for:
// another than its own where it is quantized.
func (t *Type) Expressed() *Type {
	if t.Quant == nil {
		return t
	}
	return Tensor(t.Quant.Expressed, t.Shape...)
}

// WithQuant returns t with another quantized element type.
func (t *Type) WithQuant(q *Quant) *Type {
	u := *t
	u.Elem, u.Quant = InvalidDType, q
	return &u
}

// WithElem returns a tensor type of t's shape and another element type.
func (t *Type) WithElem(elem DType) *Type { return Tensor(elem, t.Shape...) }

// String is t in MLIR's spelling: tensor<4x8xf32>.
func (t *Type) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

func (t *Type) write(b *strings.Builder) {
	if t == nil {
		b.WriteString("<no type>")
		return
	}
	switch t.Kind {
	case TensorType:
		b.WriteString("tensor<")
		for _, d := range t.Shape {
			if d == Dynamic {
				b.WriteByte('?')
			} else {
				b.WriteString(strconv.Itoa(d))
			}
			b.WriteByte('x')
		}
		b.WriteString(t.ElemText())
		if t.Text != "" {
			b.WriteString(", ")
			b.WriteString(t.Text)
		}
		b.WriteByte('>')
	case ScalarType:
		b.WriteString(t.Elem.String())
	case TokenType:
		b.WriteString("!stablehlo.token")
	case TupleType:
		writeTypes(b, "tuple<", t.Elems, ">")
	case FutureType:
		writeTypes(b, "!stablehlo.future<", t.Elems, ">")
	case FuncType:
		writeTypes(b, "(", t.Elems[:t.NumIn], ") -> ")
		if out := t.Elems[t.NumIn:]; len(out) == 1 && out[0].Kind != FuncType {
			out[0].write(b)
		} else {
			writeTypes(b, "(", out, ")")
		}
	case NoneType:
		b.WriteString("none")
	case OpaqueType:
		b.WriteString(t.Text)
	default:
		b.WriteString("<invalid type>")
	}
}

func writeTypes(b *strings.Builder, open string, ts []*Type, end string) {
	b.WriteString(open)
	for i, t := range ts {
		if i > 0 {
			b.WriteString(", ")
		}
		t.write(b)
	}
	b.WriteString(end)
}
