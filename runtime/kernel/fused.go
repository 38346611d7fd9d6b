package kernel

import (
	"fmt"
	"slices"

	"ppc/ir"
	"ppc/lower/fuse"
	"ppc/runtime/kernel/native"
)

// A Fused is a group of ops made executable: a list of instructions that runs for
// one tile of elements after the other. Tiles are full rows where there are rows.
// What a tile needs besides operands and results stays in the cache.
type Fused struct {
	n, cols, tile int   // elements: all of them, of a row (0 for none), of a tile
	sizes         []int // of temporaries, bytes for a tile
	values        []fusedValue
	code          []instr
	splats        []splatValue

	// Reuse are, by result, the operands whose memory it may take over.
	Reuse [][]int
}

// A fusedValue is what an instruction reads or writes, for one tile.
type fusedValue struct {
	size   int // bytes of an element
	level  fuse.Level
	whole  bool // its temporary has foldLength elements, of which a tile is a piece
	temp   int  // its temporary; -1 where it is a piece of an operand or a result
	source int  // operand that it is a piece of; -1
	result int  // result that it is a piece of; -1
}

// A splatValue is one number for all elements of a tile.
type splatValue struct {
	value int
	elem  Mem
}

// An instr makes a value of others.
type instr struct {
	run  func(f *Fused, w *Work, in *instr, t *tileOf)
	f    Func
	dst  int
	src  []int
	view *tileView
	init Mem  // of a fold
	once bool // it makes the same for every tile, whose temporary is kept

	chain *chain // in place of run, with what it makes in dsts
	dsts  []int
}

// all are the values that an instruction makes.
func (in *instr) all() []int {
	if in.chain != nil {
		return in.dsts
	}
	return []int{in.dst}
}

// A tileOf is the tile at hand.
type tileOf struct {
	lo, hi    int // elements
	row, rows int // the first of its rows, where there are rows, and how many
	dst, src  []Mem
}

// fusedTile is the number of elements of a tile, as nearly as rows permit, or a half or a quarter of it
// where what a tile has of all values exceeds fusedBytes, which stay in a first-level cache.
const (
	fusedTile  = 2048
	fusedBytes = 40 << 10
)

// BuildFused returns the Fused of g. Its operands are g's inputs, its results
// g's outputs.
func BuildFused(g *fuse.Group) (*Fused, error) {
	pieces := native.Plan(g)
	for tile := fusedTile; ; tile /= 2 {
		f, err := buildTiles(g, pieces, tile)
		if err != nil || tile == fusedTile/4 || f.tile > tile || f.footprint() <= fusedBytes {
			return f, err
		}
	}
}

// buildTiles is BuildFused with tiles of about so many elements.
func buildTiles(g *fuse.Group, pieces []native.Piece, tile int) (*Fused, error) {
	b := &fusedBuilder{Fused: &Fused{n: g.Elements, cols: g.Cols, tile: tile}, g: g, members: make([]int, len(g.Members)), leaves: make(map[string]int), spread: make(map[int]int)}
	if g.Cols > 0 {
		b.tile = max(1, tile/g.Cols) * g.Cols
	}
	for _, p := range pieces {
		if p.Code != nil {
			b.compiled(&p)
		} else if err := b.member(p.Members[0]); err != nil {
			return nil, err
		}
	}
	if len(b.code) == 1 && b.code[0].chain != nil {
		b.tile = max(1, chainTile/max(b.cols, 1)) * max(b.cols, 1)
	}
	b.findReuse()
	b.assign()
	return b.Fused, nil
}

// footprint is how many bytes a tile has of all values.
func (f *Fused) footprint() int {
	n := 0
	for _, s := range f.sizes {
		n += s
	}
	for i := range f.values {
		switch v := &f.values[i]; {
		case v.temp < 0 && (v.level == fuse.Full || v.level == fuse.Row):
			n += f.count(v, f.tile) * v.size
		case v.whole:
			n -= (foldLength - f.tile) * v.size
		}
	}
	return n
}

// A fusedBuilder is a Fused in the making.
type fusedBuilder struct {
	*Fused
	g       *fuse.Group
	members []int          // their values
	leaves  map[string]int // values by view and by splat
	spread  map[int]int    // values of rows, for each element
}

