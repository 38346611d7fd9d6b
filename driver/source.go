package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"ppc/driver/binding"
	"ppc/internal/diag"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/ir/xla"
	"ppc/lower/hlo"
	"ppc/lower/hlo/rules"
	"ppc/passes/expand"
	"ppc/passes/rewrite"
)

// A Source is a program in a file and how to read it.
type Source struct {
	File    string    // "-" is standard input
	Lang    string    // pp, mlir, hlo; "" goes by the extension, standard input is pp
	Set     []string  // block.key=value, settings of a .pp file
	Devices int       // for a mesh axis of size -1; 0 where not given
	Strict  bool      // nothing of a program is left out
	Stdin   io.Reader // what "-" reads

	IncludeDirs []string    // folders that .pp files may include from, beside that of the program
	Stdout      fs.FileInfo // the file that standard output goes to; nil where it is not known

	// Warn, if not nil, is called with what the program asks for without effect
	// and with what it probably does not mean.
	Warn func(*Warning)

	// Reading, if not nil, is called with the number of bytes of the text of a program in
	// MLIR or HLO before that is parsed.
	Reading func(bytes int)

	stdin []byte // once read
	files claims // that the program consists of, and that the command writes
}

// A Warning is a diagnostic of a program that is taken all the same.
type Warning = diag.Diagnostic

const stdinName = "<stdin>"

// languages is how the programs of each language are read.
var languages = map[string]struct {
	ext  string
	load func(s *Source, name string, opts lang.Options) (*program, error)
}{
	"pp":   {".pp", loadPP},
	"mlir": {".mlir", loadMLIR},
	"hlo":  {".hlo", loadHLO},
}

// language returns the language that s is in.
func (s *Source) language() (string, error) {
	if s.Lang != "" {
		if _, ok := languages[s.Lang]; !ok {
			return "", usage("--lang=%s: want pp, mlir or hlo", s.Lang)
		}
		return s.Lang, nil
	}
	if s.File == "-" {
		return "pp", nil
	}
	for name, row := range languages {
		if strings.EqualFold(filepath.Ext(s.File), row.ext) {
			return name, nil
		}
	}
	return "", usage("%s: programs are .pp, .mlir or .hlo files; --lang says what this is", s.File)
}

func (s *Source) name() string {
	if s.File == "-" {
		return stdinName
	}
	return s.File
}

// load reads, parses and checks the program. opts says which reading of a .pp
// file is wanted; settings, devices and files are filled in.
func (s *Source) load(ctx context.Context, opts lang.Options) (*program, error) {
	name, err := s.language()
	if err != nil {
		return nil, err
	}
	if name != "pp" && len(s.Set) > 0 {
		return nil, usage("--set %s: settings are those of .pp files; %s is %s", s.Set[0], s.name(), name)
	}
	if name != "pp" && s.Devices > 0 {
		return nil, usage("--devices %d: the number of devices of a program in %s is in its text", s.Devices, name)
	}
	if name != "pp" && len(s.IncludeDirs) > 0 {
		return nil, usage("--include-dir %s: .pp files include others; %s is %s", s.IncludeDirs[0], s.name(), name)
	}
	if err := s.checkIncludeDirs(); err != nil {
		return nil, err
	}
	opts.Set, opts.Devices, opts.ReadFile, opts.ReadInclude, opts.IncludeDirs = s.Set, s.Devices, s.read, s.include, s.IncludeDirs
	p, err := guard(ctx, "reading "+s.name(), s.reproducer(languages[name].ext), func() (*program, error) {
		return languages[name].load(s, s.name(), opts)
	})
	if err != nil {
		return nil, err
	}
	p.warn, p.files = s.Warn, &s.files
	if name != "hlo" { // which may be rewritten before passes get it
		p.rebuild = func() (*ir.Module, error) {
			q, err := languages[name].load(s, s.name(), opts)
			if err != nil {
				return nil, err
			}
			boundInputs(q.m)
			return q.m, nil
		}
	}
	if p.m == nil {
		return p, nil // a library, where opts takes one
	}
	if main := p.m.Main(); main == nil || main.Body == nil {
		return nil, errors.New(s.name() + ": there is no @main: the program has no function to run, or several")
	}
	return p, nil
}

// reproducer is the source itself.
func (s *Source) reproducer(ext string) reproducer {
	command := "ppc check"
	for _, set := range s.Set {
		command += " --set " + strings.ReplaceAll(set, "%", "%%")
	}
	return reproducer{pattern: "ppc-source-*" + ext, command: command + " %s", text: func() string {
		data, _ := s.read(s.name())
		return string(data)
	}}
}

