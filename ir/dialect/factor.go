package dialect

import (
	"slices"

	"ppc/ir"
)

// pointwise is the rule of an elementwise op: every dimension is one factor of all
// operands and results but scalars.
func pointwise(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	t := op.Results[0].Type
	dims := f.Results[0]
	for d, size := range t.Shape {
		dims[d] = append(dims[d], f.Factor(size, ir.PassThrough))
	}
	for _, tensors := range [][][][]int{f.Operands, f.Results} {
		for i := range tensors {
			if len(tensors[i]) == t.Rank() {
				tensors[i] = dims
			}
		}
	}
	return f
}

// sourceFactors is the rule of an op without operands, any shard of whose result
// any device can compute.
func sourceFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	for d, size := range op.Results[0].Type.Shape {
		f.Add(size, ir.PassThrough, nil, []int{d})
	}
	return f
}

func broadcastFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
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
		f.Add(size, ir.PassThrough, []int{from[d]}, []int{d})
	}
	return f
}

func transposeFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	for d, i := range op.Ints("permutation") {
		f.Add(op.Results[0].Type.Shape[d], ir.PassThrough, []int{i}, []int{d})
	}
	return f
}

// bitcastFactors: pointwise, but for the last dimension of the side that has
// one more.
func bitcastFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	n := min(len(in), len(out))
	for d := range n {
		f.Add(out[d], ir.PassThrough, []int{d}, []int{d})
	}
	for d := n; d < len(in); d++ {
		f.Add(in[d], ir.NeedReplication, []int{d}, nil)
	}
	for d := n; d < len(out); d++ {
		f.Add(out[d], ir.NeedReplication, nil, []int{d})
	}
	return f
}

// reshapeFactors walks the elements of both sides, major first, and splits the
// sizes into common factors. Where the next sizes share none, each side gets
// factors of its own until the products of both agree.
func reshapeFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	if op.Results[0].Type.NumElements() == 0 {
		return f
	}
	in, out := reshapeSide{sizes: op.Operands[0].Type.Shape, done: 1, upto: 1}, reshapeSide{sizes: op.Results[0].Type.Shape, done: 1, upto: 1}
	own := func(side *reshapeSide, size int) {
		k := f.Factor(size, ir.NeedReplication)
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
		common := ir.GCD(in.next(), out.next())
		switch {
		case in.ended() && out.ended():
			return f
		case out.ended():
			own(&in, in.next())
		case in.ended():
			own(&out, out.next())
		case in.done == out.done && common > 1:
			k := f.Factor(common, ir.PassThrough)
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

// A reshapeSide is the progress of reshapeFactors on one side: done is the product
// of the factors found, upto that of the sizes of dimensions 0 to dim.
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

// next is the remaining size of the dimension.
func (s *reshapeSide) next() int { return s.upto / s.done }

func (s *reshapeSide) ended() bool { return s.dim == len(s.sizes) }

// catchUp is the next factor of s, which is behind o: the one that makes the
// products agree if that divides, else one that leaves the common divisor for
// later.
func (s *reshapeSide) catchUp(o *reshapeSide, common int) int {
	if next := s.next(); o.done%s.done == 0 && next%(o.done/s.done) == 0 {
		return o.done / s.done
	} else if next > common {
		return next / common
	} else {
		return next
	}
}

func dotFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	d := op.Attrs.Get("dot_dimension_numbers").(ir.Dot)
	l, r := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape
	out := 0
	usedL, usedR := make([]bool, len(l)), make([]bool, len(r))
	for i := range d.LhsBatch {
		f.Add(l[d.LhsBatch[i]], ir.PassThrough, []int{d.LhsBatch[i], d.RhsBatch[i]}, []int{out})
		usedL[d.LhsBatch[i]], usedR[d.RhsBatch[i]] = true, true
		out++
	}
	for i := range d.LhsContract {
		usedL[d.LhsContract[i]], usedR[d.RhsContract[i]] = true, true
	}
	for i, size := range l {
		if !usedL[i] {
			f.Add(size, ir.PassThrough, []int{i, -1}, []int{out})
			out++
		}
	}
	for i, size := range r {
		if !usedR[i] {
			f.Add(size, ir.PassThrough, []int{-1, i}, []int{out})
			out++
		}
	}
	for i := range d.LhsContract {
		f.Add(l[d.LhsContract[i]], ir.Reduction, []int{d.LhsContract[i], d.RhsContract[i]}, []int{-1})
	}
	return f
}

func reduceFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	n := len(op.Results)
	reduced := make([]bool, op.Operands[0].Type.Rank())
	for _, d := range op.Ints("dimensions") {
		reduced[d] = true
	}
	out := 0
	for d, size := range op.Operands[0].Type.Shape {
		if reduced[d] {
			f.Add(size, ir.Reduction, ir.Repeat(d, n), ir.Repeat(-1, n))
			continue
		}
		f.Add(size, ir.PassThrough, ir.Repeat(d, n), ir.Repeat(out, n))
		out++
	}
	return f
}

func reverseFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	reversed := make([]bool, op.Results[0].Type.Rank())
	for _, d := range op.Ints("dimensions") {
		reversed[d] = true
	}
	for d, size := range op.Results[0].Type.Shape {
		t := ir.PassThrough
		if reversed[d] {
			t = ir.Permutation
		}
		f.Add(size, t, []int{d}, []int{d})
	}
	return f
}

func concatenateFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	dim := op.Int("dimension")
	for d, size := range op.Results[0].Type.Shape {
		t := ir.PassThrough
		if d == dim {
			t = ir.Permutation
		}
		f.Add(size, t, ir.Repeat(d, len(op.Operands)), []int{d})
	}
	return f
}

func sliceFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	f.Window(in, out, func(d int) bool { return in[d] == out[d] })
	return f
}

func padFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	low, high, interior := op.Ints("edge_padding_low"), op.Ints("edge_padding_high"), op.Ints("interior_padding")
	f.Window(op.Operands[0].Type.Shape, op.Results[0].Type.Shape, func(d int) bool { return low[d] == 0 && high[d] == 0 && interior[d] == 0 })
	return f
}

// dynamicSliceFactors: a dimension that the window covers passes through; the
// others are not related, since the start of the window is not known.
func dynamicSliceFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	for d := range out {
		if in[d] == out[d] {
			f.Add(in[d], ir.PassThrough, []int{d}, []int{d})
			continue
		}
		f.Add(in[d], ir.NeedReplication, []int{d}, nil)
		f.Add(out[d], ir.NeedReplication, nil, []int{d})
	}
	return f
}

// dynamicUpdateSliceFactors: a dimension in which the update is smaller passes
// through from the first operand; each device writes the elements that fall into
// its shard, and needs the update replicated for it.
func dynamicUpdateSliceFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	in, update := op.Operands[0].Type.Shape, op.Operands[1].Type.Shape
	for d := range in {
		if in[d] == update[d] {
			f.Add(in[d], ir.PassThrough, []int{d, d}, []int{d})
			continue
		}
		f.Add(in[d], ir.PassThrough, []int{d, -1}, []int{d})
		f.Add(update[d], ir.NeedReplication, []int{-1, d}, nil)
	}
	return f
}

// reduceWindowFactors: a window of one element without padding passes through.
func reduceWindowFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	n, out := len(op.Results), op.Results[0].Type.Shape
	for d, w := range op.Windows() {
		t := ir.Permutation
		if w.Identity() {
			t = ir.PassThrough
		}
		f.Add(out[d], t, ir.Repeat(d, n), ir.Repeat(d, n))
	}
	return f
}

// sortFactors: the sorted dimension needs replication. It is one factor of all
// tensors only where there is another dimension that its axes could move to; else
// it is a factor of each tensor alone.
func sortFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
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
			f.Add(size, ir.PassThrough, ir.Repeat(d, n), ir.Repeat(d, n))
		case others:
			f.Add(size, ir.NeedReplication, ir.Repeat(d, n), ir.Repeat(d, n))
		default:
			for _, dims := range append(slices.Clip(f.Operands), f.Results...) {
				dims[d] = []int{f.Factor(size, ir.NeedReplication)}
			}
		}
	}
	return f
}

func rotateFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	for d, size := range op.Results[0].Type.Shape {
		t := ir.PassThrough
		if d == 0 {
			t = ir.Permutation
		}
		f.Add(size, t, ir.Repeat(d, len(op.Operands)), []int{d})
	}
	return f
}

// gatheredFactors is the rule of a collective that changes the named dimensions:
// these need replication along the axes that are not its groups', the others pass
// through.
func gatheredFactors(attrs ...string) func(*ir.Op) *ir.Factors {
	return func(op *ir.Op) *ir.Factors {
		f := ir.NewFactors(op)
		n := len(op.Results)
		in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
		for d := range out {
			unchanged := false
			for _, a := range attrs {
				unchanged = unchanged || op.Int(a) == d
			}
			if !unchanged {
				f.Add(out[d], ir.PassThrough, ir.Repeat(d, n), ir.Repeat(d, n))
				continue
			}
			f.Add(in[d], ir.NeedReplication, ir.Repeat(d, n), nil)
			f.Add(out[d], ir.NeedReplication, nil, ir.Repeat(d, n))
		}
		return f
	}
}

// topKFactors: the last dimension needs replication.
func topKFactors(op *ir.Op) *ir.Factors {
	f := ir.NewFactors(op)
	in, out := op.Operands[0].Type.Shape, op.Results[0].Type.Shape
	last := len(in) - 1
	for d, size := range in[:last] {
		f.Add(size, ir.PassThrough, []int{d}, []int{d, d})
	}
	f.Add(in[last], ir.NeedReplication, []int{last}, []int{-1, -1})
	f.Add(out[last], ir.NeedReplication, []int{-1}, []int{last, last})
	return f
}
