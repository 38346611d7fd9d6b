package dialect

import (
	"slices"
	"strings"

	"ppc/ir"
)

// Constraints and result types of other ops that only the reference evaluator
// knows.

// inferBatchNorm is of all three ops: the statistics are lists with an element for
// each feature.
func inferBatchNorm(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t := op.Operands[0].Type
	if !isReal(t) {
		return nil, ir.Broken(0, "operand 0 is %s, want a tensor of floating-point or quantized numbers", t)
	}
	feature := op.Int("feature_index")
	if r := isDim(1, "feature_index", feature, t); r != nil {
		return nil, r
	}
	lists, grad := op.Operands[1:], op.Name() == "stablehlo.batch_norm_grad"
	if grad {
		lists = op.Operands[1:4]
		if g := op.Operands[4].Type; !g.SameBaseline(t) {
			return nil, ir.Broken(2, "operand 4 is %s, want elements of type %s like operand 0", g, t.ElemText())
		} else if !ir.SameShape(g, t) {
			return nil, ir.Broken(3, "operand 4 is %s, want the shape of operand 0 %s", g, t)
		}
	}
	for i, v := range lists {
		u := v.Type
		number := 3 + i
		if grad && i == 0 {
			number = 5
		} else if grad {
			number = 4
		}
		switch {
		case u.Rank() != 1:
			return nil, ir.Broken(0, "operand %d is %s, want one dimension", i+1, u)
		case !u.SameBaseline(t):
			return nil, ir.Broken(2, "operand %d is %s, want elements of type %s like operand 0", i+1, u, t.ElemText())
		case !ir.Fits(u.Shape[0], t.Shape[feature]):
			return nil, ir.Broken(number, "operand %d is %s, want size %d as the features of %s have", i+1, u, t.Shape[feature], t)
		case !ir.Fits(u.Shape[0], lists[0].Type.Shape[0]):
			return nil, ir.Broken(number, "operands 1 and %d are %s and %s, want one shape", i+1, lists[0].Type, u)
		}
	}
	out := []*ir.Type{rescaled(op, 0, t)}
	for i := 1; i < len(op.Results); i++ {
		out = append(out, rescaled(op, i, t.WithShape(t.Shape[feature])))
	}
	return out, nil
}

func inferMap(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	if len(op.Operands) == 0 {
		return nil, ir.Broken(2, "no operands, want at least 1")
	}
	t := op.Operands[0].Type
	for i, v := range op.Operands {
		if !ir.SameShape(v.Type, t) {
			return nil, ir.Broken(1, "operands 0 and %d are %s and %s, want one shape", i, t, v.Type)
		}
	}
	if dims := op.Ints("dimensions"); !slices.Equal(dims, upTo(t.Rank())) {
		return nil, ir.Broken(3, "dimensions are [%s], want all of %s in order", ir.JoinInts(dims), t)
	}
	b := op.Regions[0]
	if len(b.Args) != len(op.Operands) {
		return nil, ir.Broken(4, "the region takes %s, want %d", ir.Counted(len(b.Args), "value"), len(op.Operands))
	}
	for i, a := range b.Args {
		if want := op.Operands[i].Type.WithShape(); !a.Type.Equal(want) {
			return nil, ir.Broken(4, "region argument %d is %s, want %s", i, a.Type, want)
		}
	}
	out := returned(b)
	if len(out) != 1 || !out[0].IsTensor() || out[0].Rank() != 0 {
		return nil, ir.Broken(4, "the region returns %v, want one scalar", out)
	}
	return []*ir.Type{out[0].WithShape(t.Shape...)}, nil
}

func inferRng(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := first(tensors(op), plain(op)); r != nil {
		return nil, r
	}
	out, r := given(op)
	if r != nil {
		return nil, r
	}
	a, b := op.Operands[0].Type, op.Operands[1].Type
	for i, t := range []*ir.Type{a, b} {
		if t.Rank() != 0 || t.Elem.IsComplex() {
			return nil, ir.Broken(0, "operand %d is %s, want a scalar that is not complex", i, t)
		}
	}
	if a.Elem != b.Elem || a.Elem != out.Elem {
		return nil, ir.Broken(1, "operands are %s and %s, the result is %s: want one element type", a, b, out)
	}
	if op.Word("rng_distribution") == "NORMAL" && !a.Elem.IsFloat() {
		return nil, ir.Broken(2, "operands of NORMAL are %s, want floating-point numbers", a)
	}
	sizes, r := sizesOf(op, 3, 2, out.Rank())
	return []*ir.Type{out}, first(r, madeOf(3, out, sizes))
}

