// Asmgen writes the amd64 kernels of package runtime/kernel and their
// declarations.
//
//	go run . -out ../../runtime/kernel/tiles_amd64.s -stubs ../../runtime/kernel/tiles_amd64.go -scalar ../../runtime/kernel/scalar/functions.go -native ../../runtime/kernel/native/functions.go -pkg kernel
//
// It is a module of its own, so that ppc does not depend on the generator.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// An elem is an element type: its instructions.
type elem struct {
	name      string
	size      int
	broadcast func(...Op)
	load      func(...Op)
	loadZero  func(m, mask, v Op) // zeros where the mask has none
	fma       func(...Op)
	fmaOne    func(...Op) // of one element in memory, for all lanes
	add       func(...Op)
	test      func(k, same Op) // sets the carry where the mask of a vector of 64 bytes has all lanes, and the zero flag where it has none
}

var elems = []elem{
	{"F32", 4, VBROADCASTSS, VMOVUPS, VMOVUPS_Z, VFMADD231PS, VFMADD231PS_BCST, VADDPS, KORTESTW},
	{"F64", 8, VBROADCASTSD, VMOVUPD, VMOVUPD_Z, VFMADD231PD, VFMADD231PD_BCST, VADDPD, KORTESTB},
}

func main() {
	ConstraintExpr("amd64")
	for _, e := range elems {
		for rows := 1; rows <= 8; rows++ {
			tile(e, rows, 64)
		}
		for rows := 1; rows <= 6; rows++ {
			tile(e, rows, 32)
		}
	}
	transpose32()
	transpose64()
	prefetchRows()
	moveRows()
	for i := range elems {
		spreadRows(elems[i])
	}
	for i := range elems {
		for _, bytes := range []int{64, 32} {
			v := &vectors{e: &elems[i], bytes: bytes}
			for _, f := range functions {
				v.loop(f)
			}
			for _, c := range comparisons {
				v.comparison(c.name, func(x val, y Mem) mask { return v.compare(c.float, x, y) })
			}
			v.choice()
			for _, f := range folds {
				v.rows(f)
			}
		}
	}
	for _, bytes := range []int{64, 32} {
		ints := elems[0]
		ints.name = "I32"
		i := &vectors{e: &ints, bytes: bytes}
		for _, c := range comparisons {
			i.comparison(c.name, func(x val, y Mem) mask { return i.compareInts(c.integer, x, y) })
		}
		v := &vectors{e: &elems[0], bytes: bytes}
		v.fromBits()
		v.widen()
		v.narrow()
		v.copyRows()
		v.peak()
	}
	splitPairs()
	for _, parts := range [][2]int{{3, 3}, {3, 1}, {1, 3}, {1, 1}} {
		matrixTiles(parts[0], parts[1])
	}
	scalar := flag.String("scalar", "", "the Go file of the elementary functions")
	native := flag.String("native", "", "the Go file of the elementary functions for code that is made at run time")
	flag.Parse()
	for file, text := range map[string]string{*scalar: scalarText(), *native: nativeText()} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			log.Fatal(err)
		}
	}
	pass.Compile = pass.Concat(pass.Compile, pass.FunctionPass(dropMoves))
	Generate()
}

// dropMoves removes moves of a vector register to itself, which take a turn of a port.
func dropMoves(f *ir.Function) error {
	f.Nodes = slices.DeleteFunc(f.Nodes, func(n ir.Node) bool {
		i, ok := n.(*ir.Instruction)
		return ok && strings.HasPrefix(i.Opcode, "VMOVUP") && len(i.Operands) == 2 && i.Operands[0].Asm() == i.Operands[1].Asm()
	})
	return nil
}

// rowsOf addresses rows of a matrix, stride bytes apart, through few registers:
// a base for every five rows, and the stride and three times the stride.
type rowsOf struct {
	bases           []reg.GPVirtual
	stride, stride3 reg.GPVirtual
}

func newRows(base, stride reg.GPVirtual, n int) rowsOf {
	r := rowsOf{bases: []reg.GPVirtual{base}, stride: stride, stride3: GP64()}
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, r.stride3)
	for i := 5; i < n; i += 5 {
		p := GP64()
		LEAQ(Mem{Base: r.bases[len(r.bases)-1], Index: stride, Scale: 4}, p)
		ADDQ(stride, p)
		r.bases = append(r.bases, p)
	}
	return r
}

