package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ppc/driver/binding"
	"ppc/internal/diag"
	"ppc/internal/spell"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/lang/config"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/ir/xla"
	"ppc/lower"
	"ppc/lower/hlo"
	"ppc/lower/stats"
	"ppc/passes"
	"ppc/passes/pass"
	"ppc/runtime"
)

// A program is a program that has been read, and what its language says of it.
type program struct {
	m      *ir.Module
	naming binding.Naming
	seed   uint64

	files    *claims                    // of the command
	rebuild  func() (*ir.Module, error) // returns m built anew; nil if that is not possible
	checker  *verify.Checker            // that has verified m, as it was read; nil where none has
	compiled bool                       // m is the program per device
	hlo      bool                       // read from HLO text
	training *lang.Training             // nil where the program is no step of training

	lang     *lang.Program          // of a .pp program
	warnings diag.List              // what its language warns of, in source order
	passed   diag.List              // settings that passes have warned of
	warn     func(*diag.Diagnostic) // who hears of warnings; may be nil
	hear     func(w *pass.Error)    // what passes warn of; nil: warn gets it

	each []func(n int, p *pass.Pass, m *ir.Module) error // hear of every pass that has run
}

// sayWarnings reports the warnings of the language.
func (p *program) sayWarnings() {
	if p.warn == nil {
		return
	}
	for _, w := range p.warnings {
		p.warn(w)
	}
}

// warnOfPass reports what a pass warns of, unless the same setting has been warned of.
func (p *program) warnOfPass(w *pass.Error) {
	d := p.passWarning(w)
	same := func(other *diag.Diagnostic) bool {
		return other.Warning == d.Warning && other.File == d.File && other.Line == d.Line && other.Col == d.Col
	}
	if d.Warning == config.UnusedSetting {
		if slices.ContainsFunc(p.warnings, same) || slices.ContainsFunc(p.passed, same) {
			return
		}
		p.passed = append(p.passed, d)
	}
	p.warn(d)
}

// passWarning is what a pass warns of as a diagnostic: at the setting that it is
// about, where that was given, else at the op, with the pass's name.
func (p *program) passWarning(w *pass.Error) *diag.Diagnostic {
	if w.Setting != "" && p.lang != nil {
		if d := p.lang.WarnSetting(w.Setting, w.Kept, w.Msg); d != nil {
			return d
		}
	}
	d := &diag.Diagnostic{Warning: w.Pass, Msg: w.Msg}
	if name := w.Name(); name != "" {
		d.Msg = name + ": " + d.Msg
	}
	if pos := w.Pos(); pos.Line > 0 {
		d.File, d.Line, d.Col = pos.File, pos.Line, pos.Col
	}
	return d
}

// A PassInfo is one row of the pass table.
type PassInfo struct {
	Name, Doc         string
	Requires, Ensures string
}

// Passes returns the pass table, in the order in which passes run.
func Passes() []PassInfo {
	infos := make([]PassInfo, len(passes.Table))
	for i := range passes.Table {
		p := &passes.Table[i]
		infos[i] = PassInfo{p.Name, p.Doc, p.Requires.String(), p.Ensures.String()}
	}
	return infos
}

// LowerOptions says how far to lower and what to print.
type LowerOptions struct {
	Emit   string // ir, stablehlo, hlo, stats or stats-json; "" is hlo where Out is an .hlo file, ir elsewhere
	After  string // the last pass; "" for all
	DumpTo string // a folder for the program after each pass; "" for none
	Out    string // the file that the text is for; "" where it is for none

	// Platform is whose compiler StableHLO or HLO is for. "" is one that takes dots by
	// groups as they are; XLA's for CPUs has none, that for TPUs those of two dimensions.
	Platform string

	implied bool // Emit follows from Out
}

// Lower compiles the program and returns it as text.
func Lower(ctx context.Context, src *Source, opts LowerOptions) (string, error) {
	if opts.Emit == "" {
		opts.Emit, opts.implied = EmitFor(opts.Out), true
	}
	if err := checkPass(opts.After); err != nil {
		return "", err
	}
	p, err := src.load(ctx, lang.Options{Train: true})
	if err != nil {
		return "", err
	}
	if opts.Out != "" {
		if err := src.files.writable(opts.Out, "the output"); err != nil {
			return "", err
		}
	}
	p.sayWarnings()
	if d := misnamed(opts); d != nil && p.warn != nil {
		p.warn(d)
	}
	if err := p.compile(ctx, opts.After, opts.DumpTo); err != nil {
		return "", err
	}
	return p.text(ctx, opts)
}