func loadPP(_ *Source, name string, opts lang.Options) (*program, error) {
	p, err := lang.Load(name, opts)
	if err != nil {
		return nil, err
	}
	if p.Module != nil {
		boundInputs(p.Module)
	}
	return &program{m: p.Module, naming: binding.ByName, seed: uint64(p.Seed), training: p.Training, warnings: p.Warnings, lang: p}, nil
}

func loadMLIR(s *Source, name string, _ lang.Options) (*program, error) {
	return s.parse(name, mlir.Parse, func(m *ir.Module, o xla.Options) (diag.List, bool, error) {
		warnings, err := xla.Import(m, o)
		return warnings, perDevice(m), err
	})
}

func loadHLO(s *Source, name string, _ lang.Options) (*program, error) {
	p, err := s.parse(name, hlo.Parse, func(m *ir.Module, o xla.Options) (diag.List, bool, error) {
		if err := rules.Verify(m); err != nil {
			return nil, false, placed(name, err)
		}
		hlo.DropUnreached(m)
		return xla.ImportHLO(m, o)
	})
	if p != nil {
		p.hlo = true
	}
	return p, err
}

// parse reads a text, and by means of an importer what its front end says
// besides the ops, and whether it is a program per device.
func (s *Source) parse(name string, parse func(string, []byte) (*ir.Module, error), importer func(m *ir.Module, o xla.Options) (diag.List, bool, error)) (*program, error) {
	src, err := s.text(name)
	if err != nil {
		return nil, err
	}
	m, err := parse(name, src)
	if err != nil {
		return nil, err
	}
	checker := new(verify.Checker)
	if err := checker.Verify(m); err != nil {
		return nil, placed(name, err)
	}
	warnings, local, err := importer(m, xla.Options{Strict: s.Strict})
	inText(warnings, name, src)
	if err != nil {
		return nil, inText(err, name, src)
	}
	if local {
		m.Form |= ir.Expanded | ir.Local
		if err := rewrite.InlineScalarCalls(m); err != nil {
			return nil, err
		}
	}
	return &program{m: m, warnings: warnings, checker: checker}, checker.Verify(m)
}

// placed begins an error of the verifier with the name of the file where its first
// line is about the module, which has no place in it.
func placed(name string, err error) error {
	var errs *verify.Errors
	if errors.As(err, &errs) && len(errs.List) > 0 && errs.List[0].Pos().Line == 0 {
		return inFile(name, err)
	}
	return err
}

// inText gives diagnostics the lines of the text that they are about.
func inText(err error, name string, text []byte) error {
	list, _ := err.(diag.List)
	if len(list) == 0 {
		return err
	}
	src := string(text)
	for _, d := range list {
		if d.File == "" {
			d.File = name
		}
		if d.File == name && d.Line > 0 {
			d.Text = diag.LineOf(src, d.Line)
		}
	}
	return err
}

func (s *Source) text(name string) ([]byte, error) {
	src, err := s.read(name)
	if err != nil {
		return nil, fileError(err)
	}
	if s.Reading != nil {
		s.Reading(len(src))
	}
	if !utf8.Valid(src) {
		line := 1 + bytes.Count(src[:invalidAt(src)], []byte("\n"))
		return nil, fmt.Errorf("%s:%d: the text is not UTF-8", name, line)
	}
	return src, nil
}

func invalidAt(src []byte) int {
	at := 0
	for at < len(src) {
		r, n := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		at += n
	}
	return at
}

// perDevice reports whether m is a local program already: no op is left to
// distribute or to decompose, and it names no mesh, or has collectives.
func perDevice(m *ir.Module) bool {
	var distributed, collective bool
	see := func(s *ir.Sharding) { distributed = distributed || s != nil }
	for _, f := range m.Funcs {
		for _, r := range f.Results {
			see(r.Sharding)
		}
		if f.Body == nil {
			continue
		}
		for _, v := range f.Params() {
			see(v.Sharding)
		}
		f.Body.Walk(func(op *ir.Op) {
			distributed = distributed || op.Kind.Has(ir.Pipeline) || op.Kind.Has(ir.Composite) || expand.Composes(op) || strings.HasPrefix(op.Name(), "sdy.")
			collective = collective || op.Kind.Has(ir.Collective)
			for _, v := range op.Results {
				see(v.Sharding)
			}
		})
	}
	return !distributed && (collective || len(m.Meshes) == 0)
}
