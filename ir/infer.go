package ir

import (
	"fmt"
	"slices"
	"strings"
)

// InModule checks the references of op to the rest of m.
func (op *Op) InModule(m *Module) *Rule {
	if check := op.row().InModule; check != nil && (op.Kind == Call || !unread(op)) {
		return check(m, op).of(op)
	}
	return nil
}

// Compatible reports whether a value of inferred type t may be declared u:
// they are equal, where both are known.
func Compatible(t, u *Type) bool {
	if t.Equal(u) {
		return true
	}
	return t.IsTensor() && u.IsTensor() && t.SameElem(u) && SameShape(t, u) && withinBounds(t, u)
}

// SameShape reports whether two tensors have equal sizes where both are known.
func SameShape(t, u *Type) bool {
	return slices.EqualFunc(t.Shape, u.Shape, Fits)
}

// Fits reports whether two sizes are equal where both are known.
func Fits(n, m int) bool { return n == m || n == Dynamic || m == Dynamic }

// InferOp checks what is common to all ops and then asks the op's row. Types
// that are carried through unread have no rules: an op on them has the types
// that it was given.
func InferOp(op *Op) ([]*Type, *Rule) {
	if op.Kind == Invalid || op.Kind >= NumKinds {
		return nil, NewRule("op-1", "no such op")
	}
	row := op.row()
	switch no, nr, ng := len(op.Operands), len(op.Results), len(op.Regions); {
	case !row.Operands.Allows(no):
		return nil, NewRule("op-2", "has %s, want %s", Counted(no, "operand"), row.Operands)
	case !row.Results.Allows(nr):
		return nil, NewRule("op-2", "has %s, want %s", Counted(nr, "result"), row.Results)
	case !row.Regions.Allows(ng):
		return nil, NewRule("op-2", "has %s, want %s", Counted(ng, "region"), row.Regions)
	}
	for i := range row.Attrs {
		if r := checkAttr(op, &row.Attrs[i]); r != nil {
			return nil, r
		}
	}
	if r := foreign(op); r != nil {
		return nil, r
	}
	if row.Infer == nil || unread(op) {
		return TypesOf(op.Results), nil
	}
	if r := indexed(op); r != nil {
		return nil, r
	}
	ts, r := row.Infer(op)
	return ts, r.of(op)
}

// beyondTensors are the ops of StableHLO that hand on values besides tensors of known
// rank and tokens, and the kinds of these. Ops with rules of their own for them,
// such as get_tuple_element, are not among them.
var beyondTensors = map[string]handsOn{
	"stablehlo.custom_call": {tuples: true, futures: true, memory: true, unranked: true},
	"stablehlo.composite":   {tuples: true}, "stablehlo.tuple": {tuples: true, memory: true},
	"stablehlo.while": {memory: true}, "stablehlo.if": {}, "stablehlo.case": {}, "stablehlo.optimization_barrier": {},
}

type handsOn struct{ tuples, futures, memory, unranked bool }

func (h handsOn) allows(t *Type) bool {
	switch t.Kind {
	case TensorType, TokenType:
		return true
	case TupleType:
		return h.tuples && !slices.ContainsFunc(t.Elems, func(e *Type) bool { return !h.allows(e) })
	case FutureType:
		return h.futures
	case OpaqueType:
		return h.memory && strings.HasPrefix(t.Text, "memref<") || h.unranked && unrankedTensor(t)
	}
	return false
}

// unrankedTensor reports whether t is a tensor of unknown rank with elements of a
// type of StableHLO.
func unrankedTensor(t *Type) bool {
	elem, ok := strings.CutPrefix(t.Text, "tensor<*x")
	return ok && DTypeByName(strings.TrimSuffix(elem, ">")) != InvalidDType
}

// foreign finds an operand or a result of op, one of StableHLO or chlo, of a type that
// these dialects do not have, or that op does not hand on, or whose scales do not fit
// its shape. Functions, and the ops of other dialects, may have such types.
func foreign(op *Op) *Rule {
	name := op.Name()
	hlo, chlo := strings.HasPrefix(name, "stablehlo."), strings.HasPrefix(name, "chlo.")
	if !hlo && !chlo || !op.Known() {
		return nil
	}
	for _, side := range []struct {
		what   string
		values []*Value
	}{{"operand", op.Operands}, {"result", op.Results}} {
		for i, v := range side.values {
			t := v.Type
			if t.Kind == TensorType && t.Quant == nil {
				continue
			}
			hands, any := beyondTensors[name]
			switch {
			case t.Quant != nil && t.IsTensor():
				if r := t.Quant.Fits(t); r != nil {
					return NewRule(r.Label, "%s %d: %s", side.what, i, r.Msg)
				}
			case op.Kind.Has(Terminator), t.Kind == TensorType, !any && t.Kind != OpaqueType, any && hands.allows(t), chlo && unrankedTensor(t):
			default:
				return NewRule("op-7", "%s %d is %s, want a tensor of known rank and of an element type of StableHLO", side.what, i, t)
			}
		}
	}
	return nil
}

