package binding

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ppc/internal/arrayname"
	"ppc/internal/diag"
	"ppc/internal/spell"
	"ppc/internal/tensorfile"
	"ppc/ir"
)

// An Arguments is where the values of a program's parameters come from: a
// file, and, for what that does not have, initialisers and the seed.
type Arguments struct {
	File   *tensorfile.File // nil without one
	Seed   uint64
	values map[string]*ir.Literal // by name, as files hold them
}

// Open opens the file, if one is named, and holds its names, types and
// shapes against the parameters; all that does not fit is reported together.
func Open(path string, seed uint64, params []*Port) (*Arguments, error) {
	a := &Arguments{Seed: seed, values: make(map[string]*ir.Literal)}
	if path == "" {
		return a, nil
	}
	var err error
	if a.File, err = tensorfile.Open(path); err != nil {
		return nil, err
	}
	if err := a.check(params); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func (a *Arguments) Close() {
	if a.File != nil {
		a.File.Close()
	}
}

// Keys are the names of the arrays of the file that hold p: one, or one per
// layer, or per index of another axis; nil where the file has none of them.
func (a *Arguments) Keys(p *Port) []string {
	keys, _ := a.keysOf(p)
	return keys
}

// keysOf is keys, and how many of the first axes of p have an array for each index.
func (a *Arguments) keysOf(p *Port) (found []string, apart int) {
	if a.File == nil {
		return nil, 0
	}
	names := []string{p.File, p.Name}
	if p.Kind == "param" {
		names = append(names, "param."+p.Name) // as training writes it
	}
	for _, name := range names {
		keys, apart := p.Keys(name)
		if slices.ContainsFunc(keys, a.File.Has) {
			return keys, apart
		}
	}
	return nil, 0
}

// Keys are the arrays under a name, and for how many of the first axes of p there
// is one for each index.
func (p *Port) Keys(name string) (keys []string, apart int) {
	if name == "" {
		return nil, 0
	}
	n, err := arrayname.Parse(name)
	if err != nil || len(n.Vars) > p.InFile.Rank() { // a program that was not checked, with braces that mean nothing
		return []string{name}, 0
	}
	return n.Numbered("layer", p.numbers).Keys(p.InFile.Shape[:len(n.Vars)]), len(n.Vars)
}

// FileName is the name under which a file is expected to hold p.
func (p *Port) FileName() string {
	if p.File != "" {
		return p.File
	}
	return p.Name
}

// check reports what of the file does not fit the parameters, by its headers
// alone. A file that has one parameter of the model must have them all: what
// is left out would silently be made up; the same goes for the optimizer's
// state. What it has no use for is let be, unless it looks like a misspelling
// of what is missing, or is state of another optimizer or model.
func (a *Arguments) check(params []*Port) error {
	used, has, found := make(map[string]bool), make(map[string]bool), false
	for _, p := range params {
		keys := a.Keys(p)
		found = found || keys != nil
		has[p.Kind] = has[p.Kind] || keys != nil
		for _, k := range keys {
			used[k] = true
		}
	}
	free := slices.DeleteFunc(a.File.Names(), func(name string) bool { return used[name] })
	var errs []error
	seen := make(map[string]bool)
	for _, p := range params {
		if seen[p.Name] {
			continue
		}
		seen[p.Name] = true
		if keys, apart := a.keysOf(p); keys != nil {
			errs = append(errs, a.checkArrays(p, keys, apart))
		} else if near := spell.Nearest(p.FileName(), free); near != "" && p.Kind != "state" && p.Kind != "step" || p.Kind != "input" && (has[p.Kind] || p.Kind == "param" && has["state"]) {
			errs = append(errs, a.missing(p, p.FileName(), near))
		}
	}
	errs = append(errs, a.checkState(params, free))
	if !found && errors.Join(errs...) == nil && len(params) > 0 {
		return fmt.Errorf("%s holds none of the program's arguments: it has %s; the program takes %s",
			a.File.Path, Few(a.File.Names()), Few(names(params)))
	}
	return errors.Join(errs...)
}

// checkState refuses the state of another optimizer: what of the free arrays
// is state that the program, which has some, does not take.
func (a *Arguments) checkState(params []*Port, free []string) error {
	var own []string
	for _, p := range params {
		if p.Kind == "state" && !slices.Contains(own, p.Name+" "+p.String()) {
			own = append(own, p.Name+" "+p.String())
		}
	}
	if len(own) == 0 {
		return nil
	}
	var other []string
	for _, name := range free {
		if info, err := a.File.Info(name); err == nil && strings.HasPrefix(name, StatePrefix) {
			other = append(other, name+" "+TypeText(ir.Tensor(ir.DTypeByName(info.DType), info.Shape...), nil))
		}
	}
	if len(other) == 0 {
		return nil
	}
	return fmt.Errorf("%s has the state of another optimizer or model: %s; the program takes %s", a.File.Path, Few(other), Few(own))
}

// StatePrefix begins the names of an optimizer's state.
const StatePrefix = "opt."

func (a *Arguments) missing(p *Port, key, near string) error {
	what := "an argument"
	if p.Kind != "" {
		what = map[string]string{"input": "an input", "param": "a parameter", "state": "a state of the optimizer", "step": "the number of a step"}[p.Kind]
	}
	hint := ""
	if near != "" {
		hint = fmt.Sprintf("; did you mean %q, which is there?", near)
	}
	return fmt.Errorf("%s: there is no %q, %s %s of the program%s", a.File.Path, key, what, p, hint)
}

// checkArrays holds type and shape of the arrays against p.
func (a *Arguments) checkArrays(p *Port, keys []string, apart int) error {
	want := p.InFile.WithShape(p.InFile.Shape[apart:]...)
	axes := p.Axes[min(apart, len(p.Axes)):]
	var errs []error
	for _, key := range keys {
		if !a.File.Has(key) {
			errs = append(errs, a.missing(p, key, ""))
			continue
		}
		info, err := a.File.Info(key)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		have := ir.Tensor(ElemOf(info.DType, want.Elem), info.Shape...)
		if have.Elem == ir.InvalidDType {
			errs = append(errs, fmt.Errorf("%s: %q has elements of NumPy's type %s, of which it does not say what they are, the program takes %s", a.File.Path, key, info.DType, want.Elem))
		} else if !slices.Equal(have.Shape, want.Shape) {
			errs = append(errs, fmt.Errorf("%s: %q is %s, the program takes %s%s", a.File.Path, key, TypeText(have, nil), TypeText(want, axes), p.cure(have)))
		} else if err := a.checkElem(key, have.Elem, want.Elem); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// checkElem finds out whether the types allow a conversion at all.
func (a *Arguments) checkElem(key string, from, to ir.DType) error {
	if from.IsInt() && to.IsInt() {
		return nil // whether the numbers fit shows when they are read
	}
	_, err := Convert(&ir.Literal{Type: ir.Tensor(from, 0)}, to)
	if err != nil {
		return fmt.Errorf("%s: %q is %s, the program takes %s: %w", a.File.Path, key, from, to, err)
	}
	return nil
}

// cure says what may be meant by an array of the wrong shape.
func (p *Port) cure(have *ir.Type) string {
	if p.stacked && slices.Equal(have.Shape, p.local.Shape) {
		return fmt.Sprintf(": per-device values are stacked on a first axis of %d devices", p.devices)
	}
	if len(p.Axes) > 0 && p.Axes[0] == "layers" && have.Rank() == p.InFile.Rank()-1 {
		return fmt.Sprintf(": the %d layers are stacked on the first axis", p.InFile.Shape[0])
	}
	if have.NumElements() == p.InFile.NumElements() {
		return ": the elements are as many, in another shape"
	}
	return ""
}

// Unused returns the arrays of the file that no parameter takes.
func (a *Arguments) Unused(params []*Port) []string {
	if a.File == nil {
		return nil
	}
	used := make(map[string]bool)
	for _, p := range params {
		for _, k := range a.Keys(p) {
			used[k] = true
		}
	}
	return slices.DeleteFunc(a.File.Names(), func(name string) bool { return used[name] || strings.HasPrefix(name, StatePrefix) })
}

// MadeUp returns the names of the parameters that the file does not have.
func (a *Arguments) MadeUp(params []*Port) []string {
	var out []string
	seen := make(map[string]bool)
	for _, p := range params {
		if a.Keys(p) == nil && p.Kind != "state" && p.Kind != "step" && !seen[p.Name] {
			seen[p.Name] = true
			out = append(out, p.Name)
		}
	}
	return out
}

// FileValue returns the value of p as a file holds it, of p's element type. Values
// are cached, since a program may take one value as several parameters.
func (a *Arguments) FileValue(p *Port) (*ir.Literal, error) {
	if l := a.values[p.Name]; l != nil {
		return l, nil
	}
	l, err := a.load(p)
	if err != nil {
		return nil, err
	}
	a.values[p.Name] = l
	return l, nil
}

func (a *Arguments) load(p *Port) (*ir.Literal, error) {
	if keys := a.Keys(p); keys != nil {
		return a.read(p, keys)
	}
	if p.origin != nil {
		l, err := a.FileValue(p.origin)
		if err != nil {
			return nil, err
		}
		return p.origin.Value(l), nil
	}
	if p.Kind == "step" {
		return ir.SplatOf(p.InFile, 0), nil
	}
	s := NewStream(a.Seed, p.Name)
	if p.Init != "" {
		l, err := Initial(p.InFile, p.Init, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		return l, nil
	}
	return Sample(p.InFile, p.Max, s), nil
}

// read reads p from its array, or from those for each index of its first axes.
func (a *Arguments) read(p *Port, keys []string) (*ir.Literal, error) {
	full := &ir.Literal{Type: p.InFile}
	for _, key := range keys {
		arr, err := a.File.Read(key)
		if err != nil {
			return nil, err
		}
		l, err := Convert(LiteralFor(arr, p.InFile.Elem), p.InFile.Elem)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", a.File.Path, key, err)
		}
		if len(keys) == 1 {
			full.Data = l.Data
			break
		}
		full.Data = append(full.Data, l.Data...)
	}
	return full, nil
}

func names(ps []*Port) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.FileName()
	}
	return out
}

// Few lists names, the first dozen of them, and of each the first hundred characters.
func Few(names []string) string {
	const n, length = 12, 100
	names = slices.Clone(names)
	for i := range names {
		names[i] = diag.Short(names[i], length)
	}
	switch {
	case len(names) == 0:
		return "nothing"
	case len(names) > n:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
	}
	return strings.Join(names, ", ")
}
