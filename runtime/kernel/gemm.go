package kernel

import (
	"unsafe"

	"ppc/ir"
	"ppc/lower/strips"
	"ppc/runtime/kernel/scalar"
)

// A matrix is two dimensions of elements in memory: element (i, j) is at
// i*row + j*col, counted in elements.
type matrix struct {
	mem      Mem
	row, col int
}

// A gemm sets c [m, n], dense and row-major, to the product of a [m, k] and b [k, n]. The sum of an element has its k
// products in order, floats in blocks of [strips.SumBlock] whose sums are added up in order; so the same operands give the
// same bits on one tier, however they are stored, and in strips. It may leave c unfinished when w is stopped.
type gemm func(w *Work, c Mem, a, b matrix, m, n, k int)

// A tileFunc computes so many tiles of a product, one below the other: c = a*b, or c += a*b, each of as many rows as the
// function is for and two vectors of columns. a and b have k columns and rows. Strides are in bytes; b and c have their
// columns together. mask has a bit for each column that there is, where the tier has masks. From next on, at every nextStep
// bytes, is memory that is read soon, and so are the rows that are below bytes from those of the last tile.
type tileFunc func(k int, a *byte, aRow, aCol int, b *byte, bRow int, c *byte, cRow int, mask uint64, add bool, next *byte, nextStep, tiles, below int)

// A tier is one way to compute with floats.
type tier struct {
	name     string
	has      bool // by this machine
	vector   int  // bytes of a vector; 0 is the portable tier
	masks    bool // tiles may have fewer columns
	f32, f64 []tileFunc
	unit     *matrixUnit // nil: there is none

	ops                             map[ir.DType]*vectorOps                // of F32, F64 and, comparisons alone, I32
	fromBool, widenBF16, narrowBF16 vectorUnary                            // to f32, and from it
	copyRows                        func(dst, src *byte, stride, rows int) // of two vectors
	moveRows                        func(dst *byte, dstRow int, src *byte, srcRow, bytes, rows, dstSkip, srcSkip, boxes int)
	spreadRows                      [17]func(dst, src *byte, step, bytes, rows int) // by bytes of an element
	peak                            func(blocks int)                                // a loop of so many turns
	lanes                           int                                             // operations of a turn
}

// portable computes in plain Go.
var portable = tier{name: "portable", has: true, peak: scalar.Peak, lanes: 16}

// fastest is the tier of this machine.
var fastest = func() *tier {
	for i := range tiers {
		if tiers[i].has {
			return &tiers[i]
		}
	}
	panic("kernel: no tier")
}()

// gemmFloat multiplies matrices of f32 or f64 on the fastest tier.
func gemmFloat[T float](w *Work, c Mem, a, b matrix, m, n, k int) {
	gemmOn[T](fastest, w, c, a, b, m, n, k)
}

func gemmOn[T float](t *tier, w *Work, c Mem, a, b matrix, m, n, k int) {
	var x T
	elem := int(unsafe.Sizeof(x))
	switch {
	case m == 0 || n == 0:
		return
	case k == 0:
		clear(c)
		return
	case t.vector == 0 || n == 1:
		multiplyDense(multiplyBlocks[T], w, c, a, b, m, n, k)
		return
	}
	tiles := t.f32
	if elem == 8 {
		tiles = t.f64
	}
	depth := w.depth
	g := blocked{tier: t, tiles: tiles, elem: elem, cols: 2 * t.vector / elem, w: w, c: c, a: a, b: b, m: m, n: n, k: k}
	g.run()
	w.depth = depth
}

func multiplyBlocks[T float](w scalar.Stopper, c, a, b []T, m, n, k int) {
	scalar.Multiply(w, blockK, c, a, b, m, n, k)
}

// Sizes of blocks, in bytes of a row. A panel of b, blockK rows of two vectors, stays in the first-level cache while the
// rows of a block of a pass by, which stays in the second. blockK is the length of the sums that are made before they are added up.
const (
	blockK = strips.SumBlock // elements
	blockM = 256             // rows
	blockN = 512             // columns
)

// A blocked product is multiplied block by block: of b in panels, each the
// columns of one tile together, and of a in rows.
type blocked struct {
	*tier
	tiles      []tileFunc // by rows - 1
	elem, cols int        // bytes of an element, columns of a tile
	w          *Work
	c          Mem
	a, b       matrix
	m, n, k    int

	made               Mem // b in panels, where it has been made before: b has no memory then
	panels, rows, edge Mem // packed b, packed a, a tile of c at the edge
	flat, sums         Mem // of the matrix unit: rows or columns together that are about to be split, sums of a block

	left splitBlock // what is known of the block of a that the unit has split
}

