package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The matrix unit, AMX, multiplies tiles of 16 rows of 64 bytes. Of bfloat16 its peak is 16
// times that of float32 on vectors, so that a product of float32 is faster there although each number
// is three of bfloat16 and each product six: "Leveraging the bfloat16 artificial
// intelligence datatype for higher-precision computation", Henry, Tang and Heinecke, 2019.
//
// Operands are split in panels of 32 rows of the left side or columns of the right one. A panel
// has, for each chunk of 32 terms, the three parts one after the other, those of the right side in the order in which
// they are read, the last one first, and of each two tiles. Word 2p of a row of a tile is term p of the chunk, word 2p+1 term p+16.
const (
	tileBytes  = 1024
	tileRow    = 64
	partBytes  = 2 * tileBytes
	chunkBytes = 3 * partBytes
)

// splitPairs emits the split of pairs of vectors of float32 into the parts of rows of tiles: rows times n of them.
// The first pair is at x and y bytes on and goes to dst, the next ones are step and dstStep bytes on, those of the next
// row next and dstNext. The parts are partStep bytes apart. Lanes that a mask does not have are zeros. Of seen,
// three vectors, the first becomes the smallest magnitude but zero, the second the largest, the third has
// a bit set where a number is not a bfloat16.
func splitPairs() {
	TEXT("splitF32", NOSPLIT, "func(dst *byte, dstStep, dstNext, partStep int, x *byte, y, step, next, n, rows int, maskX, maskY uint64, seen *byte)")
	Pragma("noescape")
	dst0, dstStep, dstNext, x0, y0, step, next := param("dst"), param("dstStep"), param("dstNext"), param("x"), param("y"), param("step"), param("next")
	partStep, rows, seen := param("partStep"), param("rows"), param("seen")
	maskX, maskY := K(), K()
	KMOVW(param("maskX").As32(), maskX)
	KMOVW(param("maskY").As32(), maskY)
	half, top, positive := constant(0x8000), constant(0xffff0000), constant(0x7fffffff)
	lo, hi, any := ZMM(), ZMM(), ZMM()
	for i, v := range []reg.VecVirtual{lo, hi, any} {
		VMOVUPS(Mem{Base: seen, Disp: 64 * i}, v)
	}
	zeros := ZMM()
	VPXORD(zeros, zeros, zeros)
	dst, x, n := GP64(), GP64(), GP64()
	Label("row")
	MOVQ(dst0, dst)
	MOVQ(x0, x)
	Load(Param("n"), n)
	Label("loop")
	var parts [2][3]reg.VecVirtual
	var rest [2]reg.VecVirtual
	for i, from := range []struct {
		at   Mem
		mask reg.OpmaskVirtual
	}{{Mem{Base: x}, maskX}, {Mem{Base: x, Index: y0, Scale: 1}, maskY}} {
		v, size, nonzero := ZMM(), ZMM(), K()
		VMOVUPS_Z(from.at, from.mask, v)
		VCMPPS(Imm(4), zeros, v, nonzero)
		VPANDD(positive, v, size)
		VMINPS(lo, size, nonzero, lo) // the second source where one is no number
		VMAXPS(hi, size, hi)
		for p := range 2 {
			part, left := ZMM(), ZMM()
			VPADDD(half, v, part)
			VPANDD(top, part, part)
			VSUBPS(part, v, left)
			parts[i][p], v = part, left
			if p == 0 {
				rest[i] = left
			}
		}
		parts[i][2] = v
	}
	VPTERNLOGD(Imm(0xfe), rest[0], rest[1], any)
	for p := range 3 {
		low := ZMM()
		VPSRLD(Imm(16), parts[0][p], low)
		VPORD(parts[1][p], low, low)
		VMOVUPS(low, []Mem{{Base: dst}, {Base: dst, Index: partStep, Scale: 1}, {Base: dst, Index: partStep, Scale: 2}}[p])
	}
	ADDQ(dstStep, dst)
	ADDQ(step, x)
	DECQ(n)
	JNZ(LabelRef("loop"))
	ADDQ(dstNext, dst0)
	ADDQ(next, x0)
	DECQ(rows)
	JNZ(LabelRef("row"))
	for i, v := range []reg.VecVirtual{lo, hi, any} {
		VMOVUPS(v, Mem{Base: seen, Disp: 64 * i})
	}
	VZEROUPPER()
	RET()
}

