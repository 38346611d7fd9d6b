package rng

import (
	"math"
	"slices"
	"testing"
)

// Shards generated separately equal the slices of the full tensor, where Splits
// says so, also where counters come around.
func TestSplits(t *testing.T) {
	shapes := [][]int{{8}, {12}, {6}, {9}, {4, 6}, {6, 4}, {2, 3}, {3, 5}, {9, 2}, {9, 3}, {3, 9}, {1, 8, 3}, {1, 9, 4}, {1, 15, 5}, {16, 1, 3}}
	split := 0
	for _, algorithm := range []string{"THREE_FRY", "PHILOX"} {
		for _, n := range []int{8, 32, 64} {
			for _, shape := range shapes {
				d := slices.IndexFunc(shape, func(n int) bool { return n > 1 })
				for _, parts := range []int{2, 3, 4} {
					if Splits(algorithm, shape, n, d, parts) {
						split++
						checkSplit(t, algorithm, shape, n, d, parts)
					}
				}
			}
		}
	}
	if split < 70 {
		t.Errorf("%d splits, want 70", split)
	}
	if Splits("DEFAULT", []int{8}, 32, 0, 2) || Splits("PHILOX", []int{2, 8}, 32, 1, 2) {
		t.Error("what no counters are known of is split")
	}
}

func checkSplit(t *testing.T, algorithm string, shape []int, n, d, parts int) {
	state := []uint64{7, math.MaxUint64 - 1}
	full, after, err := Generate(algorithm, state, shape, n)
	if err != nil {
		t.Fatal(err)
	}
	if got := after[1] - state[1]; got != uint64(Counters(algorithm, shape, n)) {
		t.Errorf("%s %v: %d counters, want %d", algorithm, shape, Counters(algorithm, shape, n), got)
	}
	part := slices.Clone(shape)
	part[d] /= parts
	from := slices.Clone(state)
	if algorithm == "PHILOX" {
		from = append(from, state[0]) // where what is carried goes
	}
	var all []uint64
	for range parts {
		bits, next, err := Generate(algorithm, from, part, n)
		if err != nil {
			t.Fatal(err)
		}
		all, from = append(all, bits...), next
	}
	if !slices.Equal(all, full) {
		t.Errorf("%s %v, %d bits, in %d parts: %x, want %x", algorithm, shape, n, parts, all, full)
	}
}
