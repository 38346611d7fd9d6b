package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	slabs "ppc/internal/slab"
	"ppc/internal/spell"
	"ppc/ir"
	"ppc/lower/fuse"
	"ppc/lower/schedule"
	"ppc/runtime/kernel"
)

// A function is a compiled ir.Func. A call has a frame of its own: one slot per
// value.
type function struct {
	params []int // slots
	body   *block

	// frame and bubbles are what the slots hold when a call begins: the
	// constants, from the first run on. In bubbles, those that are don't care
	// are NaN; it is frame where none can be.
	frame, bubbles []*buffer
}

// A block is a region, or the body of a function.
type block struct {
	id      int // among all blocks of the executable
	steps   []step
	unused  []int // slots of arguments that the block never reads, released first
	results []int // slots
	move    []bool
}

// A step is one op. exec does it; the other fields are what its kind needs. There are as
// many as ops: what several steps may share is behind a pointer.
type step struct {
	op       *ir.Op
	exec     func(d *device, s *step) error
	kernel   kernel.Func
	id       int32 // among all steps of the executable
	holds    bool  // others run in it: it has blocks, or a callee
	brief    bool  // see isBrief
	untimed  bool  // a timeline takes the time of the next steps with its own
	dontCare bool
	in, out  []int  // slots
	move     []bool // by operand: its last use, where the reference may go over
	free     []int  // slots that no later step reads

	*memory
	*inner
}

// A memory is where the results of a step are put. Steps for which it is equal share it.
type memory struct {
	classes []int // of the results
	elems   []ir.DType
	reuse   []int // operands whose memory the result may take over
}

func (m *memory) equal(other *memory) bool {
	return other != nil && slices.Equal(m.classes, other.classes) && slices.Equal(m.elems, other.elems) && slices.Equal(m.reuse, other.reuse)
}

// An inner is what few steps have. Those without any of it share one.
type inner struct {
	fused  *kernel.Fused // of a group of ops, of which op is the last
	blocks []*block
	carry  []int // slots of a loop's values
	keeps  []int // what is kept while a loop runs, by index
	callee *function
	coll   *collective
	index  int // of get_tuple_element
}

func (n *inner) empty() bool {
	return n.fused == nil && n.blocks == nil && n.carry == nil && n.keeps == nil && n.callee == nil && n.coll == nil && n.index == 0
}

// A compiler makes the functions of one module.
type compiler struct {
	exe   *Executable
	m     *ir.Module
	grid  grid
	rows  map[ir.Kind]compileFunc
	funcs map[string]*function // nil while it is being compiled
	errs  []error
	*scope

	checks bool                // whether ops can be compiled: no step is kept
	fine   [ir.NumKinds]*ir.Op // by kind: the last elementwise op of which checks found nothing

	numbers slabs.Of[int] // of which the lists of steps are made
	flags   slabs.Of[bool]
	freed   []int // while they are found

	memories [ir.NumKinds]*memory // by kind: that of the last step
	nothing  *inner               // of steps without any of it
	spare    struct {             // for the next step
		*memory
		*inner
	}
}

// A scope is the function that is being compiled.
type scope struct {
	name  string
	f     *ir.Func
	fn    *function
	slot  []int       // by value ID
	owner []*ir.Block // by value ID: the block that releases it; nil for none
	home  []*ir.Block // by value ID: the block that defines it
	last  []int32     // by value ID: which node of that block reads it last, from 1; 0 for none

	readers  map[*ir.Value][]*ir.Op // of results of all-gathers; nil until somebody asks
	panelled map[*ir.Value]*panelled
	pieces   map[*ir.Op]*piece // nil until there is one
	folded   map[*ir.Op]bool
	at       point // of the op whose step is being made
	loop     *loop // the innermost one whose body is being compiled; nil for none
}

// A loop is what a while has of its body.
type loop struct {
	captured map[*ir.Value]bool // values from outside
	keeps    []int              // see keptProduct
}

// function compiles f, once.
func (c *compiler) function(f *ir.Func) (*function, error) {
	if fn, ok := c.funcs[f.Name]; ok {
		if fn == nil {
			return nil, fmt.Errorf("%s calls itself", ir.SymbolText(f.Name))
		}
		return fn, nil
	}
	if f.Body == nil {
		return nil, fmt.Errorf("%s has no body", ir.SymbolText(f.Name))
	}
	c.funcs[f.Name] = nil
	outer, n := c.scope, f.NumIDs()
	fn := new(function)
	if !c.checks {
		fn.frame = make([]*buffer, n)
		fn.bubbles = fn.frame
	}
	c.scope = &scope{folded: c.findFolded(f), name: f.Name, f: f, fn: fn, slot: make([]int, n), owner: make([]*ir.Block, n), home: make([]*ir.Block, n), last: make([]int32, n)}
	for id := range c.slot {
		c.slot[id] = id
	}
	fn.body = c.owning(f.Body)
	fn.params = c.slots(f.Params())
	c.scope = outer
	c.funcs[f.Name] = fn
	return fn, nil
}