// EmitFor is what text a file is for by its extension, where nothing else is asked for: hlo or ir.
func EmitFor(file string) string {
	if strings.EqualFold(filepath.Ext(file), languages["hlo"].ext) {
		return "hlo"
	}
	return "ir"
}

// misnamed warns of a file whose extension says that another language is in it than that of the
// text that is asked for.
func misnamed(opts LowerOptions) *Warning {
	r := readings[opts.Emit]
	for name, row := range languages {
		if r.lang != "" && name != r.lang && strings.EqualFold(filepath.Ext(opts.Out), row.ext) {
			return &Warning{File: opts.Out, Warning: "extension", Msg: fmt.Sprintf("%s writes the text of %s files, and commands read %s files as another language: call it %s, or read it with --lang=%s", r.flag, languages[r.lang].ext, row.ext, languages[r.lang].ext, r.lang)}
		}
	}
	return nil
}

func checkPass(name string) error {
	names := passes.Names()
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	hint := "have " + strings.Join(names, ", ")
	if near := spell.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return usage("--after=%s: there is no such pass; %s", name, hint)
}

// compile runs the passes up to the one called after, or all. With a folder,
// what each pass made is left there.
func (p *program) compile(ctx context.Context, after, dumpTo string) error {
	if p.compiled {
		return nil
	}
	cfg := passes.Config{Context: ctx, After: after, Warn: p.hear, Rebuild: p.rebuild, Checker: p.checker}
	p.checker = nil // of what the passes make
	if p.hear == nil && p.warn != nil {
		cfg.Warn = p.warnOfPass
	}
	each := slices.Clone(p.each)
	if dumpTo != "" {
		if err := os.MkdirAll(dumpTo, 0o777); err != nil {
			return fileError(err)
		}
		d := &dumper{ctx: ctx, files: p.files, dir: dumpTo, last: mlir.Print(p.m)}
		each = append(each, d.dump)
	}
	cfg.Each = func(n int, q *pass.Pass, m *ir.Module) error {
		for _, hear := range each {
			if err := hear(n, q, m); err != nil {
				return err
			}
		}
		compiled(ctx, n)
		return nil
	}
	_, err := guard(ctx, "compiling", moduleReproducer(p.m, dumpTo, "compile", "ppc lower %s"), func() (any, error) { return nil, passes.Run(p.m, cfg) })
	if err := passBug(err, dumpTo); err != nil {
		return p.placedInMain(err)
	}
	p.compiled = after == ""
	return p.checkMemory()
}

// placedInMain gives an error of a pass that blames no op the place of main, where the
// program is no text of ours, of which the error would name a setting.
func (p *program) placedInMain(err error) error {
	var e *pass.Error
	if main := p.m.Main(); p.lang == nil && main != nil && main.Origin != nil && main.Origin.Pos.Line > 0 && errors.As(err, &e) && e.Op == nil {
		return fmt.Errorf("%s: %w", main.Origin.Pos, err)
	}
	return err
}

// checkMemory warns of a program per device that takes more memory than the
// hardware block says a device has.
func (p *program) checkMemory() error {
	if p.lang == nil || p.warn == nil || !p.lang.LimitsMemory() || !p.m.Form.Has(ir.Local) {
		return nil
	}
	s, err := measured(p.m)
	if err != nil {
		return err
	}
	if d := p.lang.WarnMemory(s.Memory.Peak, sizeText); d != nil {
		p.warn(d)
	}
	return nil
}

// unattended leaves out what the program hands to the host, and warns of it: it runs
// where nobody there reads that.
func (p *program) unattended(s *Source) error {
	if p.m == nil {
		return nil
	}
	warnings, err := xla.Unattended(p.m, xla.Options{Strict: s.Strict})
	if len(warnings) == 0 && err == nil {
		return nil
	}
	text, _ := s.read(s.name()) // for the lines, as they are now
	inText(warnings, s.name(), text)
	p.warnings = append(p.warnings, warnings...)
	return inText(err, s.name(), text)
}

