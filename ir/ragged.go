package ir

import "slices"

// RaggedDims is the dimension numbers of ragged_dot: those of a dot, the dimension
// of the left side that falls into groups one after the other, and, where that is a
// free one, the dimension of the right side that has an entry for each group.
type RaggedDims struct {
	Dot
	LhsRagged, RhsGroup []int
}

func (a RaggedDims) String() string {
	return structText("#chlo.ragged_dot<", field{"lhs_batching_dimensions", a.LhsBatch}, field{"rhs_batching_dimensions", a.RhsBatch},
		field{"lhs_contracting_dimensions", a.LhsContract}, field{"rhs_contracting_dimensions", a.RhsContract},
		field{"lhs_ragged_dimensions", a.LhsRagged}, field{"rhs_group_dimensions", a.RhsGroup})
}

// A RaggedMode is what kind of dimension the ragged one is, which decides what a
// ragged_dot computes.
type RaggedMode uint8

// The modes of ragged_dot, for an operand [b, m, k] with groups g:
const (
	RaggedFree     RaggedMode = iota // of m: [g, b, k, n] -> [b, m, n], each group of rows times its own matrix; rows of no group are 0
	RaggedContract                   // of k: [b, k, n] -> [g, b, m, n], each group a product of its own
	RaggedBatch                      // of b: [b, k, n] -> [b, m, n], whatever the groups are
)

// Ragged is the ragged dimension of the left side.
func (a RaggedDims) Ragged() int { return a.LhsRagged[0] }

// Mode is the mode of a ragged_dot with these dimension numbers.
func (a RaggedDims) Mode() RaggedMode {
	switch {
	case slices.Contains(a.LhsBatch, a.Ragged()):
		return RaggedBatch
	case slices.Contains(a.LhsContract, a.Ragged()):
		return RaggedContract
	}
	return RaggedFree
}

// Contracted is the place of the ragged dimension among the contracting ones.
func (a RaggedDims) Contracted() int { return slices.Index(a.LhsContract, a.Ragged()) }

// FreeL and FreeR are the dimensions of sides of the given rank that are neither
// batched nor contracted nor, on the right, that of the groups.
func (a RaggedDims) FreeL(rank int) []int { return freeDims(rank, a.LhsBatch, a.LhsContract) }

// FreeR is [RaggedDims.FreeL] of the right side.
func (a RaggedDims) FreeR(rank int) []int {
	return freeDims(rank, a.RhsBatch, a.RhsContract, a.RhsGroup)
}

func freeDims(rank int, used ...[]int) []int {
	var out []int
	for d := range rank {
		if !slices.ContainsFunc(used, func(ds []int) bool { return slices.Contains(ds, d) }) {
			out = append(out, d)
		}
	}
	return out
}

// Outer are the dimensions of the left side that are before the ragged one: the
// batching ones, then those of its own kind. Group sizes either have them all,
// before that of the groups, or are the same for all.
func (a RaggedDims) Outer() []int {
	ragged := a.Ragged()
	switch a.Mode() {
	case RaggedBatch:
		return slices.Clone(a.LhsBatch[:slices.Index(a.LhsBatch, ragged)])
	case RaggedContract:
		return slices.Concat(a.LhsBatch, a.LhsContract[:a.Contracted()])
	}
	out := slices.Clone(a.LhsBatch)
	for _, d := range a.FreeL(ragged) {
		if d < ragged {
			out = append(out, d)
		}
	}
	return out
}

// Right is the dimension of the right side that is dimension d of the left one, -1
// if d is a free one.
func (a RaggedDims) Right(d int) int {
	if i := slices.Index(a.LhsBatch, d); i >= 0 {
		return a.RhsBatch[i]
	}
	if i := slices.Index(a.LhsContract, d); i >= 0 {
		return a.RhsContract[i]
	}
	return -1
}
