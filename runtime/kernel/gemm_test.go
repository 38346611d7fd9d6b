package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// gemmShapes are m, n and k of every class: empty, one row, one column, tiles
// and blocks with and without a rest, long and flat.
var gemmShapes = [][3]int{
	{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 2, 3}, {5, 1, 129}, {4, 1, 7}, {1, 33, 70}, {3, 5, 300}, {7, 31, 9}, {8, 32, 16}, {9, 33, 17},
	{16, 64, 64}, {64, 64, 32}, {65, 97, 33}, {100, 130, 300}, {300, 70, 257}, {64, 600, 47}, {290, 64, 79}, {13, 100, 257}, {33, 40, 513}, {65, 17, 8}, {260, 36, 40}, {40, 530, 33}, {270, 520, 20}, {66, 520, 260}, {260, 520, 40}, {2, 700, 131}, {64, 64, 2048},
}

// stored is a matrix of x [rows, cols] with other strides, in memory that ends
// right behind it and whose other elements are NaN.
func stored[T float](r *rand.Rand, x []T, rows, cols int) matrix {
	var zero T
	row, col := max(cols, 1), 1
	switch r.IntN(4) {
	case 0:
		row, col = 1, max(rows, 1)
	case 1:
		row = cols + r.IntN(5)
	case 2:
		row, col = 1, rows+r.IntN(3)
		if r.IntN(3) == 0 {
			row, col = 2, 2*rows+1
		}
	}
	n := 0
	if rows > 0 && cols > 0 {
		n = (rows-1)*row + (cols-1)*col + 1
	}
	all := make([]T, n+1) // not aligned to a vector
	for i := range all {
		all[i] = T(math.NaN())
	}
	for i := range rows {
		for j := range cols {
			all[1+i*row+j*col] = x[i*cols+j]
		}
	}
	mem := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(all[1:]))), n*int(unsafe.Sizeof(zero)))
	return matrix{mem, row, col}
}

// gemmTier checks tr on every shape; bits holds what other tiers with vectors
// gave, by type and shape.
func gemmTier[T float](t *testing.T, tr *tier, eps float64, bits map[string]Mem) {
	r := rand.New(rand.NewPCG(1, 2))
	var zero T
	elem := int(unsafe.Sizeof(zero))
	for _, s := range gemmShapes {
		m, n, k := s[0], s[1], s[2]
		x, y := make([]T, m*k), make([]T, k*n)
		for _, v := range [][]T{x, y} {
			for i := range v {
				v[i] = T(r.NormFloat64())
			}
		}
		what := fmt.Sprint("f", 8*elem, " ", s)
		if tr.unit != nil && elem == 4 {
			what += " of parts"
		}
		first := bits[what]
		if tr.vector == 0 {
			first = nil // rounds products
		}
		for range 6 {
			c := NewMem(m * n * elem)
			for i := range c {
				c[i] = 0xff
			}
			gemmOn[T](tr, new(Work), c, stored(r, x, m, k), stored(r, y, k, n), m, n, k)
			if first == nil {
				first, bits[what] = c, c
				compareGemm(t, tr.name+" "+what, View[T](c), x, y, m, n, k, eps)
			} else if !bytes.Equal(first, c) {
				t.Fatalf("%s %s: other bits for other strides, or than another tier", tr.name, what)
			}
		}
	}
}

// compareGemm holds the elements of c within the bound of a sum of k products in
// any order: k roundings of the sum of their magnitudes.
func compareGemm[T float](t *testing.T, name string, c, x, y []T, m, n, k int, eps float64) {
	for i := range m {
		for j := range n {
			sum, size := 0.0, 0.0
			for p := range k {
				v := float64(x[i*k+p]) * float64(y[p*n+j])
				sum, size = sum+v, size+math.Abs(v)
			}
			if got := float64(c[i*n+j]); !(math.Abs(got-sum) <= float64(k+1)*eps*size) {
				t.Fatalf("%s: element %d, %d is %v, want %v", name, i, j, got, sum)
			}
		}
	}
}

// Every tier that this machine has multiplies matrices of every class of shapes,
// however they are stored, to the same bits each time, and tiers with vectors to
// the same as each other.
func TestGemm(t *testing.T) {
	bits := make(map[string]Mem)
	for i := range tiers {
		tr := &tiers[i]
		if !tr.has {
			t.Logf("this machine has no %s", tr.name)
			continue
		}
		gemmTier[float32](t, tr, 0x1p-24, bits)
		gemmTier[float64](t, tr, 0x1p-53, bits)
	}
}

