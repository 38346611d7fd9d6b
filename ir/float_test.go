package ir

import (
	"math"
	"testing"
)

// smallFloats returns the types that formatTable describes.
func smallFloats() []DType {
	var ts []DType
	for t := InvalidDType + 1; t < NumDTypes; t++ {
		if t.IsFloat() && t.Bits() <= 16 {
			ts = append(ts, t)
		}
	}
	return ts
}

// Facts about each format, from its definition: codes and values of one, the
// largest, the smallest normal and the smallest subnormal number, and the codes
// that 1e30, -1e30, infinity and NaN become.
func TestFormats(t *testing.T) {
	for _, f := range []struct {
		elem                    DType
		one                     uint32
		largest                 uint32
		max, normal, subnormal  float64
		big, minusBig, inf, nan uint32
	}{
		{F4E2M1FN, 0x2, 0x7, 6, 1, 0.5, 0x7, 0xf, 0x7, 0x8},
		{F6E2M3FN, 0x08, 0x1f, 7.5, 1, 0.125, 0x1f, 0x3f, 0x1f, 0x20},
		{F6E3M2FN, 0x0c, 0x1f, 28, 0.25, 0.0625, 0x1f, 0x3f, 0x1f, 0x20},
		{F8E3M4, 0x30, 0x6f, 15.5, 0.25, 0x1p-6, 0x70, 0xf0, 0x70, 0x78},
		{F8E4M3, 0x38, 0x77, 240, 0x1p-6, 0x1p-9, 0x78, 0xf8, 0x78, 0x7c},
		{F8E4M3FN, 0x38, 0x7e, 448, 0x1p-6, 0x1p-9, 0x7f, 0xff, 0x7f, 0x7f},
		{F8E4M3FNUZ, 0x40, 0x7f, 240, 0x1p-7, 0x1p-10, 0x80, 0x80, 0x80, 0x80},
		{F8E4M3B11FNUZ, 0x58, 0x7f, 30, 0x1p-10, 0x1p-13, 0x80, 0x80, 0x80, 0x80},
		{F8E5M2, 0x3c, 0x7b, 57344, 0x1p-14, 0x1p-16, 0x7c, 0xfc, 0x7c, 0x7e},
		{F8E5M2FNUZ, 0x40, 0x7f, 57344, 0x1p-15, 0x1p-17, 0x80, 0x80, 0x80, 0x80},
		{F8E8M0FNU, 0x7f, 0xfe, 0x1p127, 0x1p-127, 0x1p-127, 0xe3, 0xff, 0xff, 0xff},
		{BF16, 0x3f80, 0x7f7f, 0x1.fep127, 0x1p-126, 0x1p-133, 0x714a, 0xf14a, 0x7f80, 0x7fc0},
		{F16, 0x3c00, 0x7bff, 65504, 0x1p-14, 0x1p-24, 0x7c00, 0xfc00, 0x7c00, 0x7e00},
	} {
		format := &formatTable[f.elem]
		for _, c := range []struct {
			x    float64
			code uint32
		}{
			{1, f.one}, {f.max, f.largest}, {f.normal, format.encode(f.normal)}, {f.subnormal, format.encode(f.subnormal)},
		} {
			if got := format.encode(c.x); got != c.code {
				t.Errorf("%s: encode(%g) = %#x, want %#x", f.elem, c.x, got, c.code)
			}
			if got := format.decode(c.code); got != c.x {
				t.Errorf("%s: decode(%#x) = %g, want %g", f.elem, c.code, got, c.x)
			}
		}
		for _, c := range []struct {
			x    float64
			code uint32
		}{{1e30, f.big}, {-1e30, f.minusBig}, {math.Inf(1), f.inf}, {math.NaN(), f.nan}} {
			if got := format.encode(c.x); got != c.code {
				t.Errorf("%s: encode(%g) = %#x, want %#x", f.elem, c.x, got, c.code)
			}
		}
	}
}

// Every code of every format is the encoding of its value.
func TestDecodeEncode(t *testing.T) {
	for _, elem := range smallFloats() {
		f := &formatTable[elem]
		for code := range uint32(1) << elem.Bits() {
			x := f.decode(code)
			if x != x {
				if got := f.decode(f.encode(x)); got == got && f.special != finite {
					t.Errorf("%s: NaN becomes %g", elem, got)
				}
				continue
			}
			if got := f.encode(x); got != code {
				t.Errorf("%s: %#x is %g, which is encoded as %#x", elem, code, x, got)
			}
			buf := make([]byte, 8)
			elem.PutFloat(buf, x)
			if got := elem.GetFloat(buf); got != x {
				t.Errorf("%s: %g is stored as %g", elem, x, got)
			}
		}
	}
}

// Between two neighbours every number goes to the nearer, and the middle to
// the even code; so it is below zero.
func TestRounding(t *testing.T) {
	for _, elem := range smallFloats() {
		f := &formatTable[elem]
		for lo := range f.largest() {
			hi := lo + 1
			x, y := f.decode(lo), f.decode(hi)
			mid, even := (x+y)/2, lo+lo&1
			if f.special == scaleOnly {
				even = hi
			}
			for _, c := range []struct {
				x    float64
				code uint32
			}{{math.Nextafter(mid, x), lo}, {mid, even}, {math.Nextafter(mid, y), hi}} {
				if got := f.encode(c.x); got != c.code {
					t.Fatalf("%s: encode(%g) = %#x, want %#x (between %g and %g)", elem, c.x, got, c.code, x, y)
				}
				if f.special == scaleOnly || c.code == 0 {
					continue
				}
				if got := f.encode(-c.x); got != c.code|f.sign() {
					t.Fatalf("%s: encode(%g) = %#x, want %#x", elem, -c.x, got, c.code|f.sign())
				}
			}
		}
	}
}