func (g *blocked) run() {
	if g.splits() {
		g.runSplit()
		return
	}
	packB, packA := g.made == nil && g.packsB(), g.packsA()
	if packB {
		g.panels = g.w.temp(min(g.k, blockK) * (min(g.n, blockN) + g.cols) * g.elem)
	}
	if packA {
		g.rows = g.w.temp(min(g.m, blockM) * g.rowStride())
	}
	if !g.masks {
		g.edge = g.w.temp(len(g.tiles) * 2 * g.vector)
	}
	for j := 0; j < g.n; j += blockN {
		n := min(blockN, g.n-j)
		for p := 0; p < g.k; p += blockK {
			k := min(blockK, g.k-p)
			if packB {
				g.packPanels(p, j, k, n)
			}
			if g.made != nil {
				g.panels = g.madeAt(p, j, n)
			}
			for i := 0; i < g.m; i += blockM {
				if g.w.Stopped() {
					return
				}
				m := min(blockM, g.m-i)
				a := g.address(g.a, i, p)
				aRow, aCol := g.a.row*g.elem, g.a.col*g.elem
				if packA {
					g.packRows(i, p, m, k)
					a, aRow, aCol = &g.rows[0], g.rowStride(), g.elem
				}
				g.block(i, p, j, m, n, k, a, aRow, aCol)
			}
		}
	}
}

func (g *blocked) address(x matrix, i, j int) *byte {
	return &x.mem[(i*x.row+j*x.col)*g.elem]
}

// packsB reports whether b is brought into panels: it must be where its columns are not together, or where a tile at the
// edge would read beyond it; and it pays where it is read often and does not stay in the cache as it is stored.
func (g *blocked) packsB() bool {
	stride := g.b.row * g.elem
	return g.splits() || g.b.col != 1 || !g.masks && g.n%g.cols != 0 || g.m >= 4*len(g.tiles) && (g.k*g.n*g.elem > 1<<17 || stride%2048 == 0 && g.k > 16)
}

// packsA reports whether the rows of a are copied into contiguous panels.
func (g *blocked) packsA() bool {
	stride := max(g.a.row, g.a.col) * g.elem
	return g.n > g.cols && (g.a.col != 1 && g.k > 16 || stride%2048 == 0 || g.m*g.k*g.elem > 1<<18)
}

// rowStride is the distance of packed rows of a: no multiple of the page, whose lines all have the same places in the cache.
func (g *blocked) rowStride() int {
	return (min(g.k, blockK)*g.elem+63)&^63 + 64
}

// Tiles bring a line of what is read next into the cache for each turn of so many products of an element.
const line, turn = 64, 4

// block multiplies one block of a, at a, with the panels of b from column j.
func (g *blocked) block(i, p, j, m, n, k int, a *byte, aRow, aCol int) {
	most := len(g.tiles)
	tiles := (m + most - 1) / most
	low, more := m/tiles, m%tiles // rows of a tile, and how many have one more
	width := g.cols * g.elem
	cRow := g.n * g.elem
	turns := max(1, k/turn)
	for q := 0; q < n; q += g.cols {
		cols := min(g.cols, n-q)
		b, bRow := g.panelAt(p, j, q, k)
		next, nextStep, lines := b, 0, 0 // the lines of the next panel that are still to be prefetched
		if q+g.cols < n {
			next, nextStep = g.panelAt(p, j, q+g.cols, k)
			if lines = k; nextStep == width {
				nextStep, lines = line, k*width/line
			}
		}
		if q == 0 {
			prefetchRows(b, bRow, k)
		}
		mask := uint64(1)<<cols - 1
		for t, at := 0, 0; t < tiles; {
			rows, count := low, tiles-t
			if t < more {
				rows, count = low+1, more-t
			}
			if lines > 0 {
				count = min(count, (lines+turns-1)/turns)
			} else {
				next, nextStep = b, 0
			}
			x := (*byte)(unsafe.Add(unsafe.Pointer(a), at*aRow))
			below := rows * aRow // from the last tile to what is read then
			if t+count == tiles {
				below = (rows - m) * aRow
			}
			if cols == g.cols || g.masks {
				c := &g.c[((i+at)*g.n+j+q)*g.elem]
				g.tiles[rows-1](k, x, aRow, aCol, b, bRow, c, cRow, mask, p > 0, next, nextStep, count, below)
			} else {
				count = 1
				g.edgeTile(rows, cols, k, x, aRow, aCol, b, bRow, (i+at)*g.n+j+q, p > 0)
			}
			if lines -= count * turns; lines > 0 {
				next = (*byte)(unsafe.Add(unsafe.Pointer(next), count*turns*nextStep))
			}
			t, at = t+count, at+count*rows
		}
	}
}

