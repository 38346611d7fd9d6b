// Package stats says what a per-device program does in one step: its loops and
// what they carry, the collectives it executes, what its forward loops save for
// the backward pass, and the bytes that are live at the peak.
//
// Everything is read off the program as it was lowered, the program that is
// printed and run. [Of] measures, [Stats.Text] and [Stats.JSON] print.
package stats

import (
	"fmt"
	"strconv"

	"ppc/ir"
	"ppc/lower/flow"
	"ppc/lower/strips"
)

// Stats is what is known of one step of a program, per device.
type Stats struct {
	Loops       []*Loop       // in program order, a loop before those inside it
	Collectives []*Collective // in program order
	Residuals   []*Residual   // by loop, in program order
	Memory      Memory
	Run         Memory // where large values are computed in strips, as they are here

	m     *ir.Module
	nests *nests
	calls map[*ir.Func]Memory // what each function takes at its own peak
}

// A Count is a number of executions; Unknown if the trip count of a loop around
// depends on data.
type Count = flow.Count

// Unknown is the Count that cannot be read off the program.
const Unknown = flow.Unknown

// A Loop is one stablehlo.while.
type Loop struct {
	Op         *ir.Op
	Name       string // its path: iterations, iterations/layers; unique
	Trips      Count
	Carries    []Array // the values that one iteration passes to the next
	Invariants []Array // loop-invariant values, constants aside
}

// An Array is a value and its size.
type Array struct {
	Name  string
	Type  *ir.Type
	Bytes int
	Value *ir.Value // in the body of the loop, or outside of it where the body captures it
}

// A Collective is one op at which devices meet.
type Collective struct {
	Op         *ir.Op
	Kind       string // all_gather
	Name       string // of the value
	Loop       string // the innermost loop around; "" for none
	Axes       string // the mesh axes of its groups: stage, fsdp
	Group      int    // devices in a group
	Slices     int    // in how many slices the devices of a group are
	Bytes      int    // of the gathered value: the larger of operands and results
	Moved      int    // bytes that one device gets from others in one execution, in a ring
	Executions Count  // per step; in a branch, as if that were taken
	Beside     int    // of an all_to_all in a loop: the products of its block that do not depend on it, nor it on them
}

// A Residual is a stack of which a loop writes one row in each iteration, for a
// later loop to read.
type Residual struct {
	Array
	Op    *ir.Op // that writes the row
	While *ir.Op // the loop, and which of its carries this is
	Carry int
	Loop  string
	Why   string
}

// Of measures m, which must be a per-device program, and not fused or split in
// time: XLA's are measured as hlo.Unfuse leaves them.
func Of(m *ir.Module) (*Stats, error) {
	main := m.Main()
	if main == nil || main.Body == nil {
		return nil, fmt.Errorf("there is no @main: the module has no function to measure, or several")
	}
	if err := sized(m); err != nil {
		return nil, err
	}
	s := new(Stats)
	n, order, err := s.walk(m)
	if err != nil {
		return nil, err
	}
	s.m, s.nests, s.calls = m, n, measure(m, n, order)
	s.Memory = s.calls[main]
	s.Run = s.Memory
	if c := strips.Of(m); c != m {
		r := new(Stats)
		n, order, err := r.walk(c)
		if err != nil {
			return nil, err
		}
		s.Run = measure(c, n, order)[c.Main()]
	}
	return s, nil
}

// walk finds the loops, collectives and residuals of m, callers first.
func (s *Stats) walk(m *ir.Module) (n *nests, order []*ir.Func, err error) {
	if order, err = reachable(m, m.Main()); err != nil {
		return nil, nil, err
	}
	n = newNests(m, s)
	for _, f := range order {
		n.function(f)
	}
	s.residuals(n, order)
	return n, order, nil
}

// sized reports the first value whose size is not known.
func sized(m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		bad := unsized(f.Params())
		f.Body.Walk(func(op *ir.Op) {
			if v := unsized(op.Results); bad == nil {
				bad = v
			}
		})
		if bad != nil {
			return unsizedError(f, bad)
		}
	}
	return nil
}

// unsizedError says of a value in f that its size is not known, and where it is
// made.
func unsizedError(f *ir.Func, v *ir.Value) error {
	what, place := "parameter "+strconv.Itoa(v.Index), f.Origin.Place()
	if v.Def != nil {
		what, place = v.Def.Name(), v.Def.Origin.Place()
	}
	at := ""
	if place.Line > 0 {
		at = place.String() + ": "
	}
	return fmt.Errorf("%sin %s: %s: %s has no known size", at, ir.SymbolText(f.Name), what, v.Type)
}

func unsized(vs []*ir.Value) *ir.Value {
	for _, v := range vs {
		for _, t := range leaves(v.Type) {
			if !t.IsStatic() {
				return v
			}
		}
	}
	return nil
}

// reachable is main and every function that it calls, each before its callees.
func reachable(m *ir.Module, main *ir.Func) ([]*ir.Func, error) {
	const entered, left = 1, 2
	state := make(map[*ir.Func]int)
	var order []*ir.Func
	var visit func(f *ir.Func) error
	visit = func(f *ir.Func) (err error) {
		state[f] = entered
		f.Body.Walk(func(op *ir.Op) {
			g := calleeOf(m, op)
			switch {
			case g == nil || err != nil || state[g] == left:
			case state[g] == entered:
				err = fmt.Errorf("%s calls itself", ir.SymbolText(g.Name))
			default:
				err = visit(g)
			}
		})
		state[f] = left
		order = append(order, f)
		return err
	}
	err := visit(main)
	for i, j := 0, len(order)-1; i < j; i, j = i+1, j-1 {
		order[i], order[j] = order[j], order[i]
	}
	return order, err
}

// calleeOf is the function that op calls, nil where it calls none that has a body.
func calleeOf(m *ir.Module, op *ir.Op) *ir.Func {
	if op.Kind != ir.Call {
		return nil
	}
	if f := m.Func(op.Sym("callee")); f != nil && f.Body != nil {
		return f
	}
	return nil
}

// leaves are the tensors that a value of type t consists of.
func leaves(t *ir.Type) []*ir.Type {
	switch {
	case t.IsTensor():
		return []*ir.Type{t}
	case t != nil && t.Kind == ir.TupleType:
		var out []*ir.Type
		for _, e := range t.Elems {
			out = append(out, leaves(e)...)
		}
		return out
	}
	return nil
}

// BytesOf is what a value of type t takes in memory.
func BytesOf(t *ir.Type) int {
	n := 0
	for _, leaf := range leaves(t) {
		n += leaf.Bytes()
	}
	return n
}

func bytesOfAll(vs []*ir.Value) int {
	n := 0
	for _, v := range vs {
		n += BytesOf(v.Type)
	}
	return n
}
