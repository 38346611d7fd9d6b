package runtime

import (
	"fmt"
	"slices"

	"ppc/ir"
	"ppc/runtime/kernel"
)

// A compileFunc completes the step of an op.
type compileFunc func(*compiler, *step) error

// rows says, for each op, how its step is compiled. What is not here computes
// by a kernel, ends a block, or belongs to an earlier form of the program.
var rows = makeRows()

func makeRows() map[ir.Kind]compileFunc {
	rows := make(map[ir.Kind]compileFunc)
	for _, k := range ir.Kinds() {
		if kernel.Has(k) {
			rows[k] = compileKernel
		}
	}
	rows[ir.Reshape] = compileAlias
	rows[ir.OptimizationBarrier] = compileAlias
	rows[ir.PartitionID] = compileID
	rows[ir.ReplicaID] = compileID
	rows[ir.TupleOp] = compileTuple
	rows[ir.GetTupleElement] = compileElement
	rows[ir.CustomCall] = compileCustomCall
	rows[ir.While] = compileWhile
	rows[ir.Case] = compileBranches
	rows[ir.If] = compileBranches
	rows[ir.Call] = compileCall
	rows[ir.CollectivePermute] = compilePermute
	rows[ir.AllGather] = compileMeeting
	rows[ir.AllReduce] = compileMeeting
	rows[ir.ReduceScatter] = compileMeeting
	rows[ir.AllToAll] = compileMeeting
	rows[ir.CollectiveBroadcast] = compileMeeting
	return rows
}

func compileKernel(c *compiler, s *step) error {
	if c.product(s) {
		return nil
	}
	f, err := kernel.Build(s.op)
	if err != nil {
		return err
	}
	s.kernel, s.exec = f, execKernel
	for _, i := range kernel.InPlace(s.op) {
		if s.move[i] {
			s.reuse = append(s.reuse, i)
		}
	}
	s.in = append(slices.Clip(s.in), c.slots(captures(s.op))...)
	if at := kernel.Within(s.op); at != nil {
		n := s.op.Result().Type.Bytes()
		p := c.pieces[s.op]
		s.exec = func(d *device, s *step) error { return d.piece(s, p, at, n) }
	}
	if s.op.Kind == ir.DynamicUpdateSlice {
		s.exec = execUpdate
	}
	c.kept(s)
	if isCopy(s.op) {
		s.exec = execAlias
	}
	return nil
}

// isCopy reports whether op converts to the type that its operand has.
func isCopy(op *ir.Op) bool {
	return op.Kind == ir.Convert && op.Operands[0].Type.Equal(op.Results[0].Type)
}

func captures(op *ir.Op) []*ir.Value {
	if len(op.Regions) == 0 {
		return nil
	}
	return op.Captures()
}

func execKernel(d *device, s *step) error {
	slots := d.slots
	d.src, d.dst = d.src[:0], d.dst[:0]
	for _, i := range s.in {
		d.src = append(d.src, slots[i].mem)
	}
	if b := d.takeOver(s); b != nil {
		d.dst = append(d.dst, b.mem)
		s.kernel(d.work, d.dst, d.src)
		d.put(s, 0, b)
		return nil
	}
	for k, class := range s.classes {
		b := d.alloc(class)
		if d.run.poisonBuffers {
			kernel.Poison(b.mem, s.elems[k])
		}
		d.dst = append(d.dst, b.mem)
		slots[s.out[k]] = b
	}
	s.kernel(d.work, d.dst, d.src)
	return nil
}

// piece makes the result the n bytes of operand 0 where at says, without a copy if
// they are never written, or not while they are read (p).
func (d *device) piece(s *step, p *piece, at func(src []kernel.Mem) int, n int) error {
	full := d.slots[s.in[0]]
	if !full.pinned && p == nil {
		return execKernel(d, s)
	}
	d.src = d.src[:0]
	for _, i := range s.in {
		d.src = append(d.src, d.slots[i].mem)
	}
	lo := at(d.src)
	if full.pinned {
		d.put(s, 0, pinned(full.mem[lo:lo+n]))
	} else {
		d.put(s, 0, p.of(d, full, lo, n))
	}
	return nil
}