// What is not finite reaches the elements that it is in, and no others.
func TestGemmNotFinite(t *testing.T) {
	for i := range tiers {
		tr := &tiers[i]
		if !tr.has {
			continue
		}
		for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32, math.SmallestNonzeroFloat32} {
			for _, s := range [][3]int{{11, 37, 19}, {67, 70, 40}} {
				m, n, k := s[0], s[1], s[2]
				x, y := make([]float32, m*k), make([]float32, k*n)
				for i := range x {
					x[i] = 1
				}
				for i := range y {
					y[i] = 1
				}
				for _, at := range []*float32{&x[3*k+4], &y[4*n+5]} {
					*at = v
					c := NewMem(4 * m * n)
					gemmOn[float32](tr, new(Work), c, matrix{memOf(x), k, 1}, matrix{memOf(y), n, 1}, m, n, k)
					for e, got := range View[float32](c) {
						want := float32(k)
						if at == &x[3*k+4] && e/n == 3 || at == &y[4*n+5] && e%n == 5 {
							want = float32(k) - 1 + v
						}
						if got != want && !(got != got && want != want) {
							t.Fatalf("%s with %v: element %d, %d is %v, want %v", tr.name, v, e/n, e%n, got, want)
						}
					}
					*at = 1
				}
			}
		}
	}
}

// Subnormal products are not flushed to zero.
func TestGemmSubnormal(t *testing.T) {
	for i := range tiers {
		if tr := &tiers[i]; tr.has {
			x, y, c := []float32{0x1p-70, 0x1p-75}, []float32{0x1p-70, 0, 0x1p-74, 0x1p-70}, NewMem(8)
			gemmOn[float32](tr, new(Work), c, matrix{memOf(x), 2, 1}, matrix{memOf(y), 2, 1}, 1, 2, 2)
			if z := View[float32](c); z[0] != 0x1p-140+0x1p-149 || z[1] != 0x1p-145 {
				t.Errorf("%s: %g", tr.name, z)
			}
		}
	}
}

// An element of a product depends on nothing but its row and its column: what the others are, numbers
// of any size and of few bits or many, does not change a bit of it.
func TestGemmAlone(t *testing.T) {
	const m, n, k = 70, 100, 290
	draw := func(r *rand.Rand, kind int) float32 {
		x := float32(r.NormFloat64())
		switch kind {
		case 1: // 8 bits
			return math.Float32frombits(math.Float32bits(x) &^ 0xffff)
		case 2: // from very small to very large
			return float32(math.Ldexp(float64(x), r.IntN(180)-100))
		case 3:
			return float32(math.Ldexp(float64(x), -120))
		case 4:
			return []float32{float32(math.Inf(1)), float32(math.NaN()), math.Float32frombits(0x7f800001), 1}[r.IntN(4)]
		case 5: // whose products are subnormal
			return float32(math.Ldexp(float64(x), -72))
		case 6:
			return 0
		}
		return x
	}
	for i := range tiers {
		tr := &tiers[i]
		if !tr.has {
			continue
		}
		r := rand.New(rand.NewPCG(5, 6))
		rows, cols := make([]float32, m*k), make([]float32, n*k)
		var first []float32
		for kind := range 7 { // of all rows and columns but those of even numbers
			for _, x := range [][]float32{rows, cols} {
				for e := range x {
					if e/k%2 == 1 || kind == 0 {
						x[e] = draw(r, kind)
					}
				}
			}
			c := NewMem(4 * m * n)
			gemmOn[float32](tr, new(Work), c, matrix{memOf(rows), k, 1}, matrix{memOf(cols), 1, k}, m, n, k)
			got := View[float32](c)
			if kind == 0 {
				first = slices.Clone(got)
				continue
			}
			for e := range got {
				if row, col := e/n, e%n; row%2 == 0 && col%2 == 0 && got[e] != first[e] {
					t.Fatalf("%s: element %d, %d is %v beside others of kind %d, and %v beside numbers of size 1", tr.name, row, col, got[e], kind, first[e])
				}
			}
			compareMixed(t, fmt.Sprintf("%s kind %d", tr.name, kind), got, rows, cols, m, n, k)
		}
	}
}

