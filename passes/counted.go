package passes

import (
	"math"
	"slices"

	"ppc/ir"
)

// countLoops makes a pp.scan of every while in main that counts: one of its
// values begins at a constant, a constant is added to it in each iteration,
// and the loop ends when it reaches another constant. The counter then follows
// from the iteration number, and what no iteration changes is seen from
// outside instead of carried, so neither need be kept for a backward pass.
//
// It does so for a program whose gradient is asked for.
func countLoops(_ *Context, m *ir.Module) error {
	if m.Attrs.Str("pp.gradient") == "" {
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

// scanOf appends to b a pp.scan that computes what op, a while, does, and
// returns what stands for its results; nil where op does not count.
func scanOf(b *ir.Builder, op *ir.Op) []*ir.Value {
	c, ok := countOf(op)
	if !ok {
		return nil
	}
	f, do := b.Func, op.Regions[1]
	body := new(ir.Block)
	in := b.In(body)
	iteration := f.NewArg(body, ir.Tensor(ir.I32), do.Args[c.arg].Name)
	sub := map[*ir.Value]*ir.Value{do.Args[c.arg]: c.at(in, iteration, do.Args[c.arg].Type.Elem)}
	yield := do.Terminator().Operands
	results := slices.Clone(op.Operands) // of what no iteration changes
	results[c.arg] = b.Splat(op.Operands[c.arg].Type, float64(c.start+c.step*c.trips))
	var carried []int
	var init []*ir.Value
	for i, a := range do.Args {
		switch {
		case i == c.arg:
		case yield[i] == a:
			sub[a] = op.Operands[i]
		default:
			sub[a] = f.NewArg(body, a.Type, a.Name)
			carried, init = append(carried, i), append(init, op.Operands[i])
		}
	}
	vs := copyBody(in, do, sub)
	next := make([]*ir.Value, len(carried))
	for k, i := range carried {
		next[k] = vs[i]
	}
	in.Emit(ir.PPYield, next, nil, nil, nil)
	attrs := ir.AttrsOf(named("carries", ir.I64Attr(len(carried))), named("trip_count", ir.I64Attr(c.trips)), named("pp.loop", op.Attrs.Get("pp.loop")))
	scan := b.Emit(ir.PPScan, init, attrs, []*ir.Block{body}, nil)
	for k, i := range carried {
		results[i] = scan.Results[k].Named(op.Results[i].Name)
	}
	return results
}

// A count is how a while counts: argument arg is start + step*i in iteration i.
type count struct {
	arg                int
	start, step, trips int
}

// at is the counter in the given iteration.
func (c count) at(b *ir.Builder, iteration *ir.Value, elem ir.DType) *ir.Value {
	v := b.Convert(iteration, elem)
	if c.step != 1 {
		v = b.Mul(v, b.Splat(v.Type, float64(c.step)))
	}
	if c.start != 0 {
		v = b.Add(v, b.Splat(v.Type, float64(c.start)))
	}
	return v
}

// countOf finds how op, a while, counts.
func countOf(op *ir.Op) (count, bool) {
	w := whileLoop{op}
	test := op.Regions[0].Terminator().Operands[0].Def
	if test == nil || test.Kind != ir.Compare {
		return count{}, false
	}
	direction := test.Word("comparison_direction")
	for side, v := range test.Operands {
		arg := slices.Index(op.Regions[0].Args, v)
		if arg < 0 || v.Type.Rank() != 0 || !v.Type.Elem.IsInt() {
			continue
		}
		start, ok1 := w.number(op.Operands[arg])
		limit, ok2 := w.number(test.Operands[1-side])
		step, ok3 := w.step(arg)
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		if side == 1 {
			direction = mirrored(direction)
		}
		trips, ok := tripCount(direction, start, limit, step)
		if end := start + step*trips; !ok || trips > math.MaxInt32 || end > largest(v.Type.Elem) || end < smallest(v.Type.Elem) {
			continue
		}
		return count{arg, start, step, trips}, true
	}
	return count{}, false
}

// A whileLoop is a while that may count.
type whileLoop struct{ op *ir.Op }

// step is what each iteration adds to argument arg, a constant.
func (w whileLoop) step(arg int) (int, bool) {
	do := w.op.Regions[1]
	next := do.Terminator().Operands[arg].Def
	if next == nil || next.Kind != ir.Add && next.Kind != ir.Subtract {
		return 0, false
	}
	switch a := do.Args[arg]; {
	case next.Operands[0] == a && next.Kind == ir.Subtract:
		n, ok := w.number(next.Operands[1])
		return -n, ok
	case next.Operands[0] == a:
		return w.number(next.Operands[1])
	case next.Operands[1] == a && next.Kind == ir.Add:
		return w.number(next.Operands[0])
	}
	return 0, false
}

// number is the number that v is in every iteration: that of a constant, or
// of an argument that begins with one and is never changed.
func (w whileLoop) number(v *ir.Value) (int, bool) {
	for _, r := range w.op.Regions {
		if i := slices.Index(r.Args, v); i >= 0 {
			if w.op.Regions[1].Terminator().Operands[i] != w.op.Regions[1].Args[i] {
				return 0, false
			}
			v = w.op.Operands[i]
		}
	}
	l := constant(v)
	if l == nil || l.Type.Rank() != 0 {
		return 0, false
	}
	n := l.Int(0)
	const bound = 1 << 40 // far from where sums and products of numbers overflow
	return int(n), -bound < n && n < bound
}

// mirrored is the direction for which limit ? x says what x ? limit does.
func mirrored(direction string) string {
	switch direction {
	case "LT":
		return "GT"
	case "LE":
		return "GE"
	case "GT":
		return "LT"
	case "GE":
		return "LE"
	}
	return direction
}

// tripCount is how often start, start + step, … compares with limit before it
// no longer does; false where that never ends.
func tripCount(direction string, start, limit, step int) (int, bool) {
	if direction == "GT" || direction == "GE" { // the same, downwards
		start, limit, step = -start, -limit, -step
	}
	switch direction {
	case "LE", "GE":
		limit++
	case "NE":
		if step < 0 {
			start, limit, step = -start, -limit, -step
		}
		if step == 0 || limit < start || (limit-start)%step != 0 {
			return 0, limit == start
		}
	case "EQ":
		return 0, false
	}
	switch {
	case start >= limit:
		return 0, true
	case step <= 0:
		return 0, false
	}
	return (limit - start + step - 1) / step, true
}

// smallest is the smallest number that a value of integer type t can hold.
func smallest(t ir.DType) int {
	if t.Class() == ir.Unsigned {
		return 0
	}
	return -largest(t) - 1
}
