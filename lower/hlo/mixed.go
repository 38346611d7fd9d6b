package hlo

import (
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
)

// mixed reports whether an instruction mixes floating-point types, among its
// operands or of these and its results, in a way that XLA allows, as it does
// once it has optimised a module, and StableHLO does not. [Unfuse] converts.
func mixed(f *ir.Func, kind ir.Kind, operands []*ir.Value, attrs ir.Attrs, regions []*ir.Block, results []*ir.Type) bool {
	if types := append(ir.Types(operands), results...); !mixesFloats(types) || kind != ir.DotGeneral && kind != ir.Convolution && slices.ContainsFunc(types, apart) {
		return false
	}
	op := &ir.Op{Kind: kind, Operands: operands, Attrs: attrs, Regions: regions}
	for _, t := range results {
		op.Results = append(op.Results, f.NewValue(t, ""))
	}
	return !infers(op, results) && kind != ir.Reshape && alike(f, op)
}

// apart reports whether t is of floating-point numbers that XLA mixes with others in products alone:
// bf16, f16 and f32 are what its passes compute with in place of one another.
func apart(t *ir.Type) bool {
	return isFloat(t) && t.Elem != ir.BF16 && t.Elem != ir.F16 && t.Elem != ir.F32
}

// alike reports whether op is sound where all its floating-point types are one: the widest, or
// that which its regions compute with. Where it is not, it breaks another rule, which the
// verifier says.
func alike(f *ir.Func, op *ir.Op) bool {
	types := append(ir.Types(op.Operands), ir.Types(op.Results)...)
	if len(op.Regions) > 0 {
		if types = ir.Types(op.Regions[0].Args); mixesFloats(types) {
			return true
		}
	}
	wide := widestFloat(types)
	if wide == ir.InvalidDType {
		return true
	}
	same := *op
	same.Operands = slices.Clone(op.Operands)
	for i, v := range op.Operands {
		if isFloat(v.Type) {
			same.Operands[i] = f.NewValue(v.Type.WithElem(wide), "")
		}
	}
	same.Results = slices.Clone(op.Results)
	for i, v := range op.Results {
		if isFloat(v.Type) {
			same.Results[i] = f.NewValue(v.Type.WithElem(wide), "")
		}
	}
	return infers(&same, ir.Types(same.Results))
}

// mixesFloats reports whether types has two floating-point types.
func mixesFloats(types []*ir.Type) bool {
	first := ir.InvalidDType
	for _, t := range types {
		if !isFloat(t) {
			continue
		}
		if first != ir.InvalidDType && t.Elem != first {
			return true
		}
		first = t.Elem
	}
	return false
}

// converted puts an op that mixes floating-point types in the place of the one
// that computes with the widest of them. It reports false where that is no op.
func (u *unfuser) converted(op *ir.Op, opcode string) bool {
	kind, ok := u.kinds[opcode]
	t := op.Result().Type
	types := flatTypes(t, nil)
	if !ok || t.Kind == ir.TupleType && len(types) != len(t.Elems) {
		return false
	}
	vs := u.inWidest(op, kind, types, t)
	if vs == nil {
		return false
	}
	u.replace(op, u.one(t, vs, op))
	return true
}

// inWidest are the results, of these types, of the op of the given kind that computes with
// the widest floating-point type of op's operands and results: its operands are converted to
// it, and its results from it. They are nil where that is no op.
func (u *unfuser) inWidest(op *ir.Op, kind ir.Kind, types []*ir.Type, t *ir.Type) []*ir.Value {
	wide := widestFloat(append(ir.Types(op.Operands), types...))
	if wide == ir.InvalidDType {
		return nil
	}
	b, outer, before := u.builder(op), *op, len(u.out.Ops)
	outer.Operands = slices.Clone(op.Operands)
	for i, v := range op.Operands {
		if isFloat(v.Type) {
			outer.Operands[i] = b.Convert(v, wide)
		}
	}
	made := slices.Clone(types)
	for i, t := range made {
		if isFloat(t) {
			made[i] = t.WithElem(wide)
		}
	}
	full := u.synchronous(&outer, kind, made, t)
	if full == nil || !infers(full, made) {
		u.out.Ops = u.out.Ops[:before]
		return nil
	}
	u.out.Ops = append(u.out.Ops, full)
	results := make([]*ir.Value, len(types))
	for i, v := range full.Results {
		results[i] = u.converts(op, v, types[i])
	}
	return results
}

