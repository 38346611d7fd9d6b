package ir

import "slices"

// The functions in this file check the constraints of one op and compute its
// result types. broken(2, …) in inferDot is constraint C2 of the section on
// dot_general in the StableHLO specification; where that leaves a constraint
// to the types of the inputs (I1, I2, …), it is C0 here. Number and kind of
// operands, regions and attributes have been checked before.

func inferGiven(op *Op) ([]*Type, *Rule)    { return typesOf(op.Results), nil }
func inferIdentity(op *Op) ([]*Type, *Rule) { return typesOf(op.Operands), nil }
func inferNothing(op *Op) ([]*Type, *Rule)  { return nil, nil }

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

func inferNumber(op *Op) ([]*Type, *Rule) {
	return same(op, func(t DType) bool { return t != I1 }, "numbers")
}

func inferInteger(op *Op) ([]*Type, *Rule) { return same(op, DType.IsInt, "integers") }

func inferLogical(op *Op) ([]*Type, *Rule) {
	return same(op, func(t DType) bool { return t.IsInt() || t == I1 }, "integers or booleans")
}

func inferAbs(op *Op) ([]*Type, *Rule) {
	ts, r := same(op, func(t DType) bool { return t.Class() != Boolean && t.Class() != Unsigned }, "signed numbers")
	if r == nil {
		ts[0] = ts[0].WithElem(ts[0].Elem.Part())
	}
	return ts, r
}

