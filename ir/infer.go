package ir

import "slices"

// The functions in the infer files check the constraints of one op and compute
// its result types. broken(2, …) in dotDims is constraint C2 of the section on
// dot_general in the StableHLO specification; where that leaves a constraint
// to the types of the inputs (I1, I2, …), it is C0 here. The constraints of
// the other ops stand in the comments of their functions. Number and kind of
// operands, regions and attributes have been checked before.

func inferGiven(op *Op) ([]*Type, *Rule)    { return typesOf(op.Results), nil }
func inferIdentity(op *Op) ([]*Type, *Rule) { return typesOf(op.Operands), nil }
func inferNothing(op *Op) ([]*Type, *Rule)  { return nil, nil }

// first returns the first of rs that is broken.
func first(rs ...*Rule) *Rule {
	for _, r := range rs {
		if r != nil {
			return r
		}
	}
	return nil
}

// within checks that dims are dimensions of a tensor of the given rank.
func within(n int, what string, dims []int, rank int) *Rule {
	for _, d := range dims {
		if d < 0 || d >= rank {
			return broken(n, "%d in %s is not one of %s", d, what, Counted(rank, "dimension"))
		}
	}
	return nil
}

func unique(n int, what string, dims []int) *Rule {
	for i, d := range dims {
		if slices.Contains(dims[:i], d) {
			return broken(n, "%d stands twice in %s", d, what)
		}
	}
	return nil
}

func ascending(n int, what string, dims []int) *Rule {
	if !slices.IsSorted(dims) {
		return broken(n, "%s are [%s], want them sorted", what, joinInts(dims))
	}
	return nil
}

func lacks(n int, what string, dims []int, d int) *Rule {
	if slices.Contains(dims, d) {
		return broken(n, "%d in %s is the dimension of the index vectors", d, what)
	}
	return nil
}

// tensors checks that every operand is a tensor.
func tensors(op *Op) *Rule {
	for i, v := range op.Operands {
		if !v.Type.IsTensor() {
			return broken(0, "operand %d is %s, want a tensor", i, v.Type)
		}
	}
	return nil
}

func same(op *Op, ok func(DType) bool, want string) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	if !ok(t.Elem) {
		return nil, broken(0, "operand 0 is %s, want a tensor of %s", t, want)
	}
	for i, v := range op.Operands[1:] {
		if !compatible(v.Type, t) {
			return nil, broken(1, "operand %d is %s, want %s like operand 0", i+1, v.Type, t)
		}
	}
	return []*Type{t}, nil
}

func inferSame(op *Op) ([]*Type, *Rule) {
	return same(op, func(DType) bool { return true }, "anything")
}

func inferFloat(op *Op) ([]*Type, *Rule) {
	return same(op, func(t DType) bool { return t.IsFloat() || t.IsComplex() }, "floating-point or complex numbers")
}

func inferReal(op *Op) ([]*Type, *Rule) {
	return same(op, DType.IsFloat, "floating-point numbers")
}

func inferNumber(op *Op) ([]*Type, *Rule) {
	return same(op, func(t DType) bool { return t != I1 }, "numbers")
}

func inferSigned(op *Op) ([]*Type, *Rule) {
	return same(op, isSigned, "signed numbers")
}

func isSigned(t DType) bool { return t.Class() != Boolean && t.Class() != Unsigned }

func inferInteger(op *Op) ([]*Type, *Rule) { return same(op, DType.IsInt, "integers") }

func inferLogical(op *Op) ([]*Type, *Rule) {
	return same(op, func(t DType) bool { return t.IsInt() || t == I1 }, "integers or booleans")
}

func inferAbs(op *Op) ([]*Type, *Rule) {
	ts, r := inferSigned(op)
	if r == nil {
		ts[0] = ts[0].WithElem(ts[0].Elem.Part())
	}
	return ts, r
}

func inferPart(op *Op) ([]*Type, *Rule) {
	ts, r := inferFloat(op)
	if r == nil {
		ts[0] = ts[0].WithElem(ts[0].Elem.Part())
	}
	return ts, r
}

func inferComplex(op *Op) ([]*Type, *Rule) {
	ts, r := same(op, func(t DType) bool { return t == F32 || t == F64 }, "f32 or f64")
	if r == nil {
		ts[0] = ts[0].WithElem(map[DType]DType{F32: C64, F64: C128}[ts[0].Elem])
	}
	return ts, r
}

func inferIsFinite(op *Op) ([]*Type, *Rule) {
	ts, r := inferReal(op)
	if r == nil {
		ts[0] = ts[0].WithElem(I1)
	}
	return ts, r
}

// given returns the type that the only result has been declared with.
func given(op *Op) (*Type, *Rule) {
	t := op.Results[0].Type
	if !t.IsTensor() {
		return nil, broken(0, "result is %s, want a tensor", t)
	}
	return t, nil
}

func inferConvert(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	if in := op.Operands[0].Type; !sameShape(in, t) {
		return nil, broken(1, "result %s has not the shape of the operand %s", t, in)
	}
	return []*Type{t}, nil
}

