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
	if p.blind {
		return nil, p.fail()
	}
	p.declare()
	m := p.build()
	if p.count == 0 && m != nil {
		p.checkEffects()
	}
	if p.count > 0 {
		return nil, p.fail()
	}
	if m != nil {
		p.checkMeshUse()
	}
	p.warns.Sort()
	if m == nil {
		return &Program{Seed: p.seed(), Warnings: p.warns, source: p}, nil
	}
	if err := ir.Verify(m); err != nil {
		panic("lang: " + file + " makes a broken module: " + err.Error())
	}
	return &Program{Module: m, Model: m.Name, Seed: p.seed(), Training: p.loop(), Warnings: p.warns, source: p}, nil
}

func (p *program) fail() error {
	p.list.Sort()
	return p.list.Err()
}

// A program is everything that is known of a program while it is checked.
type program struct {
	reporter
	opts  Options
	files []*file // included files before those that include them; the library first
	seen  map[string]*file

	sets   []setBlock
	types  *table[ir.DType]
	axes   *table[*axisDecl]
	fns    map[string]*funcDecl // fn and layer
	models []*funcDecl
	mesh   *ir.Mesh // nil without a mesh block
	// pipelined says that the model has a pipeline, whose schedule checks
	// how the batch divides.
	pipelined bool
	rules     map[string][]rule
	values    map[string]map[string]*setting // by block and key
	builtins  map[string]*builtin
	undivided map[undivided]bool  // what was reported
	places    map[*ir.Origin]span // that ops come from
	means     map[*ir.Op]bool     // divisions of a sum by the number of its terms
	sources   int                 // read so far
	steps     int                 // statements executed so far
	use       use                 // what settings act on
	along     map[string]*axisUse
	ruleUses  map[*rule]*ruleUse
	// badSetting says that a setting or a size of the mesh is not what it may be: what
	// follows from it alone is not reported.
	badSetting bool
	rests      bool // what is built now stands outside of the program
}

