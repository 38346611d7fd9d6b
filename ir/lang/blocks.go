package lang

import (
	"slices"

	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// blocked is blocks(fn, along: axis, size: n)(arguments…): the function on n
// elements of an axis at a time, in a loop. An argument that has the axis is
// sliced, any other is shared by all blocks; every result has the axis, and is
// concatenated. The values of a block are rematerialised in the backward pass, so
// that those of one block at a time are live.
//
// Where the rules shard the axis, a block is made of as many elements of each
// device, so that no block moves elements between devices.
func (e *elab) blocked(x, inner *syntax.CallExpr) value.Value {
	d, along, size, ok := e.blockArgs(inner)
	if !ok {
		for _, a := range x.Args {
			e.eval(a.Value)
		}
		return value.Poison{}
	}
	scope := newScope()
	e.mark(x.Span)
	if !e.bindArgs(x, d, scope) {
		return value.Poison{}
	}
	k := &blockLoop{e: e, along: along, size: size, parts: e.shardsAlong(along)}
	sliced, ok := k.slice(x, d, scope)
	if !ok {
		return value.Poison{}
	}
	return k.run(x, d, scope, sliced)
}

// blockArgs reads the function, the axis and the size of a block.
func (e *elab) blockArgs(x *syntax.CallExpr) (d *syntax.FuncDecl, along string, size int, ok bool) {
	slots, ok := e.match(x, "blocks", []string{"function", "along", "size"})
	for _, a := range slots {
		if a == nil && ok {
			e.fail(x.Span, "blocks(f, along: seq, size: 128)(x)", syntax.ErrBlocksForm)
			ok = false
		}
	}
	if !ok {
		return nil, "", 0, false
	}
	n, isName := slots[0].Value.(*syntax.NameRef)
	if isName {
		d = e.p.Fns[n.Name]
		if f, bound := e.scope.vars[n.Name].(functionRef); bound {
			d = f.decl
		}
	}
	if d == nil || d.Kind != "fn" {
		e.fail(slots[0].Span, "fn f(x) { … }, then blocks(f, along: seq, size: 128)(x)", syntax.ErrBlocksForm)
		return nil, "", 0, false
	}
	if slices.ContainsFunc(e.frames, func(f frame) bool { return f.decl == d }) {
		e.fail(x.Span, "functions are inlined and cannot recur", syntax.ErrRecursion, d.Name)
		return nil, "", 0, false
	}
	along, ok = e.axisOf(slots[1].Value)
	if !ok {
		return nil, "", 0, false
	}
	c := &builtinCall{name: "blocks", Span: x.Span, exprs: map[string]syntax.Expr{"size": slots[2].Value}, args: make(map[string]value.Value)}
	if c.args["size"], ok = e.argument("blocks", argSpec{name: "size", kind: numberArg}, slots[2].Value); ok {
		size, ok = e.intArg(c, "size", 1, config.MaxAxis)
	}
	return d, along, size, ok
}

// shardsAlong is the number of shards that the activation rules split an axis into.
func (e *elab) shardsAlong(name string) int {
	if e.p.Mesh == nil {
		return 1
	}
	return e.p.Mesh.RefsSize(ir.Axs(e.act.Apply([]string{name})[0].Mesh...))
}

// A blockLoop is the loop over the blocks of one call.
type blockLoop struct {
	e     *elab
	along string
	size  int // of a block
	parts int // that devices hold of the axis, in all
	n     int // blocks
}

// slice returns the names of the arguments that have the axis; it must exist, and
// be divisible by the block size.
func (k *blockLoop) slice(x *syntax.CallExpr, d *syntax.FuncDecl, s *scope) (names []string, ok bool) {
	total := 0
	for _, q := range d.Params {
		t, isTensor := s.vars[q.Name].(*value.Tensor)
		if !isTensor || t.Axis(k.along) < 0 {
			continue
		}
		names = append(names, q.Name)
		n := t.Axes[t.Axis(k.along)].Size
		if total != 0 && n != total {
			k.e.fail(x.Span, "", syntax.ErrSizes, "blocks", k.along, total, n)
			return nil, false
		}
		total = n
	}
	switch {
	case total == 0:
		k.e.fail(x.Span, "", syntax.ErrBlocksAxis, d.Name, k.along)
	case total%k.size != 0:
		k.e.fail(x.Span, "", syntax.ErrBlocksSize, k.along, total, k.size)
	case total%k.parts != 0 || k.size%k.parts != 0:
		k.e.fail(x.Span, "", syntax.ErrBlocksParts, k.size, k.along, k.parts)
	default:
		k.n = total / k.size
		return names, true
	}
	return nil, false
}

// run builds the loop, whose body is the function's.
func (k *blockLoop) run(x *syntax.CallExpr, d *syntax.FuncDecl, s *scope, sliced []string) value.Value {
	e, outer := k.e, *k.e
	var xs []*ir.Value
	for _, name := range sliced {
		xs = append(xs, k.split(s.vars[name].(*value.Tensor)))
	}
	for _, q := range d.Params {
		if t, ok := s.vars[q.Name].(*value.Tensor); ok && !slices.Contains(sliced, q.Name) {
			s.set(q.Name, e.gatheredOnce(t))
		}
	}
	loop, body := new(ir.Block), new(ir.Block)
	e.b.Func.NewArg(loop, ir.Tensor(ir.I32), "block")
	e.b = e.b.In(body)
	for i, name := range sliced {
		t := s.vars[name].(*value.Tensor)
		s.set(name, k.join(t.Axes, e.b.Func.NewArg(loop, xs[i].Type.WithShape(xs[i].Type.Shape[1:]...), name)))
	}
	e.scope, e.frames, e.inBlocks = s, append(e.frames, frame{d, x.Span}), true
	v, done := e.run(d.Body)
	inside := e.b
	e.b, e.scope, e.frames, e.inBlocks = outer.b, outer.scope, outer.frames, outer.inBlocks
	if !done {
		return e.fail(x.Span, "", syntax.ErrNoReturn, d.Kind, d.Name)
	}
	results, ok := k.results(x, d, v)
	if !ok {
		return value.Poison{}
	}
	inside.Emit(ir.PPYield, k.pieces(inside, results), nil, nil, nil)
	full := ir.Dict(ir.AttrsOf(ir.NamedAttr{Name: "remat", Attr: ir.Str("full")}))
	region := e.b.In(loop).Emit(ir.PPCheckpoint, nil, ir.AttrsOf(ir.NamedAttr{Name: "policy", Attr: full}), []*ir.Block{body}, nil)
	e.b.In(loop).Emit(ir.PPYield, region.Results, nil, nil, nil)
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "carries", Attr: ir.I64Attr(0)}, ir.NamedAttr{Name: "trip_count", Attr: ir.I64Attr(k.n)},
		ir.NamedAttr{Name: ir.KeyLoop, Attr: ir.Str(ir.LoopBlocks)})
	ys := e.b.Emit(ir.PPScan, xs, attrs, []*ir.Block{loop}, nil).Results
	out := make(value.Tuple, len(ys))
	for i, y := range ys {
		out[i] = k.unsplit(results[i], y)
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

// results are the tensors that the function returned, which have the axis.
func (k *blockLoop) results(x *syntax.CallExpr, d *syntax.FuncDecl, v value.Value) ([]*value.Tensor, bool) {
	vs, ok := v.(value.Tuple)
	if !ok {
		vs = value.Tuple{v}
	}
	var out []*value.Tensor
	for _, v := range vs {
		t, ok := v.(*value.Tensor)
		if !ok || t.Axis(k.along) < 0 || t.Axes[t.Axis(k.along)].Size != k.size {
			if !value.IsPoison(v) {
				k.e.fail(x.Span, "", syntax.ErrBlocksResult, d.Name, k.size, k.along, value.Describe(v))
			}
			return nil, false
		}
		out = append(out, t)
	}
	return out, true
}

// split reshapes t to blocks, along a new first dimension, each with a slice of
// every device's elements: [before, parts*n*piece, after] becomes [n, before,
// parts, piece, after].
func (k *blockLoop) split(t *value.Tensor) *ir.Value {
	d := t.Axis(k.along)
	shape := value.ShapeOf(t.Axes)
	v := k.e.b.Reshape(t.V, slices.Concat(shape[:d], []int{k.parts, k.n, k.size / k.parts}, shape[d+1:])...)
	return k.e.b.Transpose(v, moved(len(shape)+2, d+1, 0)...)
}

// join merges the dimensions of one block of a tensor over axes.
func (k *blockLoop) join(axes []value.Axis, v *ir.Value) *value.Tensor {
	axes = slices.Clone(axes)
	for i := range axes {
		if axes[i].Name == k.along {
			axes[i].Size = k.size
		}
	}
	return &value.Tensor{V: k.e.b.Reshape(v, value.ShapeOf(axes)...), Axes: axes}
}

// pieces undo join for each result.
func (k *blockLoop) pieces(b *ir.Builder, ts []*value.Tensor) []*ir.Value {
	out := make([]*ir.Value, len(ts))
	for i, t := range ts {
		d, shape := t.Axis(k.along), value.ShapeOf(t.Axes)
		out[i] = b.Reshape(t.V, slices.Concat(shape[:d], []int{k.parts, k.size / k.parts}, shape[d+1:])...)
	}
	return out
}

// unsplit undoes split: the result of all blocks, one of which is t.
func (k *blockLoop) unsplit(t *value.Tensor, v *ir.Value) *value.Tensor {
	d, axes := t.Axis(k.along), slices.Clone(t.Axes)
	axes[d].Size *= k.n
	return &value.Tensor{V: k.e.b.Reshape(k.e.b.Transpose(v, moved(len(axes)+2, 0, d+1)...), value.ShapeOf(axes)...), Axes: axes}
}

// moved is the order of n dimensions when dimension from goes to place to.
func moved(n, from, to int) []int {
	var order []int
	for i := range n {
		if i != from {
			order = append(order, i)
		}
	}
	return slices.Insert(order, to, from)
}
