package config

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
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

// Fail is everything that was reported, in source order; nil if nothing.
func (p *Program) Fail() error {
	p.List.Sort()
	return p.List.Err()
}

// A Program is everything that is known of a program while it is checked.
type Program struct {
	syntax.Reporter
	Opts  Options
	Files []*syntax.File // included files before those that include them; the library first
	seen  map[string]*syntax.File

	sets   []setBlock
	types  *table[ir.DType]
	Axes   *table[*axisDecl]
	Fns    map[string]*syntax.FuncDecl // fn and layer
	Models []*syntax.FuncDecl
	Mesh   *ir.Mesh // nil without a mesh block
	// pipelined says that the model has a pipeline, whose schedule checks
	// how the batch divides.
	Pipelined bool
	Rules     map[string][]syntax.Rule
	Values    map[string]map[string]*syntax.Setting // by block and key
	language  Language
	undivided map[undivided]bool         // what was reported
	Places    map[*ir.Origin]syntax.Span // that ops come from
	Means     map[*ir.Op]bool            // divisions of a sum by the number of its terms
	sources   int                        // read so far
	Steps     int                        // statements executed so far
	Use       use                        // what settings act on
	along     map[string]*axisUse
	activated map[string]bool // the axes that some activation has
	ruleUses  map[*syntax.Rule]*ruleUse
	// badSetting says that a setting or a size of the mesh is not what it may be: what
	// follows from it alone is not reported.
	BadSetting bool
	Rests      bool // what is built now is not part of the program
}

// A Language is what reading declarations asks of the meaning of expressions.
type Language struct {
	// number is what x is, with a report that says what it should be where that is
	// no number.
	Number func(p *Program, x syntax.Expr, what string) (value.Number, bool)
	// builtin reports whether a function of the name is built in.
	Builtin func(name string) bool
}

// NewProgram is a program of which nothing is read yet.
func NewProgram(opts Options, l Language) *Program {
	return &Program{language: l, Opts: opts, seen: make(map[string]*syntax.File), Fns: make(map[string]*syntax.FuncDecl), Rules: make(map[string][]syntax.Rule),
		Values: make(map[string]map[string]*syntax.Setting), undivided: make(map[undivided]bool), Places: make(map[*ir.Origin]syntax.Span), Means: make(map[*ir.Op]bool), along: make(map[string]*axisUse), activated: make(map[string]bool), ruleUses: make(map[*syntax.Rule]*ruleUse), types: newTable[ir.DType](), Axes: newTable[*axisDecl]()}
}

// A table is named things in order.
type table[T any] struct {
	Names []string
	Of    map[string]T
}

func newTable[T any]() *table[T] { return &table[T]{Of: make(map[string]T)} }

func (t *table[T]) set(name string, v T) {
	if _, ok := t.Of[name]; !ok {
		t.Names = append(t.Names, name)
	}
	t.Of[name] = v
}

func (p *Program) source(name string, text []byte) *syntax.Source {
	p.sources++
	return &syntax.Source{Name: name, Text: syntax.WithoutMark(text), Rank: p.sources}
}

