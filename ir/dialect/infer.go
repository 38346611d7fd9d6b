package dialect

import (
	"slices"

	"ppc/ir"
)

// The functions in the infer files check the constraints of one op and compute its
// result types. broken(2, …) in dotDims is constraint C2 of the section on
// dot_general in the StableHLO specification; where that leaves a constraint to the
// types of the inputs (I1, I2, …), it is C0 here. The constraints of the other ops
// are in the comments of their functions. Number and kind of operands, regions and
// attributes have been checked before.

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
			return ir.Broken(n, "%d occurs twice in %s", d, what)
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

// tensors checks that every operand is a tensor, and none is quantized along an
// axis.
func tensors(op *ir.Op) *ir.Rule {
	for i, v := range op.Operands {
		if !v.Type.IsTensor() || v.Type.PerAxis() {
			return ir.Broken(0, "operand %d is %s, want a tensor%s", i, v.Type, otherQuant(v.Type))
		}
	}
	return nil
}

// otherQuant says what is wrong with the tensor t where it is quantized along an
// axis.
func otherQuant(t *ir.Type) string {
	if t.PerAxis() {
		return ", quantized with one scale if at all"
	}
	return ""
}

// anyTensors checks that every operand is a tensor, quantized or not.
func anyTensors(op *ir.Op) *ir.Rule {
	for i, v := range op.Operands {
		if !v.Type.IsTensor() {
			return ir.Broken(0, "operand %d is %s, want a tensor", i, v.Type)
		}
	}
	return nil
}

// plain checks that neither operands nor results are quantized.
func plain(op *ir.Op) *ir.Rule {
	for i, v := range op.Operands {
		if v.Type.Quant != nil {
			return ir.Broken(0, "operand %d is %s, want a tensor that is not quantized", i, v.Type)
		}
	}
	for i, v := range op.Results {
		if v.Type.Quant != nil {
			return ir.Broken(0, "result %d is %s, want a tensor that is not quantized", i, v.Type)
		}
	}
	return nil
}

// same checks that the operands have one type, whose elements are ok, but for
// scales and zero points. So has the result.
func same(op *ir.Op, ok func(*ir.Type) bool, want string) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	if !ok(t) {
		return nil, ir.Broken(0, "operand 0 is %s, want a tensor of %s", t, want)
	}
	for i, v := range op.Operands[1:] {
		if !baseline(v.Type, t) {
			return nil, ir.Broken(1, "operand %d is %s, want %s like operand 0", i+1, v.Type, t)
		}
	}
	return []*ir.Type{rescaled(op, 0, t)}, nil
}

// baseline reports whether t and u can be the type of one value, but for the
// scales and zero points of quantized ones.
func baseline(t, u *ir.Type) bool {
	return ir.Compatible(t, u) || t.IsTensor() && u.IsTensor() && t.Quant != nil && t.SameBaseline(u) && ir.SameShape(t, u)
}

// rescaled is t with the scales and zero points that result i of op has been
// given, where t is quantized and they are all that differs.
func rescaled(op *ir.Op, i int, t *ir.Type) *ir.Type {
	if t.Quant == nil || i >= len(op.Results) || !baseline(t, op.Results[i].Type) {
		return t
	}
	return t.WithQuant(op.Results[i].Type.Quant)
}

func inferSame(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, func(*ir.Type) bool { return true }, "anything")
}

func inferFloat(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, isFloat, "floating-point, complex or quantized numbers")
}

func isFloat(t *ir.Type) bool { return t.Elem.IsFloat() || t.Elem.IsComplex() || t.Quant != nil }

func inferReal(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, isReal, "floating-point or quantized numbers")
}

func isReal(t *ir.Type) bool { return t.Elem.IsFloat() || t.Quant != nil }

func inferNumber(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, func(t *ir.Type) bool { return t.Elem != ir.I1 }, "numbers")
}

func inferSigned(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, func(t *ir.Type) bool { return isSigned(t.Elem) }, "signed numbers")
}

func isSigned(t ir.DType) bool { return t.Class() != ir.Boolean && t.Class() != ir.Unsigned }

func inferInteger(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, func(t *ir.Type) bool { return t.Elem.IsInt() }, "integers")
}

func inferLogical(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	return same(op, func(t *ir.Type) bool { return t.Elem.IsInt() || t.Elem == ir.I1 }, "integers or booleans")
}

func inferAbs(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := inferSigned(op)
	if r == nil && ts[0].Quant == nil {
		ts[0] = ts[0].WithElem(ts[0].Elem.Part())
	}
	return ts, r
}

func inferPart(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := plain(op); r != nil {
		return nil, r
	}
	ts, r := inferFloat(op)
	if r == nil {
		ts[0] = ts[0].WithElem(ts[0].Elem.Part())
	}
	return ts, r
}

