//go:build !(linux && amd64)

package native

import "unsafe"

// Available reports whether the processor has the instructions, and the system lets code be made.
func Available() bool { return false }

// A Code is a chain in machine code.
type Code struct{}

// Scratch is how many bytes Run needs besides the arrays.
func (*Code) Scratch() int { return 0 }

// MayTake reports whether array to may be the memory of array from.
func (*Code) MayTake(to, from int) bool { return false }

// Run computes n rows, or elements where there are no rows.
func (*Code) Run(arrays []unsafe.Pointer, _ int, _ []byte) []unsafe.Pointer { return arrays }

// Compile makes machine code of the chain; nil where that is not [Available].
func (*Chain) Compile() *Code { return nil }
