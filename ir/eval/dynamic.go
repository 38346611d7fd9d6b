package eval

import (
	"errors"
	"fmt"
	"slices"

	"ppc/ir"
)

// A program may leave sizes open that are known when it runs. The functions in
// this file give an op the sizes that its operands have.

// typeOfValue is the type of x, for which the program says t.
func typeOfValue(x *tensor, t *ir.Type) *ir.Type {
	if !t.IsTensor() || t.IsStatic() {
		return t
	}
	return t.WithShape(x.shape...)
}

func isOpen(v *ir.Value) bool { return v.Type.IsTensor() && !v.Type.IsStatic() }

// handsOn reports whether op gets its results from elsewhere than its own row.
func handsOn(op *ir.Op) bool {
	switch op.Kind {
	case ir.While, ir.If, ir.Case, ir.Call, ir.CompositeCall, ir.CustomCall, ir.NamedComputation:
		return true
	case ir.Unknown:
		return references[op.Spelling] != nil
	}
	return false
}

// concrete is e with an op that has the sizes of its operands' values, where the
// program does not say all of them.
func (e *exec) concrete() (*exec, error) {
	if handsOn(e.op) || !slices.ContainsFunc(e.op.Operands, isOpen) && !slices.ContainsFunc(e.op.Results, isOpen) {
		return e, nil
	}
	types := make([]*ir.Type, len(e.in))
	for i, v := range e.op.Operands {
		types[i] = typeOfValue(e.in[i], v.Type)
	}
	op := e.op.Retyped(types, ir.TypesOf(e.op.Results))
	results, r := ir.Infer(op)
	if r != nil {
		return nil, errors.New(r.Msg)
	}
	for i, t := range results {
		if t.IsTensor() && !t.IsStatic() && op.Kind.Has(ir.Elementwise) && len(types) > 0 {
			t = t.WithShape(types[0].Shape...)
		}
		if t.IsTensor() && !t.IsStatic() {
			return nil, fmt.Errorf("the sizes of result %d, %s, do not follow from those of the operands", i, t)
		}
		results[i] = t
	}
	return &exec{e.p, e.fr, e.op.Retyped(types, results), e.in}, e.p.w.fitting(results)
}

// fitting checks that there is memory for values of the types.
func (w *world) fitting(ts []*ir.Type) error {
	for _, t := range ts {
		if _, err := w.size(t); err != nil {
			return err
		}
	}
	return nil
}

