package eval

import (
	"errors"
	"fmt"
	"math"

	"ppc/ir"
)

// WithChecks is o for programs of StableHLO's own test suites: the ops check.*
// compare their operands, and are errors where these differ;
// interpreter.run_parallel runs functions as the processes of a grid.
func (o Options) WithChecks() Options {
	o.foreign = checks
	return o
}

// Checks reports whether name is an op that [Options.WithChecks] adds.
func Checks(name string) bool { return checks[name] != nil }

// The ops of StableHLO's test dialects, which conformance programs compare
// their results with. As custom calls they have other defaults.
var checks = map[string]func(*exec) ([]*tensor, error){
	"check.expect_eq":              func(e *exec) ([]*tensor, error) { return nil, e.expect(exact) },
	"check.expect_eq_const":        func(e *exec) ([]*tensor, error) { return nil, e.expect(exact) },
	"check.expect_almost_eq":       func(e *exec) ([]*tensor, error) { return nil, e.expect(e.almost()) },
	"check.expect_almost_eq_const": func(e *exec) ([]*tensor, error) { return nil, e.expect(e.almost()) },
	"check.expect_close":           func(e *exec) ([]*tensor, error) { return nil, e.expect(e.ulps()) },
	"interpreter.run_parallel":     runParallel,
}

// A likeness compares two numbers, elements or parts of elements of type t.
type likeness func(t ir.DType, a, b float64) bool

func exact(_ ir.DType, a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func (e *exec) almost() likeness {
	tolerance := 1e-4
	if e.op.Kind == ir.CustomCall {
		tolerance = 1e-3
	}
	if a, ok := e.op.Attrs.Get("tolerance").(ir.Float); ok {
		tolerance = a.Value
	}
	return func(t ir.DType, a, b float64) bool { return exact(t, a, b) || math.Abs(a-b) <= tolerance }
}

func (e *exec) ulps() likeness {
	low, high := e.op.Int("min_ulp_difference"), 3
	if e.op.Attrs.Has("max_ulp_difference") {
		high = e.op.Int("max_ulp_difference")
	}
	return func(t ir.DType, a, b float64) bool {
		if exact(t, a, b) {
			return low == 0
		}
		d := math.Abs(float64(ordinal(t, a) - ordinal(t, b)))
		return d >= float64(low) && d <= float64(high)
	}
}

// ordinal numbers the values of t in order.
func ordinal(t ir.DType, x float64) int64 {
	b := make([]byte, 8)
	t.PutFloat(b, x)
	var bits int64
	for k := t.Size() - 1; k >= 0; k-- {
		bits = bits<<8 | int64(b[k])
	}
	if sign := int64(1) << (t.Bits() - 1); t.Bits() < 64 && bits&sign != 0 {
		return -(bits &^ sign)
	} else if t.Bits() == 64 && bits < 0 {
		return -(bits & math.MaxInt64)
	}
	return bits
}

// expect compares the operand with the other operand or the attribute value.
func (e *exec) expect(alike likeness) error {
	got := e.in[0]
	var want *tensor
	if l := e.op.Literal("value"); l != nil {
		want = fromLiteral(l, l.Type.Elem)
	} else if len(e.in) == 2 {
		want = e.in[1]
	}
	if want == nil || got.elem != want.elem || got.len() != want.len() {
		return fmt.Errorf("%s cannot be compared", got)
	}
	for k := range got.len() {
		switch {
		case got.i != nil && got.i[k] != want.i[k]:
			return fmt.Errorf("element %d is %d, want %d", k, got.i[k], want.i[k])
		case got.f != nil && !alike(got.elem, got.f[k], want.f[k]):
			return fmt.Errorf("element %d is %v, want %v", k, got.f[k], want.f[k])
		case got.c != nil && (!alike(got.elem.Part(), real(got.c[k]), real(want.c[k])) || !alike(got.elem.Part(), imag(got.c[k]), imag(want.c[k]))):
			return fmt.Errorf("element %d is %v, want %v", k, got.c[k], want.c[k])
		}
	}
	return nil
}

// runParallel runs a grid of functions, rows of replicas: operands and results
// are those of the processes one after the other.
func runParallel(e *exec) ([]*tensor, error) {
	rows, _ := e.op.Attrs.Get("programs").(ir.Array)
	var fns []*ir.Func
	var in [][]*tensor
	at := 0
	for _, r := range rows {
		row, _ := r.(ir.Array)
		for _, s := range row {
			name, _ := s.(ir.Sym)
			f := e.p.w.m.Func(string(name))
			if f == nil {
				return nil, fmt.Errorf("no function %s", s)
			}
			n := len(f.Params())
			if at+n > len(e.in) {
				return nil, errors.New("too few operands")
			}
			fns, in = append(fns, f), append(in, e.in[at:at+n])
			at += n
		}
	}
	w := newWorld(e.p.w.m, e.p.w.opts, len(rows), len(fns))
	defer w.close()
	results, err := w.start(fns, in)
	var out []*tensor
	for _, xs := range results {
		out = append(out, xs...)
	}
	return out, err
}