func newProgram(opts Options) *program {
	return &program{builtins: newBuiltins(), opts: opts, seen: make(map[string]*file), fns: make(map[string]*funcDecl), rules: make(map[string][]rule),
		values: make(map[string]map[string]*setting), undivided: make(map[undivided]bool), places: make(map[*ir.Origin]span), means: make(map[*ir.Op]bool), along: make(map[string]*axisUse), ruleUses: make(map[*rule]*ruleUse), types: newTable[ir.DType](), axes: newTable[*axisDecl]()}
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
var library = sync.OnceValue(func() []*file {
	entries, err := std.ReadDir("std")
	if err != nil {
		panic("lang: " + err.Error())
	}
	var files []*file
	for _, e := range entries {
		text, err := std.ReadFile("std/" + e.Name())
		if err != nil {
			panic("lang: " + err.Error())
		}
		var r reporter
		files = append(files, parse(&source{name: "std/" + e.Name(), text: string(text), std: true}, &r))
		if len(r.list) > 0 {
			panic("lang: " + r.list.Error())
		}
	}
	return files
})

func (p *program) source(name string, text []byte) *source {
	p.sources++
	return &source{name: name, text: withoutMark(text), rank: p.sources}
}

func (p *program) readRoot(name string) {
	text, err := p.opts.ReadFile(name)
	if err != nil {
		p.count++
		p.blind = true
		p.list = append(p.list, &diag.Diagnostic{File: name, Msg: errOpen.format(cause(err)), Template: string(errOpen)})
		return
	}
	p.readFile(name, text, []string{path.Clean(name)})
}

// readFile reads a file and what it includes; stack is the files that include
// it, itself last.
func (p *program) readFile(name string, text []byte, stack []string) {
	f := parse(p.source(name, text), &p.reporter)
	p.seen[path.Clean(name)] = f
	for _, inc := range f.includes {
		p.include(f, inc, stack)
	}
	p.files = append(p.files, f)
}

// include reads the file that inc names: the one beside f, or, where there is
// none, the first of the include folders that has it.
func (p *program) include(f *file, inc includeDecl, stack []string) {
	var missing error
	for _, name := range p.candidates(f, inc.path) {
		key := path.Clean(name)
		if slices.Contains(stack, key) {
			p.blind = true
			p.report(inc.span, "", errCycle, strings.Join(append(stack[slices.Index(stack, key):], key), " includes "))
			return
		}
		if p.seen[key] != nil {
			return
		}
		if len(p.seen) >= maxFiles {
			p.report(inc.span, "", errFiles, maxFiles)
			return
		}
		text, err := p.opts.ReadInclude(name)
		switch {
		case err == nil:
			p.readFile(name, text, append(slices.Clone(stack), key))
			return
		case !errors.Is(err, fs.ErrNotExist):
			p.blind = true
			p.report(inc.span, "", errInclude, inc.path, cause(err))
			return
		case missing == nil:
			missing = err
		}
	}
	p.blind = true
	p.report(inc.span, "paths are relative to the file that includes", errInclude, inc.path, cause(missing))
}

// candidates are the files that an include in f may mean, the first that is
// there.
func (p *program) candidates(f *file, name string) []string {
	if path.IsAbs(name) {
		return []string{name}
	}
	names := []string{path.Join(path.Dir(f.src.name), name)}
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
	entry setting
}

// readSets reads --set block.key=value. Each is a little source of its own,
// so that its errors show it.
func (p *program) readSets() {
	for _, s := range p.opts.Set {
		src := p.source("--set", []byte(s))
		src.rank += 1 << 20 // after the files
		p.seen["--set "+s] = &file{src: src}
		kind, rest, ok := strings.Cut(s, ".")
		if !ok || !strings.Contains(rest, "=") {
			p.report(span{src, 1, 1, len(s)}, p.setHint(s), errSetForm, s)
			continue
		}
		if !slices.Contains(settingBlocks, kind) {
			p.report(span{src, 1, 1, len(kind)}, suggest(blockWord, kind, settingBlocks), errSetBlock, kind, strings.Join(settingBlocks, ", "))
			continue
		}
		// The block's name becomes blanks, so that columns stay right.
		inner := *src
		inner.text = strings.Repeat(" ", len(kind)+1) + rest
		e, ok := parseSetting(&inner, &p.reporter)
		if ok {
			inner.text = s
			e.override = true
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
	for _, b := range settingBlocks {
		own := b == "axes" || b == "types" || b == "mesh"
		if settingRowOf(b, key) != nil || own && p.inFile(b, key) || b == "mesh" && slices.Contains(knownMeshAxes, key) {
			return "--set " + b + "." + key + "=" + value
		}
	}
	if theirs(settingWord, key) != nil {
		return suggest(settingWord, key, nil)
	}
	var keys []string
	for _, r := range settingTable {
		keys = append(keys, r.block+"."+r.key)
	}
	for _, k := range keys {
		if _, name, _ := strings.Cut(k, "."); near(key, []string{name}) != "" {
			return "did you mean --set " + k + "=" + value + "?"
		}
	}
	return "--set pipeline.rotate=slice_pad"
}

// settingBlocks are the blocks whose entries --set may override.
var settingBlocks = []string{"axes", "types", "mesh", "pipeline", "train", "hardware"}

// declare collects the declarations of all files: what a file says overrides
// what the files that it includes say, and --set overrides all.
func (p *program) declare() {
	for _, f := range p.files {
		p.declareFuncs(f)
		own := make(map[string]bool) // this file's settings and rules
		for i := range f.blocks {
			p.declareBlock(&f.blocks[i], own)
		}
		for _, s := range f.shards {
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

func (p *program) declareFuncs(f *file) {
	own := make(map[string]*funcDecl)
	for _, d := range f.funcs {
		if prev := own[d.name]; prev != nil {
			p.report(d.span, "", errTwice, d.kind, d.name, prev.line)
			continue
		}
		own[d.name] = d
		if p.builtins[d.name] != nil {
			p.report(d.span, "", errBuiltin, d.name)
			continue
		}
		if d.kind == "model" {
			p.declareModel(d)
			continue
		}
		p.fns[d.name] = d
	}
}

func (p *program) declareModel(d *funcDecl) {
	for i, m := range p.models {
		if m.name == d.name {
			p.models[i] = d
			return
		}
	}
	if len(p.models) > 0 {
		m := p.models[0]
		p.report(d.span, "keep one model in a program", errModels, d.name, m.name, m.src.name, m.line)
	}
	p.models = append(p.models, d)
}

// declareBlock merges the entries of b. A mesh replaces the mesh of included
// files as a whole, since its order counts; other blocks add up.
func (p *program) declareBlock(b *block, own map[string]bool) {
	if b.kind == "mesh" && !own["mesh"] {
		delete(p.values, "mesh")
		own["mesh"] = true
	}
	if p.values[b.kind] == nil {
		p.values[b.kind] = make(map[string]*setting)
	}
	for i := range b.entries {
		e := &b.entries[i]
		id := b.kind + "." + e.key
		if own[id] {
			p.report(e.span, "", errTwice, b.kind, e.key, p.values[b.kind][e.key].line)
			continue
		}
		own[id] = true
		p.putSetting(b.kind, e)
	}
}

// putSetting makes e the setting of its key; one that is overridden keeps its
// place in the order.
func (p *program) putSetting(kind string, e *setting) {
	if p.values[kind] == nil {
		p.values[kind] = make(map[string]*setting)
	}
	switch kind {
	case "types":
		p.types.set(e.key, ir.InvalidDType)
	case "axes":
		p.axes.set(e.key, &axisDecl{setting: e})
	}
	if prev := p.values[kind][e.key]; prev != nil {
		e.order = prev.order
	} else {
		e.order = len(p.values[kind])
	}
	p.values[kind][e.key] = e
}

// ordered is the settings of a block in order.
func (p *program) ordered(kind string) []*setting {
	out := make([]*setting, 0, len(p.values[kind]))
	for _, e := range p.values[kind] {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *setting) int { return a.order - b.order })
	return out
}

func (p *program) override(s *setBlock) {
	e := &s.entry
	key := e.span
	key.len = len(e.key)
	switch s.kind {
	case "types":
		if _, ok := p.types.of[e.key]; !ok {
			p.report(key, suggest(typeWord, e.key, p.types.names), errUnknownType, e.key)
			return
		}
	case "axes":
		if p.axes.of[e.key] == nil {
			p.report(key, near(e.key, p.axes.names), errUnknownAxis, e.key)
			return
		}
	}
	p.putSetting(s.kind, e)
}

func (p *program) declareShard(s shardBlock, own map[string]bool) {
	if s.of != "weights" && s.of != "activations" {
		p.report(s.span, near(s.of, []string{"weights", "activations"}), errShard, s.of)
		return
	}
	if !own["shard "+s.of] {
		own["shard "+s.of] = true
		p.rules[s.of] = nil
	}
	p.rules[s.of] = append(p.rules[s.of], s.rules...)
}
