package lint

import (
	"slices"

	"ppc/ir"
)

// A reading is a slice of a value that an op reads.
type reading struct {
	slice *ir.Op // a dynamic_slice, or a slice
	along bool   // it slices a dimension that was asked about
}

// readings are the slices that are all that is read of v, whatever its shape is
// on the way; false if something reads all of it. dims says which dimensions of
// v are asked about.
func (p *program) readings(v *ir.Value, dims []bool) ([]reading, bool) {
	var out []reading
	for _, op := range p.u.Of[v] {
		switch {
		case op.Kind == ir.DynamicSlice, op.Kind == ir.Slice:
			if op.Operands[0] != v {
				return nil, false
			}
			r := reading{slice: op}
			for d, n := range op.Result().Type.Shape {
				r.along = r.along || dims[d] && n < v.Type.Shape[d]
			}
			if op.Result().Type.Equal(v.Type) { // all of it
				return nil, false
			}
			out = append(out, r)
			continue
		case sameElements[op.Kind]:
		default:
			return nil, false
		}
		more, ok := p.readings(op.Result(), through(op, dims))
		if !ok {
			return nil, false
		}
		out = append(out, more...)
	}
	return out, len(out) > 0
}

// through are the dimensions of op's result that have elements of dims.
func through(op *ir.Op, dims []bool) []bool {
	from, to := op.Operands[0].Type.Shape, op.Result().Type.Shape
	out := make([]bool, len(to))
	switch op.Kind {
	case ir.Transpose:
		for i, d := range op.Ints("permutation") {
			out[i] = dims[d]
		}
	case ir.Reshape: // runs of dimensions of equal size
		for i, j := 0, 0; i < len(from) || j < len(to); {
			firstFrom, firstTo, m, n := i, j, 1, 1
			for step := true; step; step = m != n {
				if (m <= n || j == len(to)) && i < len(from) {
					m *= from[i]
					i++
				} else if j < len(to) {
					n *= to[j]
					j++
				} else {
					break
				}
			}
			touched := slices.Contains(dims[firstFrom:i], true)
			for d := firstTo; d < j; d++ {
				out[d] = touched
			}
		}
	default:
		copy(out, dims)
	}
	return out
}

// ownShard reports whether each device reads only its own shard of v, the same in
// every read: along one of dims, or, where that is nil, along any.
func (p *program) ownShard(v *ir.Value, dims []bool) bool {
	if dims == nil {
		dims = slices.Repeat([]bool{true}, v.Type.Rank())
	}
	rs, ok := p.readings(v, dims)
	return ok && !slices.ContainsFunc(rs, func(r reading) bool {
		return !r.along || r.slice.Kind != ir.DynamicSlice || !p.fixed(r.slice, v) || !p.placedAt(r.slice) || !slices.Equal(p.places(r.slice), p.places(rs[0].slice))
	})
}

// fixed reports whether op takes the same slice of v in every iteration of the
// loops that it is in and v is not.
func (p *program) fixed(op *ir.Op, v *ir.Value) bool {
	for loop := p.around(op); loop != nil && !p.definedIn(v, loop); loop = p.around(loop) {
		if slices.ContainsFunc(op.Operands[1:], func(x *ir.Value) bool { return !p.same(x, loop) }) {
			return false
		}
	}
	return true
}

// rowRead is all that is read of v, what an all-gather along dimension dim
// gives, where that is one slice along other dimensions; nil if it is not.
func (p *program) rowRead(v *ir.Value, dim int) *ir.Op {
	dims := make([]bool, v.Type.Rank())
	dims[dim] = true
	rs, ok := p.readings(v, dims)
	if !ok || len(rs) != 1 || rs[0].along || !p.fixed(rs[0].slice, v) {
		return nil
	}
	return rs[0].slice
}

// placedAt reports whether op, a slice, is at another place on other devices.
func (p *program) placedAt(op *ir.Op) bool { return len(p.places(op)) > 0 }

// places are where op, a slice, begins along the dimensions in which that is
// another place on other devices.
func (p *program) places(op *ir.Op) []*ir.Value {
	return slices.DeleteFunc(slices.Clone(op.Operands[1:]), func(x *ir.Value) bool { return !p.differs[x] })
}
