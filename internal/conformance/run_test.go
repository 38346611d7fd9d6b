package conformance

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/ir/xla"
	"ppc/lower/hlo"
	"ppc/passes"
	"ppc/runtime"
)

// A machine runs programs: the reference evaluator, or the runtime.
type machine interface {
	// main runs f, a function of m without arguments but for args, and holds its checks.
	main(ctx context.Context, m *ir.Module, f *ir.Func, args []*ir.Literal) error
	// devices runs the main function of m, a program for each device.
	devices(ctx context.Context, m *ir.Module, args [][]*ir.Literal) ([][]*ir.Literal, error)
}

// kindsOf are the kinds that a machine can be asked for.
func kindsOf(on machine) []Kind {
	parts := func(collective bool) func(context.Context, Unit) error {
		return func(ctx context.Context, u Unit) error { return runParts(ctx, on, u, collective) }
	}
	run := func(ctx context.Context, u Unit) error {
		if strings.Contains(u.Notes, "two-part") {
			return runParts(ctx, on, u, false)
		}
		return runModule(ctx, on, u)
	}
	text := func(ctx context.Context, u Unit) error { return runText(ctx, on, u) }
	return []Kind{
		{"interpret", run}, {"testdata", run}, {"sdy-partition", parts(false)}, {"sdy-collective", parts(true)}, {"hlo-pipeline", text}, {"hlo-collective", text},
	}
}

// runModule runs the main function of the unit, or its first.
func runModule(ctx context.Context, on machine, u Unit) error {
	m, err := parseMLIR(u)
	if err != nil {
		return err
	}
	f := m.Main()
	if f == nil && len(m.Funcs) > 0 {
		f = m.Funcs[0]
	}
	if f == nil {
		return nil // a comment
	}
	args, err := argsOf(u)
	if err != nil {
		return err
	}
	return on.main(ctx, m, f, args)
}

var runArgs = regexp.MustCompile(`(?m)^// RUN: .*--args="\[(dense.*)\]"`)

// argsOf are the arguments that a RUN line passes, if one does.
func argsOf(u Unit) ([]*ir.Literal, error) {
	source, err := u.Source()
	found := runArgs.FindStringSubmatch(source)
	if err != nil || found == nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("func.func @main() {\n")
	for i, arg := range regexp.MustCompile(`dense<[^>]*> : tensor<[^>]*>`).FindAllString(found[1], -1) {
		fmt.Fprintf(&b, "%%%d = stablehlo.constant %s\n", i, arg)
	}
	m, err := mlir.Parse("args", []byte(b.String()+"return\n}\n"))
	if err != nil {
		return nil, err
	}
	var args []*ir.Literal
	for _, op := range m.Main().Body.Ops {
		if l := op.Literal("value"); l != nil {
			args = append(args, l)
		}
	}
	return args, nil
}

// runText runs a unit of HLO text with the numbers in the file beside it, which
// the evaluator does as it is, too, and not only without fusions.
func runText(ctx context.Context, on machine, u Unit) error {
	c, err := u.Case()
	if err != nil {
		return err
	}
	m, err := parseHLO(u)
	if err != nil {
		return err
	}
	args := make([][]*ir.Literal, len(c.Inputs))
	for d, tensors := range c.Inputs {
		for _, x := range tensors {
			l, err := literal(x)
			if err != nil {
				return err
			}
			args[d] = append(args[d], l)
		}
	}
	if c.Mode == "global" {
		return runGlobal(ctx, on, m, c, args)
	}
	if c.Replicas > 1 {
		m.Attrs.Set("mhlo.num_replicas", ir.Int{Value: c.Replicas, Type: ir.I32})
	}
	whole, err := hlo.Unfuse(m)
	if err != nil {
		return err
	}
	forms := []*ir.Module{whole}
	if _, ok := on.(evaluator); ok {
		forms = append(forms, m)
	}
	for _, m := range forms {
		if err := verify.Verify(m); err != nil {
			return err
		}
		got, err := on.devices(ctx, m, args)
		if err != nil {
			return err
		}
		if err := sameNumbers(c, got); err != nil {
			return err
		}
	}
	return nil
}

