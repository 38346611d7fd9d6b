package verify

import (
	"math/bits"
	"slices"
	"strings"
	"sync"

	"ppc/ir"
)

// A formCheck is of one property. Those that later passes need not keep in a form that can
// be checked have none: a remat region may be moved, merged and inlined.
type formCheck struct {
	form   ir.Form
	module func(m *ir.Module, errs *Errors) // of all but what it demands of each op; may be nil

	// of is the kinds of ops of which it demands something; nil where it demands
	// nothing of single ops.
	of func(ir.Kind) bool
	op func(m *ir.Module, op *ir.Op, errs *Errors)
}

// formChecks are the checks of properties, in their order.
var formChecks = []formCheck{
	absent(ir.Staged, "staged", kinds(ir.PPPipeline, ir.PPStack)),
	{form: ir.Gathered, of: kinds(ir.PPGather), op: checkGathered},
	{form: ir.Optimized, module: checkAliases},
	absent(ir.Rotated, "rotated", kinds(ir.PPRotate)),
	absent(ir.Expanded, "expanded", func(k ir.Kind) bool {
		return k.Has(ir.Pipeline) || k.Has(ir.Composite) && !k.Has(ir.InHLO)
	}),
	{form: ir.Sharded, module: checkSharded},
	{form: ir.Padded, module: checkPaddedParams, of: every, op: checkPadded},
	absent(ir.Resharded, "resharded", kinds(ir.ShardingConstraint, ir.DataFlowEdge, ir.PropagationBarrier, ir.ShardingGroup)),
	absent(ir.Explicit, "explicit", kinds(ir.Reshard)),
	{form: ir.Local, module: checkLocalFuncs, of: every, op: checkLocal},
}

func every(ir.Kind) bool { return true }

func kinds(list ...ir.Kind) func(ir.Kind) bool {
	return func(k ir.Kind) bool { return slices.Contains(list, k) }
}

// absent finds ops that are left over.
func absent(form ir.Form, label string, of func(ir.Kind) bool) formCheck {
	return formCheck{form: form, of: of, op: func(_ *ir.Module, op *ir.Op, errs *Errors) {
		errs.add(op, ir.NewRule(label, "%s is left over", op.Name()))
	}}
}

// checkForm checks the properties that m claims to have, one after the other. fits is that
// each op has them.
func checkForm(m *ir.Module, errs *Errors, fits bool) {
	for i := range formChecks {
		row := &formChecks[i]
		if !m.Form.Has(row.form) {
			continue
		}
		if row.module != nil {
			row.module(m, errs)
		}
		if row.of == nil || fits {
			continue
		}
		for _, f := range m.Funcs {
			errs.fn = f
			if f.Body == nil {
				continue
			}
			f.Body.Walk(func(op *ir.Op) {
				if row.of(op.Kind) {
					row.op(m, op, errs)
				}
			})
		}
	}
}

// checked are, by kind, the rows of formChecks with demands of single ops of it, as bits.
var checked = sync.OnceValue(func() *[ir.NumKinds]uint16 {
	rows := new([ir.NumKinds]uint16)
	for i := range formChecks {
		for k := range rows {
			if of := formChecks[i].of; of != nil && of(ir.Kind(k)) {
				rows[k] |= 1 << i
			}
		}
	}
	return rows
})

// formed tells whether ops have the properties that their module claims.
type formed struct {
	m      *ir.Module
	rows   uint16 // of formChecks, as bits
	by     *[ir.NumKinds]uint16
	found  Errors // by a row, of an op
	misfit bool   // some op lacks one, or something is wrong with it
}

func formOf(m *ir.Module) formed {
	f := formed{m: m, by: checked()}
	for i := range formChecks {
		if m.Form.Has(formChecks[i].form) {
			f.rows |= 1 << i
		}
	}
	return f
}

