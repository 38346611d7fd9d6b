package kernel

import (
	"math"
	"unsafe"

	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

// The kernels of a tier work on full vectors, one or more: blocks is their number.
// x and y may be dst.
type (
	vectorUnary  func(dst, x *byte, blocks int)
	vectorBinary func(dst, x, y *byte, blocks int)
	vectorChoose func(dst, p, x, y *byte, blocks int)

	// vectorRows folds each of the rows of blocks times foldLanes elements to one.
	vectorRows func(dst, x *byte, rows, blocks int)
)

// vectorOps are the kernels of a tier for one type of floats.
type vectorOps struct {
	unary   map[ir.Kind]vectorUnary
	binary  map[ir.Kind]vectorBinary
	compare map[string]vectorBinary // to booleans
	choose  vectorChoose
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
	return func(w *Work, dst, src []Mem) {
		d, x := dst[0], src[0]
		full := len(d) / out
		for lo := 0; lo < full; lo += longest {
			f(&d[lo*out], &x[lo*in], min(longest, full-lo))
		}
		if rest := len(d) - full*out; rest > 0 {
			copy(w.ends[0][:], x[full*in:])
			f(&w.ends[3][0], &w.ends[0][0], 1)
			copy(d[full*out:], w.ends[3][:rest])
		}
	}
}

// binary is a Func of f likewise.
func (t *tier) binary(f vectorBinary, in, out int) Func {
	return func(w *Work, dst, src []Mem) {
		d, x, y := dst[0], src[0], src[1]
		full := len(d) / out
		for lo := 0; lo < full; lo += longest {
			f(&d[lo*out], &x[lo*in], &y[lo*in], min(longest, full-lo))
		}
		if rest := len(d) - full*out; rest > 0 {
			copy(w.ends[0][:], x[full*in:])
			copy(w.ends[1][:], y[full*in:])
			f(&w.ends[3][0], &w.ends[0][0], &w.ends[1][0], 1)
			copy(d[full*out:], w.ends[3][:rest])
		}
	}
}

// choose is a Func of f, for elements of elem bytes.
func (t *tier) choose(f vectorChoose, elem int) Func {
	v, lanes := t.vector, t.vector/elem
	return func(w *Work, dst, src []Mem) {
		d, p, x, y := dst[0], src[0], src[1], src[2]
		full := len(d) / v
		for lo := 0; lo < full; lo += longest {
			f(&d[lo*v], &p[lo*lanes], &x[lo*v], &y[lo*v], min(longest, full-lo))
		}
		if rest := len(d) - full*v; rest > 0 {
			copy(w.ends[2][:], p[full*lanes:])
			copy(w.ends[0][:], x[full*v:])
			copy(w.ends[1][:], y[full*v:])
			f(&w.ends[3][0], &w.ends[2][0], &w.ends[0][0], &w.ends[1][0], 1)
			copy(d[full*v:], w.ends[3][:rest])
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
			chooses[size] = t.choose(ops.choose, size)
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
	foldLanes  = 32
	foldLength = 4096
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

// lanesOf is vectorRows in Go.
func lanesOf[T float](fold func(a, b T) T) vectorRows {
	return func(dst, x *byte, rows, blocks int) {
		d := unsafe.Slice((*T)(unsafe.Pointer(dst)), rows)
		all := unsafe.Slice((*T)(unsafe.Pointer(x)), rows*blocks*foldLanes)
		for r := range d {
			row := all[r*blocks*foldLanes:][:blocks*foldLanes]
			lanes := [foldLanes]T(row)
			for at := foldLanes; at < len(row); at += foldLanes {
				for i, v := range row[at : at+foldLanes] {
					lanes[i] = fold(lanes[i], v)
				}
			}
			for n := foldLanes / 2; n > 0; n /= 2 {
				for i := range n {
					lanes[i] = fold(lanes[i], lanes[i+n])
				}
			}
			d[r] = lanes[0]
		}
	}
}

// foldRowsBy folds each row of src, and then takes that in to the element of dst.
// neutral fills up what is shorter than the lanes.
func foldRowsBy[T float](rows vectorRows, fold func(a, b T) T, neutral T) Func {
	if rows == nil {
		rows = lanesOf(fold)
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
