package verify

import (
	"math"
	"slices"
	"strings"

	"ppc/ir"
)

// The functions in this file find values that are nil, or out of range for every
// op. Modules that pass can be printed, and their types and attributes read,
// without further checks.

// soundOp looks at what op has. Values that it sees have been looked at where they are
// defined; of an op that is known, the types and attributes have.
func (v *verifier) soundOp(op *ir.Op, known bool) *ir.Rule {
	for i, x := range op.Operands {
		if v.sees(x) {
			continue
		}
		if r := v.soundValue(x); r != nil {
			return ir.NewRule(r.Label, "operand %d: %s", i, r.Msg)
		}
	}
	for i, x := range op.Results {
		var r *ir.Rule
		if !known || x.Sharding != nil || len(x.Attrs) > 0 {
			r = v.soundValue(x)
		}
		if r != nil {
			return ir.NewRule(r.Label, "result %d: %s", i, r.Msg)
		}
		if x.Def != op || x.Block != nil || x.Index != i {
			return ir.NewRule("structure-8", "result %d does not say that it is", i)
		}
	}
	if known {
		return nil
	}
	return soundAttrs(op.Attrs)
}

func (v *verifier) soundValue(x *ir.Value) *ir.Rule {
	if x == nil {
		return ir.NewRule("structure-7", "a value is nil")
	}
	return v.soundParts(x.Type, x.Sharding, x.Attrs)
}

// soundParts looks at what a value, or a result of a function, has.
func (v *verifier) soundParts(t *ir.Type, s *ir.Sharding, as ir.Attrs) *ir.Rule {
	if !v.isSound(t) {
		if r := soundType(t); r != nil {
			return r
		}
		v.found(t)
	}
	if r := soundSharding(s); r != nil {
		return r
	}
	return soundAttrs(as)
}

func soundType(t *ir.Type) *ir.Rule {
	if t == nil {
		return ir.NewRule("type-2", "a type is nil")
	}
	if t.Elem >= ir.NumDTypes {
		return ir.NewRule("type-3", "element type %d does not exist", uint8(t.Elem))
	}
	for _, e := range t.Elems {
		if r := soundType(e); r != nil {
			return r
		}
	}
	switch t.Kind {
	case ir.TensorType:
		return soundTensor(t)
	case ir.ScalarType:
		if t.Elem == ir.InvalidDType {
			return ir.NewRule("type-3", "a number has no element type")
		}
	case ir.FuncType:
		if t.NumIn < 0 || t.NumIn > len(t.Elems) {
			return ir.NewRule("type-5", "%d of %d types are inputs", t.NumIn, len(t.Elems))
		}
	case ir.FutureType:
		if len(t.Elems) == 0 {
			return ir.NewRule("type-6", "a future of nothing, want a tensor")
		}
		for _, e := range t.Elems {
			if !e.IsTensor() && !strings.HasPrefix(e.Text, "tensor<") || strings.HasPrefix(e.Text, "tensor<*") {
				return ir.NewRule("type-6", "a future of %s, want a tensor", e)
			}
		}
	case ir.InvalidType:
		return ir.NewRule("type-2", "a type is invalid")
	}
	return nil
}

// soundTensor checks that the sizes are sizes and that the number of bytes is a
// number.
func soundTensor(t *ir.Type) *ir.Rule {
	if (t.Elem == ir.InvalidDType) == (t.Quant == nil) {
		return ir.NewRule("type-3", "a tensor has no element type, or two")
	}
	n := 16 // the largest element
	for i, d := range t.Shape {
		if d < ir.Dynamic {
			return ir.NewRule("type-4", "dimension %d has size %d", i, d)
		}
		if d > 0 && n > math.MaxInt/d {
			return ir.NewRule("type-4", "%s has more elements than can be counted", t)
		}
		n *= max(d, 1)
	}
	if t.Quant != nil {
		if r := t.Quant.Sound(t); r != nil {
			return r
		}
	}
	return ir.SoundBounds(t)
}

func soundAttrs(as ir.Attrs) *ir.Rule {
	for i, a := range as {
		if i > 0 && as[i-1].Name >= a.Name {
			return ir.NewRule("structure-7", "attributes are not sorted: %q is before %q", as[i-1].Name, a.Name)
		}
		if r := soundAttr(a.Attr); r != nil {
			return ir.NewRule(r.Label, "attribute %s: %s", a.Name, r.Msg)
		}
	}
	return nil
}

func soundAttr(a ir.Attr) *ir.Rule {
	switch a := a.(type) {
	case nil:
		return ir.NewRule("structure-7", "an attribute is nil")
	case ir.Int:
		return soundElem(a.Type)
	case ir.Float:
		return soundElem(a.Type)
	case ir.TypeAttr:
		return soundType(a.Type)
	case *ir.Literal:
		return soundLiteral(a)
	case *ir.Sharding:
		if a == nil {
			return ir.NewRule("structure-7", "a sharding is nil")
		}
		return soundSharding(a)
	case ir.Array:
		for _, e := range a {
			if r := soundAttr(e); r != nil {
				return r
			}
		}
	case ir.Dict:
		return soundAttrs(ir.Attrs(a))
	case ir.PerValue:
		if slices.Contains(a, nil) {
			return ir.NewRule("structure-7", "a sharding is nil")
		}
		for _, s := range a {
			if r := soundSharding(s); r != nil {
				return r
			}
		}
	}
	return nil
}

func soundElem(t ir.DType) *ir.Rule {
	if t == ir.InvalidDType || t >= ir.NumDTypes {
		return ir.NewRule("type-3", "element type %d does not exist", uint8(t))
	}
	return nil
}

// soundLiteral checks that there is one element, or one for each place.
func soundLiteral(l *ir.Literal) *ir.Rule {
	if l == nil {
		return ir.NewRule("structure-7", "a literal is nil")
	}
	if r := soundType(l.Type); r != nil {
		return r
	}
	if !l.Type.IsTensor() || !l.Type.IsStatic() {
		return ir.NewRule("literal-1", "a literal is %s, want a tensor of known sizes", l.Type)
	}
	if n, size := len(l.Data), l.Type.Elem.Size(); n != size && n != size*l.Type.NumElements() {
		return ir.NewRule("literal-2", "%d bytes of data for %s, want %d, or %d for all elements", n, l.Type, l.Type.Bytes(), size)
	}
	return nil
}

// soundSharding checks the numbers in s; that it fits a mesh and a type is for
// the verifier to see. A nil s is none.
func soundSharding(s *ir.Sharding) *ir.Rule {
	if s == nil {
		return nil
	}
	if r := s.ReducedBy; r != "" && r != "max" && r != "min" {
		return ir.NewRule("sharding-8", "unreduced axes are reduced by %q, want max, min or the sum", r)
	}
	for i, d := range s.Dims {
		if d.Priority < 0 {
			return ir.NewRule("sharding-8", "dimension %d has priority %d", i, d.Priority)
		}
	}
	return nil
}
