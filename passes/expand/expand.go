package expand

import (
	"cmp"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// Expand lowers a module to pure StableHLO with Shardy shardings:
//
//   - a call becomes the body of the function it calls, a composite that of its
//     decomposition;
//   - pp.scan becomes a while over a counter, which indexes the per-iteration
//     inputs and outputs;
//   - pp.checkpoint becomes its region's ops, pp.name its operand;
//   - pp.gather becomes a sharding constraint, which partition turns into the
//     collective;
//   - quantized values become the integers that are stored, and ops on them ops on
//     numbers;
//   - a chlo op becomes its decomposition into StableHLO ops;
//   - in regions that compute with scalars, Shardy's identities become their
//     operands (see [expander.scalarRegion]).
//
// Only the main function remains; of a module that has none, the public ones.
func Expand(_ *pass.Context, m *ir.Module) error {
	for _, f := range facts.Roots(m) {
		if f.Body == nil {
			continue
		}
		if err := rewrite.InlineCalls(m, f); err != nil {
			return err
		}
		rewrite.OpenCheckpoints(f)
		if err := dequantize(f); err != nil {
			return err
		}
		e := &expander{f: f, sub: f.NewSubst()}
		e.block(f.Body)
		if e.err != nil {
			return e.err
		}
	}
	if main := m.Main(); main != nil {
		m.Funcs = []*ir.Func{main}
	}
	rewrite.DropUnused(m)
	return nil
}

type expander struct {
	f   *ir.Func
	sub ir.Subst
	err error
}

func (e *expander) block(b *ir.Block) {
	out := &ir.Block{}
	for _, op := range b.Ops {
		e.op(&ir.Builder{Func: e.f, Block: out, Origin: op.Origin}, op)
	}
	b.Ops = out.Ops
}

func (e *expander) op(b *ir.Builder, op *ir.Op) {
	e.sub.Apply(op.Operands)
	if op.Decomposes() {
		vs, err := compose(b, op)
		e.err = cmp.Or(e.err, err)
		e.replace(op, vs)
		return
	}
	switch op.Kind {
	case ir.Unknown:
		e.unknown(b, op)
	case ir.CustomCall:
		e.customCall(b, op)
	case ir.PPName:
		e.replace(op, op.Operands)
	case ir.PPGather:
		e.replace(op, []*ir.Value{b.Constrain(e.rounded(b, op), op.Attrs.Get("sharding").(*ir.Sharding))})
	case ir.PPScan:
		e.block(op.Regions[0])
		e.replace(op, whileOf(b, op))
	default:
		for _, r := range op.Regions {
			if op.Kind.Has(ir.TensorRegions) {
				e.block(r)
			} else {
				e.scalarRegion(op, r)
			}
		}
		b.Block.Ops = append(b.Block.Ops, op)
	}
}

// Composes reports whether there is a composition of op, which has no Kind. Compositions
// are of known sizes.
func Composes(op *ir.Op) bool {
	unsized := func(v *ir.Value) bool { return !v.Type.IsStatic() }
	return op.Kind == ir.Unknown && references[op.Spelling] != nil && !slices.ContainsFunc(slices.Concat(op.Operands, op.Results), unsized)
}

// unknown makes other ops of an op that the op table does not have but references
// does. It keeps others, unless they are Shardy's:
// sdy.func_data_flow_edge becomes its operand, since calls are inlined, and any
// other is an error, since its meaning for shardings is unknown.
func (e *expander) unknown(b *ir.Builder, op *ir.Op) {
	c := &composer{b: b}
	if Composes(op) {
		for _, r := range op.Regions {
			e.block(r)
		}
		if vs := references[op.Spelling](c, op); vs != nil {
			e.err = cmp.Or(e.err, c.err)
			e.replace(op, vs)
			return
		}
	}
	switch {
	case op.Spelling == "sdy.func_data_flow_edge" && len(op.Operands) == 1 && len(op.Results) == 1:
		v := op.Operands[0]
		if s := op.Result().Sharding; s != nil {
			v = b.Constrain(v, s)
		}
		e.replace(op, []*ir.Value{v})
	case strings.HasPrefix(op.Spelling, "sdy.") || strings.HasPrefix(op.Spelling, "pp."):
		e.err = cmp.Or(e.err, pass.Errorf(op, "%s: there is no such op here, and without it the program may mean something else", op.Spelling))
	default:
		for _, r := range op.Regions {
			e.block(r)
		}
		b.Block.Ops = append(b.Block.Ops, op)
	}
}

func (e *expander) replace(op *ir.Op, vs []*ir.Value) {
	for i, v := range op.Results {
		e.sub[v.ID] = vs[i]
		if vs[i].Name == "" {
			vs[i].Name = v.Name
		}
	}
}

// whileOf builds the loop of a pp.scan and returns its results. The counter of
// one in reverse counts up too; the iteration is trip_count-1 less it.
func whileOf(b *ir.Builder, op *ir.Op) []*ir.Value {
	n, trips, body := op.Int("carries"), op.Int("trip_count"), op.Regions[0]
	xs := op.Operands[n:]
	counter := b.I32(0)
	init := append([]*ir.Value{counter}, op.Operands[:n]...)
	yield := body.Terminator()
	for _, y := range yield.Operands[n:] { // where the per-iteration outputs are collected
		t := y.Type.WithShape(append([]int{trips}, y.Type.Shape...)...)
		init = append(init, b.Broadcast(b.Splat(ir.Tensor(y.Type.Elem), 0), t.Shape))
	}
	cond, do := new(ir.Block), new(ir.Block)
	in := b.In(do)
	sub := make(map[*ir.Value]*ir.Value)
	var acc []*ir.Value
	for i, v := range init {
		name := "acc"
		if i <= n {
			name = body.Args[i].Name
		}
		a := b.Func.NewArg(do, v.Type, name)
		b.Func.NewArg(cond, v.Type, name)
		if i <= n {
			sub[body.Args[i]] = a
		} else {
			acc = append(acc, a)
		}
	}
	t := do.Args[0]
	if op.Bool("reverse") {
		t = in.Sub(in.I32(trips-1), t).Named(t.Name)
		sub[body.Args[0]] = t
	}
	for i, x := range xs {
		sub[body.Args[1+n+i]] = in.Index(x, 0, t).Named(body.Args[1+n+i].Name)
	}
	vs := rewrite.CopyBody(in, body, sub)
	next := append([]*ir.Value{in.Add(do.Args[0], in.I32(1))}, vs[:n]...)
	reasons := facts.ResidualsOf(op)
	for i, y := range vs[n:] {
		row := in.SetIndex(acc[i], 0, t, y)
		if d, _ := reasons[i].(ir.Dict); len(d) > 0 {
			row.Def.Attrs.Set(ir.KeyResidual, d)
			if op.Attrs.Str(ir.KeyLoop) == ir.LoopIterations && !op.Attrs.Has(ir.KeyTurn) {
				row.Def.Attrs.Set(ir.KeyIteration, ir.Unit{})
			}
		}
		next = append(next, row)
	}
	in.Emit(ir.Return, next, nil, nil, nil)
	test := b.In(cond)
	test.Emit(ir.Return, []*ir.Value{test.Compare("LT", cond.Args[0], test.I32(trips))}, nil, nil, nil)
	var attrs ir.Attrs
	if loop := op.Attrs.Get(ir.KeyLoop); loop != nil {
		attrs.Set(ir.KeyLoop, loop)
	}
	if op.Bool("reverse") {
		attrs.Set(ir.KeyReverse, ir.Unit{})
	}
	loop := b.Emit(ir.While, init, attrs, []*ir.Block{cond, do}, nil)
	for i, v := range op.Results {
		loop.Results[i+1].Name = v.Name
	}
	return loop.Results[1:]
}

// rounded is the operand of a pp.gather in the element type of its result.
func (e *expander) rounded(b *ir.Builder, gather *ir.Op) *ir.Value {
	x, elem := gather.Operands[0], gather.Result().Type.Elem
	if x.Type.Elem == ir.F32 && elem == ir.BF16 {
		// XLA would hoist a conversion alone to the weights of all repeats, and
		// keep all of them twice. It does not move a reduce_precision.
		attrs := ir.AttrsOf(facts.Named("exponent_bits", ir.Int{Value: 8, Type: ir.I32}), facts.Named("mantissa_bits", ir.Int{Value: 7, Type: ir.I32}))
		x = b.Emit(ir.ReducePrecision, []*ir.Value{x}, attrs, nil, nil).Result()
	}
	return b.Convert(x, elem)
}
