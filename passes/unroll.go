package passes

import "ppc/ir"

// unroll repeats the body of every pp.scan marked with pp.unroll = k: k
// iterations become one, what is left over stands after the loop. A loop that
// is unrolled as often as it runs is no loop any more.
func unroll(m *ir.Module) error {
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
		k := op.Int("pp.unroll")
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

// loop builds the loop of trips/k iterations and the ones that are left, and
// returns what stands for op's results.
func (u *unroller) loop(b *ir.Builder, op *ir.Op, k int) []*ir.Value {
	n, trips := op.Int("carries"), op.Int("trip_count")
	carries, xs := op.Operands[:n], op.Operands[n:]
	ys := make([][]*ir.Value, len(op.Results)-n) // pieces of the stacked outputs, in order
	whole := trips / k
	if whole > 1 {
		body := new(ir.Block)
		in := b.In(body)
		t := u.f.NewArg(body, ir.Tensor(ir.I32), op.Regions[0].Args[0].Name)
		var args, slices []*ir.Value
		for i, c := range carries {
			args = append(args, u.f.NewArg(body, c.Type, op.Regions[0].Args[1+i].Name))
		}
		operands := append([]*ir.Value(nil), carries...)
		for _, x := range xs { // [trips, …] as [whole, k, …]
			shape := append([]int{whole, k}, x.Type.Shape[1:]...)
			grouped := b.Reshape(b.SliceDim(x, 0, 0, whole*k), shape...)
			operands = append(operands, grouped)
			slices = append(slices, u.f.NewArg(body, x.Type.WithShape(shape[1:]...), ""))
		}
		first := in.Mul(t, in.I32(k))
		outs := make([][]*ir.Value, len(ys))
		for j := range k {
			var rows []*ir.Value
			for _, s := range slices {
				rows = append(rows, row(in, s, j))
			}
			var out []*ir.Value
			args, out = u.once(in, op, in.Add(first, in.I32(j)), args, rows)
			for i, y := range out {
				outs[i] = append(outs[i], in.Reshape(y, append([]int{1}, y.Type.Shape...)...))
			}
		}
		yield := append([]*ir.Value(nil), args...)
		for _, o := range outs {
			yield = append(yield, in.Concat(0, o...))
		}
		in.Emit(ir.PPYield, yield, nil, nil, nil)
		attrs := op.Attrs
		attrs.Delete("pp.unroll")
		attrs.Set("trip_count", ir.I64Attr(whole))
		scan := b.Emit(ir.PPScan, operands, attrs, []*ir.Block{body}, nil)
		carries = scan.Results[:n]
		for i, y := range scan.Results[n:] {
			ys[i] = append(ys[i], b.Reshape(y, append([]int{whole * k}, y.Type.Shape[2:]...)...))
		}
	} else {
		whole = 0
	}
	for t := whole * k; t < trips; t++ {
		var rows []*ir.Value
		for _, x := range xs {
			rows = append(rows, row(b, x, t))
		}
		var out []*ir.Value
		carries, out = u.once(b, op, b.I32(t), carries, rows)
		for i, y := range out {
			ys[i] = append(ys[i], b.Reshape(y, append([]int{1}, y.Type.Shape...)...))
		}
	}
	results := append([]*ir.Value(nil), carries...)
	for _, y := range ys {
		results = append(results, b.Concat(0, y...))
	}
	return results
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
	vs := copyBody(b, body, sub)
	n := len(carries)
	return vs[:n], vs[n:]
}

// copyBody appends copies of the ops of body, but for its terminator, whose
// operands' copies it returns. sub says what stands for body's arguments.
func copyBody(b *ir.Builder, body *ir.Block, sub map[*ir.Value]*ir.Value) []*ir.Value {
	last := len(body.Ops) - 1
	for _, op := range body.Ops[:last] {
		b.Block.Ops = append(b.Block.Ops, b.Func.CopyOp(op, sub))
	}
	vs := make([]*ir.Value, len(body.Ops[last].Operands))
	for i, v := range body.Ops[last].Operands {
		if vs[i] = v; sub[v] != nil {
			vs[i] = sub[v]
		}
	}
	return vs
}
