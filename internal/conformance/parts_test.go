package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ppc/driver/suite"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/passes"
)

// runParts partitions the functions of the first part of a unit, puts them
// beside the second part, and runs its @main. Where the unit is about
// collectives, every value has a sharding already.
func runParts(ctx context.Context, on suite.Machine, u Unit, collective bool) error {
	parts, err := u.Parts()
	if err != nil {
		return err
	}
	global, err := mlir.Parse(u.Path, []byte(parts["part1.mlir"]))
	if err != nil {
		return err
	}
	if err := verify.Verify(global); err != nil {
		return err
	}
	joined, err := mlir.Parse(u.Path, []byte(parts["part2.mlir"]))
	if err != nil {
		return err
	}
	names := renames(parts[""])
	p := &partitioner{meshes: global.Meshes, passes: []string{"propagate", "pad", "choose", "collectives", "localize"}}
	if collective {
		p.passes = p.passes[1:]
	}
	if strings.Contains(parts[""], "--replica_count=2 --partition_count=1") {
		p.replicas = 2
	}
	for _, f := range global.Funcs {
		if name := sequentialName(f.Name); name != f.Name && global.Func(name) == nil {
			joined.Funcs = append(joined.Funcs, unsharded(f, name))
		}
		if !strings.HasPrefix(f.Name, "sequential") {
			if err := p.partition(f); err != nil {
				return fmt.Errorf("%s: %w", ir.SymbolText(f.Name), err)
			}
		}
		for _, name := range names(f.Name) {
			one := f.Clone()
			one.Name = name
			joined.Funcs = append(joined.Funcs, one)
		}
	}
	joined.Meshes = global.Meshes
	if err := verify.Verify(joined); err != nil {
		return err
	}
	if joined.Main() == nil {
		return errors.New("there is no @main")
	}
	return on.Main(ctx, joined, joined.Main(), nil)
}

// renames reads from the RUN lines, which rename functions with sed, under
// which names a function of the first part stands in the joined module.
func renames(head string) func(name string) []string {
	var renames [][2]string
	for line := range strings.Lines(head) {
		if _, rest, ok := strings.Cut(line, "sed 's/"); ok {
			if f := strings.Split(rest, "/"); len(f) > 2 {
				renames = append(renames, [2]string{f[0], f[1]})
			}
		}
	}
	return func(name string) []string {
		var names []string
		for _, r := range renames {
			if name == r[0] {
				names = append(names, r[1])
			}
		}
		if names == nil {
			return []string{name}
		}
		return names
	}
}

// sequentialName is the name under which the unpartitioned form of a function
// stands beside the partitioned one.
func sequentialName(name string) string {
	for parallel, sequential := range map[string]string{"parallel": "sequential", "transformed": "original"} {
		if rest, ok := strings.CutPrefix(name, parallel+"_"); ok {
			return sequential + "_" + rest
		}
	}
	return name
}

// unsharded is f under another name, without shardings.
func unsharded(f *ir.Func, name string) *ir.Func {
	f = f.Clone()
	f.Name = name
	drop := func(vs []*ir.Value) {
		for _, v := range vs {
			v.Sharding = nil
		}
	}
	drop(f.Params())
	f.Body.Walk(func(op *ir.Op) { drop(op.Results) })
	for i := range f.Results {
		f.Results[i].Sharding = nil
	}
	return f
}

// A partitioner makes functions of a global program functions for one device.
type partitioner struct {
	meshes   []*ir.Mesh
	passes   []string
	replicas int
}

func (p *partitioner) partition(f *ir.Func) error {
	one := &ir.Module{Name: f.Name, Meshes: p.meshes, Funcs: []*ir.Func{f}, Form: ir.Expanded}
	name := f.Name
	f.Name = "main"
	defer func() { f.Name = name }()
	if p.replicas > 0 {
		one.Attrs.Set("mhlo.num_replicas", ir.Int{Value: p.replicas, Type: ir.I32})
	}
	for _, name := range p.passes {
		if err := passes.RunNamed(name, one); err != nil {
			return err
		}
	}
	return nil
}