// takeOver returns the buffer of an operand that dies here and that only this
// device holds, out of its slot; nil if there is none.
func (d *device) takeOver(s *step) *buffer { return d.takeOneOf(s, s.reuse) }

func (d *device) takeOneOf(s *step, operands []int) *buffer {
	for _, i := range operands {
		if b := d.slots[s.in[i]]; s.move[i] && b != nil && b.mine() {
			d.slots[s.in[i]] = nil
			return b
		}
	}
	return nil
}

// takeLent is takeOneOf for lent pieces.
func (d *device) takeLent(s *step, operands []int) *buffer {
	for _, i := range operands {
		if b := d.slots[s.in[i]]; s.move[i] && b != nil && b.overwritten() {
			d.slots[s.in[i]] = nil
			return b
		}
	}
	return nil
}

// take returns a reference to operand i: the slot's own where the value dies.
func (d *device) take(s *step, i int) *buffer {
	b := d.slots[s.in[i]]
	if s.move[i] {
		d.slots[s.in[i]] = nil
		return b
	}
	return b.retain()
}

// put makes b, with its reference, result i.
func (d *device) put(s *step, i int, b *buffer) { d.slots[s.out[i]] = b }

// compileAlias is for ops whose results are their operands' bytes.
func compileAlias(_ *compiler, s *step) error {
	s.exec = execAlias
	return nil
}

func execAlias(d *device, s *step) error {
	for i := range s.out {
		d.put(s, i, d.take(s, i))
	}
	return nil
}

func copyBytes(_ *kernel.Work, dst, src []kernel.Mem) {
	copy(dst[0], src[0])
}

// compileID is for partition_id and replica_id.
func compileID(c *compiler, s *step) error {
	ids := make([]*buffer, c.grid.size())
	for i := range ids {
		id := i % c.grid.partitions
		if s.op.Kind == ir.ReplicaID {
			id = i / c.grid.partitions
		}
		ids[i] = pinned(kernel.FromLiteral(ir.Ints64(ir.Tensor(ir.UI32), id)))
	}
	s.exec = func(d *device, s *step) error {
		d.put(s, 0, ids[d.id])
		return nil
	}
	return nil
}

func compileTuple(_ *compiler, s *step) error {
	s.exec = func(d *device, s *step) error {
		t := &buffer{elems: make([]*buffer, len(s.in))}
		t.refs.Store(1)
		for i := range s.in {
			t.elems[i] = d.take(s, i)
		}
		d.put(s, 0, t)
		return nil
	}
	return nil
}

func compileElement(_ *compiler, s *step) error {
	s.index = s.op.Int("index")
	s.exec = func(d *device, s *step) error {
		d.put(s, 0, d.slots[s.in[0]].elems[s.index].retain())
		return nil
	}
	return nil
}

// compileCustomCall: what is said of a value, such as that it belongs into another
// memory, makes a copy of it; there is no memory but the host's. Other calls have a
// kernel.
func compileCustomCall(_ *compiler, s *step) error {
	if s.op.Annotates() {
		s.kernel, s.exec = copyBytes, execKernel
		return nil
	}
	f, err := kernel.CustomCall(s.op)
	s.kernel, s.exec = f, execKernel
	return err
}

func compileCall(c *compiler, s *step) error {
	name := s.op.Sym("callee")
	f := c.m.Func(name)
	if f == nil {
		return fmt.Errorf("there is no function %s", ir.SymbolText(name))
	}
	fn, err := c.function(f)
	s.callee, s.exec = fn, execCall
	return err
}

func execCall(d *device, s *step) error {
	args := make([]*buffer, len(s.in))
	for i := range s.in {
		args[i] = d.take(s, i)
	}
	results, err := d.call(s.callee, args)
	if err != nil {
		return err
	}
	for i, b := range results {
		d.put(s, i, b)
	}
	return nil
}