func (b *fusedBuilder) value(v fusedValue) int {
	b.values = append(b.values, v)
	return len(b.values) - 1
}

func (b *fusedBuilder) temp(size int, level fuse.Level) int {
	return b.value(fusedValue{size: size, level: level, temp: 0, source: -1, result: -1})
}

// member adds the instructions of member i.
func (b *fusedBuilder) member(i int) error {
	m := &b.g.Members[i]
	size := m.Op.Result().Type.Elem.Size()
	k := slices.Index(b.g.Outputs, i)
	v := fusedValue{size: size, level: m.Level, temp: 0, source: -1, result: k}
	if k >= 0 {
		v.temp = -1
	}
	if m.Folds {
		return b.fold(i, m, v)
	}
	f, err := Build(m.Op)
	if err != nil {
		return err
	}
	in := instr{run: runMember, f: f}
	for j := range m.Args {
		in.src = append(in.src, b.arg(m, j))
	}
	in.dst = b.value(v)
	b.members[i] = in.dst
	b.code = append(b.code, in)
	return nil
}

// fold adds a reduction.
func (b *fusedBuilder) fold(i int, m *fuse.Member, v fusedValue) error {
	k, _ := fuse.Fold(m.Op)
	elem := m.Op.Result().Type.Elem
	in := instr{run: runRows, f: rowFolds[k][elem], src: []int{b.arg(m, 0)}, init: oneOf(m.Args[1].Splat)}
	switch m.Level {
	case fuse.Cols:
		in.run, in.f = runColumns, binaries[k][elem]
	case fuse.Whole:
		in.run = runWhole
		if s := &b.values[in.src[0]]; s.temp >= 0 {
			s.whole = true
		}
	}
	if m.Level != fuse.Row && v.result < 0 {
		return fmt.Errorf("%s: nothing reads what it folds", m.Op.Name())
	}
	in.dst = b.value(v)
	b.members[i] = in.dst
	b.code = append(b.code, in)
	return nil
}

// arg returns the value of argument j of m, and adds what makes it.
func (b *fusedBuilder) arg(m *fuse.Member, j int) int {
	a, elem, level := m.Args[j], m.Op.Operands[j].Type.Elem, m.Level
	if m.Folds {
		level = fuse.Full
	}
	switch {
	case a.Splat != nil:
		e := oneOf(a.Splat)
		key := fmt.Sprintf("%x %v", e, level)
		if v, ok := b.leaves[key]; ok {
			return v
		}
		v := b.temp(elem.Size(), level)
		b.leaves[key] = v
		b.splats = append(b.splats, splatValue{v, e})
		return v
	case a.Member >= 0 && a.Spread:
		from := b.members[a.Member]
		if v, ok := b.spread[from]; ok {
			return v
		}
		v := b.temp(elem.Size(), fuse.Full)
		b.spread[from] = v
		b.code = append(b.code, instr{run: runSpread, dst: v, src: []int{from}})
		return v
	case a.Member >= 0:
		return b.members[a.Member]
	}
	return b.leaf(a.View, elem.Size(), level)
}

// oneOf is the first element of l.
func oneOf(l *ir.Literal) Mem {
	return FromLiteral(&ir.Literal{Type: ir.Tensor(l.Type.Elem), Data: l.Data[:l.Type.Elem.Size()]})
}

// leaf returns the value of a view of an input.
func (b *fusedBuilder) leaf(view *fuse.View, size int, level fuse.Level) int {
	source := slices.Index(b.g.Inputs, view.Value)
	t := newTileView(view, size)
	key := fmt.Sprint(source, t, level)
	if v, ok := b.leaves[key]; ok {
		return v
	}
	if view.Dense() {
		v := b.value(fusedValue{size: size, level: level, temp: -1, source: source, result: -1})
		b.leaves[key] = v
		return v
	}
	v := b.temp(size, level)
	b.leaves[key] = v
	b.code = append(b.code, instr{run: runLoad, dst: v, view: t, once: t.repeats(b.count(&b.values[v], b.tile))})
	b.values[v].source = source
	return v
}

