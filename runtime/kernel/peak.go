package kernel

import (
	"sync"
	"time"

	"ppc/ir"
)

// Peak measures how many operations on float32 so many cores do per second at
// the most: in products of matrices that stay in the first-level cache.
func Peak(cores int) float64 {
	const m, n, k, runs = 8, 32, 96, 20000
	var wg sync.WaitGroup
	best := make([]time.Duration, cores)
	for c := range best {
		wg.Go(func() {
			w := new(Work)
			x, y, z := NewMem(4*m*k), NewMem(4*k*n), NewMem(4*m*n)
			for range 8 {
				begin := time.Now()
				for range runs {
					gemms[ir.F32](w, z, matrix{x, k, 1}, matrix{y, n, 1}, m, n, k)
				}
				if t := time.Since(begin); best[c] == 0 || t < best[c] {
					best[c] = t
				}
			}
		})
	}
	wg.Wait()
	sum := 0.0
	for _, t := range best {
		sum += 2 * m * n * k * runs / t.Seconds()
	}
	return sum
}