func (c *compiler) slots(vs []*ir.Value) []int {
	ss := c.numbers.Slice(len(vs))
	for i, v := range vs {
		ss[i] = c.slot[v.ID]
	}
	return ss
}

// reads are the values that op uses, regions included.
func reads(op *ir.Op) []*ir.Value {
	return append(slices.Clip(op.Operands), captures(op)...)
}

// readBy are the values that n uses.
func readBy(n fuse.Node) []*ir.Value {
	if n.Group != nil {
		return n.Group.Inputs
	}
	return reads(n.Op)
}

// owning compiles b, which owns its arguments, and others: it releases them after their last
// use.
func (c *compiler) owning(b *ir.Block, others ...*ir.Value) *block {
	for _, v := range b.Args {
		c.owner[v.ID] = b
	}
	for _, v := range others {
		c.home[v.ID], c.owner[v.ID], c.last[v.ID] = b, b, 0
	}
	return c.block(b, others...)
}

// block compiles b. It owns the values that its ops define, and releases what it
// owns after its last use.
func (c *compiler) block(b *ir.Block, others ...*ir.Value) *block {
	nodes := c.plan(b)
	c.lastUses(b, nodes)
	c.findPieces(b, nodes)
	out := new(block)
	if !c.checks {
		out.steps, out.id = make([]step, 0, len(nodes)), len(c.exe.blocks)
		c.exe.blocks = append(c.exe.blocks, out)
	}
	for _, v := range slices.Concat(b.Args, others) {
		if !c.read(v) && c.owner[v.ID] == b {
			out.unused = append(out.unused, c.slot[v.ID])
		}
	}
	for i, n := range nodes {
		at := point{b, int32(i) + 1}
		switch op := n.Op; {
		case n.Group != nil && n.Op != nil:
			out.steps = append(out.steps, step{})
			c.sum(&out.steps[len(out.steps)-1], n, at)
		case n.Group != nil:
			out.steps = append(out.steps, step{})
			c.fused(&out.steps[len(out.steps)-1], n.Group, at)
		case op.Kind == ir.Constant:
			if c.read(op.Result()) { // other than as one number for all elements of a group
				c.constant(op)
			}
		case op.Kind.Has(ir.Terminator):
			out.results, out.move = c.slots(op.Operands), c.moves(op.Operands, nil, at)
		case c.checks:
			c.check(op, at)
		default:
			out.steps = append(out.steps, step{})
			c.step(&out.steps[len(out.steps)-1], op, at)
		}
	}
	for _, op := range b.Ops {
		if c.folded[op] && c.read(op.Result()) {
			c.exe.constants = append(c.exe.constants, constant{c.fn, op})
		}
	}
	out.shareReadings()
	return out
}

// plan is what b computes, in order.
func (c *compiler) plan(b *ir.Block) []fuse.Node {
	if !c.exe.unfused && !c.checks {
		ops := schedule.Order(b)
		if len(c.folded) > 0 {
			ops = slices.DeleteFunc(slices.Clone(ops), func(op *ir.Op) bool { return c.folded[op] })
		}
		return joinSums(fuse.Plan(ops))
	}
	nodes := make([]fuse.Node, len(b.Ops))
	for i, op := range b.Ops {
		nodes[i].Op = op
	}
	return nodes
}

// A point is a node of a block, counted from 1.
type point struct {
	b  *ir.Block
	at int32
}

// dies reports whether the node at p is the last to read v, which its block releases.
func (c *compiler) dies(v *ir.Value, p point) bool {
	return c.owner[v.ID] == p.b && c.last[v.ID] == p.at
}

// read reports whether v, of a block of which the last uses are known, is read.
func (c *compiler) read(v *ir.Value) bool { return c.last[v.ID] != 0 }

// lastUses finds, for the values that b defines, which node of b reads each last, and
// which of them b releases.
func (c *compiler) lastUses(b *ir.Block, nodes []fuse.Node) {
	for _, a := range b.Args {
		c.home[a.ID] = b
	}
	for _, op := range b.Ops {
		for _, v := range op.Results {
			c.home[v.ID] = b
		}
	}
	for i, n := range nodes {
		var made []*ir.Value
		if n.Group != nil {
			made = outputs(n.Group)
		} else if n.Op.Kind != ir.Constant {
			made = n.Op.Results
		}
		for _, v := range readBy(n) {
			if c.home[v.ID] == b {
				c.last[v.ID] = int32(i) + 1
			}
		}
		for _, v := range made {
			c.owner[v.ID] = b
		}
	}
}