// ReadRoot reads the file called name and what it includes.
func (p *Program) ReadRoot(name string) {
	text, err := p.Opts.ReadFile(name)
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
func (p *Program) readFile(name string, text []byte, stack []string) {
	f := syntax.Parse(p.source(name, text), &p.Reporter)
	p.seen[path.Clean(name)] = f
	for _, inc := range f.Includes {
		p.include(f, inc, stack)
	}
	p.Files = append(p.Files, f)
}

// include reads the file that inc names: the one beside f, or, where there is
// none, the first of the include folders that has it.
func (p *Program) include(f *syntax.File, inc syntax.IncludeDecl, stack []string) {
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
		text, err := p.Opts.ReadInclude(name)
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
func (p *Program) candidates(f *syntax.File, name string) []string {
	if path.IsAbs(name) {
		return []string{name}
	}
	names := []string{path.Join(path.Dir(f.Src.Name), name)}
	for _, dir := range p.Opts.IncludeDirs {
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

// ReadSets reads --set block.key=value. Each is a little source of its own,
// so that its errors show it.
func (p *Program) ReadSets() {
	for _, s := range p.Opts.Set {
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
		// The block's name becomes blanks, so that columns stay right; errors show it.
		inner := *src
		inner.Text = strings.Repeat(" ", len(kind)+1) + rest
		before := len(p.List)
		e, ok := syntax.ParseSetting(&inner, &p.Reporter)
		inner.Text = s
		for _, d := range p.List[before:] {
			d.Text = diag.LineOf(s, d.Line)
		}
		if ok {
			e.Override = true
			p.sets = append(p.sets, setBlock{kind, e})
		}
	}
}

// setHint is the cure for a --set that is not block.key=value: the block that has
// the key, where one does.
func (p *Program) setHint(set string) string {
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
		if SettingRowOf(b, key) != nil || own && p.inFile(b, key) || b == "mesh" && slices.Contains(KnownMeshAxes, key) {
			return "--set " + b + "." + key + "=" + value
		}
	}
	if syntax.Theirs(syntax.SettingWord, key) != nil {
		return syntax.Suggest(syntax.SettingWord, key, nil)
	}
	var keys []string
	for _, r := range SettingTable {
		keys = append(keys, r.Block+"."+r.Key)
	}
	for _, k := range keys {
		if _, name, _ := strings.Cut(k, "."); syntax.Near(key, []string{name}) != "" {
			return "did you mean --set " + k + "=" + value + "?"
		}
	}
	return "--set pipeline.rotate=slice_pad"
}

// Declare collects the declarations of all files: what a file says overrides
// what the files that it includes say, and --set overrides all.
func (p *Program) Declare() {
	for _, f := range p.Files {
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

func (p *Program) declareFuncs(f *syntax.File) {
	own := make(map[string]*syntax.FuncDecl)
	for _, d := range f.Funcs {
		if prev := own[d.Name]; prev != nil {
			p.Report(d.Span, "", syntax.ErrTwice, d.Kind, d.Name, prev.Line)
			continue
		}
		own[d.Name] = d
		if p.language.Builtin(d.Name) {
			p.Report(d.Span, "", syntax.ErrBuiltin, d.Name)
			continue
		}
		if d.Kind == "model" {
			p.declareModel(d)
			continue
		}
		p.Fns[d.Name] = d
	}
}

func (p *Program) declareModel(d *syntax.FuncDecl) {
	for i, m := range p.Models {
		if m.Name == d.Name {
			p.Models[i] = d
			return
		}
	}
	if len(p.Models) > 0 {
		m := p.Models[0]
		p.Report(d.Span, "keep one model in a program", syntax.ErrModels, d.Name, m.Name, m.Src.Name, m.Line)
	}
	p.Models = append(p.Models, d)
}

// declareBlock merges the entries of b. A mesh replaces all of the mesh of included
// files, since its order counts; other blocks add up.
func (p *Program) declareBlock(b *syntax.Block, own map[string]bool) {
	if b.Kind == "mesh" && !own["mesh"] {
		delete(p.Values, "mesh")
		own["mesh"] = true
	}
	if p.Values[b.Kind] == nil {
		p.Values[b.Kind] = make(map[string]*syntax.Setting)
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		id := b.Kind + "." + e.Key
		if own[id] {
			p.Report(e.Span, "", syntax.ErrTwice, b.Kind, e.Key, p.Values[b.Kind][e.Key].Line)
			continue
		}
		own[id] = true
		p.putSetting(b.Kind, e)
	}
}

// putSetting makes e the setting of its key; one that is overridden keeps its
// place in the order.
func (p *Program) putSetting(kind string, e *syntax.Setting) {
	if p.Values[kind] == nil {
		p.Values[kind] = make(map[string]*syntax.Setting)
	}
	switch kind {
	case "types":
		p.types.set(e.Key, ir.InvalidDType)
	case "axes":
		p.Axes.set(e.Key, &axisDecl{Setting: e})
	}
	if prev := p.Values[kind][e.Key]; prev != nil {
		e.Order = prev.Order
	} else {
		e.Order = len(p.Values[kind])
	}
	p.Values[kind][e.Key] = e
}

// ordered is the settings of a block in order.
func (p *Program) ordered(kind string) []*syntax.Setting {
	out := make([]*syntax.Setting, 0, len(p.Values[kind]))
	for _, e := range p.Values[kind] {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *syntax.Setting) int { return a.Order - b.Order })
	return out
}

func (p *Program) override(s *setBlock) {
	e := &s.entry
	key := e.Span
	key.Len = len(e.Key)
	switch s.kind {
	case "types":
		if _, ok := p.types.Of[e.Key]; !ok {
			p.Report(key, syntax.Suggest(syntax.TypeWord, e.Key, p.types.Names), syntax.ErrUnknownType, e.Key)
			return
		}
	case "axes":
		if p.Axes.Of[e.Key] == nil {
			p.Report(key, syntax.Near(e.Key, p.Axes.Names), syntax.ErrUnknownAxis, e.Key)
			return
		}
	}
	p.putSetting(s.kind, e)
}

func (p *Program) declareShard(s syntax.ShardBlock, own map[string]bool) {
	if s.Of != "weights" && s.Of != "activations" {
		p.Report(s.Span, syntax.Near(s.Of, []string{"weights", "activations"}), syntax.ErrShard, s.Of)
		return
	}
	if !own["shard "+s.Of] {
		own["shard "+s.Of] = true
		p.Rules[s.Of] = nil
	}
	p.Rules[s.Of] = append(p.Rules[s.Of], s.Rules...)
}

// BatchAxis is the axis that pipelines split into microbatches: the first axis of
// the first argument of the first layer that d names, wherever it stands in a list.
// pipelined says whether d has a pipeline.
func (p *Program) BatchAxis(d *syntax.FuncDecl) (name string, pipelined bool) {
	var visit func(x syntax.Expr)
	visit = func(x syntax.Expr) {
		switch x := x.(type) {
		case *syntax.NameRef:
			pipelined = pipelined || x.Name == "pipeline"
			if l := p.Fns[x.Name]; name == "" && l != nil && l.Kind == "layer" && len(l.Params) > 0 && l.Params[0].Typ != nil && len(l.Params[0].Typ.Axes) > 0 {
				name = l.Params[0].Typ.Axes[0].Name
			}
		case *syntax.CallExpr:
			visit(x.Fn)
			for _, a := range x.Args {
				visit(a.Value)
			}
		case *syntax.BinaryExpr:
			visit(x.X)
			visit(x.Y)
		case *syntax.UnaryExpr:
			visit(x.X)
		case *syntax.ListLit:
			for _, it := range x.Items {
				visit(it.Value)
			}
		}
	}
	visitBody(d.Body, visit)
	return name, pipelined
}

// visitBody calls visit for every expression of a body.
func visitBody(body []syntax.Stmt, visit func(syntax.Expr)) {
	for _, s := range body {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			visit(s.Value)
		case *syntax.ReturnStmt:
			for _, a := range s.Args {
				visit(a.Value)
			}
		case *syntax.IfStmt:
			for _, b := range s.Branches {
				visit(b.Cond)
				visitBody(b.Body, visit)
			}
			visitBody(s.Alt, visit)
		}
	}
}

// SortedKeys are the keys of m, sorted.
func SortedKeys[V any](m map[string]V) []string {
	ks := make([]string, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

// Params is what train.params = custom { … } says of parameters by pattern.
func (p *Program) Params() []syntax.Setting {
	if s := p.Values["train"]["params"]; s != nil {
		return s.Body
	}
	return nil
}

// checkParams checks what each pattern is given: frozen, trained, or update(…).
func (p *Program) checkParams(s *syntax.Setting) {
	for _, e := range s.Body {
		switch x := e.Value.(type) {
		case *syntax.NameRef:
			if (x.Name == "frozen" || x.Name == "trained") && e.Body == nil {
				continue
			}
		case *syntax.CallExpr:
			if n, ok := x.Fn.(*syntax.NameRef); ok && n.Name == "update" && e.Body == nil {
				p.checkUpdate(x)
				continue
			}
		}
		p.Report(e.Value.At(), "", syntax.ErrCustomValue, e.Key, "frozen, trained or update(…)")
	}
}

// checkUpdate checks update(lr_scale: …, weight_decay: …).
func (p *Program) checkUpdate(x *syntax.CallExpr) {
	if len(x.Args) == 0 {
		p.Report(x.Span, "trained leaves all to the optimizer", syntax.ErrSettingArg, "update", alternatives(argNames(TrainArgsOf("update"))))
		return
	}
	if !p.checkTrainCall(x.Span, "update", x.Args) {
		return
	}
	_, args := CallOf(x)
	decays := slices.Contains(argNames(TrainArgsOf(p.Word("train", "optimizer"))), "weight_decay")
	if a := args["weight_decay"]; a != nil && !decays && p.Word("train", "optimizer") != "" {
		p.Report(a.At(), "optimizer = adamw(…) has it", syntax.ErrNoDecay, p.Word("train", "optimizer"))
	}
}
