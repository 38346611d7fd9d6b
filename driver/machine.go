package driver

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"ppc/ir"
	"ppc/runtime/kernel"
)

// A machine is a program that is run again and again. What one run returns in
// place of a parameter is what the next one takes, device by device: state is
// never put together in between.
type machine struct {
	params, results []*port
	global          bool // one process holds global values
	args            [][]*ir.Literal
	adopted         [][]bool        // of args: it is a result of an earlier run
	out             [][]*ir.Literal // of the last run
	exec            func(ctx context.Context, args [][]*ir.Literal) ([][]*ir.Literal, error)
}

// newMachine is a machine for program m on so many devices, or, with one for
// the program of all devices together, on global values.
func newMachine(m *ir.Module, named bool) *machine {
	mc := &machine{global: !m.Form.Has(ir.Local)}
	mc.params, mc.results = ports(m, named)
	devices := 1
	if !mc.global {
		devices = numDevices(m)
	}
	mc.args, mc.adopted = make([][]*ir.Literal, devices), make([][]bool, devices)
	for d := range mc.args {
		mc.args[d], mc.adopted[d] = make([]*ir.Literal, len(mc.params)), make([]bool, len(mc.params))
	}
	return mc
}

// set makes a global value parameter i of the next run.
func (m *machine) set(i int, value *ir.Literal) error {
	p := m.params[i]
	value, err := convert(value, p.global.Elem)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	if m.global {
		m.args[0][i], m.adopted[0][i] = value, false
		return nil
	}
	for d, part := range p.shards(value) {
		m.args[d][i], m.adopted[d][i] = part, false
	}
	return nil
}

// bind sets every parameter from a.
func (m *machine) bind(a *arguments) error {
	for i, p := range m.params {
		full, err := a.fileValue(p)
		if err != nil {
			return err
		}
		if err := m.set(i, p.value(full)); err != nil {
			return err
		}
	}
	return nil
}

// run executes the program once.
func (m *machine) run(ctx context.Context) error {
	out, err := m.exec(ctx, m.args)
	if err != nil {
		return err
	}
	m.adopt(out)
	return nil
}

// adopt takes the results of a run: those that stand in place of a parameter
// are arguments of the next one. It returns what was a result of an earlier run
// and is an argument no more, nor shares memory with one or with a result.
func (m *machine) adopt(out [][]*ir.Literal) []*ir.Literal {
	m.out = out
	var old []*ir.Literal
	for i, r := range m.results {
		if r.alias < 0 {
			continue
		}
		for d := range out {
			if m.adopted[d][r.alias] {
				old = append(old, m.args[d][r.alias])
			}
			m.args[d][r.alias], m.adopted[d][r.alias] = out[d][i], true
		}
	}
	return unshared(old, append(slices.Clone(m.args), out...))
}

// unshared are those of old, each once, that share no memory with what is used.
func unshared(old []*ir.Literal, used [][]*ir.Literal) []*ir.Literal {
	var spans []kernel.Mem
	for _, list := range used {
		for _, l := range list {
			if l != nil && len(l.Data) > 0 {
				spans = append(spans, l.Data)
			}
		}
	}
	begin := func(m kernel.Mem) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m))) }
	seen := make(map[uintptr]bool)
	var free []*ir.Literal
	for _, l := range old {
		if len(l.Data) == 0 || seen[begin(l.Data)] {
			continue
		}
		seen[begin(l.Data)] = true
		if !slices.ContainsFunc(spans, func(s kernel.Mem) bool { return kernel.Overlap(s, l.Data) }) {
			free = append(free, l)
		}
	}
	return free
}

// value joins result i of the last run. Its elements may be wider than the
// program says: those of the reference are.
func (m *machine) value(i int) *ir.Literal {
	p := m.results[i]
	if m.global {
		return m.out[0][i]
	}
	parts := make([]*ir.Literal, len(m.out))
	for d := range parts {
		parts[d] = m.out[d][i]
	}
	wide := *p
	wide.global = p.global.WithElem(parts[0].Type.Elem)
	return wide.join(parts)
}

// A named is a result as files have it.
type named struct {
	name, kind string
	state      bool // replaces a parameter in the next run
	layers     int  // has a part for each layer on its first axis; 0 for one part
	literal    *ir.Literal
}

// values are the results of the last run, those that are rows of one value put
// together.
func (m *machine) values() []*named {
	var out []*named
	byName := make(map[string]*named)
	for i, p := range m.results {
		l := m.value(i)
		if p.rows == nil {
			out = append(out, &named{p.name, p.kind, p.alias >= 0, p.layers(), l})
			continue
		}
		n := byName[p.name]
		if n == nil {
			t := p.inFile.WithElem(l.Type.Elem)
			n = &named{p.name, p.kind, p.alias >= 0, p.layers(), &ir.Literal{Type: t, Data: make([]byte, t.Bytes())}}
			byName[p.name] = n
			out = append(out, n)
		}
		row := n.literal.Type.Bytes() / n.literal.Type.Shape[0]
		copy(n.literal.Data[p.rows[0]*row:], l.Expand())
	}
	return out
}

// scalars are the results of the last run that are single numbers and no state.
func (m *machine) scalars() []*named {
	var out []*named
	for i, p := range m.results {
		if p.alias < 0 && p.global.Rank() == 0 {
			out = append(out, &named{p.name, p.kind, false, 0, m.value(i)})
		}
	}
	return out
}
