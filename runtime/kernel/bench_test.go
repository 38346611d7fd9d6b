package kernel

import (
	"fmt"
	"testing"

	"ppc/ir"
)

func BenchmarkGemm(b *testing.B) {
	for _, s := range [][3]int{{8, 8, 8}, {64, 64, 64}, {64, 32, 64}, {1, 256, 256}, {4, 256, 256}, {8, 256, 256}, {16, 256, 256}, {256, 256, 8}, {256, 256, 256}, {128, 256, 1024}, {128, 1024, 256}, {256, 128, 1024}, {512, 512, 512}, {1024, 1024, 1024}, {128, 512, 2048}, {128, 512, 1}, {1, 512, 512}} {
		m, k, n := s[0], s[1], s[2]
		for i := range tiers {
			if !tiers[i].has {
				continue
			}
			b.Run(fmt.Sprintf("%s/%dx%dx%d", tiers[i].name, m, k, n), func(b *testing.B) {
				x, y, z := numbers(ir.Tensor(ir.F32, m, k)), numbers(ir.Tensor(ir.F32, k, n)), NewMem(4*m*n)
				w := new(Work)
				for b.Loop() {
					gemmOn[float32](&tiers[i], w, z, matrix{x, k, 1}, matrix{y, n, 1}, m, n, k)
				}
				b.ReportMetric(2*float64(m*n*k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GF/s")
			})
		}
	}
}
