package kernel

import (
	"slices"

	"ppc/ir"
)

// Panels are the right operand of a product in the order in which the product reads it,
// made of parts that follow one another along a dimension of the operand. Blocks of
// blockN columns come one after the other, in them blocks of blockK rows, and in those
// the columns of a tile, row after row. Whoever makes them once for all products that
// read the operand spares each of them the same work.
type Panels struct {
	tier         *tier
	from, as     ir.DType // of the parts, and of the panels
	elem, cols   int      // bytes of an element, columns of a tile
	batch, k, n  int
	m            int  // rows of the left side, up to those that decide how the product is made
	row, col     int  // strides of a part, in elements
	apart        int  // elements between the batches of a part
	across       bool // parts follow one another along columns
	partK, partN int
	elements     int // of a part
}

// PanelsOf returns how the right operand of op, made of parts of type part along dimension
// dim, is brought into panels; nil where op is no product that would bring it into panels
// itself, or does not read the parts as they are stored.
func PanelsOf(op *ir.Op, part *ir.Type, dim int) *Panels {
	t := fastest
	if op.Kind != ir.DotGeneral || t.vector == 0 {
		return nil
	}
	d := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	r, as := op.Operands[1].Type, arithmetic(op.Result().Type.Elem)
	if arithmetic(r.Elem) != as || as != ir.F32 && as != ir.F64 {
		return nil
	}
	columns := free(r.Rank(), d.RhsBatch, d.RhsContract)
	across := slices.Contains(columns, dim)
	along := d.RhsContract
	if across {
		along = columns
	}
	if !outermost(r.Shape, along, dim) {
		return nil
	}
	f, whole := newFactor(part, as, d.RhsBatch, d.RhsContract, columns), newFactor(r, as, d.RhsBatch, d.RhsContract, columns)
	p := &Panels{
		tier: t, from: r.Elem, as: as, elem: as.Size(), cols: 2 * t.vector / as.Size(),
		batch: sizes(r, d.RhsBatch), k: sizes(r, d.RhsContract), n: sizes(r, columns),
		row: f.row, col: f.col, apart: f.batch, across: across,
		partK: sizes(part, d.RhsContract), partN: sizes(part, columns), elements: part.NumElements(),
	}
	l := op.Operands[0].Type
	m := sizes(l, free(l.Rank(), d.LhsBatch, d.LhsContract))
	if f.order != nil || whole.order != nil || m*p.n*p.k == 0 || p.n == 1 {
		return nil
	}
	p.m = min(m, leastSide)
	g := p.blocked(nil)
	g.m, g.b = m, matrix{row: whole.row, col: whole.col}
	if !g.packsB() {
		return nil
	}
	return p
}

// outermost reports whether dim is the first of dims that has neighbours.
func outermost(shape, dims []int, dim int) bool {
	for _, d := range dims {
		if d == dim {
			return true
		}
		if shape[d] != 1 {
			return false
		}
	}
	return false
}

// Same reports whether p and q are the same bytes for the same parts.
func (p *Panels) Same(q *Panels) bool { return *p == *q }

// Bytes is how large p is.
func (p *Panels) Bytes() int { return p.batch * p.bytes() }

// bytes is what a matrix of the batch takes.
func (p *Panels) bytes() int {
	g := p.blocked(nil)
	return (p.n + p.cols - 1) / p.cols * (p.k/blockK*g.panelBytes(blockK) + g.panelBytes(p.k%blockK))
}

// blocked is a product that reads made.
func (p *Panels) blocked(made Mem) blocked {
	tiles := p.tier.f32
	if p.elem == 8 {
		tiles = p.tier.f64
	}
	return blocked{tier: p.tier, tiles: tiles, elem: p.elem, cols: p.cols, m: p.m, n: p.n, k: p.k, made: made}
}

// Make writes p of the given parts to dst.
func (p *Panels) Make(w *Work, dst Mem, parts []Mem) {
	depth := w.depth
	defer func() { w.depth = depth }()
	parts = p.converted(w, parts)
	flat := w.temp(blockK * p.cols * p.elem)
	for i := range p.batch {
		g := p.blocked(dst[i*p.bytes() : (i+1)*p.bytes()])
		g.w = w
		for j := 0; j < p.n; j += blockN {
			for r := 0; r < p.k; r += blockK {
				k, n := min(blockK, p.k-r), min(blockN, p.n-j)
				g.panels = g.madeAt(r, j, n)
				size := g.panelBytes(k)
				for q := 0; q < n; q += p.cols {
					panel, cols := g.panels[q/p.cols*size:][:size], min(p.cols, n-q)
					if !g.splits() {
						p.panel(&g, parts, i, r, j+q, k, cols, panel)
						continue
					}
					p.panel(&g, parts, i, r, j+q, k, cols, flat)
					g.splitPanel(panel, &flat[0], p.cols*p.elem, k, cols)
				}
			}
		}
	}
}

// converted are the parts in the type of the panels; it leaves scratch of w in use.
func (p *Panels) converted(w *Work, parts []Mem) []Mem {
	if p.from == p.as {
		return parts
	}
	out, convert := make([]Mem, len(parts)), converter(p.from, p.as)
	for i, part := range parts {
		out[i] = w.temp(p.elements * p.elem)
		w.apply(convert, out[i], part)
	}
	return out
}

// panel writes to dst the rows and columns from (r, c) of matrix i of the batch.
func (p *Panels) panel(g *blocked, parts []Mem, i, r, c, rows, cols int, dst Mem) {
	width := p.cols * p.elem
	if cols < p.cols {
		clear(dst[:rows*width])
	}
	for p.across && cols > 0 {
		x, at := p.of(parts, c/p.partN, i), c%p.partN
		n := min(cols, p.partN-at)
		g.piece(dst, x, r, at, rows, n)
		dst, c, cols = dst[n*p.elem:], c+n, cols-n
	}
	for !p.across && rows > 0 {
		x, at := p.of(parts, r/p.partK, i), r%p.partK
		n := min(rows, p.partK-at)
		g.piece(dst, x, at, c, n, cols)
		dst, r, rows = dst[n*width:], r+n, rows-n
	}
}

// of is matrix i of the batch of a part.
func (p *Panels) of(parts []Mem, part, i int) matrix {
	return matrix{parts[part][i*p.apart*p.elem:], p.row, p.col}
}

// Product returns the Func of op, whose right operand is p.
func (p *Panels) Product(op *ir.Op) Func {
	d := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	l, out := op.Operands[0].Type, op.Result().Type
	as := arithmetic(out.Elem)
	rows := free(l.Rank(), d.LhsBatch, d.LhsContract)
	left, m := newFactor(l, as, d.LhsBatch, rows, d.LhsContract), sizes(l, rows)
	return narrowed(as, out, func(w *Work, c Mem, src []Mem) {
		a := left.ready(w, src[0])
		for i := range p.batch {
			g := p.blocked(src[1][i*p.bytes() : (i+1)*p.bytes()])
			depth := w.depth
			g.w, g.a, g.m, g.c = w, left.of(a, i), m, c[i*m*p.n*p.elem:(i+1)*m*p.n*p.elem]
			g.run()
			w.depth = depth
		}
	})
}