// runGlobal partitions m over the devices, each of which the case gives the
// global arguments, and compares global results.
func runGlobal(ctx context.Context, on machine, m *ir.Module, c Case, args [][]*ir.Literal) error {
	if _, err := xla.Import(m, false); err != nil {
		return err
	}
	if err := passes.Run(m, passes.Config{}); err != nil {
		return err
	}
	f, mesh := m.Main(), m.Meshes[0]
	local := make([][]*ir.Literal, mesh.Size())
	for d := range local {
		for i, p := range f.Params() {
			s, _ := p.Attrs.Get("pp.sharding").(*ir.Sharding)
			local[d] = append(local[d], ir.ShardOf(args[min(d, len(args)-1)][i], s, mesh, d))
		}
	}
	got, err := on.devices(ctx, m, local)
	if err != nil {
		return err
	}
	for i, r := range f.Results {
		s, _ := r.Attrs.Get("pp.sharding").(*ir.Sharding)
		parts := make([]*ir.Literal, len(got))
		for d := range got {
			parts[d] = got[d][i]
		}
		global := ir.FromShards(mesh, s, s.Global(r.Type, mesh), parts)
		for d := range got {
			got[d][i] = global
		}
	}
	return sameNumbers(c, got)
}

// literal is the tensor x.
func literal(x Tensor) (*ir.Literal, error) {
	elem := ir.DTypeByHLO(x.DType)
	if elem == ir.InvalidDType {
		return nil, fmt.Errorf("%s is no type of elements", x.DType)
	}
	t := ir.Tensor(elem, x.Shape...)
	vs := make([]float64, len(x.Data))
	ints := make([]int, len(x.Data))
	for i, v := range x.Data {
		switch v := v.(type) {
		case float64:
			vs[i] = v
		case bool:
			if v {
				vs[i] = 1
			}
		case string:
			var err error
			if vs[i], err = strconv.ParseFloat(v, 64); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%v is no number", v)
		}
		ints[i] = int(vs[i])
	}
	if t.Elem.IsFloat() {
		return ir.Floats64(t, vs...), nil
	}
	return ir.Ints64(t, ints...), nil
}

// sameNumbers compares what the devices give with what XLA gave.
func sameNumbers(c Case, got [][]*ir.Literal) error {
	for d, results := range c.Expected {
		if results == nil {
			continue
		}
		if d >= len(got) || len(got[d]) != len(results) {
			return fmt.Errorf("device %d: %d results are expected", d, len(results))
		}
		for i, x := range results {
			want, err := literal(x)
			if err != nil {
				return err
			}
			if !want.Type.Equal(got[d][i].Type) {
				return fmt.Errorf("device %d: result %d is %s, want %s", d, i, got[d][i].Type, want.Type)
			}
			for k := range want.Type.NumElements() {
				a, b := want.Float(k), got[d][i].Float(k)
				diff := math.Abs(a - b)
				if a != b && !(math.IsNaN(a) && math.IsNaN(b)) && !(diff <= c.Tolerance.Abs) && !(diff <= c.Tolerance.Rel*math.Abs(a)) {
					return fmt.Errorf("device %d, result %d, element %d: %v, want %v", d, i, k, b, a)
				}
			}
		}
	}
	return nil
}

// An evaluator is the reference evaluator. With wide it keeps floating-point
// numbers in float64: the suite of Shardy compares sums that have been split
// for equality, which holds where every addition rounds, and here a sum rounds
// once.
type evaluator struct{ wide bool }

func (e evaluator) kinds() []Kind { return kindsOf(e) }

func (e evaluator) main(ctx context.Context, m *ir.Module, f *ir.Func, args []*ir.Literal) error {
	_, err := eval.Run(m, f, args, eval.Options{Context: ctx, Float64: e.wide}.WithChecks())
	return err
}

func (e evaluator) devices(ctx context.Context, m *ir.Module, args [][]*ir.Literal) ([][]*ir.Literal, error) {
	return eval.RunDevices(m, m.Main(), args, eval.Options{Context: ctx})
}

