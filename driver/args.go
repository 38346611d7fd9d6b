package driver

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

// An arguments is where the values of a program's parameters come from: a
// file, and, for what that does not have, initialisers and the seed.
type arguments struct {
	file   *tensorfile.File // nil without one
	seed   uint64
	values map[string]*ir.Literal // by name, as files hold them
}

// newArguments opens the file, if one is named, and holds its names, types and
// shapes against the parameters; all that does not fit is reported together.
func newArguments(path string, seed uint64, params []*port) (*arguments, error) {
	a := &arguments{seed: seed, values: make(map[string]*ir.Literal)}
	if path == "" {
		return a, nil
	}
	var err error
	if a.file, err = tensorfile.Open(path); err != nil {
		return nil, fileError(err)
	}
	if err := a.check(params); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *arguments) close() {
	if a.file != nil {
		a.file.Close()
	}
}

// keys are the names of the arrays of the file that hold p: one, or one per
// layer, or per index of another axis; nil where the file has none of them.
func (a *arguments) keys(p *port) []string {
	keys, _ := a.keysOf(p)
	return keys
}

// keysOf is keys, and how many of the first axes of p have an array for each index.
func (a *arguments) keysOf(p *port) (found []string, apart int) {
	if a.file == nil {
		return nil, 0
	}
	names := []string{p.file, p.name}
	if p.kind == "param" {
		names = append(names, "param."+p.name) // as training writes it
	}
	for _, name := range names {
		keys, apart := p.keys(name)
		if slices.ContainsFunc(keys, a.file.Has) {
			return keys, apart
		}
	}
	return nil, 0
}

// keys are the arrays under a name, and for how many of the first axes of p there
// is one for each index.
func (p *port) keys(name string) (keys []string, apart int) {
	if name == "" {
		return nil, 0
	}
	n, err := arrayname.Parse(name)
	if err != nil || len(n.Vars) > p.inFile.Rank() { // a program that was not checked, with braces that mean nothing
		return []string{name}, 0
	}
	return n.Keys(p.inFile.Shape[:len(n.Vars)]), len(n.Vars)
}

// fileName is the name under which a file is expected to hold p.
func (p *port) fileName() string {
	if p.file != "" {
		return p.file
	}
	return p.name
}

// check reports what of the file does not fit the parameters, by its headers
// alone. A file that has one parameter of the model must have them all: what
// is left out would silently be made up; the same goes for the optimizer's
// state. What it has no use for is let be, unless it looks like a misspelling
// of what is missing, or is state of another optimizer or model.
func (a *arguments) check(params []*port) error {
	used, has, found := make(map[string]bool), make(map[string]bool), false
	for _, p := range params {
		keys := a.keys(p)
		found = found || keys != nil
		has[p.kind] = has[p.kind] || keys != nil
		for _, k := range keys {
			used[k] = true
		}
	}
	free := slices.DeleteFunc(a.file.Names(), func(name string) bool { return used[name] })
	var errs []error
	seen := make(map[string]bool)
	for _, p := range params {
		if seen[p.name] {
			continue
		}
		seen[p.name] = true
		if keys, apart := a.keysOf(p); keys != nil {
			errs = append(errs, a.checkArrays(p, keys, apart))
		} else if near := spell.Nearest(p.fileName(), free); near != "" && p.kind != "state" && p.kind != "step" || p.kind != "input" && (has[p.kind] || p.kind == "param" && has["state"]) {
			errs = append(errs, a.missing(p, p.fileName(), near))
		}
	}
	errs = append(errs, a.checkState(params, free))
	if !found && errors.Join(errs...) == nil && len(params) > 0 {
		return fmt.Errorf("%s holds none of the program's arguments: it has %s; the program takes %s",
			a.file.Path, few(a.file.Names()), few(names(params)))
	}
	return errors.Join(errs...)
}

// checkState refuses the state of another optimizer: what of the free arrays
// is state that the program, which has some, does not take.
func (a *arguments) checkState(params []*port, free []string) error {
	var own []string
	for _, p := range params {
		if p.kind == "state" && !slices.Contains(own, p.name+" "+p.String()) {
			own = append(own, p.name+" "+p.String())
		}
	}
	if len(own) == 0 {
		return nil
	}
	var other []string
	for _, name := range free {
		if info, err := a.file.Info(name); err == nil && strings.HasPrefix(name, statePrefix) {
			other = append(other, name+" "+typeText(ir.Tensor(ir.DTypeByName(info.DType), info.Shape...), nil))
		}
	}
	if len(other) == 0 {
		return nil
	}
	return fmt.Errorf("%s has the state of another optimizer or model: %s; the program takes %s", a.file.Path, few(other), few(own))
}

// statePrefix begins the names of an optimizer's state.
const statePrefix = "opt."

