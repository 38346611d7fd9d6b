package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"ppc/driver/binding"
	"ppc/internal/atomicfile"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/lang"
)

// ExportOptions says what becomes of parameters that are written under their names
// in files.
type ExportOptions struct {
	Args  string // the file that has them, or an index of files
	Out   string // the file that is written, or an index of files
	DType string // the element type of floats in it; "" is the program's
	Shard int    // bytes of a file of an index; 0 is 5 GB
}

// defaultShard is the bytes of a file of an index, as Hugging Face has them.
const defaultShard = 5_000_000_000

// Export writes the parameters of a program under the names that it gives them in
// files: one array for each layer, or for each index of another axis, where a name
// has one in braces. It is the inverse of reading them, and says what the file
// lacks.
func Export(ctx context.Context, src *Source, opts ExportOptions) error {
	p, err := src.load(ctx, lang.Options{Sequential: true})
	if err != nil {
		return err
	}
	files := &src.files
	files.reads(newClaim(opts.Args, "the file of --args"))
	if err := files.writes(opts.Out, "the parameters"); err != nil {
		return err
	}
	if !tensorfile.IsIndex(opts.Out) {
		if err := tensorfile.CheckName(opts.Out); err != nil {
			return usage("-o: %v", err)
		}
	}
	arrays, err := guard(ctx, "reading parameters", reproducer{}, func() ([]tensorfile.Named, error) { return inFiles(p.m, opts) })
	if err != nil {
		return err
	}
	if tensorfile.IsIndex(opts.Out) {
		return writeIndexed(ctx, opts, arrays, files)
	}
	return writeArrays(ctx, opts.Out, arrays)
}

// inFiles are the arrays of all parameters of m, under their names in files.
func inFiles(m *ir.Module, opts ExportOptions) ([]tensorfile.Named, error) {
	all, _ := binding.Ports(m, binding.ByName)
	var params []*binding.Port
	for _, p := range all {
		if p.Kind == "param" {
			params = append(params, p)
		}
	}
	args, err := binding.Open(opts.Args, 0, params)
	if err != nil {
		return nil, fileError(err)
	}
	defer args.Close()
	if made := args.MadeUp(params); len(made) > 0 {
		return nil, fmt.Errorf("%s does not have %s", opts.Args, binding.Few(made))
	}
	var out []tensorfile.Named
	var errs []error
	for _, p := range params {
		l, err := args.FileValue(p)
		if err == nil && opts.DType != "" && l.Type.Elem.IsFloat() {
			l, err = binding.Convert(l, ir.DTypeByName(opts.DType))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		keys, apart := p.Keys(p.FileName())
		shape := p.InFile.Shape[apart:]
		data := l.Expand()
		each := len(data) / max(1, len(keys))
		for i, key := range keys {
			out = append(out, tensorfile.Named{Name: key, Array: tensorfile.Array{DType: l.Type.Elem.String(), Shape: append([]int{}, shape...), Data: data[i*each : (i+1)*each]}})
		}
	}
	return out, errors.Join(append(errs, twice(out))...)
}

// twice finds arrays that two parameters are.
func twice(arrays []tensorfile.Named) error {
	seen := make(map[string]bool)
	var names []string
	for _, a := range arrays {
		if seen[a.Name] {
			names = append(names, a.Name)
		}
		seen[a.Name] = true
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("two parameters of the program are %s in files: give one of them another name", strings.Join(names, ", "))
}

// writeIndexed writes the files of an index and, when they are all there, the index.
func writeIndexed(ctx context.Context, opts ExportOptions, arrays []tensorfile.Named, files *claims) error {
	limit := opts.Shard
	if limit == 0 {
		limit = defaultShard
	}
	names, parts, text, err := tensorfile.Shards(opts.Out, arrays, limit)
	if err != nil {
		return err
	}
	for i, name := range names {
		if err := files.writes(name, "parameters"); err != nil {
			return err
		}
		if err := writeArrays(ctx, name, parts[i]); err != nil {
			return err
		}
	}
	return orStopped(ctx, writeError(opts.Out, atomicfile.Write(ctx, opts.Out, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})))
}
