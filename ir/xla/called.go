package xla

import (
	"slices"

	"ppc/ir"
)

// calling has the custom calls that call functions of the program, by target. Each emits
// other ops of one and returns its results; nil where it does not have the form that
// XLA gives it.
var calling = map[string]func(b *ir.Builder, op *ir.Op, called []*ir.Func) []*ir.Value{
	"ApproxTopK": approxTopK,
}

// called makes other ops of the custom calls in b that call functions of the program,
// which may be sharded; those whose target is unknown are errors.
func (im *importer) called(f *ir.Func, b *ir.Block, sub ir.Subst) {
	out := &ir.Block{Ops: make([]*ir.Op, 0, len(b.Ops))}
	for _, op := range b.Ops {
		sub.Apply(op.Operands)
		for _, r := range op.Regions {
			im.called(f, r, sub)
		}
		list, _ := op.Attrs.Get("called_computations").(ir.Array)
		if op.Kind != ir.CustomCall || len(list) == 0 {
			out.Ops = append(out.Ops, op)
			continue
		}
		target := op.Str("call_target_name")
		emit := calling[target]
		if emit == nil {
			im.errorf(op.Origin, "custom_call @%s calls %s: a call of a function by a custom call is not compiled; call the function itself", target, list[0])
			continue
		}
		results := emit(&ir.Builder{Func: f, Block: out, Origin: op.Origin}, op, im.functions(list))
		if results == nil {
			im.errorf(op.Origin, "custom_call @%s calls %s, and does not have the operands, results and attributes that XLA gives it", target, list[0])
			continue
		}
		for i, v := range op.Results {
			sub[v.ID] = results[i]
		}
	}
	b.Ops = out.Ops
}

// functions are those that are named, with nil for one that the module does not have.
func (im *importer) functions(names ir.Array) []*ir.Func {
	out := make([]*ir.Func, len(names))
	for i, n := range names {
		name, _ := n.(ir.Sym)
		out[i] = im.m.Func(string(name))
	}
	return out
}

// approxTopK sorts along reduction_dim by the comparator and takes the first of what
// XLA may find approximately, as XLA does for platforms without an op for it
// (ApproxTopKFallback in xla/hlo/builder/lib/approx_topk.cc). Of n values that are
// sorted together, as by lax.approx_max_k elements and their indices, operands are the
// arrays, then their initial values.
func approxTopK(b *ir.Builder, op *ir.Op, called []*ir.Func) []*ir.Value {
	config, _ := op.Attrs.Get("mhlo.backend_config").(ir.Dict)
	dim, ok := ir.Attrs(config).Get("reduction_dim").(ir.Int)
	n := len(op.Results)
	if !ok || n == 0 || len(op.Operands) != 2*n || len(called) != 1 || called[0] == nil {
		return nil
	}
	arrays, less := op.Operands[:n], called[0]
	shape := arrays[0].Type.Shape
	d := int(dim.Value)
	if d < 0 || d >= len(shape) || len(less.Params()) != 2*n || len(less.Results) != 1 || !less.Results[0].Type.Equal(ir.Tensor(ir.I1)) {
		return nil
	}
	size := -1
	for i, x := range arrays {
		t := op.Results[i].Type
		if !x.Type.IsStatic() || !t.IsStatic() || !slices.Equal(x.Type.Shape, shape) || t.Rank() != len(shape) || t.Elem != x.Type.Elem {
			return nil
		}
		if size < 0 {
			size = t.Shape[d]
		}
		want := slices.Clone(shape)
		want[d] = size
		if scalar := ir.Tensor(t.Elem); size > shape[d] || !slices.Equal(t.Shape, want) || !less.Params()[2*i].Type.Equal(scalar) || !less.Params()[2*i+1].Type.Equal(scalar) {
			return nil
		}
	}
	region := &ir.Block{}
	for _, p := range less.Params() {
		b.Func.NewArg(region, p.Type, "")
	}
	in := b.In(region)
	in.Emit(ir.Return, in.Call(less, region.Args...), nil, nil, nil)
	sorted := b.Emit(ir.Sort, arrays, ir.Attrs{{Name: "dimension", Attr: ir.I64Attr(d)}, {Name: "is_stable", Attr: ir.Bool(true)}}, []*ir.Block{region}, nil).Results
	out := make([]*ir.Value, n)
	for i, v := range sorted {
		out[i] = b.SliceDim(v, d, 0, size)
	}
	return out
}