// last is, by value, the last instruction that reads it. What is folded as a whole is read
// when more tiles are there.
func (b *fusedBuilder) last() []int {
	last := slices.Repeat([]int{-1}, len(b.values))
	for i, in := range b.code {
		for _, v := range in.src {
			last[v] = max(last[v], i)
			if in.chain == nil && b.values[in.dst].level == fuse.Whole {
				last[v] = len(b.code)
			}
		}
	}
	return last
}

// findReuse finds the operands that are read as they are, and by no instruction
// after the one that makes a result of their size.
func (b *fusedBuilder) findReuse() {
	last := b.last()
	b.Reuse = make([][]int, len(b.g.Outputs))
	for i, in := range b.code {
		for _, dst := range in.all() {
			out := b.values[dst]
			if out.result < 0 || out.level != fuse.Full {
				continue
			}
			for source := range b.g.Inputs {
				fits := true
				for v, val := range b.values {
					if val.source == source {
						fits = fits && val.temp < 0 && val.level == fuse.Full && val.size == out.size && (last[v] < i || last[v] == i && in.mayTake(dst, v))
					}
				}
				if fits {
					b.Reuse[out.result] = append(b.Reuse[out.result], source)
				}
			}
		}
	}
}

// assign gives values their temporaries: one that is not read any more is taken
// again. Splats keep theirs.
func (b *fusedBuilder) assign() {
	last := b.last()
	held := make([]bool, len(b.values))
	for _, s := range b.splats {
		b.values[s.value].temp = b.newTemp(s.value)
		held[s.value] = true
	}
	var free []int
	take := func(v int) {
		for i, t := range free {
			if b.sizes[t] == b.bytes(v) {
				free = slices.Delete(free, i, i+1)
				b.values[v].temp = t
				return
			}
		}
		b.values[v].temp = b.newTemp(v)
	}
	for i := range b.code {
		in := &b.code[i]
		for _, dst := range in.all() {
			if in.once || b.values[dst].whole {
				b.values[dst].temp, held[dst] = b.newTemp(dst), true
			} else if b.values[dst].temp >= 0 {
				take(dst)
			}
		}
		for _, v := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(in.src, in.all())))) {
			if b.values[v].temp >= 0 && !held[v] && last[v] <= i {
				free = append(free, b.values[v].temp)
				held[v] = true
			}
		}
	}
}

func (b *fusedBuilder) newTemp(v int) int {
	b.sizes = append(b.sizes, b.bytes(v))
	return len(b.sizes) - 1
}

// bytes is what a tile has of v.
func (b *fusedBuilder) bytes(v int) int {
	n := b.tile
	switch {
	case b.values[v].level == fuse.Row:
		n = b.tile / b.cols
	case b.values[v].whole:
		n = foldLength
	}
	return (n*b.values[v].size + 63) &^ 63
}

// Run computes dst from src.
func (f *Fused) Run(w *Work, dst, src []Mem) {
	depth := w.depth
	total := 0
	for _, s := range f.sizes {
		total += s
	}
	all := w.temp(total)
	if cap(w.fusedTemps) < len(f.sizes) {
		w.fusedTemps = make([]Mem, len(f.sizes))
	}
	temps := w.fusedTemps[:len(f.sizes)]
	w.fusedTemps = temps
	at := 0
	for i, s := range f.sizes {
		temps[i] = all[at : at+s]
		at += s
	}
	for _, s := range f.splats {
		v := &f.values[s.value]
		n := f.count(v, f.tile)
		if v.whole {
			n = foldLength
		}
		Fill(temps[v.temp][:n*v.size], s.elem)
	}
	for i := range f.code {
		if in := &f.code[i]; in.init != nil && f.values[in.dst].level != fuse.Row {
			Fill(dst[f.values[in.dst].result], in.init)
		}
	}
	w.fused = tileOf{dst: dst, src: src}
	t := &w.fused
	for lo := 0; lo < f.n; lo += f.tile {
		if w.Stopped() {
			break
		}
		t.lo, t.hi = lo, min(lo+f.tile, f.n)
		if f.cols > 0 {
			t.row, t.rows = t.lo/f.cols, (t.hi-t.lo)/f.cols
		}
		for i := range f.code {
			switch in := &f.code[i]; {
			case in.chain != nil:
				in.chain.run(f, w, t)
			case lo == 0 || !in.once:
				in.run(f, w, in, t)
			}
		}
	}
	w.fused = tileOf{}
	w.depth = depth
}

