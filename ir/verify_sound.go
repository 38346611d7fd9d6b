package ir

import (
	"math"
	"slices"
)

// The functions in this file find values that are nil, or out of range for every
// op. Modules that pass can be printed, and their types and attributes read,
// without further checks.

func soundOp(op *Op) *Rule {
	for i, v := range op.Operands {
		if r := soundValue(v); r != nil {
			return NewRule(r.Label, "operand %d: %s", i, r.Msg)
		}
	}
	for i, v := range op.Results {
		if r := soundValue(v); r != nil {
			return NewRule(r.Label, "result %d: %s", i, r.Msg)
		}
		if v.Def != op || v.Block != nil || v.Index != i {
			return NewRule("structure-8", "result %d does not say that it is", i)
		}
	}
	return soundAttrs(op.Attrs)
}

func soundValue(v *Value) *Rule {
	if v == nil {
		return NewRule("structure-7", "a value is nil")
	}
	if r := soundType(v.Type); r != nil {
		return r
	}
	if r := soundSharding(v.Sharding); r != nil {
		return r
	}
	return soundAttrs(v.Attrs)
}

func soundType(t *Type) *Rule {
	if t == nil {
		return NewRule("type-2", "a type is nil")
	}
	if t.Elem >= numDTypes {
		return NewRule("type-3", "element type %d does not exist", uint8(t.Elem))
	}
	for _, e := range t.Elems {
		if r := soundType(e); r != nil {
			return r
		}
	}
	switch t.Kind {
	case TensorType:
		return soundTensor(t)
	case ScalarType:
		if t.Elem == InvalidDType {
			return NewRule("type-3", "a number has no element type")
		}
	case FuncType:
		if t.NumIn < 0 || t.NumIn > len(t.Elems) {
			return NewRule("type-5", "%d of %d types are inputs", t.NumIn, len(t.Elems))
		}
	case FutureType:
		for _, e := range t.Elems {
			if !e.IsTensor() && e.Kind != TokenType && e.Kind != OpaqueType {
				return NewRule("type-6", "a future of %s, want a tensor", e)
			}
		}
	case InvalidType:
		return NewRule("type-2", "a type is invalid")
	}
	return nil
}

// soundTensor checks that the sizes are sizes and that the number of bytes is a
// number.
func soundTensor(t *Type) *Rule {
	if (t.Elem == InvalidDType) == (t.Quant == nil) {
		return NewRule("type-3", "a tensor has no element type, or two")
	}
	n := 16 // the largest element
	for i, d := range t.Shape {
		if d < Dynamic {
			return NewRule("type-4", "dimension %d has size %d", i, d)
		}
		if d > 0 && n > math.MaxInt/d {
			return NewRule("type-4", "%s has more elements than can be counted", t)
		}
		n *= max(d, 1)
	}
	if t.Quant != nil {
		if r := t.Quant.sound(t); r != nil {
			return r
		}
	}
	return soundBounds(t)
}

func soundAttrs(as Attrs) *Rule {
	for i, a := range as {
		if i > 0 && as[i-1].Name >= a.Name {
			return NewRule("structure-7", "attributes are not sorted: %q is before %q", as[i-1].Name, a.Name)
		}
		if r := soundAttr(a.Attr); r != nil {
			return NewRule(r.Label, "attribute %s: %s", a.Name, r.Msg)
		}
	}
	return nil
}

func soundAttr(a Attr) *Rule {
	switch a := a.(type) {
	case nil:
		return NewRule("structure-7", "an attribute is nil")
	case Int:
		return soundElem(a.Type)
	case Float:
		return soundElem(a.Type)
	case TypeAttr:
		return soundType(a.Type)
	case *Literal:
		return soundLiteral(a)
	case *Sharding:
		if a == nil {
			return NewRule("structure-7", "a sharding is nil")
		}
		return soundSharding(a)
	case Array:
		for _, e := range a {
			if r := soundAttr(e); r != nil {
				return r
			}
		}
	case Dict:
		return soundAttrs(Attrs(a))
	case PerValue:
		if slices.Contains(a, nil) {
			return NewRule("structure-7", "a sharding is nil")
		}
		for _, s := range a {
			if r := soundSharding(s); r != nil {
				return r
			}
		}
	}
	return nil
}

func soundElem(t DType) *Rule {
	if t == InvalidDType || t >= numDTypes {
		return NewRule("type-3", "element type %d does not exist", uint8(t))
	}
	return nil
}

// soundLiteral checks that there is one element, or one for each place.
func soundLiteral(l *Literal) *Rule {
	if l == nil {
		return NewRule("structure-7", "a literal is nil")
	}
	if r := soundType(l.Type); r != nil {
		return r
	}
	if !l.Type.IsTensor() || !l.Type.IsStatic() {
		return NewRule("literal-1", "a literal is %s, want a tensor of known sizes", l.Type)
	}
	if n, size := len(l.Data), l.Type.Elem.Size(); n != size && n != size*l.Type.NumElements() {
		return NewRule("literal-2", "%d bytes of data for %s, want %d, or %d for all elements", n, l.Type, l.Type.Bytes(), size)
	}
	return nil
}

// soundSharding checks the numbers in s; that it fits a mesh and a type is for
// the verifier to see. A nil s is none.
func soundSharding(s *Sharding) *Rule {
	if s == nil {
		return nil
	}
	if r := s.ReducedBy; r != "" && r != "max" && r != "min" {
		return NewRule("sharding-8", "unreduced axes are reduced by %q, want max, min or the sum", r)
	}
	for i, d := range s.Dims {
		if d.Priority < 0 {
			return NewRule("sharding-8", "dimension %d has priority %d", i, d.Priority)
		}
	}
	return nil
}