// panelAt is the panel of the k rows of b from p and the columns of a tile from j+q, and the stride of its rows in bytes.
func (g *blocked) panelAt(p, j, q, k int) (b *byte, bRow int) {
	if width := g.cols * g.elem; g.panels != nil {
		return &g.panels[q/g.cols*k*width], width
	}
	return g.address(g.b, p, j+q), g.b.row * g.elem
}

// edgeTile computes a tile of fewer columns beside c and moves it there.
func (g *blocked) edgeTile(rows, cols, k int, a *byte, aRow, aCol int, b *byte, bRow, at int, add bool) {
	width, used := g.cols*g.elem, cols*g.elem
	for r := range rows {
		if add {
			copy(g.edge[r*width:][:used], g.c[(at+r*g.n)*g.elem:])
		}
		clear(g.edge[r*width+used : (r+1)*width])
	}
	g.tiles[rows-1](k, a, aRow, aCol, b, bRow, &g.edge[0], width, 0, add, b, 0, 1, 0)
	for r := range rows {
		copy(g.c[(at+r*g.n)*g.elem:][:used], g.edge[r*width:])
	}
}

// madeAt is the block of panels of the rows from p and the n columns from j.
func (g *blocked) madeAt(p, j, n int) Mem {
	block := g.panelBytes(blockK)
	column := g.k/blockK*block + g.panelBytes(g.k%blockK) // of panels
	return g.made[j/g.cols*column+(n+g.cols-1)/g.cols*(p/blockK*block):]
}

// packPanels brings the block of b of k rows from p and n columns from j into panels: the columns of a tile, row
// after row. Columns that are not there are zeros.
func (g *blocked) packPanels(p, j, k, n int) {
	width := g.cols * g.elem
	for q := 0; q < n; q += g.cols {
		cols := min(g.cols, n-q)
		panel := g.panels[q/g.cols*k*width:][:k*width]
		if cols < g.cols {
			clear(panel)
		}
		g.piece(panel, g.b, p, j+q, k, cols)
	}
}

// piece sets rows of a panel to those of x from (i, j): the first cols columns.
func (g *blocked) piece(panel Mem, x matrix, i, j, rows, cols int) {
	width := g.cols * g.elem
	switch {
	case x.col == 1 && cols == g.cols:
		g.copyRows(&panel[0], g.address(x, i, j), x.row*g.elem, rows)
	case x.col == 1:
		MoveRows(panel, width, x.mem[(i*x.row+j)*g.elem:], x.row*g.elem, cols*g.elem, rows)
	default:
		g.transposed(panel, width, x, i, j, rows, cols)
	}
}

// packRows brings the block of a of m rows from i and k columns from p together.
func (g *blocked) packRows(i, p, m, k int) {
	stride := g.rowStride()
	if g.a.col != 1 {
		g.transposed(g.rows, stride, g.a, i, p, m, k)
		return
	}
	for r := range m {
		from := ((i+r)*g.a.row + p) * g.elem
		copy(g.rows[r*stride:], g.a.mem[from:from+k*g.elem])
	}
}

// transposed sets rows of dst, stride bytes apart, to those of x from (i, j): rows of cols elements. Where the rows of
// x are what is together, it goes by square blocks.
func (g *blocked) transposed(dst Mem, stride int, x matrix, i, j, rows, cols int) {
	side := 32 / g.elem
	done := 0 // columns
	full := rows / side
	if x.row == 1 && full > 0 {
		for ; done+side <= cols; done += side {
			transposeBlocks(g.elem, &dst[done*g.elem], stride, g.address(x, i, j+done), x.col*g.elem, full)
		}
		if rest := rows - full*side; rest > 0 {
			g.strided(dst[full*side*stride:], stride, x, i+full*side, j, rest, done)
		}
	}
	if done < cols {
		g.strided(dst[done*g.elem:], stride, x, i, j+done, rows, cols-done)
	}
}

// strided is transposed, an element at a time.
func (g *blocked) strided(dst Mem, stride int, x matrix, i, j, rows, cols int) {
	for r := range rows {
		for c := range cols {
			from := ((i+r)*x.row + (j+c)*x.col) * g.elem
			if g.elem == 4 {
				*(*uint32)(unsafe.Pointer(&dst[r*stride+c*4])) = *(*uint32)(unsafe.Pointer(&x.mem[from]))
			} else {
				*(*uint64)(unsafe.Pointer(&dst[r*stride+c*8])) = *(*uint64)(unsafe.Pointer(&x.mem[from]))
			}
		}
	}
}