// constant is a vector of x in a register.
func constant(x uint32) reg.VecVirtual {
	r, v := GP32(), ZMM()
	MOVL(U32(x), r)
	VPBROADCASTD(r, v)
	return v
}

// A term is a product of parts of the two sides.
type term struct{ a, b int }

// termsOf are the products of so many parts of each side that are made, the largest last. Those
// of less than 2^-24 of the product are left out.
func termsOf(a, b int) []term {
	switch {
	case a == 1 && b == 1:
		return []term{{0, 0}}
	case b == 1:
		return []term{{2, 0}, {1, 0}, {0, 0}}
	case a == 1:
		return []term{{0, 2}, {0, 1}, {0, 0}}
	}
	return []term{{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}} // one side changes each time
}

// passChunks is in how many chunks a panel of the right side stays in the first-level cache while panels of the
// left side pass by.
const passChunks = 4

// matrixTiles emits the product of panels of the left side, one after the other aNext bytes on, with a panel
// of the right side, in as many chunks: c = a*b, or c += a*b, of 32 rows a panel, or rows, and of the columns in mask.
// The rows of c are cRow bytes apart. Config configures eight tiles, of which the first four are sums. Scratch has room for the
// sums of all panels. With each chunk of a panel, [aheadTurns] times two lines from ahead on, aheadStep bytes further each time, are
// brought into the second-level cache.
func matrixTiles(partsA, partsB int) {
	TEXT(fmt.Sprintf("matrixTiles%d%d", partsA, partsB), NOSPLIT,
		"func(chunks int, a *byte, aNext, panels int, b *byte, c *byte, cRow, rows int, mask uint64, add bool, scratch, config, ahead *byte, aheadStep int)")
	Pragma("noescape")
	m := &matrixMaker{
		chunks: reg.R8, pass: reg.R9, a: reg.RSI, b: reg.X2, c: reg.R10, panels: reg.R11, cRow: reg.R12, sums: reg.X3,
		ahead: reg.R14, aheadStep: reg.R13, out: reg.R15, row: reg.RDX, at: reg.RAX, atB: reg.RBX, n: reg.RCX,
	}
	load := func(name string, r reg.GPPhysical) { Load(Param(name), r) }
	load("config", m.at)
	encode(0x78, 0x49, 0x00) // LDTILECFG (AX)
	load("a", m.a)
	load("b", m.at)
	MOVQ(m.at, m.b)
	load("aheadStep", m.aheadStep)
	load("cRow", m.cRow)
	load("chunks", m.chunks)
	load("ahead", m.ahead)
	MOVQ(U32(tileRow), m.row)
	load("mask", m.at)
	KMOVW(reg.EAX, reg.K1)
	SHRQ(Imm(16), m.at)
	KMOVW(reg.EAX, reg.K2)

	Label("pass") // so many chunks of all panels
	MOVQ(U32(passChunks), m.pass)
	CMPQ(m.chunks, m.pass)
	CMOVQLT(m.chunks, m.pass)
	load("c", m.c)
	load("scratch", m.at)
	MOVQ(m.at, m.sums)
	load("panels", m.panels)
	Label("panel")
	m.begin()
	m.multiply(termsOf(partsA, partsB))
	CMPQ(m.chunks, m.pass)
	JG(LabelRef("keep"))
	m.finish()
	Label("keep")
	MOVQ(m.sums, m.at)
	m.tiles(0x7a, m.at)
	Label("next")
	MOVQ(m.sums, m.at)
	ADDQ(U32(4*tileBytes), m.at)
	MOVQ(m.at, m.sums)
	load("aNext", m.at)
	ADDQ(m.at, m.a)
	DECQ(m.panels)
	JNZ(LabelRef("panel"))
	load("panels", m.n) // back to the first panel, and on to the next chunks
	IMULQ(m.n, m.at)
	SUBQ(m.at, m.a)
	IMUL3Q(U32(chunkBytes), m.pass, m.at)
	ADDQ(m.at, m.a)
	MOVQ(m.b, m.atB)
	ADDQ(m.at, m.atB)
	MOVQ(m.atB, m.b)
	SUBQ(m.pass, m.chunks)
	JNZ(LabelRef("pass"))
	encode(0x78, 0x49, 0xc0) // TILERELEASE
	VZEROUPPER()
	RET()
}

