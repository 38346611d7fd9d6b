package lang

import (
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// microbatchLayer is the function that a pipeline of so many microbatches applies to one:
// what build makes for its rows, or for those of a part of it, and then all parts.
func (e *elab) microbatchLayer(s *stackCall, microbatches int, build func(batch int) *layerFunc) *layerFunc {
	batch, rows := e.inside(s)
	n := batch.Size / microbatches
	parts, ok := e.batchSplitFits(s.at, batch, n, rows)
	if !ok {
		return &layerFunc{bad: true}
	}
	l := build(n / parts)
	if l.bad || parts == 1 {
		return l
	}
	e.p.checkRows(l, microbatches*parts)
	return e.batchSplit(l, parts)
}

// batchSplit is the layer whose function computes a microbatch of the given rows as so
// many parts, each by itself, so that the collectives of one stand beside the products of
// another: part is the function of one, whose place in the module it takes. Every n-th row is of one part, so that each device
// has rows of all; auxiliary scalars are means over parts, as they are over microbatches.
func (e *elab) batchSplit(part *layerFunc, n int) *layerFunc {
	key := part.fn.Name + " split"
	if l := e.model.layers[key]; l != nil {
		return l
	}
	l := new(layerFunc)
	*l = *part
	l.batch.Size *= n
	l.fn = ir.NewFunc(part.fn.Name)
	l.fn.Private, l.fn.Origin = true, part.fn.Origin
	l.x = l.grown(part.x)
	l.sides = slices.Clone(part.sides)
	for i := range l.sides {
		l.sides[i].axes = l.grown(l.sides[i].axes)
	}
	b := ir.NewBuilder(l.fn)
	b.Origin = l.fn.Origin
	var args []*ir.Value
	var rows []int // the dimension of each argument that has the rows, -1 for none
	for i, v := range part.fn.Params() {
		d := part.rowsOf(i)
		t := v.Type
		if d >= 0 {
			shape := slices.Clone(t.Shape)
			shape[d] *= n
			t = t.WithShape(shape...)
		}
		a := l.fn.NewArg(l.fn.Body, t, v.Name)
		a.Attrs, a.Sharding = v.Attrs, v.Sharding
		args, rows = append(args, a), append(rows, d)
	}
	results := make([][]*ir.Value, len(part.fn.Results))
	for k := range n {
		sub := make(map[*ir.Value]*ir.Value)
		for i, v := range part.fn.Params() {
			sub[v] = args[i]
			if d := rows[i]; d >= 0 {
				sub[v] = everyNth(b, args[i], d, k, n)
				sub[v].Name = v.Name
				sub[v] = b.Constrain(sub[v], v.Sharding)
			}
		}
		ops := part.fn.Body.Ops
		for _, op := range ops[:len(ops)-1] {
			b.Block.Ops = append(b.Block.Ops, l.fn.CopyOp(op, sub))
		}
		for i, v := range ops[len(ops)-1].Operands {
			if w := sub[v]; w != nil {
				v = w
			}
			results[i] = append(results[i], v)
		}
	}
	var out []*ir.Value
	for i, vs := range results[:l.numActs()] {
		out = append(out, b.Constrain(interleaved(b, vs, rows[i], args[i].Type), args[i].Sharding))
	}
	for _, vs := range results[l.numActs():] {
		sum := vs[0]
		for _, v := range vs[1:] {
			sum = b.Add(sum, v)
		}
		out = append(out, b.Mul(sum, b.Splat(sum.Type, 1/float64(n))))
	}
	b.Return(out...)
	for i := range l.numActs() {
		l.fn.Results[i].Sharding = part.fn.Results[i].Sharding
	}
	e.model.layers[key] = l
	fs := e.model.module.Funcs
	fs[slices.Index(fs, part.fn)] = l.fn
	return l
}

// grown is axes of a part with those of l's batch.
func (l *layerFunc) grown(axes []value.Axis) []value.Axis {
	out := slices.Clone(axes)
	for i, a := range out {
		if a.Name == l.batch.Name {
			out[i].Size = l.batch.Size
		}
	}
	return out
}

// rowsOf is the dimension of parameter i that has the rows of the batch, -1 for none.
func (l *layerFunc) rowsOf(i int) int {
	axes := l.x
	switch n := len(l.sides); {
	case i == n+1 && l.rows == rowNumbers:
		return 0
	case i > n:
		return -1
	case i > 0:
		axes = l.sides[i-1].axes
	}
	return slices.IndexFunc(axes, func(a value.Axis) bool { return a.Name == l.batch.Name })
}

// everyNth is rows k, k + n, … of x along d.
func everyNth(b *ir.Builder, x *ir.Value, d, k, n int) *ir.Value {
	shape := slices.Clone(x.Type.Shape)
	shape[d] /= n
	v := b.Reshape(x, slices.Insert(slices.Clone(shape), d+1, n)...)
	return b.Reshape(b.SliceDim(v, d+1, k, k+1), shape...)
}

// interleaved is the tensor of type t of which vs are every n-th row along d.
func interleaved(b *ir.Builder, vs []*ir.Value, d int, t *ir.Type) *ir.Value {
	parts := make([]*ir.Value, len(vs))
	for i, v := range vs {
		parts[i] = b.Reshape(v, slices.Insert(slices.Clone(v.Type.Shape), d+1, 1)...)
	}
	return b.Reshape(b.Concat(d+1, parts...), t.Shape...)
}

// batchSplitFits settles into how many parts a layer computes a microbatch of so many
// rows, whose sharding is given.
func (e *elab) batchSplitFits(at syntax.Span, batch value.Axis, microbatch int, rows config.DimRule) (int, bool) {
	n, given := e.p.Num("pipeline", "batch_split")
	if !given || n == 1 {
		return 1, true
	}
	parts := e.devices(rows.Mesh)
	if microbatch%(n*parts) != 0 {
		_, all := config.Product(n, parts)
		e.fail(e.p.Place("batch_split", at), "microbatches of a multiple of "+all+" rows fit", syntax.ErrBatchSplit, ir.Counted(microbatch, "row"), batch.Name, n, max(parts, 1), strings.Join(rows.Mesh, " x "))
		return 0, false
	}
	return n, true
}
