package fuse

import (
	"slices"

	"ppc/ir"
)

// view is v as it is read by a group: through what moves elements.
func (p *planner) view(v *ir.Value) *View {
	if w := p.views[v]; w != nil {
		return w
	}
	return full(v)
}

// visit gives op a place: in the groups that it reads, which become one, in a
// group of its own, or in none. Groups that it reads from outside take no more
// members, so that they can be computed before it.
func (p *planner) visit(at int, op *ir.Op) {
	if r := result(op); r != nil && p.views[r] != nil {
		return
	}
	var g *open
	if fusable(op) {
		if isReduce(op) {
			g = p.reduction(op)
		} else {
			g = p.elementwise(op)
		}
	}
	for _, v := range reads(op) {
		p.close(p.view(v).Value, g)
	}
	if g != nil {
		g.ops, g.last = append(g.ops, op), at
		p.group[op] = g
	}
}

// close ends the group that v is of, unless that is g.
func (p *planner) close(v *ir.Value, g *open) {
	if v.Def == nil {
		return
	}
	if h := p.group[v.Def]; h != nil && h.root() != g {
		h.root().closed = true
	}
}

// of is the open group of which v is a member, and its level there.
func (p *planner) of(v *ir.Value) (*open, Level) {
	if v.Def == nil || p.group[v.Def] == nil {
		return nil, Full
	}
	g := p.group[v.Def].root()
	if g.closed {
		return nil, Full
	}
	return g, g.level[v.Def]
}

// elementwise returns the group that op becomes a member of.
func (p *planner) elementwise(op *ir.Op) *open {
	n := op.Result().Type.NumElements()
	var g *open
	level := Full
	for _, v := range op.Operands {
		if splat(v) != nil {
			continue
		}
		w := p.view(v)
		h, l := p.of(w.Value)
		if h == nil {
			continue
		}
		as := Full
		switch {
		case l == Full && h.n == n && w.Dense():
		case l == Row && h.n == n && w.rowsOf(h.cols):
		case l == Row && h.cols > 1 && h.n == n*h.cols && w.Dense():
			as = Row
		default:
			continue
		}
		switch {
		case g == nil:
			g, level = h, as
		case g != h && level == Full && as == Full:
			g = p.merge(g, h)
		case level != as: // what is wanted for every element and for every row
			return p.alone(op, n)
		}
	}
	if g == nil || !p.reaches(op, g, level, n) {
		return p.alone(op, n)
	}
	g.level[op] = level
	return g
}

// reaches reports whether what op reads of g it can read as a member: nothing of
// g is read in another order, and nothing that is complete at the end only.
func (p *planner) reaches(op *ir.Op, g *open, level Level, n int) bool {
	for _, v := range op.Operands {
		w := p.view(v)
		if h, l := p.of(w.Value); h == g {
			switch {
			case level == Full && l == Full && w.Dense(), level == Full && l == Row && w.rowsOf(g.cols), level == Row && l == Row && w.Dense():
			default:
				return false
			}
		}
	}
	return true
}

func (p *planner) alone(op *ir.Op, n int) *open {
	return &open{n: n, level: map[*ir.Op]Level{op: Full}}
}

// merge makes one group of two that have the same elements; it is g alone where
// their rows differ.
func (p *planner) merge(g, h *open) *open {
	if g.cols != 0 && h.cols != 0 && g.cols != h.cols || g.flat && h.cols != 0 || h.flat && g.cols != 0 {
		return g
	}
	h.into = g
	g.ops = append(g.ops, h.ops...)
	for op, l := range h.level {
		g.level[op] = l
	}
	g.cols = max(g.cols, h.cols)
	g.flat = g.flat || h.flat
	g.last = max(g.last, h.last)
	return g
}

// reduction returns the group whose value the reduction op folds; nil where it
// is computed by itself.
func (p *planner) reduction(op *ir.Op) *open {
	w := p.view(op.Operands[0])
	g, l := p.of(w.Value)
	if !w.Dense() || g != nil && l != Full {
		return nil
	}
	level, cols := reduced(op)
	if g == nil {
		if level != Row {
			return nil
		}
		g = p.alone(op, op.Operands[0].Type.NumElements())
	}
	switch {
	case level == Whole && g.n > longest:
		if g.cols != 0 {
			return nil
		}
		g.flat = true
	case level == Whole:
		level, cols = Row, g.n
		fallthrough
	default:
		if cols == 0 || cols > longest || g.flat || g.cols != 0 && g.cols != cols {
			return nil
		}
		g.cols = cols
	}
	g.level[op] = level
	return g
}

