package ir

import "slices"

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
// A PassThrough factor stands in every result. One that no operand has can be
// cut at no cost. A Reduction stands in operands only. A factor that stands in
// one tensor alone relates nothing: propagation does not cross it.
//
// The rule of a matrix product is ([i, k], [k, j]) -> ([i, j]), with k a
// [Reduction].
type Factors struct {
	Sizes    []int
	Types    []FactorType
	Operands [][][]int // [operand][dimension] -> factors
	Results  [][][]int // [result][dimension] -> factors
}

// FactorsOf returns the sharding rule of op, or nil if its kind has none or one
// of its types is carried through unread.
func FactorsOf(op *Op) *Factors {
	if f := table[op.Kind].factors; f != nil && !unread(op) {
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

// bitcastFactors: pointwise, but for the last dimension of the side that has
// one more.
func bitcastFactors(op *Op) *Factors {
	f := newFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	n := min(len(in), len(out))
	for d := range n {
		f.add(out[d], PassThrough, []int{d}, []int{d})
	}
	for d := n; d < len(in); d++ {
		f.add(in[d], NeedReplication, []int{d}, nil)
	}
	for d := n; d < len(out); d++ {
		f.add(out[d], NeedReplication, nil, []int{d})
	}
	return f
}

// reshapeFactors walks the elements of both sides, major first, and cuts the
// sizes into common factors. Where the next sizes share none, each side gets
// factors of its own until both have come equally far.
func reshapeFactors(op *Op) *Factors {
	f := newFactors(op)
	if op.Results[0].Type.NumElements() == 0 {
		return f
	}
	in, out := reshapeSide{sizes: op.Operands[0].Type.Shape, done: 1, upto: 1}, reshapeSide{sizes: op.Results[0].Type.Shape, done: 1, upto: 1}
	own := func(side *reshapeSide, size int) {
		k := f.factor(size, NeedReplication)
		if side == &in {
			f.Operands[0][in.dim] = append(f.Operands[0][in.dim], k)
		} else {
			f.Results[0][out.dim] = append(f.Results[0][out.dim], k)
		}
		side.done *= size
	}
	for {
		in.enter()
		out.enter()
		common := gcd(in.next(), out.next())
		switch {
		case in.ended() && out.ended():
			return f
		case out.ended():
			own(&in, in.next())
		case in.ended():
			own(&out, out.next())
		case in.done == out.done && common > 1:
			k := f.factor(common, PassThrough)
			f.Operands[0][in.dim] = append(f.Operands[0][in.dim], k)
			f.Results[0][out.dim] = append(f.Results[0][out.dim], k)
			in.done, out.done = in.done*common, out.done*common
		case in.done == out.done:
			own(&in, in.next())
			own(&out, out.next())
		case in.done < out.done:
			own(&in, in.catchUp(&out, common))
		default:
			own(&out, out.catchUp(&in, common))
		}
	}
}

// A reshapeSide is how far reshapeFactors has come on one side: done is the
// product of the factors found, upto that of the sizes of dimensions 0 to dim.
type reshapeSide struct {
	sizes      []int
	dim        int
	done, upto int
	inside     bool // upto has the size of dim
}

// enter moves on to the dimension that the next factor belongs to.
func (s *reshapeSide) enter() {
	for {
		if s.inside && s.done == s.upto {
			s.dim, s.inside = s.dim+1, false
		}
		if s.inside || s.dim == len(s.sizes) {
			return
		}
		s.upto, s.inside = s.upto*s.sizes[s.dim], true
	}
}

// next is what is left of the dimension.
func (s *reshapeSide) next() int { return s.upto / s.done }

func (s *reshapeSide) ended() bool { return s.dim == len(s.sizes) }

// catchUp is the next factor of s, which is behind o: what brings it level
// where that divides, else what leaves the common divisor for later.
func (s *reshapeSide) catchUp(o *reshapeSide, common int) int {
	if next := s.next(); o.done%s.done == 0 && next%(o.done/s.done) == 0 {
		return o.done / s.done
	} else if next > common {
		return next / common
	} else {
		return next
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
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

// dynamicSliceFactors: a dimension that is taken whole passes through; the
// others are not related, since where the window lies is not known.
func dynamicSliceFactors(op *Op) *Factors {
	f := newFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	for d := range out {
		if in[d] == out[d] {
			f.add(in[d], PassThrough, []int{d}, []int{d})
			continue
		}
		f.add(in[d], NeedReplication, []int{d}, nil)
		f.add(out[d], NeedReplication, nil, []int{d})
	}
	return f
}

// dynamicUpdateSliceFactors: a dimension in which the update is smaller passes
// through from the first operand; each device writes what falls into its part
// and needs the whole update for it.
func dynamicUpdateSliceFactors(op *Op) *Factors {
	f := newFactors(op)
	in, update := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape
	for d := range in {
		if in[d] == update[d] {
			f.add(in[d], PassThrough, []int{d, d}, []int{d})
			continue
		}
		f.add(in[d], PassThrough, []int{d, -1}, []int{d})
		f.add(update[d], NeedReplication, []int{-1, d}, nil)
	}
	return f
}

// reduceWindowFactors: a window of one element without padding passes through.
func reduceWindowFactors(op *Op) *Factors {
	f := newFactors(op)
	n, rank := len(op.Results), op.Results[0].Type.Rank()
	in, out, win := op.Operands[0].Type.Shape, op.Results[0].Type.Shape, op.Ints("window_dimensions")
	low, high := op.Padding(rank)
	for d := range out {
		t := PassThrough
		if win[d] != 1 || in[d] != out[d] || low[d] != 0 || high[d] != 0 {
			t = Permutation
		}
		f.add(out[d], t, repeat(d, n), repeat(d, n))
	}
	return f
}

// sortFactors: the sorted dimension must be whole. Along it, propagation
// crosses only where there is another dimension to move the axes to; elsewhere
// it is of each tensor alone.
func sortFactors(op *Op) *Factors {
	f := newFactors(op)
	n, t := len(op.Results), op.Results[0].Type
	dim := op.Int("dimension")
	if dim < 0 {
		dim += t.Rank()
	}
	others := false
	for d, size := range t.Shape {
		others = others || d != dim && size != 1
	}
	for d, size := range t.Shape {
		switch {
		case d != dim:
			f.add(size, PassThrough, repeat(d, n), repeat(d, n))
		case others:
			f.add(size, NeedReplication, repeat(d, n), repeat(d, n))
		default:
			for _, dims := range append(slices.Clip(f.Operands), f.Results...) {
				dims[d] = []int{f.factor(size, NeedReplication)}
			}
		}
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

// gatheredFactors is the rule of a collective that changes the named
// dimensions: these must be whole along the axes that its groups do not have,
// the others pass through.
func gatheredFactors(attrs ...string) func(*Op) *Factors {
	return func(op *Op) *Factors {
		f := newFactors(op)
		n := len(op.Results)
		in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
		for d := range out {
			whole := false
			for _, a := range attrs {
				whole = whole || op.Int(a) == d
			}
			if !whole {
				f.add(out[d], PassThrough, repeat(d, n), repeat(d, n))
				continue
			}
			f.add(in[d], NeedReplication, repeat(d, n), nil)
			f.add(out[d], NeedReplication, nil, repeat(d, n))
		}
		return f
	}
}

// topKFactors: the last dimension must be whole.
func topKFactors(op *Op) *Factors {
	f := newFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	last := len(in) - 1
	for d, size := range in[:last] {
		f.add(size, PassThrough, []int{d}, []int{d, d})
	}
	f.add(in[last], NeedReplication, []int{last}, []int{-1, -1})
	f.add(out[last], NeedReplication, []int{-1}, []int{last, last})
	return f
}
