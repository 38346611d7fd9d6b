package verify

import (
	"strings"

	"ppc/internal/split"
	"ppc/ir"
)

// formChecks are the checks of properties, in their order. Those that later passes
// need not keep in a form that can be checked have none: a remat region may be
// moved, merged and inlined.
var formChecks = []struct {
	form  ir.Form
	check func(*ir.Module, *Errors)
}{
	{ir.Staged, absent("staged", ir.PPPipeline, ir.PPStack)},
	{ir.Gathered, checkGathered},
	{ir.Optimized, checkAliases},
	{ir.Rotated, absent("rotated", ir.PPRotate)},
	{ir.Expanded, checkExpanded},
	{ir.Sharded, checkSharded},
	{ir.Padded, checkPadded},
	{ir.Resharded, absent("resharded", ir.ShardingConstraint, ir.DataFlowEdge, ir.PropagationBarrier, ir.ShardingGroup)},
	{ir.Explicit, absent("explicit", ir.Reshard)},
	{ir.Local, checkLocal},
}

// eachOp calls visit for every op of m, for those of parts of a long function at the same
// time; what it adds comes to stand in errs in the order of the ops.
func eachOp(m *ir.Module, errs *Errors, visit func(*ir.Op, *Errors)) {
	for _, f := range m.Funcs {
		errs.fn = f
		if f.Body == nil {
			continue
		}
		if len(f.Body.Ops) < long {
			f.Body.Walk(func(op *ir.Op) { visit(op, errs) })
			continue
		}
		parts := split.Parts(len(f.Body.Ops), long/2)
		found := make([]Errors, len(parts))
		split.Do(parts, func(p split.Part) {
			found[p.Number].fn = f
			part := ir.Block{Ops: f.Body.Ops[p.From:p.To]}
			part.Walk(func(op *ir.Op) { visit(op, &found[p.Number]) })
		})
		for i := range found {
			errs.join(&found[i])
		}
	}
}

func absent(label string, kinds ...ir.Kind) func(*ir.Module, *Errors) {
	return func(m *ir.Module, errs *Errors) {
		eachOp(m, errs, func(op *ir.Op, errs *Errors) {
			for _, k := range kinds {
				if op.Kind == k {
					errs.add(op, ir.NewRule(label, "%s is left over", op.Name()))
				}
			}
		})
	}
}

// checkGathered finds pp.gather ops that still have a placement policy.
func checkGathered(m *ir.Module, errs *Errors) {
	eachOp(m, errs, func(op *ir.Op, errs *Errors) {
		if op.Kind == ir.PPGather && op.Attrs.Has("policy") {
			errs.add(op, ir.NewRule("gathered", "the policy %s has not been followed yet", op.Attrs.Get("policy")))
		}
	})
}

// checkAliases finds results that cannot be donated the buffer of the parameter
// that they replace.
func checkAliases(m *ir.Module, errs *Errors) {
	for _, f := range m.Funcs {
		errs.fn = f
		for i, r := range f.Results {
			if r.Attrs.Has(ir.KeyAlias) && f.Body != nil {
				errs.add(nil, checkAlias(f, i, r.Attrs.Int(ir.KeyAlias)))
			}
		}
	}
}

func checkAlias(f *ir.Func, i, n int) *ir.Rule {
	if n < 0 || n >= len(f.Params()) {
		return ir.NewRule("optimized", "result %d replaces parameter %d, but there are %d", i, n, len(f.Params()))
	}
	p, r := f.Params()[n], f.Results[i]
	if !p.Type.Equal(r.Type) {
		return ir.NewRule("optimized", "result %d is %s, parameter %d, which it replaces, %s", i, r.Type, n, p.Type)
	}
	was, _ := p.Attrs.Get(ir.KeySharding).(*ir.Sharding)
	is, _ := r.Attrs.Get(ir.KeySharding).(*ir.Sharding)
	if !p.Sharding.SameLayout(r.Sharding) || !was.SameLayout(is) {
		return ir.NewRule("optimized", "result %d is sharded otherwise than parameter %d, which it replaces", i, n)
	}
	return nil
}

