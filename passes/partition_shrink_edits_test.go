package passes

import (
	"math/rand/v2"
	"slices"

	"ppc/ir"
	"ppc/passes/tidy"
)

// edits make a program smaller, those that may take much away first. They take
// the number of the place to edit; false says that there is no such place, a
// program without a module that nothing can be done there.
var edits = []func(failing, int) (failing, bool){
	failing.onlyValue, failing.withoutResult, failing.once, failing.withoutRegion, failing.withoutCarry, failing.withoutOp,
	failing.fromParameter, failing.fromOperand, failing.withoutParameter, failing.withoutSharding,
}

// A site is an op of a program.
type site struct {
	block  *ir.Block
	at     int
	closed bool // inside of a region that is to see nothing from outside
}

func (p site) op() *ir.Op { return p.block.Ops[p.at] }

// sites are all ops of c but for terminators, last first.
func (c failing) sites() []site {
	var out []site
	var walk func(b *ir.Block, closed bool)
	walk = func(b *ir.Block, closed bool) {
		for i, op := range b.Ops {
			if op.Kind.Has(ir.Terminator) {
				continue
			}
			out = append(out, site{b, i, closed})
			for _, r := range op.Regions {
				walk(r, closed || op.Kind != ir.While && op.Kind != ir.Case && op.Kind != ir.If)
			}
		}
	}
	walk(c.m.Main().Body, false)
	slices.Reverse(out)
	return out
}

// cleaned is c without what nothing uses.
func (c failing) cleaned() failing {
	if tidy.Dce(nil, c.m) != nil {
		return failing{}
	}
	c.m.Main().Renumber()
	return c
}

// result is the i-th result of all ops, last first, and where it is made; nil
// if there are not so many.
func (c failing) result(i int) (*ir.Value, site) {
	for _, p := range c.sites() {
		if rs := p.op().Results; i < len(rs) {
			return rs[i], p
		}
		i -= len(p.op().Results)
	}
	return nil, site{}
}

// replaced is c with another value in the place of v. What is to be summed up
// stays what it is: without the sum it would be something else.
func (c failing) replaced(v, by *ir.Value) failing {
	if s, ok := v.Def.Attrs.Get("out_sharding").(*ir.Sharding); ok && len(s.Unreduced) > 0 {
		return failing{}
	}
	summed := false
	c.m.Main().Body.Walk(func(op *ir.Op) {
		summed = summed || (op.Kind == ir.SdyAllReduce || op.Kind == ir.SdyReduceScatter) && op.Operands[0] == v
	})
	if summed {
		return failing{}
	}
	f := c.m.Main()
	sub := f.NewSubst()
	sub[v.ID] = by
	sub.ApplyBlock(f.Body)
	return c.cleaned()
}

// counts reports whether v may be what a loop ends by: it stays as it is, so that
// every loop ends.
func counts(v *ir.Value) bool {
	return v.Type.IsTensor() && v.Type.Rank() == 0 && !v.Type.Elem.IsFloat()
}

// onlyValue makes a result of an op the one of the program.
func (c failing) onlyValue(i int) (failing, bool) {
	v, p := c.result(i)
	f := c.m.Main()
	switch {
	case v == nil:
		return failing{}, false
	case p.block != f.Body || !v.Type.IsTensor() || v.Type.Elem != ir.F64:
		return failing{}, true
	}
	f.Return().Operands = []*ir.Value{v}
	f.Results = []ir.Result{{Type: v.Type}}
	return c.cleaned(), true
}

func (c failing) withoutResult(i int) (failing, bool) {
	f := c.m.Main()
	ret := f.Return()
	if i >= len(ret.Operands) || len(ret.Operands) == 1 {
		return failing{}, false
	}
	ret.Operands, f.Results = slices.Delete(ret.Operands, i, i+1), slices.Delete(f.Results, i, i+1)
	return c.cleaned(), true
}

// once puts the ops of a region in the place of the loop, the choice or the
// named computation that has it.
func (c failing) once(i int) (failing, bool) {
	f := c.m.Main()
	for _, p := range c.sites() {
		op := p.op()
		loop := op.Kind == ir.While
		if !loop && op.Kind != ir.Case && op.Kind != ir.If && op.Kind != ir.NamedComputation {
			continue
		}
		if i -= len(op.Regions); i >= 0 {
			continue
		}
		r := op.Regions[-1-i]
		if loop && r == op.Regions[0] {
			return failing{}, true
		}
		sub := f.NewSubst()
		for k, a := range r.Args {
			sub[a.ID] = op.Operands[k]
		}
		sub.ApplyBlock(r)
		sub = f.NewSubst()
		for k, v := range r.Terminator().Operands {
			sub[op.Results[k].ID] = v
		}
		sub.ApplyBlock(f.Body)
		p.block.Ops = slices.Concat(p.block.Ops[:p.at], r.Ops[:len(r.Ops)-1], p.block.Ops[p.at+1:])
		return c.cleaned(), true
	}
	return failing{}, false
}

// withoutRegion drops a branch.
func (c failing) withoutRegion(i int) (failing, bool) {
	for _, p := range c.sites() {
		op := p.op()
		if op.Kind != ir.Case || len(op.Regions) == 1 {
			continue
		}
		if i < len(op.Regions) {
			op.Regions = slices.Delete(slices.Clone(op.Regions), i, i+1)
			return c.cleaned(), true
		}
		i -= len(op.Regions)
	}
	return failing{}, false
}