// outputs are the values of g that others read.
func outputs(g *fuse.Group) []*ir.Value {
	vs := make([]*ir.Value, len(g.Outputs))
	for i, k := range g.Outputs {
		vs[i] = g.Members[k].Op.Result()
	}
	return vs
}

// moves says which of the operands of the node at p hand their reference over: of a
// value that dies there and is not captured, its last place.
func (c *compiler) moves(vs, captured []*ir.Value, p point) []bool {
	move := c.flags.Slice(len(vs))
	before := func(i int) int { // the place before i of the same value, -1 for none
		k := i - 1
		for k >= 0 && vs[k] != vs[i] {
			k--
		}
		return k
	}
	if len(vs) > 8 {
		last := make(map[*ir.Value]int, len(vs))
		before = func(i int) int {
			k, ok := last[vs[i]]
			last[vs[i]] = i
			if !ok {
				return -1
			}
			return k
		}
	}
	for i, v := range vs {
		move[i] = c.dies(v, p) && !slices.Contains(captured, v)
		if k := before(i); k >= 0 {
			move[k] = false
		}
	}
	return move
}

func (c *compiler) constant(op *ir.Op) {
	v := op.Result()
	if err := kernel.Check(v.Type); err != nil {
		c.fail(op, err)
		return
	}
	if c.checks {
		return
	}
	c.exe.constants = append(c.exe.constants, constant{c.fn, op})
	if poisons(op) && &c.fn.bubbles[0] == &c.fn.frame[0] {
		c.fn.bubbles = make([]*buffer, len(c.fn.frame))
	}
}

// poisons reports whether op, a constant, is another one in bubbles.
func poisons(op *ir.Op) bool { return op.Attrs.Has(ir.KeyDontCare) && canPoison(op.Result().Type.Elem) }

// A constant is one of a function, or the result of a folded op, to be put into its frames.
type constant struct {
	fn *function
	op *ir.Op
}

// make puts the elements of c into the frames.
func (c constant) make(f *folder) {
	v, fn := c.op.Result(), c.fn
	b := pinned(f.of(v))
	fn.frame[v.ID], fn.bubbles[v.ID] = b, b
	if poisons(c.op) {
		b := pinned(kernel.NewMem(v.Type.Bytes()))
		kernel.Poison(b.mem, v.Type.Elem)
		fn.bubbles[v.ID] = b
	}
}

// A blank is a buffer of zeros of a type.
type blank struct {
	b *buffer
	t *ir.Type
}

// zeros are those of type t, which are there from the first run on.
func (c *compiler) zeros(t *ir.Type) *buffer {
	key := t.String()
	z, ok := c.exe.zeros[key]
	if !ok {
		if c.exe.zeros == nil {
			c.exe.zeros = make(map[string]blank)
		}
		z = blank{pinned(nil), t}
		c.exe.zeros[key] = z
	}
	return z.b
}

func canPoison(t ir.DType) bool { return t.IsFloat() || t.IsComplex() }

// step makes s that of op.
func (c *compiler) step(s *step, op *ir.Op, at point) {
	c.begin(s, op, op.Operands, op.Results, captures(op), at)
	c.at = at
	compile := c.rows[op.Kind]
	if op.Kind == ir.Unknown {
		compile = named[op.Spelling]
	}
	if compile == nil {
		c.fail(op, unable(op))
		return
	}
	for _, v := range op.Results {
		if v.Type.Kind == ir.TupleType || v.Type.Kind == ir.TokenType {
			continue
		}
		if err := kernel.Check(v.Type); err != nil {
			c.fail(op, err)
			return
		}
	}
	if err := compile(c, s); err != nil {
		c.fail(op, err)
	}
	s.holds = len(s.blocks) > 0 || s.callee != nil
	s.brief = s.brief && !s.holds
	s.frees(c, reads(op), op.Results, at)
	c.share(s)
}

// check finds what keeps op from being compiled. Elementwise ops on the same types are
// compiled alike.
func (c *compiler) check(op *ir.Op, at point) {
	if c.fine[op.Kind].SameByTypes(op) {
		return
	}
	n := len(c.errs)
	c.step(new(step), op, at)
	if len(c.errs) == n && op.ByTypes() {
		c.fine[op.Kind] = op
	}
}

