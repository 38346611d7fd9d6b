package kernel

import (
	"math"
	"unsafe"

	"ppc/lower/strips"
	"ppc/runtime/kernel/scalar"
)

// A matrixUnit multiplies matrices of float32 on tiles of bfloat16. A number is the sum of three
// parts of 8 bits, the nearest bfloat16 and those of what is left, and of the nine products of parts the six of
// 2^-24 of the product and more are added up, in float32, the largest last and 16 terms at a time
// (Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
// higher-precision computation", 2019). Sums are as close as those of fused products, and closer
// where they are long. Where all numbers of a side are bfloat16s, they have one part.
//
// The unit takes subnormal parts and sums for zero, and the parts of an infinity are no numbers. So an
// element of the product comes from the unit only if [magnitudes.safe] holds for its row and its column, and from vectors
// otherwise: it depends on nothing but its row and its column, like other products.
type matrixUnit struct {
	split func(dst *byte, dstStep, dstNext, partStep int, x *byte, y, step, next, n, rows int, maskX, maskY uint64, seen *byte)
	tiles [2][2]func(chunks int, a *byte, aNext, panels int, b *byte, c *byte, cRow, rows int, mask uint64, add bool, scratch, config, ahead *byte, aheadStep int) // by parts of the sides, 1 or 3
}

// A panel is 32 rows of the left side or 32 columns of the right one. For each chunk of 32
// terms it has three parts one after the other, on the right side the last one first, and of each two tiles of 16 rows of 64 bytes:
// the numbers of a row or column, words 2p and 2p+1 being terms p and p+16.
const (
	chunkTerms = 32
	panelSize  = 32 // rows or columns
	tileBytes  = 1024
	partBytes  = 2 * tileBytes
	chunkBytes = 3 * partBytes
	splitRow   = 64

	aheadTurns = 12 // how often tiles reads ahead for a chunk
)

// A product that the unit makes has at least so many rows and columns, and its sums so many terms: to split
// the sides of others takes longer than the unit saves. Strips of a product have as many ([strips.LeastRows]), and so the same bits.
const (
	leastSide  = strips.LeastRows
	leastTerms = 32
)

// magnitudes are the smallest magnitude but zero and the largest of some numbers.
type magnitudes struct{ lo, hi float32 }

// exact reports whether the parts of the numbers are normal and their sum is the number.
func (x magnitudes) exact() bool { return x.lo >= 0x1p-103 && x.hi <= 0x1p100 }

// safe reports whether products of the parts of the numbers, and the sums of these, are neither so large that they
// overflow nor so small that taking a subnormal one for zero changes a sum by 2^-36 of a product.
func (x magnitudes) safe(y magnitudes) bool {
	return x.exact() && y.exact() && x.lo*y.lo >= 0x1p-90 && x.hi*y.hi <= 0x1p116
}

// seen is what a matrixUnit's split finds, by lane.
type seen struct {
	lo, hi [16]float32
	rest   [16]uint32
}

// none sets s to what is seen before any number.
func (s *seen) none() *seen {
	*s = seen{}
	for i := range s.lo {
		s.lo[i] = float32(math.Inf(1))
	}
	return s
}

// all are the magnitudes of all lanes, and the parts that the numbers have. Magnitudes are compared by their bits, of which
// those of NaN are the largest.
func (s *seen) all() (b magnitudes, parts int32) {
	const inf = 0x7f800000
	lo, hi, rest := uint32(inf), uint32(0), uint32(0)
	for i, r := range s.rest {
		l, h := math.Float32bits(s.lo[i]), math.Float32bits(s.hi[i])
		if lo, hi, rest = min(lo, l), max(hi, h), rest|r; l > inf {
			hi = l
		}
	}
	if parts = 3; rest == 0 {
		parts = 1
	}
	return magnitudes{math.Float32frombits(lo), math.Float32frombits(hi)}, parts
}

// A panelHead stands before a panel of the right side. Where its magnitudes are not exact, the panel is the numbers
// themselves, row by row, because they are not the sums of their parts.
type panelHead struct {
	magnitudes
	parts int32
	_     [splitRow - 12]byte
}

