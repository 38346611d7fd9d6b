package tidy

import (
	"fmt"
	"slices"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// An identity returns what to use in place of op's only result, or nil. It may
// append ops to b; it must not change op. Its result must cost no more than op.
type identity func(b *ir.Builder, op *ir.Op) *ir.Value

// maxRounds is far more than the identities need; reaching it is a bug in one.
const maxRounds = 50

// Simplify applies the identities below, each from left to right, and folds
// small integer constants, until nothing changes.
func Simplify(_ *pass.Context, m *ir.Module) error {
	own := new(owners) // of one function after the other
	rules := identities(own, m.Form.Has(ir.Local))
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		for round := 0; ; round++ {
			*own = ownersIn(f)
			s := &simplifier{f: f, sub: f.NewSubst(), rules: rules}
			s.block(f.Body)
			if !s.changed {
				break
			}
			if round == maxRounds {
				return fmt.Errorf("identities still apply after %d rounds", maxRounds)
			}
		}
	}
	return nil
}

type simplifier struct {
	f       *ir.Func
	sub     ir.Subst
	rules   *[ir.NumKinds][]identity
	changed bool
}

func (s *simplifier) block(b *ir.Block) {
	out := &ir.Block{Ops: make([]*ir.Op, 0, len(b.Ops))}
	build := &ir.Builder{Func: s.f, Block: out}
	for _, op := range b.Ops {
		s.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			s.block(r)
		}
		build.Origin = op.Origin
		if vs := onceOrNever(build, op); vs != nil {
			for i, v := range op.Results {
				s.sub[v.ID], s.changed = vs[i], true
				if vs[i].Name == "" {
					vs[i].Name = v.Name
				}
			}
			continue
		}
		if v := s.first(build, op); v != nil {
			old := op.Result()
			s.sub[old.ID], s.changed = v, true
			if v.Name == "" {
				v.Name = old.Name
			}
			if v.Sharding == nil && v.Def != nil {
				v.Sharding = old.Sharding
			}
			continue // op is unused; kept, it would match again for ever
		}
		out.Ops = append(out.Ops, op)
	}
	b.Ops = out.Ops
}

// onceOrNever returns the values that replace the results of op, a while of trip
// count 1 or 0: those of its body, or its operands; else nil. The loops of a
// pipeline stay: their order bounds the memory that is live.
func onceOrNever(b *ir.Builder, op *ir.Op) []*ir.Value {
	if op.Kind != ir.While || op.Attrs.Has(ir.KeyLoop) {
		return nil
	}
	c, ok := facts.CountOf(op)
	if !ok || c.Trips > 1 {
		return nil
	}
	in := make([]*ir.Value, len(op.Operands))
	for i, v := range op.Operands {
		r := op.Results[i]
		if r.Sharding != nil && !v.Sharding.SameLayout(r.Sharding) {
			v = b.Constrain(v, r.Sharding)
			v.Sharding = r.Sharding
		}
		in[i] = v
	}
	if c.Trips == 0 {
		return in
	}
	body := op.Regions[1]
	sub := make(map[*ir.Value]*ir.Value)
	for i, a := range body.Args {
		sub[a] = in[i]
	}
	return rewrite.CopyBody(b, body, sub)
}

// unknownSize reports whether v has a size that is not known: the identities are about others.
func unknownSize(v *ir.Value) bool { return v.Type.IsTensor() && !v.Type.IsStatic() }

func (s *simplifier) first(b *ir.Builder, op *ir.Op) *ir.Value {
	if len(op.Results) != 1 || !op.Kind.Has(ir.Pure) || op.Attrs.Has(ir.KeyDontCare) || op.Unread() || slices.ContainsFunc(op.Operands, unknownSize) {
		return nil
	}
	for _, r := range s.rules[op.Kind] {
		if v := r(b, op); v != nil {
			return v
		}
	}
	return fold(b, op)
}

