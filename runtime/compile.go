package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	// are NaN.
	frame, bubbles []*buffer
}

// A block is a region, or the body of a function.
type block struct {
	steps   []step
	unused  []int // slots of arguments that the block never reads, released first
	results []int // slots
	move    []bool
}

// A step is one op. exec does it; the other fields are what its kind needs.
type step struct {
	op       *ir.Op
	id       int // among all steps of the executable
	exec     func(d *device, s *step) error
	in, out  []int  // slots
	move     []bool // by operand: its last use, where the reference may go over
	free     []int  // slots that no later step reads
	dontCare bool

	kernel  kernel.Func
	fused   *kernel.Fused // of a group of ops, of which op is the last
	reuse   []int         // operands whose memory the result may take over
	classes []int         // of the results
	elems   []ir.DType

	blocks []*block
	carry  []int // slots of a loop's values
	callee *function
	coll   *collective
	index  int // of get_tuple_element
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
}

// A scope is the function that is being compiled.
type scope struct {
	name  string
	fn    *function
	slot  []int       // by value ID
	owner []*ir.Block // by value ID: the block that releases it; nil for none
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
	fn := &function{frame: make([]*buffer, n), bubbles: make([]*buffer, n)}
	c.scope = &scope{name: f.Name, fn: fn, slot: make([]int, n), owner: make([]*ir.Block, n)}
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
	ss := make([]int, len(vs))
	for i, v := range vs {
		ss[i] = c.slot[v.ID]
	}
	return ss
}

// reads are the values that op uses, regions included.
func reads(op *ir.Op) []*ir.Value {
	return append(slices.Clip(op.Operands), captures(op)...)
}

// owning compiles b, which owns its arguments: it releases them after their last
// use.
func (c *compiler) owning(b *ir.Block) *block {
	for _, a := range b.Args {
		c.owner[a.ID] = b
	}
	return c.block(b)
}

// block compiles b. It owns the values that its ops define, and releases what it
// owns after its last use.
func (c *compiler) block(b *ir.Block) *block {
	nodes := c.plan(b)
	last := c.lastUses(b, nodes)
	out := &block{steps: make([]step, 0, len(nodes))}
	for _, a := range b.Args {
		if _, used := last[a]; !used && c.owner[a.ID] == b {
			out.unused = append(out.unused, c.slot[a.ID])
		}
	}
	for i, n := range nodes {
		dies := func(v *ir.Value) bool { return c.owner[v.ID] == b && last[v] == i }
		if n.Group != nil {
			out.steps = append(out.steps, c.fused(n.Group, dies, last))
			continue
		}
		op := n.Op
		if op.Kind == ir.Constant {
			if _, used := last[op.Result()]; used { // other than as one number for all elements of a group
				c.constant(op)
			}
			continue
		}
		if op.Kind.Has(ir.Terminator) {
			out.results, out.move = c.slots(op.Operands), moves(op.Operands, dies)
			continue
		}
		out.steps = append(out.steps, c.step(op, dies, last))
	}
	return out
}

// plan is what b computes, in order.
func (c *compiler) plan(b *ir.Block) []fuse.Node {
	if !c.exe.unfused {
		return fuse.Plan(schedule.Order(b))
	}
	nodes := make([]fuse.Node, len(b.Ops))
	for i, op := range b.Ops {
		nodes[i].Op = op
	}
	return nodes
}

// lastUses says, for the values that b owns, which node of b reads each last.
func (c *compiler) lastUses(b *ir.Block, nodes []fuse.Node) map[*ir.Value]int {
	last := make(map[*ir.Value]int)
	for i, n := range nodes {
		var made []*ir.Value
		read := []*ir.Value(nil)
		if n.Group != nil {
			read, made = n.Group.Inputs, outputs(n.Group)
		} else {
			read = reads(n.Op)
			if n.Op.Kind != ir.Constant {
				made = n.Op.Results
			}
		}
		for _, v := range read {
			last[v] = i
		}
		for _, v := range made {
			c.owner[v.ID] = b
		}
	}
	return last
}

// outputs are the values of g that others read.
func outputs(g *fuse.Group) []*ir.Value {
	vs := make([]*ir.Value, len(g.Outputs))
	for i, k := range g.Outputs {
		vs[i] = g.Members[k].Op.Result()
	}
	return vs
}