func headOf(panel Mem) *panelHead { return (*panelHead)(unsafe.Pointer(&panel[0])) }

// configs configure tiles by the rows of a panel: the sums of two by two tiles, then two of each side.
var configs = func() (c [panelSize + 1][64]byte) {
	for rows := 1; rows <= panelSize; rows++ {
		c[rows][0] = 1 // palette
		for t := range 8 {
			c[rows][16+2*t] = splitRow
			n := 16
			switch t {
			case 0, 1, 4:
				n = min(16, rows)
			case 2, 3, 5:
				n = max(1, rows-16)
			}
			c[rows][48+t] = byte(n)
		}
	}
	return c
}()

func chunksOf(terms int) int { return (terms + chunkTerms - 1) / chunkTerms }

// splits reports whether the unit makes the product.
func (g *blocked) splits() bool {
	return g.unit != nil && g.elem == 4 && g.k >= leastTerms && g.m >= leastSide && g.n >= leastSide
}

// panelBytes is what a panel of k rows of b takes.
func (g *blocked) panelBytes(k int) int {
	if g.splits() && k > 0 {
		return splitRow + chunksOf(k)*chunkBytes
	}
	return k * g.cols * g.elem
}

// A splitBlock is what is known of a block of a that has been split.
type splitBlock struct {
	magnitudes
	parts int32
}

// mostLeft is how large a left side may be that is split once for all blocks of columns: it stays in the second-level
// cache. Of a larger one each block is split when it is multiplied.
const mostLeft = 1 << 20

// runSplit is run on the unit.
func (g *blocked) runSplit() {
	k, left, right := min(g.k, blockK), (min(g.m, blockM)+panelSize-1)/panelSize, (min(g.n, blockN)+panelSize-1)/panelSize
	g.sums = g.w.temp(left * 4 * tileBytes)
	g.flat = g.w.temp(max(panelSize*g.rowStride(), k*panelSize*g.elem))
	if g.made == nil {
		g.panels = g.w.temp(right * g.panelBytes(k))
	}
	all, once := g.leftBytes(g.k), g.leftBytes(g.k) <= mostLeft
	if !once {
		all = left * chunksOf(k) * chunkBytes
	}
	rows, blocks := g.w.temp(all), g.w.blocks[:0]
	for j := 0; j < g.n; j += blockN {
		n := min(blockN, g.n-j)
		for p, block := 0, 0; p < g.k; p += blockK {
			k := min(blockK, g.k-p)
			if g.made != nil {
				g.panels = g.madeAt(p, j, n)
			} else {
				g.splitPanels(p, j, k, n)
			}
			for i := 0; i < g.m; i += blockM {
				if g.w.Stopped() {
					return
				}
				m := min(blockM, g.m-i)
				switch {
				case !once:
					g.rows = rows
					g.left = g.splitRows(i, p, m, k)
				case j == 0:
					g.rows = rows[g.leftBytes(p)+i/panelSize*chunksOf(k)*chunkBytes:]
					g.left = g.splitRows(i, p, m, k)
					blocks = append(blocks, g.left)
				default:
					g.rows, g.left = rows[g.leftBytes(p)+i/panelSize*chunksOf(k)*chunkBytes:], blocks[block]
				}
				block++
				g.splitBlock(i, p, j, m, n, k)
			}
		}
	}
	g.w.blocks = blocks
}

// leftBytes is what the first k terms of all rows take, as many as blocks have or all.
func (g *blocked) leftBytes(k int) int {
	return (g.m + panelSize - 1) / panelSize * chunksOf(k) * chunkBytes
}

