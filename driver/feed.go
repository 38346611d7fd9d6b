package driver

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"ppc/driver/binding"
	"ppc/driver/data"
	"ppc/internal/spell"
	"ppc/internal/tensorfile"
	"ppc/ir"
)

// A feed is where the batches of a training run come from: a file that has
// them on a leading axis, or a stream of tokens, or the arguments, which are the same in every step,
// or the seed, which makes up new ones.
//
// Batches have the types of the program that is run, also for a machine that
// computes in wider ones: [machine.Set] converts, so that every machine gets
// the same numbers.
type feed struct {
	args   *binding.Arguments
	inputs map[string]*binding.Port // of the program that is run, by name
	path   string                   // of the file; "" for none
	first  int                      // step of the run
	steps  int                      // of the run
	arrays map[string]*ir.Literal   // what of the file the run takes, by input
	tokens *data.Tokens             // the file as a stream of tokens; nil where it has batches
}

// newFeed reads the file, if one is named, and checks that it has what steps
// first to first+steps-1, counted from 0, take.
func newFeed(path string, args *binding.Arguments, params []*binding.Port, first, steps int) (*feed, error) {
	f := &feed{args: args, inputs: make(map[string]*binding.Port), path: path, first: first, steps: steps, arrays: make(map[string]*ir.Literal)}
	for _, p := range params {
		if p.Kind == "input" {
			f.inputs[p.Name] = p
		}
	}
	if path == "" {
		return f, nil
	}
	var err error
	if f.tokens, err = data.Open(path); err != nil {
		return nil, fileError(err)
	}
	if f.tokens != nil {
		return f, f.checkTokens(params)
	}
	file, err := tensorfile.Open(path)
	if err != nil {
		return nil, fileError(err)
	}
	defer file.Close()
	var errs []error
	for _, p := range params {
		if p.Kind == "input" && (file.Has(p.Name) || args.Keys(p) == nil) {
			errs = append(errs, f.read(file, p))
		}
	}
	return f, errors.Join(errs...)
}

// checkTokens holds the stream of tokens against the inputs.
func (f *feed) checkTokens(params []*binding.Port) error {
	for _, p := range params {
		if !f.streamed(p) {
			continue
		}
		if _, ok := data.Later(p.Name); !ok || !p.InFile.Elem.IsInt() || p.InFile.Rank() == 0 {
			return fmt.Errorf("%s: a stream of tokens has tokens and targets, integers with an axis for the sequence; %s, %s, is another input of the program: give it by --args", f.path, p.Name, p)
		}
		if err := f.tokens.Check(p.InFile.Shape[p.InFile.Rank()-1]); err != nil {
			return err
		}
	}
	return nil
}

// streamed reports whether input p comes from a stream of tokens.
func (f *feed) streamed(p *binding.Port) bool {
	_, known := data.Later(p.Name)
	return f.tokens != nil && p.Kind == "input" && (known || f.args.Keys(p) == nil)
}

// has reports whether the file gives input p.
func (f *feed) has(p *binding.Port) bool { return f.arrays[p.Name] != nil || f.streamed(p) }

// close closes the stream of tokens, where there is one.
func (f *feed) close() {
	if f.tokens != nil {
		f.tokens.Close()
	}
}

// read reads the batches of input p that the run takes, and only these.
func (f *feed) read(file *tensorfile.File, p *binding.Port) error {
	if !file.Has(p.Name) {
		hint := ""
		if near := spell.Nearest(p.Name, file.Names()); near != "" {
			hint = fmt.Sprintf("; did you mean %q, which is there?", near)
		}
		return fmt.Errorf("%s: there is no %q, an input %s of the program%s", f.path, p.Name, p, hint)
	}
	info, err := file.Info(p.Name)
	if err != nil {
		return err
	}
	have := ir.Tensor(binding.ElemOf(info.DType, p.InFile.Elem), info.Shape...)
	if have.Rank() != p.InFile.Rank()+1 || !slices.Equal(have.Shape[1:], p.InFile.Shape) {
		return fmt.Errorf("%s: %q is %s, want batches of %s on a leading axis", f.path, p.Name, binding.TypeText(have, nil), p)
	}
	if err := f.enough(p, have.Shape[0]); err != nil {
		return err
	}
	each := p.InFile.Bytes() * p.Batches
	if free := availableMemory(os.DirFS("/")); each > free/f.steps {
		return fmt.Errorf("%s: %d steps take %d batches of %q, %s each, %s of memory are available: take fewer --steps at a time", f.path,
			f.steps, f.steps*p.Batches, p.Name, sizeText(p.InFile.Bytes()), sizeText(free))
	}
	a, err := file.ReadRows(p.Name, f.first*p.Batches, (f.first+f.steps)*p.Batches)
	if err != nil {
		return err
	}
	l, err := binding.Convert(binding.LiteralFor(a, p.InFile.Elem), p.InFile.Elem)
	if err != nil {
		return fmt.Errorf("%s: %q: %w", f.path, p.Name, err)
	}
	f.arrays[p.Name] = l
	return nil
}

// enough compares the batches of input p that there are with those that the
// run takes.
func (f *feed) enough(p *binding.Port, have int) error {
	want := (f.first + f.steps) * p.Batches
	if have >= want {
		return nil
	}
	from, take := "", "take"
	if f.steps == 1 {
		take = "takes"
	}
	if f.first > 0 {
		from = fmt.Sprintf(" after the %d that %s took before", f.first*p.Batches, ir.Counted(f.first, "step"))
	}
	return fmt.Errorf("%s: %q has %s, %s of %d %s %d%s: want at least %d, or --steps %d", f.path, p.Name,
		ir.Counted(have, "batch"), ir.Counted(f.steps, "step"), p.Batches, take, f.steps*p.Batches, from, want, max(0, have/p.Batches-f.first))
}

// input is the global value of input p in a step.
func (f *feed) input(p *binding.Port, step int) (*ir.Literal, error) {
	if p.Batches == 1 {
		return f.batch(p, step)
	}
	all := &ir.Literal{Type: p.Global}
	for i := range p.Batches {
		l, err := f.batch(p, step*p.Batches+i)
		if err != nil {
			return nil, err
		}
		all.Data = append(all.Data, l.Expand()...)
	}
	return all, nil
}

// batch is batch n of input p, counted from 0.
func (f *feed) batch(p *binding.Port, n int) (*ir.Literal, error) {
	if l := f.arrays[p.Name]; l != nil {
		size := len(l.Data) / l.Type.Shape[0]
		n -= f.first * p.Batches
		return &ir.Literal{Type: p.InFile, Data: l.Data[n*size : (n+1)*size]}, nil
	}
	if f.streamed(p) {
		later, _ := data.Later(p.Name)
		random := func(name string, i int) uint64 { return binding.NewStream(f.args.Seed, name).Bits(i) }
		return f.tokens.Batch(n, p.InFile, later, p.Max, random)
	}
	if n == 0 || f.args.Keys(p) != nil {
		return f.args.FileValue(p)
	}
	return binding.Sample(p.InFile, p.Max, binding.NewStream(f.args.Seed, fmt.Sprintf("%s@%d", p.Name, n))), nil
}

// Fill sets what machine m takes anew in every step.
func (f *feed) fill(m *binding.Machine, step int) error {
	for i, p := range m.Params {
		var value *ir.Literal
		var err error
		switch p.Kind {
		case "input":
			value, err = f.input(f.inputs[p.Name], step)
		case "step":
			value = ir.Ints64(p.Global, step)
		default:
			continue
		}
		if err == nil {
			err = m.Set(i, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
