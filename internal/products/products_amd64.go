package products

import "golang.org/x/sys/cpu"

var hasAVX = cpu.X86.HasAVX

// The columns that one pass over all rows adds, in registers.
const wide, narrow = 32, 4

// vector adds the columns in front that vectors take, and returns how many these are.
func vector(out, x, y []float64) int {
	n, at := len(out), 0
	if !hasAVX {
		return 0
	}
	for ; at+wide <= n; at += wide {
		add32(&out[at], &x[0], &y[at], len(x), 8*n)
	}
	for ; at+narrow <= n; at += narrow {
		add4(&out[at], &x[0], &y[at], len(x), 8*n)
	}
	return at
}

// add32 adds x[i] times 32 elements of a row of y to those of out, for n rows, which
// begin stride bytes after each other. n is not 0.
//
//go:noescape
func add32(out, x, y *float64, n, stride int)

// add4 is add32 for four elements.
//
//go:noescape
func add4(out, x, y *float64, n, stride int)
