package runtime

import (
	"slices"

	"ppc/ir"
	"ppc/runtime/kernel"
)

// A panelled value is the result of an all-gather that nothing but products read: it
// exists in the orders in which they do, and in no other. Its buffer has one element for
// each of them.
type panelled struct {
	forms   []*kernel.Panels
	classes []int
}

// panelled returns what the result i of s.op, an all-gather along dim, is as a panelled
// value; nil if it is none.
func (c *compiler) panelled(s *step, i, dim int) *panelled {
	v, part := s.op.Results[i], s.op.Operands[i].Type
	if c.checks || c.exe.unfused || s.dontCare {
		return nil
	}
	var p panelled
	for _, op := range c.readersOf(v) {
		if op.Kind != ir.DotGeneral || op.Operands[0] == v {
			return nil
		}
		form := kernel.PanelsOf(op, part, dim)
		if form == nil {
			return nil
		}
		if !slices.ContainsFunc(p.forms, form.Same) {
			p.forms, p.classes = append(p.forms, form), append(p.classes, c.exe.classes.of(form.Bytes()))
		}
	}
	if p.forms == nil {
		return nil
	}
	c.scope.panelled[v] = &p
	return &p
}

// readersOf are the ops of the function at hand that read v.
func (c *compiler) readersOf(v *ir.Value) []*ir.Op {
	if c.readers == nil {
		c.readers = make(map[*ir.Value][]*ir.Op)
		c.scope.panelled = make(map[*ir.Value]*panelled)
		c.f.Body.Walk(func(op *ir.Op) {
			for _, x := range op.Operands {
				if x.Def != nil && x.Def.Kind == ir.AllGather {
					c.readers[x] = append(c.readers[x], op)
				}
			}
		})
	}
	return c.readers[v]
}

// gathered is what gather makes of the parts of result i. A group keeps what it made last: a loop over
// iterations gathers the weights of one layer, arguments that nobody writes, many times, and
// moves them once.
func (d *device) gathered(s *step, parts [][]*buffer, i int, gather func() *buffer) *buffer {
	if d.run.exe.unfused {
		return gather()
	}
	kept := &d.run.rooms[s.coll.index][s.coll.group[d.id]].kept
	if *kept == nil {
		*kept = make([]keptGather, len(s.op.Results))
	}
	k := &(*kept)[i]
	if k.of(parts, i) {
		return k.made.retain()
	}
	d.release(k.made)
	k.made, k.parts = gather(), k.parts[:0]
	for _, part := range parts {
		if !part[i].pinned {
			b := k.made
			k.made = nil
			return b
		}
		k.parts = append(k.parts, part[i].mem)
	}
	return k.made.retain()
}

// A keptGather is what a group made last, of parts that nobody writes.
type keptGather struct {
	parts []kernel.Mem
	made  *buffer
}

// releaseKept gives up what groups have kept.
func (r *run) releaseKept() {
	for _, groups := range r.rooms {
		for _, m := range groups {
			for _, k := range m.kept {
				r.devices[0].release(k.made)
			}
		}
	}
}

// of reports whether k was made of the parts of result i.
func (k *keptGather) of(parts [][]*buffer, i int) bool {
	if k.made == nil {
		return false
	}
	for p, part := range parts {
		if !part[i].pinned || !kernel.Same(part[i].mem, k.parts[p]) {
			return false
		}
	}
	return true
}

// gather makes p of the parts of result i.
func (p *panelled) gather(d *device, parts [][]*buffer, i int) *buffer {
	mems := make([]kernel.Mem, len(parts))
	for k, part := range parts {
		mems[k] = part[i].mem
	}
	t := &buffer{elems: make([]*buffer, len(p.forms))}
	t.refs.Store(1)
	for k, form := range p.forms {
		t.elems[k] = d.alloc(p.classes[k])
		form.Make(d.work, t.elems[k].mem, mems)
	}
	return t
}

// product completes the step of a product that reads a panelled value, and reports
// whether it is one.
func (c *compiler) product(s *step) bool {
	if s.op.Kind != ir.DotGeneral || c.scope.panelled[s.op.Operands[1]] == nil {
		return false
	}
	gather := s.op.Operands[1].Def
	i := slices.Index(gather.Results, s.op.Operands[1])
	form := kernel.PanelsOf(s.op, gather.Operands[i].Type, gather.Int("all_gather_dim"))
	k := slices.IndexFunc(c.scope.panelled[s.op.Operands[1]].forms, form.Same)
	s.kernel = form.Product(s.op)
	s.exec = func(d *device, s *step) error {
		b := d.alloc(s.classes[0])
		if d.run.poisonBuffers {
			kernel.Poison(b.mem, s.elems[0])
		}
		d.dst = append(d.dst[:0], b.mem)
		d.src = append(d.src[:0], d.slots[s.in[0]].mem, d.slots[s.in[1]].elems[k].mem)
		s.kernel(d.work, d.dst, d.src)
		d.put(s, 0, b)
		return nil
	}
	return true
}
