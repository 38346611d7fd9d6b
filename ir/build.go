package ir

import (
	"fmt"
	"slices"
)

// A Builder appends ops to a block of a function. Its methods infer the result
// types; an op that breaks a rule gets the types that were given, or none, and
// verify.Verify names the rule.
type Builder struct {
	Func   *Func
	Block  *Block
	Origin *Origin // of the ops to come
}

// NewBuilder returns a Builder at the end of f's body.
func NewBuilder(f *Func) *Builder { return &Builder{Func: f, Block: f.Body} }

// In returns a Builder at the end of another block of the same function.
func (b *Builder) In(block *Block) *Builder { return &Builder{b.Func, block, b.Origin} }

// At returns b with the origin o for the ops to come.
func (b *Builder) At(o *Origin) *Builder { return &Builder{b.Func, b.Block, o} }

// Emit appends an op of the given kind. results are the types of ops whose
// results do not follow from the rest; nil asks for inference.
func (b *Builder) Emit(k Kind, operands []*Value, attrs Attrs, regions []*Block, results []*Type) *Op {
	op := &Op{Kind: k, Operands: slices.Clone(operands), Attrs: attrs, Regions: regions, Origin: b.Origin}
	for i, t := range results {
		v := b.Func.NewValue(t, "")
		v.Def, v.Index = op, i
		op.Results = append(op.Results, v)
	}
	if results == nil && table[k].Results.Max > 0 && table[k].Infer != nil {
		ts, r := table[k].Infer(op)
		if r != nil {
			panic(fmt.Sprintf("ir: building %s: %s [%s]", k, r.Msg, r.Label))
		}
		for i, t := range ts {
			v := b.Func.NewValue(t, "")
			v.Def, v.Index = op, i
			op.Results = append(op.Results, v)
		}
	}
	b.Block.Ops = append(b.Block.Ops, op)
	return op
}

// Infer returns the result types that follow from the rest of op, which has no
// results yet, or the rule that op breaks. It is not for ops whose result
// types do not follow: reshape, convert, iota, collectives that change shapes.
func Infer(op *Op) ([]*Type, *Rule) {
	row := &table[op.Kind]
	for i := range row.Attrs {
		if r := checkAttr(op, &row.Attrs[i]); r != nil {
			return nil, r
		}
	}
	if row.Infer == nil || !row.Operands.Allows(len(op.Operands)) || !row.Regions.Allows(len(op.Regions)) {
		return nil, NewRule("op-2", "has %d operands and %d regions, want %s and %s", len(op.Operands), len(op.Regions), row.Operands, row.Regions)
	}
	ts, r := row.Infer(op)
	return ts, r.of(op)
}

// Retyped is op with other types: its operands and results are new values that
// belong to no function. It is for asking what op would do to values of these
// types.
func (op *Op) Retyped(operands, results []*Type) *Op {
	c := *op
	values := func(ts []*Type) []*Value {
		vs := make([]*Value, len(ts))
		for i, t := range ts {
			vs[i] = &Value{Type: t, Index: i}
		}
		return vs
	}
	c.Operands, c.Results = values(operands), values(results)
	for i, v := range c.Operands {
		if i < len(op.Operands) {
			v.Def = op.Operands[i].Def
		}
	}
	for _, v := range c.Results {
		v.Def = &c
	}
	return &c
}

func (b *Builder) one(k Kind, attrs Attrs, t *Type, operands ...*Value) *Value {
	var ts []*Type
	if t != nil {
		ts = []*Type{t}
	}
	return b.Emit(k, operands, attrs, nil, ts).Results[0]
}

// AttrsOf returns the given attributes, sorted.
func AttrsOf(as ...NamedAttr) Attrs {
	var out Attrs
	for _, a := range as {
		if a.Attr != nil {
			out.Set(a.Name, a.Attr)
		}
	}
	return out
}

// Unary appends an elementwise op of one operand: Tanh, Negate.
func (b *Builder) Unary(k Kind, x *Value) *Value { return b.one(k, nil, nil, x) }

// Binary appends an elementwise op of two operands of one type: Add, Maximum.
func (b *Builder) Binary(k Kind, x, y *Value) *Value { return b.one(k, nil, nil, x, y) }

// Add appends the elementwise sum of two values of one type.
func (b *Builder) Add(x, y *Value) *Value { return b.Binary(Add, x, y) }

