package dialect

import (
	"slices"

	"ppc/ir"
)

// Constraints and result types of ops that move a window over their operand.

func inferReduceWindow(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	inputs, inits, r := inputsAndInits(op, 2, 3, 1)
	if r != nil {
		return nil, r
	}
	rank := inputs[0].Rank()
	for i, name := range []string{"window_dimensions", "window_strides", "base_dilations", "window_dilations"} {
		if r := positive(4+2*i, name, op.IntsOr(name, rank, 1), rank); r != nil {
			return nil, r
		}
	}
	if r := padded(12, op, rank); r != nil {
		return nil, r
	}
	if r := countable(12, op, inputs[0].Shape); r != nil {
		return nil, r
	}
	elems, r := reducer(13, op.Regions[0], inputs, inits, op.Ints("window_dimensions"))
	return tensorsOf(elems, windowShape(op)), r
}

// positive checks constraints n, that there is one number for each dimension,
// and n+1, that it is at least 1.
func positive(n int, name string, list []int, rank int) *ir.Rule {
	if len(list) != rank {
		return ir.Broken(n, "%s has %s, want %d, one for each dimension with windows", name, ir.Counted(len(list), "number"), rank)
	}
	for d, v := range list {
		if v < 1 {
			return ir.Broken(n+1, "%s is %d in dimension %d, want at least 1", name, v, d)
		}
	}
	return nil
}

// padded checks constraint n, that there are two paddings for each dimension, of type i64.
func padded(n int, op *ir.Op, rank int) *ir.Rule {
	if l := op.Literal("padding"); l != nil && l.Type.Elem != ir.I64 {
		return ir.Broken(0, "padding is %s, want elements of type i64", l.Type)
	}
	if l := op.Literal("padding"); l != nil && !slices.Equal(l.Type.Shape, []int{rank, 2}) {
		return ir.Broken(n, "padding is %s, want the shape [%d, 2]", l.Type, rank)
	}
	return nil
}

// countable checks constraint n, that the places of each window can be counted;
// shape is the sizes of the dimensions that have windows.
func countable(n int, op *ir.Op, shape []int) *ir.Rule {
	for d, w := range op.Windows() {
		if !w.Countable(shape[d]) {
			return ir.Broken(n, "the window along dimension %d spans 2^62 places or more: size %d, stride %d, dilation %d, padding %d and %d, base dilation %d", d, w.Size, w.Stride, w.Dilation, w.Low, w.High, w.Base)
		}
	}
	return nil
}

// windowShape is how often the windows of op fit into each dimension of its
// first operand.
func windowShape(op *ir.Op) []int {
	shape := make([]int, op.Operands[0].Type.Rank())
	for d, w := range op.Windows() {
		shape[d] = w.Count(op.Operands[0].Type.Shape[d])
	}
	return shape
}

func inferSelectAndScatter(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	t, source, init := op.Operands[0].Type, op.Operands[1].Type, op.Operands[2].Type
	if !source.SameElem(t) {
		return nil, ir.Broken(1, "source is %s, the operand %s: want one element type", source, t)
	}
	if !init.SameElem(t) || init.Rank() != 0 {
		return nil, ir.Broken(3, "initial value is %s, want %s", init, t.WithShape())
	}
	rank := t.Rank()
	if r := first(
		positive(4, "window_dimensions", op.Ints("window_dimensions"), rank),
		positive(6, "window_strides", op.IntsOr("window_strides", rank, 1), rank),
		padded(8, op, rank),
	); r != nil {
		return nil, r
	}
	if r := countable(8, op, t.Shape); r != nil {
		return nil, r
	}
	if want := windowShape(op); !slices.EqualFunc(source.Shape, want, ir.Fits) {
		return nil, ir.Broken(2, "source is %s, want %s: one element for each window of %s", source, t.WithShape(want...), t)
	}
	scalar := t.WithShape()
	sel := op.Regions[0]
	if len(sel.Args) != 2 || !sel.Args[0].Type.Equal(scalar) || !sel.Args[1].Type.Equal(scalar) {
		return nil, ir.Broken(9, "the first region takes %s, want two of type %s", ir.Counted(len(sel.Args), "value"), scalar)
	}
	if r := carried(9, "result of the first region", returned(sel), []*ir.Type{ir.Tensor(ir.I1)}); r != nil {
		return nil, r
	}
	elems, r := combiner(10, op.Regions[1], []*ir.Type{t})
	if r != nil {
		return nil, r
	}
	return []*ir.Type{elems[0].WithShape(t.Shape...)}, nil
}

func inferConvolution(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := anyTensors(op); r != nil {
		return nil, r
	}
	l, r := op.Operands[0].Type, op.Operands[1].Type
	d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
	if bad := convDims(op, d, l, r); bad != nil {
		return nil, bad
	}
	if bad := convGroups(op, d, l, r); bad != nil {
		return nil, bad
	}
	if bad := countable(4, op, convSizesOf(d, l)); bad != nil {
		return nil, bad
	}
	if p, ok := op.Attrs.Get("precision_config").(ir.Array); ok {
		if r := precisions(24, p); r != nil {
			return nil, r
		}
	}
	if out, rule := quantizedProduct(op, convRules); out != nil || rule != nil {
		if rule == nil {
			rule = quantizedConv(d, r, out)
		}
		return []*ir.Type{out.WithShape(convShape(op, d, l, r)...)}, rule
	}
	if l.Elem != r.Elem {
		return nil, ir.Broken(27, "operands are %s and %s, want one element type", l, r)
	}
	elem := l.Elem
	if len(op.Results) == 1 && op.Results[0].Type.IsTensor() { // a wider result is allowed
		elem = op.Results[0].Type.Elem
	}
	if family(elem) != family(l.Elem) {
		return nil, ir.Broken(27, "result elements are %s, the operands have %s", elem, l.Elem)
	}
	return []*ir.Type{ir.Tensor(elem, convShape(op, d, l, r)...)}, nil
}