// widestFloat is the narrowest type that has the numbers of all floating-point types among types.
func widestFloat(types []*ir.Type) ir.DType {
	wide := ir.InvalidDType
	for _, t := range types {
		if isFloat(t) {
			wide = common(wide, t.Elem)
		}
	}
	return wide
}

func isFloat(t *ir.Type) bool { return t.IsTensor() && t.Elem.IsFloat() }

// infers reports whether op is sound and computes values of these types.
func infers(op *ir.Op, types []*ir.Type) bool {
	got, broken := ir.Infer(op)
	return broken == nil && slices.EqualFunc(got, types, (*ir.Type).Equal)
}

// common is the narrowest type that has the numbers of both t and e.
func common(t, e ir.DType) ir.DType {
	switch {
	case t == ir.InvalidDType || t == e:
		return e
	case t == ir.F64 || e == ir.F64:
		return ir.F64
	}
	return ir.F32
}

// as is v as a value of type t, of which XLA may have changed the precision on
// the way into what op calls or out of it.
func (u *unfuser) as(op *ir.Op, v *ir.Value, t *ir.Type) *ir.Value {
	if !ShapesAgree(v.Type, t) && (v.Type.Kind != t.Kind || !ShapesAgree(v.Type.WithElem(t.Elem), t) || !v.Type.Elem.IsFloat() || !t.Elem.IsFloat()) {
		u.fail(op, "what it calls has %s where it has %s", BareShape(v.Type), BareShape(t))
		return v
	}
	if !v.Type.IsTensor() || v.Type.Elem == t.Elem {
		return v
	}
	return u.builder(op).Convert(v, t.Elem)
}

// customCall is op, which returns a tuple of type t, as a custom call of StableHLO.
func (u *unfuser) customCall(op *ir.Op, t *ir.Type) []*ir.Value {
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "call_target_name", Attr: ir.Str(strings.Trim(op.Str("custom_call_target"), `"`))})
	if config := op.Str("backend_config"); config != "" {
		attrs.Set("mhlo.backend_config", ir.Str(config))
	}
	types := []*ir.Type{t}
	if t.Kind == ir.TupleType {
		types = t.Elems
	}
	return u.builder(op).Emit(ir.CustomCall, op.Operands, attrs, nil, types).Results
}

// named is the result of the op without a Kind called name on the operands of op.
func (u *unfuser) named(op *ir.Op, name string, t *ir.Type) *ir.Value {
	o := u.builder(op).Emit(ir.Unknown, op.Operands, nil, nil, []*ir.Type{t})
	o.Spelling = name
	return o.Result()
}

// converts is v as a value of type t, as a copy gives it, which may be to another
// type of elements.
func (u *unfuser) converts(op *ir.Op, v *ir.Value, t *ir.Type) *ir.Value {
	if !t.IsTensor() || !v.Type.IsTensor() || v.Type.Elem == t.Elem {
		return v
	}
	return u.builder(op).Convert(v, t.Elem)
}

// topK makes of an instruction that takes the largest elements the op of chlo.
func (u *unfuser) topK(op *ir.Op, t *ir.Type) bool {
	k, err := strconv.Atoi(op.Str("k"))
	if err != nil || op.Str("largest") == "false" || len(op.Operands) != 1 || t.Kind != ir.TupleType || len(t.Elems) != 2 || !t.Elems[1].IsTensor() || t.Elems[1].Elem != ir.I32 {
		return false
	}
	vs := u.builder(op).Emit(ir.TopK, op.Operands, ir.AttrsOf(ir.NamedAttr{Name: "k", Attr: ir.I64Attr(k)}), nil, t.Elems).Results
	u.replace(op, u.tuple(t, vs, op))
	return true
}
