package kernel

import (
	"sync"
	"time"
)

// Peak measures how many operations on float32 that many cores do per second at
// the most: products and sums of what is in registers.
func Peak(cores int) float64 {
	best := make([]float64, cores)
	var wg sync.WaitGroup
	for c := range best {
		wg.Go(func() {
			for range 20 {
				begin := time.Now()
				for range 200 { // calls that end soon
					fastest.peak(1000)
				}
				best[c] = max(best[c], float64(fastest.lanes)*200*1000/time.Since(begin).Seconds())
			}
		})
	}
	wg.Wait()
	sum := 0.0
	for _, b := range best {
		sum += b
	}
	return sum
}
