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
		d.multiply(s, s.kernel, d.slots[s.in[1]].elems[k].mem)
		return nil
	}
	return true
}

// multiply makes the result of s, a product, by f of its left operand and of right.
func (d *device) multiply(s *step, f kernel.Func, right kernel.Mem) {
	b := d.alloc(s.classes[0])
	if d.run.poisonBuffers {
		kernel.Poison(b.mem, s.elems[0])
	}
	d.dst, d.src = append(d.dst[:0], b.mem), append(d.src[:0], d.slots[s.in[0]].mem, right)
	f(d.work, d.dst, d.src)
	d.put(s, 0, b)
}

// A keptProduct is a product in a loop whose right side is a value from outside of the loop, or a slice of one, such
// as the weights of a layer that all microbatches read. A device keeps the panels of the right side from one iteration to the next.
type keptProduct struct {
	form  *kernel.Panels
	class int
	index int // among those of the executable
}

// keptPanels are what a device keeps for one keptProduct while its loop runs.
type keptPanels struct {
	made   *buffer // nil: nothing
	of     kernel.Mem
	base   *buffer // that of is memory of, which nobody writes while a reference to it is held; nil where of is never written
	misses int     // one after the other
}

// mostMisses is how often panels are made that the next iteration does not read, because it reads another slice; then they
// are not kept any more.
const mostMisses = 2

// kept completes the step of a product as a keptProduct if it is one.
func (c *compiler) kept(s *step) {
	if c.loop == nil || s.op.Kind != ir.DotGeneral || c.checks || c.exe.unfused || s.dontCare {
		return
	}
	x := s.op.Operands[1]
	root := x
	for root.Def != nil && (root.Def.Kind == ir.Reshape || kernel.Within(root.Def) != nil) {
		root = root.Def.Operands[0]
	}
	dims := s.op.Attrs.Get("dot_dimension_numbers").(ir.Dot).RhsContract
	if len(dims) == 0 || !c.loop.captured[root] {
		return
	}
	dim := dims[0] // all of the value is one part, along any dimension that has neighbours
	for _, d := range dims {
		if x.Type.Shape[d] != 1 {
			dim = d
			break
		}
	}
	form := kernel.PanelsOf(s.op, x.Type, dim)
	if form == nil {
		return
	}
	k := &keptProduct{form: form, class: c.exe.classes.of(form.Bytes()), index: c.exe.keeps}
	c.exe.keeps++
	c.loop.keeps = append(c.loop.keeps, k.index)
	plain, product := s.kernel, form.Product(s.op)
	s.exec = func(d *device, s *step) error {
		right := d.slots[s.in[1]]
		if panels := d.panelsOf(k, right); panels != nil {
			d.multiply(s, product, panels.mem)
		} else {
			d.multiply(s, plain, right.mem)
		}
		return nil
	}
}

// panelsOf are the panels of right, kept or made; nil where it does not pay to keep them.
func (d *device) panelsOf(k *keptProduct, right *buffer) *buffer {
	have := &d.kept[k.index]
	var base *buffer
	if !right.pinned {
		for base = right; base.base != nil; {
			base = base.base
		}
	}
	switch {
	case have.made != nil && have.base == base && kernel.Same(have.of, right.mem):
		have.misses = 0
		return have.made
	case have.misses == mostMisses:
		d.forget(have)
		return nil
	}
	d.forget(have)
	have.made, have.of, have.misses = d.alloc(k.class), right.mem, have.misses+1
	if base != nil {
		have.base = base.retain()
	}
	k.form.Make(d.work, have.made.mem, []kernel.Mem{right.mem})
	return have.made
}

// forget gives up what is kept.
func (d *device) forget(k *keptPanels) {
	d.release(k.made)
	d.release(k.base)
	k.made, k.of, k.base = nil, nil, nil
}
