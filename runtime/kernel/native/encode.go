package native

import "encoding/binary"

// An instruction of vectors, as its EVEX prefix has it (Intel's Architectures Software Developer's Manual,
// volume 2, "Intel AVX-512 encoding").
type instruction struct {
	space  byte // of opcodes: 1 is 0F, 2 is 0F38, 3 is 0F3A
	prefix byte // 1 is 66, 2 is F3, 3 is F2
	wide   byte // W
	opcode byte
	digit  int8 // in place of a register, plus 1; 0 where there is one
	imm    bool
}

var (
	vaddps      = instruction{space: 1, opcode: 0x58}
	vsubps      = instruction{space: 1, opcode: 0x5c}
	vmulps      = instruction{space: 1, opcode: 0x59}
	vdivps      = instruction{space: 1, opcode: 0x5e}
	vsqrtps     = instruction{space: 1, opcode: 0x51}
	vfmadd213ps = instruction{space: 2, prefix: 1, opcode: 0xa8}
	vfmadd231ps = instruction{space: 2, prefix: 1, opcode: 0xb8}
	vrangeps    = instruction{space: 3, prefix: 1, opcode: 0x50, imm: true}
	vscalefps   = instruction{space: 2, prefix: 1, opcode: 0x2c}
	vcmpps      = instruction{space: 1, opcode: 0xc2, imm: true}
	vptestmd    = instruction{space: 2, prefix: 1, opcode: 0x27}
	vblendmps   = instruction{space: 2, prefix: 1, opcode: 0x65}
	vpandd      = instruction{space: 1, prefix: 1, opcode: 0xdb}
	vpord       = instruction{space: 1, prefix: 1, opcode: 0xeb}
	vpxord      = instruction{space: 1, prefix: 1, opcode: 0xef}
	vpaddd      = instruction{space: 1, prefix: 1, opcode: 0xfe}
	vpslld      = instruction{space: 1, prefix: 1, opcode: 0x72, digit: 6 + 1, imm: true}
	vpsrld      = instruction{space: 1, prefix: 1, opcode: 0x72, digit: 2 + 1, imm: true}

	vbroadcastss = instruction{space: 2, prefix: 1, opcode: 0x18}
	vmovups      = instruction{space: 1, opcode: 0x10}
	vmovupsTo    = instruction{space: 1, opcode: 0x11}
	vmovssTo     = instruction{space: 1, prefix: 2, opcode: 0x11}
	vmovdqu8     = instruction{space: 1, prefix: 3, opcode: 0x6f}
	vmovdqu8To   = instruction{space: 1, prefix: 3, opcode: 0x7f}
	vpmovzxbd    = instruction{space: 2, prefix: 1, opcode: 0x31}

	vpbroadcastb = instruction{space: 2, prefix: 1, opcode: 0x78}
	vinsertf32x8 = instruction{space: 3, prefix: 1, opcode: 0x1a, imm: true}

	vshuff64x2 = instruction{space: 3, prefix: 1, wide: 1, opcode: 0x23, imm: true}
	vpermilpd  = instruction{space: 3, prefix: 1, wide: 1, opcode: 0x05, imm: true}
	vpermilps  = instruction{space: 3, prefix: 1, opcode: 0x04, imm: true}
)

// General registers by their numbers.
const (
	rax = iota
	rcx
	rdx
	rbx
	rsp
	rbp
	rsi
	rdi
	r8
	r9
	r10
	r11
	r12
	r13
	r14
	r15
)

// A place is an operand: a vector register; memory at base + index*scale + disp; or memory at a distance from
// the begin of the constants, an element for all lanes where one is set.
type place struct {
	memory      bool
	register    int
	base, index int // index -1 is none
	scale       byte
	disp        int32
	constant    bool
	one         bool
}

// An encoder writes machine code.
type encoder struct {
	text   []byte
	fixups []fixup // displacements of constants
}

type fixup struct{ at, end, offset int }

func bit(x int, n uint) byte { return byte(x>>n) & 1 }

