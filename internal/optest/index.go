package optest

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// window is the start of a window, maybe outside of the shape, and its sizes.
func (p *Program) window(shape []int) (start []*ir.Value, sizes []int) {
	for _, n := range shape {
		start, sizes = append(start, p.Integers(-1, n)), append(sizes, 1+p.IntN(n))
	}
	return start, sizes
}

// gatherShape is the dimension numbers of a gather at random, the types of its
// operand, its indices and its result, and its slice sizes.
type gatherShape struct {
	dims                     ir.GatherDims
	operand, indices, result []int
	sizes                    []int
}

func (p *Program) gather() *gatherShape {
	g := &gatherShape{operand: p.Sizes(1 + p.IntN(3))}
	var window []int
	var free []int // dimensions that an index may have
	for d, n := range g.operand {
		size := 1
		switch p.IntN(4) {
		case 0:
			g.dims.OperandBatchingDims = append(g.dims.OperandBatchingDims, d)
		case 1:
			g.dims.CollapsedSliceDims = append(g.dims.CollapsedSliceDims, d)
			free = append(free, d)
		default:
			size = 1 + p.IntN(n)
			window, free = append(window, size), append(free, d)
		}
		g.sizes = append(g.sizes, size)
	}
	for _, i := range p.Perm(len(free))[:p.IntN(len(free)+1)] {
		g.dims.StartIndexMap = append(g.dims.StartIndexMap, free[i])
	}
	batch := p.Sizes(p.IntN(2))
	at := p.IntN(len(batch) + 1)
	for i, d := range g.dims.OperandBatchingDims { // batching dimensions stand together
		batch = slices.Insert(batch, at+i, g.operand[d])
		g.dims.StartIndicesBatchingDims = append(g.dims.StartIndicesBatchingDims, at+i)
	}
	g.indices = slices.Clone(batch)
	g.dims.IndexVectorDim = len(batch)
	if len(g.dims.StartIndexMap) != 1 || p.IntN(2) == 0 {
		v := p.IntN(len(batch) + 1)
		g.dims.IndexVectorDim = v
		g.indices = slices.Insert(g.indices, v, len(g.dims.StartIndexMap))
		for i, d := range g.dims.StartIndicesBatchingDims {
			if d >= v {
				g.dims.StartIndicesBatchingDims[i]++
			}
		}
	}
	rank := len(window) + len(batch)
	g.dims.OffsetDims = slices.Sorted(slices.Values(p.Perm(rank)[:len(window)]))
	for d := range rank {
		from := &batch
		if slices.Contains(g.dims.OffsetDims, d) {
			from = &window
		}
		g.result, *from = append(g.result, (*from)[0]), (*from)[1:]
	}
	return g
}

func (g *gatherShape) scatterDims() ir.ScatterDims {
	return ir.ScatterDims{UpdateWindowDims: g.dims.OffsetDims, InsertedWindowDims: g.dims.CollapsedSliceDims, InputBatchingDims: g.dims.OperandBatchingDims,
		ScatterIndicesBatchingDims: g.dims.StartIndicesBatchingDims, ScatterDimsToOperandDims: g.dims.StartIndexMap, IndexVectorDim: g.dims.IndexVectorDim}
}

// Second returns a region that returns its second argument.
func Second(b *ir.Builder, elem ir.DType) *ir.Block {
	r := new(ir.Block)
	b.Func.NewArg(r, ir.Tensor(elem), "")
	y := b.Func.NewArg(r, ir.Tensor(elem), "")
	b.In(r).Emit(ir.Return, []*ir.Value{y}, nil, nil, nil)
	return r
}

var indexCases = []Case{
	{Name: "gather by small numbers", Linear: true, Build: func(p *Program) []*ir.Value {
		dims := ir.GatherDims{CollapsedSliceDims: []int{0, 1}, StartIndexMap: []int{1, 0}, IndexVectorDim: 0}
		index := p.B.Convert(p.Integers(-128, 127, 2, 4), []ir.DType{ir.I8, ir.UI8}[p.IntN(2)])
		x := p.Within(-1, 1, 2)
		wide := p.B.Broadcast(x, []int{300, 2}, 1)
		return p.Attr(ir.Gather, []*ir.Value{wide, index}, facts.Named("dimension_numbers", dims), facts.Named("slice_sizes", ir.Ints{1, 1}))
	}},
	{Name: "gather", Linear: true, Build: func(p *Program) []*ir.Value {
		g := p.gather()
		index := p.B.Convert(p.Integers(-1, 3, g.indices...), []ir.DType{ir.I32, ir.I64, ir.UI32, ir.I16}[p.IntN(4)])
		return p.Attr(ir.Gather, []*ir.Value{p.Float(g.operand...), index}, facts.Named("dimension_numbers", g.dims), facts.Named("slice_sizes", ir.Ints(g.sizes)))
	}},
	{Name: "scatter that adds", Linear: true, Build: func(p *Program) []*ir.Value {
		g := p.gather()
		operands := []*ir.Value{p.Float(g.operand...), p.Integers(-1, 3, g.indices...), p.Float(g.result...)}
		return p.B.Emit(ir.Scatter, operands, ir.AttrsOf(facts.Named("scatter_dimension_numbers", g.scatterDims())), []*ir.Block{p.B.Combiner(ir.Add, ir.F64)}, nil).Results
	}},
	{Name: "scatter that replaces", Linear: true, Build: func(p *Program) []*ir.Value {
		g := p.gather()
		operands := []*ir.Value{p.Float(g.operand...), p.Integers(-1, 3, g.indices...), p.Float(g.result...)}
		return p.B.Emit(ir.Scatter, operands, ir.AttrsOf(facts.Named("scatter_dimension_numbers", g.scatterDims())), []*ir.Block{Second(p.B, ir.F64)}, nil).Results
	}},
	{Name: "scatter of two", Linear: true, Build: func(p *Program) []*ir.Value {
		g := p.gather()
		r := new(ir.Block)
		var a []*ir.Value
		for range 4 {
			a = append(a, p.B.Func.NewArg(r, ir.Tensor(ir.F64), ""))
		}
		in := p.B.In(r)
		in.Emit(ir.Return, []*ir.Value{in.Add(a[2], a[0]), a[3]}, nil, nil, nil)
		operands := []*ir.Value{p.Float(g.operand...), p.Float(g.operand...), p.Integers(-1, 3, g.indices...), p.Float(g.result...), p.Float(g.result...)}
		return p.B.Emit(ir.Scatter, operands, ir.AttrsOf(facts.Named("scatter_dimension_numbers", g.scatterDims())), []*ir.Block{r}, nil).Results
	}},
	{Name: "scatter to unique indices", Linear: true, Build: func(p *Program) []*ir.Value {
		x, u := p.Float(4, 2), p.Float(3, 2)
		vs := p.Perm(4)[:3]
		dims := ir.ScatterDims{UpdateWindowDims: []int{1}, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1}
		indices := p.B.Const(ir.Ints64(ir.Tensor(ir.I32, 3, 1), vs...))
		attrs := ir.AttrsOf(facts.Named("scatter_dimension_numbers", dims), facts.Named("unique_indices", ir.Bool(true)))
		return p.B.Emit(ir.Scatter, []*ir.Value{x, indices, u}, attrs, []*ir.Block{Second(p.B, ir.F64)}, nil).Results
	}},
}
