package ir

// A FactorType says what may be done when a factor is cut over mesh axes.
type FactorType uint8

// The types of factors; Shardy's.
const (
	PassThrough     FactorType = iota // each device works on its part
	Reduction                         // each device has a partial result, to be combined
	NeedReplication                   // must be whole
	Permutation                       // each device needs parts of others
)

// Factors is the einsum-like sharding rule of one op. A factor is an axis of
// the op's index space; a dimension of an operand or result is the product of
// some factors, major first. Values whose dimensions share a factor lie alike
// along it. A dimension without factors is not related to any other.
//
// The rule of a matrix product is ([i, k], [k, j]) -> ([i, j]), with k a
// [Reduction].
type Factors struct {
	Sizes    []int
	Types    []FactorType
	Operands [][][]int // [operand][dimension] -> factors
	Results  [][][]int // [result][dimension] -> factors
}

// FactorsOf returns the sharding rule of op, or nil if its kind has none.
func FactorsOf(op *Op) *Factors {
	if f := table[op.Kind].factors; f != nil {
		return f(op)
	}
	return nil
}

func newFactors(op *Op) *Factors {
	f := new(Factors)
	for _, v := range op.Operands {
		f.Operands = append(f.Operands, make([][]int, rankOf(v)))
	}
	for _, v := range op.Results {
		f.Results = append(f.Results, make([][]int, rankOf(v)))
	}
	return f
}

func rankOf(v *Value) int {
	if !v.Type.IsTensor() {
		return 0
	}
	return v.Type.Rank()
}

// factor makes a new factor.
func (f *Factors) factor(size int, t FactorType) int {
	f.Sizes = append(f.Sizes, size)
	f.Types = append(f.Types, t)
	return len(f.Sizes) - 1
}

// add makes a factor of the given dimensions, by operand and by result; -1
// means that it is not there.
func (f *Factors) add(size int, t FactorType, operands, results []int) {
	k := f.factor(size, t)
	for i, d := range operands {
		if d >= 0 {
			f.Operands[i][d] = append(f.Operands[i][d], k)
		}
	}
	for i, d := range results {
		if d >= 0 {
			f.Results[i][d] = append(f.Results[i][d], k)
		}
	}
}

// pointwise: every dimension is one factor of all; scalars take no part.
func pointwise(op *Op) *Factors {
	f := newFactors(op)
	t := op.Results[0].Type
	for d, size := range t.Shape {
		k := f.factor(size, PassThrough)
		for i := range f.Operands {
			if d < len(f.Operands[i]) && len(f.Operands[i]) == t.Rank() {
				f.Operands[i][d] = []int{k}
			}
		}
		for i := range f.Results {
			f.Results[i][d] = []int{k}
		}
	}
	return f
}

// sourceFactors: a result without operands, any part of which can be made anywhere.
func sourceFactors(op *Op) *Factors {
	f := newFactors(op)
	for d, size := range op.Results[0].Type.Shape {
		f.add(size, PassThrough, nil, []int{d})
	}
	return f
}

func broadcastFactors(op *Op) *Factors {
	f := newFactors(op)
	in, out := op.Operands[0].Type, op.Results[0].Type
	from := make([]int, out.Rank())
	for d := range from {
		from[d] = -1
	}
	for i, d := range op.Ints("broadcast_dimensions") {
		if in.Shape[i] == out.Shape[d] {
			from[d] = i
		}
	}
	for d, size := range out.Shape {
		f.add(size, PassThrough, []int{from[d]}, []int{d})
	}
	return f
}

func transposeFactors(op *Op) *Factors {
	f := newFactors(op)
	for d, i := range op.Ints("permutation") {
		f.add(op.Results[0].Type.Shape[d], PassThrough, []int{i}, []int{d})
	}
	return f
}

// reshapeFactors: the sizes of both sides are cut into common factors; where
// they have none, the dimensions of that stretch are not related.
func reshapeFactors(op *Op) *Factors {
	f := newFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	if op.Results[0].Type.NumElements() == 0 {
		return f
	}
	i, o := 0, 0
	restIn, restOut := 1, 1 // what is left of in[i-1], out[o-1]
	for {
		for restIn == 1 && i < len(in) {
			restIn = in[i]
			i++
		}
		for restOut == 1 && o < len(out) {
			restOut = out[o]
			o++
		}
		if restIn == 1 && restOut == 1 {
			return f
		}
		if restIn == 1 || restOut == 1 { // cannot be: the products are equal
			return f
		}
		n := min(restIn, restOut)
		if restIn%n == 0 && restOut%n == 0 {
			k := f.factor(n, PassThrough)
			f.Operands[0][i-1] = append(f.Operands[0][i-1], k)
			f.Results[0][o-1] = append(f.Results[0][o-1], k)
			restIn, restOut = restIn/n, restOut/n
			continue
		}
		// No common factor at this place: nothing is related until both sides meet again.
		for restIn != restOut {
			if restIn < restOut {
				restIn *= in[i]
				i++
			} else {
				restOut *= out[o]
				o++
			}
		}
		restIn, restOut = 1, 1
	}
}

