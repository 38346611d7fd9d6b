package dialect

import (
	"slices"

	"ppc/ir"
)

// The functions in the infer files check the constraints of one op and compute
// its result types. broken(2, …) in dotDims is constraint C2 of the section on
// dot_general in the StableHLO specification; where that leaves a constraint
// to the types of the inputs (I1, I2, …), it is C0 here. The constraints of
// the other ops stand in the comments of their functions. Number and kind of
// operands, regions and attributes have been checked before.

func inferGiven(op *ir.Op) ([]*ir.Type, *ir.Rule) { return ir.TypesOf(op.Results), nil }

func inferIdentity(op *ir.Op) ([]*ir.Type, *ir.Rule) { return ir.TypesOf(op.Operands), nil }

func inferNothing(op *ir.Op) ([]*ir.Type, *ir.Rule) { return nil, nil }

// first returns the first of rs that is broken.
func first(rs ...*ir.Rule) *ir.Rule {
	for _, r := range rs {
		if r != nil {
			return r
		}
	}
	return nil
}

// within checks that dims are dimensions of a tensor of the given rank.
func within(n int, what string, dims []int, rank int) *ir.Rule {
	for _, d := range dims {
		if d < 0 || d >= rank {
			return ir.Broken(n, "%d in %s is not one of %s", d, what, ir.Counted(rank, "dimension"))
		}
	}
	return nil
}

func unique(n int, what string, dims []int) *ir.Rule {
	for i, d := range dims {
		if slices.Contains(dims[:i], d) {
			return ir.Broken(n, "%d stands twice in %s", d, what)
		}
	}
	return nil
}

func ascending(n int, what string, dims []int) *ir.Rule {
	if !slices.IsSorted(dims) {
		return ir.Broken(n, "%s are [%s], want them sorted", what, ir.JoinInts(dims))
	}
	return nil
}

func lacks(n int, what string, dims []int, d int) *ir.Rule {
	if slices.Contains(dims, d) {
		return ir.Broken(n, "%d in %s is the dimension of the index vectors", d, what)
	}
	return nil
}

// tensors checks that every operand is a tensor.
func tensors(op *ir.Op) *ir.Rule {
	for i, v := range op.Operands {
		if !v.Type.IsTensor() {
			return ir.Broken(0, "operand %d is %s, want a tensor", i, v.Type)
		}
	}
	return nil
}

func same(op *ir.Op, ok func(ir.DType) bool, want string) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	if !ok(t.Elem) {
		return nil, ir.Broken(0, "operand 0 is %s, want a tensor of %s", t, want)
	}
	for i, v := range op.Operands[1:] {
		if !ir.Compatible(v.Type, t) {
			return nil, ir.Broken(1, "operand %d is %s, want %s like operand 0", i+1, v.Type, t)
		}
	}
	return []*ir.Type{t}, nil
}

func inferSame(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, func(ir.DType) bool { return true }, "anything")
}

func inferFloat(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, func(t ir.DType) bool { return t.IsFloat() || t.IsComplex() }, "floating-point or complex numbers")
}

func inferReal(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, ir.DType.IsFloat, "floating-point numbers")
}

func inferNumber(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, func(t ir.DType) bool { return t != ir.I1 }, "numbers")
}

func inferSigned(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, isSigned, "signed numbers")
}

func isSigned(t ir.DType) bool { return t.Class() != ir.Boolean && t.Class() != ir.Unsigned }

func inferInteger(op *ir.Op) ([]*ir.Type, *ir.Rule) { return same(op, ir.DType.IsInt, "integers") }

func inferLogical(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, func(t ir.DType) bool { return t.IsInt() || t == ir.I1 }, "integers or booleans")
}

func inferAbs(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := inferSigned(op)
	if r == nil {
		ts[0] = ts[0].WithElem(ts[0].Elem.Part())
	}
	return ts, r
}

func inferPart(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := inferFloat(op)
	if r == nil {
		ts[0] = ts[0].WithElem(ts[0].Elem.Part())
	}
	return ts, r
}

func inferComplex(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := same(op, func(t ir.DType) bool { return t == ir.F32 || t == ir.F64 }, "f32 or f64")
	if r == nil {
		ts[0] = ts[0].WithElem(map[ir.DType]ir.DType{ir.F32: ir.C64, ir.F64: ir.C128}[ts[0].Elem])
	}
	return ts, r
}

func inferIsFinite(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := inferReal(op)
	if r == nil {
		ts[0] = ts[0].WithElem(ir.I1)
	}
	return ts, r
}

// given returns the type that the only result has been declared with.
func given(op *ir.Op) (*ir.Type, *ir.Rule) {
	t := op.Results[0].Type
	if !t.IsTensor() {
		return nil, ir.Broken(0, "result is %s, want a tensor", t)
	}
	return t, nil
}

func inferConvert(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	if in := op.Operands[0].Type; !ir.SameShape(in, t) {
		return nil, ir.Broken(1, "result %s has not the shape of the operand %s", t, in)
	}
	return []*ir.Type{t}, nil
}