// Sub appends the elementwise difference of two values of one type.
func (b *Builder) Sub(x, y *Value) *Value { return b.Binary(Subtract, x, y) }

// Mul appends the elementwise product of two values of one type.
func (b *Builder) Mul(x, y *Value) *Value { return b.Binary(Multiply, x, y) }

// Div appends the elementwise quotient of two values of one type.
func (b *Builder) Div(x, y *Value) *Value { return b.Binary(Divide, x, y) }

// Const appends a constant.
func (b *Builder) Const(l *Literal) *Value {
	return b.one(Constant, Attrs{{"value", l}}, nil)
}

// Splat appends a constant of type t whose every element is v.
func (b *Builder) Splat(t *Type, v float64) *Value { return b.Const(SplatOf(t, v)) }

// I32 appends a scalar integer constant.
func (b *Builder) I32(v int) *Value { return b.Splat(Tensor(I32), float64(v)) }

// Iota appends 0, 1, 2, … along dimension dim.
func (b *Builder) Iota(t *Type, dim int) *Value {
	return b.one(Iota, Attrs{{"iota_dimension", I64Attr(dim)}}, t)
}

// Convert changes the element type; it is x where that is the same.
func (b *Builder) Convert(x *Value, elem DType) *Value {
	if x.Type.Elem == elem {
		return x
	}
	return b.one(Convert, nil, x.Type.WithElem(elem), x)
}

// Broadcast makes dimension i of x dimension dims[i] of a result of the given shape.
func (b *Builder) Broadcast(x *Value, shape []int, dims ...int) *Value {
	return b.one(BroadcastInDim, Attrs{{"broadcast_dimensions", Ints(dims)}}, x.Type.WithShape(shape...), x)
}

// Reshape gives x another shape; it is x where that is the same.
func (b *Builder) Reshape(x *Value, shape ...int) *Value {
	if slices.Equal(x.Type.Shape, shape) {
		return x
	}
	return b.one(Reshape, nil, x.Type.WithShape(shape...), x)
}

// Transpose makes dimension perm[i] of x dimension i; it is x for the identity
// permutation.
func (b *Builder) Transpose(x *Value, perm ...int) *Value {
	identity := true
	for i, p := range perm {
		identity = identity && i == p
	}
	if identity {
		return x
	}
	return b.one(Transpose, Attrs{{"permutation", Ints(perm)}}, nil, x)
}

// Slice takes start:limit of every dimension, in steps of 1.
func (b *Builder) Slice(x *Value, start, limit []int) *Value {
	return b.one(Slice, Attrs{{"limit_indices", Ints(limit)}, {"start_indices", Ints(start)}, {"strides", Ints(Repeat(1, len(start)))}}, nil, x)
}

// SliceDim takes start:limit of dimension dim.
func (b *Builder) SliceDim(x *Value, dim, start, limit int) *Value {
	if start == 0 && limit == x.Type.Shape[dim] {
		return x
	}
	lo, hi := make([]int, x.Type.Rank()), slices.Clone(x.Type.Shape)
	lo[dim], hi[dim] = start, limit
	return b.Slice(x, lo, hi)
}

// Concat concatenates xs along dimension dim; it is x for a single x.
func (b *Builder) Concat(dim int, xs ...*Value) *Value {
	if len(xs) == 1 {
		return xs[0]
	}
	return b.one(Concatenate, Attrs{{"dimension", I64Attr(dim)}}, nil, xs...)
}

// Pad pads x with the scalar v, at the ends and, by interior, between elements.
func (b *Builder) Pad(x, v *Value, low, high, interior []int) *Value {
	return b.one(Pad, Attrs{{"edge_padding_high", Ints(high)}, {"edge_padding_low", Ints(low)}, {"interior_padding", Ints(interior)}}, nil, x, v)
}

// DynamicSlice takes a window of the given sizes at scalar start indices.
func (b *Builder) DynamicSlice(x *Value, start []*Value, sizes ...int) *Value {
	return b.one(DynamicSlice, Attrs{{"slice_sizes", Ints(sizes)}}, nil, append([]*Value{x}, start...)...)
}

// DynamicUpdateSlice replaces the window of x at scalar start indices by u.
func (b *Builder) DynamicUpdateSlice(x, u *Value, start []*Value) *Value {
	return b.one(DynamicUpdateSlice, nil, nil, append([]*Value{x, u}, start...)...)
}