// reduced is what a reduction leaves, and how many elements its rows have: it
// folds the last dimensions, the first, or all. cols is 0 for anything else.
func reduced(op *ir.Op) (level Level, cols int) {
	shape, dims := op.Operands[0].Type.Shape, op.Ints("dimensions")
	var folded []bool // of dimensions that are not 1, like ones merged
	inner := 1        // elements of the last of them
	for d, n := range shape {
		if n == 1 {
			continue
		}
		f := slices.Contains(dims, d)
		if k := len(folded) - 1; k >= 0 && folded[k] == f {
			inner *= n
			continue
		}
		folded, inner = append(folded, f), n
	}
	switch {
	case len(folded) == 1 && folded[0]:
		return Whole, 0
	case len(folded) == 2 && folded[1]:
		return Row, inner
	case len(folded) == 2:
		return Cols, inner
	}
	return Full, 0
}

// nodes is the plan.
func (p *planner) nodes() []Node {
	ends := make(map[int][]*open)
	var plan []Node
	for i, op := range p.ops {
		if g := p.group[op]; g != nil {
			if g = g.root(); g.last == i && !slices.Contains(ends[i], g) {
				ends[i] = append(ends[i], g)
				plan = append(plan, p.node(g))
			}
			continue
		}
		if r := result(op); r != nil && p.views[r] != nil {
			continue
		}
		plan = append(plan, Node{Op: op})
	}
	return plan
}

// node is the node of g: an op by itself where nothing is gained by a group.
func (p *planner) node(g *open) Node {
	slices.SortFunc(g.ops, func(a, b *ir.Op) int { return p.place[a] - p.place[b] })
	p.flatten(g)
	out := &Group{Elements: g.n, Cols: g.cols}
	index := make(map[*ir.Op]int)
	for i, op := range g.ops {
		index[op] = i
		m := Member{Op: op, Level: g.level[op], Folds: isReduce(op)}
		for _, v := range op.Operands {
			m.Args = append(m.Args, p.arg(out, index, m, v))
		}
		out.Members = append(out.Members, m)
	}
	for i, m := range out.Members {
		users := p.users[m.Op.Result()]
		if len(users) == 0 || slices.ContainsFunc(users, func(u *ir.Op) bool { return !p.inside(u, g) }) {
			out.Outputs = append(out.Outputs, i)
		}
	}
	if len(g.ops) == 1 && plain(&out.Members[0]) {
		return Node{Op: g.ops[0]}
	}
	return Node{Group: out}
}

// flatten makes of folds of the only row of g, which no member reads, folds over all elements: they
// need no tiles of full rows.
func (p *planner) flatten(g *open) {
	if g.cols != g.n {
		return
	}
	for _, op := range g.ops {
		if g.level[op] == Full {
			continue
		}
		if g.level[op] != Row || !isReduce(op) || slices.ContainsFunc(p.users[op.Result()], func(u *ir.Op) bool { return p.group[u] != nil && p.group[u].root() == g || p.views[result(u)] != nil }) {
			return
		}
	}
	g.cols = 0
	for _, op := range g.ops {
		if g.level[op] == Row {
			g.level[op] = Whole
		}
	}
}

// inside reports whether op is of g, or read through by nothing but g.
func (p *planner) inside(op *ir.Op, g *open) bool {
	if h := p.group[op]; h != nil {
		return h.root() == g
	}
	r := result(op)
	if r == nil || p.views[r] == nil {
		return false
	}
	return !slices.ContainsFunc(p.users[r], func(u *ir.Op) bool { return !p.inside(u, g) })
}

// plain reports whether m reads its operands as they are.
func plain(m *Member) bool {
	for i, a := range m.Args[:len(m.Op.Operands)-len(m.Op.Regions)] { // but for what a fold begins with
		if a.Splat != nil || a.View != nil && (a.View.Value != m.Op.Operands[i] || !a.View.Dense()) {
			return false
		}
	}
	return true
}

// arg is what member m reads for operand v.
func (p *planner) arg(g *Group, index map[*ir.Op]int, m Member, v *ir.Value) Arg {
	if l := splat(v); l != nil {
		return Arg{Member: -1, Splat: l}
	}
	w := p.view(v)
	if w.Value.Def != nil {
		if i, ok := index[w.Value.Def]; ok {
			return Arg{Member: i, Spread: m.Level == Full && g.Members[i].Level == Row}
		}
	}
	if l := splat(w.Value); l != nil {
		return Arg{Member: -1, Splat: l}
	}
	if !slices.Contains(g.Inputs, w.Value) {
		g.Inputs = append(g.Inputs, w.Value)
	}
	return Arg{Member: -1, View: w}
}
