package lint

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower"
	"ppc/lower/stats"
	"ppc/passes/pass"
)

// stageGathers finds all-gathers over the stages of what is no weight: every
// stage gets what one of them would compute with.
func stageGathers(p *program) {
	stages := p.stages()
	p.collectives(func(c *stats.Collective) {
		v := c.Op.Operands[0]
		if !stages.joins(p, c.Op) || p.weights.Of[v] != nil || !v.Type.Elem.IsFloat() || c.Op.Result().Type.NumElements() <= c.Group {
			return
		}
		f := p.at(c, Warning, "%s gives every stage what the others have: %s", over(c), each(c.Executions, c.Bytes))
		p.cure(f, "keep it sharded along stage where it is read, or, if it is a side input of a pipeline, compute it in the layer",
			"keep it sharded along the stages where it is read, or send it on with a collective_permute")
	}, ir.AllGather)
}

// stages is the axes along which, or the groups of devices between which, the
// stages of the pipeline are sharded.
type stages struct {
	axes  map[string]bool // by name
	rings []map[int]int   // where text lists devices: of each permute, the ring that a device is in
}

// stages are the axis called stage, where there is one; else what permutes in
// loops move along.
func (p *program) stages() *stages {
	s := &stages{axes: make(map[string]bool)}
	for _, mesh := range p.m.Meshes {
		if mesh.AxisSize("stage") > 1 {
			s.axes["stage"] = true
		}
	}
	if len(s.axes) > 0 {
		return s
	}
	seen := make(map[string]bool)
	p.collectives(func(c *stats.Collective) {
		key := transfers(c.Op)
		if seen[key] || p.around(c.Op) == nil {
			return
		}
		seen[key] = true
		switch a := c.Op.Attrs.Get("source_target_pairs").(type) {
		case ir.AxisShift:
			for _, r := range a.Axes {
				s.axes[r.Name] = true
			}
		case *ir.Literal:
			of := make(map[int]int)
			for i, r := range ringsOf(lists(a)) {
				for _, d := range r.devices {
					of[d] = i
				}
			}
			s.rings = append(s.rings, of)
		}
	}, ir.CollectivePermute)
	return s
}

// joins reports whether a collective joins devices of different stages.
func (s *stages) joins(p *program, op *ir.Op) bool {
	mesh, axes := p.axesOf(op)
	if slices.ContainsFunc(axes, func(r ir.AxisRef) bool { return s.axes[r.Name] }) {
		return true
	}
	groups := groupsOf(op)
	if mesh != nil && len(s.rings) > 0 {
		groups = lower.Groups(mesh, axes)
	}
	for _, of := range s.rings {
		for _, g := range groups {
			in := make(map[int]bool)
			for _, d := range g {
				r, ok := of[d]
				if ok && in[r] {
					return true
				}
				in[r] = in[r] || ok
			}
		}
	}
	return false
}

func common(a, b []int) int {
	n := 0
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}

// agree is what makes the shardings before and after r agree, or says that they
// are not to.
func agree(r *pass.Replication) string {
	switch {
	case r == nil:
		return ""
	case r.By == "":
		return "constrain it to one sharding before and after, or reshard it explicitly"
	}
	if rule := r.From.Dims[r.Dim].Rule; rule != nil && rule.Name() != "" {
		return fmt.Sprintf("shard another axis than %[1]s, or ask for it before the %[2]s with constrain(…, {%[1]s -> none})", rule.Name(), strings.TrimPrefix(r.By, "stablehlo."))
	}
	return fmt.Sprintf("shard it along another dimension than %d, or reshard it explicitly before the %s", r.Dim, strings.TrimPrefix(r.By, "stablehlo."))
}

// replications finds what is gathered only to be sliced again: the warnings of the
// partitioner, and, in a program that has been partitioned, all-gathers of
// which each device reads its own shard.
func replications(p *program) {
	var warned []*pass.Error
	if p.passed != nil {
		warned = p.passed.Warned
	}
	for _, w := range warned {
		f := &Finding{Lint: p.lint.Name, Severity: Warning, Executions: 1, Msg: w.Msg}
		p.cure(f, agree(w.Replication), "")
		if op := w.Op; op != nil {
			f.Name, f.Op = stats.NameOf(op), op.Name()
			if o := op.Origin; o != nil {
				f.Pos, f.Layer = o.Place(), o.Layer()
			}
		}
		p.found = append(p.found, f)
	}
	p.collectives(func(c *stats.Collective) {
		v, dim := c.Op.Result(), c.Op.Int("all_gather_dim")
		dims := make([]bool, v.Type.Rank())
		dims[dim] = true
		row := p.rowRead(v, dim)
		switch {
		case p.ownShard(v, dims):
			f := p.at(c, Warning, "%s, %s, of which each device reads its own shard", over(c), each(c.Executions, c.Bytes))
			p.cure(f, "constrain it to one sharding where it is made and where it is read", "an all_to_all or a collective_permute in place of it moves less")
		case row != nil && p.placedAt(row) && p.weights.Of[v] == nil:
			f := p.at(c, Warning, "%s, %s, of which each device reads %s", over(c), each(c.Executions, c.Bytes), size(row.Result().Type.Bytes()))
			p.cure(f, "", instead)
		}
	}, ir.AllGather)
}

// instead is the cure for a gather of which each device reads one row: a slice
// before it if the row is the same within the group, an all-to-all if it is not.
const instead = "a slice before it, or an all_to_all in place of it, moves less"
