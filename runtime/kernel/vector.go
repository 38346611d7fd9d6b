package kernel

import (
	"math"
	"math/bits"
	"unsafe"

	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

// The kernels of a tier work on full vectors, one or more: blocks is their number.
// x and y may be dst.
type (
	vectorUnary   func(dst, x *byte, blocks int)
	vectorBinary  func(dst, x, y *byte, blocks int)
	vectorTernary func(dst, x, y, z *byte, blocks int)

	// vectorRows folds each of the rows of blocks times foldLanes elements to one.
	vectorRows func(dst, x *byte, rows, blocks int)
)

// vectorOps are the kernels of a tier for one type of floats.
type vectorOps struct {
	unary   map[ir.Kind]vectorUnary
	binary  map[ir.Kind]vectorBinary
	compare map[string]vectorBinary // to booleans
	choose  vectorTernary           // of booleans x
	rows    map[ir.Kind]vectorRows
}

// longest is how many vectors one call of assembly takes, so that it ends soon:
// it cannot be preempted.
const longest = 1 << 12

// ends are vectors at the end of arrays, brought to full length.
type ends [4][64]byte

// unary is a Func of f, which takes vectors of so many bytes in to vectors of so
// many bytes out.
func (t *tier) unary(f vectorUnary, in, out int) Func {
	return byVectors(func(dst *byte, x [3]*byte, blocks int) { f(dst, x[0], blocks) }, out, in)
}

// binary is a Func of f likewise.
func (t *tier) binary(f vectorBinary, in, out int) Func {
	return byVectors(func(dst *byte, x [3]*byte, blocks int) { f(dst, x[0], x[1], blocks) }, out, in, in)
}

// ternary is a Func of f, whose first operand has vectors of first bytes.
func (t *tier) ternary(f vectorTernary, first int) Func {
	return byVectors(func(dst *byte, x [3]*byte, blocks int) { f(dst, x[0], x[1], x[2], blocks) }, t.vector, first, t.vector, t.vector)
}

// byVectors is a Func of f, which takes vectors of so many bytes of each operand to vectors of out bytes.
func byVectors(f func(dst *byte, x [3]*byte, blocks int), out int, in ...int) Func {
	shift := bits.TrailingZeros(uint(out))
	return func(w *Work, dst, src []Mem) {
		d, src := dst[0], src[:len(in)]
		full := len(d) >> shift
		var x [3]*byte
		for lo := 0; lo < full; lo += longest {
			for i, size := range in {
				x[i] = &src[i][lo*size]
			}
			f(&d[lo*out], x, min(longest, full-lo))
		}
		if rest := len(d) - full<<shift; rest > 0 {
			for i, size := range in {
				copy(w.ends[i][:], src[i][full*size:])
				x[i] = &w.ends[i][0]
			}
			f(&w.ends[3][0], x, 1)
			copy(d[full*out:], w.ends[3][:rest])
		}
	}
}

// mapped is a Func of f, which the Go compiler does not vectorise.
func mapped[T float](f func(T) T) Func {
	return func(_ *Work, dst, src []Mem) {
		d, x := views1[T, T](dst, src)
		for i := range d {
			d[i] = f(x[i])
		}
	}
}

// wideAngles is f, and g where |x| is above limit.
func wideAngles[T float](f Func, g func(float64) float64, limit T) Func {
	return func(w *Work, dst, src []Mem) {
		d, x := views1[T, T](dst, src)
		far := false
		for _, v := range x {
			far = far || !(v <= limit && v >= -limit)
		}
		if !far {
			f(w, dst, src)
			return
		}
		if Same(dst[0], src[0]) { // f would write over the angles
			depth := w.depth
			kept := w.temp(len(src[0]))
			copy(kept, src[0])
			x = View[T](kept)
			f(w, dst, src)
			w.depth = depth
		} else {
			f(w, dst, src)
		}
		for i, v := range x {
			if !(v <= limit && v >= -limit) {
				d[i] = T(g(float64(v)))
			}
		}
	}
}

// unaryOn is the Func of an elementary function of floats on tier t; nil where
// there is none.
func unaryOn(t *tier, k ir.Kind, e ir.DType) Func {
	var f Func
	switch {
	case t.vector > 0 && t.ops[e] != nil && t.ops[e].unary[k] != nil:
		f = t.unary(t.ops[e].unary[k], t.vector, t.vector)
	case e == ir.F32 && scalar.F32[k] != nil:
		f = mapped(scalar.F32[k])
	case e == ir.F64 && scalar.F64[k] != nil:
		f = mapped(scalar.F64[k])
	default:
		return nil
	}
	g := scalar.Angles[k]
	switch {
	case g == nil:
		return f
	case e == ir.F32:
		return wideAngles[float32](f, g, scalar.TurnsF32)
	}
	return wideAngles[float64](f, g, scalar.TurnsF64)
}

// useTier puts the kernels of t in the tables.
func useTier(t *tier) {
	for k := range unaries {
		row := unaries[k]
		for _, e := range []ir.DType{ir.F32, ir.F64} {
			if f := unaryOn(t, k, e); f != nil {
				row[e] = f
			}
		}
		unaries[k] = row
	}
	for e, ops := range t.ops {
		size := e.Size()
		for k, f := range ops.binary {
			row := binaries[k]
			row[e] = t.binary(f, t.vector, t.vector)
			binaries[k] = row
		}
		for dir, f := range ops.compare {
			row := comparisons[dir]
			row[e] = t.binary(f, t.vector, t.vector/size)
			comparisons[dir] = row
			if turned := map[string]string{"LT": "GT", "LE": "GE"}[dir]; turned != "" {
				row := comparisons[turned]
				row[e] = swapped(t.binary(f, t.vector, t.vector/size))
				comparisons[turned] = row
			}
		}
		if ops.choose != nil {
			chooses[size] = t.ternary(ops.choose, t.vector/size)
		}
	}
	if t.vector > 0 {
		direct[[2]ir.DType{ir.I1, ir.F32}] = t.unary(t.fromBool, t.vector/4, t.vector)
	}
	for _, k := range []ir.Kind{ir.Add, ir.Maximum} {
		row := rowFolds[k]
		row[ir.F32] = rowFolder(t, k, ir.F32)
		row[ir.F64] = rowFolder(t, k, ir.F64)
		rowFolds[k] = row
	}
}

// foldLanes is the number of chains in which a row is folded: element i goes to
// chain i mod foldLanes, and then the upper half of the chains is folded into the
// lower until one is left. foldLength elements are folded so; a longer row is
// its pieces, one after the other, and what is left at its end is filled up.
const (
	foldLanes  = scalar.Lanes
	foldLength = scalar.Longest
)

func rowFolder(t *tier, k ir.Kind, e ir.DType) Func {
	var rows vectorRows
	if t.vector > 0 {
		rows = t.ops[e].rows[k]
	}
	switch {
	case e == ir.F32 && k == ir.Add:
		return foldRowsBy(rows, func(a, b float32) float32 { return a + b }, float32(math.Copysign(0, -1)))
	case e == ir.F32:
		return foldRowsBy(rows, func(a, b float32) float32 { return max(a, b) }, float32(math.Inf(-1)))
	case k == ir.Add:
		return foldRowsBy(rows, func(a, b float64) float64 { return a + b }, math.Copysign(0, -1))
	}
	return foldRowsBy(rows, func(a, b float64) float64 { return max(a, b) }, math.Inf(-1))
}

// foldRowsBy folds each row of src, and then takes that in to the element of dst.
// neutral fills up what is shorter than the lanes.
func foldRowsBy[T float](rows vectorRows, fold func(a, b T) T, neutral T) Func {
	if rows == nil {
		rows = scalar.FoldRows(fold)
	}
	return func(w *Work, dst, src []Mem) {
		d, x := View[T](dst[0]), View[T](src[0])
		n := len(x) / max(len(d), 1)
		if n == 0 {
			return
		}
		depth := w.depth
		var zero T
		size := int(unsafe.Sizeof(zero))
		scratch := View[T](w.temp((foldLength + foldLanes) * size))
		sums, end := scratch[:foldLength], scratch[foldLength:]
		if n%foldLanes == 0 && n <= foldLength { // the rows are one piece
			for lo := 0; lo < len(d); lo += foldLength {
				m := min(foldLength, len(d)-lo)
				rows(&bytesOf(sums)[0], &bytesOf(x[lo*n:])[0], m, n/foldLanes)
				for i, s := range sums[:m] {
					d[lo+i] = fold(d[lo+i], s)
				}
			}
			w.depth = depth
			return
		}
		for i := range d {
			row := x[i*n : (i+1)*n]
			for len(row) >= foldLanes {
				m := min(foldLength, len(row)&^(foldLanes-1))
				rows(&bytesOf(sums)[0], &bytesOf(row)[0], 1, m/foldLanes)
				d[i] = fold(d[i], sums[0])
				row = row[m:]
			}
			if len(row) > 0 {
				fill(end[copy(end, row):], neutral)
				rows(&bytesOf(sums)[0], &bytesOf(end)[0], 1, 1)
				d[i] = fold(d[i], sums[0])
			}
		}
		w.depth = depth
	}
}

// bytesOf is the memory of x.
func bytesOf[T float | int32](x []T) Mem {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(zero)))
}
