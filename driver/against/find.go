package against

import (
	"math"
	"slices"

	"ppc/ir"
	"ppc/passes/rewrite"
)

// A Runner runs a program on both engines: results[engine][device][i].
type Runner func(m *ir.Module) ([2][][]*ir.Literal, error)

// Find is the first value of m, a program per device, in which the engines differ by more
// than rounding; nil where none does. Where a loop gives it, the first iteration
// after which what the loop carries differs is found by bisection, and the value in that iteration; where
// a conditional does, the value in a branch of it.
func Find(m *ir.Module, run Runner) (*Difference, error) {
	p := newProbe(m)
	p.add(p.main.Body.Ops)
	d, err := p.first(run)
	for err == nil && d != nil {
		at := slices.Index(p.main.Body.Ops, d.Value.Def)
		if at < 0 {
			break // in a branch
		}
		var inner *probe
		loops := d.Loops
		switch kind := d.Value.Def.Kind; {
		case kind == ir.While:
			var n int
			if n, err = p.agreeing(at, run); err == nil {
				inner = p.entered(at, n)
				loops = append(slices.Clip(loops), Iteration{d.Value.Def, n})
			}
		case kind.Has(ir.Branches):
			inner = p.branches(at)
		}
		if inner == nil {
			break
		}
		var next *Difference
		if next, err = inner.first(run); err != nil || next == nil {
			break
		}
		next.Loops = loops
		p, d = inner, next
	}
	return d, err
}

// An Iteration is one of a loop, counted from 0.
type Iteration struct {
	Loop *ir.Op
	N    int
}

// A probe is a program with further results, which are held against each other.
type probe struct {
	m     *ir.Module
	main  *ir.Func
	own   int         // results of the program itself
	shown []*ir.Value // what each further result is
}

// newProbe is a copy of m without further results.
func newProbe(m *ir.Module) *probe {
	c := m.Clone()
	return &probe{m: c, main: c.Main(), own: len(c.Main().Results)}
}

// copy is newProbe of the program in p.
func (p *probe) copy() *probe {
	c := newProbe(p.m)
	ret := c.main.Return()
	ret.Operands, c.main.Results, c.own = ret.Operands[:p.own], c.main.Results[:p.own], p.own
	return c
}

// add makes the values that ops compute further results.
func (p *probe) add(ops []*ir.Op) {
	for _, op := range ops {
		for _, v := range op.Results {
			if comparable(v) {
				p.result(v, v)
			}
		}
	}
}

// result makes v a further result that is shown as another value.
func (p *probe) result(v, shown *ir.Value) {
	ret := p.main.Return()
	ret.Operands = append(slices.Clip(ret.Operands), v)
	p.main.Results = append(slices.Clip(p.main.Results), ir.Result{Type: v.Type})
	p.shown = append(p.shown, shown)
}

// comparable reports whether v is computed from others, and has numbers.
func comparable(v *ir.Value) bool {
	t := v.Type
	return len(v.Def.Operands) > 0 && t.IsTensor() && t.IsStatic() && t.NumElements() > 0 && (t.Elem.IsFloat() || t.Elem.IsInt())
}

// first runs p and returns the first of the further results that differs.
func (p *probe) first(run Runner) (*Difference, error) {
	results, err := run(p.m)
	if err != nil {
		return nil, err
	}
	for i, v := range p.shown {
		for d := range results[0] {
			if diff := compare(v, results[0][d][p.own+i], results[1][d][p.own+i]); diff != nil {
				diff.Device = d
				return diff, nil
			}
		}
	}
	return nil, nil
}