// A matrixMaker emits a product on the matrix unit. The last four registers are among those that [encode] takes.
type matrixMaker struct {
	chunks, pass     reg.GPPhysical  // left, and of this pass
	a, c             reg.GPPhysical  // the panel, and where its product goes
	b, sums          reg.VecPhysical // the panel of this pass, and the sums of the panel of a
	panels           reg.GPPhysical  // left in this pass
	cRow             reg.GPPhysical
	out              reg.GPPhysical // what is brought into the caches: of c,
	ahead, aheadStep reg.GPPhysical // and what is ahead
	row, at, atB, n  reg.GPPhysical
}

// Tiles.
const sumTiles, leftTiles, rightTiles = 0, 4, 6

// tiles loads or stores the sums, contiguous tiles at base.
func (m *matrixMaker) tiles(prefix byte, base reg.GPPhysical) {
	for t := range 4 {
		tileMemory(prefix, sumTiles+t, base, m.row, t*tileBytes)
	}
}

// begin sets the sums to zero, or to those of the pass before.
func (m *matrixMaker) begin() {
	load := func(name string, r reg.GPPhysical) { Load(Param(name), r) }
	load("chunks", m.n)
	CMPQ(m.n, m.chunks)
	JNE(LabelRef("resume"))
	for t := range 4 {
		encode(0x7b, 0x49, 0xc0|byte(sumTiles+t)<<3) // TILEZERO
	}
	JMP(LabelRef("multiply"))
	Label("resume")
	MOVQ(m.sums, m.at)
	m.tiles(0x7b, m.at)
	Label("multiply")
}

// multiply adds the terms of the chunks of a pass to the sums.
func (m *matrixMaker) multiply(terms []term) {
	MOVQ(m.a, m.at)
	MOVQ(m.b, m.atB)
	MOVQ(m.pass, m.n)
	MOVQ(m.c, m.out)
	Label("chunk")
	m.prefetch()
	last := term{-1, -1}
	for _, t := range terms {
		m.readAhead(aheadTurns / len(terms))
		for h := range 2 {
			if t.a != last.a {
				tileMemory(0x7b, leftTiles+h, m.at, m.row, t.a*partBytes+h*tileBytes)
			}
		}
		for h := range 2 {
			if t.b != last.b {
				tileMemory(0x7b, rightTiles+h, m.atB, m.row, (2-t.b)*partBytes+h*tileBytes)
			}
		}
		last = t
		for i := range 2 {
			for j := range 2 { // TDPBF16PS
				encode(byte(^(rightTiles+j)&15)<<3|2, 0x5c, 0xc0|byte(sumTiles+2*i+j)<<3|byte(leftTiles+i))
			}
		}
	}
	ADDQ(U32(chunkBytes), m.at)
	ADDQ(U32(chunkBytes), m.atB)
	DECQ(m.n)
	JNZ(LabelRef("chunk"))
}

// prefetch brings the next rows of c into the cache.
func (m *matrixMaker) prefetch() {
	for range 2 * 16 / passChunks {
		for h := range 2 {
			PREFETCHT0(Mem{Base: m.out, Disp: h * line})
		}
		ADDQ(m.cRow, m.out)
	}
}

// aheadTurns times two lines are a quarter of a chunk.
const aheadTurns = chunkBytes / line / 4 / 2