func inferCollectiveReduce(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	if r := (groupRules{unique: 1, inRange: 2, partial: true}).check(op); r != nil {
		return nil, r
	}
	in := op.Operands
	if op.Bool("has_dynamic_root") {
		last := len(in) - 1
		root := in[last].Type
		if last < 1 || root.Rank() != 1 || !root.Elem.IsInt() || !ir.Fits(root.Shape[0], last) {
			return nil, ir.Broken(3, "operand %d is %s, want the number of a root for each of %s", last, root, ir.Counted(last, "operand"))
		}
		in = in[:last]
	}
	if len(in) != len(op.Results) {
		return nil, ir.Broken(3, "%s, want %d", ir.Counted(len(op.Results), "result"), len(in))
	}
	ts := make([]*ir.Type, len(in))
	for i, v := range in {
		elems, r := combiner(4, op.Regions[0], []*ir.Type{v.Type})
		if r != nil {
			return nil, r
		}
		ts[i] = elems[0].WithShape(v.Type.Shape...)
		if out := op.Results[i].Type; !out.IsTensor() || !ir.SameShape(out, v.Type) {
			return nil, ir.Broken(3, "result %d is %s, operand %d is %s: want one shape", i, out, i, v.Type)
		}
	}
	return ts, nil
}

// inferCrossReplicaSum: the groups name each device once (1), from 0 on (2).
func inferCrossReplicaSum(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := first(tensors(op), (groupRules{unique: 1, complete: 1, inRange: 2, padded: true}).check(op)); r != nil {
		return nil, r
	}
	return ir.TypesOf(op.Operands), nil
}

// inferOldBroadcast: the sizes are not negative (1), and come before those of the
// operand (2).
func inferOldBroadcast(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	t, sizes := op.Operands[0].Type, op.Ints("broadcast_sizes")
	for _, n := range sizes {
		if n < 0 {
			return nil, ir.Broken(1, "broadcast_sizes are [%s], want no negative one", ir.JoinInts(sizes))
		}
	}
	out := t.WithShape(slices.Concat(sizes, t.Shape)...)
	if t.PerAxis() {
		out = out.WithQuant(t.Quant.OnAxis(t.Quant.Axis + len(sizes)))
	}
	if have := op.Results[0].Type; !have.IsTensor() || !ir.Compatible(out, have) {
		return nil, ir.Broken(2, "result is %s, want %s", have, out)
	}
	return []*ir.Type{out}, nil
}

// inferOldDot: the operands have one dimension or two (1); what is summed over has
// one size (2); the rest makes the result (3).
func inferOldDot(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	l, r := op.Operands[0].Type, op.Operands[1].Type
	for i, t := range []*ir.Type{l, r} {
		if t.Rank() != 1 && t.Rank() != 2 {
			return nil, ir.Broken(1, "operand %d is %s, want 1 or 2 dimensions", i, t)
		}
	}
	if p, ok := op.Attrs.Get("precision_config").(ir.Array); ok {
		if bad := precisions(4, p); bad != nil {
			return nil, bad
		}
	}
	d := ir.Dot{LhsContract: []int{l.Rank() - 1}, RhsContract: []int{0}}
	if bad := dotDims(d, l, r); bad != nil {
		return nil, bad.Renumbered(map[int]int{10: 2})
	}
	out := op.Results[0].Type
	if want := ir.Tensor(ir.I1, dotShape(d, l, r)...); !out.IsTensor() || !ir.SameShape(want, out) {
		return nil, ir.Broken(3, "result is %s, want the shape [%s]", out, ir.JoinInts(want.Shape))
	}
	if q, bad := quantizedProduct(op, dotRules); q != nil || bad != nil {
		return []*ir.Type{out}, bad
	}
	if family(l.Elem) != family(r.Elem) || family(out.Elem) != family(l.Elem) {
		return nil, ir.Broken(3, "operands are %s and %s, the result is %s: want elements of one family", l, r, out)
	}
	return []*ir.Type{out}, nil
}

// precisions checks constraint n: there is none, or one for each of 2 operands, and
// each is a precision.
func precisions(n int, p ir.Array) *ir.Rule {
	if len(p) > 2 {
		return ir.Broken(n, "%s, want one for each of 2 operands", ir.Counted(len(p), "precision"))
	}
	for i, a := range p {
		if e, ok := a.(ir.Enum); !ok || e.Set != "precision" || !slices.Contains([]string{"DEFAULT", "HIGH", "HIGHEST"}, e.Value) {
			return ir.Broken(n, "precision %d is %s, want one of DEFAULT, HIGH, HIGHEST", i, a)
		}
	}
	return nil
}