// The conversions from 16 bits to float32 agree with the formats, and rounding
// from float32 to bfloat16 is the well-known integer trick.
func TestSixteenBits(t *testing.T) {
	same := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y }
	for code := range uint32(1 << 16) {
		if x, y := formatTable[BF16].decode(code), float64(BF16ToFloat32(uint16(code))); !same(x, y) {
			t.Fatalf("bf16 %#x is %g and %g", code, x, y)
		}
		if x, y := formatTable[F16].decode(code), float64(F16ToFloat32(uint16(code))); !same(x, y) {
			t.Fatalf("f16 %#x is %g and %g", code, x, y)
		}
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			bits := code<<16 | low
			x := math.Float32frombits(bits)
			if x != x {
				continue
			}
			if got, want := BF16FromFloat64(float64(x)), uint16((bits+0x7fff+code&1)>>16); got != want {
				t.Fatalf("bf16 of %g is %#x, want %#x", x, got, want)
			}
		}
	}
}

// What integer types cannot hold is the same on every machine.
func TestPutFloatInteger(t *testing.T) {
	for _, c := range []struct {
		elem DType
		x    float64
		want int64
	}{
		{I32, 2.9, 2}, {I32, -2.9, -2}, {I32, math.NaN(), 0}, {I8, 300, 44}, {UI8, -1, 255}, {I4, 9, -7}, {UI4, 17, 1}, {I1, 0.5, 1},
		{I64, 1e300, math.MaxInt64}, {I64, -1e300, math.MinInt64}, {UI64, -1, -1}, {UI64, 0x1p63, math.MinInt64}, {UI64, 1e300, -1},
	} {
		b := make([]byte, 8)
		c.elem.PutFloat(b, c.x)
		if got := c.elem.GetInt(b); got != c.want {
			t.Errorf("%g as %s is %d, want %d", c.x, c.elem, got, c.want)
		}
	}
}

// The numbers are XLA's. Ties go to the even code, which is the exponent where no
// mantissa is left; subnormal numbers survive where the type has no more exponent bits.
func TestReducedPrecision(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		elem    DType
		e, m    int
		x, want []float64
	}{
		{F64, 8, 0, []float64{3, 1.5, 6, 0.75, 2.9, 12}, []float64{2, 2, 8, 0.5, 2, 8}},
		{F64, 2, 1, []float64{1e10, inf, 5e-324, 0.5, 0.25, 3, 4, 2}, []float64{inf, inf, 0, 0, 0, 3, inf, 2}},
		{F64, 1, 0, []float64{1e10, 1, 0.5, 2, 3, math.MaxFloat64}, []float64{inf, 0, 0, inf, inf, inf}},
		{BF16, 8, 7, []float64{0x1p-133, -0x1p-133}, []float64{0x1p-133, -0x1p-133}},
		{BF16, 8, 23, []float64{0x1p-133}, []float64{0x1p-133}},
		{F16, 5, 10, []float64{0x1p-24, -0x1p-23, 65504}, []float64{0x1p-24, -0x1p-23, 65504}},
		{F16, 8, 7, []float64{0x1p-24, 0x1p-23}, []float64{0, 0}},
		{F16, 8, 0, []float64{0x3p-24, 3}, []float64{0, 2}},
		{F8E4M3FN, 4, 3, []float64{0x1p-9, 0x3p-9, 448, 3}, []float64{0, 0, inf, 3}},
		{F8E4M3FN, 5, 2, []float64{0x1p-9, 0x3p-9, -448, 384}, []float64{0x1p-9, 0x3p-9, -448, 384}},
		{F8E4M3FN, 8, 0, []float64{0x3p-9, 3}, []float64{0x1p-7, 2}},
		{F32, 8, 0, []float64{math.NaN()}, []float64{inf}},
	} {
		for i, x := range c.x {
			if got := c.elem.ReducedPrecision(x, c.e, c.m); got != c.want[i] {
				t.Errorf("%s: %g in e%dm%d is %g, want %g", c.elem, x, c.e, c.m, got, c.want[i])
			}
		}
	}
}

// The nearest number is that of the code to which a number is rounded: at every number of
// a format and halfway to the next, and beside them.
func TestNearest(t *testing.T) {
	for e, f := range formatTable {
		if f.exp == 0 {
			continue
		}
		for code := range f.largest() + 1 {
			low := f.decode(code)
			half := low + (f.decode(min(code+1, f.largest()))-low)/2
			for _, x := range []float64{low, half} {
				for _, x := range []float64{x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1)), 1.5 * x} {
					for _, x := range []float64{x, -x} {
						got, want := DType(e).Round(x), f.decode(f.encode(x))
						if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
							t.Fatalf("%g as %s is %g, want %g", x, DType(e), got, want)
						}
					}
				}
			}
		}
	}
}
