package facts

import (
	"slices"
)

// UpTo is 0, 1, … n-1.
func UpTo(n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = i
	}
	return dims
}

// Others are the dimensions of a tensor of the given rank that are not in dims.
func Others(rank int, dims []int) []int {
	return slices.DeleteFunc(UpTo(rank), func(d int) bool { return slices.Contains(dims, d) })
}
