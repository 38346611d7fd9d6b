package scalar

type (
	float  interface{ ~float32 | ~float64 }
	number interface {
		~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64 | ~complex128
	}
)

// A Stopper says whether what is computed still matters.
type Stopper interface{ Stopped() bool }

// rowsN is how many columns Multiply computes of a block of b: its rows of them
// stay in the second-level cache while all rows of a pass by.
const rowsN = 256

// Multiply adds to c [m, n] the product of a [m, k] and b [k, n]: four rows of b at a time to a row of c, eight flops per five
// loads and one store, all of them in order of address. The products are
// rounded before they are added, on every machine. Blocks of so many products are
// added up by themselves.
func Multiply[T float](w Stopper, block int, c, a, b []T, m, n, k int) {
	if n == 1 {
		for p := 0; p < k; p += block {
			gemv(c, a, b, p, min(block, k-p), m, k)
		}
		return
	}
	var sums [rowsN]T
	for p0 := 0; p0 < k; p0 += block {
		p1 := min(p0+block, k)
		for j0 := 0; j0 < n; j0 += rowsN {
			j1 := min(j0+rowsN, n)
			if w.Stopped() {
				return
			}
			for i := range m {
				row, x := c[i*n+j0:i*n+j1], a[i*k+p0:i*k+p1]
				if p0 == 0 {
					addRows(row, x, b[j0:], n)
					continue
				}
				sum := sums[:len(row)]
				clear(sum)
				addRows(sum, x, b[p0*n+j0:], n)
				for j, v := range sum {
					row[j] += v
				}
			}
		}
	}
}

// addRows adds to c the rows of b, ld elements apart, each times its element of a.
func addRows[T float](c, a, b []T, ld int) {
	for len(a) >= 4 {
		b0, b1, b2, b3 := b[:len(c)], b[ld:][:len(c)], b[2*ld:][:len(c)], b[3*ld:][:len(c)]
		a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
		for j, v := range c {
			v += T(a0 * b0[j])
			v += T(a1 * b1[j])
			v += T(a2 * b2[j])
			v += T(a3 * b3[j])
			c[j] = v
		}
		a = a[4:]
		if len(a) == 0 {
			return
		}
		b = b[4*ld:]
	}
	for p, x := range a {
		for j, y := range b[p*ld:][:len(c)] {
			c[j] += T(x * y)
		}
	}
}

// gemv is Multiply for one column and the terms of one block, n of them from p on: four
// rows at a time, so that four sums go on while each waits for its last addition.
func gemv[T float](c, a, b []T, p, n, m, k int) {
	y := b[p:][:n]
	put := func(i int, s T) {
		if p > 0 {
			s = c[i] + s
		}
		c[i] = s
	}
	i := 0
	for ; i+4 <= m; i += 4 {
		r0, r1, r2, r3 := a[i*k+p:][:n], a[(i+1)*k+p:][:n], a[(i+2)*k+p:][:n], a[(i+3)*k+p:][:n]
		var s0, s1, s2, s3 T
		for q, y := range y {
			s0 += T(r0[q] * y)
			s1 += T(r1[q] * y)
			s2 += T(r2[q] * y)
			s3 += T(r3[q] * y)
		}
		put(i, s0)
		put(i+1, s1)
		put(i+2, s2)
		put(i+3, s3)
	}
	for ; i < m; i++ {
		var s T
		for q, x := range a[i*k+p:][:n] {
			s += T(x * y[q])
		}
		put(i, s)
	}
}

// MultiplyPlain is Multiply for numbers of any type, the products of an element in one sum.
func MultiplyPlain[T number](_ Stopper, c, a, b []T, m, n, k int) {
	for i := range m {
		row := c[i*n : (i+1)*n]
		for p, x := range a[i*k : (i+1)*k] {
			for j, y := range b[p*n : (p+1)*n] {
				row[j] += x * y
			}
		}
	}
}

// MultiplyBool is or of ands, as StableHLO adds and multiplies booleans.
func MultiplyBool(_ Stopper, c, a, b []byte, m, n, k int) {
	for i := range m {
		row := c[i*n : (i+1)*n]
		for p, x := range a[i*k : (i+1)*k] {
			if x == 0 {
				continue
			}
			for j, y := range b[p*n : (p+1)*n] {
				row[j] |= y
			}
		}
	}
}