// identities are the rules of each op, by kind, in the order in which they are tried.
// local says that m is one program per device, whose values have no shardings.
func identities(own *owners, local bool) *[ir.NumKinds][]identity {
	rules := &[ir.NumKinds][]identity{
		ir.Add:                append([]identity{unit(0)}, own.sums()...),
		ir.Subtract:           {rightUnit(0)},
		ir.Multiply:           {unit(1)},
		ir.Divide:             {rightUnit(1)},
		ir.And:                {unit(1)},
		ir.Or:                 {unit(0)},
		ir.Remainder:          {remainderOfOne},
		ir.Convert:            {noChange, backFromWider},
		ir.Reshape:            {noChange, partOfSplat, reshapeOfReshape},
		ir.BroadcastInDim:     {broadcastOfNothing},
		ir.Transpose:          {transposeOfNothing, partOfSplat, transposeOfTranspose},
		ir.Slice:              {noChange, partOfSplat},
		ir.Pad:                {noPadding},
		ir.Concatenate:        {concatOfOne},
		ir.DynamicSlice:       {noChange, partOfSplat, staticSlice, sliceOfSlice},
		ir.DynamicUpdateSlice: {updateOfAll},
		ir.Select:             {selectConstant, selectSame},
		ir.Gather:             {gatherOfOne},
		ir.Scatter:            {scatterOfOne},
		ir.Negate:             {involution},
		ir.Not:                {involution},
	}
	if local {
		rules[ir.Transpose] = append(rules[ir.Transpose], transposeOfOnes)
	}
	return rules
}

// exact reports whether x op n is x for the bits of every x of v's type: a
// negative zero plus zero is zero, so a float keeps its sum.
func exact(op *ir.Op, n float64) bool {
	t := op.Result().Type.Elem
	switch {
	case t.IsInt():
		return op.Kind != ir.And && op.Kind != ir.Or || n == 0 // 1 is not all ones
	case t == ir.I1:
		return true
	}
	return n == 1
}

// unit: x op n = x, and n op x = x.
func unit(n float64) identity {
	return func(b *ir.Builder, op *ir.Op) *ir.Value {
		for i, v := range op.Operands {
			if l := ir.ConstantOf(v); l != nil && l.IsAll(n) && exact(op, n) {
				return op.Operands[1-i]
			}
		}
		return nil
	}
}

// rightUnit: x op n = x.
func rightUnit(n float64) identity {
	return func(b *ir.Builder, op *ir.Op) *ir.Value {
		if l := ir.ConstantOf(op.Operands[1]); l != nil && l.IsAll(n) && (exact(op, n) || n == 0 && op.Kind == ir.Subtract) {
			return op.Operands[0]
		}
		return nil
	}
}

// x rem 1 = 0, of integers.
func remainderOfOne(b *ir.Builder, op *ir.Op) *ir.Value {
	if l := ir.ConstantOf(op.Operands[1]); l != nil && op.Result().Type.Elem.IsInt() && l.IsAll(1) {
		return b.Splat(op.Result().Type, 0)
	}
	return nil
}

// An op that can change only the type, and does not, is its operand: convert,
// reshape, a slice of all elements.
func noChange(b *ir.Builder, op *ir.Op) *ir.Value {
	if op.Operands[0].Type.Equal(op.Result().Type) {
		return op.Operands[0]
	}
	return nil
}

// convert(convert(x)) = x, where the type between holds all numbers of x's type.
func backFromWider(b *ir.Builder, op *ir.Op) *ir.Value {
	inner := op.Operands[0].Def
	if inner == nil || inner.Kind != ir.Convert || !inner.Operands[0].Type.Equal(op.Result().Type) {
		return nil
	}
	x, between := inner.Operands[0].Type.Elem, inner.Result().Type.Elem
	switch {
	case between == ir.F64 && (x == ir.F32 || x == ir.BF16 || x == ir.F16), between == ir.F32 && (x == ir.BF16 || x == ir.F16):
	case x.IsInt() && between.Class() == x.Class() && between.Bits() > x.Bits():
	default:
		return nil
	}
	return inner.Operands[0]
}

// A slice, reshape or permutation of a splat is a splat of the same element.
func partOfSplat(b *ir.Builder, op *ir.Op) *ir.Value {
	x := op.Operands[0].Def
	if x == nil || x.Kind != ir.BroadcastInDim || x.Attrs.Has(ir.KeyDontCare) || x.Operands[0].Type.Rank() > 0 {
		return nil
	}
	return b.Broadcast(x.Operands[0], op.Result().Type.Shape)
}

