package binding

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"unsafe"

	"ppc/ir"
)

// A Machine is a program that is run again and again. What one run returns in
// place of a parameter is what the next one takes, device by device: state is
// never put together in between.
type Machine struct {
	Params, Results []*Port
	Global          bool // one process holds global values
	Args            [][]*ir.Literal
	adopted         [][]bool        // of args: it is a result of an earlier run
	Out             [][]*ir.Literal // of the last run
	Exec            func(ctx context.Context, args [][]*ir.Literal) ([][]*ir.Literal, error)
}

// NewMachine is a machine for program m on that many devices, or, with one for
// the program of all devices together, on global values.
func NewMachine(m *ir.Module, by Naming) *Machine {
	mc := &Machine{Global: !m.Form.Has(ir.Local)}
	mc.Params, mc.Results = Ports(m, by)
	devices := 1
	if !mc.Global {
		devices = NumDevices(m)
	}
	mc.Args, mc.adopted = make([][]*ir.Literal, devices), make([][]bool, devices)
	for d := range mc.Args {
		mc.Args[d], mc.adopted[d] = make([]*ir.Literal, len(mc.Params)), make([]bool, len(mc.Params))
	}
	return mc
}

// Set makes a global value parameter i of the next run.
func (m *Machine) Set(i int, value *ir.Literal) error {
	p := m.Params[i]
	value, err := Convert(value, p.Global.Elem)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if m.Global {
		m.Args[0][i], m.adopted[0][i] = value, false
		return nil
	}
	for d, part := range p.Shards(value) {
		m.Args[d][i], m.adopted[d][i] = part, false
	}
	return nil
}

// Bind sets every parameter from a.
func (m *Machine) Bind(a *Arguments) error {
	for i, p := range m.Params {
		full, err := a.FileValue(p)
		if err != nil {
			return err
		}
		if err := m.Set(i, p.Value(full)); err != nil {
			return err
		}
	}
	return nil
}

// Run executes the program once.
func (m *Machine) Run(ctx context.Context) error {
	out, err := m.Exec(ctx, m.Args)
	if err != nil {
		return err
	}
	m.Adopt(out)
	return nil
}

// Adopt takes the results of a run: those that stand in place of a parameter
// are arguments of the next one. It returns what was a result of an earlier run
// and is an argument no more, nor shares memory with one or with a result.
func (m *Machine) Adopt(out [][]*ir.Literal) []*ir.Literal {
	m.Out = out
	var old []*ir.Literal
	for i, r := range m.Results {
		if r.Alias < 0 {
			continue
		}
		for d := range out {
			if m.adopted[d][r.Alias] {
				old = append(old, m.Args[d][r.Alias])
			}
			m.Args[d][r.Alias], m.adopted[d][r.Alias] = out[d][i], true
		}
	}
	return unshared(old, append(slices.Clone(m.Args), out...))
}

// unshared are those of old, each once, that share no memory with what is used.
func unshared(old []*ir.Literal, used [][]*ir.Literal) []*ir.Literal {
	type span struct{ begin, end uintptr }
	spanOf := func(l *ir.Literal) span {
		begin := uintptr(unsafe.Pointer(unsafe.SliceData(l.Data)))
		return span{begin, begin + uintptr(len(l.Data))}
	}
	byBegin := func(a, b span) int { return cmp.Compare(a.begin, b.begin) }
	var spans []span
	for _, list := range used {
		for _, l := range list {
			if l != nil && len(l.Data) > 0 {
				spans = append(spans, spanOf(l))
			}
		}
	}
	slices.SortFunc(spans, byBegin)
	for i := 1; i < len(spans); i++ { // ends at the largest end so far
		spans[i].end = max(spans[i].end, spans[i-1].end)
	}
	seen := make(map[uintptr]bool)
	var free []*ir.Literal
	for _, l := range old {
		s := spanOf(l)
		if len(l.Data) == 0 || seen[s.begin] {
			continue
		}
		seen[s.begin] = true
		after, _ := slices.BinarySearchFunc(spans, span{begin: s.end}, byBegin) // the spans before begin before s ends
		if after == 0 || spans[after-1].end <= s.begin {
			free = append(free, l)
		}
	}
	return free
}

// Value joins result i of the last run. Its elements may be wider than the
// program says: those of the reference are.
func (m *Machine) Value(i int) *ir.Literal {
	p := m.Results[i]
	if m.Global {
		return m.Out[0][i]
	}
	parts := make([]*ir.Literal, len(m.Out))
	for d := range parts {
		parts[d] = m.Out[d][i]
	}
	wide := *p
	wide.Global = p.Global.WithElem(parts[0].Type.Elem)
	return wide.Join(parts)
}

// A Named is a result as files have it.
type Named struct {
	Name, Kind string
	State      bool // replaces a parameter in the next run
	Layers     int  // has a part for each layer on its first axis; 0 for one part
	Literal    *ir.Literal
}

// Values are the results of the last run, those that are rows of one value put
// together.
func (m *Machine) Values() []*Named {
	var out []*Named
	byName := make(map[string]*Named)
	for i, p := range m.Results {
		l := m.Value(i)
		if p.Rows == nil {
			out = append(out, &Named{p.Name, p.Kind, p.Alias >= 0, p.layers(), l})
			continue
		}
		n := byName[p.Name]
		if n == nil {
			t := p.InFile.WithElem(l.Type.Elem)
			n = &Named{p.Name, p.Kind, p.Alias >= 0, p.layers(), &ir.Literal{Type: t, Data: make([]byte, t.Bytes())}}
			byName[p.Name] = n
			out = append(out, n)
		}
		row := n.Literal.Type.Bytes() / n.Literal.Type.Shape[0]
		copy(n.Literal.Data[p.Rows[0]*row:p.Rows[1]*row], l.Expand())
	}
	return out
}

// Scalars are the results of the last run that are single numbers and no state.
func (m *Machine) Scalars() []*Named {
	var out []*Named
	for i, p := range m.Results {
		if p.Alias < 0 && p.Global.Rank() == 0 {
			out = append(out, &Named{p.Name, p.Kind, false, 0, m.Value(i)})
		}
	}
	return out
}
