// Package native makes machine code of chains of functions of f32 at run time, for
// processors with AVX-512: one loop over the elements that keeps what is between two functions in
// registers, where kernels of one function each write it to memory and read it again.
//
// A [Chain] is written down node by node. Its elements may be rows, which are folded to one number each, and
// whose numbers are read by every element of the row; then there are several loops over a row, one after
// the other: see [Chain.Compile]. The functions are those of the other kernels and give
// the same bits: internal/asmgen writes functions.go, too.
package native