func inferBitcast(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	in := op.Operands[0].Type
	if in.Elem.IsComplex() != t.Elem.IsComplex() {
		return nil, broken(2, "a complex and a real type, %s and %s", in, t)
	}
	wide, narrow := in, t
	if in.Elem.Bits() < t.Elem.Bits() {
		wide, narrow = t, in
	}
	want := slices.Clone(wide.Shape)
	if w, n := wide.Elem.Bits(), narrow.Elem.Bits(); w != n {
		if w%n != 0 {
			return nil, broken(1, "elements of %s are no whole number of elements of %s", wide, narrow)
		}
		want = append(want, w/n)
	}
	if !slices.EqualFunc(want, narrow.Shape, fits) {
		return nil, broken(1, "%s is not the bits of %s: that takes %s", t, in, narrow.WithShape(want...))
	}
	return []*Type{t}, nil
}

func inferReducePrecision(op *Op) ([]*Type, *Rule) {
	if op.Int("exponent_bits") < 1 {
		return nil, broken(2, "exponent_bits is %d, want at least 1", op.Int("exponent_bits"))
	}
	if op.Int("mantissa_bits") < 0 {
		return nil, broken(3, "mantissa_bits is %d, want at least 0", op.Int("mantissa_bits"))
	}
	return inferReal(op)
}

// compareTypes are the ways to compare elements of each class, the usual one
// first.
var compareTypes = [...][]string{
	Boolean:  {"UNSIGNED"},
	Signed:   {"SIGNED"},
	Unsigned: {"UNSIGNED"},
	Floating: {"FLOAT", "TOTALORDER"},
	Complex:  {"FLOAT"},
}

func inferCompare(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	l, r := op.Operands[0].Type, op.Operands[1].Type
	if l.Elem != r.Elem {
		return nil, broken(1, "operands are %s and %s, want one element type", l, r)
	}
	if !sameShape(l, r) {
		return nil, broken(2, "operands are %s and %s, want one shape", l, r)
	}
	w := op.Word("compare_type")
	if can := compareTypes[l.Elem.Class()]; w != "" && w != "NOTYPE" && !slices.Contains(can, w) {
		return nil, broken(3, "compare_type %s does not fit elements of type %s, want %s", w, l.Elem, can[0])
	}
	return []*Type{l.WithElem(I1)}, nil
}

func inferSelect(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	p, t := op.Operands[0].Type, op.Operands[1].Type
	if p.Elem != I1 {
		return nil, broken(0, "operand 0 is %s, want booleans", p)
	}
	if p.Rank() != 0 && !sameShape(p, t) {
		return nil, broken(1, "operand 0 is %s, want a scalar or the shape of %s", p, t)
	}
	if !compatible(t, op.Operands[2].Type) {
		return nil, broken(2, "operands 1 and 2 are %s and %s, want one type", t, op.Operands[2].Type)
	}
	return []*Type{t}, nil
}

func inferClamp(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[1].Type
	for n, i := range []int{0, 2} {
		u := op.Operands[i].Type
		if u.Elem != t.Elem {
			return nil, broken(3, "operand %d is %s, want elements of type %s like operand 1", i, u, t.Elem)
		}
		if u.Rank() != 0 && !sameShape(u, t) {
			return nil, broken(n+1, "operand %d is %s, want a scalar or %s", i, u, t)
		}
	}
	return []*Type{t}, nil
}

func inferConstant(op *Op) ([]*Type, *Rule) {
	return []*Type{op.Literal("value").Type}, nil // whose data has been counted
}

func inferIota(op *Op) ([]*Type, *Rule) {
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	if t.Elem == I1 {
		return nil, broken(0, "result is %s, want numbers", t)
	}
	if r := settled(t); r != nil {
		return nil, r
	}
	if d := op.Int("iota_dimension"); d < 0 || d >= t.Rank() {
		return nil, broken(1, "iota_dimension %d is not a dimension of %s", d, t)
	}
	return []*Type{t}, nil
}

func inferDeviceID(op *Op) ([]*Type, *Rule) { return []*Type{Tensor(UI32)}, nil }

// inferRngBits: the type of the bits does not follow from the state.
func inferRngBits(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	if t.Rank() != 1 || t.Elem != UI64 {
		return nil, broken(0, "the state is %s, want numbers of type ui64", t)
	}
	if len(op.Results) != 2 || !op.Results[1].Type.IsTensor() || op.Results[1].Type.Elem.IsComplex() {
		return nil, broken(0, "want a state and a tensor of integers or floating-point numbers as results")
	}
	n, algorithm := t.Shape[0], op.Word("rng_algorithm")
	if n != Dynamic && n != 2 && (n != 3 || algorithm == "THREE_FRY") && algorithm != "DEFAULT" {
		return nil, broken(2, "a state of %s is none of %s", Counted(n, "number"), algorithm)
	}
	return []*Type{t, op.Results[1].Type}, nil
}