func checkExpanded(m *ir.Module, errs *Errors) {
	eachOp(m, errs, func(op *ir.Op, errs *Errors) {
		if op.Kind.Has(ir.Pipeline) || op.Kind.Has(ir.Composite) && !op.Kind.Has(ir.InHLO) {
			errs.add(op, ir.NewRule("expanded", "%s is left over", op.Name()))
		}
	})
}

func checkSharded(m *ir.Module, errs *Errors) {
	if m.Form.Has(ir.Local) || len(m.Meshes) == 0 {
		return
	}
	closed := func(op *ir.Op, v *ir.Value) {
		if !v.Type.IsTensor() {
			return
		}
		if v.Sharding == nil {
			errs.add(op, ir.NewRule("sharded", "value %q of type %s has no sharding", v.Name, v.Type))
			return
		}
		for _, d := range v.Sharding.Dims {
			if d.Open {
				errs.add(op, ir.NewRule("sharded", "value %q has the open sharding %s", v.Name, v.Sharding))
				return
			}
		}
	}
	for _, f := range m.Funcs {
		errs.fn = f
		if f.Body == nil {
			continue
		}
		for _, a := range f.Params() {
			closed(nil, a)
		}
		var walk func(b *ir.Block)
		walk = func(b *ir.Block) {
			for _, op := range b.Ops {
				for _, v := range op.Results {
					closed(op, v)
				}
				if op.Kind.Has(ir.Loop) || op.Kind.Has(ir.Branches) {
					for _, r := range op.Regions {
						walk(r)
					}
				}
			}
		}
		walk(f.Body)
	}
}

// checkPadded finds shardings whose axes do not divide the sizes that they shard.
func checkPadded(m *ir.Module, errs *Errors) {
	divides := func(errs *Errors, op *ir.Op, what string, i int, v *ir.Value) {
		s := v.Sharding
		if s == nil || !v.Type.IsTensor() || m.Mesh(s.Mesh) == nil {
			return
		}
		for d, size := range v.Type.Shape {
			if n := m.Mesh(s.Mesh).RefsSize(s.Axes(d)); size%n != 0 {
				errs.add(op, ir.NewRule("padded", what+": dimension %d has size %d, which %d devices do not divide: %s", i, d, size, n, s))
			}
		}
	}
	for _, f := range m.Funcs {
		errs.fn = f
		if f.Body == nil {
			continue
		}
		for i, v := range f.Params() {
			divides(errs, nil, "parameter %d", i, v)
		}
	}
	eachOp(m, errs, func(op *ir.Op, errs *Errors) {
		for i, v := range op.Results {
			divides(errs, op, "result %d", i, v)
		}
		for _, r := range op.Regions {
			for i, v := range r.Args {
				divides(errs, op, "argument %d of a region", i, v)
			}
		}
	})
}

func checkLocal(m *ir.Module, errs *Errors) {
	unsharded := func(errs *Errors, op *ir.Op, what string, i int, s *ir.Sharding) {
		if s != nil {
			errs.add(op, ir.NewRule("local", what+" still has the sharding %s", i, s))
		}
	}
	for _, f := range m.Funcs {
		errs.fn = f
		for i, r := range f.Results {
			unsharded(errs, nil, "result %d", i, r.Sharding)
		}
		if f.Body != nil {
			for i, v := range f.Params() {
				unsharded(errs, nil, "parameter %d", i, v.Sharding)
			}
		}
	}
	eachOp(m, errs, func(op *ir.Op, errs *Errors) {
		if strings.HasPrefix(op.Name(), "sdy.") {
			errs.add(op, ir.NewRule("local", "%s is left over", op.Name()))
		}
		for i, v := range op.Results {
			unsharded(errs, op, "result %d", i, v.Sharding)
		}
		for _, r := range op.Regions {
			for i, v := range r.Args {
				unsharded(errs, op, "argument %d of a region", i, v.Sharding)
			}
		}
	})
}
