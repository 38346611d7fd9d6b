package kernel

import "golang.org/x/sys/cpu"

// tiers are the ways in which matrices of floats are multiplied, the fastest
// first; this machine takes the first that it has.
var tiers = []tier{
	{
		name: "avx512", has: cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW, vector: 64, masks: true,
		f32: []tileFunc{tileF32x512_1, tileF32x512_2, tileF32x512_3, tileF32x512_4, tileF32x512_5, tileF32x512_6, tileF32x512_7, tileF32x512_8},
		f64: []tileFunc{tileF64x512_1, tileF64x512_2, tileF64x512_3, tileF64x512_4, tileF64x512_5, tileF64x512_6, tileF64x512_7, tileF64x512_8},
	},
	{
		name: "avx2", has: cpu.X86.HasAVX2 && cpu.X86.HasFMA, vector: 32,
		f32: []tileFunc{tileF32x256_1, tileF32x256_2, tileF32x256_3, tileF32x256_4, tileF32x256_5, tileF32x256_6},
		f64: []tileFunc{tileF64x256_1, tileF64x256_2, tileF64x256_3, tileF64x256_4, tileF64x256_5, tileF64x256_6},
	},
	portable,
}

// transposeBlocks sets dst to the transpose of src: rows are their distances in
// bytes, side is 8 columns for elements of 4 bytes and 4 for those of 8, and src
// has that many rows and blocks times as many columns.
func transposeBlocks(elem int, dst *byte, dstRow int, src *byte, srcRow, blocks int) {
	if elem == 4 {
		transpose32x8(dst, dstRow, src, srcRow, blocks)
		return
	}
	transpose64x4(dst, dstRow, src, srcRow, blocks)
}