// do evaluates an op of kind k. Its result has type t, or, where that is nil,
// the one that follows from the operands.
func (e *exec) do(k ir.Kind, t *ir.Type, attrs ir.Attrs, in ...*tensor) (*tensor, error) {
	op := &ir.Op{Kind: k, Attrs: attrs, Origin: e.op.Origin}
	types := make([]*ir.Type, len(in))
	for i, x := range in {
		types[i] = ir.Tensor(x.elem, x.shape...)
	}
	var results []*ir.Type
	if t != nil {
		results = []*ir.Type{t}
	}
	op = op.Retyped(types, results)
	results, r := ir.Infer(op)
	if r != nil {
		return nil, errors.New(r.Msg)
	}
	if err := e.p.w.fitting(results); err != nil {
		return nil, err
	}
	out, err := (&exec{e.p, e.fr, op.Retyped(types, results), in}).row()
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// attrsOf are the attributes of e's op called names.
func (e *exec) attrsOf(names ...string) ir.Attrs {
	var attrs ir.Attrs
	for _, name := range names {
		if a := e.op.Attrs.Get(name); a != nil {
			attrs.Set(name, a)
		}
	}
	return attrs
}

// intsOf are the elements of a list.
func intsOf(x *tensor) []int {
	out := make([]int, len(x.i))
	for k, v := range x.i {
		out[k] = clampInt(x.elem, v)
	}
	return out
}

// sized checks that sizes are sizes of the declared result, and returns its type
// with them.
func (e *exec) sized(sizes []int) (*ir.Type, error) {
	t := e.op.Results[0].Type
	for d, n := range sizes {
		if n < 0 || d < t.Rank() && !ir.Fits(t.Shape[d], n) {
			return nil, fmt.Errorf("the sizes are [%s] for %s", ir.JoinInts(sizes), t)
		}
	}
	u := t.WithShape(sizes...)
	return u, e.p.w.fitting([]*ir.Type{u})
}

// one makes the only result of an op.
func one(f func(e *exec) (*tensor, error)) func(*exec) ([]*tensor, error) {
	return func(e *exec) ([]*tensor, error) {
		x, err := f(e)
		if err != nil {
			return nil, err
		}
		return []*tensor{x}, nil
	}
}

func dynamicReshape(e *exec) (*tensor, error) {
	t, err := e.sized(intsOf(e.in[1]))
	if err != nil {
		return nil, err
	}
	if t.NumElements() != e.in[0].len() {
		return nil, fmt.Errorf("%d elements become %s", e.in[0].len(), t)
	}
	return e.in[0].reshaped(t.Shape), nil
}

func dynamicBroadcast(e *exec) (*tensor, error) {
	t, err := e.sized(intsOf(e.in[1]))
	if err != nil {
		return nil, err
	}
	return e.do(ir.BroadcastInDim, t, e.attrsOf("broadcast_dimensions"), e.in[0])
}

func dynamicIota(e *exec) (*tensor, error) {
	t, err := e.sized(intsOf(e.in[0]))
	if err != nil {
		return nil, err
	}
	return e.do(ir.Iota, t, e.attrsOf("iota_dimension"))
}

func dynamicPad(e *exec) (*tensor, error) {
	return e.do(ir.Pad, nil, ir.AttrsOf(ir.NamedAttr{Name: "edge_padding_low", Attr: ir.Ints(intsOf(e.in[2]))},
		ir.NamedAttr{Name: "edge_padding_high", Attr: ir.Ints(intsOf(e.in[3]))}, ir.NamedAttr{Name: "interior_padding", Attr: ir.Ints(intsOf(e.in[4]))}), e.in[0], e.in[1])
}

func realDynamicSlice(e *exec) (*tensor, error) {
	return e.do(ir.Slice, nil, ir.AttrsOf(ir.NamedAttr{Name: "start_indices", Attr: ir.Ints(intsOf(e.in[1]))},
		ir.NamedAttr{Name: "limit_indices", Attr: ir.Ints(intsOf(e.in[2]))}, ir.NamedAttr{Name: "strides", Attr: ir.Ints(intsOf(e.in[3]))}), e.in[0])
}

func dynamicGather(e *exec) (*tensor, error) {
	attrs := e.attrsOf("dimension_numbers", "indices_are_sorted")
	attrs.Set("slice_sizes", ir.Ints(intsOf(e.in[2])))
	return e.do(ir.Gather, nil, attrs, e.in[0], e.in[1])
}

func dynamicConv(e *exec) (*tensor, error) {
	attrs := slices.Clone(e.op.Attrs)
	attrs.Set("padding", ir.Ints64(ir.Tensor(ir.I64, e.in[2].shape...), intsOf(e.in[2])...))
	t := e.op.Results[0].Type
	return e.do(ir.Convolution, ir.Tensor(e.p.elem(t.Elem), t.Shape...), attrs, e.in[0], e.in[1])
}

func getDimensionSize(e *exec) (*tensor, error) {
	return number(ir.I32, e.in[0].shape[e.op.Int("dimension")]), nil
}

func setDimensionSize(e *exec) (*tensor, error) {
	x, d, n := e.in[0], e.op.Int("dimension"), int(e.in[1].i[0])
	if n < 0 || n > x.shape[d] {
		return nil, fmt.Errorf("size %d for dimension %d of %s", n, d, x)
	}
	return x.part(d, 0, n), nil
}
