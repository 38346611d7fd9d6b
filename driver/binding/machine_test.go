package binding

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/runtime/kernel"
)

// TestUnshared: of literals that are pieces of one memory, those are free that overlap nothing that is used,
// each once.
func TestUnshared(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	memory := make([]byte, 64)
	piece := func() *ir.Literal {
		begin := r.IntN(len(memory))
		return &ir.Literal{Data: memory[begin : begin+r.IntN(min(9, len(memory)-begin+1))]}
	}
	for range 2000 {
		old, used := make([]*ir.Literal, r.IntN(8)), make([][]*ir.Literal, 3)
		for i := range old {
			old[i] = piece()
		}
		for i := range used {
			for range r.IntN(4) {
				used[i] = append(used[i], piece())
			}
			used[i] = append(used[i], nil)
		}
		var want []*ir.Literal
		for i, l := range old {
			shares := func(u *ir.Literal) bool { return u != nil && kernel.Overlap(u.Data, l.Data) }
			again := func(o *ir.Literal) bool { return len(o.Data) > 0 && &o.Data[0] == &l.Data[0] }
			if len(l.Data) > 0 && !slices.ContainsFunc(slices.Concat(used...), shares) && !slices.ContainsFunc(old[:i], again) {
				want = append(want, l)
			}
		}
		if got := unshared(old, used); !slices.Equal(got, want) {
			t.Fatalf("%d are free, want %d", len(got), len(want))
		}
	}
}
