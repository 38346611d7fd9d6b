package maxtext

import (
	"os"
	"slices"

	"ppc/internal/diag"
)

// Options is a configuration as a command line gives it.
type Options struct {
	Files   []string // YAML files, of which the later override the earlier
	Set     []string // key=value
	Devices int      // how many there are; 0 is what the configuration says

	// HuggingFace gives parameters the names, the shapes and the meaning that they
	// have in checkpoints of Hugging Face.
	HuggingFace bool

	ReadFile func(string) ([]byte, error)
}

// A Result is the program that a configuration is.
type Result struct {
	Text     []byte // a formatted .pp file
	Warnings diag.List
	Answers  []Given
}

// A Given is a key that the configuration gives, and what becomes of it.
type Given struct {
	Key
	Value string
}

// Import makes a .pp program of a configuration. The error is a [diag.List] of
// everything that is wrong.
func Import(opts Options) (*Result, error) {
	if opts.ReadFile == nil {
		opts.ReadFile = os.ReadFile
	}
	c := &config{opts: opts, values: make(map[string]entry), args: make(map[string]bool)}
	c.load()
	if len(c.list) > 0 {
		return nil, c.err()
	}
	c.check()
	p := c.plan()
	if len(c.list) > 0 {
		return nil, c.err()
	}
	r := &Result{Text: p.print(), Answers: c.answers()}
	c.warns.Sort()
	r.Warnings = c.warns
	return r, nil
}

func (c *config) err() error {
	c.list.Sort()
	return c.list.Err()
}

// answers are the keys that were given, in the order of the table.
func (c *config) answers() []Given {
	var out []Given
	for _, k := range Keys() {
		if e, ok := c.values[k.Name]; ok {
			out = append(out, Given{k, show(e.value)})
		}
	}
	return slices.Clip(out)
}