// splitRows splits the block of a of m rows from i and k columns from p to g.rows.
func (g *blocked) splitRows(i, p, m, k int) splitBlock {
	s, chunks, full, rest := g.w.seen.none(), chunksOf(k), k/chunkTerms, k%chunkTerms
	for r := 0; r < m; r += panelSize {
		rows := min(panelSize, m-r)
		x, step := g.address(g.a, i+r, p), g.a.row*g.elem
		if g.a.col != 1 {
			x, step = &g.flat[0], g.rowStride()
			g.transposed(g.flat, step, g.a, i+r, p, rows, k)
		}
		split := func(chunk, n, terms int) {
			dst, from := &g.rows[(r/panelSize*chunks+chunk)*chunkBytes], unsafe.Add(unsafe.Pointer(x), chunk*chunkTerms*4)
			g.unit.split(dst, chunkBytes, splitRow, partBytes, (*byte)(from), chunkTerms/2*4, chunkTerms*4, step, n, rows, ones(terms), ones(terms-16), s.mem())
		}
		if full > 0 {
			split(0, full, chunkTerms)
		}
		if rest > 0 {
			split(full, 1, rest)
		}
	}
	found, parts := s.all()
	return splitBlock{found, parts}
}

func (s *seen) mem() *byte { return (*byte)(unsafe.Pointer(s)) }

// ones are the lowest n bits of 16.
func ones(n int) uint64 { return 1<<max(0, min(16, n)) - 1 }

// splitPanels splits the block of b of k rows from p and n columns from j.
func (g *blocked) splitPanels(p, j, k, n int) {
	size := g.panelBytes(k)
	for q := 0; q < n; q += panelSize {
		panel, cols := g.panels[q/panelSize*size:][:size], min(panelSize, n-q)
		if g.b.col == 1 {
			g.splitPanel(panel, g.address(g.b, p, j+q), g.b.row*g.elem, k, cols)
			continue
		}
		g.piece(g.flat, g.b, p, j+q, k, cols)
		g.splitPanel(panel, &g.flat[0], panelSize*g.elem, k, cols)
	}
}

// splitPanel splits k rows of cols columns at x, step bytes apart.
func (g *blocked) splitPanel(panel Mem, x *byte, step, k, cols int) {
	s := g.w.seen.none()
	g.splitColumns(panel[splitRow:], x, step, k, cols)
	found, parts := s.all()
	*headOf(panel) = panelHead{magnitudes: found, parts: parts}
	if !found.exact() {
		clear(panel[splitRow:])
		MoveRows(panel[splitRow:], panelSize*4, unsafe.Slice(x, (k-1)*step+cols*4), step, cols*4, k)
	}
}

// splitColumns writes the chunks of k rows of cols columns at x, step bytes apart.
func (g *blocked) splitColumns(dst Mem, x *byte, step, k, cols int) {
	full, rest := k/chunkTerms, k%chunkTerms
	for half := range 2 {
		mask := ones(cols - 16*half)
		split := func(chunk, row, n, chunks int, maskX, maskY uint64) {
			if n > 0 && chunks > 0 {
				to, from := &dst[chunk*chunkBytes+2*partBytes+half*tileBytes+row*splitRow], x
				if maskX != 0 {
					from = (*byte)(unsafe.Add(unsafe.Pointer(x), (chunk*chunkTerms+row)*step+half*splitRow))
				}
				g.unit.split(to, splitRow, chunkBytes, -partBytes, from, chunkTerms/2*step, step, chunkTerms*step, n, chunks, maskX, maskY, g.w.seen.mem())
			}
		}
		split(0, 0, 16, full, mask, mask)
		if rest > 0 { // rows of two terms, of one and of none
			two, one := max(0, rest-16), min(rest, 16)
			split(full, 0, two, 1, mask, mask)
			split(full, two, one-two, 1, mask, 0)
			split(full, one, 16-one, 1, 0, 0)
		}
	}
}