// compileWhile gives the arguments of condition and body the same slots. The
// body owns them; the condition only looks.
func compileWhile(c *compiler, s *step) error {
	cond, body := s.op.Regions[0], s.op.Regions[1]
	for i, a := range cond.Args {
		c.slot[a.ID] = c.slot[body.Args[i].ID]
	}
	s.carry = c.slots(body.Args)
	outer := c.loop
	c.loop = newLoop(s.op, c.checks)
	s.blocks = []*block{c.block(cond), c.owning(body)}
	s.keeps, c.loop = c.loop.keeps, outer
	shareAcross(s.blocks[0], s.blocks[1])
	s.exec = execWhile
	return nil
}

// newLoop is that of a while, of which checks need nothing.
func newLoop(op *ir.Op, checks bool) *loop {
	l := &loop{captured: make(map[*ir.Value]bool)}
	if !checks {
		for _, v := range captures(op) {
			l.captured[v] = true
		}
	}
	return l
}

func execWhile(d *device, s *step) error {
	for i, slot := range s.carry {
		d.slots[slot] = d.take(s, i)
	}
	cond, body := s.blocks[0], s.blocks[1]
	d.iterations = append(d.iterations, 0)
	level := len(d.iterations) - 1
	for {
		if err := d.steps(cond); err != nil {
			return err
		}
		on := d.slots[cond.results[0]].mem[0] != 0
		if cond.move[0] {
			d.release(d.slots[cond.results[0]])
			d.slots[cond.results[0]] = nil
		}
		if !on {
			break
		}
		if err := d.steps(body); err != nil {
			return err
		}
		d.yield(body, s.carry)
		d.iterations[level]++
	}
	d.iterations = d.iterations[:level]
	for _, k := range s.keeps {
		d.forget(&d.kept[k])
	}
	for i, slot := range s.carry {
		d.slots[s.out[i]], d.slots[slot] = d.slots[slot], nil
	}
	return nil
}

// yield moves the results of b into the slots to, which may be among them.
func (d *device) yield(b *block, to []int) {
	base := len(d.stack)
	for i, slot := range b.results {
		v := d.slots[slot]
		if b.move[i] {
			d.slots[slot] = nil
		} else {
			v.retain()
		}
		d.stack = append(d.stack, v)
	}
	for i, slot := range to {
		d.slots[slot] = d.stack[base+i]
		d.stack[base+i] = nil
	}
	d.stack = d.stack[:base]
}

// compileBranches gives each branch the values from outside that it may be the last to read: one of them is done, once,
// and may write over them.
func compileBranches(c *compiler, s *step) error {
	at := c.at
	dying := slices.DeleteFunc(captures(s.op), func(v *ir.Value) bool { return !c.dies(v, at) || slices.Contains(s.op.Operands, v) })
	for _, r := range s.op.Regions {
		s.blocks = append(s.blocks, c.owning(r, dying...))
	}
	for _, v := range dying {
		c.home[v.ID], c.owner[v.ID], c.last[v.ID] = at.b, nil, at.at
	}
	s.exec = execCase
	if s.op.Kind == ir.If {
		s.exec = execIf
	}
	return nil
}

func execIf(d *device, s *step) error {
	branch := s.blocks[1]
	if d.slots[s.in[0]].mem[0] != 0 {
		branch = s.blocks[0]
	}
	return d.branch(s, branch)
}

func execCase(d *device, s *step) error {
	i := int(kernel.View[int32](d.slots[s.in[0]].mem)[0])
	if i < 0 || i >= len(s.blocks) {
		i = len(s.blocks) - 1
	}
	return d.branch(s, s.blocks[i])
}

func (d *device) branch(s *step, b *block) error {
	if err := d.steps(b); err != nil {
		return err
	}
	d.yield(b, s.out)
	return nil
}
