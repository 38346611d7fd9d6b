package native

import "ppc/lower/fuse"

// Lanes of a vector, and how many vectors one turn of the loop over a row has.
const (
	lanes   = 16
	perTurn = Lanes / lanes
)

// A text is a chain that is compiled.
type text struct {
	machine []byte
	scratch int // bytes that it needs for its rows
	rows    int // that it computes side by side
}

// side is how many rows are computed side by side: what follows from a row waits for its folds, and that of
// others is done meanwhile.
func (ch *Chain) side() int {
	switch {
	case ch.cols == 0 || ch.cols > 512:
		return 1
	case ch.cols > 128:
		return 2
	}
	return 4
}

// A compiler makes machine code of a chain. Over rows that is, for each row, a loop over its elements for every
// phase, and what follows for the row from it. What one loop computes and a later one reads is kept in memory for
// one row. Registers: RDI points to the arrays' pointers, R10 to that memory, R9 is the number of rows, or of
// elements where there are none, to go to; RCX counts elements, RDX rows, and R8 elements of the row, or eights of
// elements where there are no rows. RAX is for addresses.
type compiler struct {
	*Chain
	*code
	rows    int                // side by side
	lastUse []int              // by node: the last phase that reads it
	spilled map[Node]int       // where the numbers of the rows are kept in memory
	scratch int                // bytes so far
	values  []map[Node]value   // by row: its numbers, and spread ones
	chains  []map[Node][]value // by row: of folds
}

// compile makes a text that computes so many rows side by side; nil where registers do not suffice.
func (ch *Chain) compile(rows int) *text {
	c := &compiler{Chain: ch, code: newCode(), rows: rows, lastUse: make([]int, len(ch.nodes)), spilled: make(map[Node]int)}
	for range rows {
		c.values, c.chains = append(c.values, make(map[Node]value)), append(c.chains, make(map[Node][]value))
	}
	phases := 0
	for i := range c.nodes {
		c.lastUse[i] = beforeLoops - 1
	}
	for _, n := range c.nodes {
		for _, a := range n.args {
			c.lastUse[a] = max(c.lastUse[a], n.phase)
		}
		phases = max(phases, n.phase+1)
	}
	for i := range c.nodes {
		if n := &c.nodes[i]; n.kind == isCall && n.level == fuse.Full && c.lastUse[i] > n.phase {
			c.spilled[Node(i)] = c.scratch
			c.scratch += 4 * c.cols * rows
		}
	}
	for i := range min(c.arrays, len(pointers)) {
		c.loadPointer(pointers[i], rdi, int32(8*i))
	}
	if c.cols == 0 {
		c.eighth(r8, rcx)
		begin := len(c.encoder.text)
		c.elements(0, 0, 0)
		c.flush()
		c.addImm(rcx, lanes)
		c.addImm(r8, lanes/8)
		c.encoder.compare(rcx, r9)
		c.jumpBelow(begin)
	} else {
		begin := len(c.encoder.text)
		c.behind(beforeLoops)
		for p := range phases {
			c.phase(p)
			if p < phases-1 {
				c.addImm(rcx, -int32(c.cols))
			}
		}
		for v := range c.pinned {
			c.release(v)
		}
		c.addImm(rcx, int32(c.cols*(rows-1)))
		c.addImm(rdx, int32(rows))
		c.encoder.compare(rdx, r9)
		c.jumpBelow(begin)
	}
	c.ret()
	if c.failed {
		return nil
	}
	return &text{machine: c.constants(c.consts), scratch: c.scratch, rows: rows}
}

// phase writes loop p over the elements of a row, and what follows from it.
func (c *compiler) phase(p int) {
	for j := range c.rows {
		for i := range c.nodes {
			switch n := &c.nodes[i]; {
			case n.phase != p:
			case n.kind == isSpread:
				c.spread(Node(i), j)
			case n.kind == isFold:
				for range perTurn { // chains
					acc := c.held(c.bits(n.bits))
					c.pin(acc)
					c.chains[j][Node(i)] = append(c.chains[j][Node(i)], acc)
				}
			}
		}
	}
	c.flush()
	c.zero(r8)
	begin := len(c.encoder.text)
	for j := range c.rows {
		for k := range perTurn {
			c.elements(p, j, k)
		}
	}
	c.flush()
	c.addImm(rcx, Lanes)
	c.addImm(r8, Lanes)
	c.compareImm(r8, int32(c.cols))
	c.jumpBelow(begin)
	c.behind(p)
	for _, values := range c.values {
		for v, x := range values {
			if c.lastUse[v] <= p {
				c.release(x)
			}
		}
	}
}

// elements writes the turn of loop p for vector k of those of a turn, of row j.
func (c *compiler) elements(p, j, k int) {
	here := make(map[Node]value)
	of := func(a Node) value { return c.element(a, j, k, here) }
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.phase != p || n.level != fuse.Full && n.kind != isFold {
			continue
		}
		switch n.kind {
		case isCall:
			v := n.call(c.code, c.all(n.args, of))
			here[Node(i)] = v
			for _, a := range n.into {
				c.put(n, v, a, c.place(n, j, k))
			}
			if at, ok := c.spilled[Node(i)]; ok {
				c.put(n, v, scratchArray, c.kept(n, at, j, k))
			}
		case isFold:
			acc := c.chains[j][Node(i)][k]
			s := plain(vmovups)
			s.dst, s.rm = acc, n.call(c.code, []value{acc, of(n.args[0])})
			c.append(s)
		}
	}
}

func (c *compiler) all(args []Node, of func(Node) value) []value {
	vs := make([]value, len(args))
	for i, a := range args {
		vs[i] = of(a)
	}
	return vs
}