// agreeing is a number of iterations of the loop at a place in main after which what it carries
// agrees, where after one more it does not.
func (p *probe) agreeing(at int, run Runner) (int, error) {
	all, loop := p.bounded(at, math.MaxInt32)
	count := loop.Results[len(loop.Results)-1]
	all.result(count, count)
	results, err := run(all.m)
	if err != nil {
		return 0, err
	}
	low, high := 0, 0
	for _, device := range results[0] {
		high = max(high, int(device[all.own].Int(0)))
	}
	for high-low > 1 {
		mid := low + (high-low)/2
		part, loop := p.bounded(at, mid)
		for _, v := range loop.Results[:len(loop.Results)-1] {
			if comparable(v) {
				part.result(v, v)
			}
		}
		d, err := part.first(run)
		if err != nil {
			return 0, err
		}
		if d == nil {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

// bounded is a copy of p in which the loop at a place in main takes at most n iterations. The loop there
// has how many it took as its last result.
func (p *probe) bounded(at, n int) (*probe, *ir.Op) {
	c := p.copy()
	loop, rest := c.main.Body.Ops[at], slices.Clone(c.main.Body.Ops[at+1:])
	b := &ir.Builder{Func: c.main, Block: &ir.Block{Ops: slices.Clone(c.main.Body.Ops[:at])}, Origin: loop.Origin}
	var regions []*ir.Block
	for i, r := range loop.Regions {
		k := c.main.NewArg(r, ir.Tensor(ir.I32), "")
		in := b.In(r)
		ret := r.Ops[len(r.Ops)-1]
		r.Ops = r.Ops[:len(r.Ops)-1]
		if i == 0 {
			ret.Operands = []*ir.Value{in.Binary(ir.And, ret.Operands[0], in.Compare("LT", k, in.I32(n)))}
		} else {
			ret.Operands = append(slices.Clip(ret.Operands), in.Add(k, in.I32(1)))
		}
		r.Ops = append(r.Ops, ret)
		regions = append(regions, r)
	}
	types := []*ir.Type{}
	for _, v := range loop.Results {
		types = append(types, v.Type)
	}
	out := b.Emit(ir.While, append(slices.Clip(loop.Operands), b.I32(0)), nil, regions, append(types, ir.Tensor(ir.I32)))
	c.replace(loop, out, b.Block.Ops, rest)
	return c, out
}

// replace makes ops, the new one among them, and the rest the body of main; what the new op has as its
// first results takes the place of what old had.
func (p *probe) replace(old, new *ir.Op, ops, rest []*ir.Op) {
	sub := p.main.NewSubst()
	for i, v := range old.Results {
		w := new.Results[i]
		w.Name, w.Sharding = v.Name, v.Sharding
		sub[v.ID] = w
	}
	p.main.Body.Ops = append(ops, rest...)
	sub.ApplyBlock(p.main.Body)
}

// entered is a copy of p in which the loop at a place in main takes n iterations, and what it computes
// in the next one follows it, as further results.
func (p *probe) entered(at, n int) *probe {
	c, loop := p.bounded(at, n)
	after := slices.Index(c.main.Body.Ops, loop) + 1
	rest := slices.Clone(c.main.Body.Ops[after:])
	b := &ir.Builder{Func: c.main, Block: &ir.Block{Ops: slices.Clone(c.main.Body.Ops[:after])}}
	body := loop.Regions[1]
	sub := make(map[*ir.Value]*ir.Value)
	for i, a := range body.Args {
		sub[a] = loop.Results[i]
	}
	rewrite.CopyBody(b, body, sub)
	next := b.Block.Ops[after:]
	c.main.Body.Ops = append(b.Block.Ops, rest...)
	c.add(next)
	return c
}

// branches is a copy of p in which the conditional at a place in main has the values that its branches compute as
// further results, those of a branch that is not taken as zeros.
func (p *probe) branches(at int) *probe {
	c := p.copy()
	op, rest := c.main.Body.Ops[at], slices.Clone(c.main.Body.Ops[at+1:])
	var inner []*ir.Value
	var types []*ir.Type
	for _, v := range op.Results {
		types = append(types, v.Type)
	}
	of := make([]int, len(op.Regions))
	for i, r := range op.Regions {
		for _, o := range r.Ops {
			for _, v := range o.Results {
				if comparable(v) {
					inner, types = append(inner, v), append(types, v.Type)
				}
			}
		}
		of[i] = len(inner)
	}
	b := &ir.Builder{Func: c.main, Block: &ir.Block{Ops: slices.Clone(c.main.Body.Ops[:at])}, Origin: op.Origin}
	for i, r := range op.Regions {
		in, ret := b.In(r), r.Ops[len(r.Ops)-1]
		r.Ops = r.Ops[:len(r.Ops)-1]
		for k, v := range inner {
			if k >= of[i] || i > 0 && k < of[i-1] {
				v = in.Splat(v.Type, 0)
			}
			ret.Operands = append(slices.Clip(ret.Operands), v)
		}
		r.Ops = append(r.Ops, ret)
	}
	out := b.Emit(op.Kind, op.Operands, op.Attrs, op.Regions, types)
	c.replace(op, out, b.Block.Ops, rest)
	for i, v := range inner {
		c.result(out.Results[len(op.Results)+i], v)
	}
	return c
}
