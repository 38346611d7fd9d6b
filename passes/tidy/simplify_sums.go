package tidy

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// The identities in this file make sums in place: a term that is zero outside of a
// window is added within the window. The transposes of slices and gathers are such
// terms, and a loop that adds one to a carry in each iteration then reads and
// writes the window alone.

// owners tells which op alone uses a value, and in which block that is computed.
type owners struct {
	uses []int       // by ID
	home []*ir.Block // by ID; nil where no op computes it
}

// ownersIn are those of f; nothing is owned where f has no terms that identities rewrite.
func ownersIn(f *ir.Func) owners {
	found := false
	f.Body.Walk(func(op *ir.Op) { found = found || slices.Contains(terms, op.Kind) })
	if !found {
		return owners{}
	}
	return owners{f.Uses(), homes(f)}
}

// homes is, by ID, the block in which an op computes a value.
func homes(f *ir.Func) []*ir.Block {
	home := make([]*ir.Block, f.NumIDs())
	var walk func(b *ir.Block)
	walk = func(b *ir.Block) {
		for _, op := range b.Ops {
			for _, v := range op.Results {
				home[v.ID] = b
			}
			for _, r := range op.Regions {
				walk(r)
			}
		}
	}
	walk(f.Body)
	return home
}

// terms are the kinds of ops that the identities of add rewrite.
var terms = []ir.Kind{ir.Pad, ir.Scatter, ir.DynamicUpdateSlice}

// owned reports whether v is computed in the block of op, and used once.
func (o *owners) owned(v *ir.Value, op *ir.Op) bool {
	return v.Def != nil && int(v.ID) < len(o.uses) && o.uses[v.ID] == 1 && !v.Def.Attrs.Has(ir.KeyDontCare) && o.home[v.ID] == o.home[op.Result().ID]
}

// sums are the identities of add that rewrite one term. The term must have no other
// use, or it would be computed beside the sum.
func (o *owners) sums() []identity {
	ofTerm := func(r func(b *ir.Builder, term *ir.Op, rest *ir.Value) *ir.Value) identity {
		return func(b *ir.Builder, op *ir.Op) *ir.Value {
			for i := len(op.Operands) - 1; i >= 0; i-- {
				if v := op.Operands[i]; o.owned(v, op) {
					if sum := r(b, v.Def, op.Operands[1-i]); sum != nil {
						return sum
					}
				}
			}
			return nil
		}
	}
	return []identity{
		ofTerm(func(b *ir.Builder, term *ir.Op, rest *ir.Value) *ir.Value {
			if !o.owned(rest, term) {
				return nil
			}
			return sumOfPads(b, term, rest.Def)
		}),
		ofTerm(sumOfScatter),
		ofTerm(sumOfUpdate),
	}
}

func zero(v *ir.Value) bool {
	l := ir.ConstantOf(v)
	return l != nil && l.IsAll(0)
}

// scatter_add(zeros, i, u) + x = scatter_add(x, i, u)
func sumOfScatter(b *ir.Builder, term *ir.Op, x *ir.Value) *ir.Value {
	if term.Kind != ir.Scatter || facts.Combines(term.Regions[0], 0) != ir.Add || !zero(term.Operands[0]) || !term.Operands[0].Type.Equal(x.Type) || len(term.Results) != 1 {
		return nil
	}
	region := b.Func.CopyBlock(term.Regions[0], make(map[*ir.Value]*ir.Value))
	return b.Emit(ir.Scatter, []*ir.Value{x, term.Operands[1], term.Operands[2]}, term.Attrs, []*ir.Block{region}, nil).Result()
}

// dynamic_update_slice(zeros, u, i) + x = dynamic_update_slice(x, dynamic_slice(x, i) + u, i)
func sumOfUpdate(b *ir.Builder, term *ir.Op, x *ir.Value) *ir.Value {
	if term.Kind != ir.DynamicUpdateSlice || !zero(term.Operands[0]) {
		return nil
	}
	u, start := term.Operands[1], term.Operands[2:]
	return b.DynamicUpdateSlice(x, b.Add(b.DynamicSlice(x, start, u.Type.Shape...), u), start)
}

// pad(x) + pad(y) = pad(concatenate(x, y)), of zeros around x and y so that one
// begins where the other ends: the transpose of slicing a value into pieces
func sumOfPads(b *ir.Builder, y, x *ir.Op) *ir.Value {
	dim := paddedDim(x)
	if dim < 0 || dim != paddedDim(y) {
		return nil
	}
	begin := func(op *ir.Op) int { return op.Ints("edge_padding_low")[dim] }
	end := func(op *ir.Op) int { return begin(op) + op.Operands[0].Type.Shape[dim] }
	if begin(x) == end(y) {
		x, y = y, x
	}
	if begin(y) != end(x) {
		return nil
	}
	return b.Pad(b.Concat(dim, x.Operands[0], y.Operands[0]), x.Operands[1], x.Ints("edge_padding_low"), y.Ints("edge_padding_high"), x.Ints("interior_padding"))
}

// paddedDim is the only dimension along which op pads, with zeros at its ends;
// -1 where op does anything else.
func paddedDim(op *ir.Op) int {
	if op.Kind != ir.Pad || !zero(op.Operands[1]) {
		return -1
	}
	low, high, interior := op.Ints("edge_padding_low"), op.Ints("edge_padding_high"), op.Ints("interior_padding")
	dim := -1
	for d := range low {
		switch {
		case low[d] < 0 || high[d] < 0 || interior[d] != 0:
			return -1
		case low[d] == 0 && high[d] == 0:
		case dim >= 0:
			return -1
		default:
			dim = d
		}
	}
	return dim
}

// A scatter of one window that fits = a dynamic_update_slice: by the update, or by
// its sum with the slice
func scatterOfOne(b *ir.Builder, op *ir.Op) *ir.Value {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	w := facts.ScatterWindows(op, op.Operands[1])
	for d, n := range w.Indices.Type.Shape {
		if d != g.IndexVectorDim && n != 1 {
			return nil
		}
	}
	if !w.Fit() || !op.Operands[0].Type.Equal(op.Result().Type) {
		return nil
	}
	x, sizes := op.Operands[0], facts.ScatterSizes(op)
	start, u := w.Start(b, x.Type.Rank()), b.Reshape(op.Operands[2], sizes...)
	region := op.Regions[0]
	switch {
	case facts.Combines(region, 0) == ir.Add:
		u = b.Add(b.DynamicSlice(x, start, sizes...), u)
	case region.Terminator().Operands[0] != region.Args[1]:
		return nil
	}
	return b.DynamicUpdateSlice(x, u, start)
}
