package ir

import (
	"fmt"
	"strings"
)

// A Form is a set of properties that a Module may have beyond being well
// formed. A pass states the Form it requires, the Form it ensures and the
// Form it breaks; [Verify] checks the Form that a Module claims.
type Form uint16

// The properties, in the order in which the passes establish them.
const (
	Staged         Form = 1 << iota // no pp.pipeline, no pp.stack: loops over iterations and layers
	Gathered                        // every pipelined weight is all-gathered over its gathered axes before it is used
	Checkpointed                    // remat regions are where the configuration puts them
	Differentiated                  // main returns the gradients that were asked for
	Optimized                       // main is a step of training, if one was asked for
	Rotated                         // no pp.rotate
	Expanded                        // no pp op, no chlo op: pure StableHLO with Shardy shardings
	Sharded                         // every tensor has a closed sharding
	Padded                          // the axes of every sharding divide what they shard
	Resharded                       // every op has operands in the layouts that it is computed with; sdy.reshard is all that moves a value to another
	Explicit                        // no sdy.reshard: every move is an explicit collective
	Local                           // one program per device: no sharding, no sdy op; shapes per device
)

// FormTable says how each property is spelled and checked.
var FormTable = []struct {
	form  Form
	name  string
	check func(*Module, *Errors)
}{
	{Staged, "staged", absent("staged", PPPipeline, PPStack)},
	{Gathered, "gathered", checkGathered},
	{Checkpointed, "checkpointed", noCheck},
	{Differentiated, "differentiated", noCheck},
	{Optimized, "optimized", checkAliases},
	{Rotated, "rotated", absent("rotated", PPRotate)},
	{Expanded, "expanded", checkExpanded},
	{Sharded, "sharded", checkSharded},
	{Padded, "padded", checkPadded},
	{Resharded, "resharded", absent("resharded", ShardingConstraint, DataFlowEdge, PropagationBarrier, ShardingGroup)},
	{Explicit, "explicit", absent("explicit", Reshard)},
	{Local, "local", checkLocal},
}

// Has reports whether f has all properties of g.
func (f Form) Has(g Form) bool { return f&g == g }