func inferBitcast(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	in := op.Operands[0].Type
	if in.Elem.IsComplex() != t.Elem.IsComplex() {
		return nil, ir.Broken(2, "a complex and a real type, %s and %s", in, t)
	}
	wide, narrow := in, t
	if in.Elem.Bits() < t.Elem.Bits() {
		wide, narrow = t, in
	}
	want := slices.Clone(wide.Shape)
	if w, n := wide.Elem.Bits(), narrow.Elem.Bits(); w != n {
		if w%n != 0 {
			return nil, ir.Broken(1, "elements of %s are no whole number of elements of %s", wide, narrow)
		}
		want = append(want, w/n)
	}
	if !slices.EqualFunc(want, narrow.Shape, ir.Fits) {
		return nil, ir.Broken(1, "%s is not the bits of %s: that takes %s", t, in, narrow.WithShape(want...))
	}
	return []*ir.Type{t}, nil
}

func inferReducePrecision(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if op.Int("exponent_bits") < 1 {
		return nil, ir.Broken(2, "exponent_bits is %d, want at least 1", op.Int("exponent_bits"))
	}
	if op.Int("mantissa_bits") < 0 {
		return nil, ir.Broken(3, "mantissa_bits is %d, want at least 0", op.Int("mantissa_bits"))
	}
	return inferReal(op)
}

// compareTypes are the ways to compare elements of each class, the usual one
// first.
var compareTypes = [...][]string{
	ir.Boolean:  {"UNSIGNED"},
	ir.Signed:   {"SIGNED"},
	ir.Unsigned: {"UNSIGNED"},
	ir.Floating: {"FLOAT", "TOTALORDER"},
	ir.Complex:  {"FLOAT"},
}

func inferCompare(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	l, r := op.Operands[0].Type, op.Operands[1].Type
	if l.Elem != r.Elem {
		return nil, ir.Broken(1, "operands are %s and %s, want one element type", l, r)
	}
	if !ir.SameShape(l, r) {
		return nil, ir.Broken(2, "operands are %s and %s, want one shape", l, r)
	}
	w := op.Word("compare_type")
	if can := compareTypes[l.Elem.Class()]; w != "" && w != "NOTYPE" && !slices.Contains(can, w) {
		return nil, ir.Broken(3, "compare_type %s does not fit elements of type %s, want %s", w, l.Elem, can[0])
	}
	return []*ir.Type{l.WithElem(ir.I1)}, nil
}

func inferSelect(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	p, t := op.Operands[0].Type, op.Operands[1].Type
	if p.Elem != ir.I1 {
		return nil, ir.Broken(0, "operand 0 is %s, want booleans", p)
	}
	if p.Rank() != 0 && !ir.SameShape(p, t) {
		return nil, ir.Broken(1, "operand 0 is %s, want a scalar or the shape of %s", p, t)
	}
	if !ir.Compatible(t, op.Operands[2].Type) {
		return nil, ir.Broken(2, "operands 1 and 2 are %s and %s, want one type", t, op.Operands[2].Type)
	}
	return []*ir.Type{t}, nil
}

func inferClamp(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[1].Type
	for n, i := range []int{0, 2} {
		u := op.Operands[i].Type
		if u.Elem != t.Elem {
			return nil, ir.Broken(3, "operand %d is %s, want elements of type %s like operand 1", i, u, t.Elem)
		}
		if u.Rank() != 0 && !ir.SameShape(u, t) {
			return nil, ir.Broken(n+1, "operand %d is %s, want a scalar or %s", i, u, t)
		}
	}
	return []*ir.Type{t}, nil
}

func inferConstant(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return []*ir.Type{op.Literal("value").Type}, nil // whose data has been counted
}

func inferIota(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	if t.Elem == ir.I1 {
		return nil, ir.Broken(0, "result is %s, want numbers", t)
	}
	if r := ir.Settled(t); r != nil {
		return nil, r
	}
	if d := op.Int("iota_dimension"); d < 0 || d >= t.Rank() {
		return nil, ir.Broken(1, "iota_dimension %d is not a dimension of %s", d, t)
	}
	return []*ir.Type{t}, nil
}

func inferDeviceID(op *ir.Op) ([]*ir.Type, *ir.Rule) { return []*ir.Type{ir.Tensor(ir.UI32)}, nil }

// inferRngBits: the type of the bits does not follow from the state.
func inferRngBits(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	if t.Rank() != 1 || t.Elem != ir.UI64 {
		return nil, ir.Broken(0, "the state is %s, want numbers of type ui64", t)
	}
	if len(op.Results) != 2 || !op.Results[1].Type.IsTensor() || op.Results[1].Type.Elem.IsComplex() {
		return nil, ir.Broken(0, "want a state and a tensor of integers or floating-point numbers as results")
	}
	n, algorithm := t.Shape[0], op.Word("rng_algorithm")
	if n != ir.Dynamic && n != 2 && (n != 3 || algorithm == "THREE_FRY") && algorithm != "DEFAULT" {
		return nil, ir.Broken(2, "a state of %s is none of %s", ir.Counted(n, "number"), algorithm)
	}
	return []*ir.Type{t, op.Results[1].Type}, nil
}
