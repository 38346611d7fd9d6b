package kernel

import (
	"golang.org/x/sys/cpu"

	"ppc/ir"
)

// tiers are the ways in which floats are computed with, the fastest first; this
// machine takes the first that it has.
var tiers = []tier{withUnit(avx512), avx512, avx2, portable}

// withUnit is t with the matrix unit.
func withUnit(t tier) tier {
	t.name, t.has = "amx", t.has && cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && allowTiles()
	t.unit = &matrixUnit{
		split: splitF32,
		tiles: [2][2]func(chunks int, a *byte, aNext, panels int, b *byte, c *byte, cRow, rows int, mask uint64, add bool, scratch, config, ahead *byte, aheadStep int){{matrixTiles11, matrixTiles13}, {matrixTiles31, matrixTiles33}},
	}
	return t
}

var avx512 = tier{
	name: "avx512", has: cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW, vector: 64, masks: true,
	f32:      []tileFunc{tileF32x512_1, tileF32x512_2, tileF32x512_3, tileF32x512_4, tileF32x512_5, tileF32x512_6, tileF32x512_7, tileF32x512_8},
	f64:      []tileFunc{tileF64x512_1, tileF64x512_2, tileF64x512_3, tileF64x512_4, tileF64x512_5, tileF64x512_6, tileF64x512_7, tileF64x512_8},
	ops:      map[ir.DType]*vectorOps{ir.F32: &f32x512, ir.F64: &f64x512, ir.I32: &i32x512},
	fromBool: fromBoolF32x512, widenBF16: widenBF16F32x512, narrowBF16: narrowBF16F32x512, copyRows: copyRowsF32x512, moveRows: moveRows, spreadRows: spreads, peak: peakF32x512, lanes: 2 * 12 * 16,
}

var avx2 = tier{
	name: "avx2", has: cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2, vector: 32,
	f32:      []tileFunc{tileF32x256_1, tileF32x256_2, tileF32x256_3, tileF32x256_4, tileF32x256_5, tileF32x256_6},
	f64:      []tileFunc{tileF64x256_1, tileF64x256_2, tileF64x256_3, tileF64x256_4, tileF64x256_5, tileF64x256_6},
	ops:      map[ir.DType]*vectorOps{ir.F32: &f32x256, ir.F64: &f64x256, ir.I32: &i32x256},
	fromBool: fromBoolF32x256, widenBF16: widenBF16F32x256, narrowBF16: narrowBF16F32x256, copyRows: copyRowsF32x256, moveRows: moveRows, spreadRows: spreads, peak: peakF32x256, lanes: 2 * 12 * 8,
}

// spreads fill rows by bytes of an element; they and moveRows are the same for all widths
// of vectors.
var spreads = [17]func(dst, src *byte, step, bytes, rows int){4: spreadRowsF32, 8: spreadRowsF64}

var f32x512 = vectorOps{
	unary:   map[ir.Kind]vectorUnary{ir.Negate: negateF32x512, ir.Abs: absF32x512, ir.Sqrt: sqrtF32x512, ir.Rsqrt: rsqrtF32x512, ir.Exponential: expF32x512, ir.ExponentialMinusOne: expm1F32x512, ir.Log: logF32x512, ir.Tanh: tanhF32x512, ir.Logistic: logisticF32x512, ir.Sine: sinF32x512, ir.Cosine: cosF32x512},
	binary:  map[ir.Kind]vectorBinary{ir.Add: addF32x512, ir.Subtract: subtractF32x512, ir.Multiply: multiplyF32x512, ir.Divide: divideF32x512, ir.Maximum: maximumF32x512, ir.Minimum: minimumF32x512},
	compare: map[string]vectorBinary{"EQ": equalF32x512, "NE": unequalF32x512, "LT": lessF32x512, "LE": lessEqualF32x512},
	choose:  chooseF32x512, rows: map[ir.Kind]vectorRows{ir.Add: sumRowsF32x512, ir.Maximum: maxRowsF32x512},
}

