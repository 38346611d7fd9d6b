// Package products adds products of float64 one after the other: each product is rounded,
// and then each sum, in the order of the terms, so that every machine computes the same bits.
package products

// AddRows adds x[k] * y[k, :] to out for every k, one after the other. y has len(x) rows
// of len(out) elements.
func AddRows(out, x, y []float64) {
	if len(out) == 0 || len(x) == 0 {
		return
	}
	y = y[:len(x)*len(out)]
	addColumns(out, x, y, vector(out, x, y))
}

// addColumns is AddRows for the columns from the given one on. Four rows at a time spare
// memory traffic. The conversions keep the product and the sum from being fused.
func addColumns(out, x, y []float64, from int) {
	n, k := len(out), 0
	if from == n {
		return
	}
	out = out[from:]
	row := func(k int) []float64 { return y[k*n+from:][:len(out)] }
	for ; k+4 <= len(x); k += 4 {
		x0, x1, x2, x3 := x[k], x[k+1], x[k+2], x[k+3]
		y0, y1, y2, y3 := row(k), row(k+1), row(k+2), row(k+3)
		for j, v := range out {
			v += float64(x0 * y0[j])
			v += float64(x1 * y1[j])
			v += float64(x2 * y2[j])
			v += float64(x3 * y3[j])
			out[j] = v
		}
	}
	for ; k < len(x); k++ {
		for j, w := range row(k) {
			out[j] += float64(x[k] * w)
		}
	}
}