// lacks reports whether op, as part of a module in which nothing else is wrong, lacks a
// property.
func (f *formed) lacks(op *ir.Op) bool {
	for rows := f.rows & f.by[op.Kind]; rows != 0; rows &= rows - 1 {
		formChecks[bits.TrailingZeros16(rows)].op(f.m, op, &f.found)
	}
	return len(f.found.List) > 0
}

// checkGathered finds pp.gather ops that still have a placement policy.
func checkGathered(_ *ir.Module, op *ir.Op, errs *Errors) {
	if op.Attrs.Has("policy") {
		errs.add(op, ir.NewRule("gathered", "the policy %s has not been followed yet", op.Attrs.Get("policy")))
	}
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

// checkPaddedParams is checkPadded of the parameters of functions.
func checkPaddedParams(m *ir.Module, errs *Errors) {
	for _, f := range m.Funcs {
		errs.fn = f
		for i, v := range f.Params() {
			divides(m, errs, nil, "parameter %d", i, v)
		}
	}
}

// checkPadded finds shardings whose axes do not divide the sizes that they shard.
func checkPadded(m *ir.Module, op *ir.Op, errs *Errors) {
	for i, v := range op.Results {
		divides(m, errs, op, "result %d", i, v)
	}
	for _, r := range op.Regions {
		for i, v := range r.Args {
			divides(m, errs, op, "argument %d of a region", i, v)
		}
	}
}

func divides(m *ir.Module, errs *Errors, op *ir.Op, what string, i int, v *ir.Value) {
	s := v.Sharding
	if s == nil || !v.Type.IsTensor() {
		return
	}
	mesh := m.Mesh(s.Mesh)
	if mesh == nil {
		return
	}
	for d, size := range v.Type.Shape {
		if n := mesh.RefsSize(s.Axes(d)); size%n != 0 {
			errs.add(op, ir.NewRule("padded", what+": dimension %d has size %d, which %d devices do not divide: %s", i, d, size, n, s))
		}
	}
}

// checkLocalFuncs is checkLocal of the parameters and results of functions.
func checkLocalFuncs(m *ir.Module, errs *Errors) {
	for _, f := range m.Funcs {
		errs.fn = f
		for i, r := range f.Results {
			unsharded(errs, nil, "result %d", i, r.Sharding)
			errs.add(nil, checkUnpadded(m, "result", i, r.Type, r.Attrs))
		}
		for i, v := range f.Params() {
			unsharded(errs, nil, "parameter %d", i, v.Sharding)
			errs.add(nil, checkUnpadded(m, "parameter", i, v.Type, v.Attrs))
		}
	}
}

// checkUnpadded checks that the shape without padding of a global value is one whose
// shards are of type t.
func checkUnpadded(m *ir.Module, what string, i int, t *ir.Type, as ir.Attrs) *ir.Rule {
	s, _ := as.Get(ir.KeySharding).(*ir.Sharding)
	size := as.Ints(ir.KeySize)
	if s == nil || size == nil || !t.IsTensor() {
		return nil
	}
	mesh := m.Mesh(s.Mesh)
	if mesh == nil || ir.DistinctAxes(mesh, s.Refs()) != nil {
		return nil // what is wrong with the sharding is said of it
	}
	if len(size) != t.Rank() {
		return ir.NewRule("local", "%s %d is %s, which has not the %d dimensions of %s", what, i, t, len(size), ir.KeySize)
	}
	for d, n := range size {
		parts := mesh.RefsSize(s.Axes(d))
		if want := n/parts + min(n%parts, 1); t.Shape[d] != want {
			return ir.NewRule("local", "%s %d is %s, but dimension %d of %s, %d, in %d parts has %d", what, i, t, d, ir.KeySize, n, parts, want)
		}
	}
	return nil
}

// checkLocal finds what is left of Shardy.
func checkLocal(_ *ir.Module, op *ir.Op, errs *Errors) {
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
}

func unsharded(errs *Errors, op *ir.Op, what string, i int, s *ir.Sharding) {
	if s != nil {
		errs.add(op, ir.NewRule("local", what+" still has the sharding %s", i, s))
	}
}
