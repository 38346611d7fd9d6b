package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"ppc/driver"
)

type importCmd struct {
	Maxtext maxtextCmd `cmd:"" help:"Make a .pp program of a configuration of MaxText."`
}

type maxtextCmd struct {
	Devices count    `placeholder:"N" help:"Number of devices, in place of compile_topology."`
	Params  string   `name:"parameters" enum:"maxtext,huggingface" default:"maxtext" help:"Whose names, shapes and meaning parameters have: maxtext (the default) or huggingface."`
	Keys    bool     `help:"Print what becomes of each key that is given, in place of the program."`
	Out     string   `short:"o" placeholder:"FILE" help:"Write to a file instead of standard output."`
	Config  []string `arg:"" name:"config" help:"YAML files, such as base.yml, then key=value."`
}

func (c *maxtextCmd) Validate() error {
	if c.Keys && c.Out != "" {
		return errors.New("--keys prints no program: it does not go with -o")
	}
	return nil
}

func (c *maxtextCmd) Run(std *streams) error {
	opts := driver.ImportOptions{Devices: int(c.Devices), Hub: c.Params == "huggingface", Out: c.Out}
	for _, arg := range c.Config {
		if slices.Contains([]string{".yml", ".yaml"}, filepath.Ext(arg)) && len(opts.Set) == 0 {
			opts.Files = append(opts.Files, arg)
		} else {
			opts.Set = append(opts.Set, arg)
		}
	}
	r, err := driver.Import(std.ctx, opts)
	if err != nil {
		return err
	}
	for _, w := range r.Warnings {
		std.warn(w)
	}
	if !c.Keys {
		return std.print(c.Out, r.Text)
	}
	w := tabwriter.NewWriter(std.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tVALUE\tIS\tSAYS")
	for _, a := range r.Answers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Name, std.quote(a.Value), a.Answer, a.Says)
	}
	return w.Flush()
}

type exportCmd struct {
	settings
	File  string `arg:"" help:"${file}"`
	Args  string `required:"" placeholder:"FILE" help:"Parameters, as run takes and writes them: .npz, .safetensors, or .safetensors.index.json."`
	Out   string `short:"o" required:"" placeholder:"FILE" help:"Write them under their names in files: .npz, .safetensors, or .safetensors.index.json with files beside it."`
	DType string `name:"dtype" enum:",bf16,f16,f32,f64" default:"" help:"Element type of floats: bf16, f16, f32 or f64; the program's by default."`
	Shard int    `name:"shard-size" placeholder:"BYTES" help:"Bytes of each file beside an index; 5000000000 by default."`
}

func (c *exportCmd) Run(std *streams) error {
	return driver.Export(std.ctx, c.source(c.File, std), driver.ExportOptions{Args: c.Args, Out: c.Out, DType: c.DType, Shard: c.Shard})
}