// element is vector k of node a in row j; here is what there is of it.
func (c *compiler) element(a Node, j, k int, here map[Node]value) value {
	n := &c.nodes[a]
	if v, ok := here[a]; ok {
		return v
	}
	var v value
	switch {
	case n.kind == isConst:
		return c.bits(n.bits)
	case n.kind == isSpread:
		return c.values[j][a]
	case n.kind == isLoad && n.layout != Dense:
		v = c.byTable(n, j, k)
	case n.kind == isLoad:
		v = c.get(n, n.array, c.place(n, j, k))
	default:
		v = c.get(n, scratchArray, c.kept(n, c.spilled[a], j, k))
	}
	here[a] = v
	return v
}

// scratchArray is the memory of one row.
const scratchArray = -1

// place is where vector k of n in row j is, from the begin of its array.
func (c *compiler) place(n *node, j, k int) place {
	at := place{memory: true, index: rcx, scale: 4, disp: int32(j*c.cols + lanes*k)}
	if n.condition {
		at.scale = 1
	}
	at.disp *= int32(at.scale)
	return at
}

// kept is where vector k of n in row j is in the memory of the rows, where its numbers begin at byte from.
func (c *compiler) kept(n *node, from, j, k int) place {
	at := place{memory: true, base: r10, index: r8, scale: 4, disp: int32(j*c.cols + lanes*k)}
	if n.condition {
		at.scale = 1
	}
	at.disp = at.disp*int32(at.scale) + int32(from)
	return at
}

func (c *compiler) get(n *node, array int, at place) value {
	if n.condition {
		return c.loadCondition(array, at)
	}
	return c.load(vmovups, array, at)
}

// byTable is vector k of n in row j, which is where a table says.
func (c *compiler) byTable(n *node, j, k int) value {
	s := plain(vmovups)
	s.array, s.table, s.at = n.array, n.table, place{memory: true, index: -1}
	if c.cols > 0 {
		s.ofRow, s.entry = true, j
		if n.layout == Vectors {
			s.at = place{memory: true, index: r8, scale: 4, disp: int32(4 * lanes * k)}
			if n.condition {
				s.at.scale, s.at.disp = 1, int32(lanes*k)
			}
		}
	}
	switch {
	case n.condition && n.layout == Numbers:
		s.instruction = vpbroadcastb
		length := c.length
		c.length = 0
		v := c.emit(s)
		c.length = length
		return c.isSet(c.one(vpmovzxbd, v, 0))
	case n.condition:
		s.instruction = vpmovzxbd
		return c.isSet(c.emit(s))
	case n.layout == Numbers:
		s.instruction = vbroadcastss
	case n.layout == Halves:
		c.length = 1
		v := c.emit(s)
		c.length = 2
		s.instruction, s.imm, s.entry, s.first = vinsertf32x8, 1, 1, v
	}
	return c.emit(s)
}

func (c *compiler) put(n *node, v value, array int, at place) {
	if n.condition {
		c.storeCondition(v, array, at)
	} else {
		c.store(vmovupsTo, v, array, at)
	}
}

// ofRow is where the number of row j is.
func ofRow(j int) place { return place{memory: true, index: rdx, scale: 4, disp: int32(4 * j)} }

// spread has the number of row j in all lanes.
func (c *compiler) spread(a Node, j int) {
	x := c.nodes[a].args[0]
	s := plain(vbroadcastss)
	if n := &c.nodes[x]; n.kind == isLoad {
		s.array, s.at = n.array, ofRow(j)
	} else {
		s.rm = c.values[j][x]
	}
	v := c.emit(s)
	c.pin(v)
	c.values[j][a] = v
}

// behind writes what follows for the rows from loop p.
func (c *compiler) behind(p int) {
	for j := range c.rows {
		c.row(p, j)
	}
	c.flush()
	for _, chains := range c.chains {
		for a, accs := range chains {
			if c.nodes[a].phase == p {
				for _, acc := range accs {
					c.release(acc)
				}
			}
		}
	}
}

// row writes what follows for row j from loop p: vectors of 16 bytes, of which one number counts.
func (c *compiler) row(p, j int) {
	loaded := make(map[Node]value)
	of := func(a Node) value {
		n := &c.nodes[a]
		if n.kind == isConst {
			return c.bits(n.bits)
		}
		if n.kind != isLoad {
			return c.values[j][a]
		}
		v, ok := loaded[a]
		if !ok {
			v = c.load(vbroadcastss, n.array, ofRow(j))
			loaded[a] = v
		}
		return v
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.phase != p || n.level != fuse.Row || n.kind != isCall && n.kind != isFold {
			continue
		}
		var v value
		if n.kind == isFold {
			v = c.tree(n, c.chains[j][Node(i)])
		}
		c.length = 0
		if n.kind == isFold {
			v = n.call(c.code, []value{of(n.init), v})
		} else {
			v = n.call(c.code, c.all(n.args, of))
		}
		c.pin(v)
		c.values[j][Node(i)] = v
		for _, a := range n.into {
			c.store(vmovssTo, v, a, ofRow(j))
		}
		c.length = 2
	}
}

// tree folds the chains of n to one number.
func (c *compiler) tree(n *node, chains []value) value {
	v := n.call(c.code, chains)
	for _, half := range []struct {
		instruction
		imm byte
		two bool
	}{{vshuff64x2, 0x0e, true}, {vshuff64x2, 1, true}, {vpermilpd, 1, false}, {vpermilps, 1, false}} {
		var upper value
		if half.two {
			upper = c.two(half.instruction, v, v, half.imm)
		} else {
			upper = c.one(half.instruction, v, half.imm)
		}
		v = n.call(c.code, []value{v, upper})
	}
	return v
}
