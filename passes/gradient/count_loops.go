package gradient

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// CountLoops makes a pp.scan of every while in main that has a constant trip count:
// one carry begins at a constant, grows by a constant in each iteration, and the
// loop ends when it reaches another constant. The counter then follows from the
// iteration number, and loop-invariant values are captured instead of carried, so
// that neither becomes a residual.
//
// It changes only programs whose gradient is asked for.
func CountLoops(_ *pass.Context, m *ir.Module) error {
	if m.Attrs.Str(ir.KeyGradient) == "" {
		return nil
	}
	f := m.Main()
	c := &counter{f: f, sub: f.NewSubst()}
	c.block(f.Body)
	return nil
}

type counter struct {
	f   *ir.Func
	sub ir.Subst
}

func (c *counter) block(b *ir.Block) {
	out := new(ir.Block)
	for _, op := range b.Ops {
		c.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			c.block(r)
		}
		if op.Kind != ir.While {
			out.Ops = append(out.Ops, op)
			continue
		}
		vs := scanOf(&ir.Builder{Func: c.f, Block: out, Origin: op.Origin}, op)
		if vs == nil {
			out.Ops = append(out.Ops, op)
			continue
		}
		for i, v := range op.Results {
			c.sub = c.sub.Grow(v.ID)
			c.sub[v.ID] = vs[i]
		}
	}
	b.Ops = out.Ops
}

// scanOf appends to b a pp.scan that computes the same as op, a while, and returns
// the values that replace op's results; nil where op has no constant trip count.
func scanOf(b *ir.Builder, op *ir.Op) []*ir.Value {
	c, ok := facts.CountOf(op)
	if !ok {
		return nil
	}
	f, do := b.Func, op.Regions[1]
	body := new(ir.Block)
	in := b.In(body)
	iteration := f.NewArg(body, ir.Tensor(ir.I32), do.Args[c.Arg].Name)
	sub := map[*ir.Value]*ir.Value{do.Args[c.Arg]: c.At(in, iteration, do.Args[c.Arg].Type.Elem)}
	yield := do.Terminator().Operands
	results := slices.Clone(op.Operands) // of loop-invariant carries
	results[c.Arg] = b.Splat(op.Operands[c.Arg].Type, float64(c.Start+c.Step*c.Trips))
	var carried []int
	var init []*ir.Value
	for i, a := range do.Args {
		switch {
		case i == c.Arg:
		case yield[i] == a:
			sub[a] = op.Operands[i]
		default:
			sub[a] = f.NewArg(body, a.Type, a.Name)
			carried, init = append(carried, i), append(init, op.Operands[i])
		}
	}
	vs := rewrite.CopyBody(in, do, sub)
	next := make([]*ir.Value, len(carried))
	for k, i := range carried {
		next[k] = vs[i]
	}
	in.Emit(ir.PPYield, next, nil, nil, nil)
	attrs := ir.AttrsOf(facts.Named("carries", ir.I64Attr(len(carried))), facts.Named("trip_count", ir.I64Attr(c.Trips)), facts.Named(ir.KeyLoop, op.Attrs.Get(ir.KeyLoop)))
	scan := b.Emit(ir.PPScan, init, attrs, []*ir.Block{body}, nil)
	for k, i := range carried {
		results[i] = scan.Results[k].Named(op.Results[i].Name)
	}
	return results
}
