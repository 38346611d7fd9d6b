package dialect

import (
	"slices"

	"ppc/ir"
)

// Constraints and result types of contractions and reductions.

func inferDot(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	l, r := op.Operands[0].Type, op.Operands[1].Type
	d := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	if rule := dotDims(d, l, r); rule != nil {
		return nil, rule
	}
	if p, ok := op.Attrs.Get("precision_config").(ir.Array); ok {
		if r := precisions(11, p); r != nil {
			return nil, r
		}
	}
	if r := algorithmFits(op); r != nil {
		return nil, r
	}
	if out, rule := quantizedProduct(op, dotRules); out != nil || rule != nil {
		if rule == nil {
			rule = quantizedDot(d, r)
		}
		return []*ir.Type{out.WithShape(dotShape(d, l, r)...)}, rule
	}
	if family(l.Elem) != family(r.Elem) {
		return nil, ir.Broken(13, "operands are %s and %s, want elements of one family", l, r)
	}
	elem := l.Elem
	if len(op.Results) == 1 && op.Results[0].Type.IsTensor() { // a wider result is allowed
		elem = op.Results[0].Type.Elem
	}
	if family(elem) != family(l.Elem) {
		return nil, ir.Broken(13, "result elements are %s, the operands have %s", elem, l.Elem)
	}
	return []*ir.Type{ir.Tensor(elem, dotShape(d, l, r)...)}, nil
}

// algorithmFits checks that the algorithm of op, if it has one, exists (24), and that
// it is not given a precision besides (11).
func algorithmFits(op *ir.Op) *ir.Rule {
	a := op.Attrs.Get("algorithm")
	if a == nil {
		return nil
	}
	if p, ok := op.Attrs.Get("precision_config").(ir.Array); ok {
		for i, e := range p {
			if w, ok := e.(ir.Enum); !ok || w.Value != "DEFAULT" {
				return ir.Broken(11, "precision %d is %s beside an algorithm, want DEFAULT", i, e)
			}
		}
	}
	return ir.AlgorithmFits(a)
}

func dotDims(d ir.Dot, l, r *ir.Type) *ir.Rule {
	if len(d.LhsBatch) != len(d.RhsBatch) {
		return ir.Broken(1, "%s on the left, %d on the right", ir.Counted(len(d.LhsBatch), "batching dimension"), len(d.RhsBatch))
	}
	if len(d.LhsContract) != len(d.RhsContract) {
		return ir.Broken(2, "%s on the left, %d on the right", ir.Counted(len(d.LhsContract), "contracting dimension"), len(d.RhsContract))
	}
	if bad := first(
		unique(3, "left dimensions", slices.Concat(d.LhsBatch, d.LhsContract)),
		unique(4, "right dimensions", slices.Concat(d.RhsBatch, d.RhsContract)),
		within(5, "left batching dimensions", d.LhsBatch, l.Rank()),
		within(6, "left contracting dimensions", d.LhsContract, l.Rank()),
		within(7, "right batching dimensions", d.RhsBatch, r.Rank()),
		within(8, "right contracting dimensions", d.RhsContract, r.Rank()),
	); bad != nil {
		return bad
	}
	for i, b := range d.LhsBatch {
		if n, m := l.Shape[b], r.Shape[d.RhsBatch[i]]; !ir.Fits(n, m) {
			return ir.Broken(9, "batching dimensions %d and %d have sizes %d and %d, want one size", b, d.RhsBatch[i], n, m)
		}
	}
	for i, c := range d.LhsContract {
		if n, m := l.Shape[c], r.Shape[d.RhsContract[i]]; !ir.Fits(n, m) {
			return ir.Broken(10, "contracting dimensions %d and %d have sizes %d and %d, want one size", c, d.RhsContract[i], n, m)
		}
	}
	return nil
}