func dotFactors(op *Op) *Factors {
	f := newFactors(op)
	d := op.Attrs.Get("dot_dimension_numbers").(Dot)
	l, r := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape
	out := 0
	usedL, usedR := make([]bool, len(l)), make([]bool, len(r))
	for i := range d.LhsBatch {
		f.add(l[d.LhsBatch[i]], PassThrough, []int{d.LhsBatch[i], d.RhsBatch[i]}, []int{out})
		usedL[d.LhsBatch[i]], usedR[d.RhsBatch[i]] = true, true
		out++
	}
	for i := range d.LhsContract {
		usedL[d.LhsContract[i]], usedR[d.RhsContract[i]] = true, true
	}
	for i, size := range l {
		if !usedL[i] {
			f.add(size, PassThrough, []int{i, -1}, []int{out})
			out++
		}
	}
	for i, size := range r {
		if !usedR[i] {
			f.add(size, PassThrough, []int{-1, i}, []int{out})
			out++
		}
	}
	for i := range d.LhsContract {
		f.add(l[d.LhsContract[i]], Reduction, []int{d.LhsContract[i], d.RhsContract[i]}, []int{-1})
	}
	return f
}

func reduceFactors(op *Op) *Factors {
	f := newFactors(op)
	n := len(op.Results)
	reduced := make([]bool, op.Operands[0].Type.Rank())
	for _, d := range op.Ints("dimensions") {
		reduced[d] = true
	}
	out := 0
	for d, size := range op.Operands[0].Type.Shape {
		if reduced[d] {
			f.add(size, Reduction, repeat(d, n), repeat(-1, n))
			continue
		}
		f.add(size, PassThrough, repeat(d, n), repeat(out, n))
		out++
	}
	return f
}

