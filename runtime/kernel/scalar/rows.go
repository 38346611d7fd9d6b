package scalar

import "unsafe"

// Lanes is the number of chains in which [FoldRows] folds a row.
const Lanes = 32

// Longest is how many elements are folded so at once; a longer row is folded piece by piece.
const Longest = 4096

// FoldRows returns a function that folds each of the rows of blocks times [Lanes] elements at x to one of dst: element i
// goes to chain i mod Lanes, and then the upper half of the chains is folded into the lower until one is left.
func FoldRows[T ~float32 | ~float64](fold func(a, b T) T) func(dst, x *byte, rows, blocks int) {
	return func(dst, x *byte, rows, blocks int) {
		d := unsafe.Slice((*T)(unsafe.Pointer(dst)), rows)
		all := unsafe.Slice((*T)(unsafe.Pointer(x)), rows*blocks*Lanes)
		for r := range d {
			row := all[r*blocks*Lanes:][:blocks*Lanes]
			lanes := [Lanes]T(row)
			for at := Lanes; at < len(row); at += Lanes {
				for i, v := range row[at : at+Lanes] {
					lanes[i] = fold(lanes[i], v)
				}
			}
			for n := Lanes / 2; n > 0; n /= 2 {
				for i := range n {
					lanes[i] = fold(lanes[i], lanes[i+n])
				}
			}
			d[r] = lanes[0]
		}
	}
}
