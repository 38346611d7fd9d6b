package ir

// A DType is the type of one element of a tensor.
type DType uint8

// The element types of StableHLO.
const (
	InvalidDType DType = iota
	I1
	I2
	I4
	I8
	I16
	I32
	I64
	UI2
	UI4
	UI8
	UI16
	UI32
	UI64
	F4E2M1FN
	F6E2M3FN
	F6E3M2FN
	F8E3M4
	F8E4M3
	F8E4M3FN
	F8E4M3FNUZ
	F8E4M3B11FNUZ
	F8E5M2
	F8E5M2FNUZ
	F8E8M0FNU
	BF16
	F16
	F32
	F64
	C64
	C128
	Index

	NumDTypes
)

// A Class is a family of element types.
type Class uint8

// The families of element types.
const (
	NoClass Class = iota
	Boolean
	Signed
	Unsigned
	Floating
	Complex
)

var dtypeTable = [NumDTypes]struct {
	name  string // in MLIR
	hlo   string // in HLO
	bits  int
	class Class
}{
	InvalidDType:  {"invalid", "invalid", 0, NoClass},
	I1:            {"i1", "pred", 1, Boolean},
	I2:            {"i2", "s2", 2, Signed},
	I4:            {"i4", "s4", 4, Signed},
	I8:            {"i8", "s8", 8, Signed},
	I16:           {"i16", "s16", 16, Signed},
	I32:           {"i32", "s32", 32, Signed},
	I64:           {"i64", "s64", 64, Signed},
	UI2:           {"ui2", "u2", 2, Unsigned},
	UI4:           {"ui4", "u4", 4, Unsigned},
	UI8:           {"ui8", "u8", 8, Unsigned},
	UI16:          {"ui16", "u16", 16, Unsigned},
	UI32:          {"ui32", "u32", 32, Unsigned},
	UI64:          {"ui64", "u64", 64, Unsigned},
	F4E2M1FN:      {"f4E2M1FN", "f4e2m1fn", 4, Floating},
	F6E2M3FN:      {"f6E2M3FN", "f6e2m3fn", 6, Floating},
	F6E3M2FN:      {"f6E3M2FN", "f6e3m2fn", 6, Floating},
	F8E3M4:        {"f8E3M4", "f8e3m4", 8, Floating},
	F8E4M3:        {"f8E4M3", "f8e4m3", 8, Floating},
	F8E4M3FN:      {"f8E4M3FN", "f8e4m3fn", 8, Floating},
	F8E4M3FNUZ:    {"f8E4M3FNUZ", "f8e4m3fnuz", 8, Floating},
	F8E4M3B11FNUZ: {"f8E4M3B11FNUZ", "f8e4m3b11fnuz", 8, Floating},
	F8E5M2:        {"f8E5M2", "f8e5m2", 8, Floating},
	F8E5M2FNUZ:    {"f8E5M2FNUZ", "f8e5m2fnuz", 8, Floating},
	F8E8M0FNU:     {"f8E8M0FNU", "f8e8m0fnu", 8, Floating},
	BF16:          {"bf16", "bf16", 16, Floating},
	F16:           {"f16", "f16", 16, Floating},
	F32:           {"f32", "f32", 32, Floating},
	F64:           {"f64", "f64", 64, Floating},
	C64:           {"complex<f32>", "c64", 64, Complex},
	C128:          {"complex<f64>", "c128", 128, Complex},
	Index:         {"index", "s64", 64, Signed},
}

var (
	dtypeByName = byName(func(t DType) string { return dtypeTable[t].name })
	dtypeByHLO  = byName(func(t DType) string { return dtypeTable[t].hlo })
)

func byName(name func(DType) string) map[string]DType {
	m := make(map[string]DType)
	for t := InvalidDType + 1; t < NumDTypes; t++ {
		if _, ok := m[name(t)]; !ok {
			m[name(t)] = t
		}
	}
	return m
}

// DTypeByName returns the dtype that MLIR spells name, or InvalidDType.
func DTypeByName(name string) DType { return dtypeByName[name] }

// DTypeByHLO returns the dtype that HLO text spells name, or InvalidDType.
func DTypeByHLO(name string) DType { return dtypeByHLO[name] }

func (t DType) String() string { return dtypeTable[t].name }

// HLO is the spelling of t in HLO text: f32, s32, pred.
func (t DType) HLO() string { return dtypeTable[t].hlo }

// Bits is the width of t; a boolean has 1.
func (t DType) Bits() int { return dtypeTable[t].bits }

// Size is the number of bytes that one element takes in memory and in a
// [Literal]; elements of less than a byte take one.
func (t DType) Size() int { return (dtypeTable[t].bits + 7) / 8 }

// Class is the family that t belongs to.
func (t DType) Class() Class { return dtypeTable[t].class }

// IsFloat reports whether t is a floating-point type.
func (t DType) IsFloat() bool { return t.Class() == Floating }

// IsComplex reports whether t is a complex type.
func (t DType) IsComplex() bool { return t.Class() == Complex }

// IsInt reports whether t is an integer type, signed or unsigned, not boolean.
func (t DType) IsInt() bool { return t.Class() == Signed || t.Class() == Unsigned }

// Part is the type of the real and the imaginary part of complex t, and t itself otherwise.
func (t DType) Part() DType {
	switch t {
	case C64:
		return F32
	case C128:
		return F64
	}
	return t
}

// DTypes returns every element type, in table order.
func DTypes() []DType {
	var ts []DType
	for t := InvalidDType + 1; t < NumDTypes; t++ {
		ts = append(ts, t)
	}
	return ts
}