func inferIsFinite(op *Op) ([]*Type, *Rule) {
	ts, r := same(op, DType.IsFloat, "floating-point numbers")
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
	if !compatible(op.Operands[0].Type.WithElem(t.Elem), t) {
		return nil, broken(1, "result %s has not the shape of the operand %s", t, op.Operands[0].Type)
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
	want := slices.Clone(in.Shape)
	from, to := in.Elem.Bits(), t.Elem.Bits()
	switch {
	case from > to:
		want = append(want, from/to)
	case from < to:
		if len(want) == 0 || want[len(want)-1] != to/from && want[len(want)-1] != Dynamic {
			return nil, broken(1, "the last dimension of %s does not make one element of %s", in, t)
		}
		want = want[:len(want)-1]
	}
	if !compatible(t.WithShape(want...), t) {
		return nil, broken(1, "%s is not the bits of %s", t, in)
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
	return same(op, DType.IsFloat, "floating-point numbers")
}

func inferCompare(op *Op) ([]*Type, *Rule) {
	ts, r := inferSame(op)
	if r != nil {
		return nil, r
	}
	e := ts[0].Elem
	want := []string{"", "NOTYPE"}
	switch e.Class() {
	case Boolean, Unsigned:
		want = append(want, "UNSIGNED")
	case Signed:
		want = append(want, "SIGNED")
	case Floating:
		want = append(want, "FLOAT", "TOTALORDER")
	case Complex:
		want = append(want, "FLOAT")
		if d := op.Word("comparison_direction"); d != "EQ" && d != "NE" {
			return nil, broken(4, "complex numbers have no order, %s cannot compare them", d)
		}
	}
	if !slices.Contains(want, op.Word("compare_type")) {
		return nil, broken(3, "compare_type %s does not fit elements of type %s", op.Word("compare_type"), e)
	}
	return []*Type{ts[0].WithElem(I1)}, nil
}

func inferSelect(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	p, t := op.Operands[0].Type, op.Operands[1].Type
	if p.Elem != I1 {
		return nil, broken(0, "operand 0 is %s, want booleans", p)
	}
	if p.Rank() != 0 && !compatible(p, t.WithElem(I1)) {
		return nil, broken(1, "operand 0 is %s, want a scalar or the shape of %s", p, t)
	}
	if !compatible(t, op.Operands[2].Type) {
		return nil, broken(2, "operands 1 and 2 are %s and %s", t, op.Operands[2].Type)
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
		if u.Rank() != 0 && !compatible(u, t) {
			return nil, broken(n+1, "operand %d is %s, want a scalar or %s", i, u, t)
		}
		if u.Elem != t.Elem {
			return nil, broken(3, "operand %d has elements of type %s, the operand %s", i, u.Elem, t.Elem)
		}
	}
	return []*Type{t}, nil
}

func inferConstant(op *Op) ([]*Type, *Rule) {
	l := op.Literal("value")
	if n, size := len(l.Data), l.Type.Elem.Size(); n != size && n != size*l.Type.NumElements() {
		return nil, broken(1, "%d bytes of data for %s", n, l.Type)
	}
	if len(op.Results) == 1 && op.Results[0].Type != nil && op.Results[0].Type.Kind == OpaqueType {
		return typesOf(op.Results), nil
	}
	return []*Type{l.Type}, nil
}

func inferIota(op *Op) ([]*Type, *Rule) {
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	if d := op.Int("iota_dimension"); d < 0 || d >= t.Rank() {
		return nil, broken(1, "iota_dimension %d is not a dimension of %s", d, t)
	}
	return []*Type{t}, nil
}

func inferDeviceID(op *Op) ([]*Type, *Rule) { return []*Type{Tensor(UI32)}, nil }

func inferBroadcast(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	in, dims := op.Operands[0].Type, op.Ints("broadcast_dimensions")
	if in.Elem != t.Elem {
		return nil, broken(1, "operand %s and result %s have different element types", in, t)
	}
	if len(dims) != in.Rank() {
		return nil, broken(2, "%d broadcast_dimensions for an operand of rank %d", len(dims), in.Rank())
	}
	for i, d := range dims {
		if d < 0 || d >= t.Rank() {
			return nil, broken(3, "broadcast dimension %d is not a dimension of %s", d, t)
		}
		if slices.Contains(dims[:i], d) {
			return nil, broken(4, "broadcast dimension %d appears twice", d)
		}
		if in.Shape[i] != 1 && in.Shape[i] != t.Shape[d] && in.Shape[i] != Dynamic && t.Shape[d] != Dynamic {
			return nil, broken(5, "operand dimension %d has size %d, result dimension %d has size %d", i, in.Shape[i], d, t.Shape[d])
		}
	}
	return []*Type{t}, nil
}

func inferConcatenate(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, dim := op.Operands[0].Type, op.Int("dimension")
	if dim < 0 || dim >= t.Rank() {
		return nil, broken(4, "dimension %d is not a dimension of %s", dim, t)
	}
	shape := slices.Clone(t.Shape)
	for i, v := range op.Operands[1:] {
		if v.Type.Elem != t.Elem {
			return nil, broken(1, "operand %d is %s, operand 0 is %s", i+1, v.Type, t)
		}
		if v.Type.Rank() != t.Rank() {
			return nil, broken(2, "operand %d has rank %d, operand 0 has rank %d", i+1, v.Type.Rank(), t.Rank())
		}
		for d, n := range v.Type.Shape {
			switch {
			case d == dim:
				if n == Dynamic || shape[d] == Dynamic {
					shape[d] = Dynamic
				} else {
					shape[d] += n
				}
			case n != shape[d] && n != Dynamic && shape[d] != Dynamic:
				return nil, broken(2, "operand %d is %s, operand 0 is %s: they differ outside of dimension %d", i+1, v.Type, t, dim)
			}
		}
	}
	return []*Type{t.WithShape(shape...)}, nil
}

func startIndices(op *Op, vs []*Value, rank int) *Rule {
	if len(vs) != rank {
		return broken(2, "%d start indices for rank %d", len(vs), rank)
	}
	for i, v := range vs {
		if v.Type.Rank() != 0 || !v.Type.Elem.IsInt() || v.Type.Elem != vs[0].Type.Elem {
			return broken(3, "start index %d is %s, want scalar integers of one type", i, v.Type)
		}
	}
	return nil
}

func inferDynamicSlice(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, sizes := op.Operands[0].Type, op.Ints("slice_sizes")
	if r := startIndices(op, op.Operands[1:], t.Rank()); r != nil {
		return nil, r
	}
	if len(sizes) != t.Rank() {
		return nil, broken(2, "%d slice_sizes for an operand of rank %d", len(sizes), t.Rank())
	}
	for d, n := range sizes {
		if n < 0 || t.Shape[d] != Dynamic && n > t.Shape[d] {
			return nil, broken(4, "slice size %d of dimension %d is not within 0 and %d", n, d, t.Shape[d])
		}
	}
	return []*Type{t.WithShape(sizes...)}, nil
}

func inferDynamicUpdateSlice(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, u := op.Operands[0].Type, op.Operands[1].Type
	if t.Elem != u.Elem {
		return nil, broken(2, "operand %s and update %s have different element types", t, u)
	}
	if t.Rank() != u.Rank() {
		return nil, broken(3, "operand %s and update %s have different ranks", t, u)
	}
	if r := startIndices(op, op.Operands[2:], t.Rank()); r != nil {
		r.Label = map[string]string{"C2": "C4", "C3": "C5"}[r.Label]
		return nil, r
	}
	for d, n := range u.Shape {
		if n != Dynamic && t.Shape[d] != Dynamic && n > t.Shape[d] {
			return nil, broken(6, "dimension %d of the update has size %d, the operand %d", d, n, t.Shape[d])
		}
	}
	return []*Type{t}, nil
}

func inferPad(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, v := op.Operands[0].Type, op.Operands[1].Type
	if v.Elem != t.Elem || v.Rank() != 0 {
		return nil, broken(1, "padding value is %s, want a scalar %s", v, t.Elem)
	}
	low, high, interior := op.Ints("edge_padding_low"), op.Ints("edge_padding_high"), op.Ints("interior_padding")
	if len(low) != t.Rank() || len(high) != t.Rank() || len(interior) != t.Rank() {
		return nil, broken(2, "%d, %d and %d paddings for an operand of rank %d", len(low), len(high), len(interior), t.Rank())
	}
	shape := slices.Clone(t.Shape)
	for d := range shape {
		if interior[d] < 0 {
			return nil, broken(3, "interior padding %d of dimension %d is negative", interior[d], d)
		}
		if shape[d] == Dynamic {
			continue
		}
		shape[d] += low[d] + max(shape[d]-1, 0)*interior[d] + high[d]
		if shape[d] < 0 {
			return nil, broken(4, "padding leaves dimension %d with size %d", d, shape[d])
		}
	}
	return []*Type{t.WithShape(shape...)}, nil
}

func inferReshape(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, r := given(op)
	if r != nil {
		return nil, r
	}
	in := op.Operands[0].Type
	if in.Elem != t.Elem {
		return nil, broken(1, "operand %s and result %s have different element types", in, t)
	}
	if in.IsStatic() && t.IsStatic() && in.NumElements() != t.NumElements() {
		return nil, broken(2, "%d elements in %s, %d in %s", in.NumElements(), in, t.NumElements(), t)
	}
	return []*Type{t}, nil
}

// distinct checks that dims are distinct dimensions of a tensor of the given rank.
func distinct(n int, what string, dims []int, rank int) *Rule {
	for i, d := range dims {
		if d < 0 || d >= rank {
			return broken(n, "%s has %d, which is not within 0 and %d", what, d, rank-1)
		}
		if slices.Contains(dims[:i], d) {
			return broken(n, "%s has %d twice", what, d)
		}
	}
	return nil
}

func inferReverse(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	if r := distinct(2, "dimensions", op.Ints("dimensions"), op.Operands[0].Type.Rank()); r != nil {
		return nil, r
	}
	return typesOf(op.Operands), nil
}

func inferSlice(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	start, limit, strides := op.Ints("start_indices"), op.Ints("limit_indices"), op.Ints("strides")
	if len(start) != t.Rank() || len(limit) != t.Rank() || len(strides) != t.Rank() {
		return nil, broken(2, "%d starts, %d limits and %d strides for an operand of rank %d", len(start), len(limit), len(strides), t.Rank())
	}
	shape := make([]int, t.Rank())
	for d := range shape {
		if start[d] < 0 || start[d] > limit[d] || t.Shape[d] != Dynamic && limit[d] > t.Shape[d] {
			return nil, broken(3, "%d:%d is no part of dimension %d, which has size %d", start[d], limit[d], d, t.Shape[d])
		}
		if strides[d] < 1 {
			return nil, broken(4, "stride %d of dimension %d, want at least 1", strides[d], d)
		}
		shape[d] = (limit[d] - start[d] + strides[d] - 1) / strides[d]
	}
	return []*Type{t.WithShape(shape...)}, nil
}

func inferTranspose(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, perm := op.Operands[0].Type, op.Ints("permutation")
	if len(perm) != t.Rank() {
		return nil, broken(2, "permutation [%s] for an operand of rank %d", joinInts(perm), t.Rank())
	}
	if r := distinct(2, "permutation", perm, t.Rank()); r != nil {
		return nil, r
	}
	shape := make([]int, len(perm))
	for d, i := range perm {
		shape[d] = t.Shape[i]
	}
	return []*Type{t.WithShape(shape...)}, nil
}

func inferDot(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	l, r := op.Operands[0].Type, op.Operands[1].Type
	d := op.Attrs.Get("dot_dimension_numbers").(Dot)
	if len(d.LhsBatch) != len(d.RhsBatch) {
		return nil, broken(1, "%d batching dimensions on the left, %d on the right", len(d.LhsBatch), len(d.RhsBatch))
	}
	if len(d.LhsContract) != len(d.RhsContract) {
		return nil, broken(2, "%d contracting dimensions on the left, %d on the right", len(d.LhsContract), len(d.RhsContract))
	}
	if rule := distinct(3, "left dimensions", slices.Concat(d.LhsBatch, d.LhsContract), l.Rank()); rule != nil {
		return nil, rule
	}
	if rule := distinct(4, "right dimensions", slices.Concat(d.RhsBatch, d.RhsContract), r.Rank()); rule != nil {
		return nil, rule
	}
	var shape []int
	for i, b := range d.LhsBatch {
		if n, m := l.Shape[b], r.Shape[d.RhsBatch[i]]; n != m && n != Dynamic && m != Dynamic {
			return nil, broken(9, "batching dimensions %d and %d have sizes %d and %d", b, d.RhsBatch[i], n, m)
		}
		shape = append(shape, l.Shape[b])
	}
	for i, c := range d.LhsContract {
		if n, m := l.Shape[c], r.Shape[d.RhsContract[i]]; n != m && n != Dynamic && m != Dynamic {
			return nil, broken(10, "contracting dimensions %d and %d have sizes %d and %d", c, d.RhsContract[i], n, m)
		}
	}
	for i, n := range l.Shape {
		if !slices.Contains(d.LhsBatch, i) && !slices.Contains(d.LhsContract, i) {
			shape = append(shape, n)
		}
	}
	for i, n := range r.Shape {
		if !slices.Contains(d.RhsBatch, i) && !slices.Contains(d.RhsContract, i) {
			shape = append(shape, n)
		}
	}
	elem := l.Elem
	if len(op.Results) == 1 && op.Results[0].Type.IsTensor() { // a wider result is allowed
		elem = op.Results[0].Type.Elem
	}
	return []*Type{Tensor(elem, shape...)}, nil
}

// body checks a reduction region: 2n scalars in, n scalars out.
func body(op *Op, n int, elems []DType) *Rule {
	b := op.Regions[0]
	if len(b.Args) != 2*n {
		return broken(6, "the region takes %d values, want %d", len(b.Args), 2*n)
	}
	ret := b.Terminator()
	if ret == nil || len(ret.Operands) != n {
		return broken(6, "the region must return %d values", n)
	}
	for i, a := range b.Args {
		if !a.Type.IsTensor() || a.Type.Rank() != 0 {
			return broken(6, "region argument %d is %s, want a scalar", i, a.Type)
		}
	}
	for i, v := range ret.Operands {
		if !v.Type.IsTensor() || v.Type.Rank() != 0 {
			return broken(6, "region result %d is %s, want a scalar", i, v.Type)
		}
		elems[i] = v.Type.Elem
	}
	return nil
}

// variadic splits operands into n inputs of one shape and n scalar initial values.
func variadic(op *Op) (inputs, inits []*Value, r *Rule) {
	if r := tensors(op); r != nil {
		return nil, nil, r
	}
	n := len(op.Operands) / 2
	if len(op.Operands) != 2*n {
		return nil, nil, broken(0, "%d operands, want as many initial values as inputs", len(op.Operands))
	}
	inputs, inits = op.Operands[:n], op.Operands[n:]
	for i, v := range inputs {
		if !compatible(v.Type.WithElem(I1), inputs[0].Type.WithElem(I1)) {
			return nil, nil, broken(1, "inputs 0 and %d have types %s and %s", i, inputs[0].Type, v.Type)
		}
		if inits[i].Type.Rank() != 0 || inits[i].Type.Elem != v.Type.Elem {
			return nil, nil, broken(2, "initial value %d is %s, want a scalar %s", i, inits[i].Type, v.Type.Elem)
		}
	}
	return inputs, inits, nil
}

func inferReduce(op *Op) ([]*Type, *Rule) {
	inputs, _, r := variadic(op)
	if r != nil {
		return nil, r
	}
	t, dims := inputs[0].Type, op.Ints("dimensions")
	if r := distinct(4, "dimensions", dims, t.Rank()); r != nil {
		return nil, r
	}
	elems := make([]DType, len(inputs))
	if r := body(op, len(inputs), elems); r != nil {
		return nil, r
	}
	var shape []int
	for d, n := range t.Shape {
		if !slices.Contains(dims, d) {
			shape = append(shape, n)
		}
	}
	ts := make([]*Type, len(inputs))
	for i := range ts {
		ts[i] = Tensor(elems[i], shape...)
	}
	return ts, nil
}

// Padding is the low and high padding of each dimension of a window op; zeros
// where the attribute is absent.
func (op *Op) Padding(rank int) (low, high []int) {
	low, high = make([]int, rank), make([]int, rank)
	if l := op.Literal("padding"); l != nil && l.Type.NumElements() == 2*rank {
		for d := range rank {
			low[d], high[d] = int(l.Int(2*d)), int(l.Int(2*d+1))
		}
	}
	return low, high
}

// IntsOr is the list called name, or rank times v where it is absent.
func (op *Op) IntsOr(name string, rank, v int) []int {
	if op.Attrs.Has(name) {
		return op.Ints(name)
	}
	return repeat(v, rank)
}

func inferReduceWindow(op *Op) ([]*Type, *Rule) {
	inputs, _, r := variadic(op)
	if r != nil {
		return nil, r
	}
	t := inputs[0].Type
	rank := t.Rank()
	win := op.Ints("window_dimensions")
	strides, base, dil := op.IntsOr("window_strides", rank, 1), op.IntsOr("base_dilations", rank, 1), op.IntsOr("window_dilations", rank, 1)
	for n, list := range [][]int{win, strides, base, dil} {
		if len(list) != rank {
			return nil, broken(4+2*n, "%d window numbers for inputs of rank %d", len(list), rank)
		}
		for _, v := range list {
			if v < 1 {
				return nil, broken(5+2*n, "%d, want at least 1", v)
			}
		}
	}
	if l := op.Literal("padding"); l != nil && l.Type.NumElements() != 2*rank {
		return nil, broken(12, "padding is %s, want %d pairs", l.Type, rank)
	}
	elems := make([]DType, len(inputs))
	if r := body(op, len(inputs), elems); r != nil {
		return nil, r
	}
	low, high := op.Padding(rank)
	shape := make([]int, rank)
	for d, n := range t.Shape {
		if n == Dynamic {
			shape[d] = Dynamic
			continue
		}
		dilated := 0
		if n > 0 {
			dilated = (n-1)*base[d] + 1
		}
		padded, window := low[d]+dilated+high[d], (win[d]-1)*dil[d]+1
		if padded > 0 && window <= padded {
			shape[d] = (padded-window)/strides[d] + 1
		}
	}
	ts := make([]*Type, len(inputs))
	for i := range ts {
		ts[i] = Tensor(elems[i], shape...)
	}
	return ts, nil
}

func inferSort(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	for i, v := range op.Operands {
		if !compatible(v.Type.WithElem(I1), t.WithElem(I1)) {
			return nil, broken(3, "operands 0 and %d are %s and %s", i, t, v.Type)
		}
	}
	if d := op.Int("dimension"); d < -t.Rank() || d >= t.Rank() {
		return nil, broken(4, "dimension %d is not a dimension of %s", d, t)
	}
	b := op.Regions[0]
	if len(b.Args) != 2*len(op.Operands) {
		return nil, broken(5, "the comparator takes %d values, want %d", len(b.Args), 2*len(op.Operands))
	}
	for i, a := range b.Args {
		if want := Tensor(op.Operands[i/2].Type.Elem); !a.Type.Equal(want) {
			return nil, broken(5, "comparator argument %d is %s, want %s", i, a.Type, want)
		}
	}
	if ret := b.Terminator(); ret == nil || len(ret.Operands) != 1 || !ret.Operands[0].Type.Equal(Tensor(I1)) {
		return nil, broken(5, "the comparator must return one boolean scalar")
	}
	return typesOf(op.Operands), nil
}

func inferGather(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, idx := op.Operands[0].Type, op.Operands[1].Type
	g, sizes := op.Attrs.Get("dimension_numbers").(GatherDims), op.Ints("slice_sizes")
	if t.Rank() != len(g.OffsetDims)+len(g.CollapsedSliceDims)+len(g.OperandBatchingDims) {
		return nil, broken(1, "operand of rank %d, but %d offset, %d collapsed and %d batching dimensions", t.Rank(), len(g.OffsetDims), len(g.CollapsedSliceDims), len(g.OperandBatchingDims))
	}
	if g.IndexVectorDim < 0 || g.IndexVectorDim > idx.Rank() {
		return nil, broken(2, "index_vector_dim is %d, the indices have rank %d", g.IndexVectorDim, idx.Rank())
	}
	vector := 1
	if g.IndexVectorDim < idx.Rank() {
		vector = idx.Shape[g.IndexVectorDim]
	}
	if len(g.StartIndexMap) != vector {
		return nil, broken(3, "start_index_map has %d entries, an index %d", len(g.StartIndexMap), vector)
	}
	if !slices.IsSorted(g.OffsetDims) {
		return nil, broken(4, "offset_dims [%s] are not sorted", joinInts(g.OffsetDims))
	}
	if r := distinct(6, "collapsed_slice_dims and operand_batching_dims", slices.Concat(g.CollapsedSliceDims, g.OperandBatchingDims), t.Rank()); r != nil {
		return nil, r
	}
	if r := distinct(13, "start_index_map and operand_batching_dims", slices.Concat(g.StartIndexMap, g.OperandBatchingDims), t.Rank()); r != nil {
		return nil, r
	}
	if r := distinct(15, "start_indices_batching_dims", g.StartIndicesBatchingDims, idx.Rank()); r != nil {
		return nil, r
	}
	if len(g.OperandBatchingDims) != len(g.StartIndicesBatchingDims) {
		return nil, broken(17, "%d batching dimensions of the operand, %d of the indices", len(g.OperandBatchingDims), len(g.StartIndicesBatchingDims))
	}
	for i, d := range g.OperandBatchingDims {
		if n, m := t.Shape[d], idx.Shape[g.StartIndicesBatchingDims[i]]; n != m {
			return nil, broken(18, "batching dimensions %d and %d have sizes %d and %d", d, g.StartIndicesBatchingDims[i], n, m)
		}
	}
	if len(sizes) != t.Rank() {
		return nil, broken(20, "%d slice_sizes for an operand of rank %d", len(sizes), t.Rank())
	}
	var window, batch []int
	for d, n := range sizes {
		if n < 0 || t.Shape[d] != Dynamic && n > t.Shape[d] {
			return nil, broken(21, "slice size %d of dimension %d is not within 0 and %d", n, d, t.Shape[d])
		}
		if slices.Contains(g.CollapsedSliceDims, d) || slices.Contains(g.OperandBatchingDims, d) {
			if n > 1 {
				return nil, broken(8, "slice size %d of dimension %d, which is collapsed or batched: want at most 1", n, d)
			}
			continue
		}
		window = append(window, n)
	}
	for d, n := range idx.Shape {
		if d != g.IndexVectorDim {
			batch = append(batch, n)
		}
	}
	rank := len(window) + len(batch)
	if r := distinct(5, "offset_dims", g.OffsetDims, rank); r != nil {
		return nil, r
	}
	shape := make([]int, rank)
	w, b := 0, 0
	for d := range shape {
		if slices.Contains(g.OffsetDims, d) {
			shape[d] = window[w]
			w++
		} else {
			shape[d] = batch[b]
			b++
		}
	}
	return []*Type{t.WithShape(shape...)}, nil
}

func inferScatter(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	n := (len(op.Operands) - 1) / 2
	if len(op.Operands) != 2*n+1 {
		return nil, broken(0, "%d operands, want inputs, indices and as many updates as inputs", len(op.Operands))
	}
	g := op.Attrs.Get("scatter_dimension_numbers").(ScatterDims)
	t, idx, upd := op.Operands[0].Type, op.Operands[n].Type, op.Operands[n+1].Type
	for i := range n {
		if !compatible(op.Operands[i].Type.WithElem(I1), t.WithElem(I1)) {
			return nil, broken(1, "inputs 0 and %d are %s and %s", i, t, op.Operands[i].Type)
		}
		if !compatible(op.Operands[n+1+i].Type.WithElem(I1), upd.WithElem(I1)) {
			return nil, broken(3, "updates 0 and %d are %s and %s", i, upd, op.Operands[n+1+i].Type)
		}
	}
	if t.Rank() != len(g.UpdateWindowDims)+len(g.InsertedWindowDims)+len(g.InputBatchingDims) {
		return nil, broken(2, "inputs of rank %d, but %d window, %d inserted and %d batching dimensions", t.Rank(), len(g.UpdateWindowDims), len(g.InsertedWindowDims), len(g.InputBatchingDims))
	}
	if r := distinct(8, "update_window_dims", g.UpdateWindowDims, upd.Rank()); r != nil {
		return nil, r
	}
	if r := distinct(9, "inserted_window_dims and input_batching_dims", slices.Concat(g.InsertedWindowDims, g.InputBatchingDims), t.Rank()); r != nil {
		return nil, r
	}
	if g.IndexVectorDim < 0 || g.IndexVectorDim > idx.Rank() {
		return nil, broken(22, "index_vector_dim is %d, the indices have rank %d", g.IndexVectorDim, idx.Rank())
	}
	vector := 1
	if g.IndexVectorDim < idx.Rank() {
		vector = idx.Shape[g.IndexVectorDim]
	}
	if len(g.ScatterDimsToOperandDims) != vector {
		return nil, broken(19, "scatter_dims_to_operand_dims has %d entries, an index %d", len(g.ScatterDimsToOperandDims), vector)
	}
	if r := distinct(20, "scatter_dims_to_operand_dims and input_batching_dims", slices.Concat(g.ScatterDimsToOperandDims, g.InputBatchingDims), t.Rank()); r != nil {
		return nil, r
	}
	if len(g.InputBatchingDims) != len(g.ScatterIndicesBatchingDims) {
		return nil, broken(17, "%d batching dimensions of the inputs, %d of the indices", len(g.InputBatchingDims), len(g.ScatterIndicesBatchingDims))
	}
	if r := distinct(15, "scatter_indices_batching_dims", g.ScatterIndicesBatchingDims, idx.Rank()); r != nil {
		return nil, r
	}
	var batch []int
	for d, m := range idx.Shape {
		if d != g.IndexVectorDim {
			batch = append(batch, m)
		}
	}
	var window []int
	for d, m := range t.Shape {
		if !slices.Contains(g.InsertedWindowDims, d) && !slices.Contains(g.InputBatchingDims, d) {
			window = append(window, m)
		}
	}
	if upd.Rank() != len(batch)+len(window) {
		return nil, broken(4, "updates of rank %d, want %d index and %d window dimensions", upd.Rank(), len(batch), len(window))
	}
	w, b := 0, 0
	for d, m := range upd.Shape {
		if slices.Contains(g.UpdateWindowDims, d) {
			if m > window[w] && window[w] != Dynamic {
				return nil, broken(4, "update dimension %d has size %d, the window at most %d", d, m, window[w])
			}
			w++
		} else {
			if m != batch[b] && m != Dynamic && batch[b] != Dynamic {
				return nil, broken(4, "update dimension %d has size %d, the indices %d", d, m, batch[b])
			}
			b++
		}
	}
	elems := make([]DType, n)
	if r := body(op, n, elems); r != nil {
		return nil, r
	}
	ts := make([]*Type, n)
	for i := range ts {
		ts[i] = op.Operands[i].Type.WithElem(elems[i])
	}
	return ts, nil
}

// carried checks that values of the given types fit the block arguments or
// the returned values.
func carried(n int, what string, have, want []*Type) *Rule {
	if len(have) != len(want) {
		return broken(n, "%s: %d values, want %d", what, len(have), len(want))
	}
	for i := range have {
		if !compatible(have[i], want[i]) {
			return broken(n, "%s: value %d is %s, want %s", what, i, have[i], want[i])
		}
	}
	return nil
}

func returned(b *Block) []*Type {
	if ret := b.Terminator(); ret != nil {
		return typesOf(ret.Operands)
	}
	return nil
}

func inferWhile(op *Op) ([]*Type, *Rule) {
	ts := typesOf(op.Operands)
	cond, do := op.Regions[0], op.Regions[1]
	if r := carried(1, "arguments of the condition", typesOf(cond.Args), ts); r != nil {
		return nil, r
	}
	if r := carried(1, "result of the condition", returned(cond), []*Type{Tensor(I1)}); r != nil {
		return nil, r
	}
	if r := carried(2, "arguments of the body", typesOf(do.Args), ts); r != nil {
		return nil, r
	}
	if r := carried(2, "results of the body", returned(do), ts); r != nil {
		return nil, r
	}
	return ts, nil
}

func inferCase(op *Op) ([]*Type, *Rule) {
	index := op.Operands[0].Type
	want := Tensor(I32)
	if op.Kind == If {
		want = Tensor(I1)
	}
	if !index.Equal(want) {
		return nil, broken(0, "the operand is %s, want %s", index, want)
	}
	ts := returned(op.Regions[0])
	for i, r := range op.Regions {
		if len(r.Args) != 0 {
			return nil, broken(2, "branch %d takes %d values, want none", i, len(r.Args))
		}
		if rule := carried(3, "results of the branches", returned(r), ts); rule != nil {
			return nil, rule
		}
	}
	return ts, nil
}

func inferTuple(op *Op) ([]*Type, *Rule) { return []*Type{Tuple(typesOf(op.Operands)...)}, nil }

func inferGetTupleElement(op *Op) ([]*Type, *Rule) {
	t, i := op.Operands[0].Type, op.Int("index")
	if t.Kind != TupleType || i < 0 || i >= len(t.Elems) {
		return nil, broken(1, "%s has no element %d", t, i)
	}
	return []*Type{t.Elems[i]}, nil
}

// The size of a collective's groups is known only where they are a list; the
// result type decides otherwise.

func groupSize(op *Op) int {
	if l := op.Literal("replica_groups"); l != nil {
		return l.Type.Shape[1]
	}
	return 0
}

func inferAllGather(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	dim := op.Int("all_gather_dim")
	for i, v := range op.Operands {
		t := v.Type
		if dim < 0 || dim >= t.Rank() {
			return nil, broken(1, "all_gather_dim %d is not a dimension of %s", dim, t)
		}
		if i >= len(op.Results) {
			return nil, broken(6, "%d operands and %d results", len(op.Operands), len(op.Results))
		}
		if r := scaled(6, t, op.Results[i].Type, dim, groupSize(op)); r != nil {
			return nil, r
		}
	}
	return typesOf(op.Results), nil
}

// scaled checks that big is small with dimension dim n times as large; any
// multiple where n is 0.
func scaled(rule int, small, big *Type, dim, n int) *Rule {
	ok := big.IsTensor() && big.Rank() == small.Rank() && big.Elem == small.Elem
	for d := 0; ok && d < big.Rank(); d++ {
		s, b := small.Shape[d], big.Shape[d]
		switch {
		case s == Dynamic || b == Dynamic:
		case d != dim:
			ok = s == b
		case n > 0:
			ok = b == s*n
		default:
			ok = s > 0 && b%s == 0
		}
	}
	if !ok {
		return broken(rule, "%s is not %s with dimension %d multiplied by the group's size", big, small, dim)
	}
	return nil
}

func inferReduceScatter(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, dim := op.Operands[0].Type, op.Int("scatter_dimension")
	if dim < 0 || dim >= t.Rank() {
		return nil, broken(2, "scatter_dimension %d is not a dimension of %s", dim, t)
	}
	if r := scaled(8, op.Results[0].Type, t, dim, groupSize(op)); r != nil {
		return nil, r
	}
	return typesOf(op.Results), nil
}

func inferAllToAll(op *Op) ([]*Type, *Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	split, concat, n := op.Int("split_dimension"), op.Int("concat_dimension"), op.Int("split_count")
	var ts []*Type
	for _, v := range op.Operands {
		t := v.Type
		if split < 0 || split >= t.Rank() {
			return nil, broken(1, "split_dimension %d is not a dimension of %s", split, t)
		}
		if n < 1 || t.Shape[split]%n != 0 {
			return nil, broken(2, "split_count %d does not divide dimension %d of %s", n, split, t)
		}
		if concat < 0 || concat >= t.Rank() {
			return nil, broken(3, "concat_dimension %d is not a dimension of %s", concat, t)
		}
		shape := slices.Clone(t.Shape)
		shape[split] /= n
		shape[concat] *= n
		ts = append(ts, t.WithShape(shape...))
	}
	return ts, nil
}

// inferStack: C1 operand 0 is the activation, then `sides` side inputs, then
// weights, each with a leading dimension of size layers; results are the
// activation and scalars. That they fit the layer function is checked where
// the module is at hand.
func inferStack(op *Op) ([]*Type, *Rule) {
	sides, layers := op.Int("sides"), op.Int("layers")
	if sides < 0 || 1+sides > len(op.Operands) {
		return nil, broken(1, "%d side inputs, but %d operands", sides, len(op.Operands))
	}
	for i, v := range op.Operands[1+sides:] {
		if !v.Type.IsTensor() || v.Type.Rank() == 0 || v.Type.Shape[0] != layers {
			return nil, broken(1, "weight %d is %s, want a leading dimension of %d layers", i, v.Type, layers)
		}
	}
	ts := typesOf(op.Results)
	ts[0] = op.Operands[0].Type
	return ts, nil
}

// inferScan: C1 the region takes the iteration number (tensor<i32>), the
// carries and one slice of each per-iteration input, whose leading dimension
// is trip_count; C2 it yields the carries and per-iteration outputs, which are
// stacked on a leading dimension.
func inferScan(op *Op) ([]*Type, *Rule) {
	n, trips, b := op.Int("carries"), op.Int("trip_count"), op.Regions[0]
	if n < 0 || n > len(op.Operands) || trips < 0 {
		return nil, broken(1, "%d carries and %d iterations, with %d operands", n, trips, len(op.Operands))
	}
	want := append([]*Type{Tensor(I32)}, typesOf(op.Operands[:n])...)
	for i, v := range op.Operands[n:] {
		t := v.Type
		if !t.IsTensor() || t.Rank() == 0 || t.Shape[0] != trips {
			return nil, broken(1, "per-iteration input %d is %s, want a leading dimension of %d", i, t, trips)
		}
		want = append(want, t.WithShape(t.Shape[1:]...))
	}
	if r := carried(1, "arguments of the region", typesOf(b.Args), want); r != nil {
		return nil, r
	}
	out := returned(b)
	if len(out) < n {
		return nil, broken(2, "the region yields %d values, want %d carries first", len(out), n)
	}
	if r := carried(2, "carries yielded by the region", out[:n], want[1:1+n]); r != nil {
		return nil, r
	}
	ts := slices.Clone(out)
	for i, t := range ts[n:] {
		ts[n+i] = t.WithShape(append([]int{trips}, t.Shape...)...)
	}
	return ts, nil
}

// inferRotate: C1 a fill has the operand's type; C2 the shift is 1 or -1.
func inferRotate(op *Op) ([]*Type, *Rule) {
	t := op.Operands[0].Type
	if !t.IsTensor() || t.Rank() == 0 {
		return nil, broken(1, "the operand is %s, want a leading stage dimension", t)
	}
	if fill := op.Word("edge") == "fill"; fill != (len(op.Operands) == 2) || fill && !op.Operands[1].Type.Equal(t) {
		return nil, broken(1, "an edge of %q with %d operands: fill takes a second one of type %s", op.Word("edge"), len(op.Operands), t)
	}
	if s := op.Int("shift"); s != 1 && s != -1 {
		return nil, broken(2, "shift is %d, want 1 or -1", s)
	}
	return []*Type{t}, nil
}

// inferRegionResults: C1 the region takes nothing; its results are the op's.
func inferRegionResults(op *Op) ([]*Type, *Rule) {
	if len(op.Regions[0].Args) != len(op.Operands) {
		return nil, broken(1, "the region takes %d values, the op %d", len(op.Regions[0].Args), len(op.Operands))
	}
	return returned(op.Regions[0]), nil
}
