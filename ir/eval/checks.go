package eval

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"ppc/ir"
)

// WithChecks is o for programs of StableHLO's own test suites: the ops check.*
// compare their operands, and are errors where these differ;
// interpreter.run_parallel runs functions as the processes of a grid; and
// interpreter.probe keeps a value for check.expect_serialized_eq.
func (o Options) WithChecks() Options {
	probes := &probes{values: make(map[string][]*tensor)}
	o.foreign = maps.Clone(checks)
	o.foreign["interpreter.probe"] = probes.keep
	o.foreign["check.expect_serialized_eq"] = probes.expect
	o.foreign["interpreter.print"] = func(*exec) ([]*tensor, error) { return nil, nil }
	return o
}

// WithProbes is o, which has checks, with the values that probes elsewhere have seen,
// by the id of the probe, one after the other.
func (o Options) WithProbes(seen map[string][]*ir.Literal) Options {
	probes := &probes{values: make(map[string][]*tensor)}
	for id, ls := range seen {
		for _, l := range ls {
			probes.values[id] = append(probes.values[id], fromLiteral(l, o.elem(l.Type.Elem)))
		}
	}
	o.foreign = maps.Clone(o.foreign)
	o.foreign["interpreter.probe"] = probes.keep
	o.foreign["check.expect_serialized_eq"] = probes.expect
	return o
}

// Processes are functions of a module to be run as the processes of a grid.
type Processes struct {
	Module *ir.Module
	Rows   [][]*ir.Func    // of replicas
	Args   [][]*ir.Literal // of each process in the order of the rows; nil for a token
	Infeed [][]*ir.Literal // what the host hands in, one after the other
}

// A Grid runs processes and returns the results of each; nil for a token.
type Grid func(ps Processes) ([][]*ir.Literal, error)

// WithGrid is o, which has checks, with grid for interpreter.run_parallel.
func (o Options) WithGrid(grid Grid) Options {
	o.foreign = maps.Clone(o.foreign)
	o.foreign["interpreter.run_parallel"] = func(e *exec) ([]*tensor, error) {
		rows, in, err := e.processes()
		if err != nil {
			return nil, err
		}
		ps := Processes{Module: e.p.w.m, Rows: rows, Args: make([][]*ir.Literal, len(in))}
		for d, xs := range in {
			ps.Args[d] = literals(xs)
		}
		feed, err := e.infeed()
		for _, xs := range feed {
			ps.Infeed = append(ps.Infeed, literals(xs))
		}
		if err != nil {
			return nil, err
		}
		results, err := grid(ps)
		var out []*tensor
		for _, ls := range results {
			for _, l := range ls {
				if l == nil {
					out = append(out, new(tensor))
					continue
				}
				out = append(out, fromLiteral(l, e.p.w.opts.elem(l.Type.Elem)))
			}
		}
		return out, err
	}
	return o
}

// literals are the values xs; nil for a token.
func literals(xs []*tensor) []*ir.Literal {
	ls := make([]*ir.Literal, len(xs))
	for i, x := range xs {
		if x.elem != ir.InvalidDType {
			ls[i] = x.literal()
		}
	}
	return ls
}

// infeed are the values that the functions which interpreter.run_parallel names for
// that return.
func (e *exec) infeed() (values [][]*tensor, err error) {
	feed, _ := e.op.Attrs.Get("infeed").(ir.Array)
	for _, name := range feed {
		s, _ := name.(ir.Sym)
		xs, err := e.p.call(e.p.w.m.Func(string(s)), nil)
		if err != nil {
			return nil, err
		}
		values = append(values, xs)
	}
	return values, nil
}

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

// probes are the values that interpreter.probe has seen, by the id of the probe,
// one after the other.
type probes struct {
	mu     sync.Mutex
	values map[string][]*tensor
}

func (p *probes) keep(e *exec) ([]*tensor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := e.op.Str("probe_id")
	p.values[id] = append(p.values[id], e.in[0])
	return e.in[:1], nil
}

func (p *probes) expect(e *exec) ([]*tensor, error) {
	p.mu.Lock()
	seen := p.values[e.op.Str("probe_id")]
	p.mu.Unlock()
	i := e.op.Int("iter")
	if i < 0 || i >= len(seen) {
		return nil, fmt.Errorf("probe %q has seen %d values, there is no number %d", e.op.Str("probe_id"), len(seen), i)
	}
	return nil, e.compare(e.in[0], seen[i], exact)
}

// A likeness compares two numbers, elements of type t or their real or imaginary
// parts.
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

// ulps allows for a distance in units in the last place, at least one of two
// bounds and at most the other. What is not finite is as far as can be from
// everything else.
func (e *exec) ulps() likeness {
	low, high := uint64(e.op.Int("min_ulp_difference")), uint64(3)
	if e.op.Attrs.Has("max_ulp_difference") {
		high = uint64(e.op.Int("max_ulp_difference"))
	}
	finite := func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
	return func(t ir.DType, a, b float64) bool {
		if exact(t, a, b) {
			return low == 0
		}
		d := uint64(math.MaxUint64)
		if finite(a) && finite(b) {
			x, y := ordinal(t, a), ordinal(t, b)
			d = uint64(max(x, y)) - uint64(min(x, y))
		}
		return d >= low && d <= high
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

// expect fails unless the operand is like the other operand or the attribute value.
func (e *exec) expect(alike likeness) error {
	got := e.in[0]
	var want *tensor
	if l := e.op.Literal("value"); l != nil {
		want = fromLiteral(l, e.p.w.opts.elem(l.Type.Elem))
	} else if len(e.in) == 2 {
		want = e.in[1]
	}
	return e.compare(got, want, alike)
}

// compare is an error where got is not like want.
func (e *exec) compare(got, want *tensor, alike likeness) error {
	if want == nil || got.elem != want.elem || !slices.Equal(got.shape, want.shape) {
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
	rows, in, err := e.processes()
	if err != nil {
		return nil, err
	}
	fns := slices.Concat(rows...)
	w := newWorld(e.p.w.m, e.p.w.opts, len(rows), len(fns))
	defer w.close()
	if w.infeed, err = e.infeed(); err != nil {
		return nil, err
	}
	results, err := w.start(fns, in)
	var out []*tensor
	for _, xs := range results {
		out = append(out, xs...)
	}
	return out, err
}

// processes are the functions that interpreter.run_parallel names, by row, and
// the operands of each.
func (e *exec) processes() (rows [][]*ir.Func, in [][]*tensor, err error) {
	grid, _ := e.op.Attrs.Get("programs").(ir.Array)
	rest := e.in
	for _, r := range grid {
		names, _ := r.(ir.Array)
		var row []*ir.Func
		for _, s := range names {
			name, _ := s.(ir.Sym)
			f := e.p.w.m.Func(string(name))
			if f == nil {
				return nil, nil, fmt.Errorf("no function %s", s)
			}
			n := len(f.Params())
			if n > len(rest) {
				return nil, nil, errors.New("too few operands")
			}
			row, in, rest = append(row, f), append(in, rest[:n]), rest[n:]
		}
		if len(rows) > 0 && len(row) != len(rows[0]) {
			return nil, nil, errors.New("rows of different lengths")
		}
		rows = append(rows, row)
	}
	if len(rest) > 0 {
		return nil, nil, errors.New("too many operands")
	}
	return rows, in, nil
}