// inferEinsum: the string has a part for each operand and one for the result (1), of
// as many letters as there are dimensions (2); a letter has one size (3).
func inferEinsum(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	config := strings.ReplaceAll(op.Str("einsum_config"), " ", "")
	left, right, arrow := strings.Cut(config, "->")
	parts := strings.Split(left, ",")
	if !arrow || len(parts) != len(op.Operands) {
		return nil, ir.Broken(1, "einsum_config is %q, want a part for each of %s and the result", config, ir.Counted(len(op.Operands), "operand"))
	}
	if strings.Contains(config, "...") {
		return inferGiven(op)
	}
	ts := append(ir.TypesOf(op.Operands), op.Results[0].Type)
	sizes := make(map[rune]int)
	for i, part := range append(parts, right) {
		t := ts[i]
		if !t.IsTensor() || len([]rune(part)) != t.Rank() {
			return nil, ir.Broken(2, "einsum_config has %q for %s, want a letter for each dimension", part, t)
		}
		for d, letter := range []rune(part) {
			n, seen := sizes[letter]
			if seen && !ir.Fits(n, t.Shape[d]) || !seen && i == len(parts) {
				return nil, ir.Broken(3, "einsum_config %q: %q has size %d and %d", config, letter, n, t.Shape[d])
			}
			if !seen || n == ir.Dynamic {
				sizes[letter] = t.Shape[d]
			}
		}
	}
	return inferGiven(op)
}

// inferTorchIndexSelect: the indices are integers (1); dim is a dimension of the
// operand (2), and no batch dimension (3), of which operand and indices have as many,
// of equal sizes (4).
func inferTorchIndexSelect(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, idx := op.Operands[0].Type, op.Operands[1].Type
	dim, batch := op.Int("dim"), op.Int("batch_dims")
	if !idx.Elem.IsInt() {
		return nil, ir.Broken(1, "the indices are %s, want integers", idx)
	}
	if r := isDim(2, "dim", dim, t); r != nil {
		return nil, r
	}
	if batch < 0 || batch > dim || batch > idx.Rank() {
		return nil, ir.Broken(3, "batch_dims is %d, want at most dim, which is %d, and %s of the indices", batch, dim, ir.Counted(idx.Rank(), "dimension"))
	}
	for d := range batch {
		if !ir.Fits(t.Shape[d], idx.Shape[d]) {
			return nil, ir.Broken(4, "dimension %d has sizes %d and %d, want one size", d, t.Shape[d], idx.Shape[d])
		}
	}
	shape := slices.Concat(t.Shape[:dim], idx.Shape[batch:], t.Shape[dim+1:])
	return []*ir.Type{t.WithShape(shape...)}, nil
}

// inferScanOp: the segments are the inputs and the carries, of which there are at
// least one input (1); the dimension is one of each input, with one size (2); the
// region takes a slice of each input, without the dimension, and the carries (3), and
// returns slices of the outputs and the carries (4).
func inferScanOp(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	inputs, carries, ok := op.Segments()
	if !ok || inputs < 1 {
		return nil, ir.Broken(1, "operandSegmentSizes are %s, want inputs and carries, %d in all", op.Attrs.Get("operandSegmentSizes"), len(op.Operands))
	}
	dim, b := op.Int("dimension"), op.Regions[0]
	size := ir.Dynamic
	var takes []*ir.Type
	for i, v := range op.Operands[:inputs] {
		if r := isDim(2, "dimension", dim, v.Type); r != nil {
			return nil, r
		}
		n := v.Type.Shape[dim]
		if !ir.Fits(n, size) {
			return nil, ir.Broken(2, "dimension %d of operand %d has size %d, of operand 0 %d", dim, i, n, size)
		}
		if size == ir.Dynamic {
			size = n
		}
		takes = append(takes, v.Type.WithShape(slices.Delete(slices.Clone(v.Type.Shape), dim, dim+1)...))
	}
	carried0 := ir.TypesOf(op.Operands[inputs:])
	if r := carried(3, "arguments of the region", ir.TypesOf(b.Args), append(takes, carried0...)); r != nil {
		return nil, r
	}
	out := returned(b)
	if len(out) < carries {
		return nil, ir.Broken(4, "the region returns %s, want %d carries", ir.Counted(len(out), "value"), carries)
	}
	outputs := len(out) - carries
	if r := carried(4, "carries that the region returns", out[outputs:], carried0); r != nil {
		return nil, r
	}
	var ts []*ir.Type
	for i, t := range out[:outputs] {
		if !t.IsTensor() || dim > t.Rank() {
			return nil, ir.Broken(4, "output %d of the region is %s, which has no place for dimension %d", i, t, dim)
		}
		ts = append(ts, t.WithShape(slices.Insert(slices.Clone(t.Shape), dim, size)...))
	}
	return append(ts, carried0...), nil
}
