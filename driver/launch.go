package driver

import (
	"context"
	"math"
	"path/filepath"
	"slices"

	"ppc/driver/binding"
	"ppc/driver/job"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/lower"
)

// LaunchOptions says what job is written.
type LaunchOptions struct {
	Dir   string // for the files
	Hosts int    // that the templates ask for
	Seed  *uint64
	Steps *int // of training; nil for the program's own
}

// Launch writes a job that a cluster with JAX runs: the program for all devices with
// its shardings, what its parameters and results are, and a script.
func Launch(ctx context.Context, src *Source, opts LaunchOptions) error {
	read := lang.Options{Train: opts.Steps == nil || *opts.Steps > 0}
	if opts.Steps != nil {
		if *opts.Steps < 0 || *opts.Steps > math.MaxInt32 {
			return usage("--steps %d: want a number from 0 to %d", *opts.Steps, math.MaxInt32)
		}
		read.Steps = *opts.Steps
	}
	p, err := src.load(ctx, read)
	if err != nil {
		return err
	}
	boundInputs(p.m)
	p.sayWarnings()
	if err := p.compile(ctx, globalAfter, ""); err != nil {
		return err
	}
	order := placeDevices(p.m)
	text, err := lower.StableHLO(p.m)
	if err != nil {
		return err
	}
	j, err := newJob(p, p.m)
	if err != nil {
		return err
	}
	j.Order = order
	if opts.Hosts < 0 || opts.Hosts > 0 && j.Devices%opts.Hosts != 0 {
		return usage("--hosts %d: the program's %d devices do not divide among them", opts.Hosts, j.Devices)
	}
	j.Hosts = opts.Hosts
	if opts.Steps != nil && *opts.Steps > 0 && p.training != nil {
		j.Steps = *opts.Steps
	}
	if opts.Seed != nil {
		j.Seed = *opts.Seed
	}
	return orStopped(ctx, fileError(j.Write(ctx, opts.Dir, text)))
}

// globalAfter is the pass after which a program is the one for all devices that JAX
// gets: every value has its sharding.
const globalAfter = "propagate"

// placeDevices gives the devices of m the numbers of their places in the mesh, and
// returns the numbers that the devices at these places had; nil where that changes
// none. In a program that JAX calls, a device's number is its place in the mesh of the
// arguments, so a mesh over slices is one whose devices come in another order.
func placeDevices(m *ir.Module) []int {
	if len(m.Meshes) == 0 {
		return nil
	}
	first := m.Meshes[0]
	order := make([]int, first.Size())
	moved := false
	for place := range order {
		order[place] = first.Device(place)
		moved = moved || order[place] != place
	}
	if !moved {
		return nil
	}
	m.Meshes = slices.Clone(m.Meshes)
	for i, mesh := range m.Meshes {
		c := *mesh
		if c.DeviceIDs = nil; len(c.Axes) == 0 {
			c.DeviceIDs = []int{first.Place(mesh.Device(0))}
		}
		c.Attrs = slices.Clone(mesh.Attrs)
		c.Attrs.Delete(ir.DCN)
		m.Meshes[i] = &c
	}
	return order
}

// newJob is the job of p, whose program for all devices is m.
func newJob(p *program, m *ir.Module) (*job.Job, error) {
	j := &job.Job{Name: m.Name, Devices: max(binding.NumDevices(m), 1), Seed: p.seed, Steps: 1, Mesh: [][2]any{}}
	if t := p.training; t != nil {
		j.Steps = t.Steps
		if t.Data != "" {
			path, err := filepath.Abs(t.Data)
			if err != nil {
				return nil, err
			}
			j.Data = path
		}
	}
	var mesh *ir.Mesh
	if len(m.Meshes) > 0 {
		mesh = m.Meshes[0]
		for _, a := range mesh.Axes {
			j.Mesh = append(j.Mesh, [2]any{a.Name, a.Size})
		}
	}
	f := m.Main()
	params, results := binding.Ports(m, p.naming)
	for i, port := range params {
		q := newJobPort(port)
		if err := q.Describe(port.Global, f.Params()[i].Sharding, mesh); err != nil {
			return nil, err
		}
		j.Params = append(j.Params, q)
	}
	for i, port := range results {
		q := newJobPort(port)
		if err := q.Describe(port.Global, f.Results[i].Sharding, mesh); err != nil {
			return nil, err
		}
		j.Results = append(j.Results, q)
	}
	return j, nil
}

func newJobPort(p *binding.Port) *job.Port {
	q := &job.Port{Name: p.Name, Kind: p.Kind, Init: p.Init, Max: p.Max, Batches: p.Batches, Alias: p.Alias}
	q.Held = p.Global.NumElements()
	if p.Rows != nil {
		row := p.InFile.NumElements() / p.InFile.Shape[0]
		q.First, q.Held = p.Rows[0]*row, (p.Rows[1]-p.Rows[0])*row
	}
	return q
}