// withoutCarry lets a loop carry one value less, which is in it and after it
// what it is before, or drops a result of a choice that nothing uses.
func (c failing) withoutCarry(i int) (failing, bool) {
	f := c.m.Main()
	for _, p := range c.sites() {
		op := p.op()
		loop := op.Kind == ir.While
		if !loop && op.Kind != ir.Case && op.Kind != ir.If {
			continue
		}
		if i >= len(op.Results) {
			i -= len(op.Results)
			continue
		}
		if len(op.Results) == 1 || loop && counts(op.Results[i]) || !loop && f.Uses()[op.Results[i].ID] > 0 {
			return failing{}, true
		}
		sub := f.NewSubst()
		if loop {
			sub[op.Results[i].ID] = op.Operands[i]
			op.Operands = slices.Delete(slices.Clone(op.Operands), i, i+1)
		}
		for _, r := range op.Regions {
			if loop {
				sub[r.Args[i].ID] = sub[op.Results[i].ID]
				r.Args = drop(r.Args, i)
			}
			if ret := r.Terminator(); !loop || r != op.Regions[0] {
				ret.Operands = slices.Delete(slices.Clone(ret.Operands), i, i+1)
			}
		}
		op.Results = drop(op.Results, i)
		sub.ApplyBlock(f.Body)
		return c.cleaned(), true
	}
	return failing{}, false
}

// withoutOp drops an op whose results nothing uses.
func (c failing) withoutOp(i int) (failing, bool) {
	sites, uses := c.sites(), c.m.Main().Uses()
	if i >= len(sites) {
		return failing{}, false
	}
	p := sites[i]
	if slices.ContainsFunc(p.op().Results, func(v *ir.Value) bool { return uses[v.ID] > 0 }) {
		return failing{}, true
	}
	p.block.Ops = slices.Delete(slices.Clone(p.block.Ops), p.at, p.at+1)
	return c.cleaned(), true
}

// fromParameter makes a parameter of a result.
func (c failing) fromParameter(i int) (failing, bool) {
	v, p := c.result(i)
	if v == nil || p.closed || !v.Type.IsTensor() || v.Def.Kind == ir.Constant || counts(v) {
		return failing{}, v != nil
	}
	f := c.m.Main()
	a := f.NewArg(f.Body, v.Type, "")
	a.Sharding = saidOf(v.Def, v.Index)
	g := &programMaker{r: rand.New(rand.NewPCG(uint64(i), 2))}
	c.args = append(c.args, g.literal(v.Type))
	return c.replaced(v, a), true
}

// fromOperand puts an operand of the same type in the place of a result.
func (c failing) fromOperand(i int) (failing, bool) {
	v, _ := c.result(i)
	if v == nil || counts(v) {
		return failing{}, v != nil
	}
	for _, x := range v.Def.Operands {
		if x.Type.Equal(v.Type) {
			return c.replaced(v, x), true
		}
	}
	return failing{}, true
}

func (c failing) withoutParameter(i int) (failing, bool) {
	f := c.m.Main()
	if i >= len(f.Params()) {
		return failing{}, false
	}
	if f.Uses()[f.Params()[i].ID] > 0 {
		return failing{}, true
	}
	f.Body.Args, c.args = drop(f.Body.Args, i), slices.Delete(c.args, i, i+1)
	return c.cleaned(), true
}

// shardings are those of parameters and results, and what constraints say; no
// other program has them.
func (c failing) shardings() []**ir.Sharding {
	f := c.m.Main()
	var all []**ir.Sharding
	for _, v := range f.Params() {
		all = append(all, &v.Sharding)
	}
	for k := range f.Results {
		all = append(all, &f.Results[k].Sharding)
	}
	for _, s := range all {
		*s = (*s).Clone()
	}
	all = slices.DeleteFunc(all, func(s **ir.Sharding) bool { return *s == nil })
	f.Body.Walk(func(op *ir.Op) {
		for i := range op.Attrs {
			if s, ok := op.Attrs[i].Attr.(*ir.Sharding); ok && op.Attrs[i].Name == "sharding" {
				s = s.Clone()
				op.Attrs.Set("sharding", s)
				all = append(all, &s)
			}
		}
	})
	return all
}

// withoutSharding drops the sharding of a parameter, of a result or of a
// constraint, or its axes in one dimension.
func (c failing) withoutSharding(i int) (failing, bool) {
	for _, s := range c.shardings() {
		if i == 0 {
			*s = nil
			return c, true
		}
		i--
		for d := range (*s).Dims {
			if len((*s).Dims[d].Axes) == 0 {
				continue
			}
			if i == 0 {
				(*s).Dims[d].Axes = nil
				return c, true
			}
			i--
		}
	}
	return failing{}, false
}

// drop removes value i of results or arguments and renumbers the rest.
func drop(vs []*ir.Value, i int) []*ir.Value {
	vs = slices.Delete(slices.Clone(vs), i, i+1)
	for k, v := range vs {
		v.Index = k
	}
	return vs
}
