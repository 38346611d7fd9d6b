package kernel

import (
	"fmt"
	"testing"

	"ppc/ir"
)

func BenchmarkGemm(b *testing.B) {
	for _, s := range [][3]int{{8, 8, 8}, {64, 64, 64}, {256, 256, 256}, {512, 512, 512}, {128, 512, 1}, {1, 512, 512}} {
		m, k, n := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%dx%d", m, k, n), func(b *testing.B) {
			x, y, z := NewMem(4*m*k), NewMem(4*k*n), NewMem(4*m*n)
			for b.Loop() {
				clear(z)
				gemms[ir.F32](new(Work), z, x, y, m, n, k)
			}
			b.ReportMetric(2*float64(m*n*k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GF/s")
		})
	}
}
