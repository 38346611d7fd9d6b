package passes

import "ppc/ir"

// checkpoint puts a pp.checkpoint region where the configuration asks for a
// boundary: around the body of each iteration, or around each layer. What a
// backward pass does not find saved under one of the policy's names, it
// computes again from the region's inputs; a forward run is not affected.
//
// The body of a marked loop moves into the region as it is: the region sees
// the loop's arguments, so it takes no operands, and its results are what the
// body yields.
func checkpoint(m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body != nil {
			checkpointBlock(f, f.Body, ir.Dict{})
		}
	}
	return nil
}

// checkpointBlock marks the loops and layer calls of b; config is that of the
// innermost loop around.
func checkpointBlock(f *ir.Func, b *ir.Block, config ir.Dict) {
	for i, op := range b.Ops {
		boundary := ir.Attrs(config).Str("checkpoint")
		if op.Kind == ir.Call && boundary == "layer" {
			b.Ops[i] = remat(f, op, config)
			continue
		}
		inner := config
		if d, ok := op.Attrs.Get("pp.config").(ir.Dict); ok && op.Kind == ir.PPScan {
			inner = d
		}
		for _, r := range op.Regions {
			checkpointBlock(f, r, inner)
		}
		if op.Kind == ir.PPScan && op.Attrs.Str("pp.loop") == "iterations" && ir.Attrs(inner).Str("checkpoint") == "iteration" {
			rematBody(f, op, inner)
		}
	}
}

// policy is the part of a configuration that says what a region saves.
func policy(config ir.Dict) ir.Dict {
	var d ir.Attrs
	for _, name := range []string{"remat", "save", "offload", "save_decoder_layer_input"} {
		if a := ir.Attrs(config).Get(name); a != nil {
			d.Set(name, a)
		}
	}
	return ir.Dict(d)
}

// remat wraps one op whose results are the region's.
func remat(f *ir.Func, op *ir.Op, config ir.Dict) *ir.Op {
	inner := *op
	inner.Results = nil
	for i, v := range op.Results {
		w := f.NewValue(v.Type, v.Name)
		w.Def, w.Index, w.Sharding = &inner, i, v.Sharding
		inner.Results = append(inner.Results, w)
	}
	body := &ir.Block{Ops: []*ir.Op{&inner}}
	return region(f, op.Origin, body, inner.Results, op.Results, config)
}

// rematBody wraps the body of a loop.
func rematBody(f *ir.Func, loop *ir.Op, config ir.Dict) {
	b := loop.Regions[0]
	last := len(b.Ops) - 1
	yield := b.Ops[last]
	body := &ir.Block{Ops: append([]*ir.Op(nil), b.Ops[:last]...)}
	var results []*ir.Value
	for _, v := range yield.Operands {
		results = append(results, f.NewValue(v.Type, v.Name))
	}
	op := region(f, loop.Origin, body, yield.Operands, results, config)
	b.Ops = []*ir.Op{op, yield}
	yield.Operands = append([]*ir.Value(nil), results...)
}

// region returns a pp.checkpoint over body, which yields the given values.
func region(f *ir.Func, o *ir.Origin, body *ir.Block, yields, results []*ir.Value, config ir.Dict) *ir.Op {
	(&ir.Builder{Func: f, Block: body, Origin: o}).Emit(ir.PPYield, yields, nil, nil, nil)
	op := &ir.Op{Kind: ir.PPCheckpoint, Attrs: ir.AttrsOf(named("policy", policy(config))), Regions: []*ir.Block{body}, Origin: o}
	for i, v := range results {
		v.Def, v.Index = op, i
	}
	op.Results = results
	return op
}
