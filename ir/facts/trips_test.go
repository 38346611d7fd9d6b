package facts

import "testing"

// TripCount counts as a loop does.
func TestTripCount(t *testing.T) {
	holds := map[string]func(a, b int) bool{
		"LT": func(a, b int) bool { return a < b }, "LE": func(a, b int) bool { return a <= b },
		"GT": func(a, b int) bool { return a > b }, "GE": func(a, b int) bool { return a >= b },
		"NE": func(a, b int) bool { return a != b }, "EQ": func(a, b int) bool { return a == b },
	}
	for direction, more := range holds {
		for start := -4; start <= 4; start++ {
			for limit := -4; limit <= 4; limit++ {
				for step := -3; step <= 3; step++ {
					want := 0
					for i := start; want <= 20 && more(i, limit); i += step {
						want++
					}
					ends := want <= 20
					if got, ok := TripCount(direction, start, limit, step); ok && (!ends || got != want) || !ok && ends && direction != "EQ" {
						t.Errorf("from %d while %s %d by %d: %d trips (%v), want %d (%v)", start, direction, limit, step, got, ok, want, ends)
					}
				}
			}
		}
	}
}
