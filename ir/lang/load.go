package lang

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// Options says how a program is read.
type Options struct {
	Set      []string // block.key=value, as --set has them
	Devices  int      // how many devices a mesh axis of -1 fills; 0 is unknown
	ReadFile func(string) ([]byte, error)

	ReadInclude func(string) ([]byte, error) // reads what files include; nil is ReadFile
	IncludeDirs []string                     // where includes are looked for that are not beside the file that includes

	Sequential bool // layers one after the other, no pipeline: the reference
	Float64    bool // every float is an f64
	Train      bool // what the train block asks for: a step of training, in which dropout drops
	Grad       bool // in place of a step of training, the gradients of all parameters and floating-point inputs
	Steps      int  // that a run takes in place of train.steps; 0 is train.steps
	Library    bool // a program may lack a model, and then has no module
}

// A Program is a checked .pp program.
type Program struct {
	Module *ir.Module // in typed form, verified
	Model  string
	Seed   int // of initial values, of inputs and of random numbers

	Training *Training // what a step of training is repeated on; nil where the module is none

	// Warnings are what the program says that has no effect, or that it probably
	// does not mean, in source order.
	Warnings diag.List

	source *program
}

//go:embed std/*.pp
var std embed.FS

// Load reads the .pp program in file, checks all of it, and builds its module.
// The error is a [diag.List] of everything that is wrong, in source order.
func Load(file string, opts Options) (*Program, error) {
	if opts.ReadFile == nil {
		opts.ReadFile = os.ReadFile
	}
	if opts.ReadInclude == nil {
		opts.ReadInclude = opts.ReadFile
	}
	p := newProgram(opts)
	p.files = append(p.files, library()...)
	p.readRoot(file)
	p.readSets()
	if p.Blind {
		return nil, p.fail()
	}
	p.declare()
	m := p.build()
	if p.Count == 0 && m != nil {
		p.checkEffects()
	}
	if p.Count > 0 {
		return nil, p.fail()
	}
	if m != nil {
		p.checkMeshUse()
	}
	p.Warns.Sort()
	if m == nil {
		return &Program{Seed: p.seed(), Warnings: p.Warns, source: p}, nil
	}
	if err := ir.Verify(m); err != nil {
		panic("lang: " + file + " makes a broken module: " + err.Error())
	}
	return &Program{Module: m, Model: m.Name, Seed: p.seed(), Training: p.loop(), Warnings: p.Warns, source: p}, nil
}

func (p *program) fail() error {
	p.List.Sort()
	return p.List.Err()
}

// A program is everything that is known of a program while it is checked.
type program struct {
	syntax.Reporter
	opts  Options
	files []*syntax.File // included files before those that include them; the library first
	seen  map[string]*syntax.File

	sets   []setBlock
	types  *table[ir.DType]
	axes   *table[*axisDecl]
	fns    map[string]*syntax.FuncDecl // fn and layer
	models []*syntax.FuncDecl
	mesh   *ir.Mesh // nil without a mesh block
	// pipelined says that the model has a pipeline, whose schedule checks
	// how the batch divides.
	pipelined bool
	rules     map[string][]syntax.Rule
	values    map[string]map[string]*syntax.Setting // by block and key
	builtins  map[string]*builtin
	undivided map[undivided]bool         // what was reported
	places    map[*ir.Origin]syntax.Span // that ops come from
	means     map[*ir.Op]bool            // divisions of a sum by the number of its terms
	sources   int                        // read so far
	steps     int                        // statements executed so far
	use       use                        // what settings act on
	along     map[string]*axisUse
	ruleUses  map[*syntax.Rule]*ruleUse
	// badSetting says that a setting or a size of the mesh is not what it may be: what
	// follows from it alone is not reported.
	badSetting bool
	rests      bool // what is built now stands outside of the program
}

func newProgram(opts Options) *program {
	return &program{builtins: newBuiltins(), opts: opts, seen: make(map[string]*syntax.File), fns: make(map[string]*syntax.FuncDecl), rules: make(map[string][]syntax.Rule),
		values: make(map[string]map[string]*syntax.Setting), undivided: make(map[undivided]bool), places: make(map[*ir.Origin]syntax.Span), means: make(map[*ir.Op]bool), along: make(map[string]*axisUse), ruleUses: make(map[*syntax.Rule]*ruleUse), types: newTable[ir.DType](), axes: newTable[*axisDecl]()}
}

// A table is named things in order.
type table[T any] struct {
	names []string
	of    map[string]T
}

func newTable[T any]() *table[T] { return &table[T]{of: make(map[string]T)} }

func (t *table[T]) set(name string, v T) {
	if _, ok := t.of[name]; !ok {
		t.names = append(t.names, name)
	}
	t.of[name] = v
}