var f32x256 = vectorOps{
	unary:   map[ir.Kind]vectorUnary{ir.Negate: negateF32x256, ir.Abs: absF32x256, ir.Sqrt: sqrtF32x256, ir.Rsqrt: rsqrtF32x256, ir.Exponential: expF32x256, ir.ExponentialMinusOne: expm1F32x256, ir.Log: logF32x256, ir.Tanh: tanhF32x256, ir.Logistic: logisticF32x256, ir.Sine: sinF32x256, ir.Cosine: cosF32x256},
	binary:  map[ir.Kind]vectorBinary{ir.Add: addF32x256, ir.Subtract: subtractF32x256, ir.Multiply: multiplyF32x256, ir.Divide: divideF32x256, ir.Maximum: maximumF32x256, ir.Minimum: minimumF32x256},
	compare: map[string]vectorBinary{"EQ": equalF32x256, "NE": unequalF32x256, "LT": lessF32x256, "LE": lessEqualF32x256},
	choose:  chooseF32x256, rows: map[ir.Kind]vectorRows{ir.Add: sumRowsF32x256, ir.Maximum: maxRowsF32x256},
}

var f64x512 = vectorOps{
	unary:   map[ir.Kind]vectorUnary{ir.Negate: negateF64x512, ir.Abs: absF64x512, ir.Sqrt: sqrtF64x512, ir.Rsqrt: rsqrtF64x512, ir.Exponential: expF64x512, ir.ExponentialMinusOne: expm1F64x512, ir.Log: logF64x512, ir.Tanh: tanhF64x512, ir.Logistic: logisticF64x512, ir.Sine: sinF64x512, ir.Cosine: cosF64x512},
	binary:  map[ir.Kind]vectorBinary{ir.Add: addF64x512, ir.Subtract: subtractF64x512, ir.Multiply: multiplyF64x512, ir.Divide: divideF64x512, ir.Maximum: maximumF64x512, ir.Minimum: minimumF64x512},
	compare: map[string]vectorBinary{"EQ": equalF64x512, "NE": unequalF64x512, "LT": lessF64x512, "LE": lessEqualF64x512},
	choose:  chooseF64x512, rows: map[ir.Kind]vectorRows{ir.Add: sumRowsF64x512, ir.Maximum: maxRowsF64x512},
}

var f64x256 = vectorOps{
	unary:   map[ir.Kind]vectorUnary{ir.Negate: negateF64x256, ir.Abs: absF64x256, ir.Sqrt: sqrtF64x256, ir.Rsqrt: rsqrtF64x256, ir.Exponential: expF64x256, ir.ExponentialMinusOne: expm1F64x256, ir.Log: logF64x256, ir.Tanh: tanhF64x256, ir.Logistic: logisticF64x256, ir.Sine: sinF64x256, ir.Cosine: cosF64x256},
	binary:  map[ir.Kind]vectorBinary{ir.Add: addF64x256, ir.Subtract: subtractF64x256, ir.Multiply: multiplyF64x256, ir.Divide: divideF64x256, ir.Maximum: maximumF64x256, ir.Minimum: minimumF64x256},
	compare: map[string]vectorBinary{"EQ": equalF64x256, "NE": unequalF64x256, "LT": lessF64x256, "LE": lessEqualF64x256},
	choose:  chooseF64x256, rows: map[ir.Kind]vectorRows{ir.Add: sumRowsF64x256, ir.Maximum: maxRowsF64x256},
}

var (
	i32x512 = vectorOps{compare: map[string]vectorBinary{"EQ": equalI32x512, "NE": unequalI32x512, "LT": lessI32x512, "LE": lessEqualI32x512}}
	i32x256 = vectorOps{compare: map[string]vectorBinary{"EQ": equalI32x256, "NE": unequalI32x256, "LT": lessI32x256, "LE": lessEqualI32x256}}
)

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
