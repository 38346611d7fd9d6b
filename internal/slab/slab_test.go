package slab

import "testing"

// No two values share memory, whatever was asked for before, and a slice that grows
// leaves its neighbours alone.
func TestDistinct(t *testing.T) {
	var s Of[int]
	var all [][]int
	next := 0
	for n := range 300 {
		x := s.Slice(n)
		if len(x) != n || cap(x) != n {
			t.Fatalf("Slice(%d) has length %d and capacity %d", n, len(x), cap(x))
		}
		for i := range x {
			if x[i] != 0 {
				t.Fatalf("Slice(%d) is not zero", n)
			}
			next++
			x[i] = next
		}
		all = append(all, x)
		next++
		*s.New() = next
	}
	want := 0
	for _, x := range all {
		for _, v := range x {
			if want++; v != want {
				t.Fatalf("a value is %d, want %d", v, want)
			}
		}
		want++
	}
}