func repeat(v, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func reverseFactors(op *Op) *Factors {
	f := newFactors(op)
	reversed := make([]bool, op.Results[0].Type.Rank())
	for _, d := range op.Ints("dimensions") {
		reversed[d] = true
	}
	for d, size := range op.Results[0].Type.Shape {
		t := PassThrough
		if reversed[d] {
			t = Permutation
		}
		f.add(size, t, []int{d}, []int{d})
	}
	return f
}

func concatenateFactors(op *Op) *Factors {
	f := newFactors(op)
	dim := op.Int("dimension")
	for d, size := range op.Results[0].Type.Shape {
		t := PassThrough
		if d == dim {
			t = Permutation
		}
		f.add(size, t, repeat(d, len(op.Operands)), []int{d})
	}
	return f
}

// window adds a factor for each dimension d of operand 0 and the result; one
// whose size changes is a Permutation.
func (f *Factors) window(in, out []int, whole func(d int) bool) {
	for d := range out {
		t := PassThrough
		if !whole(d) {
			t = Permutation
		}
		f.add(in[d], t, []int{d}, []int{d})
	}
}

func sliceFactors(op *Op) *Factors {
	f := newFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	f.window(in, out, func(d int) bool { return in[d] == out[d] })
	return f
}

func padFactors(op *Op) *Factors {
	f := newFactors(op)
	low, high, interior := op.Ints("edge_padding_low"), op.Ints("edge_padding_high"), op.Ints("interior_padding")
	f.window(op.Operands[0].Type.Shape, op.Results[0].Type.Shape, func(d int) bool { return low[d] == 0 && high[d] == 0 && interior[d] == 0 })
	return f
}

// dynamicSliceFactors: a dimension that is taken whole passes through.
func dynamicSliceFactors(op *Op) *Factors {
	f := newFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	for d := range out {
		t := PassThrough
		if in[d] != out[d] {
			t = NeedReplication
		}
		f.add(in[d], t, []int{d}, []int{d})
	}
	return f
}

func dynamicUpdateSliceFactors(op *Op) *Factors {
	f := newFactors(op)
	in, update := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape
	for d := range in {
		if in[d] == update[d] {
			f.add(in[d], PassThrough, []int{d, d}, []int{d})
		} else {
			f.add(in[d], NeedReplication, []int{d, d}, []int{d})
		}
	}
	return f
}

// gatherFactors: batch dimensions of the indices pass through to the result,
// with those of the operand that they index along; so do operand dimensions
// that are taken whole.
func gatherFactors(op *Op) *Factors {
	f := newFactors(op)
	g := op.Attrs.Get("dimension_numbers").(GatherDims)
	in, idx, out := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape, op.Results[0].Type.Shape
	sizes := op.Ints("slice_sizes")
	var batch, offset []int // result dimensions
	for d := range out {
		if contains(g.OffsetDims, d) {
			offset = append(offset, d)
		} else {
			batch = append(batch, d)
		}
	}
	k := 0
	for d, size := range idx {
		if d == g.IndexVectorDim {
			continue
		}
		operand := -1
		for i, b := range g.StartIndicesBatchingDims {
			if b == d {
				operand = g.OperandBatchingDims[i]
			}
		}
		f.add(size, PassThrough, []int{operand, d}, []int{batch[k]})
		k++
	}
	k = 0
	for d, size := range in {
		switch {
		case contains(g.OperandBatchingDims, d):
		case contains(g.CollapsedSliceDims, d):
			f.add(size, NeedReplication, []int{d, -1}, []int{-1})
		case sizes[d] == size:
			f.add(size, PassThrough, []int{d, -1}, []int{offset[k]})
			k++
		default:
			f.add(size, NeedReplication, []int{d, -1}, []int{offset[k]})
			k++
		}
	}
	return f
}

func contains(xs []int, x int) bool {
	for _, v := range xs {
		if v == x {
			return true
		}
	}
	return false
}

// scatterFactors: as gatherFactors, with updates in place of the result. A
// batch dimension of the indices that is not one of the operand is reduced
// into the operand.
func scatterFactors(op *Op) *Factors {
	f := newFactors(op)
	g := op.Attrs.Get("scatter_dimension_numbers").(ScatterDims)
	n := len(op.Results)
	in, idx, upd := op.Operands[0].Type.Shape, op.Operands[n].Type.Shape, op.Operands[n+1].Type.Shape
	var batch, window []int // update dimensions
	for d := range upd {
		if contains(g.UpdateWindowDims, d) {
			window = append(window, d)
		} else {
			batch = append(batch, d)
		}
	}
	dims := func(operand, index, update int) []int {
		return append(append(repeat(operand, n), index), repeat(update, n)...)
	}
	k := 0
	for d, size := range idx {
		if d == g.IndexVectorDim {
			continue
		}
		operand := -1
		for i, b := range g.ScatterIndicesBatchingDims {
			if b == d {
				operand = g.InputBatchingDims[i]
			}
		}
		t := PassThrough
		if operand < 0 {
			t = NeedReplication
		}
		f.add(size, t, dims(operand, d, batch[k]), repeat(operand, n))
		k++
	}
	k = 0
	for d, size := range in {
		switch {
		case contains(g.InputBatchingDims, d):
		case contains(g.InsertedWindowDims, d):
			f.add(size, NeedReplication, dims(d, -1, -1), repeat(d, n))
		case upd[window[k]] == size:
			f.add(size, PassThrough, dims(d, -1, window[k]), repeat(d, n))
			k++
		default:
			f.add(size, NeedReplication, dims(d, -1, window[k]), repeat(d, n))
			k++
		}
	}
	return f
}

func reduceWindowFactors(op *Op) *Factors {
	f := newFactors(op)
	n := len(op.Results)
	in, out, win := op.Operands[0].Type.Shape, op.Results[0].Type.Shape, op.Ints("window_dimensions")
	for d := range in {
		t := PassThrough
		if win[d] != 1 || in[d] != out[d] {
			t = NeedReplication
		}
		f.add(in[d], t, repeat(d, n), repeat(d, n))
	}
	return f
}

func sortFactors(op *Op) *Factors {
	f := newFactors(op)
	n := len(op.Results)
	dim := op.Int("dimension")
	for d, size := range op.Results[0].Type.Shape {
		t := PassThrough
		if d == dim {
			t = NeedReplication
		}
		f.add(size, t, repeat(d, n), repeat(d, n))
	}
	return f
}

func rotateFactors(op *Op) *Factors {
	f := newFactors(op)
	for d, size := range op.Results[0].Type.Shape {
		t := PassThrough
		if d == 0 {
			t = Permutation
		}
		f.add(size, t, repeat(d, len(op.Operands)), []int{d})
	}
	return f
}
