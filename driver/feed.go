package driver

import (
	"errors"
	"fmt"
	"slices"

	"ppc/internal/spell"
	"ppc/internal/tensorfile"
	"ppc/ir"
)

// A feed is where the batches of a training run come from: a file that has
// them on a leading axis, or the arguments, which are the same in every step,
// or the seed, which makes up new ones.
type feed struct {
	args   *arguments
	path   string                 // of the file; "" for none
	arrays map[string]*ir.Literal // of the file, by input
}

// newFeed reads the file, if one is named, and checks that it has what steps
// first to first+steps-1, counted from 0, take.
func newFeed(path string, args *arguments, params []*port, first, steps int) (*feed, error) {
	f := &feed{args: args, path: path, arrays: make(map[string]*ir.Literal)}
	if path == "" {
		return f, nil
	}
	file, err := tensorfile.Open(path)
	if err != nil {
		return nil, fileError(err)
	}
	defer file.Close()
	var errs []error
	for _, p := range params {
		if p.kind == "input" && (file.Has(p.name) || args.keys(p) == nil) {
			errs = append(errs, f.read(file, p))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f, f.enough(params, first, steps)
}

// read reads the batches of input p.
func (f *feed) read(file *tensorfile.File, p *port) error {
	if !file.Has(p.name) {
		hint := ""
		if near := spell.Nearest(p.name, file.Names()); near != "" {
			hint = fmt.Sprintf("; did you mean %q, which is there?", near)
		}
		return fmt.Errorf("%s: there is no %q, an input %s of the program%s", f.path, p.name, p, hint)
	}
	info, err := file.Info(p.name)
	if err != nil {
		return err
	}
	have := ir.Tensor(ir.DTypeByName(info.DType), info.Shape...)
	if have.Rank() != p.whole.Rank()+1 || !slices.Equal(have.Shape[1:], p.whole.Shape) {
		return fmt.Errorf("%s: %q is %s, want batches of %s on a leading axis", f.path, p.name, typeText(have, nil), p)
	}
	a, err := file.Read(p.name)
	if err != nil {
		return err
	}
	l, err := convert(literal(a), p.whole.Elem)
	if err != nil {
		return fmt.Errorf("%s: %q: %w", f.path, p.name, err)
	}
	f.arrays[p.name] = l
	return nil
}

// enough compares the batches that there are with those that are taken.
func (f *feed) enough(params []*port, first, steps int) error {
	var errs []error
	for _, p := range params {
		l := f.arrays[p.name]
		if l == nil || p.kind != "input" {
			continue
		}
		have, each := l.Type.Shape[0], p.batches
		if want := (first + steps) * each; have < want {
			from := ""
			if first > 0 {
				from = fmt.Sprintf(" after the %d that %d steps took before", first*each, first)
			}
			errs = append(errs, fmt.Errorf("%s: %q has %d batches, %d steps of %d take %d%s: want at least %d, or --steps %d", f.path, p.name,
				have, steps, each, steps*each, from, want, max(0, have/each-first)))
		}
	}
	return errors.Join(errs...)
}

// input is the global value of input p in a step.
func (f *feed) input(p *port, step int) (*ir.Literal, error) {
	if p.batches == 1 {
		return f.batch(p, step)
	}
	all := &ir.Literal{Type: p.global}
	for i := range p.batches {
		l, err := f.batch(p, step*p.batches+i)
		if err != nil {
			return nil, err
		}
		all.Data = append(all.Data, l.Expand()...)
	}
	return all, nil
}

// batch is batch n of input p, counted from 0.
func (f *feed) batch(p *port, n int) (*ir.Literal, error) {
	if l := f.arrays[p.name]; l != nil {
		size := len(l.Data) / l.Type.Shape[0]
		return &ir.Literal{Type: p.whole, Data: l.Data[n*size : (n+1)*size]}, nil
	}
	if n == 0 || f.args.keys(p) != nil {
		return f.args.whole(p)
	}
	return sample(p.whole, p.max, newStream(f.args.seed, fmt.Sprintf("%s@%d", p.name, n))), nil
}

// fill sets what machine m takes anew in every step.
func (f *feed) fill(m *machine, step int) error {
	for i, p := range m.params {
		var value *ir.Literal
		var err error
		switch p.kind {
		case "input":
			value, err = f.input(p, step)
		case "step":
			value = ir.Ints64(p.global, step)
		default:
			continue
		}
		if err == nil {
			err = m.set(i, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
