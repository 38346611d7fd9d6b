package suite

import (
	"context"
	"slices"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/passes"
	"ppc/runtime"
)

// grid runs functions as the processes of a grid. The runtime runs one program on
// all devices: the function, or one that calls the function of each device.
func (c Compiled) grid(ctx context.Context) eval.Grid {
	return func(ps eval.Processes) ([][]*ir.Literal, error) {
		one := ps.Module.Clone()
		one.Funcs = slices.DeleteFunc(one.Funcs, func(g *ir.Func) bool { return g.Name == "main" || has(g, "interpreter.run_parallel") })
		for _, g := range one.Funcs {
			if g.Body != nil {
				g.Body.Ops = slices.DeleteFunc(g.Body.Ops, func(op *ir.Op) bool { return op.Name() == "interpreter.print" })
			}
		}
		one.Attrs.Set("mhlo.num_replicas", ir.Int{Value: len(ps.Rows), Type: ir.I32})
		one.Attrs.Set("mhlo.num_partitions", ir.Int{Value: len(ps.Rows[0]), Type: ir.I32})
		d := newDispatcher(one, ps)
		if d.direct() {
			one.Func(ps.Rows[0][0].Name).Name = "main"
		} else {
			d.main()
		}
		if err := passes.RunNamed("expand", one); err != nil {
			return nil, err
		}
		exe, err := runtime.Load(one)
		if err != nil {
			return nil, err
		}
		args := ps.Args
		if !d.direct() {
			args = d.arguments()
		}
		got, err := exe.Run(ctx, args, runtime.PoisonBuffers(), runtime.Infeed(ps.Infeed...))
		if err != nil || d.direct() {
			return got, err
		}
		return d.results(got), nil
	}
}

// A dispatcher makes a main function of the functions of a grid: it takes the
// parameters of all of them that are no tokens, one after the other, calls the one
// that is the device's, and returns the results of all, of which those of the
// others are zeros.
type dispatcher struct {
	m    *ir.Module
	fns  []*ir.Func // each once
	of   []int      // by process: its function
	args [][]*ir.Literal
}

func newDispatcher(m *ir.Module, ps eval.Processes) *dispatcher {
	d := &dispatcher{m: m, args: ps.Args}
	for _, f := range slices.Concat(ps.Rows...) {
		f = m.Func(f.Name)
		if !slices.Contains(d.fns, f) {
			d.fns = append(d.fns, f)
		}
		d.of = append(d.of, slices.Index(d.fns, f))
	}
	return d
}

// direct reports whether all processes run the same function, on tensors.
func (d *dispatcher) direct() bool {
	f := d.fns[0]
	return len(d.fns) == 1 && !slices.ContainsFunc(f.Params(), func(v *ir.Value) bool { return !v.Type.IsTensor() }) &&
		!slices.ContainsFunc(f.Results, func(r ir.Result) bool { return !r.Type.IsTensor() })
}

func (d *dispatcher) main() {
	f := ir.NewFunc("main")
	b := ir.NewBuilder(f)
	params := make([][]*ir.Value, len(d.fns))
	for k, g := range d.fns {
		for _, p := range g.Params() {
			if p.Type.IsTensor() {
				params[k] = append(params[k], f.NewArg(f.Body, p.Type, ""))
			}
		}
	}
	id := func(k ir.Kind) *ir.Value { return b.Convert(b.Emit(k, nil, nil, nil, nil).Result(), ir.I32) }
	device := b.Add(b.Mul(id(ir.ReplicaID), b.I32(d.m.Attrs.Int("mhlo.num_partitions"))), id(ir.PartitionID))
	table := b.Const(ir.Ints64(ir.Tensor(ir.I32, len(d.of)), d.of...))
	index := b.Reshape(b.DynamicSlice(table, []*ir.Value{device}, 1))
	var types []*ir.Type
	for _, g := range d.fns {
		for _, r := range g.Results {
			if r.Type.IsTensor() {
				types = append(types, r.Type)
			}
		}
	}
	branches := make([]*ir.Block, len(d.fns))
	for k, g := range d.fns {
		branches[k] = new(ir.Block)
		in := b.In(branches[k])
		in.Emit(ir.Return, d.branch(in, g, params[k]), nil, nil, nil)
	}
	vs := b.Emit(ir.Case, []*ir.Value{index}, nil, branches, types).Results
	b.Return(vs...)
	d.m.Funcs = append([]*ir.Func{f}, d.m.Funcs...)
}

// branch calls g, and returns the results of all functions.
func (d *dispatcher) branch(in *ir.Builder, g *ir.Func, params []*ir.Value) (out []*ir.Value) {
	var args []*ir.Value
	for _, p := range g.Params() {
		if p.Type.IsTensor() {
			args, params = append(args, params[0]), params[1:]
			continue
		}
		token := in.Emit(ir.Unknown, nil, nil, nil, []*ir.Type{p.Type})
		token.Spelling = "stablehlo.after_all"
		args = append(args, token.Result())
	}
	vs := in.Call(g, args...)
	for _, h := range d.fns {
		for i, r := range h.Results {
			switch {
			case !r.Type.IsTensor():
			case h == g:
				out = append(out, vs[i])
			default:
				out = append(out, in.Splat(r.Type, 0))
			}
		}
	}
	return out
}

func (d *dispatcher) arguments() [][]*ir.Literal {
	out := make([][]*ir.Literal, len(d.of))
	for p, own := range d.of {
		for k, g := range d.fns {
			for i, v := range g.Params() {
				switch {
				case !v.Type.IsTensor():
				case k == own:
					out[p] = append(out[p], d.args[p][i])
				default:
					out[p] = append(out[p], ir.SplatOf(v.Type, 0))
				}
			}
		}
	}
	return out
}

// results picks the results of each process; nil for a token.
func (d *dispatcher) results(got [][]*ir.Literal) [][]*ir.Literal {
	out := make([][]*ir.Literal, len(got))
	for p, all := range got {
		for k, g := range d.fns {
			for _, r := range g.Results {
				var l *ir.Literal
				if r.Type.IsTensor() {
					l, all = all[0], all[1:]
				}
				if k == d.of[p] {
					out[p] = append(out[p], l)
				}
			}
		}
	}
	return out
}
