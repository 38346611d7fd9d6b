package eval

import (
	"errors"
	"fmt"
	"slices"

	"ppc/ir"
)

// manualComputation shards the operands along the manual axes, runs the region once
// for every coordinate along these axes, all concurrently, so that collectives
// among them meet, and puts the shards of the results together. Along free axes one
// run represents all devices.
func manualComputation(e *exec) ([]*tensor, error) {
	ins, _ := e.op.Attrs.Get("in_shardings").(ir.PerValue)
	outs, _ := e.op.Attrs.Get("out_shardings").(ir.PerValue)
	if len(ins) != len(e.in) || len(outs) != len(e.op.Results) {
		return nil, fmt.Errorf("%d and %d shardings for %d operands and %d results", len(ins), len(outs), len(e.in), len(e.op.Results))
	}
	g, err := e.manualGrid(slices.Concat(ins, outs))
	if err != nil {
		return nil, err
	}
	shards := make([][]*tensor, len(g.positions))
	for i, pos := range g.positions {
		for k, x := range e.in {
			if x, err = g.shard(x, ins[k], pos); err != nil {
				return nil, fmt.Errorf("operand %d: %w", k, err)
			}
			shards[i] = append(shards[i], x)
		}
	}
	results := make([][]*tensor, len(shards))
	like := *e.p
	like.partitions = max(like.partitions, g.mesh.Size())
	err = e.p.w.fork(like, g.ranks(), func(q *process, i int) error {
		if err := q.fits("the region", e.op.Regions[0].Args, shards[i]); err != nil {
			return q.located(e.op, err)
		}
		var err error
		results[i], err = q.block(make(frame, len(e.fr)), e.op.Regions[0], shards[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]*tensor, len(outs))
	for k := range outs {
		out[k] = e.result(k)
		parts, positions, err := g.combined(e, column(results, k), outs[k])
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", k, err)
		}
		if err := g.join(out[k], parts, positions, outs[k]); err != nil {
			return nil, fmt.Errorf("result %d: %w", k, err)
		}
	}
	return out, nil
}

// A manualGrid is the places of a mesh that a manual computation runs on.
type manualGrid struct {
	mesh      *ir.Mesh
	manual    []string
	positions []int // in the mesh, row-major along the manual axes
}

func (e *exec) manualGrid(shardings []*ir.Sharding) (*manualGrid, error) {
	if e.p.w.devices > 1 {
		return nil, errors.New("a manual computation in a per-device program")
	}
	g := &manualGrid{mesh: &ir.Mesh{}}
	axes, _ := e.op.Attrs.Get("manual_axes").(ir.Array)
	for _, a := range axes {
		name, _ := a.(ir.Str)
		g.manual = append(g.manual, string(name))
	}
	refs := ir.Axs(g.manual...)
	name := ""
	if len(shardings) > 0 {
		name = shardings[0].Mesh
	} else if i := slices.IndexFunc(e.p.w.m.Meshes, func(mesh *ir.Mesh) bool { return hasAxes(mesh, refs) == nil }); i >= 0 {
		name = e.p.w.m.Meshes[i].Name
	}
	if len(shardings) > 0 || len(refs) > 0 {
		var err error
		if g.mesh, err = e.mesh(name, refs); err != nil {
			return nil, err
		}
	}
	for _, s := range shardings {
		for d := range s.Dims {
			if _, err := e.mesh(s.Mesh, s.Axes(d)); err != nil {
				return nil, err
			}
		}
	}
	shape, step := axesLattice(g.mesh, refs)
	first := g.mesh.Place(e.p.rank) // along the manual axes
	for _, r := range refs {
		first -= first / g.mesh.Stride(r) % g.mesh.RefSize(r) * g.mesh.Stride(r)
	}
	g.positions = offsets(shape, lattice{first, step})
	return g, nil
}

// ranks are the devices at the places of g.
func (g *manualGrid) ranks() []int {
	ranks := make([]int, len(g.positions))
	for i, pos := range g.positions {
		ranks[i] = g.mesh.Device(pos)
	}
	return ranks
}

// shards returns the number of shards along the manual axes of s in each dimension,
// and the index of the shard at the coordinates pos.
func (g *manualGrid) shards(s *ir.Sharding, pos int) (parts, index []int) {
	parts, index = make([]int, len(s.Dims)), make([]int, len(s.Dims))
	for d := range s.Dims {
		parts[d] = 1
		for _, r := range s.Axes(d) {
			if slices.Contains(g.manual, r.Name) {
				n := g.mesh.RefSize(r)
				parts[d] *= n
				index[d] = index[d]*n + pos/g.mesh.Stride(r)%n
			}
		}
	}
	return parts, index
}

// shard returns the shard of x at the coordinates pos.
func (g *manualGrid) shard(x *tensor, s *ir.Sharding, pos int) (*tensor, error) {
	if len(s.Dims) != len(x.shape) {
		return nil, fmt.Errorf("sharding %s of %s", s, x)
	}
	parts, index := g.shards(s, pos)
	for d := range parts {
		var err error
		if x, err = sliceOf(x, d, index[d], parts[d]); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// combined is the shards and their coordinates, with those along manual axes that
// are unreduced in s replaced by their reduction.
func (g *manualGrid) combined(e *exec, parts []*tensor, s *ir.Sharding) (out []*tensor, positions []int, err error) {
	kind, ok := map[string]ir.Kind{"": ir.Add, "max": ir.Maximum, "min": ir.Minimum}[s.ReducedBy]
	if !ok {
		return nil, nil, fmt.Errorf("unreduced by %s", s.ReducedBy)
	}
	at := make(map[int]int) // from coordinates with 0 along the axes to the index of the shard
	for i, pos := range g.positions {
		first := pos
		for _, r := range s.Unreduced {
			if slices.Contains(g.manual, r.Name) {
				first -= pos / g.mesh.Stride(r) % g.mesh.RefSize(r) * g.mesh.Stride(r)
			}
		}
		k, more := at[first]
		if !more {
			at[first] = len(out)
			out, positions = append(out, parts[i]), append(positions, pos)
			continue
		}
		op := &ir.Op{Kind: kind, Origin: e.op.Origin}
		op.Results = []*ir.Value{{Type: e.op.Results[0].Type.WithElem(parts[i].elem).WithShape(parts[i].shape...), Def: op}}
		sum, err := (&exec{e.p, e.fr, op, []*tensor{out[k], parts[i]}}).run()
		if err != nil {
			return nil, nil, err
		}
		out[k] = sum[0]
	}
	return out, positions, nil
}

// join writes the shards into out. Of replicated shards, the first is taken.
func (g *manualGrid) join(out *tensor, parts []*tensor, positions []int, s *ir.Sharding) error {
	if len(s.Dims) != len(out.shape) {
		return fmt.Errorf("sharding %s of %s", s, out)
	}
	for i := len(parts) - 1; i >= 0; i-- {
		x := parts[i]
		n, index := g.shards(s, positions[i])
		at := make([]int, len(index))
		for d := range index {
			if x.shape[d]*n[d] != out.shape[d] {
				return fmt.Errorf("%d parts of %s along dimension %d do not make %s", n[d], x, d, out)
			}
			at[d] = index[d] * x.shape[d]
		}
		move(x.shape, out, dense(out.shape).from(at), x, dense(x.shape))
	}
	return nil
}