// takesSizes reports whether op, one of StableHLO, has operands beyond the first
// that say sizes, for which the type index is allowed.
func takesSizes(name string) bool {
	return strings.Contains(name, "dynamic_") || name == "stablehlo.rng"
}

// indexed finds a tensor of the type index among the operands and results of op, one
// of StableHLO or a function of chlo, where that says no size.
func indexed(op *Op) *Rule {
	if !op.hasType(func(t *Type) bool { return t.Elem == Index && t.IsTensor() }) {
		return nil
	}
	name := op.Name()
	if !strings.HasPrefix(name, "stablehlo.") && !(strings.HasPrefix(name, "chlo.") && op.Kind != Unknown) || op.Kind.Has(Terminator) {
		return nil
	}
	wrong := func(what string, i int, t *Type) *Rule {
		return NewRule("op-7", "%s %d is %s, want elements of a type that has a size", what, i, t)
	}
	for i, v := range op.Operands {
		if v.Type.Elem == Index && v.Type.IsTensor() && !(takesSizes(name) && (i > 0 || name == "stablehlo.dynamic_iota")) {
			return wrong("operand", i, v.Type)
		}
	}
	for i, v := range op.Results {
		if v.Type.Elem == Index && v.Type.IsTensor() && op.Kind != Constant {
			return wrong("result", i, v.Type)
		}
	}
	return nil
}

// unread reports whether op has a type that is carried through unread.
func unread(op *Op) bool {
	return op.hasType(func(t *Type) bool { return t.Kind == OpaqueType })
}

func (op *Op) hasType(is func(*Type) bool) bool {
	of := func(v *Value) bool { return is(v.Type) }
	return slices.ContainsFunc(op.Operands, of) || slices.ContainsFunc(op.Results, of)
}

// Unread reports whether an operand or a result of op has a type that the passes
// cannot reason about: one that is carried through as text, whose constraints
// have not been checked, or a quantized one.
func (op *Op) Unread() bool {
	return op.hasType(func(t *Type) bool { return t.Kind == OpaqueType || t.Quant != nil })
}

func (a Arity) String() string {
	switch {
	case a.Min == a.Max:
		return fmt.Sprint(a.Min)
	case a.Max == many:
		return fmt.Sprintf("at least %d", a.Min)
	}
	return fmt.Sprintf("%d to %d", a.Min, a.Max)
}

func checkAttr(op *Op, spec *AttrSpec) *Rule {
	a := op.Attrs.Get(spec.Name)
	if a == nil {
		if spec.Optional {
			return nil
		}
		return NewRule("op-3", "attribute %s is missing", spec.Name)
	}
	if !spec.Kind.accepts(a) {
		return NewRule("op-4", "attribute %s is %s, want %s", spec.Name, a, spec.Kind)
	}
	if spec.Kind == AccuracyAttr {
		return accuracyFits(a)
	}
	if len(spec.Words) > 0 && !slices.Contains(spec.Words, op.Word(spec.Name)) {
		return NewRule("op-5", "attribute %s is %s, want one of %s", spec.Name, op.Word(spec.Name), strings.Join(spec.Words, ", "))
	}
	return nil
}

// ByTypes reports whether what op computes follows from its kind and from the types of
// its operands and results alone: it is elementwise, and has no attributes.
func (op *Op) ByTypes() bool {
	return op.Kind.Has(Elementwise) && len(op.Attrs) == 0 && len(op.Regions) == 0
}

// SameByTypes reports whether other differs from op in the values alone: both are
// elementwise ops of one kind and of the same types. op may be nil, which no op is like.
func (op *Op) SameByTypes(other *Op) bool {
	sameType := func(a, b *Value) bool { return a.Type == b.Type }
	return op != nil && op.Kind == other.Kind && other.ByTypes() && op.ByTypes() &&
		slices.EqualFunc(op.Operands, other.Operands, sameType) && slices.EqualFunc(op.Results, other.Results, sameType)
}