// moves says which of the operands hand their reference over: of a value that
// dies, its last place.
func moves(vs []*ir.Value, dies func(*ir.Value) bool) []bool {
	move := make([]bool, len(vs))
	var last map[*ir.Value]int // where there are many
	if len(vs) > 8 {
		last = make(map[*ir.Value]int, len(vs))
	}
	for i, v := range vs {
		move[i] = dies(v)
		switch k, ok := last[v]; {
		case ok:
			move[k] = false
		case last == nil:
			for k := range i {
				if vs[k] == v {
					move[k] = false
				}
			}
		}
		if last != nil {
			last[v] = i
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
	c.exe.constants = append(c.exe.constants, constant{c.fn, op})
}

// A constant is one of a function, to be put into its frames.
type constant struct {
	fn *function
	op *ir.Op
}

// make puts the elements of c, one for a splat, into the frames.
func (c constant) make() {
	v, fn := c.op.Result(), c.fn
	b := pinned(kernel.FromLiteral(c.op.Literal("value")))
	fn.frame[v.ID], fn.bubbles[v.ID] = b, b
	if c.op.Attrs.Has(ir.KeyDontCare) && canPoison(v.Type.Elem) {
		b := pinned(kernel.NewMem(v.Type.Bytes()))
		kernel.Poison(b.mem, v.Type.Elem)
		fn.bubbles[v.ID] = b
	}
}

func canPoison(t ir.DType) bool { return t.IsFloat() || t.IsComplex() }

func (c *compiler) step(op *ir.Op, dies func(*ir.Value) bool, last map[*ir.Value]int) step {
	captured := captures(op)
	moved := func(v *ir.Value) bool { return dies(v) && !slices.Contains(captured, v) }
	s := c.newStep(op, op.Operands, op.Results, moved)
	compile := c.rows[op.Kind]
	if op.Kind == ir.Unknown {
		compile = named[op.Spelling]
	}
	if compile == nil {
		c.fail(op, unable(op))
		return s
	}
	for _, v := range op.Results {
		if v.Type.Kind == ir.TupleType || v.Type.Kind == ir.TokenType {
			continue
		}
		if err := kernel.Check(v.Type); err != nil {
			c.fail(op, err)
			return s
		}
	}
	if err := compile(c, &s); err != nil {
		c.fail(op, err)
	}
	c.exe.ops[s.id].holds = len(s.blocks) > 0 || s.callee != nil
	s.frees(c, reads(op), op.Results, dies, last)
	return s
}

// newStep is a step of op that reads and makes the given values.
func (c *compiler) newStep(op *ir.Op, in, out []*ir.Value, dies func(*ir.Value) bool) step {
	s := step{op: op, id: len(c.exe.ops), in: c.slots(in), out: c.slots(out), move: moves(in, dies), dontCare: op.Attrs.Has(ir.KeyDontCare)}
	c.exe.ops = append(c.exe.ops, ran{op: op})
	for _, v := range out {
		class, elem := 0, ir.InvalidDType
		if v.Type.IsTensor() {
			class, elem = c.exe.classes.of(v.Type.Bytes()), v.Type.Elem
		}
		s.classes, s.elems = append(s.classes, class), append(s.elems, elem)
	}
	return s
}

// frees finds what s releases: operands that it is the last to read, and results
// that are never read.
func (s *step) frees(c *compiler, in, out []*ir.Value, dies func(*ir.Value) bool, last map[*ir.Value]int) {
	seen := make(map[*ir.Value]bool)
	for _, v := range in {
		if dies(v) && !seen[v] {
			seen[v] = true
			s.free = append(s.free, c.slot[v.ID])
		}
	}
	for _, v := range out {
		if _, used := last[v]; !used {
			s.free = append(s.free, c.slot[v.ID])
		}
	}
}

// fused compiles a group.
func (c *compiler) fused(g *fuse.Group, dies func(*ir.Value) bool, last map[*ir.Value]int) step {
	root := g.Members[len(g.Members)-1].Op
	out := outputs(g)
	s := c.newStep(root, g.Inputs, out, dies)
	c.exe.ops[s.id].group = g
	for i := range g.Members {
		op := g.Members[i].Op
		for _, v := range append(op.Results, op.Operands...) {
			if err := kernel.Check(v.Type); err != nil {
				c.fail(op, err)
				return s
			}
		}
	}
	f, err := kernel.BuildFused(g)
	if err != nil {
		c.fail(root, err)
	}
	s.fused, s.exec = f, execFused
	s.frees(c, g.Inputs, out, dies, last)
	return s
}

func execFused(d *device, s *step) error {
	d.src, d.dst, d.made = d.src[:0], d.dst[:0], d.made[:0]
	for _, i := range s.in {
		d.src = append(d.src, d.slots[i].mem)
	}
	for k, class := range s.classes {
		b := d.takeOneOf(s, s.fused.Reuse[k])
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
