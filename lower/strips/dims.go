package strips

import (
	"slices"

	"ppc/ir"
)

// A dim is a dimension along which a group is computed strip by strip. What members
// make has it as the major part of one of its dimensions, or not at all.
type dim struct {
	rows  int                    // how many there are
	strip int                    // how many of them a strip has
	at    map[*ir.Value]int      // the dimension, of what members make and has it
	sums  []*ir.Op               // contractions over it
	batch bool                   // every contraction has it on both sides
	rules map[*ir.Op]*ir.Factors // of the group
}

// trips is the number of strips.
func (d *dim) trips() int { return (d.rows + d.strip - 1) / d.strip }

// size is how many elements of dimension n of v a strip has.
func (d *dim) size(v *ir.Value, n int) int { return v.Type.Shape[n] / d.rows * d.strip }

// LeastRows is how many rows of a matrix a strip has at least, so that its product
// is computed about as fast as that of all rows.
const LeastRows = 64

// findDims chooses dimensions, those of the largest value, the first ones first, and
// how long their strips are; none where there is no choice.
func (g *group) findDims() {
	v := g.largest()
	rules := make(map[*ir.Op]*ir.Factors)
	for _, op := range g.ops {
		if rules[op] = ir.FactorsOf(op); rules[op] == nil {
			return
		}
	}
	var dims []*dim
	for n, size := range v.Type.Shape {
		if size == 1 {
			continue
		}
		d := &dim{rows: size, strip: size, at: map[*ir.Value]int{v: n}, batch: true, rules: rules}
		if g.spread(d) && !slices.ContainsFunc(dims, d.overlaps) {
			dims = append(dims, d)
		}
	}
	left := (v.Type.Bytes() + g.limits.Strip - 1) / g.limits.Strip // strips that are wanted
	for _, d := range dims {
		switch {
		case left <= 1 || d.strip < d.rows:
			continue
		case len(d.sums) > 0:
			for d, strip := range g.summed(dims) {
				d.strip = strip
				left = (left + d.trips() - 1) / d.trips()
			}
			continue
		}
		d.strip = max(1, d.rows/left)
		if !d.batch {
			d.strip = max(d.strip, min(d.rows, LeastRows))
		}
		left = (left + d.trips() - 1) / d.trips()
	}
	g.dims = slices.DeleteFunc(dims, func(d *dim) bool { return d.trips() == 1 })
}

func (g *group) largest() *ir.Value {
	var most *ir.Value
	for _, op := range g.ops {
		if v := op.Result(); g.unkept[v] && (most == nil || v.Type.Bytes() > most.Type.Bytes()) {
			most = v
		}
	}
	return most
}

// overlaps reports whether a value has d and e in the same dimension.
func (d *dim) overlaps(e *dim) bool {
	for v, n := range d.at {
		if m, ok := e.at[v]; ok && m == n {
			return true
		}
	}
	return false
}

// summed are the strips of dimensions that are contracted, so that each strip has
// the terms of one block of a sum, and the strips of a sum come in its order; none
// where there are no such.
func (g *group) summed(dims []*dim) map[*dim]int {
	strips := make(map[*dim]int)
	for _, d := range dims {
		for _, op := range d.sums {
			if !d.blocks(op, dims, strips) {
				return nil
			}
		}
	}
	return strips
}

// blocks finds the strips of the dimensions that op contracts. It is not ok where one
// of them is known to be another.
func (*dim) blocks(op *ir.Op, dims []*dim, strips map[*dim]int) bool {
	x := op.Operands[0]
	terms, before := 1, len(dims)
	for _, n := range slices.Backward(op.Attrs.Get("dot_dimension_numbers").(ir.Dot).LhsContract) {
		size := x.Type.Shape[n]
		i := slices.IndexFunc(dims, func(d *dim) bool {
			at, bad := place(d.rules[op].Operands[0], d.key(op))
			return at == n && !bad && slices.Contains(d.sums, op)
		})
		strip := 1
		switch {
		case size == 1:
			continue
		case terms < SumBlock && terms*size <= SumBlock: // all of it
			if i < 0 {
				terms *= size
				continue
			}
			terms, strip = terms*size, dims[i].rows
		case i < 0 || i >= before:
			return false
		case terms < SumBlock:
			unit := size / dims[i].rows
			strip = SumBlock / terms / unit
			if strip*terms*unit != SumBlock || dims[i].rows%strip != 0 {
				return false
			}
			terms = SumBlock
		case size != dims[i].rows:
			return false
		}
		if known, ok := strips[dims[i]]; ok && known != strip {
			return false
		}
		strips[dims[i]], before = strip, i
	}
	return true
}