// readAhead brings lines that are ahead into the cache.
func (m *matrixMaker) readAhead(turns int) {
	for range turns {
		for h := range 2 {
			PREFETCHT1(Mem{Base: m.ahead, Disp: h * line})
		}
		ADDQ(m.aheadStep, m.ahead)
	}
}

// finish stores the sums in c, or adds them, and goes on at next.
func (m *matrixMaker) finish() {
	rows := m.n
	Load(Param("rows"), rows)
	Load(Param("add"), reg.AL)
	TESTB(reg.AL, reg.AL)
	JNZ(LabelRef("rows"))
	CMPQ(rows, Imm(32))
	JNE(LabelRef("rows"))
	KORTESTW(reg.K2, reg.K2)
	JCC(LabelRef("rows"))
	MOVQ(m.cRow, m.atB) // tiles of all rows and columns
	for t := range 4 {
		if t%2 == 0 {
			MOVQ(m.c, m.at)
			MOVQ(m.cRow, m.n)
			SHLQ(Imm(4), m.n)
			ADDQ(m.n, m.c)
		}
		tileMemory(0x7a, sumTiles+t, m.at, m.atB, t%2*tileRow)
	}
	JMP(LabelRef("next"))

	Label("rows")
	MOVQ(m.sums, m.at)
	m.tiles(0x7a, m.at)
	for _, half := range []string{"upper", "lower"} {
		end := half + "end"
		MOVQ(U32(16), m.atB)
		CMPQ(rows, m.atB)
		CMOVQLT(rows, m.atB)
		SUBQ(m.atB, rows)
		TESTQ(m.atB, m.atB)
		JZ(LabelRef("next"))
		Load(Param("add"), reg.DL)
		TESTB(reg.DL, reg.DL)
		MOVQ(U32(tileRow), m.row) // leaves the flags
		JZ(LabelRef(half + "store"))
		Label(half + "add")
		m.storeRow(true)
		DECQ(m.atB)
		JNZ(LabelRef(half + "add"))
		JMP(LabelRef(end))
		Label(half + "store")
		m.storeRow(false)
		DECQ(m.atB)
		JNZ(LabelRef(half + "store"))
		Label(end)
		ADDQ(U32(tileBytes), m.at)
	}
	JMP(LabelRef("next"))
}

// storeRow stores a row of the sums at m.at, or adds it, and goes on to the next.
func (m *matrixMaker) storeRow(adds bool) {
	for h, mask := range []reg.Register{reg.K1, reg.K2} {
		v, to := []reg.Register{reg.Z0, reg.Z1}[h], Mem{Base: m.c, Disp: h * tileRow}
		VMOVUPS(Mem{Base: m.at, Disp: h * tileBytes}, v)
		if adds {
			VADDPS(to, v, mask, v)
		}
		VMOVUPS(v, mask, to)
	}
	ADDQ(m.cRow, m.c)
	ADDQ(Imm(tileRow), m.at)
}

// tileMemory writes a load of a tile (prefix 0x7b) or a store (0x7a). Register row has the stride of its rows in bytes.
func tileMemory(prefix byte, tile int, base, row reg.GPPhysical, disp int) {
	encode(prefix, 0x4b, 0x84|byte(tile)<<3, code(row)<<3|code(base), byte(disp), byte(disp>>8), byte(disp>>16), byte(disp>>24))
}

// code is the number of a register in an instruction.
func code(r reg.GPPhysical) byte {
	for i, x := range []reg.GPPhysical{reg.RAX, reg.RCX, reg.RDX, reg.RBX, reg.RSP, reg.RBP, reg.RSI, reg.RDI} {
		if r == x {
			return byte(i)
		}
	}
	panic("no register of the first eight")
}

// encode writes an instruction of the map 0f38 with a VEX prefix and no other registers than the first eight by
// its bytes: the assembler has no names for those of the matrix unit.
func encode(bytes ...byte) {
	for _, b := range append([]byte{0xc4, 0xe2}, bytes...) {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{Imm(uint64(b))}})
	}
}
