package dialect

import (
	"slices"

	"ppc/ir"
)

// Constraints, result types and sharding rules of the ops of linear algebra.

// square checks constraints n, that t has two dimensions at least, and n+1,
// that the last two have one size.
func square(n int, what string, t *ir.Type) *ir.Rule {
	r := t.Rank()
	if r < 2 {
		return ir.Broken(n, "%s is %s, want 2 dimensions at least", what, t)
	}
	if rows, columns := t.Shape[r-2], t.Shape[r-1]; !ir.Fits(rows, columns) {
		return ir.Broken(n+1, "the matrices of %s %s are %d by %d, want them square", what, t, rows, columns)
	}
	return nil
}

func inferCholesky(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := inferFloat(op)
	if r == nil {
		r = square(2, "the operand", ts[0])
	}
	return ts, r
}

func inferTriangularSolve(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := tensors(op); r != nil {
		return nil, r
	}
	a, b := op.Operands[0].Type, op.Operands[1].Type
	if !isFloat(a) {
		return nil, ir.Broken(0, "operand 0 is %s, want a tensor of floating-point, complex or quantized numbers", a)
	}
	if !a.SameBaseline(b) {
		return nil, ir.Broken(1, "operands are %s and %s, want one element type", a, b)
	}
	if a.Rank() != b.Rank() {
		return nil, ir.Broken(2, "operands are %s and %s, want one rank", a, b)
	}
	if r := square(2, "operand 0", a); r != nil {
		return nil, r
	}
	row, column := a.Rank()-2, a.Rank()-1
	solved := column // the dimension of b that the equations are in
	if op.Bool("left_side") {
		solved = row
	}
	for d, n := range b.Shape {
		sizes := a.Shape[d : d+1]
		switch {
		case d == solved:
			sizes = a.Shape[row:]
		case d >= row:
			continue
		}
		for _, size := range sizes {
			if !ir.Fits(n, size) {
				return nil, ir.Broken(3, "dimension %d has sizes %d and %d, want one size", d, size, n)
			}
		}
	}
	return []*ir.Type{rescaled(op, 0, b)}, nil
}

// inferFFT: the result has the operand's shape, but along the last dimension
// half of it and one where real numbers become complex ones, which are then
// those of the other half conjugated, and twice as much the other way round.
func inferFFT(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	if r := first(tensors(op), plain(op)); r != nil {
		return nil, r
	}
	t, length, kind := op.Operands[0].Type, op.Ints("fft_length"), op.Word("fft_type")
	rank := t.Rank()
	if n := len(length); n < 1 || n > 3 || n > rank {
		return nil, ir.Broken(3, "fft_length has %s, want 1 to %d for %s", ir.Counted(n, "size"), min(rank, 3), t)
	}
	elem := t.Elem
	switch parts := map[ir.DType]ir.DType{ir.F32: ir.C64, ir.F64: ir.C128}; {
	case kind == "RFFT" && parts[elem] != 0:
		elem = parts[elem]
	case kind == "IRFFT" && elem.IsComplex():
		elem = elem.Part()
	case kind == "RFFT" || !elem.IsComplex():
		return nil, ir.Broken(2, "the operand of %s is %s, want %s", kind, t, map[bool]string{true: "f32 or f64", false: "complex numbers"}[kind == "RFFT"])
	}
	shape, last := slices.Clone(t.Shape), rank-1
	want := slices.Clone(length)
	half := length[len(length)-1]/2 + 1
	if half == 1 && length[len(length)-1] == 0 {
		half = 0
	}
	if kind == "IRFFT" {
		want[len(want)-1] = half
	}
	for i, n := range want {
		if n < 0 || kind != "FFT" && kind != "IFFT" && !ir.Fits(shape[rank-len(want)+i], n) {
			d := rank - len(want) + i
			return nil, ir.Broken(4, "fft_length is [%s], for which dimension %d of the operand has size %d, not %d", ir.JoinInts(length), d, n, shape[d])
		}
	}
	switch kind {
	case "RFFT":
		shape[last] = half
	case "IRFFT":
		shape[last] = length[len(length)-1]
	}
	return []*ir.Type{ir.Tensor(elem, shape...)}, nil
}

// batchFactors are the factors of the dimensions before the last n of op, which are
// batch dimensions.
func batchFactors(op *ir.Op, n int) *ir.Factors {
	f := ir.NewFactors(op)
	t := op.Results[0].Type
	for d, size := range t.Shape[:t.Rank()-n] {
		f.Add(size, ir.PassThrough, ir.Repeat(d, len(op.Operands)), []int{d})
	}
	return f
}

func choleskyFactors(op *ir.Op) *ir.Factors {
	f := batchFactors(op, 2)
	for d, t := op.Operands[0].Type.Rank()-2, op.Operands[0].Type; d < t.Rank(); d++ {
		f.Add(t.Shape[d], ir.NeedReplication, []int{d}, []int{d})
	}
	return f
}

// triangularFactors: the columns of the right side, or its rows where the matrix is
// on the right, are solved for independently.
func triangularFactors(op *ir.Op) *ir.Factors {
	f := batchFactors(op, 2)
	a, b := op.Operands[0].Type, op.Operands[1].Type
	row, column := b.Rank()-2, b.Rank()-1
	for _, d := range []int{row, column} {
		f.Add(a.Shape[d], ir.NeedReplication, []int{d, -1}, []int{-1})
		t := ir.PassThrough
		if (d == row) == op.Bool("left_side") {
			t = ir.NeedReplication
		}
		f.Add(b.Shape[d], t, []int{-1, d}, []int{d})
	}
	return f
}

func fftFactors(op *ir.Op) *ir.Factors {
	n := len(op.Ints("fft_length"))
	f := batchFactors(op, n)
	in, out := op.Operands[0].Type, op.Results[0].Type
	for d := out.Rank() - n; d < out.Rank(); d++ {
		f.Add(in.Shape[d], ir.NeedReplication, []int{d}, []int{-1})
		f.Add(out.Shape[d], ir.NeedReplication, []int{-1}, []int{d})
	}
	return f
}
