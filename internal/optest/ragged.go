package optest

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// GroupSizes are random sizes of groups of a dimension of the given length, for each
// index of the other dimensions of the shape, the last of which is that of the groups.
// Together they are the length or less, and some are 0; n(k) is a random number below
// k.
func GroupSizes(n func(int) int, length int, shape ...int) *ir.Literal {
	t := ir.Tensor(ir.I32, shape...)
	groups := shape[len(shape)-1]
	sizes := make([]int, t.NumElements())
	for i := range sizes {
		left := length
		for _, used := range sizes[i-i%groups : i] {
			left -= used
		}
		sizes[i] = n(left + 1)
	}
	return ir.Ints64(t, sizes...)
}

// Ragged makes a dot of sides with the given shapes one by groups of the dimension
// ragged of the left one. The right one gets a dimension of groups, before dimension at,
// where that is needed.
func Ragged(d ir.Dot, ragged, groups, at int, r []int) (ir.RaggedDims, []int) {
	x := ir.RaggedDims{Dot: d, LhsRagged: []int{ragged}}
	if x.Mode() != ir.RaggedFree {
		return x, r
	}
	for _, dims := range []*[]int{&x.RhsBatch, &x.RhsContract} {
		*dims = slices.Clone(*dims)
		for i, k := range *dims {
			if k >= at {
				(*dims)[i]++
			}
		}
	}
	x.RhsGroup = []int{at}
	return x, slices.Insert(slices.Clone(r), at, groups)
}

// ragged is a dot by groups, and the shapes of its operands.
func (p *Program) ragged() (d ir.RaggedDims, l, r []int, sizes *ir.Value) {
	dot, l, r := p.sides()
	if len(l) == 0 {
		l = p.Sizes(1)
	}
	ragged, groups := p.IntN(len(l)), 1+p.IntN(3)
	d, r = Ragged(dot, ragged, groups, p.IntN(len(r)+1), r)
	l[ragged] = 1 + p.IntN(5)
	if right := d.Right(ragged); right >= 0 {
		r[right] = l[ragged]
	}
	shape := []int{groups}
	if p.IntN(2) == 0 {
		shape = nil
		for _, k := range d.Outer() {
			shape = append(shape, l[k])
		}
		shape = append(shape, groups)
	}
	return d, l, r, p.B.Const(GroupSizes(p.IntN, l[ragged], shape...))
}

func (p *Program) byGroups(d ir.RaggedDims, x, y, sizes *ir.Value) *ir.Value {
	return p.B.Emit(ir.RaggedDot, []*ir.Value{x, y, sizes}, ir.AttrsOf(facts.Named("ragged_dot_dimension_numbers", d)), nil, nil).Result()
}

var raggedCases = []Case{
	{Name: "chlo.ragged_dot", Build: func(p *Program) []*ir.Value {
		d, l, r, sizes := p.ragged()
		return []*ir.Value{p.byGroups(d, p.Float(l...), p.Float(r...), sizes)}
	}},
	{Name: "chlo.ragged_dot of one side", Linear: true, Build: func(p *Program) []*ir.Value {
		d, l, r, sizes := p.ragged()
		if p.IntN(2) == 0 {
			return []*ir.Value{p.byGroups(d, p.Float(l...), p.B.Const(p.Numbers(-1, 1, ir.Tensor(ir.F64, r...))), sizes)}
		}
		return []*ir.Value{p.byGroups(d, p.B.Const(p.Numbers(-1, 1, ir.Tensor(ir.F64, l...))), p.Float(r...), sizes)}
	}},
}