// Index takes element i (a scalar value) of dimension dim, which is dropped.
func (b *Builder) Index(x *Value, dim int, i *Value) *Value {
	start, sizes := b.starts(x, dim, i), slices.Clone(x.Type.Shape)
	sizes[dim] = 1
	return b.Reshape(b.DynamicSlice(x, start, sizes...), slices.Delete(slices.Clone(x.Type.Shape), dim, dim+1)...)
}

// SetIndex replaces element i of dimension dim by u, which lacks that dimension.
func (b *Builder) SetIndex(x *Value, dim int, i, u *Value) *Value {
	shape := slices.Clone(x.Type.Shape)
	shape[dim] = 1
	return b.DynamicUpdateSlice(x, b.Reshape(u, shape...), b.starts(x, dim, i))
}

func (b *Builder) starts(x *Value, dim int, i *Value) []*Value {
	var zero *Value
	start := make([]*Value, x.Type.Rank())
	for d := range start {
		if d == dim {
			start[d] = i
			continue
		}
		if zero == nil {
			zero = b.Splat(Tensor(i.Type.Elem), 0)
		}
		start[d] = zero
	}
	return start
}

// Dot appends a contraction.
func (b *Builder) Dot(x, y *Value, d Dot) *Value {
	return b.one(DotGeneral, Attrs{{"dot_dimension_numbers", d}}, nil, x, y)
}

// Compare appends a comparison: direction is EQ, NE, GE, GT, LE or LT.
func (b *Builder) Compare(direction string, x, y *Value) *Value {
	kind := map[Class]string{Boolean: "UNSIGNED", Signed: "SIGNED", Unsigned: "UNSIGNED", Floating: "FLOAT", Complex: "FLOAT"}[x.Type.Elem.Class()]
	return b.one(Compare, Attrs{{"compare_type", HLOEnum("comparison_type", kind)}, {"comparison_direction", HLOEnum("comparison_direction", direction)}}, nil, x, y)
}

// Select is x where p, y elsewhere.
func (b *Builder) Select(p, x, y *Value) *Value { return b.one(Select, nil, nil, p, x, y) }

// Combiner returns a region that combines two scalars of type elem by k: what
// reductions and collectives take.
func (b *Builder) Combiner(k Kind, elem DType) *Block {
	r := new(Block)
	x, y := b.Func.NewArg(r, Tensor(elem), ""), b.Func.NewArg(r, Tensor(elem), "")
	in := b.In(r)
	in.Emit(Return, []*Value{in.Binary(k, x, y)}, nil, nil, nil)
	return r
}

// Reduce combines the elements along dims by k, from the scalar init.
func (b *Builder) Reduce(k Kind, x, init *Value, dims ...int) *Value {
	return b.Emit(Reduce, []*Value{x, init}, Attrs{{"dimensions", Ints(dims)}}, []*Block{b.Combiner(k, x.Type.Elem)}, nil).Results[0]
}

// Constrain appends a sharding constraint of x to s; it is x for a nil s.
func (b *Builder) Constrain(x *Value, s *Sharding) *Value {
	if s == nil {
		return x
	}
	v := b.one(ShardingConstraint, Attrs{{"sharding", s}}, nil, x)
	v.Name = x.Name
	return v
}

// Call appends a call of f.
func (b *Builder) Call(f *Func, operands ...*Value) []*Value {
	ts := make([]*Type, len(f.Results))
	for i, r := range f.Results {
		ts[i] = r.Type
	}
	return b.Emit(Call, operands, Attrs{{"callee", Sym(f.Name)}}, nil, ts).Results
}

// Return ends the function with vs, which become its results.
func (b *Builder) Return(vs ...*Value) {
	b.Emit(FuncReturn, vs, nil, nil, nil)
	for i, v := range vs {
		if i >= len(b.Func.Results) {
			b.Func.Results = append(b.Func.Results, Result{Type: v.Type})
		}
	}
}

// Stated is the sharding that v is declared with or constrained to; nil without
// one.
func (v *Value) Stated() *Sharding {
	if v.Sharding == nil && v.Def != nil && v.Def.Kind == ShardingConstraint {
		return v.Def.Attrs.Get("sharding").(*Sharding)
	}
	return v.Sharding
}

// Named sets the name of v and returns it.
func (v *Value) Named(name string) *Value {
	v.Name = name
	return v
}

// Repeat is v, n times.
func Repeat(v, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = v
	}
	return out
}