func (r rowsOf) at(i, disp int) Mem {
	m := Mem{Base: r.bases[i/5], Disp: disp}
	switch i % 5 {
	case 1:
		m.Index, m.Scale = r.stride, 1
	case 2:
		m.Index, m.Scale = r.stride, 2
	case 3:
		m.Index, m.Scale = r.stride3, 1
	case 4:
		m.Index, m.Scale = r.stride, 4
	}
	return m
}

func (r rowsOf) advance(by Op) {
	for _, p := range r.bases {
		ADDQ(by, p)
	}
}

func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// A tileMaker emits the kernel of tiles one below the other.
type tileMaker struct {
	e           elem
	rows, bytes int
	masked      bool
	masks       [2]reg.OpmaskVirtual
	next        reg.GPVirtual
	sums        [][2]reg.VecVirtual
}

// tile emits the kernel of so many tiles, one below the other, of rows rows and two vectors of the given
// bytes: c = a*b, or c += a*b, where a is rows x k, b is k x columns and has its
// columns together. Strides are in bytes. The k products of an element are
// fused into one sum in order, which is then stored, or added to the element.
// With vectors of 64 bytes, mask has a bit for each column that there is. Lines from next
// on, nextStep bytes apart, are brought into the second-level cache, one for every turn. Below is from the last tile
// to the rows that are read after it: to look for a page that is not there takes hundreds of cycles each time.
func tile(e elem, rows, bytes int) {
	t := &tileMaker{e: e, rows: rows, bytes: bytes, masked: bytes == 64, sums: make([][2]reg.VecVirtual, rows)}
	TEXT(fmt.Sprintf("tile%sx%d_%d", e.name, bytes*8, rows), NOSPLIT,
		"func(k int, a *byte, aRow, aCol int, b *byte, bRow int, c *byte, cRow int, mask uint64, add bool, next *byte, nextStep, tiles, below int)")
	Pragma("noescape")
	t.readMask()
	t.next = param("next")
	Label("tile")
	t.multiply()
	t.store()
	DECQ(argument("tiles"))
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// argument is where an argument is in memory.
func argument(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

func (t *tileMaker) vector() reg.VecVirtual {
	if t.masked {
		return ZMM()
	}
	return YMM()
}

// readMask brings the mask into registers, one for each vector.
func (t *tileMaker) readMask() {
	if !t.masked {
		return
	}
	m := param("mask")
	for j := range t.masks {
		t.masks[j] = K()
		KMOVW(m.As32(), t.masks[j])
		if j == 0 {
			SHRQ(Imm(uint64(t.bytes/t.e.size)), m)
		}
	}
}

// multiply makes the sums of a tile, and moves the argument a to the next one.
func (t *tileMaker) multiply() {
	a := newRows(param("a"), param("aRow"), t.rows)
	below := GP64()
	IMUL3Q(Imm(uint64(t.rows)), a.stride, below)
	ADDQ(below, argument("a"))
	ahead := t.ahead(a, below)
	aCol, b, bRow, k := param("aCol"), param("b"), param("bRow"), param("k")
	for i := range t.sums {
		for j := range t.sums[i] {
			t.sums[i][j] = t.vector()
			zero(t.sums[i][j], t.masked)
		}
	}
	t.prefetch()
	t.narrow(a, aCol, b, bRow, k)
	t.unrolled(a, ahead, aCol, b, bRow, k)
	Label("loop")
	t.products(a, 0, Mem{Base: b}, t.load)
	a.advance(aCol)
	ADDQ(bRow, b)
	DECQ(k)
	JNZ(LabelRef("loop"))
	Label("made")
}

// narrow makes the sums where the mask has no column of the second vector, and goes on at made: half of the products would be
// of no column.
func (t *tileMaker) narrow(a rowsOf, aCol, b, bRow, k reg.GPVirtual) {
	if !t.masked {
		return
	}
	t.e.test(t.masks[1], t.masks[1])
	JNZ(LabelRef("wide"))
	t.e.test(t.masks[0], t.masks[0])
	JCC(LabelRef("narrow"))
	for _, loop := range []struct {
		name string
		load func(b Mem, j int, v reg.VecVirtual)
	}{{"narrowFull", t.loadFull}, {"narrow", t.load}} {
		Label(loop.name)
		row := t.vector()
		loop.load(Mem{Base: b}, 0, row)
		for i := range t.rows {
			t.e.fmaOne(a.at(i, 0), row, t.sums[i][0])
		}
		a.advance(aCol)
		ADDQ(bRow, b)
		DECQ(k)
		JNZ(LabelRef(loop.name))
		JMP(LabelRef("made"))
	}
	Label("wide")
}

// turns is how many products of an element are made in a turn of the loop where the
// columns of a are together: what a turn counts and advances costs a fifth of the products
// of one column on tiles of vectors of 32 bytes.
const turns = 4

// line is the bytes of a line of the caches.
const line = 64

// unrolled makes the sums of all columns but those that are fewer than a turn, where the
// columns of a are together and the mask has every column, and leaves k, a and b at the rest; it goes on at made where
// there is no rest.
func (t *tileMaker) unrolled(a, ahead rowsOf, aCol, b, bRow, k reg.GPVirtual) {
	CMPQ(aCol, Imm(uint64(t.e.size)))
	JNE(LabelRef("loop"))
	if t.masked {
		t.e.test(t.masks[1], t.masks[1])
		JCC(LabelRef("loop"))
	}
	n, bRow3, nextStep := GP64(), GP64(), param("nextStep")
	MOVQ(k, n)
	SHRQ(Imm(2), n)
	JZ(LabelRef("loop"))
	LEAQ(Mem{Base: bRow, Index: bRow, Scale: 2}, bRow3)
	Label("turn")
	for i, row := range [turns]Mem{{Base: b}, {Base: b, Index: bRow, Scale: 1}, {Base: b, Index: bRow, Scale: 2}, {Base: b, Index: bRow3, Scale: 1}} {
		t.products(a, i*t.e.size, row, t.loadFull)
		for r := i; r < t.rows && ahead.bases != nil; r += turns {
			PREFETCHT0(ahead.at(r, 0))
		}
	}
	PREFETCHT1(Mem{Base: t.next})
	ADDQ(nextStep, t.next)
	a.advance(Imm(uint64(turns * t.e.size)))
	ahead.advance(Imm(uint64(turns * t.e.size)))
	LEAQ(Mem{Base: b, Index: bRow, Scale: 4}, b)
	DECQ(n)
	JNZ(LabelRef("turn"))
	ANDQ(Imm(turns-1), k)
	JZ(LabelRef("made"))
}

// ahead are the rows of the next tile, so many bytes below a, and of the last one those that the argument below says;
// they are brought into the first-level cache. With vectors of 64 bytes there are none: products leave fewer turns of the ports
// of loads.
func (t *tileMaker) ahead(a rowsOf, below reg.GPVirtual) (r rowsOf) {
	if t.masked {
		return
	}
	CMPQ(argument("tiles"), Imm(1))
	CMOVQEQ(argument("below"), below)
	r.stride, r.stride3 = a.stride, a.stride3
	for _, base := range a.bases {
		p := GP64()
		LEAQ(Mem{Base: base, Index: below, Scale: 1}, p)
		r.bases = append(r.bases, p)
	}
	return
}

// load reads vector j of a row of b, where the mask has a column.
func (t *tileMaker) load(b Mem, j int, v reg.VecVirtual) {
	if !t.masked {
		t.loadFull(b, j, v)
		return
	}
	t.e.loadZero(b.Offset(t.bytes*j), t.masks[j], v)
}

// loadFull is load of a row that has all columns. A load with a mask takes a turn of a port that
// products take too: with 8 rows, one for each 8 products.
func (t *tileMaker) loadFull(b Mem, j int, v reg.VecVirtual) { t.e.load(b.Offset(t.bytes*j), v) }

// products adds those of the column of a at disp with a row of b to the sums.
func (t *tileMaker) products(a rowsOf, disp int, b Mem, load func(b Mem, j int, v reg.VecVirtual)) {
	var bs [2]reg.VecVirtual
	for j := range bs {
		bs[j] = t.vector()
		load(b, j, bs[j])
	}
	for i := range t.rows {
		x := t.vector()
		t.e.broadcast(a.at(i, disp), x)
		for j := range bs {
			t.e.fma(bs[j], x, t.sums[i][j])
		}
	}
}

// prefetch brings the rows of c into the cache while the sums are made.
func (t *tileMaker) prefetch() {
	c, cRow := param("c"), param("cRow")
	for i := range t.rows {
		PREFETCHT0(Mem{Base: c})
		PREFETCHT0(Mem{Base: c, Disp: t.bytes})
		if i < t.rows-1 {
			ADDQ(cRow, c)
		}
	}
}

// store adds the elements of c to the sums, if that is asked for, and stores them.
func (t *tileMaker) store() {
	c, cRow := param("c"), param("cRow")
	add := Load(Param("add"), GP8())
	TESTB(add, add)
	JZ(LabelRef("store"))
	at := GP64()
	MOVQ(c, at)
	t.each(at, cRow, func(m Mem, sum reg.VecVirtual, mask reg.OpmaskVirtual) {
		if t.masked { // lanes without a column are not read
			t.e.add(m, sum, mask, sum)
		} else {
			t.e.add(m, sum, sum)
		}
	})
	Label("store")
	t.each(c, cRow, func(m Mem, sum reg.VecVirtual, mask reg.OpmaskVirtual) {
		if t.masked {
			t.e.load(sum, mask, m)
		} else {
			t.e.load(sum, m)
		}
	})
	MOVQ(c, argument("c"))
}

// each visits the vectors of c, row by row, from at.
func (t *tileMaker) each(at, cRow reg.GPVirtual, visit func(m Mem, sum reg.VecVirtual, mask reg.OpmaskVirtual)) {
	for i := range t.rows {
		for j, sum := range t.sums[i] {
			visit(Mem{Base: at, Disp: t.bytes * j}, sum, t.masks[j])
		}
		ADDQ(cRow, at)
	}
}

func zero(v reg.VecVirtual, wide bool) {
	if wide {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

const transposeArgs = "func(dst *byte, dstRow int, src *byte, srcRow, blocks int)"

// transpose32 emits the transposition of a matrix of 8 rows of 4-byte elements,
// 8 columns in each of so many blocks.
func transpose32() {
	TEXT("transpose32x8", NOSPLIT, transposeArgs)
	Pragma("noescape")
	dst := newRows(param("dst"), param("dstRow"), 8)
	src := newRows(param("src"), param("srcRow"), 8)
	n := param("blocks")
	step := GP64() // eight rows of dst
	LEAQ(Mem{Base: dst.stride, Index: dst.stride, Scale: 1}, step)
	SHLQ(Imm(2), step)
	Label("loop")
	r := make([]reg.VecVirtual, 8)
	for i := range r { // columns 0..3 of row i and of row i+4, then columns 4..7
		r[i] = YMM()
		row, half := i%4, i/4*16
		VMOVUPS(src.at(row, half), r[i].AsX())
		VINSERTF128(Imm(1), src.at(row+4, half), r[i], r[i])
	}
	for h := range 2 {
		var t [4]reg.VecVirtual
		for i := range t {
			t[i] = YMM()
		}
		x := r[4*h : 4*h+4]
		VUNPCKLPS(x[1], x[0], t[0])
		VUNPCKHPS(x[1], x[0], t[1])
		VUNPCKLPS(x[3], x[2], t[2])
		VUNPCKHPS(x[3], x[2], t[3])
		for i := range 2 {
			even, odd := YMM(), YMM()
			VSHUFPS(Imm(0x44), t[i+2], t[i], even)
			VSHUFPS(Imm(0xee), t[i+2], t[i], odd)
			VMOVUPS(even, dst.at(4*h+2*i, 0))
			VMOVUPS(odd, dst.at(4*h+2*i+1, 0))
		}
	}
	dst.advance(step)
	src.advance(Imm(32))
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// transpose64 emits the transposition of a matrix of 4 rows of 8-byte elements,
// 4 columns in each of so many blocks.
func transpose64() {
	TEXT("transpose64x4", NOSPLIT, transposeArgs)
	Pragma("noescape")
	dst := newRows(param("dst"), param("dstRow"), 4)
	src := newRows(param("src"), param("srcRow"), 4)
	n := param("blocks")
	step := GP64() // four rows of dst
	MOVQ(dst.stride, step)
	SHLQ(Imm(2), step)
	Label("loop")
	r := make([]reg.VecVirtual, 4)
	for i := range r { // columns 0, 1 of row i and of row i+2, then columns 2, 3
		r[i] = YMM()
		row, half := i%2, i/2*16
		VMOVUPD(src.at(row, half), r[i].AsX())
		VINSERTF128(Imm(1), src.at(row+2, half), r[i], r[i])
	}
	for h := range 2 {
		lo, hi := YMM(), YMM()
		VUNPCKLPD(r[2*h+1], r[2*h], lo)
		VUNPCKHPD(r[2*h+1], r[2*h], hi)
		VMOVUPD(lo, dst.at(2*h, 0))
		VMOVUPD(hi, dst.at(2*h+1, 0))
	}
	dst.advance(step)
	src.advance(Imm(32))
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