// count is how many numbers of v belong to n elements.
func (f *Fused) count(v *fusedValue, n int) int {
	if v.level == fuse.Row {
		return n / f.cols
	}
	return n
}

// of is the first number of v that belongs to t, and how many do.
func (t *tileOf) of(v *fusedValue) (lo, n int) {
	if v.level == fuse.Row {
		return t.row, t.rows
	}
	return t.lo, t.hi - t.lo
}

// mem is value i for the tile t.
func (f *Fused) mem(w *Work, i int, t *tileOf) Mem {
	v := &f.values[i]
	lo, n := t.of(v)
	switch lo, n = lo*v.size, n*v.size; {
	case v.whole:
		lo %= foldLength * v.size
		return w.fusedTemps[v.temp][lo : lo+n]
	case v.temp >= 0:
		return w.fusedTemps[v.temp][:n]
	case v.result >= 0:
		return t.dst[v.result][lo : lo+n]
	}
	return t.src[v.source][lo : lo+n]
}

func runMember(f *Fused, w *Work, in *instr, t *tileOf) {
	for i, v := range in.src {
		w.fusedSrc[i] = f.mem(w, v, t)
	}
	w.fusedDst[0] = f.mem(w, in.dst, t)
	in.f(w, w.fusedDst[:], w.fusedSrc[:len(in.src)])
}

func runSpread(f *Fused, w *Work, in *instr, t *tileOf) {
	size := f.values[in.dst].size
	dst, rows := f.mem(w, in.dst, t), f.mem(w, in.src[0], t)
	spreadRowsOn(fastest, dst, rows, size, size, f.cols, len(rows)/size)
}

func runLoad(f *Fused, w *Work, in *instr, t *tileOf) {
	v := &f.values[in.dst]
	lo, n := t.of(v)
	in.view.load(f.mem(w, in.dst, t), t.src[v.source], lo, n)
}

func runRows(f *Fused, w *Work, in *instr, t *tileOf) {
	w.fusedDst[0], w.fusedSrc[0] = f.mem(w, in.dst, t), f.mem(w, in.src[0], t)
	Fill(w.fusedDst[0], in.init)
	in.f(w, w.fusedDst[:], w.fusedSrc[:1])
}

// runWhole folds foldLength elements, when they are all there.
func runWhole(f *Fused, w *Work, in *instr, t *tileOf) {
	if t.hi%foldLength != 0 && t.hi != f.n {
		return
	}
	all := *t
	all.lo = (t.hi - 1) / foldLength * foldLength
	w.fusedDst[0], w.fusedSrc[0] = t.dst[f.values[in.dst].result], f.mem(w, in.src[0], &all)
	in.f(w, w.fusedDst[:], w.fusedSrc[:1])
}

// runColumns folds the rows of a tile in the groups of foldColumns.
func runColumns(f *Fused, w *Work, in *instr, t *tileOf) {
	acc, x := t.dst[f.values[in.dst].result], f.mem(w, in.src[0], t)
	n, rows := len(acc), f.n/f.cols
	group := w.columns(in, n)
	for i := range t.rows {
		row, r := x[i*n:(i+1)*n], t.row+i
		switch {
		case rows <= columnRows:
			w.Fold(in.f, acc, row)
			continue
		case r%columnRows == 0:
			copy(group, row)
		default:
			w.Fold(in.f, group, row)
		}
		if r%columnRows == columnRows-1 || r == rows-1 {
			w.Fold(in.f, acc, group)
		}
	}
}

// columns is the group of rows that instruction in folds.
func (w *Work) columns(in *instr, n int) Mem {
	if w.groups == nil {
		w.groups = make(map[*instr]Mem)
	}
	g := w.groups[in]
	if len(g) != n {
		g = NewMem(n)
		w.groups[in] = g
	}
	return g
}

// A tileView is a view that is read a tile at a time.
type tileView struct {
	Size, Offset   int
	Shape, Strides []int // of dimensions that are not contiguous
}

