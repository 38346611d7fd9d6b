package products

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Vectors give the bits of one element after the other, for all numbers of rows and
// columns, and write nothing else.
func TestAddRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	odd := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324, 1}
	numbers := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			if out[i] = r.NormFloat64(); r.IntN(50) == 0 {
				out[i] = odd[r.IntN(len(odd))]
			}
		}
		return out
	}
	for _, columns := range []int{0, 1, 3, 4, 5, 7, 8, 31, 32, 33, 36, 63, 64, 100} {
		for _, rows := range []int{0, 1, 2, 3, 4, 5, 9, 16} {
			all, x, y := numbers(columns+2), numbers(rows), numbers(rows*columns)
			want := slices.Clone(all)
			for k := range x {
				for j := range columns {
					want[1+j] += float64(x[k] * y[k*columns+j])
				}
			}
			AddRows(all[1:1+columns], x, y)
			for i, w := range want {
				if g := all[i]; math.Float64bits(g) != math.Float64bits(w) && !(g != g && w != w) {
					t.Fatalf("%d rows of %d columns: element %d is %v, want %v", rows, columns, i-1, g, w)
				}
			}
		}
	}
}

func BenchmarkAddRows(b *testing.B) {
	for _, n := range []int{8, 64, 256} {
		out, x, y := make([]float64, n), make([]float64, 64), make([]float64, 64*n)
		for _, how := range []string{"vectors", "go"} {
			b.Run(fmt.Sprint(n, "/", how), func(b *testing.B) {
				for b.Loop() {
					if how == "go" {
						addColumns(out, x, y, 0)
					} else {
						AddRows(out, x, y)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*64*n), "ns/term")
			})
		}
	}
}