// begin makes s a step of op at a place, which reads and makes the given values, and
// some more in its regions.
func (c *compiler) begin(s *step, op *ir.Op, in, out, captured []*ir.Value, at point) {
	if c.checks {
		c.exe.ops = c.exe.ops[:0]
	}
	*s = step{op: op, id: int32(len(c.exe.ops)), brief: isBrief(op, in, out), in: c.slots(in), out: c.slots(out), move: c.moves(in, captured, at), dontCare: op.Attrs.Has(ir.KeyDontCare)}
	c.exe.ops = append(c.exe.ops, ran{op: op})
	s.memory, s.inner = c.spare.memory, c.spare.inner
	c.spare.memory, c.spare.inner = nil, nil // for steps of regions of op
	if s.memory == nil {
		s.memory = new(memory)
	}
	if s.inner == nil {
		s.inner = new(inner)
	}
	for _, v := range out {
		class, elem := 0, ir.InvalidDType
		if v.Type.IsTensor() {
			class, elem = c.exe.classes.of(v.Type.Bytes()), v.Type.Elem
		}
		s.classes, s.elems = append(s.classes, class), append(s.elems, elem)
	}
}

// share has s, which is complete, share with others what it can.
func (c *compiler) share(s *step) {
	if last := c.memories[s.op.Kind]; s.memory.equal(last) {
		c.spare.memory = s.memory
		s.classes, s.elems, s.reuse = s.classes[:0], s.elems[:0], s.reuse[:0]
		s.memory = last
	} else {
		c.memories[s.op.Kind] = s.memory
	}
	if s.inner.empty() {
		c.spare.inner, s.inner = s.inner, c.nothing
	}
}

// frees finds what s releases: operands that it is the last to read, and results
// that are never read.
func (s *step) frees(c *compiler, in, out []*ir.Value, at point) {
	c.freed = c.freed[:0]
	for _, v := range in {
		if c.dies(v, at) {
			c.freed = append(c.freed, c.slot[v.ID])
			c.owner[v.ID] = nil // once
		}
	}
	for _, v := range out {
		if !c.read(v) {
			c.freed = append(c.freed, c.slot[v.ID])
		}
	}
	s.free = c.numbers.Slice(len(c.freed))
	copy(s.free, c.freed)
}

// fused makes s that of a group.
func (c *compiler) fused(s *step, g *fuse.Group, at point) {
	root := g.Members[len(g.Members)-1].Op
	out := outputs(g)
	c.begin(s, root, g.Inputs, out, nil, at)
	c.exe.ops[s.id].group = g
	for i := range g.Members {
		op := g.Members[i].Op
		for _, v := range append(op.Results, op.Operands...) {
			if err := kernel.Check(v.Type); err != nil {
				c.fail(op, err)
				return
			}
		}
	}
	f, err := kernel.BuildFused(g)
	if err != nil {
		c.fail(root, err)
	}
	s.fused, s.exec = f, execFused
	s.frees(c, g.Inputs, out, at)
	c.share(s)
}

func execFused(d *device, s *step) error {
	d.src, d.dst, d.made = d.src[:0], d.dst[:0], d.made[:0]
	for _, i := range s.in {
		d.src = append(d.src, d.slots[i].mem)
	}
	for k, class := range s.classes {
		b := d.takeLent(s, s.fused.Reuse[k])
		if b == nil {
			b = d.takeOneOf(s, s.fused.Reuse[k])
		}
		if b == nil {
			b = d.alloc(class)
			if d.run.poisonBuffers {
				kernel.Poison(b.mem, s.elems[k])
			}
		}
		d.dst, d.made = append(d.dst, b.mem), append(d.made, b)
	}
	s.fused.Run(d.work, d.dst, d.src)
	for k, b := range d.made {
		d.put(s, k, b)
	}
	return nil
}

// unable says of an op without a row that it does not run.
func unable(op *ir.Op) error {
	if target := op.Str("custom_call_target"); target != "" { // in HLO's words
		return fmt.Errorf("there is no implementation of the target %s", target)
	}
	if !op.Known() && !strings.HasPrefix(op.Name(), "hlo.") { // an opcode of HLO is one that XLA has
		dialect, _, _ := strings.Cut(op.Name(), ".")
		switch near, known := nearOp(op); {
		case near != "":
			return fmt.Errorf("there is no such op; did you mean %s?", near)
		case known:
			return fmt.Errorf("there is no such op in the dialect %s", dialect)
		default:
			return fmt.Errorf("the dialect %s is not one of those known here, and what its ops compute is not either", dialect)
		}
	}
	return errors.New("this op can be printed, but not run: there is nothing here that computes it")
}

// nearOp is the op of the same dialect that one without a row in the table of ops
// is a misspelling of, "" where there is none; and whether the dialect is known.
func nearOp(op *ir.Op) (near string, known bool) {
	dialect, name, _ := strings.Cut(op.Name(), ".")
	var names []string
	for _, k := range ir.Kinds() {
		if d, n, _ := strings.Cut(k.String(), "."); d == dialect {
			names = append(names, n)
		}
	}
	if near := spell.Nearest(name, names); near != "" {
		return dialect + "." + near, true
	}
	return "", len(names) > 0
}

func (c *compiler) fail(op *ir.Op, err error) {
	c.errs = append(c.errs, &LoadError{Func: c.name, Op: op, Err: err})
}
