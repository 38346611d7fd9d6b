package driver

import (
	"context"
	"fmt"
	"io"
	"slices"

	"ppc/import/maxtext"
	"ppc/ir/lang"
)

// ImportOptions is a configuration of MaxText and where its program goes.
type ImportOptions struct {
	Files   []string // YAML files
	Set     []string // key=value
	Devices int
	Hub     bool   // parameters are those of Hugging Face's checkpoints
	Out     string // the file that is written; "" is none
}

// An Imported is the program of a configuration.
type Imported struct {
	Text     string
	Warnings []*Warning
	Answers  []maxtext.Given // to the keys that the configuration gives
}

// Import makes a .pp program of a configuration of MaxText, which loads: what its
// schedule or its sizes do not allow is an error here.
func Import(ctx context.Context, opts ImportOptions) (*Imported, error) {
	var files claims
	for _, f := range opts.Files {
		files.reads(newClaim(f, "a configuration"))
	}
	if opts.Out != "" {
		if err := files.writes(opts.Out, "the program"); err != nil {
			return nil, err
		}
	}
	return guard(ctx, "importing", reproducer{}, func() (*Imported, error) {
		r, err := maxtext.Import(maxtext.Options{Files: opts.Files, Set: opts.Set, Devices: opts.Devices, HuggingFace: opts.Hub, ReadFile: readConfiguration})
		if err != nil {
			return nil, err
		}
		name := opts.Out
		if name == "" {
			name = "imported.pp"
		}
		text := r.Text
		p, err := lang.Load(name, lang.Options{Train: true, ReadFile: func(string) ([]byte, error) { return text, nil }})
		if err != nil {
			return nil, err
		}
		return &Imported{Text: string(text), Warnings: slices.Concat(r.Warnings, p.Warnings), Answers: r.Answers}, nil
	})
}

// maxConfiguration bounds what is read of a file.
const maxConfiguration = 1 << 20

// readConfiguration reads one file of a configuration.
func readConfiguration(name string) ([]byte, error) {
	f, err := openInput(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfiguration+1))
	if err != nil {
		return nil, inputError(name, err)
	}
	if len(data) > maxConfiguration {
		return nil, inputError(name, fmt.Errorf("it has more than %d bytes, the most that is read of a configuration", maxConfiguration))
	}
	return data, nil
}
