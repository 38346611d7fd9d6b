package lang

import (
	"embed"
	"os"
	"sync"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/verify"
)

// Options says how a program is read.
type Options = config.Options

// Training is what a step of training is repeated on.
type Training = config.Training

// A Program is a checked .pp program.
type Program struct {
	Module *ir.Module // in typed form, verified
	Model  string
	Seed   int // of initial values, of inputs and of random numbers

	Training *config.Training // what a step of training is repeated on; nil where the module is none

	// Warnings are what the program says that has no effect, or that it probably
	// does not mean, in source order.
	Warnings diag.List

	source *config.Program
}

//go:embed std/*.pp
var std embed.FS

// Load reads the .pp program in file, checks all of it, and builds its module.
// The error is a [diag.List] of everything that is wrong, in source order.
func Load(file string, opts config.Options) (*Program, error) {
	if opts.ReadFile == nil {
		opts.ReadFile = os.ReadFile
	}
	if opts.ReadInclude == nil {
		opts.ReadInclude = opts.ReadFile
	}
	p := newBuilder(opts)
	p.Files = append(p.Files, library()...)
	p.ReadRoot(file)
	p.ReadSets()
	if p.Blind {
		return nil, p.Fail()
	}
	p.Declare()
	m := p.build()
	if p.Count == 0 && m != nil {
		p.CheckEffects()
	}
	if p.Count > 0 {
		return nil, p.Fail()
	}
	if m != nil {
		p.CheckMeshUse()
	}
	p.Warns.Sort()
	if m == nil {
		return &Program{Seed: p.Seed(), Warnings: p.Warns, source: p.Program}, nil
	}
	if err := verify.Verify(m); err != nil {
		panic("lang: " + file + " makes a broken module: " + err.Error())
	}
	return &Program{Module: m, Model: m.Name, Seed: p.Seed(), Training: p.Loop(), Warnings: p.Warns, source: p.Program}, nil
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