// place is the dimension of which k is the major factor; -1 where it is of none, and
// bad where it is a minor one.
func place(dims [][]int, k int) (n int, bad bool) {
	for n, fs := range dims {
		if i := slices.Index(fs, k); k >= 0 && i >= 0 {
			return n, i > 0
		}
	}
	return -1, false
}

// spread finds where everything that g makes has d. It is not ok where a member
// cannot be computed in strips of d.
func (g *group) spread(d *dim) bool {
	for more := true; more; {
		more = false
		for _, op := range g.ops {
			found, ok := g.meet(d, op)
			if !ok {
				return false
			}
			more = more || found
		}
	}
	for _, op := range g.ops {
		if !g.fits(d, op) {
			return false
		}
	}
	return true
}

// key is the factor of op that d is, as far as that is known; -1 for none, and -2
// where its values disagree.
func (d *dim) key(op *ir.Op) int {
	f, k := d.rules[op], -1
	see := func(v *ir.Value, dims [][]int) {
		n, known := d.at[v]
		switch {
		case !known:
		case len(dims[n]) == 0 || f.Sizes[dims[n][0]]%d.rows != 0 || k >= 0 && k != dims[n][0]:
			k = -2
		case k == -1:
			k = dims[n][0]
		}
	}
	for i, v := range op.Operands {
		see(v, f.Operands[i])
	}
	see(op.Result(), f.Results[0])
	return k
}

// meet gives d a place in those values of op that members make.
func (g *group) meet(d *dim, op *ir.Op) (found, ok bool) {
	k := d.key(op)
	if k < 0 {
		return false, k == -1
	}
	f := d.rules[op]
	see := func(v *ir.Value, dims [][]int) bool {
		n, bad := place(dims, k)
		if at, known := d.at[v]; known || n < 0 || !g.made(v) {
			return !bad && (!known || at == n)
		}
		d.at[v], found = n, true
		return !bad && v.Type.Shape[n]%d.rows == 0
	}
	ok = see(op.Result(), f.Results[0])
	for i, v := range op.Operands {
		ok = see(v, f.Operands[i]) && ok
	}
	return found, ok
}

// made reports whether a member makes v.
func (g *group) made(v *ir.Value) bool { return v.Def != nil && g.role[v.Def] != outsider }

// fits reports whether op, whose values have d where they have it, can be computed in
// strips.
func (g *group) fits(d *dim, op *ir.Op) bool {
	k := d.key(op)
	switch {
	case k == -1: // the same for all strips
		return g.role[op] == between || g.role[op] == maker && g.cheap(op.Result())
	case k < 0:
		return false
	}
	f := d.rules[op]
	for i, v := range op.Operands { // inputs are taken in strips as well
		if n, bad := place(f.Operands[i], k); bad || n >= 0 && v.Type.Shape[n]%d.rows != 0 {
			return false
		}
	}
	switch f.Types[k] {
	case ir.PassThrough:
		if op.Kind == ir.DotGeneral {
			l, _ := place(f.Operands[0], k)
			r, _ := place(f.Operands[1], k)
			d.batch = d.batch && l >= 0 && r >= 0
		}
		return true
	case ir.Reduction:
		d.sums = append(d.sums, op)
		again := func(u *ir.Op) bool { return g.role[u] != outsider && g.level[u] == g.level[op] }
		return op.Kind == ir.DotGeneral && !op.Result().Type.Elem.IsComplex() && g.role[op] == root && !slices.ContainsFunc(g.users[op.Result()], again)
	}
	return false
}