// dotShape is the batching dimensions, then what is left of each side.
func dotShape(d ir.Dot, l, r *ir.Type) []int {
	var shape []int
	for _, b := range d.LhsBatch {
		shape = append(shape, l.Shape[b])
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
	return shape
}

// family is the class of t; integers with and without a sign are one family.
func family(t ir.DType) ir.Class {
	if t.Class() == ir.Unsigned {
		return ir.Signed
	}
	return t.Class()
}

// promotable reports whether every element of the tensor t can be one of u, of
// the same family; of quantized ones, with one expressed type.
func promotable(t, u *ir.Type) bool {
	if t.Quant != nil || u.Quant != nil {
		return t.Quant != nil && u.Quant != nil && t.Quant.Expressed == u.Quant.Expressed && bits(t) <= bits(u)
	}
	return family(t.Elem) == family(u.Elem) && bits(t) <= bits(u)
}

// combiner checks constraint n: the region combines, for each of the types
// in, two scalars into one, of an element type to which the elements can be
// promoted. It returns these scalars' types.
func combiner(n int, b *ir.Block, in []*ir.Type) ([]*ir.Type, *ir.Rule) {
	elems, r := combines(n, b, in)
	for i, t := range elems {
		if t.Rank() != 0 {
			return nil, ir.Broken(n, "region result %d is %s, want a scalar tensor", i, t)
		}
	}
	return elems, r
}

// reducer is combiner of a reduction, which may combine tensors as well: of the shape of
// the initial values, whose sizes are some of those in shape, in their order: of a result,
// or of a window. StableHLO's specification has scalars alone, and its verifier
// takes such regions; nothing computes them.
func reducer(n int, b *ir.Block, in, inits []*ir.Type, shape []int) ([]*ir.Type, *ir.Rule) {
	elems, r := combines(n, b, in)
	for i, t := range elems {
		switch init := inits[i]; {
		case init.Rank() == 0 && t.Rank() != 0:
			return nil, ir.Broken(n, "region result %d is %s, want a scalar tensor", i, t)
		case init.Rank() != 0 && t.Rank() == 0:
			return nil, ir.Broken(n, "initial value %d is %s, want %s like what the region combines", i, init, t)
		case !ir.SameShape(init, t):
			return nil, ir.Broken(n, "region result %d is %s, want the shape of initial value %d, %s", i, t, i, init)
		case !partOf(t.Shape, shape):
			return nil, ir.Broken(n, "region result %d is %s, want a scalar, or some of the sizes %v in their order", i, t, shape)
		}
	}
	return elems, r
}

// partOf reports whether the sizes in part are some of those in all, in their order, where
// both are known.
func partOf(part, all []int) bool {
	for _, n := range all {
		if len(part) > 0 && ir.Fits(part[0], n) {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// combines checks constraint n of a region that combines two tensors into one, for each
// of the types in, and returns their types.
func combines(n int, b *ir.Block, in []*ir.Type) ([]*ir.Type, *ir.Rule) {
	if len(b.Args) != 2*len(in) {
		return nil, ir.Broken(n, "the region takes %s, want %d", ir.Counted(len(b.Args), "value"), 2*len(in))
	}
	out := returned(b)
	if len(out) != len(in) {
		return nil, ir.Broken(n, "the region returns %s, want %d", ir.Counted(len(out), "value"), len(in))
	}
	elems := make([]*ir.Type, len(in))
	for i, t := range out {
		if !t.IsTensor() {
			return nil, ir.Broken(n, "region result %d is %s, want a scalar tensor", i, t)
		}
		if elems[i] = t; !promotable(in[i], t) {
			return nil, ir.Broken(n, "region result %d is %s, to which elements of type %s cannot be promoted", i, t, in[i].ElemText())
		}
		for _, k := range []int{i, len(in) + i} {
			if a := b.Args[k].Type; !a.Equal(t) {
				return nil, ir.Broken(n, "region argument %d is %s, want %s like result %d", k, a, t, i)
			}
		}
	}
	return elems, nil
}

// inputsAndInits splits operands into inputs of one shape and as many initial values. The numbers are those of the constraints on the shapes, the
// element types and the count.
func inputsAndInits(op *ir.Op, shapes, elems, count int) (inputs, inits []*ir.Type, r *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, nil, r
	}
	n := len(op.Operands) / 2
	if n == 0 || len(op.Operands) != 2*n || len(op.Results) != 0 && len(op.Results) != n {
		return nil, nil, ir.Broken(count, "%s and %s, want as many initial values and results as inputs", ir.Counted(len(op.Operands), "operand"), ir.Counted(len(op.Results), "result"))
	}
	inputs, inits = ir.TypesOf(op.Operands[:n]), ir.TypesOf(op.Operands[n:])
	for i, t := range inputs {
		if !ir.SameShape(t, inputs[0]) {
			return nil, nil, ir.Broken(shapes, "inputs 0 and %d are %s and %s, want one shape", i, inputs[0], t)
		}
		if !inits[i].SameElem(t) {
			return nil, nil, ir.Broken(elems, "initial value %d is %s, want %s", i, inits[i], t.WithShape())
		}
	}
	return inputs, inits, nil
}

func inferReduce(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	inputs, inits, r := inputsAndInits(op, 1, 2, 3)
	if r != nil {
		return nil, r
	}
	dims := op.Ints("dimensions")
	if r := first(within(4, "dimensions", dims, inputs[0].Rank()), unique(5, "dimensions", dims)); r != nil {
		return nil, r
	}
	var shape []int
	for d, n := range inputs[0].Shape {
		if !slices.Contains(dims, d) {
			shape = append(shape, n)
		}
	}
	elems, r := reducer(6, op.Regions[0], inputs, inits, shape)
	return tensorsOf(elems, shape), r
}

func tensorsOf(elems []*ir.Type, shape []int) []*ir.Type {
	ts := make([]*ir.Type, len(elems))
	for i, e := range elems {
		ts[i] = e.WithShape(shape...)
	}
	return ts
}

func inferSort(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	for i, v := range op.Operands {
		if !ir.SameShape(v.Type, t) {
			return nil, ir.Broken(3, "operands 0 and %d are %s and %s, want one shape", i, t, v.Type)
		}
	}
	if d := op.Int("dimension"); d < -t.Rank() || d >= t.Rank() {
		return nil, ir.Broken(4, "dimension %d is not a dimension of %s", d, t)
	}
	b := op.Regions[0]
	if len(b.Args) != 2*len(op.Operands) {
		return nil, ir.Broken(5, "the comparator takes %s, want %d", ir.Counted(len(b.Args), "value"), 2*len(op.Operands))
	}
	for i, a := range b.Args {
		if want := op.Operands[i/2].Type.WithShape(); !a.Type.Equal(want) {
			return nil, ir.Broken(5, "comparator argument %d is %s, want %s", i, a.Type, want)
		}
	}
	if r := carried(5, "result of the comparator", returned(b), []*ir.Type{ir.Tensor(ir.I1)}); r != nil {
		return nil, r
	}
	return ir.TypesOf(op.Operands), nil
}

// inferTopK: the operand has a dimension (1), the last, of at least k elements
// (2), which is not negative (3).
func inferTopK(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, k := op.Operands[0].Type, op.Int("k")
	if t.Rank() == 0 || t.Elem.IsComplex() || t.Elem == ir.I1 {
		return nil, ir.Broken(1, "operand is %s, want real numbers along a dimension", t)
	}
	last := t.Rank() - 1
	if n := t.Shape[last]; n != ir.Dynamic && k > n {
		return nil, ir.Broken(2, "k is %d, dimension %d has size %d", k, last, n)
	}
	if k < 0 {
		return nil, ir.Broken(3, "k is %d, want at least 0", k)
	}
	shape := slices.Clone(t.Shape)
	shape[last] = k
	return []*ir.Type{t.WithShape(shape...), ir.Tensor(ir.I32, shape...)}, nil
}