// splitBlock multiplies the block of a that has been split with the panels of b from column j.
func (g *blocked) splitBlock(i, p, j, m, n, k int) {
	chunks, size := chunksOf(k), g.panelBytes(k)
	aNext, cRow := chunks*chunkBytes, g.n*g.elem
	for q := 0; q < n; q += panelSize {
		panel, mask := g.panels[q/panelSize*size:][:size], uint64(1)<<min(panelSize, n-q)-1
		head := headOf(panel)
		if !g.left.safe(head.magnitudes) {
			g.carefully(i, p, j+q, m, k, panel)
			continue
		}
		tiles := g.unit.tiles[g.left.parts/3][head.parts/3]
		full, rest := m/panelSize, m%panelSize
		ahead, aheadStep := &panel[0], 0
		if next := (q/panelSize + 1) * size; next < len(g.panels) {
			turns := aheadTurns * chunks * max(full, 1)
			ahead, aheadStep = &g.panels[next], (size+turns-1)/turns
		}
		if full > 0 {
			tiles(chunks, &g.rows[0], aNext, full, &panel[splitRow], &g.c[(i*g.n+j+q)*g.elem], cRow, panelSize, mask, p > 0, &g.sums[0], &configs[panelSize][0], ahead, aheadStep)
		}
		if rest > 0 {
			tiles(chunks, &g.rows[full*aNext], aNext, 1, &panel[splitRow], &g.c[((i+full*panelSize)*g.n+j+q)*g.elem], cRow, rest, mask, p > 0, &g.sums[0], &configs[rest][0], ahead, 0)
		}
	}
}

// carefully multiplies the rows of a block of a with a panel of b where some elements of the product
// are not the unit's.
func (g *blocked) carefully(i, p, j, m, k int, panel Mem) {
	depth := g.w.depth
	defer func() { g.w.depth = depth }()
	const width = panelSize * 4
	head, chunks := headOf(panel), chunksOf(k)
	plain, parts := panel[splitRow:], panel[splitRow:]
	if !head.exact() {
		parts = g.w.temp(chunks * chunkBytes)
		g.splitColumns(parts, &plain[0], width, k, panelSize)
	} else {
		plain = g.w.temp(k * width)
		join(View[float32](plain), View[uint16](parts), k)
	}
	var cols [panelSize]magnitudes
	for c := range cols {
		cols[c].lo, cols[c].hi = scalar.Magnitudes(View[float32](plain)[c:], k, panelSize)
	}
	a, aRow, aCol := g.address(g.a, i, p), g.a.row*g.elem, g.a.col*g.elem
	unit, vectors := g.w.temp(panelSize*width), g.w.temp(panelSize*width)
	x, y := View[float32](unit), View[float32](vectors)
	for at := 0; at < m; at += panelSize {
		rows := min(panelSize, m-at)
		g.unit.tiles[1][1](chunks, &g.rows[at/panelSize*chunks*chunkBytes], 0, 1, &parts[0], &unit[0], width, rows, 1<<panelSize-1, false, &g.sums[0], &configs[rows][0], &parts[0], 0)
		for r := 0; r < rows; r += len(g.tiles) {
			x := (*byte)(unsafe.Add(unsafe.Pointer(a), (at+r)*aRow))
			g.tiles[min(len(g.tiles), rows-r)-1](k, x, aRow, aCol, &plain[0], width, &vectors[r*width], width, 1<<panelSize-1, false, &plain[0], 0, 1, 0)
		}
		for r := range rows {
			var row magnitudes
			row.lo, row.hi = scalar.Magnitudes(View[float32](g.a.mem)[(i+at+r)*g.a.row+p*g.a.col:], k, g.a.col)
			c := View[float32](g.c)[(i+at+r)*g.n+j:]
			for q := range min(panelSize, g.n-j) {
				v := y[r*panelSize+q]
				if row.safe(cols[q]) {
					v = x[r*panelSize+q]
				}
				if p > 0 {
					v = c[q] + v
				}
				c[q] = v
			}
		}
	}
}

// join adds up the parts of k rows of a panel.
func join(dst []float32, parts []uint16, k int) {
	for r := range k {
		from := r/chunkTerms*chunkBytes/2 + r%16*splitRow/2 + r%chunkTerms/16
		for c := range panelSize {
			at, v := from+c/16*tileBytes/2+c%16*2, float32(0)
			for part := range 3 {
				v += math.Float32frombits(uint32(parts[at+part*partBytes/2]) << 16)
			}
			dst[r*panelSize+c] = v
		}
	}
}