func inferComplex(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := same(op, func(t *ir.Type) bool { return t.Elem == ir.F32 || t.Elem == ir.F64 }, "f32 or f64")
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
	if r := first(tensors(op), plain(op)); r != nil {
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
	if r := anyTensors(op); r != nil {
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
	if bits(in) < bits(t) {
		wide, narrow = t, in
	}
	want := slices.Clone(wide.Shape)
	if w, n := bits(wide), bits(narrow); w != n {
		if w%n != 0 {
			return nil, ir.Broken(1, "the bits of an element of %s are no multiple of those of %s", wide, narrow)
		}
		want = append(want, w/n)
	}
	if !slices.EqualFunc(want, narrow.Shape, ir.Fits) {
		return nil, ir.Broken(1, "%s is not the bits of %s: that takes %s", t, in, narrow.WithShape(want...))
	}
	return []*ir.Type{t}, nil
}

// bits is the width of the elements of t, of those that are stored where it is
// quantized.
func bits(t *ir.Type) int {
	if t.Quant != nil {
		return t.Quant.Storage.Bits()
	}
	return t.Elem.Bits()
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
	if !l.SameBaseline(r) {
		return nil, ir.Broken(1, "operands are %s and %s, want one element type", l, r)
	}
	if !ir.SameShape(l, r) {
		return nil, ir.Broken(2, "operands are %s and %s, want one shape", l, r)
	}
	w := op.Word("compare_type")
	class := l.Elem.Class()
	if l.Quant != nil {
		class = ir.Floating
	}
	if can := compareTypes[class]; w != "" && w != "NOTYPE" && !slices.Contains(can, w) {
		return nil, ir.Broken(3, "compare_type %s does not fit elements of type %s, want %s", w, l.ElemText(), can[0])
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
	if !baseline(t, op.Operands[2].Type) {
		return nil, ir.Broken(2, "operands 1 and 2 are %s and %s, want one type", t, op.Operands[2].Type)
	}
	return []*ir.Type{rescaled(op, 0, both(t, op.Operands[2].Type))}, nil
}

// both is what is known of a value that is one of types t and u: a size that either has.
func both(t, u *ir.Type) *ir.Type {
	if t.IsStatic() || t.Text != "" || u.Text != "" {
		return t
	}
	shape := slices.Clone(t.Shape)
	for d, n := range shape {
		if n == ir.Dynamic {
			shape[d] = u.Shape[d]
		}
	}
	return t.WithShape(shape...)
}

func inferClamp(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[1].Type
	for n, i := range []int{0, 2} {
		u := op.Operands[i].Type
		if !u.SameBaseline(t) {
			return nil, ir.Broken(3, "operand %d is %s, want elements of type %s like operand 1", i, u, t.ElemText())
		}
		if u.Rank() != 0 && !ir.SameShape(u, t) {
			return nil, ir.Broken(n+1, "operand %d is %s, want a scalar or %s", i, u, t)
		}
	}
	return []*ir.Type{rescaled(op, 0, t)}, nil
}

func inferConstant(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	t := op.Literal("value").Type // whose data has been counted
	if len(op.Results) == 1 && op.Results[0].Type.Quant != nil {
		u := op.Results[0].Type
		if t.Elem != u.Quant.Storage || !ir.SameShape(t, u) {
			return nil, ir.Broken(1, "the value is %s, %s is stored as %s", t, u, ir.Tensor(u.Quant.Storage, u.Shape...))
		}
		return []*ir.Type{u}, nil
	}
	if t.Elem == ir.Index {
		return nil, ir.Broken(0, "the value is %s, want other elements than those of type index", t)
	}
	return []*ir.Type{t}, nil
}

func inferIota(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	if t.Elem == ir.I1 || t.PerAxis() {
		return nil, ir.Broken(0, "result is %s, want numbers%s", t, otherQuant(t))
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
	if len(op.Results) != 2 || !op.Results[1].Type.IsTensor() || op.Results[1].Type.Elem.IsComplex() || op.Results[1].Type.Elem == ir.I1 {
		return nil, ir.Broken(0, "want a state and a tensor of integers or floating-point numbers as results")
	}
	if r := ir.Settled(op.Results[1].Type); r != nil {
		return nil, r
	}
	n, algorithm := t.Shape[0], op.Word("rng_algorithm")
	if n != ir.Dynamic && n != 2 && (n != 3 || algorithm == "THREE_FRY") && algorithm != "DEFAULT" {
		return nil, ir.Broken(2, "a state of %s is none of %s", ir.Counted(n, "number"), algorithm)
	}
	return []*ir.Type{t, op.Results[1].Type}, nil
}