// vector writes an instruction of vectors with registers reg and first, the operand rm, mask (0 is none; zero says that
// lanes without it become 0). length is 0 for 16 bytes, 2 for 64.
func (e *encoder) vector(i instruction, length byte, reg, first int, rm place, mask int, zero bool, imm byte) {
	if i.digit > 0 { // the register that is written is that of first's field
		first, reg = reg, int(i.digit-1)
	}
	x, b := bit(rm.register, 4), bit(rm.register, 3)
	if rm.memory {
		x, b = 0, 0
		if !rm.constant {
			b = bit(rm.base, 3)
			if rm.index >= 0 {
				x = bit(rm.index, 3)
			}
		}
	}
	var z, broadcast byte
	if zero {
		z = 1
	}
	if rm.one {
		broadcast = 1
	}
	e.text = append(e.text, 0x62,
		(1-bit(reg, 3))<<7|(1-x)<<6|(1-b)<<5|(1-bit(reg, 4))<<4|i.space,
		i.wide<<7|(^byte(first)&15)<<3|1<<2|i.prefix,
		z<<7|length<<5|broadcast<<4|(1-bit(first, 4))<<3|byte(mask),
		i.opcode)
	e.operand(reg, rm)
	if i.imm {
		e.text = append(e.text, imm)
	}
	if n := len(e.fixups); rm.memory && rm.constant {
		e.fixups[n-1].end = len(e.text)
	}
}

// operand writes rm behind an opcode.
func (e *encoder) operand(reg int, rm place) {
	r := byte(reg&7) << 3
	switch {
	case !rm.memory:
		e.text = append(e.text, 0xc0|r|byte(rm.register&7))
		return
	case rm.constant:
		e.text = append(e.text, r|5)
		e.fixups = append(e.fixups, fixup{at: len(e.text), offset: int(rm.disp)})
		e.text = append(e.text, 0, 0, 0, 0)
		return
	case rm.index >= 0:
		shift := map[byte]byte{1: 0, 2: 1, 4: 2, 8: 3}[rm.scale]
		e.text = append(e.text, 0x80|r|4, shift<<6|byte(rm.index&7)<<3|byte(rm.base&7))
	case rm.base&7 == rsp:
		e.text = append(e.text, 0x80|r|4, 0x24)
	default:
		e.text = append(e.text, 0x80|r|byte(rm.base&7))
	}
	e.text = binary.LittleEndian.AppendUint32(e.text, uint32(rm.disp))
}

// general writes an instruction of 64-bit general registers, with rm as its operand.
func (e *encoder) general(opcode byte, reg int, rm place) {
	base := rm.register
	if rm.memory {
		base = rm.base
	}
	e.text = append(e.text, 0x48|bit(reg, 3)<<2|bit(base, 3), opcode)
	e.operand(reg, rm)
}

func (e *encoder) loadPointer(reg, base int, disp int32) {
	e.general(0x8b, reg, place{memory: true, base: base, index: -1, disp: disp})
}

// loadIndex loads a signed number of 4 bytes.
func (e *encoder) loadIndex(reg int, from place) {
	e.text = append(e.text, 0x48|bit(reg, 3)<<2|bit(from.index, 3)<<1|bit(from.base, 3), 0x63)
	e.operand(reg, from)
}

// eighth sets reg to an eighth of another.
func (e *encoder) eighth(reg, of int) {
	e.general(0x8b, reg, place{register: of})
	e.general(0xc1, 5, place{register: reg})
	e.text = append(e.text, 3)
}

func (e *encoder) addPointer(reg, base int, disp int32) {
	e.general(0x03, reg, place{memory: true, base: base, index: -1, disp: disp})
}

func (e *encoder) zero(reg int) { e.general(0x31, reg, place{register: reg}) }

func (e *encoder) addImm(reg int, n int32) {
	e.general(0x81, 0, place{register: reg})
	e.text = binary.LittleEndian.AppendUint32(e.text, uint32(n))
}

func (e *encoder) compareImm(reg int, n int32) {
	e.general(0x81, 7, place{register: reg})
	e.text = binary.LittleEndian.AppendUint32(e.text, uint32(n))
}

// compare compares a with b.
func (e *encoder) compare(a, b int) { e.general(0x39, b, place{register: a}) }

// jumpBelow jumps back to a place in the text if the last comparison was below.
func (e *encoder) jumpBelow(to int) {
	e.text = append(e.text, 0x0f, 0x82)
	e.text = binary.LittleEndian.AppendUint32(e.text, uint32(int32(to-len(e.text)-4)))
}

func (e *encoder) ret() { e.text = append(e.text, 0xc3) }

// constants ends the text with the constants and sets the displacements.
func (e *encoder) constants(pool []byte) []byte {
	for len(e.text)%64 != 0 {
		e.text = append(e.text, 0xcc)
	}
	begin := len(e.text)
	for _, f := range e.fixups {
		binary.LittleEndian.PutUint32(e.text[f.at:], uint32(int32(begin+f.offset-f.end)))
	}
	return append(e.text, pool...)
}