// convSizesOf are the sizes of the spatial dimensions of the input l.
func convSizesOf(d ir.ConvDims, l *ir.Type) []int {
	sizes := make([]int, len(d.Input.Spatial))
	for i, k := range d.Input.Spatial {
		sizes[i] = l.Shape[k]
	}
	return sizes
}

// convShape is the shape of the result: a batch, features, and as many windows as
// fit into each spatial dimension.
func convShape(op *ir.Op, d ir.ConvDims, l, r *ir.Type) []int {
	shape := make([]int, l.Rank())
	shape[d.Output.First] = dividedBy(l.Shape[d.Input.First], op.Int("batch_group_count"))
	shape[d.Output.Second] = r.Shape[d.Kernel.Second]
	for i, w := range op.Windows() {
		shape[d.Output.Spatial[i]] = w.Count(l.Shape[d.Input.Spatial[i]])
	}
	return shape
}

// dividedBy is n / by, where n is known.
func dividedBy(n, by int) int {
	if n == ir.Dynamic {
		return n
	}
	return n / by
}

// convDims checks that the dimension numbers name each dimension once, and the
// lists that have a number for each spatial one.
func convDims(op *ir.Op, d ir.ConvDims, l, r *ir.Type) *ir.Rule {
	rank := l.Rank()
	if r.Rank() != rank || rank < 2 {
		return ir.Broken(1, "operands are %s and %s, want one rank of at least 2", l, r)
	}
	numbers := [3]int{12, 17, 19}
	for i, what := range []string{"input", "kernel", "output"} {
		s := d.Sides()[i]
		if n := len(s.Spatial); n != rank-2 {
			return ir.Broken(numbers[i], "%s has %s, operands of rank %d have %d", what, ir.Counted(n, "spatial dimension"), rank, rank-2)
		}
		all := append([]int{s.First, s.Second}, s.Spatial...)
		if bad := first(within(numbers[i]+1, what+" dimensions", all, rank), unique(numbers[i]+1, what+" dimensions", all)); bad != nil {
			return bad
		}
	}
	for i, k := range d.Kernel.Spatial {
		if r.Shape[k] == 0 {
			return ir.Broken(25, "the kernel %s has no elements along spatial dimension %d, want a window of at least 1", r, i)
		}
	}
	n := rank - 2
	for i, name := range []string{"window_strides", "", "lhs_dilation", "rhs_dilation"} {
		if name == "" {
			if bad := padded(4, op, n); bad != nil {
				return bad
			}
			continue
		}
		at := []int{2, 4, 5, 7}[i]
		if bad := positive(at, name, op.IntsOr(name, n, 1), n); bad != nil {
			return bad
		}
	}
	if rev, ok := op.Attrs.Get("window_reversal").(ir.Bools); ok && len(rev) != n {
		return ir.Broken(9, "window_reversal has %s, want %d", ir.Counted(len(rev), "boolean"), n)
	}
	return nil
}

// convGroups checks what the counts of groups divide.
func convGroups(op *ir.Op, d ir.ConvDims, l, r *ir.Type) *ir.Rule {
	features, batches := op.Int("feature_group_count"), op.Int("batch_group_count")
	if features < 1 {
		return ir.Broken(21, "feature_group_count is %d, want at least 1", features)
	}
	if batches < 1 {
		return ir.Broken(22, "batch_group_count is %d, want at least 1", batches)
	}
	if features > 1 && batches > 1 {
		return ir.Broken(23, "feature_group_count is %d and batch_group_count is %d, want one of them to be 1", features, batches)
	}
	divides := func(n int, what string, size int, count string, by int) *ir.Rule {
		if size != ir.Dynamic && size%by != 0 {
			return ir.Broken(n, "%s has size %d, which %s does not divide (%d)", what, size, count, by)
		}
		return nil
	}
	in, kernel := l.Shape[d.Input.Second], r.Shape[d.Kernel.First]
	if bad := first(
		divides(10, "the input's batch dimension", l.Shape[d.Input.First], "batch_group_count", batches),
		divides(11, "the input's feature dimension", in, "feature_group_count", features),
		divides(15, "the kernel's output feature dimension", r.Shape[d.Kernel.Second], "batch_group_count", batches),
		divides(16, "the kernel's output feature dimension", r.Shape[d.Kernel.Second], "feature_group_count", features),
	); bad != nil {
		return bad
	}
	if want := dividedBy(in, features); !ir.Fits(kernel, want) {
		return ir.Broken(14, "the kernel's input feature dimension has size %d, want %d: the input's %d in %s", kernel, want, in, ir.Counted(features, "group"))
	}
	return nil
}