// reshape(reshape(x)) = reshape(x)
func reshapeOfReshape(b *ir.Builder, op *ir.Op) *ir.Value {
	inner := op.Operands[0].Def
	if inner == nil || inner.Kind != ir.Reshape || inner.Result().Sharding != nil {
		return nil
	}
	return b.Reshape(inner.Operands[0], op.Result().Type.Shape...)
}

// broadcast(x) to x's own shape, dimensions in order = x
func broadcastOfNothing(b *ir.Builder, op *ir.Op) *ir.Value {
	if op.Operands[0].Type.Equal(op.Result().Type) && isIdentity(op.Ints("broadcast_dimensions")) {
		return op.Operands[0]
	}
	return nil
}

func isIdentity(perm []int) bool {
	for i, p := range perm {
		if i != p {
			return false
		}
	}
	return true
}

// transpose(x) by the identity = x
func transposeOfNothing(b *ir.Builder, op *ir.Op) *ir.Value {
	if isIdentity(op.Ints("permutation")) {
		return op.Operands[0]
	}
	return nil
}

// transpose(transpose(x)) = transpose(x)
func transposeOfTranspose(b *ir.Builder, op *ir.Op) *ir.Value {
	inner := op.Operands[0].Def
	if inner == nil || inner.Kind != ir.Transpose {
		return nil
	}
	p, q := inner.Ints("permutation"), op.Ints("permutation")
	r := make([]int, len(q))
	for i, d := range q {
		r[i] = p[d]
	}
	return b.Transpose(inner.Operands[0], r...)
}

// transpose(x) that moves dimensions of one element = reshape(x), which takes no
// memory. While dimensions have shardings it says more than the reshape.
func transposeOfOnes(b *ir.Builder, op *ir.Op) *ir.Value {
	x := op.Operands[0]
	last := -1
	for _, d := range op.Ints("permutation") {
		if x.Type.Shape[d] == 1 {
			continue
		}
		if d < last {
			return nil
		}
		last = d
	}
	return b.Reshape(x, op.Result().Type.Shape...)
}

// pad(x) by nothing = x
func noPadding(b *ir.Builder, op *ir.Op) *ir.Value {
	for _, name := range []string{"edge_padding_low", "edge_padding_high", "interior_padding"} {
		if slices.ContainsFunc(op.Ints(name), func(n int) bool { return n != 0 }) {
			return nil
		}
	}
	return op.Operands[0]
}

// concatenate(x) = x
func concatOfOne(b *ir.Builder, op *ir.Op) *ir.Value {
	if len(op.Operands) == 1 {
		return op.Operands[0]
	}
	return nil
}

// dynamic_slice(x, constants) = slice(x)
func staticSlice(b *ir.Builder, op *ir.Op) *ir.Value {
	x, sizes := op.Operands[0], op.Ints("slice_sizes")
	start, limit := make([]int, len(sizes)), make([]int, len(sizes))
	for d, v := range op.Operands[1:] {
		l := ir.ConstantOf(v)
		if l == nil {
			if sizes[d] != x.Type.Shape[d] {
				return nil
			}
			limit[d] = sizes[d]
			continue
		}
		start[d] = min(max(l.Index(0), 0), x.Type.Shape[d]-sizes[d])
		limit[d] = start[d] + sizes[d]
	}
	return b.Slice(x, start, limit)
}

// dynamic_update_slice(x, u) with u as large as x = u
func updateOfAll(b *ir.Builder, op *ir.Op) *ir.Value {
	if op.Operands[1].Type.Equal(op.Result().Type) {
		return op.Operands[1]
	}
	return nil
}

// select(true, x, y) = x; select(false, x, y) = y
func selectConstant(b *ir.Builder, op *ir.Op) *ir.Value {
	l := ir.ConstantOf(op.Operands[0])
	switch {
	case l == nil:
		return nil
	case l.IsAll(1):
		return op.Operands[1]
	case l.IsAll(0):
		return op.Operands[2]
	}
	return nil
}

// select(p, x, x) = x
func selectSame(b *ir.Builder, op *ir.Op) *ir.Value {
	if op.Operands[1] == op.Operands[2] {
		return op.Operands[1]
	}
	return nil
}

