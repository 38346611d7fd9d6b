package pipeline

import (
	"fmt"
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// A vmapper copies a function so that it works on n instances at once, along a new
// leading dimension that is sharded along axes of the mesh. Values that depend on a
// mapped parameter get the dimension, the others stay as they are.
type vmapper struct {
	b     *ir.Builder
	n     int
	axes  []ir.AxisRef // of the new dimension; may be none
	of    map[*ir.Value]mapped
	rules map[ir.Kind]vmapRule
}

// A mapped is the value of the copy for a value of the original function.
type mapped struct {
	v       *ir.Value
	batched bool
}

// Vmap returns a copy of f, called name, whose parameters i with batched[i]
// have a leading dimension of size n, and so have all its results.
func Vmap(f *ir.Func, name string, batched []bool, n int, axes []ir.AxisRef) (*ir.Func, error) {
	g := ir.NewFunc(name)
	g.Private, g.Attrs, g.Origin = true, f.Attrs, f.Origin
	m := &vmapper{b: ir.NewBuilder(g), n: n, axes: axes, of: make(map[*ir.Value]mapped), rules: vmapRules()}
	for i, p := range f.Params() {
		m.arg(g.Body, p, batched[i])
	}
	ret, err := m.block(f.Body)
	if err != nil {
		return nil, err
	}
	for i := range ret {
		ret[i] = mapped{m.batch(ret[i]), true}
	}
	m.b.Return(values(ret)...)
	for i, r := range f.Results {
		g.Results[i].Attrs = r.Attrs
		if r.Sharding != nil {
			g.Results[i].Sharding = r.Sharding.Prepend(axes...)
		}
	}
	return g, nil
}

func values(ms []mapped) []*ir.Value {
	vs := make([]*ir.Value, len(ms))
	for i, m := range ms {
		vs[i] = m.v
	}
	return vs
}

// typ is t with the new dimension.
func (m *vmapper) typ(t *ir.Type) *ir.Type {
	return t.WithShape(append([]int{m.n}, t.Shape...)...)
}

// sharding is s, which may be nil, with the new dimension.
func (m *vmapper) sharding(s *ir.Sharding) *ir.Sharding {
	if s == nil {
		return nil
	}
	return s.Prepend(m.axes...)
}

// arg gives b the argument p of the original, mapped or shared by all instances.
func (m *vmapper) arg(b *ir.Block, p *ir.Value, batched bool) {
	if batched {
		m.mappedArg(b, p)
	} else {
		m.sharedArg(b, p)
	}
}

func (m *vmapper) mappedArg(b *ir.Block, p *ir.Value) {
	v := m.b.Func.NewArg(b, m.typ(p.Type), p.Name)
	v.Sharding, v.Attrs = m.sharding(p.Sharding), p.Attrs
	m.of[p] = mapped{v, true}
}

func (m *vmapper) sharedArg(b *ir.Block, p *ir.Value) {
	v := m.b.Func.NewArg(b, p.Type, p.Name)
	v.Sharding, v.Attrs = p.Sharding, p.Attrs
	m.of[p] = mapped{v: v}
}

// batch broadcasts x along the new dimension if it does not have it.
func (m *vmapper) batch(x mapped) *ir.Value {
	if x.batched {
		return x.v
	}
	t := m.typ(x.v.Type)
	dims := make([]int, x.v.Type.Rank())
	for i := range dims {
		dims[i] = i + 1
	}
	return m.b.Broadcast(x.v, t.Shape, dims...)
}

// block maps the ops of b and returns the mapped operands of its terminator.
func (m *vmapper) block(b *ir.Block) ([]mapped, error) {
	for _, op := range b.Ops {
		in := make([]mapped, len(op.Operands))
		some := false
		for i, v := range op.Operands {
			x, ok := m.of[v]
			if !ok {
				return nil, pass.Errorf(op, "value %q comes from outside the function", v.Name)
			}
			in[i] = x
			some = some || x.batched
		}
		if op.Kind.Has(ir.Terminator) {
			return in, nil
		}
		m.b.Origin = op.Origin
		var out []mapped
		var err error
		switch rule := m.rules[op.Kind]; {
		case !some && !seesOutside(op):
			out = m.copy(op, in)
		case op.Kind.Has(ir.Elementwise):
			out = m.elementwise(op, in)
		case rule == nil:
			return nil, pass.Errorf(op, "%s cannot be used in a pipelined layer: it has no rule for the stage dimension", op.Name())
		default:
			out, err = rule(m, op, in)
		}
		if err != nil {
			return nil, err
		}
		for i, v := range op.Results {
			m.of[v] = out[i]
			if out[i].v.Name == "" {
				out[i].v.Name = v.Name
			}
			if v.Sharding != nil {
				if out[i].v.Sharding = v.Sharding; out[i].batched {
					out[i].v.Sharding = m.sharding(v.Sharding)
				}
			}
		}
	}
	return nil, fmt.Errorf("a block has no terminator")
}

// seesOutside reports whether op has regions that may see mapped values although
// no operand is mapped.
func seesOutside(op *ir.Op) bool {
	return len(op.Regions) > 0 && op.Kind.Has(ir.TensorRegions) && !op.Kind.Has(ir.Isolated)
}

// emit appends an op like op over mapped operands, whose results have the new
// dimension.
func (m *vmapper) emit(op *ir.Op, operands []*ir.Value, attrs ir.Attrs) []mapped {
	types := make([]*ir.Type, len(op.Results))
	for i, r := range op.Results {
		types[i] = m.typ(r.Type)
	}
	out := make([]mapped, len(op.Results))
	for i, v := range m.like(op, operands, attrs, types) {
		out[i] = mapped{v, true}
	}
	return out
}

// copy appends op over operands that all instances share.
func (m *vmapper) copy(op *ir.Op, in []mapped) []mapped {
	out := make([]mapped, len(op.Results))
	for i, v := range m.like(op, values(in), op.Attrs, ir.Types(op.Results)) {
		out[i] = mapped{v: v}
	}
	return out
}

// like appends an op like op, and returns its results, of the given types.
func (m *vmapper) like(op *ir.Op, operands []*ir.Value, attrs ir.Attrs, types []*ir.Type) []*ir.Value {
	sub := make(map[*ir.Value]*ir.Value)
	for _, v := range op.Captures() { // of a reducer: scalars that all instances share
		sub[v] = m.of[v].v
	}
	c := m.b.Func.CopyOp(&ir.Op{Kind: op.Kind, Spelling: op.Spelling, Operands: operands, Attrs: attrs, Regions: op.Regions, Origin: op.Origin}, sub)
	for i, r := range op.Results {
		v := m.b.Func.NewValue(types[i], r.Name)
		v.Def, v.Index = c, i
		c.Results = append(c.Results, v)
	}
	m.b.Block.Ops = append(m.b.Block.Ops, c)
	return c.Results
}

// elementwise: every operand gets the new dimension; scalars beside tensors
// (the predicate of a select, the bounds of a clamp) stay scalars unless they
// are mapped themselves.
func (m *vmapper) elementwise(op *ir.Op, in []mapped) []mapped {
	full := op.Results[0].Type
	operands := make([]*ir.Value, len(in))
	for i, x := range in {
		rank := op.Operands[i].Type.Rank()
		switch {
		case rank == full.Rank():
			operands[i] = m.batch(x)
		case !x.batched:
			operands[i] = x.v
		default: // a mapped scalar beside tensors
			operands[i] = m.b.Broadcast(x.v, m.typ(full).Shape, 0)
		}
	}
	attrs := op.Attrs
	if s, ok := attrs.Get("sharding").(*ir.Sharding); ok {
		attrs.Set("sharding", m.sharding(s))
	}
	return m.emit(op, operands, attrs)
}

// A vmapRule maps one op; at least one operand has the new dimension, or the
// op has regions.
type vmapRule func(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error)

// vmapRules holds the rule of every op that is not elementwise and may stand
// in a pipelined layer.
func vmapRules() map[ir.Kind]vmapRule {
	return map[ir.Kind]vmapRule{
		ir.BitcastConvert:      vmapReshape,
		ir.BroadcastInDim:      vmapBroadcast,
		ir.Concatenate:         vmapShift("dimension"),
		ir.DynamicSlice:        vmapDynamicSlice,
		ir.DynamicUpdateSlice:  vmapDynamicUpdateSlice,
		ir.Gather:              vmapGather,
		ir.Pad:                 vmapPad,
		ir.Reshape:             vmapReshape,
		ir.Reverse:             vmapShift("dimensions"),
		ir.Scatter:             vmapScatter,
		ir.Slice:               vmapSlice,
		ir.TopK:                vmapReshape,
		ir.Transpose:           vmapTranspose,
		ir.DotGeneral:          vmapDot,
		ir.RaggedDot:           vmapRagged,
		ir.Reduce:              vmapReduce,
		ir.Convolution:         vmapConvolution,
		ir.ReduceWindow:        vmapReduceWindow,
		ir.SelectAndScatter:    vmapSelectAndScatter,
		ir.Sort:                vmapSort,
		ir.Cholesky:            vmapReshape,
		ir.TriangularSolve:     vmapReshape,
		ir.FFT:                 vmapReshape,
		ir.While:               vmapWhile,
		ir.Case:                vmapCase,
		ir.If:                  vmapCase,
		ir.PPScan:              vmapScan,
		ir.PPCheckpoint:        vmapCheckpoint,
		ir.OptimizationBarrier: vmapBarrier,
	}
}

// vmapBarrier maps each value separately.
func vmapBarrier(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	c := m.b.Emit(op.Kind, values(in), op.Attrs, nil, ir.Types(values(in)))
	out := slices.Clone(in)
	for i := range out {
		out[i].v = c.Results[i]
	}
	return out, nil
}

func shift(dims []int) ir.Ints {
	out := make(ir.Ints, len(dims))
	for i, d := range dims {
		out[i] = d + 1
	}
	return out
}

func prepend(v int, dims []int) ir.Ints { return append(ir.Ints{v}, dims...) }

func scalarInit(op *ir.Op, in []mapped, from int) error {
	for _, x := range in[from:] {
		if x.batched {
			return pass.Errorf(op, "%s with an initial value that differs between stages", op.Name())
		}
	}
	return nil
}

// all maps every operand.
func (m *vmapper) all(in []mapped) []*ir.Value {
	vs := make([]*ir.Value, len(in))
	for i, x := range in {
		vs[i] = m.batch(x)
	}
	return vs
}

func vmapShift(attr string) vmapRule {
	return func(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
		var a ir.Attr = ir.I64Attr(op.Int(attr) + 1)
		if _, list := op.Attrs.Get(attr).(ir.Int); !list {
			a = shift(op.Ints(attr))
		}
		return m.emit(op, m.all(in), rewrite.AttrsWith(op, facts.Named(attr, a))), nil
	}
}

func vmapReshape(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	return m.emit(op, m.all(in), op.Attrs), nil
}

func vmapBroadcast(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	return m.emit(op, m.all(in), rewrite.AttrsWith(op, facts.Named("broadcast_dimensions", prepend(0, shift(op.Ints("broadcast_dimensions")))))), nil
}

func vmapTranspose(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	return m.emit(op, m.all(in), rewrite.AttrsWith(op, facts.Named("permutation", prepend(0, shift(op.Ints("permutation")))))), nil
}

func vmapSlice(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	return m.emit(op, m.all(in), rewrite.AttrsWith(op, facts.Named("start_indices", prepend(0, op.Ints("start_indices"))),
		facts.Named("limit_indices", prepend(m.n, op.Ints("limit_indices"))), facts.Named("strides", prepend(1, op.Ints("strides"))))), nil
}

func vmapPad(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	if err := scalarInit(op, in, 1); err != nil {
		return nil, err
	}
	return m.emit(op, []*ir.Value{m.batch(in[0]), in[1].v}, rewrite.AttrsWith(op, facts.Named("edge_padding_low", prepend(0, op.Ints("edge_padding_low"))),
		facts.Named("edge_padding_high", prepend(0, op.Ints("edge_padding_high"))), facts.Named("interior_padding", prepend(0, op.Ints("interior_padding"))))), nil
}

func vmapReduce(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	n := len(in) / 2
	if err := scalarInit(op, in, n); err != nil {
		return nil, err
	}
	operands := append(m.all(in[:n]), values(in[n:])...)
	return m.emit(op, operands, rewrite.AttrsWith(op, facts.Named("dimensions", shift(op.Ints("dimensions"))))), nil
}

func vmapSort(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	d := op.Int("dimension")
	if d >= 0 {
		d++
	}
	return m.emit(op, m.all(in), rewrite.AttrsWith(op, facts.Named("dimension", ir.I64Attr(d)))), nil
}

// vmapDot makes the new dimension one more batch dimension if both sides have it;
// on one side it is a free dimension, and moves to the front of the result.
func vmapDot(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	d := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	l, r := in[0].batched, in[1].batched
	nb := len(d.LhsBatch)
	freeL := op.Operands[0].Type.Rank() - nb - len(d.LhsContract)
	if l {
		d.LhsBatch, d.LhsContract = shift(d.LhsBatch), shift(d.LhsContract)
	}
	if r {
		d.RhsBatch, d.RhsContract = shift(d.RhsBatch), shift(d.RhsContract)
	}
	if l && r {
		d.LhsBatch, d.RhsBatch = prepend(0, d.LhsBatch), prepend(0, d.RhsBatch)
		return m.emit(op, values(in), rewrite.AttrsWith(op, facts.Named("dot_dimension_numbers", d))), nil
	}
	at := nb // the place of the new dimension in the result
	if r {
		at += freeL
	}
	shape := slices.Insert(slices.Clone(op.Results[0].Type.Shape), at, m.n)
	dot := m.b.Emit(op.Kind, values(in), rewrite.AttrsWith(op, facts.Named("dot_dimension_numbers", d)), nil, []*ir.Type{op.Results[0].Type.WithShape(shape...)}).Results[0]
	perm := []int{at}
	for i := range shape {
		if i != at {
			perm = append(perm, i)
		}
	}
	return []mapped{{m.b.Transpose(dot, perm...), true}}, nil
}

func vmapGather(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	g := op.Attrs.Get("dimension_numbers").(ir.GatherDims)
	sizes := op.Ints("slice_sizes")
	if in[0].batched {
		g.CollapsedSliceDims, g.OperandBatchingDims, g.StartIndexMap = shift(g.CollapsedSliceDims), shift(g.OperandBatchingDims), shift(g.StartIndexMap)
	}
	if in[1].batched {
		g.StartIndicesBatchingDims = shift(g.StartIndicesBatchingDims)
		g.IndexVectorDim++
	}
	g.OffsetDims = shift(g.OffsetDims)
	switch {
	case in[0].batched && in[1].batched:
		g.OperandBatchingDims, g.StartIndicesBatchingDims = prepend(0, g.OperandBatchingDims), prepend(0, g.StartIndicesBatchingDims)
		sizes = prepend(1, sizes)
	case in[0].batched:
		g.OffsetDims = prepend(0, g.OffsetDims)
		sizes = prepend(m.n, sizes)
	}
	return m.emit(op, values(in), rewrite.AttrsWith(op, facts.Named("dimension_numbers", g), facts.Named("slice_sizes", ir.Ints(sizes)))), nil
}

func vmapScatter(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	g := op.Attrs.Get("scatter_dimension_numbers").(ir.ScatterDims)
	g.UpdateWindowDims = shift(g.UpdateWindowDims)
	g.InsertedWindowDims, g.InputBatchingDims, g.ScatterDimsToOperandDims = shift(g.InsertedWindowDims), shift(g.InputBatchingDims), shift(g.ScatterDimsToOperandDims)
	g.ScatterIndicesBatchingDims = shift(g.ScatterIndicesBatchingDims)
	g.IndexVectorDim++
	g.InputBatchingDims, g.ScatterIndicesBatchingDims = prepend(0, g.InputBatchingDims), prepend(0, g.ScatterIndicesBatchingDims)
	return m.emit(op, m.all(in), rewrite.AttrsWith(op, facts.Named("scatter_dimension_numbers", g))), nil
}

// vmapDynamicSlice: start indices that differ between instances make a gather.
func vmapDynamicSlice(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	sizes := op.Ints("slice_sizes")
	if !anyBatched(in[1:]) {
		start := append([]*ir.Value{m.batch(in[0]), m.b.Splat(op.Operands[1].Type, 0)}, values(in[1:])...)
		return m.emit(op, start, rewrite.AttrsWith(op, facts.Named("slice_sizes", prepend(m.n, sizes)))), nil
	}
	rank := len(sizes)
	g := ir.GatherDims{OperandBatchingDims: []int{0}, StartIndicesBatchingDims: []int{0}, IndexVectorDim: 1}
	for d := range rank {
		g.OffsetDims, g.StartIndexMap = append(g.OffsetDims, d+1), append(g.StartIndexMap, d+1)
	}
	attrs := ir.AttrsOf(facts.Named("dimension_numbers", g), facts.Named("slice_sizes", prepend(1, sizes)))
	v := m.b.Emit(ir.Gather, []*ir.Value{m.batch(in[0]), m.indexVectors(in[1:])}, attrs, nil, nil).Results[0]
	return []mapped{{v, true}}, nil
}

// vmapDynamicUpdateSlice: likewise a scatter.
func vmapDynamicUpdateSlice(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	if !anyBatched(in[2:]) {
		operands := append(m.all(in[:2]), m.b.Splat(op.Operands[2].Type, 0))
		return m.emit(op, append(operands, values(in[2:])...), op.Attrs), nil
	}
	rank := op.Results[0].Type.Rank()
	g := ir.ScatterDims{InputBatchingDims: []int{0}, ScatterIndicesBatchingDims: []int{0}, IndexVectorDim: 1}
	for d := range rank {
		g.UpdateWindowDims, g.ScatterDimsToOperandDims = append(g.UpdateWindowDims, d+1), append(g.ScatterDimsToOperandDims, d+1)
	}
	// dynamic_update_slice clamps its start; scatter drops what does not fit.
	starts := m.indexVectors(in[2:])
	limit := make([]int, rank)
	for d := range rank {
		limit[d] = op.Operands[0].Type.Shape[d] - op.Operands[1].Type.Shape[d]
	}
	elem := starts.Type.Elem
	zero := m.b.Splat(starts.Type, 0)
	most := m.b.Broadcast(m.b.Const(ir.Ints64(ir.Tensor(elem, rank), limit...)), starts.Type.Shape, 1)
	starts = m.b.Binary(ir.Maximum, m.b.Binary(ir.Minimum, starts, most), zero)
	second := new(ir.Block)
	scalar := ir.Tensor(op.Results[0].Type.Elem)
	m.b.Func.NewArg(second, scalar, "")
	y := m.b.Func.NewArg(second, scalar, "")
	m.b.In(second).Emit(ir.Return, []*ir.Value{y}, nil, nil, nil)
	v := m.b.Emit(ir.Scatter, []*ir.Value{m.batch(in[0]), starts, m.batch(in[1])}, ir.AttrsOf(facts.Named("scatter_dimension_numbers", g)), []*ir.Block{second}, nil).Results[0]
	return []mapped{{v, true}}, nil
}

func anyBatched(in []mapped) bool {
	return slices.ContainsFunc(in, func(x mapped) bool { return x.batched })
}

// indexVectors joins scalar start indices into [n, rank].
func (m *vmapper) indexVectors(in []mapped) *ir.Value {
	cols := make([]*ir.Value, len(in))
	for i, x := range in {
		cols[i] = m.b.Reshape(m.batch(x), m.n, 1)
	}
	return m.b.Concat(1, cols...)
}

// vmapCheckpoint maps the region in place.
func vmapCheckpoint(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	body := new(ir.Block)
	for i, a := range op.Regions[0].Args {
		m.arg(body, a, in[i].batched)
	}
	ret, err := m.region(body, op.Regions[0], nil)
	if err != nil {
		return nil, err
	}
	c := m.b.Emit(op.Kind, values(in), op.Attrs, []*ir.Block{body}, ir.Types(values(ret)))
	for i := range ret {
		ret[i].v = c.Results[i]
	}
	return ret, nil
}

// region maps src into dst and appends the terminator. Where want is not nil,
// result i gets the new dimension if want[i].
func (m *vmapper) region(dst, src *ir.Block, want []bool) ([]mapped, error) {
	outer := m.b.Block
	m.b.Block = dst
	defer func() { m.b.Block = outer }()
	ret, err := m.block(src)
	if err != nil {
		return nil, err
	}
	for i := range want {
		if want[i] && !ret[i].batched {
			ret[i] = mapped{m.batch(ret[i]), true}
		}
	}
	m.b.Emit(src.Terminator().Kind, values(ret), nil, nil, nil)
	return ret, nil
}

// vmapScan gives a carry the new dimension if its initial or its yielded value has
// it; the body is mapped until no further carry gets it.
func vmapScan(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	n := op.Int("carries")
	carry := make([]bool, n)
	for i := range carry {
		carry[i] = in[i].batched
	}
	for {
		body := new(ir.Block)
		src := op.Regions[0]
		m.sharedArg(body, src.Args[0])
		operands := make([]*ir.Value, len(in))
		for i, x := range in {
			switch a := src.Args[i+1]; {
			case i < n:
				m.arg(body, a, carry[i])
				if operands[i] = x.v; carry[i] {
					operands[i] = m.batch(x)
				}
			case x.batched: // [n, trips, …] to [trips, n, …]
				m.mappedArg(body, a)
				perm := []int{1, 0}
				for d := 2; d < x.v.Type.Rank(); d++ {
					perm = append(perm, d)
				}
				operands[i] = m.b.Transpose(x.v, perm...)
			default:
				m.sharedArg(body, a)
				operands[i] = x.v
			}
		}
		ret, err := m.region(body, src, carry)
		if err != nil {
			return nil, err
		}
		if grow(carry, ret[:n]) {
			continue
		}
		c := m.b.Emit(op.Kind, operands, op.Attrs, []*ir.Block{body}, nil)
		out := make([]mapped, len(ret))
		for i, x := range ret {
			v := c.Results[i]
			if i >= n && x.batched {
				perm := []int{1, 0}
				for d := 2; d < v.Type.Rank(); d++ {
					perm = append(perm, d)
				}
				v = m.b.Transpose(v, perm...)
			}
			out[i] = mapped{v, x.batched}
		}
		return out, nil
	}
}

// grow marks the carries whose yielded value has the new dimension; it reports
// whether any is new.
func grow(carry []bool, ret []mapped) bool {
	changed := false
	for i, x := range ret {
		if x.batched && !carry[i] {
			carry[i], changed = true, true
		}
	}
	return changed
}

// vmapWhile is as vmapScan; the condition must be the same for all instances.
func vmapWhile(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	carry := make([]bool, len(in))
	for i := range carry {
		carry[i] = in[i].batched
	}
	for {
		cond, do := new(ir.Block), new(ir.Block)
		operands := make([]*ir.Value, len(in))
		for i, x := range in {
			m.arg(cond, op.Regions[0].Args[i], carry[i])
			m.arg(do, op.Regions[1].Args[i], carry[i])
			if operands[i] = x.v; carry[i] {
				operands[i] = m.batch(x)
			}
		}
		more, err := m.region(cond, op.Regions[0], nil)
		if err != nil {
			return nil, err
		}
		if more[0].batched {
			return nil, pass.Errorf(op, "a loop that runs a different number of times for each stage cannot be used in a pipelined layer")
		}
		ret, err := m.region(do, op.Regions[1], carry)
		if err != nil {
			return nil, err
		}
		if grow(carry, ret) {
			continue
		}
		c := m.b.Emit(op.Kind, operands, op.Attrs, []*ir.Block{cond, do}, nil)
		for i := range ret {
			ret[i].v = c.Results[i]
		}
		return ret, nil
	}
}

// vmapCase keeps a branch whose index all instances share; otherwise every branch
// is computed and the results are selected.
func vmapCase(m *vmapper, op *ir.Op, in []mapped) ([]mapped, error) {
	if in[0].batched {
		return nil, pass.Errorf(op, "a branch on a value that differs between stages cannot be used in a pipelined layer; use where()")
	}
	want := make([]bool, len(op.Results))
	for {
		regions := make([]*ir.Block, len(op.Regions))
		var first []mapped
		changed := false
		for i, src := range op.Regions {
			regions[i] = new(ir.Block)
			ret, err := m.region(regions[i], src, want)
			if err != nil {
				return nil, err
			}
			changed = grow(want, ret) || changed
			first = ret
		}
		if changed {
			continue
		}
		c := m.b.Emit(op.Kind, values(in), op.Attrs, regions, nil)
		for i := range first {
			first[i].v = c.Results[i]
		}
		return first, nil
	}
}
