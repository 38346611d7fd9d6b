package combine

import (
	"slices"

	"ppc/ir"
	"ppc/passes/rewrite"
)

// A way is how several collectives of one kind become one. A kind with variadic
// operands takes those of all: nothing is copied. For the others every operand is
// reshaped to a matrix with one row for each device that receives a slice of it, or
// with one row; the matrices are concatenated along columns, and the columns of the
// result are sliced and reshaped to the results of the original ops.
type way struct {
	dims []string // attributes that name dimensions; for a matrix they become 0
	rows func(b *ir.Builder, op *ir.Op) *ir.Value
	// back computes the result of op from its columns of the combined result; nil
	// where a reshape does.
	back func(b *ir.Builder, op *ir.Op, columns *ir.Value) *ir.Value
	// height is the number of rows of the combined result.
	height func(op *ir.Op) int
}

// ways has the kinds that can be combined. A variadic all-to-all differs between
// HLO and StableHLO, and the other kinds of the table take one operand.
var ways = map[ir.Kind]way{
	ir.AllReduce: {},
	ir.AllGather: {},
	ir.ReduceScatter: {
		dims: []string{"scatter_dimension"},
		rows: func(b *ir.Builder, op *ir.Op) *ir.Value {
			d := op.Int("scatter_dimension")
			return matrixOf(b, op.Operands[0], d, op.Operands[0].Type.Shape[d]/op.Result().Type.Shape[d])
		},
		height: func(*ir.Op) int { return 1 },
	},
	ir.AllToAll: {
		dims: []string{"split_dimension", "concat_dimension"},
		rows: func(b *ir.Builder, op *ir.Op) *ir.Value {
			return matrixOf(b, op.Operands[0], op.Int("split_dimension"), op.Int("split_count"))
		},
		back:   exchanged,
		height: func(op *ir.Op) int { return op.Int("split_count") },
	},
	ir.CollectivePermute: {
		rows:   func(b *ir.Builder, op *ir.Op) *ir.Value { return matrixOf(b, op.Operands[0], 0, 1) },
		height: func(*ir.Op) int { return 1 },
	},
}

// join appends the combined op for all of g. It has the attributes, channel and
// reducer of the first.
func (w way) join(b *ir.Builder, g []*ir.Op) {
	one := g[0]
	if w.rows == nil {
		for _, op := range g[1:] {
			one.Operands = append(one.Operands, op.Operands...)
			for _, v := range op.Results {
				one.Results = append(one.Results, nil)
				rewrite.Adopt(one, len(one.Results)-1, v)
			}
		}
		b.Block.Ops = append(b.Block.Ops, one)
		return
	}
	matrices, width := make([]*ir.Value, len(g)), 0
	for i, op := range g {
		matrices[i] = w.rows(b.At(op.Origin), op)
		width += matrices[i].Type.Shape[1]
	}
	attrs := slices.Clone(one.Attrs)
	for _, name := range w.dims {
		attrs.Set(name, ir.I64Attr(0))
	}
	t := ir.Tensor(one.Result().Type.Elem, w.height(one), width)
	all := b.Emit(one.Kind, []*ir.Value{b.Concat(1, matrices...)}, attrs, one.Regions, []*ir.Type{t}).Result()
	at := 0
	for i, op := range g {
		in, n := b.At(op.Origin), matrices[i].Type.Shape[1]
		v := in.SliceDim(all, 1, at, at+n)
		at += n
		if w.back != nil {
			v = w.back(in, op, v)
		}
		v = in.Reshape(v, op.Result().Type.Shape...)
		rewrite.Adopt(v.Def, 0, op.Result())
	}
}

// matrixOf splits x into n equal slices along dimension d and reshapes each to a
// row.
func matrixOf(b *ir.Builder, x *ir.Value, d, n int) *ir.Value {
	shape := x.Type.Shape
	if outer := ir.Product(shape[:d]); outer > 1 && n > 1 {
		x = b.Transpose(b.Reshape(x, outer, n, ir.Product(shape[d:])/n), 1, 0, 2)
	}
	return b.Reshape(x, n, ir.Product(shape)/n)
}

// exchanged concatenates the rows received from each device along the concatenation
// dimension of op, an all-to-all.
func exchanged(b *ir.Builder, op *ir.Op, rows *ir.Value) *ir.Value {
	n, d := op.Int("split_count"), op.Int("concat_dimension")
	part := slices.Clone(op.Result().Type.Shape)
	part[d] /= n
	outer := ir.Product(part[:d])
	if outer == 1 {
		return rows
	}
	return b.Transpose(b.Reshape(rows, n, outer, ir.Product(part[d:])), 1, 0, 2)
}