// library is the standard library, parsed once. Its trees never change.
var library = sync.OnceValue(func() []*syntax.File {
	entries, err := std.ReadDir("std")
	if err != nil {
		panic("lang: " + err.Error())
	}
	var files []*syntax.File
	for _, e := range entries {
		text, err := std.ReadFile("std/" + e.Name())
		if err != nil {
			panic("lang: " + err.Error())
		}
		var r syntax.Reporter
		files = append(files, syntax.Parse(&syntax.Source{Name: "std/" + e.Name(), Text: string(text), Std: true}, &r))
		if len(r.List) > 0 {
			panic("lang: " + r.List.Error())
		}
	}
	return files
})

func (p *program) source(name string, text []byte) *syntax.Source {
	p.sources++
	return &syntax.Source{Name: name, Text: syntax.WithoutMark(text), Rank: p.sources}
}

func (p *program) readRoot(name string) {
	text, err := p.opts.ReadFile(name)
	if err != nil {
		p.Count++
		p.Blind = true
		p.List = append(p.List, &diag.Diagnostic{File: name, Msg: syntax.ErrOpen.Format(cause(err)), Template: string(syntax.ErrOpen)})
		return
	}
	p.readFile(name, text, []string{path.Clean(name)})
}

// readFile reads a file and what it includes; stack is the files that include
// it, itself last.
func (p *program) readFile(name string, text []byte, stack []string) {
	f := syntax.Parse(p.source(name, text), &p.Reporter)
	p.seen[path.Clean(name)] = f
	for _, inc := range f.Includes {
		p.include(f, inc, stack)
	}
	p.files = append(p.files, f)
}

// include reads the file that inc names: the one beside f, or, where there is
// none, the first of the include folders that has it.
func (p *program) include(f *syntax.File, inc syntax.IncludeDecl, stack []string) {
	var missing error
	for _, name := range p.candidates(f, inc.Path) {
		key := path.Clean(name)
		if slices.Contains(stack, key) {
			p.Blind = true
			p.Report(inc.Span, "", syntax.ErrCycle, strings.Join(append(stack[slices.Index(stack, key):], key), " includes "))
			return
		}
		if p.seen[key] != nil {
			return
		}
		if len(p.seen) >= syntax.MaxFiles {
			p.Report(inc.Span, "", syntax.ErrFiles, syntax.MaxFiles)
			return
		}
		text, err := p.opts.ReadInclude(name)
		switch {
		case err == nil:
			p.readFile(name, text, append(slices.Clone(stack), key))
			return
		case !errors.Is(err, fs.ErrNotExist):
			p.Blind = true
			p.Report(inc.Span, "", syntax.ErrInclude, inc.Path, cause(err))
			return
		case missing == nil:
			missing = err
		}
	}
	p.Blind = true
	p.Report(inc.Span, "paths are relative to the file that includes", syntax.ErrInclude, inc.Path, cause(missing))
}

// candidates are the files that an include in f may mean, the first that is
// there.
func (p *program) candidates(f *syntax.File, name string) []string {
	if path.IsAbs(name) {
		return []string{name}
	}
	names := []string{path.Join(path.Dir(f.Src.Name), name)}
	for _, dir := range p.opts.IncludeDirs {
		names = append(names, path.Join(dir, name))
	}
	return names
}

// cause is err without the path, which the message has anyway.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// A setBlock is one --set.
type setBlock struct {
	kind  string
	entry syntax.Setting
}

// readSets reads --set block.key=value. Each is a little source of its own,
// so that its errors show it.
func (p *program) readSets() {
	for _, s := range p.opts.Set {
		src := p.source("--set", []byte(s))
		src.Rank += 1 << 20 // after the files
		p.seen["--set "+s] = &syntax.File{Src: src}
		kind, rest, ok := strings.Cut(s, ".")
		if !ok || !strings.Contains(rest, "=") {
			p.Report(syntax.Span{Src: src, Line: 1, Col: 1, Len: len(s)}, p.setHint(s), syntax.ErrSetForm, s)
			continue
		}
		if !slices.Contains(syntax.SettingBlocks, kind) {
			p.Report(syntax.Span{Src: src, Line: 1, Col: 1, Len: len(kind)}, syntax.Suggest(syntax.BlockWord, kind, syntax.SettingBlocks), syntax.ErrSetBlock, kind, strings.Join(syntax.SettingBlocks, ", "))
			continue
		}
		// The block's name becomes blanks, so that columns stay right.
		inner := *src
		inner.Text = strings.Repeat(" ", len(kind)+1) + rest
		e, ok := syntax.ParseSetting(&inner, &p.Reporter)
		if ok {
			inner.Text = s
			e.Override = true
			p.sets = append(p.sets, setBlock{kind, e})
		}
	}
}