func (f Form) String() string {
	var names []string
	for _, row := range FormTable {
		if f.Has(row.form) {
			names = append(names, row.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " ")
}

// ParseForm is the inverse of String; it reports false for an unknown property.
func ParseForm(s string) (Form, bool) {
	var f Form
	if s == "none" {
		return 0, true
	}
next:
	for _, name := range strings.Fields(s) {
		for _, row := range FormTable {
			if row.name == name {
				f |= row.form
				continue next
			}
		}
		return 0, false
	}
	return f, true
}

// noCheck is for properties that later passes need not keep in a checkable form: a
// remat region may be moved, merged and inlined.
func noCheck(*Module, *Errors) {}

func eachOp(m *Module, errs *Errors, visit func(*Op)) {
	for _, f := range m.Funcs {
		errs.fn = f
		if f.Body != nil {
			f.Body.Walk(visit)
		}
	}
}

func absent(label string, kinds ...Kind) func(*Module, *Errors) {
	return func(m *Module, errs *Errors) {
		eachOp(m, errs, func(op *Op) {
			for _, k := range kinds {
				if op.Kind == k {
					errs.add(op, NewRule(label, "%s is left over", op.Name()))
				}
			}
		})
	}
}

// checkGathered finds pp.gather ops that still have a placement policy.
func checkGathered(m *Module, errs *Errors) {
	eachOp(m, errs, func(op *Op) {
		if p := op.Attrs.Get("policy"); op.Kind == PPGather && p != nil {
			errs.add(op, NewRule("gathered", "the policy %s has not been followed yet", p))
		}
	})
}

// checkAliases finds results that cannot be donated the buffer of the parameter
// that they replace.
func checkAliases(m *Module, errs *Errors) {
	for _, f := range m.Funcs {
		errs.fn = f
		for i, r := range f.Results {
			if r.Attrs.Has(KeyAlias) && f.Body != nil {
				errs.add(nil, checkAlias(f, i, r.Attrs.Int(KeyAlias)))
			}
		}
	}
}

func checkAlias(f *Func, i, n int) *Rule {
	if n < 0 || n >= len(f.Params()) {
		return NewRule("optimized", "result %d replaces parameter %d, but there are %d", i, n, len(f.Params()))
	}
	p, r := f.Params()[n], f.Results[i]
	if !p.Type.Equal(r.Type) {
		return NewRule("optimized", "result %d is %s, parameter %d, which it replaces, %s", i, r.Type, n, p.Type)
	}
	was, _ := p.Attrs.Get(KeySharding).(*Sharding)
	is, _ := r.Attrs.Get(KeySharding).(*Sharding)
	if !p.Sharding.SameLayout(r.Sharding) || !was.SameLayout(is) {
		return NewRule("optimized", "result %d is sharded otherwise than parameter %d, which it replaces", i, n)
	}
	return nil
}

func checkExpanded(m *Module, errs *Errors) {
	eachOp(m, errs, func(op *Op) {
		if op.Kind.Has(Pipeline) || op.Kind.Has(Composite) {
			errs.add(op, NewRule("expanded", "%s is left over", op.Name()))
		}
	})
}

func checkSharded(m *Module, errs *Errors) {
	if m.Form.Has(Local) || len(m.Meshes) == 0 {
		return
	}
	closed := func(op *Op, v *Value) {
		if !v.Type.IsTensor() {
			return
		}
		if v.Sharding == nil {
			errs.add(op, NewRule("sharded", "value %q of type %s has no sharding", v.Name, v.Type))
			return
		}
		for _, d := range v.Sharding.Dims {
			if d.Open {
				errs.add(op, NewRule("sharded", "value %q has the open sharding %s", v.Name, v.Sharding))
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
		var walk func(b *Block)
		walk = func(b *Block) {
			for _, op := range b.Ops {
				for _, v := range op.Results {
					closed(op, v)
				}
				if op.Kind == While || op.Kind == Case || op.Kind == If {
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
func checkPadded(m *Module, errs *Errors) {
	divides := func(op *Op, what string, t *Type, s *Sharding) {
		if s == nil || !t.IsTensor() || m.Mesh(s.Mesh) == nil {
			return
		}
		for d, size := range t.Shape {
			if n := m.Mesh(s.Mesh).RefsSize(s.Axes(d)); size%n != 0 {
				errs.add(op, NewRule("padded", "%s: dimension %d has size %d, which %d devices do not divide: %s", what, d, size, n, s))
			}
		}
	}
	for _, f := range m.Funcs {
		errs.fn = f
		if f.Body == nil {
			continue
		}
		for i, v := range f.Params() {
			divides(nil, fmt.Sprintf("parameter %d", i), v.Type, v.Sharding)
		}
	}
	eachOp(m, errs, func(op *Op) {
		for i, v := range op.Results {
			divides(op, fmt.Sprintf("result %d", i), v.Type, v.Sharding)
		}
		for _, r := range op.Regions {
			for i, v := range r.Args {
				divides(op, fmt.Sprintf("argument %d of a region", i), v.Type, v.Sharding)
			}
		}
	})
}

func checkLocal(m *Module, errs *Errors) {
	unsharded := func(op *Op, what string, s *Sharding) {
		if s != nil {
			errs.add(op, NewRule("local", "%s still has the sharding %s", what, s))
		}
	}
	for _, f := range m.Funcs {
		errs.fn = f
		for i, r := range f.Results {
			unsharded(nil, fmt.Sprintf("result %d", i), r.Sharding)
		}
		if f.Body != nil {
			for i, v := range f.Params() {
				unsharded(nil, fmt.Sprintf("parameter %d", i), v.Sharding)
			}
		}
	}
	eachOp(m, errs, func(op *Op) {
		if strings.HasPrefix(op.Name(), "sdy.") {
			errs.add(op, NewRule("local", "%s is left over", op.Name()))
		}
		for i, v := range op.Results {
			unsharded(op, fmt.Sprintf("result %d", i), v.Sharding)
		}
		for _, r := range op.Regions {
			for i, v := range r.Args {
				unsharded(op, fmt.Sprintf("argument %d of a region", i), v.Sharding)
			}
		}
	})
}
