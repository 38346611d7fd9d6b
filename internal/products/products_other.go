//go:build !amd64

package products

// vector has no columns that it can add.
func vector(out, x, y []float64) int { return 0 }
