package suite

import (
	"context"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/passes"
	"ppc/runtime"
)

// A Machine runs programs: the reference evaluator, or the runtime.
type Machine interface {
	// Main runs f, a function of m without arguments but for args, and holds its checks.
	Main(ctx context.Context, m *ir.Module, f *ir.Func, args []*ir.Literal) error
	// Devices runs the main function of m, a program for each device.
	Devices(ctx context.Context, m *ir.Module, args [][]*ir.Literal) ([][]*ir.Literal, error)
}

// An Evaluator is the reference evaluator, whose sums round at every term like those
// of StableHLO's interpreter: Shardy's suite compares sums that have been split for equality.
type Evaluator struct{}

// Main runs f and holds its checks.
func (e Evaluator) Main(ctx context.Context, m *ir.Module, f *ir.Func, args []*ir.Literal) error {
	_, err := eval.Run(m, f, args, e.options(ctx).WithChecks())
	return err
}

func (Evaluator) options(ctx context.Context) eval.Options {
	return eval.Options{Context: ctx, EachTerm: true}
}

// Devices runs the main function of m, a program for each device.
func (e Evaluator) Devices(ctx context.Context, m *ir.Module, args [][]*ir.Literal) ([][]*ir.Literal, error) {
	return eval.RunDevices(m, m.Main(), args, e.options(ctx))
}

// Compiled is the runtime.
type Compiled struct{}

// Devices runs the main function of m, a program for each device.
func (Compiled) Devices(ctx context.Context, m *ir.Module, args [][]*ir.Literal) ([][]*ir.Literal, error) {
	exe, err := runtime.Load(m)
	if err != nil {
		return nil, err
	}
	return exe.Run(ctx, args, runtime.PoisonBuffers())
}

// Main runs f and returns what it checks. The checks are then held by the
// evaluator. Where f itself runs a grid of processes, the evaluator runs f, and
// the runtime the grid.
func (c Compiled) Main(ctx context.Context, m *ir.Module, f *ir.Func, args []*ir.Literal) error {
	m = m.Clone()
	f = m.Func(f.Name)
	if has(f, "interpreter.run_parallel") {
		_, err := eval.Run(m, f, args, eval.Options{Context: ctx}.WithChecks().WithGrid(c.grid(ctx)))
		return err
	}
	if m.Main() == nil {
		f.Name = "main"
	}
	if err := passes.RunNamed("expand", m); err != nil {
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