func (a *arguments) missing(p *port, key, near string) error {
	what := "an argument"
	if p.kind != "" {
		what = map[string]string{"input": "an input", "param": "a parameter", "state": "a state of the optimizer", "step": "the number of a step"}[p.kind]
	}
	hint := ""
	if near != "" {
		hint = fmt.Sprintf("; did you mean %q, which is there?", near)
	}
	return fmt.Errorf("%s: there is no %q, %s %s of the program%s", a.file.Path, key, what, p, hint)
}

// checkArrays holds type and shape of the arrays against p.
func (a *arguments) checkArrays(p *port, keys []string, apart int) error {
	want := p.inFile.WithShape(p.inFile.Shape[apart:]...)
	axes := p.axes[min(apart, len(p.axes)):]
	var errs []error
	for _, key := range keys {
		if !a.file.Has(key) {
			errs = append(errs, a.missing(p, key, ""))
			continue
		}
		info, err := a.file.Info(key)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		have := ir.Tensor(ir.DTypeByName(info.DType), info.Shape...)
		if !slices.Equal(have.Shape, want.Shape) {
			errs = append(errs, fmt.Errorf("%s: %q is %s, the program takes %s%s", a.file.Path, key, typeText(have, nil), typeText(want, axes), p.cure(have)))
		} else if err := a.checkElem(key, have.Elem, want.Elem); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// checkElem finds out whether the types allow a conversion at all.
func (a *arguments) checkElem(key string, from, to ir.DType) error {
	if from.IsInt() && to.IsInt() {
		return nil // whether the numbers fit shows when they are read
	}
	_, err := convert(&ir.Literal{Type: ir.Tensor(from, 0)}, to)
	if err != nil {
		return fmt.Errorf("%s: %q is %s, the program takes %s: %w", a.file.Path, key, from, to, err)
	}
	return nil
}

// cure says what may be meant by an array of the wrong shape.
func (p *port) cure(have *ir.Type) string {
	if p.stacked && slices.Equal(have.Shape, p.local.Shape) {
		return fmt.Sprintf(": per-device values are stacked on a first axis of %d devices", p.devices)
	}
	if len(p.axes) > 0 && p.axes[0] == "layers" && have.Rank() == p.inFile.Rank()-1 {
		return fmt.Sprintf(": the %d layers are stacked on the first axis", p.inFile.Shape[0])
	}
	if have.NumElements() == p.inFile.NumElements() {
		return ": the elements are as many, in another shape"
	}
	return ""
}

// unused returns the arrays of the file that no parameter takes.
func (a *arguments) unused(params []*port) []string {
	if a.file == nil {
		return nil
	}
	used := make(map[string]bool)
	for _, p := range params {
		for _, k := range a.keys(p) {
			used[k] = true
		}
	}
	return slices.DeleteFunc(a.file.Names(), func(name string) bool { return used[name] || strings.HasPrefix(name, statePrefix) })
}

// madeUp returns the names of the parameters that the file does not have.
func (a *arguments) madeUp(params []*port) []string {
	var out []string
	for _, p := range params {
		if a.keys(p) == nil && p.kind != "state" && p.kind != "step" && !slices.Contains(out, p.name) {
			out = append(out, p.name)
		}
	}
	return out
}

// fileValue returns the value of p as a file holds it, of p's element type. Values
// are cached, since a program may take one value as several parameters.
func (a *arguments) fileValue(p *port) (*ir.Literal, error) {
	if l := a.values[p.name]; l != nil {
		return l, nil
	}
	l, err := a.load(p)
	if err != nil {
		return nil, err
	}
	a.values[p.name] = l
	return l, nil
}

func (a *arguments) load(p *port) (*ir.Literal, error) {
	if keys := a.keys(p); keys != nil {
		return a.read(p, keys)
	}
	if p.origin != nil {
		l, err := a.fileValue(p.origin)
		if err != nil {
			return nil, err
		}
		return p.origin.value(l), nil
	}
	if p.kind == "step" {
		return ir.SplatOf(p.inFile, 0), nil
	}
	s := newStream(a.seed, p.name)
	if p.init != "" {
		l, err := initial(p.inFile, p.init, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		return l, nil
	}
	return sample(p.inFile, p.max, s), nil
}

// read reads p from its array, or from those for each index of its first axes.
func (a *arguments) read(p *port, keys []string) (*ir.Literal, error) {
	full := &ir.Literal{Type: p.inFile}
	for _, key := range keys {
		arr, err := a.file.Read(key)
		if err != nil {
			return nil, err
		}
		l, err := convert(literal(arr), p.inFile.Elem)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", a.file.Path, key, err)
		}
		if len(keys) == 1 {
			full.Data = l.Data
			break
		}
		full.Data = append(full.Data, l.Data...)
	}
	return full, nil
}

func names(ps []*port) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.fileName()
	}
	return out
}

// few lists names, the first dozen of them.
func few(names []string) string {
	const n = 12
	names = slices.Clone(names)
	for i := range names {
		names[i] = diag.Line(names[i])
	}
	switch {
	case len(names) == 0:
		return "nothing"
	case len(names) > n:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
	}
	return strings.Join(names, ", ")
}