// setHint is the cure for a --set that is not block.key=value: the block that has
// the key, where one does.
func (p *program) setHint(set string) string {
	key, value, ok := strings.Cut(set, "=")
	key = strings.TrimSpace(key)
	if !ok || strings.TrimSpace(value) == "" {
		value = "…"
	}
	if _, inner, ok := strings.Cut(key, "."); ok {
		key = inner
	}
	for _, b := range syntax.SettingBlocks {
		own := b == "axes" || b == "types" || b == "mesh"
		if settingRowOf(b, key) != nil || own && p.inFile(b, key) || b == "mesh" && slices.Contains(knownMeshAxes, key) {
			return "--set " + b + "." + key + "=" + value
		}
	}
	if syntax.Theirs(syntax.SettingWord, key) != nil {
		return syntax.Suggest(syntax.SettingWord, key, nil)
	}
	var keys []string
	for _, r := range settingTable {
		keys = append(keys, r.block+"."+r.key)
	}
	for _, k := range keys {
		if _, name, _ := strings.Cut(k, "."); syntax.Near(key, []string{name}) != "" {
			return "did you mean --set " + k + "=" + value + "?"
		}
	}
	return "--set pipeline.rotate=slice_pad"
}

// declare collects the declarations of all files: what a file says overrides
// what the files that it includes say, and --set overrides all.
func (p *program) declare() {
	for _, f := range p.files {
		p.declareFuncs(f)
		own := make(map[string]bool) // this file's settings and rules
		for i := range f.Blocks {
			p.declareBlock(&f.Blocks[i], own)
		}
		for _, s := range f.Shards {
			p.declareShard(s, own)
		}
	}
	for i := range p.sets {
		p.override(&p.sets[i])
	}
	p.declareTypes()
	p.declareAxes()
	p.declareMesh()
	p.checkRules()
	p.checkStageAxis()
	p.checkSettings()
}

func (p *program) declareFuncs(f *syntax.File) {
	own := make(map[string]*syntax.FuncDecl)
	for _, d := range f.Funcs {
		if prev := own[d.Name]; prev != nil {
			p.Report(d.Span, "", errTwice, d.Kind, d.Name, prev.Line)
			continue
		}
		own[d.Name] = d
		if p.builtins[d.Name] != nil {
			p.Report(d.Span, "", errBuiltin, d.Name)
			continue
		}
		if d.Kind == "model" {
			p.declareModel(d)
			continue
		}
		p.fns[d.Name] = d
	}
}

func (p *program) declareModel(d *syntax.FuncDecl) {
	for i, m := range p.models {
		if m.Name == d.Name {
			p.models[i] = d
			return
		}
	}
	if len(p.models) > 0 {
		m := p.models[0]
		p.Report(d.Span, "keep one model in a program", errModels, d.Name, m.Name, m.Src.Name, m.Line)
	}
	p.models = append(p.models, d)
}

// declareBlock merges the entries of b. A mesh replaces the mesh of included
// files as a whole, since its order counts; other blocks add up.
func (p *program) declareBlock(b *syntax.Block, own map[string]bool) {
	if b.Kind == "mesh" && !own["mesh"] {
		delete(p.values, "mesh")
		own["mesh"] = true
	}
	if p.values[b.Kind] == nil {
		p.values[b.Kind] = make(map[string]*syntax.Setting)
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		id := b.Kind + "." + e.Key
		if own[id] {
			p.Report(e.Span, "", errTwice, b.Kind, e.Key, p.values[b.Kind][e.Key].Line)
			continue
		}
		own[id] = true
		p.putSetting(b.Kind, e)
	}
}

// putSetting makes e the setting of its key; one that is overridden keeps its
// place in the order.
func (p *program) putSetting(kind string, e *syntax.Setting) {
	if p.values[kind] == nil {
		p.values[kind] = make(map[string]*syntax.Setting)
	}
	switch kind {
	case "types":
		p.types.set(e.Key, ir.InvalidDType)
	case "axes":
		p.axes.set(e.Key, &axisDecl{Setting: e})
	}
	if prev := p.values[kind][e.Key]; prev != nil {
		e.Order = prev.Order
	} else {
		e.Order = len(p.values[kind])
	}
	p.values[kind][e.Key] = e
}

// ordered is the settings of a block in order.
func (p *program) ordered(kind string) []*syntax.Setting {
	out := make([]*syntax.Setting, 0, len(p.values[kind]))
	for _, e := range p.values[kind] {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *syntax.Setting) int { return a.Order - b.Order })
	return out
}

func (p *program) override(s *setBlock) {
	e := &s.entry
	key := e.Span
	key.Len = len(e.Key)
	switch s.kind {
	case "types":
		if _, ok := p.types.of[e.Key]; !ok {
			p.Report(key, syntax.Suggest(syntax.TypeWord, e.Key, p.types.names), errUnknownType, e.Key)
			return
		}
	case "axes":
		if p.axes.of[e.Key] == nil {
			p.Report(key, syntax.Near(e.Key, p.axes.names), errUnknownAxis, e.Key)
			return
		}
	}
	p.putSetting(s.kind, e)
}

func (p *program) declareShard(s syntax.ShardBlock, own map[string]bool) {
	if s.Of != "weights" && s.Of != "activations" {
		p.Report(s.Span, syntax.Near(s.Of, []string{"weights", "activations"}), errShard, s.Of)
		return
	}
	if !own["shard "+s.Of] {
		own["shard "+s.Of] = true
		p.rules[s.Of] = nil
	}
	p.rules[s.Of] = append(p.rules[s.Of], s.Rules...)
}
