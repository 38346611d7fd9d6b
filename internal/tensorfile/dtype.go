package tensorfile

import (
	"slices"
	"strings"
)

// A dtype is one element type and how the formats spell it.
type dtype struct {
	name string // in MLIR
	npy  string // kind and size, without the byte order; "" where NumPy has none
	st   string // in safetensors
	size int
	part int // bytes that a change of byte order reverses
}

// Unsaid is the element type of an array of NumPy whose elements are raw bytes: of some
// type of a byte or less, which the file does not say.
const Unsaid = "V1"

// dtypes is the element types that files may hold. NumPy has no bfloat16; the
// extension package that adds it writes two raw bytes, V2, and so does this. Of narrower
// types it writes one, V1, whichever it is.
var dtypes = [...]dtype{
	{"i1", "b1", "BOOL", 1, 1},
	{"i8", "i1", "I8", 1, 1},
	{"i16", "i2", "I16", 2, 2},
	{"i32", "i4", "I32", 4, 4},
	{"i64", "i8", "I64", 8, 8},
	{"ui8", "u1", "U8", 1, 1},
	{"ui16", "u2", "U16", 2, 2},
	{"ui32", "u4", "U32", 4, 4},
	{"ui64", "u8", "U64", 8, 8},
	{"f16", "f2", "F16", 2, 2},
	{"bf16", "V2", "BF16", 2, 2},
	{"f32", "f4", "F32", 4, 4},
	{"f64", "f8", "F64", 8, 8},
	{"complex<f32>", "c8", "C64", 8, 4},
	{"complex<f64>", "c16", "", 16, 8},
	{Unsaid, Unsaid, "", 1, 1},
	{"f8E4M3FN", Unsaid, "F8_E4M3", 1, 1},
	{"f8E5M2", Unsaid, "F8_E5M2", 1, 1},
	{"f8E8M0FNU", Unsaid, "F8_E8M0", 1, 1},
	{"f8E3M4", Unsaid, "", 1, 1},
	{"f8E4M3", Unsaid, "", 1, 1},
	{"f8E4M3FNUZ", Unsaid, "", 1, 1},
	{"f8E4M3B11FNUZ", Unsaid, "", 1, 1},
	{"f8E5M2FNUZ", Unsaid, "", 1, 1},
	{"f6E2M3FN", Unsaid, "", 1, 1},
	{"f6E3M2FN", Unsaid, "", 1, 1},
	{"f4E2M1FN", Unsaid, "", 1, 1},
	{"i2", Unsaid, "", 1, 1},
	{"i4", Unsaid, "", 1, 1},
	{"ui2", Unsaid, "", 1, 1},
	{"ui4", Unsaid, "", 1, 1},
}

func find(key string, of func(dtype) string) (dtype, bool) {
	for _, t := range dtypes {
		if key != "" && of(t) == key {
			return t, true
		}
	}
	return dtype{}, false
}

func byName(name string) (dtype, bool) { return find(name, func(t dtype) string { return t.name }) }

// byNPY is the type that an .npy file calls descr. f1 is what NumPy's extension package calls one
// of its own, which NumPy itself does not read.
func byNPY(descr string) (dtype, bool) {
	if descr == "f1" {
		return byName("f8E5M2")
	}
	return find(descr, func(t dtype) string { return t.npy })
}

func bySafetensors(name string) (dtype, bool) {
	return find(name, func(t dtype) string { return t.st })
}

// spellings lists how a format spells the types it has.
func spellings(of func(dtype) string) string {
	var names []string
	for _, t := range dtypes {
		if s := of(t); s != "" && !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return strings.Join(names, " ")
}