func newTileView(v *fuse.View, size int) *tileView {
	m := v.Merged()
	return &tileView{size, v.Offset, m.Shape, m.Strides}
}

// repeats reports whether every n elements of the view are the same.
func (v *tileView) repeats(n int) bool {
	return len(v.Shape) > 1 && v.Strides[0] == 0 && n%ir.Product(v.Shape[1:]) == 0
}

// load writes n elements from element lo on.
func (v *tileView) load(dst, src Mem, lo, n int) {
	k := len(v.Shape) - 1
	if k < 0 {
		Fill(dst, src[v.Offset*v.Size:(v.Offset+1)*v.Size])
		return
	}
	var counts [fuse.MostDims]int
	inner, step := v.Shape[k], v.Strides[k]
	row, col := lo/inner, lo%inner
	at := v.Offset // of the row
	for d := k - 1; d >= 0; d-- {
		counts[d] = row % v.Shape[d]
		at += counts[d] * v.Strides[d]
		row /= v.Shape[d]
	}
	for n > 0 {
		boxes, rows, m, d := 1, 1, min(n, inner-col), k-1
		if k > 0 && m == inner {
			rows = min(n/inner, v.Shape[k-1]-counts[k-1])
		}
		if k > 1 && rows == v.Shape[k-1] {
			boxes, d = min(n/(inner*rows), v.Shape[k-2]-counts[k-2]), k-2
			v.boxes(dst, src, at, boxes)
		} else {
			v.rows(dst, src, at+col*step, m, rows)
		}
		dst, n, col = dst[boxes*rows*m*v.Size:], n-boxes*rows*m, 0
		if d == k-1 {
			at = v.next(&counts, at, d, rows)
		} else {
			at = v.next(&counts, at, d, boxes)
		}
	}
}

// boxes writes so many boxes, of all rows of the last two dimensions, one after the other, from
// the box that begins at element at of src.
func (v *tileView) boxes(dst, src Mem, at, boxes int) {
	k := len(v.Shape) - 1
	n, rows, row, box := v.Shape[k], v.Shape[k-1], v.Strides[k-1], v.Strides[k-2]
	if v.Strides[k] == 1 {
		moveBoxes(dst, n*v.Size, rows*n*v.Size, src[at*v.Size:], row*v.Size, box*v.Size, n*v.Size, rows, boxes)
		return
	}
	for i := range boxes {
		v.rows(dst[i*rows*n*v.Size:], src, at+i*box, n, rows)
	}
}

// rows writes the first n elements of so many rows, one after the other, from the row
// that begins at element at of src.
func (v *tileView) rows(dst, src Mem, at, n, rows int) {
	k, stride := len(v.Shape)-1, 0
	if k > 0 {
		stride = v.Strides[k-1]
	}
	from := src[at*v.Size:]
	switch step := v.Strides[k]; step {
	case 0:
		spreadRowsOn(fastest, dst, from, stride*v.Size, v.Size, n, rows)
	case 1:
		MoveRows(dst, n*v.Size, from, stride*v.Size, n*v.Size, rows)
	default:
		boxes[v.Size](dst, from, rows, n, stride, n, step)
	}
}

// boxes, by bytes of an element, move rows of n elements: dstRow and srcRow elements apart,
// and step within the source's.
var boxes = [17]func(dst, src Mem, rows, dstRow, srcRow, n, step int){1: box[uint8], 2: box[uint16], 4: box[uint32], 8: box[uint64], 16: box[[2]uint64]}

func box[T any](dst, src Mem, rows, dstRow, srcRow, n, step int) {
	moveBox(View[T](dst), View[T](src), 0, 0, rows, dstRow, srcRow, n, 1, step)
}

// next is where the row begins that is so many steps along dimension d behind
// the row at at; counts are the indices of a row.
func (v *tileView) next(counts *[fuse.MostDims]int, at, d, by int) int {
	for ; d >= 0; d-- {
		counts[d] += by
		at += by * v.Strides[d]
		if counts[d] < v.Shape[d] {
			break
		}
		at -= counts[d] * v.Strides[d]
		counts[d], by = 0, 1
	}
	return at
}