// not(not(x)) = x, negate(negate(x)) = x
func involution(b *ir.Builder, op *ir.Op) *ir.Value {
	if inner := op.Operands[0].Def; inner != nil && inner.Kind == op.Kind {
		return inner.Operands[0]
	}
	return nil
}

// A gather with one index = a dynamic_slice at that index, as the choice of a
// repeat or a microbatch is on a device that holds one stage.
func gatherOfOne(b *ir.Builder, op *ir.Op) *ir.Value {
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	x, idx := op.Operands[0], op.Operands[1]
	for d, n := range idx.Type.Shape {
		if d != g.IndexVectorDim && n != 1 {
			return nil
		}
	}
	sizes := op.Ints("slice_sizes")
	start := facts.GatherWindows(op, idx).Start(b, len(sizes))
	// The result has the dimensions that the gather does not collapse, in order,
	// with index dimensions of size 1 between: a reshape.
	return b.Reshape(b.DynamicSlice(x, start, sizes...), op.Result().Type.Shape...)
}

// foldLimit is the number of elements up to which constants are folded.
const foldLimit = 64

// fold computes op where its operands are small constants of integers and booleans.
// Floating-point arithmetic is not folded, so that folding changes no bit.
func fold(b *ir.Builder, op *ir.Op) *ir.Value {
	if len(op.Operands) == 0 || len(op.Regions) > 0 || op.Kind.Has(ir.Collective) || op.Kind.Has(ir.Pipeline) || op.Kind == ir.Call {
		return nil
	}
	if !foldable(op.Result().Type) || op.Kind == ir.ShardingConstraint || op.Result().Sharding != nil {
		return nil
	}
	f := ir.NewFunc("fold")
	sub := make(map[*ir.Value]*ir.Value)
	var args []*ir.Literal
	for _, v := range op.Operands {
		l := ir.ConstantOf(v)
		if l == nil || !foldable(v.Type) {
			return nil
		}
		if op.Kind == ir.BroadcastInDim && l.IsSplat() && op.Result().Type.NumElements() > 1 {
			return nil // a broadcast of a scalar is as good as a constant
		}
		if sub[v] == nil {
			sub[v] = f.NewArg(f.Body, v.Type, "")
			args = append(args, l)
		}
	}
	c := f.CopyOp(op, sub)
	f.Body.Ops = append(f.Body.Ops, c)
	ir.NewBuilder(f).Return(c.Results...)
	out, err := eval.Run(&ir.Module{Funcs: []*ir.Func{f}}, f, args, eval.Options{})
	if err != nil {
		return nil
	}
	return b.Const(out[0])
}

func foldable(t *ir.Type) bool {
	return t.IsTensor() && t.IsStatic() && (t.Elem.IsInt() || t.Elem == ir.I1) && t.NumElements() <= foldLimit && t.NumElements() > 0
}

// sliceOfSlice: x[a][b] = x[a, b], where the first slice has one element or all of
// each dimension. So a nested loop slices the original value, and the slice for all
// iterations of the inner loop is never materialised.
func sliceOfSlice(b *ir.Builder, op *ir.Op) *ir.Value {
	of, sizes := op.Operands[0], op.Result().Type.Shape
	outer := of.Def
	if outer != nil && outer.Kind == ir.Reshape {
		outer = outer.Operands[0].Def
	}
	if outer == nil || outer.Kind != ir.DynamicSlice {
		return nil
	}
	x, start := outer.Operands[0], slices.Clone(outer.Operands[1:])
	extent := make([]int, len(start))
	at := 0 // the next dimension of op's
	for d, n := range outer.Result().Type.Shape {
		switch {
		case n == 1: // of size 1: op takes it all
			extent[d] = 1
		case n != x.Type.Shape[d]:
			return nil
		default:
			for at < len(sizes) && of.Type.Shape[at] == 1 {
				at++
			}
			if at == len(sizes) || of.Type.Shape[at] != n {
				return nil
			}
			start[d], extent[d] = op.Operands[1+at], sizes[at]
			at++
		}
	}
	for _, v := range start {
		if !v.Type.Equal(start[0].Type) {
			return nil
		}
	}
	return b.Reshape(b.DynamicSlice(x, start, extent...), sizes...)
}