// executable makes of HLO text, which XLA may have fused, the ops that run.
func (p *program) executable() error {
	if !p.hlo {
		return nil
	}
	m, err := hlo.Runnable(p.m)
	if err != nil {
		return err
	}
	form := m.Form
	m.Form = 0 // what XLA has and we make of other ops is expanded here
	if err := passes.RunNamed("expand", m); err != nil {
		return err
	}
	m.Form = form
	p.m = m
	return verify.Verify(m)
}

// loads compiles a program that has been read and reports everything for which
// it would not run; arguments and memory aside.
func (p *program) loads(ctx context.Context) error {
	if err := p.executable(); err != nil {
		return err
	}
	if err := p.compile(ctx, "", ""); err != nil {
		return err
	}
	_, err := guard(ctx, "loading", moduleReproducer(p.m, "", "run", "ppc run %s"), func() (any, error) { return nil, runtime.Check(p.m) })
	return err
}

// A dumper writes one numbered file for each pass that changed something.
type dumper struct {
	ctx       context.Context
	files     *claims
	dir, last string
}

func (d *dumper) dump(n int, p *pass.Pass, m *ir.Module) error {
	text := mlir.Print(m)
	if text == d.last {
		return nil
	}
	d.last = text
	path := filepath.Join(d.dir, fmt.Sprintf("%02d-%s.mlir", n, p.Name))
	if err := d.files.writes(path, "what the pass "+p.Name+" made"); err != nil {
		return err
	}
	return WriteFile(d.ctx, path, []byte(text))
}

// A reading is one way to print a program.
type reading struct {
	flag  string  // that asks for it
	form  ir.Form // that the program must have
	since string  // why no earlier form will do
	lang  string  // that the text is in; "" where it is no program
	print func(m *ir.Module) (string, error)
}

// readings is how programs are printed.
var readings = map[string]reading{
	"ir": {flag: "--emit=ir", lang: "mlir", print: func(m *ir.Module) (string, error) { return mlir.Print(m), nil }},
	"stablehlo": {flag: "--emit=stablehlo", lang: "mlir", form: ir.Expanded, print: lower.StableHLO,
		since: "the program has pp ops, which StableHLO lacks, until the pass expand; --emit=ir prints them"},
	"hlo": {flag: "--emit=hlo", lang: "hlo", form: ir.Local, print: hlo.Print,
		since: "HLO is text of the per-device program, which is there from the pass localize on"},
	"stats":      {flag: "--stats", form: ir.Local, since: perDeviceOnly, print: measure((*stats.Stats).Text)},
	"stats-json": {flag: "--stats --json", form: ir.Local, since: perDeviceOnly, print: measure((*stats.Stats).JSON)},
}

const perDeviceOnly = "what is measured is the per-device program, which is there from the pass localize on"

// measure prints the statistics of a program by text.
func measure(text func(*stats.Stats) string) func(m *ir.Module) (string, error) {
	return func(m *ir.Module) (string, error) {
		s, err := measured(m)
		if err != nil {
			return "", err
		}
		return diag.Printable(text(s)), nil
	}
}

// measured is what m does in a step, whether XLA has fused it or not.
func measured(m *ir.Module) (*stats.Stats, error) {
	u, err := hlo.Unfuse(m)
	if err != nil {
		return nil, err
	}
	return stats.Of(u)
}

// forPlatform is m as the compiler of a platform takes it.
func forPlatform(m *ir.Module, platform string) *ir.Module {
	switch platform {
	case "":
		return m
	case cpu:
		return lower.Masked(m)
	}
	return lower.Flat(m)
}

// text prints the program in the reading that opts asks for.
func (p *program) text(ctx context.Context, opts LowerOptions) (string, error) {
	reading := readings[opts.Emit]
	if opts.implied && opts.Emit == "hlo" {
		reading.flag = "-o " + opts.Out
	}
	if opts.After != "" && !p.m.Form.Has(reading.form) { // all passes make every form, of a program that claims part of them too
		return "", usage("%s --after=%s: %s", reading.flag, opts.After, reading.since)
	}
	r := moduleReproducer(p.m, opts.DumpTo, "emit", "ppc lower "+reading.flag+" %s")
	return guard(ctx, "printing "+reading.flag, r, func() (string, error) {
		if opts.Emit == "stablehlo" { // which has nothing that is fused
			if err := p.executable(); err != nil {
				return "", err
			}
		}
		return reading.print(forPlatform(p.m, opts.Platform))
	})
}
