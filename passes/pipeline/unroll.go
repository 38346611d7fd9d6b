package pipeline

import (
	"ppc/ir"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// Unroll unrolls every pp.scan marked with pp.unroll = k by the factor k: k
// iterations become one, and the remaining ones follow the loop. A loop that is
// unrolled by its trip count is replaced by its iterations.
func Unroll(_ *pass.Context, m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		u := &unroller{f: f, sub: f.NewSubst()}
		u.block(f.Body)
	}
	return nil
}

type unroller struct {
	f   *ir.Func
	sub ir.Subst
}

func (u *unroller) block(b *ir.Block) {
	out := &ir.Block{}
	for _, op := range b.Ops {
		u.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			u.block(r)
		}
		k := op.Int(ir.KeyUnroll)
		if op.Kind != ir.PPScan || k < 2 && !(k == 1 && op.Int("trip_count") == 1) {
			out.Ops = append(out.Ops, op)
			continue
		}
		results := u.loop(&ir.Builder{Func: u.f, Block: out, Origin: op.Origin}, op, min(k, op.Int("trip_count")))
		for i, v := range op.Results {
			u.sub[v.ID] = results[i]
			if results[i].Name == "" {
				results[i].Name = v.Name
			}
		}
	}
	b.Ops = out.Ops
}

// loop builds the loop of trips/k iterations and the remaining ones, and returns
// the values that replace op's results. A loop in reverse begins with the remaining
// iterations.
func (u *unroller) loop(b *ir.Builder, op *ir.Op, k int) []*ir.Value {
	n, trips := op.Int("carries"), op.Int("trip_count")
	w := &unrolling{unroller: u, b: b, op: op, k: k, groups: trips / k, carries: op.Operands[:n], xs: op.Operands[n:]}
	if w.groups < 2 {
		w.groups = 0
	}
	var head, tail [][]*ir.Value // pieces of the stacked outputs
	if op.Bool("reverse") {
		tail = w.rest()
		head = w.loop()
	} else {
		head = w.loop()
		tail = w.rest()
	}
	results := append([]*ir.Value(nil), w.carries...)
	for i := range len(op.Results) - n {
		results = append(results, b.Concat(0, append(head[i], tail[i]...)...))
	}
	return results
}

// An unrolling is the unrolling of one loop: a loop over groups of k iterations,
// and the remaining iterations.
type unrolling struct {
	*unroller
	b       *ir.Builder
	op      *ir.Op
	k       int
	groups  int
	carries []*ir.Value // after what has been built
	xs      []*ir.Value
}

// order is 0 to n-1, or back in a loop in reverse.
func (w *unrolling) order(n int) []int {
	out := make([]int, n)
	for i := range out {
		if out[i] = i; w.op.Bool("reverse") {
			out[i] = n - 1 - i
		}
	}
	return out
}

// rest builds the iterations after the groups; it returns their rows of each
// per-iteration output.
func (w *unrolling) rest() [][]*ir.Value {
	first := w.groups * w.k
	n := w.op.Int("trip_count") - first
	rows := make([][]*ir.Value, len(w.op.Results)-len(w.carries))
	for i := range rows {
		rows[i] = make([]*ir.Value, n)
	}
	for _, j := range w.order(n) {
		var in []*ir.Value
		for _, x := range w.xs {
			in = append(in, row(w.b, x, first+j))
		}
		var out []*ir.Value
		w.carries, out = w.once(w.b, w.op, w.b.I32(first+j), w.carries, in)
		for i, y := range out {
			rows[i][j] = w.b.Reshape(y, append([]int{1}, y.Type.Shape...)...)
		}
	}
	return rows
}

// loop builds the loop over groups; it returns its rows of each per-iteration
// output.
func (w *unrolling) loop() [][]*ir.Value {
	n, k := len(w.carries), w.k
	outs := make([][]*ir.Value, len(w.op.Results)-n)
	if w.groups == 0 {
		return outs
	}
	body := new(ir.Block)
	in := w.b.In(body)
	t := w.f.NewArg(body, ir.Tensor(ir.I32), w.op.Regions[0].Args[0].Name)
	var args, groups []*ir.Value
	for i, c := range w.carries {
		args = append(args, w.f.NewArg(body, c.Type, w.op.Regions[0].Args[1+i].Name))
	}
	operands := append([]*ir.Value(nil), w.carries...)
	for _, x := range w.xs { // [trips, …] as [groups, k, …]
		shape := append([]int{w.groups, k}, x.Type.Shape[1:]...)
		operands = append(operands, w.b.Reshape(w.b.SliceDim(x, 0, 0, w.groups*k), shape...))
		groups = append(groups, w.f.NewArg(body, x.Type.WithShape(shape[1:]...), ""))
	}
	first := in.Mul(t, in.I32(k))
	rows := make([][]*ir.Value, len(outs))
	for i := range rows {
		rows[i] = make([]*ir.Value, k)
	}
	for _, j := range w.order(k) {
		var xs []*ir.Value
		for _, g := range groups {
			xs = append(xs, row(in, g, j))
		}
		var out []*ir.Value
		args, out = w.once(in, w.op, in.Add(first, in.I32(j)), args, xs)
		for i, y := range out {
			rows[i][j] = in.Reshape(y, append([]int{1}, y.Type.Shape...)...)
		}
	}
	yield := append([]*ir.Value(nil), args...)
	for _, r := range rows {
		yield = append(yield, in.Concat(0, r...))
	}
	in.Emit(ir.PPYield, yield, nil, nil, nil)
	attrs := w.op.Attrs
	attrs.Delete(ir.KeyUnroll)
	attrs.Set("trip_count", ir.I64Attr(w.groups))
	attrs.Set(ir.KeyTurn, ir.I64Attr(k))
	scan := w.b.Emit(ir.PPScan, operands, attrs, []*ir.Block{body}, nil)
	w.carries = scan.Results[:n]
	for i, y := range scan.Results[n:] {
		outs[i] = []*ir.Value{w.b.Reshape(y, append([]int{w.groups * k}, y.Type.Shape[2:]...)...)}
	}
	return outs
}

// row is row i of x, without the leading dimension.
func row(b *ir.Builder, x *ir.Value, i int) *ir.Value {
	return b.Reshape(b.SliceDim(x, 0, i, i+1), x.Type.Shape[1:]...)
}

// once copies the body of op, a pp.scan, for iteration t; it returns the
// carries and the per-iteration outputs.
func (u *unroller) once(b *ir.Builder, op *ir.Op, t *ir.Value, carries, rows []*ir.Value) (next, out []*ir.Value) {
	body := op.Regions[0]
	sub := map[*ir.Value]*ir.Value{body.Args[0]: t}
	for i, v := range append(append([]*ir.Value(nil), carries...), rows...) {
		sub[body.Args[1+i]] = v
	}
	vs := rewrite.CopyBody(b, body, sub)
	n := len(carries)
	return vs[:n], vs[n:]
}
