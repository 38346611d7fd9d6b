package kernel

import (
	"fmt"
	"testing"

	"ppc/ir"
)

func BenchmarkGemm(b *testing.B) {
	for _, s := range [][3]int{{8, 8, 8}, {64, 64, 64}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {128, 512, 2048}, {128, 512, 1}, {1, 512, 512}} {
		m, k, n := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%dx%d", m, k, n), func(b *testing.B) {
			x, y, z := NewMem(4*m*k), NewMem(4*k*n), NewMem(4*m*n)
			w := new(Work)
			for b.Loop() {
				gemms[ir.F32](w, z, matrix{x, k, 1}, matrix{y, n, 1}, m, n, k)
			}
			b.ReportMetric(2*float64(m*n*k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GF/s")
		})
	}
}