// compareMixed holds the elements of rows times cols, of k numbers each, within the bound of their sums where these do not
// overflow, and to be no finite numbers where a term is none.
func compareMixed(t *testing.T, name string, got, rows, cols []float32, m, n, k int) {
	for e, v := range got {
		sum, size := 0.0, 0.0
		for p := range k {
			x := float64(rows[e/n*k+p]) * float64(cols[e%n*k+p])
			sum, size = sum+x, size+math.Abs(x)
		}
		switch {
		case math.IsNaN(size) || math.IsInf(size, 0):
			if got := float64(v); !math.IsNaN(got) && got != sum {
				t.Fatalf("%s: element %d, %d is %v, want %v", name, e/n, e%n, v, sum)
			}
		case size < math.MaxFloat32:
			// A subnormal product or sum is rounded to a multiple of 2^-149.
			if bound := float64(k+1) * (0x1p-24*size + 0x1p-149); !(math.Abs(float64(v)-sum) <= bound) {
				t.Fatalf("%s: element %d, %d is %v, want %v, %.3g away of at most %.3g", name, e/n, e%n, v, sum, math.Abs(float64(v)-sum), bound)
			}
		}
	}
}

// memOf is the memory of x.
func memOf(x []float32) Mem {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// A product has the bits of the sum of the products of its blocks, added up in order
// from negative zero, on every tier.
func TestGemmBlocks(t *testing.T) {
	for i := range tiers {
		if tiers[i].has {
			blocksTier[float32](t, &tiers[i])
			blocksTier[float64](t, &tiers[i])
		}
	}
}

func blocksTier[T float](t *testing.T, tr *tier) {
	r := rand.New(rand.NewPCG(3, 4))
	size := int(unsafe.Sizeof(*new(T)))
	for _, s := range [][3]int{{1, 1, 600}, {9, 1, 512}, {5, 33, 1024}, {70, 300, 900}, {64, 80, 512}, {3, 700, 513}} {
		m, n, k := s[0], s[1], s[2]
		x, y := make([]T, m*k), make([]T, k*n)
		for _, v := range [][]T{x, y} {
			for i := range v {
				v[i] = T(r.NormFloat64())
			}
		}
		a, b := matrix{asMem(x), k, 1}, matrix{asMem(y), n, 1}
		all, part, sum := NewMem(m*n*size), NewMem(m*n*size), make([]T, m*n)
		gemmOn[T](tr, new(Work), all, a, b, m, n, k)
		for i := range sum {
			sum[i] = T(math.Copysign(0, -1))
		}
		for p := 0; p < k; p += blockK {
			gemmOn[T](tr, new(Work), part, matrix{a.mem[p*size:], k, 1}, matrix{b.mem[p*n*size:], n, 1}, m, n, min(blockK, k-p))
			for i, v := range View[T](part) {
				sum[i] += v
			}
		}
		if !bytes.Equal(all, asMem(sum)) {
			t.Errorf("%s: a product of f%d %v has other bits than its blocks", tr.name, 8*size, s)
		}
	}
}

// Blocks of the left side that are of different kinds, numbers too small for the matrix unit or of few bits, stay so
// for all blocks of columns.
func TestGemmKinds(t *testing.T) {
	const m, n, k = 300, blockN + 70, 2 * blockK
	r := rand.New(rand.NewPCG(7, 8))
	x, y := make([]float32, m*k), make([]float32, k*n)
	for i := range y {
		y[i] = float32(r.NormFloat64())
	}
	for i := range x {
		v := float32(r.NormFloat64())
		switch row, col := i/k, i%k; {
		case row < blockM && col >= blockK:
			v = float32(math.Ldexp(float64(v), -125))
		case row >= blockM && col < blockK:
			v = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
		}
		x[i] = v
	}
	for i := range tiers {
		tr := &tiers[i]
		if !tr.has || tr.unit == nil {
			continue
		}
		a, b := matrix{memOf(x), k, 1}, matrix{memOf(y), n, 1}
		all := NewMem(4 * m * n)
		gemmOn[float32](tr, new(Work), all, a, b, m, n, k)
		for j := 0; j < n; j += blockN { // the blocks of columns by themselves
			cols := min(blockN, n-j)
			part := NewMem(4 * m * cols)
			gemmOn[float32](tr, new(Work), part, a, matrix{b.mem[4*j:], n, 1}, m, cols, k)
			for row := range m {
				if !bytes.Equal(part[4*row*cols:4*(row+1)*cols], all[4*(row*n+j):4*(row*n+j+cols)]) {
					t.Fatalf("%s: row %d has other bits from column %d on than by themselves", tr.name, row, j)
				}
			}
		}
	}
}

func asMem[T float](x []T) Mem {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(*new(T))))
}