// compiled is the runtime.
type compiled struct{}

func (c compiled) kinds() []Kind { return kindsOf(c) }

func (compiled) devices(ctx context.Context, m *ir.Module, args [][]*ir.Literal) ([][]*ir.Literal, error) {
	exe, err := runtime.Load(m)
	if err != nil {
		return nil, err
	}
	return exe.Run(ctx, args, runtime.PoisonBuffers())
}

// main runs f and returns what it checks. The checks are then held by the
// evaluator. Where f itself runs a grid of processes, the evaluator runs f, and
// the runtime the grid.
func (c compiled) main(ctx context.Context, m *ir.Module, f *ir.Func, args []*ir.Literal) error {
	m = m.Clone()
	f = m.Func(f.Name)
	if has(f, "interpreter.run_parallel") {
		_, err := eval.Run(m, f, args, eval.Options{Context: ctx}.WithChecks().WithGrid(c.grid(ctx)))
		return err
	}
	if m.Main() == nil {
		f.Name = "main"
	}
	if err := expand(m); err != nil {
		return err
	}
	checks := splitChecks(m)
	exe, err := runtime.Load(m)
	if err != nil {
		return err
	}
	probes := make(map[string][]*ir.Literal)
	keep := func(id string, value *ir.Literal) { probes[id] = append(probes[id], value) }
	got, err := exe.Run(ctx, [][]*ir.Literal{args}, runtime.PoisonBuffers(), runtime.Probe(keep))
	if err != nil {
		return err
	}
	_, err = eval.Run(checks, checks.Main(), slices.Concat(args, got[0]), eval.Options{Context: ctx}.WithChecks().WithProbes(probes))
	return err
}

// expand runs the pass that leaves only ops of StableHLO, without calls, as
// programs have been before they are run.
func expand(m *ir.Module) error {
	return passes.RunOne(passes.Named("expand"), m)
}

func has(f *ir.Func, name string) bool {
	found := false
	f.Body.Walk(func(op *ir.Op) { found = found || op.Name() == name })
	return found
}

// isCheck reports whether op is one of those that the evaluator holds.
func isCheck(op *ir.Op) bool {
	return strings.HasPrefix(op.Name(), "check.") || strings.HasPrefix(op.Str("call_target_name"), "check.")
}

// splitChecks takes the checks out of the main function of m, which then
// returns the values that they look at, and returns a module with a main
// function of the checks alone: its parameters are those of the main function
// of m and these values.
func splitChecks(m *ir.Module) *ir.Module {
	checks := m.Clone()
	f, g := m.Main(), checks.Main()
	sub := g.NewSubst()
	g.Body.Ops = slices.DeleteFunc(g.Body.Ops, func(op *ir.Op) bool { return !isCheck(op) && !op.Kind.Has(ir.Terminator) })
	for _, op := range g.Body.Ops {
		if !isCheck(op) {
			op.Operands, g.Results = nil, nil
			continue
		}
		for i, v := range op.Operands {
			if sub[v.ID] == nil {
				sub[v.ID] = g.NewArg(g.Body, v.Type, "")
			}
			op.Operands[i] = sub.Of(v)
		}
	}
	var values []*ir.Value
	seen := make(map[ir.ID]bool)
	f.Body.Ops = slices.DeleteFunc(f.Body.Ops, func(op *ir.Op) bool {
		if !isCheck(op) {
			return false
		}
		for _, v := range op.Operands {
			if !seen[v.ID] {
				seen[v.ID] = true
				values = append(values, v)
			}
		}
		return true
	})
	ret := f.Return()
	ret.Operands, f.Results = values, nil
	for _, v := range values {
		f.Results = append(f.Results, ir.Result{Type: v.Type})
	}
	return checks
}

// grid runs functions as the processes of a grid. The runtime runs one program on
// all devices: the function, or one that calls the function of each device.
func (c compiled) grid(ctx context.Context) eval.Grid {
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
		if err := expand(one); err != nil {
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
